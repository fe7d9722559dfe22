//! Contract section 11: freezing a process (FRZ-01 to FRZ-05). A freeze affects every open of an OS process, so the
//! frozen one is a remote process.
//! Not here: freeze notifications (`notify`).

mod notify;
mod storm;

use std::io;
use std::time::{Duration, Instant};

use abi::layout::FrozenStatusInfo;
use sys::interrupt::Interrupter;

use crate::prelude::*;

items! {
    "FRZ-01" Both [seen] frz_01_a_frozen_process_gets_no_calls "a frozen process cannot be called, but may call and get replies";
    "FRZ-02" Both [] frz_02_a_busy_process_stays_thawed "FREEZE waits for pending work, or returns EAGAIN and thaws";
    "FRZ-03" Both [] frz_03_what_is_pending "calls, replies and oneway calls count as pending until they are done";
    "FRZ-04" Both [] frz_04_a_signal_ends_the_wait "a signal ends the wait of FREEZE and thaws, or restarts it";
    "FRZ-05" Both [seen] frz_05_what_came_meanwhile "GET_FROZEN_INFO reports what arrived since the last FREEZE";
    "FRZ-06" Both [seen] frz_06_a_request_tells_the_state in notify "a freeze notification starts with the current state";
    "FRZ-07" C [] frz_07_where_the_drivers_differ in notify "states are repeated, and a cookie may serve twice";
    "FRZ-08" Both [seen] frz_08_one_state_at_a_time in notify "the next state comes after the last was acknowledged";
    "FRZ-09" Both [] frz_09_clearing in notify "clearing a freeze notification is confirmed to the process";
    "FRZ-10" Both [] frz_10_no_handle_no_notification in notify "dropping a handle's last count drops its freeze notification";
    "FRZ-11" Both [] frz_11_freezing_what_goes_away in storm "freezing a process while its nodes go does no harm";
    "FRZ-12" Both [] frz_12_two_requests_of_one_cookie in notify "each of two requests of one cookie has its CLEAR confirmed";
    "FRZ-13" Both [] frz_13_a_failed_freeze_notifies_nobody in notify "a FREEZE that failed notifies nobody";
    "FRZ-14" Both [] frz_14_asked_again_before_the_answer in notify "a cookie cleared and asked again is confirmed and notified, once each";
}

/// Bit of `sync_recv`: something is pending.
const PENDING: u32 = 2;

/// A remote process that owns node 1, and a local client that calls it.
struct Frozen {
    remote: RemoteProcess,
    client: RawProcess,
    handle: Handle,
}

impl Frozen {
    fn new(kit: &Kit) -> Result<Self, Stop> {
        kit.can_freeze()?;
        let client = kit.server()?;
        let (remote, handle) = RemoteProcess::owning(kit, &client, 1)?;
        Ok(Self { remote, client, handle })
    }

    fn info(&self, enable: bool, timeout: Duration) -> FreezeInfo {
        let timeout_ms = timeout.as_millis() as u32;
        FreezeInfo { pid: self.remote.pid(), enable: u32::from(enable), timeout_ms }
    }

    /// FREEZE without waiting; `OK` or an errno.
    fn try_freeze(&self) -> String {
        errno(&self.client.conn.freeze(self.info(true, Duration::ZERO)))
    }

    fn freeze(&self) -> Verdict {
        done("FREEZE", self.client.conn.freeze(self.info(true, Duration::ZERO)))
    }

    fn thaw(&self) -> Verdict {
        done("FREEZE with enable 0", self.client.conn.freeze(self.info(false, Duration::ZERO)))
    }

    /// FREEZE on another thread; returns once it waits for what is pending. On the embedded driver the thread also
    /// sleeps while its broker has not read the request yet; it waits once it sleeps again and again, as it asks anew.
    fn waiting(&self, kit: &Kit, worker: &Worker) -> Result<Task<io::Result<()>>, Stop> {
        let (process, info) = (kit.open()?, self.info(true, sys::patience::stretched(PATIENCE)));
        let mut task = worker.start(move || process.conn.freeze(info))?;
        let what = "FREEZE of a process with something pending";
        if kit.is_embedded() {
            task.expect_naps(what, 4)?;
        }
        task.expect_asleep(what)?;
        Ok(task)
    }

