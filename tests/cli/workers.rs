//! The throughput tests with many workers as a user or a script calls them, on the embedded driver.
//! Not here: one client and its service (`throughput`).

use std::io::{BufRead, BufReader};
use std::path::Path;
use std::process::{Child, Command, Stdio};

use crate::support::{
    BINARY, Called, Folder, binderperf, call, read, recorded, servers_end_with, stopped_when_servers_run,
};
use embedded::{EmbeddedContext, Settings};
use record::{CrowdShape, Outcome, Run};

fn on_embedded(test: &str, words: &[&str]) -> Called {
    binderperf(&[&["throughput", test, "--driver=embedded"], words].concat())
}

fn workers(words: &[&str]) -> Called {
    on_embedded("workers", words)
}

fn figure(called: &Called, before: &str) -> f64 {
    let at = called.stdout.rfind(before).unwrap_or_else(|| panic!("no {before}: {}", called.stdout));
    let digits = |c: char| !c.is_ascii_digit() && c != '.';
    let text = &called.stdout[at + before.len()..];
    let text = text[..text.find(digits).unwrap_or(text.len())].trim_end_matches('.');
    text.parse().unwrap_or_else(|_| panic!("{before} has no figure: {}", called.stdout))
}

fn counter(numbers: &record::Measurement, name: &str) -> f64 {
    numbers.counters.find(name).unwrap_or_else(|| panic!("no {name}: {:?}", numbers.counters)).value
}

fn only(run: &Run) -> &record::Measurement {
    run.cases[0].measurements().next().expect("measured")
}

#[test]
fn the_lines_of_the_android_tool_and_the_record_say_the_same() {
    let folder = Folder::new("workers-lines");
    let record = folder.path("r.json");
    let called =
        workers(&["-w", "3", "-i", "400", "-s", "100", "--seed=7", &format!("--record={record}")]).ended(0);
    let lines: Vec<&str> = called.stdout.lines().collect();
    let heads = [
        "waiting for workers to complete",
        "iterations per sec: ",
        "collecting results",
        "killing workers",
        "average:",
        "50%: ",
    ];
    assert_eq!(lines.len(), heads.len(), "{}", called.stdout);
    assert!(lines.iter().zip(heads).all(|(line, head)| line.starts_with(head)), "{}", called.stdout);
    let run = read(&record);
    let (case, numbers) = (&run.cases[0], only(&run));
    assert!(run.complete && run.plan.seed == Some(7), "{:?}", run.plan);
    assert_eq!((case.threads, case.payload_bytes), (3, 100));
    assert_eq!(case.crowd.as_ref().map(|crowd| (crowd.shape, crowd.services)), Some((CrowdShape::Random, 3)));
    assert_eq!((numbers.iterations, numbers.samples.count), (1200, 1200), "every call of every worker");
    for (name, before) in [("exact_p50", "50%: "), ("exact_p99", "99%: ")] {
        assert_eq!(figure(&called, before), counter(numbers, name) / 1e6, "{name}");
    }
    assert_eq!(figure(&called, "worst:"), numbers.samples.max as f64 / 1e6);
    // The rate is that of the calls made, in the time from the barrier to the last worker's end.
    let (rate, wall) = (counter(numbers, "calls_per_second"), counter(numbers, "wall"));
    assert!((rate - 1200.0 * 1e9 / wall).abs() < 1e-6 * rate, "{rate} {wall}");
    assert!((figure(&called, "per sec: ") - rate).abs() <= 0.06, "{rate}");
    let shown = binderperf(&["show", &record, "--format=lines"]);
    called.printed(shown.stdout.lines().next().expect("lines"));
    let shown = binderperf(&["show", &record]);
    shown.printed("workers_binder/random:3/payload:100");
}

#[test]
fn with_pairs_only_clients_call_and_only_they_count() {
    let (_, run) = recorded(0, workers, &["-p", "-w", "4", "-i", "300"]);
    assert_eq!((run.cases[0].threads, only(&run).iterations), (2, 600));
    assert_eq!(run.cases[0].crowd.as_ref().map(|crowd| crowd.shape), Some(CrowdShape::Pairs));
}

