//! The command `matrix`: the same tests on many kernels, and what each costs relative to the first.
//! Not here: measuring them (`bench::matrix`), the table (`record::matrix`), the presets (`presets`).

mod presets;

use std::path::{Path, PathBuf};
use std::time::Duration;

use bench::ab::{RunFailure, Side};
use bench::matrix::{MatrixOptions, Watcher, execute};
use clap::{Args, ValueEnum};
use record::compare::{Group, Options};
use record::matrix::{Kernel, Matrix, matrix};
use record::render::matrix as render;
use store::lock::FolderLock;
use vm::build::BuildError;

use presets::{Preset, Source};

use super::kernels::{self, OnDriver};
use super::output::Sink;
use super::program::Program;
use super::progress::StatusLine;
use super::records::metrics;
use super::{A_YEAR_S, CommandResult, Failure, OrExit, complain, exit, note, tell};

/// Runs of each kernel in each test where time is measured.
const ROUNDS: u32 = 7;

/// Measure the same tests on many kernels: what does each cost relative to the first?
///
/// A kernel that does not boot is a row that says so. A further call with the same --records measures only what is
/// missing.
#[derive(Debug, Args)]
pub(crate) struct MatrixArgs {
    /// Kernels as vm --kernel takes them, separated by commas, each with an optional name before it: NAME=KERNEL. KERNEL+DRIVER has another driver: a module (.ko), a patch (.patch) or a source's folder, of which one is built, or the word driver, the kernel's own built alike
    #[arg(long, value_name = "A,B,...", value_delimiter = ',', required_unless_present = "preset", value_parser = kernel)]
    kernels: Vec<(String, String)>,

    /// A set of kernels, and its tests unless others are given; those that are missing are built, which takes minutes each
    #[arg(long, value_name = "SET", value_enum, conflicts_with = "kernels")]
    preset: Option<Preset>,

    /// A test and its flags, in quotes; may be repeated [default: the preset's, else throughput of binder and hwbinder at 4 B, 4 KiB and 64 KiB]
    #[arg(long, value_name = "WORDS", allow_hyphen_values = true, value_parser = words)]
    tests: Vec<Vec<String>>,

    /// Count guest instructions instead of time: one CPU, one boot of each
    #[arg(long, conflicts_with_all = ["rounds", "metric"])]
    icount: bool,

    /// Runs of each kernel in each test [default: 7]
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u32).range(1..=1000))]
    rounds: Option<u32>,

    /// Flag of vm for all kernels, without its dashes: smp=2
    #[arg(long, value_name = "FLAG[=VALUE]")]
    vm: Vec<String>,

    /// The metric to compare
    #[arg(help_heading = "Comparing", long, value_name = "METRIC", default_value = "median", value_parser = metrics())]
    metric: record::compare::Metric,

    /// Folder for the records
    #[arg(help_heading = "Output", long, value_name = "DIR", default_value = "binderperf-matrix", value_hint = clap::ValueHint::DirPath)]
    records: PathBuf,

    /// Longest time of one run in seconds
    #[arg(long, value_name = "S", default_value_t = 900, value_parser = clap::value_parser!(u64).range(1..=A_YEAR_S))]
    patience: u64,

    /// Output format
    #[arg(help_heading = "Output", long, value_enum, default_value_t = Form::Text)]
    format: Form,

    /// Write to FILE instead of the standard output
    #[arg(help_heading = "Output", long, value_name = "FILE")]
    out: Option<PathBuf>,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
enum Form {
    /// Tables
    Text,
    /// Tables for a pull request
    Markdown,
    /// A page
    Html,
    /// Every figure
    Json,
}

/// A kernel's name, and its words for `vm --kernel`.
type Named = (String, String);

