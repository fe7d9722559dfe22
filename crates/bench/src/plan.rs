//! Plan of a throughput run, validated: families and their payloads, cases, duration, order.
//! Not here: parsing it (`gbench`, the command line), executing it (`crate::run`).
//! Facts: names and sizes of AOSP `libbinder_benchmark`; family and instance numbers as Google Benchmark
//! assigns them (only cases that pass the filter are counted).

mod dialect;
mod family;
mod fault;
mod filter;
mod flavour;
mod gate;
pub mod gbench;
mod min_time;
mod placement;
pub mod request;

pub use dialect::Dialect;
pub use family::{Controls, Family, ScenarioCase};
pub use fault::{Fault, FaultKind};
pub use filter::Filter;
pub use flavour::Flavour;
pub use gate::{Gate, Verdict};
pub(crate) use min_time::MOST_ITERATIONS;
pub use min_time::MinTime;
pub use placement::Placement;

use std::time::Duration;

pub use backend::locate::{Device, Driver, Wanted};
use driver::connection::default_map_size;
pub use embedded::{Inherit, Settings, Waiting};
use fastrand::Rng;
pub use ipc::Release;
use record::{Case, CaseKind};

use crate::placing::Sides;

/// Maximum number of one client's calls in a receiver's area at once: a server frees the last one's buffer
/// after its reply, and the next call may arrive before that.
pub(crate) const CALLS_IN_AREA: u64 = 2;
/// Space of a receiver's area for headers, objects and the service manager's answers, in bytes.
pub(crate) const SPARE: u64 = 4096;

/// Largest payload of one client that calls repeatedly, in bytes.
#[must_use]
pub fn largest_payload() -> u64 {
    (default_map_size() as u64 - SPARE) / CALLS_IN_AREA - 512
}

/// Returns a seed from the clock, different in each run.
#[must_use]
pub fn fresh_seed() -> u64 {
    sys::clock::monotonic_ns()
}

/// Options of a throughput run.
#[derive(Clone, Debug)]
pub struct Plan {
    /// Name of the test in the record.
    pub test: String,
    /// Tested families, in order and without duplicates.
    pub tests: Vec<Family>,
    /// Payloads of every family that has a choice, in bytes, without duplicates; empty for those of each test's Android tool.
    pub payloads: Vec<u64>,
    /// Numbers of threads that call at once through one session of RPC binder, without duplicates; each at least 1.
    pub threads: Vec<u32>,
    /// A service that another program registered, in place of one of ours: the instance of hwbinder's `IBenchmark`, or what
    /// pings go to (`None`: the service manager).
    pub service: Option<String>,
    /// Control families to run before the test, in order.
    pub controls: Controls,
    /// Filter of the cases.
    pub filter: Filter,
    /// Minimum duration of a repetition, or its number of iterations.
    pub min_time: MinTime,
    /// Warm-up before the first repetition of a case, in seconds; 0 for none.
    pub min_warmup_s: f64,
    /// Number of repetitions of each case; at least 1.
    pub repetitions: u32,
    /// One iteration of each case, to check that it works.
    pub dry_run: bool,
    /// `Some(seed)`: repetitions of all cases in a random order with this seed.
    pub interleaving_seed: Option<u64>,
    /// Driver and context.
    pub wanted: Wanted,
    /// Time between two calls of `BM_addInts`, which is part of no time.
    pub delay: Duration,
    /// CPU placement of the two sides of every case.
    pub placement: Placement,
    /// CPUs of client and server, where clusters were chosen; `None` for those of this process.
    pub sides: Option<Sides>,
    /// The chosen clusters and cpuset in words, for the record.
    pub place: Option<String>,
    /// Whether spinning cases get two CPUs even where all others share one.
    pub spin_apart: bool,
    /// Android release of the binder wire format.
    pub android: Release,
    /// Whether the names of tests have sizes as the tools of Android 8 print them: `2k` for 2048.
    pub short_sizes: bool,
    /// Deliberate breakage, for tests of this tool itself.
    pub faults: Vec<Fault>,
    /// Time limit without a round trip after which a case is given up, in seconds.
    pub patience_s: u64,
    /// The user's key-value pairs for the record.
    pub context: Vec<(String, String)>,
    /// Command line, for the record.
    pub command_line: Vec<String>,
}

