//! Options of the throughput tests that Google Benchmark does not have.
//! Not here: those it has (`bench::plan::gbench`).

use std::path::PathBuf;
use std::time::Duration;

use super::super::A_YEAR_S;
use super::super::choice;
use super::super::constraints::ConstraintArgs;
use super::super::driver::DriverArgs;
use super::super::place::PlaceArgs;
use bench::placing::{Sides, enter_cpus};
use bench::plan::gbench::{self, Flags};
use bench::plan::{
    Controls, Device, Family, Fault, Flavour, Gate, MinTime, Placement, Plan, Release, ScenarioCase,
};
use clap::builder::PossibleValuesParser;
use clap::{Arg, Args as _, Command, Parser, ValueEnum, ValueHint};
use record::CaseKind;

/// A throughput test in Google Benchmark's dialect.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Test {
    /// Android's `libbinder_benchmark`.
    Binder,
    /// Android's `libhwbinder_benchmark`.
    Hwbinder,
    /// Both flavours, and without IPC.
    All,
    /// Calls that any object answers.
    Ping,
    /// Android's `binderAddInts`.
    AddInts,
    /// Android's `binderRpcBenchmark`.
    Rpc,
    /// A scenario of this name, or all.
    Scenario(Option<&'static str>),
}

impl Test {
    pub(super) const EACH: [Self; 6] =
        [Self::Binder, Self::Hwbinder, Self::All, Self::Ping, Self::AddInts, Self::Rpc];

    /// Its default controls where it is not called as Android's tool.
    pub(in crate::cli) fn controls(self) -> &'static str {
        match self {
            // A pipe and a socket carry no empty message.
            Self::Ping => "futex,eventfd,spin",
            Self::Scenario(_) => "eventfd,raw",
            _ => "default",
        }
    }

    /// Its description.
    pub(super) fn about(self) -> &'static str {
        match self {
            Self::Binder => {
                "Measure binder calls of 4 B to 64 KiB, beside other ways; Android's libbinder_benchmark"
            }
            Self::Hwbinder => {
                "Measure hwbinder calls, or the same without IPC; Android's libhwbinder_benchmark"
            }
            Self::All => "Measure binder, hwbinder and the same without IPC in one run",
            Self::AddInts => {
                "Measure a call with two numbers that returns their sum; Android's binderAddInts"
            }
            Self::Rpc => {
                "Measure RPC binder over a unix socket, and binder by the driver; Android's binderRpcBenchmark"
            }
            Self::Scenario(_) => {
                "Measure what real systems do to Binder: oneway floods, descriptors, deaths, freezing"
            }
            Self::Ping => {
                "Measure calls that any object answers: needs no service of ours, so it works on production phones"
            }
        }
    }

    /// Its name in records and messages.
    pub(in crate::cli) fn title(self) -> String {
        match self {
            Self::Scenario(None) => "scenario all".to_owned(),
            Self::Scenario(Some(name)) => format!("scenario {name}"),
            _ => format!("throughput {}", self.word()),
        }
    }

    /// Its command, below `throughput` but for scenarios.
    pub(super) fn word(self) -> &'static str {
        match self {
            Self::Binder => "binder",
            Self::Hwbinder => "hwbinder",
            Self::All => "all",
            Self::Ping => "ping",
            Self::AddInts => "addints",
            Self::Rpc => "rpc",
            Self::Scenario(_) => "scenario",
        }
    }
}

/// How hwbinder's service is reached; spelled as in Android's tool.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
#[value(rename_all = "UPPER")]
enum Mode {
    /// Through the driver
    Binderize,
    /// In the same process, without IPC
    Passthrough,
}

/// Longest delay between two calls, in seconds: a case that makes no call for longer counts as hanging.
const MOST_DELAY_S: f64 = 10.0;

/// The flag that selects Google Benchmark's exit statuses.
pub(super) const COMPATIBLE: &str = "--gbench-compat";

/// Options besides Google Benchmark's.
#[derive(Clone, Debug, Parser)]
#[command(no_binary_name = true, disable_help_flag = true, disable_version_flag = true)]
pub(super) struct Own {
    /// hwbinder's service in another process, or in the same one without IPC [default: BINDERIZE]
    #[arg(short = 'm', long, value_name = "MODE", value_enum, hide_possible_values = true)]
    mode: Option<Mode>,

    /// CPU of the client [default: the scheduler's choice]
    #[arg(short = 'c', long, value_name = "CPU")]
    client_cpu: Option<u32>,

