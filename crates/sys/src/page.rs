//! The size of this machine's pages.
//! Facts: `sysconf(3)`; 4, 16 or 64 KiB on arm64, 4 KiB on x86.

/// Size of a page in bytes.
#[must_use]
pub fn size() -> usize {
    // SAFETY: sysconf takes a number and touches no memory of ours.
    let size = unsafe { libc::sysconf(libc::_SC_PAGESIZE) };
    // It is fixed when the kernel starts a program, and asking for it cannot fail.
    usize::try_from(size).unwrap_or(4096)
}

#[cfg(test)]
mod tests {
    #[test]
    fn a_page_has_a_size_that_linux_has() {
        assert!([4, 16, 64].map(|kib| kib << 10).contains(&super::size()), "{}", super::size());
    }
}
