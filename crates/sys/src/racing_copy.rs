//! Room: copies between private bytes and memory that others may write at the same moment.
//! Not here: the memory (`sealed_memory`).
//!
//! A plain copy of bytes that someone writes meanwhile is a data race. These copies access the shared
//! side as relaxed atomics do: each byte that arrives is one that somebody stored there, in whatever
//! mixture. Order between the copy and what announces it is the announcement's business (`Release`
//! and `Acquire` on a word), which also holds the copies: neither compiler nor CPU moves relaxed
//! accesses across it, and an `asm!` block that may touch memory is not moved either.

use std::ptr::NonNull;
use std::sync::atomic::{AtomicU8, AtomicU32, AtomicU64, Ordering};

use crate::cache::LINE;

/// From so many bytes on, the CPU's own copy instruction beats a loop of words.
#[cfg(target_arch = "x86_64")]
const BLOCK: usize = 256;

/// From so many bytes on, two words at once beat one.
#[cfg(target_arch = "x86_64")]
const PAIR: usize = 16;

/// From so many bytes on, two accesses that may overlap beat a loop.
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
    if bytes.len() >= BLOCK {
        // SAFETY: both ranges are `bytes.len()` long: `to` as this function's caller promises,
        // `bytes` as a slice is.
        unsafe { block(to.as_ptr(), bytes.as_ptr(), bytes.len()) };
        return;
    }
    #[cfg(target_arch = "x86_64")]
    if bytes.len() >= PAIR {
        // SAFETY: as above, and there are so many.
        unsafe { pairs(to.as_ptr(), bytes.as_ptr(), bytes.len()) };
        return;
    }
    #[cfg(target_arch = "x86_64")]
    if bytes.len() >= HALF {
        // SAFETY: as above: no fewer than `HALF`, and fewer than `PAIR`.
        unsafe { ends(to.as_ptr(), bytes.as_ptr(), bytes.len()) };
        return;
    }
    let mut at = 0;
    if to.addr().get().is_multiple_of(8) {
        let (words, last) = bytes.as_chunks::<8>();
        for (index, word) in words.iter().enumerate() {
            // SAFETY: eight bytes from `8 * index` are inside the caller's range, and aligned as `to` is.
            unsafe { word_at(to, 8 * index) }.store(u64::from_ne_bytes(*word), Ordering::Relaxed);
        }
        at = bytes.len() - last.len();
    }
    while let Some(rest) = bytes.get(at..).filter(|rest| !rest.is_empty()) {
        let place = to.addr().get() + at;
        if let (true, Some(word)) = (place.is_multiple_of(8), rest.first_chunk::<8>()) {
            // SAFETY: eight bytes from `at` are inside the caller's range, and aligned.
            unsafe { word_at(to, at) }.store(u64::from_ne_bytes(*word), Ordering::Relaxed);
            at += 8;
        } else if let (true, Some(half)) = (place.is_multiple_of(4), rest.first_chunk::<4>()) {
            // SAFETY: four bytes from `at` are inside the caller's range, and aligned.
            unsafe { half_at(to, at) }.store(u32::from_ne_bytes(*half), Ordering::Relaxed);
            at += 4;
        } else {
            // SAFETY: `at < bytes.len()`, so inside the caller's range.
            unsafe { byte_at(to, at) }.store(rest[0], Ordering::Relaxed);
            at += 1;
        }
    }
}

