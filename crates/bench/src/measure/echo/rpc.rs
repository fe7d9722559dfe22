//! Echo by RPC binder: calls of libbinder over unix sockets, without a driver. A session with a connection for each thread.
//! Not here: the calling end (`client`), the serving end (`server`), binder by a driver (`super::binder`), the socket
//! alone (`super::unix`).
//! Facts: `RpcWireFormat.h`, `RpcState.cpp` and `RpcSession.cpp` of AOSP, protocol version 1: connection header,
//! answer, `cci`; then messages of a header and a body. A parcel begins with the interface's name only. Further
//! connections of a session begin with its id, 32 bytes, and get no answer. A call counts as one reference to its
//! object, which the server gives back by a message of its own before the reply (`RpcState::flushExcessBinderRefs`).
//! libbinder polls its sockets before each transfer; here they block.

mod client;
mod server;

use std::fs::File;
use std::io::{self, ErrorKind, IoSlice, Read, Write};

use crate::call_error::{CallError, refused};
pub(crate) use client::{Client, PingClient, open};
pub(crate) use server::{serve, take_sockets};

const VERSION: u32 = 1;
const CONNECTION_HEADER: usize = 16;
const NEW_SESSION: usize = 8;
const SESSION_ID: usize = 32;
const CONNECTION_INIT: [u8; 8] = *b"cci\0\0\0\0\0";

const TRANSACT: u32 = 0;
const REPLY: u32 = 1;
const DEC_STRONG: u32 = 2;
const HEADER: usize = 16;
const TRANSACTION: usize = 40;
const ANSWER: usize = 20;
/// Longest body that libbinder takes, in bytes.
const LONGEST: usize = 100_000;

/// Address of a node that its server made, and its number.
const ROOT: [u32; 2] = [3, 1];
const NOBODY: [u32; 2] = [0, 0];
const GET_ROOT: u32 = 0;
const GET_MAX_THREADS: u32 = 1;
const GET_SESSION_ID: u32 = 2;
/// `PING_TRANSACTION`, `_PNG`.
const PING: u32 = 0x5f50_4e47;
const REPEAT_BYTES: u32 = 3;
const DESCRIPTOR: &str = "IBinderRpcBenchmark";
/// A binder in a parcel: there is one, its address, its stability.
const ROOT_PARCEL: [u32; 4] = [1, ROOT[0], ROOT[1], 0xc];

fn word(bytes: &[u8], at: usize) -> Option<u32> {
    bytes.get(at..).and_then(<[u8]>::first_chunk).map(|word| u32::from_le_bytes(*word))
}

fn put(bytes: &mut Vec<u8>, words: &[u32]) {
    words.iter().for_each(|word| bytes.extend_from_slice(&word.to_le_bytes()));
}

/// Appends a vector of bytes with its length, padded to whole words.
fn put_vector(parcel: &mut Vec<u8>, vector: &[u8]) {
    put(parcel, &[vector.len() as u32]);
    parcel.extend_from_slice(vector);
    parcel.resize(parcel.len().next_multiple_of(4), 0);
}

/// The vector at the begin of a parcel's rest.
fn vector(parcel: &[u8]) -> Option<&[u8]> {
    parcel.get(4..)?.get(..word(parcel, 0)? as usize)
}

/// Appends the name with which a call of the interface begins.
fn put_token(parcel: &mut Vec<u8>) {
    put(parcel, &[DESCRIPTOR.len() as u32]);
    let units = DESCRIPTOR.encode_utf16().chain([0]);
    parcel.extend(units.flat_map(u16::to_le_bytes));
    parcel.resize(parcel.len().next_multiple_of(4), 0);
}

/// The first bytes of a connection: of a new session, or of one with this id.
fn connection_header(session: &[u8]) -> Vec<u8> {
    let mut header = Vec::new();
    put(&mut header, &[VERSION, 0, 0, (session.len() as u32) << 16]);
    header.extend_from_slice(session);
    header
}

/// One end of a connection.
struct Connection {
    socket: File,
    /// Body of the last message received.
    body: Vec<u8>,
    /// Reused for the fixed part of each message sent.
    head: Vec<u8>,
}

impl Connection {
    fn new(socket: File) -> Self {
        Self { socket, body: Vec::with_capacity(LONGEST), head: Vec::with_capacity(HEADER + TRANSACTION) }
    }

    /// Sends a message of these fixed words and this parcel, by one system call unless the socket is full.
    fn send(&mut self, command: u32, fixed: &[u32], parcel: &[u8]) -> Result<(), CallError> {
        let body = size_of_val(fixed) + parcel.len();
        self.head.clear();
        put(&mut self.head, &[command, body as u32, 0, 0]);
        put(&mut self.head, fixed);
        let mut slices = [IoSlice::new(&self.head), IoSlice::new(parcel)];
        let mut rest = &mut slices[..];
        while !rest.is_empty() {
            match self.socket.write_vectored(rest) {
                Ok(0) => return Err(CallError::Closed),
                Ok(written) => IoSlice::advance_slices(&mut rest, written),
                Err(error) if error.kind() == ErrorKind::Interrupted => {}
                Err(error) => return Err(CallError::os("write to the socket")(error)),
            }
        }
        Ok(())
    }

    /// Receives a message into [`Self::body`]; returns its command.
    fn receive(&mut self) -> Result<u32, CallError> {
        let mut header = [0; HEADER];
        let read = CallError::os("read from the socket");
        self.socket.read_exact(&mut header).map_err(read)?;
        let (command, size) = (word(&header, 0).unwrap_or_default(), word(&header, 4).unwrap_or_default());
        if size as usize > LONGEST {
            return Err(refused(format_args!("a message of {size} B, and libbinder takes {LONGEST}")));
        }
        self.body.resize(size as usize, 0);
        self.socket.read_exact(&mut self.body).map_err(CallError::os("read from the socket"))?;
        Ok(command)
    }

    /// Calls a method of the object at this address; returns the reply's parcel.
    fn transact(&mut self, to: [u32; 2], code: u32, parcel: &[u8]) -> Result<&[u8], CallError> {
        let fixed = [to[0], to[1], code, 0, 0, 0, parcel.len() as u32, 0, 0, 0];
        self.send(TRANSACT, &fixed, parcel)?;
        let command = loop {
            match self.receive()? {
                // References that the server gives back. This end keeps no count, since the session lives as long as its root.
                DEC_STRONG => {}
                command => break command,
            }
        };
        let (status, size) = (word(&self.body, 0), word(&self.body, 4));
        match (command, status, size) {
            (REPLY, Some(0), Some(size)) => {
                self.body.get(ANSWER..).and_then(|rest| rest.get(..size as usize))
            }
            _ => None,
        }
        .ok_or_else(|| {
            refused(format_args!("RPC command {command} with status {status:?} in place of a reply"))
        })
    }
}

/// Pairs of connected stream sockets: the caller's ends, and the server's.
///
/// # Errors
/// The errors of `socketpair(2)`.
pub(crate) fn sockets(connections: usize) -> io::Result<(Vec<File>, Vec<File>)> {
    let file = |socket: std::os::unix::net::UnixStream| File::from(std::os::fd::OwnedFd::from(socket));
    let pair = || std::os::unix::net::UnixStream::pair();
    (0..connections).map(|_| pair().map(|(here, there)| (file(here), file(there)))).collect()
}

#[cfg(test)]
mod tests;
