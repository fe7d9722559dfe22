//! The priority-inversion experiment in a report: the time of a call in each setting.
//! Not here: its table (`text`).

use crate::render::chart::Chart;
use crate::render::chart::settings::{Line, by_setting};
use crate::schema::{Inversion, Percentiles, Run, Setting};

/// A chart of the median and the 99th percentile of a call in each setting; `None` without calls.
pub(crate) fn chart(run: &Run, experiment: &Inversion) -> Option<Chart> {
    let line = |name, meaning, look, pick: fn(Percentiles) -> u64| Line {
        name,
        meaning,
        look,
        times: Setting::ALL.map(|setting| experiment.row(setting)?.percentiles.map(pick)).to_vec(),
    };
    let lines = [
        line("p99", "99 of 100 calls are quicker", "2", |times| times.p99),
        line("median", "half of the calls are quicker", "1", |times| times.p50),
    ];
    let caption = "Time of an urgent caller's call, without hogs (quiet), and beside hogs: without inheritance (off), with it \
                   (on), and with a server raised by hand (raised). Lower is better.";
    by_setting(run, &Setting::ALL.map(Setting::name), &lines, caption.to_owned())
}
