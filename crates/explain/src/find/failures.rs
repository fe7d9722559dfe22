//! Transactions that the driver refused: what, who to whom, and which check.
//! Not here: the table of checks (`decode`).

use super::{bytes, code};
use crate::decode;
use crate::finding::{Finding, Grade, Kind};
use crate::source::DriverSource;
use crate::system::{Hint, Refusal, Seen, Sort, System};

pub(super) fn find(system: &System, source: Option<&DriverSource>) -> Vec<Finding> {
    let logged = system.refusals.all.iter();
    // The logs know more about the same refusal.
    let is_logged = |report: &Refusal| {
        logged.clone().any(|(refusal, _)| {
            refusal.word == report.word
                && refusal.from.pid == report.from.pid
                && (refusal.to == report.to || refusal.to == 0 || report.to == 0)
        })
    };
    let only_reported = system.reports.all.iter().filter(|(report, _)| !is_logged(report)).map(|(report, seen)| {
        finding(system, report, seen, source)
            .why("the driver's report over netlink has no errno: its logs, or BINDER_GET_EXTENDED_ERROR in the caller, do")
    });
    logged
        .clone()
        .map(|(refusal, seen)| finding(system, refusal, seen, source))
        .chain(only_reported)
        .collect()
}

fn finding(system: &System, refusal: &Refusal, seen: &Seen, source: Option<&DriverSource>) -> Finding {
    let (grade, kind) = match refusal.word {
        decode::FAILED_REPLY => (Grade::Bad, Kind::Failure),
        decode::DEAD_REPLY => (Grade::Warning, Kind::Failure),
        decode::FROZEN_REPLY => (Grade::Warning, Kind::Frozen),
        _ => (Grade::Note, Kind::Failure),
    };
    let Refusal { word, from, to, line, boot, .. } = refusal;
    let key = format!("{boot} {word} {:?} {} {to} {line}", refusal.errno, from.pid);
    let checks = decode::candidates(refusal);
    let mut found =
        Finding::new(grade, kind, key, headline(system, refusal)).when(seen.when()).pids([*to, from.pid]);
    match checks.as_slice() {
        [] => found = found.why("no check of the driver is known to refuse with these numbers"),
        [one] => found = found.why(one.why),
        several => {
            let list: Vec<String> =
                several.iter().map(|check| format!("- {} ({})", check.why, check.item)).collect();
            found = found.why(format!("one of these checks, the likeliest first:\n{}", list.join("\n")));
        }
    }
    if let Some(room) = room(system, refusal) {
        found = found.why(room);
    }
    match source.and_then(|source| source.check(*line)) {
        Some(check) => found = found.why(check),
        None if *line > 0 && checks.len() > 1 => {
            found = found.next(format!(
                "the check is at line {line} of that kernel's drivers/android/binder.c: --source its tree shows it"
            ));
        }
        None => {}
    }
    if let Some(first) = checks.first() {
        found = found.next(decode::next_step(first.item));
    }
    let mut items: Vec<&'static str> = checks.iter().map(|check| check.item).collect();
    items.extend(decode::related(refusal));
    found.contract(&items).evidence(seen.evidence.clone())
}

fn headline(system: &System, refusal: &Refusal) -> String {
    let Refusal { sort, word, errno, from, to, .. } = refusal;
    let name = decode::name_of(*word).unwrap_or("an unknown word");
    let numbers = match errno {
        Some(0) => format!("{name}, {word}/0"),
        Some(errno) => format!("{name}, {}; {word}/{errno}", decode::errno_name(*errno)),
        None => format!("{name}, {word}"),
    };
    // Of a reply it means nothing.
    let handle = refusal.handle.filter(|_| *sort != Sort::Reply);
    let whom = match (to, handle, refusal.node) {
        (0, Some(0), _) => " to handle 0".to_owned(),
        (0, Some(handle), _) => format!(" to handle {handle}"),
        (0, None, _) => String::new(),
        (pid, _, 0) => format!(" to {}", system.process(*pid)),
        (pid, _, node) => format!(" to node {node} of {}", system.process(*pid)),
    };
    let code = refusal.code.map_or(String::new(), |number| format!(", {}", code(number)));
    let size = refusal.size.map_or(String::new(), |(data, offsets)| {
        let objects = if offsets > 0 {
            format!(" with {}", units::counted(offsets / 8, "object"))
        } else {
            String::new()
        };
        format!(", {}{objects}", bytes(data))
    });
    let who = if from.tid == 0 { system.process(from.pid) } else { system.thread(*from) };
    format!("the driver refused a {sort} from {who}{whom}{code}{size}: {numbers}")
}

/// Facts about the receiver's area when there was no room.
fn room(system: &System, refusal: &Refusal) -> Option<String> {
    let (asked, oneway) = match refusal.hint {
        Some(Hint::NoSpace(asked)) => (asked, false),
        Some(Hint::NoOnewaySpace(asked)) => (asked, true),
        _ => return None,
    };
    let who = system.process(refusal.to);
    if oneway {
        return Some(format!("the oneway half of {who} has no {} left", bytes(asked)));
    }
    let gaps = system.gaps.get(&refusal.to);
    let state = gaps.map_or(String::new(), |gaps| {
        let why = if gaps.free >= asked { "it is in pieces" } else { "it is full" };
        format!(
            ": {} of {} are taken by {}, the largest gap has {}, so {why}",
            bytes(gaps.used),
            bytes(gaps.used + gaps.free),
            units::counted(gaps.buffers, "buffer"),
            bytes(gaps.largest)
        )
    });
    Some(format!("the area of {who} has no gap of {}{state}", bytes(asked)))
}
