//! The verdict on a latency test as an exit status, with its remarks on stderr.
//! Not here: judging (`bench::latency::verdict`).

use bench::latency::verdict::{Remark, Status};

use super::super::{complain, exit, tell};

/// Prints a remark.
pub(super) fn print(remark: Remark) {
    match remark {
        Remark::Note(text) => tell(&text),
        Remark::Complaint(text) => complain(text),
    }
}

/// The exit status.
pub(super) fn status(status: Status) -> u8 {
    match status {
        Status::Fine => exit::FINE,
        Status::Failed => exit::FAILED,
        Status::Unable => exit::UNABLE,
        Status::Internal => exit::INTERNAL,
    }
}
