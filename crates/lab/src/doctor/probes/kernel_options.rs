//! Room: options that the kernel was built with and that cost time on binder's path.
//! Not here: how it preempts (`kernel`), the scheduler's options (`sched`), checks of memory (`memory_debug`).
//! Facts: help texts of `lib/Kconfig.debug`, `lib/Kconfig.kasan`, `lib/Kconfig.kcsan`, `lib/Kconfig.kmsan`,
//! `kernel/Kconfig.hz`, `kernel/trace/Kconfig`; Android's
//! page names `DEBUG_PREEMPT` and `DEBUG_SPINLOCK`.

use driver::kernel_config::KernelConfig;
use record::checkup::Verdict;

use super::memory_debug;
use crate::doctor::probe::{Probe, Said};
use crate::doctor::snapshot::{Snapshot, Unread};

const SHOW: &str = "zcat /proc/config.gz || cat /boot/config-$(uname -r)";
const REBUILD: &str =
    "measure a kernel that was built without: scripts/config -d OPTION, or the product's configuration";

pub(super) const PROBES: &[Probe] = &[
    Probe {
        id: "kernel-config",
        looks_at: "whether the kernel's configuration can be read",
        source: "CONFIG_IKCONFIG_PROC; /boot/config-RELEASE",
        proof: SHOW,
        look: config,
    },
    Probe {
        id: "kernel-sanitizers",
        looks_at: "KASAN, KMSAN, KCSAN, KCOV, GCOV, UBSAN",
        source: "lib/Kconfig.kasan, Kconfig.kmsan, Kconfig.kcsan, Kconfig.ubsan, Kconfig.debug",
        proof: "zcat /proc/config.gz | grep -E 'KASAN|KMSAN|KCSAN|KCOV|GCOV|UBSAN'",
        look: sanitizers,
    },
    Probe {
        id: "kernel-lock-debug",
        looks_at: "checks of locks and of preemption: lockdep, DEBUG_SPINLOCK, DEBUG_PREEMPT, ...",
        source: "lib/Kconfig.debug; Android's page on binder performance",
        proof: "zcat /proc/config.gz | grep -E 'LOCKDEP|PROVE_LOCKING|LOCK_STAT|DEBUG_(SPINLOCK|MUTEXES|PREEMPT|ATOMIC)'",
        look: lock_debug,
    },
    memory_debug::PROBE,
    Probe {
        id: "kernel-latency-tracers",
        looks_at: "tracers that watch every switching off of interrupts and preemption",
        source: "kernel/trace/Kconfig",
        proof: "zcat /proc/config.gz | grep -E 'IRQSOFF_TRACER|PREEMPT_TRACER|TRACE_PREEMPT_TOGGLE'",
        look: latency_tracers,
    },
    Probe {
        id: "kernel-hz",
        looks_at: "the timer frequency, CONFIG_HZ",
        source: "kernel/Kconfig.hz",
        proof: "zcat /proc/config.gz | grep CONFIG_HZ=",
        look: hz,
    },
];

/// An option and how bad it is to have it.
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

/// Those of a list that are built in, and the worst of them.
fn found<'t>(config: &KernelConfig, costly: &'t [Costly]) -> (Vec<&'t str>, Verdict) {
    let on = costly.iter().filter(|(option, _)| config.is_on(option));
    let worst = on.clone().map(|(_, verdict)| *verdict).max().unwrap_or(Verdict::Ok);
    (on.map(|(option, _)| *option).collect(), worst)
}

fn config(snapshot: &Snapshot) -> Result<Said, Unread> {
    match snapshot.config() {
        Ok(config) => Ok(Said::fine(format!("it is in {}", config.source))),
        Err(why) => Ok(Said::info(format!("the kernel's configuration is not to be found: {why}"))
            .seen("proc/config.gz", why.to_string())
            .effect("whether debugging options slow the kernel down cannot be told")
            .fix("modprobe configs, or build with CONFIG_IKCONFIG_PROC=y; in a container, copy the host's /boot/config-RELEASE")),
    }
}

fn judged(snapshot: &Snapshot, costly: &[Costly], fine: &str, effect: &str) -> Result<Said, Unread> {
    let config = snapshot.config()?;
    let (on, worst) = found(config, costly);
    if on.is_empty() {
        return Ok(Said::fine(fine).because(&config.source, "none of them is set"));
    }
    let set: Vec<String> = on.iter().map(|option| format!("CONFIG_{option}=y")).collect();
    Ok(Said::new(worst, format!("the kernel was built with {}", on.join(", ")))
        .effect(effect)
        .fix(REBUILD)
        .because(&config.source, set.join(" ")))
}

