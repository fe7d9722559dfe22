//! Room: a recording in a buffer of its own, which hinders no other user of tracing and leaves nothing behind:
//! from a plan to a file and its counts.
//! Not here: the file's format (the crate `trace`), the shared buffer (`atrace`).
//!
//! - [`work`]: what it lasts for; [`pages`]: out of the kernel into the file; [`counts`]: how many events.
//!
//! A recorder that is killed leaves its instance, whose name says whose it was; the next one removes it.

pub mod counts;
mod pages;
pub mod work;

use std::fs::File;
use std::io::{self, Write};
use std::path::{Path, PathBuf};
use std::thread;
use std::time::{Duration, Instant};

use trace::file::{Head, Part, Writer};

use super::atrace::use_of;
use super::categories::{self, Category};
use super::process::Process;
use super::size::check_size;
use super::tracefs::{Buffer, Instance, Tracefs, Trouble, read_whole};
use counts::Counts;
use pages::{Pipe, Shared};
use work::{Ended, Work};

/// What instances of recordings are called, before their maker.
const PREFIX: &str = "binderperf-record-";

/// Somebody who still has a file of the instance open gets so long to let go.
const LET_GO: Duration = Duration::from_secs(2);

/// What to record.
#[derive(Clone, Debug)]
pub struct Plan {
    /// Categories of events.
    pub categories: Vec<&'static Category>,
    /// Size of the buffer of each CPU, in KB.
    pub buffer_kb: u64,
    /// Whether only the newest events are kept, in the buffers, and read out at the end; otherwise all of them,
    /// read out as they come.
    pub circular: bool,
    /// Where the recording goes.
    pub output: PathBuf,
    /// What it lasts for.
    pub work: Work,
}

/// Who is told how it goes.
pub trait Observer {
    /// It begins; what there is to say of the categories and of others that trace.
    fn begins(&mut self, notes: &[String]);
    /// So much is in the file after this time.
    fn advanced(&mut self, elapsed: Duration, bytes: u64);
}

/// What came of it.
#[derive(Clone, Debug)]
pub struct Summary {
    /// Bytes of the file.
    pub bytes: u64,
    /// Each CPU's counts.
    pub cpus: Vec<Counts>,
    /// The clock's name.
    pub clock: String,
    /// How its work ended.
    pub ended: Ended,
    /// Whether recording was stopped before that, as a latency test does at a miss.
    pub stopped_early: bool,
    /// What could not be put back, and why.
    pub left: Vec<String>,
}

/// Records. SIGINT and SIGTERM end it, with all that was recorded until then.
///
/// # Errors
/// [`Trouble::Missing`], [`Trouble::Denied`]: no tracing to be had. [`Trouble::Usage`]: no such command, or a buffer too
/// large. [`Trouble::Output`]: the file could not be written. [`Trouble::Refused`]: others. Nothing is left behind.
pub fn record(plan: &Plan, observer: &mut dyn Observer) -> Result<Summary, Trouble> {
    let refused = |tried: &str| {
        let tried = tried.to_owned();
        move |error| Trouble::Refused { tried, error }
    };
    let tracefs = Tracefs::find()?;
    let mut notes = clean_up(&tracefs);
    notes.extend(others(&tracefs));
    check_size(plan.buffer_kb, tracefs.global().cpus()?.len())?;
    sys::stop_signal::catch().map_err(refused("catching signals"))?;
    let output = |error| Trouble::Output { place: plan.output.clone(), error };
    let file = File::create(&plan.output).map_err(output)?;
    let log = std::path::absolute(&plan.output).map_err(output)?;
    let instance = tracefs.instance(&format!("{PREFIX}{}", Process::own().suffix()))?;
    let buffer = instance.buffer();
    let found = categories::find(&tracefs.global(), &plan.categories);
    notes.extend(found.notes);
    prepare(buffer, plan, &found.events)?;
    let (clock, _) = buffer.clocks()?;
    let page_bytes = buffer.page_bytes();
    let cpus = buffer.cpus()?;
    let head = Head {
        clock: clock.clone(),
        page_size: u32::try_from(page_bytes).unwrap_or(u32::MAX),
        cpus: cpus.last().map_or(0, |last| last + 1),
        kernel: std::fs::read_to_string("/proc/sys/kernel/osrelease").unwrap_or_default().trim().to_owned(),
    };
    let writer = Writer::create(file, &head).map_err(output)?;
    let shared = Shared::new(writer, &plan.output);
    write_formats(&tracefs, &found.events, &shared);
    observer.begins(&notes);
    let pipes = cpus.iter().map(|cpu| Pipe::open(buffer, *cpu, page_bytes)).collect::<Result<Vec<_>, _>>()?;
    let (ended, stopped_early) = run(plan, buffer, pipes, &shared, &log, observer)?;
    let cpus = write_end(&tracefs, buffer, &cpus, &shared);
    shared.finish()?;
    let bytes = std::fs::metadata(&plan.output).map_or(0, |file| file.len());
    Ok(Summary { bytes, cpus, clock, ended, stopped_early, left: let_go(instance) })
}

