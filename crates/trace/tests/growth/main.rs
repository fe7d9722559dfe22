//! The cost of a trace grows with its length: of each kind of trace that once cost more, four times as much of it costs about
//! four times as much. Counted are segments, links, bytes of the export and CPU time, which other programs hardly change.
//! Not here: the traces (`inputs`).

mod inputs;

use std::io::{Cursor, Write};

use trace::model::Transaction;
use trace::perfetto::Exporter;
use trace::verdict::{Analysis, AnalysisOptions, Analyzer, Sampler, TransactionEvent};

/// Growth of the CPU time that fails: in proportion it would be 4, with the square 16.
const MOST_TIMES: f64 = 11.0;

/// What a trace cost.
#[derive(Clone, Debug, Default)]
struct Cost {
    segments: u64,
    links: u64,
    exported: u64,
    /// CPU time in nanoseconds, the lesser of two.
    cpu: u64,
    problems: Vec<String>,
}

/// Counts what is written.
#[derive(Default)]
struct Count(u64);

impl Write for &mut Count {
    fn write(&mut self, bytes: &[u8]) -> std::io::Result<usize> {
        self.0 += bytes.len() as u64;
        Ok(bytes.len())
    }

    fn flush(&mut self) -> std::io::Result<()> {
        Ok(())
    }
}

/// CPU time of this thread so far, in nanoseconds.
fn cpu_ns() -> u64 {
    let text = std::fs::read_to_string("/proc/thread-self/schedstat").expect("Linux has it");
    text.split(' ').next().and_then(|ns| ns.parse().ok()).expect("time on a CPU")
}

/// Reads a trace to its end with all that is made of one.
fn read(trace: &[u8], cost: &mut Cost) -> Analysis {
    let mut reader = trace::open(Cursor::new(trace)).expect("a trace");
    let options = AnalysisOptions { worst: 10, deadline_ns: Some(1_000_000), ..AnalysisOptions::default() };
    let mut analyzer = Analyzer::new(options);
    let mut sampler = Sampler::new(Default::default(), Default::default());
    let mut out = Count::default();
    let mut exporter = Exporter::new(&mut out, None);
    let mut met = Vec::new();
    while let Some(event) = reader.next() {
        analyzer.take_with(&event, reader.names(), &mut |what| {
            if let TransactionEvent::Ended(call) = what {
                met.push(call.clone());
            }
        });
        sampler.take(&event, reader.names());
        exporter.event(&event, reader.names());
        met.drain(..).for_each(|call| count(&call, &mut exporter, cost, &reader));
    }
    while let Some(call) = analyzer.end_next(reader.names()) {
        count(&call, &mut exporter, cost, &reader);
    }
    exporter.finish().expect("a counter takes all");
    cost.exported += out.0;
    drop(sampler.finish(reader.names(), reader.report()));
    analyzer.finish(reader.names(), reader.report())
}

fn count(
    call: &Transaction,
    exporter: &mut Exporter<&mut Count>,
    cost: &mut Cost,
    reader: &trace::Reader<Cursor<&[u8]>>,
) {
    cost.segments += call.parts.len() as u64;
    cost.links += call.links.len() as u64;
    assert_eq!(call.parts.iter().map(|part| part.ns()).sum::<u64>(), call.ns(), "the parts are the whole");
    exporter.call(call, None, reader.names());
}

fn cost(trace: &[u8]) -> Cost {
    let once = || {
        let (mut cost, began) = (Cost::default(), cpu_ns());
        cost.problems = read(trace, &mut cost).problems;
        cost.cpu = cpu_ns() - began;
        cost
    };
    (0..2).map(|_| once()).min_by_key(|cost| cost.cpu).expect("two")
}

