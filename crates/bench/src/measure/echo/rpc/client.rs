//! The calling end of RPC binder: a client for each connection of a session.
//! Not here: the bytes of messages (`super`), the threads in which clients call (`crate::measure::together`).

use std::fs::File;
use std::io::{Read, Write};

use super::{
    CONNECTION_INIT, Connection, GET_MAX_THREADS, GET_ROOT, GET_SESSION_ID, LONGEST, NEW_SESSION, NOBODY,
    PING, REPEAT_BYTES, ROOT, SESSION_ID, VERSION, connection_header, put_token, put_vector, vector, word,
};
use crate::call_error::{CallError, refused};
use crate::measure::RoundTrip;
use crate::measure::echo::Payload;

/// A caller that sends vectors through one connection.
pub(crate) struct Client {
    connection: Connection,
    /// The request's parcel, which begins with the interface's name.
    request: Vec<u8>,
    /// Size of that begin.
    token: usize,
    payload: Payload,
}

/// A caller that pings the root object.
pub(crate) struct PingClient(Connection);

/// Opens a session with [`super::serve`] at the other ends of these stream sockets; returns a client for each, for vectors of `len`
/// bytes.
///
/// # Errors
/// The server does not speak this version, has no root object, or takes fewer connections.
pub(crate) fn open(sockets: Vec<File>, len: usize) -> Result<Vec<Client>, CallError> {
    let wanted = sockets.len();
    let mut sockets = sockets.into_iter();
    let Some(first) = sockets.next() else { return Ok(Vec::new()) };
    let mut first = begin(first)?;
    let id = if wanted > 1 { session_id(&mut first, wanted)? } else { Vec::new() };
    let mut clients = vec![Client::new(first, len)];
    for mut socket in sockets {
        let begin = [&connection_header(&id)[..], &CONNECTION_INIT].concat();
        socket.write_all(&begin).map_err(CallError::os("write to the socket"))?;
        clients.push(Client::new(Connection::new(socket), len));
    }
    Ok(clients)
}

/// Begins a session on its first connection.
fn begin(mut socket: File) -> Result<Connection, CallError> {
    socket.write_all(&connection_header(&[])).map_err(CallError::os("write to the socket"))?;
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
    Ok(connection)
}

/// Asks for the session's id, if the server takes so many connections.
fn session_id(connection: &mut Connection, wanted: usize) -> Result<Vec<u8>, CallError> {
    let threads = word(connection.transact(NOBODY, GET_MAX_THREADS, &[])?, 0).unwrap_or_default();
    if (threads as usize) < wanted {
        return Err(refused(format_args!("the server takes {threads} connections, and {wanted} are wanted")));
    }
    let id = vector(connection.transact(NOBODY, GET_SESSION_ID, &[])?).unwrap_or_default();
    if id.len() == SESSION_ID {
        return Ok(id.to_vec());
    }
    Err(refused(format_args!("a session's id has {SESSION_ID} B, and not {}", id.len())))
}

impl Client {
    fn new(connection: Connection, len: usize) -> Self {
        let mut request = Vec::with_capacity(LONGEST);
        put_token(&mut request);
        Self { connection, token: request.len(), request, payload: Payload::new(len) }
    }

    /// The same connection for pings.
    pub(crate) fn into_pings(self) -> PingClient {
        PingClient(self.connection)
    }

    #[cfg(test)]
    pub(super) fn connection(&mut self) -> &mut Connection {
        &mut self.connection
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

impl RoundTrip for PingClient {
    fn stamp(&mut self, _sequence: u32) {}

    fn call(&mut self) -> Result<(), CallError> {
        match self.0.transact(ROOT, PING, &[])? {
            [] => Ok(()),
            more => Err(refused(format_args!("{} B came back from a ping", more.len()))),
        }
    }

    fn check(&self) -> Result<(), CallError> {
        Ok(())
    }
}
