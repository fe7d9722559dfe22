//! Tests of waiting, apart from the awaited conditions.
//! Not here: what a spin teaches (`spinning`), or a hand-over (`hand_over`).

use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};

use super::*;
use crate::shm::doorbell::{self, Doorbells};
use crate::shm::heap::HeapMemory;

const BUDGET: Duration = Duration::from_micros(200);

/// Waits in vain; returns whether it spun.
fn spins(waiter: &mut Waiter) -> bool {
    waiter.first(None, None) == First::Spin && {
        assert!(!waiter.look(&mut || false) && !waiter.spin(None, None, &mut || false));
        true
    }
}

#[test]
fn nobody_spins_where_it_cannot_pay() {
    let spinning = Waiting::Spin;
    assert!(spins(&mut Waiter::new(spinning, BUDGET, 2)));
    assert!(!spins(&mut Waiter::new(spinning, BUDGET, 1)), "one CPU");
    assert!(!spins(&mut Waiter::new(Waiting::Sleep, BUDGET, 2)), "asked to sleep");
    let mut urgent = Waiter::new(spinning, BUDGET, 2);
    urgent.set_realtime(true);
    assert!(!spins(&mut urgent), "real-time");
}

#[test]
fn spins_in_vain_become_rare_and_success_brings_them_back() {
    for waiting in [Waiting::Spin, Waiting::Adaptive] {
        let mut waiter = Waiter::new(waiting, BUDGET, 2);
        let spun = (0..5000).filter(|_| spins(&mut waiter)).count();
        assert!((5..20).contains(&spun), "{spun} of 5000 spun");
        let begin_with_a_spin = |waiter: &mut Waiter| {
            while waiter.first(None, None) != First::Spin {}
        };
        for _ in 0..11 {
            begin_with_a_spin(&mut waiter);
            assert!(waiter.look(&mut || true));
        }
        let slept = (0..20).filter(|_| !spins(&mut waiter)).count();
        assert!(slept < 18, "{slept} of 20 slept");
    }
}

#[test]
fn a_spin_that_ends_because_the_peer_came_to_this_cpu_was_not_in_vain() {
    on_one_cpu(|cpu| {
        let mut waiter = Waiter::new(Waiting::Spin, Duration::from_secs(1000), 2);
        assert!(!waiter.spin(Some(cpu), None, &mut || false));
        assert_eq!(waiter.first(None, None), First::Spin);
    });
}

#[test]
fn a_deadline_ends_a_wait_and_a_ring_ends_it_sooner() {
    let bells = Doorbells::new(HeapMemory::new(doorbell::SIZE)).expect("room");
    let bell = bells.slot(3).expect("inside");
    let mut waiter = Waiter::new(Waiting::Adaptive, BUDGET, 2);
    let soon = Instant::now() + Duration::from_millis(20);
    assert_eq!(waiter.wait(bell, None, Some(soon), || false), Woken::TimedOut);
    assert!(Instant::now() >= soon);
    assert!(!bell.is_sleeping(), "awake again");
    std::thread::scope(|scope| {
        let waiting = scope.spawn(|| {
            let mut waiter = Waiter::new(Waiting::Sleep, BUDGET, 2);
            waiter.wait(bells.slot(4).expect("inside"), None, None, || bells.anything_ready())
        });
        while !bells.slot(4).expect("inside").is_sleeping() {
            std::thread::yield_now();
        }
        bells.set_listener(Some(4));
        bells.post(77);
        bells.listener_to_wake().expect("asleep").wake();
        assert_eq!(waiting.join().expect("no panic"), Woken::Ready);
    });
}

/// Ends the other thread with its value.
struct Ends<'a>(&'a AtomicBool);

impl Drop for Ends<'_> {
    fn drop(&mut self) {
        self.0.store(true, Ordering::Relaxed);
    }
}

#[test]
fn a_thread_whose_waits_are_all_short_is_told_to_check() {
    let bells = Doorbells::new(HeapMemory::new(doorbell::SIZE)).expect("room");
    let bell = bells.slot(3).expect("inside");
    let over = AtomicBool::new(false);
    std::thread::scope(|scope| {
        // Ends each sleep soon, as signals would.
        scope.spawn(|| {
            while !over.load(Ordering::Relaxed) {
                if bell.ring() {
                    bell.wake();
                }
                std::thread::yield_now();
            }
        });
        // Also where an assertion fails: the scope waits for the other thread.
        let _ringing = Ends(&over);
        for waiting in [Waiting::Spin, Waiting::Sleep] {
            let mut waiter = Waiter::new(waiting, BUDGET, 2);
            assert!(!waiter.begin_check(), "not at once");
            let mut waits = 0_u64;
            let began = Instant::now();
            while waiter.wait(bell, None, None, || waiting == Waiting::Spin) == Woken::Ready {
                waits += 1;
                assert!(began.elapsed() < LOOK_AGAIN * 20, "no check is ever due");
            }
            assert!(waits > 1, "a short one");
            assert!(waiter.begin_check());
            assert!(!waiter.begin_check(), "one is enough for a while");
        }
    });
}

