//! Room: one raw event as a neutral one.
//! Not here: where its fields are (`layout`); records and pages (`page`).

use super::format::At;
use super::layout::{Layout, Spot, What};
use super::printk;
use super::symbols::Symbols;
use super::threads::Threads;
use crate::event::{
    Binder, Buffer, Context, Irq, Kind, LatencyFree, LockSort, Name, Names, Place, Prio, Softirq, State,
    Task, Transaction, Wake,
};
use crate::fields;
use crate::report::{Report, Sort};

/// Everything that an event's bytes are looked up in.
#[derive(Debug)]
pub(super) struct Decoder {
    /// By the event's number; `None` for numbers that no format has.
    pub(super) layouts: Vec<Option<Layout>>,
    pub(super) names: Names,
    pub(super) threads: Threads,
    pub(super) symbols: Symbols,
}

/// What every event begins with.
/// Fact: `struct trace_entry`; the same since 2.6.33, and its offsets are in every format.
pub(super) struct Common {
    pub(super) id: u16,
    pub(super) context: Context,
    pub(super) tid: i32,
}

impl Common {
    pub(super) fn of(bytes: &[u8]) -> Option<Self> {
        let [a, b, flags, preempt, c, d, e, f] = *bytes.first_chunk::<8>()?;
        Some(Self {
            id: u16::from_le_bytes([a, b]),
            context: Context::of_raw(flags, preempt),
            tid: i32::from_le_bytes([c, d, e, f]),
        })
    }
}

impl Decoder {
    /// What an event's bytes say. What is too short for its format is a problem.
    pub(super) fn kind(&mut self, id: u16, bytes: &[u8], report: &mut Report) -> Kind {
        let Some(layout) = self.layouts.get(usize::from(id)).and_then(Option::as_ref) else {
            report.note_apart(Sort::UnknownEvent, format!("event number {id}"));
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
                report.note(Sort::Corrupt, text);
                Kind::Other { name: layout.name }
            }
        }
    }
}

/// An event with what it is read by.
struct Event<'e> {
    layout: &'e Layout,
    bytes: &'e [u8],
    names: &'e mut Names,
    threads: &'e mut Threads,
    symbols: &'e Symbols,
}

impl<'e> Event<'e> {
    fn kind(&mut self) -> Option<Kind> {
        Some(match self.layout.what {
            What::Switch => return self.switch(),
            What::Waking => Kind::Waking(self.wake()?),
            What::Wakeup => Kind::Wakeup(self.wake()?),
            What::WakeupNew => Kind::WakeupNew(self.wake()?),
            What::BlockedReason => {
                Kind::BlockedReason { tid: self.int(0)?, io_wait: self.int(1)? != 0, caller: self.place(2)? }
            }
            What::PiSetprio => Kind::PiSetprio { task: self.task(0, 1, 2)?, new_prio: Prio(self.int(3)?) },
            What::Migrate => {
                Kind::Migrate { task: self.task(0, 1, 2)?, from_cpu: self.word(3)?, to_cpu: self.word(4)? }
            }
            What::CpuIdle => Kind::CpuIdle {
                cpu: self.word(1)?,
                // The kernel's -1 for leaving.
                state: Some(self.word(0)?).filter(|state| *state != u32::MAX),
            },
            What::CpuFrequency => Kind::CpuFrequency { cpu: self.word(1)?, khz: self.word(0)? },
            What::WorkStart => Kind::WorkStart { work: self.long(0)?, function: self.place(1)? },
            What::WorkEnd => Kind::WorkEnd { work: self.long(0)? },
            What::ReclaimBegin => Kind::ReclaimBegin { order: self.int(0)? },
            What::ReclaimEnd => Kind::ReclaimEnd { reclaimed: self.long(0)? },
            What::ContentionBegin => Kind::ContentionBegin(LockSort::of_flags(self.word(0)?)),
            What::ContentionEnd => Kind::ContentionEnd,
            What::Print | What::Bprint | What::Bputs => return self.print(),
            What::Other => Kind::Other { name: self.layout.name },
            _ => return self.interrupt().or_else(|| Some(Kind::Binder(self.layout.flavour, self.binder()?))),
        })
    }

