//! Former contents of changed tracefs files, saved on disk so that they can be restored at the end, by a later
//! command, or after a crash.
//! Not here: what to change (`atrace`).

use std::ffi::OsStr;
use std::fs;
use std::io;
use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};

use embedded::trace_events::{self, Amount};
use serde::{Deserialize, Serialize};
use sys::folder::Folder;

use super::process::Process;
use super::tracefs::{Buffer, TraceError, chosen_clock};

/// Former contents of changed files, saved before the first change.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Changes {
    /// Boot ID; a reboot resets tracefs, so another boot's file is ignored.
    boot: String,
    /// The buffer's folder.
    folder: PathBuf,
    /// The process that restores them at its end; `None`: a later command does.
    keeper: Option<Process>,
    /// File name and former content, in the order of the changes.
    before: Vec<(String, String)>,
    /// Whether embedded-driver processes were told to write trace events.
    #[serde(default)]
    announced: bool,
}

/// The state file for changes to the shared buffer: in the runtime folder of this user, in that of the machine, or in `/tmp`,
/// the first that nobody else writes.
#[must_use]
pub fn state_file() -> PathBuf {
    let me = sys::identity::effective_uid();
    // Root may have the variable of the user who called it.
    let is_own = |folder: &PathBuf| {
        folder.metadata().is_ok_and(|found| found.is_dir() && found.uid() == me && found.mode() & 0o022 == 0)
    };
    let runtime = std::env::var_os("XDG_RUNTIME_DIR").map(PathBuf::from).filter(|path| path.is_absolute());
    let folder = [runtime, Some(PathBuf::from("/run"))].into_iter().flatten().find(is_own);
    let folder = folder.unwrap_or_else(|| PathBuf::from("/tmp"));
    folder.join(format!("binderperf-tracing-{}.json", me))
}

/// A state file's folder and name in it.
fn place(path: &Path) -> io::Result<(Folder, &OsStr)> {
    let (folder, name) = path.parent().zip(path.file_name()).ok_or(io::ErrorKind::InvalidInput)?;
    Ok((Folder::open(folder)?, name))
}

fn boot() -> String {
    let id = fs::read_to_string("/proc/sys/kernel/random/boot_id").unwrap_or_default();
    id.trim().to_owned()
}

/// Size of a buffer in KB: the expanded size, which an unused buffer reports separately.
fn size_kb(text: &str) -> Option<u64> {
    // `7 (expanded: 1408)`
    let number = text.split("expanded:").nth(1).map_or(text, |rest| rest.trim_end_matches(')'));
    number.trim().parse().ok()
}

/// The text to write so that a file has this content again.
fn restoring(knob: &str, said: &str) -> String {
    if knob.ends_with("buffer_size_kb") {
        return size_kb(said).map_or(said.to_owned(), |kb| kb.to_string());
    }
    if knob == "trace_clock" {
        return chosen_clock(said).unwrap_or(said).to_owned();
    }
    // `#### all functions enabled ####`: no filter.
    if said.starts_with('#') { String::new() } else { said.to_owned() }
}

impl Changes {
    /// No changes yet.
    #[must_use]
    pub fn none(buffer: &Buffer, keeper: Option<Process>) -> Self {
        Self {
            boot: boot(),
            folder: buffer.folder().to_owned(),
            keeper,
            before: Vec::new(),
            announced: false,
        }
    }

