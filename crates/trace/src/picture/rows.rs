//! Room: what is in each lane: the causes of a call, a thread's states, who had a CPU.
//! Not here: where the lanes are (`layout`).

use super::axis::Axis;
use super::escape::cut;
use super::layout::{Bar, Lane, signed};
use super::paint::Paint;
use super::scene::{CpuLane, Doing, Has, Role, Scene, Slice, ThreadLane};
use crate::verdict::text::{Time, prio};
use crate::verdict::{Moment, Slow, Who};

/// The most characters of a name beside a lane; a thread's has 15.
const NAME: usize = 15;
/// The most parts of a call that each have a bar; where there are more, the shortest share theirs.
const MOST_PARTS: usize = 500;
/// The most characters of a name in a tooltip.
const TITLE: usize = 60;

/// A lane that nobody has placed yet.
fn lane(key: String) -> Lane {
    Lane {
        key,
        y: 0,
        height: 0,
        name: String::new(),
        detail: String::new(),
        wide_detail: String::new(),
        bars: Vec::new(),
        over: Vec::new(),
    }
}

/// A thread as tooltips have it.
fn full(who: &Who) -> String {
    let gap = if who.comm.is_empty() { "" } else { " " };
    format!("{}{gap}{} ({})", cut(&who.comm, TITLE), who.tid, prio(who.prio))
}

/// When and for how long, as tooltips have it.
fn when<T>(axis: &Axis, slice: &Slice<T>) -> String {
    format!("{} from {}", Time(slice.ns()), signed(axis.since_zero(slice.begin)))
}

/// What the time of a call went to; the bars' widths are the whole call. Also how many parts are drawn together
/// with others.
pub(super) fn causes(axis: &Axis, slow: &Slow) -> (Lane, usize) {
    let mut bars: Vec<Bar> = Vec::new();
    let mut together = 0;
    if slow.parts.len() <= MOST_PARTS {
        bars.extend(slow.parts.iter().map(|part| cause(axis, slow, part)));
    } else {
        let least = (slow.ns / MOST_PARTS as u64).max(1);
        for group in groups(&slow.parts, least) {
            bars.extend(group_bar(axis, slow, group));
            together += if group.len() > 1 { group.len() } else { 0 };
        }
    }
    let call = format!("call {}", slow.debug_id);
    let lane = lane("cause".into());
    (Lane { name: "cause".into(), detail: call.clone(), wide_detail: call, bars, ..lane }, together)
}

/// Parts in a row, as few as take this long together.
fn groups(parts: &[Moment], least: u64) -> Vec<&[Moment]> {
    let (mut groups, mut begin, mut ns) = (Vec::new(), 0, 0);
    for (index, part) in parts.iter().enumerate() {
        // What is wide enough by itself stands alone.
        if part.ns >= least && begin < index {
            groups.push(&parts[begin..index]);
            (begin, ns) = (index, 0);
        }
        ns += part.ns;
        if ns >= least {
            groups.push(&parts[begin..=index]);
            (begin, ns) = (index + 1, 0);
        }
    }
    groups.push(&parts[begin..]);
    groups.retain(|group| !group.is_empty());
    groups
}

/// One bar for parts in a row, painted as the one that takes the most of it.
fn group_bar(axis: &Axis, slow: &Slow, group: &[Moment]) -> Option<Bar> {
    let (first, longest) = (group.first()?, group.iter().max_by_key(|part| part.ns)?);
    if group.len() == 1 {
        return Some(cause(axis, slow, first));
    }
    let whole = Moment { at_ns: first.at_ns, ns: group.iter().map(|part| part.ns).sum(), ..longest.clone() };
    let bar = cause(axis, slow, &whole);
    Some(Bar { title: format!("{} parts, the longest of them {}", group.len(), bar.title), ..bar })
}

