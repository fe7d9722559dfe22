//! Google Benchmark's flags, from the command line and from the environment.
//! Not here: our own flags, acting on any of them (the binary).
//! Facts: Google Benchmark 1.9.5: a value follows `=`; a switch without one is true; the variable of
//! `--benchmark_filter` is `BENCHMARK_FILTER`, and the command line overrides it. We refuse values that it
//! would silently take for something else, such as `--benchmark_list_tests=maybe`.

mod value;

use std::path::PathBuf;

use record::formats::gbench::{Format, TimeUnit};

use super::{Filter, MinTime};

/// Whether to colour a table.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Color {
    /// When the output is a terminal.
    #[default]
    Auto,
    /// Always.
    Yes,
    /// Never.
    No,
}

/// A request for information in place of a run.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum InfoRequest {
    /// `--help`
    Help,
    /// `--version`
    Version,
}

/// All flags with their values.
#[derive(Clone, Debug)]
pub struct Flags {
    /// Print the names only.
    pub list_tests: bool,
    /// Filter of the cases.
    pub filter: Filter,
    /// Duration; `None` is our default.
    pub min_time: Option<MinTime>,
    /// Warm-up in seconds; `None` is our default.
    pub min_warmup_s: Option<f64>,
    /// Repetitions of each case.
    pub repetitions: u32,
    /// One iteration of each case.
    pub dry_run: bool,
    /// Repetitions in a random order.
    pub random_interleaving: bool,
    /// No single repetitions in either output.
    pub report_aggregates_only: bool,
    /// No single repetitions on stdout.
    pub display_aggregates_only: bool,
    /// Format of stdout.
    pub format: Format,
    /// A file for a second copy.
    pub out: Option<PathBuf>,
    /// Format of that file.
    pub out_format: Format,
    /// Colours on stdout.
    pub color: Color,
    /// Counters in columns.
    pub counters_tabular: bool,
    /// Names of hardware counters; accepted, never measured.
    pub perf_counters: Vec<String>,
    /// The user's key-value pairs.
    pub context: Vec<(String, String)>,
    /// Unit of printed times.
    pub time_unit: Option<TimeUnit>,
    /// From 1 on, the search for the number of iterations is reported on stderr.
    pub verbosity: i32,
    /// A request for information in place of a run.
    pub question: Option<InfoRequest>,
}

impl Default for Flags {
    fn default() -> Self {
        Self {
            list_tests: false,
            filter: Filter::default(),
            min_time: None,
            min_warmup_s: None,
            repetitions: 1,
            dry_run: false,
            random_interleaving: false,
            report_aggregates_only: false,
            display_aggregates_only: false,
            format: Format::Console,
            out: None,
            out_format: Format::Json,
            color: Color::Auto,
            counters_tabular: false,
            perf_counters: Vec::new(),
            context: Vec::new(),
            time_unit: None,
            verbosity: 0,
            question: None,
        }
    }
}

/// One of Google Benchmark's flags, for a usage text, a manual or a shell completion.
#[derive(Clone, Copy, Debug)]
pub struct About {
    /// Name without dashes.
    pub name: &'static str,
    /// Placeholder of its value.
    pub value: &'static str,
    /// Permitted values; empty where there are too many.
    pub words: &'static [&'static str],
    /// Whether it requires a value.
    pub needs_value: bool,
    /// Help text, one sentence.
    pub help: &'static str,
}

const fn switch(name: &'static str, help: &'static str) -> About {
    About { name, value: "BOOL", words: &["true", "false"], needs_value: false, help }
}

const fn text(name: &'static str, value: &'static str, help: &'static str) -> About {
    About { name, value, words: &[], needs_value: true, help }
}

