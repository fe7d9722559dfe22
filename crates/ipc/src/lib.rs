//! Room: the runtime on any [`driver::Connection`].
//!
//! The core knows transactions, nodes, handles, threads and deaths, whatever they carry:
//! - [`Process`]: opening a context, its pool, its manager; [`serve`]: what a node runs.
//! - [`Node`], [`Proxy`], [`Binder`]: own objects, others' objects, either; [`DeathLink`].
//! - [`NodeOptions`]: how urgently an object wants to be served, and what calls to it may carry.
//! - [`received`]: a delivered buffer; [`error`], [`StatusCode`], [`Taken`]: outcomes.
//!
//! Inside: `process` over `looper` (the pool's threads) over `runtime` (what every thread does with
//! the driver) over `thread` (one thread's buffers); `call` has the states of a transaction, `own` tells
//! nested ones apart, `node`,
//! `proxy` and `death` the tables, `background` what a thread does about itself. The flavour
//! [`binder`] adds AIDL's parcels, headers and service manager, the flavour [`hwbinder`] adds HIDL's.
//! Deliberately absent: which driver is in use, statistics.
//!
//! ```no_run
//! use driver::locate::{self, Wanted};
//! use ipc::binder::{Incoming, Object, Parcel, Status};
//! use ipc::{Process, ProcessOptions};
//! use ipc::binder::manager::Services;
//!
//! struct Echo;
//!
//! impl Object for Echo {
//!     fn descriptor(&self) -> &str {
//!         "example.IEcho"
//!     }
//!
//!     fn on_transact(&self, call: &mut Incoming<'_>, reply: &mut Parcel) -> Result<(), Status> {
//!         match call.code() {
//!             1 => reply.write_byte_slice(call.read_byte_slice()?),
//!             _ => return Err(Status::UNKNOWN_TRANSACTION),
//!         }
//!         Ok(())
//!     }
//! }
//!
//! # fn main() -> Result<(), Box<dyn std::error::Error>> {
//! // The service:
//! let context = locate::find(&Wanted::default(), "binder")?.context;
//! let process = Process::open(&context, ProcessOptions::default())?;
//! Services::of(&process)?.add("echo", &process.publish(Echo))?;
//! process.join_thread_pool()?;
//!
//! // The client, in another process:
//! let process = Process::open(&context, ProcessOptions::default())?;
//! let echo = Services::of(&process)?.get("echo")?;
//! let mut request = echo.request("example.IEcho");
//! request.write_byte_slice(b"hello");
//! let reply = echo.call(1, request)?;
//! assert_eq!(reply.reader().read_byte_slice()?, b"hello");
//! # Ok(())
//! # }
//! ```
#![forbid(unsafe_code)]

mod background;
pub mod binder;
mod call;
mod death;
pub mod error;
pub mod hwbinder;
mod looper;
mod node;
mod own;
mod process;
mod proxy;
pub mod received;
mod release;
mod runtime;
mod scheduling;
pub mod serve;
mod status_code;
mod target;
mod thread;

pub use background::{BackgroundGroup, BackgroundScheduling, GroupError};
pub use call::Taken;
pub use death::DeathLink;
pub use error::{Refusal, TransactError};
pub use node::Node;
pub use process::{Process, ProcessError, ProcessOptions};
pub use proxy::Proxy;
pub use release::Release;
pub use runtime::Outcome;
pub use scheduling::{Minimum, Nice, NodeOptions, OutOfRange, RtPriority};
pub use status_code::StatusCode;
pub use target::Binder;
