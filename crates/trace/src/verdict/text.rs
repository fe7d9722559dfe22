//! Formats an analysis as text.
//! Not here: the analysis (`verdict`, `slow`).

use std::fmt::{self, Write};

use super::{
    Analysis, BlockingTask, ChainLink, Group, Inversions, MarkCost, Reason, SlowCall, Sum, ThreadInfo,
};
use crate::cause::Label;
use crate::event::Prio;

/// Causes whose clause says whom the thread waited for; those of the others say it themselves.
const CHAINED: [&str; 6] = [
    "monitor_contention",
    "art_lock_contention",
    "mutex_contention",
    "io",
    "lock_wait",
    "uninterruptible_sleep",
];
/// Whoever this wakes waited for a disk.
const DISK: &str = "softirq BLOCK";
/// Reasons below this share of a transaction are omitted.
const WORTH_TELLING: f64 = 0.03;

/// Duration for people.
pub(crate) fn time(ns: u64) -> String {
    units::duration(ns as f64)
}

pub(crate) fn prio(prio: Option<i32>) -> String {
    prio.map_or_else(|| "priority unknown".to_owned(), |prio| Prio(prio).to_string())
}

impl fmt::Display for ThreadInfo {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let gap = if self.comm.is_empty() { "" } else { " " };
        write!(f, "{}{gap}{}", self.comm, self.tid)
    }
}

impl fmt::Display for BlockingTask {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        if self.tid < 0 {
            return f.write_str("a task that the trace does not show");
        }
        let gap = if self.comm.is_empty() { "" } else { " " };
        write!(f, "{}{gap}{} ({})", self.comm, self.tid, prio(self.prio))
    }
}

fn tasks(behind: &[BlockingTask]) -> String {
    match behind {
        [] => "others".to_owned(),
        [one] => one.to_string(),
        [one, two] => format!("{one} and {two}"),
        [one, rest @ ..] => format!("{one} for {} and {} others", time(one.ns), rest.len()),
    }
}

impl fmt::Display for Inversions {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let urgent = units::counted(self.urgent_calls, "call");
        let Some(worst) = self.worst else { return write!(f, "none in {urgent} of urgent callers") };
        let (all, most) = (time(self.ns), time(worst.ns));
        write!(f, "{} of {urgent} of urgent callers, {all}; ", self.calls)?;
        write!(f, "the longest {most}, in call {} of thread {}", worst.debug_id, worst.caller)
    }
}

/// What a waiter waited for, behind "waited TIME": a lock that the next link of the chain owns, or until that one woke it.
fn waited_for(cause: &str, next: &ChainLink) -> String {
    let who = &next.who;
    match (next.how.as_str(), next.lock.as_deref(), next.call) {
        ("owner", lock, _) => {
            let place = next.place.as_deref().map(|place| format!(" in {place}")).unwrap_or_default();
            let lock = lock.unwrap_or("lock");
            let article = if lock == "monitor" { "a " } else { "" };
            format!("for {article}{lock} held by {who}{place}")
        }
        ("call", _, Some(call)) => format!("for {who} to serve its call {call}"),
        _ => match cause {
            "monitor_contention" => format!("for a monitor until {who} woke it"),
            "art_lock_contention" => format!("for a lock of the runtime until {who} woke it"),
            "mutex_contention" => format!("in a futex until {who} woke it"),
            "io" => format!("for I/O until {who} woke it"),
            "lock_wait" => format!("for a lock of the kernel until {who} woke it"),
            _ => format!("until {who} woke it"),
        },
    }
}

