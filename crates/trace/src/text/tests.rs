//! Tests of the text reader: lines of real machines, lost events, HTML pages, compressed texts, damage.

use super::reader::TextReader;
use crate::event::{Event, Kind, Names};
use crate::open;
use crate::report::{ProblemKind, Report};
use flate2::Compression;
use flate2::write::{GzEncoder, ZlibEncoder};
use std::io::{Cursor, Write};

fn read(text: &str) -> (Vec<Event>, Names, Report) {
    let mut reader = TextReader::new(text.as_bytes(), false);
    let events = reader.by_ref().collect();
    (events, reader.names().clone(), reader.report().clone())
}

fn opened(bytes: &[u8]) -> Result<(Vec<Event>, Report), String> {
    let mut reader = open(Cursor::new(bytes.to_vec())).map_err(|error| error.to_string())?;
    let events = reader.by_ref().collect();
    Ok((events, reader.report().clone()))
}

#[test]
fn a_line_is_read_in_every_machines_form() {
    // Name, thread, process, CPU, time.
    for (line, want) in [
        ("          <idle>-0       (-------) [001] d.h1.     5.601534: x: a", "<idle> 0 None 1 5601534000"),
        (
            "    Binder:48_1-50      (     48) [001] .....     3.400703: x: a",
            "Binder:48_1 50 Some(48) 1 3400703000",
        ),
        ("          <...>-1234  [000] ...1  77.000001: x: a", " 1234 None 0 77000001000"),
        ("          <...>-1234  (-----) [000] ...1  77.000001: x: a", " 1234 None 0 77000001000"),
        (" kworker/u16:3-99    ( 99) [003] d..3 12.345678: x: a", "kworker/u16:3 99 Some(99) 3 12345678000"),
        (
            "  Jit thread pool-12 (  10) [010] .... 12.345678: x: a",
            "Jit thread pool 12 Some(10) 10 12345678000",
        ),
        (
            "  weird-na [1] me-12 (  10) [010] .... 12.345678: x: a",
            "weird-na [1] me 12 Some(10) 10 12345678000",
        ),
        ("  a (b)-12 [000] .... 12.345678: x: a", "a (b) 12 None 0 12345678000"),
        (
            "        trace-cmd-77    [001]   123.456789: x:                a",
            "trace-cmd 77 None 1 123456789000",
        ),
        (
            "        trace-cmd-77    [001]   123.456789123: x:             a",
            "trace-cmd 77 None 1 123456789123",
        ),
        ("        a-77    [001] ....  9999: x: a", "a 77 None 1 9999"),
        ("client-100    (  100) [000] ....316.196720: x: a", "client 100 Some(100) 0 316196720000"),
        ("client-100    (  100) [000] d..2316.196720: x: a", "client 100 Some(100) 0 316196720000"),
        ("client-100    (  100) [000] dNsa.316.196720: x: a", "client 100 Some(100) 0 316196720000"),
        ("  binder:          client-100   [000]    10.000000: x: a", "client 100 None 0 10000000000"),
        ("    Binder:200_1-201   [000]    10.000000: x: a", "Binder:200_1 201 None 0 10000000000"),
        ("   Binder:200_1    201 [001]    10.000040:  g:x: a", "Binder:200_1 201 None 1 10000040000"),
        (
            "   kworker/0:1-mm   200/201 [001]    10.000040:  g:x: a",
            "kworker/0:1-mm 201 Some(200) 1 10000040000",
        ),
    ] {
        let (events, names, report) = read(line);
        let [event] = events.as_slice() else { panic!("{line}: {report}") };
        let comm = names.text(event.comm);
        let found = format!("{comm} {} {:?} {} {}", event.tid, event.tgid, event.cpu, event.ts);
        assert_eq!(found, want, "{line}");
        assert!(matches!(event.kind, Kind::Other { name } if names.text(name) == "x"), "{line}");
        // A stamp without a point is no time in seconds.
        let other = report.problems.iter().filter(|problem| problem.kind == ProblemKind::OtherClock).count();
        assert_eq!((other, report.problems.len()), (usize::from(event.ts == 9999), other), "{report}");
    }
}

