//! Starting a program whose system calls of some kinds are answered by this process: the filter, and the way to its
//! listener.
//! Not here: answering (`notification`), which calls (crate `supervise`).
//! Facts: `seccomp(2)`, `seccomp_unotify(2)`; classic BPF programs as in `linux/filter.h`.

use std::io;
use std::os::fd::{AsFd, AsRawFd, BorrowedFd, OwnedFd};
use std::os::unix::process::CommandExt;
use std::process::{Child, Command};

use crate::errno::check;
use crate::notification::Listener;
use crate::seqpacket::{self, Wait};

/// Which calls of one system call ask the supervisor, by the low 32 bits of an argument. All others go on.
#[derive(Clone, Copy, Debug)]
pub enum Asks {
    /// Every one.
    Always,
    /// Those whose argument `argument` has `value` under `mask`.
    Masked {
        /// Index of the argument.
        argument: u32,
        /// Bits that count.
        mask: u32,
        /// Their value.
        value: u32,
    },
    /// Those whose argument `argument` is one of these.
    OneOf {
        /// Index of the argument.
        argument: u32,
        /// The values.
        values: &'static [u32],
    },
}

/// One rule of a filter: a system call's number, and when it asks.
pub type Rule = (libc::c_long, Asks);

/// Number of this machine's kind in `seccomp_data`; `None` where this module does not know it.
const ARCHITECTURE: Option<u32> = if cfg!(target_arch = "x86_64") {
    Some(0xc000_003e)
} else if cfg!(target_arch = "aarch64") {
    Some(0xc000_00b7)
} else if cfg!(target_arch = "riscv64") {
    Some(0xc000_00f3)
} else {
    None
};

const LOAD: u16 = (libc::BPF_LD | libc::BPF_W | libc::BPF_ABS) as u16;
const AND: u16 = (libc::BPF_ALU | libc::BPF_AND | libc::BPF_K) as u16;
const IF_EQUAL: u16 = (libc::BPF_JMP | libc::BPF_JEQ | libc::BPF_K) as u16;
const RETURN: u16 = (libc::BPF_RET | libc::BPF_K) as u16;

/// Offsets in `seccomp_data`.
const NUMBER_AT: u32 = 0;
const ARCHITECTURE_AT: u32 = 4;
const ARGUMENTS_AT: u32 = 16;

fn step(code: u16, k: u32) -> libc::sock_filter {
    libc::sock_filter { code, jt: 0, jf: 0, k }
}

/// A step that skips `otherwise` steps if the value differs from `k`.
fn equal(k: u32, otherwise: u8) -> libc::sock_filter {
    libc::sock_filter { code: IF_EQUAL, jt: 0, jf: otherwise, k }
}

/// The program for these rules.
fn program(architecture: u32, rules: &[Rule]) -> Vec<libc::sock_filter> {
    let ask = step(RETURN, libc::SECCOMP_RET_USER_NOTIF);
    let go_on = step(RETURN, libc::SECCOMP_RET_ALLOW);
    // Calls of another kind, as those of 32-bit programs, go on: their numbers mean other calls.
    let same = libc::sock_filter { code: IF_EQUAL, jt: 1, jf: 0, k: architecture };
    let mut steps = vec![step(LOAD, ARCHITECTURE_AT), same, go_on, step(LOAD, NUMBER_AT)];
    for (number, asks) in rules {
        let load = |argument| step(LOAD, ARGUMENTS_AT + 8 * argument);
        let test = match *asks {
            Asks::Always => vec![ask],
            Asks::Masked { argument, mask, value } => {
                vec![load(argument), step(AND, mask), equal(value, 1), ask, go_on]
            }
            Asks::OneOf { argument, values } => {
                let tests = values.iter().flat_map(|value| [equal(*value, 1), ask]);
                std::iter::once(load(argument)).chain(tests).chain([go_on]).collect()
            }
        };
        steps.push(equal(*number as u32, test.len() as u8));
        steps.extend(test);
    }
    steps.push(go_on);
    steps
}

/// Why programs cannot be supervised here; `None` if they can.
#[must_use]
pub fn obstacle() -> Option<&'static str> {
    if ARCHITECTURE.is_none() {
        return Some("this program does not know how to filter the system calls of this kind of machine");
    }
    let action = libc::SECCOMP_RET_USER_NOTIF;
    // SAFETY: asks for an action by a live number.
    let known =
        unsafe { libc::syscall(libc::SYS_seccomp, libc::SECCOMP_GET_ACTION_AVAIL, 0, &raw const action) }
            == 0;
    if !known {
        return Some(
            "the kernel has no seccomp user notification (Linux 5.0, CONFIG_SECCOMP_FILTER), or a sandbox hides it",
        );
    }
    if Listener::knows_atomic_install() {
        None
    } else {
        Some("the kernel cannot answer a system call with a descriptor (Linux 5.14)")
    }
}

/// Starts a program under a filter of these rules, with `no_new_privs`; all its descendants are under it, too. Returns
/// the child and the listener for what they ask.
///
/// # Errors
/// `EBUSY`: this process is under a filter with a listener itself. Those of `Command::spawn`.
pub fn spawn(mut command: Command, rules: &[Rule]) -> io::Result<(Child, Listener)> {
    let architecture = ARCHITECTURE.ok_or(io::ErrorKind::Unsupported)?;
    let steps = program(architecture, rules);
    let (here, there) = seqpacket::pair()?;
    let number = there.as_raw_fd();
    let filter = move || {
        let listener = install(&steps)?;
        // SAFETY: the socket is open here until exec closes it: `spawn` keeps its value until then.
        let socket = unsafe { BorrowedFd::borrow_raw(number) };
        seqpacket::send(socket, b"l", &[listener.as_fd()], Wait::No)
    };
    // SAFETY: between fork and exec `filter` makes system calls and allocates nothing.
    unsafe { command.pre_exec(filter) };
    let child = command.spawn()?;
    drop(there);
    let mut descriptors = Vec::new();
    seqpacket::recv(here.as_fd(), &mut [0; 4], &mut descriptors, Wait::No)?;
    let listener = descriptors.pop().ok_or(io::ErrorKind::BrokenPipe)?;
    Ok((child, Listener::new(listener)))
}

/// Puts the calling thread under the filter for good.
fn install(steps: &[libc::sock_filter]) -> io::Result<OwnedFd> {
    let program = libc::sock_fprog { len: steps.len() as libc::c_ushort, filter: steps.as_ptr().cast_mut() };
    // SAFETY: takes integers.
    check(unsafe { libc::prctl(libc::PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) })?;
    let flags = libc::SECCOMP_FILTER_FLAG_NEW_LISTENER;
    // SAFETY: `program` names the live steps, which the call only reads.
    let listener =
        unsafe { libc::syscall(libc::SYS_seccomp, libc::SECCOMP_SET_MODE_FILTER, flags, &raw const program) };
    // SAFETY: the result of the call: with that flag, a new descriptor, closed on exec.
    unsafe { crate::errno::new_descriptor(listener) }
}
