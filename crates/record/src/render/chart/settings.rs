//! A chart of times in several settings of an experiment, beside each other.
//! Not here: which settings there are (`background`, `inversion`).

use super::{Chart, Dot, Series, Tick, label, percent, rows};
use crate::schema::Run;
use page::Axis;

/// A line: a time for each setting.
pub(crate) struct Line {
    pub(crate) name: &'static str,
    /// Its meaning, for the legend.
    pub(crate) meaning: &'static str,
    /// Style of the line.
    pub(crate) look: &'static str,
    /// In clock units; `None` without calls.
    pub(crate) times: Vec<Option<u64>>,
}

/// Draws the lines over the settings; `None` without any time.
pub(crate) fn by_setting(run: &Run, settings: &[&str], lines: &[Line], caption: String) -> Option<Chart> {
    let times = lines.iter().flat_map(|line| line.times.iter().flatten());
    let up = Axis::around(times.map(|time| *time as f64))?;
    let across = Axis::linear(0.0, settings.len() as f64);
    let place = |at: usize| across.at(at as f64 + 0.5);
    let dots = |line: &Line| {
        let dot = |(at, (setting, time)): (usize, (&&str, &Option<u64>))| {
            let time = (*time)? as f64;
            let title = format!("{setting}, {}: {}", line.name, run.clock.unit.show(time));
            Some(Dot::new(place(at), up.at(time), title))
        };
        settings.iter().zip(&line.times).enumerate().filter_map(dot).collect::<Vec<_>>()
    };
    let series = lines.iter().map(|line| Series {
        name: line.name.to_owned(),
        meaning: line.meaning,
        label_at: 0.0,
        look: line.look.to_owned(),
        dots: dots(line),
        dotted: true,
    });
    let mut series: Vec<Series> = series.filter(|line| !line.dots.is_empty()).collect();
    label(&mut series);
    let column = |(at, setting): (usize, &&str)| Tick {
        percent: percent(place(at)),
        label: (*setting).to_owned(),
        wide: false,
    };
    Some(Chart {
        caption,
        columns: settings.iter().enumerate().map(column).collect(),
        rows: rows(run, up),
        series,
        limits: Vec::new(),
    })
}
