//! Speed limits of the embedded driver: the ratio of a round trip to the floor of the machine, throughput of
//! many pairs, growth of cost and memory with the driver's contents.
//! Not here: printing. Limits hold for the driver, by bare exchanges with it (the raw control's command
//! streams, which go to the kernel's driver as ioctls); the runtime on top of it is measured as well.

mod crowd;
mod growth;
mod memory;
mod role;
mod row;
mod trip;

use procgroup::RoleEntry;

pub use row::{Limit, Row, Unit};

/// Duration of one batch of round trips, in seconds.
const LAP_S: f64 = 0.06;

/// The role of this module's workers, for [`crate::start_worker`]. The command line does without.
pub const ROLE: RoleEntry = RoleEntry::of::<role::SpeedRole>();

/// Returns the header line of the table.
#[must_use]
pub fn head() -> String {
    let load: Vec<String> =
        host::facts(host::class()).load_avg.iter().map(|load| format!("{load:.2}")).collect();
    format!(
        "The embedded driver beside this machine's floors. Limits hold for the driver, by bare exchanges;\n\
         the runtime's ratio stands beside. Medians of rounds, each round's ratio by its own floor. Load {}.\n\n{}\n",
        load.join(" "),
        row::HEAD
    )
}

/// Checks that `only` selects a row or a group of rows.
///
/// # Errors
/// No title contains it; the text lists the titles.
pub fn check(only: &str) -> Result<(), String> {
    let trips = trip::TRIPS.iter().map(|trip| trip.title.to_owned());
    let crowds = crowd::crowds().map(crowd::Crowd::title);
    let growths = growth::GROWTHS.iter().map(|growth| growth.title());
    let titles: Vec<String> = trips.chain(crowds).chain(growths).collect();
    if titles.iter().any(|title| title.contains(only)) {
        return Ok(());
    }
    Err(format!("no row has {only:?} in its title; there are: {}", titles.join("; ")))
}

fn heed_signals() -> Result<(), String> {
    match sys::stop_signal::received() {
        Some(signal) => Err(format!("stopped by {signal}")),
        None => Ok(()),
    }
}

/// Measures every row, or group of rows, whose title contains `only`; passes each to `tell` as it is finished,
/// or its title and the reason of the failure. Returns true if every row was measured and is within its limit.
///
/// # Errors
/// A signal requested a stop.
pub fn measure(
    rounds: usize,
    only: &str,
    mut tell: impl FnMut(Result<&Row, (&str, &str)>),
) -> Result<bool, String> {
    sys::stop_signal::catch().map_err(|error| sys::errno::describe(&error))?;
    let mut all_met = true;
    let mut add = |title: &str, made: Result<Vec<Row>, String>| {
        heed_signals()?;
        match made {
            Ok(rows) => {
                rows.iter().for_each(|row| tell(Ok(row)));
                all_met &= rows.iter().all(Row::is_met);
            }
            Err(why) => {
                tell(Err((title, &why)));
                all_met = false;
            }
        }
        Ok::<(), String>(())
    };
    let mut same_cpu = None;
    for trip in trip::TRIPS.into_iter().filter(|trip| trip.title.contains(only)) {
        let made = trip::measure(trip, rounds, same_cpu);
        if let (None, Ok(row)) = (same_cpu, &made) {
            same_cpu = row.beside.as_ref().map(|(_, floor)| *floor);
        }
        add(trip.title, made.map(|row| vec![row]))?;
    }
    for crowd in crowd::crowds().into_iter().filter(|crowd| crowd.title().contains(only)) {
        add(&crowd.title(), crowd::measure(crowd, rounds))?;
    }
    for growth in growth::GROWTHS.into_iter().filter(|growth| growth.title().contains(only)) {
        add(&growth.title(), growth::measure(growth, rounds))?;
    }
    Ok(all_met)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_table_without_rows_is_refused_with_the_rows_there_are() {
        for fine in ["", "sleeping", "pair", "nodes"] {
            assert_eq!(check(fine), Ok(()), "{fine}");
        }
        let why = check("nosuchrow").expect_err("no such row");
        assert!(why.contains("nosuchrow") && why.contains("sleeping, one CPU, 4 B"), "{why}");
    }
}
