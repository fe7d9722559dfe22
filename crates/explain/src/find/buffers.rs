//! Receivers' areas: who keeps buffers, how much of them and of the half for oneway calls is left, and in which pieces.
//! Facts: contract BUF-02 to BUF-04, OW-06, OPN-06. A delivered buffer of which no thread serves the call was answered, or was
//! oneway, or is a reply; its receiver has not freed it.

use std::collections::{BTreeMap, HashMap, HashSet};

use super::{PAGE, bytes};
use crate::finding::{Finding, Grade, Kind};
use crate::system::{Buffer, File, Notice, Proc, System, Way};

/// Number of buffers from which keeping them is worth a word, and from which it is in any case.
const FEW: u64 = 32;
const MANY: u64 = 256;
/// Bytes of `libbinder`'s usual area: 1 MiB without two pages.
const USUAL: u64 = (1 << 20) - 2 * PAGE;

pub(super) fn find(system: &System) -> Vec<Finding> {
    let mut found = Vec::new();
    for proc in system.last(File::State).map_or(&[][..], |dump| &dump.procs) {
        found.extend(kept(system, proc));
        found.extend(pieces(system, proc));
    }
    let counted = system.last(File::Stats).map_or(&[][..], |dump| &dump.procs);
    let largest = counted.iter().filter_map(|proc| proc.stats.as_ref()?.free_oneway).max().unwrap_or(0);
    found.extend(counted.iter().filter_map(|proc| oneway_half(system, proc, largest)));
    found.extend(system.notices.all.iter().filter_map(|(notice, seen)| {
        let (pid, oneway) = match notice {
            Notice::NoSpace { pid, oneway, .. } => (*pid, *oneway),
            _ => return None,
        };
        let who = system.process(pid);
        let most = system.most_bytes.get(&pid).map_or(String::new(), |most| format!(" of up to {}", bytes(*most)));
        let (what, item, next) = match oneway {
            true => (
                format!("{who} has no space left for oneway calls{most}: the oneway half of its area is full"),
                "OW-06",
                "send it fewer oneway calls, or let it answer faster; `binderperf explain` on the driver's state says what fills the half",
            ),
            false => (
                format!("the area of {who} has no gap for a buffer{most}"),
                "BUF-04",
                "send less at once, and see who keeps its buffers: `binderperf explain` on the driver's state",
            ),
        };
        let finding = Finding::new(Grade::Bad, Kind::BufferSpace, format!("log {pid} {oneway}"), what);
        Some(finding.when(seen.when()).pids([pid]).next(next).contract(&[item]).evidence(seen.evidence.clone()))
    }));
    found
}

/// Bytes of a process's area, if its files tell: the C driver counts its pages; the Rust driver writes how much of the half
/// for oneway calls is free, and each buffer that is in it.
pub(crate) fn area(system: &System, of: &Proc) -> Option<u64> {
    // A process may have the device open several times, with an area each.
    let stats = of.stats.as_ref().or_else(|| system.stats(of.pid, &of.context))?;
    if let Some(pages) = stats.pages.filter(|pages| *pages > 0) {
        return Some(pages.saturating_mul(PAGE));
    }
    let buffers = &system.proc(File::State, of.pid, &of.context)?.buffers;
    let used =
        buffers.iter().map(|buffer| buffer.sender.map(|(_, oneway)| if oneway { buffer.bytes } else { 0 }));
    let used: u64 = used.sum::<Option<u64>>().filter(|_| !buffers.is_empty())?;
    Some(stats.free_oneway?.saturating_add(used).saturating_mul(2))
}

/// Buffers that were delivered and are kept although no thread serves their calls.
fn kept(system: &System, proc: &Proc) -> Option<Finding> {
    let calls = || proc.threads.iter().flat_map(|thread| &thread.calls);
    let served: HashSet<i64> = calls().map(|call| call.id).collect();
    // The Rust driver does not number buffers: one of a served call is known by its sender and size.
    let mut unnumbered: HashMap<(i32, u64), u64> = HashMap::new();
    for call in calls().filter(|call| call.way == Way::Incoming) {
        *unnumbered.entry((call.from.pid, call.bytes)).or_default() += 1;
    }
    let mut is_served = |buffer: &Buffer| match buffer.sender {
        Some((sender, _)) => {
            let left = unnumbered.get_mut(&(sender, buffer.bytes)).filter(|left| **left > 0);
            left.map(|left| *left -= 1).is_some()
        }
        None => served.contains(&buffer.id),
    };
    let kept: Vec<&Buffer> =
        proc.buffers.iter().filter(|buffer| buffer.delivered && !is_served(buffer)).collect();
    let total: u64 = kept.iter().map(|buffer| buffer.bytes).sum();
    let (size, known) = match area(system, proc) {
        Some(size) => (size, true),
        None => (USUAL, false),
    };
    let count = kept.len() as u64;
    let share = total as f64 / size as f64;
    if count < MANY && (count < FEW || share < 0.25) && share < 0.5 {
        return None;
    }
    let grade = if share >= 0.9 && known { Grade::Bad } else { Grade::Warning };
    let who = system.process(proc.pid);
    let of = if known {
        format!("{:.0} % of its area of {}", 100.0 * share, bytes(size))
    } else {
        "the size of its area is not in the state".to_owned()
    };
    let what = format!(
        "{who} keeps {} of {} that no thread of it serves ({of})",
        units::counted(count, "buffer"),
        bytes(total)
    );
    let oldest = kept.iter().min_by_key(|buffer| buffer.id)?;
    let biggest = kept.iter().max_by_key(|buffer| buffer.bytes)?;
    let senders = senders(&kept);
    let mut finding = Finding::new(grade, Kind::BufferSpace, format!("kept {} {}", proc.pid, proc.context), what)
        .pids([proc.pid].into_iter().chain(senders.iter().map(|((pid, _), _)| *pid)))
        .why("they were delivered and not given back (BC_FREE_BUFFER): replies or oneway calls whose parcels it holds, or a leak")
        .why(match oldest.sender {
            Some(_) => format!("the biggest has {}; this driver does not say which is the oldest", bytes(biggest.bytes)),
            None => format!("the oldest is buffer {} ({}), the biggest buffer {} ({})", oldest.id, bytes(oldest.bytes), biggest.id, bytes(biggest.bytes)),
        });
    for ((pid, oneway), (count, total)) in senders.into_iter().take(5) {
        let how = if oneway { "oneway" } else { "calls and replies" };
        let buffers = units::counted(count, "buffer");
        finding = finding.why(format!("{buffers} of {} from {} ({how})", bytes(total), system.process(pid)));
    }
    let sure = if system.pair(File::State).is_some() {
        ""
    } else {
        "; give a second, later state as well: what grows is leaked"
    };
    Some(
        finding
            .next(format!("look in {who} for parcels that are kept, or never recycled{sure}"))
            .contract(&["BUF-05"])
            .evidence([oldest.at, biggest.at].map(|at| system.evidence(at))),
    )
}

