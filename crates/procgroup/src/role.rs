//! The hidden command that makes this program a worker, and the roles behind it.
//! Not here: starting a worker (`process`).

use std::io::{self, BufRead, Write};

use serde::Serialize;
use serde::de::DeserializeOwned;

/// The hidden command: `COMMAND ROLE PARAMETERS`, with the parameters as JSON.
pub const COMMAND: &str = "__worker";

/// First word of the line by which a worker reports that it is ready.
pub const READY_WORD: &str = "ready";

/// A kind of worker; the value holds its parameters.
pub trait Role: Serialize + DeserializeOwned {
    /// Name on the command line.
    const NAME: &'static str;

    /// Name of the process, as `ps` and traces show it: the first 15 bytes count.
    fn title(&self) -> String {
        Self::NAME.to_owned()
    }

    /// Works until it is finished. An error text becomes the worker's last line on standard output, where its
    /// parent reads it.
    ///
    /// # Errors
    /// A message for the user.
    fn run(self) -> Result<(), String>;

    /// Returns true if standard output carries data, so that an error goes to standard error only.
    fn sends_data(&self) -> bool {
        false
    }
}

/// A role in a program's table of roles.
#[derive(Clone, Copy)]
pub struct RoleEntry {
    name: &'static str,
    run: fn(&str) -> u8,
}

impl RoleEntry {
    /// Returns the table entry of a role.
    #[must_use]
    pub const fn of<R: Role>() -> Self {
        Self { name: R::NAME, run: run::<R> }
    }
}

const REFUSED: u8 = 2;
const BROKEN: u8 = 4;

fn refuse() -> u8 {
    eprintln!("binderperf: {COMMAND} is started by binderperf itself");
    REFUSED
}

fn run<R: Role>(parameters: &str) -> u8 {
    let Ok(role) = serde_json::from_str::<R>(parameters) else { return refuse() };
    let sends_data = role.sends_data();
    match role.run() {
        Ok(()) => 0,
        Err(why) if sends_data => {
            eprintln!("binderperf: {}: {why}", R::NAME);
            BROKEN
        }
        Err(why) => {
            say(&why);
            BROKEN
        }
    }
}

/// Runs the worker that the arguments after [`COMMAND`] select. Returns the exit code: 0, 2 for invalid
/// arguments, 4 for a failure.
#[must_use]
pub fn run_worker(words: &[String], roles: &[RoleEntry]) -> u8 {
    let [name, parameters] = words else { return refuse() };
    match roles.iter().find(|role| role.name == name) {
        Some(role) => (role.run)(parameters),
        None => refuse(),
    }
}

/// Returns the arguments that start a worker in this role.
///
/// # Errors
/// The parameters cannot be written as JSON, such as a number that is not finite.
pub fn words<R: Role>(role: &R) -> io::Result<Vec<String>> {
    let parameters = serde_json::to_string(role)?;
    Ok(vec![COMMAND.to_owned(), R::NAME.to_owned(), parameters])
}

/// Writes a line for the parent; ignores errors, because a parent that has ended needs no line.
pub fn say(line: &str) {
    let mut stdout = io::stdout();
    let _ = writeln!(stdout, "{line}").and_then(|()| stdout.flush());
}

/// Reports readiness to the parent, with a text for [`WorkerProcess::ready`](crate::WorkerProcess::ready).
///
/// # Errors
/// Standard output is closed.
pub fn tell_ready(text: &str) -> io::Result<()> {
    let mut stdout = io::stdout();
    let line = format!("{READY_WORD} {text}");
    writeln!(stdout, "{}", line.trim_end())?;
    stdout.flush()
}

/// Waits for [`WorkerProcess::go`](crate::WorkerProcess::go), or for the end of standard input.
///
/// # Errors
/// Standard input cannot be read.
pub fn wait_for_go() -> io::Result<()> {
    io::stdin().lock().read_line(&mut String::new()).map(drop)
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde::Deserialize;

    #[derive(Debug, Serialize, Deserialize)]
    struct Sum(u8, u8);

    impl Role for Sum {
        const NAME: &'static str = "sum";

        fn title(&self) -> String {
            "sum".to_owned()
        }

        fn run(self) -> Result<(), String> {
            if self.0 + self.1 == 3 { Ok(()) } else { Err("wrong".to_owned()) }
        }
    }

    #[test]
    fn a_role_gets_its_parameters_and_nonsense_is_refused() {
        let roles = [RoleEntry::of::<Sum>()];
        let run = |words: &[&str]| {
            run_worker(&words.iter().map(|word| (*word).to_owned()).collect::<Vec<_>>(), &roles)
        };
        let started = words(&Sum(1, 2)).expect("JSON");
        assert_eq!((started[0].as_str(), run_worker(&started[1..], &roles)), (COMMAND, 0));
        assert_eq!(run(&["sum", "[1,1]"]), 4);
        for bad in [&[][..], &["sum"], &["sum", "{}"], &["sum", "[1,2]", "x"], &["product", "[1,2]"]] {
            assert_eq!(run(bad), 2, "{bad:?}");
        }
    }
}
