//! Room: contract section 14: what of a caller's priority reaches the thread that serves it (SCH-01 to
//! SCH-06, SCH-10). The serving thread is the test's own; callers run on workers.
//! Not here: real-time policies (`realtime`).
//! Facts: `setpriority(2)`: nice is a thread's own; lowering it needs `CAP_SYS_NICE` or `RLIMIT_NICE`.

use abi::{Handle, Payload, TransactionFlags};
use driver::embedded::Inherit;
use sys::sched::{nice_of, set_nice};

use super::item::{Stop, Verdict, done, expect, items};
use super::kit::Kit;
use super::looper::waiting;
use super::party::{Node, Party, expect_work};
use super::worker::Worker;

mod realtime;

use realtime::{
    sch_07_no_policy_is_handed_on, sch_08_some_hand_nothing_on, sch_09_a_policy_is_handed_on_before_waking,
};

items! {
    "SCH-01" C [seen] sch_01_a_call_brings_its_nice "a call is served at the more urgent of the caller's nice and the node's";
    "SCH-02" C [seen] sch_02_a_oneway_call_brings_the_nodes "a oneway call raises its thread to the node's nice and no further";
    "SCH-03" C [] sch_03_a_reply_restores "sending the reply restores the serving thread's nice";
    "SCH-04" C [] sch_04_idling_is_done_at_the_openers_nice "a thread waits for its process's work at the opener's nice";
    "SCH-05" C [seen differs] sch_05_within_the_receivers_limits "a nice is taken on as far as the receiver itself may";
    "SCH-06" C [] sch_06_the_receiver_changes_itself "the receiver takes on the nice itself, once it runs";
    "SCH-07" C [] sch_07_no_policy_is_handed_on "of a real-time caller only the nice is handed on";
    "SCH-08" Rust [] sch_08_some_hand_nothing_on "the Rust driver leaves priorities alone";
    "SCH-09" C [differs] sch_09_a_policy_is_handed_on_before_waking "Android's driver hands a policy on, before the receiver wakes";
    "SCH-10" Both [] sch_10_both_kinds_wake_one_thread "calls and oneway calls wake one waiting thread";
}

/// What the serving thread gives itself before it reads, so that leaving it alone can be seen.
const OWN: i32 = 3;

/// A server on the test's own thread, and a caller on another.
struct Scene {
    server: Party,
    client: Party,
    handle: Handle,
    caller: Worker,
}

/// The flags of a node that asks for this nice at least.
fn at_least(nice: u32) -> u32 {
    0x100 | nice
}

/// Gives the calling thread a nice; skips the rest of a test where it may not.
fn be(nice: i32) -> Verdict {
    match set_nice(0, nice) {
        Err(error) if error.kind() == std::io::ErrorKind::PermissionDenied => {
            Err(Stop::Skip("needs to make threads more urgent: CAP_SYS_NICE, or a higher RLIMIT_NICE".into()))
        }
        result => done("setting a thread's nice", result),
    }
}

fn own_nice() -> Result<i32, Stop> {
    done("asking for a thread's nice", nice_of(0))
}

/// Skips the rest of a test where threads may not become as urgent as it needs.
fn can_be_urgent() -> Verdict {
    be(-10)?;
    be(0)
}

impl Scene {
    /// A server opened at this nice, whose node has these flags. The test's thread is at 0 then.
    fn new(kit: &Kit, opened_at: i32, flags: u32) -> Result<Self, Stop> {
        be(opened_at)?;
        let server = kit.server()?;
        be(0)?;
        let client = kit.open()?;
        let handle = kit.hand_over(&server, &client, Node::number(1).flags(flags))?;
        Ok(Self { server, client, handle, caller: Worker::new()? })
    }

    /// Sends a call from a thread with this nice, which goes on with another afterwards.
    fn send(&self, nice: i32, flags: TransactionFlags) -> Verdict {
        let (client, handle) = (self.client.clone(), self.handle);
        self.caller.run(move || {
            be(nice)?;
            client.write(|c| c.transaction(handle, 1, flags, Payload::default()))?;
            // The nice at the time of sending counts.
            be(nice / 2 + 1)
        })?
    }

    /// Reads that call; the serving thread's nice then.
    fn serve(&self) -> Result<i32, Stop> {
        be(OWN)?;
        self.server.free(&self.server.read()?.call()?)?;
        own_nice()
    }

    /// Answers it, and has the caller read the reply.
    fn finish(&self) -> Verdict {
        self.server.write(|c| c.reply(TransactionFlags::default(), Payload::default()))?;
        expect_work("answering", &self.server.read()?, "COMPLETE")?;
        let client = self.client.clone();
        let got = self.caller.run(move || client.ending())??;
        expect_work("the call", &got, "COMPLETE REPLY")?;
        self.client.free(&got.reply()?)
    }

