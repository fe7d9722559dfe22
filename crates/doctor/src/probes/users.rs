//! Processes that use binder now, from the driver's stats: threads, buffers.
//! Not here: where the stats are (`driver::kernel_state`).
//! Facts: contract DBG-05, DBG-06; `print_binder_proc_stats` in binder.c, `debug_print_stats` in process.rs; AOSP's
//! `BINDER_SET_MAX_THREADS` of 15; half of the mapping is for oneway calls (contract OW-06), of 4 MiB at most
//! (contract OPN-06). `pages:` is missing before Linux 4.14.

use driver::kernel_state::{self, StateError, StateFile};

use super::driver::present;
use crate::probe::{Grounds, Probe, ProbeResult};
use crate::snapshot::{Snapshot, Unavailable};

const SHOW: &str = "binderperf state stats";

pub(super) const PROBES: &[Probe] = &[
    Probe {
        id: "binder-threads",
        looks_at: "processes without a free binder thread",
        proof: SHOW,
        grounds: Grounds::Cited {
            source: "include/uapi/linux/android/binder.h, BR_SPAWN_LOOPER and BINDER_SET_MAX_THREADS",
            says: "the driver asks for threads up to that number; beyond it a call waits",
        },
        look: threads,
    },
    Probe {
        id: "binder-buffers",
        looks_at: "processes with little buffer space for oneway calls",
        proof: SHOW,
        grounds: Grounds::Cited {
            source: "include/uapi/linux/android/binder.h, BR_ONEWAY_SPAM_SUSPECT",
            says: "a process with little room for oneway calls is reported to the sender",
        },
        look: buffers,
    },
];

/// Name in `Facts::texts` of stats that were read through the driver's own interface.
pub(crate) const STATS: &str = "binder-stats.txt";

/// Smallest page size of machines with binder.
const PAGE: u64 = 4096;
/// Largest mapping that the driver makes, in bytes.
const LARGEST: u64 = 4 << 20;

/// A process and context in the driver's stats. `None`: not reported.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
struct User {
    pid: u32,
    context: String,
    started: Option<u64>,
    most: Option<u64>,
    ready: Option<u64>,
    free_async: Option<u64>,
    pages: Option<u64>,
}

impl User {
    fn name(&self) -> String {
        format!("{} ({})", self.pid, self.context)
    }
}

/// Parses the driver's stats.
fn parse(text: &str) -> Result<Vec<User>, Unavailable> {
    let mut users: Vec<User> = Vec::new();
    for line in text.lines() {
        if let Some(pid) = line.strip_prefix("proc ") {
            users.extend(pid.trim().parse().ok().map(|pid| User { pid, ..User::default() }));
            continue;
        }
        let Some(user) = users.last_mut() else { continue };
        let words: Vec<&str> = line.split_whitespace().collect();
        let last = words.last().and_then(|word| word.parse().ok());
        match words.as_slice() {
            ["context", name] => user.context = (*name).to_owned(),
            ["requested", "threads:", share] => {
                let (asked, most) = share.split_once('/').unwrap_or((share, ""));
                user.started = asked.split_once('+').and_then(|(_, started)| started.parse().ok());
                user.most = most.parse().ok();
            }
            ["ready", "threads", _] => user.ready = last,
            ["free", "async" | "oneway", "space", _] => user.free_async = last,
            ["pages:", counts] => {
                let counts = counts.split(':').map(|count| count.parse::<u64>().ok());
                user.pages = counts.sum::<Option<u64>>();
            }
            _ => {}
        }
    }
    match users.is_empty() && !text.starts_with("binder stats:") {
        true => {
            Err(Unavailable::NotShown(format!("{STATS_NAME} have no line \"binder stats:\" and no process")))
        }
        false => Ok(users),
    }
}

/// The driver's stats; `None` without a driver.
fn account(snapshot: &Snapshot) -> Result<Option<Vec<User>>, Unavailable> {
    let text = match snapshot.text(STATS) {
        // `gather` has already looked for them.
        Err(Unavailable::Absent(_)) if snapshot.is_live() => None,
        Err(Unavailable::Absent(_)) => match kernel_state::read(snapshot.root(), None, StateFile::Stats) {
            Ok(text) => text,
            Err(StateError::NoDriver { .. }) => None,
            Err(error) => return Err(Unavailable::NotShown(error.to_string())),
        },
        text => Some(text?),
    };
    match text {
        Some(text) => parse(&text).map(Some),
        None if present(snapshot)? => Err(Unavailable::NotShown(format!("{STATS_NAME} were not read"))),
        None => Ok(None),
    }
}

/// Name of the stats in texts.
const STATS_NAME: &str = "the driver's stats";

