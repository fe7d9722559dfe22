//! Google Benchmark's console table.
//! Not here: the context block above it (`context`).

use super::line::{Line, Status, Value};
use super::{Options, Printer, Scale};
use crate::number;
use crate::render::printable;
use crate::schema::Run;

const GREEN: &str = "\x1b[0;32m";
const RED: &str = "\x1b[0;31m";
const WHITE: &str = "\x1b[0;37m";
const YELLOW: &str = "\x1b[0;33m";
const CYAN: &str = "\x1b[0;36m";
const DEFAULT: &str = "";
const RESET: &str = "\x1b[m";

const LEAST_NAME_WIDTH: usize = 10;
const LEAST_COUNTER_WIDTH: usize = 10;
/// The longest suffix of an aggregate's name: `_median`, `_stddev`.
const SUFFIX_WIDTH: usize = 7;

pub(super) struct Console {
    color: bool,
    tabular: bool,
    name_width: usize,
    scale: Scale,
    /// Counter names of the last heading; `None` before the first heading.
    head: Option<Vec<String>>,
}

impl Console {
    pub(super) fn new(run: &Run, options: &Options, scale: Scale) -> Console {
        let longest = run.cases.iter().map(|case| case.name.len()).max().unwrap_or(0);
        let suffix = if run.plan.repetitions > 1 { SUFFIX_WIDTH } else { 0 };
        Console {
            color: options.color,
            tabular: options.counters_tabular,
            name_width: longest.max(LEAST_NAME_WIDTH) + suffix,
            scale,
            head: None,
        }
    }

    /// Colours a text. Google Benchmark ends every piece with a reset, even an uncoloured one.
    fn paint(&self, color: &str, text: &str) -> String {
        if self.color { format!("{color}{text}{RESET}") } else { text.to_owned() }
    }

    /// The column headings, if due.
    fn head(&mut self, line: &Line<'_>) -> String {
        let names: Vec<String> = line.counters.keys().cloned().collect();
        let due = match &self.head {
            None => true,
            Some(last) => self.tabular && *last != names,
        };
        if !due {
            return String::new();
        }
        let (real, cpu) = if self.scale.is_time { ("Time", "CPU") } else { ("Insns", "CPU insns") };
        let unit_width = self.unit_width();
        let mut text = format!("{:<1$}", "Benchmark", self.name_width);
        text +=
            &format!(" {real:>0$} {cpu:>1$} {2:>12}", 11 + unit_width - 2, 13 + unit_width - 2, "Iterations");
        if self.tabular {
            text.extend(names.iter().map(|name| format!(" {name:>LEAST_COUNTER_WIDTH$}")));
        } else if !names.is_empty() {
            text += " UserCounters...";
        }
        self.head = Some(names);
        let rule = "-".repeat(text.len());
        format!("{rule}\n{text}\n{rule}\n")
    }

    /// Width of the unit: four columns for Google Benchmark's units, more for instructions.
    fn unit_width(&self) -> usize {
        self.scale.short_unit.len().max(4)
    }

    fn numbers(&self, line: &Line<'_>) -> String {
        let width = self.unit_width();
        let (unit, real, cpu) = if line.is_fraction() {
            ("%", format!("{:10.2}", 100.0 * line.real), format!("{:10.2}", 100.0 * line.cpu))
        } else {
            (line.scale.short_unit, time(line.real), time(line.cpu))
        };
        self.paint(YELLOW, &format!("{real} {unit:<width$} {cpu} {unit:<width$} "))
            + &self.paint(CYAN, &format!("{:>10}", line.iterations))
    }

    fn counter(&self, line: &Line<'_>, name: &str, value: &Value) -> String {
        let (text, suffix) = if line.is_fraction() {
            (format!("{:.2}", 100.0 * value.number), "%")
        } else {
            (number::human(value.number, value.base), value.suffix)
        };
        let cell = if self.tabular {
            let width = name.len().max(LEAST_COUNTER_WIDTH) - suffix.len();
            format!(" {text:>width$}{suffix}")
        } else {
            format!(" {name}={text}{suffix}")
        };
        self.paint(DEFAULT, &cell)
    }
}

impl Printer for Console {
    fn line(&mut self, line: &Line<'_>) -> String {
        let mut text = self.head(line);
        text += &self.paint(GREEN, &format!("{:<1$} ", line.name(), self.name_width));
        match line.status {
            Status::Failed(reason) => {
                text += &self.paint(RED, &format!("ERROR OCCURRED: '{}'", printable(reason)));
            }
            Status::Skipped(reason) => {
                text += &self.paint(WHITE, &format!("SKIPPED: '{}'", printable(reason)));
            }
            Status::Measured => {
                text += &self.numbers(line);
                text.extend(line.counters.iter().map(|(name, value)| self.counter(line, name, value)));
                if let Some(label) = line.label() {
                    text += &self.paint(DEFAULT, &format!(" {}", printable(label)));
                }
            }
        }
        text + &self.paint(DEFAULT, "\n")
    }
}

/// A time in at least three digits and ten columns.
fn time(value: f64) -> String {
    match value {
        value if value < 1.0 => format!("{value:10.3}"),
        value if value < 10.0 => format!("{value:10.2}"),
        value if value < 100.0 => format!("{value:10.1}"),
        value if value > 9_999_999_999.0 => number::exponential(value, 4),
        value => format!("{value:10.0}"),
    }
}
