//! Pools of threads without a free one.
//! Facts: contract LP-02 to LP-04, DBG-05; `libbinder` writes how long its pool was starved.

use std::cmp::Reverse;
use std::collections::BTreeMap;

use super::{OLD_MS, VERY_OLD_MS, age, age_or_unknown, calls_of, code};
use crate::finding::{Finding, Grade, Kind};
use crate::system::{Call, File, Notice, Proc, System, Way};

pub(super) fn find(system: &System) -> Vec<Finding> {
    let procs = system.last(File::Stats).map_or(&[][..], |dump| &dump.procs);
    let mut found: Vec<Finding> = procs.iter().filter_map(|proc| pool(system, proc)).collect();
    let logged = system.notices.all.iter().filter_map(|(notice, seen)| match notice {
        Notice::Starved { pid, threads } => {
            let ms = system.starved_ms.get(pid).copied().unwrap_or(0);
            let grade = if ms >= OLD_MS { Grade::Bad } else { Grade::Warning };
            let what = format!("all {threads} binder threads of {} were busy for up to {}", system.process(*pid), age(ms));
            Some(
                Finding::new(grade, Kind::StarvedPool, format!("log {pid}"), what)
                    .when(seen.when())
                    .pids([*pid])
                    .why("libbinder writes this when a call had to wait for a free thread")
                    .next("look at what its threads did at that moment: the VM traces of a bug report, or a trace")
                    .contract(&["LP-04"])
                    .evidence(seen.evidence.clone()),
            )
        }
        _ => None,
    });
    found.extend(logged);
    found
}

/// A pool at its limit of which no thread is ready.
fn pool(system: &System, counted: &Proc) -> Option<Finding> {
    let stats = counted.stats.as_ref()?;
    let (started, most) = (stats.started?, stats.most?);
    let state = calls_of(system).and_then(|dump| {
        dump.procs.iter().find(|proc| proc.pid == counted.pid && proc.context == counted.context)
    });
    // The Rust driver does not count them, but its state has idle threads, too.
    let whole = system.proc(File::State, counted.pid, &counted.context);
    let ready = stats
        .ready
        .or_else(|| whole.map(|proc| proc.threads.iter().filter(|thread| thread.is_free()).count() as u64));
    if most == 0 || started < most || ready != Some(0) {
        return None;
    }
    let queued: Vec<&Call> =
        state.map_or(Vec::new(), |proc| proc.queue.iter().filter(|call| call.way == Way::Pending).collect());
    let oldest = queued.iter().filter_map(|call| call.age_ms).max();
    let pending = stats.pending.unwrap_or(queued.len() as u64).max(queued.len() as u64);
    let grade = grade(pending, oldest);
    let who = system.process(counted.pid);
    let waiting = match (pending, oldest) {
        (0, _) => String::new(),
        (pending, Some(oldest)) => {
            format!(", and {} for one, the oldest since {}", waits(pending), age_or_unknown(Some(oldest)))
        }
        (pending, None) => format!(", and {} for one", waits(pending)),
    };
    let context =
        if counted.context.is_empty() { String::new() } else { format!(" (context {})", counted.context) };
    let what = format!(
        "{who} has no free binder thread{context}: {started} of {most} are started, none is ready{waiting}"
    );
    let mut finding =
        Finding::new(grade, Kind::StarvedPool, format!("{} {}", counted.pid, counted.context), what)
            .pids([counted.pid])
            .contract(&["LP-04", "LP-09"])
            .evidence([system.evidence(counted.at)]);
    let requested = stats.requested.unwrap_or(0);
    if requested > 0 {
        finding = finding.why(format!("{requested} more were requested and have not registered"));
    }
    let senders = groups(system, queued.iter().copied());
    if !senders.is_empty() {
        finding = finding.why(format!("waiting for a thread:\n{}", senders.join("\n")));
    }
    let busy = state.map_or(Vec::new(), |proc| {
        let calls = proc.threads.iter().flat_map(|thread| &thread.calls);
        groups(system, calls.filter(|call| call.way == Way::Incoming))
    });
    if busy.is_empty() {
        return Some(finding.why("the stats do not say in which calls its threads are").next(
            "give the driver's `transactions` or `state` of the same moment, too: it says in which calls the threads are and since when",
        ));
    }
    let enough = "allow more threads (BINDER_SET_MAX_THREADS) only if they work and do not wait";
    Some(
        finding.why(format!("its threads serve:\n{}", busy.join("\n"))).next(format!(
            "look at the stacks of these threads; answer such calls later or oneway; {enough}"
        )),
    )
}

/// `oldest`: age in ms of the oldest call that waits for a thread, if that is known.
fn grade(pending: u64, oldest: Option<u64>) -> Grade {
    match oldest {
        Some(age) if age >= VERY_OLD_MS => Grade::Bad,
        // A busy server has a queue, too, and it moves.
        Some(age) if age < OLD_MS => Grade::Note,
        _ if pending > 0 => Grade::Warning,
        _ => Grade::Note,
    }
}

fn waits(calls: u64) -> String {
    if calls == 1 { "1 call waits".to_owned() } else { format!("{calls} calls wait") }
}

/// Calls by caller and code, the most first.
fn groups<'c>(system: &System, calls: impl Iterator<Item = &'c Call>) -> Vec<String> {
    let mut groups: BTreeMap<(i32, u32), (u64, Option<u64>)> = BTreeMap::new();
    for call in calls {
        let group = groups.entry((call.from.pid, call.code)).or_default();
        *group = (group.0 + 1, group.1.max(call.age_ms));
    }
    let mut groups: Vec<_> = groups.into_iter().collect();
    groups.sort_by_key(|(_, (count, oldest))| Reverse((*count, *oldest)));
    let line = |((pid, number), (count, oldest)): ((i32, u32), (u64, Option<u64>))| {
        let calls = units::counted(count, "call");
        format!(
            "{calls} ({}) from {}, the oldest since {}",
            code(number),
            system.process(pid),
            age_or_unknown(oldest)
        )
    };
    groups.into_iter().take(5).map(line).collect()
}
