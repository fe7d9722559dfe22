//! Known differences, each beside one that is none.

use super::*;
use crate::compare::first;
use crate::program::Program;
use crate::transcript::{Line, Transcript};

/// The item of the first difference of a program's last step.
fn item(names: [&str; 2], program: &str, outcomes: [&str; 2]) -> Option<&'static str> {
    item_behind(names, program, &[], outcomes)
}

/// [`item`] behind steps with these outcomes on both drivers.
fn item_behind(
    names: [&str; 2],
    program: &str,
    before: &[(usize, &str)],
    outcomes: [&str; 2],
) -> Option<&'static str> {
    let program: Program = program.parse().expect("a program");
    let step = program.steps.len() - 1;
    let transcripts = outcomes.map(|text| {
        let lines = before.iter().copied().chain([(step, text)]);
        let lines = lines.map(|(step, text)| Line { step, thread: None, text: text.to_owned() }).collect();
        Transcript { lines, ..Transcript::default() }
    });
    let (found, passed) = first(&names.map(str::to_owned), &program, &transcripts);
    passed.first().copied().or_else(|| found.expect("they differ").known).map(|known| known.item)
}

#[test]
fn a_known_difference_is_one_of_the_rust_driver_only() {
    let program = "p0.t0 open 4096\np0.t0 read";
    let outcomes = ["ok NOOP COMPLETE", "EAGAIN"];
    assert_eq!(item(["kernel:c", "kernel:rust"], program, outcomes), Some("LP-07"));
    assert_eq!(item(["kernel:c", "embedded"], program, outcomes), None);
    assert_eq!(item(["kernel:c", "kernel:rust"], program, ["EAGAIN", "ok NOOP COMPLETE"]), None);
    let asked = "p0.t0 open 4096\np0.t0 node-info 2";
    let counts = |weak| ["strong=2 weak=0", weak];
    assert_eq!(item(["kernel:c", "kernel:rust"], asked, counts("strong=2 weak=1")), Some("IOC-04"));
    assert_eq!(item(["kernel:c", "kernel:rust"], asked, counts("strong=1 weak=1")), None);
    let joined = "p0.t0 open 4096\np0.t0 enter\np0.t0 read";
    assert_eq!(item(["kernel:c", "kernel:rust"], joined, outcomes), None);
}

#[test]
fn a_malformed_call_alone_may_fail_in_another_way() {
    let outcomes = ["ok taken=0 NOOP DEAD_REPLY", "ok taken=0 NOOP FAILED_REPLY"];
    for (call, known) in [("call 1 clip=4 [node 2]", Some("TX-09")), ("call 1 [node 2]", None)] {
        let program = format!("p0.t0 open 4096\np0.t0 {call}\np0.t0 enter; read");
        assert_eq!(item(["embedded", "kernel:rust"], &program, outcomes), known, "{call}");
    }
}

#[test]
fn what_an_exited_thread_changes_is_known_of_one_driver_each() {
    let exited = "p0.t0 open 4096\np0.t0 call 0 code=1\np0.t0 thread-exit\np0.t0 enter; read";
    let stayed = "p0.t0 open 4096\np0.t0 call 0 code=1\np0.t0 enter; read";
    for (name, outcomes, known) in [
        ("kernel:rust", ["ok NOOP TRANSACTION(node=1,101 code=1)", "EAGAIN"], "EXT-01"),
        ("kernel:rust", ["EAGAIN", "ok NOOP DEAD_REPLY"], "EXT-01"),
    ] {
        assert_eq!(item(["kernel:c", name], exited, outcomes), Some(known), "{outcomes:?}");
        assert_eq!(item(["kernel:c", name], stayed, outcomes), None, "{outcomes:?}");
        assert_eq!(item([name, "kernel:c"], exited, outcomes), None, "{outcomes:?}");
    }
}

