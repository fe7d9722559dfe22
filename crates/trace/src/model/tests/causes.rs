//! Room: streams in which one thing goes wrong, and the cause that must be named, to the nanosecond.

use super::*;
use crate::cause::{Cause, Inversion};

/// Nanoseconds of each cause and thread in the call with this number, in alphabetical order.
fn causes(prios: &[(i32, i32)], debug_id: i32, lines: &str) -> Vec<(String, i32, u64)> {
    let (found, _) = rebuilt(prios, lines);
    let call = found.iter().find(|call| call.debug_id == debug_id).expect("the call");
    let mut sums: Vec<(String, i32, u64)> = Vec::new();
    for part in &call.parts {
        let who = part.cause.behind().map_or(part.tid, |behind| behind.tid);
        match sums.iter_mut().find(|sum| sum.0 == part.cause.name() && sum.1 == who) {
            Some(sum) => sum.2 += part.ns(),
            None => sums.push((part.cause.name().to_owned(), who, part.ns())),
        }
    }
    sums.sort();
    sums
}

fn check(what: &str, lines: &str, want: &[(&str, i32, u64)]) {
    let want: Vec<_> = want.iter().map(|(cause, tid, ns)| ((*cause).to_owned(), *tid, *ns)).collect();
    assert_eq!(causes(&[], 1, &format!("{START}{lines}")), want, "{what}");
}

/// What follows once the server has the call at 140: 60 of work, and back without delay.
const REST: &str = "
    140 1 20 recv 1
    200 1 20 reply 2 10 10
    205 1 20 waking 10 0
    205 0 0 wakeup 10 0
    205 0 0 switch R 10
    210 0 10 recv 2
";

#[test]
fn a_clean_call_is_driver_and_server() {
    check(
        "clean",
        &format!(
            "
        100 0 10 send 1 20
        110 0 10 waking 20 1
        110 1 0 wakeup 20 1
        110 0 10 switch S 0
        110 1 0 switch R 20 {REST}
    "
        ),
        &[("driver", 10, 15), ("driver", 20, 35), ("server_running", 20, 60)],
    );
}

#[test]
fn waiting_for_a_cpu_names_who_has_it() {
    check(
        "behind 30, then 31",
        &format!(
            "
        50 1 0 switch R 30
        100 0 10 send 1 20
        110 0 10 waking 20 1
        110 1 30 wakeup 20 1
        112 0 10 switch S 0
        120 1 30 switch R 31
        130 1 31 switch R 20 {REST}
    "
        ),
        &[
            ("driver", 10, 15),
            ("driver", 20, 15),
            ("runnable_wait", 30, 10),
            ("runnable_wait", 31, 10),
            ("server_running", 20, 60),
        ],
    );
    check(
        "preempted while serving",
        "
        100 0 10 send 1 20
        110 0 10 waking 20 1
        110 1 0 wakeup 20 1
        110 0 10 switch S 0
        110 1 0 switch R 20
        140 1 20 recv 1
        150 1 20 switch R 30
        180 1 30 switch R 20
        200 1 20 reply 2 10 10
        205 1 20 waking 10 0
        205 0 0 wakeup 10 0
        205 0 0 switch R 10
        210 0 10 recv 2
    ",
        &[("driver", 10, 15), ("driver", 20, 35), ("runnable_wait", 30, 30), ("server_running", 20, 30)],
    );
}

#[test]
fn idle_cpus_are_slow_to_wake_in_three_ways() {
    check(
        "idle exit and wake-up",
        &format!(
            "
        60 1 0 idle 1 2
        100 0 10 send 1 20
        110 0 10 waking 20 1
        112 1 0 idle 1 -1
        113 1 0 wakeup 20 1
        114 0 10 switch S 0
        120 1 0 switch R 20 {REST}
    "
        ),
        &[
            ("driver", 10, 15),
            ("driver", 20, 25),
            ("idle_exit", 20, 2),
            ("server_running", 20, 60),
            ("wakeup_latency", 20, 8),
        ],
    );
    check(
        "the interrupt comes late to a busy CPU",
        &format!(
            "
        60 1 0 switch R 30
        100 0 10 send 1 20
        110 0 10 waking 20 0
        112 0 10 switch S 0
        125 1 30 wakeup 20 1
        130 1 30 switch R 20 {REST}
    "
        ),
        &[
            ("driver", 10, 15),
            ("driver", 20, 15),
            ("runnable_wait", 30, 5),
            ("server_running", 20, 60),
            ("wakeup_interrupt", 20, 15),
        ],
    );
}