/// Number and bytes of buffers by sender, and whether they are oneway; most bytes first. Only the Rust driver names senders.
fn senders(buffers: &[&Buffer]) -> Vec<((i32, bool), (u64, u64))> {
    let mut senders: BTreeMap<(i32, bool), (u64, u64)> = BTreeMap::new();
    for (sender, buffer) in buffers.iter().filter_map(|buffer| Some((buffer.sender?, buffer))) {
        let (count, total) = senders.entry(sender).or_default();
        *count += 1;
        *total += buffer.bytes;
    }
    let mut senders: Vec<_> = senders.into_iter().collect();
    senders.sort_by_key(|(_, (_, total))| std::cmp::Reverse(*total));
    senders
}

/// An area with much free space in small pieces.
fn pieces(system: &System, proc: &Proc) -> Option<Finding> {
    let size = area(system, proc)?;
    let mut placed: Vec<(u64, u64)> =
        proc.buffers.iter().map(|buffer| Some((buffer.offset?, buffer.bytes))).collect::<Option<_>>()?;
    placed.sort_unstable();
    let (mut end, mut gaps) = (0_u64, Vec::new());
    for (offset, bytes) in placed {
        gaps.push(offset.saturating_sub(end));
        end = end.max(offset.saturating_add(bytes));
    }
    gaps.push(size.saturating_sub(end));
    let (free, largest) = (gaps.iter().sum::<u64>(), gaps.iter().max().copied().unwrap_or(0));
    if free < size / 4 || largest >= free / 4 {
        return None;
    }
    let what = format!(
        "the area of {} is in pieces: {} are free, the largest gap has {}",
        system.process(proc.pid),
        bytes(free),
        bytes(largest)
    );
    Some(
        Finding::new(Grade::Warning, Kind::BufferSpace, format!("pieces {} {}", proc.pid, proc.context), what)
            .pids([proc.pid])
            .why("buffers that are kept long lie between those that come and go; a larger call fails although there is space")
            .next("let it free buffers soon, or send large data by file or shared memory")
            .contract(&["BUF-03", "BUF-04"])
            .evidence([system.evidence(proc.at)]),
    )
}

/// Little space for oneway calls. `largest`: the most that any process has free.
fn oneway_half(system: &System, proc: &Proc, largest: u64) -> Option<Finding> {
    let stats = proc.stats.as_ref()?;
    let free = stats.free_oneway?;
    let half = area(system, proc).map(|size| size / 2);
    // A process that never mapped an area has no half that could be full.
    let is_without = half.is_none() && free == 0 && (stats.pages == Some(0) || stats.buffers == Some(0));
    let is_little = match half {
        _ if is_without => false,
        Some(half) => free < half / 10,
        None => free < PAGE && largest > 10 * PAGE,
    };
    if !is_little {
        return None;
    }
    let grade = if free < PAGE && half.is_some() { Grade::Bad } else { Grade::Warning };
    let of = match half {
        Some(half) => format!(" of {}", bytes(half)),
        None => {
            format!("; the size of its half is not in these stats, others have up to {} free", bytes(largest))
        }
    };
    let what = format!("{} has {} left for oneway calls{of}", system.process(proc.pid), bytes(free));
    let mut finding = Finding::new(
        grade,
        Kind::BufferSpace,
        format!("oneway {} {}", proc.pid, proc.context),
        what,
    )
    .pids([proc.pid])
    .why("further oneway calls to it fail with BR_FAILED_REPLY, ENOSPC; calls may still use the other half");
    if let Some(buffers) = stats.buffers {
        finding = finding.why(format!("{} are in its area", units::counted(buffers, "buffer")));
    }
    Some(
        finding
            .next("give the driver's state as well: it says which node's oneway calls wait and who sent them")
            .contract(&["OW-06", "OW-07"])
            .evidence([system.evidence(proc.at)]),
    )
}
