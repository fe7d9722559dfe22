//! `binderperf ab` and `bisect-step`: two sides measured in turns on the embedded driver, and everything that can
//! go wrong with one of them.
//! Not here: how often verdicts are right on made-up runs (`record::compare`), kernels (`guest::ab`).
//!
//! `make trials` runs the ignored ones: how often `ab` is right on this machine.

use std::process::Stdio;

use crate::support::{BINARY, Called, Folder, binderperf, call, command, contents, read, signal, wait_until};

/// A test of a few milliseconds, without inheritance to be judged.
const TEST: [&str; 8] =
    ["--", "latency", "binder", "--driver=embedded", "-i", "200", "--no-scenes", "--inherit-rt=on"];

fn ab(folder: &Folder, sides: [&str; 2], more: &[&str]) -> Called {
    let records = folder.path("records");
    let own = ["ab", "--a", sides[0], "--b", sides[1], "--records", &records, "--seed=5"];
    binderperf(&[&own[..], more, &TEST].concat())
}

fn last_line(called: &Called) -> &str {
    called.stdout.trim_end().lines().last().unwrap_or_default()
}

#[test]
fn a_delay_in_one_side_is_found_and_gated_and_compared_again_from_the_records() {
    let folder = Folder::new("ab-delay");
    // Four times as long, far beyond what this machine's other work does to a run.
    let sides = ["inject=delay=300", "inject=delay=1200"];
    ab(&folder, sides, &["--pairs=12", "--until-width=0%", "--max-regress=5%"])
        .ended(1)
        .printed("Gate at +5 %: exceeded")
        .printed("injected")
        .complained("12 and 12 runs, all pairs are measured");

    // In turns: each pair has one run of either side, and who was first changes.
    let record = |side: char, pair: u32| read(&folder.path(&format!("records/{side}-{pair:03}.json")));
    let mark = |side, pair| record(side, pair).context.iter().find(|(key, _)| key == "ab.pair").cloned();
    assert!((1..=12).all(|pair| mark('a', pair).is_some() && mark('a', pair) == mark('b', pair)));
    assert_ne!(mark('a', 1), mark('a', 2));

    let files = |side: char| {
        let each = (1..=12).map(|pair| folder.path(&format!("records/{side}-{pair:03}.json")));
        each.collect::<Vec<String>>().join(",")
    };
    let again = binderperf(&["compare", &files('b'), &files('a')]);
    assert!(last_line(&again).starts_with("B is faster"), "{}", again.stdout);
    again.printed("pair by pair");
}

#[test]
fn a_second_one_in_the_same_folder_is_refused() {
    let folder = Folder::new("ab-second");
    // What is called wrongly leaves no record, so it may be corrected.
    ab(&folder, ["nosuchflag=1", ""], &[]).ended(2);
    ab(&folder, ["", ""], &["--pairs=2"]).ended(0);
    let kept = contents(folder.path("records/a-001.json"));
    ab(&folder, ["", ""], &["--pairs=1"])
        .ended(2)
        .complained("holds a-001.json of an earlier command")
        .complained("give another folder");
    assert_eq!(contents(folder.path("records/a-001.json")), kept);
    assert_eq!(std::fs::read_dir(folder.path("records")).expect("there").count(), 4);
    let records = folder.path("step");
    folder.write("step/step-012.json", "");
    let good = folder.path("records/a-001.json");
    step(&good, &[&["--records", &records][..], &TEST].concat())
        .ended(128)
        .complained("holds step-012.json of an earlier command");
    folder.write("kept/queue-with.json", "");
    let kept = folder.path("kept");
    binderperf(&["trace", "accuracy", "--keep", &kept])
        .ended(2)
        .complained("holds queue-with.json of an earlier command");
}

#[test]
fn it_stops_when_the_intervals_are_narrow_or_the_time_is_over() {
    let folder = Folder::new("ab-narrow");
    ab(&folder, ["inject=delay=300", "inject=delay=300"], &["--until-width=300%"])
        .ended(0)
        .complained("12 and 12 runs, the intervals are narrow enough");
    let called = ab(&Folder::new("ab-budget"), ["", ""], &["--budget=0s"]).ended(0);
    called.complained("1 and 1 runs, the time is over");
    called.printed("\nCannot tell in 2 cases\n").printed("\"within run\" is the noise inside a run");
}

#[test]
fn a_side_that_fails_is_reported_and_the_rest_kept() {
    let folder = Folder::new("ab-broken");
    ab(&folder, ["", "binary=/bin/false"], &["--pairs=9"])
        .ended(3)
        .complained("side B: binderperf latency binder")
        .complained("left no record")
        .complained("side B failed 3 times in a row");
    assert!(!read(&folder.path("records/a-001.json")).cases.is_empty());
    let gated = ab(&Folder::new("ab-broken-gate"), ["", "binary=/bin/false"], &["--max-regress=5%"]);
    assert_eq!(gated.code, Some(1), "what no longer runs is worse than slow: {}", gated.stderr);
}

