//! Room: the embedded driver held to its targets: how far one round trip is from the floor of the machine,
//! whether throughput collapses in a crowd, whether cost and memory grow with what a driver holds.
//! Not here: printing.
//! Targets hold for the driver, by bare exchanges with it (the raw control's command streams, as they
//! would go to the kernel's in ioctls); the runtime on it is measured beside.

mod crowd;
mod distance;
mod growth;
mod helper;
mod memory;
pub mod role;
mod row;
mod trip;

use std::path::Path;

use record::{Host, Tool};
use serde::Serialize;
use sys::local_time::LocalTime;

pub use row::{Limit, Row, Spread, Unit, Verdict};

/// How long one batch of round trips lasts, in seconds.
const LAP_S: f64 = 0.06;

/// What is measured, and how often.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Effort {
    /// Rounds of every row.
    pub rounds: usize,
    /// Only rows, or groups of rows, in whose title this stands.
    pub only: String,
}

impl Default for Effort {
    fn default() -> Self {
        Self { rounds: 9, only: String::new() }
    }
}

/// The whole table, as a document.
#[derive(Clone, Debug, Serialize)]
pub struct Table {
    schema: &'static str,
    version: u32,
    started: String,
    tool: Tool,
    host: Host,
    /// The rows that could be measured.
    pub rows: Vec<Row>,
    /// The rows that could not, and why.
    pub unmeasured: Vec<(String, String)>,
}

impl Table {
    /// Whether every row was measured and none missed its target.
    #[must_use]
    pub fn is_met(&self) -> bool {
        self.unmeasured.is_empty() && self.rows.iter().all(|row| row.verdict != Verdict::Missed)
    }

    /// The document's text.
    ///
    /// # Errors
    /// None in normal work.
    pub fn to_json(&self) -> Result<String, String> {
        serde_json::to_string_pretty(self).map(|text| text + "\n").map_err(|error| error.to_string())
    }
}

/// The table's head: what its columns are.
#[must_use]
pub fn head() -> String {
    let load: Vec<String> =
        crate::host::facts(crate::host::class()).load_avg.iter().map(|load| format!("{load:.2}")).collect();
    format!(
        "The embedded driver beside this machine's floors. Targets hold for the driver, by bare exchanges;\n\
         the runtime's ratio stands beside. Medians of rounds, each round's ratio by its own floor. Load {}.\n\n{}\n",
        load.join(" "),
        row::HEAD
    )
}

/// The titles of all rows and groups of rows.
fn titles() -> Vec<String> {
    let trips = trip::TRIPS.iter().map(|trip| trip.title.to_owned());
    let crowds = crowd::crowds().map(crowd::Crowd::title);
    trips.chain(crowds).chain(growth::GROWTHS.iter().map(|growth| growth.title())).collect()
}

impl Effort {
    /// Whether there is anything to measure.
    ///
    /// # Errors
    /// No row is meant; which there are.
    pub fn check(&self) -> Result<(), String> {
        let titles = titles();
        if titles.iter().any(|title| title.contains(&self.only)) {
            return Ok(());
        }
        Err(format!("no row has {:?} in its title; there are: {}", self.only, titles.join("; ")))
    }
}

fn heed_signals() -> Result<(), String> {
    match sys::stop_signal::received() {
        Some(signal) => Err(format!("stopped by {signal}")),
        None => Ok(()),
    }
}

/// Measures every row; `tell` hears each as it comes, or its title and why there is none. This binary is
/// started again for other processes, so it must pass its words on to [`role::play`] and
/// [`crate::stage::role::play`].
///
/// # Errors
/// This program cannot be found, or was told to stop.
pub fn measure(effort: Effort, mut tell: impl FnMut(Result<&Row, (&str, &str)>)) -> Result<Table, String> {
    let program = std::env::current_exe()
        .map_err(|error| format!("looking for this program: {}", sys::errno::describe(&error)))?;
    sys::stop_signal::catch().map_err(|error| sys::errno::describe(&error))?;
    let mut table = Table {
        schema: "binderperf-embedded-speed",
        version: 1,
        started: LocalTime::now().to_string(),
        tool: crate::host::tool(),
        host: crate::host::facts(crate::host::class()),
        rows: Vec::new(),
        unmeasured: Vec::new(),
    };
    let mut add = |title: &str, made: Result<Vec<Row>, String>| {
        heed_signals()?;
        match made {
            Ok(rows) => {
                rows.iter().for_each(|row| tell(Ok(row)));
                table.rows.extend(rows);
            }
            Err(why) => {
                tell(Err((title, &why)));
                table.unmeasured.push((title.to_owned(), why));
            }
        }
        Ok::<(), String>(())
    };
    all(effort, &program, &mut add)?;
    Ok(table)
}

fn all(
    Effort { rounds, only }: Effort,
    program: &Path,
    add: &mut impl FnMut(&str, Result<Vec<Row>, String>) -> Result<(), String>,
) -> Result<(), String> {
    let mut same_cpu = None;
    for trip in trip::TRIPS.into_iter().filter(|trip| trip.title.contains(&only)) {
        let made = trip::measure(trip, program, rounds, same_cpu);
        if let (None, Ok(row)) = (same_cpu, &made) {
            same_cpu = row.beside.as_ref().map(|(_, floor)| *floor);
        }
        add(trip.title, made.map(|row| vec![row]))?;
    }
    for crowd in crowd::crowds().into_iter().filter(|crowd| crowd.title().contains(&only)) {
        add(&crowd.title(), crowd::measure(crowd, program, rounds))?;
    }
    for growth in growth::GROWTHS.into_iter().filter(|growth| growth.title().contains(&only)) {
        add(&growth.title(), growth::measure(growth, program, rounds))?;
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn table(ratios: &[f64]) -> Table {
        let row = |ratio: &f64| {
            let spread = Spread::of(&[*ratio]).expect("a round");
            Row::new("a row", Unit::Ns, 1.0, None, spread, Limit::AtMost(1.6))
        };
        Table {
            schema: "test",
            version: 1,
            started: String::new(),
            tool: Tool::default(),
            host: crate::host::facts(crate::host::class()),
            rows: ratios.iter().map(row).collect(),
            unmeasured: Vec::new(),
        }
    }

    #[test]
    fn one_missed_or_unmeasured_row_fails_the_table() {
        assert!(table(&[1.0, 1.6]).is_met());
        assert!(!table(&[1.0, 1.7]).is_met());
        let mut unmeasured = table(&[1.0]);
        unmeasured.unmeasured.push(("a row".to_owned(), "there is one CPU".to_owned()));
        assert!(!unmeasured.is_met());
    }

    #[test]
    fn a_table_without_rows_is_refused_with_the_rows_there_are() {
        let only = |only: &str| Effort { only: only.to_owned(), ..Effort::default() };
        for fine in ["", "sleeping", "pair", "nodes"] {
            assert_eq!(only(fine).check(), Ok(()), "{fine}");
        }
        let why = only("nosuchrow").check().expect_err("no such row");
        assert!(why.contains("nosuchrow") && why.contains("sleeping, one CPU, 4 B"), "{why}");
    }

    #[test]
    fn the_document_carries_verdict_and_spread() {
        let text = table(&[1.7]).to_json().expect("text");
        for part in ["\"verdict\": \"missed\"", "\"at_most\": 1.6", "\"median\": 1.7", "\"unit\": \"ns\""] {
            assert!(text.contains(part), "{part}: {text}");
        }
    }
}