#[test]
fn a_training_round_is_not_measured_and_sets_what_is_expected() {
    let folder = Folder::new("workers-training");
    let record = folder.path("r.json");
    let called = workers(&["-t", "-i", "200", "--rounds=2", &format!("--record={record}")]).ended(0);
    let order =
        ["Start training", "Max latency during training: ", "Completed training", "iterations per sec"];
    let places: Vec<_> = order.iter().map(|text| called.stdout.find(text).expect(text)).collect();
    assert!(places.is_sorted(), "{}", called.stdout);
    let run = read(&record);
    let rounds: Vec<_> = run.cases[0].measurements().collect();
    assert_eq!(rounds.iter().map(|numbers| numbers.iterations).collect::<Vec<_>>(), [400, 400]);
    let worst = figure(&called, "during training: ") * 1e6;
    assert!((counter(rounds[0], "expected_max") - 2.0 * worst).abs() < 1.0, "{worst}");
}

#[test]
fn calls_that_took_longer_than_expected_are_a_percentage() {
    // No call is as fast as this, so all were longer.
    let called = workers(&["-i", "50", "-m", "1"]);
    let share = called.stdout.lines().find(|line| line.contains("% of transactions took longer"));
    let fast = || called.stdout.contains("50%: 0.000");
    assert!(share.is_some() || fast(), "{}", called.stdout);
    if let Some(share) = share {
        let percent: f64 = share.split('%').next().and_then(|text| text.parse().ok()).expect("a figure");
        assert!((1.0..=100.0).contains(&percent), "{share}");
    }
}

#[test]
fn the_android_name_means_the_same_test() {
    let folder = Folder::new("workers-applet");
    let link = folder.path("binderThroughputTest");
    std::os::unix::fs::symlink(BINARY, &link).expect("symlink");
    let embedded = [("BINDERPERF_DRIVER", "embedded")];
    let by_name = call(&link, &["-w", "2", "-i", "20", "-p"], &embedded);
    let program = BINARY;
    let by_word = call(program, &["binderThroughputTest", "-w", "2", "-i", "20"], &embedded);
    let by_applet = call(program, &["applet", "binderThroughputTest", "-i", "20"], &embedded);
    for called in [&by_name, &by_word, &by_applet] {
        assert_eq!(called.code, Some(0), "{}", called.stderr);
        assert!(figure(called, "iterations per sec: ") > 0.0);
    }
    assert!(call(&link, &["-h"], &[]).stdout.contains("Usage: binderThroughputTest"));
}

#[test]
fn what_cannot_be_done_says_so_before_anything_is_started() {
    for (words, says) in [
        (&["-w", "0"][..], "must be a worker"),
        (&["-w", "1"], "2 or more"),
        (&["-w", "100000"], "limit is 512"),
        (&["-w", "-3"], "-3"),
        (&["-w", "two"], "two"),
        (&["-w"], "-w"),
        (&["-p", "-w", "3"], "even number"),
        (&["-i", "0"], "'0'"),
        (&["-i", "1000000000", "-w", "512"], "limit is"),
        (&["-s", "345425"], "limit is 345424 B"),
        (&["-s", "400000", "-w", "4"], "limit is 115136 B"),
        (&["-s", "1k"], "1k"),
        (&["-m", "0"], "'0'"),
        (&["--duration=0"], "'0'"),
        (&["--duration=1", "-i", "5"], "--duration"),
        (&["--rounds=0"], "'0'"),
        (&["--service=x", "-p"], "--service"),
        (&["--fault=corrupt-reply=worker1"], "corrupted"),
        (&["stray"], "stray"),
        (&["--wait=spin", "--driver=kernel"], "--driver"),
    ] {
        workers(words).ended(2).printed_nothing().complained(says);
    }
    for (words, says) in [
        (&["-P", "0"][..], "'0'"),
        (&["-P", "257"], "256"),
        (&["--payload=x"], "'x'"),
        (&["--payload=2000000"], "limit is"),
        (&["--steps=some"], "some"),
        (&["--shape=ring"], "ring"),
    ] {
        on_embedded("scaling", words).ended(2).printed_nothing().complained(says);
    }
}

