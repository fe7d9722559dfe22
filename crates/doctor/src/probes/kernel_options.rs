//! Build options of the kernel that slow down binder.
//! Not here: preemption (`kernel`), scheduler options (`sched`), memory debugging (`memory_debug`).
//! Facts: help texts of `lib/Kconfig.debug`, `lib/Kconfig.kasan`, `lib/Kconfig.kcsan`, `lib/Kconfig.kmsan`,
//! `kernel/Kconfig.hz`, `kernel/trace/Kconfig`; Android's
//! page names `DEBUG_PREEMPT` and `DEBUG_SPINLOCK`.

use driver::kernel_config::KernelConfig;
use record::checkup::Verdict;

use super::memory_debug;
use crate::probe::{Grounds, Probe, ProbeResult};
use crate::snapshot::{Snapshot, Unavailable};

const REBUILD: &str =
    "measure a kernel built without them: scripts/config -d OPTION, or the product's configuration";

pub(super) const PROBES: &[Probe] = &[
    Probe {
        id: "kernel-sanitizers",
        looks_at: "KASAN, KMSAN, KCSAN, KCOV, GCOV, UBSAN",
        proof: "zcat /proc/config.gz | grep -E 'KASAN|KMSAN|KCSAN|KCOV|GCOV|UBSAN'",
        grounds: Grounds::Cited {
            source: "Documentation/dev-tools/kasan.rst, kcsan.rst",
            says: "each checks memory accesses at run time, which slows the kernel down",
        },
        look: sanitizers,
    },
    Probe {
        id: "kernel-lock-debug",
        looks_at: "lock and preemption debugging: lockdep, DEBUG_SPINLOCK, DEBUG_PREEMPT, ...",
        proof: "zcat /proc/config.gz | grep -E 'LOCKDEP|PROVE_LOCKING|LOCK_STAT|DEBUG_(SPINLOCK|MUTEXES|PREEMPT|ATOMIC)'",
        grounds: Grounds::Cited {
            source: "Android, Binder performance tests: what can affect latency",
            says: "DEBUG_PREEMPT, DEBUG_SPIN_LOCK and other debugging options",
        },
        look: lock_debug,
    },
    memory_debug::PROBE,
    Probe {
        id: "kernel-latency-tracers",
        looks_at: "tracers of every interrupt and preemption disabling",
        proof: "zcat /proc/config.gz | grep -E 'IRQSOFF_TRACER|PREEMPT_TRACER|TRACE_PREEMPT_TOGGLE'",
        grounds: Grounds::Cited {
            source: "kernel/trace/Kconfig, IRQSOFF_TRACER",
            says: "the kernel is larger and slower with this option",
        },
        look: latency_tracers,
    },
    Probe {
        id: "kernel-hz",
        looks_at: "the timer frequency, CONFIG_HZ",
        proof: "zcat /proc/config.gz | grep CONFIG_HZ=",
        grounds: Grounds::Cited {
            source: "kernel/Kconfig.hz",
            says: "a higher frequency is for fast response, 100 Hz for machines that need fewer interrupts",
        },
        look: hz,
    },
];