impl ChainLink {
    /// What the thread did for most of the time, as a clause behind "which"; `next` is whom it waited for.
    fn clause(&self, next: Option<&Self>) -> String {
        let time = time(self.cause_ns);
        let doing = self.doing.as_deref().map(|doing| format!(" (in {doing})")).unwrap_or_default();
        let detail =
            |with: &str| self.detail.as_deref().map(|detail| format!("{with}{detail}")).unwrap_or_default();
        if let Some(next) = next {
            return format!("waited {time} {}{doing}", waited_for(&self.cause, next));
        }
        match self.end.as_deref() {
            Some("lost_events") => {
                return format!("cannot be followed further: events of these {time} are missing");
            }
            Some("circle") => return format!("waited {time} for one who is already named{doing}"),
            Some("depth" | "room") if self.cause == "not_shown" => {
                return format!("did for {time} what is not followed further{doing}");
            }
            Some("depth" | "room") => return format!("waited {time}, which is not followed further{doing}"),
            Some("gone") => return format!("had not begun, or had exited, for {time}"),
            Some("not_shown") if self.cause == "not_shown" => {
                return format!("did for {time} what the trace does not show{doing}");
            }
            _ => {}
        }
        let until = match self.end.as_deref() {
            None => String::new(),
            Some("not_shown") => "; the trace does not show who woke it".to_owned(),
            Some("an interrupt") if self.cause == "io" => String::new(),
            Some(interrupt) => format!(" until {interrupt} woke it"),
        };
        match self.cause.as_str() {
            "running" => format!("ran {time}{}{doing}", detail(": ")),
            "driver" => format!("worked {time} in the driver{doing}"),
            "runnable_wait" | "wrong_cpu" => format!("was runnable {time}{}{doing}", detail(" behind ")),
            "io" => format!("waited {time} for I/O{}{until}{doing}", detail(" in ")),
            "uninterruptible_sleep" if self.end.as_deref() == Some(DISK) => {
                format!("waited {time} for I/O{}, until {DISK} woke it{doing}", detail(" in "))
            }
            "sleep" => format!("slept {time}{}{until}{doing}", detail(" in ")),
            "uninterruptible_sleep" => {
                format!("slept uninterruptibly {time}{}{until}{doing}", detail(" in "))
            }
            "lock_wait" => format!("waited {time} for a lock of the kernel{}{until}{doing}", detail(": ")),
            "mutex_contention" => format!("waited {time} in a futex{until}{doing}"),
            "irq" | "softirq" => format!("lost its CPU for {time} to interrupt{}", detail(" ")),
            cause => format!("waited {time}: {}{}{until}{doing}", cause.replace('_', " "), detail(", ")),
        }
    }
}

impl Reason {
    /// Reason as a clause, with what the thread was doing and the chain of those it waited for.
    fn clause(&self) -> String {
        let mut text = match self.chain.first() {
            Some(next) if next.how == "owner" => {
                let who = self.who.as_ref().map_or_else(String::new, |who| format!("{} {who}", self.role));
                format!("{who} waited {} {}", time(self.ns), waited_for(&self.cause, next))
            }
            Some(next) if CHAINED.contains(&self.cause.as_str()) => {
                let who = self.who.as_ref().map_or_else(String::new, |who| format!("{} {who}", self.role));
                let place = self.detail.as_deref().map(|place| format!(" ({place})")).unwrap_or_default();
                format!("{who} waited {} {}{place}", time(self.ns), waited_for(&self.cause, next))
            }
            _ => self.plain_clause(),
        };
        if let Some(doing) = &self.doing {
            let _ = write!(text, " (in {doing})");
        }
        for (index, link) in self.chain.iter().enumerate() {
            let link_to = if link.how == "busy" { " and" } else { ", which" };
            let _ = write!(text, "{link_to} {}", link.clause(self.chain.get(index + 1)));
        }
        text
    }

