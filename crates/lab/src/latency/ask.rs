//! Room: what a latency test is asked to do, and which of it cannot be.
//! Not here: the words it was typed in (the command line).
//! Facts: defaults of Android's `libhwbinder_latency` and `schd-dbg`.

use driver::connection::DEFAULT_MAP_SIZE;
use driver::embedded::Inherit;
use serde::{Deserialize, Serialize};

use super::fault::Injected;
use crate::load::LoadSpec;
use crate::plan::{Dialect, Driver, Release, Wanted};
use crate::realtime::HIGHEST;

/// Iterations of each pair, if not said otherwise.
pub const USUAL_ITERATIONS: u64 = 100;
/// The deadline in us that came out of Android's user scenarios.
pub const USUAL_DEADLINE_US: u64 = 2500;
/// Bytes that Android's binder test sends.
pub const USUAL_BINDER_PAYLOAD: u32 = 16;
/// More pairs are a slip of the pen.
pub const MOST_PAIRS: u32 = 128;
/// Samples of all pairs are kept; more would not fit into memory.
const MOST_CALLS: u64 = 100_000_000;
/// A longer deadline than any call takes: an hour.
const LONGEST_DEADLINE_US: u64 = 3_600_000_000;
/// Fewest and most calls per second.
pub(super) const RATES: std::ops::RangeInclusive<f64> = 0.01..=1e6;

/// What the pairs speak.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub enum Flavour {
    /// As Android's `schd-dbg`.
    Binder,
    /// As Android's `libhwbinder_latency`.
    Hwbinder,
    /// The interface of the latter in the client's own process, without IPC.
    Passthrough,
}

impl Flavour {
    /// The word used in names of cases and documents.
    #[must_use]
    pub fn name(self) -> &'static str {
        match self {
            Self::Binder => "binder",
            Self::Hwbinder => "hwbinder",
            Self::Passthrough => "passthrough",
        }
    }

    /// What is spoken with the service manager; `None` without IPC.
    pub(super) fn dialect(self, release: Release) -> Option<Dialect> {
        match self {
            Self::Binder => Some(Dialect::Binder(release)),
            Self::Hwbinder => Some(Dialect::Hwbinder),
            Self::Passthrough => None,
        }
    }
}

/// Everything a latency test needs to know.
#[derive(Clone, Debug)]
pub struct Ask {
    /// The test's name for the record, e.g. `latency hwbinder`.
    pub test: String,
    /// What the pairs speak.
    pub flavour: Flavour,
    /// Pairs of client and server, each its own two processes.
    pub pairs: u32,
    /// Iterations of each; each is one call of either class.
    pub iterations: u64,
    /// A longer call misses its deadline.
    pub deadline_us: u64,
    /// Bytes that each call carries besides what the interface needs.
    pub payload: u32,
    /// Calls per second of each pair, both classes together; `None` for one right after the other.
    pub rate_hz: Option<f64>,
    /// Whether the service's node lets real-time priorities pass, on drivers that know it.
    pub inherit_rt: bool,
    /// Whether there shall be a real-time caller.
    pub realtime: bool,
    /// Whether single situations of inheritance are looked at, too.
    pub scenes: bool,
    /// Whether every single time is kept in the record.
    pub raw: bool,
    /// Whether the kernel's tracing stops at the first miss, and the test with it.
    pub trace: bool,
    /// The priority of the real-time caller.
    pub priority: u8,
    /// The CPU that clients may use, and the one for servers; `None` for any.
    pub cpus: Option<[u32; 2]>,
    /// Load beside the test.
    pub loads: Vec<LoadSpec>,
    /// The CPU that it may use; `None` for any.
    pub load_cpu: Option<u32>,
    /// Deliberate breakage.
    pub injected: Vec<Injected>,
    /// Which driver, and which context of it.
    pub wanted: Wanted,
    /// The Android release whose service manager is spoken to.
    pub android: Release,
    /// Without a reply for so long a pair is given up.
    pub patience_s: u64,
    /// Put into names of cases, e.g. `pairs:2/load:cpu:2`; empty outside of a grid.
    pub cell: String,
    /// The words of the command line.
    pub command_line: Vec<String>,
}

