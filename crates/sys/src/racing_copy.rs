//! Copies between private bytes and memory with concurrent writers.
//! Not here: the memory (`sealed_memory`).
//!
//! A plain copy of bytes that another process writes at the same time is a data race. These copies access the
//! shared side like relaxed atomics: each copied byte was stored there by somebody, in any mixture. A word
//! with `Release` and `Acquire` orders the copy against its announcement: neither compiler nor CPU moves
//! relaxed accesses across it, nor an `asm!` block that may touch memory.

use std::ptr::NonNull;
use std::sync::atomic::{AtomicU8, AtomicU32, AtomicU64, Ordering};

/// Smallest size in bytes at which the CPU's copy instruction beats a loop of words.
#[cfg(target_arch = "x86_64")]
const BLOCK: usize = 256;

/// Smallest size in bytes at which two words at a time beat one.
#[cfg(target_arch = "x86_64")]
const PAIR: usize = 16;

/// Smallest size in bytes at which two possibly overlapping accesses beat a loop.
#[cfg(target_arch = "x86_64")]
const HALF: usize = 4;

/// Copies `bytes` to shared memory.
///
/// # Safety
/// `to..to + bytes.len()` is mapped read-write for the call, no Rust reference but atomics points
/// into it, and this process accesses it only atomically or through this module meanwhile.
#[inline]
pub(crate) unsafe fn copy_in(to: NonNull<u8>, bytes: &[u8]) {
    #[cfg(target_arch = "x86_64")]
    // SAFETY: both ranges are `bytes.len()` long: `to` by the caller's promise, `bytes` as a slice.
    if unsafe { by_instruction(to.as_ptr(), bytes.as_ptr(), bytes.len()) } {
        return;
    }
    let mut at = 0;
    if to.addr().get().is_multiple_of(8) {
        let (words, last) = bytes.as_chunks::<8>();
        for (index, word) in words.iter().enumerate() {
            // SAFETY: eight bytes from `8 * index` are inside the caller's range, and aligned as `to` is.
            unsafe { atomic::<AtomicU64>(to, 8 * index) }.store(u64::from_ne_bytes(*word), Ordering::Relaxed);
        }
        at = bytes.len() - last.len();
    }
    while let Some(rest) = bytes.get(at..).filter(|rest| !rest.is_empty()) {
        let place = to.addr().get() + at;
        if let (true, Some(word)) = (place.is_multiple_of(8), rest.first_chunk::<8>()) {
            // SAFETY: eight bytes from `at` are inside the caller's range, and aligned.
            unsafe { atomic::<AtomicU64>(to, at) }.store(u64::from_ne_bytes(*word), Ordering::Relaxed);
            at += 8;
        } else if let (true, Some(half)) = (place.is_multiple_of(4), rest.first_chunk::<4>()) {
            // SAFETY: four bytes from `at` are inside the caller's range, and aligned.
            unsafe { atomic::<AtomicU32>(to, at) }.store(u32::from_ne_bytes(*half), Ordering::Relaxed);
            at += 4;
        } else {
            // SAFETY: `at < bytes.len()`, so inside the caller's range.
            unsafe { atomic::<AtomicU8>(to, at) }.store(rest[0], Ordering::Relaxed);
            at += 1;
        }
    }
}

/// Copies shared memory into `bytes`.
///
/// # Safety
/// See [`copy_in`], for `from`.
#[inline]
pub(crate) unsafe fn copy_out(from: NonNull<u8>, bytes: &mut [u8]) {
    #[cfg(target_arch = "x86_64")]
    if bytes.len() >= BLOCK {
        // SAFETY: both ranges are `bytes.len()` long: `from` by the caller's promise, `bytes` as a slice.
        unsafe { block(bytes.as_mut_ptr(), from.as_ptr(), bytes.len()) };
        return;
    }
    let mut at = 0;
    if from.addr().get().is_multiple_of(8) {
        let words = bytes.as_chunks_mut::<8>().0;
        at = 8 * words.len();
        for (index, word) in words.iter_mut().enumerate() {
            // SAFETY: eight bytes from `8 * index` are inside the caller's range, and aligned as `from` is.
            *word = unsafe { atomic::<AtomicU64>(from, 8 * index) }.load(Ordering::Relaxed).to_ne_bytes();
        }
    }
    while let Some(rest) = bytes.get_mut(at..).filter(|rest| !rest.is_empty()) {
        let place = from.addr().get() + at;
        if let (true, Some(word)) = (place.is_multiple_of(8), rest.first_chunk_mut::<8>()) {
            // SAFETY: eight bytes from `at` are inside the caller's range, and aligned.
            *word = unsafe { atomic::<AtomicU64>(from, at) }.load(Ordering::Relaxed).to_ne_bytes();
            at += 8;
        } else if let (true, Some(half)) = (place.is_multiple_of(4), rest.first_chunk_mut::<4>()) {
            // SAFETY: four bytes from `at` are inside the caller's range, and aligned.
            *half = unsafe { atomic::<AtomicU32>(from, at) }.load(Ordering::Relaxed).to_ne_bytes();
            at += 4;
        } else {
            // SAFETY: `at < bytes.len()`, so inside the caller's range.
            rest[0] = unsafe { atomic::<AtomicU8>(from, at) }.load(Ordering::Relaxed);
            at += 1;
        }
    }
}

