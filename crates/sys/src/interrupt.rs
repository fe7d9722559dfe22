//! Interrupting one thread's system call.
//! Not here: stopping a process.
//! Facts: `gettid(2)`, `pthread_atfork(3)`, `tgkill(2)`, `sigaction(2)`; contract WR-06.

use std::cell::Cell;
use std::io;
use std::sync::OnceLock;

use crate::errno::check;

thread_local! {
    /// The kernel's number of this thread; 0 until first used.
    static OWN: Cell<i32> = const { Cell::new(0) };
}

/// A thread's number in the kernel (`gettid`).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ThreadId(i32);

impl ThreadId {
    /// The calling thread. Cached per thread; a forked process asks the kernel again.
    #[must_use]
    #[inline]
    pub fn current() -> Self {
        Self(match OWN.get() {
            0 => Self::ask(),
            number => number,
        })
    }

    #[cold]
    fn ask() -> i32 {
        static HEARS_OF_FORKS: OnceLock<bool> = OnceLock::new();
        extern "C" fn forked() {
            OWN.set(0);
        }
        // SAFETY: the handler stores into memory of the thread that forked, which is there without being made.
        let hear = || unsafe { libc::pthread_atfork(None, None, Some(forked)) } == 0;
        // The raw call: std declares the C library's `gettid` weak, and a static program that is optimised as a whole
        // when it is linked would then be linked without it.
        // SAFETY: gettid takes nothing and cannot fail.
        let number = unsafe { libc::syscall(libc::SYS_gettid) } as i32;
        if *HEARS_OF_FORKS.get_or_init(hear) {
            OWN.set(number);
        }
        number
    }

    /// The number, as `/proc/self/task` lists it.
    #[must_use]
    pub fn number(self) -> i32 {
        self.0
    }
}

/// Whether a process has a thread of this number at this moment.
#[must_use]
pub fn is_thread_of(process: u32, thread: i32) -> bool {
    // SAFETY: tgkill takes integers; signal 0 is not sent, only its target looked for.
    thread > 0 && unsafe { libc::syscall(libc::SYS_tgkill, process, thread, 0) } == 0
}

extern "C" fn nothing(_signal: libc::c_int) {}

/// Proof that SIGUSR1 does nothing in this process but interrupt system calls.
#[derive(Clone, Copy, Debug)]
pub struct Interrupter(());

impl Interrupter {
    /// Installs the handler with `SA_RESTART`: only system calls that cannot be restarted return `EINTR`.
    ///
    /// # Errors
    /// None in normal work.
    pub fn install() -> io::Result<Self> {
        Self::install_with(libc::SA_RESTART)
    }

    /// Installs the handler without `SA_RESTART`, for the whole process: interrupted calls return `EINTR`.
    ///
    /// # Errors
    /// None in normal work.
    pub fn install_without_restart() -> io::Result<Self> {
        Self::install_with(0)
    }

    fn install_with(flags: libc::c_int) -> io::Result<Self> {
        // SAFETY: a sigaction is integers and pointers, for which all-zero bytes are a value.
        let mut action: libc::sigaction = unsafe { std::mem::zeroed() };
        action.sa_sigaction = nothing as extern "C" fn(libc::c_int) as libc::sighandler_t;
        action.sa_flags = flags;
        // SAFETY: `action` is live; the handler does nothing, which is safe at any instruction.
        check(unsafe { libc::sigaction(libc::SIGUSR1, &raw const action, std::ptr::null_mut()) })?;
        Ok(Self(()))
    }

    /// Sends SIGUSR1 to a thread of this process.
    ///
    /// # Errors
    /// `ESRCH`: the thread ended.
    pub fn interrupt(self, thread: ThreadId) -> io::Result<()> {
        let process = std::process::id();
        // SAFETY: tgkill takes integers; the signal's handler does nothing (`install`).
        check(unsafe { libc::syscall(libc::SYS_tgkill, process, thread.0, libc::SIGUSR1) })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_thread_belongs_to_its_process_only() {
        let (me, parent) = (std::process::id(), std::os::unix::process::parent_id());
        let thread = ThreadId::current().number();
        assert!(is_thread_of(me, thread));
        assert!(!is_thread_of(parent, thread));
        assert!(!is_thread_of(me, 0));
    }

    #[test]
    fn a_forked_process_has_a_number_of_its_own() {
        let mine = ThreadId::current().number();
        assert_eq!(mine, ThreadId::current().number());
        // SAFETY: the child makes two system calls, and leaves without running anything of this process's.
        let child = unsafe { libc::fork() };
        if child == 0 {
            let own = ThreadId::current().number();
            // SAFETY: _exit takes an integer and runs nothing of this process's.
            unsafe { libc::_exit((own == std::process::id().cast_signed() && own != mine).into()) };
        }
        let mut status = 0;
        // SAFETY: `status` is live for the kernel to store into.
        assert_eq!(unsafe { libc::waitpid(child, &raw mut status, 0) }, child);
        assert_eq!((libc::WIFEXITED(status), libc::WEXITSTATUS(status)), (true, 1));
    }

    #[test]
    fn a_live_thread_can_be_interrupted_and_a_dead_one_cannot() {
        let interrupter = Interrupter::install().expect("handler");
        interrupter.interrupt(ThreadId::current()).expect("this thread lives");
        let gone = std::thread::spawn(ThreadId::current).join().expect("thread ends");
        // The number may linger for a moment after join; it must not stay.
        let refused = (0..1000).any(|_| {
            std::thread::yield_now();
            interrupter.interrupt(gone).is_err()
        });
        assert!(refused, "thread {} is gone", gone.number());
    }
}
