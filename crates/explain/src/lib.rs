//! Explains why Binder calls failed or never came back: from kernel logs, the driver's state files, logcat, Android bug reports
//! and traces, in any mix.
//! Not here: any OS access but reading what it is given; finding the driver's files (`driver::kernel_state`), rebuilding calls
//! from traces (`trace`).

#![forbid(unsafe_code)]

mod decode;
mod find;
mod finding;
mod load;
mod page;
mod process_name;
mod read;
mod source;
mod system;

pub use decode::{Explanation, explanations};
pub use finding::{Evidence, Finding, Grade, Kind, Report, Wait};
pub use load::{Load, OldCall};
pub use page::Part;
pub use process_name::process_name;
pub use read::{Explainer, FailureReport, OpenError, REPORT_FAMILY, REPORT_GROUP};
pub use source::DriverSource;
