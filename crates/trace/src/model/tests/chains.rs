//! Streams in which the server waits for somebody, and the chain that must be found, exact to the nanosecond.
//! Not here: causes of the call's own segments (`causes`), sentences (`verdict`).

use super::*;
use crate::cause::{Cause, Waker};
use crate::model::chain::{Link, Next, Stop, Tie};
use crate::model::follow::{MOST_DEEP, MOST_LINKS};

/// Asserts that the chains of a call divide its waits, each nanosecond once.
pub(super) fn whole(call: &Transaction) {
    let links = &call.links;
    for (index, link) in links.iter().enumerate() {
        assert!(link.begin < link.end, "{link:?}");
        if link.depth == 0 {
            let part = call.parts.iter().find(|part| part.begin == link.begin).expect("its segment");
            assert_eq!((part.end, part.tid), (link.end, link.tid), "{link:?}");
            assert!(part.cause == link.cause || link.cause == Cause::Nested, "{link:?}");
        }
        let deeper: Vec<&Link> =
            links[index + 1..].iter().take_while(|next| next.depth > link.depth).collect();
        let Some(tid) = link.waits_for() else {
            assert!(deeper.is_empty(), "{link:?} waits for nobody: {deeper:?}");
            continue;
        };
        let mut at = link.begin;
        for next in deeper.into_iter().filter(|next| next.depth == link.depth + 1) {
            assert_eq!((next.begin, next.tid), (at, tid), "a gap or a stranger behind {link:?}: {next:?}");
            at = next.end;
        }
        assert_eq!(at, link.end, "the links end elsewhere: {link:?}");
    }
    let sum = |links: &mut dyn Iterator<Item = &Link>| links.map(Link::ns).sum::<u64>();
    let heads = sum(&mut links.iter().filter(|link| link.depth == 0));
    assert_eq!(sum(&mut links.iter().filter(|link| link.waits_for().is_none())), heads, "{links:#?}");
}

/// Chain of call 1: depth, thread, cause and time of each link.
fn chain(found: &[Transaction]) -> Vec<(u8, i32, &'static str, u64)> {
    let call = found.iter().find(|call| call.debug_id == 1).expect("the call");
    call.links.iter().map(|link| (link.depth, link.tid, link.cause.name(), link.ns())).collect()
}

fn nexts(found: &[Transaction]) -> Vec<Next> {
    let call = found.iter().find(|call| call.debug_id == 1).expect("the call");
    call.links.iter().map(|link| link.next).collect()
}

/// The server sleeps from 150 to 190, when `waker` wakes it; `before` comes first, `meanwhile` in between.
fn sleeps(before: &str, meanwhile: &str, waker: &str) -> Vec<Transaction> {
    after_start(&format!(
        "
        2 2 0 switch R 30
        REACHED
        {before}
        150 1 20 switch S 0
        {meanwhile}
        190 2 {waker} waking 20 1
        190 2 {waker} wakeup 20 1
        190 1 0 switch R 20
        195 1 20 print E|20
        BACK
    "
    ))
}

/// Thread 30 reads from a disk from 160 to 175.
const READS: &str = "
    160 2 30 switch D 0
    170 2 0 irq+ 5
    175 2 0 waking 30 2
    175 2 0 blocked 30 ext4_file_read_iter io
    175 2 0 wakeup 30 2
    175 2 0 irq- 5
    175 2 0 switch R 30
";

#[test]
fn a_monitors_owner_is_the_one_whom_the_slice_names_whoever_woke_the_waiter() {
    let slice =
        "145 1 20 print B|20|monitor contention with owner t30 (30) at void a.b.Lock.run(X.java:1) waiters=0";
    for waker in ["30", "31"] {
        let found = sleeps(slice, READS, waker);
        assert_eq!(
            chain(&found),
            [
                (0, 20, "monitor_contention", 40),
                (1, 30, "running", 10),
                (1, 30, "io", 15),
                (1, 30, "running", 15),
            ]
        );
        assert_eq!(nexts(&found)[0], Next::Thread(Tie::Owner, 30));
        let Next::Interrupt(Waker::Interrupt(Irq::Line(5), _)) = nexts(&found)[2] else {
            panic!("{:?}", nexts(&found))
        };
    }
    // The runtime's other locks are named in other words.
    let found =
        sleeps("145 1 20 print B|20|Lock contention on thread list lock (owner tid: 30)", READS, "31");
    assert_eq!(nexts(&found)[0], Next::Thread(Tie::Owner, 30));
    assert_eq!(chain(&found)[0], (0, 20, "art_lock_contention", 40));
}

