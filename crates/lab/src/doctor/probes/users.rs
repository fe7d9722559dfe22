//! Room: processes that use binder now, by the driver's own account: threads, buffers, calls under way.
//! Not here: where the account lies (`driver::kernel_state`).
//! Facts: contract DBG-05, DBG-06; `print_binder_proc_stats` in binder.c, `debug_print_stats` in process.rs;
//! AOSP's `BINDER_SET_MAX_THREADS` of 15 and half of the mapping for oneway calls (contract OW-06).

use driver::kernel_state::{self, StateError, StateFile};

use crate::doctor::probe::{Probe, Said};
use crate::doctor::snapshot::{Snapshot, Unread};

const SHOW: &str = "binderperf state stats";

pub(super) const PROBES: &[Probe] = &[
    Probe {
        id: "binder-users",
        looks_at: "how many processes use binder now",
        source: "the driver's stats: proc blocks",
        proof: SHOW,
        look: users,
    },
    Probe {
        id: "binder-threads",
        looks_at: "processes all of whose binder threads are busy",
        source: "the driver's stats: requested threads R+S/MAX, ready threads",
        proof: SHOW,
        look: threads,
    },
    Probe {
        id: "binder-buffers",
        looks_at: "processes whose space for oneway calls is nearly used up",
        source: "the driver's stats: free async space, pages",
        proof: SHOW,
        look: buffers,
    },
    Probe {
        id: "binder-backlog",
        looks_at: "processes with many calls that wait",
        source: "the driver's stats: pending transactions",
        proof: SHOW,
        look: backlog,
    },
];

/// The name under which the driver's account is kept where it was read through the driver's own ways.
pub(in crate::doctor) const STATS: &str = "binder-stats.txt";

/// Waiting calls of one process that are many.
const MANY_PENDING: u64 = 8;
/// The least size of a page on any machine with binder.
const PAGE: u64 = 4096;

/// One process and context of the driver's account. `None`: it does not say.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
struct User {
    pid: u32,
    context: String,
    threads: Option<u64>,
    started: Option<u64>,
    most: Option<u64>,
    ready: Option<u64>,
    free_async: Option<u64>,
    pages: Option<u64>,
    pending: Option<u64>,
}

impl User {
    fn name(&self) -> String {
        format!("{} ({})", self.pid, self.context)
    }
}

/// The processes of the driver's stats.
fn parse(text: &str) -> Vec<User> {
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
            ["threads:", _] => user.threads = last,
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
            ["pending" | "outstanding", "transactions:", _] => user.pending = last,
            _ => {}
        }
    }
    users
}

/// The driver's account; `None` where there is no driver.
fn account(snapshot: &Snapshot) -> Result<Option<Vec<User>>, Unread> {
    if let Some(text) = snapshot.maybe(STATS)? {
        return Ok(Some(parse(&text)));
    }
    if snapshot.is_live() {
        // Looked for already, when the facts were gathered.
        return Ok(None);
    }
    match kernel_state::read(snapshot.root(), None, StateFile::Stats) {
        Ok(text) => Ok(text.as_deref().map(parse)),
        Err(StateError::NoDriver { .. }) if snapshot.is_complete() => Ok(None),
        Err(error) => Err(Unread::Failed("the driver's stats".to_owned(), error.to_string())),
    }
}

/// What a probe says of those processes that it objects to.
fn judged(
    snapshot: &Snapshot,
    fine: &str,
    objects: fn(&User) -> bool,
    found: fn(&[&User]) -> Said,
) -> Result<Said, Unread> {
    let Some(users) = account(snapshot)? else {
        return Ok(Said::fine("no driver whose users could be told"));
    };
    let few: Vec<&User> = users.iter().filter(|user| objects(user)).collect();
    Ok(match few.as_slice() {
        [] => Said::fine(fine),
        some => found(some),
    })
}

fn names(users: &[&User]) -> String {
    const SHOWN: usize = 5;
    let more = if users.len() > SHOWN { format!(" and {} more", users.len() - SHOWN) } else { String::new() };
    users.iter().take(SHOWN).map(|user| user.name()).collect::<Vec<_>>().join(", ") + &more
}

fn users(snapshot: &Snapshot) -> Result<Said, Unread> {
    judged(
        snapshot,
        "nobody uses binder now",
        |_| true,
        |users| {
            let threads: u64 = users.iter().filter_map(|user| user.threads).sum();
            Said::info(format!("{} processes use binder now, with {threads} threads", users.len()))
            .effect("their calls share CPUs, locks and memory with the test; on a phone stop the framework (adb shell stop) \
                     to measure the driver alone")
            .because("the driver's stats", names(users))
        },
    )
}

