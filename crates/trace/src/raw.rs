//! Reads the kernel's raw ring-buffer pages as events, merged over the CPUs by time.
//! Not here: the file that holds the pages (`file`).
//! Facts: `kernel/trace/ring_buffer.c`, Linux 7.2.

mod decode;
mod format;
mod layout;
mod live;
mod marks;
mod page;
mod printk;
mod stream;
mod symbols;
mod threads;

pub use format::{Field, FieldLocation, Format};
pub use live::LiveReader;
pub use stream::RawReader;

#[cfg(test)]
mod tests;
