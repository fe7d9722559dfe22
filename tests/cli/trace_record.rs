//! Recording on this machine's tracefs: `binderperf trace record` in instances of its own.
//! Not here: the buffer that everybody shares (`atrace`), what a trace means.
//! Without tracefs, or the right to use it, these tests say so and look at nothing.

use std::fs::File;
use std::os::unix::process::CommandExt;
use std::path::{Path, PathBuf};
use std::process::{Child, Stdio};

use needs::{Need, need};

use crate::support::{
    BINARY, Called, Folder, SmallDisk, binderperf, call, command, contents, end, read, signal, start,
    tracing_switch, wait_until, words,
};
use trace::file::{Container, TracefsText};
use trace::verdict::{Analysis, AnalysisOptions, Analyzer, Filter};

pub(crate) const TRACEFS: &str = "/sys/kernel/tracing";

/// Instances of recorders with a number that begins so.
fn instances(number: &str) -> Vec<PathBuf> {
    let start = format!("binderperf-record-{number}");
    let entries = std::fs::read_dir(format!("{TRACEFS}/instances")).into_iter().flatten().flatten();
    let named = entries.filter(|entry| entry.file_name().to_string_lossy().starts_with(&start));
    named.map(|entry| entry.path()).collect()
}

pub(crate) fn opened(path: &str) -> Container<File> {
    Container::open(File::open(path).expect("a recording")).expect("a sound recording")
}

/// Pages of all CPUs.
fn pages(trace: &mut Container<File>) -> usize {
    let cpus: Vec<u32> = trace.cpus().collect();
    let size = trace.head().page_size as usize;
    let mut all = 0;
    for cpu in cpus {
        let mut space = Vec::new();
        loop {
            trace.read_pages(cpu, &mut space, size * 256).expect("readable");
            if space.is_empty() {
                break;
            }
            all += space.len() / size;
        }
    }
    all
}

/// The number before this word.
fn number_before(text: &str, word: &str) -> u64 {
    let (before, _) = text.split_once(word).unwrap_or_else(|| panic!("{word:?} is not in {text}"));
    before.rsplit(' ').next().and_then(|number| number.parse().ok()).unwrap_or_else(|| panic!("{text}"))
}

fn record(output: &str, words: &[&str]) -> Called {
    binderperf(&[&["trace", "record", "-o", output], words].concat())
}

#[test]
fn a_recording_has_all_that_its_reader_needs_and_leaves_nothing_behind() {
    need!(tracing_switch());
    let folder = Folder::new("trace-time");
    let file = folder.path("t.trace");
    let switch = || contents(format!("{TRACEFS}/events/sched/sched_switch/enable"));
    let before = switch();
    let called = record(&file, &["-t", "1", "sched", "irq"]).ended(0);
    assert_eq!(before, switch(), "the shared buffer is left alone");
    let events = number_before(&called.stderr, " events, ");
    assert!(events > 10, "a second without events: {}", called.stderr);
    let mut trace = opened(&file);
    assert!(trace.report().is_whole(), "{:?}", trace.report());
    let formats: Vec<String> = trace.formats().map(|(group, _)| group.to_owned()).collect();
    for group in ["sched", "irq", "ftrace"] {
        assert!(formats.iter().any(|format| format == group), "{group} of {formats:?}");
    }
    let header = trace.text(TracefsText::HeaderPage, 0).expect("kept");
    assert!(header.starts_with(b"\tfield:"), "{}", String::from_utf8_lossy(header));
    assert!(
        trace.text(TracefsText::SavedTgids, 0).is_some()
            && trace.text(TracefsText::SavedCmdlines, 0).is_some()
    );
    assert!(pages(&mut trace) > 0);
    let counted: u64 = trace
        .cpus_with(TracefsText::Stats)
        .map(|cpu| String::from_utf8_lossy(trace.text(TracefsText::Stats, cpu).expect("kept")).into_owned())
        .filter_map(|stats| {
            stats.lines().find_map(|line| line.strip_prefix("read events: ")?.parse::<u64>().ok())
        })
        .sum();
    assert_eq!(counted, events, "what is said is what the kernel counted");
    let called = binderperf(&["trace", "info", &file]).ended(0);
    // All of the texts were understood.
    assert!(
        trace::open(File::open(&file).expect("a recording")).expect("sound").report().problems.is_empty()
    );
    for told in [&format!(": {events} events"), "clock ", "cpu0: ", " sched_switch\n"] {
        called.printed(told);
    }
    for (bad, why) in [("/no/such/file", "ENOENT"), (BINARY, "no trace")] {
        let called = binderperf(&["trace", "info", bad]);
        assert_eq!((called.code, called.stdout.as_str()), (Some(2), ""));
        called.complained(why);
    }
}

