//! The background experiment in a report: the time of a call in each setting, alone and beside hogs.
//! Not here: its table as text (`text`).

use super::text::scene;
use crate::render::chart::Chart;
use crate::render::chart::settings::{Line, by_setting};
use crate::schema::{Background, Ground, Percentiles, Run};

/// A chart of the median and the 99th percentile of a call in each setting; `None` without calls.
pub(crate) fn chart(run: &Run, experiment: &Background) -> Option<Chart> {
    let line = |name, meaning, look, hogs, pick: fn(Percentiles) -> u64| Line {
        name,
        meaning,
        look,
        times: Ground::ALL.map(|ground| experiment.row(ground, hogs)?.percentiles.map(pick)).to_vec(),
    };
    let lines = [
        line("hogs, p99", "99 of 100 calls beside hogs are quicker", "2", true, |times| times.p99),
        line("hogs", "median beside hogs", "1", true, |times| times.p50),
        line("alone", "median without hogs", "control-1", false, |times| times.p50),
    ];
    let caption = format!(
        "Time of a call by who is in the background: nobody, the server, the server except in its calls (moves), the \
         caller. {}",
        scene(run, experiment).trim_end()
    );
    by_setting(run, &["nobody", "server", "moves", "caller"], &lines, caption)
}

#[cfg(test)]
mod tests {
    use super::chart;
    use crate::fixtures::{background, run};

    #[test]
    fn the_picture_compares_settings_alone_and_beside_hogs() {
        let mut experiment = background(true);
        let drawn = chart(&run(), &experiment).expect("a chart");
        let dots: Vec<usize> = drawn.series.iter().map(|line| line.dots.len()).collect();
        assert_eq!((dots, drawn.columns.len()), (vec![4, 4, 4], 4));
        let median = &drawn.series[1].dots;
        assert!(median[1].y < median[0].y, "a longer time lies higher: {median:?}");
        experiment.rows.clear();
        assert!(chart(&run(), &experiment).is_none());
    }
}
