//! Contents of the lanes: causes of a call, thread states, CPU occupancy.
//! Not here: positions of the lanes (`layout`).

use super::axis::Axis;
use super::data::{CpuLane, CpuOccupant, PictureData, Slice, ThreadActivity, ThreadLane};
use super::lane::{Bar, Lane, signed};
use crate::cause::Label;
use crate::cause::paint::Paint;
use crate::verdict::text::{prio, time};
use crate::verdict::{CallSegment, PathStep, Role, SlowCall, ThreadInfo};

/// Maximum characters of a name beside a lane; thread names have at most 15.
const NAME: usize = 15;
/// Maximum characters of a line beside a lane on a wide page.
const WIDE: usize = 32;
/// Maximum bars for the segments of a call; beyond it, the shortest ones share a bar.
const MOST_PARTS: usize = 500;
/// Maximum characters of a name in a tooltip.
const TITLE: usize = 60;

/// Truncates a text, with an ellipsis.
fn cut(text: &str, most: usize) -> String {
    if text.chars().count() <= most {
        return text.to_owned();
    }
    text.chars().take(most.saturating_sub(1)).chain(['…']).collect()
}

/// Truncates the beginning of a text, with an ellipsis: the end of a process's name says more.
fn cut_front(text: &str, most: usize) -> String {
    let length = text.chars().count();
    if length <= most {
        return text.to_owned();
    }
    ['…'].into_iter().chain(text.chars().skip(length - most.saturating_sub(1))).collect()
}

/// Lane without a position.
fn lane(key: String) -> Lane {
    Lane {
        key,
        y: 0,
        height: 0,
        name: String::new(),
        wide_name: String::new(),
        detail: String::new(),
        wide_detail: String::new(),
        bars: Vec::new(),
        over: Vec::new(),
    }
}

/// Thread name for tooltips.
fn full(who: &ThreadInfo) -> String {
    let gap = if who.comm.is_empty() { "" } else { " " };
    format!("{}{gap}{} ({})", cut(&who.comm, TITLE), who.tid, prio(who.prio))
}

/// Time and duration for tooltips.
fn when<T>(axis: &Axis, slice: &Slice<T>) -> String {
    format!("{} from {}", time(slice.ns()), signed(axis.since_zero(slice.begin)))
}

/// Lane of a call's causes; the bars together are as wide as the call. Also returns the number of segments that share
/// a bar.
pub(super) fn causes(axis: &Axis, slow: &SlowCall) -> (Lane, usize) {
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
    let name = "cause".to_owned();
    (
        Lane { name: name.clone(), wide_name: name, detail: call.clone(), wide_detail: call, bars, ..lane },
        together,
    )
}