#[test]
fn what_is_no_line_is_no_event() {
    for line in [
        "hello",
        " a-1 [000] .... 1.0 x: a",
        " a-1 [000] .... 1.0: x",
        " a-b [000] .... 1.0: x: a",
        " a-1 [abc] .... 1.0: x: a",
        "[000] .... 1.0: x: a",
        " a-1 [99999999999999999999] .... 1.0: x: a",
        "\u{0}\u{1}",
    ] {
        let (events, _, report) = read(&format!(" a-1 [000] .... 1.000000: x: a\n{line}\n"));
        assert_eq!(events.len(), 1, "{line}");
        assert_eq!((report.problems.len(), report.problems[0].kind), (1, ProblemKind::StrangeLine), "{line}");
    }
}

#[test]
fn lost_events_are_events_and_are_counted() {
    let text = "# tracer: nop\n# entries-in-buffer/entries-written: 2/12   #P:2\n\
        \x20a-1 [000] .... 1.000000: x: a\n##### CPU 1 buffer started ####\n a-1 [001] .... 2.000000: x: a\n\
        CPU:1 [LOST 30 EVENTS]\nCPU:0 [LOST EVENTS]\nCPU:0 [5 EVENTS DROPPED]\n";
    let (events, _, report) = read(text);
    let lost: Vec<_> = events
        .iter()
        .filter_map(|event| match event.kind {
            Kind::Lost { count } => Some((event.cpu, event.ts / 1_000_000_000, count)),
            _ => None,
        })
        .collect();
    assert_eq!(lost, [(1, 1, None), (1, 2, Some(30)), (0, 2, None), (0, 2, Some(5))]);
    assert_eq!((report.events, report.lost, report.gaps), (2, 10 + 30 + 5, 1));
    assert!(report.problems.is_empty(), "{report}");
}

#[test]
fn a_clock_that_goes_backwards_is_said_for_its_cpu_only() {
    let line = |cpu: u32, at: u32| format!(" a-1 [{cpu:03}] .... {at}.000000: x: a\n");
    let (_, _, report) = read(&(line(0, 5) + &line(1, 4) + &line(0, 6)));
    assert!(report.is_whole(), "{report}");
    let (events, _, report) = read(&(line(0, 5) + &line(1, 4) + &line(0, 3)));
    assert_eq!(events.len(), 3);
    assert_eq!(report.problems[0].kind, ProblemKind::ClockBackwards);
    assert_eq!(report.problems[0].detail, "by 2000000000 ns to 3000000000 ns on cpu 0, line 3");
}

#[test]
fn an_event_of_an_unknown_form_is_said_once_per_event() {
    let (events, names, report) = read(
        " a-1 [000] .... 1.000000: sched_waking: nonsense\n a-1 [000] .... 1.000000: sched_waking: nonsense\n",
    );
    assert!(matches!(events[0].kind, Kind::Other { name } if names.text(name) == "sched_waking"));
    assert_eq!((report.problems.len(), report.problems[0].times), (1, 2), "{report}");
}

const LINES: &str = " a-1 [000] .... 1.000000: x: a\n b-2 [000] .... 2.000000: tracing_mark_write: B|2|x\n";

#[test]
fn forms_are_told_apart_by_content() {
    let mut zlib = ZlibEncoder::new(b"TRACE:\n".to_vec(), Compression::default());
    let mut gzip = GzEncoder::new(Vec::new(), Compression::default());
    zlib.write_all(LINES.as_bytes()).and_then(|()| gzip.write_all(LINES.as_bytes())).expect("compressed");
    let html = format!(
        "<!DOCTYPE html>\n<html><body>\n<script>var x = 1;</script>\n  <script class=\"trace-data\" type=\"application/text\">\n\
         # tracer: nop\n{LINES}  </script>\n<script>1-1 [000] .... 3.0: x: y</script>\n"
    );
    for (what, bytes) in [
        ("lines", LINES.into()),
        ("a heading", format!("# tracer: nop\n#\n{LINES}").into_bytes()),
        ("windows' line ends", LINES.replace('\n', "\r\n").into_bytes()),
        ("atrace", format!("TRACE:\n{LINES}").into_bytes()),
        ("adb's noise", format!("capturing trace... done\r\nTRACE:\n# tracer: nop\n{LINES}").into_bytes()),
        ("atrace -z", zlib.finish().expect("compressed")),
        ("gzip", gzip.finish().expect("compressed")),
        ("trace-cmd's heading", format!("cpus=2\n{LINES}").into_bytes()),
        ("systrace", html.into_bytes()),
    ] {
        let (events, report) = opened(&bytes).expect(what);
        assert_eq!(events.len(), 2, "{what}: {report}");
        assert_eq!(events[1].kind, Kind::Print("B|2|x".into()), "{what}");
        assert!(report.is_whole(), "{what}: {report}");
    }
}

