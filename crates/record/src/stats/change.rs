//! Change-point detection: where a series changes its level or spread.
//! Not here: the series (`crate::history`).
//! Facts: E-divisive: Matteson and James, "A Nonparametric Approach for Multiple Change Point Analysis of
//! Multivariate Data", 2014. The difference of two parts of a series is the excess of the distances between them over
//! those within each. A point is kept if random permutations of the values rarely have one as strong.

use fastrand::Rng;

/// Fewest values on each side of a change.
pub const LEAST_SIDE: usize = 3;
/// Number of random permutations in the test.
const ORDERS: usize = 399;

/// A change point of a series.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Change {
    /// Index of the first value after the change.
    pub at: usize,
    /// Share of random permutations with a change as strong.
    pub p: f64,
}

/// All changes with a p-value of at most `limit`, ordered by index. A series with a value that is not finite has
/// none.
#[must_use]
pub fn changes(values: &[f64], limit: f64, seed: u64) -> Vec<Change> {
    let mut found: Vec<Change> = Vec::new();
    if values.iter().any(|value| !value.is_finite()) {
        return found;
    }
    let mut rng = Rng::with_seed(seed);
    loop {
        let borders: Vec<usize> =
            std::iter::once(0).chain(found.iter().map(|change| change.at)).chain([values.len()]).collect();
        let parts = borders.windows(2).map(|ends| (ends[0], &values[ends[0]..ends[1]]));
        let candidates = parts.filter_map(|(start, part)| {
            let (strength, at) = strongest(part)?;
            Some((strength, start + at))
        });
        let Some((strength, at)) = candidates.max_by(|one, other| one.0.total_cmp(&other.0)) else {
            return found;
        };
        let p = chance(values, &borders, strength, &mut rng);
        if p > limit {
            return found;
        }
        found.push(Change { at, p });
        found.sort_by_key(|change| change.at);
    }
}

/// Share of permutations, made within each part, with a change as strong.
fn chance(values: &[f64], borders: &[usize], strength: f64, rng: &mut Rng) -> f64 {
    let mut drawn = values.to_vec();
    let as_strong = (0..ORDERS).filter(|_| {
        borders.windows(2).any(|ends| {
            let part = &mut drawn[ends[0]..ends[1]];
            rng.shuffle(part);
            strongest(part).is_some_and(|(other, _)| other >= strength)
        })
    });
    (as_strong.count() + 1) as f64 / (ORDERS + 1) as f64
}

/// The strongest change within a part: its strength and index; `None` if the part is too short or constant.
fn strongest(part: &[f64]) -> Option<(f64, usize)> {
    let n = part.len();
    if n < 2 * LEAST_SIDE {
        return None;
    }
    // Sums of distances: between all pairs, within the left side, within the right side.
    let to_earlier = |at: usize| part[..at].iter().map(|value| (value - part[at]).abs()).sum::<f64>();
    let to_later = |at: usize| part[at + 1..].iter().map(|value| (value - part[at]).abs()).sum::<f64>();
    let all: f64 = (0..n).map(to_earlier).sum();
    let (mut left, mut right) = (0.0, all);
    let mut best: Option<(f64, usize)> = None;
    for at in 0..n {
        if (LEAST_SIDE..=n - LEAST_SIDE).contains(&at) {
            let strength = energy(all - left - right, left, right, at, n - at);
            if strength > best.map_or(0.0, |(most, _)| most) {
                best = Some((strength, at));
            }
        }
        left += to_earlier(at);
        right -= to_later(at);
    }
    best
}

/// Energy distance of two sides with `m` and `n` values, from the sums of distances between and within them.
fn energy(across: f64, left: f64, right: f64, m: usize, n: usize) -> f64 {
    let (m, n) = (m as f64, n as f64);
    let pairs = |count: f64| count * (count - 1.0) / 2.0;
    (2.0 * across / (m * n) - left / pairs(m) - right / pairs(n)) * m * n / (m + n)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn steps(levels: &[(usize, f64)], noise: f64, seed: u64) -> Vec<f64> {
        let mut rng = Rng::with_seed(seed);
        let each = levels.iter().flat_map(|&(count, level)| std::iter::repeat_n(level, count));
        each.map(|level| level + noise * crate::stats::normal(&mut rng)).collect()
    }

    #[test]
    fn changes_are_found_where_they_are() {
        let values = steps(&[(30, 100.0), (25, 105.0), (20, 98.0)], 1.0, 1);
        let found: Vec<usize> = changes(&values, 0.01, 7).iter().map(|change| change.at).collect();
        assert_eq!(found, [30, 55]);
    }

    #[test]
    fn noise_has_changes_as_rarely_as_was_asked_for() {
        let alarms =
            (0..100).filter(|&seed| !changes(&steps(&[(40, 100.0)], 2.0, seed), 0.05, seed).is_empty());
        let alarms = alarms.count();
        // With 100 series and a chance of 0.05 each, more than 11 alarms have a probability of 0.4 %.
        assert!(alarms <= 11, "{alarms}");
    }

    #[test]
    fn one_outlier_is_no_change() {
        let mut values = steps(&[(40, 100.0)], 1.0, 5);
        values[20] = 300.0;
        assert_eq!(changes(&values, 0.01, 1), []);
    }

    #[test]
    fn the_strength_is_that_of_the_definition() {
        let part = [3.0, 1.0, 4.0, 1.0, 5.0, 9.0, 2.0, 6.0, 5.0, 3.5];
        let distances = |one: &[f64], other: &[f64]| -> f64 {
            one.iter().flat_map(|a| other.iter().map(move |b| (a - b).abs())).sum()
        };
        let by_definition = |at: usize| {
            let (left, right) = part.split_at(at);
            let (m, n) = (left.len() as f64, right.len() as f64);
            let within = |side: &[f64], size: f64| distances(side, side) / (size * (size - 1.0));
            (2.0 * distances(left, right) / (m * n) - within(left, m) - within(right, n)) * m * n / (m + n)
        };
        let wanted = (LEAST_SIDE..=part.len() - LEAST_SIDE).map(|at| (by_definition(at), at));
        let wanted = wanted.max_by(|one, other| one.0.total_cmp(&other.0)).expect("some");
        let found = strongest(&part).expect("long enough");
        assert!(found.1 == wanted.1 && (found.0 - wanted.0).abs() < 1e-9, "{found:?} {wanted:?}");
    }

    #[test]
    fn short_and_constant_series_have_none() {
        assert_eq!(changes(&[], 0.05, 1), []);
        assert_eq!(changes(&[1.0, 1.0, 1.0, 9.0, 9.0], 0.05, 1), []);
        assert_eq!(changes(&[2.0; 50], 0.05, 1), []);
        assert_eq!(changes(&[1.0, 1.0, 1.0, f64::NAN, 9.0, 9.0, 9.0], 1.0, 1), []);
    }
}
