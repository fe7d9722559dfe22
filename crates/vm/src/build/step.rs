//! One program of a build: its output goes into the log, a signal ends it in order.
//! Not here: which program (`make`, `debian`).

use std::fs::File;
use std::io::{ErrorKind, Read, Write};
use std::os::unix::process::CommandExt;
use std::path::{Path, PathBuf};
use std::process::{Command, ExitStatus, Stdio};
use std::sync::mpsc::{RecvTimeoutError, channel};
use std::time::{Duration, Instant};

use super::News;
use super::error::BuildError;
use super::log::{first_error, is_full, made};

/// Poll interval for signals.
const GLANCE: Duration = Duration::from_millis(100);
/// Shortest time between two texts of progress.
const PACE: Duration = Duration::from_millis(200);
/// Time for what a program left behind to close its output.
const AFTERMATH: Duration = Duration::from_secs(2);

/// A build's log, and the progress that is shown from it.
pub(super) struct Steps<'a> {
    path: PathBuf,
    file: File,
    /// Files that this step has made.
    made: usize,
    begin: Instant,
    shown: Instant,
    pub(super) tell: &'a mut dyn FnMut(News<'_>),
}

impl<'a> Steps<'a> {
    /// Begins a log.
    ///
    /// # Errors
    /// [`BuildError::Vm`]: it cannot be written.
    pub(super) fn new(path: &Path, tell: &'a mut dyn FnMut(News<'_>)) -> Result<Self, BuildError> {
        let file = File::create(path).map_err(BuildError::host(format!("writing {}", path.display())))?;
        let begin = Instant::now();
        Ok(Self { path: path.to_owned(), file, made: 0, begin, shown: begin, tell })
    }

    /// Runs a program to its end. It dies with this thread, and is asked to end when this process is.
    ///
    /// # Errors
    /// [`BuildError::Failed`], [`BuildError::Full`], [`BuildError::Stopped`]; [`BuildError::Vm`]: it cannot be started.
    pub(super) fn run(&mut self, step: &str, mut command: Command) -> Result<(), BuildError> {
        let words: Vec<_> = [command.get_program()].into_iter().chain(command.get_args()).collect();
        let words: Vec<_> = words.iter().map(|word| word.to_string_lossy()).collect();
        self.write(format!("$ {}\n", words.join(" ")).as_bytes())?;
        (self.made, self.begin) = (0, Instant::now());
        (self.tell)(News::Now(step));
        let status = self.attend(&mut command, step)?;
        if let Some(signal) = sys::stop_signal::received() {
            return Err(BuildError::Stopped(signal));
        }
        if status.success() {
            return Ok(());
        }
        // A compiler's output need not be UTF-8.
        let log = std::fs::read(&self.path).unwrap_or_default();
        let log = String::from_utf8_lossy(&log);
        let path = self.path.clone();
        if is_full(&log) {
            return Err(BuildError::Full { log: path });
        }
        Err(BuildError::Failed { step: step.to_owned(), log: path, first: first_error(&log) })
    }

    fn attend(&mut self, command: &mut Command, step: &str) -> Result<ExitStatus, BuildError> {
        let doing = || BuildError::host(format!("running {}", command.get_program().to_string_lossy()));
        let (mut reader, writer) = std::io::pipe().map_err(doing())?;
        let other = writer.try_clone().map_err(doing())?;
        let (starting, starting_log) = (doing(), doing());
        let waiting = doing();
        sys::child::die_with_parent(command);
        // mmdebstrap waits for the make in its tree, and tells it nothing.
        command.process_group(0);
        command.stdin(Stdio::null()).stdout(writer).stderr(other);
        let mut child = command.spawn().map_err(starting)?;
        // The command holds the pipe's other end.
        *command = Command::new("");
        let (sender, receiver) = channel();
        sys::title::thread("log", move || {
            let mut buffer = [0_u8; 1 << 16];
            loop {
                match reader.read(&mut buffer) {
                    Ok(0) => break,
                    Ok(len) if sender.send(buffer[..len].to_vec()).is_err() => break,
                    Ok(_) => {}
                    Err(error) if error.kind() == ErrorKind::Interrupted => {}
                    Err(_) => break,
                }
            }
        })
        .map_err(starting_log)?;
        let (mut asked, mut ended, mut line) = (false, None, Vec::new());
        loop {
            match receiver.recv_timeout(GLANCE) {
                Ok(bytes) => {
                    let told = self.write(&bytes);
                    if told.is_err() {
                        // Without a log nobody could say what failed.
                        let _ = sys::child::ask_group_to_end(&mut child);
                        let _ = child.wait();
                        return told.map(|()| ExitStatus::default());
                    }
                    line.extend_from_slice(&bytes);
                    self.show(&mut line, step);
                }
                Err(RecvTimeoutError::Disconnected) => break,
                Err(RecvTimeoutError::Timeout) => {
                    let status = child.try_wait().ok().flatten();
                    ended = ended.or_else(|| status.map(|_| Instant::now()));
                }
            }
            if ended.is_some_and(|at: Instant| at.elapsed() > AFTERMATH) {
                break;
            }
            if !asked && sys::stop_signal::received().is_some() {
                asked = true;
                sys::child::ask_group_to_end(&mut child).map_err(BuildError::host("ending the build"))?;
            }
        }
        child.wait().map_err(waiting)
    }

    /// Shows the newest file of the output's complete lines.
    fn show(&mut self, pending: &mut Vec<u8>, step: &str) {
        let Some(end) = pending.iter().rposition(|byte| *byte == b'\n') else { return };
        let lines: Vec<u8> = pending.drain(..=end).collect();
        let text = String::from_utf8_lossy(&lines);
        let files: Vec<&str> = text.lines().filter_map(made).collect();
        self.made += files.len();
        // mmdebstrap's own steps.
        if let Some(said) = text.lines().rev().find_map(|line| line.strip_prefix("I: ")) {
            (self.tell)(News::Now(&format!("{step}: {said}")));
        }
        if let Some(file) = files.last()
            && self.shown.elapsed() >= PACE
        {
            self.shown = Instant::now();
            let seconds = self.begin.elapsed().as_secs();
            let time = format!("{}:{:02}", seconds / 60, seconds % 60);
            (self.tell)(News::Now(&format!("{step}, {time}, {} files, {file}", self.made)));
        }
    }

    fn write(&mut self, bytes: &[u8]) -> Result<(), BuildError> {
        self.file.write_all(bytes).map_err(|error| match error.kind() {
            ErrorKind::StorageFull => BuildError::Full { log: self.path.clone() },
            _ => BuildError::host(format!("writing {}", self.path.display()))(error),
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use driver::root::Fixture;

    fn shell(text: &str) -> Command {
        let mut command = Command::new("sh");
        command.args(["-c", text]);
        command
    }

    #[test]
    fn the_log_has_everything_and_the_first_error_is_told() {
        let folder = Fixture::new("steps", &[]);
        let path = folder.path().join("log");
        let mut nothing = |_: News<'_>| {};
        let mut steps = Steps::new(&path, &mut nothing).expect("writable");
        steps.run("one", shell("echo '  CC      a.o'; echo aside >&2")).expect("it succeeds");
        assert_eq!(steps.made, 1);
        let failed =
            steps.run("two", shell("echo 'a.c:1:1: error: no'; echo after; exit 2")).expect_err("it fails");
        assert_eq!(failed.exit_code(), 1);
        let text = failed.to_string();
        assert!(
            text.starts_with("two failed; its log: ") && text.ends_with("| a.c:1:1: error: no\n  | after"),
            "{text}"
        );
        let log = std::fs::read_to_string(&path).expect("the log");
        assert!(log.contains("aside") && log.contains("$ sh -c"), "{log}");
        assert_eq!(steps.made, 0, "each step counts its own files");
        let full = steps.run("three", shell("echo 'as: No space left on device'; exit 1")).expect_err("full");
        assert!(matches!(full, BuildError::Full { .. }) && full.to_string().contains("ENOSPC"), "{full}");
        let none = steps.run("four", Command::new("/no/such/program")).expect_err("no such program");
        assert!(none.to_string().contains("ENOENT"), "{none}");
    }

    #[test]
    fn what_a_program_leaves_behind_does_not_hold_the_build() {
        let folder = Fixture::new("steps-left", &[]);
        let mut nothing = |_: News<'_>| {};
        let mut steps = Steps::new(&folder.path().join("log"), &mut nothing).expect("writable");
        let mut left = shell("sleep 600 & echo $!");
        left.env("LC_ALL", "C");
        steps.run("one", left).expect("it ends");
        let log = std::fs::read_to_string(folder.path().join("log")).expect("the log");
        let pid = log.lines().last().expect("a number").to_owned();
        Command::new("kill").arg(pid).status().expect("it runs");
    }
}
