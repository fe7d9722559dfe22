//! Room: what was changed in tracefs, kept in a file so that it can be put back: at the end, by a later
//! command, or after a crash.
//! Not here: what to change (`atrace`).

use std::fs::{self, File};
use std::io::{self, Write};
use std::os::unix::fs::{MetadataExt, OpenOptionsExt};
use std::path::{Path, PathBuf};

use driver::embedded::marks;
use serde::{Deserialize, Serialize};

use super::process::Process;
use super::size::size_kb;
use super::tracefs::{Buffer, Trouble};

/// What files said before they were changed. It is on disk before the first of them is.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Changes {
    /// Which boot of the machine: another one has forgotten all of it.
    boot: String,
    /// The buffer's folder.
    folder: PathBuf,
    /// Who puts it back when it ends; `None`: whoever is told to.
    keeper: Option<Process>,
    /// File and content, in the order in which they were changed.
    before: Vec<(String, String)>,
    /// Whether the embedded driver's processes were told to write marks.
    #[serde(default)]
    announced: bool,
}

/// Where changes to the shared buffer are kept: in the user's runtime folder, or in `/tmp`.
#[must_use]
pub fn state_file() -> PathBuf {
    let runtime = std::env::var_os("XDG_RUNTIME_DIR").map(PathBuf::from).filter(|path| path.is_absolute());
    let folder = runtime.unwrap_or_else(|| PathBuf::from("/tmp"));
    folder.join(format!("binderperf-tracing-{}.json", sys::identity::effective_uid()))
}

fn boot() -> String {
    let id = fs::read_to_string("/proc/sys/kernel/random/boot_id").unwrap_or_default();
    id.trim().to_owned()
}

/// The text that a file takes to be as it was when it said this.
fn restoring(knob: &str, said: &str) -> String {
    if knob.ends_with("buffer_size_kb") {
        return size_kb(said).map_or(said.to_owned(), |kb| kb.to_string());
    }
    if knob == "trace_clock" {
        let chosen = said.split('[').nth(1).and_then(|rest| rest.split(']').next());
        return chosen.unwrap_or(said).to_owned();
    }
    // `#### all functions enabled ####`: no filter.
    if said.starts_with('#') { String::new() } else { said.to_owned() }
}

impl Changes {
    /// No change of this buffer so far.
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

    /// Those in a state file; `None` without one, or if the machine was booted since.
    ///
    /// # Errors
    /// [`Trouble::Refused`]: it cannot be read, is not this user's, or is none.
    pub fn load(path: &Path) -> Result<Option<Self>, Trouble> {
        let refused = |error| Trouble::Refused { tried: format!("reading {}", path.display()), error };
        // The folder may be everybody's: a link or a pipe there is somebody's trap.
        match fs::symlink_metadata(path) {
            Ok(found) if found.is_file() => {}
            Ok(_) => return Err(refused(io::Error::other("it is no plain file; remove it"))),
            Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(None),
            Err(error) => return Err(refused(error)),
        }
        let file = File::open(path).map_err(refused)?;
        let owner = file.metadata().map_err(refused)?.uid();
        if owner != sys::identity::effective_uid() {
            return Err(refused(io::Error::other(format!("it is user {owner}'s; remove it"))));
        }
        let changes: Self = serde_json::from_reader(io::BufReader::new(file))
            .map_err(|error| refused(io::Error::other(format!("{error}; remove it"))))?;
        if changes.boot == boot() {
            return Ok(Some(changes));
        }
        let _ = fs::remove_file(path);
        Ok(None)
    }

    /// Keeps them in a file that only this user can read.
    fn save(&self, path: &Path) -> Result<(), Trouble> {
        let refused = |error| Trouble::Refused {
            tried: format!("keeping what was there in {}", path.display()),
            error,
        };
        let text = serde_json::to_vec(self).map_err(|error| refused(error.into()))?;
        let new = path.with_extension(format!("{}.new", std::process::id()));
        // A new file of our own, whatever anybody has put there: the folder may be everybody's.
        let file = File::options().write(true).create_new(true).mode(0o600).open(&new);
        file.and_then(|mut file| file.write_all(&text)).and_then(|()| fs::rename(&new, path)).map_err(
            |error| {
                let _ = fs::remove_file(&new);
                refused(error)
            },
        )
    }

    /// The process that puts them back, if it is alive.
    #[must_use]
    pub fn keeper(&self) -> Option<Process> {
        self.keeper.filter(Process::is_alive)
    }

    /// Whether they wait for a command, whoever made them.
    #[must_use]
    pub fn are_left_to_a_command(&self) -> bool {
        self.keeper.is_none()
    }

