//! Echo by RPC binder: calls of libbinder over a unix socket, without a driver. One session with one connection.
//! Not here: binder by a driver (`super::binder`), the socket alone (`super::unix`).
//! Facts: `RpcWireFormat.h` and `RpcState.cpp` of AOSP, protocol version 1: connection header, answer, `cci`; then messages of a header and
//! a body. A parcel begins with the interface's name only. libbinder polls its sockets before each transfer; here they block.

use std::fs::File;
use std::io::{self, ErrorKind, IoSlice, Read, Write};

use super::{Payload, Sabotage};
use crate::call_error::{CallError, refused};
use crate::measure::RoundTrip;

const VERSION: u32 = 1;
const CONNECTION_HEADER: usize = 16;
const NEW_SESSION: usize = 8;
const CONNECTION_INIT: [u8; 8] = *b"cci\0\0\0\0\0";

const TRANSACT: u32 = 0;
const REPLY: u32 = 1;
const HEADER: usize = 16;
const TRANSACTION: usize = 40;
const ANSWER: usize = 20;
/// Longest body that libbinder takes, in bytes.
const LONGEST: usize = 100_000;

/// Address of a node that its server made, and its number.
const ROOT: [u32; 2] = [3, 1];
const NOBODY: [u32; 2] = [0, 0];
const GET_ROOT: u32 = 0;
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
        let command = self.receive()?;
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

/// The measuring end.
pub(crate) struct Client {
    connection: Connection,
    /// The request's parcel, which begins with the interface's name.
    request: Vec<u8>,
    /// Size of that begin.
    token: usize,
    payload: Payload,
}

impl Client {
    /// Opens a session for vectors of `len` bytes with [`serve`] at the other end of a stream socket.
    ///
    /// # Errors
    /// The server does not speak this version, or has no root object.
    pub(crate) fn open(mut socket: File, len: usize) -> Result<Self, CallError> {
        let mut header = Vec::new();
        put(&mut header, &[VERSION, 0, 0, 0]);
        socket.write_all(&header).map_err(CallError::os("write to the socket"))?;
        let mut session = [0; NEW_SESSION];
        socket.read_exact(&mut session).map_err(CallError::os("read from the socket"))?;
        if word(&session, 0) != Some(VERSION) {
            return Err(refused("the server speaks another version of RPC binder"));
        }
        socket.write_all(&CONNECTION_INIT).map_err(CallError::os("write to the socket"))?;
        let mut connection = Connection::new(socket);
        let root = connection.transact(NOBODY, GET_ROOT, &[])?;
        if [1, 2].map(|at| word(root, 4 * at)) != ROOT.map(Some) {
            return Err(refused("the server has no root object"));
        }
        let mut request = Vec::with_capacity(LONGEST);
        put_token(&mut request);
        Ok(Self { connection, token: request.len(), request, payload: Payload::new(len) })
    }
}

impl RoundTrip for Client {
    fn stamp(&mut self, sequence: u32) {
        self.payload.stamp(sequence);
    }

    fn call(&mut self) -> Result<(), CallError> {
        self.request.truncate(self.token);
        put_vector(&mut self.request, &self.payload.sent);
        let reply = self.connection.transact(ROOT, REPEAT_BYTES, &self.request)?;
        let bytes = (word(reply, 0) == Some(0)).then(|| vector(&reply[4..])).flatten();
        let bytes = bytes.ok_or_else(|| refused("the service answered an error, or no vector"))?;
        self.payload.received.clear();
        self.payload.received.extend_from_slice(bytes);
        Ok(())
    }

    fn check(&self) -> Result<(), CallError> {
        self.payload.check()
    }
}

/// Answers calls until the client has ended.
///
/// # Errors
/// The errors of reading and writing; the client's messages are none of RPC binder.
pub(crate) fn serve(mut socket: File, mut sabotage: Sabotage) -> Result<(), CallError> {
    let mut asked = [0; CONNECTION_HEADER];
    socket.read_exact(&mut asked).map_err(CallError::os("read from the socket"))?;
    let mut session = Vec::new();
    put(&mut session, &[word(&asked, 0).unwrap_or_default().min(VERSION), 0]);
    socket.write_all(&session).map_err(CallError::os("write to the socket"))?;
    let mut init = CONNECTION_INIT;
    socket.read_exact(&mut init).map_err(CallError::os("read from the socket"))?;
    if init != CONNECTION_INIT {
        return Err(refused("the client begins with other bytes than RPC binder"));
    }
    let mut token = Vec::new();
    put_token(&mut token);
    let mut connection = Connection::new(socket);
    let mut reply = Vec::new();
    loop {
        match connection.receive() {
            Err(CallError::Closed) => return Ok(()),
            Ok(TRANSACT) => {}
            Ok(other) => return Err(refused(format_args!("RPC command {other} in place of a call"))),
            Err(error) => return Err(error),
        }
        reply.clear();
        let known = answer(&connection.body, &token, &mut reply, &mut sabotage).is_some();
        let status = if known { 0 } else { ipc::StatusCode::UNKNOWN_TRANSACTION.0.cast_unsigned() };
        connection.send(REPLY, &[status, reply.len() as u32, 0, 0, 0], &reply)?;
    }
}

