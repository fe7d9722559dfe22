//! Our output, compared with Google Benchmark's.
//! google-benchmark 1.9.5 (its Python wheel) printed the files under `golden`, for times set by hand and a CPU clock
//! that ticks by a fixed rule; `twin` is the same run as a record.

use super::*;
use crate::fixtures::{self, case, measured};
use crate::schema::{CaseKind, CounterKind, CpuCache, Driver, DriverKind, HostClass, Measurement};

const ITERATIONS: u64 = 64;

fn repetition(real_mean: u64, cpu_total: u64) -> Outcome {
    measured(ITERATIONS, ITERATIONS * real_mean, cpu_total)
}

fn cache(kind: &str, level: u32, kib: u64, num_sharing: u32) -> CpuCache {
    CpuCache { kind: kind.to_owned(), level, size: kib << 10, num_sharing }
}

/// The run in the golden files.
fn twin() -> Run {
    let mut run = fixtures::run();
    run.host.class = HostClass::Virtual;
    run.host.cpu.count = 2;
    run.host.cpu.mhz = Some(2600.0);
    run.host.cpu.caches = vec![
        cache("Data", 1, 48, 1),
        cache("Instruction", 1, 64, 1),
        cache("Unified", 2, 2048, 1),
        cache("Unified", 3, 491_520, 2),
    ];
    run.host.load_avg = vec![0.141602, 0.231934, 0.342773];
    run.context = [("zz", "last"), ("aa", "first"), ("zz", "later")]
        .map(|(key, value)| (key.to_owned(), value.to_owned()))
        .into();
    let kind = DriverKind::Embedded;
    run.driver = run.driver.map(|driver| Driver { kind, opened: "private".to_owned(), ..driver });
    run.plan.repetitions = 3;
    let partial = Measurement { iterations: ITERATIONS, ..Measurement::default() };
    let broken = Outcome::Failed { reason: "it \"broke\", twice".to_owned(), partial: Some(partial) };
    let small = [(15_250, 657_280), (14_500, 674_560), (19_125, 691_840)];
    let large = [(700_500, 647_040), (650_250, 664_320), (810_000, 681_600)];
    let pipe = [(7_000, 698_880), (7_001, 654_080), (7_002, 671_360)];
    let all = |list: [(u64, u64); 3]| list.map(|(real, cpu)| repetition(real, cpu)).to_vec();
    run.cases = vec![
        case("BM_sendVec_binder", 4, 0, all(small)),
        case("BM_sendVec_binder", 65_536, 1, all(large)),
        Case { label: Some("a \"control\"".to_owned()), ..case("BM_sendVec_pipe", 4, 0, all(pipe)) },
        Case { kind: CaseKind::Test, ..case("BM_sendVec_broken", 4, 0, vec![broken; 3]) },
    ];
    for (case, family_index) in run.cases.iter_mut().zip([0, 0, 1, 2]) {
        case.name += "/manual_time";
        case.family_index = family_index;
    }
    run
}

/// Compares line by line, so that a failure shows the line.
fn assert_same(ours: &str, theirs: &str) {
    for (number, (ours, theirs)) in ours.lines().zip(theirs.lines()).enumerate() {
        assert_eq!(ours, theirs, "line {}", number + 1);
    }
    assert_eq!(ours.len(), theirs.len(), "one goes on where the other ends");
}

#[test]
fn texts_are_those_of_google_benchmark() {
    let options = Options::default;
    assert_same(&context(&twin()), include_str!("golden/context.txt"));
    for (options, golden) in [
        (options(), include_str!("golden/console.txt")),
        (Options { counters_tabular: true, ..options() }, include_str!("golden/tabular.txt")),
        (Options { color: true, ..options() }, include_str!("golden/color.txt")),
        (Options { aggregates_only: true, ..options() }, include_str!("golden/aggregates.txt")),
        (Options { format: Format::Csv, ..options() }, include_str!("golden/rows.csv")),
    ] {
        println!("{options:?}");
        assert_same(&replay(&twin(), &options), golden);
    }
}

/// Compares numbers with a tolerance: Google Benchmark computes in float seconds and uses another formula for the
/// deviation, so the last of 17 digits may differ, and more digits of a small deviation. All other text must be
/// equal.
#[test]
fn json() {
    let options = Options { format: Format::Json, ..Options::default() };
    let (ours, theirs) = (replay(&twin(), &options), include_str!("golden/rows.json"));
    assert_eq!(ours.len(), theirs.len());
    for (number, (ours, theirs)) in ours.lines().zip(theirs.lines()).enumerate() {
        let parse = |line: &str| {
            let (key, value) = line.split_once(": ")?;
            Some((key.to_owned(), value.trim_end_matches(',').parse::<f64>().ok()?))
        };
        match (parse(ours), parse(theirs)) {
            (Some((our_key, our_value)), Some((their_key, their_value))) => {
                assert_eq!(our_key, their_key, "line {}", number + 1);
                let close = (our_value - their_value).abs() <= 1e-7 * their_value.abs();
                assert!(close, "line {}: {ours} for {theirs}", number + 1);
            }
            _ => assert_eq!(ours, theirs, "line {}", number + 1),
        }
    }
}

