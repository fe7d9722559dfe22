//! Writes one event as Perfetto's `FtraceEvent`. Binder events of any driver are written as the C driver's, which
//! Perfetto knows.
//! Not here: bundles (`bundle`).
//! Facts: `protos/perfetto/trace/ftrace/*.proto` of Perfetto for the field numbers; `src/trace_processor/importers`
//! for their interpretation: Perfetto ignores the group `rust_binder`, and its `binder_tracker.cc` makes slices and flows
//! of binder events.

use std::borrow::Cow;
use std::collections::HashSet;

use super::wire::{Message, Value};
use crate::event::{Binder, Buffer, Event, Irq, Kind, Mark, Name, Names, Prio, State, Wake};

/// `FtraceEvent.generic`: an event without a Perfetto message, with its name and fields.
const GENERIC: u32 = 327;

/// `InternedData.kernel_symbols`.
const KERNEL_SYMBOLS: u32 = 26;

/// Interned kernel symbols: each is written once, with its number.
#[derive(Debug, Default)]
pub(super) struct Symbols {
    known: HashSet<Name>,
    /// `InternedData` not written yet.
    pub(super) new: Message,
}

impl Symbols {
    /// Number of a code location's symbol; 0 if only the address is known.
    pub(super) fn intern(&mut self, symbol: Name, names: &Names) -> u64 {
        if !symbol.is_some() {
            return 0;
        }
        let number = symbol.index() as u64;
        if self.known.insert(symbol) {
            self.new.message(KERNEL_SYMBOLS, &[number.into(), names.text(symbol).into()]);
        }
        number
    }
}

/// Numbering of task states, by kernel version.
///
/// Perfetto chooses it by the kernel's version, and assumes Linux 4.4 if that is unknown.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum TaskStateFormat {
    /// Linux 4.4.
    Old,
    /// Linux 4.14 and later.
    New,
}

impl TaskStateFormat {
    fn number(self, state: State) -> i32 {
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
            // Above every known state: Perfetto shows a question mark.
            State::Other => 0x4000,
        }
    }
}