#[test]
fn what_a_child_and_another_program_inherit_is_known_of_each_driver() {
    let forked = "p0.t0 open 4096\np0.t0 fork node-info 0";
    let (fine, none) = ("strong=1 weak=0", "nothing to inherit");
    assert_eq!(item(["kernel:c", "kernel:rust"], forked, [fine, "EINVAL"]), Some("OPN-11"));
    assert_eq!(item(["embedded", "kernel:rust"], forked, [none, "EINVAL"]), Some("OPN-11"));
    assert_eq!(item(["kernel:c", "embedded"], forked, [fine, none]), Some("OPN-11"));
    assert_eq!(item(["kernel:c", "kernel:rust"], forked, [fine, "strong=7 weak=0"]), None);
    assert_eq!(
        item(["kernel:c", "kernel:rust"], "p0.t0 open 4096\np0.t0 node-info 0", [fine, "EINVAL"]),
        None
    );
    let names = ["kernel:c", "embedded"];
    assert_eq!(item(names, "p0.t0 open 4096\np0.t0 exec", ["ok", "ok, closed"]), Some("OPN-05"));
    assert_eq!(item(names, "p0.t0 open 4096\np0.t0 close", ["ok", "ok, closed"]), None);
    let called = "p1.t0 open 4096\np1.t0 exec\np0.t0 call 1 code=1; read";
    let outcomes = ["ok NOOP DEAD_REPLY", "ok NOOP FAILED_REPLY"];
    assert_eq!(item(["kernel:c", "kernel:rust"], called, outcomes), Some("OPN-10"));
    assert_eq!(
        item(["kernel:c", "kernel:rust"], "p1.t0 open 4096\np0.t0 call 1 code=1; read", outcomes),
        None
    );
}

#[test]
fn what_the_rust_driver_takes_otherwise_is_known() {
    let names = ["embedded", "kernel:rust"];
    let info = "p0.t0 open 4096\np0.t0 node-info 7";
    assert_eq!(item(names, info, ["EINVAL", "ENOENT"]), Some("IOC-04"));
    assert_eq!(item(names, info, ["EINVAL", "EFAULT"]), None);
    let asked = ["ok NOOP TRANSACTION(code=1)", "ok SPAWN_LOOPER TRANSACTION(code=1)"];
    assert_eq!(item(names, "p0.t0 open 4096\np0.t0 enter; register\np0.t0 read", asked), Some("LP-03"));
    assert_eq!(item(names, "p0.t0 open 4096\np0.t0 enter\np0.t0 read", asked), None);
    let replied = "p0.t0 open 4096\np0.t0 reply code=1 [buf 3, fds 0 in 0 at 0]\np1.t0 read";
    assert_eq!(item(names, replied, ["ok NOOP REPLY(code=1)", "ok NOOP FAILED_REPLY"]), Some("OBJ-19"));
    let called = "p1.t0 open 4096\np1.t0 call 0 code=1 [buf 35, fds 0 in 0 at 0]\np0.t0 enter; read";
    let call = "ok NOOP TRANSACTION(node=0,0 code=1 [buf 35, fds 0])";
    assert_eq!(item(names, called, [call, "EAGAIN"]), Some("OBJ-19"));
    let pending = "p0.t0 open 4096\np0.t0 call 1 code=1 flags=0x1; watch-freeze 0 2; read";
    let outcomes = ["EINVAL taken=1", "ok taken=1 NOOP PENDING_FROZEN"];
    assert_eq!(item(names, pending, outcomes), Some("OW-11"));
    let frozen = "p1.t0 freeze p0\np1.t0 call 0 code=103 flags=0x1; watch 0 3";
    assert_eq!(item(names, frozen, ["ok", "ok taken=1"]), Some("OW-11"));
    assert_eq!(item(names, &frozen.replace("freeze", "thaw"), ["ok", "ok taken=1"]), None);
    let waits = "p0.t0 open 4096\np0.t0 enter\np0.t1 wait\np0.t0 read";
    let asked = ["ok NOOP COMPLETE", "ok SPAWN_LOOPER COMPLETE"];
    assert_eq!(item(names, waits, asked), Some("LP-07"));
    assert_eq!(item(names, &waits.replace("t1 wait", "t1 enter; wait"), asked), None);
    let polled = "p0.t0 open 4096\np1.t0 free 0\np0.t0 enter\np0.t0 poll";
    assert_eq!(item(names, polled, ["readable=0", "readable=1"]), Some("POL-01"));
    assert_eq!(item(names, polled, ["readable=1", "readable=0"]), None);
    assert_eq!(item(names, &polled.replace("free 0", "version"), ["readable=0", "readable=1"]), None);
    let sent =
        "p0.t0 open 4096\np0.t1 call 1 code=1 [node 3]\np0.t0 call 1 code=2 [node 3]\np0.t1 enter; read";
    let notice = ["ok NOOP COMPLETE REPLY(code=15)", "ok NOOP ACQUIRE(3,103) COMPLETE REPLY(code=15)"];
    assert_eq!(item(names, sent, notice), Some("REF-15"));
    assert_eq!(item(names, sent, [notice[0], "ok NOOP ACQUIRE(3,103) COMPLETE"]), None);
    let chain = ["ok NOOP COMPLETE DEAD_REPLY", "ok NOOP DEAD_REPLY COMPLETE"];
    assert_eq!(item(names, sent, chain), Some("TX-19"));
    let gone = "p0.t0 open 4096\np1.t0 thread-exit\np0.t0 reply code=1; free 0; read";
    let on = ["ok taken=1 NOOP COMPLETE", "ok NOOP COMPLETE"];
    assert_eq!(item(names, gone, on), Some("TX-18"));
    assert_eq!(item(names, &gone.replace("thread-exit", "version"), on), None);
}

