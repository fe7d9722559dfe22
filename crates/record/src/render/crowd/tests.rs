//! Table and lines of runs with many clients.

use super::*;
use crate::fixtures;
use crate::schema::{CounterKind, Crowd, CrowdShape};

fn numbers(rate: f64, samples: impl IntoIterator<Item = u64>) -> Measurement {
    let mut numbers = fixtures::of_times(samples);
    numbers.counters.set("calls_per_second", rate, CounterKind::Rate);
    for (name, value) in
        [("exact_p50", 17_482), ("exact_p90", 20_000), ("exact_p95", 1_000_000), ("exact_p99", 2_000_001)]
    {
        numbers.counters.set(name, f64::from(value), CounterKind::Plain);
    }
    numbers
}

fn case(shape: CrowdShape, clients: u32, payload: u64, outcome: Outcome) -> Case {
    let name = format!("workers_binder/{}:{clients}/payload:{payload}", shape.name());
    Case {
        name,
        threads: clients,
        crowd: Some(Crowd { shape, services: clients, overloaded: clients > 4 }),
        ..fixtures::case("workers_binder", payload, clients, vec![outcome])
    }
}

#[test]
fn the_overload_begins_at_a_line_and_a_broken_case_shows_what_it_has() {
    let mut run = fixtures::run();
    let fine = |rate| Outcome::Measured(numbers(rate, [1000, 2000, 3000]));
    let failed = |partial| Outcome::Failed { reason: "worker 3 died".to_owned(), partial };
    run.cases = vec![
        case(CrowdShape::Pairs, 4, 0, fine(200_000.4)),
        case(CrowdShape::Pairs, 8, 0, fine(150_000.0)),
        case(CrowdShape::Pairs, 16, 0, failed(Some(numbers(5.0, [7])))),
        case(CrowdShape::Pairs, 4, 4096, failed(None)),
        case(CrowdShape::Services, 8, 0, fine(1.0)),
    ];
    let expected = "\
Benchmark                            calls/s  average      p50      p90      p99      max
--------------------------------------------------------------------------------------------------------
workers_binder/pairs:4/payload:0      200000  2000 ns  2000 ns  3000 ns  3000 ns  3000 ns
--------------------------------- overload: more clients than CPUs (4) ---------------------------------
workers_binder/pairs:8/payload:0      150000  2000 ns  2000 ns  3000 ns  3000 ns  3000 ns
workers_binder/pairs:16/payload:0          5     7 ns     7 ns     7 ns     7 ns     7 ns  INCOMPLETE
--------------------------------------------------  ----------------------------------------------------
workers_binder/pairs:4/payload:4096  FAILED: worker 3 died
--------------------------------- overload: more clients than CPUs (4) ---------------------------------
workers_binder/services:8/payload:0        1  2000 ns  2000 ns  3000 ns  3000 ns  3000 ns
";
    let text = table(&run);
    let squeezed = |text: &str| text.replace('-', "").split_whitespace().collect::<Vec<_>>().join(" ");
    assert_eq!(squeezed(&text), squeezed(expected), "{text}");
    let lengths: Vec<usize> = text.lines().filter(|line| line.ends_with("3000 ns")).map(str::len).collect();
    assert!(lengths.windows(2).all(|pair| pair[0] == pair[1]), "{text}");
}

#[test]
fn the_lines_of_the_android_tools() {
    let mut run = fixtures::run();
    let mut measured = numbers(57_114.34, [10_000, 17_482, 1_200_000]);
    measured.counters.set("longer", 1.0, CounterKind::Plain);
    let fine = numbers(1_234_567.0, [1_000_000, 3_000_000]);
    let expected = "\
33.333333% of transactions took longer than estimated max latency. Consider setting -m to be higher than 1200 \
microseconds
average:0.409161ms worst:1.2ms best:0.01ms
50%: 0.017482 90%: 0.02 95%: 1 99%: 2.000001
";
    assert_eq!(time_lines(&run, &measured), expected);
    assert_eq!(rate_line(&measured), "iterations per sec: 57114.3\n");
    assert_eq!(rate_line(&fine), "iterations per sec: 1234567\n");
    assert!(time_lines(&run, &fine).starts_with("average:2ms worst:3ms best:1ms\n50%: "));
    run.cases = vec![case(CrowdShape::Random, 2, 0, Outcome::Measured(measured))];
    assert_eq!(lines(&run), format!("iterations per sec: 57114.3\n{expected}"));
    run.clock.unit = ClockUnit::Instructions;
    assert!(!lines(&run).contains("ms "), "instructions are no time");
}

#[test]
fn the_figures_of_the_android_tools() {
    let run = fixtures::run();
    let mut measured = numbers(1_234_567.0, [10_000, 17_482, 1_200_999, 60_000_000]);
    measured.counters.set("longer", 1.0, CounterKind::Plain);
    for (percent, name) in PERCENTILES {
        measured.counters.set(name, 1000.0 * percent as f64, CounterKind::Plain);
    }
    let binder = "0.25% of transactions took longer than estimated max latency. Consider setting -m to be higher than \
                  60000 microseconds\naverage:15.3071ms worst:60ms best:0.01ms\n50%: 0.05 90%: 0.09 95%: 0.095 99%: 0.099\n";
    assert_eq!(exact_time_lines(&run, &measured, true), binder);
    let hwbinder =
        "average:15.3071ms worst:60ms best:0.01ms\n50%: 0.195312 90%: 0.195312 95%: 0.976562 99%: 2.14844 \n";
    assert_eq!(exact_time_lines(&run, &measured, false), hwbinder);
    let pairs = case(CrowdShape::Pairs, 4, 0, Outcome::Measured(measured.clone()));
    let random = case(CrowdShape::Random, 4, 0, Outcome::Measured(measured.clone()));
    assert_eq!(exact_rate_line(&pairs, &measured), "iterations per sec: 2.46913e+06\n", "servers count");
    assert_eq!(exact_rate_line(&random, &measured), "iterations per sec: 1.23457e+06\n");
    assert_eq!(training_line(1_200_999), "Max latency during training: 1.201ms\n");
}