    /// Loads a state file; `None` if there is none, or if it is from another boot.
    ///
    /// # Errors
    /// [`TraceError::Refused`]: the file is unreadable, owned by another user, or malformed.
    pub fn load(path: &Path) -> Result<Option<Self>, TraceError> {
        let refused = TraceError::refused(format!("reading {}", path.display()));
        let (folder, name) = match place(path) {
            Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(None),
            other => other.map_err(&refused)?,
        };
        // Other users may write the folder, so what has the name is looked at, and a link or a FIFO is not opened.
        match folder.look(name) {
            Ok(found) if found.is_file() => {}
            Ok(_) => return Err(refused(io::Error::other("it is not a regular file; remove it"))),
            Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(None),
            Err(error) => return Err(refused(error)),
        }
        let file = folder.read_file(name).map_err(&refused)?;
        let owner = file.metadata().map_err(&refused)?.uid();
        if owner != sys::identity::effective_uid() {
            return Err(refused(io::Error::other(format!(
                "it is user {owner}'s; remove it, or set XDG_RUNTIME_DIR to a folder of this user's"
            ))));
        }
        let changes: Self = serde_json::from_reader(io::BufReader::new(file))
            .map_err(|error| refused(io::Error::other(format!("{error}; remove it"))))?;
        if changes.boot == boot() {
            return Ok(Some(changes));
        }
        let _ = fs::remove_file(path);
        Ok(None)
    }

    /// Saves the state in a file that only this user can read.
    fn save(&self, path: &Path) -> Result<(), TraceError> {
        let refused = TraceError::refused(format!("keeping what was there in {}", path.display()));
        let text = serde_json::to_vec(self).map_err(|error| refused(error.into()))?;
        place(path).and_then(|(folder, name)| folder.replace_file(name, &text, 0o600)).map_err(refused)
    }

    /// The process that restores the files, if it is alive.
    #[must_use]
    pub fn keeper(&self) -> Option<Process> {
        self.keeper.filter(|keeper| !keeper.has_ended())
    }

    /// Whether a later command restores the files.
    #[must_use]
    pub fn are_left_to_a_command(&self) -> bool {
        self.keeper.is_none()
    }

    /// Writes these values in order, after saving the former contents on disk. A file that already has the value is
    /// not written.
    ///
    /// # Errors
    /// [`TraceError::Denied`], [`TraceError::Refused`]; the changes made so far can be restored.
    pub fn make(
        &mut self,
        buffer: &Buffer,
        values: &[(String, String)],
        path: &Path,
    ) -> Result<(), TraceError> {
        let mut changed = Vec::new();
        for (knob, value) in values {
            let said = buffer.read(knob)?;
            if restoring(knob, &said) != *value {
                if !self.before.iter().any(|(known, _)| known == knob) {
                    self.before.push((knob.clone(), said));
                }
                changed.push((knob, value));
            }
        }
        self.save(path)?;
        changed.into_iter().try_for_each(|(knob, value)| buffer.write(knob, value))
    }

    /// Tells every process of this user that opens an embedded context from now on to write trace events into the
    /// buffer, until the changes are restored.
    ///
    /// # Errors
    /// [`TraceError::Refused`]: saving or announcing failed. A failed announcement need not stop the recording.
    pub fn announce(&mut self, buffer: &Buffer, path: &Path) -> Result<(), TraceError> {
        self.announced = true;
        self.save(path)?;
        trace_events::announce(buffer.folder(), Amount::All)
            .map_err(|error| io::Error::other(error.to_string()))
            .map_err(TraceError::refused("telling the embedded driver's processes of this recording"))
    }

    /// Withdraws the announcement, if there is one.
    ///
    /// # Errors
    /// [`TraceError::Refused`]: the announcement could not be removed, or the state not saved.
    pub fn withdraw(&mut self, path: &Path) -> Result<(), TraceError> {
        if !self.announced {
            return Ok(());
        }
        withdraw()?;
        self.announced = false;
        self.save(path)
    }

    /// Restores the files, last change first, and deletes the state file. A failure does not stop the rest.
    ///
    /// # Errors
    /// The first failure; the state file is kept.
    pub fn put_back(self, path: &Path) -> Result<(), TraceError> {
        let buffer = Buffer::at(&self.folder);
        let mut result = if self.announced { withdraw() } else { Ok(()) };
        for (knob, said) in self.before.iter().rev() {
            let restored = buffer.write(knob, &restoring(knob, said));
            result = result.and(restored);
        }
        result?;
        match fs::remove_file(path) {
            Err(error) if error.kind() != io::ErrorKind::NotFound => {
                Err(TraceError::refused(format!("removing {}", path.display()))(error))
            }
            _ => Ok(()),
        }
    }
}