/// Runs `job` in a thread bound to the first CPU of this process.
fn on_one_cpu<T: Send>(job: impl FnOnce(u32) -> T + Send) -> T {
    let cpu = sys::sched::affinity().expect("affinity")[0];
    let aside = || {
        sys::sched::set_affinity(&[cpu]).expect("one of ours");
        job(cpu)
    };
    std::thread::scope(|scope| scope.spawn(aside).join().expect("no panic"))
}

#[test]
fn a_thread_hands_over_only_to_a_peer_on_its_cpu_and_never_if_asked_to_sleep_or_real_time() {
    on_one_cpu(|cpu| {
        let first = |waiting, realtime, peer| {
            let mut waiter = Waiter::new(waiting, BUDGET, 2);
            waiter.set_realtime(realtime);
            assert_ne!(waiter.first(peer, Some(Instant::now())), First::HandOver, "with a deadline");
            waiter.first(peer, None)
        };
        for waiting in [Waiting::Adaptive, Waiting::Spin] {
            assert_eq!(first(waiting, false, Some(cpu)), First::HandOver);
            assert_eq!(first(waiting, false, Some(cpu + 1)), First::Spin);
            assert_eq!(first(waiting, true, Some(cpu)), First::Sleep);
        }
        assert_eq!(first(Waiting::Sleep, false, Some(cpu)), First::Sleep);
    });
}

/// Two threads on one CPU that take turns.
struct Turns {
    bells: Doorbells<HeapMemory>,
    turn: AtomicU64,
    stop: AtomicBool,
}

impl Turns {
    fn play(&self, me: u32, cpu: u32, waiting: Waiting) {
        sys::sched::set_affinity(&[cpu]).expect("one of ours");
        let (bell, other) = (self.bells.slot(me).expect("inside"), self.bells.slot(1 - me).expect("inside"));
        let is_mine = || self.turn.load(Ordering::SeqCst) % 2 == u64::from(me);
        let mut waiter = Waiter::new(waiting, BUDGET, 2);
        while !self.stop.load(Ordering::SeqCst) {
            if !is_mine() {
                let ready = || is_mine() || self.stop.load(Ordering::SeqCst);
                waiter.wait(bell, Some(cpu), None, ready);
                continue;
            }
            self.turn.fetch_add(1, Ordering::SeqCst);
            if other.ring() {
                other.wake();
            }
        }
        if other.ring() {
            other.wake();
        }
    }
}

/// Number of turns in `time`; `beside` runs on the same CPU until its flag is
/// set.
fn turns(cpu: u32, waiting: Waiting, time: Duration, beside: fn(&AtomicBool)) -> u64 {
    let turns = Turns {
        bells: Doorbells::new(HeapMemory::new(doorbell::SIZE)).expect("room"),
        turn: AtomicU64::new(0),
        stop: AtomicBool::new(false),
    };
    std::thread::scope(|scope| {
        for me in [0, 1] {
            let turns = &turns;
            scope.spawn(move || turns.play(me, cpu, waiting));
        }
        scope.spawn(|| {
            sys::sched::set_affinity(&[cpu]).expect("one of ours");
            beside(&turns.stop);
        });
        std::thread::sleep(time);
        turns.stop.store(true, Ordering::SeqCst);
    });
    turns.turn.load(Ordering::SeqCst)
}

/// Without the rule for slow hand-overs the rate is a thousandth of that asleep.
#[test]
#[ignore = "a ratio of rates: make alone"]
fn two_on_one_cpu_with_somebody_busy_are_hardly_slower_than_asleep() {
    fn be_busy(stop: &AtomicBool) {
        while !stop.load(Ordering::SeqCst) {
            std::hint::spin_loop();
        }
    }
    let cpu = sys::sched::affinity().expect("affinity")[0];
    let rate = |waiting| turns(cpu, waiting, Duration::from_millis(300), be_busy);
    let mut rates = Vec::new();
    for _ in 0..5 {
        let [asleep, handing] = [Waiting::Sleep, Waiting::Adaptive].map(rate);
        if asleep > 100 && handing >= asleep / 4 {
            return;
        }
        rates.push((asleep, handing));
    }
    panic!("turns in as much time asleep and handing over, beside a busy thread: {rates:?}");
}
