//! A binder process driven by raw command and return streams, without a runtime.
//! Not here: a runtime's use of the streams (`ipc`), threads (`worker`).
//! Facts: contract section 3; TX-01; the rules for tests in section 21.13.

use std::io;
use std::sync::{Arc, LazyLock};
use std::time::{Duration, Instant};

use abi::layout::{ExtendedError, FlatBinderObject};
use abi::{Commands, Cookie, Delivery, Handle, NodePtr, Payload, Return, Returns, TransactionFlags};
use driver::Exchange;
use driver::connection::default_map_size;
use sys::binder_fd::BinderFd;
use sys::errno::EINVAL;
use zerocopy::{FromBytes, Immutable, IntoBytes};

use super::check::{PATIENCE, Stop, Verdict, done, ensure, expect, expect_errno, required};
use super::probe::Probe;
use super::worker::{Task, Worker};

/// How long to wait before concluding that nothing happens.
pub(super) const SILENCE: Duration = Duration::from_millis(30);

/// Read buffer size, enough for any single read.
pub(super) const ROOM: usize = 512;

/// Flags of a two-way call that accepts no descriptors in its reply.
pub(super) const PLAIN_CALL: TransactionFlags = TransactionFlags(0);

/// A payload without objects.
pub(super) fn plain(data: &[u8]) -> Payload<'_> {
    Payload { data, ..Payload::default() }
}

/// This many zeroes to send, allocated once, because a static array would enlarge the binary.
pub(super) fn zeroes(count: usize) -> &'static [u8] {
    static ZEROES: LazyLock<Vec<u8>> = LazyLock::new(|| vec![0; default_map_size()]);
    &ZEROES[..count]
}

/// Returns of one or more reads.
#[derive(Clone, Debug, Default)]
pub(super) struct Got {
    pub(super) returns: Vec<Return>,
}

/// The C name of a return, without `BR_`.
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
    /// Decodes a return stream; a malformed one is a driver failure.
    pub(super) fn decode(bytes: &[u8]) -> Result<Self, Stop> {
        let returns = Returns::new(bytes).collect::<Result<_, _>>();
        Ok(Self { returns: returns.map_err(|error| Stop::Fail(error.to_string()))? })
    }

    /// The names of the returns in order: `NOOP COMPLETE REPLY`.
    pub(super) fn shape(&self) -> String {
        self.returns.iter().map(name).collect::<Vec<_>>().join(" ")
    }

    /// The names of the returns without NOOPs, which may come at any time (contract EXT-07).
    pub(super) fn work(&self) -> String {
        let real = self.returns.iter().filter(|item| !matches!(item, Return::Noop));
        real.map(name).collect::<Vec<_>>().join(" ")
    }

    /// The delivered call.
    pub(super) fn call(&self) -> Result<Delivery, Stop> {
        let call = |item: &Return| if let Return::Transaction(call) = item { Some(*call) } else { None };
        required(self.returns.iter().find_map(call), || {
            format!("expected a TRANSACTION, got {:?}", self.shape())
        })
    }

    /// The delivered reply.
    pub(super) fn reply(&self) -> Result<Delivery, Stop> {
        let reply = |item: &Return| if let Return::Reply(reply) = item { Some(*reply) } else { None };
        required(self.returns.iter().find_map(reply), || format!("expected a REPLY, got {:?}", self.shape()))
    }

    fn ends_a_call(&self) -> bool {
        let ends = |item: &Return| {
            matches!(item, Return::Reply(_) | Return::DeadReply | Return::FailedReply | Return::FrozenReply)
        };
        self.returns.iter().any(ends)
    }
}

/// Fails unless the returns, apart from NOOPs, are these.
pub(super) fn expect_work(what: &str, got: &Got, want: &str) -> Verdict {
    expect(what, got.work().as_str(), want)
}

/// A node of a process: ptr (never 0, which some listings omit), cookie and flags.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Node {
    pub(super) ptr: u64,
    pub(super) cookie: u64,
    pub(super) flags: u32,
}

