//! The folder of a run: its files, and errors in writing them.

use std::path::{Path, PathBuf};

use doctor::klog::{KernelLogError, LogReport};
use record::Run;
use record::checkup::Checkup;
use record::render::report::{Bundle, Entry, RunProblem, RunProblems, html, summary};

use crate::cli::output::Sink;
use crate::cli::{Failure, exit, report};

/// Problems in the kernel's log during the run.
const COMPLAINTS: &str = "kernel-complaints.txt";
/// The doctor's findings.
const CHECKUP: &str = "checkup.json";
/// The report.
const REPORT: &str = "report.html";

/// Failures of parts without a record.
const TROUBLES: &str = "troubles.json";
/// The names of files that only `run` writes.
const LEFT_BY_A_RUN: [&str; 8] = [
    "throughput.json",
    "throughput-one-cpu.json",
    "throughput-two-cpus.json",
    "latency-binder.json",
    "latency-hwbinder.json",
    COMPLAINTS,
    CHECKUP,
    TROUBLES,
];

/// A folder, and the same results in memory, so that nothing is lost if the folder cannot be written.
pub(super) struct Folder {
    path: PathBuf,
    /// Whether it was created here, and is removed if it stays empty.
    is_new: bool,
    pub(super) bundle: Bundle,
    troubles: Vec<String>,
}

impl Folder {
    /// Opens the named folder, or one named by the time.
    pub(super) fn make(named: Option<PathBuf>) -> Result<Self, Failure> {
        let path = named.unwrap_or_else(|| PathBuf::from(format!("binderperf-run-{}", digits_of_now())));
        let is_new = !path.exists();
        if let Some(name) = LEFT_BY_A_RUN.iter().find(|name| path.join(name).exists()) {
            let why = format!(
                "{} holds {name} of an earlier run, and a report tells of one run only: give another folder",
                path.display()
            );
            return Err(Failure::new(exit::USAGE, why));
        }
        // Checked before minutes of measuring, not after.
        let first = path.join(format!(".binderperf-{}", std::process::id()));
        std::fs::create_dir_all(&path)
            .and_then(|()| std::fs::File::create_new(&first))
            .and_then(|_| std::fs::remove_file(&first))
            .map_err(|error| Failure::of_file(exit::INTERNAL, "write to", &path, &error))?;
        Ok(Self { path, is_new, bundle: Bundle::default(), troubles: Vec::new() })
    }

    pub(super) fn path(&self) -> &Path {
        &self.path
    }

    /// Stores a result in the folder and for the report.
    pub(super) fn keep(&mut self, name: &str, run: Run) {
        let name = format!("{name}.json");
        self.put(&name, &run.to_json());
        self.bundle.runs.push(Entry { name, run });
    }

    /// Takes over the files that a copy of this program left in another folder.
    pub(super) fn take_over(&mut self, bundle: Bundle, from: &Path) {
        let Bundle { runs, checkup, troubles, .. } = bundle;
        self.bundle.troubles.extend(troubles);
        for Entry { name, run } in runs {
            for file in report::recordings(&run) {
                let copy = self.path.join(file);
                if let Err(error) = std::fs::copy(from.join(file), &copy) {
                    let why = sys::errno::describe(&error);
                    self.troubles.push(format!("could not write {}: {why}", copy.display()));
                }
            }
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
    }

    /// Stores the doctor's findings.
    pub(super) fn keep_checkup(&mut self, checkup: Checkup) {
        self.put(CHECKUP, &checkup.to_json());
        self.bundle.checkup = Some(checkup);
    }

    /// Stores problems from the kernel's log.
    pub(super) fn keep_complaints(&mut self, account: Result<LogReport, KernelLogError>) {
        match account {
            Ok(account) if account.is_clean() => {}
            Ok(account) => {
                let text = account.to_string();
                self.put(COMPLAINTS, &text);
                self.complained(&text);
            }
            Err(why) => self.bundle.troubles.push(RunProblem::not_run("kernel log", why.to_string())),
        }
    }

    fn complained(&mut self, text: &str) {
        let reason = text.lines().next().unwrap_or("messages were lost").to_owned();
        let words = "COMPLAINTS".to_owned();
        self.bundle.troubles.push(RunProblem { words, ..RunProblem::not_run("kernel log", reason) });
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

    /// Draws the slow calls that were recorded.
    pub(super) fn explain(&mut self) {
        report::draw_saved(&mut self.bundle, 0, &self.path);
    }

    /// Writes the report and the files to render it again; returns its path.
    pub(super) fn report(&mut self) -> Option<PathBuf> {
        if !self.bundle.troubles.is_empty() {
            self.put(TROUBLES, &RunProblems::to_json(&self.bundle.troubles));
        }
        match html(&self.bundle) {
            Ok(page) => self.put(REPORT, &page),
            Err(why) => {
                self.troubles.push(why.to_string());
                None
            }
        }
    }

    /// The summary for the terminal.
    pub(super) fn summary(&self, report: Option<&Path>) -> String {
        let place = report.map(|report| report.display().to_string()).unwrap_or_default();
        summary(&self.bundle, &place)
    }

    /// The errors in writing.
    pub(super) fn troubles(&self) -> &[String] {
        &self.troubles
    }

    /// Removes the folder if it is empty because nothing was measured.
    pub(super) fn remove_if_empty(&self) {
        if self.is_new {
            // Fails on purpose if the folder has contents.
            let _ = std::fs::remove_dir(&self.path);
        }
    }
}

/// The current time as `20261121T221530`.
fn digits_of_now() -> String {
    let digits: String = host::now().chars().take(19).filter(char::is_ascii_digit).collect();
    let (day, time) = digits.split_at(digits.len().min(8));
    format!("{day}T{time}")
}
