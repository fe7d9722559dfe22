//! Differences between drivers that are known: the contract's item, and when one explains what drivers gave.
//! Not here: finding differences (`compare`).
//!
//! A driver is the Rust one if its name in the list of drivers has `rust`, and the embedded one if it begins with `embedded`.

mod place;

use abi::codes::{bc, tf};

use crate::program::{Action, Command, Object, PROCS, Read, Step, WATCH_FREEZING};
use crate::text;
pub(crate) use place::Place;
use place::{is_two_way, without_notices};

/// A known difference.
#[derive(Debug)]
pub struct Known {
    /// The contract's item.
    pub item: &'static str,
    /// Whether they come together again, so that the rest of the program can be compared.
    pub goes_on: bool,
    /// The drivers that do it.
    who: &'static [Kind],
    matches: Rule,
}

/// Whether a known difference explains another: the place, what another driver gave, what one of these gave.
type Rule = fn(&Place<'_>, &str, &str) -> bool;

/// A driver's code.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Kind {
    C,
    Rust,
    Embedded,
}

impl Kind {
    fn of_name(name: &str) -> Self {
        match name {
            _ if name.contains("rust") => Self::Rust,
            _ if name.starts_with("embedded") => Self::Embedded,
            _ => Self::C,
        }
    }
}

const RUST: &[Kind] = &[Kind::Rust];
const EMBEDDED: &[Kind] = &[Kind::Embedded];
const NOT_C: &[Kind] = &[Kind::Rust, Kind::Embedded];

/// A known difference after which drivers do the same again.
const fn goes_on(who: &'static [Kind], item: &'static str, matches: Rule) -> Known {
    Known { item, goes_on: true, who, matches }
}

/// A known difference after which the rest of the program cannot be compared.
const fn ends(who: &'static [Kind], item: &'static str, matches: Rule) -> Known {
    Known { item, goes_on: false, who, matches }
}

