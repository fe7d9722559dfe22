//! The trend of values over time: Theil and Sen's slope with an interval from Kendall's statistic.
//! Not here: what a trend means for a soak (`crate::soak::judge`).
//! Facts: P. K. Sen, "Estimates of the Regression Coefficient Based on Kendall's Tau", 1968; groups whose points are
//! compared only with each other: Hirsch, Slack and Smith 1982; points that depend on those before: Hamed and Rao 1998.

use super::median;
use super::rank::ranks;
use super::shift::{Estimate, student_quantile};

/// A trend.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Trend {
    /// Change of the value per unit of time.
    pub slope: Estimate,
    /// Number of points.
    pub points: usize,
}

/// The trend of points `(time, value)` in one or more groups, in order of time. Points of different groups are not compared
/// with each other, so a step between groups is no trend. Values that follow those before them widen the interval, if they
/// do so by more than `grain`. `None` if there are too few points for an interval with this confidence.
#[must_use]
pub fn theil_sen(groups: &[Vec<(f64, f64)>], confidence: f64, grain: f64) -> Option<Trend> {
    let mut slopes: Vec<f64> = groups.iter().flat_map(|group| of_pairs(group)).collect();
    slopes.sort_by(f64::total_cmp);
    let value = median(&slopes)?;
    let points: usize = groups.iter().map(Vec::len).sum();
    // Of Student's distribution, as the slope is estimated, too.
    let quantile = student_quantile(1.0 - (1.0 - confidence) / 2.0, points.checked_sub(2)?)?;
    // One pair more on each side corrects for whole numbers.
    let low = |variance: f64| {
        let low = ((slopes.len() as f64 - quantile * variance.sqrt()) / 2.0).floor() - 1.0;
        (low >= 0.0).then_some(low as usize)
    };
    // A few equal values have ties and prove nothing.
    low(groups.iter().map(|group| untied(group.len())).sum())?;
    let variance: f64 = groups.iter().map(|group| variance(group)).sum();
    let (low, last) = (low(variance * dependence(groups, value, grain))?, slopes.len() - 1);
    let slope = Estimate { value, low: slopes[low], high: slopes[last - low] };
    Some(Trend { slope, points })
}

/// Slopes between any two points of a group that differ in time.
fn of_pairs(group: &[(f64, f64)]) -> impl Iterator<Item = f64> {
    group.iter().enumerate().flat_map(move |(at, one)| {
        let later = group[at + 1..].iter().filter(move |other| other.0 > one.0);
        later.map(move |other| (other.1 - one.1) / (other.0 - one.0))
    })
}

/// Variance of Kendall's statistic of so many independent values without ties.
fn untied(n: usize) -> f64 {
    (n * n.saturating_sub(1) * (2 * n + 5)) as f64 / 18.0
}

/// Variance of Kendall's statistic of independent values, less for ties.
fn variance(group: &[(f64, f64)]) -> f64 {
    let mut values: Vec<f64> = group.iter().map(|(_, value)| *value).collect();
    values.sort_by(f64::total_cmp);
    let ties: f64 = values.chunk_by(|one, other| one == other).map(|tied| untied(tied.len())).sum();
    // Rounding cannot make it negative: all are whole numbers.
    untied(group.len()) - ties
}

/// The factor, at least 1, by which dependence of each value on those before it increases the variance.
fn dependence(groups: &[Vec<(f64, f64)>], slope: f64, grain: f64) -> f64 {
    let centred: Vec<Vec<f64>> = groups
        .iter()
        .map(|group| {
            let round = |value: f64| if grain > 0.0 { (value / grain).round() } else { value };
            let flat: Vec<f64> = group.iter().map(|(time, value)| round(value - slope * time)).collect();
            let middle = (flat.len() + 1) as f64 / 2.0;
            ranks(&flat).into_iter().map(|rank| rank - middle).collect()
        })
        .collect();
    let n: usize = groups.iter().map(Vec::len).sum();
    let all: f64 = centred.iter().flatten().map(|rank| rank * rank).sum();
    if n < 4 || all <= 0.0 {
        return 1.0;
    }
    let lagged = |lag: usize| -> f64 {
        let products = centred.iter().flat_map(|ranks| ranks.iter().zip(ranks.iter().skip(lag)));
        products.map(|(one, other)| one * other).sum::<f64>() / all
    };
    let weight = |lag: usize| ((n - lag) * (n - lag - 1) * (n - lag - 2)) as f64;
    // The removed slope has taken a part of it along, so each positive one counts, up to the first that is not.
    let linked = (1..=n / 4).map(|lag| (lag, lagged(lag))).take_while(|(_, link)| *link > 0.0);
    1.0 + 2.0 * linked.map(|(lag, link)| weight(lag) * link).sum::<f64>() / weight(0)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn points(values: impl IntoIterator<Item = f64>) -> Vec<(f64, f64)> {
        values.into_iter().enumerate().map(|(at, value)| (at as f64, value)).collect()
    }

    #[test]
    fn a_line_has_its_slope_and_an_outlier_does_not_move_it() {
        let mut line = points((0..20).map(|at| 100.0 + 3.0 * f64::from(at)));
        let exact = theil_sen(&[line.clone()], 0.99, 0.0).expect("enough");
        assert_eq!((exact.slope.low, exact.slope.value, exact.slope.high), (3.0, 3.0, 3.0));
        line[19].1 = 1e9;
        let robust = theil_sen(&[line], 0.99, 0.0).expect("enough");
        assert!((robust.slope.value - 3.0).abs() < 1e-9 && robust.slope.low > 2.9, "{robust:?}");
    }

    #[test]
    fn a_step_between_groups_is_no_trend() {
        let (low, high) = (points([5.0; 12]), points([9.0; 12]));
        let moved = high.iter().map(|(time, value)| (time + 12.0, *value)).collect();
        let apart = theil_sen(&[low.clone(), moved], 0.99, 0.0).expect("enough");
        assert_eq!((apart.slope.value, apart.points), (0.0, 24));
        let joined = points([[5.0; 12], [9.0; 12]].concat());
        assert!(theil_sen(&[joined], 0.9, 0.0).expect("enough").slope.value > 0.0);
    }

    #[test]
    fn few_points_have_no_interval() {
        let line = |n: i32| points((0..n).map(f64::from));
        assert_eq!(theil_sen(&[line(5)], 0.99, 0.0), None);
        assert_eq!(theil_sen(&[], 0.99, 0.0), None);
        assert!(theil_sen(&[line(12)], 0.99, 0.0).is_some());
        // As many points in groups of one compare nothing.
        let alone: Vec<_> = line(12).into_iter().map(|point| vec![point]).collect();
        assert_eq!(theil_sen(&alone, 0.99, 0.0), None);
    }

    #[test]
    fn values_that_follow_each_other_widen_the_interval() {
        let mut rng = fastrand::Rng::with_seed(7);
        let mut walk = 0.0;
        let noise: Vec<f64> = (0..100).map(|_| super::super::normal(&mut rng)).collect();
        let linked = noise.iter().map(|noise| {
            walk = 0.8 * walk + noise;
            walk
        });
        assert!(dependence(&[points(linked)], 0.0, 0.0) > 2.0);
        assert!(dependence(&[points(noise)], 0.0, 0.0) < 1.5);
        assert_eq!(dependence(&[points([1.0; 9])], 0.0, 0.0), 1.0);
    }
}
