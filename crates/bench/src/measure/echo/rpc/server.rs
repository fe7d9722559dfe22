//! The serving end of RPC binder: one session, and a thread for each connection of it.
//! Not here: the bytes of messages (`super`).

use std::fs::File;
use std::io::{Read, Write};
use std::os::fd::AsFd;
use std::sync::Arc;

use sys::seqpacket::{self, Wait};

use super::{
    CONNECTION_HEADER, CONNECTION_INIT, Connection, DEC_STRONG, GET_MAX_THREADS, GET_ROOT, GET_SESSION_ID,
    NOBODY, PING, REPEAT_BYTES, REPLY, ROOT, ROOT_PARCEL, SESSION_ID, TRANSACT, TRANSACTION, VERSION, put,
    put_token, put_vector, vector, word,
};
use crate::call_error::{CallError, refused};
use crate::measure::echo::Sabotage;
use crate::plan::{FaultKind, fresh_seed};

/// A session, for all its connections.
struct Session {
    id: [u8; SESSION_ID],
    connections: u32,
    /// Deliberate fault, for tests.
    fault: Option<FaultKind>,
    /// Begin of a call's parcel.
    token: Vec<u8>,
    /// Begin of a call to the root object.
    root: Vec<u8>,
}

/// Receives the sockets of all connections, which come in one message.
///
/// # Errors
/// The error of receiving; there is none.
pub(crate) fn take_sockets(bootstrap: &File) -> Result<Vec<File>, CallError> {
    let (mut descriptors, mut byte) = (Vec::new(), [0]);
    let got = seqpacket::recv(bootstrap.as_fd(), &mut byte, &mut descriptors, Wait::Forever)
        .map_err(CallError::os("receive the session's sockets"))?;
    if got.bytes == 0 || got.descriptors_lost || descriptors.is_empty() {
        return Err(CallError::Closed);
    }
    Ok(descriptors.into_iter().map(File::from).collect())
}

/// Answers calls of one session on these sockets, each in a thread of its own, the first in this one, until the client has ended.
///
/// # Errors
/// The errors of reading and writing; the client's messages are none of RPC binder.
pub(crate) fn serve(sockets: Vec<File>, fault: Option<FaultKind>) -> Result<(), CallError> {
    let mut id = [0; SESSION_ID];
    fastrand::Rng::with_seed(fresh_seed()).fill(&mut id);
    let mut token = Vec::new();
    put_token(&mut token);
    let mut root = Vec::new();
    put(&mut root, &ROOT);
    let session = Arc::new(Session { id, connections: sockets.len() as u32, fault, token, root });
    let mut sockets = sockets.into_iter();
    let Some(first) = sockets.next() else { return Ok(()) };
    let mut threads = Vec::new();
    for socket in sockets {
        let session = session.clone();
        let thread = sys::title::thread("RPC connection", move || session.serve(socket, false));
        threads.push(thread.map_err(CallError::os("starting a thread"))?);
    }
    let served = session.serve(first, true);
    let others = threads.into_iter().map(|thread| thread.join().unwrap_or(Err(CallError::Closed)));
    std::iter::once(served).chain(others).collect()
}

impl Session {
    /// Serves one connection.
    fn serve(&self, mut socket: File, is_first: bool) -> Result<(), CallError> {
        match self.accept(&mut socket, is_first) {
            // Nothing was asked for.
            Err(CallError::Closed) => return Ok(()),
            accepted => accepted?,
        }
        let mut connection = Connection::new(socket);
        let (mut reply, mut sabotage) = (Vec::new(), Sabotage::new(self.fault));
        loop {
            match connection.receive() {
                Err(CallError::Closed) => return Ok(()),
                Ok(TRANSACT) => {}
                Ok(other) => return Err(refused(format_args!("RPC command {other} in place of a call"))),
                Err(error) => return Err(error),
            }
            reply.clear();
            let known = self.answer(&connection.body, &mut reply, &mut sabotage).is_some();
            let status = if known { 0 } else { ipc::StatusCode::UNKNOWN_TRANSACTION.0.cast_unsigned() };
            if connection.body.starts_with(&self.root) {
                connection.send(DEC_STRONG, &[ROOT[0], ROOT[1], 1, 0], &[])?;
            }
            connection.send(REPLY, &[status, reply.len() as u32, 0, 0, 0], &reply)?;
        }
    }

    /// Reads the begin of a connection; the first one makes the session.
    fn accept(&self, socket: &mut File, is_first: bool) -> Result<(), CallError> {
        let mut asked = [0; CONNECTION_HEADER];
        socket.read_exact(&mut asked).map_err(CallError::os("read from the socket"))?;
        let size = usize::from(u16::from_le_bytes([asked[14], asked[15]]));
        let mut id = vec![0; size];
        socket.read_exact(&mut id).map_err(CallError::os("read from the socket"))?;
        match (is_first, &id[..]) {
            (true, []) => {
                let mut answer = Vec::new();
                put(&mut answer, &[word(&asked, 0).unwrap_or_default().min(VERSION), 0]);
                socket.write_all(&answer).map_err(CallError::os("write to the socket"))?;
            }
            (false, id) if id == self.id => {}
            _ => return Err(refused("a connection of another session")),
        }
        let mut init = CONNECTION_INIT;
        socket.read_exact(&mut init).map_err(CallError::os("read from the socket"))?;
        if init == CONNECTION_INIT {
            return Ok(());
        }
        Err(refused("the client begins with other bytes than RPC binder"))
    }

    /// Writes the parcel that answers a call; `None` if nobody serves it.
    fn answer(&self, body: &[u8], reply: &mut Vec<u8>, sabotage: &mut Sabotage) -> Option<()> {
        let parcel = body.get(TRANSACTION..)?.get(..word(body, 24)? as usize)?;
        match ([word(body, 0)?, word(body, 4)?], word(body, 8)?) {
            (NOBODY, GET_ROOT) => put(reply, &ROOT_PARCEL),
            (NOBODY, GET_MAX_THREADS) => put(reply, &[self.connections]),
            (NOBODY, GET_SESSION_ID) => put_vector(reply, &self.id),
            (ROOT, PING) => sabotage.apply(reply),
            (ROOT, REPEAT_BYTES) => {
                let bytes = vector(parcel.strip_prefix(&self.token[..])?)?;
                put(reply, &[0]);
                put_vector(reply, bytes);
                let sent = 8..8 + bytes.len();
                sabotage.apply(&mut reply[sent]);
            }
            _ => return None,
        }
        Some(())
    }
}
