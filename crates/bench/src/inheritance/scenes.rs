//! The scenes, one function each: the caller, the callee and the observed scheduling.
//! Not here: threads and processes (`controller`), the expectations (`expected`).

use std::time::Duration;

use embedded::Inherit;
use ipc::{Minimum, Nice, NodeOptions};
use record::{Hop, Sched};

use super::controller::{Caller, Controller, HopError, ServerKind, least_nice, mark_scene, settled};
use super::expected::{self, CALL};
use super::service::{Callee, ServedCall};
use host::realtime;

/// Nice of an urgent caller that is not real-time, and its substitute without the right to it.
const URGENT: i32 = -5;
const LESS_URGENT: i32 = 7;

/// Plays all scenes; returns their hops.
pub(super) fn play(controller: &Controller) -> Vec<Hop> {
    let fifo = Sched::fifo(99);
    let mut hops = Vec::new();
    let mut add = |scenes: &[&str], caller: Sched, played: Result<Vec<Hop>, HopError>| match played {
        Ok(played) => hops.extend(played),
        Err(why) => hops.extend(scenes.iter().map(|scene| missing(controller, scene, caller, why.clone()))),
    };
    add(&[CALL], fifo, call(controller, Caller::Fifo, ServerKind::First, CALL));
    let urgent = match call(controller, Caller::Nice(URGENT), ServerKind::First, CALL) {
        Err(HopError::NoRight(_)) => call(controller, Caller::Nice(LESS_URGENT), ServerKind::First, CALL),
        result => result,
    };
    add(&[CALL], Sched::other(URGENT), urgent);
    add(&["queued"], fifo, queued(controller));
    add(&["nested-1", "nested-2"], fifo, nested(controller));
    add(&["callback"], fifo, callback(controller));
    add(&["unwound"], Sched::other(15), unwound(controller));
    if controller.rule == Some(Inherit::Rt) {
        // Elsewhere nobody is more urgent than the thread that it calls back.
        add(&["callback-2", "unwound"], Sched::other(15), unwound_twice(controller));
    }
    add(&["oneway"], fifo, oneway(controller));
    let minimum = |nice, kind| call(controller, Caller::Nice(nice), kind, "minimum");
    add(&["minimum"], Sched::other(15), minimum(15, ServerKind::NicerNode));
    if controller.rule == Some(Inherit::Rt) {
        // Under other rules the policy bits of a node have no effect.
        add(&["minimum"], Sched::other(0), minimum(0, ServerKind::RealtimeNode));
    }
    add(&["restored", "after"], fifo, restored(controller));
    hops
}

/// Builds a hop that was not observed. If it could have been, an inheritance was expected, so it counts as
/// failed.
fn missing(controller: &Controller, scene: &str, caller: Sched, why: HopError) -> Hop {
    let idle = Sched::other(ServerKind::First.nice());
    let (expected, note) = match why {
        HopError::NoRight(why) => (None, why),
        HopError::Broken(why) => {
            let by_rule = controller.rule.zip(controller.node(ServerKind::First).ok());
            let oneway = scene == "oneway";
            (by_rule.map(|(rule, node)| expected::served(rule, &node, caller, idle, oneway)), why)
        }
    };
    Hop { scene: scene.to_owned(), caller, idle, served: None, expected, note }
}

/// A server whose thread waits for calls.
struct WaitingServer<'c> {
    controller: &'c Controller,
    callee: Callee,
    thread: i32,
    node: NodeOptions,
    /// Scheduling with which the thread should wait, whatever earlier calls left behind; and with which it
    /// does.
    own: Sched,
    idle: Sched,
}

impl<'c> WaitingServer<'c> {
    /// Returns a server, started if necessary, once its thread waits as it should, or after a time limit.
    fn of(controller: &'c Controller, kind: ServerKind) -> Result<Self, HopError> {
        let (callee, thread) = controller.server(kind)?;
        let own = Sched::other(kind.nice());
        let (node, idle) = (controller.node(kind)?, settled(thread, own)?);
        Ok(Self { controller, callee, thread, node, own, idle })
    }

    /// Builds an observed hop to this server.
    fn hop(&self, scene: &str, caller: Sched, served: Sched) -> Hop {
        let (rule, oneway) = (self.controller.rule, scene == "oneway");
        let note = if self.idle == self.own {
            ""
        } else {
            "it did not wait as it was started: a call before left that"
        };
        Hop {
            scene: scene.to_owned(),
            caller,
            idle: self.idle,
            served: Some(served),
            expected: rule.map(|rule| expected::served(rule, &self.node, caller, self.own, oneway)),
            note: note.to_owned(),
        }
    }
}

