//! Flight recorder of a latency test in words: what it cost, and the slowest calls with their causes.
//! Not here: pictures (crate `trace`).

use crate::schema::{Class, LatencyTest, Pass, Recorder, RecorderCost, Run, SavedCall, Side, StoppedPair};

/// What the figures include of the recorder, and its cost; or why there was none; `None` if none was asked for.
pub(super) fn cost(run: &Run, test: &LatencyTest) -> Option<String> {
    let recorder = test.recorder.as_ref()?;
    if let Some(why) = &recorder.missing {
        return Some(format!("none, so no slow call has a picture: {why}"));
    }
    let of = |class: Class| Some(format!("{}: {}", class.name(), in_words(run, test, class)?));
    let classes: Vec<String> = Class::BOTH.into_iter().filter_map(of).collect();
    let classes = classes.join("; ");
    let mut text = match recorder.figures {
        Pass::With if classes.is_empty() => "on: all times here include its cost".to_owned(),
        Pass::With => format!(
            "on: all times here include its cost; compared with {} just before without it: {classes}",
            units::counted(recorder.calls_without, "call")
        ),
        Pass::Without => format!(
            "off: all times here are of calls without it; pictures and slow calls are of {} just before with it, as it \
             changes a call by more than {:.0} %, or may: {classes}",
            units::counted(recorder.calls_with, "other call"),
            (Recorder::MOST - 1.0) * 100.0
        ),
    };
    if let Some(trouble) = &recorder.trouble {
        text += &format!(". Later slow calls were not saved: {trouble}");
    }
    Some(text)
}

/// The cost for one class.
fn in_words(run: &Run, test: &LatencyTest, class: Class) -> Option<String> {
    let show = |value: u64| run.clock.unit.show(value as f64);
    let recorder = test.recorder.as_ref()?;
    let cost = recorder.cost(class, &test.all)?;
    Some(match cost {
        RecorderCost::Medians { side, with, without } => {
            let place = match side {
                Side::Same => "on one CPU",
                Side::Apart => "between two CPUs",
            };
            let ratio = cost.ratio().map_or(String::new(), |ratio| format!(" ({ratio:.2} x)"));
            format!("median {} with it, {} without{ratio}, of calls {place}", show(with), show(without))
        }
        RecorderCost::Placement => {
            let (with, without) = recorder.both(class, &test.all)?;
            let (with, without) = (with.placed?, without.placed?);
            format!(
                "placed {}, so it cannot be told: {:.0} % of the calls on one CPU with it, {:.0} % without",
                match with.usual().is_some() && without.usual().is_some() {
                    true => "differently",
                    false => "now one way, now the other",
                },
                with.same_percent(),
                without.same_percent()
            )
        }
        RecorderCost::Unknown => {
            "cannot be told: this record does not say how the calls were placed".to_owned()
        }
    })
}

/// A slow call in short, e.g. `fifo 4.60 ms, missed`; with the recorder, where the test's figures are of other calls.
pub(super) fn name(run: &Run, test: &LatencyTest, saved: &SavedCall) -> String {
    let took = run.clock.unit.show(saved.call.took as f64);
    let missed = if saved.missed { ", missed" } else { "" };
    format!("{} {took}{}{missed}", saved.call.class.name(), where_from(test))
}

/// Title of the picture of a slow call.
pub fn picture_title(run: &Run, test: &LatencyTest, saved: &SavedCall) -> String {
    let (class, took) = (saved.call.class.name(), run.clock.unit.show(saved.call.took as f64));
    format!("{} latency: the {class} call of {took}{}", test.flavour, where_from(test))
}

/// The words that keep a time of the recorded pass apart from the test's figures; empty if it is one of them.
fn where_from(test: &LatencyTest) -> &'static str {
    if test.recorder.as_ref().is_some_and(Recorder::is_apart) { " with the recorder" } else { "" }
}

/// Lines for a terminal.
pub(super) fn lines(run: &Run, test: &LatencyTest) -> Vec<String> {
    let saved = test.recorder.iter().flat_map(|recorder| &recorder.saved);
    let saved = saved
        .map(|saved| format!("Slow call    {}: {} ({})", name(run, test, saved), saved.cause, saved.file));
    let stopped = test.recorder.iter().flat_map(|recorder| &recorder.stopped);
    let stopped = stopped.map(|StoppedPair { pair, file }| {
        format!("Pair {pair:<7} stopped; what it waited for: binderperf explain {file}")
    });
    let cost = cost(run, test).map(|cost| format!("Recorder     {cost}"));
    cost.into_iter().chain(stopped).chain(saved).collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::schema::{ClassTotals, Miss, PlacedMedians};

    #[test]
    fn the_recorders_cost_and_its_calls_stand_beside_the_times() {
        let run = crate::fixtures::latency_run(&[crate::fixtures::Pair::healthy(0)]);
        let mut test = run.latency().cloned().expect("a latency test");
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
        let recorder = test.recorder.as_mut().expect("there is one");
        recorder.stopped = Some(StoppedPair { pair: 3, file: "latency-binder-stopped-3.bptrace".to_owned() });
        let stopped =
            "Pair 3       stopped; what it waited for: binderperf explain latency-binder-stopped-3.bptrace";
        assert_eq!(lines(&run, &test)[1], stopped);
        let recorder = test.recorder.as_mut().expect("there is one");
        recorder.stopped = None;
        (recorder.figures, recorder.calls_with) = (Pass::Without, 400);
        let told = lines(&run, &test);
        assert!(told[0].contains("off: all times here are of calls without it"), "{}", told[0]);
        assert!(told[0].contains("of 400 other calls just before with it"), "{}", told[0]);
        assert!(told[1].contains("fifo 4.60 ms with the recorder, missed: it slept"), "{}", told[1]);
    }

    /// The words about a class whose passes with and without the recorder were placed so.
    fn text_of(with: PlacedMedians, without: PlacedMedians) -> String {
        let run = crate::fixtures::latency_run(&[crate::fixtures::Pair::healthy(0)]);
        let mut test = run.latency().cloned().expect("a latency test");
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
        let text = text_of(pass(100, 2), pass(95, 1));
        assert!(
            text.contains("(2.00 x), of calls on one CPU") && text.contains("200 calls just before"),
            "{text}"
        );
        let text = text_of(pass(20, 3), pass(0, 1));
        assert!(text.contains("(3.00 x), of calls between two CPUs"), "{text}");
    }

    #[test]
    fn a_factor_that_is_placement_is_never_told() {
        // Free of cost, and 6 times as long by its median.
        for (with, without) in [(0, 100), (100, 0), (40, 60), (50, 50), (50, 100)] {
            let text = text_of(pass(with, 1), pass(without, 1));
            assert!(text.contains("cannot be told") && !text.contains(" x)"), "{with} {without}: {text}");
            assert!(
                text.contains(&format!("{with} % of the calls on one CPU with it, {without} % without")),
                "{text}"
            );
        }
    }
}
