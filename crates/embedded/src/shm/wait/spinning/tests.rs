//! Tests of what a thread learns from spins, in simulated time: alone, between two sides, in crowds.
//! Not here: clocks and threads (`wait::tests`).

use super::*;

const BUDGET: Duration = Duration::from_millis(1);
const BOTH: [Waiting; 2] = [Waiting::Spin, Waiting::Adaptive];

/// A duration in hundredths of a budget.
fn part(hundredths: u32) -> Duration {
    BUDGET * hundredths / 100
}

/// Whether a wait begins with a spin.
fn begins(spinning: &mut Spinning) -> bool {
    let is_next = spinning.is_next();
    if !is_next {
        spinning.skipped();
    }
    is_next
}

/// Records a whole spin in vain and the wait around it.
fn fail(spinning: &mut Spinning, took: Duration) {
    let longest = spinning.longest();
    spinning.failed(longest);
    spinning.slept(longest, took);
}

#[test]
fn a_whole_spin_lasts_for_a_wake_up_that_was_longer_than_the_one_before() {
    for (why, took, next) in [
        ("wake-ups within the budget", 200, 100),
        ("slower ones", 208, 130),
        ("slower", 256, 160),
        ("as slow as a spin with room to spare can be long", 640, 400),
        ("four budgets", 800, 400),
        ("it was something else", 802, 100),
    ] {
        for waiting in BOTH {
            let mut spinning = Spinning::new(waiting, BUDGET);
            fail(&mut spinning, part(took));
            assert_eq!(spinning.longest(), part(next), "{why}");
        }
    }
}

#[test]
fn success_keeps_a_longer_spin_and_its_failure_takes_it_away() {
    for waiting in BOTH {
        let mut spinning = Spinning::new(waiting, BUDGET);
        fail(&mut spinning, part(240));
        let longer = spinning.longest();
        assert!(longer > BUDGET);
        (0..10).for_each(|_| spinning.succeeded(part(120)));
        assert_eq!(spinning.longest(), longer);
        let mut slower = Spinning { ..spinning };
        spinning.failed(longer);
        assert_eq!(spinning.longest(), BUDGET, "before anything is known of its wait");
        spinning.slept(longer, longer * 2);
        assert_eq!(spinning.longest(), BUDGET, "no wake-up explains that it was in vain");
        fail(&mut slower, longer * 3);
        assert!(slower.longest() > longer, "wake-ups that are slower still do");
    }
}

#[test]
fn one_without_a_budget_gets_no_longer_spin() {
    let mut spinning = Spinning::new(Waiting::Spin, Duration::ZERO);
    fail(&mut spinning, BUDGET);
    assert_eq!(spinning.longest(), Duration::ZERO);
}

#[test]
fn adaptive_spins_follow_what_pays() {
    let mut spinning = Spinning::new(Waiting::Adaptive, BUDGET);
    assert_eq!(spinning.longest(), BUDGET);
    for whole in [BUDGET, part(150)] {
        (0..100).for_each(|_| spinning.succeeded(part(1)));
        assert_eq!(spinning.longest(), BUDGET / SHORTEST);
        spinning.failed(BUDGET / SHORTEST);
        assert_eq!(spinning.longest(), whole, "a short one in vain: next a whole one,");
        assert!(begins(&mut spinning), "at once");
        fail(&mut spinning, part(240));
        assert!(!begins(&mut spinning), "a whole one in vain: then a sleep");
        while !begins(&mut spinning) {}
    }
    let mut spinning = Spinning::new(Waiting::Adaptive, BUDGET);
    fail(&mut spinning, part(240));
    while !begins(&mut spinning) {}
    (0..100).for_each(|_| spinning.succeeded(part(30)));
    let longest = spinning.longest();
    assert!(longest > BUDGET && longest < part(150), "{longest:?}");
    spinning.failed(longest);
    assert!(!begins(&mut spinning) && spinning.longest() == BUDGET, "that was more than an ordinary one");
    for (short, took) in [(BUDGET / SHORTEST, 210), (part(99), 500)] {
        (0..100).for_each(|_| spinning.succeeded_at_once());
        assert_eq!(spinning.longest(), BUDGET / SHORTEST);
        spinning.failed(short);
        spinning.slept(short, part(took));
        assert_eq!(spinning.longest(), BUDGET, "no ordinary one was tried");
    }
}

#[test]
fn longer_ones_in_vain_are_not_soon_tried_again() {
    for waiting in BOTH {
        let mut spinning = Spinning::new(waiting, BUDGET);
        for doubted in [0, 1, 2, 4, 8, 16, 32, LONGEST_DOUBT, LONGEST_DOUBT] {
            for _ in 0..doubted {
                fail(&mut spinning, part(240));
                assert_eq!(spinning.longest(), BUDGET);
            }
            fail(&mut spinning, part(240));
            assert_eq!(spinning.longest(), part(150));
            fail(&mut spinning, part(240));
            assert_eq!(spinning.longest(), BUDGET);
        }
        (0..=LONGEST_DOUBT).for_each(|_| fail(&mut spinning, part(240)));
        spinning.succeeded(part(120));
        fail(&mut spinning, part(240));
        fail(&mut spinning, part(240));
        assert_eq!((spinning.longest(), spinning.doubt), (BUDGET, 1), "one that pays ends all doubt");
    }
}