/// Returns the calls, which must be as many as expected.
fn exactly<const N: usize>(seen: &[ServedCall]) -> Result<[ServedCall; N], String> {
    seen.try_into().map_err(|_| format!("{} looks instead of {N}", seen.len()))
}

/// Makes a call that returns at once.
fn look(callee: &Callee) -> Result<ServedCall, String> {
    exactly(&callee.look(0)?).map(|[seen]| seen)
}

/// A direct call to a waiting thread.
fn call(
    controller: &Controller,
    caller: Caller,
    kind: ServerKind,
    scene: &str,
) -> Result<Vec<Hop>, HopError> {
    let server = WaitingServer::of(controller, kind)?;
    let callee = server.callee.clone();
    let (caller, seen) = controller.from(caller, move |caller| Ok((caller, look(&callee)?)))?;
    Ok(vec![server.hop(scene, caller, seen.sched)])
}

/// A call that waits until the only thread has served another one.
fn queued(controller: &Controller) -> Result<Vec<Hop>, HopError> {
    let server = WaitingServer::of(controller, ServerKind::First)?;
    // Busy time of the thread. A loaded machine needs more to make the order certain.
    for busy_ms in [40, 160, 640, 2560] {
        let (busy, waiting) = (server.callee.clone(), server.callee.clone());
        let (caller, sent_ns, first, second) = controller.from(Caller::Fifo, move |caller| {
            std::thread::scope(|scope| {
                // A thread started by a FIFO thread would inherit the policy.
                let first = scope.spawn(move || {
                    sys::title::name_thread("first caller");
                    mark_scene();
                    back_to_normal()?;
                    exactly(&busy.look(busy_ms)?).map(|[seen]| seen)
                });
                std::thread::sleep(Duration::from_millis((busy_ms / 4).into()));
                let sent_ns = sys::clock::monotonic_ns();
                let second = look(&waiting)?;
                let first = first.join().map_err(|_| "the other caller panicked")??;
                Ok((caller, sent_ns, first, second))
            })
        })?;
        // Half of the remaining busy time is enough for a call to arrive.
        let margin_ns = u64::from(busy_ms) * 1_000_000 / 4;
        let waited = first.from_ns < sent_ns && sent_ns + margin_ns < first.to_ns;
        if waited && first.to_ns <= second.from_ns {
            return Ok(vec![server.hop("queued", caller, second.sched)]);
        }
    }
    Err(HopError::Broken("no call of several came while the server's thread was busy".to_owned()))
}

/// Makes the calling thread an ordinary one; lowering a priority is always permitted.
fn back_to_normal() -> Result<(), String> {
    sys::sched::set_policy(0, sys::sched::Policy::Other)
        .map_err(|error| format!("leaving SCHED_FIFO: {}", sys::errno::describe(&error)))
}

/// A call to a server that calls another.
fn nested(controller: &Controller) -> Result<Vec<Hop>, HopError> {
    let first = WaitingServer::of(controller, ServerKind::First)?;
    let second = WaitingServer::of(controller, ServerKind::Second)?;
    let (outer, inner) = (first.callee.clone(), second.callee.clone());
    let (caller, seen) = controller.from(Caller::Fifo, move |caller| Ok((caller, outer.pass(&inner)?)))?;
    let [outer, inner] = exactly(&seen)?;
    // Each hop is judged alone: the second hop's caller is the server as the first hop left it.
    Ok(vec![first.hop("nested-1", caller, outer.sched), second.hop("nested-2", outer.sched, inner.sched)])
}

/// A server that calls back: its caller's own waiting thread serves (contract TX-06).
fn callback(controller: &Controller) -> Result<Vec<Hop>, HopError> {
    let server = WaitingServer::of(controller, ServerKind::First)?;
    let (callee, node) = (server.callee.clone(), server.node);
    let endpoint = controller.endpoint.clone();
    let (caller, thread, seen) = controller.from(Caller::Fifo, move |caller| {
        let ours = Callee::publish(&endpoint, node);
        let thread = sys::interrupt::ThreadId::current().number();
        Ok((caller, thread, callee.pass(&ours)?))
    })?;
    let [outer, inner] = exactly(&seen)?;
    let waiting = WaitingServer { own: caller, idle: caller, ..server };
    let mut hop = waiting.hop("callback", outer.sched, inner.sched);
    if inner.tid != thread {
        hop.note = "another thread than the waiting caller served it".to_owned();
    }
    Ok(vec![hop])
}

