//! Room: telling the CPU which memory it will soon be asked to write.
//! Not here: who knows that ahead (`driver::embedded`, where large payloads go).
//! Facts: PREFETCHW in the Intel SDM, volume 2 (a no-op on 64-bit CPUs that lack it); PRFM in the Arm ARM, C6.2.

use std::ptr::NonNull;

/// What caches hold at once.
pub(crate) const LINE: usize = 64;

/// Asks for the cache line at `at`, to be written: it comes from other CPUs' caches while this one does something else.
/// Any address will do; one that is not mapped is ignored.
#[inline]
pub(crate) fn for_writing(at: NonNull<u8>) {
    // SAFETY: a prefetch changes no memory and no register, and raises no exception, whatever the address.
    #[cfg(target_arch = "x86_64")]
    unsafe {
        std::arch::asm!("prefetchw [{at}]", at = in(reg) at.as_ptr(), options(nostack, preserves_flags));
    }
    // SAFETY: as above.
    #[cfg(target_arch = "aarch64")]
    unsafe {
        std::arch::asm!("prfm pstl1keep, [{at}]", at = in(reg) at.as_ptr(), options(nostack, preserves_flags));
    }
    #[cfg(not(any(target_arch = "x86_64", target_arch = "aarch64")))]
    let _ = at;
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn no_address_is_too_strange_and_nothing_changes() {
        let mut word = 7_u64;
        for_writing(NonNull::from(&mut word).cast());
        for address in [1, 4095, 1 << 20, usize::MAX] {
            for_writing(NonNull::new(std::ptr::without_provenance_mut(address)).expect("not 0"));
        }
        assert_eq!(word, 7);
    }
}