    fn plain_clause(&self) -> String {
        let time = time(self.ns);
        let who = self.who.as_ref().map_or_else(|| "nobody".to_owned(), |who| format!("{} {who}", self.role));
        let detail = self.detail.as_deref().unwrap_or("?");
        let cpus: Vec<String> = self.cpus.iter().map(|cpu| format!("cpu{cpu}")).collect();
        let cpus = cpus.join(", ");
        let behind = tasks(&self.behind);
        match self.cause.as_str() {
            "client_running" | "server_running" => format!("{who} ran for {time}"),
            "driver" => format!("the driver took {time} in {who}"),
            "runnable_wait" => format!("{who} was runnable {time} on {cpus} behind {behind}"),
            "wrong_cpu" => {
                format!("{who} was runnable {time} on {cpus} behind {behind} while {detail} was idle")
            }
            "tracing" => format!("{who} waited {time} on {cpus} for the recording itself: {behind}"),
            "handover" => format!("{who} waited {time} until the other side left {cpus}"),
            "wakeup_latency" => format!("{who} was woken {time} before it ran"),
            "wakeup_interrupt" => format!("{who} was woken, and the interrupt took {time} to reach {cpus}"),
            "idle_exit" => format!("{who} waited {time} for {cpus} to leave idle state {detail}"),
            "irq" => format!("interrupt {detail} took {time} of {cpus} from {who}"),
            "softirq" => format!("softirq {detail} took {time} of {cpus} from {who}"),
            "no_free_thread" => match &self.detail {
                Some(call) => format!("no thread was free for {time}; {who} was busy with call {call}"),
                None => format!("no thread was free for {time}"),
            },
            "cpu_stolen" => format!(
                "{who} had no CPU for {time}: no event on {cpus} past a due interrupt, so the host or the firmware had taken \
                 it (or the kernel kept interrupts off)"
            ),
            "cpu_silent" => format!(
                "no event on {cpus} for {time}: {who} computed, or the CPU was taken from it; the trace cannot tell"
            ),
            "thread_wait" => format!(
                "{who} slept {time} until {detail} of its own process woke it, as for a lock or a condition"
            ),
            "oneway_queue" => format!("it was queued for {time}"),
            "frozen" => format!("the receiver was frozen for {time}"),
            "not_shown" => format!("the trace does not show what {who} did for {time}"),
            "lock_wait" => match &self.detail {
                Some(lock) => format!("{who} waited {time} for a lock of the kernel: {lock}"),
                None => format!("{who} waited {time} for a lock of the kernel"),
            },
            "sleep" => match &self.detail {
                Some(detail) => format!("{who} slept {time} {detail}"),
                None => format!("{who} slept {time}, the trace does not say why"),
            },
            "uninterruptible_sleep" if self.ended_by.as_deref() == Some(DISK) => {
                let place = self.detail.as_deref().map(|place| format!(" in {place}")).unwrap_or_default();
                format!("{who} waited {time} for I/O{place}, until {DISK} woke it")
            }
            "uninterruptible_sleep" if self.ended_by.is_some() => {
                let place = self.detail.as_deref().map(|place| format!(" in {place}")).unwrap_or_default();
                let waker = self.ended_by.as_deref().unwrap_or_default();
                format!("{who} slept uninterruptibly {time}{place} until {waker} woke it")
            }
            "uninterruptible_sleep" => match &self.detail {
                Some(place) => format!("{who} slept uninterruptibly {time} in {place}"),
                None => format!("{who} slept uninterruptibly {time}, the trace does not say why"),
            },
            "io" => match &self.detail {
                Some(place) => format!("{who} waited {time} for I/O in {place}"),
                None => format!("{who} waited {time} for I/O"),
            },
            cause => format!("{who} waited {time}: {}", cause.replace('_', " ")),
        }
    }
}

/// Prefix for a latency test's call: `P1 fifo #4211: `.
fn tested(label: &str) -> String {
    let value = |key: &str| label.split(' ').find_map(|word| word.strip_prefix(key)?.strip_prefix('='));
    match (value("pair"), value("class"), value("number")) {
        (Some(pair), Some(class), Some(number)) => format!("P{pair} {class} #{number}: "),
        _ => format!("{label}: "),
    }
}

