//! The command `trace info`: counts the contents of a trace.
//! Not here: reading the trace (crate `trace`).

use std::collections::BTreeMap;
use std::fs::File;
use std::io::BufReader;
use std::path::{Path, PathBuf};

use clap::Args;
use store::input;
use store::traces::open;
use trace::Reader;
use trace::event::{Kind, Name};

use crate::cli::{CommandResult, OrExit, exit, say};

/// Show the contents of a trace of any origin: CPUs, clock, time, events, losses
#[derive(Clone, Debug, Args)]
pub(crate) struct InfoArgs {
    /// A file of `binderperf trace record`, a trace of Perfetto, or ftrace's text, for example of atrace or systrace
    file: PathBuf,
}

/// The counts.
#[derive(Debug, Default)]
struct Counted {
    events: BTreeMap<&'static str, u64>,
    others: BTreeMap<Name, u64>,
    cpus: BTreeMap<u32, u64>,
    span: Option<(u64, u64)>,
}

/// Prints the counts.
pub(super) fn run(args: &InfoArgs) -> CommandResult {
    let opened = input::seekable(&args.file)
        .map_err(|error| sys::errno::describe(&error))
        .and_then(|file| open(BufReader::new(file)).map_err(|error| error.to_string()));
    let mut reader = opened.map_err(|why| format!("{}: {why}", args.file.display())).or_exit(exit::USAGE)?;
    let counted = count(&mut reader);
    say(&told(&args.file, &counted, &reader))
}

fn count(reader: &mut Reader<BufReader<File>>) -> Counted {
    let mut counted = Counted::default();
    for event in reader.by_ref() {
        match &event.kind {
            // The report counts the losses.
            Kind::Lost { .. } | Kind::Tick { .. } => continue,
            Kind::Other { name } => *counted.others.entry(*name).or_default() += 1,
            known => *counted.events.entry(name_of(known)).or_default() += 1,
        }
        *counted.cpus.entry(event.cpu).or_default() += 1;
        let (first, last) = counted.span.unwrap_or((event.ts, event.ts));
        counted.span = Some((first.min(event.ts), last.max(event.ts)));
    }
    counted
}

/// An event's name, as the kernel has it, but for those that come by several names.
fn name_of(kind: &Kind) -> &'static str {
    match kind {
        Kind::IrqEntry { .. } => "interrupt entries",
        Kind::IrqExit { .. } => "interrupt exits",
        Kind::IpiSend { .. } => "ipi_send",
        Kind::Print(_) => "print",
        known => known.name().unwrap_or("others"),
    }
}

fn told(file: &Path, counted: &Counted, reader: &Reader<BufReader<File>>) -> String {
    let report = reader.report();
    let mut text = format!("{}: {report}\n", file.display());
    if let Some(head) = reader.head() {
        text += &format!(
            "kernel {}, clock {}, {} CPUs, pages of {} bytes\n",
            head.kernel, head.clock, head.cpus, head.page_size
        );
    }
    if let Some((first, last)) = counted.span {
        let seconds = |ns: u64| format!("{}.{:09}", ns / 1_000_000_000, ns % 1_000_000_000);
        text += &format!("from {} to {}: {} s\n", seconds(first), seconds(last), seconds(last - first));
    }
    for (cpu, events) in &counted.cpus {
        text += &format!("cpu{cpu}: {events}\n");
    }
    let others = counted.others.iter().map(|(name, count)| (reader.names().text(*name), *count));
    let mut events: Vec<(&str, u64)> =
        counted.events.iter().map(|(name, count)| (*name, *count)).chain(others).collect();
    // The most frequent first, and by name where that does not decide.
    events.sort_unstable_by_key(|(name, count)| (std::cmp::Reverse(*count), *name));
    for (name, count) in events {
        text += &format!("{count:>12} {name}\n");
    }
    text
}
