//! Room: the guest's serial console: kept in a file, read when something went wrong.
//! Not here: deciding that something did (`session`).

use std::fs::{File, OpenOptions};
use std::os::fd::AsRawFd;
use std::os::unix::fs::FileExt;
use std::path::Path;

use super::error::VmError;

/// Lines of the console that an error carries.
const TAIL_LINES: usize = 25;
/// Bytes from the end in which those lines are looked for.
const TAIL_BYTES: u64 = 64 * 1024;

/// A file that another process reaches through this one's `/proc` entry: it needs no name, so nothing
/// is left behind however this process ends.
pub(super) fn nameless_file(what: &str) -> Result<File, VmError> {
    let folder = std::env::temp_dir();
    let doing = || VmError::host(format!("making a temporary file for {what} in {}", folder.display()));
    // Names tried in order; the file has one for an instant only.
    let open = |attempt: u32| {
        let path = folder.join(format!("binderperf-{}-{attempt}", std::process::id()));
        let file = OpenOptions::new().read(true).write(true).create_new(true).open(&path)?;
        std::fs::remove_file(&path)?;
        Ok(file)
    };
    let taken = |error: &std::io::Error| error.kind() == std::io::ErrorKind::AlreadyExists;
    (0..100)
        .map(open)
        .find(|result| !matches!(result, Err(error) if taken(error)))
        .unwrap_or_else(|| Err(std::io::ErrorKind::AlreadyExists.into()))
        .map_err(doing())
}

/// The path under which a child finds an open file of this process.
pub(super) fn path_for_child(file: &File) -> String {
    format!("/proc/{}/fd/{}", std::process::id(), file.as_raw_fd())
}

/// Where the console goes.
#[derive(Debug)]
pub(super) struct Console {
    pub(super) file: File,
}

impl Console {
    /// Into the file that the user wants it in, else into a nameless one.
    pub(super) fn create(klog: Option<&Path>) -> Result<Self, VmError> {
        let file = match klog {
            None => nameless_file("the guest's console")?,
            Some(path) => OpenOptions::new()
                .read(true)
                .write(true)
                .create(true)
                .truncate(true)
                .open(path)
                .map_err(VmError::host(format!("writing the kernel log {}", path.display())))?,
        };
        Ok(Self { file })
    }

    /// The last lines, without the terminal sequences that firmware prints.
    pub(super) fn tail(&self) -> String {
        let len = self.file.metadata().map_or(0, |meta| meta.len());
        let mut bytes = vec![0; len.min(TAIL_BYTES) as usize];
        let start = len - bytes.len() as u64;
        match self.file.read_exact_at(&mut bytes, start) {
            Ok(()) => last_lines(&String::from_utf8_lossy(&bytes)),
            Err(error) => format!("(the console could not be read: {error})"),
        }
    }
}

fn last_lines(text: &str) -> String {
    let lines: Vec<_> = text.lines().map(printable).filter(|line| !line.trim().is_empty()).collect();
    lines[lines.len().saturating_sub(TAIL_LINES)..].join("\n")
}

/// Drops escape sequences and control characters.
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

/// The first line of a panic in a console's tail.
pub(super) fn panic_line(tail: &str) -> Option<String> {
    let line = tail.lines().find(|line| line.contains("Kernel panic - not syncing"))?;
    Some(line.split_once("not syncing: ").map_or(line, |(_, what)| what).trim().to_owned())
}

/// What the guest's first process said on the console before it gave up.
pub(super) fn guest_line(tail: &str) -> Option<String> {
    tail.lines().find_map(|line| Some(line.split_once("binderperf guest: ")?.1.trim().to_owned()))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_tail_is_readable_and_short() {
        let text = format!("\u{1b}[2J\u{1b}[1;256rSeaBIOS\r\n\r\n{}", "line\r\n".repeat(40));
        let tail = last_lines(&text);
        assert_eq!(tail.lines().count(), TAIL_LINES);
        assert!(tail.lines().all(|line| line == "line"));
        assert_eq!(printable("\u{1b}[2J\u{1b}[1;256rSeaBIOS\u{7}"), "SeaBIOS");
    }

    #[test]
    fn a_panic_is_recognised_with_its_reason() {
        let tail = "[ 1.5] sysrq: Trigger a crash\n[ 1.6] Kernel panic - not syncing: sysrq triggered crash\n[ 1.7] CPU: 0";
        assert_eq!(panic_line(tail).as_deref(), Some("sysrq triggered crash"));
        assert_eq!(panic_line("all is well"), None);
        assert_eq!(guest_line("x\nbinderperf guest: no port\n").as_deref(), Some("no port"));
    }

    #[test]
    fn two_nameless_files_are_two_files() {
        let (one, two) = (nameless_file("a test").unwrap(), nameless_file("a test").unwrap());
        one.write_all_at(b"x", 0).unwrap();
        assert_eq!(two.metadata().unwrap().len(), 0);
        assert_eq!(std::fs::read(path_for_child(&one)).unwrap(), b"x");
    }
}
