//! Outputs of other programs as runs: Google Benchmark's JSON, and what Android's Binder tests print.
//! Not here: our own records (`crate::read`), writing these formats (`crate::render`).
//!
//! Nothing is made up: what an output does not tell is unknown in the run, and the figures it states stand in
//! [`Stated`], because single times are not known.

mod gbench;
mod latency;
mod throughput;

use crate::read::ReadError;
use crate::schema::{
    Case, CaseKind, Clock, ClockUnit, Cpu, Figure, Host, HostClass, Imported, Kernel, Measurement, Outcome,
    Plan, Repetition, Run, Stated, Tool,
};
/// Most runs that are read from one file.
const MOST_RUNS: usize = 1000;

/// Reads a record, or every run in the output of another program. `changed` is when the file was last changed, RFC 3339: the date
/// of outputs that have none.
///
/// # Errors
/// [`ReadError`]: of a record if the bytes are of no known program, else [`ReadError::Import`].
pub fn any(bytes: &[u8], changed: &str) -> Result<Vec<Run>, ReadError> {
    let error = match Run::from_json(bytes) {
        Ok(run) => return Ok(vec![run]),
        Err(error) => error,
    };
    let text = String::from_utf8_lossy(bytes);
    let found = if gbench::is_one(&text) {
        gbench::read(&text, changed)
    } else if throughput::is_one(&text) {
        throughput::read(&text, changed)
    } else if latency::is_one(&text) {
        latency::read(&text, changed)
    } else {
        return Err(error);
    };
    let runs = found.map_err(ReadError::Import)?;
    // What renderers rely on holds for these, too.
    runs.iter().try_for_each(Run::check)?;
    Ok(runs)
}

/// A run of another program, without cases.
fn run(program: &'static str, started: &str, notes: &[&str]) -> Run {
    let host = Host {
        class: HostClass::Unknown,
        host_name: String::new(),
        kernel: Kernel::default(),
        cpu: Cpu::default(),
        load_avg: Vec::new(),
        aslr_enabled: None,
        memory_bytes: None,
        clocksource: None,
        device: None,
        guest_kernel: Vec::new(),
        on: None,
    };
    let tool = Tool { name: program.to_owned(), ..Tool::default() };
    let plan = Plan { test: program.to_owned(), repetitions: 1, ..Plan::default() };
    let clock = Clock { name: String::new(), unit: ClockUnit::Ns, read_cost: None, resolution: None };
    let notes = notes.iter().map(|note| (*note).to_owned()).collect();
    Run {
        complete: true,
        imported: Some(Imported { program: program.to_owned(), notes }),
        ..Run::new(tool, started.to_owned(), plan, host, clock)
    }
}

/// A case with one repetition of these figures.
fn case(name: &str, threads: u32, stated: Stated) -> Case {
    Case {
        name: name.to_owned(),
        family: name.split('/').next().unwrap_or(name).to_owned(),
        family_index: 0,
        per_family_instance_index: 0,
        kind: CaseKind::Test,
        payload_bytes: 0,
        threads: threads.max(1),
        crowd: None,
        latency: None,
        label: None,
        repetitions: vec![Repetition { index: 0, outcome: Outcome::Measured(measurement(stated)) }],
    }
}

/// A repetition of which only these figures are known.
fn measurement(stated: Stated) -> Measurement {
    let calls = stated.calls.unwrap_or(1).max(1);
    let total = |mean: Option<Figure>| mean.map_or(0.0, |mean| mean.value * calls as f64) as u64;
    Measurement {
        iterations: calls,
        real_total: total(stated.mean),
        cpu_total: total(stated.cpu),
        stated: Some(Box::new(stated)),
        ..Measurement::default()
    }
}

#[cfg(test)]
mod tests;
