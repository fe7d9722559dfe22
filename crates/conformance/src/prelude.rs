//! Imports of every section: the suite's kit, and binder's names from the crates below it.

pub(crate) use abi::codes::{bc, br, flat, ioctl, object, tf};
pub(crate) use abi::layout::{
    BufferObject, ExtendedError, FdObject, FlatBinderObject, FreezeInfo, NodeInfoForRef, TransactionData,
};
pub(crate) use abi::{
    BufferAddress, CommandWord, Commands, Cookie, Delivery, Handle, NodePtr, Payload, Return, ReturnWord,
    TransactionFlags,
};
pub(crate) use driver::connection::default_map_size;
pub(crate) use driver::kernel_state::StateFile;
pub(crate) use driver::{Exchange, OpenOptions};
pub(crate) use embedded::{EmbeddedContext, Inherit};
pub(crate) use host::Release;
pub(crate) use host::evidence::Kind;
pub(crate) use zerocopy::{FromBytes, FromZeros, IntoBytes};

pub(crate) use crate::check::{
    PATIENCE, Stop, Verdict, done, ensure, errno, expect, expect_errno, patiently, required, skip_unless,
    soon,
};
pub(crate) use crate::item::items;
pub(crate) use crate::kit::{Kit, Pair, expect_refused, finish};
pub(crate) use crate::payload::{Draft, child, fd, fda, flat_object, handle_object, ptr};
pub(crate) use crate::raw_process::{
    Got, Node, PLAIN_CALL, ROOM, RawProcess, SILENCE, expect_work, plain, zeroes,
};
pub(crate) use crate::remote_process::RemoteProcess;
pub(crate) use crate::state_text::{Block, Fields, block_with};
pub(crate) use crate::worker::{Hog, Task, Worker};