#[test]
fn interrupts_are_named_wherever_they_fall() {
    let (found, names) = rebuilt(
        &[],
        &format!(
            "{START}
        100 0 10 send 1 20
        110 0 10 waking 20 1
        110 1 0 wakeup 20 1
        110 0 10 switch S 0
        111 1 0 irq+ 5
        113 1 0 soft+ 3
        118 1 0 soft- 3
        119 1 0 irq- 5
        120 1 0 switch R 20
        140 1 20 recv 1
        150 1 20 irq+ 5
        160 1 20 irq- 5
        200 1 20 reply 2 10 10
        210 0 10 recv 2
    "
        ),
    );
    let took = |name: &str| {
        found[0].parts.iter().filter(|part| part.cause.name() == name).map(Part::ns).sum::<u64>()
    };
    assert_eq!((took("irq"), took("softirq")), (3 + 10, 5));
    let named = found[0].parts.iter().find_map(|part| match part.cause {
        Cause::Interrupt { name, .. } => Some(names.text(name)),
        _ => None,
    });
    assert_eq!(named, Some("eth0"));
}

#[test]
fn a_wait_beside_an_idle_cpu_is_the_wrong_cpu() {
    check(
        "moved to an idle CPU too late",
        "
        50 1 0 switch R 30
        60 2 40 switch S 0
        100 0 10 send 1 20
        110 0 10 waking 20 1
        110 1 30 wakeup 20 1
        112 0 10 switch S 0
        130 2 0 migrate 20 1 2
        132 2 0 switch R 20
        140 2 20 recv 1
        200 2 20 reply 2 10 10
        205 2 20 waking 10 0
        205 0 0 wakeup 10 0
        205 0 0 switch R 10
        210 0 10 recv 2
    ",
        &[
            ("driver", 10, 15),
            ("driver", 20, 13),
            ("server_running", 20, 60),
            ("wakeup_latency", 20, 2),
            ("wrong_cpu", 30, 20),
        ],
    );
    check(
        "moved to a CPU that had been busy, too",
        "
        50 1 0 switch R 30
        60 2 40 switch S 41
        100 0 10 send 1 20
        110 0 10 waking 20 1
        110 1 30 wakeup 20 1
        112 0 10 switch S 0
        130 2 41 switch S 0
        130 2 0 migrate 20 1 2
        130 2 0 switch R 20
        140 2 20 recv 1
        200 2 20 reply 2 10 10
        205 2 20 waking 10 0
        205 0 0 wakeup 10 0
        205 0 0 switch R 10
        210 0 10 recv 2
    ",
        &[("driver", 10, 15), ("driver", 20, 15), ("runnable_wait", 30, 20), ("server_running", 20, 60)],
    );
}

#[test]
fn a_busy_server_leaves_no_free_thread() {
    let lines = format!(
        "{START}
        50 0 11 send 7 20
        55 0 11 waking 20 1
        55 1 0 switch R 20
        60 1 20 recv 7
        70 0 11 switch S 10
        100 0 10 send 1 20
        108 0 10 switch S 0
        130 1 20 reply 8 11 11 {REST}"
    );
    let (found, _) = rebuilt(&[], &lines);
    let call = found.iter().find(|call| call.debug_id == 1).expect("the call");
    let waits: Vec<_> =
        call.parts.iter().filter(|part| matches!(part.cause, Cause::NoFreeThread { .. })).collect();
    let [wait] = waits.as_slice() else { panic!("{:#?}", call.parts) };
    assert_eq!((wait.begin, wait.end), (108, 130));
    assert_eq!(wait.cause, Cause::NoFreeThread { busy_with: Some(7) });
    assert!(!found.iter().any(|call| call.debug_id == 7
        && call.parts.iter().any(|part| matches!(part.cause, Cause::NoFreeThread { .. }))));
}

