//! Room: contract section 11: freezing a process (FRZ-01 to FRZ-05). A freeze takes every party of an
//! OS process, so the frozen one is a puppet in another.
//! Not here: notifications about it (`notify`).

use std::io;
use std::time::{Duration, Instant};

use abi::layout::{FreezeInfo, FrozenStatusInfo};
use abi::{Handle, Payload, TransactionFlags};
use sys::interrupt::Interrupter;

use super::evidence::Release;
use super::item::{Stop, Verdict, done, ensure, errno, expect, expect_errno, items};
use super::kit::Kit;
use super::party::{Node, PATIENCE, Party, expect_work};
use super::puppet::Puppet;
use super::worker::{Task, Worker};

mod notify;

use notify::{
    frz_06_a_request_tells_the_state, frz_07_where_the_drivers_differ, frz_08_one_state_at_a_time,
    frz_09_clearing,
};

items! {
    "FRZ-01" Both [seen] frz_01_a_frozen_process_gets_no_calls "a frozen process is not called, but may call and be answered";
    "FRZ-02" Both [] frz_02_a_busy_process_stays_thawed "FREEZE waits for what is pending, or gives EAGAIN and thaws";
    "FRZ-03" Both [] frz_03_what_is_pending "calls, replies and oneway calls count as pending until they are done";
    "FRZ-04" Both [] frz_04_a_signal_ends_the_wait "a signal ends the wait of FREEZE and thaws, or restarts it";
    "FRZ-05" Both [seen] frz_05_what_came_meanwhile "GET_FROZEN_INFO tells what came since the last FREEZE";
    "FRZ-06" Both [seen] frz_06_a_request_tells_the_state "a freeze notification starts with the present state";
    "FRZ-07" C [] frz_07_where_the_drivers_differ "states are repeated, and a cookie may serve twice";
    "FRZ-08" Both [seen] frz_08_one_state_at_a_time "the next state comes once the last was acknowledged";
    "FRZ-09" Both [] frz_09_clearing "clearing a freeze notification is confirmed to the process";
}

/// A puppet that owns node 1, and the party of this process that calls it.
struct Frozen {
    puppet: Puppet,
    client: Party,
    handle: Handle,
}

impl Frozen {
    fn new(kit: &Kit) -> Result<Self, Stop> {
        kit.can_freeze()?;
        let client = kit.server()?;
        let (puppet, handle) = Puppet::owning(kit, &client, 1)?;
        Ok(Self { puppet, client, handle })
    }

    fn info(&self, enable: bool, timeout: Duration) -> FreezeInfo {
        let timeout_ms = timeout.as_millis() as u32;
        FreezeInfo { pid: self.puppet.pid(), enable: u32::from(enable), timeout_ms }
    }

    /// FREEZE without waiting: `OK` or an errno.
    fn try_freeze(&self) -> String {
        errno(&self.client.conn.freeze(self.info(true, Duration::ZERO)))
    }

    fn freeze(&self) -> Verdict {
        done("FREEZE", self.client.conn.freeze(self.info(true, Duration::ZERO)))
    }

    fn thaw(&self) -> Verdict {
        done("FREEZE with enable 0", self.client.conn.freeze(self.info(false, Duration::ZERO)))
    }

    /// FREEZE on another thread, once it sleeps.
    fn waiting(&self, kit: &Kit, worker: &Worker) -> Result<Task<io::Result<()>>, Stop> {
        let (party, info) = (kit.open()?, self.info(true, PATIENCE));
        let mut task = worker.start(move || party.conn.freeze(info))?;
        task.expect_asleep("FREEZE of a process with something pending")?;
        Ok(task)
    }

    fn status(&self) -> Result<(u32, u32), Stop> {
        let info = done("GET_FROZEN_INFO", self.client.conn.frozen_info(self.puppet.pid()))?;
        let FrozenStatusInfo { sync_recv, async_recv, .. } = info;
        Ok((sync_recv, async_recv))
    }

    /// Starts a call that the puppet then serves.
    fn busy(&mut self) -> Verdict {
        self.client.start_call(self.handle, 1, b"")?;
        self.puppet.expect_read("a call of the process", "TRANSACTION")
    }

    /// Ends that call.
    fn idle(&mut self) -> Verdict {
        self.puppet.reply()?;
        let got = self.client.ending()?;
        expect_work("that call", &got, "COMPLETE REPLY")?;
        self.client.free(&got.reply()?)
    }

    /// Has something pending that FREEZE waits for: a call that is served. The Rust driver waits only for what
    /// is unread.
    fn occupy(&mut self, kit: &Kit) -> Verdict {
        if kit.is_rust() { self.queue_oneway(kit, false) } else { self.busy() }
    }

    /// Ends that.
    fn release(&mut self, kit: &Kit) -> Verdict {
        if kit.is_rust() { self.read_oneway() } else { self.idle() }
    }

    fn expect_refusal(&self, what: &str) -> Verdict {
        let got = self.client.call(self.handle, 1, TransactionFlags::CALL, Payload::default())?;
        expect_work(what, &got, "FROZEN_REPLY")
    }

