//! Deliberate faults, which let every verdict be seen failing; their typed form.
//! Not here: committing them (`service`, `caller`, `pairs`, `disturbance`).

use std::fmt;
use std::str::FromStr;

use serde::{Deserialize, Serialize};

/// Longest injected time, in us.
const LONGEST_US: u64 = 10_000_000;
/// Maximum number of timers; each takes a descriptor of the client.
const MOST_TIMERS: u32 = 10_000;

/// One fault. Typed `drop-inheritance`, `wrong-cpu`, `delay=US:P`, `lose-reply`, `stall-server=US`,
/// `kill-server`, `spin-caller`, `lock-server=US`, `monitor-server=US`, `chain-server=US`, `poll-server=US`,
/// `sync-server`, `busy-loopers=US`, `timers=N`, `timers=N:late`.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
pub enum Injected {
    /// Servers inherit no priority; a setting of the embedded driver only.
    DropInheritance,
    /// Client and server are confined to different CPUs.
    WrongCpu,
    /// The service computes before it replies: the deadline is missed while a thread runs.
    Delay {
        /// Duration, in us.
        us: u64,
        /// Share of the calls: 0 for none, 1 for all.
        share: f64,
    },
    /// The first pair's service never answers one of its calls.
    LoseReply,
    /// The service sleeps before it replies: a latency bubble.
    StallServer {
        /// Duration, in us.
        us: u64,
    },
    /// The first pair's server dies by a signal while it serves a call.
    KillServer,
    /// The first pair's real-time caller computes endlessly.
    SpinCaller,
    /// Another thread of the server repeatedly holds a lock that the service takes.
    LockServer {
        /// Duration, in us.
        us: u64,
    },
    /// The same, with the slice that Android's runtime writes when a thread waits for a monitor.
    MonitorServer {
        /// Duration, in us.
        us: u64,
    },
    /// The service's lock is held by a thread that waits for the lock of a third one.
    ChainServer {
        /// Duration for which the third holds its own, in us.
        us: u64,
    },
    /// The service waits for events that never come, as an event loop does.
    PollServer {
        /// Time until it gives up, in us; the kernel rounds it up to milliseconds.
        us: u64,
    },
    /// The service writes to a file and waits for the disk, for 2 ms in all.
    SyncServer,
    /// Another client's calls repeatedly occupy the server's only looper.
    BusyLoopers {
        /// Duration, in us.
        us: u64,
    },
    /// Timers expire simultaneously on the caller's CPU during its call.
    Timers {
        /// Number of timers.
        count: u32,
        /// They expire after the call: the effect of arming on the caller, without the interrupts.
        late: bool,
    },
}

impl Injected {
    /// Typed forms of the faults.
    pub const WORDS: &'static str = "drop-inheritance, wrong-cpu, delay=US:P, lose-reply, stall-server=US, kill-server, spin-caller, lock-server=US, \
         monitor-server=US, chain-server=US, poll-server=US, sync-server, busy-loopers=US, timers=N[:late]";

    /// Returns true if only the first pair has the fault.
    pub(super) fn is_of_one_pair(self) -> bool {
        matches!(self, Self::LoseReply | Self::KillServer | Self::SpinCaller)
    }
}

fn microseconds(text: &str) -> Result<u64, String> {
    let us = text.parse().ok().filter(|us| *us <= LONGEST_US);
    us.ok_or_else(|| format!("{text:?} is no time in us from 0 to {LONGEST_US}"))
}

