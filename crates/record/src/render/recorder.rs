//! Flight recorder of a latency test in words: what it cost, and the slowest calls with their causes.
//! Not here: pictures (crate `trace`).

use crate::schema::{Class, ClassTotals, LatencyTest, Run, SavedCall, Side};

/// The cost of the recorder, or why there was none; `None` if none was asked for.
pub(super) fn cost(run: &Run, test: &LatencyTest) -> Option<String> {
    let recorder = test.recorder.as_ref()?;
    if let Some(why) = &recorder.missing {
        return Some(format!("none, so no slow call has a picture: {why}"));
    }
    let of = |class: Class| {
        let (with, without) = recorder.both(class, &test.all)?;
        Some(format!("{}: {}", class.name(), cost_of_class(run, with, without)))
    };
    let classes: Vec<String> = Class::BOTH.into_iter().filter_map(of).collect();
    let mut text = "on: all times here include its cost".to_owned();
    if !classes.is_empty() {
        text += &format!(
            "; compared with {} just before without it: {}",
            units::counted(recorder.calls_without, "call"),
            classes.join("; ")
        );
    }
    if let Some(trouble) = &recorder.trouble {
        text += &format!(". Later slow calls were not saved: {trouble}");
    }
    Some(text)
}

/// The cost for one class. Two passes are compared by their calls of one placement: a call between two CPUs may take
/// several times as long as one on a single CPU, recorded or not.
fn cost_of_class(run: &Run, with: &ClassTotals, without: &ClassTotals) -> String {
    let show = |value: u64| run.clock.unit.show(value as f64);
    let (Some(one), Some(other)) = (with.placed, without.placed) else {
        return "cannot be told: this record does not say how the calls were placed".to_owned();
    };
    match (one.usual(), other.usual()) {
        (Some((side, with)), Some((same_side, without))) if side == same_side => {
            let place = match side {
                Side::Same => "on one CPU",
                Side::Apart => "between two CPUs",
            };
            let ratio = with as f64 / without.max(1) as f64;
            format!(
                "median {} with it, {} without ({ratio:.2} x), of calls {place}",
                show(with),
                show(without)
            )
        }
        (side, other_side) => format!(
            "placed {}, so it cannot be told: {:.0} % of the calls on one CPU with it, {:.0} % without",
            match side.is_some() && other_side.is_some() {
                true => "differently",
                false => "now one way, now the other",
            },
            one.same_percent(),
            other.same_percent()
        ),
    }
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
    use crate::schema::{Miss, PlacedMedians, Recorder};

    #[test]
    fn the_recorders_cost_and_its_calls_stand_beside_the_times() {
        let mut run = crate::fixtures::latency_run(&[crate::fixtures::Pair::healthy(0)]);
        let mut test = run.latency.take().expect("a latency test");
        assert!(lines(&run, &test).is_empty(), "none was asked for");
        test.recorder = Some(Recorder { missing: Some("no tracefs".to_owned()), ..Recorder::default() });
        assert_eq!(lines(&run, &test), ["Recorder     none, so no slow call has a picture: no tracefs"]);
        let call = |class, took| SavedCall {
            call: Miss { pair: 0, class, iteration: 7, took },
            missed: took > 2_500_000,
            file: "latency-binder-fifo-0-7.bptrace".to_owned(),
            cause: "it slept".to_owned(),
        };
        test.recorder = Some(Recorder {
            saved: vec![call(Class::Fifo, 4_600_000), call(Class::Other, 90_000)],
            ..Recorder::default()
        });
        let told = lines(&run, &test);
        assert!(
            told[1].contains("fifo 4.60 ms, missed: it slept (latency-binder-fifo-0-7.bptrace)"),
            "{}",
            told[1]
        );
        assert!(!told[2].contains("missed"), "{}", told[2]);
    }

    /// The words about a class whose passes with and without the recorder were placed so.
    fn told(with: PlacedMedians, without: PlacedMedians) -> String {
        let mut run = crate::fixtures::latency_run(&[crate::fixtures::Pair::healthy(0)]);
        let mut test = run.latency.take().expect("a latency test");
        let placed = |placed| {
            let totals = test.all.iter().map(|totals| ClassTotals { placed: Some(placed), ..*totals });
            totals.collect::<Vec<_>>()
        };
        let (all, without) = (placed(with), placed(without));
        test.all = all;
        test.recorder = Some(Recorder { without, calls_without: 200, ..Recorder::default() });
        cost(&run, &test).expect("it has a recorder")
    }

    /// 100 calls: those on one CPU take 4 us, those between two CPUs 25 us, each times `cost`.
    fn pass(same_cpu: u64, cost: u64) -> PlacedMedians {
        let median = |calls: u64, ns: u64| (calls > 0).then_some(ns * cost);
        PlacedMedians {
            calls: 100,
            same_cpu,
            p50_same: median(same_cpu, 4_000),
            p50_apart: median(100 - same_cpu, 25_000),
        }
    }

    #[test]
    fn a_cost_is_told_of_calls_of_one_placement() {
        let text = told(pass(100, 2), pass(95, 1));
        assert!(
            text.contains("(2.00 x), of calls on one CPU") && text.contains("200 calls just before"),
            "{text}"
        );
        let text = told(pass(20, 3), pass(0, 1));
        assert!(text.contains("(3.00 x), of calls between two CPUs"), "{text}");
    }

    #[test]
    fn a_factor_that_is_placement_is_never_told() {
        // Free of cost, and 6 times as long by its median.
        for (with, without) in [(0, 100), (100, 0), (40, 60), (50, 50), (50, 100)] {
            let text = told(pass(with, 1), pass(without, 1));
            assert!(text.contains("cannot be told") && !text.contains(" x)"), "{with} {without}: {text}");
            assert!(
                text.contains(&format!("{with} % of the calls on one CPU with it, {without} % without")),
                "{text}"
            );
        }
    }
}