fn withdraw() -> Result<(), TraceError> {
    let tried = "telling the embedded driver's processes that this recording is over";
    trace_events::withdraw().map_err(TraceError::refused(tried))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::fixtures::Folder;

    fn values(list: &[(&str, &str)]) -> Vec<(String, String)> {
        list.iter().map(|(knob, value)| ((*knob).to_owned(), (*value).to_owned())).collect()
    }

    #[test]
    fn what_was_there_comes_back_in_another_process_even_after_two_starts() {
        let fixture = Folder::new(
            "changes-twice",
            &[
                ("buffer_size_kb", "7 (expanded: 1408)\n"),
                ("trace_clock", "[local] boot\n"),
                ("tracing_on", "1\n"),
                ("set_ftrace_filter", "#### all functions enabled ####\n"),
            ],
        );
        let buffer = Buffer::at(&fixture);
        let mut changes = Changes::none(&buffer, None);
        let first = [
            ("buffer_size_kb", "8000"),
            ("trace_clock", "boot"),
            ("tracing_on", "1"),
            ("set_ftrace_filter", "f"),
        ];
        changes.make(&buffer, &values(&first), &fixture.join("state.json")).expect("made");
        assert_eq!(
            (fixture.says("buffer_size_kb"), fixture.says("trace_clock")),
            ("8000".into(), "boot".into())
        );
        let mode = fs::metadata(fixture.join("state.json")).expect("kept").mode();
        assert_eq!(mode & 0o777, 0o600);
        // A second start must keep the original values, not save those of the first start.
        let mut changes = Changes::load(&fixture.join("state.json")).expect("readable").expect("kept");
        assert!(changes.are_left_to_a_command() && changes.keeper().is_none());
        changes
            .make(&buffer, &values(&[("buffer_size_kb", "64")]), &fixture.join("state.json"))
            .expect("made");
        let changes = Changes::load(&fixture.join("state.json")).expect("readable").expect("kept");
        changes.put_back(&fixture.join("state.json")).expect("put back");
        assert_eq!(
            (fixture.says("buffer_size_kb"), fixture.says("trace_clock")),
            ("1408".into(), "local".into())
        );
        assert_eq!(
            (fixture.says("tracing_on"), fixture.says("set_ftrace_filter")),
            ("1".into(), String::new())
        );
        assert_eq!(Changes::load(&fixture.join("state.json")).expect("readable"), None);
    }

    #[test]
    fn an_unused_buffers_size_is_what_it_would_grow_to() {
        let sizes = ["7 (expanded: 1408)", "8000", "X"].map(size_kb);
        assert_eq!(sizes, [Some(1408), Some(8000), None]);
    }

    #[test]
    fn one_file_that_is_gone_does_not_keep_the_rest() {
        let fixture = Folder::new("changes-gone", &[("a", "1\n"), ("b", "1\n")]);
        let buffer = Buffer::at(&fixture);
        let mut changes = Changes::none(&buffer, None);
        changes.make(&buffer, &values(&[("a", "0"), ("b", "0")]), &fixture.join("state.json")).expect("made");
        fs::remove_file(fixture.join("b")).expect("removed");
        assert!(changes.put_back(&fixture.join("state.json")).is_err());
        assert_eq!(fixture.says("a"), "1");
        assert!(fixture.join("state.json").exists(), "the rest can be tried again");
    }

    #[test]
    fn a_state_of_another_boot_is_forgotten_and_a_broken_one_is_said() {
        let fixture = Folder::new("changes-boot", &[]);
        let mut changes = Changes::none(&Buffer::at(&fixture), None);
        changes.boot = "another".to_owned();
        changes.save(&fixture.join("state.json")).expect("kept");
        assert_eq!(Changes::load(&fixture.join("state.json")).expect("readable"), None);
        fs::write(fixture.join("state.json"), "{").expect("a file");
        assert!(Changes::load(&fixture.join("state.json")).is_err());
    }
}
