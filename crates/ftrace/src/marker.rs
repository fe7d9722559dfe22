//! binderperf's own events in the kernel trace: the next call of a test, and deadline misses.
//! Not here: the embedded driver's events (`embedded::trace_events`), reading these events (`trace::event::Mark`).
//! Facts: each write to `trace_marker` is one event; with tracing off the write fails and has no effect.

use std::fmt;
use std::fs::File;
use std::io::Write;
use std::path::Path;
use std::sync::Arc;

use trace::event::own_mark;

/// Longest event text, in bytes.
const LONGEST: usize = 192;

/// An open `trace_marker` file, if there is one.
#[derive(Clone, Debug, Default)]
pub struct Marker {
    marker: Option<Arc<File>>,
}

impl Marker {
    /// Opens the marker of the folder that is set for marks, else of this folder, else of the one that the environment or
    /// user requested. A missing marker does not prevent the measurement.
    pub fn into(folder: Option<&Path>) -> Self {
        let given = || folder.map(Path::to_owned).or_else(embedded::trace_events::requested);
        let folder = embedded::trace_events::marks().or_else(given);
        let open = |folder: &Path| File::options().write(true).open(folder.join("trace_marker")).ok();
        Self { marker: folder.as_deref().and_then(open).map(Arc::new) }
    }

    /// Writes one event, `binderperf: VERB key=value ...`; true if a trace has it. Without a marker the cost is one
    /// branch.
    #[inline]
    pub fn mark(&self, verb: &str, rest: fmt::Arguments<'_>) -> bool {
        self.marker.as_ref().is_some_and(|marker| write(marker, verb, rest))
    }
}

/// Formats on the stack: heap locks must not disturb the test.
#[cold]
fn write(mut marker: &File, verb: &str, rest: fmt::Arguments<'_>) -> bool {
    let mut line = [0; LONGEST];
    let mut room = &mut line[..];
    // A longer text is cut off; none is that long.
    let _ = write!(room, "{}", own_mark(verb, rest));
    let left = room.len();
    marker.write(&line[..LONGEST - left]).is_ok()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::fixtures::Folder;

    #[test]
    fn a_mark_is_one_line_of_ours_and_nowhere_is_silent() {
        let folder = Folder::new("marker", &[("trace_marker", "")]);
        let marker = Marker::into(Some(&folder));
        assert!(marker.mark("call", format_args!("pair={} class={} number={}", 1, "fifo", 4211)));
        let text = folder.says("trace_marker");
        assert_eq!(text, "binderperf: call pair=1 class=fifo number=4211");
        marker.mark("call", format_args!("{}", "x".repeat(1000)));
        let length = std::fs::metadata(folder.join("trace_marker")).expect("a file").len();
        assert!(length as usize <= text.len() + LONGEST, "{length}");
        assert!(!Marker::into(Some(Path::new("/no/such/folder"))).mark("call", format_args!("x=1")));
    }
}