fn threads(snapshot: &Snapshot) -> Result<Said, Unread> {
    let busy = |user: &User| {
        let all_started =
            user.most.is_some_and(|most| most > 0 && user.started.is_some_and(|started| started >= most));
        all_started && user.ready == Some(0)
    };
    judged(snapshot, "every process has a binder thread to spare, or may start one", busy, |users| {
        Said::warning(format!("all binder threads are busy in {}", names(users)))
            .effect("calls to these processes wait for a thread, whatever the driver does")
            .fix("find what they wait for (binderperf state transactions), or give them more (BINDER_SET_MAX_THREADS)")
            .because("the driver's stats", users.iter().map(|user| shares(user)).collect::<Vec<_>>().join("; "))
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

fn buffers(snapshot: &Snapshot) -> Result<Said, Unread> {
    // Half of the mapping is for oneway calls.
    let scarce = |user: &User| {
        let most = user.pages.map(|pages| pages.saturating_mul(PAGE) / 2).filter(|most| *most > 0);
        most.zip(user.free_async).is_some_and(|(most, free)| free < most / 10)
    };
    judged(snapshot, "every process has space for oneway calls", scarce, |users| {
        Said::warning(format!("the space for oneway calls is nearly used up in {}", names(users)))
            .effect("oneway calls to these processes fail, and each failure is logged; a buffer that was never freed \
                     blocks its node's queue")
            .fix("look for the oldest buffer (binderperf state), and restart the process")
            .because(
                "the driver's stats",
                users.iter().map(|user| format!("proc {}: {} B free", user.pid, user.free_async.unwrap_or(0))).collect::<Vec<_>>().join("; "),
            )
    })
}

fn backlog(snapshot: &Snapshot) -> Result<Said, Unread> {
    let many = |user: &User| user.pending.is_some_and(|pending| pending > MANY_PENDING);
    judged(snapshot, "no process has many calls waiting", many, |users| {
        Said::info(format!("many calls wait in {}", names(users)))
            .effect("these processes are slower than they are asked; their callers wait")
            .because(
                "the driver's stats",
                users
                    .iter()
                    .map(|user| format!("proc {}: {} pending", user.pid, user.pending.unwrap_or(0)))
                    .collect::<Vec<_>>()
                    .join("; "),
            )
    })
}

#[cfg(test)]
pub(super) use cases::CASES;

#[cfg(test)]
mod cases {
    use crate::doctor::tests::{Case, Verdict::*, case};
    use proptest::prelude::*;

    const STATS: &str = super::STATS;
    /// As Linux 7.2's driver in C prints it, shortened.
    const CALM: &str = "binder stats:\nBC_TRANSACTION: 4\nproc: active 1 total 2\nproc 71\ncontext binder\n  threads: 3\n  \
        requested threads: 0+1/15\n  ready threads 2\n  free async space 520192\n  nodes: 1\n  refs: 1 s 1 w 1\n  \
        buffers: 0\n  pages: 1:0:253\n  pages high watermark: 1\n  pending transactions: 0\n  BC_REPLY: 4\n";
    const BUSY: &str = "proc 9\ncontext hwbinder\n  threads: 4\n  requested threads: 0+3/3\n  ready threads 0\n  \
        free async space 100\n  pages: 10:0:244\n  pending transactions: 20\n";

    pub(in crate::doctor) const CASES: &[Case] = &[
        case("binder-users", Info, "1 processes use binder now, with 3 threads", &[(STATS, CALM)]),
        case("binder-users", Ok, "nobody", &[(STATS, "binder stats:\n")]),
        case("binder-users", Ok, "no driver", &[]),
        case(
            "binder-users",
            Info,
            "1 processes",
            &[
                ("proc/self/mounts", "debugfs /sys/kernel/debug debugfs rw 0 0\n"),
                ("sys/kernel/debug/binder/stats", CALM),
            ],
        ),
        case("binder-threads", Warning, "9 (hwbinder)", &[(STATS, BUSY)]),
        case("binder-threads", Ok, "", &[(STATS, CALM)]),
        case("binder-buffers", Warning, "9 (hwbinder)", &[(STATS, BUSY)]),
        case("binder-buffers", Ok, "", &[(STATS, CALM)]),
        case("binder-backlog", Info, "9 (hwbinder)", &[(STATS, BUSY)]),
        case("binder-backlog", Ok, "", &[(STATS, CALM)]),
    ];

    proptest! {
        #[test]
        fn any_account_is_taken(text in "(?s).{0,300}", lines in proptest::collection::vec("(proc [0-9]{1,9}|  requested threads: [0-9+/]{0,9}|  pages: [0-9:]{0,24}|  ready threads [0-9x]{0,3})", 0..12)) {
            let _ = super::parse(&text);
            for user in super::parse(&lines.join("\n")) {
                let _ = super::shares(&user);
            }
        }
    }
}