#[test]
fn a_side_that_fails_in_the_middle_is_compared_with_what_there_is() {
    let folder = Folder::new("ab-middle");
    // Breaks from its fourth run on.
    let count = folder.path("count");
    let script = folder.path("breaks");
    let text = format!(
        "#!/bin/sh\necho x >> {count}\n[ $(wc -l < {count}) -le 3 ] || exit 4\nexec {} \"$@\"\n",
        BINARY
    );
    std::fs::write(&script, text).expect("written");
    std::fs::set_permissions(&script, std::os::unix::fs::PermissionsExt::from_mode(0o755)).expect("ours");
    ab(&folder, ["", &format!("binary={script}")], &["--pairs=20"])
        .ended(3)
        .complained("and 3 runs, side B failed 3 times in a row")
        .printed("(3 runs)")
        .printed("latency_binder/fifo");
}

#[test]
fn a_test_that_cannot_tell_all_is_compared_by_what_it_tells() {
    let folder = Folder::new("ab-unable");
    // As without the right to SCHED_FIFO: everything is measured, and the status is 3.
    let script = folder.path("unable");
    let text = format!("#!/bin/sh\n{} \"$@\"\nexit 3\n", BINARY);
    std::fs::write(&script, text).expect("written");
    std::fs::set_permissions(&script, std::os::unix::fs::PermissionsExt::from_mode(0o755)).expect("ours");
    ab(&folder, ["", &format!("binary={script}")], &["--pairs=2"])
        .ended(0)
        .complained("2 and 2 runs, all pairs are measured");
    // A run that is refused leaves what it has.
    let text = format!("#!/bin/sh\n{} \"$@\"\nexit 4\n", BINARY);
    std::fs::write(&script, text).expect("written");
    let broken = Folder::new("ab-refused");
    assert_eq!(ab(&broken, ["", &format!("binary={script}")], &["--pairs=1"]).code, Some(3));
    assert!(!read(&broken.path("records/b-001.refused")).cases.is_empty());
}

#[test]
fn an_interruption_keeps_what_was_measured() {
    let folder = Folder::new("ab-signal");
    let records = folder.path("records");
    let own = ["ab", "--a", "", "--b", "", "--records", &records, "--until-width=0%", "--budget=1h"];
    let mut command = command(BINARY, &[&own[..], &TEST].concat());
    let child = command.stdout(Stdio::piped()).stderr(Stdio::piped()).spawn().expect("it starts");
    let last = folder.path("records/b-003.json");
    wait_until("runs are made", || std::path::Path::new(&last).exists());
    signal(child.id(), "INT");
    let output = child.wait_with_output().expect("it ends");
    let (stdout, stderr) = (String::from_utf8_lossy(&output.stdout), String::from_utf8_lossy(&output.stderr));
    assert_eq!(output.status.code(), Some(1), "{stderr}");
    assert!(
        stderr.contains("stopped by SIGINT") && stdout.contains("latency_binder/other"),
        "{stdout}{stderr}"
    );
}

#[test]
fn words_that_make_no_sense_are_refused_before_anything_is_measured() {
    let folder = Folder::new("ab-words");
    let nowhere = folder.write("file", "");
    for (words, code) in [
        (&["ab", "--a", "", "--b", "", "--records", &nowhere, "--", "latency", "binder"][..], 4),
        (&["ab", "--a", "--x", "--b", "", "--", "latency", "binder"], 2),
        (&["ab", "--a", "", "--b", ""], 2),
        (&["ab", "--a", "", "--b", "", "--budget=soon", "--", "latency", "binder"], 2),
        (&["ab", "--a", "", "--b", "", "--icount", "--pairs=3", "--", "latency", "binder"], 2),
    ] {
        binderperf(words).ended(code);
    }
    ab(&folder, ["", "nosuchflag=1"], &[]).ended(2).complained("nosuchflag");
}

/// `bisect-step` with a baseline of good runs.
fn step(baseline: &str, words: &[&str]) -> Called {
    let own = ["bisect-step", "--baseline", baseline, "--max-regress=100%"];
    binderperf(&[&own[..], words].concat())
}

/// A side whose runs, 24 at most, leave this record with calls that took such times, in ns, each of another moment.
fn made_up(folder: &Folder, name: &str, mut run: record::Run, times: &[u64]) -> String {
    for repetition in run.cases.iter_mut().flat_map(|case| &mut case.repetitions) {
        let samples = record::Distribution::of(times.iter().copied());
        let (iterations, real_total) = (samples.count, samples.sum);
        let numbers = record::Measurement { iterations, real_total, samples, ..Default::default() };
        repetition.outcome = record::Outcome::Measured(numbers);
    }
    for number in 1..=24 {
        run.started = format!("2026-01-31T00:00:{number:02}+00:00");
        folder.write(&format!("{name}-{number}.json"), run.to_json());
    }
    // The last word says where the record goes: `--record=FILE`.
    let text =
        "#!/bin/sh\nfor word; do :; done\necho >>$0.runs\nexec cp $0-$(wc -l <$0.runs).json \"${word#*=}\"\n";
    let script = folder.write(name, text);
    std::fs::set_permissions(&script, std::os::unix::fs::PermissionsExt::from_mode(0o755)).expect("ours");
    format!("binary={script}")
}

