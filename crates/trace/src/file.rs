//! Room: binderperf's own trace file: the kernel's raw pages with everything that is needed to read
//! them elsewhere.
//! Not here: what is in a page (`raw`); getting pages from a kernel (the recorder's).
//!
//! After eight magic bytes and a version come chunks: kind, CPU, length of the payload, payload. All
//! numbers are little-endian. Chunks may come in any order and as often as the recorder likes, so it can
//! append pages while it records and names when it stops. A file that breaks off is readable up to there:
//! only a recording that was ended has the end chunk.

mod read;
mod write;

pub use read::{Container, OpenError};
pub use write::Writer;

/// The first bytes of every file.
pub const MAGIC: [u8; 8] = *b"BPTRACE\n";

/// The version that is written; a reader knows this one and none above.
pub const VERSION: u32 = 1;

/// The most CPUs; more than Linux supports.
pub const MOST_CPUS: u32 = 8192;

/// The largest page of a ring buffer, in bytes: what `buffer_subbuf_size_kb` can be set to.
pub const LARGEST_PAGE: u32 = 1 << 20;

/// Bytes of a chunk's header.
const CHUNK_HEADER: u64 = 16;

/// What must be known before the first page.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Head {
    /// The clock's name, as the `trace_clock` file has it between brackets.
    pub clock: String,
    /// Bytes of a page as `trace_pipe_raw` gives them; 4096 unless `buffer_subbuf_size_kb` says otherwise.
    pub page_size: u32,
    /// How many CPUs there are; pages of others are accepted, too.
    pub cpus: u32,
    /// The kernel's release (`uname -r`).
    pub kernel: String,
}

/// Texts that belong to the pages, each as tracefs gives it.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum Part {
    /// `events/header_page`.
    HeaderPage,
    /// `events/header_event`.
    HeaderEvent,
    /// `saved_cmdlines`: names of threads.
    SavedCmdlines,
    /// `saved_tgids`: processes of threads.
    SavedTgids,
    /// `printk_formats`: texts behind the addresses in `bprint` and `bputs` events.
    PrintkFormats,
    /// Lines of `/proc/kallsyms`, all or those that the pages need. Optional: without it functions are
    /// addresses.
    Symbols,
    /// `per_cpu/cpuN/stats` at the end, of the chunk's CPU.
    Stats,
}

impl Part {
    const ALL: [Self; 7] = [
        Self::HeaderPage,
        Self::HeaderEvent,
        Self::SavedCmdlines,
        Self::SavedTgids,
        Self::PrintkFormats,
        Self::Symbols,
        Self::Stats,
    ];

    fn kind(self) -> u32 {
        match self {
            Self::HeaderPage => 16,
            Self::HeaderEvent => 17,
            Self::SavedCmdlines => 18,
            Self::SavedTgids => 19,
            Self::PrintkFormats => 20,
            Self::Symbols => 21,
            Self::Stats => 22,
        }
    }
}

/// `key=value` lines of [`Head`].
const KIND_HEAD: u32 = 1;
/// One event's `format` file, behind its group's name and a newline.
const KIND_FORMAT: u32 = 2;
/// Whole pages of the chunk's CPU, in their order.
const KIND_PAGES: u32 = 3;
/// The recording was ended.
const KIND_END: u32 = 4;

#[cfg(test)]
mod tests;
