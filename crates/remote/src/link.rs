//! Programs that reach another machine: the user's `adb` and `ssh`, and the commands that they are given.
//! Not here: running them (`exchange`).
//!
//! `ssh` passes its words to a login shell, which may be any; so it is told `sh`, and the script comes as input. `adb
//! exec-out` passes them to the device's own shell, and its input goes nowhere; so they are the script. It knows no exit
//! status, and neither do old versions of `adb shell`; the script says how it ended.
//! Facts: `ssh(1)`, `ssh_config(5)`; `adb help`.

use std::fs::File;
use std::io;
use std::os::unix::process::CommandExt;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

use super::target::Target;

/// Variable that names another program than the `adb` of the PATH.
pub const ADB_VARIABLE: &str = "BINDERPERF_ADB";
/// Variable that names another program than the `ssh` of the PATH.
pub const SSH_VARIABLE: &str = "BINDERPERF_SSH";

/// Options of every connection: no questions, which nobody would see; a silent connection ends after 15 s.
const SSH_OPTIONS: [&str; 9] = [
    "-T",
    "-o",
    "BatchMode=yes",
    "-o",
    "ConnectTimeout=10",
    "-o",
    "ServerAliveInterval=5",
    "-o",
    "ServerAliveCountMax=3",
];

/// The way to a machine.
#[derive(Clone, Debug)]
pub(crate) struct Link {
    program: PathBuf,
    kind: Kind,
}

#[derive(Clone, Debug)]
enum Kind {
    Adb(Option<String>),
    Ssh(String, Option<u16>),
    /// A shell of this machine, for tests.
    #[cfg(test)]
    Shell(&'static [&'static str]),
}

/// A command, and what it reads.
#[derive(Debug)]
pub(crate) struct Call {
    pub(crate) command: Command,
    pub(crate) input: Option<String>,
}

impl Link {
    /// The way to a target; none to this machine and to guests.
    pub(crate) fn to(target: &Target) -> Option<Self> {
        let named = |variable: &str, usual: &str| {
            let name = std::env::var_os(variable).filter(|name| !name.is_empty());
            PathBuf::from(name.unwrap_or_else(|| usual.into()))
        };
        Some(match target {
            Target::Adb(serial) => {
                Self { program: named(ADB_VARIABLE, "adb"), kind: Kind::Adb(serial.clone()) }
            }
            Target::Ssh { host, port } => {
                Self { program: named(SSH_VARIABLE, "ssh"), kind: Kind::Ssh(host.clone(), *port) }
            }
            Target::Local | Target::Vm(_) => return None,
        })
    }

    #[cfg(test)]
    pub(crate) fn shell(words: &'static [&'static str]) -> Self {
        Self { program: PathBuf::from(words[0]), kind: Kind::Shell(words) }
    }

    pub(crate) fn program(&self) -> String {
        self.program.display().to_string()
    }

    /// Runs a script there.
    pub(crate) fn script(&self, text: String) -> Call {
        let mut command = self.begun();
        let input = match &self.kind {
            Kind::Adb(_) => {
                command.arg("exec-out").arg(text);
                None
            }
            Kind::Ssh(..) => {
                command.arg("sh");
                Some(text)
            }
            #[cfg(test)]
            Kind::Shell(_) => {
                command.arg("-c").arg(text);
                None
            }
        };
        Call { command, input }
    }

    /// Copies a file to a path there, which has only characters that no shell minds.
    pub(crate) fn push(&self, file: &Path, to: &str) -> io::Result<Call> {
        let mut command = self.begun();
        match &self.kind {
            Kind::Adb(_) => {
                command.arg("push").arg(file).arg(to);
            }
            Kind::Ssh(..) => {
                command.arg(format!("cat >{to}")).stdin(Stdio::from(File::open(file)?));
            }
            #[cfg(test)]
            Kind::Shell(_) => {
                command.arg("-c").arg(format!("cat >{to}")).stdin(Stdio::from(File::open(file)?));
            }
        }
        Ok(Call { command, input: None })
    }

    /// The address of a device that is reached over the network, which `adb connect` takes.
    fn address(&self) -> Option<&str> {
        match &self.kind {
            Kind::Adb(Some(serial)) => {
                let port = serial.rsplit_once(':')?.1;
                port.parse::<u16>().ok().map(|_| serial.as_str())
            }
            _ => None,
        }
    }

    /// `adb connect`, or `adb disconnect`, for a device over the network.
    pub(crate) fn network(&self, what: &str) -> Option<Call> {
        let mut command = self.plain();
        command.arg(what).arg(self.address()?);
        Some(Call { command, input: None })
    }

    /// The list of devices, if it is adb that has them.
    pub(crate) fn devices(&self) -> Option<Call> {
        let mut command = self.plain();
        command.arg("devices");
        matches!(self.kind, Kind::Adb(_)).then_some(Call { command, input: None })
    }

    /// The program, in a process group of its own: a terminal's Ctrl-C is this process's to hear.
    fn plain(&self) -> Command {
        let mut command = Command::new(&self.program);
        command.process_group(0).stdin(Stdio::null());
        command
    }

    /// The program with its words up to those of the machine.
    fn begun(&self) -> Command {
        let mut command = self.plain();
        match &self.kind {
            Kind::Adb(serial) => {
                command.args(serial.iter().flat_map(|serial| ["-s", serial]));
            }
            Kind::Ssh(host, port) => {
                command.args(SSH_OPTIONS);
                let port = port.map(|port| port.to_string());
                command.args(port.iter().flat_map(|port| ["-p", port])).arg("--").arg(host);
            }
            #[cfg(test)]
            Kind::Shell(words) => {
                command.args(&words[1..]);
            }
        }
        command
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn words(call: &Call) -> Vec<String> {
        call.command.get_args().map(|word| word.to_string_lossy().into_owned()).collect()
    }

    #[test]
    fn each_program_gets_its_words() {
        let link = |target: &str| Link::to(&target.parse().expect(target)).expect("a link");
        let call = link("adb:127.0.0.1:5555").script("echo a b".to_owned());
        assert_eq!(words(&call), ["-s", "127.0.0.1:5555", "exec-out", "echo a b"]);
        let call = link("ssh:me@pi:2222").script("echo a b".to_owned());
        assert_eq!(words(&call)[SSH_OPTIONS.len()..], ["-p", "2222", "--", "me@pi", "sh"]);
        assert_eq!(call.input.as_deref(), Some("echo a b"));
        let call = link("ssh:pi").push(Path::new("/dev/null"), "/tmp/x").expect("it opens");
        assert_eq!(words(&call)[SSH_OPTIONS.len()..], ["--", "pi", "cat >/tmp/x"]);
        assert!(link("adb:127.0.0.1:5555").network("connect").is_some());
        assert!(link("adb:emulator-5554").network("connect").is_none());
        assert!(link("ssh:pi:22").network("connect").is_none() && link("ssh:pi").devices().is_none());
        assert!(Link::to(&Target::Local).is_none());
    }
}
