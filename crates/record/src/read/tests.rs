//! Tests of the reader: what it accepts, and its message for everything else.

use super::*;
use crate::fixtures;
use crate::schema::{CounterKind, Outcome};
use crate::{Case, CpuLooks, Distribution, Sampler};
use fastrand::Rng;

fn read(text: &str) -> Result<Run, ReadError> {
    Run::from_json(text.as_bytes())
}

/// The text of a run without its checksum, as older programs wrote it.
fn without_checksum(run: &Run) -> String {
    serde_json::to_string_pretty(run).expect("JSON")
}

/// The text of the fixture run, without its checksum, with one part replaced.
fn altered(from: &str, to: &str) -> String {
    let text = without_checksum(&fixtures::run());
    assert!(text.contains(from), "{from} is not in {text}");
    text.replacen(from, to, 1)
}

#[test]
fn what_is_written_reads_back_unchanged() {
    let mut run = fixtures::run();
    let mut sampler = Sampler::new();
    let mut random = Rng::with_seed(3);
    for _ in 0..2_000 {
        sampler.record(random.u64(..10_000_000));
    }
    sampler.record(u64::MAX);
    let Outcome::Measured(numbers) = &mut run.cases[0].repetitions[0].outcome else { panic!() };
    numbers.iterations = 2_001;
    numbers.samples = sampler.distribution();
    numbers.counters.set("zeta", 0.1, CounterKind::Rate);
    numbers.counters.set("alpha", 1e300, CounterKind::Inverted);
    let partial = Some(numbers.clone());
    let failed = Outcome::Failed { reason: "service \"died\"\n".to_owned(), partial };
    let skipped = Outcome::Skipped { reason: "needs 6.8".to_owned() };
    run.cases.push(fixtures::case("BM_sendVec_pipe", 4, 0, vec![failed, skipped]));
    run.context.push(("b".to_owned(), "1".to_owned()));
    run.context.push(("a".to_owned(), "2".to_owned()));
    assert_eq!(read(&run.to_json()).unwrap(), run);
}

#[test]
fn fields_of_the_future_are_passed_over() {
    let text = altered("\"complete\"", "\"from_2030\": [{\"x\": 1}], \"complete\"");
    assert_eq!(read(&text).unwrap(), fixtures::run());
}

#[test]
fn numbers_json_cannot_hold_are_left_out_not_made_up() {
    let mut run = fixtures::run();
    run.host.load_avg = vec![0.5, f64::INFINITY];
    run.host.cpu.mhz = Some(f64::NAN);
    let Outcome::Measured(numbers) = &mut run.cases[0].repetitions[0].outcome else { panic!() };
    numbers.counters.set("ratio", f64::NAN, CounterKind::Plain);
    let back = read(&run.to_json()).unwrap();
    assert_eq!(back.host.load_avg, [0.5]);
    assert_eq!(back.host.cpu.mhz, None);
    assert!(back.cases[0].measurements().all(|numbers| numbers.counters.is_empty()));
}

#[test]
fn cut_at_any_byte_is_an_error() {
    let text = fixtures::run().to_json();
    let whole = text.trim_end().len();
    for end in 0..whole {
        match Run::from_json(&text.as_bytes()[..end]) {
            Err(ReadError::Empty) => assert_eq!(end, 0),
            Err(ReadError::Truncated { .. }) => {}
            other => panic!("cut at {end} of {whole}: {other:?}"),
        }
    }
}

#[test]
fn foreign_documents_are_named() {
    let table = [
        ("", "empty"),
        (" \n", "empty"),
        ("hello", "not JSON"),
        ("\u{1b}[31m", "not JSON"),
        ("[1, 2]", "not an object"),
        ("{}", "without a schema"),
        ("{\"schema\": \"other.thing\", \"version\": 1}", "\"other.thing\""),
        ("{\"schema\": 7}", "found 7"),
        ("{\"context\": {}, \"benchmarks\": []}", "Google Benchmark"),
        ("{\"schema\": \"binderperf.run\", \"version\": 2}", "version 2"),
        ("{\"schema\": \"binderperf.run\", \"version\": -1}", "version -1"),
        ("{\"schema\": \"binderperf.run\"}", "version (none)"),
        ("{\"schema\": \"binderperf.run\", \"version\": 1}", "missing field"),
    ];
    for (text, expected) in table {
        let said = read(text).expect_err(text).to_string();
        assert!(said.contains(expected), "{text:?}: {said}");
        assert!(!said.contains('\u{1b}'), "{said:?}");
    }
    assert!(matches!(Run::from_json(b"\xff\xfe{"), Err(ReadError::NotJson { .. })));
    let deep = format!("{{\"x\": {}", "[".repeat(1_000_000));
    assert!(read(&deep).is_err(), "a million open lists");
}