#[test]
fn corners_of_the_embedded_driver_are_known_only_there() {
    let names = ["kernel:c", "embedded"];
    let called = "p1.t0 open 4096\np1.t0 call 0 code=1\np1.t0 call 0 code=2; read";
    let dead = ["ok NOOP COMPLETE DEAD_REPLY", "ok NOOP COMPLETE FAILED_REPLY"];
    let rust = ["kernel:c", "kernel:rust"];
    assert_eq!(item(rust, called, dead), Some("TX-13"));
    assert_eq!(item(rust, &called.replace("code=1", "code=1 flags=0x1"), dead), None);
    assert_eq!(item(names, called, dead), None);
    let asked = "p0.t0 open 4096\np1.t2 call 1 code=8\np1.t0 kill\np0.t0 node-info 1";
    let fewer = ["strong=3 weak=0", "strong=2 weak=0"];
    assert_eq!(item(names, asked, fewer), Some("IOC-04"));
    assert_eq!(item(names, asked, [fewer[1], fewer[0]]), None);
    assert_eq!(item(names, &asked.replace("kill", "version"), fewer), None);
    assert_eq!(item(names, &asked.replace("call 1 code=8", "read"), fewer), None);
    assert_eq!(item(names, &asked.replace("p1.t0 kill", "p2.t0 kill"), fewer), None, "nobody called");
    assert_eq!(item(names, &asked.replace("p1.t0 kill", "p2.t0 thread-exit"), fewer), Some("IOC-04"));
    assert_eq!(item(names, asked, ["strong=4 weak=0", "strong=2 weak=0"]), None, "one call");
    let frozen = "p1.t0 open 4096\np1.t0 call 0 code=1\np0.t0 freeze p1";
    assert_eq!(item(names, frozen, ["ok", "EAGAIN"]), None);
    let twice = "p1.t0 open 4096\np1.t0 call 0 code=1\np1.t0 call 0 code=2\np0.t0 freeze p2";
    assert_eq!(item(["kernel:c", "kernel:rust"], twice, ["ok", "EAGAIN"]), Some("TX-15"));
    assert_eq!(item(["kernel:c", "kernel:rust"], frozen, ["ok", "EAGAIN"]), None);
    let oneway =
        called.replace("\np1.t0 call 0 code=2", "\np1.t0 call 0 code=3 flags=0x1; read\np1.t0 call 0 code=2");
    let failed = [(2, "ok NOOP COMPLETE COMPLETE FAILED_REPLY")];
    assert_eq!(item_behind(rust, &oneway, &failed, dead), Some("TX-13"), "its failure is no end of a call");
    // A call whose end was read is not a first one.
    let ended = [(1, "ok NOOP COMPLETE REPLY(code=1)")];
    assert_eq!(item_behind(rust, called, &ended, dead), None);
    assert_eq!(item_behind(["kernel:c", "kernel:rust"], twice, &ended, ["ok", "EAGAIN"]), None);
    let unread = [(1, "ok NOOP COMPLETE")];
    assert_eq!(item_behind(["kernel:c", "kernel:rust"], twice, &unread, ["ok", "EAGAIN"]), Some("TX-15"));
    let execed = "p0.t0 open 4096\np0.t0 enter\np0.t0 exec\np0.t0 read";
    let lost = ["ok NOOP TRANSACTION(code=5)", "EAGAIN"];
    assert_eq!(item(["kernel:c", "kernel:rust"], execed, lost), Some("LP-07"), "all its threads are new");
    assert_eq!(item(["kernel:c", "kernel:rust"], &execed.replace("exec", "version"), lost), None);
    let freed = "p2.t0 open 4096\np2.t1 enter; wait\np2.t0 enter; free 0; read";
    let other_thread = ["ok NOOP TRANSACTION(code=5)", "EAGAIN | p2.t1: ok NOOP TRANSACTION(code=5)"];
    assert_eq!(item(names, freed, other_thread), Some("LP-08"));
    assert_eq!(item(names, freed, [other_thread[0], "EAGAIN | p2.t1: ok NOOP TRANSACTION(code=6)"]), None);
    let elsewhere = "EAGAIN | p1.t1: ok NOOP TRANSACTION(code=5)";
    assert_eq!(item(names, freed, [other_thread[0], elsewhere]), None, "another process");
    let replied = "p1.t0 open 4096\np1.t1 reply code=18; free 0; read";
    let outcomes = [
        "ok NOOP COMPLETE | p1.t0: ok NOOP INCREFS(3,103) COMPLETE",
        "ok NOOP COMPLETE | p1.t0: ok NOOP COMPLETE",
    ];
    assert_eq!(item(names, replied, outcomes), Some("REF-10"));
    assert_eq!(item(names, &replied.replace("; free 0", ""), outcomes), None);
}

