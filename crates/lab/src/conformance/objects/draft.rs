//! Room: a payload in the making, and calls that carry it: delivered, or refused.

use abi::codes::{br, object};
use abi::layout::{BufferObject, FdArrayObject, FdObject, FlatBinderObject};
use abi::{Delivery, Handle, Payload, Return, TransactionFlags};
use zerocopy::{FromBytes, FromZeros, Immutable, IntoBytes};

use crate::conformance::item::{Stop, Verdict, ensure, expect};
use crate::conformance::kit::{Kit, Pair};
use crate::conformance::party::{Got, Party, expect_work};

/// Data, where the objects stand in it, and how much room scattered buffers get. The memory that
/// PTR objects point to is the test's own and outlives the call.
#[derive(Clone, Debug, Default)]
pub(super) struct Draft {
    data: Vec<u8>,
    offsets: Vec<u64>,
    buffers_size: Option<u64>,
}

impl Draft {
    /// Starts with bytes that are no object.
    pub(super) fn with(bytes: &[u8]) -> Self {
        Self::default().bytes(bytes)
    }

    /// Starts with an object.
    pub(super) fn of(object: &(impl IntoBytes + Immutable)) -> Self {
        Self::default().object(object)
    }

    /// Appends bytes that are no object.
    pub(super) fn bytes(mut self, bytes: &[u8]) -> Self {
        self.data.extend_from_slice(bytes);
        self
    }

    /// Appends an object and lists it.
    pub(super) fn object(mut self, object: &(impl IntoBytes + Immutable)) -> Self {
        self.offsets.push(self.data.len() as u64);
        self.bytes(object.as_bytes())
    }

    /// Lists these offsets instead.
    pub(super) fn listing(mut self, offsets: &[u64]) -> Self {
        self.offsets = offsets.to_vec();
        self
    }

    /// Has room for scattered buffers: selects the `_SG` commands.
    pub(super) fn room(mut self, bytes: u64) -> Self {
        self.buffers_size = Some(bytes);
        self
    }

    /// Takes the last bytes away.
    pub(super) fn cut(mut self, bytes: usize) -> Self {
        self.data.truncate(self.data.len() - bytes);
        self
    }

    pub(super) fn payload(&self) -> Payload<'_> {
        Payload {
            data: &self.data,
            offsets: &self.offsets,
            buffers_size: self.buffers_size,
            ..Payload::default()
        }
    }
}

/// A node or handle object; `binder` is its ptr or handle.
pub(super) fn flat(kind: u32, binder: u64, cookie: u64) -> FlatBinderObject {
    FlatBinderObject { kind, flags: 0x113, binder, cookie }
}

/// A descriptor object.
pub(super) fn fd(number: u64) -> FdObject {
    FdObject { kind: object::FD, fd: number, ..FdObject::new_zeroed() }
}

/// A scattered buffer without a parent.
pub(super) fn ptr<T: IntoBytes + Immutable + ?Sized>(memory: &T) -> BufferObject {
    let bytes = memory.as_bytes();
    BufferObject {
        kind: object::PTR,
        buffer: bytes.as_ptr() as u64,
        length: bytes.len() as u64,
        ..BufferObject::new_zeroed()
    }
}

/// A scattered buffer whose address stands in the buffer that is listed `parent`th, at `offset`.
pub(super) fn child<T: IntoBytes + Immutable + ?Sized>(memory: &T, parent: u64, offset: u64) -> BufferObject {
    BufferObject { flags: object::BUFFER_FLAG_HAS_PARENT, parent, parent_offset: offset, ..ptr(memory) }
}

/// An array of `count` descriptors in the buffer that is listed `parent`th, from `offset` on.
pub(super) fn fda(count: u64, parent: u64, offset: u64) -> FdArrayObject {
    FdArrayObject { kind: object::FDA, pad: 0, num_fds: count, parent, parent_offset: offset }
}

/// Bytes that were delivered: in a buffer, or in a scattered one.
pub(super) fn lent(party: &Party, address: u64, len: u64) -> Result<Vec<u8>, Stop> {
    let outside = || Stop::Fail(format!("{len} bytes at {address:#x} lie outside the receiving area"));
    Ok(party.conn.lent(address, len).ok_or_else(outside)?.to_vec())
}