impl Node {
    /// A node that accepts descriptors and has the default minimum priority.
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

    /// The node as an object of this kind.
    pub(super) fn object(self, kind: u32) -> FlatBinderObject {
        FlatBinderObject { kind, flags: self.flags, binder: self.ptr, cookie: self.cookie }
    }
}

/// An open connection, usable by any thread.
#[derive(Clone)]
pub(super) struct RawProcess {
    pub(super) conn: Arc<dyn Probe>,
}

impl RawProcess {
    pub(super) fn new(conn: Arc<dyn Probe>) -> Self {
        Self { conn }
    }

    /// Writes without reading; returns the number of bytes consumed.
    pub(super) fn write_some(&self, commands: &Commands) -> Result<usize, Stop> {
        let mut exchange = Exchange::new(commands.as_bytes(), &mut []);
        done("BINDER_WRITE_READ without room to read", self.conn.write_read(&mut exchange))?;
        Ok(exchange.write_consumed)
    }

    /// Writes without reading; all bytes must be consumed.
    pub(super) fn write(&self, fill: impl FnOnce(&mut Commands)) -> Verdict {
        let commands = Commands::of(fill);
        let taken = self.write_some(&commands)?;
        expect("bytes of commands taken", taken, commands.as_bytes().len())
    }

    /// Writes one command with this structure.
    pub(super) fn write_raw(&self, command: u32, data: &(impl IntoBytes + Immutable)) -> Verdict {
        self.write(|c| c.append(&[command.as_bytes(), data.as_bytes()].concat()))
    }

    /// Writes one command, which must be refused with EINVAL and not consumed.
    pub(super) fn expect_invalid(&self, what: &str, fill: impl FnOnce(&mut Commands)) -> Verdict {
        let commands = Commands::of(fill);
        let (result, taken) = self.write_refused(commands.as_bytes());
        expect_errno(what, &result, "EINVAL")?;
        expect(&format!("{what}: bytes taken"), taken, 0)
    }

    /// Writes commands that the driver refuses; returns its errno and the bytes consumed.
    pub(super) fn write_refused(&self, bytes: &[u8]) -> (io::Result<()>, usize) {
        let mut exchange = Exchange::new(bytes, &mut []);
        let result = self.conn.write_read(&mut exchange);
        (result, exchange.write_consumed)
    }

    /// One read of at most `room` bytes; `None` for `EAGAIN`.
    pub(super) fn read_room(&self, room: usize) -> Result<Option<Got>, Stop> {
        let mut buffer = vec![0; room];
        let mut exchange = Exchange::new(&[], &mut buffer);
        match self.conn.write_read_uninterrupted(&mut exchange) {
            Ok(()) => Got::decode(exchange.returned()).map(Some),
            Err(error) if error.kind() == io::ErrorKind::WouldBlock => Ok(None),
            Err(error) => Err(Stop::Fail(format!("reading failed: {}", sys::errno::describe(&error)))),
        }
    }

    /// One read; `None` if there was nothing but NOOPs.
    pub(super) fn read_now(&self) -> Result<Option<Got>, Stop> {
        Ok(self.read_room(ROOM)?.filter(|got| !got.work().is_empty()))
    }

    /// The next read with more than NOOPs; fails after [`PATIENCE`].
    pub(super) fn read(&self) -> Result<Got, Stop> {
        let start = Instant::now();
        loop {
            if let Some(got) = self.read_now()? {
                return Ok(got);
            }
            ensure(!sys::patience::is_over(start, PATIENCE), || {
                format!("nothing to read came within {PATIENCE:?}")
            })?;
            std::thread::sleep(Duration::from_micros(500));
        }
    }

    /// The next read with more than NOOPs, which must give this.
    pub(super) fn expect_read(&self, what: &str, want: &str) -> Result<Got, Stop> {
        let got = self.read().map_err(|stop| stop.during(what))?;
        expect_work(what, &got, want).map(|()| got)
    }