    /// CPU of the server [default: the scheduler's choice]
    #[arg(short = 's', long, value_name = "CPU")]
    server_cpu: Option<u32>,

    /// Seconds between two calls, in which the client spins; part of no time, so the run lasts so much longer
    #[arg(short = 'd', long, value_name = "S", default_value_t = 0.0)]
    delay: f64,

    /// Measure this registered service: an instance of IBenchmark, of a ping any name (of hwbinder INTERFACE/INSTANCE), of addints one like test.binderAddInts [default: an own service; of a ping the service manager]
    #[arg(long, value_name = "NAME")]
    service: Option<String>,

    /// The library whose objects are pinged: binder, hwbinder [default: binder]
    #[arg(long, value_name = "FLAVOUR", value_parser = choice::of([Flavour::Binder, Flavour::Hwbinder]))]
    flavour: Option<Flavour>,

    /// Numbers of threads that call at once through one session of RPC binder, each with a connection [default: 1]
    #[arg(long, value_name = "N", value_delimiter = ',', value_parser = clap::value_parser!(u32).range(1..=64))]
    threads: Vec<u32>,

    #[command(flatten)]
    driver: DriverArgs,

    #[command(flatten)]
    pub(super) constraints: ConstraintArgs,

    /// Write the whole record to FILE; `binderperf show FILE` reads it
    #[arg(help_heading = "Output", long, value_name = "FILE")]
    pub(super) record: Option<PathBuf>,

    /// Controls to compare with: default, all, none, or a list of pipe, unix, futex, eventfd, spin, raw, memcpy, parcel, hwparcel
    #[arg(long, value_name = "LIST")]
    controls: Option<Controls>,

    /// CPUs of both sides of every case: the scheduler's choice, the same, or two
    #[arg(long, value_name = "WHERE", default_value_t, value_parser = choice::of([Placement::Default, Placement::Same, Placement::Cross]))]
    placement: Placement,

    #[command(flatten)]
    pub(super) place: PlaceArgs,

    /// Android release of binder's wire format and of the names: 8 to 16, 15-qpr; 8 has sizes as on Android's page (2k to 64k) [default: 16]
    #[arg(long, value_name = "N")]
    android: Option<Release>,

    /// Fail if the test costs more than RATIO times a control, as in x_raw=1.10
    #[arg(help_heading = "Verdict", long, value_name = "x_CONTROL=RATIO")]
    pub(super) max: Vec<Gate>,

    /// Seed of the random order under --benchmark_enable_random_interleaving [default: the time]
    #[arg(long, value_name = "N")]
    seed: Option<u64>,

    /// Exit status as Google Benchmark's: 0 even if cases fail or none matches
    #[arg(help_heading = "Verdict", long)]
    pub(super) gbench_compat: bool,

    /// Report progress on stderr for another copy of this program
    #[arg(long, hide = true)]
    pub(super) progress: bool,

    /// Inject a fault: KIND=CASE with kill-server, hang-server, corrupt-reply or slow-server
    #[arg(long, hide = true, value_name = "KIND=CASE")]
    fault: Vec<Fault>,

    /// Seconds (more on a busy machine) without a round trip after which a case counts as hanging
    #[arg(long, hide = true, value_name = "S", default_value_t = 30, value_parser = clap::value_parser!(u64).range(1..=A_YEAR_S))]
    patience: u64,
}

/// The documented definition of a test: Google Benchmark's flags and the own ones that apply.
pub(crate) fn definition(test: Test) -> Command {
    let strange: &[&str] = match test {
        Test::Binder => &["mode", "service", "flavour", "client_cpu", "server_cpu", "delay", "threads"],
        Test::Hwbinder => &["flavour", "client_cpu", "server_cpu", "delay", "threads"],
        Test::All => {
            &["mode", "service", "device", "flavour", "client_cpu", "server_cpu", "delay", "threads"]
        }
        Test::Ping => &["mode", "client_cpu", "server_cpu", "delay", "threads"],
        Test::AddInts => &["mode", "flavour", "threads"],
        Test::Rpc => &["mode", "service", "flavour", "client_cpu", "server_cpu", "delay"],
        Test::Scenario(_) => &["mode", "service", "flavour", "client_cpu", "server_cpu", "delay", "threads"],
    };
    let definition = Command::new(test.word()).args(gbench::FLAGS.iter().map(flag));
    let whole = Own::augment_args(definition).about(test.about());
    let whole = whole.disable_help_flag(false).no_binary_name(false);
    strange.iter().fold(whole, |command, name| command.mut_arg(*name, |arg| arg.hide(true)))
}