impl Default for Plan {
    fn default() -> Self {
        Self {
            test: "throughput binder".to_owned(),
            tests: vec![Family::Binder],
            payloads: Vec::new(),
            threads: vec![1],
            service: None,
            controls: Controls::none(),
            filter: Filter::default(),
            min_time: MinTime::default(),
            min_warmup_s: 0.0,
            repetitions: 1,
            dry_run: false,
            interleaving_seed: None,
            wanted: Wanted::default(),
            delay: Duration::ZERO,
            placement: Placement::Default,
            sides: None,
            place: None,
            spin_apart: false,
            android: Release::default(),
            short_sizes: false,
            faults: Vec::new(),
            patience_s: 30,
            context: Vec::new(),
            command_line: Vec::new(),
        }
    }
}

/// One case of the plan, and the family behind its name.
#[derive(Clone, Debug)]
pub struct Planned {
    /// Family of the case.
    pub family: Family,
    /// Its difference from others of its family: its payload in bytes, or a scenario's value.
    pub value: u64,
    /// Its form in the record, without repetitions yet.
    pub case: Case,
}

impl Plan {
    /// Protocol of a family that uses a driver. Bare exchanges use that of the first test.
    #[must_use]
    pub fn dialect(&self, family: Family) -> Option<Dialect> {
        let hwbinder = match family {
            Family::Raw => self.tests.first() == Some(&Family::Binderize),
            family => matches!(family, Family::Binderize | Family::HwPing),
        };
        let dialect = if hwbinder { Dialect::Hwbinder } else { Dialect::Binder(self.android) };
        family.needs_driver().then_some(dialect)
    }

    /// Returns the cases, in the order in which they run and are printed: controls first, so that each row of
    /// a test can state its ratio to them.
    #[must_use]
    pub fn cases(&self) -> Vec<Planned> {
        let mut planned: Vec<Planned> = Vec::new();
        let mut family_index = 0;
        for family in self.controls.families().chain(self.tests.iter().copied()) {
            let name = |(value, threads): (u64, u32)| {
                let name = match family.kind() {
                    CaseKind::Test if self.short_sizes => family.short_case_name(value),
                    _ => family.case_name(value),
                };
                if threads == 1 { name } else { format!("{name}/threads:{threads}") }
            };
            let threads = if family == Family::Rpc { &self.threads[..] } else { &[1] };
            let values = self.values_of(family).into_iter();
            let all = values.flat_map(|value| threads.iter().map(move |threads| (value, *threads)));
            let matching: Vec<_> = all.filter(|&case| self.filter.lets_through(&name(case))).collect();
            planned.extend((0..).zip(&matching).map(|(index, &(value, threads))| Planned {
                family,
                value,
                case: Case {
                    name: name((value, threads)),
                    threads,
                    ..family.case(value, family_index, index)
                },
            }));
            family_index += u32::from(!matching.is_empty());
        }
        planned
    }

    /// Values of the cases of a family; a control has the payloads of all tests.
    fn values_of(&self, family: Family) -> Vec<u64> {
        let mut payloads: Vec<u64> = match family.kind() {
            CaseKind::Test => return self.values_of_test(family).to_vec(),
            CaseKind::Control => {
                let of = |test: &Family| {
                    let test = *test;
                    self.values_of_test(test).iter().map(move |value| test.payload(*value))
                };
                self.tests.iter().flat_map(of).collect()
            }
        };
        payloads.sort_unstable();
        payloads.dedup();
        // Some controls carry no empty message, so they are compared with pings only where that is all there is, or asked for.
        if payloads.last().is_some_and(|largest| *largest > 0) && !self.payloads.contains(&0) {
            payloads.retain(|payload| *payload > 0);
        }
        payloads
    }

    fn values_of_test(&self, test: Family) -> &[u64] {
        if self.payloads.is_empty() || !test.has_sizes() { test.values() } else { &self.payloads }
    }

    /// Returns the actual number of repetitions.
    #[must_use]
    pub fn effective_repetitions(&self) -> u32 {
        if self.dry_run { 1 } else { self.repetitions.max(1) }
    }

    /// Returns the order of all repetitions, as indices into [`Self::cases`].
    #[must_use]
    pub fn order(&self, cases: usize) -> Vec<usize> {
        let repetitions = self.effective_repetitions() as usize;
        let mut order: Vec<usize> =
            (0..cases).flat_map(|case| std::iter::repeat_n(case, repetitions)).collect();
        if let Some(seed) = self.interleaving_seed {
            Rng::with_seed(seed).shuffle(&mut order);
        }
        order
    }

