//! Differences between drivers that are known: which, why, and the contract's item.
//! Not here: finding differences (`compare`).
//!
//! A driver is the Rust one if its name in the list of drivers has `rust`.

use crate::program::{Action, Command, Looper, Object, Program, Read, Step};

/// A known difference.
#[derive(Debug)]
pub struct Known {
    /// The contract's item.
    pub item: &'static str,
    /// Why drivers differ.
    pub reason: &'static str,
    /// Whether they come together again, so that the rest of the program can be compared.
    pub goes_on: bool,
    /// The rule: the place, what the others gave, what the Rust driver gave.
    matches: fn(&Place<'_>, &str, &str) -> bool,
}

/// All known differences, each between the Rust driver and the others.
pub static ALL: &[Known] = &[
    Known {
        item: "WR-05",
        reason: "a thread's first read never blocks; the Rust driver has no such state",
        goes_on: true,
        matches: |_, others, rust| {
            let pairs = [("ok NOOP", "EAGAIN"), ("ok NOOP", "waits")];
            pairs.contains(&(others, rust)) || others == "readable=1" && rust == "readable=0"
        },
    },
    Known {
        item: "WR-08",
        reason: "the Rust driver returns at once from a read with less than 80 bytes of room",
        goes_on: true,
        matches: |place, others, rust| {
            let small = place.read().is_some_and(|read| read.room < 80);
            small && others == "EAGAIN" && (rust == "ok NOOP" || rust == "ok")
        },
    },
    Known {
        item: "IOC-08",
        reason: "the Rust driver freezes no process of a pid without binder, successfully",
        goes_on: true,
        matches: |place, others, rust| {
            let asks = matches!(place.step.action, Action::Freeze(..) | Action::FrozenInfo(_));
            asks && others == "EINVAL" && (rust == "ok" || rust == "sync=0 async=0")
        },
    },
    Known {
        item: "REF-14",
        reason: "the Rust driver gives node work of a thread that exited to the process",
        goes_on: false,
        matches: |place, _, rust| {
            let of_node = ["INCREFS", "ACQUIRE", "RELEASE", "DECREFS"].iter().any(|word| rust.contains(word));
            of_node && place.before().any(|step| step.action == Action::ThreadExit)
        },
    },
    Known {
        item: "LP-07",
        reason: "the Rust driver gives the process's work to no thread outside the pool",
        goes_on: false,
        matches: |place, others, rust| {
            let nothing = matches!(rust, "EAGAIN" | "waits" | "ok NOOP" | "readable=0");
            let own = nothing && !place.is_in_pool(place.step.proc, place.step.thread);
            // Or a thread that waited, and that the others woke.
            let woken = others.split(" | ").filter_map(|part| part.split_once(": ")?.0.parse::<Who>().ok());
            own || woken.into_iter().any(|Who(proc, thread)| !place.is_in_pool(proc, thread))
        },
    },
    Known {
        item: "OBJ-18",
        reason: "a buffer at data offset 0 can be a parent on the Rust driver",
        goes_on: false,
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
        matches: |place, _, rust| {
            let empty = |object: &Object| matches!(object, Object::Fds { count: 0, .. });
            rust.contains("FAILED_REPLY") && place.transactions().any(|what| what.objects.iter().any(empty))
        },
    },
    Known {
        item: "TX-21",
        reason: "the Rust driver has other errnos in the extended error, and none for dead and frozen targets",
        goes_on: true,
        matches: |place, _, _| place.step.action == Action::ExtendedError,
    },
    Known {
        item: "OW-11",
        reason: "PENDING_FROZEN stops the write of the Rust driver",
        goes_on: false,
        matches: |place, others, _| others.contains("PENDING_FROZEN") && place.commands() > 1,
    },
    Known {
        item: "FRZ-07",
        reason: "the Rust driver repeats no state, and refuses a cookie that another node has",
        goes_on: false,
        matches: |place, others, rust| {
            let watches = |command: &Command| matches!(command, Command::Watch { freeze: true, .. });
            let refused = rust.starts_with("EINVAL") && place.any(watches);
            refused || others.contains("FROZEN_BINDER") != rust.contains("FROZEN_BINDER")
        },
    },
];

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

/// A step and those before it.
pub(crate) struct Place<'p> {
    pub(crate) program: &'p Program,
    pub(crate) number: usize,
    pub(crate) step: &'p Step,
}

impl Place<'_> {
    fn exchange(&self) -> (&[Command], Option<Read>) {
        match &self.step.action {
            Action::Exchange(commands, read) => (commands, *read),
            _ => (&[], None),
        }
    }

    fn read(&self) -> Option<Read> {
        self.exchange().1
    }

    fn commands(&self) -> usize {
        self.exchange().0.len()
    }

    fn any(&self, is_so: impl Fn(&Command) -> bool) -> bool {
        self.exchange().0.iter().any(is_so)
    }

    fn transactions(&self) -> impl Iterator<Item = &crate::program::Transaction> {
        self.exchange().0.iter().filter_map(|command| match command {
            Command::Transaction(_, what) => Some(what),
            _ => None,
        })
    }

    fn before(&self) -> impl Iterator<Item = &Step> {
        self.program.steps[..self.number].iter()
    }

    /// Whether a thread has joined the pool and not left it, as far as its commands say.
    fn is_in_pool(&self, proc: usize, thread: usize) -> bool {
        let mut joined = false;
        for step in &self.program.steps[..=self.number] {
            if step.proc != proc {
                continue;
            }
            match &step.action {
                Action::Open(_) | Action::Close | Action::Kill => joined = false,
                _ if step.thread != thread => {}
                Action::ThreadExit => joined = false,
                Action::Exchange(commands, _) => {
                    for command in commands {
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

/// The known difference that this is.
pub(crate) fn find(names: &[String], place: &Place<'_>, outcomes: &[String]) -> Option<&'static Known> {
    let is_rust = |name: &String| name.contains("rust");
    let of = |wanted: bool| {
        names
            .iter()
            .zip(outcomes)
            .filter(move |(name, _)| is_rust(name) == wanted)
            .map(|(_, outcome)| outcome)
    };
    let (rust, other) = (of(true).next()?, of(false).next()?);
    // The others among themselves must agree: what differs there is another matter.
    let agree = of(true).all(|outcome| outcome == rust) && of(false).all(|outcome| outcome == other);
    ALL.iter().find(|known| agree && (known.matches)(place, other, rust))
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
            kernel: Vec::new(),
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
        let joined = "p0.t0 open 4096\np0.t0 enter\np0.t0 read";
        assert_eq!(item(["kernel:c", "kernel:rust"], joined, outcomes), None);
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
