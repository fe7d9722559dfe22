//! Rules for the results of an experiment.
//! Not here: rules for its cases (`super`).

use super::Problem;
use crate::schema::{Background, Measured, Overload, Run};

/// Longest accepted list of rows or CPUs.
const MAX_LIST: usize = 10_000;

/// Checks the experiment of a run, if it is one.
pub(super) fn run(run: &Run) -> Result<(), Problem> {
    match &run.measured {
        Measured::Overload(experiment) => overload(experiment),
        Measured::Background(experiment) => background(experiment),
        Measured::Cases | Measured::Latency(_) | Measured::Inversion(_) => Ok(()),
    }
}

fn background(experiment: &Background) -> Result<(), Problem> {
    if experiment.rows.len() > MAX_LIST {
        return Err(format!("more than {MAX_LIST} rows"));
    }
    match experiment.rows.iter().find(|row| row.late > row.calls) {
        Some(row) => Err(format!("{}: {} late of {} calls", row.case, row.late, row.calls)),
        None => Ok(()),
    }
}

fn overload(experiment: &Overload) -> Result<(), Problem> {
    let lists = [experiment.cpus.len(), experiment.rows.len()];
    if experiment.cpus.is_empty() || lists.iter().any(|length| *length > MAX_LIST) {
        return Err(format!("no CPU, or more than {MAX_LIST} CPUs or rows"));
    }
    match experiment.rows.iter().find(|row| row.misses > row.calls || row.pairs == 0) {
        Some(row) => Err(format!("{}: {} misses of {} calls", row.case, row.misses, row.calls)),
        None => Ok(()),
    }
}

#[cfg(test)]
mod tests {
    use crate::fixtures::{background, experiment_run, overload};
    use crate::schema::{Measured, Run};

    #[test]
    fn more_misses_than_calls_and_no_cpu_are_refused() {
        let refused = |measured| experiment_run(measured).check().expect_err("it is refused").to_string();
        for sound in [Measured::Overload(overload([0, 2, 33, 50])), Measured::Background(background(true))] {
            let run = experiment_run(sound);
            assert_eq!(Run::from_json(run.to_json().as_bytes()).expect("sound"), run);
        }
        let mut experiment = overload([0, 2, 33, 50]);
        experiment.rows[1].misses = 101;
        assert!(refused(Measured::Overload(experiment)).contains("101 misses of 100 calls"));
        let mut experiment = background(true);
        experiment.rows[0].late = 101;
        assert!(refused(Measured::Background(experiment)).contains("101 late of 100 calls"));
        let mut experiment = overload([0; 4]);
        experiment.cpus.clear();
        assert!(refused(Measured::Overload(experiment)).contains("no CPU"));
    }
}
