//! Flight recorder of a latency test in words: what it cost, and the slowest calls with their causes.
//! Not here: pictures (crate `trace`).

use crate::schema::{Class, LatencyTest, Run, SavedCall};

/// The cost of the recorder, or why there was none; `None` if none was asked for.
pub(super) fn cost(run: &Run, test: &LatencyTest) -> Option<String> {
    let recorder = test.recorder.as_ref()?;
    if let Some(why) = &recorder.missing {
        return Some(format!("none, so no slow call has a picture: {why}"));
    }
    let show = |value: u64| run.clock.unit.show(value as f64);
    let of = |class: Class| {
        let (with, without) = recorder.medians(class, &test.all)?;
        let ratio = with as f64 / without.max(1) as f64;
        Some(format!(
            "{} median {} with it, {} without ({ratio:.2} x)",
            class.name(),
            show(with),
            show(without)
        ))
    };
    let medians: Vec<String> = Class::BOTH.into_iter().filter_map(of).collect();
    let mut text = "on: all times here include its cost".to_owned();
    if !medians.is_empty() {
        text += &format!("; {}, of {} calls just before", medians.join(", "), recorder.calls_without);
    }
    if let Some(trouble) = &recorder.trouble {
        text += &format!(". Later slow calls were not saved: {trouble}");
    }
    Some(text)
}

/// A slow call in short, e.g. `fifo 4.60 ms, missed`.
pub(super) fn name(run: &Run, saved: &SavedCall) -> String {
    let took = run.clock.unit.show(saved.call.took as f64);
    format!("{} {took}{}", saved.call.class.name(), if saved.missed { ", missed" } else { "" })
}

/// Lines for a terminal.
pub(super) fn lines(run: &Run, test: &LatencyTest) -> Vec<String> {
    let saved = test.recorder.iter().flat_map(|recorder| &recorder.saved);
    let saved =
        saved.map(|saved| format!("Slow call    {}: {} ({})", name(run, saved), saved.cause, saved.file));
    cost(run, test).map(|cost| format!("Recorder     {cost}")).into_iter().chain(saved).collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::schema::{ClassTotals, Miss, Percentiles, Recorder};

    #[test]
    fn the_recorders_cost_and_its_calls_stand_beside_the_times() {
        let mut run = crate::fixtures::latency_run(&[crate::fixtures::Pair::healthy(0)]);
        let mut test = run.latency.take().expect("a latency test");
        assert!(lines(&run, &test).is_empty(), "none was asked for");
        test.recorder = Some(Recorder { missing: Some("no tracefs".to_owned()), ..Recorder::default() });
        assert_eq!(lines(&run, &test), ["Recorder     none, so no slow call has a picture: no tracefs"]);
        let half = |totals: &ClassTotals| ClassTotals {
            percentiles: Percentiles { p50: totals.percentiles.p50 / 2, ..totals.percentiles },
            ..*totals
        };
        let call = |class, took| SavedCall {
            call: Miss { pair: 0, class, iteration: 7, took },
            missed: took > 2_500_000,
            file: "latency-binder-fifo-0-7.bptrace".to_owned(),
            cause: "it slept".to_owned(),
        };
        test.recorder = Some(Recorder {
            without: test.all.iter().map(half).collect(),
            calls_without: 200,
            saved: vec![call(Class::Fifo, 4_600_000), call(Class::Other, 90_000)],
            ..Recorder::default()
        });
        let told = lines(&run, &test);
        assert!(told[0].contains("(2.00 x)") && told[0].contains("200 calls just before"), "{}", told[0]);
        assert!(
            told[1].contains("fifo 4.60 ms, missed: it slept (latency-binder-fifo-0-7.bptrace)"),
            "{}",
            told[1]
        );
        assert!(!told[2].contains("missed"), "{}", told[2]);
    }
}
