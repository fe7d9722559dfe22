//! Sentences about one transaction, and how times, priorities and threads are written.
//! Not here: the analysis (`verdict`, `slow`), the text about a whole trace (`overview`).

use std::fmt::{self, Write};

use super::codes::code_words;
use super::{
    BlockingTask, CallSegment, ChainLink, End, FailureInfo, InterruptName, Inversions, OnewaySpam, Reason,
    SlowCall, ThreadInfo,
};
use crate::cause::phrase::filled;
use crate::cause::{Chain, Label};
use crate::event::Prio;
use crate::model::Outcome;
use crate::model::chain::{How, Stop};

/// Reasons below this share of a transaction are omitted.
pub(super) const WORTH_TELLING: f64 = 0.03;

/// Duration for people.
pub(crate) fn time(ns: u64) -> String {
    units::duration(ns as f64)
}

pub(crate) fn prio(prio: Option<i32>) -> String {
    prio.map_or_else(|| "priority unknown".to_owned(), |prio| Prio(prio).to_string())
}

impl fmt::Display for ThreadInfo {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        if self.comm.strip_suffix(&self.tid.to_string()).is_some_and(|name| name.ends_with('_')) {
            return f.write_str(&self.comm);
        }
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
fn waited_for(cause: Label, next: &ChainLink) -> String {
    let who = &next.who;
    match (next.how, next.lock.as_deref(), next.call) {
        (How::Owner, lock, _) => {
            let place = next.place.as_deref().map(|place| format!(" in {place}")).unwrap_or_default();
            let lock = lock.unwrap_or("lock");
            let article = if lock == "monitor" { "a " } else { "" };
            format!("for {article}{lock} held by {who}{place}")
        }
        (How::Call, _, Some(call)) => format!("for {who} to serve its call {call}"),
        _ => match cause.chain() {
            Chain::For(what) if !what.is_empty() => format!("{what} until {who} woke it"),
            _ => format!("until {who} woke it"),
        },
    }
}

impl ChainLink {
    /// What the thread did for most of the time, as a clause behind "which"; `next` is whom it waited for.
    fn clause(&self, next: Option<&Self>) -> String {
        let time = time(self.cause_ns);
        let doing = self.doing.as_deref().map(|doing| format!(" (in {doing})")).unwrap_or_default();
        if let Some(next) = next {
            return format!("waited {time} {}{doing}", waited_for(self.cause, next));
        }
        let until = match (&self.end, self.cause) {
            (Some(End::Stopped(stop)), cause) => match (stop, cause) {
                (Stop::Lost, _) => {
                    return format!("cannot be followed further: events of these {time} are missing");
                }
                (Stop::Circle, _) => return format!("waited {time} for one who is already named{doing}"),
                (Stop::Depth | Stop::Room, Label::NotShown) => {
                    return format!("is not followed further for {time}{doing}");
                }
                (Stop::Depth | Stop::Room, _) => {
                    return format!("waited {time}, which is not followed further{doing}");
                }
                (Stop::Gone, _) => return format!("had not begun, or had exited, for {time}"),
                (Stop::NotShown, Label::NotShown) => {
                    return format!("is not shown by the trace for {time}{doing}");
                }
                (Stop::NotShown, _) => "; the trace does not show who woke it".to_owned(),
            },
            (Some(End::Woken(InterruptName::Unnamed)), Label::Io) | (None, _) => String::new(),
            (Some(End::Woken(interrupt)), _) => format!(" until {interrupt} woke it"),
        };
        let disk = self.end == Some(End::Woken(InterruptName::Disk));
        let clause = filled(self.cause.phrase(), &|value| match value {
            "time" => Some(time.clone()),
            "name" => Some(self.cause.words()),
            "detail" => self.detail.clone(),
            "until" => Some(until.clone()),
            "disk" => disk.then(|| InterruptName::Disk.to_string()),
            _ => None,
        });
        clause + &doing
    }
}

impl Reason {
    /// Whether a segment is one of this reason's.
    fn is_of(&self, part: Option<&CallSegment>) -> bool {
        part.is_some_and(|part| {
            part.cause == self.cause && self.who.as_ref().map_or(0, |who| who.tid) == part.tid.max(0)
        })
    }