/// A flag of Google Benchmark's.
fn flag(about: &gbench::About) -> Arg {
    let arg = Arg::new(about.name).long(about.name).help(about.help).value_name(about.value);
    let arg = arg.require_equals(true).help_heading("Google Benchmark's flags");
    let arg = if about.needs_value { arg } else { arg.num_args(0..=1) };
    match about.words {
        [] if about.value == "FILE" => arg.value_hint(ValueHint::FilePath),
        [] => arg,
        words => arg.value_parser(PossibleValuesParser::new(words)),
    }
}

impl Own {
    /// Moves this process to the chosen CPUs; returns those of both sides, if any were chosen.
    ///
    /// # Errors
    /// This machine does not have the place, or does not permit it.
    pub(super) fn enter_place(&self) -> Result<Option<Sides>, String> {
        let sides = self.place.enter()?;
        Ok(enter_cpus(self.client_cpu, self.server_cpu)?.or(sides))
    }

    /// The chosen place in words, for the record.
    fn place_words(&self) -> Option<String> {
        let side = |name: &str, cpu: Option<u32>| cpu.map(|cpu| format!("{name} on CPU {cpu}"));
        let sides = [side("client", self.client_cpu), side("server", self.server_cpu), self.place.words()];
        let words: Vec<String> = sides.into_iter().flatten().collect();
        (!words.is_empty()).then(|| words.join(", "))
    }

    /// Parses the arguments that are not Google Benchmark's, with these default controls.
    pub(super) fn parse(words: Vec<String>, controls: &str) -> Result<Self, String> {
        let mut own = Self::try_parse_from(words).map_err(|error| {
            let text = error.to_string();
            let reason = text.split("\n\nUsage:").next().unwrap_or_default().trim();
            reason.strip_prefix("error: ").unwrap_or(reason).to_owned()
        })?;
        if own.controls.is_none() {
            own.controls = Some(controls.parse()?);
        }
        Ok(own)
    }

    /// Refuses options that do not apply to the test.
    fn check(&self, test: Test) -> Result<(), String> {
        let device = self.driver.device();
        let kind = if matches!(test, Test::Scenario(_)) { Test::Scenario(None) } else { test };
        let given = [
            ("-m", self.mode.is_some(), &[Test::Hwbinder][..], "it is about hwbinder's service"),
            (
                "--service",
                self.service.is_some(),
                &[Test::Hwbinder, Test::Ping, Test::AddInts],
                "it is about hwbinder's service, or about whom to ping or to ask for sums",
            ),
            ("-c", self.client_cpu.is_some(), &[Test::AddInts], "use --placement or --cluster"),
            ("-s", self.server_cpu.is_some(), &[Test::AddInts], "use --placement or --cluster"),
            ("--threads", !self.threads.is_empty(), &[Test::Rpc], "use throughput workers"),
            ("-d", self.delay != 0.0, &[Test::AddInts], "its calls follow each other at once"),
            ("--flavour", self.flavour.is_some(), &[Test::Ping], "the test's name says it"),
            (
                "--android",
                self.android.is_some_and(|release| release != Release::Android8),
                &[Test::Binder, Test::All, Test::Ping, Test::AddInts, Test::Rpc, Test::Scenario(None)],
                "no release but 8 has other names than today's, and none changed hwbinder's format",
            ),
            (
                "--device",
                !matches!(device, Device::Auto | Device::Private),
                &[Test::Binder, Test::Hwbinder, Test::Ping, Test::AddInts, Test::Rpc, Test::Scenario(None)],
                "each flavour needs a context of its own",
            ),
        ];
        if let Some((flag, _, _, why)) =
            given.iter().find(|(_, given, tests, _)| *given && !tests.contains(&kind))
        {
            return Err(format!("{flag} does not go with {}: {why}", test.title()));
        }
        if let Some(clusters) = self.place.cluster.filter(|clusters| clusters.client != clusters.server) {
            if self.placement != Placement::Default {
                return Err(format!("--placement is about one cluster, and --cluster {clusters} names two"));
            }
            if test == Test::Ping {
                return Err("a ping's server cannot be placed: --cluster takes one cluster here".to_owned());
            }
        }
        if !(0.0..=MOST_DELAY_S).contains(&self.delay) {
            return Err(format!("-d {}: a delay is 0 to {MOST_DELAY_S} seconds", self.delay));
        }
        let one_cpu = self.client_cpu.or(self.server_cpu).is_some();
        if one_cpu && (self.place.cluster.is_some() || self.placement != Placement::Default) {
            return Err(
                "-c and -s name CPUs, as --cluster and --placement do otherwise: use one way".to_owned()
            );
        }
        if self.service.is_some() && self.server_cpu.is_some() {
            return Err("-s places a server of ours, and --service is another process's".to_owned());
        }
        match (&self.service, self.mode) {
            (Some(_), Some(Mode::Passthrough)) => {
                Err("--service is another process's, which -m PASSTHROUGH does without".to_owned())
            }
            (Some(_), _) if device == Device::Private => {
                Err("nobody has registered --service in a private context: name its --device".to_owned())
            }
            _ => Ok(()),
        }
    }

