//! Soak: the tests of a quick suite in turns under load, for hours; beside their figures what must not grow.
//! Not here: the log and the verdict (`record::soak`), files and words (the command line).
//!
//! - [`fault`]: deliberate faults that a soak must find.
//! - [`resident`]: a service that lives as long as the soak, and its client in this process.
//! - `growth`: the counts after each turn.

pub mod fault;
mod growth;
pub mod resident;

use std::path::Path;
use std::time::{Duration, Instant};

use backend::AnyContext;
use backend::locate::{Device, Driver, Wanted};
use procgroup::{OWN_PROGRAM, Streams, WorkerProcess};
use record::history::environment;
use record::soak::{Setup, Turn};
use record::{Finding, Run};
use sys::private_folder::PrivateFolder;

use crate::brokers::Brokers;
use crate::latency::{self, Injected};
use crate::load::{self, LoadSpec, Loads};
use crate::plan::{Controls, Dialect, MinTime, Placement, Plan, Release};
use crate::run::{self, Observer, RunError};
use crate::servers::OwnManager;
use crate::suite::{self, Depth, SuiteOptions};
use fault::SoakFault;
use growth::Growth;
use resident::Resident;

/// Time limit for a broker to start.
const PATIENCE: Duration = Duration::from_secs(30);
/// Repetitions of each throughput case in a turn.
const REPETITIONS: u32 = 3;
/// Iterations of each case of a tiny turn.
const TINY_ITERATIONS: u64 = 50;

/// Options of a soak.
#[derive(Clone, Debug)]
pub struct SoakOptions {
    /// Driver and context.
    pub wanted: Wanted,
    /// Whether `wanted` contains the embedded driver's inheritance; if not, latency tests have it inherit all.
    pub inherits_as_told: bool,
    /// Load during the whole soak.
    pub loads: Vec<LoadSpec>,
    /// Deliberate faults of the latency tests.
    pub injected: Vec<Injected>,
    /// Deliberate faults of the soak.
    pub faults: Vec<SoakFault>,
    /// Seconds without a reply after which a test counts as hanging.
    pub patience_s: u64,
    /// Whether each turn does the least that has figures, for tests of the soak itself.
    pub tiny: bool,
    /// Command line.
    pub command_line: Vec<String>,
}

/// A soak under way: its driver, load and resident service.
pub struct Soak {
    options: SoakOptions,
    /// Facts about machine and driver.
    facts: Run,
    resident: Resident,
    growth: Growth,
    loads: Loads,
    brokers: Brokers,
    _manager: OwnManager,
    /// The broker with a fault.
    _broker: Option<WorkerProcess>,
    /// The embedded driver's directory, if it is this soak's.
    _directory: Option<PrivateFolder>,
}

/// Why a soak has no further turn.
#[derive(Debug)]
pub enum TurnEnd {
    /// A signal ended the turn; its figures are not whole.
    Interrupted,
    /// The driver, the load or the resident service is lost.
    Broken(String),
}

impl Soak {
    /// Starts what lives as long as the soak. `last` is the last turn of the stretch before.
    ///
    /// # Errors
    /// [`RunError`]: no driver; or its broker, a service manager, the load or the service cannot be started.
    pub fn begin(mut options: SoakOptions, last: Option<&Turn>) -> Result<Self, RunError> {
        let unready = |why: String| RunError::Unready(why);
        sys::stop_signal::catch().map_err(RunError::Os)?;
        let (found, driver) =
            run::find_driver(&options.wanted, Dialect::Binder(Release::default()).context())?;
        let facts = run::new_run(throughput(&options).for_record(), Some(driver), host::class());
        let is_private = matches!(&found, AnyContext::Embedded(context) if context.is_private());
        drop(found);
        let directory = is_private.then(|| PrivateFolder::new("soak")).transpose().map_err(RunError::Os)?;
        if let Some(directory) = &directory {
            // One broker for all turns.
            options.wanted.driver = Driver::Embedded;
            options.wanted.device = Device::Auto;
            options.wanted.context_dir = Some(directory.path().to_owned());
        }
        let forgets = options.faults.contains(&SoakFault::LeakBroker);
        let broker = match (&options.wanted.context_dir, forgets) {
            (_, false) => None,
            (Some(directory), true) => Some(leaking_broker(directory).map_err(unready)?),
            (None, true) => return Err(unready("leak-broker is a fault of the embedded driver".to_owned())),
        };
        let dialect = dialect(&options);
        let (context, _) = run::find_driver(&options.wanted, dialect.context())?;
        let brokers = Brokers::watch([&context], Instant::now()).map_err(RunError::NoDriver)?;
        let manager = OwnManager::start(dialect, context.clone(), options.patience_s)
            .map_err(|error| unready(error.to_string()))?;
        let resident = Resident::start(&context, dialect, &options.faults).map_err(unready)?;
        let growth = Growth::begin(&context, &options.wanted, last);
        let loads = Loads::start(&options.loads, None).map_err(unready)?;
        Ok(Self {
            options,
            facts,
            resident,
            growth,
            loads,
            brokers,
            _manager: manager,
            _broker: broker,
            _directory: directory,
        })
    }

    /// Facts about machine and driver.
    #[must_use]
    pub fn facts(&self) -> &Run {
        &self.facts
    }