/// A kernel that can be booted.
struct Ready {
    name: String,
    /// Its words for `vm --kernel`.
    kernel: String,
    /// Its driver's module, if that is another one.
    driver: Option<PathBuf>,
    /// The preemption model with which it is booted, if not with its own.
    model: Option<&'static str>,
    /// Another word of the kernel's command line.
    append: Option<&'static str>,
    /// A further flag of its tests.
    flag: Option<&'static str>,
}

/// Name and kernel; without a name the kernel's own words, of a path its last part.
fn kernel(text: &str) -> Result<Named, String> {
    // The names of built kernels, and paths, may have one of their own.
    let named = text.split_once('=').filter(|(name, _)| !name.starts_with("built:") && !name.contains('/'));
    let (name, kernel) = match named {
        Some((name, kernel)) => (name.trim(), kernel.trim()),
        None => {
            let last = Path::new(text).file_name().and_then(|name| name.to_str());
            (last.unwrap_or(text).trim(), text.trim())
        }
    };
    if name.is_empty() || kernel.is_empty() {
        return Err(format!("{text:?} is no KERNEL and no NAME=KERNEL"));
    }
    Ok((name.to_owned(), kernel.to_owned()))
}

fn words(text: &str) -> Result<Vec<String>, String> {
    let mut commands = vm::script::parse(text)?;
    if commands.len() > 1 {
        return Err("a test is one line; repeat --tests for more".to_owned());
    }
    Ok(commands.remove(0))
}

/// Both flavours at a small, a medium and a large payload, beside a pipe and bare ioctls.
fn usual_tests() -> Vec<Vec<String>> {
    let test = |flavour: &str| {
        let filter = "--benchmark_filter=/(4|4096|65536)$";
        ["throughput", flavour, "--driver", "kernel", "--controls", "pipe,raw", filter]
            .map(str::to_owned)
            .to_vec()
    };
    vec![test("binder"), test("hwbinder")]
}

/// Measures and compares.
pub(crate) fn run(args: &MatrixArgs, program: &Program) -> CommandResult {
    for words in &args.tests {
        (program.understood)(words)
            .map_err(|why| Failure::new(exit::USAGE, format_args!("--tests {:?}: {why}", words.join(" "))))?;
    }
    let (kernels, broken) = args.kernels().or_exit(exit::USAGE)?;
    let models: Vec<_> =
        kernels.iter().filter_map(|ready| Some((ready.name.clone(), ready.model?))).collect();
    let options = args.options(kernels).or_exit(exit::USAGE)?;
    let _lock = FolderLock::take(&options.folder, tell)?;
    let sink = args.out.as_deref().map_or_else(Sink::stdout, Sink::file);
    if let Some(trouble) = sink.trouble() {
        return Err(Failure::new(exit::INTERNAL, trouble));
    }
    let mut progress = ProgressReporter { line: StatusLine::new(), found: 0 };
    let measured = execute(&options, &mut progress);
    progress.line.show("");
    let measured = measured.map_err(|why| {
        let status = if matches!(why, RunFailure::Usage(_)) { exit::USAGE } else { exit::INTERNAL };
        Failure::new(status, why)
    })?;
    if progress.found > 0 {
        let runs = if progress.found == 1 {
            "1 run was".to_owned()
        } else {
            format!("{} runs were", progress.found)
        };
        note(format_args!("{runs} there from an earlier call, in {}\n", options.folder.display()));
    }
    let compare = Options { metric: args.metric, ..Options::default() };
    let kernels = measured.kernels.into_iter().map(|kernel| obedient(kernel, &models)).collect();
    let kernels = with_broken(kernels, broken, measured.tests.len());
    let found = matrix(&measured.tests, &kernels, &compare);
    sink.deliver(&args.format.of(&found)?)?;
    if let Some(signal) = measured.stopped {
        note(format_args!("stopped by {signal}; the same command goes on\n"));
        return Ok(exit::FAILED);
    }
    Ok(if found.is_whole() { exit::FINE } else { exit::UNABLE })
}

