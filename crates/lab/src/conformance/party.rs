//! Room: a process in the driver's sense, driven by hand: explicit streams, no loop, no policy.
//! Not here: what a runtime does with them (`ipc`), threads (`worker`).
//! Facts: contract section 3; TX-01; the rules for tests in section 21.13.

use std::io;
use std::sync::Arc;
use std::time::{Duration, Instant};

use abi::layout::ExtendedError;
use abi::{Commands, Cookie, Delivery, Handle, NodePtr, Payload, Return, Returns, TransactionFlags};
use driver::Exchange;

use super::item::{Stop, Verdict, done, ensure, expect};
use super::subject::Probe;

/// How long something that must come may take. Generous: emulated guests are slow, and the wait
/// ends as soon as it came.
pub(super) const PATIENCE: Duration = Duration::from_secs(8);

/// How long nothing must come for it to count as nothing.
pub(super) const SILENCE: Duration = Duration::from_millis(30);

/// Room for returns that is enough for whatever one read gives.
pub(super) const ROOM: usize = 512;

/// A two-way call that takes no descriptors in its reply.
pub(super) const PLAIN_CALL: TransactionFlags = TransactionFlags(0);

/// What one or more reads gave.
#[derive(Clone, Debug, Default)]
pub(super) struct Got {
    pub(super) returns: Vec<Return>,
}

/// The C name of a return, without its `BR_`.
fn name(item: &Return) -> String {
    match item {
        Return::Noop => "NOOP".into(),
        Return::SpawnLooper => "SPAWN_LOOPER".into(),
        Return::Transaction(call) if call.security_context.is_some() => "TRANSACTION_SEC_CTX".into(),
        Return::Transaction(_) => "TRANSACTION".into(),
        Return::Reply(_) => "REPLY".into(),
        Return::TransactionComplete => "COMPLETE".into(),
        Return::OnewaySpamSuspect => "ONEWAY_SPAM_SUSPECT".into(),
        Return::TransactionPendingFrozen => "TRANSACTION_PENDING_FROZEN".into(),
        Return::DeadReply => "DEAD_REPLY".into(),
        Return::FailedReply => "FAILED_REPLY".into(),
        Return::FrozenReply => "FROZEN_REPLY".into(),
        Return::Increfs(..) => "INCREFS".into(),
        Return::Acquire(..) => "ACQUIRE".into(),
        Return::Release(..) => "RELEASE".into(),
        Return::Decrefs(..) => "DECREFS".into(),
        Return::DeadBinder(_) => "DEAD_BINDER".into(),
        Return::ClearDeathNotificationDone(_) => "CLEAR_DEATH_NOTIFICATION_DONE".into(),
        Return::FrozenBinder(..) => "FROZEN_BINDER".into(),
        Return::ClearFreezeNotificationDone(_) => "CLEAR_FREEZE_NOTIFICATION_DONE".into(),
        Return::Error(errno) => format!("ERROR({errno})"),
        other => format!("{other:?}"),
    }
}

impl Got {
    /// Decodes a stream; a broken one is the driver's fault.
    pub(super) fn decode(bytes: &[u8]) -> Result<Self, Stop> {
        let returns = Returns::new(bytes).collect::<Result<_, _>>();
        Ok(Self { returns: returns.map_err(|error| Stop::Fail(error.to_string()))? })
    }

    /// The returns by name, in order: `NOOP COMPLETE REPLY`.
    pub(super) fn shape(&self) -> String {
        self.returns.iter().map(name).collect::<Vec<_>>().join(" ")
    }

    /// The same without fillers, which may come at any time (contract EXT-07).
    pub(super) fn work(&self) -> String {
        let real = self.returns.iter().filter(|item| !matches!(item, Return::Noop));
        real.map(name).collect::<Vec<_>>().join(" ")
    }

    /// The call that was delivered.
    pub(super) fn call(&self) -> Result<Delivery, Stop> {
        self.returns
            .iter()
            .find_map(|item| if let Return::Transaction(call) = item { Some(*call) } else { None })
            .ok_or_else(|| Stop::Fail(format!("expected a TRANSACTION, got {:?}", self.shape())))
    }

