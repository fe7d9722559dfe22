//! Room: the folder of a run: what is in it, and what could not be put there.
//! Not here: what is measured.

use std::path::{Path, PathBuf};

use lab::doctor::klog::{Account, NoLog};
use record::Run;
use record::checkup::Checkup;
use record::render::report::{Bundle, Entry, Trouble, Troubles, html, summary};

use crate::cli::output::Sink;
use crate::cli::{exit, report};

/// The recording of slow calls.
const RECORDING: &str = "slow-calls.bptrace";
/// What the kernel complained of meanwhile.
const COMPLAINTS: &str = "kernel-complaints.txt";
/// What the doctor found.
const CHECKUP: &str = "checkup.json";
/// The page.
const REPORT: &str = "report.html";

/// What went wrong beside the tests that have a record.
const TROUBLES: &str = "troubles.json";
/// Files that only a run leaves.
const LEFT_BY_A_RUN: [&str; 7] = [
    "throughput.json",
    "latency-binder.json",
    "latency-hwbinder.json",
    RECORDING,
    COMPLAINTS,
    CHECKUP,
    TROUBLES,
];

/// A folder, and the same results in memory, so that nothing is lost if it takes no files.
pub(super) struct Folder {
    path: PathBuf,
    /// Whether it was made here, so that it may go if nothing gets into it.
    is_new: bool,
    pub(super) bundle: Bundle,
    troubles: Vec<String>,
}

impl Folder {
    /// The folder that was named, or one that is named by the time. The error is the exit status and what to say.
    pub(super) fn make(named: Option<PathBuf>) -> Result<Self, (u8, String)> {
        let path = named.unwrap_or_else(|| PathBuf::from(format!("binderperf-run-{}", digits_of_now())));
        let is_new = !path.exists();
        if let Some(name) = LEFT_BY_A_RUN.iter().find(|name| path.join(name).exists()) {
            let why = format!(
                "{} holds {name} of an earlier run, and a report tells of one run only: give another folder",
                path.display()
            );
            return Err((exit::USAGE, why));
        }
        // Known before minutes of measuring, not after.
        let first = path.join(format!(".binderperf-{}", std::process::id()));
        std::fs::create_dir_all(&path)
            .and_then(|()| std::fs::File::create_new(&first))
            .and_then(|_| std::fs::remove_file(&first))
            .map_err(|error| {
                let why = format!("cannot write to {}: {}", path.display(), lab::describe_errno(&error));
                (exit::INTERNAL, why)
            })?;
        Ok(Self { path, is_new, bundle: Bundle::default(), troubles: Vec::new() })
    }

    /// Where the recording of slow calls goes.
    pub(super) fn recording(&self) -> PathBuf {
        self.path.join(RECORDING)
    }

    /// Keeps a result, in the folder and for the report.
    pub(super) fn keep(&mut self, name: &str, run: Run) {
        let name = format!("{name}.json");
        self.put(&name, &run.to_json());
        self.bundle.runs.push(Entry { name, run });
    }

    /// Keeps what another copy of this program left in a folder of its own.
    pub(super) fn take_over(&mut self, bundle: Bundle, from: &Path) {
        let Bundle { runs, checkup, troubles, .. } = bundle;
        self.bundle.troubles.extend(troubles);
        for Entry { name, run } in runs {
            self.put(&name, &run.to_json());
            self.bundle.runs.push(Entry { name, run });
        }
        if let Some(checkup) = checkup {
            self.keep_checkup(checkup);
        }
        // What they were is among the troubles.
        if let Ok(text) = std::fs::read_to_string(from.join(COMPLAINTS)) {
            self.put(COMPLAINTS, &text);
        }
        let recording = from.join(RECORDING);
        if recording.exists()
            && let Err(error) = std::fs::copy(&recording, self.recording())
        {
            let (path, why) = (self.recording(), lab::describe_errno(&error));
            self.troubles.push(format!("could not write {}: {why}", path.display()));
        }
    }

    /// Keeps what the doctor found.
    pub(super) fn keep_checkup(&mut self, checkup: Checkup) {
        self.put(CHECKUP, &checkup.to_json());
        self.bundle.checkup = Some(checkup);
    }

    /// Keeps what the kernel wrote into its log meanwhile, if that was no good.
    pub(super) fn keep_complaints(&mut self, account: Result<Account, NoLog>) {
        match account {
            Ok(account) if account.is_clean() => {}
            Ok(account) => {
                let text = account.to_string();
                self.put(COMPLAINTS, &text);
                self.complained(&text);
            }
            Err(why) => self.bundle.troubles.push(Trouble::not_run("kernel log", why.to_string())),
        }
    }

    fn complained(&mut self, text: &str) {
        let reason = text.lines().next().unwrap_or("messages were lost").to_owned();
        let words = "COMPLAINTS".to_owned();
        self.bundle.troubles.push(Trouble { words, ..Trouble::not_run("kernel log", reason) });
    }

    fn put(&mut self, name: &str, text: &str) -> Option<PathBuf> {
        let path = self.path.join(name);
        let mut file = Sink::file(&path);
        file.put(text);
        match file.trouble() {
            Some(trouble) => {
                self.troubles.push(trouble);
                None
            }
            None => Some(path),
        }
    }

    /// What slow calls waited for, if they were recorded.
    pub(super) fn explain(&mut self) {
        let recording = self.recording();
        if !recording.exists() {
            return;
        }
        match report::causes(&recording) {
            Ok(causes) => self.bundle.causes.extend(causes),
            Err(why) => self.bundle.troubles.push(Trouble::not_run("slow calls", why)),
        }
    }

    /// Writes the page, and what it needs to be made again; where it is.
    pub(super) fn report(&mut self) -> Option<PathBuf> {
        if !self.bundle.troubles.is_empty() {
            self.put(TROUBLES, &Troubles::to_json(&self.bundle.troubles));
        }
        match html(&self.bundle) {
            Ok(page) => self.put(REPORT, &page),
            Err(why) => {
                self.troubles.push(why);
                None
            }
        }
    }

    /// The screen at the end.
    pub(super) fn summary(&self, report: Option<&Path>) -> String {
        let place = report.map(|report| report.display().to_string()).unwrap_or_default();
        summary(&self.bundle, &place)
    }

    /// What could not be written.
    pub(super) fn troubles(&self) -> &[String] {
        &self.troubles
    }

    /// Nothing was measured: no empty folder stays behind.
    pub(super) fn remove_if_empty(&self) {
        if self.is_new {
            // It fails where there is something in it, as it should.
            let _ = std::fs::remove_dir(&self.path);
        }
    }
}

/// `20261121T221530`.
fn digits_of_now() -> String {
    let digits: String = lab::host::now().chars().take(19).filter(char::is_ascii_digit).collect();
    let (day, time) = digits.split_at(digits.len().min(8));
    format!("{day}T{time}")
}
