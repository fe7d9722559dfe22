//! binderperf's trace file: the kernel's raw pages, with all data needed to read them on another machine.
//! Not here: page contents (`raw`); getting pages from a kernel (crate `ftrace`).
//!
//! Format: eight magic bytes, a version, then chunks: kind, CPU, payload length, payload. All numbers are
//! little-endian. Chunks may come in any order and number, so a recorder can append pages while it records and names
//! when it stops. A truncated file is readable up to its end; only a finished recording has the end chunk.

mod dat;
mod read;
mod write;

pub(crate) use dat::DAT_MAGIC;
pub use read::{Container, OpenError};
pub use write::Writer;

/// Magic bytes at the start of a file.
pub const MAGIC: [u8; 8] = *b"BPTRACE\n";

/// Version written; readers accept only this version.
pub const VERSION: u32 = 1;

/// Maximum number of CPUs; more than Linux supports.
pub const MOST_CPUS: u32 = 8192;

/// Largest ring-buffer page in bytes: the limit of `buffer_subbuf_size_kb`.
pub const LARGEST_PAGE: u32 = 1 << 20;

/// Chunk header size in bytes.
const CHUNK_HEADER: u64 = 16;

/// Header data that is needed before the first page.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Head {
    /// Clock name, as in brackets in the `trace_clock` file.
    pub clock: String,
    /// Page size of `trace_pipe_raw` in bytes; 4096 unless `buffer_subbuf_size_kb` changes it.
    pub page_size: u32,
    /// Number of CPUs; pages of further CPUs are accepted.
    pub cpus: u32,
    /// Kernel release (`uname -r`).
    pub kernel: String,
    /// Time between two timer interrupts of a busy CPU, in nanoseconds. If it is there, the recording never paused.
    pub tick_ns: Option<u64>,
    /// CPUs whose tick stops while they are busy (`nohz_full`).
    pub tickless: Vec<u32>,
    /// CPU time in nanoseconds that the hypervisor gave to others during the recording, over all CPUs (`/proc/stat`).
    /// A finished recording has it.
    pub stolen_ns: Option<u64>,
}

/// Kind of a tracefs text stored with the pages.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum TracefsText {
    /// `events/header_page`.
    HeaderPage = 16,
    /// `events/header_event`.
    HeaderEvent = 17,
    /// `saved_cmdlines`: thread names.
    SavedCmdlines = 18,
    /// `saved_tgids`: process IDs of threads.
    SavedTgids = 19,
    /// `printk_formats`: texts for the addresses in `bprint` and `bputs` events.
    PrintkFormats = 20,
    /// Lines of `/proc/kallsyms`, all or those that the pages need. Optional: without it functions stay addresses.
    Symbols = 21,
    /// `per_cpu/cpuN/stats` at the end, for the chunk's CPU.
    Stats = 22,
    /// Marks that processes wrote into memory of their own, with their own stamps of the trace's clock. Lines `TS CPU TID
    /// TGID TEXT`, oldest first, and `TS CPU lost COUNT` where some are missing. Not of tracefs, in spite of the name.
    ProcessMarks = 23,
}

impl TracefsText {
    const ALL: [Self; 8] = [
        Self::HeaderPage,
        Self::HeaderEvent,
        Self::SavedCmdlines,
        Self::SavedTgids,
        Self::PrintkFormats,
        Self::Symbols,
        Self::Stats,
        Self::ProcessMarks,
    ];

    /// Kind of the chunk that holds it.
    fn kind(self) -> u32 {
        self as u32
    }
}

/// `key=value` lines of [`Head`]. A later chunk replaces an earlier one.
const KIND_HEAD: u32 = 1;
/// One event's `format` file, preceded by its group name and a newline.
const KIND_FORMAT: u32 = 2;
/// Whole pages of the chunk's CPU, oldest first.
const KIND_PAGES: u32 = 3;
/// End of the recording.
const KIND_END: u32 = 4;

#[cfg(test)]
mod tests;
