//! Room: how far apart the two CPUs were in each round, by the floor of spinning, and what came of each distance.
//! Not here: measuring (`trip`).
//! One cache line goes to the other CPU and back in about 0.05 us between two threads of a core, 0.1 us between two cores of
//! a cache, 0.3 us and more between caches; the driver's own work changes far less than that.

use record::stats::median;

/// Floors of one distance differ by less.
const APART: f64 = 1.5;

/// Whether two floors were measured at different distances.
pub(super) fn differ(one: f64, other: f64) -> bool {
    one.max(other) >= one.min(other) * APART
}

/// Tells of the distances that came about, nearest first, if there were several. `rounds`: floor and figure in ns.
pub(super) fn told(rounds: &[(f64, f64)]) -> Option<String> {
    let mut rounds = rounds.to_vec();
    rounds.sort_by(|one, other| one.0.total_cmp(&other.0));
    let distances: Vec<&[(f64, f64)]> = rounds.chunk_by(|one, other| !differ(one.0, other.0)).collect();
    if distances.len() < 2 {
        return None;
    }
    let one = |distance: &&[(f64, f64)]| {
        let of = |figure: fn(&(f64, f64)) -> f64| median(&distance.iter().map(figure).collect::<Vec<_>>());
        let (floor, value, ratio) =
            (of(|round| round.0)?, of(|round| round.1)?, of(|round| round.1 / round.0)?);
        let (floor, value) = (floor / 1e3, value / 1e3);
        Some(format!(
            "{value:.2} us beside {floor:.2}, {ratio:.2}, {} of {} rounds",
            distance.len(),
            rounds.len()
        ))
    };
    let told: Vec<String> = distances.iter().filter_map(one).collect();
    Some(format!("the CPUs were moved: {}", told.join("; ")))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn floors_of_one_distance_are_told_together_and_others_apart() {
        let rounds = [(100.0, 500.0), (360.0, 1000.0), (110.0, 550.0), (400.0, 1200.0), (104.0, 624.0)];
        assert_eq!(
            told(&rounds).as_deref(),
            Some(
                "the CPUs were moved: 0.55 us beside 0.10, 5.00, 3 of 5 rounds; \
                 1.10 us beside 0.38, 2.89, 2 of 5 rounds"
            )
        );
    }

    #[test]
    fn one_distance_is_nothing_to_tell() {
        assert_eq!(told(&[(300.0, 700.0), (330.0, 900.0), (290.0, 5000.0)]), None);
        assert_eq!(told(&[]), None);
        assert!(differ(100.0, 150.0) && differ(150.0, 100.0) && !differ(100.0, 149.0));
    }
}