/// Copies shared memory into `bytes`.
///
/// # Safety
/// As [`copy_in`], of `from`.
#[inline]
pub(crate) unsafe fn copy_out(from: NonNull<u8>, bytes: &mut [u8]) {
    #[cfg(target_arch = "x86_64")]
    if bytes.len() >= BLOCK {
        // SAFETY: both ranges are `bytes.len()` long: `from` as this function's caller promises,
        // `bytes` as a slice is.
        unsafe { block(bytes.as_mut_ptr(), from.as_ptr(), bytes.len()) };
        return;
    }
    let mut at = 0;
    if from.addr().get().is_multiple_of(8) {
        let words = bytes.as_chunks_mut::<8>().0;
        at = 8 * words.len();
        for (index, word) in words.iter_mut().enumerate() {
            // SAFETY: eight bytes from `8 * index` are inside the caller's range, and aligned as `from` is.
            *word = unsafe { word_at(from, 8 * index) }.load(Ordering::Relaxed).to_ne_bytes();
        }
    }
    while let Some(rest) = bytes.get_mut(at..).filter(|rest| !rest.is_empty()) {
        let place = from.addr().get() + at;
        if let (true, Some(word)) = (place.is_multiple_of(8), rest.first_chunk_mut::<8>()) {
            // SAFETY: eight bytes from `at` are inside the caller's range, and aligned.
            *word = unsafe { word_at(from, at) }.load(Ordering::Relaxed).to_ne_bytes();
            at += 8;
        } else if let (true, Some(half)) = (place.is_multiple_of(4), rest.first_chunk_mut::<4>()) {
            // SAFETY: four bytes from `at` are inside the caller's range, and aligned.
            *half = unsafe { half_at(from, at) }.load(Ordering::Relaxed).to_ne_bytes();
            at += 4;
        } else {
            // SAFETY: `at < bytes.len()`, so inside the caller's range.
            rest[0] = unsafe { byte_at(from, at) }.load(Ordering::Relaxed);
            at += 1;
        }
    }
}

/// Stores words, each whole.
///
/// # Safety
/// As [`copy_in`], of `4 * N` bytes from `to`, which is aligned to 4.
#[inline]
pub(crate) unsafe fn put_words<const N: usize>(to: NonNull<u8>, words: [u32; N]) {
    for (index, word) in words.into_iter().enumerate() {
        // SAFETY: the word is one of the caller's `N`, aligned as `to` is.
        unsafe { half_at(to, 4 * index) }.store(word, Ordering::Relaxed);
    }
}

/// Loads words, each whole.
///
/// # Safety
/// As [`put_words`], of `from`.
#[inline]
pub(crate) unsafe fn words<const N: usize>(from: NonNull<u8>) -> [u32; N] {
    std::array::from_fn(|index| {
        // SAFETY: the word is one of the caller's `N`, aligned as `from` is.
        unsafe { half_at(from, 4 * index) }.load(Ordering::Relaxed)
    })
}

/// Stores one byte of every [`LINE`] again, as it is. What somebody else stores there meanwhile may be lost.
///
/// # Safety
/// As [`copy_in`], of `len` bytes from `at`.
#[inline]
pub(crate) unsafe fn store_again(at: NonNull<u8>, len: usize) {
    for line in (0..len).step_by(LINE) {
        // SAFETY: `line < len`, so inside the caller's range.
        let byte = unsafe { byte_at(at, line) };
        byte.store(byte.load(Ordering::Relaxed), Ordering::Relaxed);
    }
}

/// Copies from one shared memory to another.
///
/// # Safety
/// As [`copy_in`], of `to` and of `from`, which do not overlap.
#[inline(always)]
pub(crate) unsafe fn copy_across(to: NonNull<u8>, from: NonNull<u8>, len: usize) {
    #[cfg(target_arch = "x86_64")]
    if len >= BLOCK {
        // SAFETY: both ranges are `len` long and apart, as this function's caller promises.
        unsafe { block(to.as_ptr(), from.as_ptr(), len) };
        return;
    }
    #[cfg(target_arch = "x86_64")]
    if len >= PAIR {
        // SAFETY: as above, and there are so many.
        unsafe { pairs(to.as_ptr(), from.as_ptr(), len) };
        return;
    }
    #[cfg(target_arch = "x86_64")]
    if len >= HALF {
        // SAFETY: as above: no fewer than `HALF`, and fewer than `PAIR`.
        unsafe { ends(to.as_ptr(), from.as_ptr(), len) };
        return;
    }
    let mut done = 0;
    if (to.addr().get() | from.addr().get()).is_multiple_of(8) {
        while len - done >= 8 {
            // SAFETY: eight bytes from `done` are inside the caller's ranges, and aligned as `from` is.
            let word = unsafe { word_at(from, done) }.load(Ordering::Relaxed);
            // SAFETY: as for `from`.
            unsafe { word_at(to, done) }.store(word, Ordering::Relaxed);
            done += 8;
        }
        if len - done >= 4 {
            // SAFETY: four bytes from `done` are inside the caller's ranges, and aligned to 8 as `from` is.
            let half = unsafe { half_at(from, done) }.load(Ordering::Relaxed);
            // SAFETY: as for `from`.
            unsafe { half_at(to, done) }.store(half, Ordering::Relaxed);
            done += 4;
        }
    }
    while done < len {
        let mut part = [0; 32];
        let part = &mut part[..(len - done).min(32)];
        // SAFETY: `done < len`, so the place is inside the caller's range.
        let here = unsafe { from.add(done) };
        // SAFETY: `part.len()` bytes from there are, too.
        unsafe { copy_out(here, part) };
        // SAFETY: as for `from`.
        let there = unsafe { to.add(done) };
        // SAFETY: as for `from`.
        unsafe { copy_in(there, part) };
        done += part.len();
    }
}