/// Transaction in a sentence or two.
pub(super) fn sentence(slow: &SlowCall) -> String {
    let mut text = slow.label.as_deref().map(tested).unwrap_or_default();
    let method = slow.method.as_deref().map(|method| format!("{method}, ")).unwrap_or_default();
    let _ = write!(text, "{method}call {} of {} ({}) ", slow.debug_id, slow.caller, prio(slow.caller.prio));
    match &slow.server {
        Some(server) => _ = write!(text, "to {server}"),
        None => _ = write!(text, "to process {}", slow.server_process),
    }
    let _ = write!(text, " took {}", time(slow.ns));
    match (slow.reported_miss, slow.deadline_ns) {
        (Some(miss), _) => {
            let (took, deadline) = (time(miss.took_ns), time(miss.deadline_ns));
            _ = write!(text, " ({took} by the caller's clock, deadline {deadline})");
        }
        (None, Some(deadline)) if slow.missed => _ = write!(text, " (deadline {})", time(deadline)),
        _ => {}
    }
    let mut reasons = slow.reasons.iter();
    if let Some(first) = reasons.next() {
        let _ = write!(text, ": {}", first.clause());
    }
    if let Some(inversion) = &slow.inversion {
        let waiter = &inversion.waiter;
        let said = slow.reasons.first().is_some_and(|first| {
            first.who.as_ref().is_some_and(|who| who.tid == waiter.tid) && !first.behind.is_empty()
        });
        if said {
            text.push_str(": priority inversion");
        } else {
            let behind = tasks(&inversion.behind);
            let _ = write!(text, ". Priority inversion: {} behind {behind}", time(inversion.ns));
        }
        let (caller, waits) = (prio(slow.caller.prio), prio(waiter.prio));
        let _ = write!(text, ", caller {caller}, {waiter} not boosted ({waits})");
    } else if slow.late_preemption_ns > 0 && slow.late_preemption_ns >= slow.ns / 5 {
        let _ = write!(text, ". Preempted late: {}", time(slow.late_preemption_ns));
    }
    let more: Vec<String> =
        reasons.filter(|reason| reason.share >= WORTH_TELLING).take(4).map(Reason::clause).collect();
    if !more.is_empty() {
        let _ = write!(text, ". Also: {}", more.join("; "));
    }
    if let Some((sent, received)) = slow.crossed {
        let _ = write!(text, ". Over two CPUs: sent on cpu{sent}, received on cpu{received}");
    }
    if let Some((ns, khz)) = slow.slow_clock.filter(|(ns, _)| *ns >= slow.ns / 10) {
        let _ = write!(text, ". For {} the CPU ran below its best, at {khz} kHz", time(ns));
    }
    if slow.doubtful {
        text.push_str(". Events are missing: not judged");
    }
    text
}

impl fmt::Display for Analysis {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let counts = &self.counts;
        writeln!(f, "{} events in {}", self.events, time(self.span_ns))?;
        if self.lost > 0 || self.gaps > 0 {
            writeln!(f, "WARNING: {} events lost, {} gaps of unknown size", self.lost, self.gaps)?;
        }
        for problem in &self.problems {
            writeln!(f, "WARNING: {problem}")?;
        }
        if let Some(stolen) = self.stolen_ns.filter(|stolen| *stolen > 0) {
            writeln!(f, "the host gave {} of this machine's CPU time to others (steal)", time(stolen))?;
        }
        let calls = units::counted(counts.calls, "call");
        write!(f, "{calls} ({} nested), {} oneway", counts.nested, counts.oneway)?;
        for (count, what) in [
            (counts.failed, "failed"),
            (counts.cut, "cut off by the trace's end"),
            (counts.doubtful, "not judged for missing events"),
        ] {
            if count > 0 {
                write!(f, ", {count} {what}")?;
            }
        }
        writeln!(f)?;
        if counts.scenes > 0 {
            writeln!(
                f,
                "{} calls are of inheritance scenes, which sleep on purpose (--scenes shows them)",
                counts.scenes
            )?;
        }
        match self.deadline_ns {
            Some(deadline) => writeln!(f, "{} over the deadline of {}", counts.missed, time(deadline))?,
            None if counts.missed > 0 => writeln!(f, "{} missed their test's deadline", counts.missed)?,
            None => {}
        }
        if counts.calls > 0 {
            let (calls, same) = (counts.calls, counts.same_cpu);
            writeln!(f, "both sides on one CPU in {same} of {calls} calls")?;
        }
        if self.inversions.urgent_calls > 0 {
            writeln!(f, "priority inversion: {}", self.inversions)?;
        }
        if let Some(words) = self.marks.and_then(MarkCost::words) {
            writeln!(f, "recording cost {words}")?;
        }
        self.sums(f)?;
        self.table(f)?;
        if !self.behind.is_empty() {
            writeln!(f, "\nwaited behind")?;
            for task in &self.behind {
                writeln!(f, "  {:>9}  {task}", time(task.ns))?;
            }
        }
        if !self.slow.is_empty() {
            writeln!(f, "\nslow calls")?;
            for slow in &self.slow {
                let mark = if slow.missed { "MISS " } else { "" };
                writeln!(f, "- {mark}{}", slow.verdict)?;
            }
        }
        Ok(())
    }
}