/// Stores words, each atomically.
///
/// # Safety
/// See [`copy_in`], for `4 * N` bytes from `to`, which is aligned to 4.
#[inline]
pub(crate) unsafe fn put_words<const N: usize>(to: NonNull<u8>, words: [u32; N]) {
    for (index, word) in words.into_iter().enumerate() {
        // SAFETY: the word is one of the caller's `N`, aligned as `to` is.
        unsafe { atomic::<AtomicU32>(to, 4 * index) }.store(word, Ordering::Relaxed);
    }
}

/// Loads words, each atomically.
///
/// # Safety
/// See [`put_words`], for `from`.
#[inline]
pub(crate) unsafe fn words<const N: usize>(from: NonNull<u8>) -> [u32; N] {
    std::array::from_fn(|index| {
        // SAFETY: the word is one of the caller's `N`, aligned as `from` is.
        unsafe { atomic::<AtomicU32>(from, 4 * index) }.load(Ordering::Relaxed)
    })
}

/// Copies from one shared memory to another.
///
/// # Safety
/// See [`copy_in`], for both `to` and `from`, which must not overlap.
#[inline(always)]
pub(crate) unsafe fn copy_across(to: NonNull<u8>, from: NonNull<u8>, len: usize) {
    #[cfg(target_arch = "x86_64")]
    // SAFETY: both ranges are `len` long and disjoint, by the caller's promise.
    if unsafe { by_instruction(to.as_ptr(), from.as_ptr(), len) } {
        return;
    }
    let mut done = 0;
    if (to.addr().get() | from.addr().get()).is_multiple_of(8) {
        while len - done >= 8 {
            // SAFETY: eight bytes from `done` are inside the caller's ranges, and aligned as `from` is.
            let word = unsafe { atomic::<AtomicU64>(from, done) }.load(Ordering::Relaxed);
            // SAFETY: as for `from`.
            unsafe { atomic::<AtomicU64>(to, done) }.store(word, Ordering::Relaxed);
            done += 8;
        }
        if len - done >= 4 {
            // SAFETY: four bytes from `done` are inside the caller's ranges, and aligned to 8 as `from` is.
            let half = unsafe { atomic::<AtomicU32>(from, done) }.load(Ordering::Relaxed);
            // SAFETY: as for `from`.
            unsafe { atomic::<AtomicU32>(to, done) }.store(half, Ordering::Relaxed);
            done += 4;
        }
    }
    while done < len {
        let mut part = [0; 32];
        let part = &mut part[..(len - done).min(32)];
        // SAFETY: `done < len`, so the address is inside the caller's range.
        let here = unsafe { from.add(done) };
        // SAFETY: `part.len()` bytes from there are inside the caller's range, too.
        unsafe { copy_out(here, part) };
        // SAFETY: as for `from`.
        let there = unsafe { to.add(done) };
        // SAFETY: as for `from`.
        unsafe { copy_in(there, part) };
        done += part.len();
    }
}

/// The atomic integer at `base + at`.
///
/// # Safety
/// `A` is an atomic integer that lies wholly in a range that satisfies [`copy_in`]'s contract, and is aligned there.
#[inline]
unsafe fn atomic<'m, A>(base: NonNull<u8>, at: usize) -> &'m A {
    // SAFETY: inside the mapped range, as the caller promises.
    let place = unsafe { base.add(at) };
    // SAFETY: mapped and aligned, any bits are such an integer, accessed only atomically; used within the caller's
    // call.
    unsafe { place.cast::<A>().as_ref() }
}