    fn switch(&mut self) -> Option<Kind> {
        let prev = self.task(0, 1, 2)?;
        let next = self.task(4, 5, 6)?;
        let bits = self.long(3)?;
        let states = &self.layout.states;
        let highest = states.last().map_or(0, |(bit, _)| *bit);
        let state = if highest != 0 && bits & highest << 1 != 0 {
            State::Preempted
        } else {
            let letter = states.iter().find(|(bit, _)| bits & bit != 0);
            letter.map_or(State::Runnable, |(_, letter)| State::of_letter(*letter))
        };
        Some(Kind::Switch { prev, state, next })
    }

    fn interrupt(&mut self) -> Option<Kind> {
        let layout = self.layout;
        Some(match layout.what {
            What::IrqEntry => Kind::IrqEntry { irq: Irq::Line(self.int(0)?), name: self.name(1)? },
            What::IrqExit => Kind::IrqExit { irq: Irq::Line(self.int(0)?), name: Name::NONE },
            What::VectorEntry => Kind::IrqEntry { irq: Irq::Vector(self.int(0)?), name: layout.name },
            What::VectorExit => Kind::IrqExit { irq: Irq::Vector(self.int(0)?), name: layout.name },
            What::IpiEntry => Kind::IrqEntry { irq: Irq::Ipi, name: self.reason()? },
            What::IpiExit => Kind::IrqExit { irq: Irq::Ipi, name: self.reason()? },
            What::IpiRaise => Kind::IpiSend { to_cpu: None, reason: self.reason()? },
            What::IpiSendCpu => Kind::IpiSend { to_cpu: Some(self.word(0)?), reason: self.place(1)?.symbol },
            What::IpiSendMask => Kind::IpiSend { to_cpu: None, reason: self.place(0)?.symbol },
            What::SoftirqRaise => Kind::SoftirqRaise(Softirq(self.word(0)?)),
            What::SoftirqEntry => Kind::SoftirqEntry(Softirq(self.word(0)?)),
            What::SoftirqExit => Kind::SoftirqExit(Softirq(self.word(0)?)),
            _ => return None,
        })
    }

    fn binder(&mut self) -> Option<Binder> {
        Some(match self.layout.what {
            What::Transaction => Binder::Transaction(Transaction {
                debug_id: self.int(0)?,
                target_node: self.int(1)?,
                to_proc: self.int(2)?,
                to_thread: self.int(3)?,
                reply: self.int(4)? != 0,
                code: self.word(5)?,
                flags: self.word(6)?,
            }),
            What::Received => Binder::Received { debug_id: self.int(0)? },
            What::AllocBuf => Binder::AllocBuf(self.buffer()?),
            What::BufferRelease => Binder::BufferRelease(self.buffer()?),
            What::FailedBufferRelease => Binder::FailedBufferRelease(self.buffer()?),
            What::UpdateBufferRelease => Binder::UpdateBufferRelease(self.buffer()?),
            What::SetPriority => Binder::SetPriority {
                proc: self.int(0)?,
                thread: self.int(1)?,
                old: Prio(self.int(2)?),
                new: Prio(self.int(3)?),
                desired: Prio(self.int(4)?),
            },
            // The tag is an address in the driver, which no symbol stands for.
            What::Lock => Binder::Lock { tag: Name::NONE },
            What::Locked => Binder::Locked { tag: Name::NONE },
            What::Unlock => Binder::Unlock { tag: Name::NONE },
            What::WaitForWork => Binder::WaitForWork {
                proc_work: self.int(0)? != 0,
                transaction_stack: self.int(1)? != 0,
                thread_todo: self.int(2)? != 0,
            },
            What::Ioctl => Binder::Ioctl { cmd: self.word(0)?, arg: self.long(1)? },
            What::IoctlDone => Binder::IoctlDone { ret: self.int(0)? },
            What::WriteDone => Binder::WriteDone { ret: self.int(0)? },
            What::ReadDone => Binder::ReadDone { ret: self.int(0)? },
            What::Command => Binder::Command { cmd: self.word(0)? },
            What::Return => Binder::Return { cmd: self.word(0)? },
            What::LatencyFree => Binder::LatencyFree(LatencyFree {
                debug_id: self.int(0)?,
                from_proc: self.int(1)?,
                from_thread: self.int(2)?,
                to_proc: self.int(3)?,
                to_thread: self.int(4)?,
                code: self.word(5)?,
                flags: self.word(6)?,
            }),
            What::FdSend => {
                Binder::FdSend { debug_id: self.int(0)?, fd: self.int(1)?, offset: self.long(2)? }
            }
            What::FdReceived => {
                Binder::FdReceived { debug_id: self.int(0)?, fd: self.int(1)?, offset: self.long(2)? }
            }
            _ => return None,
        })
    }

