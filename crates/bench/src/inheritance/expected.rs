//! Oracle of priority inheritance: how a thread should serve each caller, and the level that the observed
//! hops show.
//! Not here: observing threads (`scenes`).
//! Facts: contract SCH-01, SCH-02, SCH-05, SCH-07 to SCH-09; Android's driver applies the more urgent of the
//! caller's priority and the node's minimum, and counts a real-time caller as nice 0 where the node does not
//! ask for `INHERIT_RT`. The embedded driver implements the same rules in its own code, so neither checks
//! itself.

use backend::AnyContext;
use driver::{Context, OpenError, OpenOptions};
use embedded::Inherit;
use ipc::{Minimum, NodeOptions};
use record::{Hop, Level, Limit, Sched, same_urgency};

use host::evidence::{self, Evidence, Kind};

/// Name of the scene with a direct call to a waiting thread.
pub(super) const CALL: &str = "call";

/// Inheritance expected of a driver, and the evidence for it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Expectation {
    /// `None`: unknown.
    pub(super) rule: Option<Inherit>,
    pub(super) reason: String,
    /// Why it is less than Android's tools require.
    pub(super) below_android: Option<Limit>,
    /// Whether the nodes ask for real-time policies.
    inherit_rt: bool,
}

impl Expectation {
    /// Returns the expected level of the driver with such nodes.
    pub(super) fn level(&self) -> Option<Level> {
        Some(match (self.rule?, self.inherit_rt) {
            (Inherit::None, _) => Level::None,
            (Inherit::Rt, true) => Level::Rt,
            (Inherit::Nice, _) | (Inherit::Rt, false) => Level::Nice,
        })
    }
}

/// Determines the expected inheritance of a context's driver.
///
/// # Errors
/// The context cannot be opened.
pub(super) fn find(context: &AnyContext, inherit_rt: bool) -> Result<Expectation, OpenError> {
    let (rule, reason) = match context {
        AnyContext::Embedded(context) => {
            let inherit = context.settings().inherit;
            (Some(inherit), format!("it is the embedded driver's setting (--inherit {inherit})"))
        }
        AnyContext::Kernel(kernel) => {
            let connection = kernel.open(OpenOptions { map_size: 0, nonblocking: true })?;
            by_kernel(&evidence::identify(Some(connection.device()), &context.address(), None))
        }
    };
    // Real-time policies need a right of their own.
    let rights = sys::urgency::most_urgent_nice() <= 19
        || rule == Some(Inherit::Rt) && sys::limits::realtime_priority() > 0;
    let limit = match (rule, context) {
        (None | Some(Inherit::Rt), _) => None,
        (_, AnyContext::Embedded(_)) => Some(Limit::Setting),
        (Some(Inherit::Nice), _) => Some(Limit::Mainline),
        (Some(Inherit::None), _) => Some(Limit::Rust),
    };
    let found = limited(rule, reason, inherit_rt, rights);
    Ok(Expectation { below_android: found.below_android.or(limit), ..found })
}

/// Expected inheritance of a kernel driver.
fn by_kernel(evidence: &Evidence) -> (Option<Inherit>, String) {
    let android = evidence.is_android();
    let (rule, reason) = match (evidence.kind, evidence.inherit) {
        (Kind::Rust, _) if android => {
            return (None, "of the Rust driver of Android's kernels it is not known".to_owned());
        }
        (_, Inherit::None) => (Inherit::None, "the kernel's Rust driver leaves priorities alone (SCH-08)"),
        (_, Inherit::Nice) => (Inherit::Nice, "mainline's C driver hands on nice only (SCH-01, SCH-07)"),
        (_, Inherit::Rt) => {
            (Inherit::Rt, "this driver hands real-time policies on, too, as Android's does (SCH-09)")
        }
    };
    (Some(rule), format!("{reason}: {}", evidence.findings.join("; ")))
}

/// Limits a rule to what the rights of this process permit.
fn limited(rule: Option<Inherit>, reason: String, inherit_rt: bool, rights: bool) -> Expectation {
    if !rights && rule != Some(Inherit::None) {
        let reason = format!(
            "{reason}; but the servers have no right to change their priority ({}), so it stays (SCH-05)",
            sys::urgency::what_is_missing()
        );
        let below_android = rule.map(|_| Limit::Rights);
        return Expectation { rule: rule.map(|_| Inherit::None), reason, below_android, inherit_rt };
    }
    let (reason, below_android) = match (rule, inherit_rt) {
        (Some(Inherit::Rt), false) => {
            let node = "these nodes do not ask for it (INHERIT_RT), so a real-time caller counts as nice 0";
            (format!("{reason}; {node}"), Some(Limit::Node))
        }
        _ => (reason, None),
    };
    Expectation { rule, reason, below_android, inherit_rt }
}

