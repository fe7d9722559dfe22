//! The folder of a run: its files, and errors in writing them. Where the disk is full, recordings make room for results.

use std::io::ErrorKind;
use std::path::{Path, PathBuf};

use doctor::klog::{KernelLogError, LogReport};
use doctor::spoiled;
use record::Run;
use record::checkup::Checkup;
use record::render::report::{Bundle, Entry, RunProblem, RunProblems, html, summary};

use crate::cli::folder::FolderLock;
use crate::cli::records::FIRST;
use crate::cli::{Failure, exit, report};

/// Problems in the kernel's log during the run.
const COMPLAINTS: &str = "kernel-complaints.txt";
/// The doctor's findings.
const CHECKUP: &str = "checkup.json";
/// The report.
const REPORT: &str = "report.html";

/// Failures of parts without a record.
const TROUBLES: &str = "troubles.json";
/// The verdict on parts that were repeated.
const TWICE: &str = "measured twice";
/// Expectation of each part, which those did not meet.
const UNDISTURBED: &str = "the machine is this test's alone";
/// The names of files that only `run` writes.
const LEFT_BY_A_RUN: [&str; 12] = [
    "throughput.json",
    "throughput-one-cpu.json",
    "throughput-two-cpus.json",
    "latency-binder.json",
    "latency-hwbinder.json",
    "inversion.json",
    "overload.json",
    "background.json",
    "latency-sweep.json",
    COMPLAINTS,
    CHECKUP,
    TROUBLES,
];

/// A folder, and the same results in memory, so that nothing is lost if the folder cannot be written.
pub(super) struct Folder {
    path: PathBuf,
    /// Held while the run lasts.
    _lock: FolderLock,
    /// Whether it was created here, and is removed if it stays empty.
    is_new: bool,
    pub(super) bundle: Bundle,
    /// How many runs of the bundle had their slow calls drawn.
    drawn: usize,
    /// Recordings of disturbed first results.
    first_recordings: Vec<String>,
    troubles: Vec<String>,
}

impl Folder {
    /// Opens the named folder, or one named by the time.
    pub(super) fn make(named: Option<PathBuf>) -> Result<Self, Failure> {
        let path = named.unwrap_or_else(|| PathBuf::from(format!("binderperf-run-{}", digits_of_now())));
        let is_new = !path.exists();
        let lock = FolderLock::take(&path)?;
        if let Some(name) = LEFT_BY_A_RUN.iter().find(|name| path.join(name).exists()) {
            let why = format!(
                "{} holds {name} of an earlier run, and a report tells of one run only: give another folder",
                path.display()
            );
            return Err(Failure::new(exit::USAGE, why));
        }
        // Checked before minutes of measuring, not after.
        let first = path.join(format!(".binderperf-{}", std::process::id()));
        std::fs::File::create_new(&first)
            .and_then(|_| std::fs::remove_file(&first))
            .map_err(|error| Failure::of_file(exit::INTERNAL, "write to", &path, &error))?;
        Ok(Self {
            path,
            _lock: lock,
            is_new,
            bundle: Bundle::default(),
            drawn: 0,
            first_recordings: Vec::new(),
            troubles: Vec::new(),
        })
    }

    pub(super) fn path(&self) -> &Path {
        &self.path
    }

    /// Stores a result in the folder and for the report.
    pub(super) fn keep(&mut self, name: &str, run: Run) {
        if let Some(why) = run.latency.as_ref().and_then(|test| test.recorder.as_ref()?.trouble.as_ref()) {
            self.troubles.push(format!("a slow call of {name} was not saved: {why}"));
        }
        self.add(Entry { name: format!("{name}.json"), run });
    }

    /// Stores the disturbed result of a part that was repeated, beside the report.
    pub(super) fn keep_first(&mut self, name: &str, run: &Run) {
        let file = format!("{name}{FIRST}");
        let why = spoiled(run).map_or_else(|| "it was disturbed".to_owned(), |finding| finding.text.clone());
        let reason = format!("{why}; that result is in {file}, and the second one counts");
        // One line for all of them.
        match self.bundle.troubles.iter_mut().find(|trouble| trouble.words == TWICE) {
            Some(known) => known.reason = format!("{}. {name}: {reason}", known.reason),
            None => {
                let problem = RunProblem::not_here("disturbed parts", format!("{name}: {reason}"));
                self.bundle.troubles.push(RunProblem {
                    words: TWICE.to_owned(),
                    expected: UNDISTURBED.to_owned(),
                    ..problem
                });
            }
        }
        self.first_recordings.extend(report::recordings(run).map(str::to_owned));
        self.put(&file, &run.to_json());
    }

    /// Adds a result to the report, and writes its record.
    fn add(&mut self, entry: Entry) {
        let (name, text) = (entry.name.clone(), entry.run.to_json());
        // First, so that its own recordings can make room for it.
        self.bundle.runs.push(entry);
        self.put(&name, &text);
    }

    /// Takes over the files that a copy of this program left in another folder.
    pub(super) fn take_over(&mut self, bundle: Bundle, from: &Path) {
        let Bundle { runs, checkup, troubles, .. } = bundle;
        self.bundle.troubles.extend(troubles);
        for entry in runs {
            let files: Vec<String> = report::recordings(&entry.run).map(str::to_owned).collect();
            self.add(entry);
            files.iter().for_each(|file| self.copy(from, file));
        }
        // That there are some is among the troubles.
        for (file, run) in report::firsts(from) {
            self.put(&file, &run.to_json());
            report::recordings(&run).for_each(|file| self.copy(from, file));
        }
        if let Some(checkup) = checkup {
            self.keep_checkup(checkup);
        }
        // What they were is among the troubles.
        if let Ok(text) = std::fs::read_to_string(from.join(COMPLAINTS)) {
            self.put(COMPLAINTS, &text);
        }
    }

