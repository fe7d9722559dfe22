//! Payloads with objects: their builder, and calls that carry them, delivered or refused.

use abi::codes::{br, object};
use abi::layout::{BufferObject, FdArrayObject, FdObject, FlatBinderObject};
use abi::{Delivery, Handle, Payload, Return, TransactionFlags};
use zerocopy::{FromZeros, Immutable, IntoBytes};

use super::item::{Stop, Verdict, ensure, expect};
use super::kit::{Kit, Pair};
use super::raw_process::RawProcess;

/// Data, object offsets, and size of the scatter-gather area. The memory of PTR objects belongs to the test and
/// outlives the call.
#[derive(Clone, Debug, Default)]
pub(super) struct Draft {
    data: Vec<u8>,
    offsets: Vec<u64>,
    buffers_size: Option<u64>,
}

impl Draft {
    /// Starts with plain bytes.
    pub(super) fn with(bytes: &[u8]) -> Self {
        Self::default().bytes(bytes)
    }

    /// Starts with an object.
    pub(super) fn of(object: &(impl IntoBytes + Immutable)) -> Self {
        Self::default().object(object)
    }

    /// Appends plain bytes.
    pub(super) fn bytes(mut self, bytes: &[u8]) -> Self {
        self.data.extend_from_slice(bytes);
        self
    }

    /// Appends an object and its offset.
    pub(super) fn object(mut self, object: &(impl IntoBytes + Immutable)) -> Self {
        self.offsets.push(self.data.len() as u64);
        self.bytes(object.as_bytes())
    }

    /// Replaces the list of offsets.
    pub(super) fn listing(mut self, offsets: &[u64]) -> Self {
        self.offsets = offsets.to_vec();
        self
    }

    /// Sets the size of scatter-gather buffers, which selects the `_SG` commands.
    pub(super) fn room(mut self, bytes: u64) -> Self {
        self.buffers_size = Some(bytes);
        self
    }

    /// Removes the last bytes.
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

/// A node or handle object; `binder` is the ptr or the handle.
pub(super) fn flat_object(kind: u32, binder: u64, cookie: u64) -> FlatBinderObject {
    FlatBinderObject { kind, flags: 0x113, binder, cookie }
}

/// A strong handle as an object.
pub(super) fn handle_object(handle: Handle) -> FlatBinderObject {
    flat_object(object::HANDLE, handle.0.into(), 0)
}

/// A descriptor object.
pub(super) fn fd(number: u64) -> FdObject {
    FdObject { kind: object::FD, fd: number, ..FdObject::new_zeroed() }
}

/// A scatter-gather buffer without parent.
pub(super) fn ptr<T: IntoBytes + Immutable + ?Sized>(memory: &T) -> BufferObject {
    let bytes = memory.as_bytes();
    BufferObject {
        kind: object::PTR,
        buffer: bytes.as_ptr() as u64,
        length: bytes.len() as u64,
        ..BufferObject::new_zeroed()
    }
}

/// A scatter-gather buffer whose address is stored in the `parent`th listed object, at `offset`.
pub(super) fn child<T: IntoBytes + Immutable + ?Sized>(memory: &T, parent: u64, offset: u64) -> BufferObject {
    BufferObject { flags: object::BUFFER_FLAG_HAS_PARENT, parent, parent_offset: offset, ..ptr(memory) }
}

/// An array of `count` descriptors in the `parent`th listed buffer, from `offset` on.
pub(super) fn fda(count: u64, parent: u64, offset: u64) -> FdArrayObject {
    FdArrayObject { kind: object::FDA, pad: 0, num_fds: count, parent, parent_offset: offset }
}

impl Pair {
    /// Starts a call that the driver must accept; returns its delivery.
    pub(super) fn deliver(&self, draft: &Draft) -> Result<Delivery, Stop> {
        self.deliver_with(TransactionFlags::CALL, draft)
    }

    /// Starts a call with other flags; returns its delivery.
    pub(super) fn deliver_with(&self, flags: TransactionFlags, draft: &Draft) -> Result<Delivery, Stop> {
        start(&self.client, self.handle, flags, draft)?;
        self.server.read()?.call()
    }

    /// Finishes a call started by [`Self::deliver`]: frees its buffer and answers.
    pub(super) fn conclude(&self, call: &Delivery) -> Verdict {
        self.server.free(call)?;
        self.server.finish_call()?;
        let got = self.client.ending()?;
        self.client.free(&got.reply()?)?;
        self.client.acknowledge(&got)
    }

    /// Starts a call that the driver must refuse. The errno is the extended error's; `None`: no promise for that
    /// driver.
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

    /// Answers a call with this payload, which the driver accepts for the server.
    pub(super) fn answer_with(&self, flags: TransactionFlags, draft: &Draft) -> Verdict {
        let call = self.deliver_with(flags, &Draft::default())?;
        self.server.free(&call)?;
        self.server.reply(draft.payload())?;
        self.server.expect_read("the replier", "COMPLETE").map(drop)
    }
}

/// Starts a call that the driver must accept.
pub(super) fn start(process: &RawProcess, target: Handle, flags: TransactionFlags, draft: &Draft) -> Verdict {
    process.send(target, 1, flags, draft.payload())?;
    if flags.is_oneway() {
        let got = process.read()?;
        let complete = got.returns.contains(&Return::TransactionComplete);
        ensure(complete, || format!("expected the oneway call's COMPLETE, got {:?}", got.shape()))?;
        return process.acknowledge(&got);
    }
    // An accepted call's completion is deferred (contract WR-15), a refusal is not.
    match process.read_now()? {
        Some(got) => expect("what the caller of an accepted call reads", got.work().as_str(), ""),
        None => Ok(()),
    }
}

/// Starts a call that the driver must refuse with these errnos.
pub(super) fn refused(
    kit: &Kit,
    what: &str,
    process: &RawProcess,
    target: Handle,
    draft: &Draft,
    errnos: (&str, Option<&str>),
) -> Verdict {
    process.send(target, 1, TransactionFlags::CALL, draft.payload())?;
    expect_refusal(kit, what, process, errnos)
}

/// Fails unless the call just written was refused with this driver's errno; `None`: no promise.
pub(super) fn expect_refusal(
    kit: &Kit,
    what: &str,
    process: &RawProcess,
    (c, rust): (&str, Option<&str>),
) -> Verdict {
    expect(what, process.read_now()?.unwrap_or_default().work().as_str(), "FAILED_REPLY")?;
    if kit.is_rust() && rust.is_none() {
        return Ok(());
    }
    let failed = |errno| Some((br::FAILED_REPLY, errno));
    kit.expect_error(process, failed(c), rust.and_then(failed)).map_err(|stop| match stop {
        Stop::Fail(why) => Stop::Fail(format!("{what}: {why}")),
        other => other,
    })
}