/// What a trace says.
fn analysed(path: &str, question: AnalysisOptions) -> Analysis {
    let mut reader = trace::open(File::open(path).expect("a recording")).expect("a sound recording");
    let mut analyzer = Analyzer::new(question);
    while let Some(event) = reader.next() {
        analyzer.take(&event, reader.names());
    }
    analyzer.finish(reader.names(), reader.report())
}

#[test]
fn a_recording_holds_the_embedded_drivers_calls_by_pair_class_and_number() {
    need!(tracing_switch());
    let folder = Folder::new("trace-marks");
    let file = folder.path("t.trace");
    let test = words("-- binderperf latency hwbinder -i 25 -w 2 --driver=embedded --no-scenes");
    // Whatever events are chosen: the driver's own come by themselves.
    record(&file, &[&["sched"], &test[..]].concat()).ended(0);
    let own = Filter { own: true, ..Filter::default() };
    let analysis =
        analysed(&file, AnalysisOptions { worst: 1000, filter: own, ..AnalysisOptions::default() });
    assert_eq!(analysis.counts.calls, 25 * 2 * 2, "{analysis}");
    let mut told: Vec<&str> = analysis.slow.iter().filter_map(|call| call.label.as_deref()).collect();
    told.sort_unstable();
    let mut made: Vec<String> = (0..2)
        .flat_map(|pair| ["fifo", "other"].map(|class| (pair, class)))
        .flat_map(|(pair, class)| {
            (0..25).map(move |number| format!("pair={pair} class={class} number={number}"))
        })
        .collect();
    made.sort_unstable();
    assert_eq!(told, made);
    for call in &analysis.slow {
        let class =
            if call.label.as_deref().is_some_and(|label| label.contains("fifo")) { 0..100 } else { 100..140 };
        assert!(call.caller.prio.is_some_and(|prio| class.contains(&prio)), "{}", call.verdict);
        let parts: u64 = call.parts.iter().map(|part| part.ns).sum();
        assert_eq!(parts, call.ns, "{}", call.verdict);
    }
    let all = analysed(&file, AnalysisOptions::default());
    assert!(all.counts.calls > analysis.counts.calls, "others' calls are there, too: {all}");
}

#[test]
fn a_recording_is_drawn_by_the_command_that_makes_it() {
    let folder = Folder::new("trace-drawn");
    let (file, page) = (folder.path("t.trace"), folder.path("out.html"));
    // Said before anything is recorded, so that it holds without tracefs, too.
    for (words, why) in [
        (&["--html", &file][..], "cannot be one file"),
        (&["--mark", "class=fifo"], "with --html only"),
        (&["--deadline-us", "10"], "with --html only"),
    ] {
        record(&file, &[words, &["--", "true"]].concat()).ended(2).complained(why);
    }
    need!(tracing_switch());
    let drawn = ["--html", &page, "--mark", "class=fifo", "--worst", "2"];
    let test = words("-- libhwbinder_latency -i 25 --driver=embedded --no-scenes -deadline_us 1000000");
    let called = record(&file, &[&drawn[..], &test[..]].concat()).ended(0);
    assert_eq!(called.json()["cfg"]["iterations"], 25);
    let page = contents(&page);
    assert_eq!(page.matches("role=\"img\"").count(), 3, "two calls, and everybody's");
    assert!(page.contains("P0 fifo #") && !page.contains("P0 other #"), "those whose mark says so");
    called.complained("- P0 fifo #");
}

#[test]
fn nothing_is_marked_where_nobody_records() {
    need!(tracing_switch());
    let folder = Folder::new("trace-unmarked");
    let file = folder.path("t.trace");
    // Not told of the recording, though it is under way.
    let script =
        format!("unset BINDERPERF_TRACING; {BINARY} latency hwbinder -i 5 --driver=embedded --no-scenes");
    let state = folder.path("");
    let words = ["trace", "record", "-o", &file, "sched", "--", "sh", "-c", &script];
    call(BINARY, &words, &[("XDG_RUNTIME_DIR", &state)]).ended(0);
    let analysis = analysed(&file, AnalysisOptions::default());
    assert_eq!((analysis.counts.calls, analysis.counts.cut), (0, 0), "{analysis}");
}