    /// Reason as a clause, with what the thread was doing and the chain of those it waited for.
    fn clause(&self) -> String {
        let mut text = self.head();
        for (index, link) in self.chain.iter().enumerate() {
            let link_to = if link.how == How::Busy { " and" } else { ", which" };
            let _ = write!(text, "{link_to} {}", link.clause(self.chain.get(index + 1)));
        }
        text
    }

    /// Reason as a clause, with the end of the chain only.
    fn end_of_chain(&self) -> String {
        let head = self.head();
        match &self.chain[..] {
            [] => head,
            [one] => format!("{head}, which {}", one.clause(None)),
            [.., last] => {
                let (threads, who) = (self.chain.len(), &last.who);
                format!("{head}; at the end of the chain of {threads} threads {who} {}", last.clause(None))
            }
        }
    }

    /// What the thread itself waited for or did.
    fn head(&self) -> String {
        let who = || self.who.as_ref().map_or_else(String::new, |who| format!("{} {who}", self.role.name()));
        let mut text = match self.chain.first() {
            Some(next) if next.how == How::Owner => {
                format!("{} waited {} {}", who(), time(self.ns), waited_for(self.cause, next))
            }
            Some(next) if matches!(self.cause.chain(), Chain::For(_)) => {
                let place = self.detail.as_deref().map(|place| format!(" ({place})")).unwrap_or_default();
                format!("{} waited {} {}{place}", who(), time(self.ns), waited_for(self.cause, next))
            }
            _ => self.plain_clause(),
        };
        if let Some(doing) = &self.doing {
            let _ = write!(text, " (in {doing})");
        }
        text
    }

