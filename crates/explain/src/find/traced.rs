//! Calls of traces that failed, that nobody answered, or that waited for a free thread.
//! Not here: rebuilding calls, and the sentences about each (`trace::verdict`).

use std::collections::BTreeMap;

use super::{OLD_MS, VERY_OLD_MS, age};
use crate::finding::{Evidence, Finding, Grade, Kind};
use crate::system::{System, Traced, TracedCall};

/// Maximum number of calls of one sort that are shown.
const MOST: usize = 16;
/// Shortest wait for a free thread that is worth a word, in ns: from here on `libbinder` calls its pool starved.
const STARVED_NS: u64 = 100_000_000;

pub(super) fn find(system: &System) -> Vec<Finding> {
    system.traces.iter().flat_map(|traced| of_trace(system, traced)).collect()
}

fn of_trace(system: &System, traced: &Traced) -> Vec<Finding> {
    let file = system.files.get(traced.file as usize).cloned().unwrap_or_default();
    let new = |grade, kind, call: &TracedCall| {
        let what = call.verdict.trim().trim_end_matches('.').to_owned();
        let seconds = format!("at {:.6} s of the trace", call.begin_ns as f64 / 1e9);
        Finding::new(grade, kind, format!("{file} {} {}", call.debug_id, call.begin_ns), what)
            .when(seconds)
            .pids([call.server_process, call.caller_process.unwrap_or(call.caller.tid)])
            .evidence([Evidence {
                file: file.clone(),
                line: 0,
                text: Some(format!("transaction={}", call.debug_id)),
            }])
    };
    let mut found = Vec::new();
    for call in traced.failed.iter().take(MOST) {
        let word = call.failure.as_ref().and_then(|failure| failure.reply.as_deref());
        let (grade, kind, why, next, item) = meaning(word);
        found.push(new(grade, kind, call).why(why).next(next).contract(&[item]));
    }
    for call in traced.unanswered.iter().filter(|call| call.ns >= OLD_MS * 1_000_000).take(MOST) {
        let grade = if call.ns >= VERY_OLD_MS * 1_000_000 / 2 { Grade::Bad } else { Grade::Warning };
        let kind = if call.oneway { Kind::OnewayBacklog } else { Kind::Wait };
        let next = "`binderperf trace analyze` on it shows the threads of both sides; the driver's `transactions` says who waits now";
        found.push(new(grade, kind, call).next(next));
    }
    for spam in traced.spam.iter().take(MOST) {
        let what = format!(
            "{} ({}) floods {} ({}) with oneway calls to node {}",
            spam.caller.comm, spam.caller.tid, spam.server_name, spam.server_process, spam.node
        );
        found.push(
            Finding::new(Grade::Warning, Kind::OnewayBacklog, format!("{file} {} {}", spam.caller.tid, spam.node), what)
                .when(format!("{} times, first at {:.6} s of the trace", spam.times, spam.first_ns as f64 / 1e9))
                .pids([spam.caller.pid.unwrap_or(spam.caller.tid), spam.server_process])
                .why("the driver answered BR_ONEWAY_SPAM_SUSPECT: the receiver's half for oneway calls is nearly used up, mostly by them")
                .next("see what it sends, and why the receiver does not keep up")
                .contract(&["OW-07"])
                .evidence([Evidence { file: file.clone(), line: 0, text: Some(format!("transaction={}", spam.debug_id)) }]),
        );
    }
    found.extend(starved(system, &file, traced));
    found
}

/// Processes whose threads were all busy while answered calls waited.
fn starved(system: &System, file: &str, traced: &Traced) -> Vec<Finding> {
    let mut pools: BTreeMap<i32, Vec<&(TracedCall, u64)>> = BTreeMap::new();
    for waited in traced.starved.iter().filter(|(_, ns)| *ns >= STARVED_NS) {
        pools.entry(waited.0.server_process).or_default().push(waited);
    }
    let finding = |(pid, waits): (i32, Vec<&(TracedCall, u64)>)| {
        let (call, ns) = waits.iter().max_by_key(|(_, ns)| *ns)?;
        let calls = if waits.len() == 1 { "a call".to_owned() } else { format!("{} calls", waits.len()) };
        let what = format!(
            "all binder threads of {} were busy while {calls} waited, up to {}",
            system.process(pid),
            age(ns / 1_000_000)
        );
        let evidence =
            Evidence { file: file.to_owned(), line: 0, text: Some(format!("transaction={}", call.debug_id)) };
        Some(
            Finding::new(Grade::Warning, Kind::StarvedPool, format!("{file} pool {pid}"), what)
                .when(format!("at {:.6} s of the trace", call.begin_ns as f64 / 1e9))
                .pids([pid])
                .why(call.verdict.trim().trim_end_matches('.').to_owned())
                .next("let it have more binder threads, or keep the method shorter that holds them: `binderperf trace analyze` has both calls")
                .contract(&["LP-04"])
                .evidence([evidence]),
        )
    };
    pools.into_iter().filter_map(finding).take(MOST).collect()
}

/// Of a failed call's word: grade and kind, why, what next, item of the contract.
fn meaning(word: Option<&str>) -> (Grade, Kind, &'static str, &'static str, &'static str) {
    match word {
        Some("BR_DEAD_REPLY") => (
            Grade::Warning,
            Kind::Failure,
            "the called process or thread ended before it replied, or was gone already",
            "look in the log why it ended; look the service up again",
            "TX-10",
        ),
        Some("BR_FROZEN_REPLY") => (
            Grade::Warning,
            Kind::Frozen,
            "the called process is frozen",
            "find who freezes it, or call it oneway",
            "TX-22",
        ),
        Some(_) => (
            Grade::Bad,
            Kind::Failure,
            "the driver refused it: the errno and the check are in the kernel's log and in `failed_transaction_log`",
            "give the kernel's log of that moment, too",
            "TX-21",
        ),
        None => (
            Grade::Warning,
            Kind::Failure,
            "the trace does not have the driver's word for it",
            "record binder_return as well: `binderperf trace record binder_driver`",
            "TP-06",
        ),
    }
}
