//! Error rates of comparisons on simulated runs: heavy tails, dependent calls, variation between runs, drift.

use super::*;

const RUNS: usize = crate::compare::USUAL_RUNS;
const CALLS: usize = 400;
const CASES: [(&str, u64); 4] =
    [("BM_a_binder", 4), ("BM_b_binder", 64), ("BM_c_binder", 1024), ("BM_d_binder", 4096)];

/// A simulated machine that makes runs one after the other.
struct Machine {
    rng: Rng,
    /// Slow change of all times, as a share.
    drift: f64,
}

impl Machine {
    fn new(seed: u64) -> Machine {
        Machine { rng: Rng::with_seed(seed), drift: 0.0 }
    }

    fn run(&mut self, factor: f64, pair: usize) -> Run {
        // A random walk, and 1.5 % from run to run; one run in twenty is disturbed.
        self.drift += 0.003 * crate::stats::normal(&mut self.rng);
        let times: Vec<Vec<u64>> =
            CASES.iter().map(|&(_, payload)| self.case(20_000.0 + payload as f64, factor)).collect();
        let cases: Vec<(&str, u64, &[u64])> = CASES
            .iter()
            .zip(&times)
            .map(|(&(family, payload), times)| (family, payload, times.as_slice()))
            .collect();
        let mut run = run_of_cases(&cases);
        run.context.push((PAIR_KEY.to_owned(), format!("s:{pair}")));
        run
    }

    fn case(&mut self, base: f64, factor: f64) -> Vec<u64> {
        let disturbed = if self.rng.usize(..20) == 0 { 0.1 * self.rng.f64() } else { 0.0 };
        let level =
            base * factor * (1.0 + self.drift + 0.015 * crate::stats::normal(&mut self.rng) + disturbed);
        let mut slow = 0.0;
        let times = (0..CALLS).map(|_| {
            slow = 0.9 * slow + 0.02 * crate::stats::normal(&mut self.rng);
            // Pareto distribution: now and then a call takes many times as long.
            let tail = if self.rng.usize(..50) == 0 { 0.5 / (1.0 - self.rng.f64()).powf(0.7) } else { 0.0 };
            (level * (1.0 + slow + 0.1 * self.rng.f64() + tail)).max(1.0) as u64
        });
        times.collect()
    }

    /// Two groups measured in turns, the second slower by this factor.
    fn sides(&mut self, factor: f64) -> (Group, Group) {
        let (mut a, mut b) = (Vec::new(), Vec::new());
        for pair in 0..RUNS {
            let first_a = self.rng.usize(..2) == 0;
            for of_a in [first_a, !first_a] {
                let run = self.run(if of_a { 1.0 } else { factor }, pair);
                if of_a { a.push(run) } else { b.push(run) }
            }
        }
        (group("a", a), group("b", b))
    }
}

fn without_pairs(group: &Group) -> Group {
    let mut group = group.clone();
    group.members.iter_mut().for_each(|member| member.run.context.clear());
    group
}

/// The number out of 100 comparisons with this verdict: measured in turns, and as plain groups.
fn said(factor: f64, seed: u64, word: &str) -> [usize; 2] {
    let mut found = [0, 0];
    for trial in 0..100 {
        let (a, b) = Machine::new(seed + trial).sides(factor);
        found[0] += usize::from(compared(&a, &b).overall.word() == word);
        found[1] += usize::from(compared(&without_pairs(&a), &without_pairs(&b)).overall.word() == word);
    }
    found
}

#[test]
fn equals_are_called_so_in_95_of_100_comparisons() {
    let found = said(1.0, 1000, "no difference");
    assert!(found.iter().all(|count| *count >= 95), "{found:?}");
}

#[test]
fn five_percent_are_found_in_90_of_100_comparisons() {
    let found = said(1.05, 5000, "slower");
    assert!(found.iter().all(|count| *count >= 90), "{found:?}");
}
