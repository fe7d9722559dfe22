//! Running code without `CAP_SYS_NICE`, as an unprivileged process would.
//! Not here: gaining capabilities.
//! Facts: `capget(2)`: capabilities are a thread's own; `linux/capability.h`.

use std::io;

use crate::errno::check;

const SYS_NICE: u32 = 1 << 23;

/// `struct __user_cap_header_struct`, version 3.
#[repr(C)]
struct Header {
    version: u32,
    pid: i32,
}

/// `struct __user_cap_data_struct`; version 3 has two, for 64 capabilities.
#[repr(C)]
#[derive(Clone, Copy, Default)]
struct Data {
    effective: u32,
    permitted: u32,
    inheritable: u32,
}

fn header() -> Header {
    Header { version: 0x2008_0522, pid: 0 }
}

fn get() -> io::Result<[Data; 2]> {
    let (mut header, mut data) = (header(), [Data::default(); 2]);
    // SAFETY: for version 3 the kernel reads and writes one header and writes two data structures,
    // all of which are live and laid out as in its header.
    check(unsafe { libc::syscall(libc::SYS_capget, &raw mut header, data.as_mut_ptr()) })?;
    Ok(data)
}

fn set(data: &[Data; 2]) -> io::Result<()> {
    let mut header = header();
    // SAFETY: for version 3 the kernel reads two data structures, and reads and writes one header;
    // all are live and laid out as in its header.
    check(unsafe { libc::syscall(libc::SYS_capset, &raw mut header, data.as_ptr()) })
}

/// Whether the calling thread may raise priorities (`CAP_SYS_NICE` is effective).
#[must_use]
pub fn has_sys_nice() -> bool {
    get().is_ok_and(|[low, _]| low.effective & SYS_NICE != 0)
}

/// Runs `job` on the calling thread without `CAP_SYS_NICE`, which the thread has again afterwards if
/// it had it before. Other threads keep theirs; those that `job` starts never have it.
///
/// # Errors
/// None in normal work: a thread may always put its own aside.
pub fn without_sys_nice<T>(job: impl FnOnce() -> T) -> io::Result<T> {
    let before = get()?;
    let mut less = before;
    less[0].effective &= !SYS_NICE;
    set(&less)?;
    let result = job();
    set(&before)?;
    Ok(result)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_capability_is_put_aside_and_comes_back() {
        let before = get().expect("own capabilities");
        let inside = without_sys_nice(|| get().expect("own capabilities")).expect("put aside");
        assert_eq!(inside[0].effective, before[0].effective & !SYS_NICE);
        assert_eq!(inside[0].permitted, before[0].permitted);
        assert_eq!(get().expect("own capabilities")[0].effective, before[0].effective);
    }
}
