//! Recording in a private trace instance, which disturbs no other user of tracing and is removed afterwards: from a
//! plan to a file and its event counts.
//! Not here: the file format (crate `trace`), the shared buffer (`atrace`).
//!
//! - [`work`]: the command or time to record; [`pages`]: from the kernel into the file.
//! - [`flight`]: the newest events only, saved whenever asked; [`calls`]: its events of the embedded driver.
//! - [`live`]: events that are read while they come, and by whom they are kept.
//! - [`perfetto`]: by Perfetto's recorder instead.
//!
//! A killed recorder leaves its instance; the program's next command removes it (`instances`).

mod calls;
pub mod flight;
pub mod live;
mod pages;
pub mod perfetto;
pub mod work;

use std::fs::File;
use std::io::{self, Write};
use std::path::{Path, PathBuf};
use std::thread;
use std::time::{Duration, Instant};

use sys::draft::{Draft, Kept};
use trace::file::{Head, TracefsText, Writer};

use super::atrace::use_of;
use super::categories::{self, Category};
use super::instances::Instance;
use super::tracefs::{Buffer, TraceError, Tracefs, check_size, read_whole};
use pages::{Pipe, Shared};
use work::{Ended, Work};

/// Option of an instance: marks that are written into the shared buffer come into this one, too.
const COPY_MARKS: &str = "options/copy_trace_marker";

/// How long to retry removing an instance that another process keeps busy.
const LET_GO: Duration = Duration::from_secs(2);

/// Events and buffers of a recording.
#[derive(Clone, Debug)]
pub struct Plan {
    /// Categories of events.
    pub categories: Vec<&'static Category>,
    /// Buffer size per CPU, in KB.
    pub buffer_kb: u64,
    /// Keep only the newest events in the buffers and read them at the end; otherwise read all events as they arrive.
    pub circular: bool,
    /// The output file.
    pub output: PathBuf,
    /// The command or time to record.
    pub work: Work,
    /// Write the command's marks into the shared buffer, which copies them into this recording.
    pub shared_marks: bool,
}

/// Receives progress.
pub trait Observer {
    /// The recording starts; notes about categories and other tracing users.
    fn begins(&mut self, notes: &[String]);
    /// Bytes written after this time.
    fn advanced(&mut self, elapsed: Duration, bytes: u64);
}

/// Result of a recording.
#[derive(Clone, Debug)]
pub struct Summary {
    /// Size of the file in bytes.
    pub bytes: u64,
    /// Event counts per CPU.
    pub cpus: Vec<Counts>,
    /// The clock's name.
    pub clock: String,
    /// How the command or time ended.
    pub ended: Ended,
    /// Whether tracing was stopped earlier, as a latency test does at a miss.
    pub stopped_early: bool,
    /// Settings that could not be restored, with the reasons.
    pub left: Vec<String>,
}

impl Summary {
    /// Lines about a recording in a file; `circular`: older events were to be overwritten.
    #[must_use]
    pub fn in_words(&self, output: &Path, circular: bool) -> String {
        let mut text = String::new();
        if self.stopped_early {
            text += "recording was stopped before the end, as by a miss\n";
        }
        let events: u64 = self.cpus.iter().map(|cpu| cpu.events).sum();
        let bytes = self.bytes;
        text += &format!("{}: {events} events, {bytes} bytes, clock {}\n", output.display(), self.clock);
        for cpu in &self.cpus {
            let lost = cpu.overwritten + cpu.dropped;
            let lost = match (lost, circular) {
                (0, _) => "none lost".to_owned(),
                (_, true) => format!("{} older ones overwritten, {} lost", cpu.overwritten, cpu.dropped),
                (_, false) => format!("{lost} LOST: take larger buffers (-b) or fewer categories"),
            };
            text += &format!("cpu{}: {} events, {} bytes, {lost}\n", cpu.cpu, cpu.events, cpu.bytes);
        }
        for left in &self.left {
            text += &format!("{left}\n");
        }
        text
    }
}

/// Event counts of one CPU.
/// Facts: `per_cpu/cpuN/stats`, `tracing_stats_read` of `kernel/trace/trace.c`.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Counts {
    /// CPU number.
    pub cpu: u32,
    /// Events in the file.
    pub events: u64,
    /// Events overwritten before they were read.
    pub overwritten: u64,
    /// Events dropped because the buffer was full.
    pub dropped: u64,
    /// Bytes of pages in the file.
    pub bytes: u64,
}