#[test]
fn a_thread_that_is_woken_and_takes_something_older_first_is_not_free() {
    let lines = format!(
        "{START}
        50 1 0 switch R 20
        60 1 20 recv 70
        80 1 20 reply 71 9 9
        90 1 20 switch S 0
        100 0 10 send 1 20
        110 0 10 waking 20 1
        111 0 10 switch S 11
        112 0 11 send 7 20
        113 1 0 switch R 20
        115 1 20 recv 7
        130 1 20 reply 8 11 11 {REST}"
    );
    let sums = causes(&[], 1, &lines);
    assert!(sums.contains(&("no_free_thread".to_owned(), 20, 20)), "{sums:?}");
}

#[test]
fn a_oneway_call_waits_in_its_queue() {
    let sums = causes(
        &[],
        2,
        &format!(
            "{START}
        100 0 10 oneway 1 20
        105 0 10 waking 20 1
        105 1 0 switch R 20
        110 1 20 recv 1
        120 0 10 oneway 2 20
        125 0 10 switch S 0
        190 1 20 recv 2
    "
        ),
    );
    assert_eq!(sums, [("driver".to_owned(), 10, 5), ("oneway_queue".to_owned(), 20, 65)]);
    let frozen = causes(
        &[],
        1,
        &format!(
            "{START}
        100 0 10 oneway 1 20
        105 0 10 return 7214
        110 0 10 switch S 0
        190 1 20 recv 1
    "
        ),
    );
    assert!(frozen.iter().any(|sum| sum.0 == "frozen"), "{frozen:?}");
}

#[test]
fn sleeping_while_serving_is_told_by_what_it_slept_in() {
    let asleep = |state: &str, before: &str, after: &str| {
        let sums = causes(
            &[],
            1,
            &format!(
                "{START}
            100 0 10 send 1 20
            110 0 10 waking 20 1
            110 1 0 switch R 20
            110 0 10 switch S 0
            140 1 20 recv 1
            {before}
            150 1 20 switch {state} 0
            180 0 9 waking 20 1
            {after}
            180 1 0 switch R 20
            185 1 20 reclaim-
            200 1 20 reply 2 10 10
            210 0 10 recv 2
        "
            ),
        );
        let known = ["driver", "server_running", "wakeup_latency"];
        let rest: Vec<_> = sums.into_iter().filter(|sum| !known.contains(&sum.0.as_str())).collect();
        assert_eq!(rest.len(), 1, "{rest:?}");
        (rest[0].0.clone(), rest[0].2)
    };
    for (state, before, after, want, ns) in [
        ("S", "", "", "sleep", 30),
        ("D", "", "", "uninterruptible_sleep", 30),
        ("T", "", "", "stopped", 30),
        ("S", "", "180 0 9 blocked 20 futex_wait_queue", "mutex_contention", 30),
        ("D", "", "180 0 9 blocked 20 io_schedule io", "io", 30),
        ("D", "", "180 0 9 blocked 20 rwsem_down_read_slowpath", "lock_wait", 30),
        ("S", "", "180 0 9 blocked 20 __refrigerator", "frozen", 30),
        ("D", "145 1 20 reclaim+", "", "kernel_memory_reclaim", 40),
        ("S", "145 1 20 print B|20|monitor contention with owner t9", "", "monitor_contention", 30),
        (
            "S",
            "145 1 20 print B|20|Lock contention on a monitor lock (owner tid: 9)",
            "",
            "monitor_contention",
            30,
        ),
        ("S", "145 1 20 print B|20|Contending for pthread mutex", "", "mutex_contention", 30),
        ("D", "145 1 20 print B|20|Contending for pthread mutex", "", "uninterruptible_sleep", 30),
        ("S", "145 1 20 print B|20|Lock contention on thread list lock", "", "art_lock_contention", 30),
        ("S", "145 1 20 print B|20|GC: Wait For Completion Alloc", "", "userspace_memory_reclaim", 40),
    ] {
        assert_eq!(asleep(state, before, after), (want.to_owned(), ns), "{state} {before} {after}");
    }
}

