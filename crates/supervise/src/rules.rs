//! The system calls of a program that ask the supervisor, and what each of them means.
//! Not here: the answers (`answer`), the filter itself (`sys::seccomp`).

use sys::call;
use sys::notification::Notification;
use sys::seccomp::{Asks, Rule};

/// Request of a program.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Question {
    /// `open`, `openat`, `openat2`: the path's address, and where the flags are.
    Open { path: u64, flags: Flags },
    /// An `ioctl` of binder's type.
    Ioctl { number: i32, request: u32, argument: u64 },
    /// `mmap` of a file.
    Map { number: i32, size: u64, protection: u64 },
    /// `dup`, `dup2`, `dup3`, `fcntl(F_DUPFD)`: a copy of a descriptor.
    Copy { number: i32, to: Copied },
    /// A wait for descriptors.
    Wait(Wait),
}

/// Flags of an open.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Flags {
    /// The flags themselves.
    Here(u64),
    /// Address of a structure that begins with them.
    At(u64),
}

/// The number that a copy gets.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Copied {
    /// The lowest free one that is at least so large.
    AtLeast { least: i32, close_on_exec: bool },
    /// This one.
    Exactly { number: i32, close_on_exec: bool },
}

/// The descriptors that are waited for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Wait {
    /// An array of `struct pollfd`.
    Poll { address: u64, count: u64 },
    /// A set of `select`.
    Select { address: u64, count: u64 },
    /// Those in an epoll instance.
    Epoll { number: i32 },
}

const OPEN_MODE: u32 = call::O_ACCMODE as u32;
const READ_WRITE: u32 = call::O_RDWR as u32;

/// Opens for reading and writing, as every client of a binder device does.
fn opens(argument: u32) -> Asks {
    Asks::Masked { argument, mask: OPEN_MODE, value: READ_WRITE }
}

/// The filter's rules. Calls that programs make often ask only if they may concern a device.
pub(crate) fn rules() -> Vec<Rule> {
    let binders = Asks::Masked { argument: 1, mask: 0xff00, value: u32::from(b'b') << 8 };
    let of_files = Asks::Masked { argument: 3, mask: call::MAP_ANONYMOUS as u32, value: 0 };
    let duplicates =
        Asks::OneOf { argument: 1, values: [call::F_DUPFD as u32, call::F_DUPFD_CLOEXEC as u32] };
    let mut rules = vec![
        (call::OPENAT, opens(2)),
        (call::OPENAT2, Asks::Always),
        (call::IOCTL, binders),
        (call::MMAP, of_files),
        (call::DUP, Asks::Always),
        (call::DUP3, Asks::Always),
        (call::FCNTL, duplicates),
        (call::PPOLL, Asks::Always),
        (call::PSELECT6, Asks::Always),
        (call::EPOLL_PWAIT, Asks::Always),
        (call::EPOLL_PWAIT2, Asks::Always),
    ];
    if let Some(old) = call::OLD {
        rules.push((old.open, opens(1)));
        rules.extend([old.dup2, old.poll, old.select, old.epoll_wait].map(|number| (number, Asks::Always)));
    }
    rules
}

/// Whether a system call waits for descriptors.
pub(crate) fn is_wait(call: call::Number) -> bool {
    let asked = Notification { id: 0, thread: 0, call, arguments: [0; 6] };
    matches!(question(&asked), Some(Question::Wait(_)))
}

/// Returns what a notification asks for; `None`: nothing that concerns a device.
pub(crate) fn question(asked: &Notification) -> Option<Question> {
    let [first, second, third, _, fifth, _] = asked.arguments;
    let number = first as i32;
    let wait = |wait| Some(Question::Wait(wait));
    let copy = |to| Some(Question::Copy { number, to });
    let exact =
        |flags| Copied::Exactly { number: second as i32, close_on_exec: flags & call::O_CLOEXEC as u64 != 0 };
    match asked.call {
        call::OPENAT => Some(Question::Open { path: second, flags: Flags::Here(third) }),
        call::OPENAT2 => Some(Question::Open { path: second, flags: Flags::At(third) }),
        call::IOCTL => Some(Question::Ioctl { number, request: second as u32, argument: third }),
        call::MMAP => Some(Question::Map { number: fifth as i32, size: second, protection: third }),
        call::DUP => copy(Copied::AtLeast { least: 0, close_on_exec: false }),
        call::DUP3 => copy(exact(third)),
        call::FCNTL => match second as i32 {
            command @ (call::F_DUPFD | call::F_DUPFD_CLOEXEC) => {
                let close_on_exec = command == call::F_DUPFD_CLOEXEC;
                copy(Copied::AtLeast { least: third as i32, close_on_exec })
            }
            _ => None,
        },
        call::PPOLL => wait(Wait::Poll { address: first, count: second }),
        call::PSELECT6 => wait(Wait::Select { address: second, count: first }),
        call::EPOLL_PWAIT | call::EPOLL_PWAIT2 => wait(Wait::Epoll { number }),
        old => match call::OLD? {
            numbers if old == numbers.open => {
                Some(Question::Open { path: first, flags: Flags::Here(second) })
            }
            numbers if old == numbers.dup2 => copy(exact(0)),
            numbers if old == numbers.poll => wait(Wait::Poll { address: first, count: second }),
            numbers if old == numbers.select => wait(Wait::Select { address: second, count: first }),
            numbers if old == numbers.epoll_wait => wait(Wait::Epoll { number }),
            _ => None,
        },
    }
}
