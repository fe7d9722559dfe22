//! Decodes one `FtraceEvent`.
//! Not here: bundles (`bundle`), which message is which event (`schema`).
//! Facts: `ftrace_event.proto`: time 1, thread 2, flags 5, and one message for the event.

use std::collections::HashMap;

use super::generic::{self, Descriptors, GENERIC, KPROBE};
use super::schema::{self, Layout};
use super::threads::Threads;
use super::wire::{Fields, Value, first};
use crate::event::{CodeLocation, Context, Event, Irq, Kind, Name, Names, Task, Wake};
use crate::fields;
use crate::hash::FastHash;
use crate::report::{ProblemKind, Report};
use crate::schema::{FieldType, Values};

/// Events of which this reader takes more than the schema has.
const PRINT: u32 = 3;
const IPI_RAISE: u32 = 23;
const TASK_NEWTASK: u32 = 235;
const LOCAL_TIMER_ENTRY: u32 = 559;
const LOCAL_TIMER_EXIT: u32 = 560;
/// `CLONE_THREAD` of `include/uapi/linux/sched.h`.
const CLONE_THREAD: u64 = 0x0001_0000;
/// Interned symbols have small numbers; larger ones are addresses.
const LARGEST_SYMBOL: u64 = 1 << 32;

/// Tables for decoding, filled in the first pass.
#[derive(Debug)]
pub(super) struct Decoder {
    pub(super) names: Names,
    pub(super) threads: Threads,
    pub(super) descriptors: Descriptors,
    /// Kernel symbols by generation and number.
    pub(super) symbols: HashMap<(u32, u64), Name, FastHash>,
    pub(super) local_timer: Name,
}

/// Where an event was found.
#[derive(Clone, Copy, Debug)]
pub(super) struct Origin {
    pub(super) cpu: u32,
    /// Generation of the kernel symbols.
    pub(super) symbols: u32,
}

/// Time of an event, which stands first in nearly all of them.
pub(super) fn time(message: &[u8]) -> u64 {
    first(message, 1).map_or(0, Value::number)
}

impl Decoder {
    /// Decodes an event at `ts`, its time on the boot clock.
    pub(super) fn event(&mut self, message: &[u8], ts: u64, origin: Origin, report: &mut Report) -> Event {
        let (mut tid, mut context, mut kind) = (0, Context::default(), None);
        let mut fields = Fields::of(message);
        for (number, value) in fields.by_ref() {
            match (number, value) {
                (1, _) => {}
                (2, _) => tid = value.int(),
                (5, Value::Number(flags)) => context = Context::of_flags(flags.to_le_bytes()[0]),
                (_, Value::Bytes(_)) if kind.is_none() => kind = Some((number, value)),
                _ => {}
            }
        }
        if fields.is_broken() {
            report.note(ProblemKind::Corrupt, || format!("an event on cpu {} at {ts} ns", origin.cpu));
        }
        let kind = match kind {
            Some((number, value)) => self.kind(number, value, tid, (ts, origin), report),
            None => Kind::Other { name: Name::NONE },
        };
        let (comm, tgid) = self.threads.of(tid, ts);
        Event { ts, cpu: origin.cpu, tid, tgid, comm, context, kind }
    }

    fn kind(
        &mut self,
        number: u32,
        value: Value<'_>,
        tid: i32,
        (ts, origin): (u64, Origin),
        report: &mut Report,
    ) -> Kind {
        let message = value.bytes();
        if let Some(layout) = schema::layout(number) {
            let mut kind = layout.spec.event(&self.values(layout, message, origin), crate::event::Flavour::C);
            if let (IPI_RAISE, Kind::IpiSend { to_cpu, .. }) = (number, &mut kind) {
                let mask = first(message, 1).map_or(0, Value::number);
                *to_cpu = mask.is_power_of_two().then(|| mask.trailing_zeros());
            }
            self.meet(&kind);
            return kind;
        }
        match number {
            PRINT => {
                let text = first(message, 2).map_or(&[][..], Value::bytes);
                return fields::mark(text, &mut self.names);
            }
            GENERIC => {
                let kind = generic::event(message, &mut self.names);
                self.meet(&kind);
                return kind;
            }
            KPROBE => {
                let name = first(message, 1).map_or(&[][..], Value::bytes);
                return Kind::Other { name: self.names.intern_bytes(name) };
            }
            LOCAL_TIMER_ENTRY | LOCAL_TIMER_EXIT => {
                let irq = Irq::Vector(first(message, 1).map_or(0, generic::signed));
                let name = self.local_timer;
                let entry = number == LOCAL_TIMER_ENTRY;
                return if entry { Kind::IrqEntry { irq, name } } else { Kind::IrqExit { irq, name } };
            }
            TASK_NEWTASK => self.created(message, tid, ts),
            _ => {
                if let Some(kind) = self.descriptors.event(number, message, &mut self.names) {
                    self.meet(&kind);
                    return kind;
                }
            }
        }
        if let Some(name) = schema::name(number) {
            return Kind::Other { name: self.names.intern(name) };
        }
        report.note_apart(ProblemKind::UnknownEvent, format!("event number {number} of Perfetto"));
        Kind::Other { name: self.names.intern(&format!("event number {number}")) }
    }

    fn created(&mut self, message: &[u8], by: i32, ts: u64) {
        let part = |field| first(message, field).unwrap_or(Value::Number(0));
        let comm = self.names.intern_bytes(part(2).bytes());
        let in_process = part(3).number() & CLONE_THREAD != 0;
        self.threads.born(part(1).int(), comm, by, in_process, ts);
    }

    fn values(&mut self, layout: &Layout, message: &[u8], origin: Origin) -> Values {
        let mut values = Values::default();
        for (number, value) in Fields::of(message) {
            let Some(index) = layout.value(number) else { continue };
            let Some(field) = layout.spec.fields.get(index) else { continue };
            values[index] = match field.form {
                FieldType::Text | FieldType::Reason => self.names.intern_bytes(value.bytes()).into(),
                FieldType::Place => self.place(value.number(), origin).into(),
                FieldType::State => u64::from(crate::schema::state_letter(value.number())).into(),
                _ => value.number().into(),
            };
        }
        // A state of 0, which a message may leave out, is that of a runnable task.
        for (value, field) in values.iter_mut().zip(&layout.spec.fields) {
            if field.form == FieldType::State && value.number == 0 {
                value.number = b'R'.into();
            }
        }
        values
    }

    /// Location in code: a symbol's number, or an address where symbols were not recorded.
    fn place(&self, number: u64, origin: Origin) -> CodeLocation {
        let symbol = self.symbols.get(&(origin.symbols, number)).copied().unwrap_or(Name::NONE);
        let address = if symbol.is_some() || number < LARGEST_SYMBOL { 0 } else { number };
        CodeLocation { address, symbol }
    }

    /// Learns the names in an event.
    pub(super) fn meet(&mut self, kind: &Kind) {
        let mut meet = |task: &Task| self.threads.meet(task);
        match kind {
            Kind::Switch { prev, next, .. } => {
                meet(prev);
                meet(next);
            }
            Kind::Waking(Wake { task, .. })
            | Kind::Wakeup(Wake { task, .. })
            | Kind::WakeupNew(Wake { task, .. })
            | Kind::PiSetprio { task, .. }
            | Kind::Migrate { task, .. }
            | Kind::Exit(task) => meet(task),
            Kind::Rename(task) => self.threads.rename(task.tid, task.comm),
            _ => {}
        }
    }
}
