//! Tests of what is said about whom a call waited for.
//! Not here: the chains themselves (`model`).

use super::*;
use crate::event::{CodeLocation, Task};

/// A stream with named threads; CPU 1 is the server's, CPU 2 that of whom it waits for. Times are in microseconds.
struct Scene {
    feed: Feed,
    swapper: Task,
}

impl Scene {
    fn new() -> Self {
        let feed = Feed::new(AnalysisOptions { worst: 9, by: Some(By::Pair), ..AnalysisOptions::default() });
        let mut scene = Self { feed, swapper: task(0, Name::NONE) };
        let server = scene.named(20, "Binder:20_1");
        scene.feed.take(1, 1, 0, switch(scene.swapper, State::Sleeping, server));
        scene
    }

    fn named(&mut self, tid: i32, name: &str) -> Task {
        task(tid, self.feed.names.intern(name))
    }

    fn at(&mut self, us: u64, cpu: u32, tid: i32, kind: Kind) {
        self.feed.take(us * 1000, cpu, tid, kind);
    }

    fn runs(&mut self, us: u64, cpu: u32, who: Task) {
        let swapper = self.swapper;
        self.at(us, cpu, 0, switch(swapper, State::Sleeping, who));
    }

    fn sleeps(&mut self, us: u64, cpu: u32, who: Task, state: State) {
        let swapper = self.swapper;
        self.at(us, cpu, who.tid, switch(who, state, swapper));
    }

    fn wakes(&mut self, us: u64, (cpu, waker): (u32, i32), who: Task, target_cpu: u32) {
        self.at(us, cpu, waker, Kind::Waking(Wake { task: who, target_cpu }));
        self.at(us, target_cpu, 0, Kind::Wakeup(Wake { task: who, target_cpu }));
    }

    /// Sends call `id` at this time, and it is received.
    fn called(&mut self, us: u64, id: i32) {
        self.at(us, 0, 10, sent(id, 20));
        self.at(us + 1, 1, 20, received(id));
    }

    fn replied(&mut self, us: u64, id: i32) {
        self.at(us, 1, 20, reply(id + 1, 10));
        self.at(us + 1, 0, 10, received(id + 1));
    }

    fn blocked(&mut self, us: u64, tid: i32, io_wait: bool, symbol: &str) {
        let symbol = self.feed.names.intern(symbol);
        self.at(us, 2, 0, Kind::BlockedReason { tid, io_wait, caller: CodeLocation { address: 0, symbol } });
    }
}

/// A server waits 44 ms for a monitor whose owner waits for a disk for 41 of them, then for one that nobody owns by name.
fn monitor(owner_text: &str) -> Analysis {
    let mut scene = Scene::new();
    let (server, owner) = (scene.named(20, "Binder:20_1"), scene.named(1533, "Binder:1210_3"));
    scene.runs(2, 2, owner);
    scene.called(1000, 2);
    scene.at(1100, 1, 20, begin("AIDL::java::IActivityManager::getServices::server"));
    scene.at(1200, 1, 20, begin("collect"));
    scene.at(1300, 1, 20, begin(owner_text));
    scene.sleeps(2000, 1, server, State::Sleeping);
    scene.sleeps(3000, 2, owner, State::Uninterruptible);
    scene.blocked(44_000, 1533, true, "ext4_file_read_iter");
    scene.wakes(44_000, (2, 0), owner, 2);
    scene.runs(44_000, 2, owner);
    scene.wakes(46_000, (2, 1533), server, 1);
    scene.runs(46_000, 1, server);
    scene.at(46_100, 1, 20, end());
    scene.replied(48_999, 2);
    scene.feed.finish()
}

#[test]
fn a_sentence_follows_a_monitor_to_its_owner_and_the_owners_disk() {
    let analysis = monitor(
        "monitor contention with owner Binder:1210_3 (1533) at void com.android.server.wm.WindowManagerGlobalLock.run(X.java:1)",
    );
    let call = &analysis.slow[0];
    assert!(call.verdict.starts_with("IActivityManager.getServices, call 2 of "), "{}", call.verdict);
    let chain = "server Binder:20_1 20 waited 44.0 ms for a monitor held by Binder:1210_3 1533 in \
                 WindowManagerGlobalLock.run, which waited 41.0 ms for I/O in ext4_file_read_iter. Also";
    assert!(call.verdict.contains(chain), "{}", call.verdict);
    assert_eq!(call.reasons[0].cause, Label::Monitor);
    // What it computed was for the slice around it.
    let ran = call.reasons.iter().find(|reason| reason.cause == Label::ServerRunning).expect("it ran");
    assert_eq!(ran.doing.as_deref(), Some("collect"), "{ran:?}");
    assert!(call.verdict.contains("(in collect)"), "{}", call.verdict);
    // The path adds up to the wait, and JSON keeps it.
    let leaves: u64 = call.path.iter().filter(|step| step.waits_for.is_none()).map(|step| step.ns).sum();
    assert_eq!(leaves, call.reasons[0].ns);
    let json = analysis.to_json().expect("numbers and texts");
    let back: Analysis = serde_json::from_str(&json).expect("what was written");
    assert_eq!((&back.slow[0].path, &back.slow[0].reasons), (&call.path, &call.reasons));
    for words in ["\"waits_for\": 1533", "\"how\": \"owner\"", "\"place\": \"WindowManagerGlobalLock.run\""] {
        assert!(json.contains(words), "{words}: {json}");
    }
}