    fn status(&self) -> Result<(u32, u32), Stop> {
        let info = done("GET_FROZEN_INFO", self.client.conn.frozen_info(self.remote.pid()))?;
        let FrozenStatusInfo { sync_recv, async_recv, .. } = info;
        Ok((sync_recv, async_recv))
    }

    /// Starts a call that the remote process then serves.
    fn busy(&self) -> Verdict {
        self.client.start_call(self.handle, 1, b"")?;
        self.remote.expect_read("a call of the process", "TRANSACTION")
    }

    /// Finishes that call.
    fn idle(&self) -> Verdict {
        self.remote.reply()?;
        self.client.expect_reply("that call")
    }

    /// Makes pending what FREEZE waits for: a call being served. The Rust driver waits only for unread work.
    fn occupy(&self, kit: &Kit) -> Verdict {
        if kit.is_rust() { self.queue_oneway(kit, false) } else { self.busy() }
    }

    /// Finishes that call.
    fn release(&self, kit: &Kit) -> Verdict {
        if kit.is_rust() { self.read_oneway() } else { self.idle() }
    }

    fn expect_refusal(&self, what: &str) -> Verdict {
        expect_work(what, &self.client.call(self.handle)?, "FROZEN_REPLY")
    }

    /// Sends a oneway call that the remote process does not read.
    fn queue_oneway(&self, kit: &Kit, frozen: bool) -> Verdict {
        self.client.send_oneway(self.handle, 1, b"")?;
        let told = frozen && kit.evidence.release >= Release(6, 2);
        let want = if told { "TRANSACTION_PENDING_FROZEN" } else { "COMPLETE" };
        expect_work("a oneway call of the process", &self.client.read()?, want)
    }

    fn read_oneway(&self) -> Verdict {
        self.remote.expect_read("the oneway call, in the process", "TRANSACTION")?;
        self.remote.tell("free").map(drop)
    }
}

fn frz_01_a_frozen_process_gets_no_calls(kit: &Kit) -> Verdict {
    let frozen = Frozen::new(kit)?;
    let server = kit.server()?;
    let node = Node::number(2);
    frozen.remote.take(kit, &server, node)?;
    let other = kit.open()?;
    let second = frozen.remote.give(kit, &other, 1)?;
    let calls_out = |frozen: &Frozen, what: &str| -> Verdict {
        frozen.remote.tell(&format!("call {}", node.ptr))?;
        server.echo()?;
        frozen.remote.expect_read(what, "COMPLETE REPLY")
    };
    frozen.occupy(kit)?;
    let worker = Worker::new()?;
    let wait = frozen.waiting(kit, &worker)?;
    expect_work("a call during the wait", &other.call(second)?, "FROZEN_REPLY")?;
    calls_out(&frozen, "its own call during the wait")?;
    frozen.release(kit)?;
    expect_errno("FREEZE once nothing is pending", &wait.wait("FREEZE")?, "OK")?;
    frozen.expect_refusal("a call of a frozen process")?;
    frozen.client.expect_silence("after the refusal")?;
    frozen.queue_oneway(kit, true)?;
    calls_out(&frozen, "its own call while frozen")?;
    frozen.thaw()?;
    frozen.read_oneway()?;
    frozen.busy()?;
    frozen.idle()
}

