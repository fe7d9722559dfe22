//! Prints the rows of a run as they are measured.
//! Not here: what a row looks like (`record::render`), where it goes (`console::output`).
//!
//! Rows of interleaved repetitions come at the end, in the order of the plan: their cases end in random order, and a row
//! states its ratio to controls that may be measured later.

use bench::run::Observer;
use record::Run;
use record::formats::gbench::{Format, GbenchReporter, Options, context};

use console::output::in_color;
use console::{note, progress};

use super::{Call, has_context};
use crate::measure::{Outputs, chosen};

/// The list of all names in Google Benchmark's format.
pub(super) fn list(names: &[String], format: Format) -> String {
    let lines = |prefix: &str| names.iter().map(|name| format!("{prefix}{name}\n")).collect::<String>();
    match format {
        Format::Console => lines(""),
        Format::Csv => format!("name\n{}", lines("")),
        Format::Json => {
            // Names need no escaping in JSON.
            let entries: Vec<String> =
                names.iter().map(|name| format!("    {{\n      \"name\": \"{name}\"\n    }}")).collect();
            format!("{{\n  \"benchmarks\": [\n{}\n  ]\n}}\n", entries.join(",\n"))
        }
    }
}

/// Writes rows to one or two outputs.
pub(super) struct Report<'c> {
    call: &'c Call,
    outputs: &'c mut Outputs,
    display: Option<GbenchReporter>,
    file: Option<GbenchReporter>,
    printed: Vec<bool>,
}

impl<'c> Report<'c> {
    pub(super) fn new(call: &'c Call, outputs: &'c mut Outputs) -> Self {
        Self { call, outputs, display: None, file: None, printed: Vec::new() }
    }

    /// Writes the remaining rows and the end.
    pub(super) fn finish(mut self, run: &Run) {
        for reporter in [&mut self.display, &mut self.file].into_iter().flatten() {
            run.cases.iter().for_each(|case| reporter.know(case));
        }
        for case in 0..run.cases.len() {
            self.print(run, case);
        }
        if let Some(mut display) = self.display {
            self.outputs.stdout.put(&display.finish());
        }
        if let (Some(mut file), Some(out)) = (self.file, &mut self.outputs.out) {
            out.put(&file.finish());
        }
    }

    fn print(&mut self, run: &Run, case: usize) {
        let repetitions = &run.cases[case].repetitions;
        if repetitions.is_empty() || self.printed.get(case).copied().unwrap_or(true) {
            return;
        }
        self.printed[case] = true;
        let rows = |reporter: &mut GbenchReporter| -> String {
            let case = &run.cases[case];
            let rows: String =
                case.repetitions.iter().map(|repetition| reporter.row(case, repetition)).collect();
            rows + &reporter.aggregates(case)
        };
        if let Some(display) = &mut self.display {
            self.outputs.stdout.put(&rows(display));
        }
        if let (Some(file), Some(out)) = (&mut self.file, &mut self.outputs.out) {
            out.put(&rows(file));
        }
    }
}

impl Observer for Report<'_> {
    fn is_wanted(&self) -> bool {
        self.outputs.are_wanted()
    }

    fn begins(&mut self, run: &Run) {
        let flags = &self.call.flags;
        let options = Options {
            format: flags.format,
            color: flags.format == Format::Console && in_color(flags.color),
            counters_tabular: flags.counters_tabular,
            aggregates_only: flags.report_aggregates_only || flags.display_aggregates_only,
            time_unit: flags.time_unit,
        };
        let mut display = GbenchReporter::new(run, &options);
        if let Some(chosen) = chosen(run) {
            note(chosen);
        }
        if has_context(options.format) {
            note(context(run));
        }
        self.outputs.stdout.put(&display.header(run));
        self.display = Some(display);
        if let Some(out) = &mut self.outputs.out {
            let options = Options {
                format: flags.out_format,
                color: false,
                aggregates_only: flags.report_aggregates_only,
                ..options
            };
            let mut file = GbenchReporter::new(run, &options);
            if has_context(options.format) {
                out.put(&context(run));
            }
            out.put(&file.header(run));
            self.file = Some(file);
        }
        self.printed = vec![false; run.cases.len()];
    }

    fn starts(&mut self, run: &Run, case: usize, done: usize, all: usize) {
        if self.call.for_a_copy {
            note(progress::line(done, all, &run.cases[case].name) + "\n");
        }
    }

    fn tried(&mut self, name: &str, iterations: u64, seconds: f64) {
        if self.call.flags.verbosity > 0 {
            note(format_args!("-- LOG(2): {name}: {iterations} iterations took {seconds} s\n"));
        }
    }

    fn case_done(&mut self, run: &Run, case: usize) {
        if !run.plan.random_interleaving {
            self.print(run, case);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn lists_are_read_by_harnesses() {
        let names = ["BM_a/4".to_owned(), "BM_a/8".to_owned()];
        assert_eq!(list(&names, Format::Console), "BM_a/4\nBM_a/8\n");
        assert_eq!(list(&names, Format::Csv), "name\nBM_a/4\nBM_a/8\n");
        let json = list(&names, Format::Json);
        assert!(
            json.starts_with("{\n  \"benchmarks\": [\n") && json.matches("\"name\"").count() == 2,
            "{json}"
        );
    }
}
