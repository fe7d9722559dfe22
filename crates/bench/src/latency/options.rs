//! Options of a latency test, and their validation.
//! Not here: parsing them (the command line).
//! Facts: defaults of Android's `libhwbinder_latency` and `schd-dbg`.

use std::path::PathBuf;

use driver::connection::default_map_size;
use embedded::Inherit;

use super::fault::Injected;
use crate::load::{self, LoadSpec};
use crate::placing::Sides;
use crate::plan::{Driver, Flavour, Release, Wanted};
use host::realtime::HIGHEST;

/// Default number of iterations of each pair.
pub const USUAL_ITERATIONS: u64 = 100;
/// Default deadline, in us, derived from Android's user scenarios.
pub const USUAL_DEADLINE_US: u64 = 2500;
/// Default payload of the binder test, in bytes, as in Android.
pub const USUAL_BINDER_PAYLOAD: u32 = 16;
/// Maximum number of pairs; more are taken for a typing error.
pub const MOST_PAIRS: u32 = 128;
/// Maximum number of calls: the samples of all pairs are kept in memory.
const MOST_CALLS: u64 = 100_000_000;
/// Longest deadline, in us: an hour, longer than any call.
const LONGEST_DEADLINE_US: u64 = 3_600_000_000;
/// Permitted rates, in calls per second.
pub(crate) const RATES: std::ops::RangeInclusive<f64> = 0.01..=1e6;

/// Options of a latency test.
#[derive(Clone, Debug)]
pub struct LatencyOptions {
    /// Name of the test for the record, e.g. `latency hwbinder`.
    pub test: String,
    /// Flavour of the calls.
    pub flavour: Flavour,
    /// Name of another program's object whose pings are the calls (of hwbinder `INTERFACE/INSTANCE`), empty for the context's
    /// manager; `None` for services of this test.
    pub pinged: Option<String>,
    /// Pairs of client and server, two processes each; of a ping clients only.
    pub pairs: u32,
    /// Iterations of each pair; each is one call of either class.
    pub iterations: u64,
    /// Deadline, in us; a longer call misses it.
    pub deadline_us: u64,
    /// Bytes of each call in addition to those of the interface.
    pub payload: u32,
    /// Calls per second of each pair, both classes together; `None` for back-to-back calls.
    pub rate_hz: Option<f64>,
    /// Whether the service's node lets real-time priorities pass, on drivers that know it.
    pub inherit_rt: bool,
    /// Whether to use a real-time caller.
    pub realtime: bool,
    /// Whether to play the inheritance scenes, too.
    pub scenes: bool,
    /// Whether to keep every duration in the record.
    pub raw: bool,
    /// Whether to keep the threads of every call of every pair, not only of the first iteration of the first pair.
    pub every_role: bool,
    /// Whether the first miss stops the kernel's tracing, and the test with it.
    pub trace: bool,
    /// Path of the recordings of slow calls, without their names; `None` for no flight recorder.
    pub flight: Option<PathBuf>,
    /// Priority of the real-time caller.
    pub priority: u8,
    /// CPU of the clients and CPU of the servers; `None` for any.
    pub cpus: Option<[u32; 2]>,
    /// CPUs of clients and servers, where clusters were chosen.
    pub sides: Option<Sides>,
    /// The chosen clusters and cpuset in words, for the record.
    pub place: Option<String>,
    /// Load during the test.
    pub loads: Vec<LoadSpec>,
    /// CPU of the load; `None` for any.
    pub load_cpu: Option<u32>,
    /// Deliberate faults.
    pub injected: Vec<Injected>,
    /// Driver and context.
    pub wanted: Wanted,
    /// Android release of the service manager's protocol.
    pub android: Release,
    /// Time limit without a reply after which a pair is given up, in seconds.
    pub patience_s: u64,
    /// Part of the names of cases, e.g. `pairs:2/load:cpu:2`; empty outside of a grid.
    pub cell: String,
    /// Command line.
    pub command_line: Vec<String>,
}

impl LatencyOptions {
    /// Returns the defaults of Android's test of this flavour.
    #[must_use]
    pub fn usual(flavour: Flavour) -> Self {
        Self {
            test: format!("latency {}", flavour.name()),
            flavour,
            pinged: None,
            pairs: 1,
            iterations: USUAL_ITERATIONS,
            deadline_us: USUAL_DEADLINE_US,
            payload: if flavour == Flavour::Binder { USUAL_BINDER_PAYLOAD } else { 0 },
            rate_hz: None,
            inherit_rt: flavour != Flavour::Binder,
            realtime: true,
            scenes: true,
            raw: false,
            every_role: false,
            trace: false,
            flight: None,
            priority: HIGHEST,
            cpus: None,
            sides: None,
            place: None,
            loads: Vec::new(),
            load_cpu: None,
            injected: Vec::new(),
            wanted: Wanted::default(),
            android: Release::default(),
            patience_s: 30,
            cell: String::new(),
            command_line: Vec::new(),
        }
    }