fn frz_02_a_busy_process_stays_thawed(kit: &Kit) -> Verdict {
    let frozen = Frozen::new(kit)?;
    frozen.busy()?;
    expect("FREEZE without a wait while a call is served", frozen.try_freeze().as_str(), "EAGAIN")?;
    let timed = |frozen: &Frozen, wait: Duration| -> Result<Duration, Stop> {
        let start = Instant::now();
        let result = frozen.client.conn.freeze(frozen.info(true, wait));
        expect_errno("FREEZE with a wait while something is pending", &result, "EAGAIN")?;
        Ok(start.elapsed())
    };
    if kit.is_rust() {
        let patience = sys::patience::stretched(PATIENCE);
        let waited = timed(&frozen, patience)?;
        ensure(waited < patience, || "FREEZE waited for a call that is served".into())?;
        frozen.idle()?;
        frozen.occupy(kit)?;
    }
    let wait = Duration::from_millis(80);
    let waited = timed(&frozen, wait)?;
    // The driver counts in ticks of at most 10 ms, and the first one is shorter.
    ensure(waited >= wait * 3 / 4, || format!("it waited {waited:?} of {wait:?}"))?;
    frozen.release(kit)?;
    frozen.busy()?;
    frozen.idle()?;
    frozen.freeze()?;
    frozen.queue_oneway(kit, true)?;
    expect("FREEZE of a frozen process with a call queued", frozen.try_freeze().as_str(), "EAGAIN")?;
    frozen.queue_oneway(kit, false)?;
    frozen.read_oneway()?;
    let worker = Worker::new()?;
    let wait = frozen.waiting(kit, &worker)?;
    frozen.read_oneway()?;
    expect_errno("FREEZE once nothing is pending", &wait.wait("FREEZE")?, "OK")?;
    frozen.expect_refusal("a call after that")?;
    frozen.thaw()
}

fn frz_03_what_is_pending(kit: &Kit) -> Verdict {
    let frozen = Frozen::new(kit)?;
    let server = kit.server()?;
    let node = Node::number(2);
    frozen.remote.take(kit, &server, node)?;
    let pending = |frozen: &Frozen, what: &str, want: bool| -> Verdict {
        let want = if want { "EAGAIN" } else { "OK" };
        expect(&format!("FREEZE, {what}"), frozen.try_freeze().as_str(), want)?;
        frozen.thaw()
    };
    pending(&frozen, "nothing pending", false)?;
    frozen.client.start_call(frozen.handle, 1, b"")?;
    pending(&frozen, "a call unread", true)?;
    frozen.remote.expect_read("the call", "TRANSACTION")?;
    pending(&frozen, "a call being served", true)?;
    frozen.idle()?;
    pending(&frozen, "that call answered", false)?;
    frozen.queue_oneway(kit, false)?;
    frozen.queue_oneway(kit, false)?;
    pending(&frozen, "two oneway calls unread", true)?;
    frozen.remote.expect_read("the first oneway call", "TRANSACTION")?;
    pending(&frozen, "a oneway call read, and one behind it", true)?;
    frozen.remote.tell("free")?;
    frozen.remote.expect_read("the second oneway call", "TRANSACTION")?;
    pending(&frozen, "its buffer not yet given back", false)?;
    frozen.remote.tell("free")?;
    let other = frozen.remote.give(kit, &frozen.client, 5)?;
    frozen.queue_oneway(kit, false)?;
    frozen.client.oneway(other, 2, b"")?;
    frozen.read_oneway()?;
    pending(&frozen, "a oneway call of one node done, and one of another unread", true)?;
    frozen.read_oneway()?;
    pending(&frozen, "both done", false)?;
    frozen.remote.tell(&format!("call {}", node.ptr))?;
    pending(&frozen, "its own call unread", true)?;
    let call = server.read()?.call()?;
    pending(&frozen, "its own call being served", true)?;
    server.finish_call()?;
    server.free(&call)?;
    pending(&frozen, "the reply to its own call unread", true)?;
    frozen.remote.expect_read("that reply", "COMPLETE REPLY")?;
    pending(&frozen, "that reply read", false)?;
    // A process's first call goes through the embedded driver's broker, its second directly. The callee closes or its
    // thread exits.
    for (number, [second, closes]) in (6..).zip([[false, false], [false, true], [true, false], [true, true]])
    {
        let server = kit.server()?;
        let node = Node::number(number);
        frozen.remote.take(kit, &server, node)?;
        let call = format!("call {}", node.ptr);
        if second {
            frozen.remote.tell(&call)?;
            server.echo()?;
            frozen.remote.expect_read("a reply", "COMPLETE REPLY")?;
        }
        frozen.remote.tell(&call)?;
        server.read()?.call()?;
        let _alive = if closes {
            drop(server);
            None
        } else {
            server.thread_exit()?;
            Some(server)
        };
        soon(|| {
            let (pending, seen) = (frozen.status()?.0 & PENDING, frozen.try_freeze());
            frozen.thaw()?;
            let fine = (pending, seen.as_str()) == (0, "OK");
            Ok((!fine)
                .then(|| format!("its own call failed and that unread: FREEZE {seen}, pending {pending}")))
        })?;
        frozen.remote.expect_read("that failure", "COMPLETE DEAD_REPLY")?;
    }
    // The first round trip makes the acquaintance, after which the embedded driver calls directly.
    let caller = kit.server()?;
    let watcher = kit.watch(&caller, Node::number(4))?;
    let handle = frozen.remote.give(kit, &caller, 3)?;
    for last in [false, true] {
        caller.start_call(handle, 1, b"")?;
        frozen.remote.expect_read("a call of another process", "TRANSACTION")?;
        frozen.remote.reply()?;
        if !last {
            caller.take_reply()?;
        }
    }
    watcher.outlive(caller)?;
    pending(&frozen, "a reply that its caller did not read before it closed", false)
}