/// Writes an event other than [`Kind::Lost`].
pub(super) fn write(
    out: &mut Message,
    event: &Event,
    names: &Names,
    states: TaskStateFormat,
    symbols: &mut Symbols,
) {
    out.field(1, event.ts);
    out.field(2, event.tid.max(0).cast_unsigned());
    // Perfetto uses the flags of wake-ups only, and our reader those of lock waits too; on any other event they would add
    // an empty row to Perfetto's event table.
    let told = matches!(
        event.kind,
        Kind::Waking(_)
            | Kind::Wakeup(_)
            | Kind::WakeupNew(_)
            | Kind::ContentionBegin(_)
            | Kind::ContentionEnd
    );
    if told && event.context.in_interrupt() {
        out.field(5, u32::from(event.context.flags()));
    }
    let text = |name: Name| Value::Text(names.text(name));
    let waking = |out: &mut Message, field, Wake { task, target_cpu }: &Wake| {
        let values = [text(task.comm), task.tid.into(), task.prio.0.into(), 1.into(), (*target_cpu).into()];
        out.message(field, &values);
    };
    match &event.kind {
        Kind::Switch { prev, state, next } => {
            let [(a, b, c), (e, f, g)] =
                [prev, next].map(|task| (text(task.comm), task.tid.into(), task.prio.0.into()));
            out.message(4, &[a, b, c, states.number(*state).into(), e, f, g]);
        }
        Kind::Wakeup(wake) => waking(out, 17, wake),
        Kind::Waking(wake) => waking(out, 20, wake),
        Kind::WakeupNew(wake) => waking(out, 114, wake),
        Kind::BlockedReason { tid, io_wait, caller } => {
            let caller = symbols.intern(caller.symbol, names);
            out.message(18, &[(*tid).into(), caller.into(), (*io_wait).into()]);
        }
        Kind::PiSetprio { task, new_prio } => {
            out.message(353, &[text(task.comm), new_prio.0.into(), task.prio.0.into(), task.tid.into()]);
        }
        Kind::Migrate { task, from_cpu, to_cpu } => {
            let (comm, prio) = (text(task.comm), task.prio.0.into());
            out.message(491, &[comm, task.tid.into(), prio, (*from_cpu).into(), (*to_cpu).into()]);
        }
        Kind::Rename(task) => out.nested(236, |out| {
            out.field(1, task.tid);
            out.field(3, text(task.comm));
        }),
        Kind::Exit(task) => out.nested(238, |out| {
            out.field(1, text(task.comm));
            out.field(2, task.tid);
            out.field(4, task.prio.0);
        }),
        Kind::IrqEntry { irq: Irq::Line(line), name } => out.message(36, &[(*line).into(), text(*name)]),
        // Readers drop the handler's return value; it is nearly always 1, "handled".
        Kind::IrqExit { irq: Irq::Line(line), .. } => out.message(37, &[(*line).into(), 1.into()]),
        Kind::IrqEntry { irq: Irq::Vector(vector), name } if names.text(*name) == "local_timer" => {
            out.message(559, &[(*vector).into()]);
        }
        Kind::IrqExit { irq: Irq::Vector(vector), name } if names.text(*name) == "local_timer" => {
            out.message(560, &[(*vector).into()]);
        }
        // Perfetto draws arm's inter-processor interrupts; x86 vectors other than the timer are written as those.
        Kind::IrqEntry { name, .. } => out.message(21, &[text(*name)]),
        Kind::IrqExit { name, .. } => out.message(22, &[text(*name)]),
        Kind::SoftirqEntry(softirq) => out.message(24, &[softirq.0.into()]),
        Kind::SoftirqExit(softirq) => out.message(25, &[softirq.0.into()]),
        Kind::SoftirqRaise(softirq) => out.message(26, &[softirq.0.into()]),
        Kind::IpiSend { to_cpu, reason } => out.nested(23, |out| {
            if let Some(mask) = to_cpu.and_then(|cpu| 1_u32.checked_shl(cpu)) {
                out.field(1, mask);
            }
            out.field(2, text(*reason));
        }),
        // The kernel's value for leaving an idle state.
        Kind::CpuIdle { cpu, state } => out.message(13, &[state.unwrap_or(u32::MAX).into(), (*cpu).into()]),
        Kind::CpuFrequency { cpu, khz } => out.message(11, &[(*khz).into(), (*cpu).into()]),
        Kind::WorkStart { work, function } => {
            let function = symbols.intern(function.symbol, names);
            out.message(58, &[(*work).into(), function.into()]);
        }
        Kind::WorkEnd { work } => out.message(57, &[(*work).into()]),
        Kind::ReclaimBegin { order } => out.message(46, &[(*order).into()]),
        Kind::ReclaimEnd { reclaimed } => out.message(47, &[(*reclaimed).into()]),
        Kind::ContentionBegin(kind) => {
            let fields = [("lock", kind.name().into()), ("flags", kind.flags().into())];
            generic(out, "contention_begin", &fields);
        }
        Kind::ContentionEnd => generic(out, "contention_end", &[]),
        Kind::Binder(_, binder) => write_binder(out, binder, names),
        Kind::Print(printed) if is_convention(printed) => {
            let printed = of_process(printed, event.tgid);
            out.nested(3, |out| out.field(2, &*printed));
        }
        Kind::Print(printed) => generic(out, "print", &[("buf", Value::Text(printed))]),
        Kind::Other { name } => generic(out, names.text(*name), &[]),
        Kind::Lost { .. } | Kind::Tick { .. } => {}
    }
}