/// State of a caller that served a more urgent call while it waited for its own. It never waited for other work, which
/// could repair its priority.
fn unwound(controller: &Controller) -> Result<Vec<Hop>, HopError> {
    let server = WaitingServer::of(controller, ServerKind::First)?;
    let (callee, node) = (server.callee.clone(), controller.node(ServerKind::RealtimeNode)?);
    let endpoint = controller.endpoint.clone();
    let (caller, seen, after) = controller.from(Caller::Nice(15), move |caller| {
        let ours = Callee::publish(&endpoint, node);
        let seen = callee.pass(&ours)?;
        Ok((caller, seen, realtime::own()))
    })?;
    let [outer, _] = exactly(&seen)?;
    Ok(vec![Hop {
        scene: "unwound".to_owned(),
        caller: outer.sched,
        idle: caller,
        served: Some(after),
        expected: controller.rule.map(|_| caller),
        note: String::new(),
    }])
}

/// The same with a real-time server that calls back twice: its second call comes before the thread that served the first
/// has its own priority again.
fn unwound_twice(controller: &Controller) -> Result<Vec<Hop>, HopError> {
    let server = WaitingServer::of(controller, ServerKind::RealtimeNode)?;
    let least = Nice::try_from(0).map_err(|error| HopError::Broken(error.to_string()))?;
    let node = NodeOptions { inherit_rt: false, minimum: Minimum::Normal(least), ..server.node };
    let (callee, endpoint) = (server.callee.clone(), controller.endpoint.clone());
    let (caller, seen, after) = controller.from(Caller::Nice(15), move |caller| {
        let ours = Callee::publish(&endpoint, node);
        let seen = callee.pass_twice(&ours)?;
        Ok((caller, seen, realtime::own()))
    })?;
    let [outer, _, second] = exactly(&seen)?;
    let hop = |scene: &str, served, expected| Hop {
        scene: scene.to_owned(),
        caller: outer.sched,
        idle: caller,
        served: Some(served),
        expected,
        note: String::new(),
    };
    let rule = controller.rule.map(|rule| expected::served(rule, &node, outer.sched, caller, false));
    Ok(vec![hop("callback-2", second.sched, rule), hop("unwound", after, Some(caller))])
}

/// A oneway call, whose caller does not wait and so lends no priority.
fn oneway(controller: &Controller) -> Result<Vec<Hop>, HopError> {
    let server = WaitingServer::of(controller, ServerKind::First)?;
    let (callee, sender) = (server.callee.clone(), server.callee.clone());
    let caller = controller.from(Caller::Fifo, move |caller| sender.note().map(|()| caller))?;
    // From another thread: a following real-time call could raise the server before it has looked.
    let seen = controller.limited(move || {
        loop {
            if let Some(seen) = callee.noted()?.first() {
                return Ok(*seen);
            }
            std::thread::sleep(Duration::from_millis(1));
        }
    })?;
    Ok(vec![server.hop("oneway", caller, seen.sched)])
}

/// State of a thread after it served a real-time caller, and how it serves the next caller.
fn restored(controller: &Controller) -> Result<Vec<Hop>, HopError> {
    let server = WaitingServer::of(controller, ServerKind::First)?;
    let (callee, next) = (server.callee.clone(), server.callee.clone());
    let (caller, _) = controller.from(Caller::Fifo, move |caller| Ok((caller, look(&callee)?)))?;
    let restored = Hop {
        scene: "restored".to_owned(),
        caller,
        idle: server.idle,
        served: Some(settled(server.thread, server.own)?),
        expected: Some(server.own),
        note: String::new(),
    };
    // Without a wait, which could repair the priority meanwhile.
    let (caller, seen) = controller.from(Caller::Fifo, move |_| {
        look(&next)?;
        back_to_normal()?;
        sys::sched::set_nice(0, least_nice().max(10)).map_err(|error| sys::errno::describe(&error))?;
        Ok((realtime::own(), look(&next)?))
    })?;
    Ok(vec![restored, server.hop("after", caller, seen.sched)])
}