#[test]
fn every_json_is_json_and_obeys_tradefed() {
    let mut hostile = twin();
    let evil = "a\"b\\c\n\u{1}\u{7f}é".to_owned();
    hostile.host.host_name = evil.clone();
    hostile.context.push((evil.clone(), evil.clone()));
    hostile.cases[0].label = Some(evil.clone());
    hostile.host.cpu.caches.clear();
    hostile.host.load_avg.clear();
    hostile.cases[3].repetitions[0].outcome = Outcome::Skipped { reason: evil.clone() };
    hostile.cases[3].repetitions[1].outcome = Outcome::Failed { reason: evil, partial: None };
    let mut empty = twin();
    empty.cases.clear();
    let mut idle = twin();
    // Without CPU time its variation is undefined, and NaN is not JSON.
    for rep in &mut idle.cases[0].repetitions {
        let Outcome::Measured(numbers) = &mut rep.outcome else { panic!() };
        numbers.cpu_total = 0;
        numbers.counters.set("zero", 0.0, CounterKind::Plain);
    }
    let options = Options { format: Format::Json, ..Options::default() };
    for run in [hostile, empty, idle] {
        let text = replay(&run, &options);
        let document: serde_json::Value = serde_json::from_str(&text).expect(&text);
        let rows = document["benchmarks"].as_array().unwrap();
        assert!(rows.len() >= run.cases.len());
        for row in rows {
            let keys = row.as_object().unwrap().keys().filter(|key| key.ends_with("time"));
            assert!(keys.eq(["cpu_time", "real_time"]), "{row}");
            assert!(row["real_time"].is_f64() && row["time_unit"].is_string());
            let skipped = row.get("skipped").is_some();
            assert_eq!(row["iterations"] == 0, skipped, "{row}");
        }
    }
}

#[test]
fn skipped_rows_in_every_format() {
    let mut run = twin();
    run.plan.repetitions = 1;
    let skipped = Outcome::Skipped { reason: "one CPU".to_owned() };
    run.cases = vec![case("BM_sendVec_spin", 4, 0, vec![skipped])];
    let print = |format, color| replay(&run, &Options { format, color, ..Options::default() });
    let table = print(Format::Console, false);
    assert!(table.ends_with("\nBM_sendVec_spin/4 SKIPPED: 'one CPU'\n"), "{table}");
    let table = print(Format::Console, true);
    assert!(table.contains("\x1b[0;37mSKIPPED: 'one CPU'\x1b[m\n\x1b[m"), "{table:?}");
    let rows = print(Format::Csv, false);
    assert!(rows.ends_with("\n\"BM_sendVec_spin/4\",,,,,,,,false,\"one CPU\"\n"), "{rows}");
    let json = print(Format::Json, false);
    let entry = "      \"skipped\": true,\n      \"skip_message\": \"one CPU\",\n      \"iterations\": 0,\n";
    assert!(json.contains(entry), "{json}");
}

#[test]
fn the_sample_of_the_android_page() {
    // The five rows of the documentation page: its times, CPU and iterations, with the columns of 1.9.5.
    let page = [
        ("4", 4, 70_302, 32_820, 21_054),
        ("8", 8, 69_974, 32_700, 21_296),
        ("1024", 1024, 69_714, 32_757, 21_319),
        ("2k", 2048, 75_002, 34_520, 20_305),
        ("64k", 65_536, 214_796, 104_665, 6_495),
    ];
    let mut run = fixtures::run();
    let cases = page.map(|(size, payload_bytes, real, cpu, iterations)| {
        let numbers = Measurement {
            iterations,
            real_total: real * iterations,
            cpu_total: cpu * iterations,
            ..Measurement::default()
        };
        let case = case("BM_sendVec_binderize", payload_bytes, 0, vec![Outcome::Measured(numbers)]);
        Case { name: format!("BM_sendVec_binderize/{size}"), ..case }
    });
    run.cases = cases.into();
    let expected = "\
------------------------------------------------------------------------------------
Benchmark                          Time             CPU   Iterations UserCounters...
------------------------------------------------------------------------------------
BM_sendVec_binderize/4         70302 ns        32820 ns        21054 bytes_per_second=55.5639Ki/s
BM_sendVec_binderize/8         69974 ns        32700 ns        21296 bytes_per_second=111.649Ki/s
BM_sendVec_binderize/1024      69714 ns        32757 ns        21319 bytes_per_second=14.0081Mi/s
BM_sendVec_binderize/2k        75002 ns        34520 ns        20305 bytes_per_second=26.041Mi/s
BM_sendVec_binderize/64k      214796 ns       104665 ns         6495 bytes_per_second=290.974Mi/s
";
    assert_same(&replay(&run, &Options::default()), expected);
}