#[test]
fn without_an_owners_name_whoever_woke_the_waiter_held_it_up() {
    for (before, cause) in
        [("", "sleep"), ("145 1 20 print B|20|monitor contention with owner nobody", "monitor_contention")]
    {
        let found = sleeps(before, READS, "30");
        let links = chain(&found);
        assert_eq!(links[0], (0, 20, cause, 40));
        assert_eq!(nexts(&found)[0], Next::Thread(Tie::Waker, 30));
        assert_eq!(links[2], (1, 30, "io", 15));
    }
}

#[test]
fn a_chain_of_three_futexes_is_followed_to_its_end() {
    let (found, names) = rebuilt(
        &[],
        &format!(
            "{START}
        2 2 0 switch R 30
        3 3 0 switch R 31
        4 4 0 switch R 32
        REACHED
        142 2 30 switch S 0
        144 3 31 switch S 0
        150 1 20 switch S 0
        180 4 32 waking 31 3
        180 4 32 blocked 31 futex_wait_queue
        180 3 0 switch R 31
        185 3 31 waking 30 2
        185 3 31 blocked 30 futex_wait_queue
        185 2 0 switch R 30
        190 2 30 waking 20 1
        190 2 30 blocked 20 futex_wait_queue
        190 1 0 switch R 20
        BACK"
        ),
    );
    assert_eq!(
        chain(&found),
        [
            (0, 20, "mutex_contention", 40),
            (1, 30, "mutex_contention", 35),
            (2, 31, "mutex_contention", 30),
            (3, 32, "running", 30),
            (2, 31, "running", 5),
            (1, 30, "running", 5),
        ]
    );
    let who: Vec<_> = found[0].links.iter().map(|link| names.text(link.comm)).collect();
    assert_eq!(who, ["t20", "t30", "t31", "t32", "t31", "t30"]);
}

#[test]
fn a_server_blocked_by_a_disk_has_no_thread_to_blame() {
    let found = after_start(
        "
        REACHED
        150 1 20 switch D 0
        185 2 0 irq+ 5
        188 2 0 waking 20 1
        188 2 0 blocked 20 ext4_file_read_iter io
        189 2 0 irq- 5
        190 1 0 switch R 20
        BACK
    ",
    );
    assert_eq!(chain(&found), [(0, 20, "io", 38)]);
    assert!(matches!(nexts(&found)[..], [Next::Interrupt(Waker::Interrupt(Irq::Line(5), _))]));
}

#[test]
fn a_kernel_worker_is_named_by_its_work() {
    let (found, names) = rebuilt(
        &[],
        &format!(
            "{START}
        REACHED
        150 1 20 switch D 0
        160 2 0 switch R 50
        160 2 50 work+ kcryptd_crypt
        190 2 50 waking 20 1
        190 2 50 blocked 20 folio_wait_bit io
        190 1 0 switch R 20
        191 2 50 work-
        BACK"
        ),
    );
    let worked = found[0].links.iter().find(|link| link.work != CodeLocation::default()).expect("its work");
    assert_eq!((worked.tid, worked.ns(), names.text(worked.work.symbol)), (50, 30, "kcryptd_crypt"));
    assert_eq!(found[0].links[0].next, Next::Thread(Tie::Waker, 50));
}

#[test]
fn a_nested_call_is_followed_across_three_processes() {
    // 20 waits for 30 of its process, which calls process 40, whose thread computes and then waits for a disk.
    let lines = "
        2 2 0 switch R 30
        3 3 9 switch S 0
        REACHED
        145 2 30 send 7 40
        146 2 30 waking 40 3
        147 2 30 switch S 0
        150 1 20 switch S 0
        152 3 0 switch R 40
        153 3 40 recv 7
        160 3 40 switch D 0
        175 3 0 waking 40 3
        175 3 0 blocked 40 ext4_file_read_iter io
        175 3 0 switch R 40
        180 3 40 reply 8 30 30
        181 3 40 waking 30 2
        181 2 0 switch R 30
        182 2 30 recv 8
        190 2 30 waking 20 1
        190 1 0 switch R 20
        BACK
    ";
    let want = [
        (0, 20, "sleep", 40),
        (1, 30, "binder", 31),
        (2, 40, "wakeup_latency", 2),
        (2, 40, "running", 8),
        (2, 40, "io", 15),
        (2, 40, "running", 6),
        (1, 30, "running", 9),
    ];
    let found = after_start(lines);
    assert_eq!(chain(&found), want);
    assert_eq!(nexts(&found)[1], Next::Thread(Tie::Call(7), 40));
    // The same while that call is open.
    let open = after_start(&lines.replace("182 2 30 recv 8\n", ""));
    assert_eq!(chain(&open)[..5], want[..5]);
    assert_eq!(nexts(&open)[1], Next::Thread(Tie::Call(7), 40));
}

