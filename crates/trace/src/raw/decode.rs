//! Decodes one raw event into a neutral one.
//! Not here: field offsets (`layout`); records and pages (`page`).

use std::ffi::CStr;
use std::sync::Arc;

use super::format::FieldLocation;
use super::layout::{Decoding, FieldSpot, Layout};
use super::printk;
use super::symbols::Symbols;
use super::threads::Threads;
use crate::event::{Context, Irq, Kind, Name, Names, Wake};
use crate::fields;
use crate::report::{ProblemKind, Report};
use crate::schema::{self, EventSpec, FieldType, Values};

/// Tables for decoding events.
#[derive(Clone, Debug)]
pub(super) struct Decoder {
    /// Layout by event number; `None` for numbers without a format.
    pub(super) layouts: Arc<[Option<Layout>]>,
    pub(super) names: Names,
    pub(super) threads: Threads,
    pub(super) symbols: Arc<Symbols>,
}

/// Common fields of every event.
/// Fact: `struct trace_entry`; the same since 2.6.33, and its offsets are in every format.
pub(super) struct CommonFields {
    pub(super) id: u16,
    pub(super) context: Context,
    pub(super) tid: i32,
}

impl CommonFields {
    pub(super) fn of(bytes: &[u8]) -> Option<Self> {
        let [a, b, flags, _preempt_count, c, d, e, f] = *bytes.first_chunk::<8>()?;
        Some(Self {
            id: u16::from_le_bytes([a, b]),
            context: Context::of_flags(flags),
            tid: i32::from_le_bytes([c, d, e, f]),
        })
    }
}

impl Decoder {
    /// Decodes an event. An event shorter than its format is reported as a problem.
    pub(super) fn kind(&mut self, id: u16, bytes: &[u8], report: &mut Report) -> Kind {
        let Some(layout) = self.layouts.get(usize::from(id)).and_then(Option::as_ref) else {
            report.note_apart(ProblemKind::UnknownEvent, format!("event number {id}"));
            return Kind::Other { name: Name::NONE };
        };
        let mut event = Event {
            layout,
            bytes,
            names: &mut self.names,
            threads: &mut self.threads,
            symbols: &self.symbols,
        };
        match event.kind() {
            Some(kind) => kind,
            None => {
                let text = || format!("{} has {} bytes, too few", self.names.text(layout.name), bytes.len());
                report.note(ProblemKind::Corrupt, text);
                Kind::Other { name: layout.name }
            }
        }
    }
}

/// Raw event with its layout.
struct Event<'e> {
    layout: &'e Layout,
    bytes: &'e [u8],
    names: &'e mut Names,
    threads: &'e mut Threads,
    symbols: &'e Symbols,
}

impl<'e> Event<'e> {
    fn kind(&mut self) -> Option<Kind> {
        let layout = self.layout;
        let kind = match layout.decoding {
            Decoding::Table(spec, flavour) => spec.event(&self.values(spec)?, flavour),
            Decoding::Vector { entry } => {
                let (irq, name) = (Irq::Vector(schema::int(self.number(0)?.into())), layout.name);
                if entry { Kind::IrqEntry { irq, name } } else { Kind::IrqExit { irq, name } }
            }
            Decoding::Print | Decoding::Bprint | Decoding::Bputs => return self.print(),
            Decoding::Other => Kind::Other { name: layout.name },
        };
        match &kind {
            Kind::Switch { prev, next, .. } => {
                self.threads.meet(prev);
                self.threads.meet(next);
            }
            Kind::Waking(Wake { task, .. })
            | Kind::Wakeup(Wake { task, .. })
            | Kind::WakeupNew(Wake { task, .. })
            | Kind::PiSetprio { task, .. }
            | Kind::Rename(task)
            | Kind::Exit(task)
            | Kind::Migrate { task, .. } => self.threads.meet(task),
            _ => {}
        }
        Some(kind)
    }