    /// The nice at which a call from a thread with this nice is served.
    fn served_at(&self, nice: i32) -> Result<i32, Stop> {
        self.send(nice, TransactionFlags::CALL)?;
        let found = self.serve()?;
        self.finish()?;
        Ok(found)
    }

    /// The nice at which a oneway call from a thread with this nice is served.
    fn oneway_served_at(&self, nice: i32) -> Result<i32, Stop> {
        self.send(nice, TransactionFlags::ONEWAY)?;
        let found = self.serve()?;
        let client = self.client.clone();
        expect_work("a oneway call", &self.caller.run(move || client.read())??, "COMPLETE")?;
        Ok(found)
    }
}

/// One expectation for drivers that hand a nice on, another for those that leave priorities alone.
fn by_inherit<T>(kit: &Kit, nice: T, none: T) -> T {
    if kit.evidence.inherit == Inherit::None { none } else { nice }
}

fn sch_01_a_call_brings_its_nice(kit: &Kit) -> Verdict {
    can_be_urgent()?;
    for (least, caller, want) in
        [(0, 7, 0), (0, -5, -5), (10, 7, 7), (10, 12, 10), (19, 15, 15), (19, -10, -10)]
    {
        let found = Scene::new(kit, 0, at_least(least))?.served_at(caller)?;
        let what = format!("serving a caller of nice {caller} on a node of {least}");
        expect(&what, found, by_inherit(kit, want, OWN))?;
    }
    Ok(())
}

fn sch_02_a_oneway_call_brings_the_nodes(kit: &Kit) -> Verdict {
    can_be_urgent()?;
    for (least, caller, want) in [(2, 0, 2), (2, -5, 2), (2, 15, 2), (9, -5, 5), (19, 0, 5)] {
        let found = Scene::new(kit, 5, at_least(least))?.oneway_served_at(caller)?;
        let what = format!("serving a oneway call of nice {caller} on a node of {least}, opened at 5");
        expect(&what, found, by_inherit(kit, want, OWN))?;
    }
    Ok(())
}

/// Has the server, which calls from nice 4, called back from nice -5 while it waits; what `look`
/// finds on its thread, before the nested call is read.
fn nested(kit: &Kit, flags: u32, look: impl FnOnce() -> Verdict) -> Result<Scene, Stop> {
    let scene = Scene::new(kit, 0, flags)?;
    let Scene { server, client, handle, caller } = &scene;
    let partner = Node::number(2);
    let to_client = kit.hand_over(client, server, partner)?;
    be(4)?;
    server.start_call(to_client, 1, b"")?;
    let (party, target) = (client.clone(), *handle);
    caller.run(move || {
        party.enter_looper()?;
        party.free(&party.read()?.call()?)?;
        be(-5)?;
        party.start_call(target, 2, b"")
    })??;
    while !done("polling", server.conn.poll_readable(20))? {}
    look()?;
    let got = server.read()?;
    expect_work("the nested call", &got, "COMPLETE TRANSACTION")?;
    server.free(&got.call()?)?;
    Ok(scene)
}

/// Ends what `nested` began.
fn unnest(scene: &Scene) -> Verdict {
    let client = scene.client.clone();
    let got = scene.caller.run(move || {
        let got = client.ending()?;
        client.answer(b"").map(|_| got)
    })??;
    expect_work("the nested call, for its caller", &got, "COMPLETE REPLY")?;
    expect_work("the first call", &scene.server.ending()?, "COMPLETE REPLY")
}

fn sch_03_a_reply_restores(kit: &Kit) -> Verdict {
    can_be_urgent()?;
    let scene = Scene::new(kit, 0, at_least(19))?;
    scene.send(-5, TransactionFlags::CALL)?;
    expect("while it serves", scene.serve()?, by_inherit(kit, -5, OWN))?;
    scene.server.write(|c| c.reply(TransactionFlags::default(), Payload::default()))?;
    // Nothing was read since, so that the wait for work (SCH-04) is not what changed it.
    expect("once the reply is sent", own_nice()?, by_inherit(kit, 0, OWN))?;
    expect_work("answering", &scene.server.read()?, "COMPLETE")?;
    // A thread that waits for a reply keeps its nice, and so what is restored is its own.
    let scene = nested(kit, at_least(19), || Ok(()))?;
    expect("in the nested call", own_nice()?, by_inherit(kit, -5, 4))?;
    scene.server.write(|c| c.reply(TransactionFlags::default(), Payload::default()))?;
    expect("once the nested reply is sent", own_nice()?, 4)?;
    unnest(&scene)
}