/// A cause in a table: its name, but what is not shown is no cause.
pub(crate) fn cause_words(name: &str) -> &str {
    if name == Label::NotShown.name() { "not shown" } else { name }
}

/// Rows of a table that the text shows.
const MOST_ROWS: usize = 20;
/// Causes of a row that the text shows.
const MOST_CAUSES: usize = 3;

fn rows(f: &mut fmt::Formatter<'_>, title: &str, groups: &[&Group]) -> fmt::Result {
    if groups.is_empty() {
        return Ok(());
    }
    writeln!(f, "\n{title}")?;
    writeln!(f, "  {:>7} {:>9} {:>9} {:>9} {:>9}", "calls", "total", "median", "99 %", "most")?;
    for Group { name, sum, .. } in groups.iter().take(MOST_ROWS) {
        let [total, median, p99, most] = [sum.ns, sum.p50_ns, sum.p99_ns, sum.max_ns].map(time);
        let causes = sum.shares.iter().take(MOST_CAUSES).filter(|share| share.share >= WORTH_TELLING);
        let causes: Vec<_> = causes
            .map(|share| format!("{} {:.0} %", cause_words(&share.cause), share.share * 100.0))
            .collect();
        let causes = causes.join(", ");
        writeln!(f, "  {:>7} {total:>9} {median:>9} {p99:>9} {most:>9}  {name}: {causes}", sum.calls)?;
    }
    match groups.len().saturating_sub(MOST_ROWS) {
        0 => Ok(()),
        more => writeln!(f, "  and {} more (--format json has all)", units::counted(more as u64, "row")),
    }
}

impl Analysis {
    fn sums(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        for (what, sum) in
            [("all calls", &self.all), ("the slowest 1 %", &self.slowest), ("oneway calls", &self.oneway)]
        {
            if sum.calls == 0 {
                continue;
            }
            let Sum { calls, ns, min_ns, p50_ns, p99_ns, max_ns, shares } = sum;
            writeln!(
                f,
                "\n{what}: {calls}, together {}; least {}, median {}, 99 % {}, most {}",
                time(*ns),
                time(*min_ns),
                time(*p50_ns),
                time(*p99_ns),
                time(*max_ns),
            )?;
            for share in shares.iter().filter(|share| share.share >= 0.001) {
                writeln!(
                    f,
                    "  {:>5.1} %  {:<25} {}",
                    share.share * 100.0,
                    cause_words(&share.cause),
                    time(share.ns)
                )?;
            }
        }
        Ok(())
    }

    /// The rows with the most time, then those that wait by design.
    fn table(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Some(by) = self.by else { return Ok(()) };
        let (waiting, working): (Vec<&Group>, Vec<&Group>) =
            self.groups.iter().partition(|group| group.waits_by_design);
        rows(f, &format!("by {by}; nested calls count in their own row, too"), &working)?;
        rows(f, "waiting by design: the server slept for nearly all of nearly each call", &waiting)
    }
}