impl Counts {
    /// Parses a `stats` file; missing lines count as 0.
    #[must_use]
    pub fn read(cpu: u32, stats: &str, bytes: u64) -> Self {
        let number = |name: &str| {
            let line = stats.lines().find_map(|line| line.strip_prefix(name)?.strip_prefix(':'));
            line.and_then(|value| value.trim().parse::<u64>().ok()).unwrap_or(0)
        };
        Self {
            cpu,
            events: number("read events"),
            overwritten: number("overrun"),
            dropped: number("dropped events") + number("commit overrun"),
            bytes,
        }
    }
}

/// Records. SIGINT and SIGTERM end the recording and keep its events. Until then they are in a file beside the output
/// ([`sys::draft::PARTIAL`]), where they stay if this process is killed; an older output is replaced at the end.
///
/// # Errors
/// [`TraceError::Missing`], [`TraceError::Denied`]: tracing is not available. [`TraceError::Usage`]: no such command,
/// or the buffer is too large. [`TraceError::Output`]: the file could not be written. [`TraceError::Refused`]:
/// another failure. No instance is left behind.
/// What was recorded until an error stays, beside an older output.
pub fn record(plan: &Plan, observer: &mut dyn Observer) -> Result<Summary, TraceError> {
    let tracefs = Tracefs::find()?;
    let mut notes = Vec::from_iter(others(&tracefs));
    check_size(plan.buffer_kb, tracefs.global().cpus()?.len())?;
    sys::stop_signal::catch().map_err(TraceError::refused("catching signals"))?;
    let output = TraceError::output(&plan.output);
    let mut draft = Draft::new(&plan.output).map_err(&output)?;
    let log = std::path::absolute(&plan.output).map_err(&output)?;
    let instance = Instance::new(&tracefs)?;
    let buffer = instance.buffer();
    let found = categories::find(&tracefs.global(), &plan.categories);
    notes.extend(found.notes);
    prepare(buffer, plan.buffer_kb, &found.events)?;
    let marks = plan.shared_marks.then(|| copied_from(&tracefs, buffer)).transpose()?;
    let cpus = buffer.cpus()?;
    let head = head(buffer, &cpus)?;
    let clock = head.clock.clone();
    // Only now: a request that is refused leaves an older part.
    draft.show();
    let file = || draft.file().try_clone();
    let writer = file().and_then(|file| Writer::create(file, &head)).map_err(&output)?;
    let shared = Shared::new(writer, &plan.output).in_part(file().map_err(&output)?);
    shared.write(|writer| write_formats(&tracefs, &found.events, writer));
    observer.begins(&notes);
    let places = Places { marks, log };
    let taken = taken(plan, (&tracefs, buffer, &cpus), head, &shared, &places, observer);
    let (ended, stopped_early, cpus) = kept(draft, &plan.output, taken)?;
    let bytes = std::fs::metadata(&plan.output).map_or(0, |file| file.len());
    Ok(Summary { bytes, cpus, clock, ended, stopped_early, left: let_go(instance) })
}

/// Records into the file; returns how the work ended, whether tracing was stopped before, and what each CPU has.
fn taken(
    plan: &Plan,
    (tracefs, buffer, cpus): (&Tracefs, &Buffer, &[u32]),
    head: Head,
    shared: &Shared,
    places: &Places,
    observer: &mut dyn Observer,
) -> Result<(Ended, bool, Vec<Counts>), TraceError> {
    let page_bytes = head.page_size as usize;
    let pipes = cpus.iter().map(|cpu| Pipe::open(buffer, *cpu, page_bytes)).collect::<Result<Vec<_>, _>>()?;
    let steal = host::Steal::now();
    let (ended, stopped_early) = run(plan, buffer, pipes, shared, places, observer)?;
    let stolen_ns = steal.and_then(|steal| steal.since_ns());
    shared.write(|writer| writer.head(&Head { stolen_ns, ..head }));
    let cpus = write_end(tracefs, buffer, cpus, shared);
    shared.finish()?;
    Ok((ended, stopped_early, cpus))
}

/// Puts a recording in its place. Of one that failed the part stays, beside an older recording; of one that did not begin
/// nothing does.
fn kept<T>(draft: Draft, output: &Path, taken: Result<T, TraceError>) -> Result<T, TraceError> {
    match taken {
        Ok(taken) => draft.commit().map(|()| taken).map_err(TraceError::output(output)),
        Err(error @ TraceError::Usage(_)) => {
            draft.discard();
            Err(error)
        }
        Err(error) => match (error, draft.commit_part()) {
            (TraceError::Output { error, .. }, Ok(Kept::Beside(place))) => {
                Err(TraceError::Output { place, error })
            }
            (error, _) => Err(error),
        },
    }
}