#[test]
fn a_miss_stops_the_recording_and_not_the_shared_buffer() {
    need!(tracing_switch());
    let folder = Folder::new("trace-miss");
    let file = folder.path("t.trace");
    for form in [&[][..], &["-c", "-b", "128"]] {
        let test = ["--", "libhwbinder_latency", "-trace", "-deadline_us", "1", "-i", "2000", "-pair", "1"];
        let called = record(
            &file,
            &[form, &test, &["--driver=embedded", "--no-scenes", "--aosp-compat=off"]].concat(),
        );
        // The test fails at its miss, and that is the status.
        let called = called.ended(1);
        called.complained(format!("deadline triggered: halt & stop trace\nlog:{file}\n"));
        called.complained("recording was stopped before the end");
        assert_eq!(called.json()["stopped_at"]["iteration"], 0);
        assert!(pages(&mut opened(&file)) > 0);
    }
    let met = words("-- libhwbinder_latency -trace -deadline_us 60000000 -i 5 --driver=embedded");
    let called = record(&file, &met);
    assert!(!called.stderr.contains("stopped before the end"), "{}", called.stderr);
}

#[test]
fn a_circular_recording_keeps_what_its_buffers_hold() {
    need!(tracing_switch());
    let folder = Folder::new("trace-circular");
    let file = folder.path("t.trace");
    let many = ["binderperf", "latency", "hwbinder", "-i", "3000", "--driver=embedded", "--no-scenes"];
    let called = record(&file, &[&["-c", "-b", "32", "sched", "--"], &many[..]].concat()).ended(0);
    assert!(number_before(&called.stderr, " older ones overwritten") > 0, "{}", called.stderr);
    let mut trace = opened(&file);
    let most = trace.head().cpus as usize * (32 * 1024 / trace.head().page_size as usize + 4);
    let pages = pages(&mut trace);
    assert!(pages > 0 && pages <= most, "{pages} of {most}");
}

/// Starts a recording of a command that sleeps, and waits until it is under way.
pub(crate) fn sleeping(file: &str) -> (Child, PathBuf) {
    let child = start(&["trace", "record", "-o", file, "sched", "--", "sleep", "1000"]);
    let children = format!("/proc/{0}/task/{0}/children", child.id());
    wait_until("it starts its command", || !contents(&children).is_empty());
    let instance = instances(&format!("{}-", child.id())).pop().expect("its instance");
    (child, instance)
}

#[test]
fn a_signal_ends_a_recording_with_what_there_is() {
    need!(tracing_switch());
    let folder = Folder::new("trace-signal");
    let file = folder.path("t.trace");
    for name in ["INT", "TERM"] {
        let (child, instance) = sleeping(&file);
        signal(child.id(), name);
        // The command was asked to end.
        let called = end(child).ended(128 + 15);
        assert!(!instance.exists());
        assert!(opened(&file).report().is_whole(), "{called}");
    }
}

#[test]
fn what_cannot_be_recorded_is_said() {
    let folder = Folder::new("trace-bad");
    let file = folder.path("t.trace");
    let cases: [(&[&str], i32, &str); 7] = [
        (&["-o", &file, "skhed", "-t", "1"], 2, "unknown tracing category \"skhed\"; there are: sched "),
        (&["-o", &file, "-b", "0", "-t", "1"], 2, "records nothing"),
        (&["-o", &file, "-b", "18446744073709551615", "-t", "1"], 2, "exceed half"),
        (&["-o", &file, "sched", "--", "no-such-command-anywhere"], 2, "no such command"),
        (&["-o", &file, "sched", "--", "/etc/passwd"], 3, "EACCES"),
        (&["-o", "/no/such/folder/t.trace", "-t", "1"], 4, "/no/such/folder/t.trace: ENOENT"),
        (&["-o", "/dev/full", "-t", "1", "sched"], 4, "ENOSPC"),
    ];
    let may = tracing_switch().is_ok();
    for (words, status, want) in &cases[..if may { cases.len() } else { 1 }] {
        binderperf(&[&["trace", "record"], *words].concat()).ended(*status).complained(want);
    }
    for bad in [&[][..], &["-o", &file], &["-t", "1", "--", "true"]] {
        binderperf(&[&["trace", "record"], bad].concat()).ended(2);
    }
}

