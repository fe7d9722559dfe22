//! Room: one event of a trace as Perfetto's `FtraceEvent`.
//! Not here: binder's events (`binder`), the bundles that events are in (`bundle`).
//! Facts: `protos/perfetto/trace/ftrace/*.proto` of Perfetto for the numbers;
//! `src/trace_processor/importers/ftrace` for what it makes of them.

use std::borrow::Cow;

use super::binder;
use super::bundle::Symbols;
use super::wire::Message;
use crate::event::{Event, Irq, Kind, Mark, Names, Place, State, Wake};

/// `FtraceEvent.generic`: events that Perfetto has no message for, by name, with fields.
const GENERIC: u32 = 327;

/// The state that a task leaves its CPU in, as its kernel writes it.
///
/// Perfetto reads the number by the kernel's version, and as that of Linux 4.4 where it does not know one.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum States {
    /// Linux 4.4.
    Old,
    /// Since 4.14.
    New,
}

impl States {
    fn number(self, state: State) -> i64 {
        let new = self == Self::New;
        match state {
            State::Runnable => 0,
            State::Preempted if new => 0x100,
            State::Preempted => 0x800,
            State::Sleeping => 0x1,
            State::Uninterruptible => 0x2,
            State::Stopped => 0x4,
            State::Dead => 0x20,
            State::Parked if new => 0x40,
            State::Parked => 0x200,
            State::Idle if new => 0x80,
            State::Idle => 0x402,
            // Above every state of either: Perfetto has a question mark for it.
            State::Other => 0x4000,
        }
    }
}

/// Writes an event; `false` for what is no event.
pub(super) fn write(
    out: &mut Message,
    event: &Event,
    names: &Names,
    states: States,
    symbols: &mut Symbols,
) -> bool {
    if matches!(event.kind, Kind::Lost { .. }) {
        return false;
    }
    out.unsigned(1, event.ts);
    out.unsigned(2, event.tid.max(0).cast_unsigned());
    // Who was woken from an interrupt is all that Perfetto takes from the flags; of any other event they
    // would come to an empty row in its table of events.
    if matches!(event.kind, Kind::Waking(_)) && event.context.in_interrupt() {
        out.unsigned(5, event.context.flags());
    }
    if !(scheduler(out, event, names, states, symbols) || interrupt(out, event, names)) {
        rest(out, event, names, symbols);
    }
    true
}

