//! Names of processes and threads, as `ps` and traces show them.
//! Not here: starting and ending processes (`child`).
//! Facts: `prctl(2)` `PR_SET_NAME`: a thread has a name of at most 15 bytes, the first thread's is the process's, and a
//! new thread has its creator's; `execve(2)` replaces it by the name of the file, which for `/proc/self/exe` is `exe`.
//! `proc(5)`: `cmdline` begins with `argv[0]`, which the starter chooses.

use std::ffi::CString;
use std::io;
use std::os::unix::process::CommandExt;
use std::process::Command;
use std::thread::JoinHandle;

/// Start of `argv[0]` of a process that was given a title.
const MARK: &str = "binderperf: ";

/// Has the command start under this title: its command line begins with it, and a program that calls [`take`] is
/// named so.
pub fn give(command: &mut Command, title: &str) {
    command.arg0(format!("{MARK}{title}"));
}

/// Names this process as its starter chose; without a title it keeps its file's name, if that is one. Call it on the
/// first thread.
pub fn take() {
    let first = std::env::args_os().next().unwrap_or_default();
    let first = first.to_string_lossy();
    match first.strip_prefix(MARK) {
        Some(title) => name_thread(title),
        None if first.ends_with("/exe") => name_thread("binderperf"),
        None => {}
    }
}

/// Names the calling thread: the first 15 bytes, up to a zero.
pub fn name_thread(name: &str) {
    let text = name.split('\0').next().unwrap_or_default();
    let Ok(text) = CString::new(text) else { return };
    // SAFETY: PR_SET_NAME reads a string that ends with a zero, of which it takes 15 bytes; `text` lives meanwhile.
    // It cannot fail for such a string.
    unsafe { libc::prctl(libc::PR_SET_NAME, text.as_ptr()) };
}

/// Starts a thread under this name.
///
/// # Errors
/// `EAGAIN`: too many threads.
pub fn thread<T: Send + 'static>(
    name: &str,
    work: impl FnOnce() -> T + Send + 'static,
) -> io::Result<JoinHandle<T>> {
    std::thread::Builder::new().name(name.to_owned()).spawn(work)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn own_name() -> String {
        let path = format!("/proc/self/task/{}/comm", crate::interrupt::ThreadId::current().number());
        std::fs::read_to_string(path).expect("own name").trim_end().to_owned()
    }

    #[test]
    fn a_thread_has_the_first_15_bytes_of_its_name() {
        assert_eq!(thread("client 12", own_name).expect("a thread").join().expect("no panic"), "client 12");
        let renamed = |name: &'static str| {
            let work = move || {
                name_thread(name);
                own_name()
            };
            thread("another", work).expect("a thread").join().expect("no panic")
        };
        assert_eq!(renamed("hwservicemanager"), "hwservicemanage");
        assert_eq!(renamed("server\0 7"), "server");
    }

    #[test]
    fn a_command_line_begins_with_the_title() {
        let mut command = Command::new("sh");
        command.args(["-c", "tr '\\0' '|' </proc/$$/cmdline"]);
        give(&mut command, "server 3");
        let output = command.output().expect("a shell");
        assert!(output.stdout.starts_with(b"binderperf: server 3|-c|"), "{output:?}");
    }
}
