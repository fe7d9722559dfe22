//! Frozen processes with work that waits for them, and who calls them.
//! Not here: calls that the driver refused in a log (`failures`).
//! Facts: contract FRZ-01, OW-09; the driver's files do not say who is frozen, Android's log does.

use super::{OLD_MS, age_or_unknown, calls_of};
use crate::finding::{Finding, Grade, Kind};
use crate::system::{Call, File, Notice, Proc, System, Way};

pub(super) fn find(system: &System) -> Vec<Finding> {
    let mut found: Vec<Finding> = calls_of(system)
        .map_or(&[][..], |dump| &dump.procs)
        .iter()
        .filter_map(|proc| untaken(system, proc))
        .collect();
    found.extend(
        system
            .last(File::Stats)
            .map_or(&[][..], |dump| &dump.procs)
            .iter()
            .filter_map(|proc| caller(system, proc)),
    );
    found.extend(system.notices.all.iter().filter_map(|(notice, seen)| {
        let Notice::KilledFrozen { what } = notice else { return None };
        Some(
            Finding::new(
                Grade::Warning,
                Kind::Frozen,
                what.clone(),
                format!("Android ended a frozen process that was called: {what}"),
            )
            .when(seen.when())
            .why("a call that waits for its answer cannot wait for a frozen process")
            .next("look at who called it; call cached processes oneway, or not at all")
            .contract(&["FRZ-01"])
            .evidence(seen.evidence.clone()),
        )
    }));
    found
}

/// A process whose threads are free and take no work, or that Android says is frozen.
fn untaken(system: &System, proc: &Proc) -> Option<Finding> {
    let named = system.frozen.contains(&proc.pid);
    let pending: Vec<&Call> = proc.queue.iter().filter(|call| !call.reply).collect();
    let is_old = |call: &&Call| call.age_ms.is_none_or(|age| age >= OLD_MS);
    let free = proc.threads.iter().filter(|thread| thread.is_free()).count();
    let untaken: Vec<&Call> =
        pending.iter().copied().filter(|call| call.way == Way::Pending).filter(is_old).collect();
    let shown = if named { &pending } else { &untaken };
    if shown.is_empty() || (!named && free == 0) {
        return None;
    }
    let oldest = shown.iter().filter_map(|call| call.age_ms).max();
    let who = system.process(proc.pid);
    let count = units::counted(shown.len() as u64, "call");
    let what = match named {
        true => {
            format!("{who} is frozen while {count} to it {}", if shown.len() == 1 { "waits" } else { "wait" })
        }
        false => format!(
            "{who} takes none of {count} although {free} of its threads are free: it is frozen or stopped"
        ),
    };
    let mut senders: Vec<i32> = shown.iter().map(|call| call.from.pid).collect();
    senders.sort_unstable();
    senders.dedup();
    let names: Vec<String> = senders.iter().take(5).map(|pid| system.process(*pid)).collect();
    Some(
        Finding::new(Grade::Warning, Kind::Frozen, format!("{}", proc.pid), what)
            .when(format!("the oldest since {}", age_or_unknown(oldest)))
            .pids([proc.pid].into_iter().chain(senders))
            .why(format!("they are from {}", names.join(", ")))
            .next("find who froze or stopped it: the cached-apps freezer, the state in /proc/PID/status, cgroup.freeze of its group")
            .contract(&["FRZ-01", "OW-09"])
            .evidence(shown.iter().take(3).map(|call| system.evidence(call.at))),
    )
}

/// A process that was refused because it called a frozen one.
fn caller(system: &System, proc: &Proc) -> Option<Finding> {
    let words = &proc.stats.as_ref()?.words;
    let count = |word: &str| words.get(word).copied().unwrap_or(0);
    let (refused, pending) = (count("BR_FROZEN_REPLY"), count("BR_TRANSACTION_PENDING_FROZEN"));
    if refused + pending == 0 {
        return None;
    }
    let who = system.process(proc.pid);
    let mut parts = Vec::new();
    if refused > 0 {
        parts.push(format!("{} refused", units::counted(refused, "call")));
    }
    if pending > 0 {
        parts.push(format!("{} left waiting", units::counted(pending, "oneway call")));
    }
    let what = format!("{who} called frozen processes: {}", parts.join(", "));
    Some(
        Finding::new(Grade::Warning, Kind::Frozen, format!("caller {} {}", proc.pid, proc.context), what)
            .when("since it opened the device")
            .pids([proc.pid])
            .why("the driver counts BR_FROZEN_REPLY and BR_TRANSACTION_PENDING_FROZEN by process; whom it called is in the kernel's log (29202) or in a trace")
            .next("let it ask for freeze notices (BC_REQUEST_FREEZE_NOTIFICATION) and hold its calls back")
            .contract(&["FRZ-01", "OW-09"])
            .evidence([system.evidence(proc.at)]),
    )
}
