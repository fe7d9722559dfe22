//! Tables of calls by who calls whom, by interface, or by method.
//! Not here: sums of one group (`sums`), the text (`text`).

use std::collections::HashMap;
use std::fmt;
use std::sync::Arc;

use serde::{Deserialize, Serialize};

use super::codes::code_words;
use super::sums::{Sum, Sums};
use super::who::People;
use crate::cause::Cause;
use crate::model::{Method, Transaction};

/// What the calls of one row have in common.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum By {
    /// Calling and called process.
    Pair,
    /// Interface; without a name, the called node.
    Interface,
    /// Method; without a name, the transaction code of a node.
    #[default]
    Method,
}

impl By {
    /// Each way.
    pub const ALL: [Self; 3] = [Self::Pair, Self::Interface, Self::Method];
}

impl fmt::Display for By {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Pair => "pair",
            Self::Interface => "interface",
            Self::Method => "method",
        })
    }
}

/// Maximum number of rows; the calls of further ones share a row.
const MOST: usize = 4096;
/// A call waits if its server sleeps for at least this share of it, in percent.
const ASLEEP_PERCENT: u64 = 90;
/// Shortest time in nanoseconds of such a call: a short sleep is no poll.
const LONG_SLEEP_NS: u64 = 1_000_000;
/// Rows without a name from which on a table is shown unasked.
const WORTH_A_TABLE: usize = 5;
/// Minimum number of calls of a row that waits by design.
const FEWEST_WAITS: u64 = 3;

#[derive(Clone, Debug, PartialEq, Eq, Hash)]
enum Key {
    Pair { caller: i32, callee: i32 },
    Interface(Box<str>),
    Method(Box<str>, Box<str>),
    Node { process: i32, node: i32, code: Option<u32> },
    Rest,
}

impl Key {
    fn of(by: By, call: &Transaction) -> Self {
        let method = call.method.as_ref().map(Arc::as_ref);
        let node = |code| Self::Node { process: call.to_proc, node: call.node, code };
        match (by, method) {
            (By::Pair, _) => {
                Self::Pair { caller: call.client.tgid.unwrap_or(call.client.tid), callee: call.to_proc }
            }
            (By::Interface, Some(Method { interface, .. })) => Self::Interface(interface.clone()),
            (By::Method, Some(Method { interface, name })) => Self::Method(interface.clone(), name.clone()),
            (By::Interface, None) => node(None),
            (By::Method, None) => node(Some(call.code)),
        }
    }

    fn text(&self, people: People<'_>) -> String {
        let process = |pid: i32| match people.process(pid) {
            None => format!("process {pid}"),
            Some(name) => format!("{name} {pid}"),
        };
        match self {
            Self::Pair { caller, callee } => format!("{} -> {}", process(*caller), process(*callee)),
            Self::Interface(interface) => interface.to_string(),
            Self::Method(interface, name) => format!("{interface}.{name}"),
            Self::Node { process: pid, node, code: None } => format!("node {node} of {}", process(*pid)),
            Self::Node { process: pid, node, code: Some(code) } => {
                format!("{} of node {node} of {}", code_words(*code), process(*pid))
            }
            Self::Rest => "all others".to_owned(),
        }
    }
}

/// A row of the table.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Group {
    /// What its calls have in common.
    pub name: String,
    /// Whether they wait by design, as a poll does: the server sleeps for nearly all of nearly each one.
    pub waits_by_design: bool,
    /// Where their time went. A nested call counts in its own row and in that of the call that it was made for.
    #[serde(flatten)]
    pub sum: Sum,
}

#[derive(Clone, Debug, Default)]
struct Row {
    sums: Sums,
    calls: u64,
    waits: u64,
}

/// Rows while reading.
#[derive(Clone, Debug, Default)]
pub(super) struct Groups {
    by: By,
    named: bool,
    rows: HashMap<Key, Row>,
}

impl Groups {
    pub(super) fn new(by: By) -> Self {
        Self { by, ..Self::default() }
    }

    /// Counts a call that can be judged.
    pub(super) fn add(&mut self, call: &Transaction) {
        self.named |= call.method.is_some();
        let key = Key::of(self.by, call);
        let key = if self.rows.len() < MOST || self.rows.contains_key(&key) { key } else { Key::Rest };
        let row = self.rows.entry(key).or_default();
        row.sums.add(call);
        row.calls += 1;
        row.waits += u64::from(waits(call));
    }

    /// Whether any call has a name, or so many differ that a table tells something all the same.
    pub(super) fn are_worth_a_table(&self) -> bool {
        self.named || self.rows.len() >= WORTH_A_TABLE
    }

    /// The rows, those with the most time first and those that wait by design last.
    pub(super) fn found(&self, people: People<'_>) -> Vec<Group> {
        let mut groups: Vec<Group> = self
            .rows
            .iter()
            .map(|(key, row)| Group {
                name: key.text(people),
                waits_by_design: is_by_design(row.waits, row.calls),
                sum: row.sums.sum(1.0),
            })
            .collect();
        groups.sort_by(|a, b| {
            let order = |group: &Group| (group.waits_by_design, std::cmp::Reverse(group.sum.ns));
            order(a).cmp(&order(b)).then_with(|| a.name.cmp(&b.name))
        });
        groups
    }
}

/// Whether calls of which so many wait do so by design.
pub(super) fn is_by_design(waits: u64, calls: u64) -> bool {
    waits >= FEWEST_WAITS && waits * 100 >= calls * ASLEEP_PERCENT
}

/// Whether the server slept for nearly all of a call, and nobody worked meanwhile on what it waited for.
pub(super) fn waits(call: &Transaction) -> bool {
    let server = call.server.map(|server| server.tid);
    let sleeps = |cause| matches!(cause, Cause::Sleeping { .. } | Cause::ThreadWait { .. });
    let asleep = call.parts.iter().filter(|part| Some(part.tid) == server && sleeps(part.cause));
    let asleep: u64 = asleep.map(crate::cause::Segment::ns).sum();
    let nearly_all = |ns: u64| ns >= call.ns() / 100 * ASLEEP_PERCENT;
    call.ns() >= LONG_SLEEP_NS
        && nearly_all(asleep)
        && nearly_all(asleep - worked_for(call, server).min(asleep))
}

/// Nanoseconds of the server's sleeps in which those whom it waited for did something else than sleep.
fn worked_for(call: &Transaction, server: Option<i32>) -> u64 {
    let sleeps = |cause| matches!(cause, Cause::Sleeping { .. } | Cause::ThreadWait { .. });
    let (mut ns, mut of_server) = (0, false);
    for link in &call.links {
        if link.depth == 0 {
            of_server = Some(link.tid) == server && sleeps(link.cause);
        } else if of_server
            && link.waits_for().is_none()
            && !sleeps(link.cause)
            && link.cause != Cause::NotShown
        {
            ns += link.ns();
        }
    }
    ns
}
