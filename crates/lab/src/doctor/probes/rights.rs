//! Room: what this process may do: real-time, nice, tracing; and the policies that bind it.
//! Not here: opening the driver's devices (`driver`).
//! Facts: `sched(7)`, `setrlimit(2)`, `capabilities(7)`; contract SCH-05; `Documentation/trace/ftrace.rst`;
//! `selinux(8)`.

use crate::doctor::parse::limit;
use crate::doctor::probe::{Probe, Said};
use crate::doctor::snapshot::{Snapshot, Unread};

pub(super) const PROBES: &[Probe] = &[
    Probe {
        id: "rights-realtime",
        looks_at: "whether a thread can become SCHED_FIFO, tried",
        source: "sched(7); sched_setscheduler(2)",
        proof: "chrt -f 1 true; ulimit -r",
        look: realtime,
    },
    Probe {
        id: "rights-nice",
        looks_at: "whether nice values may be lowered, which handing them on needs",
        source: "setrlimit(2): RLIMIT_NICE; capabilities(7): CAP_SYS_NICE; contract SCH-05",
        proof: "grep CapEff /proc/self/status; grep nice /proc/self/limits",
        look: nice,
    },
    Probe {
        id: "open-files",
        looks_at: "how many files may be open",
        source: "setrlimit(2): RLIMIT_NOFILE",
        proof: "ulimit -n",
        look: files,
    },
    Probe {
        id: "tracefs",
        looks_at: "whether the kernel's tracing can be used",
        source: "Documentation/trace/ftrace.rst",
        proof: "ls /sys/kernel/tracing/events/binder",
        look: tracefs,
    },
    Probe {
        id: "security-policy",
        looks_at: "whether SELinux looks at each call",
        source: "security_binder_transaction in the LSM hooks; selinux(8)",
        proof: "getenforce; cat /sys/fs/selinux/enforce",
        look: policy,
    },
];

fn realtime(snapshot: &Snapshot) -> Result<Said, Unread> {
    let tried = &snapshot.facts().measured.realtime;
    let tried = tried.as_ref().ok_or(Unread::NotMeasured("whether a thread can become SCHED_FIFO"))?;
    Ok(match &tried.refused {
        None => Said::fine("a thread can become SCHED_FIFO").because("tried", "SCHED_FIFO 1 was taken"),
        Some(why) => Said::warning("no thread can become SCHED_FIFO")
            .effect("latency tests have no real-time callers; nothing is learnt about priority inheritance")
            .fix(why)
            .because("tried", why),
    })
}

const STATUS: &str = "proc/self/status";
const LIMITS: &str = "proc/self/limits";

/// Whether this process has a capability.
fn capable(snapshot: &Snapshot, number: u32) -> Result<bool, Unread> {
    let text = snapshot.text(STATUS)?;
    let mask = text.lines().find_map(|line| line.strip_prefix("CapEff:"));
    let mask = mask.and_then(|mask| u64::from_str_radix(mask.trim(), 16).ok());
    let mask = mask.ok_or_else(|| Unread::Nonsense(STATUS.to_owned(), "no line CapEff in it".to_owned()))?;
    Ok(mask & 1 << number != 0)
}

/// The soft limit of this process on something, by its name in `/proc/self/limits`.
fn own_limit(snapshot: &Snapshot, name: &str) -> Result<u64, Unread> {
    let text = snapshot.text(LIMITS)?;
    limit(&text, name).ok_or_else(|| Unread::Nonsense(LIMITS.to_owned(), format!("no line {name:?} in it")))
}

fn nice(snapshot: &Snapshot) -> Result<Said, Unread> {
    const SYS_NICE: u32 = 23;
    if capable(snapshot, SYS_NICE)? {
        return Ok(
            Said::fine("nice values may be changed freely (CAP_SYS_NICE)").seen(STATUS, "CapEff has bit 23")
        );
    }
    let limit = own_limit(snapshot, "Max nice priority")?;
    // The limit is 20 minus the least nice value.
    let said = match limit {
        20.. => Said::fine(format!("nice values down to {} may be set", 20 - limit.min(40) as i64)),
        _ => Said::warning("nice values may not be lowered")
            .effect("a server of such a process keeps its own nice value, whoever calls: the driver's handing on does \
                     nothing, and the inheritance tests show that")
            .fix("run as root, or raise the limit (ulimit -e 40, LimitNICE=-20 in a systemd unit)"),
    };
    Ok(said.seen(LIMITS, format!("Max nice priority {limit}")))
}