const fn choice(name: &'static str, words: &'static [&'static str], help: &'static str) -> About {
    About { name, value: "WORD", words, needs_value: true, help }
}

/// Every flag that has a value. `--help` and `--version` have none.
pub const FLAGS: &[About] = &[
    switch("benchmark_list_tests", "Print the names of the cases and measure nothing"),
    text(
        "benchmark_filter",
        "REGEX",
        "Only cases whose name this regular expression finds; with - before it, all others",
    ),
    text(
        "benchmark_min_time",
        "TIME",
        "How long a repetition takes at least, 0.5s; or how many iterations it makes, 1000x",
    ),
    text("benchmark_min_warmup_time", "S", "Seconds of iterations before those that count"),
    text(
        "benchmark_repetitions",
        "N",
        "Repetitions of each case, with mean, median, stddev and cv behind them",
    ),
    switch("benchmark_dry_run", "One iteration of each case, to see that it works"),
    switch("benchmark_enable_random_interleaving", "Repetitions of all cases in one drawn order"),
    switch("benchmark_report_aggregates_only", "Of repetitions, only what they come to together"),
    switch("benchmark_display_aggregates_only", "The same on the standard output only"),
    choice("benchmark_format", &["console", "json", "csv"], "Form of the standard output"),
    text("benchmark_out", "FILE", "Write the result to this file, too"),
    choice("benchmark_out_format", &["json", "console", "csv"], "Form of that file"),
    About {
        name: "benchmark_color",
        value: "WHEN",
        words: &["auto", "true", "false"],
        needs_value: false,
        help: "Colours on the standard output; auto is on a terminal",
    },
    switch("benchmark_counters_tabular", "Counters in columns of their own"),
    text(
        "benchmark_perf_counters",
        "COUNTER,...",
        "Taken for the sake of harnesses; hardware counters are not read",
    ),
    text("benchmark_context", "KEY=VALUE,...", "Words of yours that go into the result"),
    choice("benchmark_time_unit", &["ns", "us", "ms", "s"], "Unit of printed times"),
    text("v", "N", "From 1 on, how the number of iterations was found"),
];

/// Returns true if a word has the form of a Google Benchmark flag, known or not.
#[must_use]
pub fn looks_like_one(word: &str) -> bool {
    word.starts_with("--benchmark_") || word.starts_with("--v=")
}

impl Flags {
    /// Reads the environment, then the words, which override it. Returns the words that are no Google
    /// Benchmark flags in their order.
    ///
    /// # Errors
    /// The first flag that cannot be accepted, as a message for the user.
    pub fn parse(
        words: impl IntoIterator<Item = String>,
        env: impl Fn(&str) -> Option<String>,
    ) -> Result<(Self, Vec<String>), String> {
        let mut flags = Self::default();
        // A variable named `V` has other meanings to other programs, so that flag has none.
        for About { name, .. } in FLAGS.iter().filter(|flag| flag.name != "v") {
            let place = name.to_uppercase();
            if let Some(text) = env(&place) {
                flags.set(name, Some(&text)).map_err(|problem| format!("{place}: {problem}"))?;
            }
        }
        let mut others = Vec::new();
        for word in words {
            match flags.take(&word)? {
                true => {}
                false if looks_like_one(&word) => {
                    return Err(format!("unrecognized command-line flag: {word}"));
                }
                false => others.push(word),
            }
        }
        Ok((flags, others))
    }

    /// Applies one word; returns false if it is no flag of this module.
    fn take(&mut self, word: &str) -> Result<bool, String> {
        let flag = match (word, word.strip_prefix("--")) {
            ("-h", _) => "help",
            ("-V", _) => "version",
            (_, Some(flag)) => flag,
            _ => return Ok(false),
        };
        match flag {
            "help" => self.question = Some(InfoRequest::Help),
            "version" => self.question = Some(InfoRequest::Version),
            _ => {
                let (name, text) = match flag.split_once('=') {
                    Some((name, text)) => (name, Some(text)),
                    None => (flag, None),
                };
                if !FLAGS.iter().any(|known| known.name == name) {
                    return Ok(false);
                }
                self.set(name, text).map_err(|problem| format!("--{name}: {problem}"))?;
            }
        }
        Ok(true)
    }

    /// Sets a flag of the table; `None` is a flag without `=`.
    fn set(&mut self, name: &str, text: Option<&str>) -> Result<(), String> {
        match name {
            "benchmark_list_tests" => self.list_tests = value::switch(text)?,
            "benchmark_dry_run" => self.dry_run = value::switch(text)?,
            "benchmark_enable_random_interleaving" => self.random_interleaving = value::switch(text)?,
            "benchmark_report_aggregates_only" => self.report_aggregates_only = value::switch(text)?,
            "benchmark_display_aggregates_only" => self.display_aggregates_only = value::switch(text)?,
            "benchmark_counters_tabular" => self.counters_tabular = value::switch(text)?,
            "benchmark_color" => self.color = value::color(text)?,
            _ => return self.set_text(name, text.ok_or("it needs a value: put it behind a =")?),
        }
        Ok(())
    }

    fn set_text(&mut self, name: &str, text: &str) -> Result<(), String> {
        match name {
            "benchmark_filter" => self.filter = Filter::new(text)?,
            "benchmark_min_time" => self.min_time = Some(text.parse()?),
            "benchmark_min_warmup_time" => self.min_warmup_s = Some(value::seconds(text)?),
            "benchmark_repetitions" => self.repetitions = value::count(text)?,
            "benchmark_format" => self.format = value::format(text)?,
            "benchmark_out" => self.out = (!text.is_empty()).then(|| PathBuf::from(text)),
            "benchmark_out_format" => self.out_format = value::format(text)?,
            "benchmark_perf_counters" => self.perf_counters = value::list(text),
            "benchmark_context" => self.context = value::pairs(text)?,
            "benchmark_time_unit" => self.time_unit = value::time_unit(text)?,
            "v" => self.verbosity = text.parse().map_err(|_| format!("{text:?} is no whole number"))?,
            _ => return Err("this flag is in no table".to_owned()),
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests;