/// Returns how a thread that waited as `idle` should serve a call.
pub(super) fn served(rule: Inherit, node: &NodeOptions, caller: Sched, idle: Sched, oneway: bool) -> Sched {
    match rule {
        Inherit::None => idle,
        Inherit::Nice => {
            // Mainline reads an unsigned byte, whatever the policy bits are.
            let least = (node.flags() & 0xff) as i32;
            let bound = if oneway { idle.nice } else { caller.nice };
            Sched { nice: bound.min(least), ..idle }
        }
        Inherit::Rt => {
            let least = match node.minimum {
                Minimum::Normal(nice) => Sched::other(nice.value()),
                Minimum::Fifo(priority) => Sched::fifo(priority.value().into()),
                Minimum::Rr(priority) => Sched { policy: 2, ..Sched::fifo(priority.value().into()) },
            };
            let wanted = match caller.is_realtime() && !node.inherit_rt {
                _ if oneway => idle,
                true => Sched::other(0),
                false => caller,
            };
            if urgency(least) > urgency(wanted) { least } else { wanted }
        }
    }
}

/// Urgency for comparisons, larger is more urgent: every real-time priority is above every nice.
fn urgency(sched: Sched) -> i64 {
    if sched.is_realtime() { 100 + i64::from(sched.priority) } else { 20 - i64::from(sched.nice) }
}

