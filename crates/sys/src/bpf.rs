//! Registers a structure of plain values, without any program, as an implementation of a kernel's interface
//! (`BPF_MAP_TYPE_STRUCT_OPS`).
//! Not here: which structure, and its layout (`bench::constraints`).
//! Facts: `bpf(2)`; `kernel/bpf/bpf_struct_ops.c` takes a function pointer of 0 as one that is not implemented.

use std::io;
use std::os::fd::{AsRawFd, FromRawFd, OwnedFd};

const MAP_CREATE: libc::c_int = 0;
const MAP_UPDATE: libc::c_int = 2;
const TYPES_LOAD: libc::c_int = 18;
const LINK_CREATE: libc::c_int = 28;
/// `BPF_MAP_TYPE_STRUCT_OPS`.
const STRUCT_OPS_MAP: u32 = 26;
/// `BPF_STRUCT_OPS`, an attach type.
const STRUCT_OPS: u32 = 44;
/// `BPF_F_LINK`: it takes effect by a link, and as long as that exists.
const BY_LINK: u32 = 1 << 13;

/// Description of the one type `int`, which nothing uses: a map with a type of the kernel's must also name types of its maker.
/// A header, the type, its name.
const TYPES: &[u8; 45] =
    &description([0x0001_eb9f, 24, 0, 16, 16, 5, /* the type */ 1, 1 << 24, 4, 32], *b"\0int\0");

const fn description(words: [u32; 10], names: [u8; 5]) -> [u8; 45] {
    let mut all = [0; 45];
    let mut at = 0;
    while at < all.len() {
        all[at] = if at < 40 { words[at / 4].to_ne_bytes()[at % 4] } else { names[at - 40] };
        at += 1;
    }
    all
}

/// One command's part of `union bpf_attr`; the kernel takes what is missing at its end as 0.
type Words<const N: usize> = [u32; N];

/// Calls the kernel.
///
/// # Safety
/// Each address among the words must be that of memory that lives through the call and is as long as the command reads: the length among
/// the words (`TYPES_LOAD`), the sizes of the map's key and value (`MAP_UPDATE`).
unsafe fn command<const N: usize>(number: libc::c_int, words: &Words<N>) -> io::Result<libc::c_int> {
    // SAFETY: the kernel reads the given size of `words`, which is live; the caller answers for the addresses in it.
    let result = unsafe { libc::syscall(libc::SYS_bpf, number, words.as_ptr(), size_of::<Words<N>>()) };
    if result < 0 { Err(io::Error::last_os_error()) } else { Ok(result as libc::c_int) }
}

/// A command that makes a descriptor.
///
/// # Safety
/// The command makes a descriptor, and the addresses among the words are as [`command`] needs them.
unsafe fn making<const N: usize>(number: libc::c_int, words: &Words<N>) -> io::Result<OwnedFd> {
    // SAFETY: the caller answers for the addresses, as the condition of this function says.
    let made = unsafe { command(number, words) }?;
    // SAFETY: the kernel has just made this descriptor for us, and nobody else knows it.
    Ok(unsafe { OwnedFd::from_raw_fd(made) })
}

/// Registers `value`, of the kernel's type with this number in its BTF. It is in force until the returned descriptor, with
/// all its copies, is closed.
///
/// # Errors
/// `EPERM`: not allowed. `EINVAL`: the kernel does not take such a value. `EBUSY`: another one is in force.
pub fn register(value_type: u32, value: &[u8]) -> io::Result<OwnedFd> {
    let halves = |bytes: &[u8]| {
        // The kernel's field is a u64 in this machine's byte order.
        let bytes = (bytes.as_ptr() as u64).to_ne_bytes();
        [0, 4].map(|at| u32::from_ne_bytes([bytes[at], bytes[at + 1], bytes[at + 2], bytes[at + 3]]))
    };
    let [low, high] = halves(TYPES);
    // SAFETY: the address is that of `TYPES`, with its length; the command makes a descriptor.
    let types = unsafe { making(TYPES_LOAD, &[low, high, 0, 0, TYPES.len() as u32, 0]) }?;
    let size = u32::try_from(value.len()).map_err(|_| io::Error::from(io::ErrorKind::InvalidInput))?;
    let mut map: Words<16> = [0; 16];
    [map[0], map[1], map[2], map[3], map[4]] = [STRUCT_OPS_MAP, 4, size, 1, BY_LINK];
    [map[12], map[15]] = [types.as_raw_fd().cast_unsigned(), value_type];
    // SAFETY: no address is among the words; the command makes a descriptor.
    let map = unsafe { making(MAP_CREATE, &map) }?;
    let number = map.as_raw_fd().cast_unsigned();
    let key = 0_u32.to_ne_bytes();
    let ([key_a, key_b], [value_a, value_b]) = (halves(&key), halves(value));
    // The command is one structure with a gap behind the first word.
    // SAFETY: the addresses are those of `key` and `value`, which live on and have the sizes that the map was made with.
    unsafe { command(MAP_UPDATE, &[number, 0, key_a, key_b, value_a, value_b, 0, 0]) }?;
    // SAFETY: no address is among the words; the command makes a descriptor.
    unsafe { making(LINK_CREATE, &[number, 0, STRUCT_OPS, 0]) }
}

#[cfg(test)]
mod tests {
    #[test]
    fn a_type_that_is_none_is_refused() {
        let refused = super::register(u32::MAX, &[0; 64]).expect_err("no such type");
        /// The kernel's own number for what it does not support, which the C library does not have.
        const ENOTSUPP: i32 = 524;
        // Without rights, without such a type or map, without BPF.
        let expected =
            [libc::EPERM, libc::EACCES, libc::EINVAL, libc::ENOENT, libc::EOPNOTSUPP, libc::ENOSYS, ENOTSUPP];
        assert!(refused.raw_os_error().is_some_and(|number| expected.contains(&number)), "{refused}");
    }
}