    /// Returns the plan as settings, for the record.
    #[must_use]
    pub fn for_record(&self) -> record::Plan {
        record::Plan {
            test: self.test.clone(),
            filter: self.filter.as_str().to_owned(),
            min_time: self.min_time.to_string(),
            min_warmup_s: self.min_warmup_s,
            repetitions: self.effective_repetitions(),
            random_interleaving: self.interleaving_seed.is_some(),
            seed: self.interleaving_seed,
            controls: self.controls.families().next().is_some(),
            driver: self.wanted.driver.to_string(),
            device: self.wanted.device.to_string(),
            placement: match &self.place {
                Some(place) => format!("{}; {place}", self.placement),
                None => self.placement.to_string(),
            },
            command_line: self.command_line.clone(),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn plan(filter: &str, controls: &str) -> Plan {
        Plan {
            filter: Filter::new(filter).expect("valid"),
            controls: controls.parse().expect("valid"),
            ..Plan::default()
        }
    }

    #[test]
    fn the_test_has_the_fifteen_names_of_the_android_tool() {
        let names: Vec<String> =
            plan("", "none").cases().into_iter().map(|planned| planned.case.name).collect();
        assert_eq!(names.len(), 15);
        assert_eq!(
            (names[0].as_str(), names[14].as_str()),
            ("BM_sendVec_binder/4", "BM_sendVec_binder/65536")
        );
    }

    #[test]
    fn numbers_count_only_what_the_filter_lets_through() {
        let cases = plan("(pipe|binder)/(8|64)$", "default").cases();
        let seen: Vec<(String, u32, u32)> = cases
            .into_iter()
            .map(|Planned { case, .. }| (case.name, case.family_index, case.per_family_instance_index))
            .collect();
        let want = [
            ("BM_sendVec_pipe/8", 0, 0),
            ("BM_sendVec_pipe/64", 0, 1),
            ("BM_sendVec_binder/8", 1, 0),
            ("BM_sendVec_binder/64", 1, 1),
        ];
        assert_eq!(seen, want.map(|(name, family, instance)| (name.to_owned(), family, instance)));
    }

    #[test]
    fn the_kpis_have_their_sizes_and_threads_and_the_controls_have_all_sizes() {
        let kpis = Plan {
            tests: Family::KPIS.to_vec(),
            payloads: vec![64, 4096],
            threads: vec![1, 4],
            ..plan("", "pipe")
        };
        let names = |plan: &Plan| -> Vec<String> {
            plan.cases().into_iter().map(|planned| planned.case.name["BM_".len()..].to_owned()).collect()
        };
        let want = "sendVec_pipe/8 sendVec_pipe/64 sendVec_pipe/4096 sendVec_rpc/64 sendVec_rpc/64/threads:4 sendVec_rpc/4096 \
                    sendVec_rpc/4096/threads:4 addInts sendVec_binderize/64 sendVec_binderize/4096";
        assert_eq!(names(&kpis).join(" "), want);
        let case = |name: &str| kpis.cases().into_iter().find(|planned| planned.case.name == name);
        assert_eq!(case("BM_sendVec_rpc/64/threads:4").expect("planned").case.threads, 4);
        let with_pings = Plan { tests: vec![Family::RpcPing, Family::Rpc], ..kpis.clone() };
        assert_eq!(names(&with_pings)[..3], ["sendVec_pipe/64", "sendVec_pipe/4096", "rpcPing/0"]);
        let pings = Plan { tests: vec![Family::Ping], ..kpis };
        assert_eq!(names(&pings), ["sendVec_pipe/0", "ping/0"]);
    }

    #[test]
    fn interleaving_runs_every_repetition_once_and_the_same_way_for_a_seed() {
        let mut plan = Plan { repetitions: 3, interleaving_seed: Some(7), ..plan("", "none") };
        let order = plan.order(15);
        assert_eq!(order, plan.order(15), "the seed decides");
        assert_ne!(order, Plan { interleaving_seed: Some(8), ..plan.clone() }.order(15));
        let mut sorted = order.clone();
        sorted.sort_unstable();
        plan.interleaving_seed = None;
        assert_eq!(sorted, plan.order(15), "nothing lost, nothing twice");
        assert_ne!(order, sorted);
    }

    #[test]
    fn a_dry_run_makes_one_repetition() {
        let plan = Plan { repetitions: 9, dry_run: true, ..Plan::default() };
        assert_eq!(plan.order(2), [0, 1]);
        assert_eq!(plan.for_record().repetitions, 1);
    }
}