/// Writes a generic event: name, fields.
fn generic(out: &mut Message, name: &str, fields: &[(&str, Value<'_>)]) {
    out.nested(GENERIC, |out| {
        out.field(1, name);
        for (key, value) in fields {
            out.nested(2, |out| {
                out.field(1, *key);
                let form = match value {
                    Value::Text(_) => 3,
                    Value::Signed(_) => 4,
                    Value::Unsigned(_) => 5,
                };
                out.field(form, *value);
            });
        }
    });
}

/// Writes a binder event. An event without a Perfetto message is written as a generic event with its fields.
fn write_binder(out: &mut Message, binder: &Binder, names: &Names) {
    let urgency = |prio: Prio| Value::from(prio.0.cast_unsigned());
    let lock = |out: &mut Message, field, tag| out.message(field, &[names.text(tag).into()]);
    let flag = |value: bool| Value::from(i32::from(value));
    match *binder {
        Binder::Transaction(sent) => {
            let [id, node, proc, thread] =
                [sent.debug_id, sent.target_node, sent.to_proc, sent.to_thread].map(Value::from);
            let values = [id, node, proc, thread, flag(sent.reply), sent.code.into(), sent.flags.into()];
            out.message(50, &values);
        }
        Binder::Received { debug_id } => out.message(51, &[debug_id.into()]),
        Binder::SetPriority { proc, thread, old, new, desired } => {
            let values = [proc.into(), thread.into(), urgency(old), urgency(new), urgency(desired)];
            out.message(52, &values);
        }
        Binder::Lock { tag } => lock(out, 53, tag),
        Binder::Locked { tag } => lock(out, 54, tag),
        Binder::Unlock { tag } => lock(out, 55, tag),
        Binder::AllocBuf(Buffer { debug_id, data_size, offsets_size, extra_size }) => {
            out.message(323, &[data_size.into(), debug_id.into(), offsets_size.into(), extra_size.into()]);
        }
        Binder::Command { cmd } => out.message(485, &[cmd.into()]),
        Binder::Return { cmd } => out.message(486, &[cmd.into()]),
        Binder::BufferRelease(of) => buffer(out, "binder_transaction_buffer_release", of),
        Binder::FailedBufferRelease(of) => buffer(out, "binder_transaction_failed_buffer_release", of),
        Binder::UpdateBufferRelease(of) => buffer(out, "binder_transaction_update_buffer_release", of),
        Binder::WaitForWork { proc_work, transaction_stack, thread_todo } => {
            let fields = [
                ("proc_work", flag(proc_work)),
                ("transaction_stack", flag(transaction_stack)),
                ("thread_todo", flag(thread_todo)),
            ];
            generic(out, "binder_wait_for_work", &fields);
        }
        Binder::Ioctl { cmd, arg } => {
            generic(out, "binder_ioctl", &[("cmd", cmd.into()), ("arg", arg.into())])
        }
        Binder::IoctlDone { ret } => generic(out, "binder_ioctl_done", &[("ret", ret.into())]),
        Binder::WriteDone { ret } => generic(out, "binder_write_done", &[("ret", ret.into())]),
        Binder::ReadDone { ret } => generic(out, "binder_read_done", &[("ret", ret.into())]),
        Binder::LatencyFree(ended) => {
            let fields = [
                ("debug_id", ended.debug_id.into()),
                ("from_proc", ended.from_proc.into()),
                ("from_thread", ended.from_thread.into()),
                ("to_proc", ended.to_proc.into()),
                ("to_thread", ended.to_thread.into()),
                ("code", ended.code.into()),
                ("flags", ended.flags.into()),
            ];
            generic(out, "binder_txn_latency_free", &fields);
        }
        Binder::FdSend { debug_id, fd, offset } | Binder::FdReceived { debug_id, fd, offset } => {
            let sends = matches!(binder, Binder::FdSend { .. });
            let name = if sends { "binder_transaction_fd_send" } else { "binder_transaction_fd_recv" };
            generic(
                out,
                name,
                &[("debug_id", debug_id.into()), ("fd", fd.into()), ("offset", offset.into())],
            );
        }
    }
}

fn buffer(out: &mut Message, name: &str, buffer: Buffer) {
    let fields = [
        ("debug_id", buffer.debug_id.into()),
        ("data_size", buffer.data_size.into()),
        ("offsets_size", buffer.offsets_size.into()),
        ("extra_buffers_size", buffer.extra_size.into()),
    ];
    generic(out, name, &fields);
}

/// Whether a printed text follows atrace's convention. Perfetto parses every text as one: any text that begins with E
/// ends a slice, and most others count as trace errors.
fn is_convention(text: &str) -> bool {
    let more = |text: &str| matches!(text.as_bytes(), [b'I' | b'N' | b'G' | b'H', b'|', b'0'..=b'9', ..]);
    match Mark::parse(text) {
        Some(Mark::Own { .. }) => false,
        Some(_) => true,
        None => more(text),
    }
}

/// Replaces the process ID in a text by that of its thread. In a container, programs write the ID of their PID
/// namespace, and Perfetto would attribute the slice to another process.
fn of_process(text: &str, tgid: Option<i32>) -> Cow<'_, str> {
    match (Mark::parse(text), tgid) {
        (Some(Mark::Begin { tgid: written, name }), Some(tgid)) if tgid != written => {
            format!("B|{tgid}|{name}").into()
        }
        (Some(Mark::End), Some(tgid)) => format!("E|{tgid}").into(),
        _ => text.into(),
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
