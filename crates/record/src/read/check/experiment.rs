//! Rules for the results of an experiment.
//! Not here: rules for its cases (`super`).

use super::Problem;
use crate::schema::{Background, Overload, Run};

/// Longest accepted list of rows or CPUs.
const MAX_LIST: usize = 10_000;

/// Checks the experiment of a run, if it is one.
pub(super) fn run(run: &Run) -> Result<(), Problem> {
    run.overload.as_ref().map_or(Ok(()), overload)?;
    run.background.as_ref().map_or(Ok(()), background)
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
    use crate::fixtures::{background_run, overload_run};
    use crate::schema::Run;

    #[test]
    fn more_misses_than_calls_and_no_cpu_are_refused() {
        let mut run = overload_run([0, 2, 33, 50]);
        assert_eq!(Run::from_json(run.to_json().as_bytes()).expect("sound"), run);
        run.overload.as_mut().expect("the experiment").rows[1].misses = 101;
        assert!(run.check().is_err_and(|error| error.to_string().contains("101 misses of 100 calls")));
        let mut run = background_run(true);
        assert_eq!(Run::from_json(run.to_json().as_bytes()).expect("sound"), run);
        run.background.as_mut().expect("the experiment").rows[0].late = 101;
        assert!(run.check().is_err_and(|error| error.to_string().contains("101 late of 100 calls")));
        let mut run = overload_run([0; 4]);
        run.overload.as_mut().expect("the experiment").cpus.clear();
        assert!(run.check().is_err());
    }
}
