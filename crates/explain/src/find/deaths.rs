//! Targets that are gone: handles to dead nodes, a context's dead manager, undelivered work, storms of death notices.
//! Facts: contract DTH-08, OW-13, TX-10, TX-18, EXT-05.

use std::collections::BTreeMap;

use crate::finding::{Finding, Grade, Kind};
use crate::system::{File, Notice, Proc, Seen, System};

/// Number of handles to dead nodes, and of waiting death notices, from which it is worth a word.
const MANY: usize = 64;

pub(super) fn find(system: &System) -> Vec<Finding> {
    let procs = system.last(File::State).map_or(&[][..], |dump| &dump.procs);
    let mut found: Vec<Finding> = procs.iter().filter_map(|proc| handles(system, proc)).collect();
    found.extend(procs.iter().filter_map(|proc| storm(system, proc)));
    found.extend(managers(system, procs));
    found.extend(system.notices.all.iter().filter_map(|(notice, seen)| logged(system, notice, seen)));
    found
}

fn handles(system: &System, proc: &Proc) -> Option<Finding> {
    let dead = proc.refs.iter().filter(|held| held.dead).count();
    if dead < MANY {
        return None;
    }
    let who = system.process(proc.pid);
    let what = format!("{who} holds {dead} handles of objects whose processes are dead");
    Some(
        Finding::new(
            Grade::Warning,
            Kind::DeadTarget,
            format!("handles {} {}", proc.pid, proc.context),
            what,
        )
        .pids([proc.pid])
        .why("a handle stays until its holder gives it back; each call of it is BR_DEAD_REPLY")
        .next(format!("let {who} ask for death notices and drop what is dead"))
        .contract(&["DTH-08", "TX-09"])
        .evidence([system.evidence(proc.at)]),
    )
}

/// Contexts whose manager is dead and has no successor.
fn managers(system: &System, procs: &[Proc]) -> Vec<Finding> {
    let mut contexts: BTreeMap<&str, Vec<&Proc>> = BTreeMap::new();
    for proc in procs {
        contexts.entry(&proc.context).or_default().push(proc);
    }
    // A part of a file need not have the manager's process.
    contexts.retain(|_, procs| {
        let lives =
            || procs.iter().flat_map(|proc| &proc.refs).any(|held| held.handle == Some(0) && !held.dead);
        let nodes = || procs.iter().flat_map(|proc| &proc.nodes);
        system.last(File::State).is_some_and(|dump| dump.whole)
            && !nodes().any(|node| node.is_manager)
            && !lives()
    });
    let orphaned = |proc: &&&Proc| proc.refs.iter().any(|held| held.dead && held.handle == Some(0));
    let found = contexts.into_iter().filter_map(|(context, procs)| {
        let holders: Vec<&Proc> = procs.iter().filter(orphaned).copied().collect();
        let first = holders.first()?;
        let named = if context.is_empty() { String::new() } else { format!(" of context {context}") };
        let count = match holders.len() {
            1 => "1 process still holds".to_owned(),
            more => format!("{more} processes still hold"),
        };
        let what =
            format!("the context manager{named} is dead, and no other took its place; {count} its handle");
        let names: Vec<String> = holders.iter().take(5).map(|proc| system.process(proc.pid)).collect();
        Some(
            Finding::new(Grade::Warning, Kind::DeadTarget, format!("manager {context}"), what)
                .pids(holders.iter().map(|proc| proc.pid))
                .why(format!("handle 0 is dead in {}; a call to it is BR_DEAD_REPLY", names.join(", ")))
                .next("start the context's service manager again, and look in the log why it ended")
                .contract(&["TX-07"])
                .evidence([system.evidence(first.at)]),
        )
    });
    found.collect()
}

fn storm(system: &System, proc: &Proc) -> Option<Finding> {
    let waiting = proc.deaths_waiting;
    if waiting < MANY as u64 {
        return None;
    }
    let what = format!(
        "{} has {waiting} death notices that it has not read or acknowledged",
        system.process(proc.pid)
    );
    Some(
        Finding::new(Grade::Warning, Kind::DeadTarget, format!("storm {} {}", proc.pid, proc.context), what)
            .pids([proc.pid])
            .why("a process with many objects died; each notice takes a thread of the pool in turn")
            .next("ask for one notice for each process, not for each object")
            .contract(&["DTH-04", "DTH-05"])
            .evidence([system.evidence(proc.at)]),
    )
}