/// All known differences, each below the reason why drivers differ.
pub static ALL: &[Known] = &[
    // The Rust driver looks at the payload first: a malformed call of a dead node is FAILED_REPLY.
    goes_on(RUST, "TX-09", |place, others, rust| {
        let failed = |outcome: &str| outcome.replace("DEAD_REPLY", "FAILED_REPLY");
        others.contains("DEAD_REPLY") && failed(others) == rust && place.thread_sent_malformed()
    }),
    // The Rust driver returns at once from a read with less than 80 bytes of room.
    goes_on(RUST, "WR-08", |place, others, rust| {
        let small = matches!(place.step.action, Action::Exchange(_, Some(Read { room: ..80, .. })));
        small && others == "EAGAIN" && (rust == "ok NOOP" || rust == "ok")
    }),
    // The Rust driver freezes no process of a pid without binder, successfully.
    goes_on(RUST, "IOC-08", |place, others, rust| {
        let asks = matches!(place.step.action, Action::Freeze(..) | Action::FrozenInfo(_));
        asks && others == "EINVAL" && (rust == "ok" || rust == "sync=0 async=0")
    }),
    // The Rust driver has no thread for a child of the process that opened it.
    ends(RUST, "OPN-11", |place, others, rust| {
        // What `poll` answers then is POLLERR.
        let refused = rust.starts_with("EINVAL") || rust == "EIO";
        matches!(place.step.action, Action::Fork(_)) && refused && !others.starts_with("EINVAL")
    }),
    // The embedded driver has no device that a child could inherit.
    ends(EMBEDDED, "OPN-11", |place, _, embedded| {
        matches!(place.step.action, Action::Fork(_)) && embedded == "nothing to inherit"
    }),
    // Exec ends the embedded driver's process.
    ends(EMBEDDED, "OPN-05", |place, others, embedded| {
        place.step.action == Action::Exec && others == "ok" && embedded == "ok, closed"
    }),
    // The Rust driver delivers into pages of an area that exec took away, and fails what is larger.
    ends(RUST, "OPN-10", |place, others, rust| {
        let delivered = rust.contains("FAILED_REPLY") || rust.contains("COMPLETE") || rust == "EAGAIN";
        others.contains("DEAD_REPLY")
            && delivered
            && place.before().any(|step| step.action == Action::Exec && step.proc != place.step.proc)
    }),
    // The Rust driver gives node work of a thread that exited to the process.
    ends(RUST, "REF-14", |place, _, rust| {
        let of_node = ["INCREFS", "ACQUIRE", "RELEASE", "DECREFS"].iter().any(|word| rust.contains(word));
        of_node && place.before().any(|step| step.action == Action::ThreadExit)
    }),
    // The Rust driver gives the process's work to no thread outside the pool.
    ends(RUST, "LP-07", |place, others, rust| {
        let nothing = matches!(rust, "EAGAIN" | "waits" | "ok NOOP" | "readable=0");
        let looks = matches!(place.step.action, Action::Exchange(..) | Action::Poll);
        let own = looks && nothing && !place.is_in_pool(place.step.proc, place.step.thread);
        // It does not count one that waits as idle, and asks for another.
        let asks = rust.contains("SPAWN_LOOPER") && others.replace("NOOP", "SPAWN_LOOPER") == rust;
        let waits = |step: &&Step| matches!(step.action, Action::Exchange(_, Some(Read { waits: true, .. })));
        let outside = |step: &Step| step.proc == place.step.proc && !place.is_in_pool(step.proc, step.thread);
        if asks && place.until_now().filter(waits).any(outside) {
            return true;
        }
        // Or a thread that waited, and that the others woke.
        let mut woken = others.split(" | ").filter_map(|part| text::thread(part.split_once(": ")?.0).ok());
        own || woken.any(|(proc, thread)| !place.is_in_pool(proc, thread))
    }),
    // A buffer at data offset 0 can be a parent on the Rust driver.
    ends(RUST, "OBJ-18", |place, _, _| {
        place
            .step
            .transactions()
            .any(|what| what.plain == 0 && matches!(what.objects.first(), Some(Object::Buffer { .. })))
    }),
    // The Rust driver refuses an empty array of descriptors where none may be sent.
    ends(RUST, "OBJ-19", |place, others, rust| {
        let empty = |object: &Object| matches!(object, Object::Fds { count: 0, .. });
        // A refused reply fails its caller, in a later step.
        let mut sent = place.until_now().flat_map(Step::transactions);
        let refused =
            rust.contains("FAILED_REPLY") || others.contains("fds 0") && matches!(rust, "EAGAIN" | "waits");
        refused && sent.any(|what| what.objects.iter().any(empty))
    }),
    // The Rust driver has another errno for unknown handles, takes weak ones, counts weak holders.
    goes_on(RUST, "IOC-04", |place, others, rust| {
        let asks = matches!(place.step.action, Action::NodeInfo(_));
        let strong = |outcome: &str| outcome.split_once(" weak=").map(|(strong, _)| strong.to_owned());
        let refused = others == "EINVAL" && (rust == "ENOENT" || rust.starts_with("strong="));
        asks && (refused || strong(others).is_some() && strong(others) == strong(rust))
    }),
    // On the Rust driver a thread that entered the pool settles a request by registering, too.
    ends(RUST, "LP-03", |place, others, rust| {
        let register = Command::Plain(bc::REGISTER_LOOPER, [0; 2]);
        let registers = |step: &&Step| step.commands().contains(&register);
        let reads = |proc: usize| proc == place.step.proc || rust.contains(&format!("| p{proc}.t"));
        let asks = rust.contains("SPAWN_LOOPER") && !others.contains("SPAWN_LOOPER");
        asks && place.until_now().filter(registers).any(|step| reads(step.proc))
    }),
    // The Rust driver's extended error has other errnos, and none for dead and frozen targets.
    goes_on(RUST, "TX-21", |place, _, _| place.step.action == Action::ExtendedError),
    // PENDING_FROZEN stops the write of the Rust driver.
    ends(RUST, "OW-11", |place, others, rust| {
        let is_pending = |outcome: &str| outcome.contains("PENDING_FROZEN");
        // Without a read only the count of commands shows it.
        let stops = rust.contains("taken=") && !others.contains("taken=");
        let frozen = place.before().any(|step| matches!(step.action, Action::Freeze(_, true)));
        let seen = is_pending(others) || is_pending(rust) || stops && frozen;
        seen && place.step.commands().len() > 1
            && place.step.transactions().any(|what| what.flags & tf::ONE_WAY != 0)
    }),
    // The Rust driver repeats no state, and refuses a cookie that another node has.
    ends(RUST, "FRZ-07", |place, others, rust| {
        let watches =
            |command: &Command| matches!(command, Command::Plain(code, _) if WATCH_FREEZING.contains(code));
        let refused = rust.starts_with("EINVAL") && place.any(watches);
        refused || others.contains("FROZEN_BINDER") != rust.contains("FROZEN_BINDER")
    }),
    // The C driver names no process for a call whose thread exited; the others keep the pid.
    goes_on(NOT_C, "ID-02", |_, others, kept| {
        let has_named = |name: usize| kept.replace(&format!("from=p{name} "), "from=- ") == others;
        (0..PROCS).any(has_named)
    }),
    // On the Rust driver nobody can call back into a process by a call whose thread exited.
    ends(RUST, "EXT-01", |place, others, rust| {
        let lost = others.contains("TRANSACTION(") && matches!(rust, "EAGAIN" | "waits");
        let fails = rust.contains("DEAD_REPLY") && !others.contains("DEAD_REPLY");
        let left_a_call =
            |at: usize| place.step_at(at).action == Action::ThreadExit && place.has_called(at, true);
        (lost || fails) && (0..place.number).any(left_a_call)
    }),
    // The Rust driver's poll is readable for a released node whose holder was not acknowledged.
    goes_on(RUST, "POL-01", |place, others, rust| {
        let releases = |command: &Command| {
            matches!(command, Command::Free(_) | Command::Plain(bc::RELEASE | bc::DECREFS, _))
        };
        let polls = place.step.action == Action::Poll && others == "readable=0" && rust == "readable=1";
        let others = place.before().filter(|step| step.proc != place.step.proc);
        polls && others.flat_map(Step::commands).any(releases)
    }),
    // The Rust driver takes a call of a thread with an unread reply, so that its target is busy.
    ends(RUST, "TX-15", |place, others, rust| {
        let freezes = matches!(place.step.action, Action::Freeze(_, true));
        freezes && others == "ok" && rust == "EAGAIN" && (0..place.number).any(|at| place.calls_again(at))
    }),
    // The Rust driver refuses a second call to a handle whether its owner is dead or not.
    ends(RUST, "TX-13", |place, others, rust| {
        let own = |at: &usize| {
            let step = place.step_at(*at);
            (step.proc, step.thread) == (place.step.proc, place.step.thread)
        };
        let again = (0..=place.number).filter(own).any(|at| place.calls_again(at));
        again && others.contains("DEAD_REPLY") && others.replace("DEAD_REPLY", "FAILED_REPLY") == rust
    }),
    // A call through a call slot whose caller has ended holds no count of its target before it is read. Of any call that a thread
    // was given and has not read before that thread's end the C driver keeps the buffer.
    goes_on(EMBEDDED, "IOC-04", |place, others, embedded| {
        let strong = |outcome: &str| -> Option<u32> {
            outcome.strip_prefix("strong=")?.split_once(' ')?.0.parse().ok()
        };
        let asks = matches!(place.step.action, Action::NodeInfo(_));
        let calls = place.before().flat_map(Step::commands).filter(|command| is_two_way(command)).count();
        let ends = |at: usize| match place.step_at(at).action {
            Action::Close | Action::Kill | Action::Exec => place.has_called(at, false),
            Action::ThreadExit => place.is_called(at),
            _ => false,
        };
        let lost = strong(others).zip(strong(embedded)).and_then(|(all, less)| all.checked_sub(less));
        asks && (0..place.number).any(ends) && lost.is_some_and(|lost| (1..=calls).contains(&(lost as usize)))
    }),
    // The C driver may serve a thread that reads at once before one that waits, others do not.
    ends(NOT_C, "LP-08", |place, others, other| {
        let woken = other.strip_prefix("EAGAIN | ").and_then(|rest| rest.split_once(": "));
        let is_own = |who: &str| text::thread(who).is_ok_and(|(proc, _)| proc == place.step.proc);
        woken.is_some_and(|(who, text)| is_own(who) && text == others)
    }),
    // The embedded driver does a reply and a free of one write before the caller wakes.
    ends(EMBEDDED, "REF-10", |place, others, embedded| {
        let replies = place.any(|command| matches!(command, Command::Transaction(None, _)));
        let frees = place.any(|command| matches!(command, Command::Free(_)));
        replies && frees && others.contains(" | ") && without_notices(others) == embedded
    }),
    // The Rust driver goes on with the write behind a reply to a thread that exited.
    ends(RUST, "TX-18", |place, others, rust| {
        let replies = |command: &Command| matches!(command, Command::Transaction(None, _));
        let stops = others.contains(" taken=") && !rust.contains(" taken=");
        stops && place.any(replies) && place.before().any(|step| step.action == Action::ThreadExit)
    }),
    // On the Rust driver a chain's failure comes before the acknowledgement of the last reply.
    ends(RUST, "TX-19", |_, others, rust| {
        others.replace("COMPLETE DEAD_REPLY", "DEAD_REPLY COMPLETE") == rust
    }),
    // The Rust driver notifies the first of two threads that send a node, others the second.
    ends(RUST, "REF-15", |place, others, rust| {
        let has_strong = |outcome: &str| outcome.contains("ACQUIRE(");
        let moved =
            has_strong(rust) && !has_strong(others) && without_notices(others) == without_notices(rust);
        moved && place.threads_that_sent_nodes() > 1
    }),
    // A chain's first caller learns of a death at once on the embedded driver.
    ends(EMBEDDED, "TX-19", |place, others, embedded| {
        // The one that died is in the middle of a chain: it had called on.
        let ends = |at: &usize| matches!(place.step_at(*at).action, Action::Close | Action::Kill);
        let breaks = (0..=place.number).filter(ends).any(|at| place.has_called(at, false));
        breaks && embedded.contains("DEAD_REPLY") && !others.contains("DEAD_REPLY")
    }),
];

