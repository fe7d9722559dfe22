//! The folder of a run: its files, and errors in writing them. Where the disk is full, what is worth less makes room for
//! what is worth more.

use std::io::ErrorKind;
use std::path::{Path, PathBuf};

use doctor::spoiled;
use host::klog::{KernelLogError, LogReport};
use record::Run;
use record::checkup::Checkup;
use record::render::report::{Bundle, Entry, RunProblem, RunProblems, html, summary};

use crate::bundle;
use crate::lock::FolderLock;
use crate::records::FIRST;
use crate::{StoreError, Tell};

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

/// What a file is worth, the least first: on a full disk each gives way to those behind it.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
enum Worth {
    /// A recording of a result that was disturbed and measured again.
    FirstRecording,
    /// The record of such a result.
    FirstRecord,
    /// A recording of a result that counts.
    Recording,
    /// The report, and what it is rendered from.
    Report,
    /// The record of a result that counts.
    Record,
}

/// A folder, and the same results in memory, so that nothing is lost if the folder cannot be written.
pub struct Folder {
    path: PathBuf,
    tell: Tell,
    /// Held while the run lasts.
    _lock: FolderLock,
    /// Whether it was created here, and is removed if it stays empty.
    is_new: bool,
    /// The results, as the report has them.
    pub bundle: Bundle,
    /// How many runs of the bundle had their slow calls drawn.
    drawn: usize,
    /// Records and recordings of disturbed first results.
    firsts: Vec<(Worth, String)>,
    troubles: Vec<String>,
}

impl Folder {
    /// Opens the named folder, or one named by the time.
    ///
    /// # Errors
    /// Another command writes there, or there are files of an earlier run, or the folder cannot be written.
    pub fn make(named: Option<PathBuf>, tell: Tell) -> Result<Self, StoreError> {
        let path = named.unwrap_or_else(unnamed);
        let is_new = !path.exists();
        let lock = FolderLock::take(&path, tell)?;
        if let Some(name) = LEFT_BY_A_RUN.iter().find(|name| path.join(name).exists()) {
            let why = format!(
                "{} holds {name} of an earlier run, and a report tells of one run only: give another folder",
                path.display()
            );
            return Err(StoreError::Unusable(why));
        }
        // Checked before minutes of measuring, not after.
        sys::draft::Draft::new(&path.join(REPORT))
            .map_err(|error| StoreError::unwritten("write to", &path, error))?;
        Ok(Self {
            path,
            tell,
            _lock: lock,
            is_new,
            bundle: Bundle::default(),
            drawn: 0,
            firsts: Vec::new(),
            troubles: Vec::new(),
        })
    }

    /// Its path.
    pub fn path(&self) -> &Path {
        &self.path
    }

    /// Stores a result in the folder and for the report.
    pub fn keep(&mut self, name: &str, run: Run) {
        if let Some(why) = run.latency().and_then(|test| test.recorder.as_ref()?.trouble.as_ref()) {
            self.troubles.push(format!("a slow call of {name} was not saved: {why}"));
        }
        self.add(Entry { name: format!("{name}.json"), run });
    }

    /// Stores the disturbed result of a part that was repeated, beside the report.
    pub fn keep_first(&mut self, name: &str, run: &Run) {
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
        self.put_first(file, run);
    }

    /// Writes the record of a disturbed result.
    fn put_first(&mut self, file: String, run: &Run) {
        let recordings = bundle::recordings(run).map(|file| (Worth::FirstRecording, file.to_owned()));
        self.firsts.extend(recordings);
        self.put(&file, &run.to_json(), Worth::FirstRecord);
        self.firsts.push((Worth::FirstRecord, file));
    }

    /// Adds a result to the report, and writes its record.
    fn add(&mut self, entry: Entry) {
        let (name, text) = (entry.name.clone(), entry.run.to_json());
        // First, so that its own recordings can make room for it.
        self.bundle.runs.push(entry);
        self.put(&name, &text, Worth::Record);
    }

