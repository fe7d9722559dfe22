//! Conclusions from what is known of a system: the findings, worst first.
//! Not here: reading (`read`), the meaning of the driver's words (`decode`).

mod buffers;
mod deaths;
mod failures;
mod frozen;
mod graph;
mod growth;
mod log;
mod oneway;
mod pools;
mod traced;
mod waits;

use std::cmp::Reverse;

use crate::finding::Report;
use crate::source::DriverSource;
use crate::system::{Dump, File, System};
pub(crate) use buffers::area;

/// Age in ms from which a call is old: far over what a person waits without noticing.
const OLD_MS: u64 = 1000;
/// Age in ms from which it will hardly end by itself; Android gives up on a process after as long.
const VERY_OLD_MS: u64 = 10_000;
/// Bytes of a page, unless the kernel has larger ones.
const PAGE: u64 = 4096;

/// Everything that is found.
pub(crate) fn report(system: &System, source: Option<&DriverSource>) -> Report {
    let mut findings = Vec::new();
    findings.extend(failures::find(system, source));
    findings.extend(waits::find(system));
    findings.extend(pools::find(system));
    findings.extend(buffers::find(system));
    findings.extend(oneway::find(system));
    findings.extend(frozen::find(system));
    findings.extend(deaths::find(system));
    findings.extend(growth::find(system));
    findings.extend(log::find(system));
    findings.extend(traced::find(system));
    findings.sort_by_key(|finding| Reverse(finding.grade));
    Report {
        inputs: system.files.clone(),
        holds: holds(system),
        notes: notes(system),
        findings,
        waits: waits::all(system),
    }
}

/// The last dump that has calls: of `state` if there is one.
fn calls_of(system: &System) -> Option<&Dump> {
    let (state, calls) = (system.last(File::State), system.last(File::Transactions));
    let has_calls = |dump: &&Dump| dump.procs.iter().any(|proc| proc.calls().next().is_some());
    state.filter(has_calls).or(calls).or(state)
}

fn holds(system: &System) -> Vec<String> {
    let mut holds: Vec<String> =
        system.recognised.iter().map(|(what, count)| format!("{count} {what}")).collect();
    if let Some(dump) = calls_of(system) {
        let procs = units::counted(dump.procs.len() as u64, "open device");
        let calls =
            dump.procs.iter().flat_map(|proc| proc.calls()).filter(|call| call.age_ms.unwrap_or(0) >= OLD_MS);
        let old = units::counted(calls.count() as u64, "line");
        holds.push(format!("{procs} with {old} about calls older than {}", age(OLD_MS)));
    }
    if holds.is_empty() {
        holds.push("nothing".to_owned());
    }
    holds
}

fn notes(system: &System) -> Vec<String> {
    let mut notes = system.notes.clone();
    if system.boots > 1 {
        notes.push(format!(
            "the kernel's log is of {} boots: its clock starts again; numbers of processes mean others in each",
            system.boots
        ));
    }
    if system.suppressed > 0 {
        notes.push(format!(
            "the kernel left out {} of the driver, of which it writes at most 10 in 5 s: failures and their reasons may be missing",
            units::counted(system.suppressed, "line")
        ));
    }
    let more = system.refusals.more + system.notices.more;
    if more > 0 {
        notes.push(format!("{} about further failures are not counted", units::counted(more, "line")));
    }
    if let Some(dump) = calls_of(system) {
        let torn = graph::torn(dump);
        if torn > 0 {
            notes.push(format!(
                "{} of the driver's {} contradict each other: calls went on while it was read",
                units::counted(torn, "call"),
                dump.file.name()
            ));
        }
    }
    notes
}

/// An age as text.
fn age(ms: u64) -> String {
    units::round_duration(ms as f64 * 1e6)
}

/// An age that some kernels do not write.
fn age_or_unknown(ms: Option<u64>) -> String {
    ms.map_or_else(|| "an unknown time".to_owned(), age)
}

/// A code as a sentence has it.
fn code(code: u32) -> String {
    trace::verdict::code_name(code)
        .map_or_else(|| format!("code {code}"), |name| format!("code {code} ({name})"))
}

/// A size in bytes with its thousands apart.
fn bytes(value: u64) -> String {
    let digits = value.to_string();
    let mut text = String::new();
    for (at, digit) in digits.char_indices() {
        if at > 0 && (digits.len() - at).is_multiple_of(3) {
            text.push(',');
        }
        text.push(digit);
    }
    text + " B"
}