/// Asserts that four times as much costs at most about four times as much. Returns the costs of both.
fn grows(name: &str, n: usize, make: impl Fn(usize) -> Vec<u8>) -> [Cost; 2] {
    let (one, four) = (make(n), make(4 * n));
    let times = |costs: &[Cost; 2], of: fn(&Cost) -> u64| of(&costs[1]) as f64 / of(&costs[0]).max(1) as f64;
    let (mut costs, mut cpu) = ([cost(&one), cost(&four)], f64::INFINITY);
    // Others on the same CPU cost time, too: caches.
    for _ in 0..3 {
        cpu = cpu.min(times(&costs, |cost| cost.cpu + 1_000_000));
        if cpu < MOST_TIMES {
            break;
        }
        costs = [cost(&one), cost(&four)];
    }
    println!(
        "{name}: {} to {} bytes; segments x{:.1}, links x{:.1}, export x{:.1} ({} bytes), CPU x{cpu:.1} ({} ms)",
        one.len(),
        four.len(),
        times(&costs, |cost| cost.segments),
        times(&costs, |cost| cost.links),
        times(&costs, |cost| cost.exported),
        costs[1].exported,
        costs[1].cpu / 1_000_000,
    );
    for (what, of) in [
        ("segments", (|cost| cost.segments + 1000) as fn(&Cost) -> u64),
        ("links", |cost| cost.links + 1000),
        ("bytes of the export", |cost| cost.exported + 10_000),
    ] {
        let grown = times(&costs, of);
        assert!(grown < 6.5, "{name}: {what} grow by {grown:.1}");
    }
    assert!(cpu < MOST_TIMES, "{name}: CPU time grows by {cpu:.1}");
    costs
}

#[test]
fn nested_calls() {
    let [_, four] = grows("a chain of calls", 500, inputs::chain);
    assert!(
        four.problems.iter().any(|problem| problem.contains("more than 16 calls deep")),
        "{:?}",
        four.problems
    );
    assert!(four.exported < 50 * inputs::chain(2000).len() as u64);
    grows("two threads that call each other", 1000, |n| inputs::ping_pong(n, inputs::End::Replies));
}

#[test]
fn nested_calls_without_replies() {
    for end in [inputs::End::Deaths, inputs::End::Nothing, inputs::End::StrayReplies] {
        grows(&format!("two threads that call each other, then {end:?}"), 500, |n| inputs::ping_pong(n, end));
    }
}

#[test]
fn calls_that_share_a_servers_history() {
    let [_, four] = grows("calls that are never answered", 700, inputs::hoard);
    assert!(four.problems.iter().any(|problem| problem.contains("too many calls")), "{:?}", four.problems);
    grows("a queue before a server", 300, inputs::queue);
    grows("calls while the clock stands still", 700, inputs::standing_clock);
}

#[test]
fn a_thread_that_is_moved_while_it_waits() {
    grows("migrations", 5000, inputs::migrations);
}

#[test]
fn gaps_beside_many_threads_and_calls() {
    grows("gaps", 4000, inputs::gaps);
    grows("gaps of a CPU without events", 2000, inputs::gaps_of_a_silent_cpu);
}

#[test]
fn clocks_that_go_back() {
    grows("text that goes back", 10_000, inputs::backwards);
    grows("clock snapshots that go back", 12_000, inputs::clock_snapshots);
}

#[test]
fn compressed_packets_in_the_worst_order() {
    let [one, four] = grows("blocks in turns", 30, inputs::blocks_in_turns);
    assert!(
        four.problems.iter().any(|problem| problem.contains("hold far more than their bytes")),
        "{four:?}"
    );
    // The same blocks are needed four times as often.
    assert!(four.cpu < 3 * one.cpu + 10_000_000, "{one:?}, {four:?}");
    grows("small blocks", 5000, inputs::small_blocks);
}

#[test]
fn many_of_one_kind() {
    grows("losses by the kernel's counters", 2000, inputs::counted_losses);
    grows("slices of one long name", 5000, inputs::long_slice_names);
    grows("brackets", 4000, inputs::brackets);
    grows("threads", 10_000, inputs::threads);
}