    /// Copies a recording.
    fn copy(&mut self, from: &Path, file: &str) {
        let copy = self.path.join(file);
        if let Err(error) = std::fs::copy(from.join(file), &copy) {
            let _ = std::fs::remove_file(&copy);
            let why = sys::errno::describe(&error);
            self.troubles.push(format!("could not write {}: {why}", copy.display()));
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
        let expected = "no messages of errors".to_owned();
        self.bundle.troubles.push(RunProblem {
            words,
            expected,
            ..RunProblem::not_run("kernel log", reason)
        });
    }

    /// Writes a file. Where the disk is full, recordings are removed until it fits: results come first.
    fn put(&mut self, name: &str, text: &str) -> Option<PathBuf> {
        let path = self.path.join(name);
        loop {
            let Err(error) = write_whole(&path, text) else { return Some(path) };
            let why = sys::errno::describe(&error);
            let is_full = matches!(error.kind(), ErrorKind::StorageFull | ErrorKind::QuotaExceeded);
            if is_full && let Some(recording) = self.largest_recording() {
                // Its picture stays in the report.
                self.explain();
                if std::fs::remove_file(&recording).is_ok() {
                    let (gone, kept) = (recording.display(), path.display());
                    self.troubles.push(format!("removed {gone} to make room for {kept}: {why}"));
                    continue;
                }
            }
            self.troubles.push(format!("could not write all of the result to {}: {why}", path.display()));
            return None;
        }
    }

    /// The largest recording of a disturbed result that is still there, else of a result that counts.
    fn largest_recording(&self) -> Option<PathBuf> {
        let sized = |file: &str| {
            let path = self.path.join(file);
            Some((std::fs::metadata(&path).ok()?.len(), path))
        };
        let first = self.first_recordings.iter().filter_map(|file| sized(file)).max();
        let counts = || {
            self.bundle.runs.iter().flat_map(|entry| report::recordings(&entry.run)).filter_map(sized).max()
        };
        first.or_else(counts).map(|(_, path)| path)
    }

    /// Draws the slow calls that were recorded and are not drawn yet.
    pub(super) fn explain(&mut self) {
        report::draw_saved(&mut self.bundle, self.drawn, &self.path);
        self.drawn = self.bundle.runs.len();
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

/// Writes a file, and removes it if it does not fit: a part of a record cannot be read.
fn write_whole(path: &Path, text: &str) -> std::io::Result<()> {
    std::fs::write(path, text).inspect_err(|_| {
        let _ = std::fs::remove_file(path);
    })
}

/// The current time as `20261121T221530`.
fn digits_of_now() -> String {
    let digits: String = host::now().chars().take(19).filter(char::is_ascii_digit).collect();
    let (day, time) = digits.split_at(digits.len().min(8));
    format!("{day}T{time}")
}

#[cfg(test)]
mod tests {
    use std::process::Command;

    use record::{Class, Miss, Recorder, SavedCall};

    use super::*;

    /// A file system with this room, unmounted at the end; `None`, said so, where this user may not mount one.
    struct Small(PathBuf);

    impl Small {
        fn new(name: &str, options: &str) -> Option<Self> {
            let place = std::env::temp_dir().join(format!("binderperf-{name}-{}", std::process::id()));
            std::fs::create_dir_all(&place).expect("a folder");
            let mounted = sys::kernel::mount("tmpfs", &place, options);
            if let Err(why) = mounted {
                crate::cli::note(format_args!("SKIPPED: no small file system: {why}\n"));
                return None;
            }
            Some(Self(place))
        }
    }

    impl Drop for Small {
        fn drop(&mut self) {
            let _ = Command::new("umount").arg("-l").arg(&self.0).status();
            let _ = std::fs::remove_dir(&self.0);
        }
    }

    /// A record of more than 100 KB, of a latency test with this recording.
    fn with_recording(file: &str) -> Run {
        let text = include_str!("../../../tests/golden/latency.json");
        let mut run = Run::from_json(text.as_bytes()).expect("a record");
        let call = Miss { pair: 0, class: Class::Fifo, iteration: 1, took: 9 };
        let saved = SavedCall { call, missed: false, file: file.to_owned(), cause: "x".repeat(100_000) };
        let test = run.latency.as_mut().expect("a latency test");
        test.recorder = Some(Recorder { saved: vec![saved], ..Recorder::default() });
        run
    }

    #[test]
    fn on_a_full_disk_a_recording_makes_room_for_the_record() {
        let run = with_recording("slow.bptrace");
        let bytes = run.to_json().len();
        let Some(disk) = Small::new("room", &format!("size={}k", bytes / 1024 + 24)) else { return };
        let out = disk.0.join("out");
        let Ok(mut folder) = Folder::make(Some(out.clone())) else { panic!("no folder") };
        std::fs::write(out.join("slow.bptrace"), vec![0; 60_000]).expect("it fits");
        folder.keep("latency-binder", run);
        let record = std::fs::read(out.join("latency-binder.json")).expect("it was written");
        Run::from_json(&record).expect("whole");
        assert!(!out.join("slow.bptrace").exists());
        let [told] = folder.troubles() else { panic!("{:?}", folder.troubles()) };
        assert!(told.contains("slow.bptrace to make room for") && told.contains("ENOSPC"), "{told}");
        // Without a recording to remove, a part of a record is not kept, and what is smaller still fits.
        folder.keep("latency-hwbinder", with_recording("none.bptrace"));
        assert!(folder.troubles().last().is_some_and(|told| told.contains("latency-hwbinder.json: ENOSPC")));
        assert!(!out.join("latency-hwbinder.json").exists());
        assert!(folder.put("small.json", "{}").is_some());
    }
}