/// Files that the recorded command is told of.
struct Places {
    /// The tracefs folder for marks, if it is another than the recording's.
    marks: Option<PathBuf>,
    /// The recording's file.
    log: PathBuf,
}

/// The folder of the shared buffer, whose marks are copied into this instance.
fn copied_from(tracefs: &Tracefs, buffer: &Buffer) -> Result<PathBuf, TraceError> {
    match buffer.read(COPY_MARKS).as_deref() {
        Ok("1") => Ok(tracefs.root().to_owned()),
        _ => Err(TraceError::Usage(format!(
            "this kernel cannot copy marks from the shared buffer: {} has no {COPY_MARKS}, which came with Linux 6.16",
            buffer.folder().display()
        ))),
    }
}

/// Notes other active tracing, which this recording does not touch.
fn others(tracefs: &Tracefs) -> Option<String> {
    let sign = use_of(&tracefs.global()).ok()??;
    Some(format!("another tool is tracing in the shared buffer ({sign}); it is not affected"))
}

fn head(buffer: &Buffer, cpus: &[u32]) -> Result<Head, TraceError> {
    let (clock, _) = buffer.clocks()?;
    Ok(Head {
        clock,
        page_size: u32::try_from(buffer.page_bytes()).unwrap_or(u32::MAX),
        cpus: cpus.last().map_or(0, |last| last + 1),
        kernel: std::fs::read_to_string("/proc/sys/kernel/osrelease").unwrap_or_default().trim().to_owned(),
        tick_ns: Some(sys::clock::tick_ns()).filter(|ns| *ns > 0),
        tickless: tickless_cpus(),
        stolen_ns: None,
    })
}

/// CPUs whose tick the kernel may stop while they are busy.
/// Fact: `nohz_full` of `Documentation/timers/no_hz.rst`; the file says `(null)` without any.
fn tickless_cpus() -> Vec<u32> {
    let text = std::fs::read_to_string("/sys/devices/system/cpu/nohz_full").unwrap_or_default();
    host::parse::cpu_list(&text).unwrap_or_default()
}

fn prepare(buffer: &Buffer, buffer_kb: u64, events: &[String]) -> Result<(), TraceError> {
    buffer.write("tracing_on", "0")?;
    if let (in_use, Some(clock)) = buffer.clocks()?
        && clock != in_use
    {
        buffer.write("trace_clock", clock)?;
    }
    buffer.write("buffer_size_kb", &buffer_kb.to_string())?;
    // Options that old kernels lack are skipped: thread groups also come from other events, and copies of marks
    // exist since Linux 6.16.
    for (knob, value) in [("options/overwrite", "1"), ("options/record-tgid", "1"), (COPY_MARKS, "1")] {
        if buffer.has(knob) {
            buffer.write(knob, value)?;
        }
    }
    enable(buffer, events)
}

fn enable(buffer: &Buffer, events: &[String]) -> Result<(), TraceError> {
    events.iter().try_for_each(|event| buffer.write(&format!("events/{event}/enable"), "1"))
}

/// Writes the formats of all recorded events. The reader reports missing formats.
fn write_formats<W: Write>(tracefs: &Tracefs, events: &[String], writer: &mut Writer<W>) -> io::Result<()> {
    let root = tracefs.root().join("events");
    for (file, part) in [("header_page", TracefsText::HeaderPage), ("header_event", TracefsText::HeaderEvent)]
    {
        write_text(&root.join(file), part, 0, writer)?;
    }
    // Events of `trace_marker` and of tracers.
    let own = std::fs::read_dir(root.join("ftrace")).into_iter().flatten().flatten();
    let own = own.map(|entry| format!("ftrace/{}", entry.file_name().to_string_lossy()));
    for event in events.iter().cloned().chain(own) {
        let format = read_whole(&root.join(&event).join("format"));
        if let (Ok(format), Some((group, _))) = (format, event.split_once('/')) {
            writer.format(group, &format)?;
        }
    }
    Ok(())
}

fn write_text<W: Write>(path: &Path, part: TracefsText, cpu: u32, writer: &mut Writer<W>) -> io::Result<()> {
    read_whole(path).map_or(Ok(()), |text| writer.text(part, cpu, &text))
}

