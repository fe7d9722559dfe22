//! Records the driver's tracepoints, or the embedded driver's trace events, in a private tracefs instance, which
//! disturbs no other user of tracing and is removed afterwards.
//! Not here: the expected events (`tracepoints`).
//! Facts: `Documentation/trace/ftrace.rst` (instances, `trace_clock`), `Documentation/trace/events.rst`.

use std::fs;
use std::path::PathBuf;

use super::check::{Stop, Verdict, done, required};
use super::kit::Kit;
use super::state_text::Fields;
use super::subject::Kind;
use ftrace::instances::Instance;
use ftrace::tracefs::{TraceError, Tracefs};

/// The kernel's name of an event written through `trace_marker`.
const MARK: &str = "tracing_mark_write";

/// One recorded event.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Event {
    /// The thread.
    pub(super) tid: i32,
    /// The name without the group.
    pub(super) name: String,
    /// The printed text.
    pub(super) text: String,
}

impl Event {
    /// Parses a line of `trace`: `COMM-TID [CPU] FLAGS TIME: NAME: TEXT`. A marker event takes name and text from its
    /// content.
    fn read(line: &str) -> Option<Self> {
        let (who, rest) = line.split_once('[')?;
        let (_, tid) = who.trim().rsplit_once('-')?;
        let mut parts = rest.splitn(3, ": ");
        let (_, name, text) = (parts.next()?, parts.next()?, parts.next().unwrap_or(""));
        let (name, text) = if name == MARK { text.split_once(": ")? } else { (name, text) };
        Some(Self { tid: tid.parse().ok()?, name: name.trim().to_owned(), text: text.trim().to_owned() })
    }

    /// The values in the text, by a template.
    pub(super) fn fields(&self, template: &str) -> Result<Fields, Stop> {
        let other = || format!("{} prints {:?}, expected as {template:?}", self.name, self.text);
        required(Fields::read(template, &self.text), other)
    }
}

/// The driver's event group; `None`: it writes marker events.
fn group(kit: &Kit) -> Option<&'static str> {
    match kit.kind() {
        Kind::C => Some("binder"),
        Kind::Rust => Some("rust_binder"),
        Kind::Embedded => None,
    }
}

/// The folder of the driver's events.
fn events(kit: &Kit) -> Result<PathBuf, Stop> {
    let group = group(kit).ok_or_else(|| Stop::Skip("the embedded driver has no tracepoints".into()))?;
    Ok(Tracefs::find().map_err(stop)?.root().join("events").join(group))
}

/// The driver's tracepoints, sorted.
pub(super) fn names(kit: &Kit) -> Result<Vec<String>, Stop> {
    let folder = events(kit)?;
    let entries = done(&format!("listing {}", folder.display()), fs::read_dir(folder))?;
    let folders = entries.flatten().filter(|entry| entry.path().is_dir());
    let mut names: Vec<String> =
        folders.map(|entry| entry.file_name().to_string_lossy().into_owned()).collect();
    names.sort_unstable();
    Ok(names)
}

/// The names of a tracepoint's fields in order, with blanks between them.
pub(super) fn layout(kit: &Kit, event: &str) -> Result<String, Stop> {
    let path = events(kit)?.join(event).join("format");
    let text = done(&format!("reading the format of {event}"), fs::read_to_string(path))?;
    // `field:TYPE NAME;`; an array's size follows the name.
    let fields = text.lines().filter_map(|line| line.trim().strip_prefix("field:")?.split(';').next());
    let names = fields.filter_map(|field| field.rsplit(' ').next()?.split('[').next());
    Ok(names.filter(|name| !name.starts_with("common_")).collect::<Vec<_>>().join(" "))
}

/// A tracefs instance that records the driver's events; removed on drop.
pub(super) struct Recorder {
    instance: Instance,
}

/// Fails a test, or skips it where this user may not trace.
fn stop(error: TraceError) -> Stop {
    match error {
        TraceError::Denied { .. } | TraceError::Missing { .. } => Stop::Skip(error.to_string()),
        other => Stop::Fail(other.to_string()),
    }
}

impl Recorder {
    /// Starts recording; skips the test if tracing is not available.
    pub(super) fn start(kit: &Kit) -> Result<Self, Stop> {
        if !kit.is_embedded() {
            names(kit)?;
        }
        let instance = Instance::new(&Tracefs::find().map_err(stop)?).map_err(stop)?;
        let recorder = Self { instance };
        // A counter, so that events of several CPUs are in order.
        recorder.set("trace_clock", "counter")?;
        if let Some(group) = group(kit) {
            recorder.set(&format!("events/{group}/enable"), "1")?;
        }
        recorder.set("tracing_on", "1")?;
        Ok(recorder)
    }

    /// A kit whose processes write marker events into this instance, if the driver has no tracepoints, which are recorded
    /// for any kit. Drop it before the recorder.
    pub(super) fn kit(&self, kit: &Kit) -> Kit {
        let subject = kit.subject.traced(self.instance.buffer().folder());
        kit.on(subject.unwrap_or_else(|| kit.subject.clone()))
    }

    fn set(&self, file: &str, value: &str) -> Verdict {
        self.instance.buffer().write(file, value).map_err(stop)
    }

    /// Clears the recorded events.
    pub(super) fn restart(&self) -> Verdict {
        self.instance.buffer().clear().map_err(stop)
    }

    /// All threads' events so far.
    pub(super) fn events(&self) -> Result<Vec<Event>, Stop> {
        let text = self.instance.buffer().read("trace").map_err(stop)?;
        Ok(text.lines().filter(|line| !line.starts_with('#')).filter_map(Event::read).collect())
    }

    /// One thread's events so far.
    pub(super) fn events_of(&self, tid: i32) -> Result<Vec<Event>, Stop> {
        let mut events = self.events()?;
        events.retain(|event| event.tid == tid);
        Ok(events)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_line_of_a_trace_is_read() {
        let line = "   my-program-43      [001] ..... 15: binder_return: cmd=0x7206 BR_TRANSACTION_COMPLETE";
        let event = Event::read(line).expect("a line");
        assert_eq!((event.tid, event.name.as_str()), (43, "binder_return"));
        assert_eq!(event.fields("cmd=0x{cmd} {name}").expect("as printed").hex("cmd"), Ok(0x7206));
        assert!(event.fields("cmd={cmd}").is_err());
        let line = "   my-program-43      [001] ..... 15: tracing_mark_write: binder_read_done: ret=-11";
        let event = Event::read(line).expect("a line");
        assert_eq!((event.name.as_str(), event.text.as_str()), ("binder_read_done", "ret=-11"));
        assert_eq!(Event::read("no event"), None);
    }
}