fn sch_04_idling_is_done_at_the_openers_nice(kit: &Kit) -> Verdict {
    can_be_urgent()?;
    let scene = Scene::new(kit, 5, at_least(19))?;
    for own in [12, -3] {
        be(own)?;
        scene.server.read_now()?;
        expect(&format!("reading at nice {own}, with nothing to do"), own_nice()?, by_inherit(kit, 5, own))?;
    }
    be(0)?;
    let looper = Worker::new()?;
    let idle = waiting(&looper, &scene.server)?;
    let found = done("asking for a thread's nice", nice_of(looper.thread.number()))?;
    expect("a looper that waits", found, by_inherit(kit, 5, 0))?;
    scene.send(0, TransactionFlags::CALL)?;
    scene.server.free(&idle.wait("the looper")??.call()?)?;
    // It has no process's work to wait for while it serves.
    let server = scene.server.clone();
    let found = looper.run(move || {
        be(9)?;
        server.read_now()?;
        own_nice()
    })??;
    expect("reading while it serves", found, 9)
}

fn sch_05_within_the_receivers_limits(kit: &Kit) -> Verdict {
    done("lowering RLIMIT_NICE", sys::nice_limit::set(0))?;
    let scene = Scene::new(kit, 0, at_least(9))?;
    let without = |scene: &Scene, caller| {
        scene.send(caller, TransactionFlags::CALL)?;
        be(OWN)?;
        let found = sys::capability::without_sys_nice(|| {
            scene.server.free(&scene.server.read()?.call()?)?;
            let found = own_nice();
            scene.server.write(|c| c.reply(TransactionFlags::default(), Payload::default()))?;
            expect_work("answering", &scene.server.read()?, "COMPLETE")?;
            found
        });
        done("putting CAP_SYS_NICE aside", found)?
    };
    expect("an unprivileged receiver and a caller of nice 7", without(&scene, 7)?, OWN)?;
    can_be_urgent()?;
    for (limit, caller, want) in [(0, -5, OWN), (25, -10, -5), (25, 7, 7), (14, 7, 7), (12, 7, 8)] {
        let scene = Scene::new(kit, 0, at_least(9))?;
        let allowed = sys::nice_limit::set(limit);
        if allowed.as_ref().is_err_and(|error| error.kind() == std::io::ErrorKind::PermissionDenied) {
            return Err(Stop::Skip("may not raise RLIMIT_NICE; without it all was as promised".into()));
        }
        done("setting RLIMIT_NICE", allowed)?;
        // The embedded driver takes on no nice from which the thread could not come back.
        let stays = kit.is_embedded() && want > OWN && 20 - limit as i32 > OWN;
        let want = if stays { OWN } else { want };
        let what = format!("a receiver with RLIMIT_NICE {limit} and a caller of nice {caller}");
        expect(&what, without(&scene, caller)?, by_inherit(kit, want, OWN))?;
    }
    if kit.is_embedded() && kit.evidence.inherit != Inherit::None {
        return kit.differs("a thread takes on no nice from which its limit would not let it come back");
    }
    Ok(())
}

fn sch_06_the_receiver_changes_itself(kit: &Kit) -> Verdict {
    if kit.evidence.inherit == Inherit::Rt && !kit.is_embedded() {
        return Err(Stop::Skip("this driver changes the receiver before it wakes (SCH-09)".into()));
    }
    can_be_urgent()?;
    // The nested call is already this thread's, and nobody else can take it.
    let scene = nested(kit, at_least(19), || {
        expect("a thread that was given a call and has not read it", own_nice()?, 4)
    })?;
    expect("once it read the call", own_nice()?, by_inherit(kit, -5, 4))?;
    scene.server.write(|c| c.reply(TransactionFlags::default(), Payload::default()))?;
    unnest(&scene)
}

fn sch_10_both_kinds_wake_one_thread(kit: &Kit) -> Verdict {
    let server = kit.server()?;
    let client = kit.open()?;
    let handle = kit.hand_over(&server, &client, Node::number(1))?;
    for flags in [TransactionFlags::CALL, TransactionFlags::ONEWAY] {
        let (first, second) = (Worker::new()?, Worker::new()?);
        let (mut early, late) = (waiting(&first, &server)?, waiting(&second, &server)?);
        client.write(|c| c.transaction(handle, 1, flags, Payload::default()))?;
        let call = late.wait("a waiting looper")??.call()?;
        early.expect_asleep("the other waiting looper")?;
        let party = server.clone();
        if !flags.is_oneway() {
            let got = second.run(move || party.answer(b""))??;
            expect_work("answering", &got, "COMPLETE")?;
        }
        server.free(&call)?;
        let want = if flags.is_oneway() { "COMPLETE" } else { "COMPLETE REPLY" };
        let mut got = client.read()?;
        while !flags.is_oneway() && got.reply().is_err() {
            got.returns.extend(client.read()?.returns);
        }
        expect_work("what the caller reads", &got, want)?;
        // So that nobody waits when the next two come.
        client.send_oneway(handle, 2, b"")?;
        server.free(&early.wait("the other looper")??.call()?)?;
        expect_work("another oneway call", &client.read()?, "COMPLETE")?;
    }
    Ok(())
}
