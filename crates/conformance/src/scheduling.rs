//! Contract section 14: how much of a caller's priority the serving thread gets (SCH-01 to SCH-06, SCH-10). The
//! serving thread is the test's own; callers run on workers.
//! Not here: real-time policies (`realtime`).
//! Facts: `setpriority(2)`: nice is a per-thread value; lowering it needs `CAP_SYS_NICE` or `RLIMIT_NICE`.

mod realtime;

use std::io;

use sys::sched::{nice_of, set_nice};

use crate::looper::waiting;
use crate::prelude::*;

items! {
    "SCH-01" C [seen] sch_01_a_call_brings_its_nice "a call is served at the higher priority of the caller's nice and the node's";
    "SCH-02" C [seen] sch_02_a_oneway_call_brings_the_nodes "a oneway call raises its thread to the node's nice and no further";
    "SCH-03" C [] sch_03_a_reply_restores "sending the reply restores the serving thread's nice";
    "SCH-04" C [] sch_04_idling_is_done_at_the_openers_nice "a thread waits for its process's work at the opener's nice";
    "SCH-05" C [seen differs] sch_05_within_the_receivers_limits "a nice value is adopted as far as the receiver itself has the right";
    "SCH-06" C [] sch_06_the_receiver_changes_itself "the receiver adopts the nice itself, once it runs";
    "SCH-07" C [] sch_07_no_policy_is_handed_on in realtime "only the nice of a real-time caller is passed on";
    "SCH-08" Rust [] sch_08_some_hand_nothing_on in realtime "the Rust driver leaves priorities alone";
    "SCH-09" C [differs] sch_09_a_policy_is_handed_on_before_waking in realtime "Android's driver passes on a policy, before the receiver wakes";
    "SCH-10" Both [] sch_10_both_kinds_wake_one_thread "calls and oneway calls wake one waiting thread";
}

/// Nice value of the serving thread before it reads, so that leaving it unchanged is visible.
const OWN: i32 = 3;

/// A server on the test's own thread, and a caller on another.
struct Setup {
    server: RawProcess,
    client: RawProcess,
    handle: Handle,
    caller: Worker,
}

/// Flags of a node with this nice value as its minimum priority.
fn at_least(nice: u32) -> u32 {
    0x100 | nice
}

/// Fails unless a system call succeeded; skips the rest of a test for this reason if it was not permitted.
fn permitted(what: &str, result: io::Result<()>, otherwise: &str) -> Verdict {
    let denied = result.as_ref().is_err_and(|error| error.kind() == io::ErrorKind::PermissionDenied);
    skip_unless(!denied, otherwise)?;
    done(what, result)
}

/// Sets the calling thread's nice value; skips the rest of a test if not permitted.
fn be(nice: i32) -> Verdict {
    let otherwise = "needs to make threads more urgent: CAP_SYS_NICE, or a higher RLIMIT_NICE";
    permitted("setting a thread's nice", set_nice(0, nice), otherwise)
}

fn own_nice() -> Result<i32, Stop> {
    done("asking for a thread's nice", nice_of(0))
}

/// Skips the rest of a test if threads may not get the priority that it needs.
fn can_be_urgent() -> Verdict {
    be(-10)?;
    be(0)
}

impl Setup {
    /// A server opened at this nice value, whose node has these flags. Afterwards the test's thread is at 0.
    fn new(kit: &Kit, opened_at: i32, flags: u32) -> Result<Self, Stop> {
        be(opened_at)?;
        let server = kit.server()?;
        be(0)?;
        let (client, handle) = kit.client_of(&server, Node::number(1).flags(flags))?;
        Ok(Self { server, client, handle, caller: Worker::new()? })
    }

    /// Sends a call from a thread with this nice value, which then changes its value.
    fn send(&self, nice: i32, flags: TransactionFlags) -> Verdict {
        let handle = self.handle;
        self.client.on(&self.caller, move |client| {
            be(nice)?;
            client.send(handle, 1, flags, Payload::default())?;
            // The nice value at the time of sending counts.
            be(nice / 2 + 1)
        })
    }

    /// Reads that call; returns the serving thread's nice value then.
    fn serve(&self) -> Result<i32, Stop> {
        be(OWN)?;
        self.server.free(&self.server.read()?.call()?)?;
        own_nice()
    }

    /// Answers it; the caller reads the reply.
    fn finish(&self) -> Verdict {
        self.server.finish_call()?;
        self.client.on(&self.caller, |client| client.expect_reply("the call"))
    }