#[test]
fn a_lock_of_the_kernel_is_waited_for_by_computing_and_asleep() {
    // A mutex is hoped for first; then the server sleeps, until the other one wakes it.
    let sums = causes(
        &[],
        1,
        &format!(
            "{START}
        100 0 10 send 1 20
        110 0 10 waking 20 1
        110 1 0 switch R 20
        110 0 10 switch S 0
        140 1 20 recv 1
        145 1 20 lock+ SPIN|MUTEX
        155 1 20 lock+ MUTEX
        160 1 20 switch D 0
        180 0 9 waking 20 1
        180 1 0 switch R 20
        185 1 20 lock-
        200 1 20 reply 2 10 10
        210 0 10 recv 2
    "
        ),
    );
    let locked = sums.iter().find(|sum| sum.0 == "lock_wait").map(|sum| (sum.1, sum.2));
    assert_eq!(locked, Some((20, 40)), "{sums:?}");
}

#[test]
fn inversion_is_told_with_and_without_a_boost() {
    // The caller is rt 99; the server waits for 25 behind 30.
    let waits = |prios: &[(i32, i32)]| {
        let (found, _) = rebuilt(
            prios,
            &format!(
                "{START}
            50 1 0 switch R 30
            100 0 10 send 1 20
            110 0 10 waking 20 1
            110 1 30 wakeup 20 1
            110 0 10 switch S 0
            135 1 30 switch R 20 {REST}"
            ),
        );
        let call = &found[0];
        let kinds = call
            .parts
            .iter()
            .filter_map(|part| Some((part.inversion(call.client.tid, call.client.prio)?, part.ns())));
        kinds.collect::<Vec<_>>()
    };
    assert_eq!(waits(&[(10, 0), (20, 120), (30, 120)]), [(Inversion::NotBoosted, 25)]);
    assert_eq!(waits(&[(10, 0), (20, 50), (30, 120)]), [(Inversion::NotBoosted, 25)]);
    assert_eq!(waits(&[(10, 0), (20, 0), (30, 120)]), [(Inversion::LatePreemption, 25)]);
    assert_eq!(waits(&[(10, 0), (20, 120), (30, 0)]), [], "as urgent as the caller");
    assert_eq!(waits(&[(10, 120), (20, 120), (30, 120)]), [], "nobody is urgent");
    assert_eq!(waits(&[(10, 100), (20, 120), (30, 139)]), [], "nice values share");
}

#[test]
fn a_boost_on_the_way_counts_from_then_on() {
    let (found, _) = rebuilt(
        &[(10, 0)],
        &format!(
            "{START}
        50 1 0 switch R 30
        100 0 10 send 1 20
        110 0 10 waking 20 1
        110 1 30 wakeup 20 1
        110 0 10 switch S 0
        120 0 10 boost 20 0
        135 1 30 switch R 20 {REST}"
        ),
    );
    let call = &found[0];
    let kinds: Vec<_> = call
        .parts
        .iter()
        .filter_map(|part| Some((part.inversion(call.client.tid, call.client.prio)?, part.ns())))
        .collect();
    assert_eq!(kinds, [(Inversion::NotBoosted, 10), (Inversion::LatePreemption, 15)]);
}