/// The runs are made up: what this machine measures is left to `make alone`.
#[test]
fn a_bisection_is_told_good_bad_skip_and_stop() {
    let folder = Folder::new("bisect");
    let path = folder.path("measured.json");
    let few = ["--controls=none", "--benchmark_filter=binder/4$", "--benchmark_min_time=20x"];
    let words = [&["throughput", "binder", "--driver=embedded"], &few[..], &["--record", &path]].concat();
    binderperf(&words).ended(0);
    let side = |name, times: [u64; 3]| made_up(&folder, name, read(&path), &times);
    let [fast, slow] = [("fast", [50_000, 51_000, 52_000]), ("slow", [150_000, 151_000, 152_000])]
        .map(|(name, times)| side(name, times));
    ab(&folder, [&fast, &fast], &["--pairs=8", "--until-width=0%"]).ended(0);
    let files = |side: char| {
        let each = (1..=8).map(|pair| folder.path(&format!("records/{side}-{pair:03}.json")));
        each.collect::<Vec<String>>().join(",")
    };
    let good = files('a');
    let measure = |side: &str| step(&good, &[&["--side", side, "--runs=8"][..], &TEST].concat());
    let called = measure(&fast);
    assert_eq!(called.code, Some(0), "good: {}{}", called.stdout, called.stderr);
    assert_eq!(measure(&slow).code, Some(1), "bad");
    assert_eq!(step(&good, &[&files('b')]).code, Some(0), "good, by records");
    assert_eq!(measure("binary=/bin/false").code, Some(125), "cannot be measured");
    step(&good, &[&["--broken-is-bad", "--side", "binary=/bin/false"][..], &TEST].concat()).ended(1);
    assert_eq!(measure("binary=/nonexistent").code, Some(125), "what was not built cannot be measured");
    assert_eq!(measure("kernel=/nonexistent/bzImage").code, Some(125), "nor booted");
    let (one, told) = (folder.path("records/b-001.json"), folder.path("told.txt"));
    let written = step(&good, &["--out", &told, &files('b')]);
    assert_eq!((written.code, written.stdout.as_str()), (Some(0), ""), "{}", written.stderr);
    assert!(contents(&told).contains("Gate at"));
    assert_eq!(
        step(&good, &["--out", "/dev/full", &files('b')]).code,
        Some(128),
        "no verdict is lost silently"
    );
    let doubt = binderperf(&["bisect-step", "--baseline", &one, "--max-regress=1%", &one]);
    assert_eq!(doubt.code, Some(125), "cannot tell: {}", doubt.stdout);
    assert_eq!(step(&good, &[&folder.path("missing.json")]).code, Some(125), "no record of this commit");
    assert_eq!(step(&folder.path("missing.json"), &[&one]).code, Some(128), "no baseline");
    assert_eq!(step(&good, &["--no-such-flag"]).code, Some(128));
    assert_eq!(measure("nosuchflag=1").code, Some(128), "the same at each step");
}

/// All of it on one CPU: whether both sides of a call share one is otherwise luck, and a matter of 1 to 3.
fn pinned(folder: &Folder, sides: [&str; 2], more: &[&str]) -> Called {
    let records = folder.path("records");
    let own = ["-c", "0", BINARY, "ab", "--records", &records];
    call("taskset", &[&own[..], &["--a", sides[0], "--b", sides[1]], more, &TEST].concat(), &[])
}

/// How many of so many trials end with such a line.
fn trials(count: usize, sides: [&str; 2], wanted: &str) -> usize {
    let right = (0..count).filter(|trial| {
        let called = pinned(&Folder::new(&format!("ab-trial-{trial}")), sides, &[]);
        eprintln!("{trial}: {}; {}", last_line(&called), called.stderr.lines().last().unwrap_or_default());
        last_line(&called).starts_with(wanted)
    });
    right.count()
}

#[test]
#[ignore = "minutes: make trials"]
fn trials_of_equals() {
    let right = trials(20, ["", ""], "No difference in");
    assert!(right >= 19, "{right} of 20");
}

#[test]
#[ignore = "minutes: make trials"]
fn trials_of_five_percent() {
    // A whole number of us that is 5 % of a call: as much service in A that a call takes 20 us, one us more in B.
    let folder = Folder::new("ab-trial-base");
    pinned(&folder, ["", ""], &["--pairs=12", "--until-width=0%"]).ended(0);
    let run = read(&folder.path("records/a-006.json"));
    let took = run.cases[0].median_real().expect("calls") / 1000.0;
    let (of_a, of_b) = match 20.0 - took {
        service if service >= 1.0 => (service.round() as u64, service.round() as u64 + 1),
        // A slower machine: 5 % of what it takes.
        _ => (0, (took * 0.05).round() as u64),
    };
    eprintln!("a call takes {took:.1} us: {of_a} and {of_b} us of service");
    let right = trials(10, [&format!("inject=delay={of_a}"), &format!("inject=delay={of_b}")], "B is slower");
    assert!(right >= 9, "{right} of 10");
}
