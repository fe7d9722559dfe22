//! Differences between drivers that are known: which, why, and the contract's item.
//! Not here: finding differences (`compare`).
//!
//! A driver is the Rust one if its name in the list of drivers has `rust`, and the embedded one if it begins with `embedded`.

use std::collections::BTreeMap;

use abi::codes::tf;

use crate::program::{Action, Command, Looper, Object, PROCS, Program, Read, Step, Transaction};

/// A known difference.
#[derive(Debug)]
pub struct Known {
    /// The contract's item.
    pub item: &'static str,
    /// Why drivers differ.
    pub reason: &'static str,
    /// Whether they come together again, so that the rest of the program can be compared.
    pub goes_on: bool,
    /// The drivers that do it.
    who: fn(Kind) -> bool,
    /// The rule: the place, what another driver gave, what one of these gave.
    matches: fn(&Place<'_>, &str, &str) -> bool,
}

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

    fn is_rust(self) -> bool {
        self == Self::Rust
    }

    fn is_embedded(self) -> bool {
        self == Self::Embedded
    }

    fn is_not_c(self) -> bool {
        self != Self::C
    }
}

/// All known differences.
pub static ALL: &[Known] = &[
    Known {
        item: "TX-09",
        reason: "the Rust driver looks at a call's payload first: a malformed call of a dead node is FAILED_REPLY",
        goes_on: true,
        who: Kind::is_rust,
        matches: |place, others, rust| {
            let failed = |outcome: &str| outcome.replace("DEAD_REPLY", "FAILED_REPLY");
            others.contains("DEAD_REPLY") && failed(others) == rust && place.thread_sent_malformed()
        },
    },
    Known {
        item: "WR-08",
        reason: "the Rust driver returns at once from a read with less than 80 bytes of room",
        goes_on: true,
        who: Kind::is_rust,
        matches: |place, others, rust| {
            let small = place.read().is_some_and(|read| read.room < 80);
            small && others == "EAGAIN" && (rust == "ok NOOP" || rust == "ok")
        },
    },
    Known {
        item: "IOC-08",
        reason: "the Rust driver freezes no process of a pid without binder, successfully",
        goes_on: true,
        who: Kind::is_rust,
        matches: |place, others, rust| {
            let asks = matches!(place.step.action, Action::Freeze(..) | Action::FrozenInfo(_));
            asks && others == "EINVAL" && (rust == "ok" || rust == "sync=0 async=0")
        },
    },
    Known {
        item: "OPN-11",
        reason: "the Rust driver has no thread for a child of the process that opened it",
        goes_on: false,
        who: Kind::is_rust,
        matches: |place, others, rust| {
            // What `poll` answers then is POLLERR.
            let refused = rust.starts_with("EINVAL") || rust == "EIO";
            matches!(place.step.action, Action::Fork(_)) && refused && !others.starts_with("EINVAL")
        },
    },
    Known {
        item: "OPN-11",
        reason: "the embedded driver has no device that a child could inherit",
        goes_on: false,
        who: Kind::is_embedded,
        matches: |place, _, embedded| {
            matches!(place.step.action, Action::Fork(_)) && embedded == "nothing to inherit"
        },
    },
    Known {
        item: "OPN-05",
        reason: "exec ends the embedded driver's process",
        goes_on: false,
        who: Kind::is_embedded,
        matches: |place, others, embedded| {
            place.step.action == Action::Exec && others == "ok" && embedded == "ok, closed"
        },
    },
    Known {
        item: "OPN-10",
        reason: "the Rust driver delivers what fits into pages of an area that exec took away, and FAILED_REPLY is its answer to the rest",
        goes_on: false,
        who: Kind::is_rust,
        matches: |place, others, rust| {
            let delivered = rust.contains("FAILED_REPLY") || rust.contains("COMPLETE") || rust == "EAGAIN";
            others.contains("DEAD_REPLY")
                && delivered
                && place.before().any(|step| step.action == Action::Exec)
        },
    },
    Known {
        item: "REF-14",
        reason: "the Rust driver gives node work of a thread that exited to the process",
        goes_on: false,
        who: Kind::is_rust,
        matches: |place, _, rust| {
            let of_node = ["INCREFS", "ACQUIRE", "RELEASE", "DECREFS"].iter().any(|word| rust.contains(word));
            of_node && place.before().any(|step| step.action == Action::ThreadExit)
        },
    },
    Known {
        item: "LP-07",
        reason: "the Rust driver gives the process's work to no thread outside the pool",
        goes_on: false,
        who: Kind::is_rust,
        matches: |place, others, rust| {
            let nothing = matches!(rust, "EAGAIN" | "waits" | "ok NOOP" | "readable=0");
            let looks = matches!(place.step.action, Action::Exchange(..) | Action::Poll);
            let own = looks && nothing && !place.is_in_pool(place.step.proc, place.step.thread);
            // It does not count one that waits as idle, and asks for another.
            let asks = rust.contains("SPAWN_LOOPER") && others.replace("NOOP", "SPAWN_LOOPER") == rust;
            let waits =
                |step: &&Step| matches!(step.action, Action::Exchange(_, Some(Read { waits: true, .. })));
            let outside =
                |step: &Step| step.proc == place.step.proc && !place.is_in_pool(step.proc, step.thread);
            if asks && place.until_now().filter(waits).any(outside) {
                return true;
            }
            // Or a thread that waited, and that the others woke.
            let woken = others.split(" | ").filter_map(|part| part.split_once(": ")?.0.parse::<Who>().ok());
            own || woken.into_iter().any(|Who(proc, thread)| !place.is_in_pool(proc, thread))
        },
    },
    Known {
        item: "OBJ-18",
        reason: "a buffer at data offset 0 can be a parent on the Rust driver",
        goes_on: false,
        who: Kind::is_rust,
        matches: |place, _, _| {
            place
                .transactions()
                .any(|what| what.plain == 0 && matches!(what.objects.first(), Some(Object::Buffer { .. })))
        },
    },
    Known {
        item: "OBJ-19",
        reason: "the Rust driver refuses an empty array of descriptors where none may be sent",
        goes_on: false,
        who: Kind::is_rust,
        matches: |place, others, rust| {
            let empty = |object: &Object| matches!(object, Object::Fds { count: 0, .. });
            // A refused reply fails its caller, in a later step.
            let mut sent = place.until_now().flat_map(Step::transactions);
            let refused = rust.contains("FAILED_REPLY")
                || others.contains("fds 0") && matches!(rust, "EAGAIN" | "waits");
            refused && sent.any(|what| what.objects.iter().any(empty))
        },
    },
    Known {
        item: "IOC-04",
        reason: "the Rust driver has another errno for an unknown handle, takes a weak one, and counts what others hold weakly",
        goes_on: true,
        who: Kind::is_rust,
        matches: |place, others, rust| {
            let asks = matches!(place.step.action, Action::NodeInfo(_));
            let strong = |outcome: &str| outcome.split_once(" weak=").map(|(strong, _)| strong.to_owned());
            let refused = others == "EINVAL" && (rust == "ENOENT" || rust.starts_with("strong="));
            asks && (refused || strong(others).is_some() && strong(others) == strong(rust))
        },
    },
    Known {
        item: "LP-03",
        reason: "on the Rust driver a thread that entered the pool settles a request by registering, too",
        goes_on: false,
        who: Kind::is_rust,
        matches: |place, others, rust| {
            let registers = |step: &&Step| step.commands().contains(&Command::Looper(Looper::Register));
            let reads = |proc: usize| proc == place.step.proc || rust.contains(&format!("| p{proc}.t"));
            let asks = rust.contains("SPAWN_LOOPER") && !others.contains("SPAWN_LOOPER");
            asks && place.until_now().filter(registers).any(|step| reads(step.proc))
        },
    },
    Known {
        item: "TX-21",
        reason: "the Rust driver has other errnos in the extended error, and none for dead and frozen targets",
        goes_on: true,
        who: Kind::is_rust,
        matches: |place, _, _| place.step.action == Action::ExtendedError,
    },
    Known {
        item: "OW-11",
        reason: "PENDING_FROZEN stops the write of the Rust driver",
        goes_on: false,
        who: Kind::is_rust,
        matches: |place, others, rust| {
            let is_pending = |outcome: &str| outcome.contains("PENDING_FROZEN");
            (is_pending(others) || is_pending(rust)) && place.step.commands().len() > 1
        },
    },
    Known {
        item: "FRZ-07",
        reason: "the Rust driver repeats no state, and refuses a cookie that another node has",
        goes_on: false,
        who: Kind::is_rust,
        matches: |place, others, rust| {
            let watches = |command: &Command| matches!(command, Command::Watch { freeze: true, .. });
            let refused = rust.starts_with("EINVAL") && place.any(watches);
            refused || others.contains("FROZEN_BINDER") != rust.contains("FROZEN_BINDER")
        },
    },
    Known {
        item: "ID-02",
        reason: "the C driver names no process for a call whose thread exited; the others keep the pid",
        goes_on: true,
        who: Kind::is_not_c,
        matches: |_, others, kept| {
            let has_named = |name: usize| kept.replace(&format!("from=p{name} "), "from=- ") == others;
            (0..PROCS).any(has_named)
        },
    },
    Known {
        item: "EXT-01",
        reason: "on the Rust driver nobody can call back into a process by a call whose thread exited",
        goes_on: false,
        who: Kind::is_rust,
        matches: |place, others, rust| {
            let lost = others.contains("TRANSACTION(") && matches!(rust, "EAGAIN" | "waits");
            let fails = rust.contains("DEAD_REPLY") && !others.contains("DEAD_REPLY");
            let left_a_call =
                |at: usize| place.step_at(at).action == Action::ThreadExit && place.has_called(at, true);
            (lost || fails) && (0..place.number).any(left_a_call)
        },
    },
    Known {
        item: "POL-01",
        reason: "the Rust driver calls a thread readable for a released node whose holder was not acknowledged",
        goes_on: true,
        who: Kind::is_rust,
        matches: |place, others, rust| {
            let releases =
                |command: &Command| matches!(command, Command::Free(_) | Command::Count { up: false, .. });
            let polls = place.step.action == Action::Poll && others == "readable=0" && rust == "readable=1";
            polls && place.before().flat_map(Step::commands).any(releases)
        },
    },
    Known {
        item: "TX-15",
        reason: "the Rust driver takes a call of a thread with an unread reply, so that its target is busy",
        goes_on: false,
        who: Kind::is_rust,
        matches: |place, others, rust| {
            let freezes = matches!(place.step.action, Action::Freeze(_, true));
            freezes && others == "ok" && rust == "EAGAIN" && (0..place.number).any(|at| place.calls_again(at))
        },
    },
    Known {
        item: "FRZ-03",
        reason: "on the embedded driver a process is busy that has not read the failure of its call",
        goes_on: false,
        who: Kind::is_embedded,
        matches: |place, others, embedded| {
            let Action::Freeze(proc, true) = place.step.action else { return false };
            let calls = |step: &Step| step.proc == proc && step.commands().iter().any(is_two_way);
            others == "ok" && embedded == "EAGAIN" && place.before().any(calls)
        },
    },
    Known {
        item: "TX-13",
        reason: "the embedded driver refuses a second call before it looks whether the target is dead",
        goes_on: false,
        who: Kind::is_embedded,
        matches: |place, others, embedded| {
            let own = |at: &usize| {
                let step = place.step_at(*at);
                (step.proc, step.thread) == (place.step.proc, place.step.thread)
            };
            let again = (0..=place.number).filter(own).any(|at| place.calls_again(at));
            again && others.contains("DEAD_REPLY") && others.replace("DEAD_REPLY", "FAILED_REPLY") == embedded
        },
    },
    Known {
        item: "LP-08",
        reason: "on the embedded driver a call and a oneway call of two threads may be read in either order",
        goes_on: false,
        who: Kind::is_embedded,
        matches: |place, others, embedded| match [others, embedded].map(|outcome| place.sender_of(outcome)) {
            [Some((one, oneway)), Some((other, other_oneway))] => one != other && oneway != other_oneway,
            _ => false,
        },
    },
    Known {
        item: "REF-10",
        reason: "on the embedded driver a reply and a free in one write are done before the caller wakes",
        goes_on: false,
        who: Kind::is_embedded,
        matches: |place, others, embedded| {
            let replies = place.any(|command| matches!(command, Command::Transaction(None, _)));
            let frees = place.any(|command| matches!(command, Command::Free(_)));
            replies && frees && others.contains(" | ") && without_notices(others) == embedded
        },
    },
    Known {
        item: "TX-18",
        reason: "the Rust driver goes on with the write behind a reply to a thread that exited",
        goes_on: false,
        who: Kind::is_rust,
        matches: |place, others, rust| {
            let replies = |command: &Command| matches!(command, Command::Transaction(None, _));
            let stops = others.contains(" taken=") && !rust.contains(" taken=");
            stops && place.any(replies) && place.before().any(|step| step.action == Action::ThreadExit)
        },
    },
    Known {
        item: "TX-19",
        reason: "on the Rust driver the failure of a chain comes before the acknowledgement of the reply that ends it",
        goes_on: false,
        who: Kind::is_rust,
        matches: |_, others, rust| others.replace("COMPLETE DEAD_REPLY", "DEAD_REPLY COMPLETE") == rust,
    },
    Known {
        item: "REF-15",
        reason: "of two threads that send a node strongly the Rust driver notifies the first, others the second",
        goes_on: false,
        who: Kind::is_rust,
        matches: |_, others, rust| {
            let has_strong = |outcome: &str| outcome.contains("ACQUIRE(");
            has_strong(rust) && !has_strong(others) && without_notices(others) == without_notices(rust)
        },
    },
    Known {
        item: "TX-19",
        reason: "a chain's first caller learns of a death at once on the embedded driver",
        goes_on: false,
        who: Kind::is_embedded,
        matches: |place, others, embedded| {
            // The one that died is in the middle of a chain: it had called on.
            let ends = |at: &usize| matches!(place.step_at(*at).action, Action::Close | Action::Kill);
            let breaks = (0..=place.number).filter(ends).any(|at| place.has_called(at, false));
            breaks && embedded.contains("DEAD_REPLY") && !others.contains("DEAD_REPLY")
        },
    },
];

