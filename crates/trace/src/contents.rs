//! The contents of a trace of any origin as text: CPUs, clock, time, events, losses.

use std::collections::BTreeMap;
use std::io::{Read, Seek};

use crate::Reader;
use crate::event::{Kind, Name};

/// The counts.
#[derive(Debug, Default)]
struct Counted {
    events: BTreeMap<&'static str, u64>,
    others: BTreeMap<Name, u64>,
    cpus: BTreeMap<u32, u64>,
    span: Option<(u64, u64)>,
}

/// The contents of a trace, which is read to its end, as text.
pub fn contents<R: Read + Seek>(reader: &mut Reader<R>) -> String {
    let counted = count(reader);
    rendered(&counted, reader)
}

fn count<R: Read + Seek>(reader: &mut Reader<R>) -> Counted {
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

fn rendered<R: Read + Seek>(counted: &Counted, reader: &Reader<R>) -> String {
    let mut text = format!("{}\n", reader.report());
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

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn events_are_counted_by_name_the_most_frequent_first() {
        let line = |at: u32, event: &str| format!("          x-7     [001] d..1.  1.00000{at}: {event}\n");
        let text = "# tracer: nop\n#\n".to_owned()
            + &line(1, "strange: a=1")
            + &line(2, "tracing_mark_write: hello")
            + &line(3, "strange: a=2");
        let mut reader = crate::open(std::io::Cursor::new(text.into_bytes())).expect("ftrace's text");
        let told = contents(&mut reader);
        assert!(told.contains("\ncpu1: 3\n") && told.contains("from 1.000001000 to 1.000003000"), "{told}");
        assert!(told.ends_with("           2 strange\n           1 print\n"), "{told}");
    }
}