/// Number and name of an event without a message, and its fields.
pub(super) fn generic(out: &mut Message, name: &str, fields: &[(&str, Value<'_>)]) {
    out.nested(GENERIC, |out| {
        out.text(1, name);
        for (key, value) in fields {
            out.nested(2, |out| {
                out.text(1, key);
                match value {
                    Value::Text(text) => out.text(3, text),
                    Value::Signed(value) => out.signed(4, *value),
                    Value::Unsigned(value) => out.unsigned(5, *value),
                }
            });
        }
    });
}

/// A field of an event without a message.
#[derive(Clone, Copy, Debug)]
pub(super) enum Value<'t> {
    Text(&'t str),
    Signed(i64),
    Unsigned(u64),
}

fn scheduler(out: &mut Message, event: &Event, names: &Names, states: States, symbols: &mut Symbols) -> bool {
    match &event.kind {
        Kind::Switch { prev, state, next } => out.nested(4, |out| {
            out.text(1, names.text(prev.comm));
            out.signed(2, prev.tid);
            out.signed(3, prev.prio.0);
            out.signed(4, states.number(*state));
            out.text(5, names.text(next.comm));
            out.signed(6, next.tid);
            out.signed(7, next.prio.0);
        }),
        Kind::Wakeup(wake) => waking(out, 17, wake, names),
        Kind::Waking(wake) => waking(out, 20, wake, names),
        Kind::WakeupNew(wake) => waking(out, 114, wake, names),
        Kind::BlockedReason { tid, io_wait, caller } => {
            let caller = symbols.number(*caller, names);
            out.nested(18, |out| {
                out.signed(1, *tid);
                out.unsigned(2, caller);
                out.unsigned(3, u32::from(*io_wait));
            });
        }
        Kind::PiSetprio { task, new_prio } => out.nested(353, |out| {
            out.text(1, names.text(task.comm));
            out.signed(2, new_prio.0);
            out.signed(3, task.prio.0);
            out.signed(4, task.tid);
        }),
        Kind::Migrate { task, from_cpu, to_cpu } => out.nested(491, |out| {
            out.text(1, names.text(task.comm));
            out.signed(2, task.tid);
            out.signed(3, task.prio.0);
            out.signed(4, i64::from(*from_cpu));
            out.signed(5, i64::from(*to_cpu));
        }),
        _ => return false,
    }
    true
}

fn waking(out: &mut Message, field: u32, wake: &Wake, names: &Names) {
    out.nested(field, |out| {
        out.text(1, names.text(wake.task.comm));
        out.signed(2, wake.task.tid);
        out.signed(3, wake.task.prio.0);
        out.signed(4, 1);
        out.signed(5, i64::from(wake.target_cpu));
    });
}

fn interrupt(out: &mut Message, event: &Event, names: &Names) -> bool {
    match &event.kind {
        Kind::IrqEntry { irq: Irq::Line(line), name } => out.nested(36, |out| {
            out.signed(1, *line);
            out.text(2, names.text(*name));
        }),
        Kind::IrqExit { irq: Irq::Line(line), .. } => out.nested(37, |out| {
            out.signed(1, *line);
            // Readers drop what the handler answered; that it was its interrupt is all but always so.
            out.signed(2, 1);
        }),
        Kind::IrqEntry { irq: Irq::Vector(vector), name } if names.text(*name) == "local_timer" => {
            out.nested(559, |out| out.signed(1, *vector));
        }
        Kind::IrqExit { irq: Irq::Vector(vector), name } if names.text(*name) == "local_timer" => {
            out.nested(560, |out| out.signed(1, *vector));
        }
        // What x86 has vectors for beside its timer, arm has interrupts between CPUs for; Perfetto draws those.
        Kind::IrqEntry { name, .. } => out.nested(21, |out| out.text(1, names.text(*name))),
        Kind::IrqExit { name, .. } => out.nested(22, |out| out.text(1, names.text(*name))),
        Kind::SoftirqEntry(softirq) => out.nested(24, |out| out.unsigned(1, softirq.0)),
        Kind::SoftirqExit(softirq) => out.nested(25, |out| out.unsigned(1, softirq.0)),
        Kind::SoftirqRaise(softirq) => out.nested(26, |out| out.unsigned(1, softirq.0)),
        Kind::IpiSend { to_cpu, reason } => out.nested(23, |out| {
            if let Some(mask) = to_cpu.and_then(|cpu| 1_u32.checked_shl(cpu)) {
                out.unsigned(1, mask);
            }
            out.text(2, names.text(*reason));
        }),
        _ => return false,
    }
    true
}

fn rest(out: &mut Message, event: &Event, names: &Names, symbols: &mut Symbols) {
    match &event.kind {
        Kind::Binder(_, what) => binder::write(out, what, names),
        Kind::CpuIdle { cpu, state } => out.nested(13, |out| {
            // The kernel's way to say that a state was left.
            out.unsigned(1, state.unwrap_or(u32::MAX));
            out.unsigned(2, *cpu);
        }),
        Kind::CpuFrequency { cpu, khz } => out.nested(11, |out| {
            out.unsigned(1, *khz);
            out.unsigned(2, *cpu);
        }),
        Kind::WorkStart { work, function } => {
            let function = symbols.number(*function, names);
            out.nested(58, |out| {
                out.unsigned(1, *work);
                out.unsigned(2, function);
            });
        }
        Kind::WorkEnd { work } => out.nested(57, |out| out.unsigned(1, *work)),
        Kind::ReclaimBegin { order } => out.nested(46, |out| out.signed(1, *order)),
        Kind::ReclaimEnd { reclaimed } => out.nested(47, |out| out.unsigned(1, *reclaimed)),
        Kind::ContentionBegin(sort) => {
            generic(out, "contention_begin", &[("lock", Value::Text(sort.name()))])
        }
        Kind::ContentionEnd => generic(out, "contention_end", &[]),
        Kind::Print(text) if is_convention(text) => {
            let text = of_process(text, event.tgid);
            out.nested(3, |out| out.text(2, &text));
        }
        Kind::Print(text) => generic(out, "print", &[("buf", Value::Text(text))]),
        Kind::Other { name } => generic(out, names.text(*name), &[]),
        _ => generic(out, "unknown", &[]),
    }
}

/// Whether a printed text follows atrace's convention. Perfetto takes every text for one that does: any
/// that begins with an E ends a slice, and most others count as errors of the trace.
fn is_convention(text: &str) -> bool {
    let more = |text: &str| matches!(text.as_bytes(), [b'I' | b'N' | b'G' | b'H', b'|', b'0'..=b'9', ..]);
    match Mark::parse(text) {
        Some(Mark::Own { .. }) => false,
        Some(_) => true,
        None => more(text),
    }
}

/// The text with the process that its thread is of. In a container, programs write the number that their
/// process has there, and Perfetto would take the thread for another one.
fn of_process(text: &str, tgid: Option<i32>) -> Cow<'_, str> {
    match (Mark::parse(text), tgid) {
        (Some(Mark::Begin { tgid: written, name }), Some(tgid)) if tgid != written => {
            format!("B|{tgid}|{name}").into()
        }
        (Some(Mark::End), Some(tgid)) => format!("E|{tgid}").into(),
        _ => text.into(),
    }
}

impl Symbols {
    /// What stands for a place in the kernel: the number of its symbol, 0 where only an address is known.
    fn number(&mut self, place: Place, names: &Names) -> u64 {
        if place.symbol.is_some() { self.intern(place.symbol, names) } else { 0 }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_conventions_are_given_to_perfettos_parser() {
        for text in ["B|1|x", "E", "E|1", "C|1|x|3", "S|1|x|2", "I|5|now", "N|5|track|now", "H|1|a|2"] {
            assert!(is_convention(text), "{text}");
        }
        for text in ["Ending well", "binderperf: miss pair=1", "hello", "", "I am", "H|x", "B|x|y"] {
            assert!(!is_convention(text), "{text}");
        }
    }
    #[test]
    fn slices_of_a_container_are_of_their_process() {
        assert_eq!(of_process("B|1|a|b\n", Some(4711)), "B|4711|a|b");
        assert_eq!(of_process("E|1", Some(4711)), "E|4711");
        assert_eq!(of_process("B|1|a", None), "B|1|a");
        assert_eq!(of_process("C|1|a|3", Some(4711)), "C|1|a|3", "a counter may be another's");
    }
}