/// Returns the level that the direct calls show; `None` if they are inconclusive.
pub(super) fn measured(hops: &[Hop]) -> Option<Level> {
    let direct = |realtime| hops.iter().find(|hop| hop.scene == CALL && hop.caller.is_realtime() == realtime);
    let passed = |hop: &Hop, wanted| hop.served.map(|served| same_urgency(served, wanted));
    let realtime = direct(true).and_then(|hop| passed(hop, hop.caller));
    // The thread waited at a nice that neither the caller nor the node has.
    let nice = direct(false).and_then(|hop| passed(hop, hop.idle)).map(|unchanged| !unchanged);
    match (realtime, nice) {
        (Some(true), _) => Some(Level::Rt),
        (Some(false), Some(true)) => Some(Level::Nice),
        (_, Some(false)) => Some(Level::None),
        // Whether a real-time policy would have been inherited is unknown.
        (None, Some(true)) | (_, None) => None,
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use host::Release;
    use ipc::{Nice, RtPriority};

    const IDLE: Sched = Sched { policy: 0, priority: 0, nice: 4 };

    fn fifo(nice: i32) -> Sched {
        Sched { nice, ..Sched::fifo(99) }
    }

    #[test]
    fn nothing_is_handed_on_by_none() {
        for caller in [fifo(0), Sched::other(-5), Sched::other(19)] {
            for oneway in [true, false] {
                assert_eq!(served(Inherit::None, &NodeOptions::HWBINDER, caller, IDLE, oneway), IDLE);
            }
        }
    }

    #[test]
    fn mainline_takes_the_lesser_nice_and_no_policy() {
        let at = |node: &NodeOptions, caller, oneway| served(Inherit::Nice, node, caller, IDLE, oneway);
        for (caller, binder, hwbinder) in
            [(fifo(0), 0, 0), (fifo(7), 7, 0), (Sched::other(-5), -5, -5), (Sched::other(10), 10, 0)]
        {
            assert_eq!(at(&NodeOptions::BINDER, caller, false), Sched::other(binder), "{caller:?}");
            assert_eq!(at(&NodeOptions::HWBINDER, caller, false), Sched::other(hwbinder), "{caller:?}");
        }
        assert_eq!(at(&NodeOptions::BINDER, fifo(0), true), IDLE, "a oneway call brings no caller's nice");
        assert_eq!(at(&NodeOptions::HWBINDER, Sched::other(-5), true), Sched::other(0));
        let minimum = Minimum::Fifo(RtPriority::try_from(10).expect("in range"));
        let node = NodeOptions { minimum, ..NodeOptions::BINDER };
        assert_eq!(at(&node, Sched::other(15), false), Sched::other(10), "the policy bits mean nothing");
        // A thread that is itself real-time stays real-time.
        let own = served(Inherit::Nice, &NodeOptions::BINDER, Sched::other(3), fifo(0), false);
        assert_eq!(own, fifo(3));
    }

    #[test]
    fn android_takes_the_policy_where_the_node_asks() {
        let at = |node: &NodeOptions, caller, oneway| served(Inherit::Rt, node, caller, IDLE, oneway);
        assert_eq!(at(&NodeOptions::HWBINDER, fifo(0), false), fifo(0));
        assert_eq!(at(&NodeOptions::BINDER, fifo(0), false), Sched::other(0));
        assert_eq!(at(&NodeOptions::BINDER, Sched::other(-5), false), Sched::other(-5));
        assert_eq!(at(&NodeOptions::HWBINDER, fifo(0), true), Sched::other(0), "the node's least");
        assert_eq!(at(&NodeOptions::BINDER, fifo(0), true), IDLE);
        let minimum = Minimum::Fifo(RtPriority::try_from(10).expect("in range"));
        let node = NodeOptions { minimum, ..NodeOptions::BINDER };
        assert_eq!(at(&node, Sched::other(0), false), Sched::fifo(10));
        let least = Minimum::Normal(Nice::try_from(3).expect("in range"));
        let node = NodeOptions { minimum: least, ..NodeOptions::BINDER };
        assert_eq!(at(&node, Sched::other(15), false), Sched::other(3));
    }

    fn evidence(kind: Kind, release: &str, inherit: Inherit) -> Evidence {
        let (findings, release_name) = (vec!["a finding".to_owned()], release.to_owned());
        Evidence { kind, release: Release::parse(release), release_name, inherit, findings }
    }

    #[test]
    fn each_driver_has_its_level() {
        for (kind, release, inherit, rt, want) in [
            (Kind::C, "7.2.13", Inherit::Nice, true, Some(Level::Nice)),
            (Kind::Rust, "7.2.13", Inherit::None, true, Some(Level::None)),
            (Kind::C, "6.6.30-android15-8", Inherit::Rt, true, Some(Level::Rt)),
            (Kind::C, "6.6.30-android15-8", Inherit::Rt, false, Some(Level::Nice)),
            (Kind::Rust, "6.12.2-android16-1", Inherit::None, true, None),
        ] {
            let (rule, reason) = by_kernel(&evidence(kind, release, inherit));
            let found = limited(rule, reason, rt, true);
            assert_eq!(found.level(), want, "{kind} {release}");
            assert!(!found.reason.is_empty());
            let node = (inherit == Inherit::Rt && !rt).then_some(Limit::Node);
            assert_eq!(found.below_android, node, "{kind} {release}");
        }
        let reason = by_kernel(&evidence(Kind::C, "7.2.13", Inherit::Nice)).1;
        assert!(reason.contains("mainline") && reason.contains("a finding"), "{reason}");
    }

    #[test]
    fn who_may_change_nothing_inherits_nothing() {
        let found = limited(Some(Inherit::Nice), "mainline".to_owned(), true, false);
        assert_eq!((found.rule, found.level()), (Some(Inherit::None), Some(Level::None)));
        assert_eq!(found.below_android, Some(Limit::Rights));
        assert!(found.reason.contains("RLIMIT_NICE"), "{}", found.reason);
        assert_eq!(limited(None, String::new(), true, false).level(), None, "still not known");
    }

    fn hop(caller: Sched, served: Option<Sched>) -> Hop {
        Hop { scene: CALL.to_owned(), caller, idle: IDLE, served, expected: None, note: String::new() }
    }

    #[test]
    fn direct_calls_tell_the_level() {
        let nice = Sched::other(-5);
        for (by_fifo, by_nice, want) in [
            (Some(fifo(0)), Some(nice), Some(Level::Rt)),
            (Some(Sched::other(0)), Some(nice), Some(Level::Nice)),
            (Some(Sched::fifo(50)), Some(nice), Some(Level::Nice)),
            (Some(IDLE), Some(IDLE), Some(Level::None)),
            (None, Some(IDLE), Some(Level::None)),
            (None, Some(nice), None),
            (Some(IDLE), None, None),
            (None, None, None),
        ] {
            assert_eq!(
                measured(&[hop(fifo(0), by_fifo), hop(nice, by_nice)]),
                want,
                "{by_fifo:?} {by_nice:?}"
            );
        }
        assert_eq!(measured(&[]), None);
    }
}
