//! Room: recording the driver's tracepoints, or the marks that the embedded driver writes in place of them, in
//! a tracefs instance of the test's own, which hinders no other user of tracing and is removed afterwards.
//! Not here: what must be recorded (`tracepoints`).
//! Facts: `Documentation/trace/ftrace.rst` (instances, `trace_clock`), `Documentation/trace/events.rst`.

use std::fs;
use std::io;
use std::path::{Path, PathBuf};

use super::account::Fields;
use super::evidence::Kind;
use super::item::{Stop, Verdict, done};
use super::kit::Kit;
use crate::trace::tracefs::Tracefs;

/// What the kernel calls a mark.
const MARK: &str = "tracing_mark_write";

/// One recorded event.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Event {
    /// The thread in which it fired.
    pub(super) tid: i32,
    /// Its name, without the group.
    pub(super) name: String,
    /// What it prints.
    pub(super) text: String,
}

impl Event {
    /// Reads a line of `trace`: `COMM-TID [CPU] FLAGS TIME: NAME: TEXT`. A mark is the event that it tells of.
    fn read(line: &str) -> Option<Self> {
        let (who, rest) = line.split_once('[')?;
        let (_, tid) = who.trim().rsplit_once('-')?;
        let mut parts = rest.splitn(3, ": ");
        let (_, name, text) = (parts.next()?, parts.next()?, parts.next().unwrap_or(""));
        let (name, text) = if name == MARK { text.split_once(": ")? } else { (name, text) };
        Some(Self { tid: tid.parse().ok()?, name: name.trim().to_owned(), text: text.trim().to_owned() })
    }

    /// What it prints, by a template.
    pub(super) fn fields(&self, template: &str) -> Result<Fields, Stop> {
        let other = || Stop::Fail(format!("{} prints {:?}, expected as {template:?}", self.name, self.text));
        Fields::read(template, &self.text).ok_or_else(other)
    }
}

/// The group of the driver's events; `None`: it has marks in place of them.
fn group(kit: &Kit) -> Option<&'static str> {
    match kit.kind() {
        Kind::C => Some("binder"),
        Kind::Rust => Some("rust_binder"),
        Kind::Embedded => None,
    }
}

/// Where the driver's events are.
fn events(kit: &Kit) -> Result<PathBuf, Stop> {
    let group = group(kit).ok_or_else(|| Stop::Skip("the embedded driver has no tracepoints".into()))?;
    Ok(place()?.join("events").join(group))
}

/// Where events and instances are.
fn place() -> Result<PathBuf, Stop> {
    match Tracefs::find() {
        Ok(tracefs) => Ok(tracefs.root().to_owned()),
        Err(trouble) => Err(Stop::Skip(trouble.to_string())),
    }
}

/// The names of the driver's tracepoints, sorted.
pub(super) fn names(kit: &Kit) -> Result<Vec<String>, Stop> {
    let folder = events(kit)?;
    let entries = done(&format!("listing {}", folder.display()), fs::read_dir(folder))?;
    let folders = entries.flatten().filter(|entry| entry.path().is_dir());
    let mut names: Vec<String> =
        folders.map(|entry| entry.file_name().to_string_lossy().into_owned()).collect();
    names.sort_unstable();
    Ok(names)
}

/// The names of a tracepoint's own fields, in order.
pub(super) fn layout(kit: &Kit, event: &str) -> Result<Vec<String>, Stop> {
    let path = events(kit)?.join(event).join("format");
    let text = done(&format!("reading the format of {event}"), fs::read_to_string(path))?;
    // `field:TYPE NAME;`, where an array's size stands behind its name.
    let fields = text.lines().filter_map(|line| line.trim().strip_prefix("field:")?.split(';').next());
    let names = fields.filter_map(|field| field.rsplit(' ').next()?.split('[').next().map(str::to_owned));
    Ok(names.filter(|name| !name.starts_with("common_")).collect())
}

/// An instance that records the driver's tracepoints; removed when dropped.
pub(super) struct Recorder {
    folder: PathBuf,
}

const PREFIX: &str = "binderperf-conformance-";

impl Recorder {
    /// Records from now on; skips the test where tracing is not to be had.
    pub(super) fn start(kit: &Kit) -> Result<Self, Stop> {
        let instances = place()?.join("instances");
        sweep(&instances);
        let folder = instances.join(format!("{PREFIX}{}", std::process::id()));
        match fs::create_dir(&folder) {
            Err(error) if error.kind() == io::ErrorKind::PermissionDenied => {
                return Err(Stop::Skip("making an instance of tracefs needs root".into()));
            }
            made => done("making an instance of tracefs", made)?,
        }
        let recorder = Self { folder };
        // A count, not a time: events of several CPUs are in order.
        recorder.set("trace_clock", "counter")?;
        if let Some(group) = group(kit) {
            recorder.set(&format!("events/{group}/enable"), "1")?;
        }
        recorder.set("tracing_on", "1")?;
        Ok(recorder)
    }

    /// On a driver that writes marks, a kit with parties that do so; they must be gone before this is. `None`:
    /// any kit's are recorded.
    pub(super) fn kit(&self, kit: &Kit) -> Option<Kit> {
        Some(kit.on(kit.subject.traced(&self.folder)?))
    }

    fn set(&self, file: &str, value: &str) -> Verdict {
        done(&format!("writing {value} to {file} of tracefs"), fs::write(self.folder.join(file), value))
    }

    /// Forgets what was recorded.
    pub(super) fn restart(&self) -> Verdict {
        self.set("trace", "")
    }

    /// The events of all threads so far.
    pub(super) fn events(&self) -> Result<Vec<Event>, Stop> {
        let text = done("reading the trace", fs::read_to_string(self.folder.join("trace")))?;
        Ok(text.lines().filter(|line| !line.starts_with('#')).filter_map(Event::read).collect())
    }

    /// The events of one thread so far.
    pub(super) fn events_of(&self, tid: i32) -> Result<Vec<Event>, Stop> {
        let mut events = self.events()?;
        events.retain(|event| event.tid == tid);
        Ok(events)
    }
}

impl Drop for Recorder {
    fn drop(&mut self) {
        // What cannot be removed now, a later test's sweep removes.
        let _ = fs::remove_dir(&self.folder);
    }
}

/// Removes instances that tests left behind which were killed.
fn sweep(instances: &Path) {
    for entry in fs::read_dir(instances).into_iter().flatten().flatten() {
        let name = entry.file_name().to_string_lossy().into_owned();
        let dead = name.strip_prefix(PREFIX).is_some_and(|pid| !Path::new("/proc").join(pid).exists());
        if dead {
            let _ = fs::remove_dir(entry.path());
        }
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