    /// The setup, which all stretches of a soak have in common.
    #[must_use]
    pub fn setup(&self) -> Setup {
        let faults = self.options.faults.iter().map(ToString::to_string);
        let faults: Vec<_> = self.options.injected.iter().map(ToString::to_string).chain(faults).collect();
        let mut setup = environment(&self.facts);
        for (what, words) in [("load", load::describe(&self.options.loads)), ("injected", faults.join(","))] {
            if !words.is_empty() {
                setup += &format!("; {what} {words}");
            }
        }
        Setup::new(setup, self.facts.clock.unit)
    }

    /// Runs all tests once, as the turn of this number. The caller adds number, times and boot.
    ///
    /// # Errors
    /// [`TurnEnd`]; a test that fails alone is among the turn's failures.
    pub fn turn(&mut self, number: u64, observer: &mut dyn Observer) -> Result<Turn, TurnEnd> {
        let mut turn = Turn::default();
        let mut add = |name: &str, result: Result<Run, RunError>| {
            let lost =
                |run: &Run| run.findings.iter().find(|finding| finding.id == Finding::BROKER_LOST).cloned();
            match result {
                _ if sys::stop_signal::received().is_some() => return Err(TurnEnd::Interrupted),
                Ok(run) if lost(&run).is_some() => {
                    return Err(TurnEnd::Broken(lost(&run).map(|finding| finding.text).unwrap_or_default()));
                }
                Ok(run) => {
                    let why = run.incomplete_reason.as_ref().filter(|_| !run.complete);
                    turn.failed.extend(why.map(|why| format!("{name}: {why}")));
                    let broken = run.cases.iter().filter_map(|case| Some((&case.name, case.failure()?)));
                    turn.failed.extend(broken.map(|(case, why)| format!("{name}, {case}: {why}")));
                    turn.add(&run);
                }
                Err(error) => turn.failed.push(format!("{name}: {error}")),
            }
            Ok(())
        };
        add("throughput", run::execute(&throughput(&self.options), observer))?;
        let suite = suite_options(&self.options, number);
        let most = if self.options.tiny { 1 } else { usize::MAX };
        for flavour in suite::flavours(&suite).take(most) {
            let options = suite::latency_options(&suite, flavour);
            let iterations = if self.options.tiny { TINY_ITERATIONS } else { options.iterations };
            let options = latency::LatencyOptions { scenes: false, iterations, ..options };
            add(&options.test, latency::execute(&options, observer))?;
        }
        let broken = |why: String| TurnEnd::Broken(why);
        let alive = if self.brokers.live() { Ok(()) } else { Err("the embedded driver's broker ended") };
        alive.map_err(|why| broken(why.to_owned()))?;
        self.loads.check().map_err(broken)?;
        let times = self.resident.turn().map_err(broken)?;
        turn.figures.extend(times);
        let processes = [("service", self.resident.pid()), ("own", std::process::id())];
        let brokers = self.brokers.pids().into_iter().map(|pid| ("broker", pid));
        let processes: Vec<_> = processes.into_iter().chain(brokers).collect();
        self.growth.count(&processes, &mut turn);
        Ok(turn)
    }
}

/// The flavour of the resident service: that of the named context, else binder.
fn dialect(options: &SoakOptions) -> Dialect {
    match suite::named(&options.wanted.device) {
        Some(name) if name.contains("hwbinder") => Dialect::Hwbinder,
        _ => Dialect::Binder(Release::default()),
    }
}

/// Starts a broker that keeps the nodes of processes that ended.
fn leaking_broker(directory: &Path) -> Result<WorkerProcess, String> {
    let failed = |error: std::io::Error| format!("starting a broker: {}", sys::errno::describe(&error));
    let words = [
        backend::broker::COMMAND.to_owned(),
        backend::broker::LEAKING.to_owned(),
        directory.display().to_string(),
    ];
    let broker = WorkerProcess::spawn(Path::new(OWN_PROGRAM), "broker", &words, Streams::heard(), None)
        .map_err(failed)?;
    broker.ready(PATIENCE).map_err(|why| format!("the broker did not start: {why}"))?;
    Ok(broker)
}

fn throughput(options: &SoakOptions) -> Plan {
    let placed = suite::throughput(&suite_options(options, 0), Placement::Same);
    let plan = Plan {
        test: "throughput in a soak".to_owned(),
        placement: Placement::Default,
        controls: Controls::none(),
        repetitions: REPETITIONS,
        ..placed
    };
    if !options.tiny {
        return plan;
    }
    let tests = plan.tests[..1].to_vec();
    Plan { tests, payloads: vec![4], repetitions: 1, min_time: MinTime::Iterations(TINY_ITERATIONS), ..plan }
}

/// The options of a quick suite in the turn of this number.
fn suite_options(options: &SoakOptions, number: u64) -> SuiteOptions {
    let slower = options.faults.iter().filter_map(|fault| fault.delay(number));
    SuiteOptions {
        depth: Depth::Quick,
        experiments: false,
        wanted: options.wanted.clone(),
        inherits_as_told: options.inherits_as_told,
        recordings: None,
        injected: options.injected.iter().copied().chain(slower).collect(),
        patience_s: options.patience_s,
        command_line: options.command_line.clone(),
    }
}