fn sanitizers(snapshot: &Snapshot) -> Result<Said, Unread> {
    let (_, worst) = found(snapshot.config()?, SANITIZERS);
    let effect = match worst {
        Verdict::Info => "checks of arithmetic, indices or tags on the way: each costs a little",
        _ => {
            "every memory access in the kernel is checked or counted: binder is several times slower than it would be"
        }
    };
    judged(snapshot, SANITIZERS, "the kernel has no sanitizers", effect)
}

fn lock_debug(snapshot: &Snapshot) -> Result<Said, Unread> {
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

fn latency_tracers(snapshot: &Snapshot) -> Result<Said, Unread> {
    let effect = "each time interrupts or preemption are switched off, which every spinlock does, costs more, whether \
                  the tracers are in use or not";
    judged(snapshot, TRACERS, "no tracers of switched-off interrupts or preemption", effect)
}

fn hz(snapshot: &Snapshot) -> Result<Said, Unread> {
    let config = snapshot.config()?;
    let value = config.value("HZ").unwrap_or_default();
    let hz: u32 = value.parse().map_err(|_| {
        Unread::Nonsense(
            config.source.trim_start_matches('/').to_owned(),
            "there is no CONFIG_HZ in it".to_owned(),
        )
    })?;
    let said = match hz {
        ..=100 => Said::info(format!("the timer ticks {hz} times a second"))
            .effect("the scheduler looks at running threads every 10 ms only: with load beside them, waits are as long")
            .fix("a kernel with CONFIG_HZ=250 or 1000"),
        _ => Said::fine(format!("the timer ticks {hz} times a second")),
    };
    Ok(said.because(&config.source, format!("CONFIG_HZ={hz}")))
}

#[cfg(test)]
pub(super) use cases::CASES;

#[cfg(test)]
mod cases {
    use crate::doctor::tests::{Case, Verdict::*, case};

    const CONFIG: &str = "proc/config";
    const PLAIN: &str = "CONFIG_HZ=250\n# CONFIG_KASAN is not set\n# CONFIG_PROVE_LOCKING is not set\n";

    pub(in crate::doctor) const CASES: &[Case] = &[
        case("kernel-config", Ok, "/proc/config", &[(CONFIG, PLAIN)]),
        case("kernel-config", Info, "not to be found", &[]),
        case("kernel-config", Info, "not to be found", &[(CONFIG, "not one\n")]),
        case(
            "kernel-sanitizers",
            Error,
            "KASAN_GENERIC",
            &[(CONFIG, "CONFIG_KASAN=y\nCONFIG_KASAN_GENERIC=y\n")],
        ),
        case("kernel-sanitizers", Error, "KCSAN", &[(CONFIG, "CONFIG_KCSAN=y\nCONFIG_UBSAN=y\n")]),
        case("kernel-sanitizers", Info, "UBSAN", &[(CONFIG, "CONFIG_UBSAN=y\n")]),
        case("kernel-sanitizers", Ok, "no sanitizers", &[(CONFIG, PLAIN)]),
        case("kernel-sanitizers", Unknown, "proc/config.gz", &[]),
        case("kernel-lock-debug", Error, "PROVE_LOCKING", &[(CONFIG, "CONFIG_PROVE_LOCKING=y\n")]),
        case(
            "kernel-lock-debug",
            Warning,
            "DEBUG_SPINLOCK, DEBUG_PREEMPT",
            &[(CONFIG, "CONFIG_DEBUG_PREEMPT=y\nCONFIG_DEBUG_SPINLOCK=y\n")],
        ),
        case("kernel-lock-debug", Ok, "does not check locks", &[(CONFIG, PLAIN)]),
        case("kernel-latency-tracers", Warning, "IRQSOFF_TRACER", &[(CONFIG, "CONFIG_IRQSOFF_TRACER=y\n")]),
        case("kernel-latency-tracers", Ok, "", &[(CONFIG, PLAIN)]),
        case("kernel-hz", Info, "100 times", &[(CONFIG, "CONFIG_HZ_100=y\nCONFIG_HZ=100\n")]),
        case("kernel-hz", Ok, "250 times", &[(CONFIG, PLAIN)]),
        case("kernel-hz", Unknown, "no CONFIG_HZ", &[(CONFIG, "CONFIG_HZ=many\n")]),
    ];
}
