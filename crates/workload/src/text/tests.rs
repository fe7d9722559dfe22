//! Tests of the text form, with what `print` writes.

use proptest::collection::vec;
use proptest::prelude::*;

use super::*;
use crate::print;

const WHOLE: &str = "binderperf workload 1
# A server, its clients,
# and what is measured.
process server pool 3
process client copies 40
process measuring
thread client nice -4 times 7
  at 1.5ms
  call server 96>8 new 2
    work 15us
    oneway client 100 times 3
      sleep 2ms
    hold
  fetch server 10
  link
thread server forever
  sleep 1s
once
  open
  look-up server
before
  start server
measure
  call server 4>4 fds 253 handles 2 weak refused
  kill server
  notified client 400
after
  served server 12
";

#[test]
fn a_description_is_read_and_written_as_it_was() {
    let workload = parse(WHOLE).expect("valid");
    assert_eq!(print(&workload), WHOLE);
    assert_eq!(workload.notes, ["A server, its clients,", "and what is measured."]);
    assert_eq!((workload.processes.len(), workload.threads.len()), (3, 2));
    let Step::Call(call) = &workload.threads[0].steps[1] else { panic!("a call") };
    assert_eq!((call.request, call.reply, call.carries.new_objects, call.served.len()), (96, 8, 2, 3));
    assert_eq!(workload.threads[0].steps[0], Step::At(1_500_000));
}

#[test]
fn what_is_wrong_is_named_with_its_line() {
    for (text, line, why) in [
        ("", 1, "begins with"),
        ("process a\n", 1, "begins with"),
        ("binderperf workload 1\n", 1, "no thread does anything"),
        ("binderperf workload 1\nprocess a\nprocess a\n", 3, "two processes a"),
        ("binderperf workload 1\nprocess a/b\n", 2, "letters"),
        ("binderperf workload 1\nprocess a copies 10001\n", 2, "up to 10000"),
        ("binderperf workload 1\nprocess a copies 9000\nprocess b copies 1001\n", 3, "more than 10000"),
        ("binderperf workload 1\nprocess a\n  call a 4>4\n", 3, "its threads have"),
        ("binderperf workload 1\nthread a\n  work 1us\n", 2, "no process is named \"a\""),
        ("binderperf workload 1\nprocess a\nthread a\n", 3, "no steps"),
        ("binderperf workload 1\nprocess a\nthread a\n   work 1us\n", 4, "two spaces"),
        ("binderperf workload 1\nprocess a\nthread a\n    work 1us\n", 4, "further"),
        ("binderperf workload 1\nprocess a\nthread a\n  work 1us\n    work 1us\n", 5, "only a call"),
        ("binderperf workload 1\nprocess a\nthread a\n  work 1\n", 4, "12.5us"),
        ("binderperf workload 1\nprocess a\nthread a\n  work 1.0001us\n", 4, "12.5us"),
        ("binderperf workload 1\nprocess a\nthread a\n  work 25000000s\n", 4, "a day"),
        ("binderperf workload 1\nprocess a\nthread a\n  call a 4\n", 4, "64>16"),
        ("binderperf workload 1\nprocess a\nthread a\n  oneway a 4>4\n", 4, "like 64,"),
        ("binderperf workload 1\nprocess a\nthread a\n  call a 9000000>4\n", 4, "up to 8388608"),
        ("binderperf workload 1\nprocess a\nthread a\n  call a 4>4 loudly\n", 4, "\"loudly\""),
        ("binderperf workload 1\nprocess a\nthread a\n  call a 4>4 fds 1 weak\n", 4, "weak goes with"),
        (
            "binderperf workload 1\nprocess a\nthread a\n  call a 4>4\n    call a 4>4 handles 1\n",
            5,
            "keeps no objects",
        ),
        ("binderperf workload 1\nprocess a\nthread a\n  hold\n", 4, "no step for this place"),
        ("binderperf workload 1\nprocess a\nthread a\n  kill a\n", 4, "no step of a thread"),
        ("binderperf workload 1\nprocess a\nthread a fifo 0\n  work 1us\n", 3, "1 to 99"),
        ("binderperf workload 1\nprocess a\nmeasure\n  at 1us\n", 4, "no step for this place"),
        ("binderperf workload 1\nprocess a\nmeasure\n  list\nmeasure\n  list\n", 5, "two parts measure"),
        ("binderperf workload 1\nprocess a\nonce\n", 3, "once has no steps"),
        ("binderperf workload 1\nprocess measuring copies 2\n", 2, "one process measures"),
        ("binderperf workload 1\nprocess measuring\nthread measuring\n  list\n", 3, "no thread"),
        ("binderperf workload 1\nsleep 1s\n", 2, "begins with process"),
    ] {
        let error = parse(text).expect_err(text);
        assert_eq!(error.line, line, "{text}: {error}");
        assert!(error.why.contains(why), "{text}: {error}");
    }
}