    /// Sends a oneway call that the process does not read.
    fn queue_oneway(&self, kit: &Kit, frozen: bool) -> Verdict {
        self.client.send_oneway(self.handle, 1, b"")?;
        let told = frozen && kit.evidence.release >= Release(6, 2);
        let want = if told { "TRANSACTION_PENDING_FROZEN" } else { "COMPLETE" };
        expect_work("a oneway call of the process", &self.client.read()?, want)
    }

    fn read_oneway(&mut self) -> Verdict {
        self.puppet.expect_read("the oneway call, in the process", "TRANSACTION")?;
        self.puppet.tell("free").map(drop)
    }
}

fn frz_01_a_frozen_process_gets_no_calls(kit: &Kit) -> Verdict {
    let mut frozen = Frozen::new(kit)?;
    let server = kit.server()?;
    let node = Node::number(2);
    frozen.puppet.take(kit, &server, node)?;
    let other = kit.open()?;
    let second = frozen.puppet.give(kit, &other, 1)?;
    let calls_out = |frozen: &mut Frozen, what: &str| -> Verdict {
        frozen.puppet.tell(&format!("call {}", node.ptr))?;
        server.echo()?;
        frozen.puppet.expect_read(what, "COMPLETE REPLY")
    };
    frozen.occupy(kit)?;
    let worker = Worker::new()?;
    let wait = frozen.waiting(kit, &worker)?;
    let got = other.call(second, 1, TransactionFlags::CALL, Payload::default())?;
    expect_work("a call during the wait", &got, "FROZEN_REPLY")?;
    calls_out(&mut frozen, "its own call during the wait")?;
    frozen.release(kit)?;
    expect_errno("FREEZE once nothing is pending", &wait.wait("FREEZE")?, "OK")?;
    frozen.expect_refusal("a call of a frozen process")?;
    frozen.client.expect_silence("after the refusal")?;
    frozen.queue_oneway(kit, true)?;
    calls_out(&mut frozen, "its own call while frozen")?;
    frozen.thaw()?;
    frozen.read_oneway()?;
    frozen.busy()?;
    frozen.idle()
}

fn frz_02_a_busy_process_stays_thawed(kit: &Kit) -> Verdict {
    let mut frozen = Frozen::new(kit)?;
    frozen.busy()?;
    expect("FREEZE without a wait while a call is served", frozen.try_freeze().as_str(), "EAGAIN")?;
    let timed = |frozen: &Frozen, wait: Duration| -> Result<Duration, Stop> {
        let start = Instant::now();
        let result = frozen.client.conn.freeze(frozen.info(true, wait));
        expect_errno("FREEZE with a wait while something is pending", &result, "EAGAIN")?;
        Ok(start.elapsed())
    };
    if kit.is_rust() {
        let waited = timed(&frozen, PATIENCE)?;
        ensure(waited < PATIENCE, || "FREEZE waited for a call that is served".into())?;
        frozen.idle()?;
        frozen.occupy(kit)?;
    }
    let wait = Duration::from_millis(80);
    let waited = timed(&frozen, wait)?;
    // The driver counts in ticks, at most 10 ms each, and the first is cut short.
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
    let mut frozen = Frozen::new(kit)?;
    let server = kit.server()?;
    let node = Node::number(2);
    frozen.puppet.take(kit, &server, node)?;
    let pending = |frozen: &Frozen, what: &str, want: bool| -> Verdict {
        let want = if want { "EAGAIN" } else { "OK" };
        expect(&format!("FREEZE, {what}"), frozen.try_freeze().as_str(), want)?;
        frozen.thaw()
    };
    pending(&frozen, "nothing pending", false)?;
    frozen.client.start_call(frozen.handle, 1, b"")?;
    pending(&frozen, "a call unread", true)?;
    frozen.puppet.expect_read("the call", "TRANSACTION")?;
    pending(&frozen, "a call being served", true)?;
    frozen.idle()?;
    pending(&frozen, "that call answered", false)?;
    frozen.queue_oneway(kit, false)?;
    frozen.queue_oneway(kit, false)?;
    pending(&frozen, "two oneway calls unread", true)?;
    frozen.puppet.expect_read("the first oneway call", "TRANSACTION")?;
    pending(&frozen, "a oneway call read, and one behind it", true)?;
    frozen.puppet.tell("free")?;
    frozen.puppet.expect_read("the second oneway call", "TRANSACTION")?;
    pending(&frozen, "its buffer not yet given back", false)?;
    frozen.puppet.tell("free")?;
    frozen.puppet.tell(&format!("call {}", node.ptr))?;
    pending(&frozen, "its own call unread", true)?;
    let call = server.read()?.call()?;
    pending(&frozen, "its own call being served", true)?;
    expect_work("answering it", &server.answer(b"")?, "COMPLETE")?;
    server.free(&call)?;
    pending(&frozen, "the reply to its own call unread", true)?;
    frozen.puppet.expect_read("that reply", "COMPLETE REPLY")?;
    pending(&frozen, "that reply read", false)
}

fn frz_04_a_signal_ends_the_wait(kit: &Kit) -> Verdict {
    let mut frozen = Frozen::new(kit)?;
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
    const PENDING: u32 = 2;
    let mut frozen = Frozen::new(kit)?;
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
    frozen.thaw()
}
