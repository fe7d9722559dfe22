//! Rank tests, which are robust to outliers: Mann-Whitney for two groups, Wilcoxon's signed-rank test for pairs, and
//! Holm's correction for multiple tests.
//! Not here: the size of a difference (`super::shift`).
//!
//! With few values the exact permutation distribution is used, ties included; with many the normal approximation with
//! corrections for ties and continuity.

use super::normal_below;

/// Largest total number of values for which the exact distribution is used.
const COUNTED: usize = 40;

/// The result of a rank test.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct RankTest {
    /// Two-sided p-value.
    pub p: f64,
    /// One-sided p-value: small if the first group, or the differences, are high.
    pub p_greater: f64,
}

/// Mann-Whitney test whether two groups differ in location; `None` if one is empty.
#[must_use]
pub fn mann_whitney(first: &[f64], second: &[f64]) -> Option<RankTest> {
    let (m, n) = (first.len(), second.len());
    if m == 0 || n == 0 {
        return None;
    }
    let all: Vec<f64> = first.iter().chain(second).copied().collect();
    let Ranks { doubled, ties } = ranked(&all);
    let sum: usize = doubled[..m].iter().sum();
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
        return Some(counted(&ways[m], sum));
    }
    let (count, product) = (all.len() as f64, (m * n) as f64);
    let variance = product / 12.0 * (count + 1.0 - ties / (count * (count - 1.0)));
    // U: the pairs in which the first group is greater; ties count half.
    let u = (sum as f64 - (m * (m + 1)) as f64) / 2.0;
    Some(normal(u, product / 2.0, variance))
}

/// Wilcoxon's signed-rank test whether paired differences are centred at 0; zero differences are left out. `None`
/// without any other difference.
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
    if told.len() <= COUNTED {
        let mut ways = vec![0.0; doubled.iter().sum::<usize>() + 1];
        ways[0] = 1.0;
        for &rank in &doubled {
            for at in (rank..ways.len()).rev() {
                ways[at] += ways[at - rank];
            }
        }
        return Some(counted(&ways, sum));
    }
    let n = told.len() as f64;
    let variance = n * (n + 1.0) * (2.0 * n + 1.0) / 24.0 - ties / 48.0;
    Some(normal(sum as f64 / 2.0, n * (n + 1.0) / 4.0, variance))
}

/// Holm's correction: p-values adjusted for the number of tests.
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

/// Ranks of the values, from 1; tied values share their mean rank.
#[must_use]
pub fn ranks(values: &[f64]) -> Vec<f64> {
    ranked(values).doubled.into_iter().map(|rank| rank as f64 / 2.0).collect()
}

/// Doubled ranks, so that shared ranks are integers, and the sum of t^3 - t over groups of t ties.
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
        // Sum of the first and last rank of a tie.
        let both = (done + 1) + (done + tied.len());
        tied.iter().for_each(|&at| ranks.doubled[at] = both);
        let size = tied.len() as f64;
        ranks.ties += size.powi(3) - size;
        done += tied.len();
    }
    ranks
}

/// A test result from the exact distribution: `ways[s]` is the number of ways to a sum of doubled ranks.
fn counted(ways: &[f64], sum: usize) -> RankTest {
    let all: f64 = ways.iter().sum();
    let below: f64 = ways[..=sum].iter().sum::<f64>() / all;
    let above: f64 = ways[sum..].iter().sum::<f64>() / all;
    RankTest { p: (2.0 * below.min(above)).min(1.0), p_greater: above.min(1.0) }
}

fn normal(statistic: f64, mean: f64, variance: f64) -> RankTest {
    if variance <= 0.0 {
        return RankTest { p: 1.0, p_greater: 1.0 };
    }
    let off = (statistic - mean).abs() - 0.5;
    RankTest {
        p: (2.0 * above(off / variance.sqrt())).min(1.0),
        p_greater: above((statistic - mean - 0.5) / variance.sqrt()),
    }
}

/// Probability that a standard normal variable is at least `z`.
fn above(z: f64) -> f64 {
    let below = normal_below(z.abs().min(9.0));
    if z < 0.0 { below } else { 1.0 - below }
}
