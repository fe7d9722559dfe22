//! Growth between two dumps of one system: buffers, nodes, references, death notices, with the process and the peer.
//! Facts: contract DBG-02, DBG-05. A number that grows and never shrinks is a leak; two dumps show growth only.

use std::collections::{BTreeMap, HashMap, HashSet};

use super::bytes;
use crate::finding::{Finding, Grade, Kind};
use crate::system::{Dump, File, Place, Proc, System};

/// Growth that is worth a word: this many, and this share of what was there.
const LEAST: u64 = 32;
const LEAST_SHARE: f64 = 0.25;
const BETWEEN: &str = "between the two dumps";
/// Maximum number of findings of one sort.
const MOST: usize = 5;

pub(super) fn find(system: &System) -> Vec<Finding> {
    let mut found = Vec::new();
    if let Some((first, last)) = system.pair(File::State).filter(|(first, last)| same_system(first, last)) {
        found.extend(of_state(system, first, last));
    }
    if let Some((first, last)) = system.pair(File::Stats).filter(|(first, last)| same_system(first, last)) {
        let grown = found.iter().flat_map(|finding: &Finding| finding.pids.first().copied()).collect();
        found.extend(of_stats(system, first, last, &grown));
    }
    found
}

/// Whether most processes of the smaller dump are in both.
fn same_system(first: &Dump, last: &Dump) -> bool {
    let pids = |dump: &Dump| dump.procs.iter().map(|proc| proc.pid).collect::<HashSet<_>>();
    let (one, other) = (pids(first), pids(last));
    let both = one.intersection(&other).count();
    2 * both >= one.len().min(other.len()).max(1)
}

fn grew(before: u64, after: u64) -> Option<u64> {
    let more = after.checked_sub(before)?;
    (more >= LEAST && more as f64 >= LEAST_SHARE * before as f64).then_some(more)
}

/// Counts of a process in a dump.
#[derive(Default)]
struct Counts {
    at: Place,
    buffers: u64,
    bytes: u64,
    nodes: u64,
    deaths: u64,
}

/// Owners of nodes by number, and who they are.
fn owners(dump: &Dump) -> HashMap<i64, i32> {
    let of = |proc: &Proc| proc.nodes.iter().map(|node| (node.id, proc.pid)).collect::<Vec<_>>();
    dump.procs.iter().flat_map(of).collect()
}

fn counts(dump: &Dump) -> BTreeMap<i32, Counts> {
    let mut all: BTreeMap<i32, Counts> = BTreeMap::new();
    for proc in &dump.procs {
        let sum = all.entry(proc.pid).or_default();
        sum.at = proc.at;
        sum.buffers += proc.buffers.len() as u64;
        sum.bytes += proc.buffers.iter().map(|buffer| buffer.bytes).sum::<u64>();
        sum.nodes += proc.nodes.len() as u64;
        sum.deaths += proc.refs.iter().filter(|held| held.death).count() as u64;
    }
    all
}

/// References by holder and owner; owner 0: dead or not in the dump.
fn references(dump: &Dump) -> BTreeMap<(i32, i32), u64> {
    let owners = owners(dump);
    let mut all = BTreeMap::new();
    for proc in &dump.procs {
        for held in &proc.refs {
            *all.entry((proc.pid, owners.get(&held.node).copied().unwrap_or(0))).or_default() += 1;
        }
    }
    all
}

fn of_state(system: &System, first: &Dump, last: &Dump) -> Vec<Finding> {
    let (before, after) = (counts(first), counts(last));
    let (mut grown, mut named) = (Grown { system, sorts: Default::default() }, HashSet::new());
    for (pid, now) in &after {
        // A process that is new has everything new.
        let Some(was) = before.get(pid) else { continue };
        grown.buffers(*pid, was, now);
        if let Some(holder) = grown.nodes(*pid, was, now, holder_of_most(last, *pid)) {
            named.insert((holder, *pid));
        }
        grown.deaths(*pid, was, now);
    }
    let (held_before, held_now) = (references(first), references(last));
    for (pair, now) in held_now {
        // Objects that have one holder were named with it.
        if !named.contains(&pair)
            && let Some(counts) = after.get(&pair.0).filter(|_| before.contains_key(&pair.0))
        {
            grown.references(pair, held_before.get(&pair).copied().unwrap_or(0), now, counts.at);
        }
    }
    grown.most()
}

/// Findings about growth, each with its number, by sort.
struct Grown<'s> {
    system: &'s System,
    sorts: [Vec<(u64, Finding)>; 4],
}

