//! The overload experiment in a report: misses against the number of pairs.
//! Not here: its table as text (`text`).

use super::text::scene;
use crate::render::chart::{Chart, Dot, Series, Tick, label, percent};
use crate::schema::{Class, Overload, Run};
use page::Axis;

/// A chart of the share of misses against the number of pairs; `None` without calls.
pub(crate) fn chart(run: &Run, experiment: &Overload) -> Option<Chart> {
    let mut numbers: Vec<u32> = experiment.rows.iter().map(|row| row.pairs).collect();
    numbers.sort_unstable();
    numbers.dedup();
    let (first, last) = (*numbers.first()?, *numbers.last()?);
    let across = Axis::linear(f64::from(first), f64::from(last));
    let dot = |pairs: u32, share: f64, name: &str| {
        let title = format!("{}, {name}: {:.1} %", units::counted(pairs.into(), "pair"), share * 100.0);
        Dot::new(across.at(f64::from(pairs)), share, title)
    };
    let measured = Class::BOTH.into_iter().map(|class| {
        let (name, meaning, look) = match class {
            Class::Fifo => ("real-time", "both sides of each pair are SCHED_FIFO", "1"),
            Class::Other => ("ordinary", "the same pairs as ordinary threads, for comparison", "2"),
        };
        let dots = experiment.of(class).filter_map(|row| Some(dot(row.pairs, row.missed()?, name))).collect();
        line(name, meaning, look, dots)
    });
    let must = numbers.iter().map(|pairs| dot(*pairs, experiment.expected(*pairs), "must miss")).collect();
    let must = line("must miss", "real-time calls that have no CPU before the deadline", "control-1", must);
    let mut series: Vec<Series> = measured.chain([must]).filter(|line| !line.dots.is_empty()).collect();
    if series.len() < 2 {
        return None;
    }
    label(&mut series);
    let cpus = experiment.cpus.len() as u32;
    let column = |pairs: &u32| Tick {
        percent: percent(across.at(f64::from(*pairs))),
        label: if *pairs == cpus { format!("{pairs} = CPUs") } else { pairs.to_string() },
        wide: false,
    };
    let row = |share: u32| Tick {
        percent: percent(1.0 - f64::from(share) / 100.0),
        label: format!("{share} %"),
        wide: false,
    };
    Some(Chart {
        caption: format!(
            "Calls that missed the deadline, by the number of pairs. {}",
            scene(run, experiment).trim_end()
        ),
        columns: numbers.iter().map(column).collect(),
        rows: [0, 25, 50, 75, 100].map(row).into(),
        series,
        limits: Vec::new(),
    })
}

fn line(name: &str, meaning: &'static str, look: &str, dots: Vec<Dot>) -> Series {
    Series { name: name.to_owned(), meaning, label_at: 0.0, look: look.to_owned(), dots, dotted: true }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::fixtures::{overload, run};

    #[test]
    fn the_picture_has_a_line_for_each_class_and_for_what_must_miss() {
        let chart = chart(&run(), &overload([0, 2, 33, 50])).expect("a chart");
        let names: Vec<&str> = chart.series.iter().map(|line| line.name.as_str()).collect();
        assert_eq!(names, ["real-time", "ordinary", "must miss"]);
        assert_eq!(chart.columns[1].label, "2 = CPUs");
        let heights: Vec<f64> = chart.series[0].dots.iter().map(|dot| dot.y).collect();
        assert_eq!(heights, [100.0, 98.0, 67.0, 50.0], "from the top");
        assert_eq!(chart.series[2].dots[2].y, 66.67);
    }

    #[test]
    fn without_calls_there_is_no_picture() {
        let mut experiment = overload([0; 4]);
        experiment.rows.iter_mut().for_each(|row| row.calls = 0);
        assert!(chart(&run(), &experiment).is_none());
        experiment.rows.clear();
        assert!(chart(&run(), &experiment).is_none());
    }
}
