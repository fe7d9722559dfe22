//! Reading and writing this process's memory at addresses that may be invalid.
//! Not here: which addresses (`embedded`, `preload`).
//! Facts: `process_vm_readv(2)`, `process_vm_writev(2)`, `proc(5)` on `/proc/PID/mem`.

use std::fs::File;
use std::io;
use std::os::unix::fs::FileExt;

/// Copies `bytes.len()` bytes at `address` of this process, as a system call would copy them in.
///
/// # Errors
/// `EFAULT`: not all of the range is mapped and readable; `bytes` may hold a part.
pub fn read(address: u64, bytes: &mut [u8]) -> io::Result<()> {
    let mut done = 0;
    // One call copies at most what fits its count, and stops at a fault with what it has so far.
    while done < bytes.len() {
        match read_some(address.wrapping_add(done as u64), &mut bytes[done..]) {
            Ok(0) => return Err(io::Error::from_raw_os_error(libc::EFAULT)),
            Ok(more) => done += more,
            Err(error) if refused(&error) => return read_file(address, bytes),
            Err(error) => return Err(error),
        }
    }
    Ok(())
}

/// Memory that an argument of a system call names, while that call is carried out in the kernel's place.
#[derive(Debug)]
pub struct ArgumentMemory(());

impl ArgumentMemory {
    /// The memory of the call at hand.
    ///
    /// # Safety
    /// While the value lives, every range that [`Self::write`] is given is one that the program named in this call for
    /// the kernel to store into.
    #[must_use]
    pub unsafe fn of_this_call() -> Self {
        Self(())
    }

    /// Stores `bytes` at `address`, as a system call would copy them out.
    ///
    /// # Errors
    /// `EFAULT`: not all of the range is mapped and writable; a part of it may be stored.
    pub fn write(&self, address: u64, bytes: &[u8]) -> io::Result<()> {
        let mut done = 0;
        while done < bytes.len() {
            match write_some(address.wrapping_add(done as u64), &bytes[done..]) {
                Ok(0) => return Err(io::Error::from_raw_os_error(libc::EFAULT)),
                Ok(more) => done += more,
                Err(error) if refused(&error) => return write_file(address, bytes),
                Err(error) => return Err(error),
            }
        }
        Ok(())
    }
}

/// Stores at an address that the maker of an [`ArgumentMemory`] vouches for.
fn write_some(address: u64, bytes: &[u8]) -> io::Result<usize> {
    let from = bytes.as_ptr().cast_mut().cast();
    let local = libc::iovec { iov_base: from, iov_len: bytes.len() };
    let there = std::ptr::without_provenance_mut::<libc::c_void>(address as usize);
    let remote = libc::iovec { iov_base: there, iov_len: bytes.len() };
    // A cast: pids are positive and below 2^22.
    let own = std::process::id() as libc::pid_t;
    // SAFETY: `local` is only read and lives through the call. `remote` is checked by the kernel; the program gave it
    // to be stored into (`ArgumentMemory::of_this_call`).
    let count = unsafe { libc::process_vm_writev(own, &raw const local, 1, &raw const remote, 1, 0) };
    usize::try_from(count).map_err(|_| io::Error::last_os_error())
}

fn read_some(address: u64, bytes: &mut [u8]) -> io::Result<usize> {
    let local = libc::iovec { iov_base: bytes.as_mut_ptr().cast(), iov_len: bytes.len() };
    let there = std::ptr::without_provenance_mut::<libc::c_void>(address as usize);
    let remote = libc::iovec { iov_base: there, iov_len: bytes.len() };
    // A cast: pids are positive and below 2^22.
    let own = std::process::id() as libc::pid_t;
    // SAFETY: `local` is a live exclusive buffer of its length. `remote` is checked by the kernel, and
    // what stands there is only read; the copy is the kernel's, so a writer of this process at the
    // same time makes the bytes arbitrary and nothing else.
    let count = unsafe { libc::process_vm_readv(own, &raw const local, 1, &raw const remote, 1, 0) };
    usize::try_from(count).map_err(|_| io::Error::last_os_error())
}

/// Whether a sandbox forbids the call, or the kernel has none.
fn refused(error: &io::Error) -> bool {
    matches!(error.raw_os_error(), Some(libc::EPERM | libc::ENOSYS))
}

fn read_file(address: u64, bytes: &mut [u8]) -> io::Result<()> {
    let memory = File::open("/proc/self/mem")?;
    memory.read_exact_at(bytes, address).map_err(|_| io::Error::from_raw_os_error(libc::EFAULT))
}

/// Stores at an address that the maker of an [`ArgumentMemory`] vouches for. Unlike [`write_some`], the file also writes
/// to memory that is mapped read-only and private, which only a program that passes such an address could tell.
fn write_file(address: u64, bytes: &[u8]) -> io::Result<()> {
    let memory = File::options().write(true).open("/proc/self/mem")?;
    memory.write_all_at(bytes, address).map_err(|_| io::Error::from_raw_os_error(libc::EFAULT))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_mapped_is_read_and_the_rest_is_a_fault() {
        let source: Vec<u8> = (0..100_000u32).map(|n| n as u8).collect();
        let address = source.as_ptr() as u64;
        for way in [read, read_file] {
            let mut bytes = vec![0; source.len()];
            way(address, &mut bytes).expect("mapped");
            assert!(bytes == source);
            for wrong in [0, 8, u64::MAX - 16, 1 << 63] {
                let error = way(wrong, &mut bytes[..64]).expect_err("not mapped");
                assert_eq!(error.raw_os_error(), Some(libc::EFAULT), "{wrong:#x}");
            }
            way(0, &mut []).expect("nothing to read");
        }
    }

    #[test]
    fn what_may_be_written_is_and_the_rest_is_a_fault() {
        let mut room = vec![0u8; 100_000];
        let bytes: Vec<u8> = (0..100_000u32).map(|n| n as u8).collect();
        let address = room.as_mut_ptr() as u64;
        // SAFETY: the ranges are the vector's own, or are not mapped.
        let memory = unsafe { ArgumentMemory::of_this_call() };
        memory.write(address, &bytes).expect("mapped");
        assert!(room == bytes);
        write_file(address, &bytes[1..]).expect("mapped");
        assert!(room[..99_999] == bytes[1..]);
        for wrong in [0, 8, u64::MAX - 16, 1 << 63, b"constant".as_ptr() as u64] {
            let error = memory.write(wrong, &bytes[..8]).expect_err("not to be written");
            assert_eq!(error.raw_os_error(), Some(libc::EFAULT), "{wrong:#x}");
        }
    }

    #[test]
    fn a_range_that_ends_in_nothing_is_a_fault() {
        let file = crate::shared_memory::SharedMemory::create(4096).expect("memfd");
        let map =
            crate::mapping::Mapping::new(file.descriptor(), 3 * 4096, libc::PROT_READ, libc::MAP_SHARED)
                .expect("more than the file holds");
        let address = map.base().as_ptr() as u64;
        read(address + 96, &mut [0; 4000]).expect("inside the file");
        let error = read(address + 96, &mut [0; 4001]).expect_err("beyond it");
        assert_eq!(error.raw_os_error(), Some(libc::EFAULT));
    }
}
