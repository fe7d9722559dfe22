//! Small inputs from the field, each of a form that some program or kernel writes, with the right answer.
//! Not here: recordings (`recordings`, `trace_cmd`), what calls waited for (`verdict`).

use std::io::Cursor;

use trace::report::{ProblemKind, Report};
use trace::verdict::{Analysis, AnalysisOptions, Analyzer};

fn fixture(name: &str) -> Vec<u8> {
    crate::support::fixture("cases", name)
}

fn analysed(bytes: Vec<u8>) -> (Analysis, Report) {
    let mut reader = trace::open(Cursor::new(bytes)).expect("a trace");
    let mut analyzer = Analyzer::new(AnalysisOptions { worst: 10, ..AnalysisOptions::default() });
    while let Some(event) = reader.next() {
        analyzer.take(&event, reader.names());
    }
    let report = reader.report().clone();
    (analyzer.finish(reader.names(), &report), report)
}

#[test]
fn each_form_gives_its_one_call() {
    for (name, us) in [
        ("tracecmd_raw.txt", 200),
        ("tracecmd_buffer.txt", 200),
        ("two_scripts.html", 140_050),
        ("legacy_systrace.html", 140_050),
        ("chrome_with_systrace.json", 140_050),
        ("nogap.txt", 40),
        ("empty_first_packet.pftrace", 102_000),
        ("perf_script.txt", 200),
        ("llvm_mark.txt", 140),
        ("old_kernel_4.4.dat.gz", 904),
    ] {
        let (analysis, report) = analysed(fixture(name));
        assert!(report.is_whole(), "{name}: {report}");
        assert_eq!(analysis.counts.calls, 1, "{name}");
        let [call] = analysis.slow.as_slice() else { panic!("{name}: {analysis}") };
        assert_eq!(call.ns / 1000, us, "{name}");
        let server = call.server.as_ref().expect("it was taken");
        assert_eq!((call.caller.tid, server.tid), (100, 201), "{name}");
        if !name.ends_with(".pftrace") {
            assert_eq!(
                (call.caller.comm.as_str(), server.comm.as_str()),
                ("client", "Binder:200_1"),
                "{name}"
            );
        }
    }
}

#[test]
fn a_mark_of_a_function_with_a_compilers_suffix_names_the_method() {
    let (analysis, _) = analysed(fixture("llvm_mark.txt"));
    assert_eq!(analysis.groups.first().map(|group| group.name.as_str()), Some("IFoo.bar"));
}

#[test]
fn a_heading_that_was_written_first_loses_nothing() {
    let (analysis, report) = analysed(fixture("header_zero_kept.txt"));
    assert_eq!((report.lost, report.gaps, analysis.counts.calls), (0, 0, 1), "{report}");
}

#[test]
fn stamps_of_another_clock_are_said() {
    let (analysis, report) = analysed(fixture("tsc_clock.txt"));
    assert_eq!(analysis.counts.calls, 1);
    let [problem] = report.problems.as_slice() else { panic!("{report}") };
    assert_eq!((problem.kind, problem.times), (ProblemKind::OtherClock, 4), "{report}");
    assert!(report.to_string().contains("trace_clock mono"), "{report}");
}

/// Nothing that looks like an event goes without a word, wherever it stands.
#[test]
fn a_line_that_looks_like_an_event_and_is_none_is_an_example() {
    for (text, example) in [
        (
            " a-1 [000] .... 1.000000 x: a\n a-1 [000] .... 1.000000: x: a\n",
            Some("line 1:  a-1 [000] .... 1.000000 x: a"),
        ),
        ("$ adb shell cat trace\n# tracer: nop\n a-1 [000] .... 1.000000: x: a\n", None),
    ] {
        let (_, report) = analysed(text.as_bytes().to_vec());
        let told = report.problems.first().map(|problem| problem.detail.as_str());
        assert_eq!((report.events, told), (1, example), "{text}");
    }
}
