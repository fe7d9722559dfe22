//! Families of throughput cases: one for each IPC mechanism, with a name that people use.
//! Not here: their verdicts (`crate::verdict`), tables and charts (`crate::render::report`).

use crate::schema::{Case, CaseKind, Run};

/// The cases of one family, ordered by payload.
pub(crate) struct Family<'r> {
    pub(crate) name: String,
    pub(crate) kind: CaseKind,
    pub(crate) cases: Vec<&'r Case>,
}

/// Families, their readable names, and what a round trip of theirs is.
const FAMILIES: [(&str, &str, &str); 18] = [
    ("BM_sendVec_binder", "binder", "a call of a service, with parcels"),
    ("BM_sendVec_binderize", "hwbinder", "a call of a HIDL service, with scattered buffers"),
    ("BM_sendVec_passthrough", "hwbinder passthrough", "the service in the caller's process, without IPC"),
    ("BM_ping", "ping", "a call without arguments, which any binder object answers"),
    ("BM_interface", "interface", "the question for an object's interface, which any binder object answers"),
    ("BM_hwping", "hwbinder ping", "a call without arguments, which any HIDL object answers"),
    ("BM_rpcPing", "RPC ping", "a call without arguments over a unix socket, by libbinder's protocol for it"),
    (
        "BM_sendVec_rpc",
        "RPC binder",
        "a call of a service over a unix socket, by libbinder's protocol for it",
    ),
    ("BM_addInts", "addInts", "two numbers to a service that returns their sum"),
    ("BM_sendVec_pipe", "pipe", "two pipes"),
    ("BM_sendVec_unix", "unix socket", "a pair of unix sockets"),
    ("BM_sendVec_futex", "futex", "shared memory; a futex wakes the other side"),
    ("BM_sendVec_eventfd", "eventfd", "shared memory; an eventfd wakes the other side"),
    ("BM_sendVec_spin", "spinning", "shared memory; both sides spin, nobody is woken"),
    (
        "BM_sendVec_raw",
        "raw ioctls",
        "the same driver without parcels and library: the least that binder costs",
    ),
    ("BM_sendVec_memcpy", "memcpy", "one copy, in one process"),
    ("BM_sendVec_parcel", "parcels", "writing and reading binder's parcels, in one process"),
    ("BM_sendVec_hwparcel", "hw parcels", "writing and reading hwbinder's parcels, in one process"),
];

/// The name of a family without the common prefix.
pub(crate) fn name_of(family: &str) -> String {
    let known = FAMILIES.iter().find(|(long, ..)| *long == family).map(|(_, name, _)| (*name).to_owned());
    known.unwrap_or_else(|| family.rsplit_once("sendVec_").map_or(family, |(_, word)| word).to_owned())
}

/// A round trip of a family, described; empty if unknown.
pub(crate) fn meaning_of(family: &str) -> &'static str {
    FAMILIES.iter().find(|(long, ..)| *long == family).map_or("", |(.., meaning)| meaning)
}

/// The families of a plain throughput test, subjects first; empty for other tests, and for those of other programs.
pub(crate) fn families(run: &Run) -> Vec<Family<'_>> {
    if run.latency().is_some() || run.is_experiment() || run.imported.is_some() {
        return Vec::new();
    }
    let mut families: Vec<Family<'_>> = Vec::new();
    for case in run.cases.iter().filter(|case| case.crowd.is_none()) {
        match families.iter_mut().find(|family| family.cases[0].family == case.family) {
            Some(family) => family.cases.push(case),
            None => families.push(Family { name: name_of(&case.family), kind: case.kind, cases: vec![case] }),
        }
    }
    families.iter_mut().for_each(|family| family.cases.sort_by_key(|case| case.payload_bytes));
    families.sort_by_key(|family| family.kind == CaseKind::Control);
    families
}