impl Form {
    fn of(self, found: &Matrix) -> Result<String, Failure> {
        Ok(match self {
            Self::Text => render::text(found),
            Self::Markdown => render::markdown(found),
            Self::Html => render::html(found).or_exit(exit::INTERNAL)?,
            Self::Json => render::json(found),
        })
    }
}

impl MatrixArgs {
    /// The kernels, built where they must be; and those that could not be built: place, name and reason.
    fn kernels(&self) -> Result<(Vec<Ready>, Vec<Unbuilt>), String> {
        let given = || self.kernels.iter().map(|(name, word)| (name.clone(), Source::Given(word.clone())));
        let all = self.preset.map_or_else(|| Ok(given().collect::<Vec<_>>()), Preset::kernels)?;
        for (at, (name, _)) in all.iter().enumerate() {
            if all[..at].iter().any(|(known, _)| known == name) {
                return Err(format!("two kernels are called {name}: give one another name, NAME=KERNEL"));
            }
        }
        let (mut kernels, mut broken) = (Vec::new(), Vec::new());
        for (at, (name, source)) in all.into_iter().enumerate() {
            match ready(source) {
                Ok(found) => kernels.push(Ready { name, ..found }),
                Err(error) => {
                    complain(format_args!("{name}: {error}"));
                    broken.push(Unbuilt { at, name, why: error.to_string() });
                }
            }
        }
        Ok((kernels, broken))
    }

    fn options(&self, ready: Vec<Ready>) -> Result<MatrixOptions, String> {
        let side = |ready: Ready| {
            let model = ready.model.map(|model| format!("append=preempt={model}"));
            let append = ready.append.map(|word| format!("append={word}"));
            let flags: Vec<String> = self.vm.iter().cloned().chain(model).chain(append).collect();
            let side = Side::of_kernel(&ready.kernel, ready.driver.as_deref(), &flags);
            (ready.name, ready.flag.iter().fold(side, |side, flag| side.with_flag(flag)))
        };
        let kernels = ready.into_iter().map(side).collect();
        let preset = self.preset.map(Preset::tests).unwrap_or_default();
        let tests = match (&self.tests[..], preset) {
            ([], []) => usual_tests(),
            ([], preset) => preset.iter().map(|test| words(test)).collect::<Result<_, _>>()?,
            (given, _) => given.to_vec(),
        };
        Ok(MatrixOptions {
            kernels,
            tests,
            rounds: if self.icount { 1 } else { self.rounds.unwrap_or(ROUNDS) as usize },
            icount: self.icount,
            folder: self.records.clone(),
            patience: Duration::from_secs(self.patience),
        })
    }
}

/// A kernel of this source, which is built where it must be; without a name.
fn ready(source: Source) -> Result<Ready, BuildError> {
    let plain = |kernel: String| Ready {
        name: String::new(),
        kernel,
        driver: None,
        model: None,
        append: None,
        flag: None,
    };
    match source {
        Source::Given(word) => match OnDriver::parse(&word) {
            Some(on) => {
                let kernel = plain(on.kernel.clone());
                Ok(Ready { driver: Some(on.module()?), ..kernel })
            }
            None => Ok(plain(word)),
        },
        Source::Preempted(word, model) => Ok(Ready { model: Some(model), ..plain(word) }),
        Source::Flagged(word, flag) => Ok(Ready { flag: Some(flag), ..plain(word) }),
        Source::Built(wanted, append) => {
            Ok(Ready { append, ..plain(format!("built:{}", kernels::built(&wanted)?.name)) })
        }
    }
}