#[test]
fn times_and_percentiles_follow_the_unit() {
    let mut run = fixtures::run();
    run.cases[0].payload_bytes = 0;
    let row = |unit| {
        let text = replay(&run, &Options { time_unit: Some(unit), ..Options::default() });
        text.lines().last().unwrap_or_default().to_owned()
    };
    let rows = [
        (TimeUnit::Ns, "2500 ns         1000 ns         1000 max=5k p50=2.5k p99=2.5k"),
        (TimeUnit::Us, "2.50 us         1.00 us         1000 max=5 p50=2.501 p99=2.501"),
        (TimeUnit::Ms, "0.003 ms        0.001 ms         1000 max=5m p50=2.501m p99=2.501m"),
        (TimeUnit::S, "0.000 s         0.000 s          1000 max=5u p50=2.501u p99=2.501u"),
    ];
    for (unit, expected) in rows {
        let row = row(unit);
        let expected = expected.replace("=2.5k", "=2.501k");
        assert!(row.ends_with(&expected), "{row} | {expected}");
    }
}

#[test]
fn instructions_are_never_shown_as_time() {
    let mut run = twin();
    run.host.class = HostClass::Icount;
    run.clock.unit = ClockUnit::Instructions;
    for rep in &mut run.cases[0].repetitions {
        let Outcome::Measured(numbers) = &mut rep.outcome else { panic!() };
        numbers.counters.set("calls", 7.0, CounterKind::Rate);
    }
    let print = |format| {
        let options = Options { format, time_unit: Some(TimeUnit::Us), ..Options::default() };
        replay(&run, &options)
    };
    let table = print(Format::Console);
    let lines: Vec<&str> = table.lines().collect();
    assert_eq!(
        &lines[1..4],
        [
            "Benchmark                                           Insns        CPU insns   Iterations UserCounters...",
            lines[0],
            "BM_sendVec_binder/4/manual_time                 15250 insns      10270 insns         64 max=30.5k p50=15.255k p99=30.5k x_pipe=2.17835",
        ]
    );
    let json = print(Format::Json);
    assert!(json.contains("\"time_unit\": \"instructions\""));
    assert!(json.contains("\"aggregate_unit\": \"instructions\""));
    for text in [&table, &json, &print(Format::Csv)] {
        let seconds = ["bytes_per_second=", "\"bytes_per_second\"", "calls", " ns", "\"ns\"", ",ns,", " us"];
        for word in seconds {
            assert!(!text.contains(word), "{word} in {text}");
        }
    }
}

#[test]
fn live_rows_are_those_of_the_stored_run() {
    let done = twin();
    for format in [Format::Console, Format::Json, Format::Csv] {
        for aggregates_only in [false, true] {
            let options = Options { format, aggregates_only, ..Options::default() };
            let mut planned = done.clone();
            planned.cases.iter_mut().for_each(|case| case.repetitions.clear());
            let mut reporter = GbenchReporter::new(&planned, &options);
            let mut text = reporter.header(&planned);
            // The control is stored first, although it is printed later: ratios need it.
            reporter.know(&done.cases[2]);
            for (case, planned) in done.cases.iter().zip(&mut planned.cases) {
                for repetition in &case.repetitions {
                    planned.repetitions.push(repetition.clone());
                    text += &reporter.row(planned, repetition);
                }
                text += &reporter.aggregates(planned);
            }
            text += &reporter.finish();
            assert_same(&text, &replay(&done, &options));
        }
    }
}

#[test]
fn a_single_good_repetition_has_no_aggregates() {
    let mut run = twin();
    run.cases.truncate(1);
    run.cases[0].repetitions[1..].iter_mut().for_each(|rep| rep.outcome = fixtures::failed("gone"));
    let text = replay(&run, &Options { aggregates_only: true, ..Options::default() });
    assert!(!text.contains("_mean"), "{text}");
    assert_eq!(text.matches("ERROR OCCURRED: 'gone'").count(), 2, "{text}");
    assert!(text.contains("15250 ns"), "{text}");
}