#[test]
fn the_waits_of_a_nested_calls_server_belong_to_the_outer_call_too() {
    let found = after_start(
        "
        2 2 0 switch R 30
        REACHED
        145 1 20 send 7 40
        146 1 20 waking 40 3
        147 1 20 switch S 0
        148 3 0 switch R 40
        149 3 40 recv 7
        150 3 40 switch S 0
        170 2 30 waking 40 3
        170 3 0 switch R 40
        172 3 40 reply 8 20 20
        173 3 40 waking 20 1
        173 1 0 switch R 20
        174 1 20 recv 8
        BACK
    ",
    );
    let nested = found.iter().find(|call| call.debug_id == 7).expect("the nested call");
    let links = |call: &Transaction| {
        call.links.iter().map(|link| (link.depth, link.tid, link.cause.name(), link.ns())).collect::<Vec<_>>()
    };
    assert_eq!(links(nested), [(0, 40, "sleep", 20), (1, 30, "running", 20)]);
    assert_eq!(chain(&found), links(nested));
}

#[test]
fn a_busy_server_is_shown_at_the_work_that_kept_it() {
    let found = after_start(
        "
        2 2 0 switch R 30
        50 0 11 send 7 20
        55 0 11 waking 20 1
        55 1 0 switch R 20
        60 1 20 recv 7
        70 0 11 switch S 10
        100 0 10 send 1 20
        108 0 10 switch S 0
        110 1 20 switch S 0
        125 2 30 waking 20 1
        125 1 0 switch R 20
        130 1 20 reply 8 11 11
        REST",
    );
    assert_eq!(
        chain(&found),
        [
            (0, 20, "no_free_thread", 30),
            (1, 20, "running", 10),
            (1, 20, "sleep", 15),
            (2, 30, "running", 15),
            (1, 20, "running", 5),
        ]
    );
    assert_eq!(nexts(&found)[0], Next::Thread(Tie::Busy(Some(7)), 20));
}

#[test]
fn a_poll_that_a_timer_ends_blames_nobody() {
    let found = after_start(
        "
        2 2 0 switch R 30
        REACHED
        150 1 20 switch S 0
        180 2 30 soft+ 8
        185 2 0 waking 20 1
        186 2 30 soft- 8
        190 1 0 switch R 20
        BACK
    ",
    );
    assert_eq!(chain(&found), [(0, 20, "sleep", 35)]);
    assert_eq!(nexts(&found), [Next::Interrupt(Waker::SoftInterrupt(Softirq(8)))]);
    let Some(part) = found[0].parts.iter().find(|part| part.cause.name() == "sleep") else { panic!() };
    assert!(matches!(part.cause, Cause::Sleeping { waker: Some(Waker::SoftInterrupt(_)), .. }));
}

#[test]
fn a_circle_of_owners_is_said_and_not_followed() {
    let owner = |of: i32, tid: i32| format!("print B|{of}|monitor contention with owner t{tid} ({tid}) at x");
    let found = after_start(&format!(
        "
        2 2 0 switch R 30
        REACHED
        142 2 30 {}
        144 2 30 switch S 0
        145 1 20 {}
        150 1 20 switch S 0
        190 3 9 waking 20 1
        190 1 0 switch R 20
        195 1 20 print E|20
        BACK
    ",
        owner(30, 20),
        owner(20, 30)
    ));
    assert_eq!(chain(&found), [(0, 20, "monitor_contention", 40), (1, 30, "monitor_contention", 40)]);
    assert_eq!(nexts(&found), [Next::Thread(Tie::Owner, 30), Next::Stopped(Stop::Circle)]);
}

#[test]
fn a_chain_stops_where_events_are_missing() {
    let found = sleeps(
        "145 1 20 print B|20|monitor contention with owner t30 (30) at x",
        "152 2 30 switch S 0
        165 2 0 lost
        170 2 0 switch R 30",
        "30",
    );
    let call = &found[0];
    assert!(call.doubtful);
    assert_eq!(
        chain(&found)[..2],
        [(0, 20, "monitor_contention", 40), (1, 30, "running", 2)],
        "{:#?}",
        call.links
    );
    let stops: Vec<_> = call.links.iter().filter(|link| link.next == Next::Stopped(Stop::Lost)).collect();
    assert!(!stops.is_empty() && stops.iter().all(|link| link.depth <= 1), "{:#?}", call.links);
    assert_eq!(call.links.iter().map(|link| link.depth).max(), Some(1), "nobody is named behind the gap");
}

