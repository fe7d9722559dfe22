//! Room: the echo over a unix socket pair that keeps message boundaries (`SOCK_SEQPACKET`): of all
//! sockets the one with the least work per message.
//! Not here: over pipes (`super::pipe`).

use std::fs::File;
use std::io::{self, Read, Write};

use super::{Payload, Sabotage};
use crate::measure::{CallError, RoundTrip};

/// The measuring end.
#[derive(Debug)]
pub struct Client {
    socket: File,
    payload: Payload,
}

impl Client {
    /// For vectors of `len` bytes, served by [`serve`] at the other end.
    #[must_use]
    pub fn new(socket: File, len: usize) -> Self {
        Self { socket, payload: Payload::new(len) }
    }
}

impl RoundTrip for Client {
    fn stamp(&mut self, sequence: u32) {
        self.payload.stamp(sequence);
    }

    fn call(&mut self) -> Result<(), CallError> {
        send(&mut self.socket, &self.payload.sent)?;
        receive(&mut self.socket, &mut self.payload.received)
    }

    fn check(&self) -> Result<(), CallError> {
        self.payload.check()
    }
}

fn send(socket: &mut File, bytes: &[u8]) -> Result<(), CallError> {
    // A message goes whole or not at all, so `write_all` makes one call.
    socket.write_all(bytes).map_err(CallError::os("write to the socket"))
}

fn receive(socket: &mut File, bytes: &mut [u8]) -> Result<(), CallError> {
    let got = loop {
        match socket.read(bytes) {
            Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
            result => break result.map_err(CallError::os("read from the socket"))?,
        }
    };
    match got {
        0 => Err(CallError::Closed),
        got if got == bytes.len() => Ok(()),
        got => Err(CallError::Corrupt { sent: bytes.len(), received: got, at: got }),
    }
}

/// Echoes vectors of `len` bytes until the client is gone.
///
/// # Errors
/// As reading and writing.
pub(crate) fn serve(mut socket: File, len: usize, mut sabotage: Sabotage) -> Result<(), CallError> {
    let mut bytes = vec![0; len];
    loop {
        match receive(&mut socket, &mut bytes) {
            Err(CallError::Closed) => return Ok(()),
            result => result?,
        }
        sabotage.apply(&mut bytes);
        send(&mut socket, &bytes)?;
    }
}
