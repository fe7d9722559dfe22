//! Tests of reading whatever is given.

use proptest::prelude::*;

use super::*;
use crate::system::File;

fn read(text: &str) -> Explainer {
    let mut explainer = Explainer::new();
    explainer.read_lines("input", text.as_bytes()).expect("memory");
    explainer
}

#[test]
fn two_boots_are_kept_apart() {
    let text = "[900.0] binder: 5:6 transaction failed 29189/0, size 0-0 line 3\n\
                [1.0] binder: 5:6 transaction failed 29189/0, size 0-0 line 3\n";
    let report = read(text).explain(None);
    assert_eq!(report.findings.len(), 2, "{report}");
    assert!(report.to_string().contains("2 boots"), "{report}");
}

#[test]
fn alike_failures_are_one_finding_with_their_number_and_span() {
    let line =
        |at: u32| format!("[{at}.0] binder: 5:{at} transaction failed 29201/-22, size {at}-0 line 3\n");
    let report = read(&(1..=40).map(line).collect::<String>()).explain(None);
    let [one] = report.findings.as_slice() else { panic!("{report}") };
    assert_eq!(one.when, "40 times, from 1.000000 s to 40.000000 s (39.0 s)");
    assert_eq!(one.evidence.len(), 3, "{one}");
}

#[test]
fn a_transaction_in_two_files_is_counted_once() {
    let text = "9: call  from 5:6 to 7:0 context binder node 4 handle 2 size 8:0 ret 29201/-22 l=3\n\
                9: call  from 5:6 to 7:0 context binder node 4 handle 2 size 8:0 ret 29201/-22 l=3\n\
                10: reply from 7:8 to 5:6 context binder node 0 handle 0 size 8:0 ret 0/0 l=0\n";
    let report = read(text).explain(None);
    let [one] = report.findings.as_slice() else { panic!("{report}") };
    assert!(one.what.contains("call from 5:6 to node 4 of process 7") && one.when.is_empty(), "{one}");
}

#[test]
fn a_cut_dump_is_used_as_far_as_it_goes() {
    let text =
        "binder state:\nproc 5\ncontext binder\n  thread 6: l 12 need_return 0 tr 0\n  ref 3: desc 1 no";
    let explainer = read(text);
    let report = explainer.explain(None);
    assert!(report.to_string().contains("its last line breaks off"), "{report}");
    assert_eq!(explainer.system.last(File::State).map(|dump| dump.procs[0].threads.len()), Some(1));
}

#[test]
fn the_rust_drivers_lines_without_ends_are_read() {
    let text = "binder state:\nproc 5\ncontext binder\n  thread 6: l 22 need_return false\n  \
                node 9: u0000000000000001 c0000000000000002 hs true hw true cs 1 cw 1 proc 7 8\n  \
                ref 3: desc 1 node 4 s 1 w 1  ref 4: desc 2 node 5 s 1 w 1  buffer 0: 96 size 40 pid 7 oneway true allocated\n\
                proc 6\ncontext binder\n  ref 3: desc 0 dead node 4 s 1 w 1  buffer: 0 size 40 pid 7 oneway reserved\n  \
                buffer: 40 size 16 pid 8 allocated\n";
    let explainer = read(text);
    let proc = &explainer.system.last(File::State).expect("a dump").procs[0];
    assert_eq!((proc.refs.len(), proc.nodes[0].holders.as_slice()), (2, &[7, 8][..]));
    let buffer = proc.buffers[0];
    assert_eq!(
        (buffer.offset, buffer.bytes, buffer.delivered, buffer.sender),
        (Some(96), 40, true, Some((7, true)))
    );
    let proc = &explainer.system.last(File::State).expect("a dump").procs[1];
    let buffers: Vec<_> =
        proc.buffers.iter().map(|buffer| (buffer.offset, buffer.delivered, buffer.sender)).collect();
    assert_eq!(buffers, [(Some(0), false, Some((7, true))), (Some(40), true, Some((8, false)))]);
    assert_eq!((proc.refs[0].handle, proc.refs[0].dead), (Some(0), true));
}

#[test]
fn of_buffers_without_numbers_those_of_served_calls_are_not_kept() {
    let buffers: String =
        (0..300).map(|at| format!("  buffer: {} size 40 pid 7 allocated\n", at * 40)).collect();
    let text = format!(
        "binder state:\nproc 5\ncontext binder\n  thread 6: l 12 need_return false\n    \
         incoming transaction 3: from 7:7 to 5 code 1 flags 10 elapsed 5ms node 4 size 40:0\n{buffers}"
    );
    let report = read(&text).explain(None).to_string();
    assert!(report.contains("keeps 299 buffers"), "{report}");
}

#[test]
fn names_come_from_lists_and_traces() {
    let text = "------ PROCESSES (ps -A -o) ------\nUSER  PID PPID NAME\nsystem 5 1 system_server\nu0_a1 7 1 com.example.app\n\n\
                ----- pid 9 at 2026-11-26 17:00:00 -----\nCmd line: com.example.other\n\"Binder:9_1\" prio=5 tid=3 Native\n  \
                | sysTid=11 nice=0\n";
    let explainer = read(text);
    let names = [5, 7, 9].map(|pid| explainer.system.process(pid));
    assert_eq!(names, ["system_server (5)", "com.example.app (7)", "com.example.other (9)"]);
    assert_eq!(explainer.system.threads.get(&11).map(String::as_str), Some("Binder:9_1"));
}

#[test]
fn of_many_dumps_the_first_and_the_last_are_kept() {
    let dump = |nodes: usize| {
        let nodes: String = (0..nodes).map(|id| format!("  node {id}: u0 c0 hs 1 hw 1 proc 9\n")).collect();
        format!("binder state:\nproc 5\ncontext binder\n{nodes}")
    };
    let explainer = read(&[1, 50, 99].map(dump).concat());
    assert_eq!(explainer.system.dumps.len(), 2);
    let report = explainer.explain(None);
    assert!(
        report.findings[0]
            .what
            .contains("98 more objects that others hold: 99 instead of 1; process 9 holds 99"),
        "{report}"
    );
    assert_eq!(report.findings[0].pids, [5, 9]);
}

proptest! {
    #[test]
    fn any_text_is_taken(
        lines in proptest::collection::vec(
            "(proc [0-9]{1,11}|binder (state|stats|transactions):|  (thread|ref|node|buffer) -?[0-9]{0,12}: [a-z0-9: ]{0,30}\
             |    (in|out)coming transaction [0-9]{0,20}: 0 from [0-9:]{0,12} to [0-9:]{0,12} code [0-9a-f]{0,10} flags [0-9x]{0,3} elapsed [0-9]{0,25}ms\
             |\\[ ?[0-9.]{0,9}\\] binder(_alloc)?: [0-9:]{0,9} [a-z_ ]{0,30}[0-9/,-]{0,14}|(?s).{0,80})",
            0..40,
        ),
    ) {
        let report = read(&lines.join("\n")).explain(None);
        let _ = report.to_string();
        prop_assert!(report.to_json().is_ok());
    }
}
