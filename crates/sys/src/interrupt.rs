//! Room: interrupting one thread's system call.
//! Not here: stopping a process.
//! Facts: `gettid(2)`, `pthread_atfork(3)`, `tgkill(2)`, `sigaction(2)`; contract WR-06.

use std::cell::Cell;
use std::io;
use std::sync::OnceLock;

thread_local! {
    /// The kernel's number of this thread; 0 until asked for.
    static OWN: Cell<i32> = const { Cell::new(0) };
}

/// The kernel's number of a thread.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ThreadId(i32);

impl ThreadId {
    /// The calling thread. The kernel is asked once per thread, and anew by the thread that goes on in a forked process.
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
        // SAFETY: gettid takes nothing and cannot fail.
        let number = unsafe { libc::gettid() };
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
    /// Installs the handler with `SA_RESTART`: only calls that no restart helps come back with
    /// `EINTR`.
    ///
    /// # Errors
    /// None in normal work.
    pub fn install() -> io::Result<Self> {
        Self::install_with(libc::SA_RESTART)
    }

    /// Installs the handler without `SA_RESTART`, for all of this process: interrupted calls come
    /// back with `EINTR`.
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
        let result = unsafe { libc::sigaction(libc::SIGUSR1, &raw const action, std::ptr::null_mut()) };
        if result < 0 { Err(io::Error::last_os_error()) } else { Ok(Self(())) }
    }

    /// Sends SIGUSR1 to a thread of this process.
    ///
    /// # Errors
    /// `ESRCH`: the thread ended.
    pub fn interrupt(self, thread: ThreadId) -> io::Result<()> {
        let process = std::process::id();
        // SAFETY: tgkill takes integers; the signal's handler does nothing (`install`).
        let result = unsafe { libc::syscall(libc::SYS_tgkill, process, thread.0, libc::SIGUSR1) };
        if result < 0 { Err(io::Error::last_os_error()) } else { Ok(()) }
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
