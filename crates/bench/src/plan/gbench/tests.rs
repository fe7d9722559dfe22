//! Tests of the flags, one by one, valid and invalid, from both sources.

use super::*;

fn parse(words: &[&str], env: &[(&str, &str)]) -> Result<(Flags, Vec<String>), String> {
    let lookup = |name: &str| env.iter().find(|(key, _)| *key == name).map(|(_, value)| (*value).to_owned());
    Flags::parse(words.iter().map(|word| (*word).to_owned()), lookup)
}

/// Text that distinguishes two parses.
fn shown(flags: &Flags) -> String {
    format!("{flags:?}")
}

const GOOD: &[(&str, &str)] = &[
    ("benchmark_list_tests", "true"),
    ("benchmark_filter", "binder/4$"),
    ("benchmark_min_time", "2s"),
    ("benchmark_min_time", "7x"),
    ("benchmark_min_warmup_time", "0.25"),
    ("benchmark_repetitions", "3"),
    ("benchmark_dry_run", "yes"),
    ("benchmark_enable_random_interleaving", "on"),
    ("benchmark_report_aggregates_only", "1"),
    ("benchmark_display_aggregates_only", "T"),
    ("benchmark_format", "csv"),
    ("benchmark_out", "x.json"),
    ("benchmark_out_format", "console"),
    ("benchmark_color", "no"),
    ("benchmark_counters_tabular", "true"),
    ("benchmark_perf_counters", "CYCLES,INSTRUCTIONS"),
    ("benchmark_context", "a=1,b=2=3"),
    ("benchmark_time_unit", "us"),
];

#[test]
fn every_flag_can_be_given_in_both_places() {
    let default = shown(&Flags::default());
    for (name, value) in GOOD {
        let (typed, rest) = parse(&[&format!("--{name}={value}")], &[]).expect(name);
        assert!(rest.is_empty());
        assert_ne!(shown(&typed), default, "{name} does something");
        let (found, _) = parse(&[], &[(&name.to_uppercase(), value)]).expect(name);
        assert_eq!(shown(&found), shown(&typed), "{name} from the environment");
    }
    let named: Vec<&str> = GOOD.iter().map(|(name, _)| *name).collect();
    for name in FLAGS.iter().map(|flag| flag.name).filter(|name| *name != "v") {
        assert!(named.contains(&name), "{name} is not tested");
    }
}

#[test]
fn the_command_line_wins() {
    let (flags, _) =
        parse(&["--benchmark_repetitions=2"], &[("BENCHMARK_REPETITIONS", "9")]).expect("both fine");
    assert_eq!(flags.repetitions, 2);
    let (flags, _) =
        parse(&["--benchmark_list_tests=false"], &[("BENCHMARK_LIST_TESTS", "true")]).expect("both fine");
    assert!(!flags.list_tests);
}

#[test]
fn a_switch_needs_no_value_and_the_last_word_counts() {
    let (flags, _) = parse(&["--benchmark_list_tests", "--benchmark_color"], &[]).expect("switches");
    assert!(flags.list_tests);
    assert_eq!(flags.color, Color::Yes);
    let (flags, _) = parse(&["--benchmark_format=json", "--benchmark_format=csv"], &[]).expect("twice");
    assert_eq!(flags.format, Format::Csv);
}

#[test]
fn values_that_make_no_sense_are_refused_by_name() {
    for (name, value) in [
        ("benchmark_list_tests", "maybe"),
        ("benchmark_filter", "BM_("),
        ("benchmark_min_time", "5q"),
        ("benchmark_min_time", "0x"),
        ("benchmark_min_warmup_time", "-1"),
        ("benchmark_min_warmup_time", "inf"),
        ("benchmark_repetitions", "0"),
        ("benchmark_repetitions", "-3"),
        ("benchmark_repetitions", "1000000"),
        ("benchmark_format", "xml"),
        ("benchmark_out_format", "tabular"),
        ("benchmark_color", "blue"),
        ("benchmark_context", "novalue"),
        ("benchmark_context", "uptime=3"),
        ("benchmark_time_unit", "min"),
        ("v", "loud"),
    ] {
        let error = parse(&[&format!("--{name}={value}")], &[]).expect_err(name);
        assert!(error.starts_with(&format!("--{name}: ")), "{error}");
    }
    let error = parse(&[], &[("BENCHMARK_FORMAT", "xml")]).expect_err("bad variable");
    assert!(error.starts_with("BENCHMARK_FORMAT: "), "{error}");
    assert!(parse(&["--benchmark_filter"], &[]).is_err(), "a value is needed");
}

#[test]
fn what_is_not_ours_is_given_back_and_what_only_looks_so_is_refused() {
    let (_, rest) = parse(&["--device", "x", "--benchmark_filter=.", "--record=y"], &[]).expect("fine");
    assert_eq!(rest, ["--device", "x", "--record=y"]);
    let unknown = parse(&["--benchmark_colour=no"], &[]).expect_err("unknown");
    assert_eq!(unknown, "unrecognized command-line flag: --benchmark_colour=no");
}

#[test]
fn questions() {
    for (word, question) in [
        ("--help", InfoRequest::Help),
        ("-h", InfoRequest::Help),
        ("--version", InfoRequest::Version),
        ("-V", InfoRequest::Version),
    ] {
        assert_eq!(parse(&[word], &[]).expect(word).0.question, Some(question));
    }
}

#[test]
fn what_is_said_of_a_flag_is_true() {
    for About { name, words, needs_value, help, .. } in FLAGS {
        assert!(!help.is_empty() && !help.ends_with('.'), "{name}");
        assert_eq!(parse(&[&format!("--{name}")], &[]).is_err(), *needs_value, "{name} without a value");
        for word in *words {
            parse(&[&format!("--{name}={word}")], &[]).unwrap_or_else(|error| panic!("{name}: {error}"));
        }
        if !words.is_empty() {
            parse(&[&format!("--{name}=nonsense")], &[]).expect_err(name);
        }
    }
}
