//! How much CPU time a test, other programs and the hypervisor took meanwhile, and when that spoils the test.
//! Not here: the finding (`doctor`), repeating the test (`bench::suite`).
//! Facts: `proc(5)` (`/proc/stat`, `/proc/PID/stat`: ticks of `USER_HZ`), `Documentation/accounting/psi.rst`.

use std::collections::{BTreeMap, BTreeSet};
use std::time::Instant;

use driver::Root;

/// Others disturb a test that loses more than this share of the machine's CPU time to them.
pub const MOST_OTHERS: f64 = 0.20;
/// The hypervisor disturbs a test that loses more than this share of the machine's CPU time to it.
pub const MOST_STOLEN: f64 = 0.02;
/// Fewer ticks in all are too few to tell shares: one second of one CPU.
const LEAST_TICKS: u64 = 100;

/// Counters of CPU time at one moment, in ticks.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Load {
    at: Instant,
    all: u64,
    /// Time of processes; interrupts belong to nobody.
    busy: u64,
    stolen: u64,
    /// Time of this process, its descendants and its brokers.
    own: u64,
    /// Time in which some thread waited for a CPU, in microseconds; `None` where the kernel does not count it.
    waited_us: Option<u64>,
}

/// Shares of the machine's CPU time over a test, 0 to 1.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct Shares {
    /// Share of the test itself.
    pub own: f64,
    /// Share of other processes.
    pub others: f64,
    /// Share that the hypervisor gave to other machines.
    pub stolen: f64,
    /// Share of the time in which some thread waited for a CPU; `None` where the kernel does not count it.
    pub waited: Option<f64>,
}

impl Load {
    /// Reads the counters. `brokers` are processes of the test that are no descendants of this one. `None` without
    /// `/proc`.
    #[must_use]
    pub fn now(brokers: &[u32]) -> Option<Self> {
        let root = Root::of_this_machine();
        let (all, busy, stolen) = machine(&root.text("proc/stat")?)?;
        let own = own(&processes(), std::process::id(), brokers)?;
        let waited_us = root.text("proc/pressure/cpu").as_deref().and_then(waited);
        Some(Self { at: Instant::now(), all, busy, stolen, own, waited_us })
    }

    /// The shares from then until now; `None` after too short a time.
    #[must_use]
    pub fn until_now(self, brokers: &[u32]) -> Option<Shares> {
        self.until(Self::now(brokers)?)
    }

    fn until(self, end: Self) -> Option<Shares> {
        let all = end.all.saturating_sub(self.all);
        if all < LEAST_TICKS {
            return None;
        }
        let of_all = |ticks: u64| (ticks as f64 / all as f64).min(1.0);
        let own = end.own.saturating_sub(self.own);
        let busy = end.busy.saturating_sub(self.busy);
        let passed_us = end.at.duration_since(self.at).as_micros() as f64;
        let waited = self.waited_us.zip(end.waited_us);
        Some(Shares {
            own: of_all(own),
            others: of_all(busy.saturating_sub(own)),
            stolen: of_all(end.stolen.saturating_sub(self.stolen)),
            waited: waited.map(|(from, to)| (to.saturating_sub(from) as f64 / passed_us).min(1.0)),
        })
    }
}

impl Shares {
    /// Whether the test is spoiled: others took more than [`MOST_OTHERS`], or the hypervisor more than [`MOST_STOLEN`].
    #[must_use]
    pub fn is_spoiled(&self) -> bool {
        self.others > MOST_OTHERS || self.stolen > MOST_STOLEN
    }
}

/// All time, that of processes, and the stolen part, from `/proc/stat`.
fn machine(stat: &str) -> Option<(u64, u64, u64)> {
    let (all, stolen) = super::parse::total_and_stolen(stat)?;
    let line = stat.lines().find_map(|line| line.strip_prefix("cpu "))?;
    // user, nice, system.
    let busy = line.split_whitespace().take(3).filter_map(|word| word.parse::<u64>().ok());
    Some((all, busy.fold(0, u64::saturating_add), stolen))
}

/// Total time in which some thread waited for a CPU.
fn waited(pressure: &str) -> Option<u64> {
    let line = pressure.lines().find(|line| line.starts_with("some "))?;
    line.split(' ').find_map(|word| word.strip_prefix("total="))?.trim().parse().ok()
}

/// Parent of a process, and ticks of it and of the children that it has waited for.
type Process = (u32, u64);

