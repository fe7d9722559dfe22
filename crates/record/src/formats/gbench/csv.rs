//! Google Benchmark's CSV.
//! Not here: the context block above it (`context`).

use super::line::{Line, Status, is_shown};
use super::{Printer, Scale};
use crate::number;
use crate::ratio;
use crate::schema::{Case, CaseKind, Run};
use std::collections::BTreeSet;

const FIELDS: &str = "name,iterations,real_time,cpu_time,time_unit,bytes_per_second,\
                      items_per_second,label,error_occurred,error_message";
/// Counters that have a fixed column.
const OWN_FIELD: [&str; 2] = ["bytes_per_second", "items_per_second"];

pub(super) struct Csv {
    columns: BTreeSet<String>,
    head_printed: bool,
}

impl Csv {
    /// Fixes the columns from all planned cases, because a counter without a column would be lost.
    pub(super) fn new(run: &Run, scale: Scale) -> Csv {
        let mut columns: BTreeSet<String> = ["p50", "p99", "max"].map(str::to_owned).into();
        if run.cases.iter().any(|case| case.kind == CaseKind::Test) {
            let controls = run.cases.iter().filter(|case| case.kind == CaseKind::Control);
            columns.extend(controls.map(|case| ratio::counter_of(&case.family)));
        }
        let stored = run.cases.iter().flat_map(Case::measurements);
        for measurement in stored {
            let shown = measurement.counters.iter().filter(|(_, counter)| is_shown(counter.kind, scale));
            columns.extend(shown.map(|(name, _)| name.to_owned()));
        }
        columns.retain(|name| !OWN_FIELD.contains(&name.as_str()));
        Csv { columns, head_printed: false }
    }

    fn head(&mut self, first: &Line<'_>) -> String {
        if std::mem::replace(&mut self.head_printed, true) {
            return String::new();
        }
        let others = first.counters.keys().filter(|name| !OWN_FIELD.contains(&name.as_str()));
        self.columns.extend(others.cloned());
        let columns = self.columns.iter().map(|name| format!(",{}", quoted(name)));
        format!("{FIELDS}{}\n", columns.collect::<String>())
    }
}

impl Printer for Csv {
    fn line(&mut self, line: &Line<'_>) -> String {
        let mut text = self.head(line) + &quoted(&line.name());
        let not_measured = match line.status {
            Status::Measured => None,
            Status::Failed(reason) => Some((true, reason)),
            Status::Skipped(reason) => Some((false, reason)),
        };
        if let Some((failed, reason)) = not_measured {
            return text + &format!(",,,,,,,,{failed},{}\n", quoted(reason));
        }
        let unit = if line.is_fraction() { "" } else { line.scale.unit };
        let counter = |name: &str| {
            line.counters.get(name).map(|value| number::general(value.number)).unwrap_or_default()
        };
        let fields = [
            line.iterations.to_string(),
            number::general(line.real),
            number::general(line.cpu),
            unit.to_owned(),
            counter("bytes_per_second"),
            counter("items_per_second"),
            line.label().map(quoted).unwrap_or_default(),
            String::new(),
            String::new(),
        ];
        text.extend(
            fields
                .into_iter()
                .chain(self.columns.iter().map(|name| counter(name)))
                .flat_map(|field| [",".to_owned(), field]),
        );
        text + "\n"
    }
}

fn quoted(text: &str) -> String {
    format!("\"{}\"", text.replace('"', "\"\""))
}
