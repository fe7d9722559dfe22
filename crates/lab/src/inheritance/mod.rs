//! Room: the scenes of priority inheritance: how urgently a thread serves callers of other urgency, hop by
//! hop, and whether that is what is known of the driver.
//!
//! - [`conductor`]: the process that plays the scenes, as caller; [`scenes`]: the scenes.
//! - [`server`]: the processes that it calls; [`service`]: what they serve, in either flavour.
//! - [`expected`]: what is known of the driver, as an oracle. - [`words`]: what processes are told.
//!
//! Not here: the calls of the latency test itself (`crate::latency`), single promises on the driver's own
//! level (`crate::conformance`, section 14).
//! Facts: contract SCH-01 to SCH-09.
//!
//! All of it happens in processes of its own: a real-time thread never runs in whoever asks, every such
//! process has an `RLIMIT_RTTIME`, and one that hangs is ended.

mod conductor;
mod expected;
mod scenes;
mod server;
mod service;
mod words;

use std::fmt;
use std::io::Read;
use std::process::{Child, Command, Stdio};
use std::sync::mpsc;
use std::time::Duration;

use driver::embedded::Inherit;
use driver::locate::Wanted;
use driver::{AnyContext, OpenError};
use record::Inheritance;

use crate::plan::Dialect;
use crate::run::RunError;
use words::Assignment;

/// The hidden command under which this binary is one of the scenes' processes.
pub const COMMAND: &str = "__inherit";

/// How long all scenes together may take. Each has a limit of its own, so this is never met.
const PATIENCE: Duration = Duration::from_secs(90);

/// What is to be looked at.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Question {
    /// The flavour, with its service manager's dialect.
    pub dialect: Dialect,
    /// Whether the nodes ask for the policies of real-time callers (`INHERIT_RT`).
    pub inherit_rt: bool,
    /// What the servers' embedded driver hands on instead of what it was told: a fault, for tests. What is
    /// expected stays.
    pub servers_inherit: Option<Inherit>,
}

impl Question {
    /// As the flavour's library publishes its nodes.
    #[must_use]
    pub fn usual(dialect: Dialect) -> Self {
        Self { dialect, inherit_rt: dialect == Dialect::Hwbinder, servers_inherit: None }
    }
}

/// Why nothing was measured.
#[derive(Debug)]
#[non_exhaustive]
pub enum InheritanceError {
    /// There is no driver.
    NoDriver(RunError),
    /// The context cannot be opened.
    Open(OpenError),
    /// A fault of the servers' driver was asked for where the driver is not ours.
    NotEmbedded,
    /// The process that plays the scenes could not be started, or did not end well.
    Failed(String),
}

impl fmt::Display for InheritanceError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::NoDriver(error) => error.fmt(f),
            Self::Open(error) => error.fmt(f),
            Self::NotEmbedded => {
                f.write_str("only the embedded driver can be made to drop inheritance: use --driver embedded")
            }
            Self::Failed(why) => write!(f, "the scenes of inheritance could not be played: {why}"),
        }
    }
}

impl std::error::Error for InheritanceError {
    fn source(&self) -> Option<&(dyn std::error::Error + 'static)> {
        match self {
            Self::NoDriver(error) => Some(error),
            Self::Open(error) => Some(error),
            Self::NotEmbedded | Self::Failed(_) => None,
        }
    }
}

/// Finds the context that was asked for, and measures there. What else to say of the driver is returned, too.
///
/// # Errors
/// See [`InheritanceError`].
pub fn run(wanted: &Wanted, question: &Question) -> Result<(record::Driver, Inheritance), InheritanceError> {
    let (context, driver) =
        crate::run::find_driver(wanted, question.dialect.context()).map_err(InheritanceError::NoDriver)?;
    Ok((driver, measure(&context, question)?))
}

/// Plays all scenes in this context, which may have a service manager or not; takes about a second. All but
/// `calls` and `not_inherited` is filled in. Call it from a thread that lives on: processes that it
/// starts end with it.
///
/// # Errors
/// See [`InheritanceError`]. What a single scene met is a note of its hop.
pub fn measure(context: &AnyContext, question: &Question) -> Result<Inheritance, InheritanceError> {
    let expectation = expected::find(context, question.inherit_rt).map_err(InheritanceError::Open)?;
    let servers = server::address(context, question).ok_or(InheritanceError::NotEmbedded)?;
    let assignment = Assignment::Conduct {
        address: context.address(),
        servers,
        dialect: question.dialect.to_string(),
        inherit_rt: question.inherit_rt,
        rule: expectation.rule.map(|rule| rule.to_string()),
    };
    let conductor = start(&assignment).map_err(InheritanceError::Failed)?;
    let hops = listen(conductor).map_err(InheritanceError::Failed)?;
    Ok(Inheritance {
        measured: expected::measured(&hops),
        expected: expectation.level(),
        expected_reason: expectation.reason,
        hops,
        ..Inheritance::default()
    })
}

fn start(assignment: &Assignment) -> Result<Child, String> {
    let mut command = Command::new("/proc/self/exe");
    command.args(assignment.words().map_err(|error| error.to_string())?);
    command.stdin(Stdio::null()).stdout(Stdio::piped());
    sys::tied_child::die_with_parent(&mut command);
    command.spawn().map_err(|error| format!("starting a process: {}", sys::errno::describe(&error)))
}

/// Waits for the conductor's hops.
fn listen(mut conductor: Child) -> Result<Vec<record::Hop>, String> {
    let output = conductor.stdout.take();
    let (sender, receiver) = mpsc::channel();
    std::thread::spawn(move || {
        let mut said = String::new();
        let result = output.map_or(Ok(0), |mut output| output.read_to_string(&mut said));
        // Whoever asked may have given up.
        let _ = sender.send(result.map(|_| said));
    });
    let heard = receiver.recv_timeout(PATIENCE);
    // It has said all that it will say.
    let _ = conductor.kill();
    let end = conductor.wait().map_err(|error| sys::errno::describe(&error))?;
    let said = match heard {
        Ok(said) => said.map_err(|error| sys::errno::describe(&error))?,
        Err(_) => return Err(format!("no answer in {} s", PATIENCE.as_secs())),
    };
    let line = said.lines().next_back().unwrap_or_default();
    serde_json::from_str(line).map_err(|_| match line {
        "" => format!("its process said nothing ({end})"),
        why => why.to_owned(),
    })
}

/// Is one of the scenes' processes, as the words behind [`COMMAND`] say. Returns the exit code.
#[must_use]
pub fn play(words: &[String]) -> u8 {
    let Some(assignment) = Assignment::parse(words) else {
        eprintln!("binderperf: {COMMAND} is started by binderperf itself");
        return 2;
    };
    match assignment.act() {
        Ok(()) => 0,
        Err(why) => {
            // Whoever started this takes its last line for the reason.
            println!("{why}");
            4
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn nonsense_is_refused() {
        for bad in [&[][..], &["x"], &["{}"], &["{}", "{}"]] {
            let words: Vec<String> = bad.iter().map(|word| (*word).to_owned()).collect();
            assert_eq!(play(&words), 2, "{bad:?}");
        }
    }

    #[test]
    fn libraries_differ_in_what_their_nodes_ask_for() {
        assert!(Question::usual(Dialect::Hwbinder).inherit_rt);
        assert!(!Question::usual(Dialect::Binder(ipc::Release::default())).inherit_rt);
    }
}