    /// Returns the defaults of a test of pings: of this registered object, or of the manager.
    #[must_use]
    pub fn pings(flavour: Flavour, name: String) -> Self {
        let usual = Self::usual(flavour);
        Self { test: "latency ping".to_owned(), pinged: Some(name), payload: 0, scenes: false, ..usual }
    }

    /// Checks the options.
    ///
    /// # Errors
    /// The invalid option and its limit.
    pub fn check(&self) -> Result<(), String> {
        let range = |what: &str, value: u64, most: u64| {
            if (1..=most).contains(&value) {
                return Ok(());
            }
            Err(format!("{value} {what} cannot be: use 1 to {most}"))
        };
        range("pairs", self.pairs.into(), MOST_PAIRS.into())?;
        range("iterations", self.iterations, MOST_CALLS / 2 / u64::from(self.pairs))?;
        range("us of a deadline", self.deadline_us, LONGEST_DEADLINE_US)?;
        // The driver leaves some space for the service manager's answers.
        let most = default_map_size() as u64 - 8192;
        if u64::from(self.payload) > most {
            return Err(format!(
                "a payload of {} B exceeds the receiver's buffer: the limit is {most} B",
                self.payload
            ));
        }
        if self.pinged.is_some() && (self.flavour == Flavour::Passthrough || self.payload > 0 || self.scenes)
        {
            return Err("a ping is an empty call of another program's object".to_owned());
        }
        if self.flavour == Flavour::Passthrough && self.payload > 0 {
            return Err("without IPC there is nobody to carry a payload to".to_owned());
        }
        if let Some(rate) = self.rate_hz.filter(|rate| !RATES.contains(rate)) {
            return Err(format!(
                "{rate} calls per second cannot be: use {} to {}",
                RATES.start(),
                RATES.end()
            ));
        }
        let load = self.load_words();
        if load.len() > record::LONGEST_LOAD {
            let most = record::LONGEST_LOAD;
            return Err(format!(
                "the load is too long to be noted: {} bytes, the limit is {most}; use counts",
                load.len()
            ));
        }
        if self.raw && self.iterations > record::MOST_RAW as u64 {
            return Err(format!(
                "every single time of {} calls is too much to keep: the limit is {}",
                self.iterations,
                record::MOST_RAW
            ));
        }
        let wanted = self.cpus.iter().flatten().chain(&self.load_cpu);
        let usable = sys::sched::affinity().unwrap_or_default();
        if let Some(cpu) = wanted.copied().find(|cpu| !usable.contains(cpu)) {
            let list = usable.iter().map(u32::to_string).collect::<Vec<_>>().join(", ");
            return Err(format!("CPU {cpu} may not be used here; use one of {list}"));
        }
        if self.flight.is_some() && (self.rate_hz.is_some() || self.trace) {
            return Err("the flight recorder is for one call after the other, and is not stopped at a miss"
                .to_owned());
        }
        self.check_faults()
    }

    fn check_faults(&self) -> Result<(), String> {
        for fault in &self.injected {
            let without_ipc = self.flavour == Flavour::Passthrough
                && !matches!(fault, Injected::Delay { .. } | Injected::StallServer { .. });
            if without_ipc {
                return Err(format!("{fault} needs a server, and without IPC there is none"));
            }
            if self.pinged.is_some() && !matches!(fault, Injected::SpinCaller | Injected::Timers { .. }) {
                return Err(format!(
                    "{fault} needs a server of this test, and a ping calls another program's"
                ));
            }
            if *fault == Injected::DropInheritance && self.wanted.driver == Driver::Kernel {
                return Err(format!(
                    "{fault} is a setting of the embedded driver; the kernel's cannot be changed"
                ));
            }
            if *fault == Injected::WrongCpu && sys::sched::usable_cpus() < 2 {
                return Err(format!("{fault} needs two CPUs"));
            }
            if *fault == Injected::WrongCpu && (self.cpus.is_some() || self.sides.is_some()) {
                return Err(format!("{fault} chooses CPUs itself, without --cpus or --cluster"));
            }
            if matches!(fault, Injected::Timers { .. }) && self.rate_hz.is_some() {
                return Err(format!("{fault} is for one call after the other, without --rate"));
            }
            if *fault == Injected::SpinCaller && !self.realtime {
                return Err(format!("{fault} needs a real-time caller"));
            }
        }
        Ok(())
    }