/// The one fault that is known.
static KEPT_NODE: Known = Known {
    item: "REF-16",
    reason: "the C driver keeps a node whose owner closed in the middle of a call to it",
    goes_on: false,
    who: |kind| kind == Kind::C,
    matches: |_, _, c| is_kept_node(c),
};

/// Whether nothing is left behind but nodes with a negative count.
fn is_kept_node(outcome: &str) -> bool {
    outcome.starts_with("left behind: node ") && !outcome.contains(", ") && outcome.contains(" ls -")
}

/// Why the faults that drivers have are known, if each is.
pub(crate) fn fault(names: &[String], outcomes: &[String]) -> Option<&'static Known> {
    let is_known = |(name, outcome): (&String, &String)| {
        outcome.is_empty() || (KEPT_NODE.who)(Kind::of_name(name)) && is_kept_node(outcome)
    };
    names.iter().zip(outcomes).all(is_known).then_some(&KEPT_NODE)
}

/// A thread by its name in an outcome, such as `p1.t0`.
struct Who(usize, usize);

impl std::str::FromStr for Who {
    type Err = ();

    fn from_str(name: &str) -> Result<Self, ()> {
        let (proc, thread) = name.split_once('.').ok_or(())?;
        let number = |word: &str, letter| word.strip_prefix(letter)?.parse().ok();
        Ok(Self(number(proc, 'p').ok_or(())?, number(thread, 't').ok_or(())?))
    }
}