    /// The reply that was delivered.
    pub(super) fn reply(&self) -> Result<Delivery, Stop> {
        self.returns
            .iter()
            .find_map(|item| if let Return::Reply(reply) = item { Some(*reply) } else { None })
            .ok_or_else(|| Stop::Fail(format!("expected a REPLY, got {:?}", self.shape())))
    }

    fn ends_a_call(&self) -> bool {
        let ends = |item: &Return| {
            matches!(item, Return::Reply(_) | Return::DeadReply | Return::FailedReply | Return::FrozenReply)
        };
        self.returns.iter().any(ends)
    }
}

/// Fails unless the returns but for fillers are these.
pub(super) fn expect_work(what: &str, got: &Got, want: &str) -> Verdict {
    expect(what, got.work().as_str(), want)
}

/// A node of a party: its ptr (never 0, which some listings leave out), and flags.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Node {
    pub(super) ptr: u64,
    pub(super) cookie: u64,
    pub(super) flags: u32,
}

impl Node {
    /// A node that takes descriptors and asks for no priority beyond the default.
    pub(super) const fn number(n: u64) -> Self {
        Self { ptr: 0x1000 + n * 0x10, cookie: 0xc000_0000_0000_0000 + n, flags: 0x113 }
    }

    pub(super) const fn flags(mut self, flags: u32) -> Self {
        self.flags = flags;
        self
    }

    pub(super) fn names(self) -> (NodePtr, Cookie) {
        (NodePtr(self.ptr), Cookie(self.cookie))
    }
}

/// One open connection, driven from whichever thread calls.
#[derive(Clone)]
pub(super) struct Party {
    pub(super) conn: Arc<dyn Probe>,
}

impl Party {
    pub(super) fn new(conn: Arc<dyn Probe>) -> Self {
        Self { conn }
    }

    /// Writes without reading; how many bytes were taken.
    pub(super) fn write_some(&self, commands: &Commands) -> Result<usize, Stop> {
        let mut exchange = Exchange::new(commands.as_bytes(), &mut []);
        done("BINDER_WRITE_READ without room to read", self.conn.write_read(&mut exchange))?;
        Ok(exchange.write_consumed)
    }

    /// Writes without reading; every byte must be taken.
    pub(super) fn write(&self, fill: impl FnOnce(&mut Commands)) -> Verdict {
        let mut commands = Commands::default();
        fill(&mut commands);
        let taken = self.write_some(&commands)?;
        expect("bytes of commands taken", taken, commands.as_bytes().len())
    }

    /// Writes commands that a driver refuses with an errno; that errno and the bytes taken.
    pub(super) fn write_refused(&self, bytes: &[u8]) -> (io::Result<()>, usize) {
        let mut exchange = Exchange::new(bytes, &mut []);
        let result = self.conn.write_read(&mut exchange);
        (result, exchange.write_consumed)
    }

    /// One read of at most `room` bytes; `None` when there was nothing (`EAGAIN`).
    pub(super) fn read_room(&self, room: usize) -> Result<Option<Got>, Stop> {
        let mut buffer = vec![0; room];
        let mut exchange = Exchange::new(&[], &mut buffer);
        match self.conn.write_read_uninterrupted(&mut exchange) {
            Ok(()) => Got::decode(exchange.returned()).map(Some),
            Err(error) if error.kind() == io::ErrorKind::WouldBlock => Ok(None),
            Err(error) => Err(Stop::Fail(format!("reading failed: {}", sys::errno::describe(&error)))),
        }
    }

    /// One read; `None` when there was nothing, or only fillers.
    pub(super) fn read_now(&self) -> Result<Option<Got>, Stop> {
        Ok(self.read_room(ROOM)?.filter(|got| !got.work().is_empty()))
    }

    /// The next read that gives more than fillers; fails when none comes.
    pub(super) fn read(&self) -> Result<Got, Stop> {
        let start = Instant::now();
        loop {
            if let Some(got) = self.read_now()? {
                return Ok(got);
            }
            ensure(start.elapsed() < PATIENCE, || format!("nothing to read came within {PATIENCE:?}"))?;
            std::thread::sleep(Duration::from_micros(500));
        }
    }