#[test]
fn calls_within_calls_have_a_limit() {
    let nested = |deep: usize| {
        let calls: String = (1..=deep).map(|depth| format!("{:1$}call a 4>4\n", "", 2 * depth)).collect();
        parse(&format!("binderperf workload 1\nprocess a\nthread a\n{calls}"))
    };
    assert!(nested(DEEPEST).is_ok());
    assert!(nested(DEEPEST + 1).expect_err("too deep").why.contains("more than 32 calls"));
}

fn expected() -> impl Strategy<Value = Expected> {
    prop_oneof![Just(Expected::Taken), Just(Expected::Refused), Just(Expected::Either)]
}

fn step() -> impl Strategy<Value = Step> {
    let plain = prop_oneof![(0..LONGEST_NS).prop_map(Step::Work), (0..LONGEST_NS).prop_map(Step::Sleep),];
    let call = |served: BoxedStrategy<Vec<Step>>| {
        let sizes = (0..2_usize, any::<bool>(), 0..1000_u32, 0..1000_u32, 1..9_u32);
        let carries = (0..4_u32, 0..4_u32, 0..4_u32, any::<bool>(), expected());
        (sizes, carries, served).prop_map(|(sizes, carries, served)| {
            let (to, oneway, request, reply, times) = sizes;
            let (descriptors, new_objects, known_objects, weak, expected) = carries;
            let weak = weak && new_objects + known_objects > 0;
            // Only a thread may pass handles on.
            let carries = Carries { descriptors, new_objects, known_objects, handles: 0, weak };
            let reply = if oneway { 0 } else { reply };
            Step::Call(Call { to, oneway, request, reply, carries, times, expected, served })
        })
    };
    plain.prop_recursive(4, 32, 4, move |inner| prop_oneof![inner.clone(), call(vec(inner, 0..4).boxed())])
}

proptest! {
    #[test]
    fn each_description_comes_back_from_its_text(
        steps in vec(step(), 1..6),
        measure in vec(step(), 0..3),
        copies in 1..5_u32,
        nice in -20..20_i8,
        times in 1..1000_u64,
    ) {
        let process = |name: &str| Process { name: name.to_owned(), copies, pool: 2 };
        let threads = vec![Thread { process: 1, scheduling: Scheduling::Nice(nice), turns: Turns::Times(times), steps }];
        let measured = (!measure.is_empty()).then(|| Measured { measure, ..Measured::default() });
        let processes = vec![process("p1"), process("p2")];
        let workload = Workload { notes: vec!["made up".to_owned(), String::new()], processes, threads, measured };
        prop_assert_eq!(parse(&print(&workload)), Ok(workload));
    }

    #[test]
    fn no_text_makes_the_reader_panic(text in "binderperf workload 1\n(process [ab ]{1,9}\n|thread a[a-z 0-9]{0,9}\n|( {0,6})(call|oneway|work|hold|fetch) [ab0-9> ]{0,9}\n){0,9}") {
        let _ = parse(&text);
    }
}