#[test]
fn those_in_vain_become_rare_and_success_brings_them_back() {
    for waiting in BOTH {
        let mut spinning = Spinning::new(waiting, BUDGET);
        for skipped in [1, 2, 4, 8, 16, 32, 64, 128, 256, 512, 1024, LONGEST_SKIP, LONGEST_SKIP] {
            assert!(begins(&mut spinning));
            spinning.failed(BUDGET);
            assert_eq!((0..skipped).filter(|_| begins(&mut spinning)).count(), 0);
        }
        (0..20).for_each(|_| spinning.succeeded(part(101)));
        assert_eq!(spinning.skip, LONGEST_SKIP, "an ordinary one would have been in vain");
        (0..5).for_each(|_| spinning.succeeded(BUDGET));
        (0..6).for_each(|_| spinning.succeeded_at_once());
        assert_eq!(spinning.skip, 0);
    }
}

/// The result of one wait.
#[derive(Clone, Copy, Debug)]
struct Wait {
    /// Length of the spin, if any.
    spun: Option<Duration>,
    slept: bool,
    took: Duration,
}

/// Simulates a wait whose event comes after `spun -> after`; a sleeper runs `wake_up` later, and learns from
/// it if `learns`.
fn wait(
    spinning: &mut Spinning,
    learns: bool,
    after: impl FnOnce(Duration) -> Duration,
    wake_up: Duration,
) -> Wait {
    let longest = begins(spinning).then(|| spinning.longest());
    let after = after(longest.unwrap_or_default());
    match longest {
        Some(longest) if after <= longest => {
            match after {
                Duration::ZERO => spinning.succeeded_at_once(),
                _ => spinning.succeeded(after),
            }
            Wait { spun: Some(after), slept: false, took: after }
        }
        _ => {
            let took = after + wake_up;
            if let Some(longest) = longest {
                spinning.failed(longest);
                if learns {
                    spinning.slept(longest, took);
                }
            }
            Wait { spun: longest, slept: true, took }
        }
    }
}

/// A client and a server, each on its own CPU, that only wait for each other.
struct Sides {
    spinning: [Spinning; 2],
    learn: bool,
    /// Start of each side's wait.
    began: [Duration; 2],
    now: Duration,
}

impl Sides {
    /// Starts with a server that has waited for long.
    fn new(waiting: Waiting, learn: bool) -> Self {
        let spinning = [0, 1].map(|_| Spinning::new(waiting, BUDGET));
        Self { spinning, learn, began: [Duration::ZERO; 2], now: BUDGET * 1000 }
    }

    /// Simulates one call with these wake-up times and delays; returns whether a side slept.
    fn call(&mut self, wake_up: [Duration; 2], held_up: [Duration; 2]) -> bool {
        let mut slept = false;
        for (from, to) in [(0, 1), (1, 0)] {
            self.now += held_up[from];
            self.began[from] = self.now;
            let after = self.now - self.began[to];
            let wait = wait(&mut self.spinning[to], self.learn, |_| after, wake_up[to]);
            self.now = self.began[to] + wait.took;
            slept |= wait.slept;
        }
        slept
    }

    /// Simulates 5000 calls; returns the number of the last one in which a side slept, 0 for none.
    fn calls_until_they_meet(&mut self, mut wake_up: impl FnMut() -> Duration) -> u32 {
        let slept = |_: &u32| self.call([wake_up(), wake_up()], [Duration::ZERO; 2]);
        (1..=5000).filter(slept).last().unwrap_or_default()
    }
}

/// Pseudorandom numbers from a range, the same in each run.
fn chance(seed: u64, range: std::ops::Range<u32>) -> impl FnMut() -> Duration {
    let mut state = seed;
    move || {
        state = state.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        part(range.start + (state >> 33) as u32 % (range.end - range.start))
    }
}

#[test]
fn two_sides_whose_wake_ups_take_longer_than_a_spin_meet_within_few_calls() {
    for waiting in BOTH {
        let calls = |learn, wake_up| Sides::new(waiting, learn).calls_until_they_meet(|| part(wake_up));
        for wake_up in [90, 101, 130, 200, 320, 390] {
            assert!(calls(true, wake_up) <= 10, "{waiting}, {wake_up} %: {}", calls(true, wake_up));
        }
        assert!(calls(false, 90) <= 10, "they meet by themselves");
        assert_eq!(calls(false, 130), 5000, "without what was learnt they do not");
        assert_eq!(calls(true, 500), 5000, "nor where waking takes longer than any spin");
    }
}

