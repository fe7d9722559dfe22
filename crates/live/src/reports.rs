//! Reports of failed calls that the C driver sends over netlink, as they come; the newest are kept.
//! Not here: the form of a report (`explain`), netlink (`sys::netlink`).

use std::collections::VecDeque;

use explain::{FailureReport, REPORT_FAMILY, REPORT_GROUP};
use sys::netlink::{self, Listener};

/// The words for reports that were dropped.
pub const LOST: &str =
    "the kernel dropped some of the driver's reports over netlink: there were too many at once";

/// Maximum number of reports that are kept, about 400 KB.
const MOST: usize = 2000;

/// The driver's reports, from when it was made on.
#[derive(Debug)]
pub struct Reports {
    listener: Listener,
    /// The newest, a line of a record each.
    lines: VecDeque<String>,
}

/// News of a reading.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct News {
    /// Number of new reports.
    pub reports: u64,
    /// True if the kernel dropped some, since there were too many at once.
    pub lost: bool,
}

impl Reports {
    /// Joins the driver's group of listeners.
    ///
    /// # Errors
    /// The driver has none, or netlink does not work here: the text says which.
    pub fn join() -> Result<Self, String> {
        let listener = Listener::join(REPORT_FAMILY, REPORT_GROUP).map_err(|error| {
            let why = sys::errno::describe(&error);
            format!(
                "the driver's reports over netlink are not heard: {why}; the C driver sends them from Linux 6.18 on, to the first \
                 network namespace"
            )
        })?;
        Ok(Self { listener, lines: VecDeque::new() })
    }

    /// Takes what came since the last time, without waiting.
    pub fn news(&mut self) -> News {
        let mut news = News::default();
        loop {
            match self.listener.next() {
                Ok(Some((command, attributes))) => {
                    let report = FailureReport::of(command, netlink::attributes(&attributes));
                    let Some(line) = report.and_then(|report| report.to_json_line().ok()) else { continue };
                    news.reports += 1;
                    self.lines.push_back(line);
                    let much = self.lines.len().saturating_sub(MOST);
                    self.lines.drain(..much);
                }
                Ok(None) => return news,
                // ENOBUFS: the next ones follow.
                Err(_) => {
                    news.lost = true;
                    return news;
                }
            }
        }
    }

    /// The newest reports as a record, one a line: this many of them, or all that are kept.
    #[must_use]
    pub fn newest(&self, count: usize) -> String {
        let older = self.lines.len().saturating_sub(count);
        self.lines.iter().skip(older).map(String::as_str).collect()
    }
}
