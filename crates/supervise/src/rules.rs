//! The system calls of a program that ask the supervisor, and what each of them means.
//! Not here: the answers (`answer`), the filter itself (`sys::seccomp`).

use sys::call;
use sys::notification::Notification;
use sys::seccomp::{Asks, Rule};

/// Request of a program.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Question {
    /// `open`, `openat`, `openat2`, `creat`: the folder, the path's address, and where the flags are.
    Open { folder: i32, path: u64, flags: Flags },
    /// `stat`, `access`, `readlink` and their like.
    Look(Look),
    /// `fcntl(F_GETFL)`.
    Flags { number: i32 },
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

/// A look at a file.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Look {
    /// The folder of a relative path.
    pub(crate) folder: i32,
    /// Address of the path; `None` for the folder's descriptor itself.
    pub(crate) path: Option<u64>,
    /// An empty path is the folder's descriptor.
    pub(crate) may_be_empty: bool,
    /// Also over a link at its end.
    pub(crate) follow: bool,
    /// The answer that is wanted.
    pub(crate) what: What,
}

/// Answer that a look wants, with the address where it goes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum What {
    /// `struct stat`.
    Stat(u64),
    /// `struct statx` of this mask.
    ExtendedStat { mask: u32, to: u64 },
    /// The right to use it in these ways.
    Access { mode: i32 },
    /// An extended attribute.
    Attribute,
    /// The names of all extended attributes.
    Attributes,
    /// The target of a link.
    Link { to: u64, room: u64 },
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

const DESCRIPTORS: [u32; 3] = [call::F_DUPFD as u32, call::F_DUPFD_CLOEXEC as u32, call::F_GETFL as u32];

/// The filter's rules. Calls that programs make often ask only if they may concern a device.
pub(crate) fn rules() -> Vec<Rule> {
    let binders = Asks::Masked { argument: 1, mask: 0xff00, value: u32::from(b'b') << 8 };
    let of_files = Asks::Masked { argument: 3, mask: call::MAP_ANONYMOUS as u32, value: 0 };
    let of_descriptors = Asks::OneOf { argument: 1, values: &DESCRIPTORS };
    let mut rules = vec![
        (call::OPENAT, Asks::Always),
        (call::OPENAT2, Asks::Always),
        (call::IOCTL, binders),
        (call::MMAP, of_files),
        (call::DUP, Asks::Always),
        (call::DUP3, Asks::Always),
        (call::FCNTL, of_descriptors),
        (call::PPOLL, Asks::Always),
        (call::PSELECT6, Asks::Always),
        (call::EPOLL_PWAIT, Asks::Always),
        (call::EPOLL_PWAIT2, Asks::Always),
        (call::NEWFSTATAT, Asks::Always),
        (call::FSTAT, Asks::Always),
        (call::STATX, Asks::Always),
        (call::FACCESSAT, Asks::Always),
        (call::FACCESSAT2, Asks::Always),
        (call::READLINKAT, Asks::Always),
        (call::GETXATTR, Asks::Always),
        (call::LGETXATTR, Asks::Always),
        (call::LISTXATTR, Asks::Always),
        (call::LLISTXATTR, Asks::Always),
    ];
    if let Some(old) = call::OLD {
        let waits = [old.poll, old.select, old.epoll_wait];
        let looks = [old.open, old.creat, old.stat, old.lstat, old.access, old.readlink];
        let always = [old.dup2].into_iter().chain(waits).chain(looks);
        rules.extend(always.map(|number| (number, Asks::Always)));
    }
    rules
}

/// True if a system call waits for descriptors.
pub(crate) fn is_wait(call: call::Number) -> bool {
    let asked = Notification { id: 0, thread: 0, call, arguments: [0; 6] };
    matches!(question(&asked), Some(Question::Wait(_)))
}

