//! Room: made-up runs that tests render, write and read.
//! Not here: anything a shipped build contains.

use crate::*;

/// A run with one case of 1000 iterations at 2.5 µs.
pub(crate) fn run() -> Run {
    let mut run = Run::new(tool(), "2026-01-31T12:00:00+01:00".to_owned(), plan(), host(), clock());
    run.elapsed_ns = 2_500_000_000;
    run.driver = Some(Driver {
        kind: DriverKind::KernelC,
        opened: "/dev/binder".to_owned(),
        protocol_version: 8,
        features: vec!["oneway_spam_detection".to_owned()],
        choice: "kernel".to_owned(),
        reason: "it was asked for".to_owned(),
        embedded: None,
    });
    run.complete = true;
    run.cases.push(case("BM_sendVec_binder", 4, 0, vec![measured(1000, 2_500_000, 1_000_000)]));
    run
}

pub(crate) fn tool() -> Tool {
    Tool {
        name: "binderperf".to_owned(),
        version: "0.1.0".to_owned(),
        git: None,
        build_profile: "release".to_owned(),
        executable: "binderperf".to_owned(),
        debug_assertions: false,
    }
}

pub(crate) fn plan() -> Plan {
    Plan { min_time: "0.5s".to_owned(), repetitions: 1, controls: true, ..Plan::default() }
}

pub(crate) fn host() -> Host {
    Host {
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
    }
}

pub(crate) fn clock() -> Clock {
    Clock {
        name: "CLOCK_MONOTONIC".to_owned(),
        unit: ClockUnit::Ns,
        read_cost: Some(42.5),
        resolution: Some(1),
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
    Outcome::Measured(Measurement {
        iterations,
        real_total,
        cpu_total,
        samples: Distribution::of(samples),
        counters: Counters::default(),
    })
}

/// Numbers that look random and are the same each time (Marsaglia's xorshift64).
pub(crate) struct Xorshift(pub(crate) u64);

impl Xorshift {
    pub(crate) fn below(&mut self, bound: u64) -> u64 {
        self.0 ^= self.0 << 13;
        self.0 ^= self.0 >> 7;
        self.0 ^= self.0 << 17;
        self.0 % bound
    }
}