/// The byte at `base + at`.
///
/// # Safety
/// It lies in a range as [`copy_in`] wants it.
#[inline]
unsafe fn byte_at<'m>(base: NonNull<u8>, at: usize) -> &'m AtomicU8 {
    // SAFETY: inside the mapped range, as the caller promises.
    let place = unsafe { base.add(at) };
    // SAFETY: mapped, any bits are a `u8`, accessed atomically only; used within the caller's call.
    unsafe { place.cast::<AtomicU8>().as_ref() }
}

/// The word at `base + at`.
///
/// # Safety
/// All of it lies in a range as [`copy_in`] wants it, and `base + at` is aligned to 8.
#[inline]
unsafe fn word_at<'m>(base: NonNull<u8>, at: usize) -> &'m AtomicU64 {
    // SAFETY: inside the mapped range, as the caller promises.
    let place = unsafe { base.add(at) };
    // SAFETY: mapped and aligned, any bits are a `u64`, accessed atomically only; used within the
    // caller's call.
    unsafe { place.cast::<AtomicU64>().as_ref() }
}

/// The half word at `base + at`.
///
/// # Safety
/// All of it lies in a range as [`copy_in`] wants it, and `base + at` is aligned to 4.
#[inline]
unsafe fn half_at<'m>(base: NonNull<u8>, at: usize) -> &'m AtomicU32 {
    // SAFETY: inside the mapped range, as the caller promises.
    let place = unsafe { base.add(at) };
    // SAFETY: mapped and aligned, any bits are a `u32`, accessed atomically only; used within the
    // caller's call.
    unsafe { place.cast::<AtomicU32>().as_ref() }
}

/// `rep movsb`.
///
/// # Safety
/// `len` bytes at `from` may be read and `len` at `to` written, the private side exclusively by this
/// call, the shared side as [`copy_in`] says; they do not overlap.
#[cfg(target_arch = "x86_64")]
#[inline]
unsafe fn block(to: *mut u8, from: *const u8, len: usize) {
    // SAFETY: the instruction reads and writes exactly those ranges and the three registers (the
    // direction flag is clear wherever Rust code runs). Its accesses are the CPU's, of one byte or
    // more each, which is what a loop of relaxed `AtomicU8` accesses may be compiled to: so a racing
    // writer makes the bytes arbitrary and nothing else.
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

/// Two words at a time, and the last two once more where less is left.
///
/// # Safety
/// As [`block`], of at least [`PAIR`] bytes.
#[cfg(target_arch = "x86_64")]
#[inline]
unsafe fn pairs(to: *mut u8, from: *const u8, len: usize) {
    // SAFETY: `at` is below `last` but for the first turn, and `last + PAIR == len`, so nothing but those
    // ranges is read or written, and besides only registers that are named. Its accesses are the CPU's, as
    // in `block`; bytes that are copied twice are what such a loop may do as well.
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

/// The first and the last word or half word.
///
/// # Safety
/// As [`block`], of at least [`HALF`] bytes and fewer than [`PAIR`].
#[cfg(target_arch = "x86_64")]
#[inline]
unsafe fn ends(to: *mut u8, from: *const u8, len: usize) {
    if len >= 8 {
        // SAFETY: `len` is 8 to 15, so eight bytes from the beginning and eight before the end are in the
        // ranges, and all that is in them. As in `pairs` otherwise.
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
    // SAFETY: `len` is 4 to 7; as above, with four for eight.
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