    fn plain_clause(&self) -> String {
        let ended = |by: &InterruptName| Some(by.to_string());
        let who = || {
            self.who
                .as_ref()
                .map_or_else(|| "the call".to_owned(), |who| format!("{} {who}", self.role.name()))
        };
        filled(self.cause.phrase(), &|value| match value {
            "time" => Some(time(self.ns)),
            "name" => Some(self.cause.words()),
            "who" => Some(who()),
            "acts" if self.who.is_none() => Some("where the call was".to_owned()),
            "acts" => Some(format!("what {} did", who())),
            "cpus" => Some(self.cpus.iter().map(|cpu| format!("cpu{cpu}")).collect::<Vec<_>>().join(", ")),
            "behind" => Some(tasks(&self.behind)),
            "detail" => self.detail.clone(),
            "until" => Some(String::new()),
            "disk" => self.ended_by.as_ref().filter(|by| **by == InterruptName::Disk).and_then(ended),
            "ended" => self.ended_by.as_ref().and_then(ended),
            _ => None,
        })
    }
}

impl fmt::Display for OnewaySpam {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { caller, server_process, server_name, node, code, debug_id, times, .. } = self;
        let process = process_words(*server_process, server_name);
        let times = units::counted(*times, "time");
        write!(
            f,
            "BR_ONEWAY_SPAM_SUSPECT {times}: {caller} to node {node} of {process}, {}, first with call {debug_id}",
            code_words(*code)
        )
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

/// A process, by its name if it has one.
pub(crate) fn process_words(pid: i32, name: &str) -> String {
    if name.is_empty() { format!("process {pid}") } else { format!("{name} {pid}") }
}

/// Who called whom with what: the beginning of a sentence.
fn opening(slow: &SlowCall) -> String {
    let mut text = slow.label.as_deref().map(tested).unwrap_or_default();
    let name = slow.method.as_deref().or(slow.code_name.as_deref());
    text.extend(name.map(|name| format!("{name}, ")));
    let answered = matches!(slow.outcome, Outcome::Replied | Outcome::Delivered);
    let oneway = if slow.oneway { "oneway " } else { "" };
    match slow.debug_id {
        // The driver made no transaction of it.
        0 if slow.failure.is_some() => text.push_str("a call"),
        id if name.is_none() && !answered => _ = write!(text, "{oneway}call {id} (code {})", slow.code),
        id => _ = write!(text, "{oneway}call {id}"),
    }
    let process = slow.caller.other_process().map(|process| format!("{process}, ")).unwrap_or_default();
    let _ = write!(text, " of {} ({process}{})", slow.caller, prio(slow.caller.prio));
    match &slow.server {
        Some(server) => {
            let _ = write!(text, " to {server}");
            text.extend(server.other_process().map(|process| format!(" ({process})")));
        }
        None if slow.server_process == 0 => {}
        None => _ = write!(text, " to {}", process_words(slow.server_process, &slow.server_name)),
    }
    text
}

/// How a failed call ended, behind its opening.
fn failed(slow: &SlowCall, failure: &FailureInfo) -> String {
    let mut text = format!(" failed after {}", time(slow.ns));
    let word = failure.reply.as_deref().unwrap_or("the trace does not have the driver's word");
    let _ = write!(text, ": {word}");
    text.extend(failure.why.as_deref().map(|why| format!(", {why}")));
    if slow.server.is_some() {
        text.push_str("; it had been taken");
    }
    text
}

/// How long a call has waited, behind its opening.
fn waiting(slow: &SlowCall) -> String {
    let age = time(slow.ns);
    if slow.oneway {
        return format!(" is not taken by anybody {age} later, at the trace's end");
    }
    let mut text = format!(" is unanswered after {age}, at the trace's end");
    if let Some(deadline) = slow.deadline_ns.filter(|_| slow.missed) {
        let _ = write!(text, ", over the deadline of {}", time(deadline));
    }
    if slow.server.is_none() {
        text.push_str(": no thread has taken it");
        if !slow.behind_calls.is_empty() {
            let calls: Vec<String> = slow.behind_calls.iter().take(4).map(i32::to_string).collect();
            let more = if slow.behind_calls.len() > calls.len() { " and others" } else { "" };
            let _ = write!(text, "; threads of its process serve calls {}{more}", calls.join(", "));
        }
    }
    text
}

/// A call in one sentence: who called whom with which method, how it ended, and what was at the end of its chain of waits.
pub(crate) fn headline(slow: &SlowCall) -> String {
    let method = slow.method.clone().or_else(|| slow.code_name.clone());
    let method = method.unwrap_or_else(|| match (slow.debug_id, slow.node) {
        (0, _) => "an object".to_owned(),
        (_, 0) => format!("code {}", slow.code),
        (_, node) => format!("code {} of node {node}", slow.code),
    });
    let caller = match slow.caller.other_process() {
        Some(process) => format!("{} ({process})", slow.caller),
        None => slow.caller.to_string(),
    };
    let callee = match &slow.server {
        Some(server) => match server.other_process() {
            Some(process) => format!(" in {process} ({server})"),
            None => format!(" in {server}"),
        },
        None if slow.server_process == 0 => String::new(),
        None => format!(" in {}", process_words(slow.server_process, &slow.server_name)),
    };
    let label = slow.label.as_deref().map(tested).unwrap_or_default();
    let text = format!("{label}{caller} called {method}{callee}");
    match (&slow.failure, slow.outcome) {
        (Some(failure), _) => return text + ":" + &failed(slow, failure),
        (None, Outcome::Cut) if slow.oneway || slow.server.is_none() => return text + ":" + &waiting(slow),
        _ => {}
    }
    let how = match slow.outcome {
        Outcome::Cut => format!("unanswered after {}", time(slow.ns)),
        _ => time(slow.ns),
    };
    let end = slow.reasons.first().map(|reason| format!("; {}", reason.end_of_chain()));
    text + ": " + &how + &end.unwrap_or_default()
}

/// Transaction in a sentence or two.
pub(super) fn sentence(slow: &SlowCall) -> String {
    let mut text = opening(slow);
    match (&slow.failure, slow.outcome) {
        (Some(failure), _) => return text + &failed(slow, failure),
        (None, Outcome::Cut) => {
            text.push_str(&waiting(slow));
            if slow.server.is_none() {
                return text;
            }
        }
        _ => _ = write!(text, " took {}", time(slow.ns)),
    }
    match (slow.reported_miss, slow.deadline_ns) {
        (Some(miss), _) => {
            let (took, deadline) = (time(miss.took_ns), time(miss.deadline_ns));
            _ = write!(text, " ({took} by the caller's clock, deadline {deadline})");
        }
        (None, Some(deadline)) if slow.missed && slow.outcome != Outcome::Cut => {
            _ = write!(text, " (deadline {})", time(deadline));
        }
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
    // What it is in now may be new.
    let now = slow
        .reasons
        .iter()
        .skip(1)
        .find(|reason| slow.outcome == Outcome::Cut && reason.is_of(slow.parts.last()));
    text.extend(now.map(|now| format!(". At the trace's end {}", now.clause())));
    let reasons = reasons.filter(|reason| !now.is_some_and(|now| std::ptr::eq(now, *reason)));
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