/// Removes what killed recorders left; says what could not be.
fn clean_up(tracefs: &Tracefs) -> Vec<String> {
    let is_dead = |suffix: &str| Process::of_suffix(suffix).is_some_and(|maker| !maker.is_alive());
    let left = tracefs.sweep(PREFIX, is_dead);
    left.into_iter().map(|name| format!("the instance {name} of a killed recorder is still in use")).collect()
}

/// Who else traces; they are left alone, as this recording has a buffer of its own.
fn others(tracefs: &Tracefs) -> Option<String> {
    let sign = use_of(&tracefs.global()).ok()??;
    Some(format!("somebody else is tracing in the buffer that all share ({sign}); that goes on"))
}

fn prepare(buffer: &Buffer, plan: &Plan, events: &[String]) -> Result<(), Trouble> {
    buffer.write("tracing_on", "0")?;
    if let (in_use, Some(clock)) = buffer.clocks()?
        && clock != in_use
    {
        buffer.write("trace_clock", clock)?;
    }
    buffer.write("buffer_size_kb", &plan.buffer_kb.to_string())?;
    // What old kernels lack is done without: tgids come from elsewhere, too, and copies of what others write to the
    // shared trace_marker exist since Linux 6.9.
    for (knob, value) in
        [("options/overwrite", "1"), ("options/record-tgid", "1"), ("options/copy_trace_marker", "1")]
    {
        if buffer.has(knob) {
            buffer.write(knob, value)?;
        }
    }
    events.iter().try_for_each(|event| buffer.write(&format!("events/{event}/enable"), "1"))
}

/// The formats of all events that there will be. Those that cannot be read are missed by the reader, which says so.
fn write_formats(tracefs: &Tracefs, events: &[String], shared: &Shared) {
    let root = tracefs.root().join("events");
    for (file, part) in [("header_page", Part::HeaderPage), ("header_event", Part::HeaderEvent)] {
        write_text(&root.join(file), part, 0, shared);
    }
    // Those of `trace_marker`, and of tracers.
    let own = std::fs::read_dir(root.join("ftrace")).into_iter().flatten().flatten();
    let own = own.map(|entry| format!("ftrace/{}", entry.file_name().to_string_lossy()));
    for event in events.iter().cloned().chain(own) {
        let format = read_whole(&root.join(&event).join("format"));
        if let (Ok(format), Some((group, _))) = (format, event.split_once('/')) {
            shared.write(|writer| writer.format(group, &format));
        }
    }
}

fn write_text(path: &Path, part: Part, cpu: u32, shared: &Shared) {
    if let Ok(text) = read_whole(path) {
        shared.write(|writer| writer.text(part, cpu, &text));
    }
}