#[test]
fn without_an_owners_name_the_sentence_says_who_woke_the_waiter() {
    let analysis = monitor("Lock contention on a monitor lock");
    let chain = "server Binder:20_1 20 waited 44.0 ms for a monitor until Binder:1210_3 1533 woke it, which waited 41.0 ms";
    assert!(analysis.slow[0].verdict.contains(chain), "{}", analysis.slow[0].verdict);
    let stranger = monitor("monitor contention with owner other (77) at x");
    let words = "held by other 77 in x, which is not shown by the trace for 44.0 ms";
    assert!(stranger.slow[0].verdict.contains(words), "{}", stranger.slow[0].verdict);
}

#[test]
fn a_number_that_another_thread_got_later_keeps_its_first_name() {
    let mut scene = Scene::new();
    let (server, owner) = (scene.named(20, "Binder:20_1"), scene.named(30, "first"));
    scene.runs(2, 2, owner);
    scene.called(1000, 2);
    scene.sleeps(2000, 1, server, State::Sleeping);
    scene.wakes(40_000, (2, 30), server, 1);
    scene.runs(40_000, 1, server);
    scene.sleeps(41_000, 2, owner, State::Dead);
    let later = scene.named(30, "second");
    scene.wakes(42_000, (2, 0), later, 2);
    scene.runs(42_000, 2, later);
    scene.replied(43_000, 2);
    let analysis = scene.feed.finish();
    let call = &analysis.slow[0];
    assert!(call.verdict.contains("until first 30 woke it, which ran 38.0 ms"), "{}", call.verdict);
    assert!(!call.verdict.contains("second"), "{}", call.verdict);
}

#[test]
fn a_wait_for_one_that_works_is_no_poll() {
    let found = |works: bool| {
        let mut scene = Scene::new();
        let (server, other) = (scene.named(20, "Binder:20_1"), scene.named(30, "worker"));
        scene.runs(3, 2, other);
        scene.sleeps(4, 2, other, State::Sleeping);
        for index in 0..10 {
            let us = 10_000 + index * 20_000;
            let id = i32::try_from(index * 2 + 2).expect("small");
            scene.called(us, id);
            if works {
                scene.runs(us + 2, 2, other);
            }
            scene.sleeps(us + 3, 1, server, State::Sleeping);
            if !works {
                scene.wakes(us + 9_998, (2, 0), other, 2);
                scene.runs(us + 9_998, 2, other);
            }
            scene.wakes(us + 9_999, (2, 30), server, 1);
            scene.runs(us + 9_999, 1, server);
            scene.replied(us + 10_000, id);
            scene.sleeps(us + 10_001, 2, other, State::Sleeping);
        }
        scene.feed.finish()
    };
    let (poll, work) = (found(false), found(true));
    assert!(poll.groups[0].waits_by_design, "{poll}");
    assert!(!work.groups[0].waits_by_design, "{work}");
    assert!(
        work.slow[0].verdict.contains("until worker 30 woke it, which ran 10.0 ms"),
        "{}",
        work.slow[0].verdict
    );
    let asleep = "until worker 30 woke it, which slept";
    assert!(poll.slow[0].verdict.contains(asleep), "{}", poll.slow[0].verdict);
}

#[test]
fn a_sleep_that_the_block_softirq_ends_was_for_a_disk() {
    let sentence = |softirq: u32| {
        let mut scene = Scene::new();
        let server = scene.named(20, "Binder:20_1");
        scene.called(1000, 2);
        scene.sleeps(2000, 1, server, State::Uninterruptible);
        scene.at(39_000, 2, 0, Kind::SoftirqEntry(crate::event::Softirq(softirq)));
        scene.wakes(40_000, (2, 0), server, 1);
        scene.runs(40_000, 1, server);
        scene.replied(41_000, 2);
        scene.feed.finish().slow[0].verdict.clone()
    };
    let (block, timer) = (sentence(4), sentence(1));
    assert!(block.contains("waited 38.0 ms for I/O, until softirq BLOCK woke it"), "{block}");
    assert!(timer.contains("slept uninterruptibly 38.0 ms until softirq TIMER woke it"), "{timer}");
}

#[test]
fn what_an_unanswered_call_is_in_at_the_end_is_told_too() {
    let mut scene = Scene::new();
    let server = scene.named(20, "Binder:20_1");
    scene.called(1000, 2);
    // It computes for 60 ms, and waits for a monitor since.
    scene.at(
        61_000,
        1,
        20,
        begin("monitor contention with owner other (77) at void a.x()(A.java:1) waiters=0 blocking from y"),
    );
    scene.sleeps(61_000, 1, server, State::Sleeping);
    scene.at(81_000, 0, 9, begin("later"));
    let call = scene.feed.finish().unanswered.remove(0);
    let words = "is unanswered after 80.0 ms, at the trace's end: server Binder:20_1 20 ran for 60.0 ms. At the trace's end server \
                 Binder:20_1 20 waited 20.0 ms for a monitor held by other 77";
    assert!(call.verdict.contains(words), "{}", call.verdict);
    assert_eq!(call.verdict.matches("for a monitor").count(), 1, "{}", call.verdict);
}