/// The result for those processes for which `objects` holds. Where it is `None`, the stats lack the line that `lacking` names.
fn judged(
    snapshot: &Snapshot,
    fine: &str,
    (objects, lacking): (fn(&User) -> Option<bool>, &str),
    found: fn(&[&User]) -> ProbeResult,
) -> Result<ProbeResult, Unavailable> {
    let Some(users) = account(snapshot)? else {
        return Ok(ProbeResult::fine("no driver with users"));
    };
    let of = |wanted: Option<bool>| users.iter().filter(|user| objects(user) == wanted).collect::<Vec<_>>();
    let (few, untold) = (of(Some(true)), of(None));
    match (few.as_slice(), untold.as_slice()) {
        ([], []) if users.is_empty() => Ok(ProbeResult::fine("no process uses the driver")),
        ([], []) => Ok(ProbeResult::fine(fine)),
        ([], untold) => Err(Unavailable::NotShown(format!(
            "{STATS_NAME} have no line \"{lacking}\" of {}",
            names(untold)
        ))),
        (some, _) => Ok(found(some)),
    }
}

fn names(users: &[&User]) -> String {
    const SHOWN: usize = 5;
    let more = if users.len() > SHOWN { format!(" and {} more", users.len() - SHOWN) } else { String::new() };
    users.iter().take(SHOWN).map(|user| user.name()).collect::<Vec<_>>().join(", ") + &more
}

/// Joins one text for each user.
fn each(users: &[&User], say: fn(&User) -> String) -> String {
    users.iter().map(|user| say(user)).collect::<Vec<_>>().join("; ")
}

fn threads(snapshot: &Snapshot) -> Result<ProbeResult, Unavailable> {
    let busy = |user: &User| {
        let all_started = user.most.zip(user.started).map(|(most, started)| most > 0 && started >= most);
        match (all_started, user.ready.map(|ready| ready == 0)) {
            (Some(false), _) | (_, Some(false)) => Some(false),
            (Some(true), Some(true)) => Some(true),
            _ => None,
        }
    };
    let judge = (busy as fn(&User) -> Option<bool>, "requested threads\" or \"ready threads");
    judged(snapshot, "every process has a free binder thread or may start one", judge, |users| {
        ProbeResult::warning(format!("all binder threads are busy in {}", names(users)))
            .effect("calls to these processes wait for a free thread")
            .fix("find out what they wait for (binderperf state transactions), or allow more threads (BINDER_SET_MAX_THREADS)")
            .because(STATS_NAME, each(users, shares))
    })
}

fn shares(user: &User) -> String {
    let or_unknown = |number: Option<u64>| number.map_or("?".to_owned(), |number| number.to_string());
    let User { started, most, ready, .. } = user;
    format!(
        "proc {}: {} of {} threads started, {} ready",
        user.pid,
        or_unknown(*started),
        or_unknown(*most),
        or_unknown(*ready)
    )
}

/// Whether little space for oneway calls is left; `None` if that depends on the size of the buffer, which older drivers
/// do not tell.
fn is_scarce(user: &User) -> Option<bool> {
    let free = user.free_async?;
    match user.pages {
        // It has no mapping, so it takes no calls.
        Some(0) => Some(false),
        // Half of the mapping is for oneway calls.
        Some(pages) => Some(free < PAGE || free < pages.saturating_mul(PAGE) / 2 / 10),
        None if free < PAGE => Some(true),
        None if free >= LARGEST / 2 / 10 => Some(false),
        None => None,
    }
}

fn buffers(snapshot: &Snapshot) -> Result<ProbeResult, Unavailable> {
    let judge = (is_scarce as fn(&User) -> Option<bool>, "free async space\" or \"pages:");
    judged(snapshot, "every process has buffer space for oneway calls", judge, |users| {
        ProbeResult::warning(format!("buffer space for oneway calls is nearly exhausted in {}", names(users)))
            .effect("oneway calls to these processes fail, and each failure is logged; a buffer that was never freed \
                     blocks its node's queue")
            .fix("find the oldest buffer (binderperf state), and restart the process")
            .because(STATS_NAME, each(users, |user| format!("proc {}: {} B free", user.pid, user.free_async.unwrap_or(0))))
    })
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    proptest! {
        #[test]
        fn any_account_is_taken(text in "(?s).{0,300}", lines in proptest::collection::vec("(proc [0-9]{1,9}|  requested threads: [0-9+/]{0,9}|  pages: [0-9:]{0,24}|  ready threads [0-9x]{0,3})", 0..12)) {
            let _ = super::parse(&text);
            for user in super::parse(&lines.join("\n")).into_iter().flatten() {
                let _ = (super::shares(&user), super::is_scarce(&user));
            }
        }
    }
}