#[test]
fn another_thread_of_the_same_number_is_not_taken_for_the_owner() {
    let slice = "145 1 20 print B|20|monitor contention with owner t30 (30) at x";
    let again = "
        160 2 30 switch X 0
        170 2 0 waking 30 2
        170 2 0 switch R 30
    ";
    let found = sleeps(slice, again, "30");
    // The owner exited at 160; the one that ran from 170 on is another.
    assert_eq!(chain(&found)[1..], [(1, 30, "running", 10), (1, 30, "not_shown", 30)]);
    assert_eq!(nexts(&found)[2], Next::Stopped(Stop::Gone));
    // Whoever woke the waiter is the later one, and had not begun before 170.
    let found = sleeps("", again, "30");
    assert_eq!(chain(&found)[1..], [(1, 30, "not_shown", 20), (1, 30, "running", 20)]);
    assert_eq!(nexts(&found)[1], Next::Stopped(Stop::Gone));
}

#[test]
fn a_chain_has_a_greatest_depth_and_keeps_its_sums() {
    let last = 30 + 2 * i32::from(MOST_DEEP);
    let (mut asleep, mut woken) = (String::new(), String::new());
    for tid in 30..last {
        asleep += &format!("2 {tid} 0 switch R {tid}\n141 {tid} {tid} switch S 0\n");
    }
    for (step, tid) in (30..last).rev().enumerate() {
        woken += &format!("{} {} {} waking {tid} {tid}\n", 151 + step, tid + 1, tid + 1);
        woken += &format!("{} {tid} 0 switch R {tid}\n", 151 + step);
    }
    let found = after_start(&format!(
        "{asleep}REACHED\n150 1 20 switch S 0\n{woken}190 30 30 waking 20 1\n190 1 0 switch R 20\nBACK"
    ));
    let deepest = found[0].links.iter().map(|link| link.depth).max();
    assert_eq!(deepest, Some(MOST_DEEP));
    assert!(nexts(&found).contains(&Next::Stopped(Stop::Depth)), "{:#?}", found[0].links);
}

#[test]
fn a_busy_owner_cannot_fill_memory() {
    let mut lines = String::from("2 2 0 switch R 30\nREACHED\n150 1 20 switch S 0\n");
    for step in 0..3000 {
        let ts = 1000 + step * 10;
        lines += &format!("{ts} 2 30 switch S 0\n{} 3 31 waking 30 2\n{} 2 0 switch R 30\n", ts + 3, ts + 5);
    }
    lines += "40000 2 30 waking 20 1\n40000 1 0 switch R 20\n40010 1 20 reply 2 10 10\n40020 0 10 recv 2";
    let found = after_start(&lines);
    let links = &found[0].links;
    assert!(links.len() <= MOST_LINKS + usize::from(MOST_DEEP) + 1, "{}", links.len());
    assert!(links.iter().any(|link| link.next == Next::Stopped(Stop::Room)));
}

#[test]
fn the_innermost_slice_says_what_a_sleeper_was_doing() {
    let mut script = Script::new(&[]);
    let mut model = Model::new();
    let mut found = Vec::new();
    let lines = format!(
        "{START}
        2 2 0 switch R 30
        3 2 30 print B|30|compose
        REACHED
        142 1 20 print B|20|draw
        145 1 20 print B|20|dequeueBuffer
        150 1 20 switch S 0
        190 2 30 waking 20 1
        190 1 0 switch R 20
        191 1 20 print E|20
        192 1 20 print E|20
        BACK"
    )
    .replace("REACHED", REACHED)
    .replace("BACK", BACK);
    for line in lines.lines().map(str::trim).filter(|line| !line.is_empty()) {
        let event = script.event(line);
        model.take(&event, &script.names, &mut |call| found.push(call));
    }
    let slept = found[0].parts.iter().find(|part| part.cause.name() == "sleep").expect("it slept");
    assert_eq!(model.slice_text(slept.slice), "dequeueBuffer");
    let links: Vec<_> = found[0].links.iter().map(|link| (link.tid, model.slice_text(link.slice))).collect();
    assert_eq!(links, [(20, "dequeueBuffer"), (30, "compose")]);
    let ran = found[0].parts.iter().find(|part| part.begin == 190).expect("it ran");
    assert_eq!(model.slice_text(ran.slice), "", "it was outside of slices for the longest time");
}