    /// Takes over the files that a copy of this program left in another folder.
    pub fn take_over(&mut self, bundle: Bundle, from: &Path) {
        let Bundle { runs, checkup, troubles, .. } = bundle;
        self.bundle.troubles.extend(troubles);
        for entry in runs {
            let files: Vec<String> = bundle::recordings(&entry.run).map(str::to_owned).collect();
            self.add(entry);
            files.iter().for_each(|file| self.copy(from, file, Worth::Recording));
        }
        // That there are some is among the troubles.
        for (file, run) in bundle::firsts(from) {
            self.put_first(file, &run);
            bundle::recordings(&run).for_each(|file| self.copy(from, file, Worth::FirstRecording));
        }
        if let Some(checkup) = checkup {
            self.keep_checkup(checkup);
        }
        // What they were is among the troubles.
        if let Ok(text) = std::fs::read_to_string(from.join(COMPLAINTS)) {
            self.put(COMPLAINTS, &text, Worth::Report);
        }
    }

    /// Copies a recording.
    fn copy(&mut self, from: &Path, file: &str, worth: Worth) {
        let from = from.join(file);
        self.with_room(file, worth, &|copy| sys::draft::copy(&from, copy).map(drop));
    }

    /// Stores the doctor's findings.
    pub fn keep_checkup(&mut self, checkup: Checkup) {
        self.put(CHECKUP, &checkup.to_json(), Worth::Report);
        self.bundle.checkup = Some(checkup);
    }