    fn buffer(&self) -> Option<Buffer> {
        Some(Buffer {
            debug_id: self.int(0)?,
            data_size: self.long(1)?,
            offsets_size: self.long(2)?,
            extra_size: self.long(3)?,
        })
    }

    /// Printed text, or the embedded driver's event that it is.
    fn print(&mut self) -> Option<Kind> {
        let text = match self.layout.what {
            What::Print => String::from_utf8_lossy(until_nul(self.content(0)?)).into_owned(),
            What::Bputs => self.symbols.text(self.long(0)?).unwrap_or("?").to_owned(),
            _ => {
                let format = self.symbols.text(self.long(0)?);
                format.map_or_else(
                    || "?".to_owned(),
                    |format| printk::fill(format, self.content(1).unwrap_or(&[])),
                )
            }
        };
        Some(fields::mark(text.trim_end_matches('\n'), self.names))
    }

    fn task(&mut self, comm: usize, tid: usize, prio: usize) -> Option<Task> {
        let task = Task { tid: self.int(tid)?, comm: self.name(comm)?, prio: Prio(self.int(prio)?) };
        self.threads.meet(task.tid, task.comm);
        Some(task)
    }

    fn wake(&mut self) -> Option<Wake> {
        Some(Wake { task: self.task(0, 1, 2)?, target_cpu: self.word(3)? })
    }

    fn name(&mut self, field: usize) -> Option<Name> {
        let content = until_nul(self.content(field)?);
        Some(self.names.intern_bytes(content))
    }

    /// The reason of arm's inter-processor interrupts: the address of a text. Where `printk_formats` has
    /// it, its name.
    fn reason(&mut self) -> Option<Name> {
        let address = self.long(0)?;
        Some(self.symbols.text(address).map_or(Name::NONE, |text| self.names.intern(text)))
    }

    fn place(&mut self, field: usize) -> Option<Place> {
        let address = self.long(field)?;
        Some(self.symbols.place(address, self.names))
    }

    fn spot(&self, field: usize) -> Option<Spot> {
        self.layout.spots.get(field).copied()
    }

    /// The bytes of a field, wherever they are.
    fn content(&self, field: usize) -> Option<&'e [u8]> {
        let spot = self.spot(field)?;
        if spot.at == At::Here {
            let end = if spot.size == 0 { self.bytes.len() } else { spot.offset + spot.size };
            return self.bytes.get(spot.offset..end);
        }
        let word = u32::try_from(number(self.bytes, spot)?).ok()?;
        let base = if spot.at == At::RelLoc { spot.offset + spot.size } else { 0 };
        let start = base + (word & 0xffff) as usize;
        self.bytes.get(start..start + (word >> 16) as usize)
    }

    fn long(&self, field: usize) -> Option<u64> {
        number(self.bytes, self.spot(field)?)
    }

    /// A number that fits into 32 bits, whatever the field's size; higher bits are of no event's meaning.
    #[expect(clippy::cast_possible_truncation, reason = "the low 32 bits are meant")]
    fn word(&self, field: usize) -> Option<u32> {
        self.long(field).map(|value| value as u32)
    }

    fn int(&self, field: usize) -> Option<i32> {
        self.word(field).map(u32::cast_signed)
    }
}

/// A field as a number, with its sign's bits extended.
#[inline]
fn number(bytes: &[u8], spot: Spot) -> Option<u64> {
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
    bytes.split(|byte| *byte == 0).next().unwrap_or(bytes)
}
