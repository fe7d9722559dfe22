//! A throughput test as it is asked for: what goes together, and the plan of it.
//! Not here: the words (the command line), Google Benchmark's flags (`gbench`), executing it (`crate::run`).

use std::time::Duration;

use record::CaseKind;

use super::gbench::Flags;
use super::{
    Controls, Device, Family, Fault, Flavour, Gate, MinTime, Placement, Plan, Release, ScenarioCase, Wanted,
    fresh_seed,
};
use crate::placing::Clusters;

/// A throughput test in Google Benchmark's dialect.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Test {
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
    /// Each test but scenarios.
    pub const EACH: [Self; 6] =
        [Self::Binder, Self::Hwbinder, Self::All, Self::Ping, Self::AddInts, Self::Rpc];

    /// Its default controls where it is not called as Android's tool.
    #[must_use]
    pub fn controls(self) -> &'static str {
        match self {
            // A pipe and a socket carry no empty message.
            Self::Ping => "futex,eventfd,spin",
            Self::Scenario(_) => "eventfd,raw",
            _ => "default",
        }
    }

    /// Its name in records and messages.
    #[must_use]
    pub fn title(self) -> String {
        match self {
            Self::Scenario(None) => "scenario all".to_owned(),
            Self::Scenario(Some(name)) => format!("scenario {name}"),
            _ => format!("throughput {}", self.word()),
        }
    }

    /// Its command, below `throughput` but for scenarios.
    #[must_use]
    pub fn word(self) -> &'static str {
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

/// Longest delay between two calls, in seconds: a case that makes no call for longer counts as hanging.
const MOST_DELAY_S: f64 = 10.0;

/// Options of a throughput test besides Google Benchmark's.
#[derive(Clone, Debug)]
pub struct Request {
    /// Whether hwbinder's service is in the client's process, without IPC; `None`: nothing was said.
    pub passthrough: Option<bool>,
    /// CPU of the client.
    pub client_cpu: Option<u32>,
    /// CPU of the server.
    pub server_cpu: Option<u32>,
    /// Seconds between two calls.
    pub delay_s: f64,
    /// A registered service of another process.
    pub service: Option<String>,
    /// The library whose objects are pinged.
    pub flavour: Option<Flavour>,
    /// Numbers of threads in one session of RPC binder; empty for one.
    pub threads: Vec<u32>,
    /// The context that was asked for.
    pub device: Device,
    /// Controls to compare with.
    pub controls: Controls,
    /// CPUs of both sides of every case.
    pub placement: Placement,
    /// Clusters of both sides.
    pub cluster: Option<Clusters>,
    /// The chosen cluster and cpuset in words.
    pub place: Option<String>,
    /// Android release of wire format and names.
    pub android: Option<Release>,
    /// Limits of ratios to controls.
    pub max: Vec<Gate>,
    /// Seed of a random order; else the time.
    pub seed: Option<u64>,
    /// Deliberate breakage.
    pub faults: Vec<Fault>,
    /// Time limit without a round trip, in seconds.
    pub patience_s: u64,
}

