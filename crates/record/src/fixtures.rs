//! Made-up runs that tests render, write and read.
//! Not here: anything a shipped build contains.

use crate::*;

/// A run with one case of 1000 iterations at 2.5 µs.
pub(crate) fn run() -> Run {
    let tool = Tool {
        name: "binderperf".to_owned(),
        version: "0.1.0".to_owned(),
        build_profile: "release".to_owned(),
        executable: "binderperf".to_owned(),
        ..Tool::default()
    };
    let plan = Plan { min_time: "0.5s".to_owned(), repetitions: 1, controls: true, ..Plan::default() };
    let host = Host {
        class: HostClass::Bare,
        host_name: "board".to_owned(),
        kernel: Kernel { release: "6.12.9-amd64".to_owned(), ..Kernel::default() },
        cpu: Cpu {
            count: 4,
            mhz: Some(2400.4),
            scaling_enabled: Some(false),
            caches: vec![CpuCache { kind: "Data".to_owned(), level: 1, size: 32 << 10, num_sharing: 2 }],
            ..Cpu::default()
        },
        load_avg: vec![0.5, 1.25, 0.0],
        aslr_enabled: Some(true),
        memory_bytes: Some(4 << 30),
        clocksource: Some("tsc".to_owned()),
        device: None,
        guest_kernel: Vec::new(),
        on: None,
    };
    let name = "CLOCK_MONOTONIC".to_owned();
    let clock = Clock { name, unit: ClockUnit::Ns, read_cost: Some(42.5), resolution: Some(1) };
    let driver = Driver {
        kind: DriverKind::KernelC,
        opened: "/dev/binder".to_owned(),
        protocol_version: 8,
        features: vec!["oneway_spam_detection".to_owned()],
        choice: "kernel".to_owned(),
        reason: "it was asked for".to_owned(),
        embedded: None,
    };
    let cases = vec![case("BM_sendVec_binder", 4, 0, vec![measured(1000, 2_500_000, 1_000_000)])];
    Run {
        elapsed_ns: 2_500_000_000,
        driver: Some(driver),
        complete: true,
        cases,
        ..Run::new(tool, "2026-01-31T12:00:00+01:00".to_owned(), plan, host, clock)
    }
}

pub(crate) fn case(family: &str, payload: u64, index: u32, outcomes: Vec<Outcome>) -> Case {
    let repetitions = (0..).zip(outcomes).map(|(index, outcome)| Repetition { index, outcome });
    Case {
        name: format!("{family}/{payload}"),
        family: family.to_owned(),
        family_index: 0,
        per_family_instance_index: index,
        kind: if family.ends_with("binder") { CaseKind::Test } else { CaseKind::Control },
        payload_bytes: payload,
        threads: 1,
        crowd: None,
        latency: None,
        label: None,
        repetitions: repetitions.collect(),
    }
}

/// A repetition whose samples all take the mean, except one that takes twice that.
pub(crate) fn measured(iterations: u64, real_total: u64, cpu_total: u64) -> Outcome {
    let mean = real_total / iterations;
    let samples = (1..iterations).map(|_| mean).chain([2 * mean]);
    Outcome::Measured(Measurement { real_total, cpu_total, ..of_times(samples) })
}

/// A repetition of calls with these times, without CPU time.
pub(crate) fn of_times(times: impl IntoIterator<Item = u64>) -> Measurement {
    let samples = Distribution::of(times);
    let (iterations, real_total) = (samples.count, samples.sum);
    Measurement { iterations, real_total, samples, ..Measurement::default() }
}

/// A repetition that broke without any number.
pub(crate) fn failed(reason: &str) -> Outcome {
    Outcome::Failed { reason: reason.to_owned(), partial: None }
}

/// A pair of a latency test, for [`latency_run`].
pub(crate) struct Pair {
    pair: u32,
    classes: Vec<Class>,
    failed: Option<String>,
}

impl Pair {
    /// 1000 calls of either class, one of them 3 ms long; 900 of them served on the caller's CPU.
    pub(crate) fn healthy(pair: u32) -> Pair {
        Pair { pair, classes: Class::BOTH.to_vec(), failed: None }
    }

    /// A pair that broke after 10 calls of each class.
    pub(crate) fn failed(pair: u32, reason: &str) -> Pair {
        Pair { failed: Some(reason.to_owned()), ..Pair::healthy(pair) }
    }

    /// This pair without one class.
    pub(crate) fn without(self, class: Class) -> Pair {
        Pair { classes: self.classes.into_iter().filter(|kept| *kept != class).collect(), ..self }
    }

    /// Times in ns: 50 us, 20 more for other callers, one more for each pair, and a ns more for each call.
    /// The last is a miss of 3 ms.
    fn times(&self, class: Class) -> Vec<u64> {
        let calls = if self.failed.is_some() { 10 } else { 1000 };
        let first = if class == Class::Fifo { 50_000 } else { 70_000 };
        let mut times: Vec<u64> = (0..calls).map(|call| first + u64::from(self.pair) * 1000 + call).collect();
        if self.failed.is_none() {
            times[999] = 3_000_000;
        }
        times
    }

