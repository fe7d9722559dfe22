//! The verdict on the priority-inversion experiment: whether an urgent caller waits although inheritance was asked for.
//! Not here: which calls are late (`lateness`), the sentence below the table (`text`).

use crate::schema::{DriverKind, Inversion, InversionRow, Run, Setting};
use crate::verdict::{Grade, Verdict};

/// The verdict on the experiment.
pub(crate) fn of_inversion(run: &Run, experiment: &Inversion) -> Verdict {
    let late = |row: &InversionRow| {
        (row.calls > 0)
            .then(|| format!("{:.1} % late {}", row.late as f64 * 100.0 / row.calls as f64, row.means))
    };
    let rows = [Setting::Off, Setting::On].into_iter().filter_map(|setting| experiment.row(setting));
    let number: Vec<String> = rows.filter_map(late).collect();
    let verdict = |words: &str| {
        let expected = "with inheritance few more calls are late than without hogs";
        Verdict::good("inversion", words).held_against(expected, number.join(", "))
    };
    let waits = "an urgent caller waits for less urgent tasks";
    match experiment.row(Setting::On).and_then(|row| row.inverted) {
        Some(true) if mainline(run) => verdict("INVERSION, as expected")
            .because(Grade::Note, format!("{waits}; mainline's driver passes no real-time priority on"))
            .then("binderperf inversion --driver embedded"),
        Some(true) => verdict("INVERSION").because(Grade::Bad, waits).then("binderperf inheritance"),
        Some(false) => verdict("no inversion"),
        None => verdict("cannot be told")
            .because(Grade::Note, "too few calls were made to tell")
            .then("binderperf inversion --iterations 100"),
    }
}

/// Whether the driver is one of a mainline kernel.
fn mainline(run: &Run) -> bool {
    let kind = run.driver.as_ref().map(|driver| driver.kind);
    kind.is_some_and(|kind| kind != DriverKind::Embedded) && !run.host.kernel.release.contains("android")
}
