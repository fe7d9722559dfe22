//! Rights of this process: real-time, nice, tracing, security policies.
//! Not here: opening the driver's devices (`driver`).
//! Facts: `sched(7)`, `setrlimit(2)`, `capabilities(7)`; contract SCH-05; `Documentation/trace/ftrace.rst`;
//! `selinux(8)`.

use crate::probe::{Grounds, Probe, ProbeResult};
use crate::snapshot::{Snapshot, Unavailable};
use host::parse::{CAP_SYS_NICE, has_capability, limit};

pub(super) const PROBES: &[Probe] = &[
    Probe {
        id: "rights-realtime",
        looks_at: "permission for SCHED_FIFO threads, tried",
        proof: "chrt -f 1 true; ulimit -r",
        grounds: Grounds::Cited {
            source: "sched(7), Privileges and resource limits",
            says: "without the right no thread gets a real-time policy",
        },
        look: realtime,
    },
    Probe {
        id: "rights-nice",
        looks_at: "permission to lower nice values, which priority inheritance needs",
        proof: "grep CapEff /proc/self/status; grep nice /proc/self/limits",
        grounds: Grounds::Cited {
            source: "setrlimit(2), RLIMIT_NICE; contract SCH-05",
            says: "a receiver adopts a nice value as far as it has the right",
        },
        look: nice,
    },
    Probe {
        id: "tracefs",
        looks_at: "access to the kernel's tracing",
        proof: "ls /sys/kernel/tracing/events/binder",
        grounds: Grounds::Cited {
            source: "Documentation/trace/ftrace.rst",
            says: "recordings, which name the causes of slow calls, are made there",
        },
        look: tracefs,
    },
    Probe {
        id: "security-policy",
        looks_at: "SELinux checks of each call",
        proof: "getenforce; cat /sys/fs/selinux/enforce",
        grounds: Grounds::Cited {
            source: "Loscocco, Smalley: Integrating flexible support for security policies into Linux (USENIX 2001)",
            says: "measures what the checks of each operation cost",
        },
        look: policy,
    },
];

fn realtime(snapshot: &Snapshot) -> Result<ProbeResult, Unavailable> {
    let tried = &snapshot.facts().measured.realtime;
    let tried = tried.as_ref().ok_or(Unavailable::NotMeasured("permission for SCHED_FIFO threads"))?;
    Ok(match &tried.refused {
        None => {
            ProbeResult::fine("a thread can become SCHED_FIFO").because("tried", "SCHED_FIFO 1 was accepted")
        }
        Some(why) => ProbeResult::warning("no thread can become SCHED_FIFO")
            .effect("latency tests have no real-time callers, and priority inheritance cannot be tested")
            .fix(why)
            .because("tried", why),
    })
}

const STATUS: &str = "proc/self/status";
const LIMITS: &str = "proc/self/limits";

/// A soft limit of this process, by its name in `/proc/self/limits`.
fn own_limit(snapshot: &Snapshot, name: &str) -> Result<u64, Unavailable> {
    let text = snapshot.text(LIMITS)?;
    limit(&text, name).ok_or_else(|| Unavailable::malformed(LIMITS, format!("no line {name:?} in it")))
}

fn nice(snapshot: &Snapshot) -> Result<ProbeResult, Unavailable> {
    let capable = has_capability(&snapshot.text(STATUS)?, CAP_SYS_NICE);
    if capable.ok_or_else(|| Unavailable::malformed(STATUS, "it has no line CapEff"))? {
        return Ok(ProbeResult::fine("nice values may be changed freely (CAP_SYS_NICE)")
            .seen(STATUS, "CapEff has bit 23"));
    }
    let limit = own_limit(snapshot, "Max nice priority")?;
    // The limit is 20 minus the lowest nice value.
    let said = match limit {
        20.. => ProbeResult::fine(format!("nice values down to {} may be set", 20 - limit.min(40) as i64)),
        _ => ProbeResult::warning("nice values may not be lowered")
            .effect("a server of such a process keeps its own nice value for every caller: the driver's inheritance has no \
                     effect, as inheritance tests show")
            .fix("run as root, or raise the limit (ulimit -e 40, LimitNICE=-20 in a systemd unit)"),
    };
    Ok(said.seen(LIMITS, format!("Max nice priority {limit}")))
}

fn tracefs(snapshot: &Snapshot) -> Result<ProbeResult, Unavailable> {
    for folder in ["sys/kernel/tracing", "sys/kernel/debug/tracing"] {
        let file = format!("{folder}/current_tracer");
        match snapshot.text(&file) {
            Ok(text) => return Ok(ProbeResult::fine(format!("/{folder} can be used")).seen(&file, text)),
            Err(Unavailable::Absent(_)) => {}
            Err(why) => {
                return Ok(ProbeResult::info(format!("the kernel's tracing cannot be used: {why}"))
                    .effect("-trace and trace record do not work; causes of late calls are unknown")
                    .fix("run as root")
                    .seen(&file, why.to_string()));
            }
        }
    }
    if !snapshot.shows_absence("sys/kernel") {
        return Err(Unavailable::absent("sys/kernel/tracing"));
    }
    Ok(ProbeResult::info("no tracefs is mounted")
        .effect("-trace and trace record do not work; causes of late calls are unknown")
        .fix("mount -t tracefs tracefs /sys/kernel/tracing (as root; a kernel with CONFIG_FTRACE)")
        .seen("sys/kernel/tracing", "it has no current_tracer"))
}

fn policy(snapshot: &Snapshot) -> Result<ProbeResult, Unavailable> {
    const FILE: &str = "sys/fs/selinux/enforce";
    let Some(enforce) = snapshot.maybe(FILE)? else {
        // A kernel that uses it has its file system, mounted here or not.
        return match snapshot.text("proc/filesystems")?.contains("selinuxfs") {
            true => Err(Unavailable::absent(FILE)),
            false => Ok(ProbeResult::fine("SELinux is not in use")),
        };
    };
    let said = match enforce.as_str() {
        "1" => ProbeResult::info("SELinux enforces its policy")
            .effect("each call, handle and descriptor is checked, as on every phone: calls are slightly slower, and \
                     accesses without a rule are refused")
            .fix("none if products run with it; compare with machines that do the same"),
        _ => ProbeResult::info("SELinux is permissive")
            .effect("each call is checked as if enforcing; violations are logged, which takes time"),
    };
    Ok(said.seen(FILE, enforce))
}