impl FromStr for Injected {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        let (kind, value) = text.split_once('=').map_or((text, None), |(kind, value)| (kind, Some(value)));
        match (kind, value) {
            ("drop-inheritance", None) => Ok(Self::DropInheritance),
            ("wrong-cpu", None) => Ok(Self::WrongCpu),
            ("lose-reply", None) => Ok(Self::LoseReply),
            ("kill-server", None) => Ok(Self::KillServer),
            ("spin-caller", None) => Ok(Self::SpinCaller),
            ("lock-server", Some(us)) => Ok(Self::LockServer { us: microseconds(us)? }),
            ("monitor-server", Some(us)) => Ok(Self::MonitorServer { us: microseconds(us)? }),
            ("chain-server", Some(us)) => Ok(Self::ChainServer { us: microseconds(us)? }),
            ("poll-server", Some(us)) => Ok(Self::PollServer { us: microseconds(us)? }),
            ("sync-server", None) => Ok(Self::SyncServer),
            ("busy-loopers", Some(us)) => Ok(Self::BusyLoopers { us: microseconds(us)? }),
            ("timers", Some(value)) => {
                let (count, late) = value.strip_suffix(":late").map_or((value, false), |count| (count, true));
                let most = MOST_TIMERS;
                let number = count.parse().ok().filter(|count| (1..=most).contains(count));
                let why = || format!("{count:?} is no number of timers from 1 to {most}");
                Ok(Self::Timers { count: number.ok_or_else(why)?, late })
            }
            ("stall-server", Some(us)) => Ok(Self::StallServer { us: microseconds(us)? }),
            ("delay", Some(value)) => {
                let (us, share) = value.split_once(':').unwrap_or((value, "1"));
                let share = share.parse().ok().filter(|share| (0.0..=1.0).contains(share));
                let share = share
                    .ok_or_else(|| format!("{value:?} has no probability from 0 to 1 behind its colon"))?;
                Ok(Self::Delay { us: microseconds(us)?, share })
            }
            _ => Err(format!("no fault {text:?}; there are {}", Self::WORDS)),
        }
    }
}

impl fmt::Display for Injected {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::DropInheritance => f.write_str("drop-inheritance"),
            Self::WrongCpu => f.write_str("wrong-cpu"),
            Self::Delay { us, share } => write!(f, "delay={us}:{share}"),
            Self::LoseReply => f.write_str("lose-reply"),
            Self::StallServer { us } => write!(f, "stall-server={us}"),
            Self::KillServer => f.write_str("kill-server"),
            Self::SpinCaller => f.write_str("spin-caller"),
            Self::LockServer { us } => write!(f, "lock-server={us}"),
            Self::MonitorServer { us } => write!(f, "monitor-server={us}"),
            Self::ChainServer { us } => write!(f, "chain-server={us}"),
            Self::PollServer { us } => write!(f, "poll-server={us}"),
            Self::SyncServer => f.write_str("sync-server"),
            Self::BusyLoopers { us } => write!(f, "busy-loopers={us}"),
            Self::Timers { count, late } => {
                write!(f, "timers={count}{}", if *late { ":late" } else { "" })
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn faults_read_back_as_typed() {
        let words = [
            "drop-inheritance",
            "wrong-cpu",
            "delay=500:0.25",
            "lose-reply",
            "stall-server=7000",
            "kill-server",
            "spin-caller",
            "lock-server=4000",
            "monitor-server=4000",
            "chain-server=4000",
            "poll-server=4000",
            "sync-server",
            "busy-loopers=4000",
            "timers=3000",
            "timers=3000:late",
        ];
        for word in words {
            assert_eq!(word.parse::<Injected>().expect(word).to_string(), word);
        }
        assert_eq!("delay=5".parse(), Ok(Injected::Delay { us: 5, share: 1.0 }));
    }

    #[test]
    fn nonsense_is_refused_with_what_there_is() {
        for bad in [
            "",
            "delay",
            "delay=",
            "delay=x:1",
            "delay=1:2",
            "delay=1:-1",
            "delay=1:nan",
            "stall-server",
            "stall-server=99999999999",
            "wrong-cpu=1",
            "lock-server",
            "monitor-server=-1",
            "chain-server",
            "poll-server=x",
            "sync-server=1",
            "busy-loopers=x",
            "timers=0",
            "timers=10001",
            "timers=9:later",
            "sleep",
        ] {
            assert!(bad.parse::<Injected>().is_err(), "{bad}");
        }
        assert!("sleep".parse::<Injected>().expect_err("unknown").contains("lose-reply"));
    }
}