/// The one fault that is known: the C driver keeps a node whose owner closed in the middle of a call to it.
static KEPT_NODE: Known = ends(&[Kind::C], "REF-16", |_, _, c| is_kept_node(c));

/// Whether nothing is left behind but one node with a negative count.
fn is_kept_node(outcome: &str) -> bool {
    outcome.starts_with("left behind: node 1 ") && !outcome.contains(", ") && outcome.contains(" ls -")
}

/// Why the faults that drivers have are known, if each is.
pub(crate) fn fault(names: &[String], outcomes: &[String]) -> Option<&'static Known> {
    let is_known = |(name, outcome): (&String, &String)| {
        outcome.is_empty() || Kind::of_name(name) == Kind::C && is_kept_node(outcome)
    };
    names.iter().zip(outcomes).all(is_known).then_some(&KEPT_NODE)
}

/// The known differences that explain why these outcomes differ: each driver is compared with the first C driver or, without
/// one, with the first driver. `None` if one of them is not explained.
pub(crate) fn find(names: &[String], place: &Place<'_>, outcomes: &[String]) -> Option<Vec<&'static Known>> {
    let kinds: Vec<Kind> = names.iter().map(|name| Kind::of_name(name)).collect();
    let base = kinds.iter().position(|kind| *kind == Kind::C).unwrap_or(0);
    let explains =
        |known: &Known, other: usize| match [base, other].map(|driver| known.who.contains(&kinds[driver])) {
            [false, true] => (known.matches)(place, &outcomes[base], &outcomes[other]),
            [true, false] => (known.matches)(place, &outcomes[other], &outcomes[base]),
            _ => false,
        };
    let differ = (0..outcomes.len()).filter(|other| outcomes[*other] != outcomes[base]);
    differ.map(|other| ALL.iter().find(|known| explains(known, other))).collect()
}

#[cfg(test)]
mod tests;