/// Copies `len` bytes by the instructions that are best for so many; false if they are too few.
///
/// # Safety
/// See [`block`].
#[cfg(target_arch = "x86_64")]
#[inline(always)]
unsafe fn by_instruction(to: *mut u8, from: *const u8, len: usize) -> bool {
    match len {
        // SAFETY: the caller's promise.
        BLOCK.. => unsafe { block(to, from, len) },
        // SAFETY: the caller's promise, and the length.
        PAIR..BLOCK => unsafe { pairs(to, from, len) },
        // SAFETY: the caller's promise, and the length.
        HALF..PAIR => unsafe { ends(to, from, len) },
        ..HALF => return false,
    }
    true
}

/// Copies `len` bytes by `rep movsb`.
///
/// # Safety
/// `len` bytes at `from` may be read and `len` at `to` written, the private side exclusively by this call,
/// the shared side under [`copy_in`]'s contract; the ranges do not overlap.
#[cfg(target_arch = "x86_64")]
#[inline]
unsafe fn block(to: *mut u8, from: *const u8, len: usize) {
    // SAFETY: the instruction accesses exactly those ranges and the three registers (the direction flag is
    // clear wherever Rust code runs). Its accesses are the CPU's, of one byte or more each, as in the code
    // that a loop of relaxed `AtomicU8` accesses may be compiled to: a racing writer makes the bytes
    // arbitrary and nothing else.
    unsafe {
        std::arch::asm!(
            "rep movsb",
            inout("rcx") len => _,
            inout("rsi") from => _,
            inout("rdi") to => _,
            options(nostack, preserves_flags)
        );
    }
}

/// Copies two words at a time; the last two may overlap the previous ones.
///
/// # Safety
/// See [`block`], for at least [`PAIR`] bytes.
#[cfg(target_arch = "x86_64")]
#[inline]
unsafe fn pairs(to: *mut u8, from: *const u8, len: usize) {
    // SAFETY: `at` is below `last` except in the first iteration, and `last + PAIR == len`, so only those
    // ranges and the named registers are accessed. Its accesses are the CPU's, as in `block`; a loop of
    // atomics may copy bytes twice as well.
    unsafe {
        std::arch::asm!(
            "2:",
            "movups {pair}, [{from} + {at}]",
            "movups [{to} + {at}], {pair}",
            "add {at}, 16",
            "cmp {at}, {last}",
            "jb 2b",
            "movups {pair}, [{from} + {last}]",
            "movups [{to} + {last}], {pair}",
            pair = out(xmm_reg) _,
            from = in(reg) from,
            to = in(reg) to,
            at = inout(reg) 0usize => _,
            last = in(reg) len - PAIR,
            options(nostack)
        );
    }
}

/// Copies the first and the last word, or half word, which may overlap.
///
/// # Safety
/// See [`block`], for at least [`HALF`] bytes and fewer than [`PAIR`].
#[cfg(target_arch = "x86_64")]
#[inline]
unsafe fn ends(to: *mut u8, from: *const u8, len: usize) {
    if len >= 8 {
        // SAFETY: `len` is 8 to 15, so the first eight and the last eight bytes are inside the ranges and
        // cover them. Otherwise as in `pairs`.
        unsafe {
            std::arch::asm!(
                "mov {first}, [{from}]",
                "mov {last}, [{from} + {len} - 8]",
                "mov [{to}], {first}",
                "mov [{to} + {len} - 8], {last}",
                first = out(reg) _,
                last = out(reg) _,
                from = in(reg) from,
                to = in(reg) to,
                len = in(reg) len,
                options(nostack, preserves_flags)
            );
        }
        return;
    }
    // SAFETY: `len` is 4 to 7; as above, with four instead of eight.
    unsafe {
        std::arch::asm!(
            "mov {first:e}, [{from}]",
            "mov {last:e}, [{from} + {len} - 4]",
            "mov [{to}], {first:e}",
            "mov [{to} + {len} - 4], {last:e}",
            first = out(reg) _,
            last = out(reg) _,
            from = in(reg) from,
            to = in(reg) to,
            len = in(reg) len,
            options(nostack, preserves_flags)
        );
    }
}
