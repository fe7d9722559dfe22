//! Room: tests by ranks, which no outlier impresses: Mann and Whitney's for two groups, Wilcoxon's for pairs; and
//! Holm's correction where many are made.
//! Not here: how large a difference is (`super::shift`).
//!
//! With few values the distribution is counted out, over the ranks as they are, ties among them; with
//! many it is normal, with the corrections for ties and for whole numbers.

use super::normal_below;

/// Groups of together at most so many values are counted out.
const COUNTED: usize = 40;

/// What a test by ranks found.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct RankTest {
    /// Mann and Whitney's U of the first group (pairs in which it is the greater, half of those that tie); of
    /// Wilcoxon's test the sum of the ranks of positive differences.
    pub statistic: f64,
    /// Probability of a statistic at least so far off, either way, if there is no difference.
    pub p: f64,
    /// The same, only upwards: small if the first group (the differences) lies high.
    pub p_greater: f64,
    /// Counted out; else by the normal distribution.
    pub exact: bool,
}

/// Whether two groups differ in where they lie; `None` if one is empty.
#[must_use]
pub fn mann_whitney(first: &[f64], second: &[f64]) -> Option<RankTest> {
    let (m, n) = (first.len(), second.len());
    if m == 0 || n == 0 {
        return None;
    }
    let all: Vec<f64> = first.iter().chain(second).copied().collect();
    let Ranks { doubled, ties } = ranked(&all);
    let sum: usize = doubled[..m].iter().sum();
    let u = (sum as f64 - (m * (m + 1)) as f64) / 2.0;
    if all.len() <= COUNTED {
        let mut ways = vec![vec![0.0; doubled.iter().sum::<usize>() + 1]; m + 1];
        ways[0][0] = 1.0;
        for &rank in &doubled {
            for taken in (1..=m).rev() {
                let (before, after) = ways.split_at_mut(taken);
                for (to, from) in after[0][rank..].iter_mut().zip(&before[taken - 1]) {
                    *to += from;
                }
            }
        }
        return Some(counted(u, &ways[m], sum));
    }
    let (count, product) = (all.len() as f64, (m * n) as f64);
    let variance = product / 12.0 * (count + 1.0 - ties / (count * (count - 1.0)));
    Some(normal(u, product / 2.0, variance))
}

/// Whether differences of pairs lie around 0; differences of 0 say nothing and are left out. `None` without
/// any difference at all.
#[must_use]
pub fn signed_rank(differences: &[f64]) -> Option<RankTest> {
    if differences.is_empty() {
        return None;
    }
    let told: Vec<f64> = differences.iter().copied().filter(|difference| *difference != 0.0).collect();
    let sizes: Vec<f64> = told.iter().map(|difference| difference.abs()).collect();
    let Ranks { doubled, ties } = ranked(&sizes);
    let positive = doubled.iter().zip(&told).filter(|(_, difference)| **difference > 0.0);
    let sum: usize = positive.map(|(rank, _)| rank).sum();
    let statistic = sum as f64 / 2.0;
    if told.len() <= COUNTED {
        let mut ways = vec![0.0; doubled.iter().sum::<usize>() + 1];
        ways[0] = 1.0;
        for &rank in &doubled {
            for at in (rank..ways.len()).rev() {
                ways[at] += ways[at - rank];
            }
        }
        return Some(counted(statistic, &ways, sum));
    }
    let n = told.len() as f64;
    let variance = n * (n + 1.0) * (2.0 * n + 1.0) / 24.0 - ties / 48.0;
    Some(normal(statistic, n * (n + 1.0) / 4.0, variance))
}

/// Holm's correction: each p-value so enlarged that all of them can be held to one limit together.
#[must_use]
pub fn holm(p: &[f64]) -> Vec<f64> {
    let mut order: Vec<usize> = (0..p.len()).collect();
    order.sort_by(|one, other| p[*one].total_cmp(&p[*other]));
    let mut adjusted = vec![1.0; p.len()];
    let mut least = 0.0f64;
    for (place, &at) in order.iter().enumerate() {
        least = least.max(p[at] * (p.len() - place) as f64).min(1.0);
        adjusted[at] = least;
    }
    adjusted
}

/// The rank of each value, from 1; those of ties are the middle of theirs.
#[must_use]
pub fn ranks(values: &[f64]) -> Vec<f64> {
    ranked(values).doubled.into_iter().map(|rank| rank as f64 / 2.0).collect()
}

/// Twice the ranks, so that those of ties are whole, and the sum of t^3 - t over the ties.
struct Ranks {
    doubled: Vec<usize>,
    ties: f64,
}

fn ranked(values: &[f64]) -> Ranks {
    let mut order: Vec<usize> = (0..values.len()).collect();
    order.sort_by(|one, other| values[*one].total_cmp(&values[*other]));
    let mut ranks = Ranks { doubled: vec![0; values.len()], ties: 0.0 };
    let mut done = 0;
    for tied in order.chunk_by(|one, other| values[*one] == values[*other]) {
        // First and last rank of them, together.
        let both = (done + 1) + (done + tied.len());
        tied.iter().for_each(|&at| ranks.doubled[at] = both);
        let size = tied.len() as f64;
        ranks.ties += size.powi(3) - size;
        done += tied.len();
    }
    ranks
}

/// By the number of ways to each sum of doubled ranks.
fn counted(statistic: f64, ways: &[f64], sum: usize) -> RankTest {
    let all: f64 = ways.iter().sum();
    let below: f64 = ways[..=sum].iter().sum::<f64>() / all;
    let above: f64 = ways[sum..].iter().sum::<f64>() / all;
    RankTest { statistic, p: (2.0 * below.min(above)).min(1.0), p_greater: above.min(1.0), exact: true }
}

fn normal(statistic: f64, mean: f64, variance: f64) -> RankTest {
    if variance <= 0.0 {
        return RankTest { statistic, p: 1.0, p_greater: 1.0, exact: false };
    }
    let off = (statistic - mean).abs() - 0.5;
    RankTest {
        statistic,
        p: (2.0 * above(off / variance.sqrt())).min(1.0),
        p_greater: above((statistic - mean - 0.5) / variance.sqrt()),
        exact: false,
    }
}

/// Probability of a normal variable to lie so many deviations above its mean, or further.
fn above(z: f64) -> f64 {
    let below = normal_below(z.abs().min(9.0));
    if z < 0.0 { below } else { 1.0 - below }
}
