//! Actions of a watch after a catch, in words: `trace`, `snapshot`, `signal PID[:SIG]`, `exec CMD`, `stop`, `continue`.
//! Not here: the catch (`catches`); tracing and snapshots, which the caller carries out.

use std::fmt;
use std::io;
use std::os::unix::process::CommandExt;
use std::path::Path;
use std::process::{Command, Stdio};
use std::str::FromStr;
use std::sync::Arc;
use std::time::{Duration, Instant};

use sys::other_process::{OtherProcess, signal_number};

/// Variable with the folder of the catch, for a command.
pub const CATCH: &str = "BINDERPERF_CATCH";
/// Variable with what was caught, for a command.
pub const TRIGGER: &str = "BINDERPERF_TRIGGER";

/// Longest run of a command, and longest time after it was asked to end.
const COMMAND_LIMIT: Duration = Duration::from_secs(60);
const GRACE: Duration = Duration::from_secs(2);

/// A process that gets a signal.
#[derive(Clone, Debug)]
pub struct Signalled {
    pid: u32,
    number: i32,
    name: String,
    /// The process that had the number when the watch began.
    process: Option<Arc<OtherProcess>>,
}

/// One step after a catch.
#[derive(Clone, Debug)]
pub enum Action {
    /// Turns tracing off in the buffer that all share.
    Trace,
    /// The catch has the files of the machine.
    Snapshot,
    /// Sends a signal.
    Signal(Signalled),
    /// Runs a command by the shell.
    Exec(String),
    /// Ends the watch.
    Stop,
    /// Watches on.
    Continue,
}

impl FromStr for Action {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        let (word, rest) = text.trim().split_once(char::is_whitespace).unwrap_or((text.trim(), ""));
        let rest = rest.trim();
        match (word, rest) {
            ("trace", "") => Ok(Self::Trace),
            ("snapshot", "") => Ok(Self::Snapshot),
            ("stop", "") => Ok(Self::Stop),
            ("continue", "") => Ok(Self::Continue),
            ("exec", "") => Err("exec needs a command, as in \"exec sync\"".to_owned()),
            ("exec", command) => Ok(Self::Exec(command.to_owned())),
            ("signal", target) => Signalled::parse(target).map(Self::Signal),
            ("trace" | "snapshot" | "stop" | "continue", more) => {
                Err(format!("{word} takes nothing, and {more:?} follows it"))
            }
            _ => Err(format!(
                "there is no action {word:?}; there are trace, snapshot, signal PID[:SIG], exec CMD, stop and continue"
            )),
        }
    }
}

impl fmt::Display for Action {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Trace => f.write_str("trace"),
            Self::Snapshot => f.write_str("snapshot"),
            Self::Signal(to) => write!(f, "signal {}:{}", to.pid, to.name),
            Self::Exec(command) => write!(f, "exec {command}"),
            Self::Stop => f.write_str("stop"),
            Self::Continue => f.write_str("continue"),
        }
    }
}

impl Signalled {
    fn parse(text: &str) -> Result<Self, String> {
        let (pid, name) = text.split_once(':').unwrap_or((text, "TERM"));
        let number = signal_number(name)
            .ok_or_else(|| format!("{name:?} is no signal such as TERM, ABRT, QUIT or a number up to 64"))?;
        let positive = pid.parse::<u32>().ok().filter(|pid| *pid > 0);
        let pid = positive
            .ok_or_else(|| format!("signal needs a pid, as in \"signal 1234:ABRT\": {pid:?} is none"))?;
        Ok(Self { pid, number, name: name.to_owned(), process: None })
    }

    /// Finds the process. It gets the signal, and never another one that has its number by then.
    ///
    /// # Errors
    /// There is none, or a kernel before 5.3 cannot hold on to it: the text says which.
    pub fn find(&mut self) -> Result<(), String> {
        let found = OtherProcess::open(self.pid);
        let found =
            found.map_err(|error| format!("process {}: {}", self.pid, sys::errno::describe(&error)))?;
        self.process = Some(Arc::new(found));
        Ok(())
    }

    /// Its pid.
    #[must_use]
    pub fn pid(&self) -> u32 {
        self.pid
    }

    /// Whether it was found and has not ended.
    #[must_use]
    pub fn is_alive(&self) -> bool {
        self.process.as_ref().is_some_and(|process| process.is_alive())
    }

    /// Sends the signal.
    ///
    /// # Errors
    /// `ESRCH`: it ended, or was not found. `EPERM`.
    pub fn send(&self) -> io::Result<()> {
        let gone = || io::Error::from_raw_os_error(sys::errno::ESRCH);
        self.process.as_ref().ok_or_else(gone)?.signal(self.number)
    }
}

