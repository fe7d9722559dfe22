//! Names for the details of causes: interrupts, kernel functions, wakers, slices.
//! Not here: sentences (`text`).

use std::fmt;

use serde::{Deserialize, Serialize};

use super::who::People;
use crate::cause::{Cause, KernelLock, SliceName, Waker};
use crate::event::{CodeLocation, Irq, Name, Names, Softirq};
use crate::model::{Model, Owner, method_of};

/// Maximum characters of a slice's name in a report.
const LONGEST_SLICE: usize = 80;

/// Names of a trace.
#[derive(Clone, Copy)]
pub(super) struct Details<'a> {
    pub(super) model: &'a Model,
    pub(super) names: &'a Names,
}

impl<'a> Details<'a> {
    /// Everybody whom the trace names.
    pub(super) fn people(&self) -> People<'a> {
        People { model: self.model, names: self.names }
    }

    /// Detail of a cause: an interrupt's name, a kernel function, a call's number.
    pub(super) fn of(&self, cause: &Cause) -> Option<String> {
        match cause {
            Cause::Interrupt { irq, name } => Some(self.interrupt(*irq, *name)),
            Cause::SoftInterrupt(softirq) => Some(softirq.name().to_owned()),
            Cause::IdleExit { state } => Some(state.to_string()),
            Cause::NoFreeThread { busy_with } => busy_with.map(|call| call.to_string()),
            Cause::ThreadWait { waker, comm } => Some(self.thread(*waker, *comm)),
            Cause::WrongCpu { idle_cpu, .. } => Some(format!("cpu{idle_cpu}")),
            Cause::KernelLock(KernelLock::Kind(kind)) => Some(kind.name().to_owned()),
            Cause::Io(at) | Cause::KernelLock(KernelLock::Function(at)) | Cause::Uninterruptible(at) => {
                self.place(at)
            }
            // A text of its own, behind "slept TIME".
            Cause::Sleeping { place, waker } => {
                let place = self.place(place).map(|place| format!("in {place}"));
                let waker = waker.map(|waker| format!("until {} woke it", self.waker(waker)));
                let both: Vec<String> = place.into_iter().chain(waker).collect();
                Some(both.join(" ")).filter(|text| !text.is_empty())
            }
            _ => None,
        }
    }

    /// A kernel function, or its address.
    pub(super) fn place(&self, place: &CodeLocation) -> Option<String> {
        match self.names.text(place.symbol) {
            "" => (place.address != 0).then(|| format!("{:#x}", place.address)),
            symbol => Some(symbol.to_owned()),
        }
    }

    fn interrupt(&self, irq: Irq, name: Name) -> String {
        match self.names.text(name) {
            "" => format!("{irq:?}"),
            name => name.to_owned(),
        }
    }

    /// Who ended a sleep.
    pub(super) fn waker(&self, waker: Waker) -> String {
        match waker {
            Waker::Thread(tid, comm) => self.thread(tid, comm),
            interrupt => self.interrupt_name(interrupt).to_string(),
        }
    }

    /// The interrupt that ended a wait.
    pub(super) fn interrupt_name(&self, waker: Waker) -> InterruptName {
        match waker {
            Waker::Interrupt(irq, name) => {
                InterruptName::Named(format!("interrupt {}", self.interrupt(irq, name)))
            }
            Waker::SoftInterrupt(Softirq::BLOCK) => InterruptName::Disk,
            Waker::SoftInterrupt(softirq) => InterruptName::Named(format!("softirq {}", softirq.name())),
            Waker::Thread(..) | Waker::Unnamed => InterruptName::Unnamed,
        }
    }

    /// A thread with its name.
    pub(super) fn thread(&self, tid: i32, comm: Name) -> String {
        self.people().thread(tid, comm, None).to_string()
    }

    /// What a slice says that a thread was doing: none for one that only repeats that it waited for a lock or a call. A
    /// method is named as `INTERFACE.METHOD`.
    pub(super) fn doing(&self, slice: SliceName) -> Option<Doing> {
        let text = self.model.slice_text(slice);
        if text.is_empty()
            || Owner::parse(text).is_some()
            || [
                "monitor contention",
                "Lock contention",
                "Contending for",
                "binder transaction",
                "binder reply",
            ]
            .iter()
            .any(|with| text.starts_with(with))
        {
            return None;
        }
        if let Some(method) = method_of(text) {
            return Some(Doing::Method(method.to_string()));
        }
        let cut = text.char_indices().nth(LONGEST_SLICE).map(|(at, _)| &text[..at]);
        Some(Doing::Slice(cut.map_or_else(|| text.to_owned(), |cut| format!("{cut}…"))))
    }
}

/// Interrupt that ended a wait. In JSON its text.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(into = "String", from = "String")]
pub enum InterruptName {
    /// The softirq of block devices: the thread that it wakes waited for a disk.
    Disk,
    /// Another one, by its name.
    Named(String),
    /// The trace does not name it.
    Unnamed,
}

/// Text of [`InterruptName::Disk`].
const DISK: &str = "softirq BLOCK";
/// Text of [`InterruptName::Unnamed`].
const UNNAMED: &str = "an interrupt";

impl fmt::Display for InterruptName {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Disk => DISK,
            Self::Named(name) => name,
            Self::Unnamed => UNNAMED,
        })
    }
}

impl From<InterruptName> for String {
    fn from(interrupt: InterruptName) -> Self {
        interrupt.to_string()
    }
}

impl From<String> for InterruptName {
    fn from(text: String) -> Self {
        match text.as_str() {
            DISK => Self::Disk,
            UNNAMED => Self::Unnamed,
            _ => Self::Named(text),
        }
    }
}

/// What a thread was doing.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum Doing {
    /// It called or served this method.
    Method(String),
    /// It was in this slice.
    Slice(String),
}
