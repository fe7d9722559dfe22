//! Names for the details of causes: interrupts, kernel functions, wakers, slices.
//! Not here: sentences (`text`).

use super::who::People;
use crate::cause::{Cause, KernelLock, SliceName, Waker};
use crate::event::{CodeLocation, Irq, Name, Names};
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
            Waker::Interrupt(irq, name) => format!("interrupt {}", self.interrupt(irq, name)),
            Waker::SoftInterrupt(softirq) => format!("softirq {}", softirq.name()),
            Waker::Unnamed => "an interrupt".to_owned(),
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

/// What a thread was doing.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum Doing {
    /// It called or served this method.
    Method(String),
    /// It was in this slice.
    Slice(String),
}
