//! Records in the log of a LAVA job: how a test attaches them, how they are found there, and what the log says of the job.
//! Not here: the signals that make LAVA's test cases (`formats::convert`).
//!
//! LAVA keeps no files of a device, only the text that it printed. A record is a few hundred lines there, each with its
//! number, `binderperf-record NAME 3/17 BASE64`: gzip's bytes, whose checksum tells a torn line.

mod attach;
mod log;

pub use attach::attachment;
pub use log::{Attached, JobLog, LogError};

/// First word of an attached record's lines.
const MARK: &str = "binderperf-record ";
/// Beginning of the line that makes a test case.
pub(crate) const TEST_CASE: &str = "<LAVA_SIGNAL_TESTCASE TEST_CASE_ID=";

/// A regular expression for LAVA's monitors, which know no signals: the lines that `formats::convert` writes for LAVA. The
/// units are empty where a case has none, because LAVA's database refuses a null.
pub const PATTERN: &str = "<LAVA_SIGNAL_TESTCASE TEST_CASE_ID=(?P<test_case_id>[^ >]+) RESULT=(?P<result>pass|fail|skip|unknown)\
                           (?: UNITS=)?(?P<units>[^ >]*)(?: MEASUREMENT=(?P<measurement>[^ >]+))?>";

#[cfg(test)]
mod tests;
