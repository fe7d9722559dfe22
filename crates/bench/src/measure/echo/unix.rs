//! Echo over a unix socket pair that keeps message boundaries (`SOCK_SEQPACKET`): the socket with the least
//! work per message.
//! Not here: over pipes (`super::pipe`).

use std::fs::File;
use std::io::{self, Read, Write};

use super::{Payload, Sabotage};
use crate::call_error::CallError;
use crate::measure::RoundTrip;

/// The measuring end.
#[derive(Debug)]
pub(crate) struct Client {
    socket: File,
    payload: Payload,
}

impl Client {
    /// Creates a client for vectors of `len` bytes, with [`serve`] at the other end.
    #[must_use]
    pub(crate) fn new(socket: File, len: usize) -> Self {
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

/// Returns true if the system's sockets take a message of `len` bytes: it must fit into the sender's buffer.
///
/// # Errors
/// The errors of creating a socket pair.
pub(crate) fn takes(len: usize) -> io::Result<bool> {
    let (here, _there) = sys::seqpacket::pair()?;
    let too_long = |error: &io::Error| error.raw_os_error().and_then(sys::errno::name) == Some("EMSGSIZE");
    // The buffer is empty, so this does not block.
    Ok(!File::from(here).write(&vec![0; len]).is_err_and(|error| too_long(&error)))
}

fn send(socket: &mut File, bytes: &[u8]) -> Result<(), CallError> {
    // A message is sent whole or not at all, so `write_all` makes one call.
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

/// Echoes vectors of `len` bytes until the client has ended.
///
/// # Errors
/// The errors of reading and writing.
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

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_message_larger_than_every_buffer_is_not_taken() {
        assert!(takes(4096).expect("a pair"));
        assert!(!takes(1 << 28).expect("a pair"));
    }
}