#[test]
fn contradictions_are_named() {
    let table = [
        ("\"count\": 1000", "\"count\": 999", "buckets hold 1000"),
        ("[[2500,999]", "[[2500,0]", "empty"),
        ("[[2500,999]", "[[2501,999]", "off its grid"),
        ("[[2500,999]", "[[9000,999]", "out of order"),
        ("[[2500,999]", "[[2500,18446744073709551615]", "overflow"),
        ("\"min\": 2500", "\"min\": 2400", "outside"),
        ("\"max\": 5000", "\"max\": 18446744073709551615", "outside"),
        ("\"sum\": 2502500", "\"sum\": 1", "sum 1"),
        ("\"significant_digits\": 3", "\"significant_digits\": 0", "digits"),
        ("\"significant_digits\": 3", "\"significant_digits\": 255", "digits"),
        ("\"iterations\": 1000", "\"iterations\": 0", "no iteration"),
        ("\"iterations\": 1000", "\"iterations\": 10", "1000 samples of 10"),
        ("\"threads\": 1", "\"threads\": 0", "no threads"),
        ("\"BM_sendVec_binder/4\"", "\"BM one\"", "a name is"),
        ("\"BM_sendVec_binder/4\"", "\"\\u001b[31m\"", "a name is"),
        ("\"BM_sendVec_binder/4\"", "\"\"", "a name is"),
        ("\"iterations\": 1000", "\"iterations\": -1", "damaged"),
        ("\"class\": \"bare\"", "\"class\": \"moon\"", "unknown variant"),
    ];
    for (from, to, expected) in table {
        let said = read(&altered(from, to)).expect_err(to).to_string();
        assert!(said.contains(expected), "{to}: {said}");
        assert!(!said.contains('\u{1b}'), "{said:?}");
    }
    let mut looks = fixtures::run();
    if let Outcome::Measured(numbers) = &mut looks.cases[0].repetitions[0].outcome {
        numbers.cpus = Some(CpuLooks { taken: 3, together: 4 });
    }
    assert!(read(&looks.to_json()).unwrap_err().to_string().contains("4 looks of 3"));
    let mut twice = fixtures::run();
    twice.cases.push(twice.cases[0].clone());
    assert!(read(&twice.to_json()).unwrap_err().to_string().contains("twice"));
}

#[test]
fn a_record_that_was_edited_is_refused() {
    let mut run = fixtures::latency_run(&[fixtures::Pair::healthy(0)]);
    run.measured.latency_mut().expect("a latency test").inheritance.not_inherited = 3;
    run.cases[0].latency.as_mut().expect("a case").not_inherited = 3;
    let text = run.to_json();
    assert_eq!(read(&text).expect("as written"), run);
    for field in ["real_total", "sum", "not_inherited", "min", "misses", "p99", "load_avg", "started"] {
        let edited = edited(&text, field);
        let said = read(&edited).expect_err(field).to_string();
        let expected = ["edited or is damaged", "use the file as it was written", "measure again"];
        assert!(expected.iter().all(|part| said.contains(part)), "{field}: {said}");
    }
    let said = read(&edited(&text, "not_inherited")).expect_err("an edit").to_string();
    assert!(said.contains("not_inherited is 2 in the test and 3 in its cases"), "{said}");
}

/// The text with the first digit behind a field's name changed to another.
fn edited(text: &str, field: &str) -> String {
    let name = text.find(&format!("\"{field}\":")).unwrap_or_else(|| panic!("{field} in {text}"));
    let digits = |c: char| c.is_ascii_digit();
    let behind = name + field.len() + 2;
    let at = behind + text[behind..].find(digits).expect("a number");
    let digit = if text[at..].starts_with('2') { "3" } else { "2" };
    format!("{}{digit}{}", &text[..at], &text[at + 1..])
}

#[test]
fn a_record_survives_another_program() {
    let run = fixtures::latency_run(&[fixtures::Pair::healthy(0)]);
    // A map sorts its fields by name, and the text has no line breaks.
    let again: Value = serde_json::from_str(&run.to_json()).expect("JSON");
    assert_eq!(read(&again.to_string()).expect("the same values"), run);
    let mut bare = again;
    bare.as_object_mut().expect("an object").remove(checksum::FIELD).expect("a checksum");
    assert_eq!(read(&bare.to_string()).expect("an older record"), run);
}

#[test]
fn a_reader_that_never_ends_is_given_up() {
    assert!(matches!(Run::read(io::repeat(b' ')), Err(ReadError::TooLarge)));
}

#[test]
fn random_damage_never_panics() {
    let original = without_checksum(&fixtures::run()).into_bytes();
    let mut random = Rng::with_seed(0xB1DE);
    let pool = b"0123456789{}[]\",:-eE.\\ \x00\x1b\xff";
    let mut accepted = 0;
    for _ in 0..20_000 {
        let mut bytes = original.clone();
        for _ in 0..=random.u64(..4) {
            let at = random.usize(..bytes.len());
            match random.u64(..3) {
                0 => bytes[at] = pool[random.usize(..pool.len())],
                1 => drop(bytes.remove(at)),
                _ => bytes.insert(at, pool[random.usize(..pool.len())]),
            }
        }
        if let Ok(run) = Run::from_json(&bytes) {
            accepted += 1;
            let whole =
                Distribution::merged(run.cases.iter().flat_map(Case::measurements).map(|m| &m.samples));
            assert!(whole.is_none_or(|whole| whole.percentile(99.0).is_some()));
            assert_eq!(Run::from_json(run.to_json().as_bytes()).unwrap(), run);
        }
    }
    assert!(accepted > 0, "harmless damage, as in a host name, is accepted");
}

#[test]
fn buckets_stay_on_one_line() {
    let text = fixtures::run().to_json();
    assert!(text.contains("\"buckets\": [[2500,999],[5000,1]]\n"), "{text}");
    assert!(text.ends_with("}\n"));
}
