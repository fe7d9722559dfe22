//! Oneway calls that pile up: to which node, from whom, since when.
//! Facts: contract OW-02: a node has one oneway call delivered at a time; the next waits until its buffer is freed.

use std::collections::BTreeMap;

use super::{OLD_MS, VERY_OLD_MS, age_or_unknown, bytes, calls_of};
use crate::finding::{Finding, Grade, Kind};
use crate::system::{Call, Notice, Proc, System};

/// Number of waiting oneway calls from which it is worth a word.
const MANY: usize = 32;

pub(super) fn find(system: &System) -> Vec<Finding> {
    let mut found = Vec::new();
    for proc in calls_of(system).map_or(&[][..], |dump| &dump.procs) {
        let mut nodes: BTreeMap<i64, Vec<&Call>> = BTreeMap::new();
        for call in proc.calls().filter(|call| call.oneway) {
            nodes.entry(call.node).or_default().push(call);
        }
        found.extend(nodes.into_iter().filter_map(|(node, calls)| backlog(system, proc, node, &calls)));
    }
    found.extend(system.notices.all.iter().filter_map(|(notice, seen)| {
        let Notice::Spam { pid, sender, boot } = notice else { return None };
        let (who, whom) = (system.process(*sender), system.process(*pid));
        let what = format!("{who} floods {whom} with oneway calls");
        Some(
            Finding::new(Grade::Warning, Kind::OnewayBacklog, format!("spam {boot} {pid} {sender}"), what)
                .when(seen.when())
                .pids([*sender, *pid])
                .why("the driver found the oneway half of the receiver nearly used up, and most of it, or more than 50 buffers, from this sender")
                .next(format!("see what {who} sends, and why {whom} does not keep up"))
                .contract(&["OW-07", "OW-08"])
                .evidence(seen.evidence.clone()),
        )
    }));
    found
}

fn backlog(system: &System, proc: &Proc, node: i64, calls: &[&Call]) -> Option<Finding> {
    let oldest = calls.iter().filter_map(|call| call.age_ms).max();
    let is_old = oldest.is_some_and(|age| age >= OLD_MS);
    if calls.len() < MANY && !is_old {
        return None;
    }
    let total: u64 = calls.iter().map(|call| call.bytes).sum();
    let grade = match oldest {
        Some(age) if age >= VERY_OLD_MS && calls.len() >= MANY => Grade::Bad,
        _ if is_old || calls.len() >= MANY => Grade::Warning,
        _ => Grade::Note,
    };
    let mut senders: BTreeMap<i32, usize> = BTreeMap::new();
    calls.iter().for_each(|call| *senders.entry(call.from.pid).or_default() += 1);
    let mut senders: Vec<(i32, usize)> = senders.into_iter().collect();
    senders.sort_by_key(|(_, count)| std::cmp::Reverse(*count));
    let whom = system.process(proc.pid);
    let wait = if calls.len() == 1 { "waits" } else { "wait" };
    let many = units::counted(calls.len() as u64, "oneway call");
    let what = format!("{many} of {} to node {node} of {whom} {wait}", bytes(total));
    let from: Vec<String> = senders
        .iter()
        .take(5)
        .map(|(pid, count)| match pid {
            0 => format!("{count} of senders that this kernel does not name"),
            pid => format!("{count} from {}", system.process(*pid)),
        })
        .collect();
    let oldest_call = calls.iter().max_by_key(|call| call.age_ms)?;
    Some(
        Finding::new(grade, Kind::OnewayBacklog, format!("{} {node}", proc.pid), what)
            .when(format!("the oldest since {}", age_or_unknown(oldest)))
            .pids(senders.first().map(|(pid, _)| *pid).into_iter().chain([proc.pid]))
            .why(from.join(", "))
            .why("they wait until the one before them, which was delivered, is done and its buffer freed; one is served at a time")
            .next(format!("look at what serves node {node} in {whom}: it is slower than its senders, it hangs, or the process is frozen"))
            .contract(&["OW-02", "OW-06"])
            .evidence([system.evidence(oldest_call.at)]),
    )
}