/// An option, and the verdict if it is set.
type Costly = (&'static str, Verdict);

const SANITIZERS: &[Costly] = &[
    ("KASAN_GENERIC", Verdict::Error),
    ("KASAN_SW_TAGS", Verdict::Error),
    ("KMSAN", Verdict::Error),
    ("KCSAN", Verdict::Error),
    ("KCOV_INSTRUMENT_ALL", Verdict::Error),
    ("GCOV_PROFILE_ALL", Verdict::Error),
    ("KASAN_HW_TAGS", Verdict::Info),
    ("UBSAN", Verdict::Info),
];

const LOCKS: &[Costly] = &[
    ("PROVE_LOCKING", Verdict::Error),
    ("DEBUG_LOCK_ALLOC", Verdict::Error),
    ("LOCK_STAT", Verdict::Error),
    ("DEBUG_SPINLOCK", Verdict::Warning),
    ("DEBUG_MUTEXES", Verdict::Warning),
    ("DEBUG_RT_MUTEXES", Verdict::Warning),
    ("DEBUG_RWSEMS", Verdict::Warning),
    ("DEBUG_PREEMPT", Verdict::Warning),
    ("DEBUG_ATOMIC_SLEEP", Verdict::Warning),
    ("DEBUG_IRQFLAGS", Verdict::Warning),
];

const TRACERS: &[Costly] = &[
    ("IRQSOFF_TRACER", Verdict::Warning),
    ("PREEMPT_TRACER", Verdict::Warning),
    ("TRACE_PREEMPT_TOGGLE", Verdict::Warning),
];

/// The options of a list that are set, and the worst verdict.
fn found<'t>(config: &KernelConfig, costly: &'t [Costly]) -> (Vec<&'t str>, Verdict) {
    let on = costly.iter().filter(|(option, _)| config.is_on(option));
    let worst = on.clone().map(|(_, verdict)| *verdict).max().unwrap_or(Verdict::Ok);
    (on.map(|(option, _)| *option).collect(), worst)
}

fn judged(
    snapshot: &Snapshot,
    costly: &[Costly],
    fine: &str,
    effect: &str,
) -> Result<ProbeResult, Unavailable> {
    let config = snapshot.config()?;
    let (on, worst) = found(config, costly);
    if on.is_empty() {
        return Ok(ProbeResult::fine(fine).because(&config.source, "none of them is set"));
    }
    let set: Vec<String> = on.iter().map(|option| format!("CONFIG_{option}=y")).collect();
    Ok(ProbeResult::new(worst, format!("the kernel was built with {}", on.join(", ")))
        .effect(effect)
        .fix(REBUILD)
        .because(&config.source, set.join(" ")))
}

fn sanitizers(snapshot: &Snapshot) -> Result<ProbeResult, Unavailable> {
    let (_, worst) = found(snapshot.config()?, SANITIZERS);
    let effect = match worst {
        Verdict::Info => "checks of arithmetic, indices or tags on the way: each costs a little",
        _ => {
            "every memory access in the kernel is checked or counted: binder is several times slower than it would be"
        }
    };
    judged(snapshot, SANITIZERS, "the kernel has no sanitizers", effect)
}

fn lock_debug(snapshot: &Snapshot) -> Result<ProbeResult, Unavailable> {
    let (_, worst) = found(snapshot.config()?, LOCKS);
    let effect = match worst {
        Verdict::Error => {
            "each lock that binder takes is recorded and checked: transactions take a multiple of their time, and more \
             with many threads"
        }
        _ => {
            "each lock that binder takes, and each switch of preemption, is checked: transactions are slower"
        }
    };
    judged(snapshot, LOCKS, "the kernel does not check locks", effect)
}

fn latency_tracers(snapshot: &Snapshot) -> Result<ProbeResult, Unavailable> {
    let effect = "each time interrupts or preemption are switched off, which every spinlock does, costs more, whether \
                  the tracers are in use or not";
    judged(snapshot, TRACERS, "no tracers of switched-off interrupts or preemption", effect)
}

fn hz(snapshot: &Snapshot) -> Result<ProbeResult, Unavailable> {
    let config = snapshot.config()?;
    let value = config.value("HZ").unwrap_or_default();
    let hz: u32 = value.parse().map_err(|_| {
        Unavailable::malformed(config.source.trim_start_matches('/'), "there is no CONFIG_HZ in it")
    })?;
    let said = match hz {
        ..=100 => ProbeResult::info(format!("the timer ticks {hz} times a second"))
            .effect("the scheduler looks at running threads every 10 ms only: with load beside them, waits are as long")
            .fix("a kernel with CONFIG_HZ=250 or 1000"),
        _ => ProbeResult::fine(format!("the timer ticks {hz} times a second")),
    };
    Ok(said.because(&config.source, format!("CONFIG_HZ={hz}")))
}