impl Ask {
    /// What Android's test of this flavour does by itself.
    #[must_use]
    pub fn usual(flavour: Flavour) -> Self {
        Self {
            test: format!("latency {}", flavour.name()),
            flavour,
            pairs: 1,
            iterations: USUAL_ITERATIONS,
            deadline_us: USUAL_DEADLINE_US,
            payload: if flavour == Flavour::Binder { USUAL_BINDER_PAYLOAD } else { 0 },
            rate_hz: None,
            inherit_rt: flavour != Flavour::Binder,
            realtime: true,
            scenes: true,
            raw: false,
            trace: false,
            priority: HIGHEST,
            cpus: None,
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

    /// Whether it can be done at all.
    ///
    /// # Errors
    /// What cannot, and the limit.
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
        // The driver leaves some space to the service manager's answers.
        let most = DEFAULT_MAP_SIZE as u64 - 8192;
        if u64::from(self.payload) > most {
            return Err(format!(
                "a payload of {} B exceeds the receiver's buffer: the limit is {most} B",
                self.payload
            ));
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
        self.check_faults()
    }

    fn check_faults(&self) -> Result<(), String> {
        for fault in &self.injected {
            let without_ipc = self.flavour == Flavour::Passthrough
                && !matches!(fault, Injected::Delay { .. } | Injected::StallServer { .. });
            if without_ipc {
                return Err(format!("{fault} needs a server, and without IPC there is none"));
            }
            if *fault == Injected::DropInheritance && self.wanted.driver == Driver::Kernel {
                return Err(format!(
                    "{fault} is a setting of the embedded driver; the kernel's cannot be changed"
                ));
            }
            if *fault == Injected::WrongCpu && sys::sched::usable_cpus() < 2 {
                return Err(format!("{fault} needs two CPUs"));
            }
            if *fault == Injected::WrongCpu && self.cpus.is_some() {
                return Err(format!("{fault} chooses CPUs itself, without --cpus"));
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

    /// A miss in clock units.
    pub(super) fn deadline(&self) -> u64 {
        self.deadline_us * 1000
    }

    /// Whether a fault befalls a pair.
    pub(super) fn faults_of(&self, pair: u32) -> Vec<Injected> {
        self.injected.iter().copied().filter(|fault| pair == 0 || !fault.is_of_one_pair()).collect()
    }

    /// The name of a pair's case.
    pub(super) fn case_name(&self, pair: u32, class: record::Class) -> String {
        let cell = if self.cell.is_empty() { String::new() } else { format!("{}/", self.cell) };
        format!("{}/{cell}pair:{pair}/{}", self.family(), class.name())
    }

    /// The part before its arguments.
    pub(super) fn family(&self) -> String {
        format!("latency_{}", self.flavour.name())
    }

    /// All loads as typed.
    pub(super) fn load_words(&self) -> String {
        self.loads.iter().map(ToString::to_string).collect::<Vec<_>>().join(",")
    }

    /// For the record.
    pub(super) fn for_record(&self) -> record::Plan {
        record::Plan {
            test: self.test.clone(),
            min_time: format!("{}x", self.iterations),
            repetitions: 1,
            driver: self.wanted.driver.to_string(),
            device: self.wanted.device.to_string(),
            placement: "default".to_owned(),
            command_line: self.command_line.clone(),
            ..record::Plan::default()
        }
    }

    /// The same wish with servers that inherit nothing, for a fault.
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

    fn why(change: impl FnOnce(&mut Ask)) -> String {
        let mut ask = Ask::usual(Flavour::Hwbinder);
        change(&mut ask);
        ask.check().expect_err("cannot be")
    }

    #[test]
    fn what_cannot_be_says_the_limit() {
        assert_eq!(Ask::usual(Flavour::Binder).check(), Ok(()));
        assert!(why(|ask| ask.pairs = 0).contains("1 to 128"));
        assert!(why(|ask| ask.pairs = 1000).contains("1 to 128"));
        assert!(why(|ask| ask.iterations = 0).contains("iterations"));
        assert!(why(|ask| ask.iterations = u64::MAX).contains("50000000"));
        assert!(why(|ask| ask.deadline_us = 0).contains("deadline"));
        assert!(why(|ask| ask.payload = 2 << 20).contains("buffer"));
        assert!(why(|ask| ask.rate_hz = Some(0.0)).contains("per second"));
        assert!(why(|ask| ask.rate_hz = Some(f64::NAN)).contains("per second"));
        let much = |ask: &mut Ask| (ask.raw, ask.iterations) = (true, 30_000_000);
        assert!(why(much).contains("20000000"));
        let irq = "irq:1:nice10".parse().expect("a load");
        assert!(why(|ask| ask.loads = vec![irq; 20]).contains("200"));
        assert!(
            why(|ask| {
                ask.injected = vec![Injected::DropInheritance];
                ask.wanted.driver = Driver::Kernel;
            })
            .contains("embedded")
        );
        assert!(
            why(|ask| {
                ask.flavour = Flavour::Passthrough;
                ask.injected = vec![Injected::LoseReply];
            })
            .contains("without IPC")
        );
    }

    #[test]
    fn a_lost_reply_befalls_the_first_pair_and_a_delay_all() {
        let mut ask = Ask::usual(Flavour::Hwbinder);
        let delay = Injected::Delay { us: 1, share: 1.0 };
        ask.injected = vec![Injected::LoseReply, delay];
        assert_eq!(ask.faults_of(0), ask.injected);
        assert_eq!(ask.faults_of(1), [delay]);
    }

    #[test]
    fn names_tell_pair_and_class() {
        let mut ask = Ask::usual(Flavour::Hwbinder);
        assert_eq!(ask.case_name(2, record::Class::Fifo), "latency_hwbinder/pair:2/fifo");
        ask.cell = "pairs:2".to_owned();
        assert_eq!(ask.case_name(0, record::Class::Other), "latency_hwbinder/pairs:2/pair:0/other");
    }
}