/// Whether a command is a call with a reply.
fn is_two_way(command: &Command) -> bool {
    matches!(command, Command::Transaction(Some(_), what) if what.flags & tf::ONE_WAY == 0)
}

/// An outcome without the notices to the owner of a node that somebody holds it.
fn without_notices(outcome: &str) -> String {
    let is_notice = |word: &&str| word.starts_with("ACQUIRE(") || word.starts_with("INCREFS(");
    outcome.split(' ').filter(|word| !is_notice(word)).collect::<Vec<_>>().join(" ")
}

/// A step and those before it.
pub(crate) struct Place<'p> {
    pub(crate) program: &'p Program,
    pub(crate) number: usize,
    pub(crate) step: &'p Step,
    /// How many commands of a step were taken, of those that were not taken wholly.
    pub(crate) taken: &'p BTreeMap<usize, usize>,
}

impl Place<'_> {
    fn read(&self) -> Option<Read> {
        match self.step.action {
            Action::Exchange(_, read) => read,
            _ => None,
        }
    }

    fn any(&self, is_so: impl Fn(&Command) -> bool) -> bool {
        self.step.commands().iter().any(is_so)
    }

    fn transactions(&self) -> impl Iterator<Item = &Transaction> {
        self.step.transactions()
    }

    /// Whether this thread has sent a call or reply with a wrong size or offset.
    fn thread_sent_malformed(&self) -> bool {
        let wrong = |what: &Transaction| what.cut != 0 || what.clip != 0 || what.short != 0 || what.skew != 0;
        let own = |step: &&Step| (step.proc, step.thread) == (self.step.proc, self.step.thread);
        let own = self.until_now().filter(own);
        own.flat_map(Step::transactions).any(wrong)
    }

    fn step_at(&self, at: usize) -> &Step {
        &self.program.steps[at]
    }

    /// Whether the process of the step at `at` has sent a call with a reply before; if `same_thread`, that thread.
    fn has_called(&self, at: usize, same_thread: bool) -> bool {
        let of = self.step_at(at);
        let own = |step: &&Step| step.proc == of.proc && (!same_thread || step.thread == of.thread);
        self.program.steps[..at].iter().filter(own).flat_map(Step::commands).any(is_two_way)
    }

    /// Thread and kind, oneway or not, of the call whose delivery an outcome is.
    fn sender_of(&self, outcome: &str) -> Option<((usize, usize), bool)> {
        let rest = outcome.split_once("TRANSACTION(")?.1;
        let code: u32 = rest.split(' ').find_map(|word| word.strip_prefix("code="))?.parse().ok()?;
        let sent = self.before().flat_map(|step| step.transactions().map(move |what| (step, what)));
        let (step, what) = sent.into_iter().find(|(_, what)| what.code == code)?;
        Some(((step.proc, step.thread), what.flags & tf::ONE_WAY != 0))
    }

    /// Whether the thread of the step at `at` sends a call with a reply there, and has sent one before.
    fn calls_again(&self, at: usize) -> bool {
        self.step_at(at).commands().iter().any(is_two_way) && self.has_called(at, true)
    }

    fn until_now(&self) -> impl Iterator<Item = &Step> {
        self.program.steps[..=self.number].iter()
    }

    fn before(&self) -> impl Iterator<Item = &Step> {
        self.program.steps[..self.number].iter()
    }

    /// Whether a thread has joined the pool and not left it, as far as its commands say.
    fn is_in_pool(&self, proc: usize, thread: usize) -> bool {
        let mut joined = false;
        for (number, step) in self.program.steps[..=self.number].iter().enumerate() {
            if step.proc != proc {
                continue;
            }
            match &step.action {
                Action::Open(_) | Action::Close | Action::Kill => joined = false,
                _ if step.thread != thread => {}
                Action::ThreadExit => joined = false,
                Action::Exchange(commands, _) => {
                    let taken = self.taken.get(&number).copied().unwrap_or(commands.len());
                    for command in commands.iter().take(taken) {
                        match command {
                            Command::Looper(Looper::Enter | Looper::Register) => joined = true,
                            Command::Looper(Looper::Exit) => joined = false,
                            _ => {}
                        }
                    }
                }
                _ => {}
            }
        }
        joined
    }
}

