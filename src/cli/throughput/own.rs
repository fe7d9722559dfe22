//! Options of the throughput tests that Google Benchmark does not have.
//! Not here: those it has (`bench::plan::gbench`), the plan (`bench::plan::request`).

use std::path::PathBuf;

use super::super::A_YEAR_S;
use super::super::choice::{self, Table};
use super::super::constraints::ConstraintArgs;
use super::super::driver::DriverArgs;
use super::super::place::PlaceArgs;
use bench::placing::{Sides, enter_cpus};
use bench::plan::gbench::{self, Flags};
use bench::plan::request::{Request, Test};
use bench::plan::{Controls, Fault, Flavour, Gate, Placement, Plan, Release};
use clap::builder::PossibleValuesParser;
use clap::{Arg, Args as _, Command, Parser, ValueHint};

/// The description of a test.
pub(super) fn about(test: Test) -> &'static str {
    match test {
        Test::Binder => {
            "Measure binder calls of 4 B to 64 KiB, beside other ways; Android's libbinder_benchmark"
        }
        Test::Hwbinder => "Measure hwbinder calls, or the same without IPC; Android's libhwbinder_benchmark",
        Test::All => "Measure binder, hwbinder and the same without IPC in one run",
        Test::AddInts => "Measure a call with two numbers that returns their sum; Android's binderAddInts",
        Test::Rpc => {
            "Measure RPC binder over a unix socket, and binder by the driver; Android's binderRpcBenchmark"
        }
        Test::Scenario(_) => {
            "Measure what real systems do to Binder: oneway floods, descriptors, deaths, freezing"
        }
        Test::Ping => {
            "Measure calls that any object answers: needs no service of ours, so it works on production phones"
        }
    }
}

/// Whether hwbinder's service is reached without IPC; spelled as in Android's tool.
const MODES: Table<bool, 2> =
    [(false, "BINDERIZE", "Through the driver"), (true, "PASSTHROUGH", "In the same process, without IPC")];

/// The flag that selects Google Benchmark's exit statuses.
pub(super) const COMPATIBLE: &str = "--gbench-compat";

/// Options besides Google Benchmark's.
#[derive(Clone, Debug, Parser)]
#[command(no_binary_name = true, disable_help_flag = true, disable_version_flag = true)]
pub(super) struct Own {
    /// hwbinder's service in another process, or in the same one without IPC [default: BINDERIZE]
    #[arg(short = 'm', long, value_name = "MODE", value_parser = choice::table(&MODES), hide_possible_values = true)]
    mode: Option<bool>,

    /// CPU of the client [default: the scheduler's choice]
    #[arg(short = 'c', long, value_name = "CPU")]
    client_cpu: Option<u32>,

    /// CPU of the server [default: the scheduler's choice]
    #[arg(short = 's', long, value_name = "CPU")]
    server_cpu: Option<u32>,

    /// Seconds between two calls, in which the client spins; part of no time, so the run lasts so much longer
    #[arg(short = 'd', long, value_name = "S", default_value_t = 0.0)]
    delay: f64,

    /// Measure this registered service: an instance of IBenchmark, of a ping any name (of hwbinder INTERFACE/INSTANCE),
    /// of addints one like test.binderAddInts [default: an own service; of a ping the service manager]
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

    /// Android release of binder's wire format and of the names: 8 to 16, 15-qpr; 8 has sizes as on Android's page (2k
    /// to 64k) [default: 16]
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
    let whole = Own::augment_args(definition).about(about(test));
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

    /// The plan from both kinds of flags.
    pub(super) fn plan(&self, test: Test, flags: &Flags, command_line: Vec<String>) -> Result<Plan, String> {
        let request = self.request();
        // First what does not go together, then what this machine lacks.
        request.check(test)?;
        request.plan(test, flags, self.driver.wanted()?, command_line)
    }

    /// The request that the options make.
    fn request(&self) -> Request {
        Request {
            passthrough: self.mode,
            client_cpu: self.client_cpu,
            server_cpu: self.server_cpu,
            delay_s: self.delay,
            service: self.service.clone(),
            flavour: self.flavour,
            threads: self.threads.clone(),
            device: self.driver.device(),
            controls: self.controls.clone().unwrap_or_else(Controls::none),
            placement: self.placement,
            cluster: self.place.cluster,
            place: self.place.words(),
            android: self.android,
            max: self.max.clone(),
            seed: self.seed,
            faults: self.fault.clone(),
            patience_s: self.patience,
        }
    }
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
