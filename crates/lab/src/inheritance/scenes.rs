//! Room: the scenes, one function each: who calls whom, and what was seen.
//! Not here: threads and processes (`conductor`), what is expected (`expected`).

use std::time::Duration;

use driver::embedded::Inherit;
use ipc::NodeOptions;
use record::{Hop, Sched};

use super::conductor::{Caller, Part, Stage, Untold, settled};
use super::expected;
use super::service::{Callee, Seen};
use crate::realtime;

/// The scene of a direct call to a thread that waits.
pub(super) const CALL: &str = "call";

/// An urgent caller that is not real-time, and one instead where nobody may be urgent.
const URGENT: i32 = -5;
const LESS_URGENT: i32 = 7;

/// All scenes.
pub(super) fn play(stage: &Stage) -> Vec<Hop> {
    let mut hops = Vec::new();
    hops.push(told(stage, CALL, Sched::fifo(99), || call(stage, Caller::Fifo, Part::First, CALL)));
    hops.push(told(stage, CALL, Sched::other(URGENT), || {
        match call(stage, Caller::Nice(URGENT), Part::First, CALL) {
            Err(Untold::NoRight(_)) => call(stage, Caller::Nice(LESS_URGENT), Part::First, CALL),
            result => result,
        }
    }));
    hops.push(told(stage, "queued", Sched::fifo(99), || queued(stage)));
    hops.extend(several(stage, ["nested-1", "nested-2"], || nested(stage)));
    hops.push(told(stage, "callback", Sched::fifo(99), || callback(stage)));
    hops.push(told(stage, "oneway", Sched::fifo(99), || oneway(stage)));
    hops.push(told(stage, "minimum", Sched::other(15), || {
        call(stage, Caller::Nice(15), Part::NicerNode, "minimum")
    }));
    if stage.rule == Some(Inherit::Rt) {
        // Elsewhere the policy bits of a node mean nothing.
        hops.push(told(stage, "minimum", Sched::other(0), || {
            call(stage, Caller::Nice(0), Part::RealtimeNode, "minimum")
        }));
    }
    hops.extend(several(stage, ["restored", "after"], || restored(stage)));
    hops
}

/// The scene's hop, or one that says why there is none.
fn told(stage: &Stage, scene: &str, caller: Sched, play: impl FnOnce() -> Result<Hop, Untold>) -> Hop {
    play().unwrap_or_else(|why| untold(stage, scene, caller, why))
}

/// The same for scenes of two hops.
fn several(stage: &Stage, names: [&str; 2], play: impl FnOnce() -> Result<[Hop; 2], Untold>) -> [Hop; 2] {
    play().unwrap_or_else(|why| names.map(|name| untold(stage, name, Sched::fifo(99), why.clone())))
}

/// A hop that was not seen. One that could have been is expected to have gone somehow, and so is known to
/// have failed.
fn untold(stage: &Stage, scene: &str, caller: Sched, why: Untold) -> Hop {
    let idle = own(Part::First);
    let (expected, note) = match why {
        Untold::NoRight(why) => (None, why),
        Untold::Broken(why) => {
            let node = stage.node(Part::First).ok();
            let by_rule = stage.rule.zip(node);
            (by_rule.map(|(rule, node)| expected::served(rule, &node, caller, idle, scene == "oneway")), why)
        }
    };
    Hop { scene: scene.to_owned(), caller, idle, served: None, expected, note }
}

/// How the threads of a server are to wait, whatever earlier calls left behind.
fn own(part: Part) -> Sched {
    Sched::other(part.nice())
}

/// A hop that was seen, to a thread that was `idle` and should have been as `own` says.
fn hop(
    stage: &Stage,
    scene: &str,
    node: &NodeOptions,
    caller: Sched,
    (own, idle): (Sched, Sched),
    served: Sched,
) -> Hop {
    let oneway = scene == "oneway";
    let note = if idle == own { "" } else { "it did not wait as it was started: a call before left that" };
    Hop {
        scene: scene.to_owned(),
        caller,
        idle,
        served: Some(served),
        expected: stage.rule.map(|rule| expected::served(rule, node, caller, own, oneway)),
        note: note.to_owned(),
    }
}

fn only(seen: &[Seen]) -> Result<Seen, String> {
    match seen {
        [seen] => Ok(*seen),
        _ => Err(format!("{} looks instead of one", seen.len())),
    }
}

/// A direct call to a thread that waits.
fn call(stage: &Stage, caller: Caller, part: Part, scene: &str) -> Result<Hop, Untold> {
    let (callee, thread) = stage.server(part)?;
    let idle = stage.idle(part, thread)?;
    let (caller, seen) = stage.from(caller, move |caller| Ok((caller, only(&callee.look(0)?)?)))?;
    Ok(hop(stage, scene, &stage.node(part)?, caller, (own(part), idle), seen.sched))
}

