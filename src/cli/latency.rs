//! The command `latency`, and its tests `hwbinder` and `binder`, which are also Android's `libhwbinder_latency` and
//! `schd-dbg`: options, output and exit status.
//! Not here: measuring (`bench::latency`).
//! Facts: flags and defaults of AOSP's `Latency.cpp` and `schd-dbg.cpp` (Android 14). Their long flags begin with one
//! dash; two are accepted as well.

mod common;
mod ping;
mod sweep;

use bench::latency::verdict::Expected;
use bench::latency::{Injected, LatencyOptions};
use bench::plan::{Flavour, Release};
use clap::{Args, Parser, Subcommand, ValueEnum};
use conduct::latency::note_mode;
use record::Run;
use record::render::latency::aosp::Tool;
use record::render::latency::{Options, json, table};

use super::choice::{self, ON_OFF, Table};
use super::exact::ExactArgs;
use super::{CommandResult, Failure, OrExit, exit, parse};
use common::CommonArgs;

/// Measure calls one by one: deadlines, priority inheritance, whether client and server share a CPU
///
/// Each iteration is one call from a real-time thread and one from an ordinary thread. `hwbinder` and `binder` take the
/// flags of Android's tools, whose long flags have one dash.
#[derive(Debug, Args)]
#[command(subcommand_value_name = "TEST", subcommand_help_heading = "Tests")]
pub(super) struct LatencyArgs {
    #[command(subcommand)]
    test: Test,
}

#[derive(Debug, Subcommand)]
enum Test {
    #[command(about = ABOUT_HWBINDER)]
    Hwbinder(Box<TestArgs>),
    #[command(about = ABOUT_BINDER)]
    Binder(Box<TestArgs>),
    Ping(Box<ping::PingArgs>),
    Sweep(Box<sweep::SweepArgs>),
}

/// Descriptions of the tests.
pub(super) const ABOUT_HWBINDER: &str =
    "Measure pairs of client and server through hwbinder, call by call; Android's libhwbinder_latency";
pub(super) const ABOUT_BINDER: &str =
    "Measure pairs of client and server through binder, call by call; Android's schd-dbg";

/// Runs the named test.
pub(super) fn run(args: LatencyArgs) -> CommandResult {
    match args.test {
        Test::Hwbinder(args) => run_test(Flavour::Hwbinder, &args, false),
        Test::Binder(args) => run_test(Flavour::Binder, &args, false),
        Test::Ping(args) => ping::run(&args),
        Test::Sweep(args) => sweep::run(&args),
    }
}

/// Flags of a latency test.
#[derive(Debug, Parser)]
#[command(
    disable_version_flag = true,
    about = "Measure the latency of single calls, from a real-time and from an ordinary thread",
    long_about = LONG
)]
pub(super) struct TestArgs {
    /// Pairs of client and server, two processes each; up to one less than the CPUs does not overload the machine; also -pair
    #[arg(
        short = 'w',
        long,
        alias = "pair",
        value_name = "N",
        default_value_t = 1,
        allow_negative_numbers = true
    )]
    pairs: u32,

    /// BINDERIZE, or PASSTHROUGH: the interface in the client's own process, without IPC
    #[arg(short = 'm', long, value_name = "MODE", default_value = "BINDERIZE")]
    mode: String,

    /// Bytes that each call carries [default: 16 for binder, none for hwbinder]
    #[arg(long, value_name = "BYTES", allow_negative_numbers = true)]
    payload: Option<u32>,

    /// Pin clients to one CPU and servers to one, which may be the same
    #[arg(long, value_name = "CLIENT,SERVER", value_parser = two_cpus, conflicts_with = "cluster")]
    cpus: Option<[u32; 2]>,

    /// Whether the service's node inherits real-time priorities [default: on for hwbinder, off for binder]
    #[arg(help_heading = "Service", long, value_name = "on|off", value_parser = choice::table(&ON_OFF))]
    inherit_rt: Option<bool>,

    /// Required level of inheritance, else the exit status is 1: rt, nice, none, or driver: what this driver promises
    /// [default: driver; rt under Android's names]
    #[arg(help_heading = "Verdict", long, value_name = "LEVEL", value_parser = choice::table(&LEVELS))]
    expect: Option<Expected>,

    /// Skip the tests of single situations: queued, nested and oneway calls, minimum, restoration
    #[arg(help_heading = "Verdict", long, conflicts_with = "expect")]
    no_scenes: bool,

    /// Output format [default: json]
    #[arg(help_heading = "Output", long, value_enum)]
    format: Option<Form>,

    #[command(flatten)]
    exact: ExactArgs,

    /// Inject a fault, to see it found: drop-inheritance, wrong-cpu, delay=US:P, lose-reply, stall-server=US,
    /// kill-server, spin-caller, lock-server=US, monitor-server=US, chain-server=US, poll-server=US, sync-server,
    /// busy-loopers=US, timers=N, timers=N:late
    #[arg(help_heading = "Faults", long, value_name = "FAULT")]
    inject: Vec<Injected>,

    #[command(flatten)]
    common: CommonArgs,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
