//! Rules that a record must keep beyond its types, so that renderers can rely on them.
//! Not here: parsing (`crate::read`).

mod experiment;
mod latency;

use super::ReadError;
use crate::distribution::{Distribution, bucket_width};
use crate::schema::{Case, CpuLooks, Figure, Measurement, Repetition, Run};
use std::collections::HashSet;

const MAX_NAME: usize = 200;
const MAX_CASES: usize = 10_000;
const MAX_REPETITIONS: usize = 100_000;

/// Description of a broken rule.
type Problem = String;

pub(super) fn run(run: &Run) -> Result<(), ReadError> {
    let inconsistent = |place: &str, problem| ReadError::Inconsistent {
        place: units::visible::printable(place).into_owned(),
        problem,
    };
    if run.cases.len() > MAX_CASES {
        let problem = format!("{} cases, more than {MAX_CASES}", run.cases.len());
        return Err(inconsistent("cases", problem));
    }
    if crate::date::milliseconds(&run.started).is_none() {
        return Err(inconsistent("started", "it is no date of RFC 3339".to_owned()));
    }
    let mut names = HashSet::new();
    for case in &run.cases {
        self::case(case).map_err(|problem| inconsistent(&case.name, problem))?;
        if !names.insert(case.name.as_str()) {
            return Err(inconsistent(&case.name, "the name occurs twice".to_owned()));
        }
    }
    experiment::run(run).map_err(|problem| inconsistent("experiment", problem))?;
    latency::run(run).map_err(|problem| inconsistent("latency", problem))
}

fn case(case: &Case) -> Result<(), Problem> {
    name(&case.name)?;
    name(&case.family)?;
    if case.threads == 0 {
        return Err("no threads".to_owned());
    }
    if case.repetitions.len() > MAX_REPETITIONS {
        return Err(format!("{} repetitions, more than {MAX_REPETITIONS}", case.repetitions.len()));
    }
    for repetition in &case.repetitions {
        let Repetition { index, outcome } = repetition;
        if outcome.measured().is_some_and(|numbers| numbers.iterations == 0) {
            return Err(format!("repetition {index}: measured, yet no iteration"));
        }
        if let Some(numbers) = outcome.numbers() {
            measurement(numbers).map_err(|problem| format!("repetition {index}: {problem}"))?;
        }
    }
    latency::case(case)
}

fn name(name: &str) -> Result<(), Problem> {
    let allowed = |c: char| c.is_ascii_alphanumeric() || "_/:.-".contains(c);
    if name.is_empty() || name.len() > MAX_NAME || !name.chars().all(allowed) {
        return Err(format!("a name is 1 to {MAX_NAME} of letters, digits and _/:.-"));
    }
    Ok(())
}

fn measurement(numbers: &Measurement) -> Result<(), Problem> {
    if numbers.samples.count > numbers.iterations {
        return Err(format!("{} samples of {} iterations", numbers.samples.count, numbers.iterations));
    }
    if let Some(CpuLooks { taken, together }) = numbers.cpus.filter(|looks| looks.together > looks.taken) {
        return Err(format!("both sides on one CPU in {together} looks of {taken}"));
    }
    if let Some(stated) = &numbers.stated {
        let sound =
            |figure: &Figure| [figure.value, figure.within].iter().all(|value| (0.0..1e19).contains(value));
        if !stated.figures().all(|figure| sound(&figure)) || numbers.samples.count > 0 {
            return Err("stated figures that are no times, or beside samples".to_owned());
        }
    }
    distribution(&numbers.samples)
}

fn distribution(samples: &Distribution) -> Result<(), Problem> {
    let digits = samples.significant_digits;
    if !(1..=5).contains(&digits) {
        return Err(format!("{digits} significant digits, not 1 to 5"));
    }
    let mut count = 0u64;
    let mut free_from = 0u64;
    for &(value, number) in &samples.buckets {
        let width = bucket_width(value, digits);
        if value < free_from || value % width != 0 || number == 0 {
            return Err(format!("bucket [{value}, {number}] is empty, off its grid or out of order"));
        }
        free_from = value.saturating_add(width);
        count = count.checked_add(number).ok_or("the buckets' counts overflow")?;
    }
    if count != samples.count {
        return Err(format!("count is {}, the buckets hold {count}", samples.count));
    }
    bounds(samples)
}

/// Minimum, maximum and sum must be possible for these buckets.
fn bounds(samples: &Distribution) -> Result<(), Problem> {
    let Distribution { min, max, sum, count, overflow, .. } = *samples;
    let (Some(&(first, _)), Some(&(last, in_last))) = (samples.buckets.first(), samples.buckets.last())
    else {
        return match (min, max, sum, overflow) {
            (0, 0, 0, 0) => Ok(()),
            _ => Err("no samples, yet a least, greatest or sum".to_owned()),
        };
    };
    let within = |value: u64, bucket: u64| {
        (bucket..=bucket.saturating_add(bucket_width(bucket, samples.significant_digits) - 1))
            .contains(&value)
    };
    let over = overflow > 0;
    let max_fits = if over { max >= last } else { within(max, last) };
    let min_fits = within(min, first) || (over && overflow == count && min >= first);
    if min > max || !min_fits || !max_fits || overflow > in_last {
        return Err(format!("least {min} and greatest {max} lie outside their buckets"));
    }
    let total = |of: &dyn Fn(u64) -> u64| -> u128 {
        samples.buckets.iter().map(|&(value, number)| u128::from(of(value)) * u128::from(number)).sum()
    };
    let width = |value| bucket_width(value, samples.significant_digits);
    let low = total(&|value| value.max(min));
    // Samples above the range of the buckets are in the last one.
    let high = match over {
        true => u128::from(max) * u128::from(count),
        false => total(&|value| value.saturating_add(width(value) - 1).min(max)),
    };
    if sum != u64::MAX && !(low..=high).contains(&u128::from(sum)) {
        return Err(format!("sum {sum} is not between {low} and {high}, as the buckets require"));
    }
    Ok(())
}
