//! The guest's serial console: stored in a file, read after a failure.
//! Not here: detecting the failure (`session`).

use std::fs::File;
use std::os::fd::AsRawFd;
use std::os::unix::fs::FileExt;
use std::path::Path;

use sys::draft::Draft;
use sys::folder::Folder;
use sys::private_folder::shown;

use super::error::VmError;

/// Console lines in an error message.
const EXCERPT_LINES: usize = 25;
/// Bytes at the end of the file that are searched for those lines.
const TAIL_BYTES: u64 = 64 * 1024;
/// Text that marks the start of a kernel's failure messages.
const ALARMS: [&str; 5] =
    ["Kernel panic - not syncing", "BUG:", "Oops", "sysrq: Trigger a crash", "general protection"];

/// A file that another process opens through this process's `/proc` entry. It has no name, so nothing is left behind
/// however this process ends.
pub(super) fn nameless_file(what: &str) -> Result<File, VmError> {
    let folder = std::env::temp_dir();
    Folder::open(&folder)
        .and_then(|folder| folder.nameless_file())
        .map_err(VmError::host(format!("making a temporary file for {what} in {}", shown(&folder))))
}

/// Path for a child process to open a file of this process.
pub(super) fn path_for_child(file: &File) -> String {
    format!("/proc/{}/fd/{}", std::process::id(), file.as_raw_fd())
}

/// The console's output file.
#[derive(Debug)]
pub(super) struct Console {
    file: File,
    /// That of the user, until it is in its place.
    draft: Option<Draft>,
}

impl Console {
    /// Opens the file that the user asked for, else a nameless one.
    pub(super) fn create(klog: Option<&Path>) -> Result<Self, VmError> {
        let Some(path) = klog else {
            return Ok(Self { file: nameless_file("the guest's console")?, draft: None });
        };
        let begun = || {
            let mut draft = Draft::new(path)?;
            // A log is of use up to where it ends.
            draft.show();
            Ok((draft.file().try_clone()?, Some(draft)))
        };
        let (file, draft) = begun().map_err(unwritten(path))?;
        Ok(Self { file, draft })
    }

    /// The file that QEMU writes.
    pub(super) fn file(&self) -> &File {
        &self.file
    }

    /// Puts the user's file in its place, however the guest ended; not if the guest said nothing.
    ///
    /// # Errors
    /// It could not be written whole.
    pub(super) fn keep(mut self, klog: Option<&Path>) -> Result<(), VmError> {
        let (Some(draft), Some(path)) = (self.draft.take(), klog) else { return Ok(()) };
        match self.file.metadata().is_ok_and(|file| file.is_file() && file.len() == 0) {
            true => draft.discard(),
            false => draft.commit().map_err(unwritten(path))?,
        }
        Ok(())
    }

    /// The console's content so far, or its end if it is long.
    pub(super) fn log(&self) -> Log {
        let len = self.file.metadata().map_or(0, |meta| meta.len());
        let mut bytes = vec![0; len.min(TAIL_BYTES) as usize];
        let start = len - bytes.len() as u64;
        match self.file.read_exact_at(&mut bytes, start) {
            Ok(()) => Log::of(&String::from_utf8_lossy(&bytes)),
            Err(error) => Log::of(&format!("(the console could not be read: {error})")),
        }
    }
}

fn unwritten(path: &Path) -> impl FnOnce(std::io::Error) -> VmError {
    VmError::host(format!("writing the kernel log {}", path.display()))
}

/// Printable lines of a console.
#[derive(Debug)]
pub(super) struct Log {
    lines: Vec<String>,
}

impl Log {
    fn of(text: &str) -> Self {
        Self { lines: text.lines().map(printable).filter(|line| !line.trim().is_empty()).collect() }
    }

    /// The most informative lines: from the first failure message on, else the last ones.
    pub(super) fn excerpt(&self) -> String {
        let last = self.lines.len().saturating_sub(EXCERPT_LINES);
        let alarm = self.lines.iter().position(|line| ALARMS.iter().any(|alarm| line.contains(alarm)));
        let start = alarm.unwrap_or(last);
        let end = self.lines.len().min(start + EXCERPT_LINES);
        self.lines[start..end].join("\n")
    }

    /// The kernel's panic message, if there is one.
    pub(super) fn panic(&self) -> Option<String> {
        let words = self.lines.iter().find_map(|line| line.split_once(ALARMS[0]));
        words.map(|(_, why)| why.trim_start_matches(':').trim().to_owned())
    }

    /// Whether the kernel hit one of its own breakpoints. It patches code with `int3`, and QEMU's multi-CPU emulation
    /// sometimes lets a CPU run into one that was already removed: about one boot in a hundred (QEMU 7.2, static keys
    /// set at the end of the boot).
    pub(super) fn stray_breakpoint(&self) -> bool {
        self.lines.iter().any(|line| line.contains("Oops: int3"))
    }

    /// Message of the guest's first process on the console before it gave up.
    pub(super) fn guest_words(&self) -> Option<String> {
        self.lines.iter().find_map(|line| Some(line.split_once("binderperf guest: ")?.1.trim().to_owned()))
    }
}

/// Removes escape sequences and control characters.
fn printable(line: &str) -> String {
    let mut out = String::new();
    let mut chars = line.chars();
    while let Some(c) = chars.next() {
        match c {
            '\u{1b}' => {
                let _ = chars.find(|c| c.is_ascii_alphabetic());
            }
            '\t' => out.push(' '),
            c if c.is_control() => {}
            c => out.push(c),
        }
    }
    out
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_excerpt_is_readable_and_short() {
        let log = Log::of(&format!("\u{1b}[2J\u{1b}[1;256rSeaBIOS\r\n\r\n{}", "line\r\n".repeat(40)));
        assert_eq!(log.excerpt(), ["line"; EXCERPT_LINES].join("\n"));
        assert_eq!(log.panic(), None);
        assert_eq!(printable("\u{1b}[2J\u{1b}[1;256rSeaBIOS\u{7}"), "SeaBIOS");
        assert_eq!(Log::of("x\nbinderperf guest: no port\n").guest_words().as_deref(), Some("no port"));
    }

    #[test]
    fn a_panic_is_shown_from_its_beginning() {
        let head = "[1.5] calm\n[1.6] BUG: kernel NULL pointer dereference\n[1.7] Kernel panic - not syncing: Fatal\n";
        let log = Log::of(&format!("{head}{}", "[1.8]  a frame of the stack\n".repeat(60)));
        assert_eq!(log.panic().as_deref(), Some("Fatal"));
        assert!(log.excerpt().starts_with("[1.6] BUG: "), "{}", log.excerpt());
        assert_eq!(log.excerpt().lines().count(), EXCERPT_LINES);
        assert!(!log.stray_breakpoint());
        assert!(Log::of("[3.4] Oops: int3: 0000 [#1] SMP NOPTI").stray_breakpoint());
    }

    #[test]
    fn two_nameless_files_are_two_files() {
        let (one, two) =
            (nameless_file("a test").expect("a memfd"), nameless_file("a test").expect("a memfd"));
        one.write_all_at(b"x", 0).expect("written");
        assert_eq!(two.metadata().expect("it is open").len(), 0);
        assert_eq!(std::fs::read(path_for_child(&one)).expect("it is open"), b"x");
    }
}