fn logged(system: &System, notice: &Notice, seen: &Seen) -> Option<Finding> {
    let (grade, key, what, pid, why, next, items): (_, _, _, _, _, _, &[&'static str]) = match notice {
        Notice::Undelivered { boot, what } => (
            Grade::Warning,
            format!("{boot} {what}"),
            format!("a {what} was dropped undelivered: its process died before it read it"),
            0,
            "the receiver ended with work in its queue; a caller that waits gets BR_DEAD_REPLY, a oneway call is lost without a word",
            "look in the log which process ended at that moment, and why",
            &["OW-13"],
        ),
        Notice::NoReply { boot, caller } if caller.pid != 0 => (
            Grade::Warning,
            format!("{boot} reply {}", caller.pid),
            format!("a call of {} ended with an error instead of a reply", system.thread(*caller)),
            caller.pid,
            "its server ended with the call in its queue or while it served it, or its read failed before it had the call (EFAULT, no free descriptor)",
            "look in the log which process ended at that moment, and why; if none did, at what the server gives BINDER_WRITE_READ",
            &["TX-11", "TX-10", "WR-16"],
        ),
        Notice::NoReply { boot, .. } => (
            Grade::Note,
            format!("{boot} reply"),
            "an error could not be delivered: the thread that waited for the reply is gone".to_owned(),
            0,
            "a thread of the chain ended while others waited for it",
            "look in the log which process ended at that moment, and why",
            &["TX-18"],
        ),
        Notice::NotStored { boot } => (
            Grade::Warning,
            format!("{boot} not stored"),
            "a transaction could not be written where its receiver reads, so it was dropped".to_owned(),
            0,
            "the receiver's read buffer ended before the command did, or is not writable (EFAULT); a caller gets BR_FAILED_REPLY",
            "look at what the receiver gives BINDER_WRITE_READ: read_buffer must be writable for read_size bytes",
            &["WR-16"],
        ),
        Notice::NoDescriptor { boot } => (
            Grade::Warning,
            format!("{boot} descriptors"),
            "a receiver could open no more descriptors, so the transaction that brought some was dropped"
                .to_owned(),
            0,
            "its limit of open files (RLIMIT_NOFILE) is reached; a caller gets BR_FAILED_REPLY, a oneway call is lost without a word",
            "look which process has as many open files as it may: ls /proc/PID/fd, /proc/PID/limits",
            &["OBJ-12"],
        ),
        Notice::EndedInCall { boot, who, incoming } => (
            Grade::Warning,
            format!("{boot} ended {} {incoming}", who.pid),
            format!(
                "{} ended while it {}",
                system.thread(*who),
                if *incoming { "served a call" } else { "waited for an answer" }
            ),
            who.pid,
            if *incoming { "its caller gets BR_DEAD_REPLY" } else { "the answer will be dropped" },
            "look in the log why it ended: a crash, a kill for memory, or an update",
            if *incoming { &["TX-10", "EXT-05"] } else { &["EXT-05", "TX-18"] },
        ),
        Notice::NoMapping { boot, pid } => (
            Grade::Warning,
            format!("{boot} vma {pid}"),
            format!("{} has no mapping of its area, so nothing can be sent to it", system.process(*pid)),
            *pid,
            "it is dying, has unmapped its area, or never mapped one; its callers get BR_DEAD_REPLY",
            "if it lives, look whether it maps the device before its objects are passed on",
            &["OPN-09"],
        ),
        Notice::DeadObject { pid } => (
            Grade::Warning,
            format!("java {pid}"),
            format!("{} called an object whose process is dead (DeadObjectException)", system.process(*pid)),
            *pid,
            "the service's process ended, or its area was full: libbinder makes this of any refused small call",
            "look why the service ended; the kernel's log has the driver's own word (29189 or 29201)",
            &["TX-09"],
        ),
        _ => return None,
    };
    let finding = Finding::new(grade, Kind::DeadTarget, key, what).when(seen.when()).pids([pid]);
    Some(finding.why(why).next(next).contract(items).evidence(seen.evidence.clone()))
}
