//! Scenes of priority inheritance: how urgently a thread serves callers of different urgency, hop by hop,
//! compared with the known behaviour of the driver.
//!
//! - [`controller`]: the process that plays the scenes, as caller; [`scenes`]: the scenes.
//! - [`server`]: the processes that it calls; [`service`]: their service, in either flavour.
//! - [`expected`]: the known behaviour of the driver, as an oracle.
//!
//! Not here: the calls of the latency test itself (`crate::latency`), single promises on the driver's own
//! level (`conformance`, section 14).
//! Facts: contract SCH-01 to SCH-09.
//!
//! All scenes run in processes of their own: a real-time thread never runs in the calling process, every such
//! process has an `RLIMIT_RTTIME`, and one that hangs is killed.

mod controller;
mod expected;
mod parameters;
pub(crate) mod role;
mod scenes;
mod server;
mod service;

use std::fmt;
use std::time::Duration;

use backend::AnyContext;
use backend::locate::Wanted;
use embedded::Inherit;
use record::Inheritance;

use crate::plan::Dialect;
use expected::Expectation;
pub(crate) use parameters::InheritanceRole;
use procgroup::{Streams, WorkerProcess};

/// Time limit for all scenes. Each scene has its own limit, so this one is never reached.
const PATIENCE: Duration = Duration::from_secs(90);

/// Options of the scenes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct InheritanceOptions {
    /// The flavour, with its service manager's dialect.
    pub dialect: Dialect,
    /// Whether the nodes ask for the policies of real-time callers (`INHERIT_RT`).
    pub inherit_rt: bool,
    /// Inheritance of the servers' embedded driver in place of the configured one: a fault, for tests. The
    /// expectation does not change.
    pub servers_inherit: Option<Inherit>,
}

impl InheritanceOptions {
    /// Options with nodes as the flavour's library publishes them.
    #[must_use]
    pub fn usual(dialect: Dialect) -> Self {
        Self { dialect, inherit_rt: dialect == Dialect::Hwbinder, servers_inherit: None }
    }
}

/// Error that prevents playing the scenes.
#[derive(Debug)]
#[non_exhaustive]
pub enum InheritanceError {
    /// A fault of the servers' driver was requested, but the driver is not the embedded one.
    NotEmbedded,
    /// No driver, or the controller process failed; a message for the user.
    Unable(String),
}

impl fmt::Display for InheritanceError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::NotEmbedded => {
                "only the embedded driver can be made to drop inheritance: use --driver embedded"
            }
            Self::Unable(why) => why,
        })
    }
}

impl std::error::Error for InheritanceError {}

/// Finds the requested context, and measures there. Also returns a further remark on the driver.
///
/// # Errors
/// See [`InheritanceError`].
pub fn run(
    wanted: &Wanted,
    options: &InheritanceOptions,
) -> Result<(record::Driver, Inheritance), InheritanceError> {
    let found = crate::run::find_driver(wanted, options.dialect.context());
    let (context, driver) = found.map_err(|error| InheritanceError::Unable(error.to_string()))?;
    Ok((driver, measure(&context, options)?))
}

/// Returns what this context's driver promises, without measuring: the expected level and its reasons.
///
/// # Errors
/// The context cannot be opened.
pub fn promise(context: &AnyContext, inherit_rt: bool) -> Result<Inheritance, InheritanceError> {
    Ok(promised(expected_of(context, inherit_rt)?))
}

fn expected_of(context: &AnyContext, inherit_rt: bool) -> Result<Expectation, InheritanceError> {
    expected::find(context, inherit_rt).map_err(|error| InheritanceError::Unable(error.to_string()))
}

fn promised(found: Expectation) -> Inheritance {
    Inheritance {
        expected: found.level(),
        below_android: found.below_android,
        expected_reason: found.reason,
        ..Inheritance::default()
    }
}

/// Plays all scenes in this context, with or without a service manager; takes about a second. Fills in all
/// but `calls` and `not_inherited`. Call it from a thread that lives on: the processes that it starts die
/// with it.
///
/// # Errors
/// See [`InheritanceError`]. A failure of a single scene is a note of its hop.
pub fn measure(context: &AnyContext, options: &InheritanceOptions) -> Result<Inheritance, InheritanceError> {
    let expectation = expected_of(context, options.inherit_rt)?;
    let servers = server::address(context, options).ok_or(InheritanceError::NotEmbedded)?;
    let role = InheritanceRole::PlayScenes {
        address: context.address(),
        servers,
        dialect: options.dialect.to_string(),
        inherit_rt: options.inherit_rt,
        rule: expectation.rule.map(|rule| rule.to_string()),
    };
    let failed =
        |why| InheritanceError::Unable(format!("the scenes of inheritance could not be played: {why}"));
    let hops = hops_of(&role).map_err(failed)?;
    Ok(Inheritance { measured: expected::measured(&hops), hops, ..promised(expectation) })
}

/// Returns the hops that a controller reports.
fn hops_of(role: &InheritanceRole) -> Result<Vec<record::Hop>, String> {
    let controller = WorkerProcess::start(role, Streams::heard(), None)
        .map_err(|error| format!("starting a process: {}", sys::errno::describe(&error)))?;
    let hops = controller.ready(PATIENCE)?;
    serde_json::from_str(&hops).map_err(|error| error.to_string())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn libraries_differ_in_what_their_nodes_ask_for() {
        assert!(InheritanceOptions::usual(Dialect::Hwbinder).inherit_rt);
        assert!(!InheritanceOptions::usual(Dialect::Binder(ipc::Release::default())).inherit_rt);
    }
}
