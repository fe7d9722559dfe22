//! Calls without a reply: those that failed, those that still wait when the trace ends, and oneway calls of which the
//! driver says that they are too many.
//! Not here: pairing events with calls (`model`), sentences (`text`).

use std::collections::HashMap;

use serde::{Deserialize, Serialize};

use super::who::{People, ThreadInfo};
use crate::event::{Binder, Event, Kind, Name, Transaction as Sent};
use crate::model::{Model, Outcome, Transaction};

/// Maximum number of failed calls that are reported one by one.
const MOST: usize = 256;
/// Maximum number of waiting calls that are: their segments reach back to their begin.
const MOST_WAITING: usize = 64;
/// `BR_ONEWAY_SPAM_SUSPECT`.
const SPAM: u32 = 0x7213;

/// End of a call that failed.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct FailureInfo {
    /// The driver's word, such as `BR_DEAD_REPLY`; `None` if the trace does not have it.
    pub reply: Option<String>,
    /// Why, where events show it.
    pub why: Option<String>,
}

impl FailureInfo {
    pub(super) fn of(call: &Transaction) -> Option<Self> {
        let failure = call.failure?;
        let reply = failure.word.map(|word| word.name().to_owned());
        Some(Self { reply, why: failure.why.map(|why| why.words().to_owned()) })
    }
}

/// Oneway calls of one sender to one node that the driver suspects of being spam (`BR_ONEWAY_SPAM_SUSPECT`): the
/// receiver's half of the buffer for oneway calls is nearly used up, mostly by them.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct OnewaySpam {
    /// The sending thread of the first of them.
    pub caller: ThreadInfo,
    /// The called process.
    pub server_process: i32,
    /// Its name; empty if unknown.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub server_name: String,
    /// The called node.
    pub node: i32,
    /// Transaction code of the first of them.
    pub code: u32,
    /// Number of the first of them.
    pub debug_id: i32,
    /// When the driver said so first, in nanoseconds of the trace clock.
    pub first_ns: u64,
    /// How often it said so.
    pub times: u64,
}

/// Calls without a reply, while reading.
#[derive(Clone, Debug, Default)]
pub(super) struct Unfinished {
    /// The first that failed.
    pub(super) failed: Vec<Transaction>,
    /// Those that still wait, the oldest of them.
    pub(super) waiting: Vec<Transaction>,
    /// By sending thread, called process and node.
    spam: HashMap<(i32, i32, i32), Suspected>,
}

/// Oneway calls that the driver suspects: the first of them, and how often it said so.
#[derive(Clone, Copy, Debug)]
struct Suspected {
    tid: i32,
    sent: Sent,
    first: u64,
    times: u64,
}

impl Unfinished {
    /// Takes a call that is not sound.
    pub(super) fn take(&mut self, call: Transaction) {
        match call.outcome {
            Outcome::Failed | Outcome::Dead | Outcome::Frozen if self.failed.len() < MOST => {
                self.failed.push(call)
            }
            Outcome::Cut if call.is_unanswered() => {
                self.waiting.push(call);
                if self.waiting.len() >= 2 * MOST_WAITING {
                    self.sort();
                }
            }
            _ => {}
        }
    }

    /// Takes an event: the driver's word about oneway calls.
    pub(super) fn hear(&mut self, event: &Event, model: &Model) {
        let Kind::Binder(_, Binder::Return { cmd: SPAM }) = event.kind else { return };
        let Some(sent) = model.last_oneway(event.tid) else { return };
        let key = (event.tid, sent.to_proc, sent.target_node);
        if self.spam.len() < MOST || self.spam.contains_key(&key) {
            let first = Suspected { tid: event.tid, sent, first: event.ts, times: 0 };
            self.spam.entry(key).or_insert(first).times += 1;
        }
    }

    /// Sorts the waiting calls, the oldest first.
    pub(super) fn sort(&mut self) {
        self.waiting.sort_by_key(|call| (std::cmp::Reverse(call.ns()), call.debug_id));
        self.waiting.truncate(MOST_WAITING);
    }

    /// Suspected oneway calls, those suspected most often first.
    pub(super) fn spam(&self, people: People<'_>) -> Vec<OnewaySpam> {
        let all = self.spam.values().map(|Suspected { tid, sent, first, times }| OnewaySpam {
            caller: people.thread(*tid, Name::NONE, None),
            server_process: sent.to_proc,
            server_name: people.process(sent.to_proc).unwrap_or_default(),
            node: sent.target_node,
            code: sent.code,
            debug_id: sent.debug_id,
            first_ns: *first,
            times: *times,
        });
        let mut all: Vec<OnewaySpam> = all.collect();
        all.sort_by_key(|spam| (std::cmp::Reverse(spam.times), spam.first_ns));
        all
    }
}