#[test]
fn other_files_are_refused_with_what_they_look_like() {
    for (bytes, want) in [
        (b"".as_slice(), "empty"),
        (b"hello\nworld\n", "none of its first lines is an event"),
        (b"{\"traceEvents\": []}", "JSON"),
        (b"\x17\x08\x44tracing", "head breaks off"),
        (b"\x17\x08\x44tracing8\0\0\x08\0\x10\0\0", "of version 8"),
        (b"\x0a\x10\x00\x00", "binary"),
        (b"BPTRACE\n", "too short"),
        (b"\x10\x00\x04\x46\x78\x54\x16\x00", "Fuchsia"),
        (b"PERFILE2\x68\0\0\0", "perf.data"),
        (b"PK\x03\x04\0\0", "zip archive that breaks off"),
        (b"\x28\xb5\x2f\xfd\0", "zstd -d"),
        (b"\x1f\x8bnothing", "gzip packed breaks off, and nothing of it can be unpacked"),
    ] {
        let error = opened(bytes).expect_err(want);
        assert!(error.contains(want), "{error}");
    }
}

#[test]
fn a_text_that_breaks_off_gives_what_is_there() {
    let mut out = ZlibEncoder::new(b"TRACE:\n".to_vec(), Compression::none());
    out.write_all(LINES.repeat(100).as_bytes()).expect("compressed");
    let whole = out.finish().expect("compressed");
    let (events, report) = opened(&whole[..whole.len() / 2]).expect("a beginning");
    assert!(events.len() > 50 && events.len() < 200, "{}", events.len());
    assert!(report.problems.iter().any(|problem| problem.kind == ProblemKind::Truncated), "{report}");
    let html = "<html><script class=\"trace-data\">\n a-1 [000] .... 1.000000: x: a\n";
    let (events, report) = opened(html.as_bytes()).expect("a beginning");
    assert_eq!((events.len(), report.problems[0].kind), (1, ProblemKind::Truncated));
    let (_, report) = opened(b"<html><body>hello").expect("html");
    assert_eq!(report.problems[0].kind, ProblemKind::Unsupported);
}

#[test]
fn endless_lines_take_no_memory() {
    let text = format!("{LINES}{}\n{LINES}", "x".repeat(1 << 20));
    let (events, _, report) = read(&text);
    assert_eq!(events.len(), 4);
    assert_eq!(report.problems[0].kind, ProblemKind::StrangeLine);
}

#[test]
fn a_pages_own_scripts_may_have_lines_of_any_length() {
    let script = format!("<script>{}</script>\n", "x".repeat(1 << 20));
    let page = format!("<html>\n{script}<script class=\"trace-data\">\n{LINES}</script>\n{script}</html>\n");
    let (events, report) = opened(page.as_bytes()).expect("a page");
    assert!(events.len() == 2 && report.is_whole(), "{report}");
}

#[test]
fn trace_cmds_reports_read_like_the_kernels_text() {
    let kernel = read(
        "   a-1 [000] d..2. 1.000000: sched_switch: prev_comm=a prev_pid=1 prev_prio=120 prev_state=S ==> next_comm=swapper/0 next_pid=0 next_prio=120\n",
    );
    let report = read(
        "cpus=1\n   a-1     [000]     1.000000: sched_switch:         a:1 [120] S ==> swapper/0:0 [120]\n",
    );
    assert_eq!(format!("{:?}", kernel.0[0].kind), format!("{:?}", report.0[0].kind));
}
