//! Notes of a description: what it is made of, what it lacks, what is assumed.
//! Not here: the rules (the files of each).

use units::{counted, duration};

use super::Counted;
use super::sizes::{ASSUMED, Sizes};
use crate::recording::Selected;

pub(super) fn of(
    selected: &Selected<'_>,
    made: &Counted,
    sizes: &Sizes,
    threads: usize,
    seed: u64,
) -> Vec<String> {
    let recording = selected.recording;
    let oneway = selected.each().filter(|call| call.oneway).count();
    let inner = selected.each().filter(|call| call.parent.is_some()).count();
    let mut notes = vec![
        format!(
            "Made of a trace: {} in {}, {oneway} of them oneway, {inner} made while another one was served.",
            counted(selected.calls.len() as u64, "call"),
            duration(selected.ns() as f64),
        ),
        format!(
            "Threads that make calls of their own accord: {threads}, in a timer's rhythm: {}. Calls that came by time: {}; the others came when an earlier one was over.",
            made.periodic, made.by_time,
        ),
    ];
    let (unfit, left) = (recording.unfit, selected.left_out);
    for (count, why) in [
        (unfit.failed, "failed"),
        (unfit.cut, "had no end in the trace"),
        (unfit.doubtful, "may lack events"),
        (unfit.beyond, "came after the most that is kept of a trace"),
        (left.other_time, "came at another time than asked for"),
        (left.beyond, "were more than asked for"),
        (left.processes, "were of processes with few calls"),
        (left.orphans, "were made for a call that is left out"),
        (made.deep, "were made too deep within others"),
    ] {
        if count > 0 {
            notes.push(format!("Left out: {} that {why}.", counted(count, "call")));
        }
    }
    if !recording.shown.switches {
        notes.push(
            "The trace does not show when threads ran (no sched_switch): times up to 50 us are work, longer ones sleep."
                .to_owned(),
        );
    }
    if sizes.from_others > 0 {
        notes.push(format!(
            "Sizes that the trace lacks, drawn from those of other calls: {} (seed {seed}).",
            sizes.from_others
        ));
    }
    if sizes.assumed > 0 {
        let (least, largest) = ASSUMED;
        notes.push(format!(
            "Sizes that the trace lacks, assumed: {}, log-uniform from {least} to {largest} bytes, median {:.0} (seed {seed}).",
            sizes.assumed,
            (f64::from(least) * f64::from(largest)).sqrt(),
        ));
    }
    notes
}
