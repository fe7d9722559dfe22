//! The Binder UAPI as types. Bytes <-> values, no I/O, no policy, no allocation per decode.
//!
//! - [`ids`]: numbers that must not be swapped (handle, cookie, node pointer).
//! - [`codes`]: ioctl, `BC_*` and `BR_*` words, object types and flag bits.
//! - [`layout`]: every structure of `<linux/android/binder.h>` and `binderfs.h`, byte for byte.
//! - [`command`]: encodes a stream of `BC_*` commands.
//! - [`returns`]: decodes a stream of `BR_*` returns.
//!
//! Facts: UAPI headers `linux/android/binder.h` and `binderfs.h` (Linux 7.2), protocol version 8,
//! 64-bit layout on every architecture.
#![forbid(unsafe_code)]

pub mod codes;
pub mod command;
pub mod ids;
pub mod layout;
pub mod returns;
pub mod stream;

pub use codes::{CommandWord, ReturnWord};
pub use command::{Commands, Payload, TransactionFlags};
pub use ids::{BufferAddress, Cookie, Handle, NodePtr};
pub use returns::{DecodeError, Delivery, Return, Returns};

/// The protocol version that every 64-bit kernel answers to `BINDER_VERSION`.
pub const PROTOCOL_VERSION: i32 = 8;
