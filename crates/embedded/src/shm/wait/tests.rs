//! Tests of waiting, apart from the awaited conditions.
//! Not here: what a spin teaches (`spinning`).

use std::sync::atomic::{AtomicBool, Ordering};

use super::*;
use crate::shm::doorbell::{self, Doorbells};
use crate::shm::heap::HeapMemory;

const BUDGET: Duration = Duration::from_micros(200);

/// Waits in vain; returns whether it spun.
fn spins(waiter: &mut Waiter) -> bool {
    waiter.begins_with_spin(None) && {
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
            while !waiter.begins_with_spin(None) {}
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
fn nobody_spins_for_a_peer_on_the_same_cpu() {
    on_one_cpu(|cpu| {
        let mut waiter = Waiter::new(Waiting::Spin, Duration::from_secs(1000), 2);
        assert!(!waiter.begins_with_spin(Some(cpu)) && waiter.begins_with_spin(Some(cpu + 1)));
        assert!(!waiter.spin(Some(cpu), None, &mut || false), "it came here meanwhile");
        assert!(waiter.begins_with_spin(None), "that was not in vain");
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
