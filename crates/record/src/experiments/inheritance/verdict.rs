//! Verdicts on inherited priorities: whether a driver kept what it promises with this kind of node and these settings, which
//! may be less than Android requires, and Android's own.
//! Not here: how the promise is found (`bench::inheritance`).

use crate::schema::{Class, Hop, Inheritance, LatencyTest, Level, Limit, Run};
use crate::verdict::{Grade, Verdict};

/// Whether priorities were inherited at the level expected of this driver, which may be less than Android requires;
/// `None` if either level is unknown.
pub fn as_expected(inheritance: &Inheritance) -> Option<bool> {
    Some(inheritance.measured? == inheritance.expected?)
}

/// A description of how the driver broke its promise; `None` if it kept it, or if nothing is known to be promised.
fn broken(run: &Run, test: &LatencyTest) -> Option<String> {
    let found = &test.inheritance;
    let level = |level: Option<Level>| level.map_or("unknown", Level::name);
    if as_expected(found) == Some(false) {
        return Some(format!(
            "{} was inherited, and {} is promised",
            level(found.measured),
            level(found.expected)
        ));
    }
    // Nice values are promised to ordinary callers, real-time policies to all.
    let promised = match found.expected {
        Some(Level::Rt) => found.not_inherited,
        Some(Level::Nice) => of_ordinary_callers(run),
        Some(Level::None) | None => 0,
    };
    if promised > 0 {
        let callers = if found.expected == Some(Level::Rt) { "" } else { " of ordinary callers" };
        let whole = found.calls;
        return Some(format!(
            "{promised} of {whole} calls{callers} were served at another priority than their caller's"
        ));
    }
    let wrong = |hop: &&Hop| hop.as_expected() == Some(false) || hop.is_broken();
    let hop = found.hops.iter().find(wrong)?;
    let how = if hop.is_broken() { "broke" } else { "was not as expected" };
    Some(format!("the hop {} {how} {}", hop.scene, hop.note).trim_end().to_owned())
}

fn of_ordinary_callers(run: &Run) -> u64 {
    let latencies = run.cases.iter().filter_map(|case| case.latency.as_ref());
    let ordinary = latencies.filter(|latency| latency.class == Class::Other);
    ordinary.map(|latency| latency.not_inherited).fold(0, u64::saturating_add)
}

/// The verdict on inherited priorities: measured against what this driver promises with this node and these settings.
/// [`Grade::Bad`]: the promise is broken; [`Grade::Note`]: it cannot be told.
pub fn inheritance(run: &Run, test: &LatencyTest) -> Verdict {
    const ABOUT: &str = "inheritance";
    let found = &test.inheritance;
    let (part, whole) = (found.not_inherited, found.calls);
    let level = found.measured.map_or(String::new(), |level| format!("{}: ", level.name()));
    let realtime = test.realtime.is_some_and(|caller| caller.is_realtime());
    let measured = match (whole, part) {
        (0, _) => "no call".to_owned(),
        (_, 0) if !realtime => "no call of a real-time caller".to_owned(),
        (_, 0) => format!("{level}each of {whole} calls was served at its caller's priority"),
        _ => format!("{level}{part} of {whole} calls were served at another priority than their caller's"),
    };
    let expected = found.expected.map_or("unknown", Level::name);
    let judged = |words: String| Verdict::good(ABOUT, words).held_against(expected, measured.clone());
    let flavour = &test.flavour;
    let hop_by_hop = format!("binderperf inheritance --flavour {flavour}");
    if let Some(how) = broken(run, test) {
        let injected = if test.injected.is_empty() { "" } else { "; faults were injected" };
        return judged("inheritance FAIL".to_owned())
            .because(Grade::Bad, format!("{how}{injected}; the promise: {}", found.expected_reason))
            .then(hop_by_hop);
    }
    let untold = || judged("inheritance cannot be told".to_owned());
    match (InheritanceVerdict::of(test), found.expected) {
        (InheritanceVerdict::Unknown { reason }, _) => untold().because(Grade::Note, reason),
        (InheritanceVerdict::Pass, Some(Level::Rt) | None) => judged("inheritance PASS".to_owned()),
        (InheritanceVerdict::Fail, Some(Level::Rt) | None) => {
            let why = "what this driver promises is not known";
            untold().because(Grade::Note, why).then(hop_by_hop)
        }
        (_, Some(promised)) => {
            let verdict = judged(format!("inheritance {}, as expected", promised.name()));
            let (why, next) = less_than_android(run, test);
            Verdict { next, ..verdict.because(Grade::Good, why) }
        }
    }
}

