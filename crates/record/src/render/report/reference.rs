//! Sample figures of Android's page on Binder performance, to read ours beside.
//! Not here: ours (`throughput`, `latency`); where our tools count differently (`docs/android-tools.md`).
//! Facts: "Performance testing" for Android 8.0: hwbinder on the kernel's driver of a phone of 2016; the latency test
//! with 3 pairs of 5000 iterations, of which the page prints the first pair.

use crate::families::{Family, families};
use crate::figures::Calls;
use crate::render::table::{Row, Table, cells};
use crate::schema::{CaseKind, Class, ClockUnit, LatencyTest, Run};
use units::{byte_rate, bytes, duration};

/// Name of the page's columns and rows.
const PHONE: &str = "phone of 2016";

/// Payload in bytes and mean time in nanoseconds of `BM_sendVec_binderize`.
const TIMES: [(u64, f64); 5] =
    [(4, 70_302.0), (8, 69_974.0), (1024, 69_714.0), (2048, 75_002.0), (65_536, 214_796.0)];

/// A class of the page's latency sample: average, best and worst in nanoseconds, misses.
const LATENCY: [(Class, [f64; 3], u64); 2] =
    [(Class::Fifo, [160e3, 67e3, 1.5e6], 0), (Class::Other, [200e3, 53e3, 2.8e6], 2)];
/// Calls of each class in the page's latency sample.
const CALLS: u64 = 5000;

/// Calls and bytes per second; `None` without binder times in nanoseconds.
pub(super) fn rates(run: &Run) -> Option<Table> {
    let families = families(run);
    let with_ipc = |family: &&Family<'_>| {
        family.kind == CaseKind::Test && !family.cases[0].family.ends_with("_passthrough")
    };
    let tests: Vec<&Family<'_>> = families.iter().filter(with_ipc).collect();
    if run.clock.unit != ClockUnit::Ns || tests.is_empty() {
        return None;
    }
    let mut sizes: Vec<u64> =
        tests.iter().flat_map(|family| &family.cases).map(|case| case.payload_bytes).collect();
    sizes.sort_unstable();
    sizes.dedup();
    let heads = ["payload"].into_iter().chain(tests.iter().map(|family| family.name.as_str())).chain([PHONE]);
    let row = |size: u64| {
        let ours = tests.iter().map(|family| time(family, size));
        let theirs = TIMES.iter().find(|(payload, _)| *payload == size).map(|(_, time)| *time);
        let rates = |time: f64| format!("{}, {}", per_second(time), byte_rate(size as f64 * 1e9 / time));
        let theirs = theirs.map(|time| format!("{}: {}", duration(time), rates(time)));
        cells![bytes(size)].and(ours.map(|time| time.map(rates))).and([theirs])
    };
    let ours = tests.iter().filter_map(|family| {
        let times = sizes.iter().filter_map(|size| Some((*size, time(family, *size)?)));
        most(&family.name, &times.collect::<Vec<_>>())
    });
    let notes = [
        format!("Maximum throughput: {}.", ours.chain(most(PHONE, &TIMES)).collect::<Vec<_>>().join("; ")),
        "1 second divided by the mean time of a call, one caller at a time. Bytes count once; they cross twice, in the \
         request and in the reply."
            .to_owned(),
        format!(
            "{ABOUT} Its own \"maximum throughput\" of 2.268 Gb/s for 8 bytes counts the time of one call for all \
             iterations; by the rule above it is 114 kB/s."
        ),
    ];
    let table = Table::new(heads).titled("Calls and bytes per second").with_long_cells();
    Some(table.rows(sizes.iter().copied().map(row)).notes(notes))
}

/// What the page's figures are.
const ABOUT: &str = "The phone of 2016 is the sample on Android's page on Binder performance (hwbinder, Android 8.0): \
                     another machine, to see the order of magnitude, no limit to keep.";

fn time(family: &Family<'_>, size: u64) -> Option<f64> {
    family
        .cases
        .iter()
        .find(|case| case.payload_bytes == size)
        .and_then(|case| case.mean_real())
        .filter(|time| *time > 0.0)
}

fn per_second(time: f64) -> String {
    format!("{:.0} calls/s", 1e9 / time)
}

/// The largest rates among these payloads and times.
fn most(name: &str, times: &[(u64, f64)]) -> Option<String> {
    let rate = |(size, time): &(u64, f64)| *size as f64 / time;
    let fullest = times.iter().max_by(|one, other| rate(one).total_cmp(&rate(other)))?;
    let quickest = times.iter().min_by(|one, other| one.1.total_cmp(&other.1))?;
    Some(format!(
        "{name} {} at {}, {} at {}",
        byte_rate(rate(fullest) * 1e9),
        bytes(fullest.0),
        per_second(quickest.1),
        bytes(quickest.0)
    ))
}

/// Our latencies in the terms of the page; `None` for a flavour that it does not show, and without calls.
pub(super) fn latencies(run: &Run, test: &LatencyTest) -> Option<Table> {
    if run.clock.unit != ClockUnit::Ns || test.flavour != "hwbinder" {
        return None;
    }
    let classes = super::latency::classes(run, test);
    let mut rows = Vec::new();
    for (class, calls) in &classes {
        let (_, times, misses) = LATENCY.iter().find(|(of, ..)| of == class)?;
        rows.push(ours(run, *class, calls));
        let met = (CALLS - misses) as f64 / CALLS as f64;
        rows.push(
            cells![format!("{PHONE} {}", class.name()), CALLS]
                .and(times.map(duration))
                .and([misses.to_string(), six_digits(met)]),
        );
    }
    let heads = ["calls of", "number", "average", "best", "worst", "misses", "meetR"];
    let note = format!("{ABOUT} R, the share of calls on one CPU, was 0.9352 there.");
    (!rows.is_empty()).then(|| Table::new(heads).titled("Beside Android's page").rows(rows).notes([note]))
}

fn six_digits(share: f64) -> String {
    units::without_zeros(&format!("{share:.6}")).to_owned()
}

fn ours(run: &Run, class: Class, calls: &Calls<'_>) -> Row {
    let samples = &calls.samples;
    let misses = calls.total(|latency| latency.misses);
    let met = crate::verdict::met(misses, calls.served().calls).unwrap_or(0.0);
    let times = [samples.mean().unwrap_or(0.0).round(), samples.min as f64, samples.max as f64];
    cells![format!("this machine {}", class.name()), samples.count]
        .and(times.map(|time| run.clock.unit.show(time)))
        .and([misses.to_string(), six_digits(met)])
}
