//! Room: who the calling thread is to the kernel.

/// The calling thread's effective uid, which may differ from other threads' of the process.
#[must_use]
pub fn effective_uid() -> u32 {
    // SAFETY: takes nothing and cannot fail.
    let uid = unsafe { libc::syscall(libc::SYS_geteuid) };
    uid as u32
}

#[cfg(test)]
mod tests {
    #[test]
    fn it_is_the_owner_of_the_process() {
        use std::os::unix::fs::MetadataExt;
        let owner = std::fs::metadata("/proc/self").expect("procfs").uid();
        assert_eq!(super::effective_uid(), owner);
    }
}
