//! Further findings in logs: broken rules, too many proxies, large and slow calls, missing pages.
//! Not here: refusals (`failures`), deaths (`deaths`), frozen processes (`frozen`), pools (`pools`), spam (`oneway`).
//! Facts: AOSP: `libbinder` warns of transactions over 200 kB; Android's limit of proxies from one uid is 6000.

use std::collections::BTreeMap;

use super::{VERY_OLD_MS, age, bytes, code};
use crate::decode::MISUSES;
use crate::finding::{Finding, Grade, Kind};
use crate::system::{File, Notice, Seen, System};

/// Number of one process's objects that another holds from which Android acts.
const MOST_PROXIES: usize = 6000;

pub(super) fn find(system: &System) -> Vec<Finding> {
    let mut found: Vec<Finding> =
        system.notices.all.iter().filter_map(|(notice, seen)| logged(system, notice, seen)).collect();
    found.extend(proxies(system));
    found
}

fn logged(system: &System, notice: &Notice, seen: &Seen) -> Option<Finding> {
    let finding = of_driver(system, notice).or_else(|| of_android(system, notice))?;
    Some(finding.when(seen.when()).evidence(seen.evidence.clone()))
}

/// What the driver writes about a program.
fn of_driver(system: &System, notice: &Notice) -> Option<Finding> {
    Some(match notice {
        Notice::Misuse { boot, who, which } => {
            let misuse = MISUSES.get(*which)?;
            let program = if who.pid == 0 { "a program".to_owned() } else { system.thread(*who) };
            let what = format!("{program} breaks a rule: {}", misuse.why);
            Finding::new(Grade::Warning, Kind::Misuse, format!("{boot} {} {which}", who.pid), what)
                .pids([who.pid])
                .why("the driver ignores such a command or refuses it; the program goes on with wrong counts")
                .next("look at what that thread sends; a library from before the kernel, or memory that was freed")
                .contract(&[misuse.item])
        }
        Notice::NoPages { boot, pid } => {
            let what = format!("the kernel found no pages for the area of {}", system.process(*pid));
            Finding::new(Grade::Bad, Kind::BufferSpace, format!("pages {boot} {pid}"), what)
                .pids([*pid])
                .why("the machine is out of memory, or the group's limit is reached; the call fails with ENOMEM")
                .next("look at the memory of the machine and of the receiver's group")
        }
        Notice::NoMap { boot, pid } => {
            let what = format!("{} could not map its area", system.process(*pid));
            Finding::new(Grade::Warning, Kind::Misuse, format!("map {boot} {pid}"), what)
                .pids([*pid])
                .why("it was mapped before, by another process than the opener, or writable")
                .next("open the device anew and map it once, read-only, in the process that opened it")
                .contract(&["OPN-04", "OPN-05"])
        }
        _ => return None,
    })
}

/// What Android writes.
fn of_android(system: &System, notice: &Notice) -> Option<Finding> {
    let most = |pid: &i32| system.most_bytes.get(pid).copied().filter(|most| *most > 0);
    let size = |pid: &i32| most(pid).map_or(String::new(), |most| format!(" of up to {}", bytes(most)));
    Some(match notice {
        Notice::JavaFailed { pid } => {
            let what = format!("a transaction{} of {} failed (FAILED BINDER TRANSACTION)", size(pid), system.process(*pid));
            Finding::new(Grade::Bad, Kind::Failure, format!("java {pid}"), what)
                .pids([*pid])
                .why("the driver refused it, or its target is gone; a small parcel that fails says that the receiver's area is full")
                .next("the kernel's log of that moment has the driver's word (29189, 29201, 29202) and errno: give it, too")
                .contract(&["BUF-04"])
        }
        Notice::TooLarge { pid } => {
            let what = format!("{} sent a transaction{} that is too large (TransactionTooLargeException)", system.process(*pid), size(pid));
            Finding::new(Grade::Bad, Kind::BufferSpace, format!("large {pid}"), what)
                .pids([*pid])
                .why("all calls of a receiver share its area, usually 1,040,384 B: one large call, or many at once, do not fit")
                .next("send large data by file or shared memory, or in parts; keep saved state small")
                .contract(&["BUF-04"])
        }
        Notice::Large { pid, interface, code: number } => {
            let what = format!("{} sends large transactions{}: {interface}, {}", system.process(*pid), size(pid), code(*number));
            Finding::new(Grade::Note, Kind::BufferSpace, format!("big {pid} {interface} {number}"), what)
                .pids([*pid])
                .why("they take much of the receiver's area, and time to copy")
                .next("send large data by file or shared memory")
                .contract(&["BUF-04"])
        }
        Notice::TooMany { uid, of } => {
            let who = if uid.is_empty() { "a process".to_owned() } else { format!("uid {uid}") };
            Finding::new(Grade::Bad, Kind::Limit, format!("{uid} {of}"), format!("{who} sent too many objects to {of}"))
                .why("the receiver holds a proxy for each object until nobody refers to it; Android ends the sender over 6000")
                .next("register one object and use it again; unregister listeners; see which with `dumpsys activity binder-proxies`")
        }
        Notice::Sample { interface, code: number, by } => {
            let slowest = system.slowest_ms.get(&(interface.clone(), *number)).copied().unwrap_or(0);
            let grade = if slowest >= VERY_OLD_MS / 2 { Grade::Warning } else { Grade::Note };
            let what = format!("{interface}, {} of {by} took up to {}", code(*number), age(slowest));
            Finding::new(grade, Kind::SlowCall, format!("{interface} {number} {by}"), what)
                .why("Android samples calls that take long (binder_sample)")
                .next("`binderperf trace analyze` on a trace shows what it waited for")
        }
        Notice::Anr { what } => {
            Finding::new(Grade::Bad, Kind::Wait, what.clone(), format!("an application does not respond: {what}"))
                .why("its main thread waited too long; whether for a call is in its stack (BinderProxy.transactNative)")
                .next("give the bug report's binder state and VM traces: who waits for whom is in them")
        }
        _ => return None,
    })
}

/// Processes that hold very many of another's objects.
fn proxies(system: &System) -> Vec<Finding> {
    let mut found = Vec::new();
    for proc in system.last(File::State).map_or(&[][..], |dump| &dump.procs) {
        let mut holders: BTreeMap<i32, usize> = BTreeMap::new();
        proc.nodes
            .iter()
            .flat_map(|node| &node.holders)
            .for_each(|pid| *holders.entry(*pid).or_default() += 1);
        for (holder, count) in holders.into_iter().filter(|(_, count)| *count >= MOST_PROXIES / 2) {
            let grade = if count >= MOST_PROXIES { Grade::Bad } else { Grade::Warning };
            let (who, whose) = (system.process(holder), system.process(proc.pid));
            let what = format!("{who} holds {count} objects of {whose}");
            found.push(
                Finding::new(grade, Kind::Limit, format!("proxies {holder} {}", proc.pid), what)
                    .pids([proc.pid, holder])
                    .why("each is an object that was sent and is still referred to; Android ends a process that sent more than 6000")
                    .next(format!("look in {whose} for objects that it makes for each call, and in {who} for proxies that it keeps"))
                    .contract(&["REF-02", "REF-12"])
                    .evidence([system.evidence(proc.at)]),
            );
        }
    }
    found
}
