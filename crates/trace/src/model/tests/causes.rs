//! Streams with one fault each, and the cause that must be found, exact to the nanosecond.

use super::*;
use crate::cause::{Cause, Inversion, Waker};

/// Nanoseconds of each cause and thread in the call with this number, in alphabetical order.
fn causes(found: &[Transaction], debug_id: i32) -> Vec<(String, i32, u64)> {
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

/// Asserts that call 1 waited this long for this cause.
fn finds(lines: &str, cause: &str, tid: i32, ns: u64) {
    let sums = causes(&after_start(lines), 1);
    assert!(sums.contains(&(cause.to_owned(), tid, ns)), "{sums:?}");
}

fn check(what: &str, lines: &str, want: &[(&str, i32, u64)]) {
    let want: Vec<_> = want.iter().map(|(cause, tid, ns)| ((*cause).to_owned(), *tid, *ns)).collect();
    assert_eq!(causes(&after_start(lines), 1), want, "{what}");
}

#[test]
fn a_clean_call_is_driver_and_server() {
    check(
        "clean",
        "
        100 0 10 send 1 20
        110 0 10 waking 20 1
        110 1 0 wakeup 20 1
        110 0 10 switch S 0
        110 1 0 switch R 20
        REST
    ",
        &[("driver", 10, 15), ("driver", 20, 35), ("server_running", 20, 60)],
    );
}

/// Linux 7.2 with `CONFIG_SCHED_PROXY_EXEC` prints it so: a thread that is blocked on a mutex stays in its CPU's queue, and the
/// mutex's owner runs in its place, but `sched_switch` says `D`, and `sched_waking` ends the wait.
#[test]
fn a_thread_that_lends_its_turn_to_a_mutexs_owner_waits_for_the_lock_and_not_for_a_cpu() {
    let lent = |state: &str| {
        format!(
            "
        100 0 10 send 1 20
        110 0 10 waking 20 1
        110 1 30 wakeup 20 1
        110 0 10 switch S 0
        110 1 30 switch R 20
        140 1 20 recv 1
        150 1 20 lock+ SPIN|MUTEX
        152 1 20 lock+ MUTEX
        155 1 20 switch {state} 30
        175 1 30 waking 20 1
        178 1 30 wakeup 20 1
        185 1 30 switch S 20
        187 1 20 lock-
        BACK
    "
        )
    };
    check(
        "lent to 30",
        &lent("D"),
        &[
            ("driver", 10, 15),
            ("driver", 20, 35),
            ("lock_wait", 20, 27),
            ("runnable_wait", 30, 10),
            ("server_running", 20, 23),
        ],
    );
    check(
        "the same without the events of locks",
        &lent("D").lines().filter(|line| !line.contains("lock")).collect::<Vec<_>>().join("\n"),
        &[
            ("driver", 10, 15),
            ("driver", 20, 35),
            ("runnable_wait", 30, 10),
            ("server_running", 20, 30),
            ("uninterruptible_sleep", 20, 20),
        ],
    );
    finds(&lent("R"), "runnable_wait", 30, 30);
}

#[test]
fn waiting_for_a_cpu_names_who_has_it() {
    check(
        "behind 30, then 31",
        "
        50 1 0 switch R 30
        100 0 10 send 1 20
        110 0 10 waking 20 1
        110 1 30 wakeup 20 1
        112 0 10 switch S 0
        120 1 30 switch R 31
        130 1 31 switch R 20
        REST
    ",
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
        BACK
    ",
        &[("driver", 10, 15), ("driver", 20, 35), ("runnable_wait", 30, 30), ("server_running", 20, 30)],
    );
}

#[test]
fn idle_cpus_are_slow_to_wake_in_three_ways() {
    check(
        "idle exit and wake-up",
        "
        60 1 0 idle 1 2
        100 0 10 send 1 20
        110 0 10 waking 20 1
        112 1 0 idle 1 -1
        113 1 0 wakeup 20 1
        114 0 10 switch S 0
        120 1 0 switch R 20
        REST
    ",
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
        "
        60 1 0 switch R 30
        100 0 10 send 1 20
        110 0 10 waking 20 0
        112 0 10 switch S 0
        125 1 30 wakeup 20 1
        130 1 30 switch R 20
        REST
    ",
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
        BACK"
        ),
    );
    let took = |name: &str| {
        found[0].parts.iter().filter(|part| part.cause.name() == name).map(Segment::ns).sum::<u64>()
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
    let found = after_start(
        "
        50 0 11 send 7 20
        55 0 11 waking 20 1
        55 1 0 switch R 20
        60 1 20 recv 7
        70 0 11 switch S 10
        100 0 10 send 1 20
        108 0 10 switch S 0
        130 1 20 reply 8 11 11
        REST",
    );
    let call = found.iter().find(|call| call.debug_id == 1).expect("the call");
    let waits: Vec<_> =
        call.parts.iter().filter(|part| matches!(part.cause, Cause::NoFreeThread { .. })).collect();
    let [wait] = waits.as_slice() else { panic!("{:#?}", call.parts) };
    // What the caller still did delayed nothing.
    assert_eq!((wait.begin, wait.end), (100, 130));
    assert_eq!(wait.cause, Cause::NoFreeThread { busy_with: Some(7) });
    assert!(!found.iter().any(|call| call.debug_id == 7
        && call.parts.iter().any(|part| matches!(part.cause, Cause::NoFreeThread { .. }))));
}

#[test]
fn a_thread_that_is_woken_and_takes_something_older_first_is_not_free() {
    finds(
        "
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
        130 1 20 reply 8 11 11
        REST
    ",
        "no_free_thread",
        20,
        30,
    );
}

#[test]
fn a_oneway_call_waits_in_its_queue() {
    let sums = causes(
        &after_start(
            "
        100 0 10 oneway 1 20
        105 0 10 waking 20 1
        105 1 0 switch R 20
        110 1 20 recv 1
        120 0 10 oneway 2 20
        125 0 10 switch S 0
        190 1 20 recv 2
    ",
        ),
        2,
    );
    assert_eq!(sums, [("oneway_queue".to_owned(), 20, 70)]);
    let frozen = causes(
        &after_start(
            "
        100 0 10 oneway 1 20
        105 0 10 return 7214
        110 0 10 switch S 0
        190 1 20 recv 1
    ",
        ),
        1,
    );
    assert!(frozen.iter().any(|sum| sum.0 == "frozen"), "{frozen:?}");
}

#[test]
fn a_sleep_while_serving_is_classified_by_its_kernel_function() {
    let asleep = |state: &str, before: &str, after: &str| {
        let found = after_start(&format!(
            "
            REACHED
            {before}
            150 1 20 switch {state} 0
            180 0 9 waking 20 1
            {after}
            180 1 0 switch R 20
            185 1 20 reclaim-
            BACK
        "
        ));
        let sums = causes(&found, 1);
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
fn a_kernel_lock_is_waited_for_spinning_and_asleep() {
    // The server spins for the mutex first, then sleeps until thread 9 wakes it.
    finds(
        "
        REACHED
        145 1 20 lock+ SPIN|MUTEX
        155 1 20 lock+ MUTEX
        160 1 20 switch D 0
        180 0 9 waking 20 1
        180 1 0 switch R 20
        185 1 20 lock-
        BACK
    ",
        "lock_wait",
        20,
        40,
    );
}

/// Inversions while the server waits 25 ns behind thread 30, with these events in between.
fn inversions(prios: &[(i32, i32)], events: &str) -> Vec<(Inversion, u64)> {
    let (found, _) = rebuilt(
        prios,
        &format!(
            "{START}
        50 1 0 switch R 30
        100 0 10 send 1 20
        110 0 10 waking 20 1
        110 1 30 wakeup 20 1
        110 0 10 switch S 0
        {events}
        135 1 30 switch R 20
        REST"
        ),
    );
    let client = found[0].client;
    let kind = |part: &Segment| Some((part.inversion(client.tid, client.prio)?, part.ns()));
    found[0].parts.iter().filter_map(kind).collect()
}

#[test]
fn inversion_is_reported_with_and_without_a_boost() {
    // The caller is rt 99.
    let waits = |prios: &[(i32, i32)]| inversions(prios, "");
    assert_eq!(waits(&[(10, 0), (20, 120), (30, 120)]), [(Inversion::NotBoosted, 25)]);
    assert_eq!(waits(&[(10, 0), (20, 50), (30, 120)]), [(Inversion::NotBoosted, 25)]);
    assert_eq!(waits(&[(10, 0), (20, 0), (30, 120)]), [(Inversion::LatePreemption, 25)]);
    assert_eq!(waits(&[(10, 0), (20, 120), (30, 0)]), [], "as urgent as the caller");
    assert_eq!(waits(&[(10, 120), (20, 120), (30, 120)]), [], "nobody is urgent");
    assert_eq!(waits(&[(10, 100), (20, 120), (30, 139)]), [], "nice values share");
}

#[test]
fn a_boost_on_the_way_counts_from_then_on() {
    let kinds = inversions(&[(10, 0)], "120 0 10 boost 20 0");
    assert_eq!(kinds, [(Inversion::NotBoosted, 10), (Inversion::LatePreemption, 15)]);
}

#[test]
fn a_slow_clock_is_an_attribute_not_a_cause() {
    let found = after_start(
        "
        2 1 0 khz 1 2000000
        REACHED
        150 1 20 khz 1 600000
        170 1 20 khz 1 2000000
        BACK
    ",
    );
    assert_eq!(found[0].slow_clock, Some(SlowClock { ns: 20, khz: 600_000 }));
}

#[test]
fn a_thread_that_left_its_cpu_while_it_was_woken_is_runnable() {
    // The waker was faster than the switch: waking, switch, wakeup.
    finds(
        "
        2 1 0 switch R 20
        100 0 10 send 1 20
        104 0 10 waking 20 1
        106 1 20 switch S 30
        108 0 10 wakeup 20 1
        110 0 10 switch S 0
        120 1 30 switch R 20
        REST
    ",
        "runnable_wait",
        30,
        12,
    );
}

#[test]
fn a_server_that_its_own_process_wakes_waited_for_that_thread() {
    for (of_its_own, want) in [(true, "thread_wait"), (false, "sleep")] {
        let lines = format!(
            "{START}
            REACHED
            150 1 20 switch S 0
            180 0 9 waking 20 1
            180 1 0 switch R 20
            BACK"
        );
        let (found, _) = rebuilt_with(&[], &lines, |event| {
            // The server's process is 20.
            event.tgid = (event.tid == 9).then_some(if of_its_own { 20 } else { 7 });
        });
        let slept: Vec<_> = found[0].parts.iter().filter(|part| part.cause.name() == want).collect();
        assert_eq!(slept.iter().map(|part| part.ns()).sum::<u64>(), 30, "{:?}", found[0].parts);
        let (waker, own) = match slept[0].cause {
            Cause::ThreadWait { waker, .. } => (waker, true),
            Cause::Sleeping { waker: Some(Waker::Thread(waker, _)), .. } => (waker, false),
            _ => (0, false),
        };
        assert_eq!((waker, own), (9, of_its_own), "whoever woke it is named");
        assert_eq!(found[0].crossed(), Some((0, 1)));
    }
}

#[test]
fn a_task_without_a_switch_event_is_seen_on_its_cpu() {
    // Thread 30, woken on the idle CPU 1, runs when an interrupt comes at 108; its switch event is missing.
    finds(
        "
        100 0 10 send 1 20
        105 1 0 waking 30 1
        106 1 0 wakeup 30 1
        108 1 30 irq+ 5
        109 1 30 irq- 5
        110 0 10 waking 20 1
        110 0 10 wakeup 20 1
        110 0 10 switch S 0
        135 1 30 switch S 20
        REST
    ",
        "runnable_wait",
        30,
        25,
    );
}

#[test]
fn a_lock_waiter_may_have_its_lock_after_lost_events() {
    let found = after_start(
        "
        50 1 20 lock+ MUTEX
        60 1 0 lost
        REACHED
        BACK
    ",
    );
    let sums = causes(&found, 1);
    assert!(sums.iter().all(|sum| sum.0 != "lock_wait"), "{sums:?}");
}

#[test]
fn a_thread_whose_oneway_call_is_over_is_free_and_woken() {
    // Nothing shows the end of call 1's work, but that 20 slept and was woken for call 2.
    let sums = causes(
        &after_start(
            "
        100 0 10 oneway 1 20
        105 0 10 waking 20 1
        105 1 0 switch R 20
        110 1 20 recv 1
        120 1 20 switch S 0
        150 0 10 oneway 2 20
        155 0 10 waking 20 1
        175 1 0 switch R 20
        190 1 20 recv 2
    ",
        ),
        2,
    );
    let want = [("driver", 10, 5), ("driver", 20, 15), ("wakeup_latency", 20, 20)];
    assert_eq!(sums, want.map(|(cause, tid, ns)| (cause.to_owned(), tid, ns)));
}

#[test]
fn what_no_event_shows_has_no_cause() {
    // Binder events alone; a call that nobody takes; a thread of which the scheduler's events are missing.
    for (what, lines) in [
        ("binder only", "100 0 10 send 1 20\n140 1 20 recv 1\n240 1 20 reply 2 10 10\n250 0 10 recv 2"),
        ("oneway", "100 0 10 oneway 1 20\n600 1 20 recv 1"),
        ("nobody takes it", "100 0 10 send 1 20\n900 0 11 send 3 21"),
    ] {
        let (found, _) = rebuilt(&[], lines);
        let call = found.iter().find(|call| call.debug_id == 1).expect("the call");
        assert!(call.parts.iter().all(|part| part.cause == Cause::NotShown), "{what}: {:#?}", call.parts);
    }
    // 20 has no scheduler's events: only what 10 did is shown.
    let (found, _) = rebuilt(
        &[],
        "
        1 0 0 switch R 10
        100 0 10 send 1 20
        105 0 10 waking 20 1
        110 0 10 switch S 0
        140 1 20 recv 1
        240 1 20 reply 2 10 10
        245 1 20 waking 10 0
        245 0 0 switch R 10
        250 0 10 recv 2
    ",
    );
    let sums = causes(&found, 1);
    assert!(sums.iter().all(|(cause, tid, _)| *tid == 10 || cause == "not_shown"), "{sums:?}");
}