/// Why a driver promises less than Android's tools require, and what shows more.
fn less_than_android(run: &Run, test: &LatencyTest) -> (String, Option<String>) {
    let flavour = &test.flavour;
    let kernels = "Android's kernels pass it on, mainline does not";
    let (why, next) = match test.inheritance.below_android {
        Some(Limit::Node) => {
            let why = format!("this node does not ask for real-time inheritance; {kernels}");
            (why, format!("binderperf latency {flavour} --inherit-rt on"))
        }
        Some(Limit::Setting) => {
            let told = run.driver.as_ref().and_then(|driver| driver.embedded.as_ref());
            let told = told.map_or(String::new(), |settings| format!(" (--inherit {})", settings.inherit));
            let why = format!("the embedded driver was told to pass on no more{told}");
            (why, format!("binderperf latency {flavour} --driver embedded --inherit rt --inherit-rt on"))
        }
        Some(Limit::Mainline) => {
            let why = "mainline's C driver passes on nice values only; Android's kernels pass real-time policies on to \
                       nodes that ask for it";
            let next = "--driver embedded --inherit rt --inherit-rt on shows Android's behaviour";
            (why.to_owned(), format!("binderperf latency {flavour} {next}"))
        }
        Some(Limit::Rust) => {
            let next = "--driver embedded --inherit rt --inherit-rt on shows Android's behaviour";
            let why = "the kernel's Rust driver leaves priorities alone".to_owned();
            (why, format!("binderperf latency {flavour} {next}"))
        }
        Some(Limit::Rights) => {
            let why = "the servers have no right to change their priority here";
            (why.to_owned(), "run it as root outside of user namespaces".to_owned())
        }
        None => return (test.inheritance.expected_reason.clone(), None),
    };
    (why, Some(next))
}

/// Verdict of Android's tools on priority inheritance: whether real-time callers are served at their priority.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum InheritanceVerdict {
    /// Every call was served at its caller's priority, and some callers were real-time threads.
    Pass,
    /// Some call was served at another priority.
    Fail,
    /// It could not be determined.
    Unknown {
        /// The reason.
        reason: String,
    },
}

impl InheritanceVerdict {
    /// The word in documents and tables.
    pub fn name(&self) -> &'static str {
        match self {
            InheritanceVerdict::Pass => "PASS",
            InheritanceVerdict::Fail => "FAIL",
            InheritanceVerdict::Unknown { .. } => "UNKNOWN",
        }
    }

    /// The verdict on a latency test; without a real-time caller it is unknown.
    pub fn of(test: &LatencyTest) -> InheritanceVerdict {
        let unknown = |reason: &str| InheritanceVerdict::Unknown { reason: reason.to_owned() };
        if test.pinged.is_some() {
            return unknown("the called object is another program's, which does not tell its priority");
        }
        if !test.realtime.is_some_and(|caller| caller.is_realtime()) {
            let why = test.realtime_problem.as_deref().filter(|why| !why.is_empty());
            return unknown(why.unwrap_or("there was no real-time caller"));
        }
        match test.inheritance {
            Inheritance { calls: 0, .. } => unknown("no call was answered"),
            Inheritance { not_inherited: 0, .. } => InheritanceVerdict::Pass,
            _ => InheritanceVerdict::Fail,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::fixtures::{Pair, latency_run};
    use crate::schema::Sched;

    #[test]
    fn inheritance_passes_only_if_each_call_of_a_real_time_caller_inherited() {
        type Change = fn(&mut LatencyTest);
        let unknown = |reason: &str| InheritanceVerdict::Unknown { reason: reason.to_owned() };
        let table: [(Change, InheritanceVerdict); 6] = [
            (|_| (), InheritanceVerdict::Pass),
            (|test| test.inheritance.not_inherited = 1, InheritanceVerdict::Fail),
            (|test| test.realtime_problem = Some("RLIMIT_RTPRIO is 0".to_owned()), InheritanceVerdict::Pass),
            (|test| test.realtime = None, unknown("there was no real-time caller")),
            (|test| test.realtime = Some(Sched::other(0)), unknown("there was no real-time caller")),
            (|test| test.inheritance.calls = 0, unknown("no call was answered")),
        ];
        for (number, (change, want)) in table.into_iter().enumerate() {
            let mut test = latency_run(&[Pair::healthy(0)]).latency().cloned().expect("a latency test");
            change(&mut test);
            assert_eq!(InheritanceVerdict::of(&test), want, "row {number}");
            (test.realtime, test.realtime_problem) = (None, Some("RLIMIT_RTPRIO is 0".to_owned()));
            assert_eq!(InheritanceVerdict::of(&test), unknown("RLIMIT_RTPRIO is 0"), "row {number}");
        }
    }
}