#[test]
fn a_slow_clock_is_an_attribute_not_a_cause() {
    let (found, _) = rebuilt(
        &[],
        &format!(
            "{START}
        2 1 0 khz 1 2000000
        100 0 10 send 1 20
        110 0 10 waking 20 1
        110 1 0 switch R 20
        110 0 10 switch S 0
        150 1 20 khz 1 600000
        170 1 20 khz 1 2000000 {REST}"
        )
        .replace("140 1 20 recv 1", "")
        .replace("150 1 20 khz", "140 1 20 recv 1\n150 1 20 khz"),
    );
    assert_eq!(found[0].slow_clock, Some(SlowClock { ns: 20, khz: 600_000, highest_khz: 2_000_000 }));
}

#[test]
fn a_thread_that_left_its_cpu_while_it_was_woken_is_runnable() {
    // The waker was faster than the switch: waking, switch, wakeup.
    let sums = causes(
        &[],
        1,
        "
        1 0 0 switch R 10
        1 1 0 switch R 20
        100 0 10 send 1 20
        104 0 10 waking 20 1
        106 1 20 switch S 30
        108 0 10 wakeup 20 1
        110 0 10 switch S 0
        120 1 30 switch R 20
        140 1 20 recv 1
        200 1 20 reply 2 10 10
        210 0 10 recv 2
    ",
    );
    assert!(sums.contains(&("runnable_wait".to_owned(), 30, 12)), "{sums:?}");
}

#[test]
fn a_server_that_its_own_process_wakes_waited_for_that_thread() {
    for (of_its_own, want) in [(true, "thread_wait"), (false, "sleep")] {
        let mut script = Script::new(&[]);
        let mut model = Model::new();
        let mut found = Vec::new();
        let lines = format!(
            "{START}
            100 0 10 send 1 20
            110 0 10 waking 20 1
            110 1 0 switch R 20
            110 0 10 switch S 0
            140 1 20 recv 1
            150 1 20 switch S 0
            180 0 9 waking 20 1
            180 1 0 switch R 20
            200 1 20 reply 2 10 10
            210 0 10 recv 2
        "
        );
        for line in lines.lines().map(str::trim).filter(|line| !line.is_empty()) {
            let mut event = script.event(line);
            // The server's process is 20.
            event.tgid = (event.tid == 9).then_some(if of_its_own { 20 } else { 7 });
            model.take(&event, &script.names, &mut |call| found.push(call));
        }
        model.finish(&mut |call| found.push(call));
        let slept: Vec<_> = found[0].parts.iter().filter(|part| part.cause.name() == want).collect();
        assert_eq!(slept.iter().map(|part| part.ns()).sum::<u64>(), 30, "{:?}", found[0].parts);
        let waker = match slept[0].cause {
            Cause::Thread { waker, .. } => waker,
            _ => 0,
        };
        assert_eq!(waker == 9, of_its_own);
        assert_eq!(found[0].crossed(), Some((0, 1)));
    }
}

#[test]
fn a_task_that_got_its_cpu_without_a_switch_is_seen_there_all_the_same() {
    // 30 was woken on the idle CPU 1, and is there when an interrupt comes at 108; the switch to it is missing.
    let sums = causes(
        &[],
        1,
        &format!(
            "{START}
        100 0 10 send 1 20
        105 1 0 waking 30 1
        106 1 0 wakeup 30 1
        108 1 30 irq+ 5
        109 1 30 irq- 5
        110 0 10 waking 20 1
        110 0 10 wakeup 20 1
        110 0 10 switch S 0
        135 1 30 switch S 20 {REST}
    "
        ),
    );
    assert!(sums.contains(&("runnable_wait".to_owned(), 30, 25)), "{sums:?}");
}

#[test]
fn whoever_waited_for_a_lock_when_events_were_lost_may_have_it() {
    let sums = causes(
        &[],
        1,
        &format!(
            "{START}
        50 1 20 lock+ MUTEX
        60 1 0 lost
        100 0 10 send 1 20
        110 0 10 waking 20 1
        110 1 0 switch R 20
        110 0 10 switch S 0
        140 1 20 recv 1
        200 1 20 reply 2 10 10
        210 0 10 recv 2
    "
        ),
    );
    assert!(sums.iter().all(|sum| sum.0 != "lock_wait"), "{sums:?}");
}
