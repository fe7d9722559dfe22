//! Room: the kernel's raw ring-buffer pages as events, merged over the CPUs by time.
//! Not here: the file that the pages are in (`file`).
//! Facts: `kernel/trace/ring_buffer.c`, Linux 7.2.

mod decode;
mod format;
mod layout;
mod page;
mod printk;
mod stream;
mod symbols;
mod threads;

pub use format::{At, Field, Format};
pub use stream::RawReader;

#[cfg(test)]
mod tests;