/// Writes the parcel that answers a call; `None` if nobody serves it.
fn answer(body: &[u8], token: &[u8], reply: &mut Vec<u8>, sabotage: &mut Sabotage) -> Option<()> {
    let parcel = body.get(TRANSACTION..)?.get(..word(body, 24)? as usize)?;
    match ([word(body, 0)?, word(body, 4)?], word(body, 8)?) {
        (NOBODY, GET_ROOT) => put(reply, &ROOT_PARCEL),
        (ROOT, REPEAT_BYTES) => {
            let bytes = vector(parcel.strip_prefix(token)?)?;
            put(reply, &[0]);
            put_vector(reply, bytes);
            let sent = 8..8 + bytes.len();
            sabotage.apply(&mut reply[sent]);
        }
        _ => return None,
    }
    Some(())
}

/// A pair of connected stream sockets.
///
/// # Errors
/// The errors of `socketpair(2)`.
pub(crate) fn sockets() -> io::Result<[File; 2]> {
    let (here, there) = std::os::unix::net::UnixStream::pair()?;
    Ok([here, there].map(|socket| File::from(std::os::fd::OwnedFd::from(socket))))
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The bytes that a client sends before and with its first call, as `RpcWireFormat.h` lays them out.
    #[test]
    fn a_session_begins_as_libbinder_begins_it() {
        let [client, mut server] = sockets().expect("a pair");
        let opening = std::thread::spawn(move || Client::open(client, 4).map(drop));
        let mut header = [0; CONNECTION_HEADER];
        server.read_exact(&mut header).expect("a header");
        assert_eq!(header, [1, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0]);
        server.write_all(&[1, 0, 0, 0, 0, 0, 0, 0]).expect("sent");
        let mut call = [0; 8 + HEADER + TRANSACTION];
        server.read_exact(&mut call).expect("the first call");
        assert_eq!(call[..8], *b"cci\0\0\0\0\0");
        assert_eq!(call[8..16], [0, 0, 0, 0, 40, 0, 0, 0], "TRANSACT, with a body of 40 B");
        assert!(call[16..].iter().all(|byte| *byte == 0), "no address, GET_ROOT, an empty parcel");
        server.write_all(&[1, 0, 0, 0, 20, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0]).expect("sent");
        server.write_all(&[0; ANSWER]).expect("sent");
        assert!(opening.join().expect("it ends").is_err(), "an empty parcel is no root object");
    }

    #[test]
    fn vectors_come_back_and_what_is_no_call_is_refused() {
        let [client, server] = sockets().expect("a pair");
        let serving = std::thread::spawn(move || serve(server, Sabotage::new(None)));
        let mut client = Client::open(client, 65_537).expect("open");
        for sequence in 1..4 {
            client.stamp(sequence);
            client.call().expect("answered");
            client.check().expect("the same");
        }
        for (to, code, parcel) in
            [(ROOT, 9, &[][..]), ([3, 2], REPEAT_BYTES, &[]), (ROOT, REPEAT_BYTES, &[1; 8])]
        {
            let error = client.connection.transact(to, code, parcel).expect_err("refused");
            assert!(error.to_string().contains("in place of a reply"), "{error}");
        }
        drop(client);
        serving.join().expect("it ends").expect("the client ended");
    }

    #[test]
    fn a_message_that_is_no_call_or_has_no_end_is_refused() {
        let mut reply = [0; HEADER];
        reply[0] = REPLY as u8;
        for (message, why) in [([0xff; HEADER], "4294967295 B"), (reply, "RPC command 1")] {
            let [mut client, server] = sockets().expect("a pair");
            let serving = std::thread::spawn(move || serve(server, Sabotage::new(None)));
            client.write_all(&[&[1; 16][..], &CONNECTION_INIT, &message].concat()).expect("sent");
            let error = serving.join().expect("it ends").expect_err("refused");
            assert!(error.to_string().contains(why), "{error}");
        }
    }
}