    fn case(&self, class: Class, pairs: u32) -> Case {
        let mut times = self.times(class);
        let calls = times.len() as u64;
        let numbers = of_times(times.iter().copied());
        let outcome = match &self.failed {
            Some(reason) => Outcome::Failed { reason: reason.clone(), partial: Some(numbers) },
            None => Outcome::Measured(numbers),
        };
        let mut case = case("latency_hwbinder", 0, 0, vec![outcome]);
        case.name = format!("latency_hwbinder/pair:{}/{}", self.pair, class.name());
        let misses = u64::from(self.failed.is_none());
        case.latency = Some(Latency {
            misses,
            bubbles: misses,
            same_cpu: calls / 10 * 9,
            percentiles: Percentiles::of(&mut times),
            ..Latency::new(self.pair, class, pairs, 2_500_000)
        });
        case
    }
}

/// A latency test of hwbinder on the embedded driver in which every call inherited its priority.
pub(crate) fn latency_run(pairs: &[Pair]) -> Run {
    let mut run = run();
    run.plan.test = "latency hwbinder".to_owned();
    let count = pairs.len() as u32;
    run.cases =
        pairs.iter().flat_map(|pair| pair.classes.iter().map(|&class| pair.case(class, count))).collect();
    let all = Class::BOTH.into_iter().filter_map(|class| {
        let of_class = pairs.iter().filter(|pair| pair.classes.contains(&class));
        let mut times: Vec<u64> = of_class.flat_map(|pair| pair.times(class)).collect();
        Some(ClassTotals { class, percentiles: Percentiles::of(&mut times)?, placed: None })
    });
    let hop = |scene: &str, caller: Sched| Hop {
        scene: scene.to_owned(),
        caller,
        idle: Sched::other(0),
        served: Some(caller),
        expected: Some(caller),
        note: String::new(),
    };
    run.measured = Measured::Latency(LatencyTest {
        flavour: "hwbinder".to_owned(),
        binderized: true,
        pinged: None,
        pairs: count,
        iterations: 1000,
        deadline: 2_500_000,
        realtime: Some(Sched::fifo(99)),
        realtime_problem: None,
        all: all.collect(),
        inheritance: Inheritance {
            calls: run.cases.iter().map(verdict::calls).sum(),
            not_inherited: 0,
            measured: Some(Level::Rt),
            expected: Some(Level::Rt),
            expected_reason: "the embedded driver passes real-time priorities on".to_owned(),
            below_android: None,
            hops: vec![hop("call", Sched::fifo(99)), hop("call", Sched::other(-5))],
        },
        roles: Vec::new(),
        injected: Vec::new(),
        overhead: Some(125.5),
        stopped_at: None,
        recorder: None,
        sweep: None,
    });
    run
}

/// A run of an experiment, without cases.
pub(crate) fn experiment_run(measured: Measured) -> Run {
    Run { measured, cases: Vec::new(), ..run() }
}

/// An overload experiment on two CPUs: so many of 100 real-time calls missed with 1, 2, 3 and 4 pairs.
pub(crate) fn overload(misses: [u64; 4]) -> Overload {
    let row = |class: Class, pairs: u32, misses: u64| OverloadRow {
        class,
        pairs,
        case: format!("overload/{}/pairs:{pairs}", class.name()),
        calls: 100,
        misses,
        percentiles: Percentiles::of(&mut [1_600_000, 3_100_000]),
    };
    let rows =
        Class::BOTH.into_iter().flat_map(|class| (1..).zip(misses).map(move |(at, many)| (class, at, many)));
    Overload {
        flavour: "hwbinder".to_owned(),
        cpus: vec![0, 1],
        work: 1_500_000,
        deadline: 2_500_000,
        period: 10_000_000,
        iterations: 100,
        rounds: 1,
        realtime: Some(Sched::fifo(99)),
        realtime_problem: None,
        rows: rows.map(|(class, pairs, misses)| row(class, pairs, misses)).collect(),
    }
}

/// A background experiment in which calls of a background server are late, or none.
pub(crate) fn background(late: bool) -> Background {
    let row = |(ground, hogs): (Ground, bool)| {
        let slow = late && hogs && ground == Ground::Background;
        BackgroundRow {
            ground,
            hogs,
            case: format!("background/{}/{hogs}", ground.name()),
            calls: 100,
            late: if slow { 90 } else { 0 },
            percentiles: Percentiles::of(&mut [if slow { 20_000_000 } else { 1_100_000 }]),
            moves: (ground == Ground::Moves).then(|| Percentiles::of(&mut [8_000])).flatten(),
            waits: (hogs && ground != Ground::Foreground).then_some(slow),
        }
    };
    let settings = [false, true].into_iter().flat_map(|hogs| Ground::ALL.map(|ground| (ground, hogs)));
    Background {
        flavour: "binder".to_owned(),
        cpu: 1,
        hogs: 1,
        group: "cgroup v1, cpu.shares 52 of 1024".to_owned(),
        is_cgroup: true,
        work: 1_000_000,
        iterations: 100,
        rounds: 1,
        limit: Some(2_200_000),
        rows: settings.map(row).collect(),
    }
}