    /// Fails if anything but fillers can be read within [`SILENCE`].
    pub(super) fn expect_silence(&self, what: &str) -> Verdict {
        let start = Instant::now();
        while start.elapsed() < SILENCE {
            if let Some(got) = self.read_now()? {
                return Err(Stop::Fail(format!("{what}: expected nothing to read, got {:?}", got.shape())));
            }
            std::thread::sleep(Duration::from_millis(2));
        }
        Ok(())
    }

    /// Reads until the calling thread's call has ended, in one read or two (contract WR-15).
    pub(super) fn ending(&self) -> Result<Got, Stop> {
        let mut all = Got::default();
        while !all.ends_a_call() {
            all.returns.extend(self.read()?.returns);
        }
        all.returns.retain(|item| !matches!(item, Return::Noop));
        Ok(all)
    }

    /// Calls `target` and returns how that ended, whoever serves it meanwhile.
    pub(super) fn call(
        &self,
        target: Handle,
        code: u32,
        flags: TransactionFlags,
        payload: Payload<'_>,
    ) -> Result<Got, Stop> {
        self.write(|c| c.transaction(target, code, flags, payload))?;
        self.ending()
    }

    /// Starts a call of these bytes without waiting.
    pub(super) fn start_call(&self, target: Handle, code: u32, data: &[u8]) -> Verdict {
        self.write(|c| {
            c.transaction(target, code, TransactionFlags::CALL, Payload { data, ..Payload::default() })
        })
    }

    /// Sends a oneway call of these bytes; its answer stays to be read.
    pub(super) fn send_oneway(&self, target: Handle, code: u32, data: &[u8]) -> Verdict {
        self.write(|c| {
            c.transaction(target, code, TransactionFlags::ONEWAY, Payload { data, ..Payload::default() })
        })
    }

    /// Answers the call being served with these bytes and reads what the driver says to that.
    pub(super) fn answer(&self, data: &[u8]) -> Result<Got, Stop> {
        self.write(|c| c.reply(TransactionFlags::default(), Payload { data, ..Payload::default() }))?;
        self.read()
    }

    /// Serves one call that is there or comes: checks nothing, echoes its data, gives its buffer back.
    pub(super) fn echo(&self) -> Result<Delivery, Stop> {
        let call = self.read()?.call()?;
        let data = self.bytes(&call)?;
        expect_work("answering a call", &self.answer(&data)?, "COMPLETE")?;
        self.free(&call)?;
        Ok(call)
    }

    /// Serves one call with an empty answer, gives its buffer back.
    pub(super) fn acknowledge_call(&self) -> Verdict {
        let call = self.read()?.call()?;
        expect_work("answering a call", &self.answer(b"")?, "COMPLETE")?;
        self.free(&call)
    }

    /// Gives a buffer back.
    pub(super) fn free(&self, delivery: &Delivery) -> Verdict {
        self.write(|c| c.free_buffer(delivery.buffer))
    }

    /// The delivered bytes.
    pub(super) fn bytes(&self, delivery: &Delivery) -> Result<Vec<u8>, Stop> {
        let address = delivery.buffer.0;
        let lent = self.conn.lent(address, delivery.data_size);
        let outside = || Stop::Fail(format!("a buffer at {address:#x} lies outside the receiving area"));
        Ok(lent.ok_or_else(outside)?.to_vec())
    }

    /// The calling thread's extended error; skips the rest of the test before Linux 5.19.
    pub(super) fn extended_error(&self) -> Result<ExtendedError, Stop> {
        self.conn.extended_error().map_err(|error| match error.raw_os_error() {
            Some(22) => Stop::Skip("no BINDER_GET_EXTENDED_ERROR: brought by Linux 5.19".into()),
            _ => Stop::Fail(format!("BINDER_GET_EXTENDED_ERROR failed: {error}")),
        })
    }

    /// Joins the pool, as every thread that serves must (contract LP-07).
    pub(super) fn enter_looper(&self) -> Verdict {
        self.write(Commands::enter_looper)
    }

    /// Acknowledges whatever references of the party's own nodes these returns tell of.
    pub(super) fn acknowledge(&self, got: &Got) -> Verdict {
        self.write(|c| {
            for item in &got.returns {
                match *item {
                    Return::Increfs(ptr, cookie) => c.increfs_done(ptr, cookie),
                    Return::Acquire(ptr, cookie) => c.acquire_done(ptr, cookie),
                    _ => {}
                }
            }
        })
    }
}