enum Form {
    /// The JSON of Android's tools, with further members
    Json,
    /// Text
    Table,
}

impl Form {
    /// The output for a run.
    fn of(self, run: &Run, options: Options) -> String {
        match self {
            Self::Json => json(run, &options),
            Self::Table => table(run),
        }
    }
}

/// Levels of inheritance.
const LEVELS: Table<Expected, 4> = [
    (Expected::Rt, "rt", ""),
    (Expected::Nice, "nice", ""),
    (Expected::None, "none", ""),
    (Expected::Driver, "driver", ""),
];

/// The CPUs of client and server, as in `0,1`.
fn two_cpus(text: &str) -> Result<[u32; 2], String> {
    let cpus =
        text.split_once(',').and_then(|(client, server)| Some([client.parse().ok()?, server.parse().ok()?]));
    cpus.ok_or_else(|| format!("{text:?} are not two CPUs: use CLIENT,SERVER as in 0,1"))
}

const LONG: &str = "Measure the latency of single calls, from a real-time and from an ordinary thread\n\n\
    Each pair is two processes that call each other alone. To stress a machine without overloading it, take one pair less \
    than it has CPUs: with more pairs than CPUs, latency tells of the queue. A call that takes longer than --deadline-us is a \
    miss; a service that did not get its real-time caller's priority fails the test.";

/// Translates Android's flags, whose long ones have one dash and underscores.
pub(super) fn modern(words: Vec<String>) -> Vec<String> {
    const LONG: [(&str, &str); 4] = [
        ("-pair", "--pairs"),
        ("-deadline_us", "--deadline-us"),
        ("-raw_data", "--raw-data"),
        ("-trace", "--trace"),
    ];
    let known = |word: String| {
        let bare = word.strip_prefix('-').filter(|rest| rest.starts_with('-')).unwrap_or(&word);
        // The value behind `=` stays with its flag.
        let (flag, value) = bare.find('=').map_or((bare, ""), |at| bare.split_at(at));
        LONG.iter().find(|(old, _)| *old == flag).map_or(word.clone(), |(_, new)| format!("{new}{value}"))
    };
    words.into_iter().map(known).collect()
}

/// The program's arguments, with Android's flags translated where they are valid.
pub(super) fn with_modern_flags(words: &[String]) -> Vec<String> {
    match words {
        [command, test, flags @ ..]
            if command == "latency" && ["hwbinder", "binder", "ping"].contains(&test.as_str()) =>
        {
            [command.clone(), test.clone()].into_iter().chain(modern(flags.to_vec())).collect()
        }
        _ => words.to_vec(),
    }
}

/// Runs a latency test of this flavour, called by the name of Android's tool.
pub(super) fn test(flavour: Flavour, name: &str, words: Vec<String>) -> CommandResult {
    run_test(flavour, &parse(name, modern(words))?, true)
}

/// Runs a test; `applet`: called by the name of Android's tool.
fn run_test(flavour: Flavour, args: &TestArgs, applet: bool) -> CommandResult {
    // Android's tools require real-time inheritance, and print their own verdict.
    let usual = if applet { Expected::Rt } else { Expected::Driver };
    if args.exact(applet).or_exit(exit::USAGE)? {
        return run_exact(flavour, args);
    }
    let options = Options { verbose: args.common.verbose, raw: args.common.raw_data, android: applet };
    let form = args.format.unwrap_or(Form::Json);
    let asked = args.common.asked(args.placed(flavour, false)?);
    asked.pairs(args.expect.unwrap_or(usual), |run| form.of(run, options))
}

/// Runs a test with the output and the exit status of Android's tool.
fn run_exact(flavour: Flavour, args: &TestArgs) -> CommandResult {
    let tool = match (flavour, args.common.android) {
        (Flavour::Binder, _) => Tool::Binder,
        (_, Release::Android8) => Tool::Hwbinder8,
        _ => Tool::Hwbinder,
    };
    args.common.asked(args.placed(flavour, true)?).exactly(tool, args.common.raw_data)
}

