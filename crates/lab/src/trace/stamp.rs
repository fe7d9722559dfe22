//! Room: marks of our own in the kernel's trace: which call of a test comes next, and which one missed its deadline.
//! Not here: the embedded driver's events (`driver::embedded::marks`), reading marks (`trace::event::Mark`).
//! Facts: `trace_marker`: one write is one event, of any process; with tracing off it fails and changes nothing.

use std::fmt;
use std::fs::File;
use std::io::Write;
use std::path::Path;
use std::sync::Arc;

use trace::event::own_mark;

/// Bytes of the longest mark.
const LONGEST: usize = 192;

/// Where marks go, if anywhere.
#[derive(Clone, Debug, Default)]
pub(crate) struct Stamp {
    marker: Option<Arc<File>>,
}

impl Stamp {
    /// Into this folder's trace; without one, to where the environment or the user asked for marks. A folder that
    /// takes none is no reason not to measure.
    pub(crate) fn into(folder: Option<&Path>) -> Self {
        let folder = folder.map(Path::to_owned).or_else(driver::embedded::marks::requested);
        let open = |folder: &Path| File::options().write(true).open(folder.join("trace_marker")).ok();
        Self { marker: folder.as_deref().and_then(open).map(Arc::new) }
    }

    /// Writes one: `binderperf: VERB key=value ...`; whether it is in a trace. Without one this is one look at an
    /// option.
    #[inline]
    pub(crate) fn mark(&self, verb: &str, rest: fmt::Arguments<'_>) -> bool {
        self.marker.as_ref().is_some_and(|marker| write(marker, verb, rest))
    }
}

/// Without the heap, whose locks are no part of a test.
#[cold]
fn write(mut marker: &File, verb: &str, rest: fmt::Arguments<'_>) -> bool {
    let mut line = [0; LONGEST];
    let mut room = &mut line[..];
    // What is cut off would still be a mark; none is so long.
    let _ = write!(room, "{}", own_mark(verb, rest));
    let left = room.len();
    marker.write(&line[..LONGEST - left]).is_ok()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_mark_is_one_line_of_ours_and_nowhere_is_silent() {
        let folder = std::env::temp_dir().join(format!("binderperf-stamp-{}", std::process::id()));
        std::fs::create_dir_all(&folder).expect("a folder");
        std::fs::write(folder.join("trace_marker"), "").expect("a file");
        let stamp = Stamp::into(Some(&folder));
        assert!(stamp.mark("call", format_args!("pair={} class={} number={}", 1, "fifo", 4211)));
        let text = std::fs::read_to_string(folder.join("trace_marker")).expect("a file");
        assert_eq!(text, "binderperf: call pair=1 class=fifo number=4211");
        stamp.mark("call", format_args!("{}", "x".repeat(1000)));
        let length = std::fs::metadata(folder.join("trace_marker")).expect("a file").len();
        assert!(length as usize <= text.len() + LONGEST, "{length}");
        std::fs::remove_dir_all(&folder).expect("removed");
        assert!(!Stamp::into(Some(Path::new("/no/such/folder"))).mark("call", format_args!("x=1")));
    }
}
