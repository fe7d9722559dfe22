//! Room: signals that wait until this thread waits, so that none is lost between two waits that belong
//! together.
//! Not here: waits that a signal interrupts (`interval`), sending signals (`interrupt`).
//! Facts: `pthread_sigmask(3)`, `sigpending(2)`, `sigaction(2)`; a wait in the kernel is interrupted by a
//! signal that came at any time since it began, unless its handler has `SA_RESTART`.

use std::io;
use std::marker::PhantomData;
use std::mem::MaybeUninit;

/// Signals are held back from the calling thread; those that came are let in by
/// [`released`](Self::released), and when this is dropped.
pub struct HeldSignals {
    before: libc::sigset_t,
    /// A mask is its thread's.
    of_this_thread: PhantomData<*const ()>,
}

fn set_mask(mask: &libc::sigset_t) -> io::Result<libc::sigset_t> {
    let mut before = MaybeUninit::uninit();
    // SAFETY: `mask` is live to be read, `before` to be written.
    match unsafe { libc::pthread_sigmask(libc::SIG_SETMASK, mask, before.as_mut_ptr()) } {
        // SAFETY: the call succeeded and has written it.
        0 => Ok(unsafe { before.assume_init() }),
        errno => Err(io::Error::from_raw_os_error(errno)),
    }
}

fn all() -> libc::sigset_t {
    let mut all = MaybeUninit::uninit();
    // SAFETY: `all` is live to be written; this cannot fail for a valid pointer.
    unsafe { libc::sigfillset(all.as_mut_ptr()) };
    // SAFETY: written just now.
    unsafe { all.assume_init() }
}

fn has(set: &libc::sigset_t, signal: i32) -> bool {
    // SAFETY: `set` is live to be read; a number that is no signal is told by a negative result.
    unsafe { libc::sigismember(set, signal) == 1 }
}

/// Whether a signal's handler ends waits for good.
fn interrupts(signal: i32) -> bool {
    let mut action = MaybeUninit::<libc::sigaction>::zeroed();
    // SAFETY: asks only; `action` is live to be written, the new action may be null.
    if unsafe { libc::sigaction(signal, std::ptr::null(), action.as_mut_ptr()) } < 0 {
        return false;
    }
    // SAFETY: the call succeeded and has written it.
    let action = unsafe { action.assume_init() };
    let handled = ![libc::SIG_DFL, libc::SIG_IGN].contains(&action.sa_sigaction);
    handled && action.sa_flags & libc::SA_RESTART == 0
}

impl HeldSignals {
    /// Holds back every signal that can be.
    ///
    /// # Errors
    /// None that a kernel is known to give.
    pub fn hold() -> io::Result<Self> {
        Ok(Self { before: set_mask(&all())?, of_this_thread: PhantomData })
    }

    /// Whether a signal came meanwhile that ends waits.
    fn interrupted(&self) -> bool {
        let mut pending = MaybeUninit::uninit();
        // SAFETY: `pending` is live to be written.
        if unsafe { libc::sigpending(pending.as_mut_ptr()) } < 0 {
            return false;
        }
        // SAFETY: the call succeeded and has written it.
        let pending = unsafe { pending.assume_init() };
        let came = |signal: &i32| has(&pending, *signal) && !has(&self.before, *signal);
        (1..=libc::SIGRTMAX()).filter(came).any(interrupts)
    }

    /// Lets signals in and waits, unless one came that ends waits.
    ///
    /// # Errors
    /// `EINTR`: one came. Else as `wait`.
    pub fn released<T>(&self, wait: impl FnOnce() -> io::Result<T>) -> io::Result<T> {
        let interrupted = self.interrupted();
        set_mask(&self.before)?;
        let result = if interrupted { Err(io::Error::from_raw_os_error(libc::EINTR)) } else { wait() };
        set_mask(&all())?;
        result
    }
}

impl Drop for HeldSignals {
    fn drop(&mut self) {
        // The mask was a valid one, and is again.
        let _ = set_mask(&self.before);
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::interrupt::{Interrupter, ThreadId};

    #[test]
    fn a_held_signal_is_let_in_by_the_next_wait() {
        let held = HeldSignals::hold().expect("a mask");
        assert_eq!(held.released(|| Ok(1)).expect("nothing came"), 1);
        // Its handler has SA_RESTART: it comes, and ends no wait.
        let interrupter = Interrupter::install().expect("a handler");
        interrupter.interrupt(ThreadId::current()).expect("sent");
        assert_eq!(held.released(|| Ok(2)).expect("nothing that ends waits"), 2);
    }
}
