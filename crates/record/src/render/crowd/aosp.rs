//! The lines of Android's throughput tests with many workers, byte by byte and with their figures.
//! Not here: the same lines with our figures (`super`), the order of a run's lines (the command line).
//! Facts: AOSP `binderThroughputTest.cpp` (Android 14) and libhwbinder's `Benchmark_throughput.cpp`.
//! `tests/golden/aosp` holds their formats. `docs/android-tools.md` says why the figures differ from ours.

use super::{in_unit, rate};
use crate::number::general;
use crate::render::latency::aosp::{HISTOGRAM_NS, bucket_ms};
use crate::schema::{Case, CrowdShape, Measurement, Run};

/// Counters of the samples that the binder tool takes for percentiles, by percent.
pub const PERCENTILES: [(u64, &str); 4] =
    [(50, "android_p50"), (90, "android_p90"), (95, "android_p95"), (99, "android_p99")];

/// The line with the rate. The tools count calls of workers that only serve, too.
pub fn exact_rate_line(case: &Case, numbers: &Measurement) -> String {
    let pairs = case.crowd.as_ref().is_some_and(|crowd| crowd.shape == CrowdShape::Pairs);
    let workers = if pairs { 2.0 } else { 1.0 };
    format!("iterations per sec: {}\n", general(rate(numbers).unwrap_or(0.0) * workers))
}

/// The line that tells the longest call of a training round.
pub fn training_line(worst: u64) -> String {
    format!("Max latency during training: {}ms\n", general(worst as f64 / 1e6))
}

/// The lines with the times of a repetition of the binder tool, if `binder`, or of the hwbinder tool.
pub fn exact_time_lines(run: &Run, numbers: &Measurement, binder: bool) -> String {
    let samples = &numbers.samples;
    let counter = |name: &str| numbers.counters.find(name).map(|counter| counter.value);
    let mut text = String::new();
    if let Some(longer) = counter("longer").filter(|longer| binder && *longer > 0.0) {
        let (share, worst) = (general(longer / samples.count as f64), samples.max / 1000);
        text += &format!(
            "{share}% of transactions took longer than estimated max latency. Consider setting -m to be higher \
             than {worst} microseconds\n"
        );
    }
    // The hwbinder tool starts its search for the best time at the limit of its histogram.
    let best = if binder { samples.min } else { samples.min.min(HISTOGRAM_NS) };
    let unit = in_unit(run);
    let [average, worst, best] =
        [numbers.mean_real().unwrap_or(0.0), samples.max as f64, best as f64].map(|time| general(time / 1e6));
    text += &format!("average:{average}{unit} worst:{worst}{unit} best:{best}{unit}\n");
    let percentiles = PERCENTILES.map(|(percent, name)| {
        let millis = if binder {
            counter(name).map(|time| time / 1e6)
        } else {
            counter(&format!("exact_p{percent}")).map(|time| bucket_ms(time as u64))
        };
        format!("{percent}%: {}", general(millis.unwrap_or_default()))
    });
    let end = if binder { "\n" } else { " \n" };
    text + &percentiles.join(" ") + end
}