    fn tests(&self, test: Test) -> Vec<Family> {
        match (test, self.mode) {
            (Test::Binder, _) => vec![Family::Binder],
            (Test::Hwbinder, Some(Mode::Passthrough)) => vec![Family::Passthrough],
            (Test::Hwbinder, _) => vec![Family::Binderize],
            (Test::All, _) => Family::TESTS.to_vec(),
            (Test::Ping, _) if self.pinged() == Flavour::Hwbinder => vec![Family::HwPing],
            (Test::Ping, _) => vec![Family::Ping, Family::Interface],
            (Test::AddInts, _) => vec![Family::AddInts],
            (Test::Rpc, _) => vec![Family::RpcPing, Family::Ping, Family::Rpc, Family::Binder],
            (Test::Scenario(name), _) => ScenarioCase::of(name).into_iter().map(Family::Scenario).collect(),
        }
    }

    /// The library whose objects are called, where that is a choice.
    fn pinged(&self) -> Flavour {
        self.flavour.unwrap_or(Flavour::Binder)
    }

    /// The plan from both kinds of flags.
    pub(super) fn plan(&self, test: Test, flags: &Flags, command_line: Vec<String>) -> Result<Plan, String> {
        self.check(test)?;
        let mut wanted = self.driver.wanted()?;
        if self.service.is_some() && wanted.device == Device::Auto {
            let flavour = if test == Test::Hwbinder { Flavour::Hwbinder } else { self.pinged() };
            let name = flavour.name();
            wanted.device = Device::Named(name.to_owned());
        }
        let controls = self.controls.clone().unwrap_or_else(Controls::none);
        for gate in &self.max {
            if !controls.families().any(|family| family == gate.control) {
                let word = gate.control.word();
                return Err(format!(
                    "--max x_{word} compares with a control that is not run: add --controls {word}"
                ));
            }
        }
        let plan = Plan {
            test: test.title(),
            tests: self.tests(test),
            payloads: if test == Test::Rpc { Family::Rpc.values().to_vec() } else { Vec::new() },
            threads: if self.threads.is_empty() { vec![1] } else { ascending(&self.threads) },
            delay: Duration::from_secs_f64(self.delay),
            service: self.service.clone(),
            controls,
            filter: flags.filter.clone(),
            min_time: flags.min_time.unwrap_or_else(|| MinTime::usual(host::class())),
            min_warmup_s: flags.min_warmup_s.unwrap_or(0.0),
            repetitions: flags.repetitions,
            dry_run: flags.dry_run,
            interleaving_seed: flags
                .random_interleaving
                .then(|| self.seed.unwrap_or_else(bench::plan::fresh_seed)),
            wanted,
            placement: self.placement,
            place: self.place_words(),
            android: self.android.unwrap_or_default(),
            short_sizes: self.android == Some(Release::Android8)
                && matches!(test, Test::Binder | Test::Hwbinder),
            faults: self.fault.clone(),
            patience_s: self.patience,
            context: flags.context.clone(),
            command_line,
            ..Plan::default()
        };
        self.check_judged(&plan)?;
        Ok(plan)
    }

    /// Refuses limits that no case would be checked against. An empty selection is reported elsewhere.
    fn check_judged(&self, plan: &Plan) -> Result<(), String> {
        let cases = plan.cases();
        let judges = cases.is_empty() || cases.iter().any(|planned| planned.case.kind == CaseKind::Test);
        match self.max.first() {
            Some(gate) if !judges => Err(format!(
                "--max x_{} has no case to judge: the filter {:?} lets only controls through",
                gate.control.word(),
                plan.filter.as_str()
            )),
            _ => Ok(()),
        }
    }
}