    /// Returns the deadline in clock units.
    pub(super) fn deadline(&self) -> u64 {
        self.deadline_us * 1000
    }

    pub(super) fn faults_of(&self, pair: u32) -> Vec<Injected> {
        self.injected.iter().copied().filter(|fault| pair == 0 || !fault.is_of_one_pair()).collect()
    }

    pub(crate) fn case_name(&self, pair: u32, class: record::Class) -> String {
        let cell = if self.cell.is_empty() { String::new() } else { format!("{}/", self.cell) };
        format!("{}/{cell}pair:{pair}/{}", self.family(), class.name())
    }

    /// Returns the part of a case's name before its arguments.
    pub(super) fn family(&self) -> String {
        if self.pinged.is_some() {
            return match self.flavour {
                Flavour::Hwbinder => "latency_hwping".to_owned(),
                _ => "latency_ping".to_owned(),
            };
        }
        format!("latency_{}", self.flavour.name())
    }

    /// Returns all loads as typed.
    pub(super) fn load_words(&self) -> String {
        load::describe(&self.loads)
    }

    /// Returns the options for the record.
    pub(super) fn for_record(&self) -> record::Plan {
        record::Plan {
            test: self.test.clone(),
            min_time: format!("{}x", self.iterations),
            repetitions: 1,
            driver: self.wanted.driver.to_string(),
            device: self.wanted.device.to_string(),
            placement: self.place.clone().unwrap_or_else(|| "default".to_owned()),
            command_line: self.command_line.clone(),
            ..record::Plan::default()
        }
    }

    /// Inheritance of the servers' driver: none, if a fault asks for that.
    pub(super) fn server_inherits(&self) -> Inherit {
        match self.injected.contains(&Injected::DropInheritance) {
            true => Inherit::None,
            false => self.wanted.settings.inherit,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn why(change: impl FnOnce(&mut LatencyOptions)) -> String {
        let mut options = LatencyOptions::usual(Flavour::Hwbinder);
        change(&mut options);
        options.check().expect_err("cannot be")
    }

    #[test]
    fn what_cannot_be_says_the_limit() {
        assert_eq!(LatencyOptions::usual(Flavour::Binder).check(), Ok(()));
        assert!(why(|options| options.pairs = 0).contains("1 to 128"));
        assert!(why(|options| options.pairs = 1000).contains("1 to 128"));
        assert!(why(|options| options.iterations = 0).contains("iterations"));
        assert!(why(|options| options.iterations = u64::MAX).contains("50000000"));
        assert!(why(|options| options.deadline_us = 0).contains("deadline"));
        assert!(why(|options| options.payload = 2 << 20).contains("buffer"));
        assert!(why(|options| options.rate_hz = Some(0.0)).contains("per second"));
        assert!(why(|options| options.rate_hz = Some(f64::NAN)).contains("per second"));
        let much = |options: &mut LatencyOptions| (options.raw, options.iterations) = (true, 30_000_000);
        assert!(why(much).contains("20000000"));
        let irq = "irq:1:nice10".parse().expect("a load");
        assert!(why(|options| options.loads = vec![irq; 20]).contains("200"));
        assert!(
            why(|options| {
                options.injected = vec![Injected::DropInheritance];
                options.wanted.driver = Driver::Kernel;
            })
            .contains("embedded")
        );
        assert!(
            why(|options| {
                *options = LatencyOptions::pings(Flavour::Binder, "x".to_owned());
                options.injected = vec![Injected::LoseReply];
            })
            .contains("another program's")
        );
        assert_eq!(LatencyOptions::pings(Flavour::Hwbinder, String::new()).check(), Ok(()));
        assert!(
            why(|options| {
                options.flavour = Flavour::Passthrough;
                options.injected = vec![Injected::LoseReply];
            })
            .contains("without IPC")
        );
    }

    #[test]
    fn a_lost_reply_befalls_the_first_pair_and_a_delay_all() {
        let mut options = LatencyOptions::usual(Flavour::Hwbinder);
        let delay = Injected::Delay { us: 1, share: 1.0 };
        options.injected = vec![Injected::LoseReply, delay];
        assert_eq!(options.faults_of(0), options.injected);
        assert_eq!(options.faults_of(1), [delay]);
    }

    #[test]
    fn names_tell_pair_and_class() {
        let mut options = LatencyOptions::usual(Flavour::Hwbinder);
        assert_eq!(options.case_name(2, record::Class::Fifo), "latency_hwbinder/pair:2/fifo");
        options.cell = "pairs:2".to_owned();
        assert_eq!(options.case_name(0, record::Class::Other), "latency_hwbinder/pairs:2/pair:0/other");
    }
}
