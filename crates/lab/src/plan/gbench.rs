//! Room: Google Benchmark's flags, from the command line and from the environment.
//! Not here: our own flags, acting on any of them (the binary).
//! Facts: Google Benchmark 1.9.5: a value follows `=`; a switch without one is true; the variable
//! of `--benchmark_filter` is `BENCHMARK_FILTER`, and the command line wins over it. We refuse values
//! that it would quietly take for something else, such as `--benchmark_list_tests=maybe`.

mod value;

use std::fmt;
use std::path::PathBuf;

use record::render::gbench::{Format, TimeUnit};

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

/// What is asked for instead of a run.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Question {
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
    /// Which cases.
    pub filter: Filter,
    /// How long; `None` leaves it to us.
    pub min_time: Option<MinTime>,
    /// Warm-up in seconds; `None` leaves it to us.
    pub min_warmup_s: Option<f64>,
    /// Repetitions of each case.
    pub repetitions: u32,
    /// One iteration each.
    pub dry_run: bool,
    /// Repetitions in a drawn order.
    pub random_interleaving: bool,
    /// No single repetitions in either output.
    pub report_aggregates_only: bool,
    /// No single repetitions on stdout.
    pub display_aggregates_only: bool,
    /// Form of stdout.
    pub format: Format,
    /// A file for a second copy.
    pub out: Option<PathBuf>,
    /// Its form.
    pub out_format: Format,
    /// Colours on stdout.
    pub color: Color,
    /// Counters in columns.
    pub counters_tabular: bool,
    /// Names of hardware counters; accepted, never measured.
    pub perf_counters: Vec<String>,
    /// The user's own pairs.
    pub context: Vec<(String, String)>,
    /// Unit of printed times.
    pub time_unit: Option<TimeUnit>,
    /// From 1 on, how iterations were found is told on stderr.
    pub verbosity: i32,
    /// Asked instead of a run.
    pub question: Option<Question>,
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

/// A flag that cannot be obeyed.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum FlagError {
    /// It starts like one of Google Benchmark's and is none.
    Unknown(String),
    /// Its value makes no sense.
    Value {
        /// Where it was given: `--benchmark_format` or `BENCHMARK_FORMAT`.
        place: String,
        /// What is wrong.
        problem: String,
    },
}

impl fmt::Display for FlagError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Unknown(word) => write!(f, "unrecognized command-line flag: {word}"),
            Self::Value { place, problem } => write!(f, "{place}: {problem}"),
        }
    }
}

impl std::error::Error for FlagError {}

/// Every flag that has a value, with its help. `--help` and `--version` have none.
const FLAGS: &[(&str, &str)] = &[
    ("benchmark_list_tests", "[={true|false}]"),
    ("benchmark_filter", "=<regex>"),
    ("benchmark_min_time", "=`<integer>x` OR `<float>s`"),
    ("benchmark_min_warmup_time", "=<min_warmup_time>"),
    ("benchmark_repetitions", "=<num_repetitions>"),
    ("benchmark_dry_run", "[={true|false}]"),
    ("benchmark_enable_random_interleaving", "[={true|false}]"),
    ("benchmark_report_aggregates_only", "[={true|false}]"),
    ("benchmark_display_aggregates_only", "[={true|false}]"),
    ("benchmark_format", "=<console|json|csv>"),
    ("benchmark_out", "=<filename>"),
    ("benchmark_out_format", "=<json|console|csv>"),
    ("benchmark_color", "[={auto|true|false}]"),
    ("benchmark_counters_tabular", "[={true|false}]"),
    ("benchmark_perf_counters", "=<counter>,..."),
    ("benchmark_context", "=<key>=<value>,..."),
    ("benchmark_time_unit", "={ns|us|ms|s}"),
    ("v", "=<verbosity>"),
];

/// The usage text's part about these flags, one line each.
#[must_use]
pub fn usage() -> String {
    FLAGS.iter().map(|(name, value)| format!("          [--{name}{value}]\n")).collect()
}

/// Whether a word is one of Google Benchmark's, known or not.
#[must_use]
pub fn looks_like_one(word: &str) -> bool {
    word.starts_with("--benchmark_") || word.starts_with("--v=")
}

impl Flags {
    /// Reads the environment, then the words, which win. Words that are none of Google Benchmark's
    /// are given back in their order.
    ///
    /// # Errors
    /// [`FlagError`] for the first flag that cannot be obeyed.
    pub fn parse(
        words: impl IntoIterator<Item = String>,
        env: impl Fn(&str) -> Option<String>,
    ) -> Result<(Self, Vec<String>), FlagError> {
        let mut flags = Self::default();
        // A variable named `V` means other things to other programs, so that flag has none.
        for (name, _) in FLAGS.iter().filter(|(name, _)| *name != "v") {
            let place = name.to_uppercase();
            if let Some(text) = env(&place) {
                flags.set(name, Some(&text)).map_err(|problem| FlagError::Value { place, problem })?;
            }
        }
        let mut others = Vec::new();
        for word in words {
            match flags.take(&word) {
                Ok(true) => {}
                Ok(false) if looks_like_one(&word) => return Err(FlagError::Unknown(word)),
                Ok(false) => others.push(word),
                Err(error) => return Err(error),
            }
        }
        Ok((flags, others))
    }

    /// Obeys one word, if it is a flag of this room's.
    fn take(&mut self, word: &str) -> Result<bool, FlagError> {
        let flag = match (word, word.strip_prefix("--")) {
            ("-h", _) => "help",
            ("-V", _) => "version",
            (_, Some(flag)) => flag,
            _ => return Ok(false),
        };
        match flag {
            "help" => self.question = Some(Question::Help),
            "version" => self.question = Some(Question::Version),
            _ => {
                let (name, text) = match flag.split_once('=') {
                    Some((name, text)) => (name, Some(text)),
                    None => (flag, None),
                };
                if !FLAGS.iter().any(|(known, _)| *known == name) {
                    return Ok(false);
                }
                self.set(name, text)
                    .map_err(|problem| FlagError::Value { place: format!("--{name}"), problem })?;
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
            "benchmark_filter" => self.filter = Filter::new(text).map_err(|error| error.to_string())?,
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