fn processes() -> BTreeMap<u32, Process> {
    let entries = std::fs::read_dir("/proc").into_iter().flatten().flatten();
    let pids = entries.filter_map(|entry| entry.file_name().to_str()?.parse::<u32>().ok());
    // One that ended meanwhile is counted by its parent.
    let read = |pid| process(&std::fs::read_to_string(format!("/proc/{pid}/stat")).ok()?);
    pids.filter_map(|pid| Some((pid, read(pid)?))).collect()
}

fn process(stat: &str) -> Option<Process> {
    // A name may contain anything, parentheses too.
    let fields: Vec<&str> = stat.rsplit_once(')')?.1.split_whitespace().collect();
    let number = |at: usize| fields.get(at)?.parse::<u64>().ok();
    let ticks = [11, 12, 13, 14].into_iter().map(number).sum::<Option<u64>>()?;
    Some((u32::try_from(number(1)?).ok()?, ticks))
}

/// Ticks of a process, its descendants and these brokers; `None` if the process is not there.
fn own(processes: &BTreeMap<u32, Process>, root: u32, brokers: &[u32]) -> Option<u64> {
    processes.get(&root)?;
    let mut family: BTreeSet<u32> = brokers.iter().copied().chain([root]).collect();
    loop {
        let is_child = |(pid, (parent, _)): (&u32, &Process)| {
            (family.contains(parent) && !family.contains(pid)).then_some(*pid)
        };
        let children: Vec<u32> = processes.iter().filter_map(is_child).collect();
        if children.is_empty() {
            break;
        }
        family.extend(children);
    }
    let ticks = family.iter().filter_map(|pid| processes.get(pid));
    Some(ticks.map(|(_, ticks)| ticks).fold(0, |sum, ticks| sum.saturating_add(*ticks)))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_test_is_spoiled_beyond_each_limit_and_not_at_it() {
        let shares = |others, stolen| Shares { others, stolen, ..Shares::default() };
        for (others, stolen, spoiled) in [
            (0.0, 0.0, false),
            (MOST_OTHERS, MOST_STOLEN, false),
            (MOST_OTHERS + 0.001, 0.0, true),
            (0.0, MOST_STOLEN + 0.001, true),
        ] {
            assert_eq!(shares(others, stolen).is_spoiled(), spoiled, "{others} {stolen}");
        }
        let own = Shares { own: 1.0, waited: Some(1.0), ..Shares::default() };
        assert!(!own.is_spoiled(), "its own work disturbs no test");
    }

    #[test]
    fn what_is_not_our_own_is_that_of_others() {
        let at = Instant::now();
        let start = Load { at, all: 1000, busy: 500, stolen: 7, own: 100, waited_us: None };
        let end = Load { all: 1400, busy: 700, stolen: 17, own: 200, ..start };
        let shares = start.until(end).expect("long enough");
        assert_eq!((shares.own, shares.others, shares.stolen), (0.25, 0.25, 0.025));
        assert_eq!(shares.waited, None);
        // Ticks are coarse: no share is negative.
        let shares = start.until(Load { own: 900, ..end }).expect("long enough");
        assert_eq!(shares.others, 0.0);
        assert_eq!(start.until(Load { all: 1000 + LEAST_TICKS - 1, ..end }), None);
    }

    #[test]
    fn a_family_has_descendants_and_brokers() {
        let stat = |parent: u32| format!("9 (a) b) S {parent} 1 1 0 -1 4 0 0 0 0 1 2 3 4 20 0 1 0 5");
        assert_eq!(process(&stat(8)), Some((8, 10)));
        assert_eq!(process("9 (a) S 8"), None);
        let processes: BTreeMap<u32, Process> =
            [(1, (0, 1000)), (5, (1, 1)), (6, (5, 10)), (7, (6, 100)), (8, (1, 5000)), (9, (1, 20_000))]
                .into();
        assert_eq!(own(&processes, 5, &[]), Some(111));
        assert_eq!(own(&processes, 5, &[8]), Some(5111));
        assert_eq!(own(&processes, 4, &[]), None);
    }

    #[test]
    fn this_machine_can_be_read() {
        let load = Load::now(&[]).expect("/proc");
        assert!(load.all >= load.busy);
        assert_eq!(waited("some avg10=0.00 avg60=0.10 avg300=0.00 total=1234\nfull total=9\n"), Some(1234));
        assert_eq!(machine("cpu  1 2 3 4 5 6 7 8 9 10\n"), Some((36, 6, 8)));
    }
}