/// Runs a command by the shell, with the catch in its environment, for a minute at most or until `stopped`. Its output is
/// this program's; it has no input.
///
/// # Errors
/// It cannot be started, did not end in time, or failed: the text says which.
pub fn execute(command: &str, catch: &Path, trigger: &str, stopped: impl Fn() -> bool) -> Result<(), String> {
    let described = |error: io::Error| sys::errno::describe(&error);
    let mut shell = Command::new("sh");
    shell.args(["-c", command]).env(CATCH, catch).env(TRIGGER, trigger).stdin(Stdio::null()).process_group(0);
    let mut child = shell.spawn().map_err(described)?;
    let begun = Instant::now();
    let mut asked: Option<(Instant, String)> = None;
    loop {
        if let Some(status) = child.try_wait().map_err(described)? {
            return match asked {
                Some((_, why)) => Err(why),
                None if status.success() => Ok(()),
                None => Err(status.to_string()),
            };
        }
        let is_late = begun.elapsed() >= COMMAND_LIMIT;
        match &asked {
            None if is_late || stopped() => {
                sys::child::ask_group_to_end(&mut child).map_err(described)?;
                let why = match is_late {
                    true => format!("it did not end within {} s", COMMAND_LIMIT.as_secs()),
                    false => "the end of the watch ended it".to_owned(),
                };
                asked = Some((Instant::now(), why));
            }
            Some((since, _)) if since.elapsed() >= GRACE => {
                sys::child::kill_group(&mut child).map_err(described)?;
            }
            _ => {}
        }
        std::thread::sleep(Duration::from_millis(20));
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn action(text: &str) -> Result<Action, String> {
        text.parse()
    }

    #[test]
    fn actions_are_read_and_what_is_wrong_is_named() {
        let own = std::process::id();
        for (text, same) in [
            ("trace", "trace".to_owned()),
            (" exec  tar c . ", "exec tar c .".to_owned()),
            (&format!("signal {own}"), format!("signal {own}:TERM")),
            (&format!("signal {own}:SIGABRT"), format!("signal {own}:SIGABRT")),
            ("stop", "stop".to_owned()),
        ] {
            assert_eq!(action(text).expect(text).to_string(), same, "{text}");
        }
        for (text, why) in [
            ("", "no action \"\"; there are trace, snapshot"),
            ("reboot", "no action \"reboot\""),
            ("exec", "needs a command"),
            ("stop now", "\"now\" follows it"),
            ("signal", "needs a pid"),
            ("signal 0", "\"0\" is none"),
            ("signal -1", "\"-1\" is none"),
            ("signal 1:NONE", "\"NONE\" is no signal"),
            ("signal 1:0", "\"0\" is no signal"),
        ] {
            let said = action(text).expect_err(text);
            assert!(said.contains(why), "{text}: {said}");
        }
    }

    #[test]
    fn a_command_gets_the_catch_and_its_failure_is_said() {
        let (catch, never) = (Path::new("/tmp/catch x"), || false);
        let check = "[ \"$BINDERPERF_CATCH $BINDERPERF_TRIGGER\" = '/tmp/catch x p99 > 5' ]";
        assert_eq!(execute(check, catch, "p99 > 5", never), Ok(()));
        let said = execute("exit 3", catch, "", never).expect_err("it failed");
        assert!(said.contains('3'), "{said}");
        // A stop of the watch ends it.
        let ended = Err("the end of the watch ended it".to_owned());
        assert_eq!(execute("sleep 1000", catch, "", || true), ended);
    }

    #[test]
    fn nothing_of_a_command_that_heeds_no_signal_stays() {
        let folder = sys::private_folder::PrivateFolder::new("action").expect("a folder");
        let pid = folder.path().join("pid");
        let command = format!(
            "trap '' TERM; sleep 1000 & echo $! > {0}.new; mv {0}.new {0}; wait; wait",
            pid.display()
        );
        assert!(execute(&command, folder.path(), "", || pid.exists()).is_err());
        let pid = std::fs::read_to_string(&pid).expect("its pid");
        let state = || std::fs::read_to_string(format!("/proc/{}/stat", pid.trim()));
        while state().is_ok_and(|stat| !stat.contains(") Z ")) {
            std::thread::yield_now();
        }
    }

    #[test]
    fn a_signal_reaches_the_process_of_the_beginning_only() {
        let mut child = Command::new("sleep").arg("1000").spawn().expect("started");
        let Ok(Action::Signal(mut to)) = action(&format!("signal {}:KILL", child.id())) else {
            panic!("a signal")
        };
        assert!(!to.is_alive() && to.send().is_err(), "it was not looked for");
        to.find().expect("it is there");
        assert!(to.is_alive());
        to.send().expect("sent");
        child.wait().expect("it ended");
        assert!(!to.is_alive());
        assert_eq!(to.send().expect_err("gone").raw_os_error(), Some(sys::errno::ESRCH));
        assert!(to.find().expect_err("gone").contains("ESRCH"));
    }
}