    /// Stores problems from the kernel's log.
    pub fn keep_complaints(&mut self, account: Result<LogReport, KernelLogError>) {
        match account {
            Ok(account) if account.is_clean() => {}
            Ok(account) => {
                let text = account.to_string();
                self.put(COMPLAINTS, &text, Worth::Report);
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

    /// Writes a file, whole or not at all.
    fn put(&mut self, name: &str, text: &str, worth: Worth) -> Option<PathBuf> {
        self.with_room(name, worth, &|path| sys::draft::write(path, text))
    }

    /// Writes a file. Where the disk is full, files that are worth less are removed until it fits.
    fn with_room(
        &mut self,
        name: &str,
        worth: Worth,
        write: &dyn Fn(&Path) -> std::io::Result<()>,
    ) -> Option<PathBuf> {
        let path = self.path.join(name);
        loop {
            let Err(error) = write(&path) else { return Some(path) };
            let why = sys::errno::describe(&error);
            let is_full = matches!(error.kind(), ErrorKind::StorageFull | ErrorKind::QuotaExceeded);
            if is_full && let Some((least, file)) = self.worth_least(worth) {
                if least == Worth::Recording {
                    // Its picture stays in the report.
                    self.explain();
                }
                if std::fs::remove_file(&file).is_ok() {
                    let (gone, kept) = (file.display(), path.display());
                    self.troubles.push(format!("removed {gone} to make room for {kept}: {why}"));
                    continue;
                }
            }
            self.troubles.push(format!("could not write all of the result to {}: {why}", path.display()));
            return None;
        }
    }

    /// Of the files that are there and worth less than this: the largest of those that are worth least.
    fn worth_least(&self, than: Worth) -> Option<(Worth, PathBuf)> {
        let counting = self.bundle.runs.iter().flat_map(|entry| bundle::recordings(&entry.run));
        let counting = counting.map(|file| (Worth::Recording, file));
        let firsts = self.firsts.iter().map(|(worth, file)| (*worth, file.as_str()));
        let there = firsts.chain(counting).filter(|(worth, _)| *worth < than).filter_map(|(worth, file)| {
            let path = self.path.join(file);
            Some((std::cmp::Reverse(worth), std::fs::metadata(&path).ok()?.len(), path))
        });
        there.max().map(|(worth, _, path)| (worth.0, path))
    }

    /// Draws the slow calls that were recorded and are not drawn yet.
    pub fn explain(&mut self) {
        bundle::draw_saved(&mut self.bundle, self.drawn, &self.path, self.tell);
        self.drawn = self.bundle.runs.len();
    }

    /// Writes the report and the files to render it again; returns its path.
    pub fn report(&mut self) -> Option<PathBuf> {
        if !self.bundle.troubles.is_empty() {
            self.put(TROUBLES, &RunProblems::to_json(&self.bundle.troubles), Worth::Report);
        }
        match html(&self.bundle) {
            Ok(page) => self.put(REPORT, &page, Worth::Report),
            Err(why) => {
                self.troubles.push(why.to_string());
                None
            }
        }
    }

    /// The summary for the terminal.
    pub fn summary(&self, report: Option<&Path>) -> String {
        let place = report.map(|report| report.display().to_string()).unwrap_or_default();
        summary(&self.bundle, &place)
    }

    /// The errors in writing.
    pub fn troubles(&self) -> &[String] {
        &self.troubles
    }

    /// Removes the folder if it is empty because nothing was measured.
    pub fn remove_if_empty(&self) {
        if self.is_new {
            // Fails on purpose if the folder has contents.
            let _ = std::fs::remove_dir(&self.path);
        }
    }
}

/// A folder named by the time.
pub fn unnamed() -> PathBuf {
    PathBuf::from(format!("binderperf-run-{}", digits_of_now()))
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

    use needs::{Need, need};
    use record::{Class, Miss, Recorder, SavedCall};
    use sys::private_folder::PrivateFolder;

    use super::*;

    /// A file system with this room, unmounted at the end.
    struct Small(PrivateFolder);

    impl Small {
        fn new(name: &str, options: &str) -> Result<Self, needs::Lack> {
            let place = PrivateFolder::new(name).expect("a folder");
            let mounted = sys::kernel::mount("tmpfs", place.named(), options);
            mounted.map_err(|why| Need::Mount.lacks(why))?;
            Ok(Self(place))
        }
    }

    impl Drop for Small {
        fn drop(&mut self) {
            let _ = Command::new("umount").arg("-l").arg(self.0.named()).status();
        }
    }

    /// A record of more than 100 KB, of a latency test with this recording.
    fn with_recording(file: &str) -> Run {
        let text = include_str!("../../../tests/golden/latency.json");
        let mut run = Run::from_json(text.as_bytes()).expect("a record");
        let call = Miss { pair: 0, class: Class::Fifo, iteration: 1, took: 9 };
        let saved = SavedCall { call, missed: false, file: file.to_owned(), cause: "x".repeat(100_000) };
        let test = run.measured.latency_mut().expect("a latency test");
        test.recorder = Some(Recorder { saved: vec![saved], ..Recorder::default() });
        run
    }

    #[test]
    fn on_a_full_disk_a_recording_makes_room_for_the_record() {
        let run = with_recording("slow.bptrace");
        let bytes = run.to_json().len();
        let disk = need!(Small::new("room", &format!("size={}k", bytes / 1024 + 24)));
        let out = disk.0.path().join("out");
        let mut folder = Folder::make(Some(out.clone()), |_| {}).expect("a folder");
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
        assert!(folder.put("small.json", "{}", Worth::Report).is_some());
    }

    /// The names in a folder, sorted.
    fn names(out: &Path) -> Vec<String> {
        let entries = std::fs::read_dir(out).expect("there").flatten();
        let mut names: Vec<String> =
            entries.map(|entry| entry.file_name().to_string_lossy().into_owned()).collect();
        names.sort();
        names
    }

    #[test]
    fn on_a_full_disk_what_was_rejected_makes_room_for_what_counts() {
        let (first, second) = (with_recording("first.bptrace"), with_recording("second.bptrace"));
        let room = second.to_json().len() / 1024;
        // Of two records and two recordings of 60 KB, one record and one recording fit, and a page.
        let disk = need!(Small::new("worth", &format!("size={}k", room + 60 + 36)));
        let out = disk.0.path().join("out");
        let mut folder = Folder::make(Some(out.clone()), |_| {}).expect("a folder");
        std::fs::write(out.join("first.bptrace"), vec![0; 60_000]).expect("it fits");
        folder.keep_first("latency-binder", &first);
        assert_eq!(names(&out), ["first.bptrace", "latency-binder.first.json"]);
        // The result that counts goes before both.
        folder.keep("latency-binder", second.clone());
        assert_eq!(names(&out), ["latency-binder.first.json", "latency-binder.json"].map(str::to_owned)[1..]);
        let elsewhere = Small::new("elsewhere", "size=1m").expect("there was one");
        std::fs::write(elsewhere.0.path().join("second.bptrace"), vec![0; 60_000]).expect("it fits");
        folder.copy(elsewhere.0.path(), "second.bptrace", Worth::Recording);
        // What was rejected does not push out what counts; the report does push out a recording.
        folder.keep_first("latency-binder", &first);
        assert_eq!(names(&out), ["latency-binder.json", "second.bptrace"]);
        assert!(folder.put(REPORT, &"x".repeat(50_000), Worth::Report).is_some());
        assert_eq!(names(&out), ["latency-binder.json", REPORT]);
    }
}