fn cause(axis: &Axis, slow: &Slow, part: &Moment) -> Bar {
    let begin = slow.begin_ns.saturating_add(part.at_ns);
    let words = part.cause.replace('_', " ");
    let behind = part.behind.filter(|tid| *tid >= 0);
    let name = behind.and_then(|tid| {
        let mut tasks = slow.reasons.iter().flat_map(|reason| &reason.behind);
        tasks.find(|task| task.tid == tid).map(|task| cut(&task.comm, TITLE))
    });
    let behind = behind.map(|tid| format!(" behind {} {tid}", name.unwrap_or_default()).replace("  ", " "));
    let behind = behind.unwrap_or_default();
    let thread = if part.tid > 0 { format!(", thread {}", part.tid) } else { String::new() };
    let cpu = part.cpu.map(|cpu| format!(" on cpu{cpu}")).unwrap_or_default();
    let from = signed(i64::try_from(part.at_ns).unwrap_or(i64::MAX));
    let title = format!("{words}{behind}: {} from {from}{thread}{cpu}", Time(part.ns));
    let further = slow.server.as_ref().is_some_and(|server| server.tid != part.tid);
    let paint = Paint::of_cause(&part.cause, further);
    let long = format!("{words}{behind}");
    Bar::new(axis, (begin, begin.saturating_add(part.ns)), paint, title, &[long, words])
}

/// What a thread did.
pub(super) fn thread(axis: &Axis, thread: &ThreadLane) -> Lane {
    let running = of_role(thread.role);
    let bar = |slice: &Slice<Doing>| {
        let (paint, what, text) = match &slice.what {
            Doing::Running(cpu) => (running, format!("running on cpu{cpu}"), format!("cpu{cpu}")),
            Doing::Runnable(cpu) => {
                (Paint::Waits, format!("runnable, in the queue of cpu{cpu}"), "runnable".to_owned())
            }
            Doing::Sleeping => (Paint::Sleeps, "sleeping".to_owned(), String::new()),
            Doing::Blocked(why) => {
                (Paint::Blocked, format!("blocked: {}", cut(why, TITLE)), "blocked".to_owned())
            }
            Doing::Unknown => (Paint::Unknown, "not in the trace".to_owned(), String::new()),
        };
        let title = format!("{} {what}: {}", thread.who.tid, when(axis, slice));
        Bar { pair: thread.pair, ..Bar::new(axis, (slice.begin, slice.end), paint, title, &[text]) }
    };
    let name = cut(&thread.who.comm, NAME);
    let pair = if thread.pair > 0 { format!(" {}", thread.pair) } else { String::new() };
    Lane {
        name: if name.is_empty() { "?".to_owned() } else { name },
        detail: format!("{}{pair}", thread.role.name()),
        wide_detail: format!("{}{pair} {}, {}", thread.role.name(), thread.who.tid, prio(thread.who.prio)),
        bars: thread.slices.iter().map(bar).collect(),
        ..lane(format!("thread-{}", thread.who.tid))
    }
}

fn of_role(role: Role) -> Paint {
    match role {
        Role::Caller => Paint::Caller,
        Role::Server => Paint::Server,
        Role::Further => Paint::Further,
    }
}

/// Who had a CPU.
pub(super) fn cpu(axis: &Axis, cpu: &CpuLane, scene: &Scene, slow: Option<&Slow>) -> Lane {
    let in_the_way =
        |tid: i32| slow.is_some_and(|slow| slow.parts.iter().any(|part| part.behind == Some(tid)));
    let bar = |slice: &Slice<Has>| {
        let (paint, pair, what, texts) = match &slice.what {
            Has::Idle => (Paint::Idle, 0, "idle".to_owned(), ["idle".to_owned(), String::new()]),
            Has::Unknown => {
                (Paint::Unknown, 0, "not in the trace".to_owned(), [String::new(), String::new()])
            }
            Has::Task(who) => {
                let ours = scene.threads.iter().find(|thread| thread.who.tid == who.tid);
                let paint = match ours {
                    Some(thread) => of_role(thread.role),
                    None if in_the_way(who.tid) => Paint::InTheWay,
                    None => Paint::Other,
                };
                let comm = cut(&who.comm, NAME);
                let texts = [format!("{comm} {}", who.tid), comm];
                (paint, ours.map_or(0, |thread| thread.pair), full(who), texts)
            }
        };
        let title = format!("cpu{} {what}: {}", cpu.cpu, when(axis, slice));
        Bar { pair, ..Bar::new(axis, (slice.begin, slice.end), paint, title, &texts) }
    };
    let over = |slice: &Slice<String>| {
        let title = format!("cpu{} {}: {}", cpu.cpu, cut(&slice.what, TITLE), when(axis, slice));
        Bar::new(axis, (slice.begin, slice.end), Paint::Interrupt, title, &[])
    };
    Lane {
        name: format!("cpu{}", cpu.cpu),
        bars: cpu.slices.iter().map(bar).collect(),
        over: cpu.interrupts.iter().map(over).collect(),
        ..lane(format!("cpu-{}", cpu.cpu))
    }
}