impl TestArgs {
    /// Whether Android's output is wanted.
    fn exact(&self, applet: bool) -> Result<bool, String> {
        let format = self.format.map(|_| "--format");
        self.exact.is_wanted(applet, format.or(self.expect.map(|_| "--expect")))
    }

    /// The checked options of a test, in whose place this process is then.
    ///
    /// # Errors
    /// This machine does not have the place.
    fn placed(&self, flavour: Flavour, exact: bool) -> Result<Result<LatencyOptions, String>, Failure> {
        let Ok(options) = self.options(flavour, exact) else { return Ok(self.options(flavour, exact)) };
        let sides = self.common.place.enter().or_exit(exit::UNABLE)?;
        let options = LatencyOptions { sides, place: self.common.place.words(), ..options };
        Ok(options.check().map(|()| options))
    }

    /// The options of a test. `exact`: with the words, and for the output, of Android's tool.
    fn options(&self, flavour: Flavour, exact: bool) -> Result<LatencyOptions, String> {
        let is = |word: &str| self.mode == word || (!exact && self.mode.eq_ignore_ascii_case(word));
        let flavour = match flavour {
            Flavour::Binder if is("PASSTHROUGH") => return Err("binder has no mode PASSTHROUGH".to_owned()),
            _ if is("PASSTHROUGH") => Flavour::Passthrough,
            _ if is("BINDERIZE") => flavour,
            _ if exact => {
                note_mode(&self.mode);
                flavour
            }
            _ => return Err(format!("-m is BINDERIZE or PASSTHROUGH, not {:?}", self.mode)),
        };
        let usual = LatencyOptions::usual(flavour);
        self.common.applied(LatencyOptions {
            pairs: self.pairs,
            payload: self.payload.unwrap_or(usual.payload),
            inherit_rt: self.inherit_rt.unwrap_or(usual.inherit_rt),
            // Android's output does not show them.
            scenes: !self.no_scenes && !exact,
            every_role: self.common.verbose && exact,
            cpus: self.cpus,
            injected: self.inject.clone(),
            ..usual
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use bench::plan::Inherit;

    fn parsed(words: &[&str]) -> Result<LatencyOptions, String> {
        let words = modern(words.iter().map(|word| (*word).to_owned()).collect());
        let all = std::iter::once("x".to_owned()).chain(words);
        let args = TestArgs::try_parse_from(all).map_err(|error| error.to_string())?;
        args.options(Flavour::Hwbinder, false)
    }

    #[test]
    fn androids_flags_are_understood_with_one_dash_or_two() {
        for dash in ["-", "--"] {
            let flag = |name: &str| format!("{dash}{name}");
            let words = [
                "-i",
                "5000",
                &flag("pair"),
                "3",
                &flag("deadline_us"),
                "50000",
                &flag("raw_data"),
                "-v",
                "-m",
                "PASSTHROUGH",
                &flag("trace"),
            ];
            let ask = parsed(&words).expect("Android's words");
            assert_eq!((ask.iterations, ask.pairs, ask.deadline_us), (5000, 3, 50_000));
            assert!(ask.raw && ask.trace && ask.flavour == Flavour::Passthrough);
        }
        assert_eq!(parsed(&["-w", "2"]).expect("-w is -pair").pairs, 2);
        assert_eq!(parsed(&["-pair=3"]).expect("one word").pairs, 3);
        assert_eq!(parsed(&["--rate=100", "--load", "cpu:2"]).expect("ours").rate_hz, Some(100.0));
    }

    #[test]
    fn defaults_are_androids_and_a_drivers_that_hands_real_time_on() {
        let ask = parsed(&[]).expect("nothing needed");
        assert_eq!((ask.iterations, ask.pairs, ask.deadline_us), (100, 1, 2500));
        assert_eq!(ask.wanted.settings.inherit, Inherit::Rt);
        let nice = parsed(&["--driver=embedded", "--inherit=nice"]).expect("chosen");
        assert_eq!(nice.wanted.settings.inherit, Inherit::Nice);
    }

    #[test]
    fn nonsense_is_refused() {
        for bad in [
            &["-m", "SOMETIMES"][..],
            &["-i"],
            &["-i", "x"],
            &["-pair", "-1"],
            &["--inject", "x"],
            &["--load", "x"],
        ] {
            assert!(parsed(bad).is_err(), "{bad:?}");
        }
    }
}
