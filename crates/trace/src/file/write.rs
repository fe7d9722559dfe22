//! Writes a trace file, chunk by chunk.
//! Not here: choosing what to record.

use super::{Head, KIND_END, KIND_FORMAT, KIND_HEAD, KIND_PAGES, MAGIC, TracefsText, VERSION};
use std::io::{self, Write};

/// Writer of a trace file.
///
/// Adds no buffering to `W`: a chunk is complete when its call returns, so a killed recorder leaves a readable file
/// if `W` is the file itself.
#[derive(Debug)]
pub struct Writer<W: Write> {
    out: W,
    page_size: usize,
}

impl<W: Write> Writer<W> {
    /// Begins a file.
    ///
    /// # Errors
    /// I/O errors of `out`; `InvalidInput` for a page size of 0.
    pub fn create(mut out: W, head: &Head) -> io::Result<Self> {
        if head.page_size == 0 {
            return Err(io::Error::new(
                io::ErrorKind::InvalidInput,
                "a trace's pages have a size of 0 bytes",
            ));
        }
        out.write_all(&MAGIC)?;
        out.write_all(&VERSION.to_le_bytes())?;
        let mut writer = Self { out, page_size: head.page_size as usize };
        writer.head(head)?;
        Ok(writer)
    }

    /// Replaces the head; the page size must stay.
    ///
    /// # Errors
    /// I/O errors of the output.
    pub fn head(&mut self, head: &Head) -> io::Result<()> {
        let Head { clock, page_size, cpus, kernel, tick_ns, tickless, stolen_ns } = head;
        let mut text = format!("clock={clock}\npage_size={page_size}\ncpus={cpus}\nkernel={kernel}\n");
        for (key, value) in [("tick_ns", tick_ns), ("stolen_ns", stolen_ns)] {
            text.extend(value.map(|value| format!("{key}={value}\n")));
        }
        if !tickless.is_empty() {
            let cpus: Vec<String> = tickless.iter().map(u32::to_string).collect();
            text += &format!("tickless={}\n", cpus.join(","));
        }
        self.chunk(KIND_HEAD, 0, &[text.as_bytes()])
    }

    /// Adds a tracefs text; `cpu` matters for [`TracefsText::Stats`] only. A repeated text replaces the earlier one.
    ///
    /// # Errors
    /// I/O errors of the output.
    pub fn text(&mut self, part: TracefsText, cpu: u32, text: &[u8]) -> io::Result<()> {
        self.chunk(part.kind(), cpu, &[text])
    }

    /// Adds the `format` file of an event in this group (`sched`, `binder`, `ftrace`, ...).
    ///
    /// # Errors
    /// I/O errors of the output.
    pub fn format(&mut self, group: &str, text: &[u8]) -> io::Result<()> {
        self.chunk(KIND_FORMAT, 0, &[group.as_bytes(), b"\n", text])
    }

    /// Appends pages of a CPU as read from `trace_pipe_raw`, oldest first.
    ///
    /// # Errors
    /// I/O errors of the output; `InvalidInput` if `pages` is not a whole number of pages.
    pub fn pages(&mut self, cpu: u32, pages: &[u8]) -> io::Result<()> {
        if !pages.len().is_multiple_of(self.page_size) {
            let text = format!("{} bytes are no whole number of {}-byte pages", pages.len(), self.page_size);
            return Err(io::Error::new(io::ErrorKind::InvalidInput, text));
        }
        if pages.is_empty() { Ok(()) } else { self.chunk(KIND_PAGES, cpu, &[pages]) }
    }

    /// Ends the recording. Texts and pages may be added until then.
    ///
    /// # Errors
    /// I/O errors of the output.
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
    /// Output of a killed recorder.
    pub(super) fn out_for_test(self) -> W {
        self.out
    }
}