fn frz_04_a_signal_ends_the_wait(kit: &Kit) -> Verdict {
    let frozen = Frozen::new(kit)?;
    let worker = Worker::new()?;
    let signal = done("installing a signal handler", Interrupter::install())?;
    frozen.occupy(kit)?;
    let mut wait = frozen.waiting(kit, &worker)?;
    done("sending a signal", signal.interrupt(worker.thread))?;
    wait.expect_asleep("FREEZE after a signal with SA_RESTART")?;
    frozen.release(kit)?;
    expect_errno("FREEZE once nothing is pending", &wait.wait("FREEZE")?, "OK")?;
    frozen.thaw()?;
    let signal = done("installing a signal handler", Interrupter::install_without_restart())?;
    frozen.occupy(kit)?;
    let wait = frozen.waiting(kit, &worker)?;
    done("sending a signal", signal.interrupt(worker.thread))?;
    expect_errno("FREEZE after a signal without SA_RESTART", &wait.wait("FREEZE")?, "EINTR")?;
    frozen.release(kit)?;
    frozen.busy()?;
    frozen.idle()
}

fn frz_05_what_came_meanwhile(kit: &Kit) -> Verdict {
    const REFUSED: u32 = 1;
    let frozen = Frozen::new(kit)?;
    expect("of a process never frozen", frozen.status()?, (0, 0))?;
    frozen.busy()?;
    expect("while it serves", frozen.status()?, (PENDING, 0))?;
    frozen.idle()?;
    frozen.freeze()?;
    expect("once frozen", frozen.status()?, (0, 0))?;
    frozen.expect_refusal("a call of it")?;
    expect("after a call", frozen.status()?, (REFUSED, 0))?;
    frozen.queue_oneway(kit, true)?;
    expect("after a oneway call too", frozen.status()?, (REFUSED | PENDING, 1))?;
    frozen.thaw()?;
    expect("once thawed", frozen.status()?, (PENDING, 0))?;
    frozen.read_oneway()?;
    expect("once the oneway call was read", frozen.status()?, (0, 0))?;
    frozen.freeze()?;
    frozen.expect_refusal("a call of it")?;
    frozen.freeze()?;
    expect("once frozen again", frozen.status()?, (0, 0))?;
    frozen.thaw()?;
    let Frozen { remote, client, .. } = frozen;
    let pid = remote.pid();
    drop(remote);
    soon(|| {
        let got = errno(&client.conn.frozen_info(pid));
        Ok((got != "EINVAL").then(|| format!("of a process that is gone: expected \"EINVAL\", got {got:?}")))
    })
}