fn files(snapshot: &Snapshot) -> Result<Said, Unread> {
    let limit = own_limit(snapshot, "Max open files")?;
    let said = match limit {
        ..256 => Said::info(format!("only {limit} files may be open"))
            .effect("tests with many pairs or descriptors cannot be run")
            .fix("ulimit -n 1024"),
        _ => Said::fine("enough files may be open"),
    };
    Ok(said.seen(LIMITS, format!("Max open files {limit}")))
}

fn tracefs(snapshot: &Snapshot) -> Result<Said, Unread> {
    for folder in ["sys/kernel/tracing", "sys/kernel/debug/tracing"] {
        let file = format!("{folder}/current_tracer");
        match snapshot.text(&file) {
            Ok(text) => return Ok(Said::fine(format!("/{folder} can be used")).seen(&file, text)),
            Err(Unread::Absent(_)) => {}
            Err(why) => {
                return Ok(Said::info(format!("the kernel's tracing cannot be used: {why}"))
                    .effect("-trace and trace record do not work; why a call was late cannot be told")
                    .fix("run as root")
                    .seen(&file, why.to_string()));
            }
        }
    }
    if !snapshot.is_complete() {
        return Err(Unread::Absent("sys/kernel/tracing".to_owned()));
    }
    Ok(Said::info("no tracefs is mounted")
        .effect("-trace and trace record do not work; why a call was late cannot be told")
        .fix("mount -t tracefs tracefs /sys/kernel/tracing (as root; a kernel with CONFIG_FTRACE)")
        .seen("sys/kernel/tracing", "there is no current_tracer in it"))
}

fn policy(snapshot: &Snapshot) -> Result<Said, Unread> {
    const FILE: &str = "sys/fs/selinux/enforce";
    let Some(enforce) = snapshot.maybe(FILE)? else { return Ok(Said::fine("SELinux is not in use")) };
    let said = match enforce.as_str() {
        "1" => Said::info("SELinux enforces its policy")
            .effect("each call, each handle and each descriptor is checked, as on every phone: a little on each call, and \
                     refusals of what the policy does not know")
            .fix("nothing, where products run so; compare with machines that do the same"),
        _ => Said::info("SELinux looks on and lets everything pass (permissive)")
            .effect("each call is checked as if it enforced; what would be refused is written to the log, which takes time"),
    };
    Ok(said.seen(FILE, enforce))
}

#[cfg(test)]
pub(super) use cases::CASES;

#[cfg(test)]
mod cases {
    use crate::doctor::tests::{Case, FACTS, Verdict::*, case};

    const STATUS: &str = "proc/self/status";
    const POWERLESS: (&str, &str) = (STATUS, "Name:\tx\nCapEff:\t0000000000000000\n");
    const LIMITS: &str = "proc/self/limits";

    pub(in crate::doctor) const CASES: &[Case] = &[
        case(
            "rights-realtime",
            Warning,
            "no thread",
            &[(FACTS, r#""measured":{"realtime":{"refused":"EPERM: run it as root"}}"#)],
        ),
        case("rights-realtime", Ok, "can become", &[(FACTS, r#""measured":{"realtime":{"refused":null}}"#)]),
        case("rights-realtime", Unknown, "not measured", &[]),
        case(
            "rights-nice",
            Warning,
            "may not be lowered",
            &[POWERLESS, (LIMITS, "Max nice priority         0                    0                    \n")],
        ),
        case(
            "rights-nice",
            Ok,
            "down to -20",
            &[POWERLESS, (LIMITS, "Max nice priority         40                   40                   \n")],
        ),
        case("rights-nice", Ok, "freely", &[(STATUS, "CapEff:\t000001ffffffffff\n")]),
        case("rights-nice", Unknown, "CapEff", &[(STATUS, "CapEff: many\n")]),
        case(
            "open-files",
            Info,
            "only 64",
            &[(LIMITS, "Max open files            64                   64         files\n")],
        ),
        case(
            "open-files",
            Ok,
            "",
            &[(LIMITS, "Max open files            1024                 4096       files\n")],
        ),
        case("tracefs", Info, "mounted", &[]),
        case(
            "tracefs",
            Info,
            "EACCES",
            &[(FACTS, r#""unreadable":{"sys/kernel/tracing/current_tracer":"EACCES"}"#)],
        ),
        case("tracefs", Ok, "can be used", &[("sys/kernel/tracing/current_tracer", "nop\n")]),
        case("security-policy", Info, "enforces", &[("sys/fs/selinux/enforce", "1")]),
        case("security-policy", Info, "permissive", &[("sys/fs/selinux/enforce", "0")]),
        case("security-policy", Ok, "not in use", &[]),
    ];
}