    /// The nice value at which a call from a thread with this nice value is served.
    fn served_at(&self, nice: i32) -> Result<i32, Stop> {
        self.send(nice, TransactionFlags::CALL)?;
        let found = self.serve()?;
        self.finish()?;
        Ok(found)
    }

    /// The nice value at which a oneway call from a thread with this nice value is served.
    fn oneway_served_at(&self, nice: i32) -> Result<i32, Stop> {
        self.send(nice, TransactionFlags::ONEWAY)?;
        let found = self.serve()?;
        self.client.on(&self.caller, |client| client.expect_read("a oneway call", "COMPLETE"))?;
        Ok(found)
    }
}

/// Chooses the expectation: drivers that pass nice values on, or drivers that leave priorities alone.
fn by_inherit<T>(kit: &Kit, nice: T, none: T) -> T {
    if kit.evidence.inherit == Inherit::None { none } else { nice }
}

fn sch_01_a_call_brings_its_nice(kit: &Kit) -> Verdict {
    can_be_urgent()?;
    for (least, caller, want) in
        [(0, 7, 0), (0, -5, -5), (10, 7, 7), (10, 12, 10), (19, 15, 15), (19, -10, -10)]
    {
        let found = Setup::new(kit, 0, at_least(least))?.served_at(caller)?;
        let what = format!("serving a caller of nice {caller} on a node of {least}");
        expect(&what, found, by_inherit(kit, want, OWN))?;
    }
    Ok(())
}

fn sch_02_a_oneway_call_brings_the_nodes(kit: &Kit) -> Verdict {
    can_be_urgent()?;
    for (least, caller, want) in [(2, 0, 2), (2, -5, 2), (2, 15, 2), (9, -5, 5), (19, 0, 5)] {
        let found = Setup::new(kit, 5, at_least(least))?.oneway_served_at(caller)?;
        let what = format!("serving a oneway call of nice {caller} on a node of {least}, opened at 5");
        expect(&what, found, by_inherit(kit, want, OWN))?;
    }
    Ok(())
}

/// The server calls from nice 4 and is called back from nice -5 while it waits; `look` runs on its thread before the
/// nested call is read.
fn nested(kit: &Kit, flags: u32, look: impl FnOnce() -> Verdict) -> Result<Setup, Stop> {
    let setup = Setup::new(kit, 0, flags)?;
    let (server, handle) = (&setup.server, setup.handle);
    let to_client = kit.hand_over(&setup.client, server, Node::number(2))?;
    be(4)?;
    server.start_call(to_client, 1, b"")?;
    setup.client.on(&setup.caller, move |client| {
        client.free(&client.read_as_looper()?.call()?)?;
        be(-5)?;
        client.start_call(handle, 2, b"")
    })?;
    while !done("polling", server.conn.poll_readable(20))? {}
    look()?;
    server.free(&server.expect_read("the nested call", "COMPLETE TRANSACTION")?.call()?)?;
    Ok(setup)
}

/// Finishes what `nested` started.
fn unnest(setup: &Setup) -> Verdict {
    setup.client.on(&setup.caller, |client| {
        client.expect_ending("the nested call, for its caller", "COMPLETE REPLY")?;
        client.answer(b"")
    })?;
    expect_work("the first call", &setup.server.ending()?, "COMPLETE REPLY")
}

fn sch_03_a_reply_restores(kit: &Kit) -> Verdict {
    can_be_urgent()?;
    let setup = Setup::new(kit, 0, at_least(19))?;
    setup.send(-5, TransactionFlags::CALL)?;
    expect("while it serves", setup.serve()?, by_inherit(kit, -5, OWN))?;
    setup.server.reply(Payload::default())?;
    // Nothing was read since, so the change is not due to waiting for work (SCH-04).
    expect("once the reply is sent", own_nice()?, by_inherit(kit, 0, OWN))?;
    setup.server.expect_read("answering", "COMPLETE")?;
    // A thread that waits for a reply keeps its nice value, so the restored value is its own.
    let setup = nested(kit, at_least(19), || Ok(()))?;
    expect("in the nested call", own_nice()?, by_inherit(kit, -5, 4))?;
    setup.server.reply(Payload::default())?;
    expect("once the nested reply is sent", own_nice()?, 4)?;
    unnest(&setup)
}

