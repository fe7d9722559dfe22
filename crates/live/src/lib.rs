//! Live views of Binder: events, figures and faults as they come.
//!
//! - [`stream`]: live events of a private trace instance, as ended transactions.
//! - [`look`]: one look at all processes; [`when`]: conditions on it.
//! - [`reports`]: the driver's reports of failed calls over netlink.
//! - [`here`]: the driver's files at one moment, and what is to be explained of them.
//! - [`watch`]: stays and catches; [`known`]: what was caught already; [`catches`]: the folder of what a watch caught;
//!   [`action`]: what it does then.
//! - [`top`]: their figures by process, thread, method and pair; [`session`]: these interval by interval, with the driver's state
//!   and the cost of looking.
//!
//! Not here: what is wrong with a system (crate `explain`), the kernel's tracing (crate `ftrace`), what an event or a
//! transaction is (crate `trace`), screens.
#![forbid(unsafe_code)]

pub mod action;
pub mod catches;
pub mod findings;
pub mod here;
pub mod known;
pub mod look;
pub mod reports;
pub mod session;
pub mod stream;
pub mod top;
pub mod watch;
pub mod when;