/// What stands at an offset of delivered data.
pub(super) fn arrived<T: FromBytes>(party: &Party, call: &Delivery, at: u64) -> Result<T, Stop> {
    let bytes = lent(party, call.buffer.0 + at, size_of::<T>() as u64)?;
    T::read_from_bytes(&bytes).map_err(|_| Stop::Fail("delivered bytes of the wrong size".into()))
}

impl Pair {
    /// Starts a call that the driver must accept; its delivery.
    pub(super) fn deliver(&self, draft: &Draft) -> Result<Delivery, Stop> {
        self.deliver_with(TransactionFlags::CALL, draft)
    }

    /// The same with other flags.
    pub(super) fn deliver_with(&self, flags: TransactionFlags, draft: &Draft) -> Result<Delivery, Stop> {
        start(&self.client, self.handle, flags, draft)?;
        self.server.read()?.call()
    }

    /// Ends the call that [`Self::deliver`] started: its buffer is freed, it is answered.
    pub(super) fn conclude(&self, call: &Delivery) -> Verdict {
        self.server.free(call)?;
        expect_work("answering", &self.server.answer(b"")?, "COMPLETE")?;
        let got = self.client.ending()?;
        self.client.free(&got.reply()?)?;
        self.client.acknowledge(&got)
    }

    /// Starts a call that the driver must refuse. The errno is the extended error's; drivers for
    /// which it is no promise have `None`.
    pub(super) fn refused(
        &self,
        kit: &Kit,
        what: &str,
        draft: &Draft,
        c: &str,
        rust: Option<&str>,
    ) -> Verdict {
        refused(kit, what, &self.client, self.handle, draft, (c, rust))
    }

    /// Reads the client's call and answers it with this; what the server reads then.
    pub(super) fn answer_with(&self, flags: TransactionFlags, draft: &Draft) -> Result<Got, Stop> {
        self.client.write(|c| c.transaction(self.handle, 1, flags, Payload::default()))?;
        let call = self.server.read()?.call()?;
        self.server.free(&call)?;
        self.server.write(|c| c.reply(TransactionFlags::default(), draft.payload()))?;
        self.server.read()
    }
}

/// Starts a call that the driver must accept.
pub(super) fn start(party: &Party, target: Handle, flags: TransactionFlags, draft: &Draft) -> Verdict {
    party.write(|c| c.transaction(target, 1, flags, draft.payload()))?;
    if flags.is_oneway() {
        let got = party.read()?;
        let complete = got.returns.contains(&Return::TransactionComplete);
        ensure(complete, || format!("expected the oneway call's COMPLETE, got {:?}", got.shape()))?;
        return party.acknowledge(&got);
    }
    // What an accepted call brings its sender is deferred (contract WR-15), a refusal is not.
    match party.read_now()? {
        Some(got) => expect("what the caller of an accepted call reads", got.work().as_str(), ""),
        None => Ok(()),
    }
}

/// Starts a call that the driver must refuse with these errnos.
pub(super) fn refused(
    kit: &Kit,
    what: &str,
    party: &Party,
    target: Handle,
    draft: &Draft,
    errnos: (&str, Option<&str>),
) -> Verdict {
    party.write(|c| c.transaction(target, 1, TransactionFlags::CALL, draft.payload()))?;
    expect_refusal(kit, what, party, errnos)
}

/// Fails unless the call just written was refused, for the reason that this driver gives. Where a
/// reason is no promise it is `None`.
pub(super) fn expect_refusal(
    kit: &Kit,
    what: &str,
    party: &Party,
    (c, rust): (&str, Option<&str>),
) -> Verdict {
    expect(what, party.read_now()?.unwrap_or_default().work().as_str(), "FAILED_REPLY")?;
    if kit.is_rust() && rust.is_none() {
        return Ok(());
    }
    let failed = |errno| Some((br::FAILED_REPLY, errno));
    kit.expect_error(party, failed(c), rust.and_then(failed)).map_err(|stop| match stop {
        Stop::Fail(why) => Stop::Fail(format!("{what}: {why}")),
        other => other,
    })
}