/// Records for as long as the work lasts; how that ended, and whether recording was stopped before.
fn run(
    plan: &Plan,
    buffer: &Buffer,
    mut pipes: Vec<Pipe>,
    shared: &Shared,
    log: &Path,
    observer: &mut dyn Observer,
) -> Result<(Ended, bool), Trouble> {
    let refused = |tried: &str, error| Trouble::Refused { tried: tried.to_owned(), error };
    let end = sys::event_fd::counter().map_err(|error| refused("making an event counter", error))?;
    let mut end = File::from(end);
    let ready = end.try_clone().map_err(|error| refused("copying a descriptor", error))?;
    let reading = |error| refused("reading the trace buffer", error);
    let outcome = thread::scope(|scope| {
        let ready = &ready;
        // What is kept in the buffers is read when nothing more comes.
        let read_now = if plan.circular { &mut [][..] } else { &mut pipes[..] };
        let followers: Vec<_> =
            read_now.iter_mut().map(|pipe| scope.spawn(move || pipe.follow(shared, ready))).collect();
        let lasted = last(plan, buffer, shared, log, observer);
        let stopped_early = buffer.read("tracing_on").is_ok_and(|state| state == "0");
        let stopped = buffer.write("tracing_on", "0");
        // Whatever happened, the followers must end, or this scope never does.
        let told = end.write_all(&1u64.to_ne_bytes());
        let mut result = lasted.and_then(|ended| stopped.map(|()| (ended, stopped_early)));
        for follower in followers {
            let followed = follower.join().unwrap_or_else(|_| Err(io::Error::other("its thread broke")));
            result = result.and_then(|sound| followed.map(|()| sound).map_err(reading));
        }
        result.and_then(|sound| told.map(|()| sound).map_err(|error| refused("ending the readers", error)))
    })?;
    pipes.iter_mut().try_for_each(|pipe| pipe.drain(shared)).map_err(reading)?;
    Ok(outcome)
}

/// Switches recording on and stays until the work has ended, or has been ended.
fn last(
    plan: &Plan,
    buffer: &Buffer,
    shared: &Shared,
    log: &Path,
    observer: &mut dyn Observer,
) -> Result<Ended, Trouble> {
    buffer.write("tracing_on", "1")?;
    let start = Instant::now();
    let mut running = plan.work.start(buffer.folder(), log)?;
    loop {
        let stop = sys::stop_signal::received().is_some() || shared.is_broken();
        let ended = running.step(stop);
        match ended
            .map_err(|error| Trouble::Refused { tried: "waiting for the command".to_owned(), error })?
        {
            Some(ended) => return Ok(ended),
            None => observer.advanced(start.elapsed(), shared.bytes(None)),
        }
    }
}

/// Names and counts, which are known at the end only.
fn write_end(tracefs: &Tracefs, buffer: &Buffer, cpus: &[u32], shared: &Shared) -> Vec<Counts> {
    let texts = [
        ("saved_cmdlines", Part::SavedCmdlines),
        ("saved_tgids", Part::SavedTgids),
        ("printk_formats", Part::PrintkFormats),
    ];
    for (file, part) in texts {
        write_text(&tracefs.root().join(file), part, 0, shared);
    }
    let count = |cpu: &u32| {
        let stats = buffer.read(&format!("per_cpu/cpu{cpu}/stats")).unwrap_or_default();
        shared.write(|writer| writer.text(Part::Stats, *cpu, stats.as_bytes()));
        Counts::read(*cpu, &stats, shared.bytes(Some(*cpu)))
    };
    cpus.iter().map(count).collect()
}

/// Removes the instance. A process that the command left behind may still have one of its files open.
fn let_go(instance: Instance) -> Vec<String> {
    let start = Instant::now();
    let mut instance = instance;
    loop {
        match instance.remove() {
            Ok(()) => return Vec::new(),
            Err((again, trouble)) if start.elapsed() < LET_GO && trouble.is_busy() => {
                instance = again;
                thread::sleep(Duration::from_millis(50));
            }
            Err((_, trouble)) => return vec![format!("{trouble}; the next recording removes it")],
        }
    }
}
