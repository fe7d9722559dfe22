//! A page of memory that is not there until somebody brings it: a thread that touches it sleeps until then, in the kernel as well.
//! Not here: what the page is for (`conformance`).
//! Facts: `userfaultfd(2)`, `linux/userfaultfd.h`.

use std::fs::File;
use std::io;
use std::os::fd::{AsFd, AsRawFd};

use crate::errno::{check, new_descriptor};
use crate::mapping::Mapping;

/// `UFFDIO_API`: `_IOWR(0xaa, 0x3f, struct uffdio_api)`.
const API: u32 = 0xc018_aa3f;
/// `UFFDIO_REGISTER`: `_IOWR(0xaa, 0x00, struct uffdio_register)`.
const REGISTER: u32 = 0xc020_aa00;
/// `UFFDIO_ZEROPAGE`: `_IOWR(0xaa, 0x04, struct uffdio_zeropage)`.
const ZEROPAGE: u32 = 0xc020_aa04;
/// `UFFD_API`.
const VERSION: u64 = 0xaa;
/// `UFFDIO_REGISTER_MODE_MISSING`.
const MISSING: u64 = 1;

/// The page.
#[derive(Debug)]
pub struct LatePage {
    /// Closed before the memory goes: who still waits then goes on with an empty page.
    faults: File,
    memory: Mapping,
}

impl LatePage {
    /// A page that is not there.
    ///
    /// # Errors
    /// `EPERM`: the right to see the kernel's page faults is missing (`CAP_SYS_PTRACE`). `ENOSYS`: the kernel has no
    /// userfaultfd.
    pub fn new() -> io::Result<Self> {
        // SAFETY: takes flags.
        let fd = unsafe { libc::syscall(libc::SYS_userfaultfd, libc::O_CLOEXEC | libc::O_NONBLOCK) };
        // SAFETY: the result of userfaultfd.
        let faults = File::from(unsafe { new_descriptor(fd) }?);
        let (protection, flags) =
            (libc::PROT_READ | libc::PROT_WRITE, libc::MAP_PRIVATE | libc::MAP_ANONYMOUS);
        let memory = Mapping::new(faults.as_fd(), crate::page::size(), protection, flags)?;
        let made = Self { faults, memory };
        made.request(API, [VERSION, 0, 0, 0])?;
        let [start, len] = made.range();
        made.request(REGISTER, [start, len, MISSING, 0])?;
        Ok(made)
    }

    /// Its address.
    #[must_use]
    pub fn address(&self) -> u64 {
        self.range()[0]
    }

    /// Whether somebody touches it within `limit_ms`, and waits from then on.
    ///
    /// # Errors
    /// Those of `poll(2)`.
    pub fn is_awaited(&self, limit_ms: i32) -> io::Result<bool> {
        Ok(crate::seqpacket::poll(self.faults.as_fd(), limit_ms)?.readable)
    }

    /// Brings it, filled with zeroes.
    ///
    /// # Errors
    /// `EEXIST`: it is there.
    pub fn bring(&self) -> io::Result<()> {
        let [start, len] = self.range();
        self.request(ZEROPAGE, [start, len, 0, 0])
    }

    fn range(&self) -> [u64; 2] {
        [self.memory.base().as_ptr() as u64, self.memory.len() as u64]
    }

    fn request(&self, number: u32, mut words: [u64; 4]) -> io::Result<()> {
        // SAFETY: each of the three requests reads and writes at most these 32 bytes, which are live; the range in them is this
        // value's own mapping, and the kernel fills pages there that are missing only.
        check(unsafe { libc::ioctl(self.faults.as_raw_fd(), number as _, words.as_mut_ptr()) })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn who_touches_the_page_sleeps_until_it_comes() {
        let page = match LatePage::new() {
            Ok(page) => page,
            Err(error) if matches!(error.raw_os_error(), Some(libc::EPERM | libc::ENOSYS)) => return,
            Err(error) => panic!("{error}"),
        };
        assert!(!page.is_awaited(20).expect("polled"));
        let address = page.address();
        let reader = std::thread::spawn(move || crate::own_memory::read(address, &mut [1_u8; 8]).map(drop));
        assert!(page.is_awaited(10_000).expect("polled"), "nobody waits");
        assert!(!reader.is_finished());
        page.bring().expect("brought");
        reader.join().expect("ended").expect("read");
        assert_eq!(page.bring().expect_err("it is there").raw_os_error(), Some(libc::EEXIST));
    }
}