fn sch_04_idling_is_done_at_the_openers_nice(kit: &Kit) -> Verdict {
    can_be_urgent()?;
    let setup = Setup::new(kit, 5, at_least(19))?;
    for own in [12, -3] {
        be(own)?;
        setup.server.read_now()?;
        expect(&format!("reading at nice {own}, with nothing to do"), own_nice()?, by_inherit(kit, 5, own))?;
    }
    be(0)?;
    let looper = Worker::new()?;
    let idle = waiting(&looper, &setup.server)?;
    let found = done("asking for a thread's nice", nice_of(looper.thread.number()))?;
    expect("a looper that waits", found, by_inherit(kit, 5, 0))?;
    setup.send(0, TransactionFlags::CALL)?;
    setup.server.free(&idle.wait("the looper")??.call()?)?;
    // While it serves, it does not wait for process work.
    let found = setup.server.on(&looper, |server| {
        be(9)?;
        server.read_now()?;
        own_nice()
    })?;
    expect("reading while it serves", found, 9)
}

fn sch_05_within_the_receivers_limits(kit: &Kit) -> Verdict {
    done("lowering RLIMIT_NICE", sys::limits::set_nice(0))?;
    let setup = Setup::new(kit, 0, at_least(9))?;
    let without = |setup: &Setup, caller| {
        setup.send(caller, TransactionFlags::CALL)?;
        be(OWN)?;
        let found = sys::capability::without_sys_nice(|| {
            setup.server.free(&setup.server.read()?.call()?)?;
            let found = own_nice();
            setup.server.finish_call()?;
            found
        });
        done("putting CAP_SYS_NICE aside", found)?
    };
    expect("an unprivileged receiver and a caller of nice 7", without(&setup, 7)?, OWN)?;
    can_be_urgent()?;
    for (limit, caller, want) in [(0, -5, OWN), (25, -10, -5), (25, 7, 7), (14, 7, 7), (12, 7, 8)] {
        let setup = Setup::new(kit, 0, at_least(9))?;
        let allowed = sys::limits::set_nice(limit);
        permitted(
            "setting RLIMIT_NICE",
            allowed,
            "may not raise RLIMIT_NICE; without it all was as promised",
        )?;
        // The embedded driver sets no nice value that the thread could not leave again.
        let stays = kit.is_embedded() && want > OWN && 20 - limit as i32 > OWN;
        let want = if stays { OWN } else { want };
        let what = format!("a receiver with RLIMIT_NICE {limit} and a caller of nice {caller}");
        expect(&what, without(&setup, caller)?, by_inherit(kit, want, OWN))?;
    }
    if kit.is_embedded() && kit.evidence.inherit != Inherit::None {
        return kit.differs("a thread takes on no nice from which its limit would not let it come back");
    }
    Ok(())
}

fn sch_06_the_receiver_changes_itself(kit: &Kit) -> Verdict {
    let itself = kit.evidence.inherit != Inherit::Rt || kit.is_embedded();
    skip_unless(itself, "this driver changes the receiver before it wakes (SCH-09)")?;
    can_be_urgent()?;
    // The nested call is bound to this thread, so no other can take it.
    let setup = nested(kit, at_least(19), || {
        expect("a thread that was given a call and has not read it", own_nice()?, 4)
    })?;
    expect("once it read the call", own_nice()?, by_inherit(kit, -5, 4))?;
    setup.server.reply(Payload::default())?;
    unnest(&setup)
}

fn sch_10_both_kinds_wake_one_thread(kit: &Kit) -> Verdict {
    let server = kit.server()?;
    let (client, handle) = kit.client_of(&server, Node::number(1))?;
    for flags in [TransactionFlags::CALL, TransactionFlags::ONEWAY] {
        let (first, second) = (Worker::new()?, Worker::new()?);
        let (mut early, late) = (waiting(&first, &server)?, waiting(&second, &server)?);
        client.send(handle, 1, flags, Payload::default())?;
        let call = late.wait("a waiting looper")??.call()?;
        early.expect_asleep("the other waiting looper")?;
        if flags.is_oneway() {
            client.expect_read("what the sender reads", "COMPLETE")?;
        } else {
            server.on(&second, RawProcess::finish_call)?;
            client.expect_ending("what the caller reads", "COMPLETE REPLY")?;
        }
        server.free(&call)?;
        // No thread may wait when the next two arrive.
        client.send_oneway(handle, 2, b"")?;
        server.free(&early.wait("the other looper")??.call()?)?;
        client.expect_read("another oneway call", "COMPLETE")?;
    }
    Ok(())
}
