//! A sleep in several steps that handles signals like one kernel wait: a signal between the first step and the last
//! ends the sleep unless its handler has `SA_RESTART`.
//! Not here: sending signals (`interrupt`).
//! Facts: `pthread_sigmask(3)`, `sigpending(2)`, `sigaction(2)`, `signalfd(2)`; a wait in the kernel is
//! restarted after a handler with `SA_RESTART` and ends with `EINTR` after any other.

use std::fmt;
use std::io;
use std::marker::PhantomData;
use std::mem::MaybeUninit;
use std::os::fd::{AsRawFd, OwnedFd};
use std::time::Duration;

use crate::errno::{check, new_descriptor};

/// Blocks all signals of the calling thread; [`sleep`](Self::sleep) and the drop deliver pending ones.
pub struct HeldSignals {
    before: libc::sigset_t,
    /// Readable while a blocked signal is pending; never read.
    any: OwnedFd,
    /// A signal mask belongs to its thread: not `Send`.
    of_this_thread: PhantomData<*const ()>,
}

impl fmt::Debug for HeldSignals {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("HeldSignals").field("any", &self.any).finish_non_exhaustive()
    }
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

/// Whether a signal's handler ends waits instead of restarting them.
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

/// Makes a descriptor that is readable while a signal of the set is pending.
fn watch(signals: &libc::sigset_t) -> io::Result<OwnedFd> {
    // SAFETY: `signals` is live to be read; -1 asks for a new descriptor.
    let fd = unsafe { libc::signalfd(-1, signals, libc::SFD_CLOEXEC | libc::SFD_NONBLOCK) };
    // SAFETY: the result of signalfd.
    unsafe { new_descriptor(fd) }
}

/// All signals but those in a set.
fn others(set: &libc::sigset_t) -> libc::sigset_t {
    let mut rest = all();
    for signal in (1..=libc::SIGRTMAX()).filter(|signal| has(set, *signal)) {
        // SAFETY: `rest` is live to be written, and the number that of a signal.
        unsafe { libc::sigdelset(&raw mut rest, signal) };
    }
    rest
}

fn pending() -> io::Result<libc::sigset_t> {
    let mut pending = MaybeUninit::uninit();
    // SAFETY: `pending` is live to be written.
    check(unsafe { libc::sigpending(pending.as_mut_ptr()) })?;
    // SAFETY: the call succeeded and has written it.
    Ok(unsafe { pending.assume_init() })
}

impl HeldSignals {
    /// Blocks every signal that can be blocked.
    ///
    /// # Errors
    /// `EMFILE`, `ENFILE`, `ENOMEM`.
    pub fn hold() -> io::Result<Self> {
        let before = set_mask(&all())?;
        match watch(&others(&before)) {
            Ok(any) => Ok(Self { before, any, of_this_thread: PhantomData }),
            Err(error) => {
                set_mask(&before)?;
                Err(error)
            }
        }
    }

    /// Sleeps until a signal is pending and delivers it, at most for `longest` (in whole ms).
    ///
    /// # Errors
    /// `EINTR`: a signal whose handler has no `SA_RESTART` was delivered.
    pub fn sleep(&self, longest: Duration) -> io::Result<()> {
        let mut poll = libc::pollfd { fd: self.any.as_raw_fd(), events: libc::POLLIN, revents: 0 };
        let ms = i32::try_from(longest.as_millis()).unwrap_or(i32::MAX);
        // SAFETY: one pollfd, live to be read and written. Whatever comes of it, what is pending counts.
        unsafe { libc::poll(&raw mut poll, 1, ms) };
        let pending = pending()?;
        let came = |signal: &i32| has(&pending, *signal) && !has(&self.before, *signal);
        let came: Vec<i32> = (1..=libc::SIGRTMAX()).filter(came).collect();
        if came.is_empty() {
            return Ok(());
        }
        let ends = came.iter().any(|signal| interrupts(*signal));
        // Unblock only the signals examined above, so that a later one is examined, too.
        let mut mask = all();
        for signal in came {
            // SAFETY: `mask` is live to be written, and the number that of a signal.
            unsafe { libc::sigdelset(&raw mut mask, signal) };
        }
        set_mask(&mask)?;
        set_mask(&all())?;
        if ends { Err(io::Error::from_raw_os_error(libc::EINTR)) } else { Ok(()) }
    }
}

impl Drop for HeldSignals {
    fn drop(&mut self) {
        // Restoring a valid mask cannot fail.
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
        let (begun, long) = (std::time::Instant::now(), Duration::from_secs(60));
        held.sleep(Duration::from_millis(5)).expect("nothing came");
        assert!(begun.elapsed() >= Duration::from_millis(5));
        // Its handler has SA_RESTART: it comes, and ends no wait. (The other way: contract FRZ-04.)
        let interrupter = Interrupter::install().expect("a handler");
        interrupter.interrupt(ThreadId::current()).expect("sent");
        held.sleep(long).expect("nothing that ends waits");
        assert!(begun.elapsed() < long, "but it does not go on sleeping");
    }
}
