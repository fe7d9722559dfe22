//! The embedded driver's events of calls in memory of a recorder, which cost a call less than marks do.
//! Not here: the memory (`embedded::trace_events::records`), reading the recording (crate `trace`).
//! Facts: `include/linux/proc_ns.h`: the first namespaces have fixed numbers; `pid_namespaces(7)`, `time_namespaces(7)`.

use std::fmt::Write;
use std::fs;
use std::path::PathBuf;

use embedded::trace_events::records::{CallRecords, Taken};
use trace::file::TracefsText;

use super::pages::Shared;

/// The first pid and time namespace.
const FIRST: [(&str, &str); 2] = [("pid", "pid:[4026531836]"), ("time", "time:[4026531834]")];

/// Events of calls in memory; without memory, processes write marks.
#[derive(Debug)]
pub(super) struct Calls {
    records: Option<CallRecords>,
}

impl Calls {
    /// Makes the memory, if processes can stamp their events by this clock of the trace. In a pid or time namespace of
    /// their own, their thread numbers or times are not those of the kernel's events.
    pub(super) fn create(clock: &str) -> Self {
        let records = if is_first_everywhere() { CallRecords::create(clock).ok().flatten() } else { None };
        Self { records }
    }

    /// Path of the memory, for `EmbeddedContext::with_records`.
    pub(super) fn path(&self) -> Option<PathBuf> {
        self.records.as_ref().map(CallRecords::path)
    }

    pub(super) fn start(&self) {
        self.records.iter().for_each(CallRecords::start);
    }

    pub(super) fn stop(&self) {
        self.records.iter().for_each(CallRecords::stop);
    }

    /// Takes the events out of the memory.
    pub(super) fn take(&mut self) -> Taken {
        self.records.as_mut().map(CallRecords::take).unwrap_or_default()
    }
}

/// Writes events into a recording.
pub(super) fn write(taken: &Taken, to: &Shared) {
    if *taken != Taken::default() {
        to.write(|writer| writer.text(TracefsText::ProcessMarks, 0, lines(taken).as_bytes()));
    }
}

fn lines(taken: &Taken) -> String {
    let mut lines = String::new();
    for gap in &taken.gaps {
        let _ = writeln!(lines, "{} {} lost {}", gap.ts, gap.cpu, gap.count);
    }
    for event in &taken.events {
        let _ = writeln!(lines, "{} {} {} {} {}", event.ts, event.cpu, event.tid, event.pid, event.text);
    }
    lines
}

/// Whether this process is in the first pid and time namespace. A kernel without one of them has no other either.
fn is_first_everywhere() -> bool {
    FIRST.iter().all(|(file, first)| {
        fs::read_link(format!("/proc/self/ns/{file}")).map_or(true, |own| own.as_os_str() == *first)
    })
}

#[cfg(test)]
mod tests {
    use embedded::trace_events::records::{Gap, RecordedCall};

    use super::*;

    #[test]
    fn only_clocks_that_a_process_reads_are_taken() {
        for (clock, want) in [("boot", is_first_everywhere()), ("global", false), ("local", false)] {
            assert_eq!(Calls::create(clock).path().is_some(), want, "{clock}");
        }
    }

    #[test]
    fn a_line_is_an_event_or_a_gap() {
        let text = "binder_transaction_received: transaction=5".to_owned();
        let events = vec![RecordedCall { ts: 9, cpu: 1, pid: 6, tid: 7, text }];
        let taken = Taken { events, gaps: vec![Gap { ts: 9, cpu: 1, count: 3 }] };
        let want = "9 1 lost 3\n9 1 7 6 binder_transaction_received: transaction=5\n";
        assert_eq!(lines(&taken), want);
    }
}