/// A short format that each event of a few bytes prints anew.
#[test]
fn texts_that_events_refer_to_are_short() {
    use trace::file::{Head, TracefsText, Writer};
    let head = Head { clock: "mono".into(), page_size: 4096, cpus: 1, kernel: "x".into(), ..Head::default() };
    let mut writer = Writer::create(Vec::new(), &head).expect("memory");
    let format = "name: bputs\nID: 5\nformat:\n\tfield:unsigned short common_type;\toffset:0;\tsize:2;\tsigned:0;\n\
                  \tfield:int common_pid;\toffset:4;\tsize:4;\tsigned:1;\n\n\
                  \tfield:unsigned long ip;\toffset:8;\tsize:8;\tsigned:0;\n\
                  \tfield:const char * str;\toffset:16;\tsize:8;\tsigned:0;\n\nprint fmt: \"\"\n";
    writer.format("ftrace", format.as_bytes()).expect("memory");
    let text = format!("0x77 : \"{}\"\n", "y".repeat(1 << 20));
    writer.text(TracefsText::PrintkFormats, 0, text.as_bytes()).expect("memory");
    let mut page = [0_u64.to_le_bytes(), 28_u64.to_le_bytes()].concat();
    page.extend((6_u32 | 1 << 5).to_le_bytes());
    page.extend([5, 0, 0, 0, 9, 0, 0, 0]);
    page.extend([0_u64.to_le_bytes(), 0x77_u64.to_le_bytes()].concat());
    page.resize(4096, 0);
    writer.pages(0, &page).expect("memory");
    let mut reader = trace::open(Cursor::new(writer.finish().expect("memory"))).expect("sound");
    let Some(trace::event::Kind::Print(text)) = reader.next().map(|event| event.kind) else {
        panic!("one event")
    };
    assert_eq!(text.len(), 1024);
}

/// Largest memory that this process ever had, in bytes.
fn peak() -> u64 {
    let status = std::fs::read_to_string("/proc/self/status").expect("Linux has it");
    let line = status.lines().find_map(|line| line.strip_prefix("VmHWM:")).expect("a process has memory");
    1024 * line.trim().trim_end_matches(" kB").parse::<u64>().expect("kilobytes")
}

/// The program that [`three_hundred_thousand_threads`] runs, since memory is of a process.
#[test]
#[ignore = "run by another test"]
fn of_many_threads() {
    let path = std::env::var("TRACE_GROWTH_FILE").expect("set by the other test");
    let mut reader = trace::open(std::fs::File::open(path).expect("written")).expect("a trace");
    let mut analyzer = Analyzer::new(AnalysisOptions { worst: 10, ..AnalysisOptions::default() });
    let mut exporter = Exporter::new(std::io::sink(), None);
    while let Some(event) = reader.next() {
        analyzer.take(&event, reader.names());
        exporter.event(&event, reader.names());
    }
    exporter.finish().expect("a sink takes all");
    println!("events {} peak {}", analyzer.finish(reader.names(), reader.report()).events, peak());
}

#[test]
fn three_hundred_thousand_threads_have_room_in_150_mb() {
    let path = std::path::Path::new(env!("CARGO_TARGET_TMPDIR")).join("trace-growth");
    std::fs::write(&path, inputs::threads(300_000)).expect("room");
    let out = std::process::Command::new(std::env::current_exe().expect("this one"))
        .args(["--exact", "of_many_threads", "--ignored", "--nocapture"])
        .env("TRACE_GROWTH_FILE", &path)
        .output()
        .expect("it runs");
    std::fs::remove_file(&path).expect("removed");
    let text = String::from_utf8_lossy(&out.stdout).into_owned();
    let words: Vec<&str> = text.split_whitespace().collect();
    let after =
        |word| words.iter().position(|found| *found == word).and_then(|at| words[at + 1].parse::<u64>().ok());
    println!("{:?} bytes", after("peak"));
    assert_eq!(after("events"), Some(300_000), "{text}");
    assert!(after("peak").is_some_and(|peak| peak < 150 << 20), "{text}");
}