/// Groups adjacent segments until each group lasts at least `least`.
fn groups(parts: &[CallSegment], least: u64) -> Vec<&[CallSegment]> {
    let (mut groups, mut begin, mut ns) = (Vec::new(), 0, 0);
    for (index, part) in parts.iter().enumerate() {
        // A segment that is wide enough stands alone.
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

/// One bar for a group of segments, painted as the cause with the largest share.
fn group_bar(axis: &Axis, slow: &SlowCall, group: &[CallSegment]) -> Option<Bar> {
    let (first, longest) = (group.first()?, group.iter().max_by_key(|part| part.ns)?);
    if group.len() == 1 {
        return Some(cause(axis, slow, first));
    }
    let whole =
        CallSegment { at_ns: first.at_ns, ns: group.iter().map(|part| part.ns).sum(), ..longest.clone() };
    let bar = cause(axis, slow, &whole);
    Some(Bar { title: format!("{} parts, the longest of them {}", group.len(), bar.title), ..bar })
}

fn cause(axis: &Axis, slow: &SlowCall, part: &CallSegment) -> Bar {
    let begin = slow.begin_ns.saturating_add(part.at_ns);
    let words = part.cause.words();
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
    let title = format!("{words}{behind}: {} from {from}{thread}{cpu}", time(part.ns));
    let further = slow.server.as_ref().is_some_and(|server| server.tid != part.tid);
    let paint = match part.cause.paint() {
        Paint::Server if further => Paint::Further,
        paint => paint,
    };
    let long = format!("{words}{behind}");
    Bar::new(axis, (begin, begin.saturating_add(part.ns)), paint, title, &[long, words])
}

/// Lane of those whom the call waited for: the end of each chain, which is what the time was spent on. `None` if it waited
/// for nobody. Also returns the number of steps that share a bar.
pub(super) fn path(axis: &Axis, slow: &SlowCall) -> Option<(Lane, usize)> {
    let mut leaves: Vec<&PathStep> =
        slow.path.iter().filter(|step| step.depth > 0 && step.waits_for.is_none()).collect();
    if leaves.is_empty() {
        return None;
    }
    let all = leaves.len();
    if all > MOST_PARTS {
        leaves.sort_by_key(|step| std::cmp::Reverse(step.ns));
        leaves.truncate(MOST_PARTS);
        leaves.sort_by_key(|step| step.at_ns);
    }
    let hidden = all - leaves.len();
    let bars = leaves.into_iter().map(|step| leaf(axis, slow, step)).collect();
    let whom = "and what it did".to_owned();
    let lane = Lane {
        name: "waited for".into(),
        wide_name: "waited for".into(),
        detail: "whom".into(),
        wide_detail: whom,
        bars,
        ..lane("path".into())
    };
    Some((lane, hidden))
}

fn leaf(axis: &Axis, slow: &SlowCall, step: &PathStep) -> Bar {
    let begin = slow.begin_ns.saturating_add(step.at_ns);
    let (name, words) = (cut(&step.comm, NAME), step.cause.words());
    let detail = step.detail.as_deref().map(|detail| format!(", {}", cut(detail, TITLE))).unwrap_or_default();
    let doing = step.doing.as_deref().map(|doing| format!(", in {}", cut(doing, TITLE))).unwrap_or_default();
    let from = signed(i64::try_from(step.at_ns).unwrap_or(i64::MAX));
    let title = format!(
        "{} {}: {words}{detail}{doing}, {} from {from}",
        cut(&step.comm, TITLE),
        step.tid,
        time(step.ns)
    );
    let paint = match step.cause {
        Label::Sleeping | Label::ThreadWait => Paint::Sleeps,
        cause => cause.paint(),
    };
    let texts = [format!("{name}: {words}"), name, words];
    Bar::new(axis, (begin, begin.saturating_add(step.ns)), paint, title, &texts)
}

/// Lane of a thread.
pub(super) fn thread(axis: &Axis, thread: &ThreadLane) -> Lane {
    let running = of_role(thread.role);
    let bar = |slice: &Slice<ThreadActivity>| {
        let (paint, what, texts) = match &slice.what {
            ThreadActivity::Running(cpu) => {
                (running, format!("running on cpu{cpu}"), vec![format!("cpu{cpu}")])
            }
            ThreadActivity::Runnable(cpu) => {
                (Paint::Waits, format!("runnable, in the queue of cpu{cpu}"), vec!["runnable".to_owned()])
            }
            ThreadActivity::Sleeping => (Paint::Sleeps, "sleeping".to_owned(), Vec::new()),
            ThreadActivity::Blocked(why) => {
                (Paint::Blocked, format!("blocked: {}", cut(why, TITLE)), vec!["blocked".to_owned()])
            }
            ThreadActivity::WaitsFor(whom) => {
                let text = format!("waits for {}", cut(whom, TITLE));
                (Paint::Blocked, text.clone(), vec![text, "waits".to_owned()])
            }
            ThreadActivity::Unknown => (Paint::Unknown, "not in the trace".to_owned(), Vec::new()),
        };
        let title = format!("{} {what}: {}", thread.who, when(axis, slice));
        Bar { pair: thread.pair, ..Bar::new(axis, (slice.begin, slice.end), paint, title, &texts) }
    };
    let who = &thread.who;
    let pair = if thread.pair > 0 { format!(" {}", thread.pair) } else { String::new() };
    let role = format!("{}{pair}", thread.role.name());
    let urgency = who.prio.map(|level| format!(", {}", prio(Some(level)))).unwrap_or_default();
    let process = who.other_process();
    let wide_process = process.map(|process| format!(" in {}", cut_front(process, WIDE - role.len() - 4)));
    Lane {
        name: if who.comm.is_empty() { who.tid.to_string() } else { cut(&who.comm, NAME) },
        wide_name: cut_front(&format!("{who}{urgency}"), WIDE),
        detail: process.map_or_else(|| role.clone(), |process| cut_front(process, NAME - 1)),
        wide_detail: role + &wide_process.unwrap_or_default(),
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

/// Lane of a CPU.
pub(super) fn cpu(axis: &Axis, cpu: &CpuLane, data: &PictureData, slow: Option<&SlowCall>) -> Lane {
    let in_the_way =
        |tid: i32| slow.is_some_and(|slow| slow.parts.iter().any(|part| part.behind == Some(tid)));
    let bar = |slice: &Slice<CpuOccupant>| {
        let (paint, pair, what, texts) = match &slice.what {
            CpuOccupant::Idle => (Paint::Idle, 0, "idle".to_owned(), ["idle".to_owned(), String::new()]),
            CpuOccupant::Unknown => {
                (Paint::Unknown, 0, "not in the trace".to_owned(), [String::new(), String::new()])
            }
            CpuOccupant::Task(who) => {
                let ours = data.threads.iter().find(|thread| thread.who.tid == who.tid);
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

#[cfg(test)]
mod tests {
    use super::cut;

    #[test]
    fn long_names_are_cut_between_characters() {
        assert_eq!(cut("Binder:12_1", 11), "Binder:12_1");
        assert_eq!(cut("Binder:12_1", 5), "Bind…");
        assert_eq!(cut("äöü", 2), "ä…");
    }
}