impl Grown<'_> {
    fn add(
        &mut self,
        sort: usize,
        more: u64,
        key: String,
        what: String,
        (was, now): (Place, Place),
    ) -> &mut Finding {
        let evidence = [was, now].map(|at| self.system.evidence(at));
        let finding = Finding::new(Grade::Warning, Kind::Growth, key, what).when(BETWEEN).evidence(evidence);
        let sort = &mut self.sorts[sort];
        sort.push((more, finding));
        &mut sort.last_mut().expect("just added").1
    }

    fn buffers(&mut self, pid: i32, was: &Counts, now: &Counts) {
        let Some(more) = grew(was.buffers, now.buffers) else { return };
        let who = self.system.process(pid);
        let counts = format!(
            "{} of {} instead of {} of {}",
            now.buffers,
            bytes(now.bytes),
            was.buffers,
            bytes(was.bytes)
        );
        let what = format!("{who} keeps {more} more buffers: {counts}");
        let finding = self.add(0, more, format!("buffers {pid}"), what, (was.at, now.at));
        finding.pids = vec![pid];
        finding.why = vec!["its area fills, and calls to it will fail with ENOSPC".to_owned()];
        finding.next = vec![format!("look in {who} for parcels that are never freed (BC_FREE_BUFFER)")];
        finding.contract = vec!["BUF-04", "BUF-05"];
    }

    /// Returns the process that holds most of them.
    fn nodes(&mut self, pid: i32, was: &Counts, now: &Counts, holder: Option<(i32, usize)>) -> Option<i32> {
        let more = grew(was.nodes, now.nodes)?;
        let who = self.system.process(pid);
        let (holder_name, held) = match holder {
            Some((holder, count)) => (self.system.process(holder), count),
            None => ("nobody".to_owned(), 0),
        };
        let what = format!(
            "{who} has {more} more objects that others hold: {} instead of {}; {holder_name} holds {held} of them",
            now.nodes, was.nodes
        );
        let finding = self.add(1, more, format!("nodes {pid}"), what, (was.at, now.at));
        finding.pids = [pid].into_iter().chain(holder.map(|(holder, _)| holder)).collect();
        finding.why = vec!["an object lives as long as anybody holds a handle of it".to_owned()];
        finding.next = vec![format!(
            "look in {holder_name} for proxies that are never dropped, then in {who} for objects it makes for each call"
        )];
        finding.contract = vec!["REF-08", "REF-12"];
        holder.map(|(holder, _)| holder)
    }

    fn deaths(&mut self, pid: i32, was: &Counts, now: &Counts) {
        let Some(more) = grew(was.deaths, now.deaths) else { return };
        let who = self.system.process(pid);
        let what =
            format!("{who} asked for {more} more death notices: {} instead of {}", now.deaths, was.deaths);
        let finding = self.add(2, more, format!("deaths {pid}"), what, (was.at, now.at));
        finding.pids = vec![pid];
        finding.why = vec!["each is kept until it is cleared or the handle is given back".to_owned()];
        finding.next = vec![format!("look in {who} for linkToDeath without unlinkToDeath")];
        finding.contract = vec!["DTH-07", "DTH-08"];
    }

    /// Handles that one process holds of another's objects.
    fn references(&mut self, (holder, owner): (i32, i32), was: u64, now: u64, at: Place) {
        let Some(more) = grew(was, now) else { return };
        let who = self.system.process(holder);
        let whose = match owner {
            0 => "processes that are dead or not listed".to_owned(),
            owner => self.system.process(owner),
        };
        let what = format!("{who} holds {more} more handles of objects of {whose}: {now} instead of {was}");
        let finding = self.add(3, more, format!("refs {holder} {owner}"), what, (at, at));
        finding.evidence.truncate(1);
        finding.pids = [holder, owner].into_iter().filter(|pid| *pid != 0).collect();
        finding.why = vec!["the holder decides how long they live".to_owned()];
        finding.next = vec![format!(
            "look in {who} for proxies that are kept; Android ends a process that holds too many"
        )];
        finding.contract = vec!["REF-02"];
    }

    /// Those that grew most, of each sort.
    fn most(self) -> Vec<Finding> {
        let mut found = Vec::new();
        for mut sort in self.sorts {
            sort.sort_by_key(|(more, _)| std::cmp::Reverse(*more));
            found.extend(sort.into_iter().map(|(_, finding)| finding).take(MOST));
        }
        found
    }
}

/// The process that holds most of another's nodes.
fn holder_of_most(dump: &Dump, pid: i32) -> Option<(i32, usize)> {
    let mut holders: BTreeMap<i32, usize> = BTreeMap::new();
    let nodes = dump.procs.iter().filter(|proc| proc.pid == pid).flat_map(|proc| &proc.nodes);
    nodes.flat_map(|node| &node.holders).for_each(|holder| *holders.entry(*holder).or_default() += 1);
    holders.into_iter().max_by_key(|(_, count)| *count)
}

/// Growth that only the counters show.
fn of_stats(system: &System, first: &Dump, last: &Dump, named: &HashSet<i32>) -> Vec<Finding> {
    let mut found = Vec::new();
    for proc in last.procs.iter().filter(|proc| !named.contains(&proc.pid)) {
        let before = first.procs.iter().find(|old| (old.pid, &old.context) == (proc.pid, &proc.context));
        let (Some(was), Some(now)) = (before.and_then(|old| old.stats.as_ref()), proc.stats.as_ref()) else {
            continue;
        };
        for (noun, was, now) in [
            ("buffers", was.buffers, now.buffers),
            ("nodes", was.nodes, now.nodes),
            ("handles", was.refs, now.refs),
        ] {
            let Some((was, now)) = was.zip(now) else { continue };
            let Some(more) = grew(was, now) else { continue };
            let who = system.process(proc.pid);
            let what = format!("{who} has {more} more {noun}: {now} instead of {was}");
            let finding = Finding::new(Grade::Warning, Kind::Growth, format!("{noun} {}", proc.pid), what)
                .when(BETWEEN)
                .pids([proc.pid])
                .why("the counters do not say whose they are")
                .next("give two dumps of the driver's state: it has the peers")
                .contract(&["DBG-05"])
                .evidence([system.evidence(proc.at)]);
            found.push(finding);
        }
    }
    found.truncate(3 * MOST);
    found
}