/// Returns what a notification asks for; `None`: nothing that concerns a device.
pub(crate) fn question(asked: &Notification) -> Option<Question> {
    let [first, second, third, fourth, fifth, _] = asked.arguments;
    let no_follow = call::AT_SYMLINK_NOFOLLOW as u64;
    let number = first as i32;
    let wait = |wait| Some(Question::Wait(wait));
    let copy = |to| Some(Question::Copy { number, to });
    let exact =
        |flags| Copied::Exactly { number: second as i32, close_on_exec: flags & call::O_CLOEXEC as u64 != 0 };
    match asked.call {
        call::OPENAT => Some(Question::Open { folder: number, path: second, flags: Flags::Here(third) }),
        call::OPENAT2 => Some(Question::Open { folder: number, path: second, flags: Flags::At(third) }),
        call::NEWFSTATAT => look_in(number, second, fourth, What::Stat(third)),
        call::STATX => look_in(number, second, third, What::ExtendedStat { mask: fourth as u32, to: fifth }),
        call::FACCESSAT => look_in(number, second, 0, What::Access { mode: third as i32 }),
        call::FACCESSAT2 => look_in(number, second, fourth, What::Access { mode: third as i32 }),
        call::READLINKAT => look_in(number, second, no_follow, What::Link { to: third, room: fourth }),
        call::GETXATTR => look_in(call::AT_FDCWD, first, 0, What::Attribute),
        call::LGETXATTR => look_in(call::AT_FDCWD, first, no_follow, What::Attribute),
        call::LISTXATTR => look_in(call::AT_FDCWD, first, 0, What::Attributes),
        call::LLISTXATTR => look_in(call::AT_FDCWD, first, no_follow, What::Attributes),
        call::FSTAT => {
            let (path, what) = (None, What::Stat(second));
            Some(Question::Look(Look { folder: number, path, may_be_empty: true, follow: true, what }))
        }
        call::IOCTL => Some(Question::Ioctl { number, request: second as u32, argument: third }),
        call::MMAP => Some(Question::Map { number: fifth as i32, size: second, protection: third }),
        call::DUP => copy(Copied::AtLeast { least: 0, close_on_exec: false }),
        call::DUP3 => copy(exact(third)),
        call::FCNTL => match second as i32 {
            command @ (call::F_DUPFD | call::F_DUPFD_CLOEXEC) => {
                let close_on_exec = command == call::F_DUPFD_CLOEXEC;
                copy(Copied::AtLeast { least: third as i32, close_on_exec })
            }
            call::F_GETFL => Some(Question::Flags { number }),
            _ => None,
        },
        call::PPOLL => wait(Wait::Poll { address: first, count: second }),
        call::PSELECT6 => wait(Wait::Select { address: second, count: first }),
        call::EPOLL_PWAIT | call::EPOLL_PWAIT2 => wait(Wait::Epoll { number }),
        _ => old_question(asked, call::OLD?),
    }
}

/// A look at what a folder and a path lead to, with flags of `fstatat`.
fn look_in(folder: i32, path: u64, flags: u64, what: What) -> Option<Question> {
    let is_set = |flag: i32| flags & flag as u64 != 0;
    let (may_be_empty, follow) = (is_set(call::AT_EMPTY_PATH), !is_set(call::AT_SYMLINK_NOFOLLOW));
    Some(Question::Look(Look { folder, path: Some(path), may_be_empty, follow, what }))
}

/// [`question`] of a call that has a successor.
fn old_question(asked: &Notification, numbers: call::Old) -> Option<Question> {
    let [first, second, third, ..] = asked.arguments;
    let wait = |wait| Some(Question::Wait(wait));
    let look = |flags: i32, what| look_in(call::AT_FDCWD, first, flags as u64, what);
    let number = first as i32;
    match asked.call {
        old if old == numbers.open => {
            Some(Question::Open { folder: call::AT_FDCWD, path: first, flags: Flags::Here(second) })
        }
        old if old == numbers.creat => {
            let flags = Flags::Here((call::O_CREAT | call::O_WRONLY | call::O_TRUNC) as u64);
            Some(Question::Open { folder: call::AT_FDCWD, path: first, flags })
        }
        old if old == numbers.dup2 => {
            let to = Copied::Exactly { number: second as i32, close_on_exec: false };
            Some(Question::Copy { number, to })
        }
        old if old == numbers.poll => wait(Wait::Poll { address: first, count: second }),
        old if old == numbers.select => wait(Wait::Select { address: second, count: first }),
        old if old == numbers.epoll_wait => wait(Wait::Epoll { number }),
        old if old == numbers.stat => look(0, What::Stat(second)),
        old if old == numbers.lstat => look(call::AT_SYMLINK_NOFOLLOW, What::Stat(second)),
        old if old == numbers.access => look(0, What::Access { mode: second as i32 }),
        old if old == numbers.readlink => {
            look(call::AT_SYMLINK_NOFOLLOW, What::Link { to: second, room: third })
        }
        _ => None,
    }
}