/// Records while the work lasts; returns how it ended, and whether tracing was stopped earlier.
fn run(
    plan: &Plan,
    buffer: &Buffer,
    mut pipes: Vec<Pipe>,
    shared: &Shared,
    places: &Places,
    observer: &mut dyn Observer,
) -> Result<(Ended, bool), TraceError> {
    let mut end =
        File::from(sys::descriptor::event_counter().map_err(TraceError::refused("making an event counter"))?);
    let ready = end.try_clone().map_err(TraceError::refused("copying a descriptor"))?;
    let reading = TraceError::refused("reading the trace buffer");
    let outcome = thread::scope(|scope| {
        let ready = &ready;
        // A circular recording is read at the end.
        let read_now = if plan.circular { &mut [][..] } else { &mut pipes[..] };
        let followers: Vec<_> =
            read_now.iter_mut().map(|pipe| scope.spawn(move || pipe.follow(shared, ready))).collect();
        let lasted = last(plan, buffer, shared, places, observer);
        let stopped_early = buffer.read("tracing_on").is_ok_and(|state| state == "0");
        let stopped = buffer.write("tracing_on", "0");
        // The followers must end in any case, or this scope never does.
        let told = end.write_all(&1u64.to_ne_bytes());
        let mut result = lasted.and_then(|ended| stopped.map(|()| (ended, stopped_early)));
        for follower in followers {
            let followed = follower.join().unwrap_or_else(|_| Err(io::Error::other("its thread broke")));
            result = result.and_then(|sound| followed.map(|()| sound).map_err(&reading));
        }
        result.and_then(|sound| told.map(|()| sound).map_err(TraceError::refused("ending the readers")))
    })?;
    pipes.iter_mut().try_for_each(|pipe| pipe.drain(shared)).map_err(reading)?;
    Ok(outcome)
}

/// Turns tracing on and waits until the work has ended or was stopped.
fn last(
    plan: &Plan,
    buffer: &Buffer,
    shared: &Shared,
    places: &Places,
    observer: &mut dyn Observer,
) -> Result<Ended, TraceError> {
    buffer.write("tracing_on", "1")?;
    let start = Instant::now();
    let mut running = plan.work.start(buffer.folder(), places.marks.as_deref(), &places.log)?;
    loop {
        let stop = sys::stop_signal::received().is_some() || shared.is_broken();
        match running.step(stop).map_err(TraceError::refused("waiting for the command"))? {
            Some(ended) => return Ok(ended),
            None => observer.advanced(start.elapsed(), shared.bytes(None)),
        }
    }
}

/// Writes names and counts, which are complete only at the end.
fn write_end(tracefs: &Tracefs, buffer: &Buffer, cpus: &[u32], shared: &Shared) -> Vec<Counts> {
    shared.write(|writer| write_names(tracefs, writer));
    let count = |cpu: &u32| {
        let stats = stats(buffer, *cpu);
        shared.write(|writer| writer.text(TracefsText::Stats, *cpu, stats.as_bytes()));
        Counts::read(*cpu, &stats, shared.bytes(Some(*cpu)))
    };
    cpus.iter().map(count).collect()
}

/// Writes the names of threads, their processes, and printed texts.
fn write_names<W: Write>(tracefs: &Tracefs, writer: &mut Writer<W>) -> io::Result<()> {
    let texts = [
        ("saved_cmdlines", TracefsText::SavedCmdlines),
        ("saved_tgids", TracefsText::SavedTgids),
        ("printk_formats", TracefsText::PrintkFormats),
    ];
    texts.into_iter().try_for_each(|(file, part)| write_text(&tracefs.root().join(file), part, 0, writer))
}

/// Event counts of a CPU; empty if they cannot be read.
fn stats(buffer: &Buffer, cpu: u32) -> String {
    buffer.read(&format!("per_cpu/cpu{cpu}/stats")).unwrap_or_default()
}

/// Removes the instance. A process that the command left behind may still have one of its files open.
fn let_go(instance: Instance) -> Vec<String> {
    let removed = instance.remove(LET_GO);
    removed.err().map(|error| format!("{error}; the next command removes it")).into_iter().collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_kernels_words_are_read() {
        let stats = "entries: 5\noverrun: 4\ncommit overrun: 1\nbytes: 400\noldest event ts:     1.5\nnow ts: 2.5\n\
                     dropped events: 2\nread events: 98\n";
        let counts = Counts::read(3, stats, 8192);
        assert_eq!(counts, Counts { cpu: 3, events: 98, overwritten: 4, dropped: 3, bytes: 8192 });
        assert_eq!(Counts::read(0, "", 0), Counts::default());
    }
}