#[test]
fn on_a_full_disk_the_commands_record_comes_before_the_recording() {
    need!(tracing_switch());
    let folder = Folder::new("trace-full");
    let disk = need!(SmallDisk::new(folder.path("disk"), "size=1m"));
    let (file, results) = (format!("{}/t.trace", disk.0), format!("{}/r.json", disk.0));
    let test = words("-- binderperf latency hwbinder -i 1000000 --driver=embedded --no-scenes --record");
    let child = start(&[&["trace", "record", "-o", &file], &test[..], &[&results]].concat());
    let number = format!("{}-", child.id());
    let called = end(child).ended(4);
    called.complained(format!("{file}: ENOSPC"));
    assert!(instances(&number).is_empty(), "the recorder is gone");
    // How much that is, other work on this machine decides: its events fill the disk, too.
    assert!(read(&results).latency().is_some(), "what was measured is kept");
    assert!(pages(&mut opened(&file)) > 0, "so is what was recorded until then");
    binderperf(&["trace", "info", &file]).ended(0);
}

#[test]
fn a_user_without_the_right_is_told() {
    need!(tracing_switch());
    let folder = Folder::new("trace-nobody");
    let program = folder.path("binderperf");
    std::fs::copy(BINARY, &program).expect("room for a copy");
    let others = std::os::unix::fs::PermissionsExt::from_mode(0o755);
    std::fs::set_permissions(folder.path(""), others).expect("one's own");
    for words in [
        &["trace", "record", "-t", "1", "-o", "/dev/null"][..],
        &["atrace", "-t", "1", "sched"],
        &["atrace", "--async_stop"],
        &["atrace", "--list_categories"],
        &["trace", "restore"],
    ] {
        let mut command = command(&program, words);
        let nobody = command.uid(65534).gid(65534).current_dir("/").stderr(Stdio::piped()).spawn();
        end(nobody.expect("it starts")).ended(3).complained("run as root");
    }
}

#[test]
fn the_status_is_the_commands() {
    need!(tracing_switch());
    let folder = Folder::new("trace-status");
    let file = folder.path("t.trace");
    for (script, want) in [("exit 0", 0), ("exit 7", 7), ("kill -KILL $$", 137)] {
        record(&file, &["sched", "--", "sh", "-c", script]).ended(want);
    }
    let script = "test -d \"$BINDERPERF_TRACING\" && echo \"$BINDERPERF_TRACE_LOG\"";
    let called = call(BINARY, &["trace", "record", "-o", &file, "sched", "--", "sh", "-c", script], &[]);
    assert_eq!((called.code, called.stdout.trim()), (Some(0), file.as_str()), "{}", called.stderr);
    assert!(Path::new(&file).exists());
}

#[test]
fn marks_go_to_the_shared_buffer_where_the_kernel_copies_them() {
    binderperf(&["trace", "record", "--shared-marks", "--via=perfetto", "--", "true"])
        .ended(2)
        .complained("--shared-marks is of --via tracefs");
    need!(tracing_switch());
    let folder = Folder::new("trace-shared-marks");
    let file = folder.path("t.trace");
    let script =
        "echo \"$BINDERPERF_MARKS\"; echo 'binderperf: call number=4711' >\"$BINDERPERF_MARKS/trace_marker\"";
    let called = record(&file, &["--shared-marks", "sched", "--", "sh", "-c", script]);
    if called.code == Some(2) {
        called.complained("cannot copy marks");
        return Need::Feature.lacks("this kernel cannot copy marks").skip();
    }
    assert!(called.stdout.trim().ends_with("tracing"), "the top level: {}", called.stdout);
    let text = std::fs::read(&file).expect("a recording");
    assert!(text.windows(11).any(|bytes| bytes == b"number=4711"), "the mark was copied");
}

#[test]
fn inheritance_scenes_are_left_out_of_an_analysis_unless_asked_for() {
    need!(tracing_switch());
    let folder = Folder::new("scenes");
    let trace = folder.path("t.trace");
    let test = words("binderperf latency hwbinder --driver embedded -i 20 --deadline-us 60000000");
    binderperf(&[&["trace", "record", "-o", &trace, "sched", "binder_driver", "--"][..], &test].concat());
    let asked = |more: &[&str]| {
        binderperf(&[&["trace", "analyze", &trace, "--worst", "1", "--format", "json"], more].concat()).json()
    };
    let (without, with) = (asked(&[]), asked(&["--scenes"]));
    // The scenes' servers sleep for 30 ms and more.
    let slept = |answer: &serde_json::Value| {
        let shares = answer["all"]["shares"].as_array().expect("a list").clone();
        let slept = shares.iter().find(|share| share["cause"] == "sleep");
        slept.and_then(|share| share["ns"].as_u64()).unwrap_or(0)
    };
    assert!(with["counts"]["scenes"].as_u64() > Some(5), "{}", with["counts"]);
    assert!(
        slept(&with) > 30_000_000 && slept(&without) < 30_000_000,
        "{} {}",
        slept(&with),
        slept(&without)
    );
}