#[test]
fn the_largest_payload_that_is_allowed_goes_through() {
    for words in [&["-p", "-s", "345424"][..], &["-w", "2", "-s", "345424"], &["-w", "4", "-s", "115136"]] {
        workers(&[words, &["-i", "200"]].concat()).ended(0);
    }
    hwbinder(&["-w", "1", "-s", "1", "-i", "200", "--payload=517888"]).ended(0);
    hwbinder(&["-w", "1", "-s", "1", "--payload=517889"]).ended(2);
}

#[test]
fn a_worker_that_dies_or_hangs_ends_the_run_with_what_was_measured() {
    for (words, says) in [
        (&["--fault=kill-server=worker1"][..], "worker 1 died (signal: 6 (SIGABRT)"),
        (&["-p", "-w", "4", "--fault=kill-server=worker0"], "worker 0 died"),
        (&["-p", "--fault=kill-server=worker1"], "worker 1 died"),
        (&["--fault=hang-server=worker1", "--patience=2"], " s: worker 0 waits for worker 1"),
        (&["-w", "4", "--fault=hang-server=worker2", "--patience=2"], "for worker 2"),
        (&["-p", "--fault=hang-server=worker1", "--patience=2"], "worker 1 stopped calling"),
    ] {
        let folder = Folder::new("workers-broken");
        let record = folder.path("r.json");
        let common = ["-i", "300000", &format!("--record={record}")];
        let called = workers(&[words, &common].concat()).ended(1);
        called.complained(says);
        let run = read(&record);
        assert!(!run.complete && run.incomplete_reason.as_ref().is_some_and(|why| why.contains(says)));
        let Outcome::Failed { partial: Some(partial), .. } = &run.cases[0].repetitions[0].outcome else {
            panic!("{words:?}: nothing was kept: {:?}", run.cases[0]);
        };
        assert!((1..600_000).contains(&partial.iterations), "{words:?}: {}", partial.iterations);
        called.printed("iterations per sec: ");
        let shown = binderperf(&["show", &record]);
        shown.printed("INCOMPLETE");
    }
}

#[test]
fn a_stopped_run_keeps_what_it_has_and_no_worker_outlives_a_killed_one() {
    let folder = Folder::new("workers-stopped");
    let record = folder.path("r.json");
    let words = ["throughput", "workers", "--driver=embedded", "--duration=60"];
    let to_record = format!("--record={record}");
    let with_record = [&words[..], &[to_record.as_str()]].concat();
    let called = stopped_when_servers_run(&with_record, "TERM");
    // Before the first call nothing can be kept, and what was not ready says so.
    if called.code == Some(1) {
        let run = read(&record);
        assert!(run.incomplete_reason.is_some_and(|why| why.contains("SIGTERM")), "{}", called.stderr);
    } else {
        assert_eq!(called.code, Some(3), "{}", called.stderr);
    }
    servers_end_with(&words, "KILL");
}

#[test]
fn a_service_that_nobody_registered_is_waited_for_and_named() {
    workers(&["--service=no.such.service", "--device=private"]).ended(2);
    let folder = Folder::new("workers-nobody");
    in_users(&folder, &["--service=no.such.service"]).ended(3).complained("no service manager");
    binderperf(&["throughput", "workers", "--device=/nonexistent/binder"]).ended(3);
}

/// The test in the context of a user whose directory this is, where others' services are looked for.
fn in_users(folder: &Folder, words: &[&str]) -> Called {
    let words = [&["throughput", "workers", "--driver=embedded"], words].concat();
    call(BINARY, &words, &[("XDG_RUNTIME_DIR", &folder.path(""))])
}

