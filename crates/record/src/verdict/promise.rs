//! Whether a driver kept what it promises of priorities with this kind of node and these settings; that may be less
//! than Android requires.
//! Not here: how the promise is found (`bench::inheritance`), Android's verdict (`super::InheritanceVerdict`).

use crate::schema::{Class, Hop, Inheritance, LatencyTest, Level, Run};

/// Whether priorities were inherited at the level expected of this driver, which may be less than Android requires;
/// `None` if either level is unknown.
pub fn as_expected(inheritance: &Inheritance) -> Option<bool> {
    Some(inheritance.measured? == inheritance.expected?)
}

/// A description of how the driver broke its promise; `None` if it kept it, or if nothing is known to be promised.
pub fn broken(run: &Run, test: &LatencyTest) -> Option<String> {
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
