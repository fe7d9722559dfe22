//! The C driver's reports of failed transactions over generic netlink, and records of them: a line of JSON for each.
//! Not here: joining the group (`sys::netlink`, the command line).
//! Facts: `linux/android/binder_netlink.h` and `Documentation/netlink/specs/binder.yaml` of Linux 7.2, where the names are from; such
//! lines are also what the kernel's `ynl` writes with `--output-json`. A report has no errno and no number of the transaction.

use abi::codes::tf;
use serde::{Deserialize, Serialize};

use crate::system::{Id, Refusal, Sort};

/// Name of the family.
pub const REPORT_FAMILY: &str = "binder";
/// Name of its group of listeners.
pub const REPORT_GROUP: &str = "report";

/// `BINDER_CMD_REPORT`.
const COMMAND: u8 = 1;

/// A report.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub struct FailureReport {
    /// The driver's word, such as 29201.
    error: u32,
    context: String,
    from_pid: i32,
    from_tid: i32,
    /// Missing if the driver does not know the receiver.
    #[serde(skip_serializing_if = "Option::is_none", default)]
    to_pid: Option<i32>,
    #[serde(skip_serializing_if = "Option::is_none", default)]
    to_tid: Option<i32>,
    #[serde(default)]
    is_reply: bool,
    flags: u32,
    code: u32,
    /// Size of the data in bytes.
    data_size: u32,
}

/// A message of the group.
#[derive(Serialize, Deserialize)]
struct Message {
    name: String,
    msg: FailureReport,
}

impl FailureReport {
    /// Reads a message of the group: its command and attributes. `None` if it is no report.
    #[must_use]
    pub fn of<'b>(command: u8, attributes: impl Iterator<Item = (u16, &'b [u8])>) -> Option<Self> {
        let mut report = Self::default();
        for (kind, value) in attributes {
            let number = || Some(u32::from_ne_bytes(*value.first_chunk()?));
            let id = || i32::try_from(number()?).ok();
            match kind {
                1 => report.error = number()?,
                2 => report.context = String::from_utf8_lossy(value).trim_end_matches('\0').to_owned(),
                3 => report.from_pid = id()?,
                4 => report.from_tid = id()?,
                5 => report.to_pid = id(),
                6 => report.to_tid = id(),
                7 => report.is_reply = true,
                8 => report.flags = number()?,
                9 => report.code = number()?,
                10 => report.data_size = number()?,
                _ => {}
            }
        }
        (command == COMMAND && report.error != 0).then_some(report)
    }

    /// A line of a record, with its end.
    ///
    /// # Errors
    /// None in practice: all fields are numbers and texts.
    pub fn to_json_line(&self) -> Result<String, serde_json::Error> {
        let message = Message { name: REPORT_GROUP.to_owned(), msg: self.clone() };
        serde_json::to_string(&message).map(|json| json + "\n")
    }

    /// Reads a line of a record.
    pub(super) fn of_line(line: &str) -> Option<Self> {
        if !line.trim_start().starts_with('{') || !line.contains("from-pid") {
            return None;
        }
        let message: Message = serde_json::from_str(line.trim_end_matches(',')).ok()?;
        (message.name == REPORT_GROUP).then_some(message.msg)
    }

    pub(super) fn refusal(&self) -> Refusal {
        let sort = match (self.is_reply, self.flags & tf::ONE_WAY) {
            (true, _) => Sort::Reply,
            (false, 0) => Sort::Call,
            (false, _) => Sort::Oneway,
        };
        Refusal {
            sort,
            word: self.error,
            from: Id { pid: self.from_pid, tid: self.from_tid },
            to: self.to_pid.unwrap_or(0),
            // A reply's code means nothing.
            code: Some(self.code).filter(|_| !self.is_reply),
            ..Refusal::default()
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_message_of_the_driver_is_a_line_of_a_record() {
        let attributes: [(u16, &[u8]); 7] = [
            (1, &29201_u32.to_ne_bytes()),
            (2, b"binder\0"),
            (3, &41_u32.to_ne_bytes()),
            (4, &42_u32.to_ne_bytes()),
            (8, &0x11_u32.to_ne_bytes()),
            (9, &7_u32.to_ne_bytes()),
            (10, &100_u32.to_ne_bytes()),
        ];
        let report = FailureReport::of(1, attributes.into_iter()).expect("a report");
        let line = report.to_json_line().expect("JSON");
        assert_eq!(
            line,
            r#"{"name":"report","msg":{"error":29201,"context":"binder","from-pid":41,"from-tid":42,"is-reply":false,"flags":17,"code":7,"data-size":100}}"#
                .to_owned()
                + "\n"
        );
        assert_eq!(FailureReport::of_line(&line), Some(report.clone()));
        let refusal = report.refusal();
        assert_eq!((refusal.sort, refusal.word, refusal.errno, refusal.to), (Sort::Oneway, 29201, None, 0));
        assert_eq!(FailureReport::of(2, attributes.into_iter()), None, "another command");
        assert_eq!(FailureReport::of(1, [(1, &[1][..])].into_iter()), None, "cut");
        for line in ["{}", r#"{"name":"x","msg":{"from-pid":1}}"#, "from-pid"] {
            assert_eq!(FailureReport::of_line(line), None, "{line}");
        }
    }
}
