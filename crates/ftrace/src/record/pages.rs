//! Copies whole pages from the kernel's ring buffers into the file, with one thread per CPU.
//! Not here: the content of a page (crate `trace`).
//! Facts: `trace_pipe_raw`, `tracing_buffers_read` of `kernel/trace/trace.c`: a read consumes one page, at the end a
//! partial one; `buffer_percent`: fill level at which a waiting reader is woken (Linux 5.0).

use std::fs::{File, Metadata};
use std::io::{self, ErrorKind, Read};
use std::os::fd::AsFd;
use std::path::{Path, PathBuf};
use std::sync::{Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use trace::file::Writer;

use crate::tracefs::{Buffer, TraceError};

/// Pages per write.
pub(super) const BATCH: usize = 64;

/// Pause after emptying a buffer; some kernels would wake the reader for every event.
const REST: Duration = Duration::from_millis(5);

/// The output file, shared by the reader threads.
#[derive(Debug)]
pub(super) struct Shared {
    inside: Mutex<Inside>,
    path: PathBuf,
    /// The file, if a part of it is of use.
    in_part: Option<File>,
}

#[derive(Debug)]
struct Inside {
    writer: Option<Writer<File>>,
    /// Bytes of pages per CPU.
    bytes: Vec<(u32, u64)>,
    failed: Option<io::Error>,
}

impl Shared {
    pub(super) fn new(writer: Writer<File>, path: &Path) -> Self {
        let inside = Inside { writer: Some(writer), bytes: Vec::new(), failed: None };
        Self { inside: Mutex::new(inside), path: path.to_owned(), in_part: None }
    }

    /// Keeps the first part of a file that does not fit on its disk, and gives room back to others. Takes the same file.
    pub(super) fn in_part(self, file: File) -> Self {
        Self { in_part: Some(file), ..self }
    }

    fn inside(&self) -> MutexGuard<'_, Inside> {
        // A thread that panicked while writing left a partial chunk, which the reader reports.
        self.inside.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Writes, unless an earlier write failed. Where the disk is full, the end of a file that is of use in part is given
    /// back at once: the results of the command that is recorded may need the room.
    pub(super) fn write(&self, write: impl FnOnce(&mut Writer<File>) -> io::Result<()>) {
        let mut inside = self.inside();
        if inside.failed.is_none()
            && let Some(writer) = &mut inside.writer
            && let Err(error) = write(writer)
        {
            let is_full = matches!(error.kind(), ErrorKind::StorageFull | ErrorKind::QuotaExceeded);
            let kept = self.in_part.as_ref().filter(|_| is_full).and_then(give_back);
            inside.failed = Some(match kept {
                Some(kept) => io::Error::other(format!(
                    "{}; its first {kept} bytes are kept and can be read, and the rest was given back for other results",
                    sys::errno::describe(&error)
                )),
                None => error,
            });
        }
    }

    fn pages(&self, cpu: u32, pages: &[u8]) {
        if pages.is_empty() {
            return;
        }
        self.write(|writer| writer.pages(cpu, pages));
        let mut inside = self.inside();
        let length = pages.len() as u64;
        match inside.bytes.iter_mut().find(|(known, _)| *known == cpu) {
            Some((_, bytes)) => *bytes += length,
            None => inside.bytes.push((cpu, length)),
        }
    }

    /// Bytes of pages of one CPU, or of all.
    pub(super) fn bytes(&self, of: Option<u32>) -> u64 {
        let inside = self.inside();
        inside.bytes.iter().filter(|(cpu, _)| of.is_none_or(|of| of == *cpu)).map(|(_, bytes)| bytes).sum()
    }

    /// Whether writing failed.
    pub(super) fn is_broken(&self) -> bool {
        self.inside().failed.is_some()
    }

    /// Finishes the file.
    pub(super) fn finish(&self) -> Result<(), TraceError> {
        let (writer, failed) = {
            let mut inside = self.inside();
            (inside.writer.take(), inside.failed.take())
        };
        let result = match (failed, writer) {
            (Some(error), _) => Err(error),
            (None, Some(writer)) => writer.finish().map(drop),
            (None, None) => Ok(()),
        };
        result.map_err(TraceError::output(&self.path))
    }
}

/// Cuts a quarter off the end of a file; returns the bytes that are left. `None`: it is no file, or cannot be cut.
fn give_back(file: &File) -> Option<u64> {
    let found = file.metadata().ok().filter(Metadata::is_file)?;
    let kept = found.len() / 4 * 3;
    file.set_len(kept).ok().map(|()| kept)
}

/// One CPU's open `trace_pipe_raw`.
#[derive(Debug)]
pub(super) struct Pipe {
    cpu: u32,
    file: File,
    page_bytes: usize,
    batch: Vec<u8>,
}

impl Pipe {
    pub(super) fn open(buffer: &Buffer, cpu: u32, page_bytes: usize) -> Result<Self, TraceError> {
        let path = buffer.folder().join(format!("per_cpu/cpu{cpu}/trace_pipe_raw"));
        let file = sys::descriptor::open_nonblocking(&path)
            .map_err(TraceError::refused(format!("opening {}", path.display())))?;
        Ok(Self { cpu, file, page_bytes, batch: vec![0; page_bytes * BATCH] })
    }

    /// Copies all pages that are available.
    ///
    /// # Errors
    /// The read error.
    pub(super) fn drain(&mut self, to: &Shared) -> io::Result<()> {
        let cpu = self.cpu;
        while self.batch(&mut |pages| to.pages(cpu, pages))? {}
        Ok(())
    }

    /// Passes the next pages on, if there are any, and says whether there may be more.
    ///
    /// # Errors
    /// The read error.
    pub(super) fn batch(&mut self, to: &mut impl FnMut(&[u8])) -> io::Result<bool> {
        let mut filled = 0;
        let mut more = true;
        while let Some(room) = self.batch.get_mut(filled..filled + self.page_bytes).filter(|_| more) {
            match self.file.read(room) {
                // The kernel always returns a whole page, filled or not.
                Ok(count) if count == self.page_bytes => filled += count,
                Ok(0) => more = false,
                Ok(count) => {
                    let text = format!("a page of {count} bytes, not of {}", self.page_bytes);
                    return Err(io::Error::other(text));
                }
                Err(error) if error.kind() == ErrorKind::WouldBlock => more = false,
                Err(error) if error.kind() == ErrorKind::Interrupted => {}
                Err(error) => return Err(error),
            }
        }
        to(self.batch.get(..filled).unwrap_or_default());
        Ok(more)
    }

    /// The CPU whose pages it reads.
    pub(super) fn cpu(&self) -> u32 {
        self.cpu
    }

    /// Copies pages as they fill until `end` becomes readable, then the rest. The calling thread takes the name of a
    /// recorder, by which its cost is told apart in the trace.
    pub(super) fn follow(&mut self, to: &Shared, end: &impl AsFd) -> io::Result<()> {
        const END: u64 = 1;
        sys::title::name_thread(&format!("trace reader {}", self.cpu));
        let epoll = sys::epoll::Epoll::new()?;
        epoll.add(self.file.as_fd(), 0)?;
        epoll.add(end.as_fd(), END)?;
        let mut ready = Vec::new();
        loop {
            match epoll.wait(&mut ready, -1) {
                Err(error) if error.kind() == ErrorKind::Interrupted => continue,
                waited => waited?,
            }
            self.drain(to)?;
            if ready.contains(&END) {
                return Ok(());
            }
            std::thread::sleep(REST);
        }
    }
}