/// A process that ends with the value.
struct Started(Child);

impl Started {
    fn new(words: &[&str]) -> Self {
        let mut command = Command::new(BINARY);
        command.args(words).stdout(Stdio::piped()).stderr(Stdio::null());
        Self(command.spawn().expect("it starts"))
    }

    /// This program in one of its hidden roles, ready.
    fn server(server: serde_json::Value) -> Self {
        let role = serde_json::json!({ "server": server, "fault": null }).to_string();
        let mut started = Self::new(&["__worker", "server", &role]);
        let mut line = String::new();
        let stdout = started.0.stdout.take().expect("piped");
        BufReader::new(stdout).read_line(&mut line).expect("its output");
        assert_eq!(line, "ready\n", "{role}");
        started
    }
}

impl Drop for Started {
    fn drop(&mut self) {
        // An error means that it has ended already.
        let _ = self.0.kill();
        let _ = self.0.wait();
    }
}

#[test]
fn a_service_of_somebody_else_is_pinged() {
    let folder = Folder::new("workers-service");
    let directory = folder.path("binderperf");
    let context = EmbeddedContext::at(Path::new(&directory), "binder", Settings::default());
    let address = context.address();
    let _broker = Started::new(&["broker", "--context-dir", &directory]);
    let start = |service: serde_json::Value| {
        let server = serde_json::json!({ "address": address, "dialect": "16", "service": service });
        Started::server(serde_json::json!({ "InContext": server }))
    };
    let _manager = start("Manager".into());
    let _service = start(serde_json::json!({ "Echo": { "name": "test.echo" } }));
    for called in [
        workers(&["--context-dir", &directory, "--service=test.echo", "-i", "30"]),
        in_users(&folder, &["--service=test.echo", "-i", "30"]),
    ] {
        assert_eq!(called.code, Some(0), "{}", called.stderr);
        assert!(figure(&called, "iterations per sec: ") > 0.0);
    }
    in_users(&folder, &["--service=no.such.service"])
        .ended(3)
        .complained("nobody serves no.such.service: not registered within ");
}

fn hwbinder(words: &[&str]) -> Called {
    let program = BINARY;
    let words = [&["hwbinderThroughputTest", "--aosp-compat=off"], words].concat();
    call(program, &words, &[("BINDERPERF_DRIVER", "embedded")])
}

#[test]
fn hwbinder_workers_call_services_of_other_processes_or_their_own_objects() {
    let folder = Folder::new("workers-hwbinder");
    let record = folder.path("r.json");
    let to_record = format!("--record={record}");
    for (words, family, services) in [
        (&["-w", "3", "-s", "2"][..], "workers_hwbinder", 2),
        (&["-m", "BINDERIZE", "-w", "2"], "workers_hwbinder", 2),
        (&["-m", "PASSTHROUGH", "-w", "2", "-s", "4"], "workers_passthrough", 4),
    ] {
        let called = hwbinder(&[words, &["-i", "150", &to_record]].concat()).ended(0);
        let lines: Vec<&str> = called.stdout.lines().collect();
        assert_eq!(lines[1].split(':').next(), Some("iterations per sec"), "{}", called.stdout);
        assert_eq!(lines.last(), Some(&"killing workers"), "{}", called.stdout);
        let run = read(&record);
        let case = &run.cases[0];
        assert_eq!((case.family.as_str(), case.payload_bytes), (family, 16));
        assert_eq!(case.crowd.as_ref().map(|crowd| crowd.services), Some(services));
        assert_eq!(only(&run).iterations, u64::from(case.threads) * 150);
        assert_eq!(run.driver.is_some(), family == "workers_hwbinder", "without IPC there is no driver");
    }
}