/// The numbers in ascending order, each once.
pub(in crate::cli) fn ascending<T: Ord + Copy>(numbers: &[T]) -> Vec<T> {
    let mut numbers = numbers.to_vec();
    numbers.sort_unstable();
    numbers.dedup();
    numbers
}

#[cfg(test)]
mod tests {
    use super::*;

    fn own(words: &[&str]) -> Result<Own, String> {
        Own::parse(words.iter().map(|word| (*word).to_owned()).collect(), "default")
    }

    #[test]
    fn both_ways_to_give_a_value() {
        let spaced = own(&["--record", "x", "--controls", "none", "--max", "x_raw=1.1"]).expect("fine");
        let joined = own(&["--record=x", "--controls=none", "--max=x_raw=1.1"]).expect("fine");
        assert_eq!(format!("{spaced:?}"), format!("{joined:?}"));
        assert_eq!(own(&[]).expect("fine").controls, Some(Controls::default_set()));
    }

    #[test]
    fn what_is_wrong_is_named() {
        for (words, want) in [
            (&["--recrod=x"][..], "--recrod"),
            (&["--controls=tcp"], "tcp"),
            (&["--max=p99=3"], "p99"),
            (&["--patience=0"], "0"),
            (&["stray"], "stray"),
            (&["--record"], "--record"),
        ] {
            let error = own(words).expect_err("wrong");
            assert!(error.contains(want) && !error.contains("Usage:"), "{error}");
        }
    }

    #[test]
    fn android_8_has_the_pages_names() {
        let names = |test: Test, filter: &str| -> Vec<String> {
            let words = vec![format!("--benchmark_filter={filter}")];
            let (flags, _) = Flags::parse(words, |_| None).expect("fine");
            let own = own(&["--android=8", "--controls=none"]).expect("fine");
            let plan = own.plan(test, &flags, Vec::new()).expect("a plan");
            plan.cases().into_iter().map(|planned| planned.case.name).collect()
        };
        let all = names(Test::Hwbinder, ".*");
        let of = |at: usize| all[at].as_str();
        assert_eq!((of(0), of(all.len() - 1)), ("BM_sendVec_binderize/4", "BM_sendVec_binderize/64k"));
        assert!(all.iter().any(|name| name == "BM_sendVec_binderize/1024"), "{all:?}");
        assert_eq!(names(Test::Hwbinder, "/2k$"), ["BM_sendVec_binderize/2k"]);
        assert_eq!(names(Test::Binder, "/64k$"), ["BM_sendVec_binder/64k"]);
        assert!(names(Test::Hwbinder, "/2048").is_empty());
    }

    #[test]
    fn a_limit_needs_its_control() {
        let flags = Flags::default();
        let without = own(&["--max=x_raw=1.1"]).expect("words are fine");
        assert!(
            without.plan(Test::Binder, &flags, Vec::new()).expect_err("no raw").contains("--controls raw")
        );
        let with = own(&["--max=x_raw=1.1", "--controls=raw"]).expect("fine");
        assert!(with.plan(Test::Binder, &flags, Vec::new()).is_ok());
    }

    #[test]
    fn a_limit_needs_a_case_to_judge() {
        let plan = |filter: &str| {
            let words = vec![format!("--benchmark_filter={filter}")];
            let (flags, _) = Flags::parse(words, |_| None).expect("fine");
            let own = own(&["--max=x_eventfd=100", "--controls=eventfd"]).expect("fine");
            own.plan(Test::Binder, &flags, Vec::new())
        };
        let why = plan("BM_sendVec_eventfd/4$").expect_err("only the control");
        assert!(why.contains("no case to judge") && why.contains("eventfd"), "{why}");
        assert!(plan("/4$").is_ok());
        assert!(plan("nothing").is_ok(), "told elsewhere");
    }

    #[test]
    fn what_is_shown_is_what_is_read() {
        for test in Test::EACH {
            let shown = definition(test).render_long_help().to_string();
            assert!(shown.contains("--record") && shown.contains("--gbench-compat"), "{shown}");
            assert!(!shown.contains("--fault") && shown.contains("--benchmark_filter=<REGEX>"), "{shown}");
        }
        assert!(definition(Test::Binder).render_help().to_string().contains("--android"));
        assert!(definition(Test::Hwbinder).render_help().to_string().contains("--android"));
        definition(Test::All).debug_assert();
    }
}
