//! Contract section 14: real-time callers, and drivers that pass on nothing or everything (SCH-07 to SCH-09).
//! Facts: `SCHED_FIFO` in `sched(7)`; Android's item follows AOSP's `binderLibTest` and `binder.h`.

use sys::sched::{Policy, policy_of, set_policy};

use crate::prelude::*;
use crate::scheduling::{OWN, Setup, at_least, be, can_be_urgent, nested, own_nice, permitted, unnest};

/// Node flags with which Android's driver passes on real-time policies.
const INHERIT_RT: u32 = 0x800;
/// Position of the policy in a node's flags, for Android's driver.
const POLICY_SHIFT: u32 = 9;
const FIFO: u32 = 1;
const RR: u32 = 2;

/// Sets the calling thread's policy; skips the rest of a test if not permitted.
fn run_as(policy: Policy) -> Verdict {
    let otherwise = "needs a real-time policy: CAP_SYS_NICE, or RLIMIT_RTPRIO";
    permitted("setting a thread's policy", set_policy(0, policy), otherwise)
}

fn own_policy() -> Result<Policy, Stop> {
    done("asking for a thread's policy", policy_of(0))
}

/// Sends from a real-time thread of this nice value; returns the serving thread's scheduling.
fn served(setup: &Setup, nice: i32) -> Result<(i32, Policy), Stop> {
    setup.caller.run(|| run_as(Policy::Fifo(10)))??;
    setup.send(nice, TransactionFlags::CALL)?;
    let found = (setup.serve()?, own_policy()?);
    setup.finish()?;
    Ok(found)
}

pub(super) fn sch_07_no_policy_is_handed_on(kit: &Kit) -> Verdict {
    let own = kit.evidence.inherit;
    let at_most_nice = if own == Inherit::Rt { Inherit::Nice } else { own };
    let why = || "this driver hands real-time policies on (SCH-09)".into();
    let kit = &kit.inheriting(at_most_nice, why)?;
    can_be_urgent()?;
    let bits = [0, INHERIT_RT, FIFO << POLICY_SHIFT, RR << POLICY_SHIFT | INHERIT_RT];
    for more in bits {
        let setup = Setup::new(kit, 0, at_least(10) | more)?;
        let want = (super::by_inherit(kit, 7, OWN), Policy::Other);
        expect(&format!("a FIFO caller of nice 7, node flags {more:#x} more"), served(&setup, 7)?, want)?;
    }
    // An unsigned byte: -10 is 246, lower than any priority.
    let setup = Setup::new(kit, 5, at_least(0xf6))?;
    expect("a caller of nice 7, node of -10", setup.served_at(7)?, super::by_inherit(kit, 7, OWN))?;
    let setup = Setup::new(kit, 5, at_least(0xf6))?;
    let found = setup.oneway_served_at(7)?;
    expect("a oneway call, node of -10, opened at 5", found, super::by_inherit(kit, 5, OWN))
}

pub(super) fn sch_08_some_hand_nothing_on(kit: &Kit) -> Verdict {
    let kit = &kit.inheriting(Inherit::None, || {
        let this = kit.kind();
        format!("a promise of the Rust driver only; this is the {this}, which hands nice on (SCH-01)")
    })?;
    can_be_urgent()?;
    let setup = Setup::new(kit, 5, at_least(0))?;
    expect("serving an urgent FIFO caller", served(&setup, -5)?, (OWN, Policy::Other))?;
    expect("once it replied", own_nice()?, OWN)?;
    expect("serving an urgent oneway call", setup.oneway_served_at(-5)?, OWN)?;
    be(12)?;
    setup.server.read_now()?;
    expect("reading with nothing to do", own_nice()?, 12)
}

/// The policy of a thread that a FIFO caller gave a nested call, before it reads that.
fn policy_before_reading(kit: &Kit, flags: u32, want: Policy, what: &str) -> Verdict {
    let setup = nested(kit, flags, || expect(what, own_policy()?, want))?;
    setup.server.reply(Payload::default())?;
    expect("once it replied", own_policy()?, Policy::Other)?;
    unnest(&setup)
}

/// A oneway call sets its node's policy, which is reset when the thread waits for other work (SCH-04).
fn oneway_brings_a_policy(kit: &Kit, minimum: u32) -> Verdict {
    let setup = Setup::new(kit, 0, minimum)?;
    for _ in 0..2 {
        setup.oneway_served_at(7)?;
        expect("serving a oneway call to a node that asks for FIFO 20", own_policy()?, Policy::Fifo(20))?;
        setup.server.read_now()?;
        expect("looking for work after a oneway call", own_policy()?, Policy::Other)?;
    }
    Ok(())
}

/// Same case on a driver where a thread gets the policy when it reads.
fn handed_on_with_the_call(kit: &Kit, minimum: u32) -> Verdict {
    for (what, flags, want) in [
        ("a FIFO caller of a node that asks for FIFO 20", minimum, Policy::Fifo(20)),
        ("a FIFO caller of a node without INHERIT_RT", at_least(19), Policy::Other),
        ("a FIFO caller of a node with INHERIT_RT", at_least(19) | INHERIT_RT, Policy::Fifo(10)),
    ] {
        let setup = Setup::new(kit, 0, flags)?;
        expect(what, served(&setup, 7)?.1, want)?;
        expect("once it replied", own_policy()?, Policy::Other)?;
    }
    kit.differs("a thread adopts a policy when it reads; before, only a FIFO caller in a call slot raises it")
}

pub(super) fn sch_09_a_policy_is_handed_on_before_waking(kit: &Kit) -> Verdict {
    let kit = &kit.inheriting(Inherit::Rt, || {
        format!(
            "a promise of Android's drivers only, not kept by mainline's: this {} shows no event binder_set_priority. \
             There a thread would have a FIFO caller's or its node's policy before it wakes",
            kit.kind()
        )
    })?;
    can_be_urgent()?;
    let minimum = at_least(20) | FIFO << POLICY_SHIFT;
    oneway_brings_a_policy(kit, minimum)?;
    if kit.is_embedded() {
        return handed_on_with_the_call(kit, minimum);
    }
    policy_before_reading(kit, minimum, Policy::Fifo(20), "given a call of a node that asks for FIFO 20")?;
    let plain = Setup::new(kit, 0, at_least(19))?;
    expect("a FIFO caller of a node without INHERIT_RT", served(&plain, 7)?.1, Policy::Other)?;
    let setup = Setup::new(kit, 0, at_least(19) | INHERIT_RT)?;
    expect("a FIFO caller of a node with INHERIT_RT", served(&setup, 7)?.1, Policy::Fifo(10))
}