    /// Adds further reads until the returns suffice.
    pub(super) fn read_on(&self, mut got: Got, suffices: impl Fn(&Got) -> bool) -> Result<Got, Stop> {
        while !suffices(&got) {
            got.returns.extend(self.read()?.returns);
        }
        Ok(got)
    }

    /// Fails if anything but NOOPs can be read within [`SILENCE`].
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
        let mut all = self.read_on(Got::default(), Got::ends_a_call)?;
        all.returns.retain(|item| !matches!(item, Return::Noop));
        Ok(all)
    }

    /// Reads until the calling thread's call has ended, which must give this.
    pub(super) fn expect_ending(&self, what: &str, want: &str) -> Result<Got, Stop> {
        let got = self.ending().map_err(|stop| stop.during(what))?;
        expect_work(what, &got, want).map(|()| got)
    }

    /// Sends a transaction without reading.
    pub(super) fn send(
        &self,
        target: Handle,
        code: u32,
        flags: TransactionFlags,
        payload: Payload<'_>,
    ) -> Verdict {
        self.write(|c| c.transaction(target, code, flags, payload))
    }

    /// Calls `target` with this payload and returns the result; another thread must serve it, if any.
    pub(super) fn call_with(&self, target: Handle, code: u32, payload: Payload<'_>) -> Result<Got, Stop> {
        self.send(target, code, TransactionFlags::CALL, payload)?;
        self.ending().map_err(|stop| stop.during("the end of a call"))
    }

    /// Calls `target` without data and returns the result; another thread must serve it, if any.
    pub(super) fn call(&self, target: Handle) -> Result<Got, Stop> {
        self.call_with(target, 1, Payload::default())
    }

    /// Starts a call with these bytes without waiting.
    pub(super) fn start_call(&self, target: Handle, code: u32, data: &[u8]) -> Verdict {
        self.send(target, code, TransactionFlags::CALL, plain(data))
    }

    /// Sends a oneway call with these bytes; its completion remains to be read.
    pub(super) fn send_oneway(&self, target: Handle, code: u32, data: &[u8]) -> Verdict {
        self.send(target, code, TransactionFlags::ONEWAY, plain(data))
    }

    /// Sends a oneway call that must be accepted, and reads its completion.
    pub(super) fn oneway(&self, target: Handle, code: u32, data: &[u8]) -> Verdict {
        self.send_oneway(target, code, data)?;
        self.expect_read("sending a oneway call", "COMPLETE").map(drop)
    }

    /// Sends a reply without reading.
    pub(super) fn reply(&self, payload: Payload<'_>) -> Verdict {
        self.write(|c| c.reply(TransactionFlags::default(), payload))
    }

    /// Answers the call being served with these bytes; returns the next read.
    pub(super) fn answer(&self, data: &[u8]) -> Result<Got, Stop> {
        self.reply(plain(data))?;
        self.read()
    }

    /// Answers the call being served without data; the reply must be accepted.
    pub(super) fn finish_call(&self) -> Verdict {
        expect_work("answering a call", &self.answer(b"")?, "COMPLETE")
    }

    /// Serves the next call: echoes its data and frees its buffer.
    pub(super) fn echo(&self) -> Result<Delivery, Stop> {
        let call = self.read().map_err(|stop| stop.during("a call to serve"))?.call()?;
        let data = self.bytes(&call)?;
        expect_work("answering a call", &self.answer(&data)?, "COMPLETE")?;
        self.free(&call)?;
        Ok(call)
    }

    /// Calls `server`, which replies; reads all that.
    pub(super) fn round_trip(&self, what: &str, target: Handle, server: &Self) -> Verdict {
        self.start_call(target, 1, b"")?;
        server.echo()?;
        self.expect_reply(what)
    }

    /// Reads until the calling thread's call has ended, with a reply; frees its buffer.
    pub(super) fn expect_reply(&self, what: &str) -> Verdict {
        let got = self.expect_ending(what, "COMPLETE REPLY")?;
        self.free(&got.reply()?)
    }

    /// Reads the reply to the calling thread's call, and frees its buffer.
    pub(super) fn take_reply(&self) -> Verdict {
        self.free(&self.ending()?.reply()?)
    }

    /// Enters the looper state, then reads.
    pub(super) fn read_as_looper(&self) -> Result<Got, Stop> {
        self.enter_looper()?;
        self.read()
    }

    /// Runs a job that uses this process on another thread, and waits for its result.
    pub(super) fn on<T: Send + 'static>(
        &self,
        worker: &Worker,
        job: impl FnOnce(&Self) -> Result<T, Stop> + Send + 'static,
    ) -> Result<T, Stop> {
        let process = self.clone();
        worker.run(move || job(&process))?
    }

    /// Starts a job that uses this process on another thread.
    pub(super) fn start_on<T: Send + 'static>(
        &self,
        worker: &Worker,
        job: impl FnOnce(&Self) -> T + Send + 'static,
    ) -> Result<Task<T>, Stop> {
        let process = self.clone();
        worker.start(move || job(&process))
    }

    /// Its open device, which it has on a kernel's driver.
    pub(super) fn device(&self) -> Result<&BinderFd, Stop> {
        required(self.conn.device(), || "a process without a device".into())
    }

    /// Frees a delivery's buffer.
    pub(super) fn free(&self, delivery: &Delivery) -> Verdict {
        self.write(|c| c.free_buffer(delivery.buffer))
    }

    /// The delivered bytes.
    pub(super) fn bytes(&self, delivery: &Delivery) -> Result<Vec<u8>, Stop> {
        self.lent(delivery.buffer.0, delivery.data_size)
    }

    /// Delivered bytes at an address: of a buffer, or of a scatter-gather buffer.
    pub(super) fn lent(&self, address: u64, len: u64) -> Result<Vec<u8>, Stop> {
        let outside = || format!("{len} bytes at {address:#x} lie outside the receiving area");
        Ok(required(self.conn.lent(address, len), outside)?.to_vec())
    }

    /// The value at an offset of delivered data.
    pub(super) fn arrived<T: FromBytes>(&self, call: &Delivery, at: u64) -> Result<T, Stop> {
        let bytes = self.lent(call.buffer.0 + at, size_of::<T>() as u64)?;
        required(T::read_from_bytes(&bytes).ok(), || "delivered bytes of the wrong size".into())
    }

    /// BINDER_VERSION, which makes the calling thread known to the driver.
    pub(super) fn version(&self) -> Result<i32, Stop> {
        done("BINDER_VERSION", self.conn.version())
    }

    /// THREAD_EXIT of the calling thread.
    pub(super) fn thread_exit(&self) -> Verdict {
        done("THREAD_EXIT", self.conn.thread_exit())
    }

    /// SET_MAX_THREADS.
    pub(super) fn set_max_threads(&self, threads: u32) -> Verdict {
        done("SET_MAX_THREADS", self.conn.set_max_threads(threads))
    }

    /// The calling thread's extended error; skips the rest of the test before Linux 5.19.
    pub(super) fn extended_error(&self) -> Result<ExtendedError, Stop> {
        self.conn.extended_error().map_err(|error| match error.raw_os_error() {
            Some(EINVAL) => Stop::Skip("no BINDER_GET_EXTENDED_ERROR: brought by Linux 5.19".into()),
            _ => Stop::Fail(format!("BINDER_GET_EXTENDED_ERROR failed: {error}")),
        })
    }

    /// Enters the looper state, as every serving thread must (contract LP-07).
    pub(super) fn enter_looper(&self) -> Verdict {
        self.write(Commands::enter_looper)
    }

    /// Acknowledges the node reference notifications among these returns.
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