/// A call that has to wait until the only thread has served another.
fn queued(stage: &Stage) -> Result<Hop, Untold> {
    let (callee, thread) = stage.server(Part::First)?;
    let idle = stage.idle(Part::First, thread)?;
    // For how long the thread is busy. On a machine with more to do it takes longer to be sure of the order.
    for busy_ms in [40, 160, 640, 2560] {
        let (busy, waiting) = (callee.clone(), callee.clone());
        let (caller, sent_ns, first, second) = stage.from(Caller::Fifo, move |caller| {
            std::thread::scope(|scope| {
                // Started by a FIFO thread, it would be one.
                let first = scope.spawn(move || back_to_normal().and_then(|()| only(&busy.look(busy_ms)?)));
                std::thread::sleep(Duration::from_millis((busy_ms / 4).into()));
                let sent_ns = sys::clock::monotonic_ns();
                let second = only(&waiting.look(0)?)?;
                let first = first.join().map_err(|_| "the other caller panicked")??;
                Ok((caller, sent_ns, first, second))
            })
        })?;
        // Half of the time that the thread was still busy is enough for a call to arrive.
        let margin_ns = u64::from(busy_ms) * 1_000_000 / 4;
        let waited = first.from_ns < sent_ns && sent_ns + margin_ns < first.to_ns;
        if waited && first.to_ns <= second.from_ns {
            return Ok(hop(
                stage,
                "queued",
                &stage.node(Part::First)?,
                caller,
                (own(Part::First), idle),
                second.sched,
            ));
        }
    }
    Err(Untold::Broken("no call of several came while the server's thread was busy".to_owned()))
}

/// Makes the calling thread an ordinary one; less is always allowed.
fn back_to_normal() -> Result<(), String> {
    sys::sched::set_policy(0, sys::sched::Policy::Other)
        .map_err(|error| format!("leaving SCHED_FIFO: {}", sys::errno::describe(&error)))
}

/// A call to a server that calls another.
fn nested(stage: &Stage) -> Result<[Hop; 2], Untold> {
    let (first, first_thread) = stage.server(Part::First)?;
    let (second, second_thread) = stage.server(Part::Second)?;
    let idle = stage.idle(Part::First, first_thread)?;
    let second_idle = stage.idle(Part::Second, second_thread)?;
    let (caller, seen) = stage.from(Caller::Fifo, move |caller| Ok((caller, first.pass(&second)?)))?;
    let &[outer, inner] = &seen[..] else {
        return Err(Untold::Broken(format!("{} looks instead of two", seen.len())));
    };
    let node = stage.node(Part::First)?;
    // Each hop by itself: the second one's caller is what the first made of the server.
    Ok([
        hop(stage, "nested-1", &node, caller, (own(Part::First), idle), outer.sched),
        hop(stage, "nested-2", &node, outer.sched, (own(Part::Second), second_idle), inner.sched),
    ])
}

/// A server that calls back: its caller's own waiting thread serves (contract TX-06).
fn callback(stage: &Stage) -> Result<Hop, Untold> {
    let (callee, _) = stage.server(Part::First)?;
    let node = stage.node(Part::First)?;
    let (process, dialect) = (stage.process.clone(), stage.dialect);
    let (caller, thread, seen) = stage.from(Caller::Fifo, move |caller| {
        let ours = Callee::publish(&process, dialect, node);
        let thread = sys::interrupt::ThreadId::current().number();
        Ok((caller, thread, callee.pass(&ours)?))
    })?;
    let &[outer, inner] = &seen[..] else {
        return Err(Untold::Broken(format!("{} looks instead of two", seen.len())));
    };
    let mut hop = hop(stage, "callback", &node, outer.sched, (caller, caller), inner.sched);
    if inner.tid != thread {
        hop.note = "another thread than the waiting caller served it".to_owned();
    }
    Ok(hop)
}

/// A oneway call, whose caller does not wait and so lends nothing.
fn oneway(stage: &Stage) -> Result<Hop, Untold> {
    let (callee, thread) = stage.server(Part::First)?;
    let idle = stage.idle(Part::First, thread)?;
    let sender = callee.clone();
    let caller = stage.from(Caller::Fifo, move |caller| sender.note().map(|()| caller))?;
    // Not from the same thread: a real-time call behind it could raise the server before it has looked.
    let seen = stage.limited(move || {
        loop {
            if let Some(seen) = callee.noted()?.first() {
                return Ok(*seen);
            }
            std::thread::sleep(Duration::from_millis(1));
        }
    })?;
    Ok(hop(stage, "oneway", &stage.node(Part::First)?, caller, (own(Part::First), idle), seen.sched))
}

/// What a thread that served a real-time caller is afterwards, and how it serves the next one.
fn restored(stage: &Stage) -> Result<[Hop; 2], Untold> {
    let (callee, thread) = stage.server(Part::First)?;
    let idle = stage.idle(Part::First, thread)?;
    let next = callee.clone();
    let (caller, _) = stage.from(Caller::Fifo, move |caller| Ok((caller, only(&callee.look(0)?)?)))?;
    let found = settled(thread, own(Part::First))?;
    let restored = Hop {
        scene: "restored".to_owned(),
        caller,
        idle,
        served: Some(found),
        expected: Some(own(Part::First)),
        note: String::new(),
    };
    // At once, so that a wait cannot have repaired it meanwhile.
    let (caller, seen) = stage.from(Caller::Fifo, move |_| {
        only(&next.look(0)?)?;
        back_to_normal()?;
        sys::sched::set_nice(0, 10).map_err(|error| sys::errno::describe(&error))?;
        Ok((realtime::own(), only(&next.look(0)?)?))
    })?;
    Ok([
        restored,
        hop(stage, "after", &stage.node(Part::First)?, caller, (own(Part::First), idle), seen.sched),
    ])
}