#[test]
fn hwbinder_workers_refuse_what_makes_no_sense_and_name_who_broke() {
    for (words, says) in [
        (&["-m", "passthrough"][..], "PASSTHROUGH"),
        (&["-m", "ASHMEM"], "BINDERIZE"),
        (&["-m"], "-m"),
        (&["-w", "0"], "must be a worker"),
        (&["-s", "0"], "service to call"),
        (&["-s", "600"], "limit is 512"),
        (&["-s", "x"], "'x'"),
        (&["--payload=2000000"], "limit is"),
    ] {
        hwbinder(words).ended(2).printed_nothing().complained(says);
    }
    for (fault, patience, says) in [
        ("kill-server=service1", "30", "service 1 died"),
        ("hang-server=service0", "2", "for service 0"),
        ("kill-server=worker1", "30", "worker 1 died"),
    ] {
        let fault = format!("--fault={fault}");
        hwbinder(&["-i", "500000", &fault, "--patience", patience]).ended(1).complained(says);
    }
}

#[test]
fn scaling_has_a_case_for_each_step_and_a_line_where_the_overload_begins() {
    let folder = Folder::new("scaling");
    let record = folder.path("r.json");
    let cpus = std::thread::available_parallelism().expect("CPUs").get() as u32;
    let most = (cpus * 2).to_string();
    let called = on_embedded(
        "scaling",
        &["-P", &most, "-i", "100", "--rounds=2", "--payload=0,64", &format!("--record={record}")],
    )
    .ended(0);
    let run = read(&record);
    assert!(run.complete && run.overloaded);
    for case in &run.cases {
        let crowd = case.crowd.as_ref().expect("many at work");
        assert_eq!(crowd.overloaded, case.threads > cpus, "{}", case.name);
        let rounds: Vec<u64> = case.measurements().map(|numbers| numbers.iterations).collect();
        assert_eq!(rounds, [u64::from(case.threads) * 100; 2], "{}", case.name);
    }
    let clients: Vec<u32> = run.cases.iter().map(|case| case.threads).collect();
    let series = clients.len() / 4;
    assert!((2..=10).contains(&series) && clients[series - 1] == cpus * 2, "{clients:?}");
    assert_eq!(called.stdout.matches("overload: more clients than CPUs").count(), 4, "{}", called.stdout);
    assert_eq!(binderperf(&["show", &record]).stdout, called.stdout);
    called.complained("overload the machine");
}

#[test]
fn what_was_measured_before_a_case_that_cannot_start_is_kept() {
    let folder = Folder::new("scaling-stops");
    let record = folder.path("r.json");
    let scaling = |duration: &str| {
        let words = format!("--shape=pairs --payload=0 -P 4 --duration={duration} --record={record}");
        let program = BINARY;
        // In blocks of 512 bytes: room for the samples of two clients for 0.4 s, but not of four.
        let limit = "trap '' XFSZ && ulimit -f 61440";
        let script = format!("{limit} && exec {program} throughput scaling --driver=embedded {words}");
        call("sh", &["-c", &script], &[])
    };
    let says = "making shared memory: EFBIG";
    let called = scaling("4").ended(3);
    assert!(called.stderr.contains(says) && !called.stderr.contains("is kept"), "{}", called.stderr);

    let called = scaling("0.4").ended(1);
    called.complained(says).complained("is kept");
    let run = read(&record);
    assert!(run.incomplete_reason.as_ref().is_some_and(|why| why.contains(says)), "{}", called.stderr);
    let measured: Vec<usize> = run.cases.iter().map(|case| case.measurements().count()).collect();
    assert_eq!(measured, [1, 1, 0], "{}", called.stdout);
    let last = run.cases[2].repetitions.first().map(|repetition| &repetition.outcome);
    assert!(matches!(last, Some(Outcome::Failed { partial: None, .. })), "{last:?}");
    called.printed("INCOMPLETE");
}

#[test]
fn a_time_in_place_of_a_number_of_calls_is_kept() {
    let (_, run) = recorded(0, workers, &["--duration=0.2", "--format=summary"]);
    assert!(counter(only(&run), "wall") >= 0.2e9);
    assert_eq!(only(&run).samples.count, only(&run).iterations);
}
