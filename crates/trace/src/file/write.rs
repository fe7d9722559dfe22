//! Room: writing a trace file, chunk after chunk.
//! Not here: deciding what to record.

use super::{Head, KIND_END, KIND_FORMAT, KIND_HEAD, KIND_PAGES, MAGIC, Part, VERSION};
use std::io::{self, Write};

/// A trace file that is being written.
///
/// Nothing is buffered here beyond what `W` does: a chunk is complete once its call returned, so a
/// recorder that is killed leaves a readable file if `W` is the file itself.
#[derive(Debug)]
pub struct Writer<W: Write> {
    out: W,
    page_size: usize,
}

impl<W: Write> Writer<W> {
    /// Begins a file.
    ///
    /// # Errors
    /// What `out` says; `InvalidInput` for a page size of 0.
    pub fn create(mut out: W, head: &Head) -> io::Result<Self> {
        if head.page_size == 0 {
            return Err(io::Error::new(
                io::ErrorKind::InvalidInput,
                "a trace's pages have a size of 0 bytes",
            ));
        }
        out.write_all(&MAGIC)?;
        out.write_all(&VERSION.to_le_bytes())?;
        let Head { clock, page_size, cpus, kernel } = head;
        let mut writer = Self { out, page_size: *page_size as usize };
        let text = format!("clock={clock}\npage_size={page_size}\ncpus={cpus}\nkernel={kernel}\n");
        writer.chunk(KIND_HEAD, 0, &[text.as_bytes()])?;
        Ok(writer)
    }

    /// Adds a text of tracefs; `cpu` counts for [`Part::Stats`] only. A text that comes twice replaces
    /// the earlier one.
    ///
    /// # Errors
    /// What the output says.
    pub fn text(&mut self, part: Part, cpu: u32, text: &[u8]) -> io::Result<()> {
        self.chunk(part.kind(), cpu, &[text])
    }

    /// Adds the `format` file of an event in this group (`sched`, `binder`, `ftrace`, ...).
    ///
    /// # Errors
    /// What the output says.
    pub fn format(&mut self, group: &str, text: &[u8]) -> io::Result<()> {
        self.chunk(KIND_FORMAT, 0, &[group.as_bytes(), b"\n", text])
    }

    /// Appends pages of a CPU as `trace_pipe_raw` gave them, oldest first.
    ///
    /// # Errors
    /// What the output says; `InvalidInput` for what is not a whole number of pages.
    pub fn pages(&mut self, cpu: u32, pages: &[u8]) -> io::Result<()> {
        if !pages.len().is_multiple_of(self.page_size) {
            let text = format!("{} bytes are no whole number of {}-byte pages", pages.len(), self.page_size);
            return Err(io::Error::new(io::ErrorKind::InvalidInput, text));
        }
        if pages.is_empty() { Ok(()) } else { self.chunk(KIND_PAGES, cpu, &[pages]) }
    }

    /// Ends the recording. Texts and pages that come late may have been added until here.
    ///
    /// # Errors
    /// What the output says.
    pub fn finish(mut self) -> io::Result<W> {
        self.chunk(KIND_END, 0, &[])?;
        self.out.flush()?;
        Ok(self.out)
    }

    fn chunk(&mut self, kind: u32, cpu: u32, parts: &[&[u8]]) -> io::Result<()> {
        let length: usize = parts.iter().map(|part| part.len()).sum();
        let mut header = [0; 16];
        header[..4].copy_from_slice(&kind.to_le_bytes());
        header[4..8].copy_from_slice(&cpu.to_le_bytes());
        header[8..].copy_from_slice(&(length as u64).to_le_bytes());
        self.out.write_all(&header)?;
        parts.iter().try_for_each(|part| self.out.write_all(part))
    }
}

#[cfg(test)]
impl<W: Write> Writer<W> {
    /// The output of a recorder that was killed.
    pub(super) fn out_for_test(self) -> W {
        self.out
    }
}