impl Request {
    /// Refuses options that do not apply to the test.
    ///
    /// # Errors
    /// The text names the option, and says why.
    pub fn check(&self, test: Test) -> Result<(), String> {
        let device = &self.device;
        let kind = if matches!(test, Test::Scenario(_)) { Test::Scenario(None) } else { test };
        let given = [
            ("-m", self.passthrough.is_some(), &[Test::Hwbinder][..], "it is about hwbinder's service"),
            (
                "--service",
                self.service.is_some(),
                &[Test::Hwbinder, Test::Ping, Test::AddInts],
                "it is about hwbinder's service, or about whom to ping or to ask for sums",
            ),
            ("-c", self.client_cpu.is_some(), &[Test::AddInts], "use --placement or --cluster"),
            ("-s", self.server_cpu.is_some(), &[Test::AddInts], "use --placement or --cluster"),
            ("--threads", !self.threads.is_empty(), &[Test::Rpc], "use throughput workers"),
            ("-d", self.delay_s != 0.0, &[Test::AddInts], "its calls follow each other at once"),
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
        if let Some(clusters) = self.cluster.filter(|clusters| clusters.client != clusters.server) {
            if self.placement != Placement::Default {
                return Err(format!("--placement is about one cluster, and --cluster {clusters} names two"));
            }
            if test == Test::Ping {
                return Err("a ping's server cannot be placed: --cluster takes one cluster here".to_owned());
            }
        }
        if !(0.0..=MOST_DELAY_S).contains(&self.delay_s) {
            return Err(format!("-d {}: a delay is 0 to {MOST_DELAY_S} seconds", self.delay_s));
        }
        let one_cpu = self.client_cpu.or(self.server_cpu).is_some();
        if one_cpu && (self.cluster.is_some() || self.placement != Placement::Default) {
            return Err(
                "-c and -s name CPUs, as --cluster and --placement do otherwise: use one way".to_owned()
            );
        }
        if self.service.is_some() && self.server_cpu.is_some() {
            return Err("-s places a server of ours, and --service is another process's".to_owned());
        }
        match (&self.service, self.passthrough) {
            (Some(_), Some(true)) => {
                Err("--service is another process's, which -m PASSTHROUGH does without".to_owned())
            }
            (Some(_), _) if *device == Device::Private => {
                Err("nobody has registered --service in a private context: name its --device".to_owned())
            }
            _ => Ok(()),
        }
    }

    fn tests(&self, test: Test) -> Vec<Family> {
        match (test, self.passthrough) {
            (Test::Binder, _) => vec![Family::Binder],
            (Test::Hwbinder, Some(true)) => vec![Family::Passthrough],
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

    /// The plan from these and from Google Benchmark's flags, on this driver.
    ///
    /// # Errors
    /// See [`Request::check`]. A limit has no control to compare with, or no case to judge.
    pub fn plan(
        &self,
        test: Test,
        flags: &Flags,
        mut wanted: Wanted,
        command_line: Vec<String>,
    ) -> Result<Plan, String> {
        self.check(test)?;
        if self.service.is_some() && wanted.device == Device::Auto {
            let flavour = if test == Test::Hwbinder { Flavour::Hwbinder } else { self.pinged() };
            let name = flavour.name();
            wanted.device = Device::Named(name.to_owned());
        }
        for gate in &self.max {
            if !self.controls.families().any(|family| family == gate.control) {
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
            delay: Duration::from_secs_f64(self.delay_s),
            service: self.service.clone(),
            controls: self.controls.clone(),
            filter: flags.filter.clone(),
            min_time: flags.min_time.unwrap_or_else(|| MinTime::usual(host::class())),
            min_warmup_s: flags.min_warmup_s.unwrap_or(0.0),
            repetitions: flags.repetitions,
            dry_run: flags.dry_run,
            interleaving_seed: flags.random_interleaving.then(|| self.seed.unwrap_or_else(fresh_seed)),
            wanted,
            placement: self.placement,
            place: self.place_words(),
            android: self.android.unwrap_or_default(),
            short_sizes: self.android == Some(Release::Android8)
                && matches!(test, Test::Binder | Test::Hwbinder),
            faults: self.faults.clone(),
            patience_s: self.patience_s,
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

    /// The chosen place in words, for the record.
    fn place_words(&self) -> Option<String> {
        let side = |name: &str, cpu: Option<u32>| cpu.map(|cpu| format!("{name} on CPU {cpu}"));
        let sides = [side("client", self.client_cpu), side("server", self.server_cpu), self.place.clone()];
        let words: Vec<String> = sides.into_iter().flatten().collect();
        (!words.is_empty()).then(|| words.join(", "))
    }
}

/// The numbers in ascending order, each once.
#[must_use]
pub fn ascending<T: Ord + Copy>(numbers: &[T]) -> Vec<T> {
    let mut numbers = numbers.to_vec();
    numbers.sort_unstable();
    numbers.dedup();
    numbers
}

#[cfg(test)]
mod tests {
    use super::*;

    /// A request with these controls and nothing else.
    fn request(controls: &str) -> Request {
        Request {
            passthrough: None,
            client_cpu: None,
            server_cpu: None,
            delay_s: 0.0,
            service: None,
            flavour: None,
            threads: Vec::new(),
            device: Device::Auto,
            controls: controls.parse().expect("controls"),
            placement: Placement::Default,
            cluster: None,
            place: None,
            android: None,
            max: Vec::new(),
            seed: None,
            faults: Vec::new(),
            patience_s: 30,
        }
    }

    #[test]
    fn options_of_other_tests_are_refused_with_their_name() {
        let passthrough = Request { passthrough: Some(true), ..request("none") };
        let threads = Request { threads: vec![2], ..request("none") };
        let service = Request { service: Some("x".to_owned()), ..request("none") };
        let private = Request { device: Device::Private, ..service.clone() };
        for (asked, test, says) in [
            (&passthrough, Test::Binder, "-m does not go with throughput binder"),
            (&threads, Test::Scenario(Some("flood")), "--threads does not go with scenario flood"),
            (&service, Test::All, "--service does not go with throughput all"),
            (&private, Test::Ping, "name its --device"),
        ] {
            let why = asked.check(test).expect_err("refused");
            assert!(why.contains(says), "{why}");
        }
        assert_eq!((passthrough.check(Test::Hwbinder), service.check(Test::Ping)), (Ok(()), Ok(())));
        assert_eq!(threads.check(Test::Rpc), Ok(()));
        for delay_s in [-1.0, f64::NAN, 11.0] {
            assert!(Request { delay_s, ..request("none") }.check(Test::AddInts).is_err(), "{delay_s}");
        }
    }

    #[test]
    fn android_8_has_the_pages_names() {
        let names = |test: Test, filter: &str| -> Vec<String> {
            let words = vec![format!("--benchmark_filter={filter}")];
            let (flags, _) = Flags::parse(words, |_| None).expect("fine");
            let request = Request { android: Some(Release::Android8), ..request("none") };
            let plan = request.plan(test, &flags, Wanted::default(), Vec::new()).expect("a plan");
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
        let plan = |controls: &str| {
            let max = vec!["x_raw=1.1".parse().expect("a limit")];
            let request = Request { max, ..request(controls) };
            request.plan(Test::Binder, &flags, Wanted::default(), Vec::new())
        };
        assert!(plan("default").expect_err("no raw").contains("--controls raw"));
        assert!(plan("raw").is_ok());
    }

    #[test]
    fn a_limit_needs_a_case_to_judge() {
        let plan = |filter: &str| {
            let words = vec![format!("--benchmark_filter={filter}")];
            let (flags, _) = Flags::parse(words, |_| None).expect("fine");
            let max = vec!["x_eventfd=100".parse().expect("a limit")];
            let request = Request { max, ..request("eventfd") };
            request.plan(Test::Binder, &flags, Wanted::default(), Vec::new())
        };
        let why = plan("BM_sendVec_eventfd/4$").expect_err("only the control");
        assert!(why.contains("no case to judge") && why.contains("eventfd"), "{why}");
        assert!(plan("/4$").is_ok());
        assert!(plan("nothing").is_ok(), "told elsewhere");
    }
}