#[test]
fn they_meet_where_waking_takes_longer_at_times_or_on_one_of_the_cpus() {
    for waiting in BOTH {
        for seed in 0..100 {
            let calls = |learn| Sides::new(waiting, learn).calls_until_they_meet(chance(seed, 120..150));
            assert!(calls(true) <= 10, "{waiting}, {seed}: {}", calls(true));
            assert_eq!(calls(false), 5000);
        }
        for [one, other] in [[110, 390], [390, 110], [105, 200], [200, 105]] {
            let mut wake_ups = [one, other].into_iter().cycle();
            let wake_up = || part(wake_ups.next().unwrap_or_default());
            let calls = Sides::new(waiting, true).calls_until_they_meet(wake_up);
            assert!(calls <= 10, "{waiting}, {one} and {other} %: {calls}");
        }
    }
}

#[test]
fn they_meet_again_after_one_was_held_up() {
    const WAKE_UPS: [Duration; 2] = [BUDGET.saturating_mul(2); 2];
    for waiting in BOTH {
        for late in [[10, 0], [0, 10], [3, 0], [0, 3], [1000, 0]] {
            let mut sides = Sides::new(waiting, true);
            for _ in 0..10 {
                let slept = (0..50).filter(|_| sides.call(WAKE_UPS, [Duration::ZERO; 2])).count();
                assert!(slept <= 10, "{waiting}, {late:?}: {slept}");
                let slept = sides.call(WAKE_UPS, late.map(|budgets| BUDGET * budgets));
                assert!(slept || late.iter().sum::<u32>() < LONGEST, "that was a spin as long");
            }
        }
    }
}

/// Simulates 5000 waits in a crowd: returns how many begin with a spin, how many of these are in vain, and
/// the total time. The event comes after `spun -> after`; a sleeper runs `wake_up` after it.
fn crowd(
    waiting: Waiting,
    learns: bool,
    mut after: impl FnMut(Duration) -> Duration,
    mut wake_up: impl FnMut() -> Duration,
) -> (usize, usize, Duration) {
    let mut spinning = Spinning::new(waiting, BUDGET);
    let waits = (0..5000).map(|_| wait(&mut spinning, learns, &mut after, wake_up()));
    let spun: Vec<Wait> = waits.filter(|wait| wait.spun.is_some()).collect();
    let in_vain = spun.iter().filter(|wait| wait.slept).count();
    (spun.len(), in_vain, spun.iter().filter_map(|wait| wait.spun).sum())
}

#[test]
fn in_a_crowd_longer_spins_are_as_rare_as_ordinary_ones() {
    let mut got_longer = 0;
    for waiting in BOTH {
        for hundredths in [10, 60, 110, 150, 200, 350, 500] {
            // The awaited thread needs this CPU, and the waking thread keeps it as long.
            let crowd = |learns| crowd(waiting, learns, |spun| spun + part(hundredths), || part(hundredths));
            let (ordinary, with_longer) = (crowd(false), crowd(true));
            assert!((5..20).contains(&ordinary.0) && ordinary.0 == ordinary.1, "{ordinary:?}");
            assert_eq!((ordinary.0, ordinary.1), (with_longer.0, with_longer.1));
            assert!(with_longer.2 <= ordinary.2 * LONGEST);
            got_longer += usize::from(with_longer.2 > ordinary.2);
        }
    }
    assert!(got_longer > 0, "none of them was a test of that");
}

#[test]
fn in_a_crowd_longer_spins_that_succeed_bring_none_back() {
    for waiting in BOTH {
        for seed in 0..20 {
            let (mut after, wake_up) = (chance(seed, 101..500), chance(seed + 100, 101..300));
            let (spun, in_vain, _) = crowd(waiting, true, |_| after(), wake_up);
            assert!(spun > in_vain, "none of them succeeded");
            assert!((5..20).contains(&in_vain), "{waiting}, {seed}: {in_vain} of {spun} in vain");
        }
    }
}

#[test]
fn a_peer_at_work_gets_few_longer_spins_where_waking_is_fast() {
    for waiting in BOTH {
        for hundredths in [110, 180, 220, 300, 500, 700] {
            // Number of quick answers between two slow ones.
            for quick in 0..12 {
                let crowd = |learns| {
                    let mut turns = (0..=quick).cycle();
                    let after = |_| if turns.next() == Some(0) { part(hundredths) } else { Duration::ZERO };
                    crowd(waiting, learns, after, || part(10))
                };
                let (ordinary, with_longer) = (crowd(false), crowd(true));
                let what = format!("{waiting}, {hundredths} %, {quick}: {ordinary:?} {with_longer:?}");
                assert!(with_longer.1 <= ordinary.1, "{what}");
                // Only the first spins remain where spins in vain become rare.
                assert!(with_longer.2 <= ordinary.2 * 5 / 4 + BUDGET * 20, "{what}");
            }
        }
    }
}
