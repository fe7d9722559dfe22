//! Echo over two pipes.
//! Not here: over sockets (`super::unix`). Both ends know the vector's length, so only the vector is sent;
//! one that fits a pipe's buffer takes one write and one read each way.

use std::io::{PipeReader, PipeWriter, Read, Write};

use super::{Payload, Sabotage};
use crate::call_error::CallError;
use crate::measure::RoundTrip;

/// The measuring end.
#[derive(Debug)]
pub(crate) struct Client {
    requests: PipeWriter,
    replies: PipeReader,
    payload: Payload,
}

impl Client {
    /// Creates a client for vectors of `len` bytes, with [`serve`] at the other ends.
    #[must_use]
    pub(crate) fn new(requests: PipeWriter, replies: PipeReader, len: usize) -> Self {
        Self { requests, replies, payload: Payload::new(len) }
    }
}

impl RoundTrip for Client {
    fn stamp(&mut self, sequence: u32) {
        self.payload.stamp(sequence);
    }

    fn call(&mut self) -> Result<(), CallError> {
        self.requests.write_all(&self.payload.sent).map_err(CallError::os("write to the pipe"))?;
        self.replies.read_exact(&mut self.payload.received).map_err(CallError::os("read from the pipe"))
    }

    fn check(&self) -> Result<(), CallError> {
        self.payload.check()
    }
}

/// Echoes vectors of `len` bytes until the client has ended.
///
/// # Errors
/// The errors of reading and writing.
pub(crate) fn serve(
    mut requests: impl Read,
    mut replies: impl Write,
    len: usize,
    mut sabotage: Sabotage,
) -> Result<(), CallError> {
    let mut bytes = vec![0; len];
    loop {
        match requests.read_exact(&mut bytes).map_err(CallError::os("read from the pipe")) {
            Err(CallError::Closed) => return Ok(()),
            result => result?,
        }
        sabotage.apply(&mut bytes);
        replies.write_all(&bytes).map_err(CallError::os("write to the pipe"))?;
    }
}
