//! Bytes of a trace by their place, from the file or out of a compressed block.

use std::io::{self, Read, Seek, SeekFrom};
use std::sync::Arc;

use super::blocks::Blocks;
use super::index::{Block, PLAIN, Place};
use super::inflate::inflate;
use crate::report::ProblemKind;

/// Bytes read at once in the first pass.
const WINDOW: usize = 1 << 20;
/// Total of the buffers of [`Source::refill`], in bytes: far above what recorders need, whose bundles have less than 1 MB.
const MOST_HELD: usize = 192 << 20;

/// Reader of places.
#[derive(Debug)]
pub(super) struct Source<R> {
    input: R,
    /// Length of the file.
    pub(super) end: u64,
    window: Vec<u8>,
    window_at: u64,
    blocks: Blocks,
    /// Capacity of all buffers of [`Source::refill`].
    held: usize,
}

/// Kind of problem that an error of [`Source`] is.
pub(super) fn unread(error: &io::Error) -> ProblemKind {
    match error.kind() {
        io::ErrorKind::OutOfMemory => ProblemKind::Unsupported,
        _ => ProblemKind::Truncated,
    }
}

impl<R: Read + Seek> Source<R> {
    pub(super) fn new(mut input: R) -> io::Result<Self> {
        let end = input.seek(SeekFrom::End(0))?;
        Ok(Self { input, end, window: Vec::new(), window_at: 0, blocks: Blocks::default(), held: 0 })
    }

    /// Bytes of the file from `at` on: `len` of them, or less at its end.
    pub(super) fn window(&mut self, at: u64, len: usize) -> io::Result<&[u8]> {
        let len = len.min(usize::try_from(self.end.saturating_sub(at)).unwrap_or(usize::MAX));
        let inside = at >= self.window_at && at + len as u64 <= self.window_at + self.window.len() as u64;
        if !inside {
            let want =
                len.max(WINDOW).min(usize::try_from(self.end.saturating_sub(at)).unwrap_or(usize::MAX));
            self.window.clear();
            self.window_at = at;
            self.input.seek(SeekFrom::Start(at))?;
            (&mut self.input).take(want as u64).read_to_end(&mut self.window)?;
        }
        let start = usize::try_from(at - self.window_at).unwrap_or(usize::MAX).min(self.window.len());
        Ok(&self.window[start..(start + len).min(self.window.len())])
    }

    /// Ends the first pass.
    pub(super) fn drop_window(&mut self) {
        self.window = Vec::new();
    }

    /// Notes a compressed block that has this many bytes of content; returns its number.
    pub(super) fn note_block(&mut self, block: Block, content: usize) -> Option<u32> {
        self.blocks.note(block, content)
    }

    /// Replaces `into` with the bytes of a place.
    pub(super) fn read(&mut self, place: Place, into: &mut Vec<u8>) -> io::Result<()> {
        into.clear();
        if place.block == PLAIN {
            self.input.seek(SeekFrom::Start(place.at))?;
            (&mut self.input).take(place.len.into()).read_to_end(into)?;
        } else {
            let block = self.unpacked(place.block)?;
            let start = usize::try_from(place.at).unwrap_or(usize::MAX).min(block.len());
            into.extend_from_slice(&block[start..(start + place.len as usize).min(block.len())]);
        }
        if into.len() == place.len as usize {
            Ok(())
        } else {
            Err(io::Error::new(io::ErrorKind::UnexpectedEof, "the file shrank while it was read"))
        }
    }

    /// [`Source::read`] into a buffer that its stream keeps until the next place.
    ///
    /// # Errors
    /// Also `OutOfMemory`: the buffers of all streams would be larger than any recorder makes them, or compressed blocks were
    /// needed in too bad an order.
    pub(super) fn refill(&mut self, place: Place, into: &mut Vec<u8>) -> io::Result<()> {
        self.held = self.held.saturating_sub(into.capacity());
        if into.capacity() > WINDOW.max(place.len as usize) {
            *into = Vec::new();
        }
        if self.held + place.len as usize > MOST_HELD {
            *into = Vec::new();
            let why = "its parts that are open at one time are too large to be of a recorder";
            return Err(io::Error::new(io::ErrorKind::OutOfMemory, why));
        }
        let result = self.read(place, into);
        self.held += into.capacity();
        result
    }

    /// Ends the use of such a buffer.
    pub(super) fn release(&mut self, buffer: &mut Vec<u8>) {
        self.held = self.held.saturating_sub(buffer.capacity());
        *buffer = Vec::new();
    }

    fn unpacked(&mut self, number: u32) -> io::Result<Arc<[u8]>> {
        let input = &mut self.input;
        self.blocks.content(number, |block| {
            let mut packed = vec![0; block.len as usize];
            input.seek(SeekFrom::Start(block.at))?;
            input.read_exact(&mut packed)?;
            inflate(&packed, block.form)
        })
    }
}