    fn values(&mut self, spec: &EventSpec) -> Option<Values> {
        let mut values = Values::default();
        for (index, field) in spec.fields.iter().enumerate() {
            if field.name.is_empty() {
                continue;
            }
            values[index] = match field.form {
                FieldType::Text => self.names.intern_bytes(until_nul(self.content(index)?)).into(),
                FieldType::Place => self.symbols.place(self.number(index)?, self.names).into(),
                FieldType::Reason => {
                    let text = self.symbols.text(self.number(index)?);
                    text.map_or(Name::NONE, |text| self.names.intern(text)).into()
                }
                FieldType::State => u64::from(self.state_letter(self.number(index)?)).into(),
                FieldType::OptionalNumber => self.number(index).unwrap_or(0).into(),
                FieldType::Number | FieldType::Address | FieldType::LockFlags => self.number(index)?.into(),
            };
        }
        Some(values)
    }

    /// Letter of a task state; `+` for a preempted task.
    fn state_letter(&self, bits: u64) -> u8 {
        let states = &self.layout.states;
        if let Some((bit, b'+')) = states.last()
            && bits & bit != 0
        {
            return b'+';
        }
        states.iter().find(|(bit, _)| bits & bit != 0).map_or(b'R', |(_, letter)| *letter)
    }

    /// Printed text, or the embedded driver's event in it.
    fn print(&mut self) -> Option<Kind> {
        let filled;
        let text = match self.layout.decoding {
            Decoding::Print => until_nul(self.content(0)?),
            Decoding::Bputs => self.symbols.text(self.number(0)?).unwrap_or("?").as_bytes(),
            _ => {
                let format = self.symbols.text(self.number(0)?);
                let fill = |format| printk::fill(format, self.content(1).unwrap_or(&[]));
                filled = format.map_or_else(|| "?".to_owned(), fill);
                filled.as_bytes()
            }
        };
        Some(fields::mark(text, self.names))
    }

    fn spot(&self, field: usize) -> Option<FieldSpot> {
        self.layout.spots.get(field).copied()
    }

    /// Bytes of a field, wherever they are stored.
    fn content(&self, field: usize) -> Option<&'e [u8]> {
        let spot = self.spot(field)?;
        if spot.at == FieldLocation::Here {
            let end = if spot.size == 0 { self.bytes.len() } else { spot.offset + spot.size };
            return self.bytes.get(spot.offset..end);
        }
        let word = u32::try_from(number(self.bytes, spot)?).ok()?;
        let base = if spot.at == FieldLocation::RelLoc { spot.offset + spot.size } else { 0 };
        let start = base + (word & 0xffff) as usize;
        self.bytes.get(start..start + (word >> 16) as usize)
    }

    fn number(&self, field: usize) -> Option<u64> {
        number(self.bytes, self.spot(field)?)
    }
}

/// Field as a number, sign-extended if signed.
fn number(bytes: &[u8], spot: FieldSpot) -> Option<u64> {
    let bytes = bytes.get(spot.offset..)?;
    Some(match (spot.size, spot.signed) {
        (4, false) => u32::from_le_bytes(*bytes.first_chunk()?).into(),
        (4, true) => i64::from(i32::from_le_bytes(*bytes.first_chunk()?)).cast_unsigned(),
        (8, _) => u64::from_le_bytes(*bytes.first_chunk()?),
        (1, false) => u64::from(*bytes.first()?),
        (1, true) => i64::from(bytes.first()?.cast_signed()).cast_unsigned(),
        (2, false) => u16::from_le_bytes(*bytes.first_chunk()?).into(),
        (2, true) => i64::from(i16::from_le_bytes(*bytes.first_chunk()?)).cast_unsigned(),
        _ => return None,
    })
}

fn until_nul(bytes: &[u8]) -> &[u8] {
    CStr::from_bytes_until_nul(bytes).map_or(bytes, CStr::to_bytes)
}