/// The known differences that explain why these outcomes differ: each driver is compared with the first C driver, or with
/// the first one. `None` if one of them is not explained.
pub(crate) fn find(names: &[String], place: &Place<'_>, outcomes: &[String]) -> Option<Vec<&'static Known>> {
    let kinds: Vec<Kind> = names.iter().map(|name| Kind::of_name(name)).collect();
    let base = kinds.iter().position(|kind| *kind == Kind::C).unwrap_or(0);
    let explains = |known: &Known, other: usize| match [base, other].map(|driver| (known.who)(kinds[driver]))
    {
        [false, true] => (known.matches)(place, &outcomes[base], &outcomes[other]),
        [true, false] => (known.matches)(place, &outcomes[other], &outcomes[base]),
        _ => false,
    };
    let differ = (0..outcomes.len()).filter(|other| outcomes[*other] != outcomes[base]);
    differ.map(|other| ALL.iter().find(|known| explains(known, other))).collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::compare::first;
    use crate::program::Program;
    use crate::transcript::{Line, Transcript};

    /// The item of the first difference of a program's last step.
    fn item(names: [&str; 2], program: &str, outcomes: [&str; 2]) -> Option<&'static str> {
        let program: Program = program.parse().expect("a program");
        let step = program.steps.len() - 1;
        let transcripts = outcomes.map(|text| Transcript {
            lines: vec![Line { step, thread: None, text: text.to_owned() }],
            ..Transcript::default()
        });
        let (found, passed) = first(&names.map(str::to_owned), &program, &transcripts.each_ref());
        passed.first().copied().or_else(|| found.expect("they differ").known).map(|known| known.item)
    }

    #[test]
    fn a_known_difference_is_one_of_the_rust_driver_only() {
        let program = "p0.t0 open 4096\np0.t0 read";
        let outcomes = ["ok NOOP COMPLETE", "EAGAIN"];
        assert_eq!(item(["kernel:c", "kernel:rust"], program, outcomes), Some("LP-07"));
        assert_eq!(item(["kernel:c", "embedded"], program, outcomes), None);
        assert_eq!(item(["kernel:c", "kernel:rust"], program, ["EAGAIN", "ok NOOP COMPLETE"]), None);
        let asked = "p0.t0 open 4096\np0.t0 node-info 2";
        let counts = |weak| ["strong=2 weak=0", weak];
        assert_eq!(item(["kernel:c", "kernel:rust"], asked, counts("strong=2 weak=1")), Some("IOC-04"));
        assert_eq!(item(["kernel:c", "kernel:rust"], asked, counts("strong=1 weak=1")), None);
        let joined = "p0.t0 open 4096\np0.t0 enter\np0.t0 read";
        assert_eq!(item(["kernel:c", "kernel:rust"], joined, outcomes), None);
    }

    #[test]
    fn a_malformed_call_alone_may_fail_in_another_way() {
        let outcomes = ["ok taken=0 NOOP DEAD_REPLY", "ok taken=0 NOOP FAILED_REPLY"];
        for (call, known) in [("call 1 clip=4 [node 2]", Some("TX-09")), ("call 1 [node 2]", None)] {
            let program = format!("p0.t0 open 4096\np0.t0 {call}\np0.t0 enter; read");
            assert_eq!(item(["embedded", "kernel:rust"], &program, outcomes), known, "{call}");
        }
    }

    #[test]
    fn what_an_exited_thread_changes_is_known_of_one_driver_each() {
        let exited = "p0.t0 open 4096\np0.t0 call 0 code=1\np0.t0 thread-exit\np0.t0 enter; read";
        let stayed = "p0.t0 open 4096\np0.t0 call 0 code=1\np0.t0 enter; read";
        for (name, outcomes, known) in [
            ("kernel:rust", ["ok NOOP TRANSACTION(node=1,101 code=1)", "EAGAIN"], "EXT-01"),
            ("kernel:rust", ["EAGAIN", "ok NOOP DEAD_REPLY"], "EXT-01"),
        ] {
            assert_eq!(item(["kernel:c", name], exited, outcomes), Some(known), "{outcomes:?}");
            assert_eq!(item(["kernel:c", name], stayed, outcomes), None, "{outcomes:?}");
            assert_eq!(item([name, "kernel:c"], exited, outcomes), None, "{outcomes:?}");
        }
    }

    #[test]
    fn what_a_child_and_another_program_inherit_is_known_of_each_driver() {
        let forked = "p0.t0 open 4096\np0.t0 fork node-info 0";
        let (fine, none) = ("strong=1 weak=0", "nothing to inherit");
        assert_eq!(item(["kernel:c", "kernel:rust"], forked, [fine, "EINVAL"]), Some("OPN-11"));
        assert_eq!(item(["embedded", "kernel:rust"], forked, [none, "EINVAL"]), Some("OPN-11"));
        assert_eq!(item(["kernel:c", "embedded"], forked, [fine, none]), Some("OPN-11"));
        assert_eq!(item(["kernel:c", "kernel:rust"], forked, [fine, "strong=7 weak=0"]), None);
        assert_eq!(
            item(["kernel:c", "kernel:rust"], "p0.t0 open 4096\np0.t0 node-info 0", [fine, "EINVAL"]),
            None
        );
        let names = ["kernel:c", "embedded"];
        assert_eq!(item(names, "p0.t0 open 4096\np0.t0 exec", ["ok", "ok, closed"]), Some("OPN-05"));
        assert_eq!(item(names, "p0.t0 open 4096\np0.t0 close", ["ok", "ok, closed"]), None);
        let called = "p1.t0 open 4096\np1.t0 exec\np0.t0 call 1 code=1; read";
        let outcomes = ["ok NOOP DEAD_REPLY", "ok NOOP FAILED_REPLY"];
        assert_eq!(item(["kernel:c", "kernel:rust"], called, outcomes), Some("OPN-10"));
        assert_eq!(
            item(["kernel:c", "kernel:rust"], "p1.t0 open 4096\np0.t0 call 1 code=1; read", outcomes),
            None
        );
    }

    #[test]
    fn what_the_rust_driver_takes_otherwise_is_known() {
        let names = ["embedded", "kernel:rust"];
        let info = "p0.t0 open 4096\np0.t0 node-info 7";
        assert_eq!(item(names, info, ["EINVAL", "ENOENT"]), Some("IOC-04"));
        assert_eq!(item(names, info, ["EINVAL", "EFAULT"]), None);
        let asked = ["ok NOOP TRANSACTION(code=1)", "ok SPAWN_LOOPER TRANSACTION(code=1)"];
        assert_eq!(item(names, "p0.t0 open 4096\np0.t0 enter; register\np0.t0 read", asked), Some("LP-03"));
        assert_eq!(item(names, "p0.t0 open 4096\np0.t0 enter\np0.t0 read", asked), None);
        let replied = "p0.t0 open 4096\np0.t0 reply code=1 [buf 3, fds 0 in 0 at 0]\np1.t0 read";
        assert_eq!(item(names, replied, ["ok NOOP REPLY(code=1)", "ok NOOP FAILED_REPLY"]), Some("OBJ-19"));
        let called = "p1.t0 open 4096\np1.t0 call 0 code=1 [buf 35, fds 0 in 0 at 0]\np0.t0 enter; read";
        let call = "ok NOOP TRANSACTION(node=0,0 code=1 [buf 35, fds 0])";
        assert_eq!(item(names, called, [call, "EAGAIN"]), Some("OBJ-19"));
        let pending = "p0.t0 open 4096\np0.t0 call 1 code=1 flags=0x1; watch-freeze 0 2; read";
        let outcomes = ["EINVAL taken=1", "ok taken=1 NOOP PENDING_FROZEN"];
        assert_eq!(item(names, pending, outcomes), Some("OW-11"));
        let waits = "p0.t0 open 4096\np0.t0 enter\np0.t1 wait\np0.t0 read";
        let asked = ["ok NOOP COMPLETE", "ok SPAWN_LOOPER COMPLETE"];
        assert_eq!(item(names, waits, asked), Some("LP-07"));
        assert_eq!(item(names, &waits.replace("t1 wait", "t1 enter; wait"), asked), None);
        let polled = "p0.t0 open 4096\np1.t0 free 0\np0.t0 enter\np0.t0 poll";
        assert_eq!(item(names, polled, ["readable=0", "readable=1"]), Some("POL-01"));
        assert_eq!(item(names, polled, ["readable=1", "readable=0"]), None);
        assert_eq!(item(names, &polled.replace("free 0", "version"), ["readable=0", "readable=1"]), None);
        let sent = "p0.t0 open 4096\np0.t1 enter; read";
        let notice = ["ok NOOP COMPLETE REPLY(code=15)", "ok NOOP ACQUIRE(3,103) COMPLETE REPLY(code=15)"];
        assert_eq!(item(names, sent, notice), Some("REF-15"));
        assert_eq!(item(names, sent, [notice[0], "ok NOOP ACQUIRE(3,103) COMPLETE"]), None);
        let chain = ["ok NOOP COMPLETE DEAD_REPLY", "ok NOOP DEAD_REPLY COMPLETE"];
        assert_eq!(item(names, sent, chain), Some("TX-19"));
        let gone = "p0.t0 open 4096\np1.t0 thread-exit\np0.t0 reply code=1; free 0; read";
        let on = ["ok taken=1 NOOP COMPLETE", "ok NOOP COMPLETE"];
        assert_eq!(item(names, gone, on), Some("TX-18"));
        assert_eq!(item(names, &gone.replace("thread-exit", "version"), on), None);
    }

    #[test]
    fn corners_of_the_embedded_driver_are_known_only_there() {
        let names = ["kernel:c", "embedded"];
        let called = "p1.t0 open 4096\np1.t0 call 0 code=1\np1.t0 call 0 code=2; read";
        let dead = ["ok NOOP COMPLETE DEAD_REPLY", "ok NOOP COMPLETE FAILED_REPLY"];
        assert_eq!(item(names, called, dead), Some("TX-13"));
        assert_eq!(item(names, &called.replace("code=1", "code=1 flags=0x1"), dead), None);
        let frozen = "p1.t0 open 4096\np1.t0 call 0 code=1\np0.t0 freeze p1";
        assert_eq!(item(names, frozen, ["ok", "EAGAIN"]), Some("FRZ-03"));
        assert_eq!(item(names, frozen, ["EAGAIN", "ok"]), None);
        assert_eq!(item(names, &frozen.replace("freeze p1", "freeze p0"), ["ok", "EAGAIN"]), None);
        let twice = "p1.t0 open 4096\np1.t0 call 0 code=1\np1.t0 call 0 code=2\np0.t0 freeze p2";
        assert_eq!(item(["kernel:c", "kernel:rust"], twice, ["ok", "EAGAIN"]), Some("TX-15"));
        assert_eq!(item(["kernel:c", "kernel:rust"], frozen, ["ok", "EAGAIN"]), None);
        let sent = "p2.t0 open 4096\np0.t0 call 2 code=7\np1.t0 call 1 code=101 flags=0x1\np2.t0 read";
        let order = [7, 101].map(|code| format!("ok NOOP TRANSACTION(node=1,101 code={code} flags=0x0)"));
        let order = order.each_ref().map(String::as_str);
        assert_eq!(item(names, sent, order), Some("LP-08"));
        assert_eq!(item(names, &sent.replace("p1.t0 call", "p0.t0 call"), order), None, "of one thread");
        assert_eq!(item(names, &sent.replace(" flags=0x1", ""), order), None, "both by one way");
        let replied = "p1.t0 open 4096\np1.t1 reply code=18; free 0; read";
        let outcomes = [
            "ok NOOP COMPLETE | p1.t0: ok NOOP INCREFS(3,103) COMPLETE",
            "ok NOOP COMPLETE | p1.t0: ok NOOP COMPLETE",
        ];
        assert_eq!(item(names, replied, outcomes), Some("REF-10"));
        assert_eq!(item(names, &replied.replace("; free 0", ""), outcomes), None);
    }

    #[test]
    fn a_node_that_the_c_driver_keeps_is_known_and_no_other_fault() {
        let program: Program = "p0.t0 open 4096\np0.t0 schedule 7".parse().expect("a program");
        let known = |name: &str, text: &str| {
            let lines = vec![Line { step: 1, thread: None, text: text.to_owned() }];
            let transcripts = [Transcript { lines, ..Transcript::default() }, Transcript::default()];
            let names = [name.to_owned(), "embedded".to_owned()];
            let found = first(&names, &program, &transcripts.each_ref()).0.expect("a fault");
            found.known.map(|known| known.item)
        };
        let kept = "left behind: node 1 (hs 1 hw 1 ls -1 lw 0 is 0 iw 0 tr 1)";
        assert_eq!(known("kernel:c", kept), Some("REF-16"));
        for (name, text) in [
            ("kernel:rust", kept),
            ("kernel:c", "left behind: node 1 (hs 1 hw 1 ls 1 lw 0 is 0 iw 0 tr 1)"),
            ("kernel:c", "left behind: node 1, ref 1 (hs 1 hw 1 ls -1 lw 0 is 0 iw 1 tr 1)"),
            ("kernel:c", "the driver keeps a process"),
        ] {
            assert_eq!(known(name, text), None, "{name}: {text}");
        }
    }

    #[test]
    fn a_death_is_early_news_only_within_a_chain() {
        let outcomes = ["EAGAIN", "ok NOOP DEAD_REPLY"];
        for (called, known) in [("call 0 code=1", Some("TX-19")), ("call 0 code=1 flags=0x1", None)] {
            let program = format!("p1.t0 open 4096\np1.t0 {called}\np1.t0 kill\np0.t0 read");
            assert_eq!(item(["kernel:c", "embedded"], &program, outcomes), known, "{called}");
        }
    }

    #[test]
    fn each_driver_is_explained_alone() {
        let program = "p0.t0 open 4096\np0.t0 read";
        let call = |from: &str| format!("ok TRANSACTION(node=1,101 code=1 flags=0x11 from={from} uid=own)");
        let (nobody, kept) = (call("-"), call("p1"));
        let texts = [nobody.as_str(), kept.as_str()];
        assert_eq!(item(["kernel:c", "embedded"], program, texts), Some("ID-02"));
        assert_eq!(item(["kernel:rust", "kernel:c"], program, [texts[1], texts[0]]), Some("ID-02"));
        assert_eq!(item(["embedded", "kernel:c"], program, texts), None, "the other way round");
        assert_eq!(item(["embedded", "kernel:rust"], program, texts), None, "neither does it");
        let other = call("?");
        assert_eq!(item(["kernel:c", "embedded"], program, [&nobody, &other]), None);

        let names = ["kernel:c", "kernel:rust", "embedded"].map(str::to_owned);
        let program: Program = program.parse().expect("a program");
        let place = Place { program: &program, number: 1, step: &program.steps[1], taken: &BTreeMap::new() };
        let items = |outcomes: [&str; 3]| {
            let found = find(&names, &place, &outcomes.map(str::to_owned))?;
            Some(found.into_iter().map(|known| known.item).collect::<Vec<_>>())
        };
        assert_eq!(items([&nobody, "EAGAIN", &kept]), Some(vec!["LP-07", "ID-02"]));
        assert_eq!(items([&nobody, "EAGAIN", &other]), None, "one of them is new");
    }

    #[test]
    fn each_rule_has_an_item_of_the_contract() {
        let folder = concat!(env!("CARGO_MANIFEST_DIR"), "/../../contract");
        let pages = std::fs::read_dir(folder).expect("the contract");
        let text: String =
            pages.map(|page| std::fs::read_to_string(page.expect("a page").path()).expect("text")).collect();
        for known in ALL {
            assert!(text.contains(&format!("## {}: ", known.item)), "{}", known.item);
        }
    }
}