/// The runs of a kernel if it ran with the preemption model that was asked for; else the reason. A kernel ignores a model that it does not know.
fn obedient(kernel: Kernel, models: &[(String, &'static str)]) -> Kernel {
    let Some((_, model)) = models.iter().find(|(name, _)| *name == kernel.name) else { return kernel };
    let obeyed = |group: Group| {
        let other = group.members.iter().find_map(|member| {
            let kernel = &member.run.host.kernel;
            let in_force = kernel.preemption.as_deref().unwrap_or("an unknown model");
            (in_force != *model)
                .then(|| format!("Linux {} has no preempt={model}: it ran with {in_force}", kernel.release))
        });
        other.map_or(Ok(group), Err)
    };
    Kernel { tests: kernel.tests.into_iter().map(|test| test.and_then(obeyed)).collect(), ..kernel }
}

/// A kernel that could not be built.
struct Unbuilt {
    /// Its place among all.
    at: usize,
    name: String,
    why: String,
}

/// Puts kernels that could not be built where they belong.
fn with_broken(mut kernels: Vec<Kernel>, broken: Vec<Unbuilt>, tests: usize) -> Vec<Kernel> {
    for Unbuilt { at, name, why } in broken {
        let row = Kernel { name, tests: vec![Err(why); tests] };
        kernels.insert(at.min(kernels.len()), row);
    }
    kernels
}

/// Shows progress on the terminal.
struct ProgressReporter {
    line: StatusLine,
    found: usize,
}

impl Watcher for ProgressReporter {
    fn starts(&mut self, at: usize, of: usize, kernel: &str, test: &str) {
        self.line.show(&format!("run {at} of {of}: {kernel}, {test}"));
    }

    fn found(&mut self, _: &str, _: &str) {
        self.found += 1;
    }

    fn failed(&mut self, kernel: &str, why: &RunFailure) {
        self.line.show("");
        complain(format_args!("{kernel}: {why}"));
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn kernels_have_names() {
        let named = |text: &str| kernel(text).expect("fine");
        assert_eq!(named("6.1"), ("6.1".to_owned(), "6.1".to_owned()));
        assert_eq!(
            named("/b/arch/x86/boot/bzImage"),
            ("bzImage".to_owned(), "/b/arch/x86/boot/bzImage".to_owned())
        );
        assert_eq!(named("plain=built:7.2-c"), ("plain".to_owned(), "built:7.2-c".to_owned()));
        let odd = "built:7.2.13-c-full-hz=250";
        assert_eq!(named(odd), (odd.to_owned(), odd.to_owned()));
        assert_eq!(named(&format!("a={odd}")), ("a".to_owned(), odd.to_owned()));
        assert_eq!(named("/x=y/bzImage"), ("bzImage".to_owned(), "/x=y/bzImage".to_owned()));
        for bad in ["", "=", "a=", "=b"] {
            assert!(kernel(bad).is_err(), "{bad}");
        }
    }

    #[test]
    fn a_kernel_without_the_model_is_a_row_that_says_so() {
        let ran_with = |model: Option<&str>| {
            let text = include_bytes!("../../tests/golden/throughput.json");
            let mut run = record::Run::from_json(text).expect("a record");
            run.host.kernel.preemption = model.map(str::to_owned);
            let member = record::compare::Member { file: String::new(), run };
            let group = Group { name: "none".to_owned(), members: vec![member] };
            let kernel = Kernel { name: "none".to_owned(), tests: vec![Ok(group)] };
            obedient(kernel, &[("none".to_owned(), "none")]).tests.remove(0).err()
        };
        assert_eq!(ran_with(Some("none")), None);
        assert!(ran_with(Some("full")).expect("refused").ends_with("has no preempt=none: it ran with full"));
        assert!(ran_with(None).expect("refused").ends_with("it ran with an unknown model"));
    }

    #[test]
    fn a_test_is_one_line_of_words() {
        assert_eq!(
            words("throughput binder --benchmark_filter='/4$'"),
            Ok(vec!["throughput".to_owned(), "binder".to_owned(), "--benchmark_filter=/4$".to_owned()])
        );
        assert!(words("a\nb").is_err() && words("").is_err() && words("a 'b").is_err());
    }
}