    /// Writes these values to files, in order; first notes what they said, there too. A file that says
    /// what it shall is left alone.
    ///
    /// # Errors
    /// [`Trouble::Denied`], [`Trouble::Refused`]; what was changed until then can be put back.
    pub fn make(&mut self, buffer: &Buffer, values: &[(String, String)], path: &Path) -> Result<(), Trouble> {
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

    /// Has every process of this user that opens an embedded context from now on write marks into the buffer, until
    /// this is put back.
    ///
    /// # Errors
    /// [`Trouble::Refused`]: it could not be kept, or announced; the latter is no reason not to record the rest.
    pub fn announce(&mut self, buffer: &Buffer, path: &Path) -> Result<(), Trouble> {
        self.announced = true;
        self.save(path)?;
        marks::announce(buffer.folder()).map_err(|error| Trouble::Refused {
            tried: "telling the embedded driver's processes of this recording".to_owned(),
            error: io::Error::other(error.to_string()),
        })
    }

    /// Takes an announcement back, if there was one.
    ///
    /// # Errors
    /// [`Trouble::Refused`]: it is still there, or that it is not could not be kept.
    pub fn withdraw(&mut self, path: &Path) -> Result<(), Trouble> {
        if !self.announced {
            return Ok(());
        }
        withdraw()?;
        self.announced = false;
        self.save(path)
    }

    /// Puts back what was there, the last change first, and forgets it; one that fails does not keep the rest
    /// from being put back.
    ///
    /// # Errors
    /// The first failure. The state file stays then.
    pub fn put_back(self, path: &Path) -> Result<(), Trouble> {
        let buffer = Buffer::at(&self.folder);
        let mut result = if self.announced { withdraw() } else { Ok(()) };
        for (knob, said) in self.before.iter().rev() {
            let restored = buffer.write(knob, &restoring(knob, said));
            result = result.and(restored);
        }
        result?;
        match fs::remove_file(path) {
            Err(error) if error.kind() != io::ErrorKind::NotFound => {
                Err(Trouble::Refused { tried: format!("removing {}", path.display()), error })
            }
            _ => Ok(()),
        }
    }
}

fn withdraw() -> Result<(), Trouble> {
    marks::withdraw().map_err(|error| Trouble::Refused {
        tried: "telling the embedded driver's processes that this recording is over".to_owned(),
        error,
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    struct Scene {
        folder: PathBuf,
        state: PathBuf,
    }

    impl Scene {
        fn new(name: &str, files: &[(&str, &str)]) -> Self {
            let folder =
                std::env::temp_dir().join(format!("binderperf-changes-{name}-{}", std::process::id()));
            fs::create_dir_all(&folder).expect("a folder");
            for (file, text) in files {
                fs::write(folder.join(file), text).expect("a file");
            }
            Self { state: folder.join("state.json"), folder }
        }

        fn says(&self, file: &str) -> String {
            fs::read_to_string(self.folder.join(file)).expect("a file").trim().to_owned()
        }
    }

    impl Drop for Scene {
        fn drop(&mut self) {
            let _ = fs::remove_dir_all(&self.folder);
        }
    }

    fn values(list: &[(&str, &str)]) -> Vec<(String, String)> {
        list.iter().map(|(knob, value)| ((*knob).to_owned(), (*value).to_owned())).collect()
    }

    #[test]
    fn what_was_there_comes_back_in_another_process_even_after_two_starts() {
        let scene = Scene::new(
            "twice",
            &[
                ("buffer_size_kb", "7 (expanded: 1408)\n"),
                ("trace_clock", "[local] boot\n"),
                ("tracing_on", "1\n"),
                ("set_ftrace_filter", "#### all functions enabled ####\n"),
            ],
        );
        let buffer = Buffer::at(&scene.folder);
        let mut changes = Changes::none(&buffer, None);
        let first = [
            ("buffer_size_kb", "8000"),
            ("trace_clock", "boot"),
            ("tracing_on", "1"),
            ("set_ftrace_filter", "f"),
        ];
        changes.make(&buffer, &values(&first), &scene.state).expect("made");
        assert_eq!((scene.says("buffer_size_kb"), scene.says("trace_clock")), ("8000".into(), "boot".into()));
        let mode = fs::metadata(&scene.state).expect("kept").mode();
        assert_eq!(mode & 0o777, 0o600);
        // A second start finds the first one's values, and must not take them for what was there.
        let mut changes = Changes::load(&scene.state).expect("readable").expect("kept");
        assert!(changes.are_left_to_a_command() && changes.keeper().is_none());
        changes.make(&buffer, &values(&[("buffer_size_kb", "64")]), &scene.state).expect("made");
        let changes = Changes::load(&scene.state).expect("readable").expect("kept");
        changes.put_back(&scene.state).expect("put back");
        assert_eq!(
            (scene.says("buffer_size_kb"), scene.says("trace_clock")),
            ("1408".into(), "local".into())
        );
        assert_eq!((scene.says("tracing_on"), scene.says("set_ftrace_filter")), ("1".into(), String::new()));
        assert_eq!(Changes::load(&scene.state).expect("readable"), None);
    }

    #[test]
    fn one_file_that_is_gone_does_not_keep_the_rest() {
        let scene = Scene::new("gone", &[("a", "1\n"), ("b", "1\n")]);
        let buffer = Buffer::at(&scene.folder);
        let mut changes = Changes::none(&buffer, None);
        changes.make(&buffer, &values(&[("a", "0"), ("b", "0")]), &scene.state).expect("made");
        fs::remove_file(scene.folder.join("b")).expect("removed");
        assert!(changes.put_back(&scene.state).is_err());
        assert_eq!(scene.says("a"), "1");
        assert!(scene.state.exists(), "the rest can be tried again");
    }

    #[test]
    fn a_state_of_another_boot_is_forgotten_and_a_broken_one_is_said() {
        let scene = Scene::new("boot", &[]);
        let mut changes = Changes::none(&Buffer::at(&scene.folder), None);
        changes.boot = "another".to_owned();
        changes.save(&scene.state).expect("kept");
        assert_eq!(Changes::load(&scene.state).expect("readable"), None);
        fs::write(&scene.state, "{").expect("a file");
        assert!(Changes::load(&scene.state).is_err());
    }
}