#[test]
fn a_node_that_the_c_driver_keeps_is_known_and_no_other_fault() {
    let program: Program = "p0.t0 open 4096\np0.t0 schedule 7".parse().expect("a program");
    let known = |name: &str, text: &str| {
        let lines = vec![Line { step: 1, thread: None, text: text.to_owned() }];
        let transcripts = [Transcript { lines, ..Transcript::default() }, Transcript::default()];
        let names = [name.to_owned(), "embedded".to_owned()];
        let found = first(&names, &program, &transcripts).0.expect("a fault");
        found.known.map(|known| known.item)
    };
    let kept = "left behind: node 1 (hs 1 hw 1 ls -1 lw 0 is 0 iw 0 tr 1)";
    assert_eq!(known("kernel:c", kept), Some("REF-16"));
    for (name, text) in [
        ("kernel:rust", kept),
        ("kernel:c", "left behind: node 1 (hs 1 hw 1 ls 1 lw 0 is 0 iw 0 tr 1)"),
        ("kernel:c", "left behind: node 1, ref 1 (hs 1 hw 1 ls -1 lw 0 is 0 iw 1 tr 1)"),
        ("kernel:c", "the driver keeps a process"),
    ] {
        assert_eq!(known(name, text), None, "{name}: {text}");
    }
}

#[test]
fn a_death_is_early_news_only_within_a_chain() {
    let outcomes = ["EAGAIN", "ok NOOP DEAD_REPLY"];
    for (called, known) in [("call 0 code=1", Some("TX-19")), ("call 0 code=1 flags=0x1", None)] {
        let program = format!("p1.t0 open 4096\np1.t0 {called}\np1.t0 kill\np0.t0 read");
        assert_eq!(item(["kernel:c", "embedded"], &program, outcomes), known, "{called}");
    }
}

#[test]
fn each_driver_is_explained_alone() {
    let program = "p0.t0 open 4096\np0.t0 read";
    let call = |from: &str| format!("ok TRANSACTION(node=1,101 code=1 flags=0x11 from={from} uid=own)");
    let (nobody, kept) = (call("-"), call("p1"));
    let texts = [nobody.as_str(), kept.as_str()];
    assert_eq!(item(["kernel:c", "embedded"], program, texts), Some("ID-02"));
    assert_eq!(item(["kernel:rust", "kernel:c"], program, [texts[1], texts[0]]), Some("ID-02"));
    assert_eq!(item(["embedded", "kernel:c"], program, texts), None, "the other way round");
    assert_eq!(item(["embedded", "kernel:rust"], program, texts), None, "neither does it");
    let other = call("?");
    assert_eq!(item(["kernel:c", "embedded"], program, [&nobody, &other]), None);

    let names = ["kernel:c", "kernel:rust", "embedded"].map(str::to_owned);
    let program: Program = program.parse().expect("a program");
    let place = Place { program: &program, number: 1, step: &program.steps[1], lines: &[] };
    let items = |outcomes: [&str; 3]| {
        let found = find(&names, &place, &outcomes.map(str::to_owned))?;
        Some(found.into_iter().map(|known| known.item).collect::<Vec<_>>())
    };
    assert_eq!(items([&nobody, "EAGAIN", &kept]), Some(vec!["LP-07", "ID-02"]));
    assert_eq!(items([&nobody, "EAGAIN", &other]), None, "one of them is new");
}

#[test]
fn each_rule_has_an_item_of_the_contract() {
    let folder = concat!(env!("CARGO_MANIFEST_DIR"), "/../../contract");
    let pages = std::fs::read_dir(folder).expect("the contract");
    let text: String =
        pages.map(|page| std::fs::read_to_string(page.expect("a page").path()).expect("text")).collect();
    for known in ALL {
        assert!(text.contains(&format!("## {}: ", known.item)), "{}", known.item);
    }
}
