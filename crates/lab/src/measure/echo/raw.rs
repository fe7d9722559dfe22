//! Room: the echo over binder by bare ioctls: the least that any runtime could do, one ioctl per
//! hop, commands encoded by `abi`, no parcels, no threads, no names.
//! Not here: the runtime (`ipc`).
//! The server is the context manager of a private device: calls to handle 0 need no lookup. Every
//! buffer goes back with the next write. Facts: contract WR-12, WR-15, TX-01.

use std::io;

use abi::{Commands, Handle, Payload as Carried, Return, Returns, TransactionFlags};
use driver::{Connection, Exchange, KernelConnection};

use super::{Payload, Sabotage};
use crate::measure::{CallError, RoundTrip};

/// Room for the returns of one read: more than any answer to one command needs.
const READ_SIZE: usize = 256;
/// The method number; nobody looks at it.
const ECHO: u32 = 1;

/// The measuring end.
#[derive(Debug)]
pub struct Client {
    connection: KernelConnection,
    commands: Commands,
    payload: Payload,
}

impl Client {
    /// For vectors of `len` bytes, served by [`serve`] on the same device.
    #[must_use]
    pub fn new(connection: KernelConnection, len: usize) -> Self {
        Self { connection, commands: Commands::with_capacity(READ_SIZE), payload: Payload::new(len) }
    }
}

fn unexpected(got: Return) -> CallError {
    match got {
        Return::DeadReply => CallError::Closed,
        got => CallError::Refused(format!("the driver answered {got:?}")),
    }
}

impl RoundTrip for Client {
    fn stamp(&mut self, sequence: u32) {
        self.payload.stamp(sequence);
    }

    fn call(&mut self) -> Result<(), CallError> {
        let carried = Carried { data: &self.payload.sent, ..Carried::default() };
        self.commands.transaction(Handle::CONTEXT_MANAGER, ECHO, TransactionFlags::CALL, carried);
        let mut read = [0; READ_SIZE];
        loop {
            let len = exchange(&self.connection, &mut self.commands, &mut read)?;
            for item in Returns::new(&read[..len]) {
                match item.map_err(|error| CallError::Refused(error.to_string()))? {
                    Return::Noop | Return::TransactionComplete => {}
                    Return::Reply(reply) => {
                        let bytes = self.connection.lent(reply.buffer.0, reply.data_size).unwrap_or_default();
                        self.payload.received.clear();
                        self.payload.received.extend_from_slice(bytes);
                        self.commands.free_buffer(reply.buffer);
                        return Ok(());
                    }
                    got => return Err(unexpected(got)),
                }
            }
        }
    }

    fn check(&self) -> Result<(), CallError> {
        self.payload.check()
    }
}

/// Writes what waits and reads what comes; returns how many bytes that is.
fn exchange(
    connection: &KernelConnection,
    commands: &mut Commands,
    read: &mut [u8],
) -> Result<usize, CallError> {
    let mut exchange = Exchange::new(commands.as_bytes(), read);
    let result = connection.write_read_uninterrupted(&mut exchange);
    let (written, got) = (exchange.write_consumed, exchange.read_consumed);
    result.map_err(CallError::os("BINDER_WRITE_READ"))?;
    commands.consume(written);
    Ok(got)
}

/// Becomes the context manager, says so, and echoes until it is ended.
///
/// # Errors
/// As the driver's; `EBUSY` when the device has a manager.
pub(crate) fn serve(
    connection: &KernelConnection,
    ready: impl FnOnce() -> io::Result<()>,
    mut sabotage: Sabotage,
) -> Result<(), CallError> {
    connection.become_context_manager(None).map_err(CallError::os("BINDER_SET_CONTEXT_MGR"))?;
    let mut commands = Commands::with_capacity(READ_SIZE);
    commands.enter_looper();
    ready().map_err(CallError::os("telling the client"))?;
    let mut broken_reply = Vec::new();
    let mut read = [0; READ_SIZE];
    loop {
        let len = exchange(connection, &mut commands, &mut read)?;
        for item in Returns::new(&read[..len]) {
            match item.map_err(|error| CallError::Refused(error.to_string()))? {
                Return::Transaction(call) => {
                    let bytes = connection.lent(call.buffer.0, call.data_size).unwrap_or_default();
                    let mut data = bytes;
                    if sabotage.is_planned() {
                        broken_reply.clear();
                        broken_reply.extend_from_slice(bytes);
                        sabotage.apply(&mut broken_reply);
                        data = &broken_reply;
                    }
                    // Either stays in place until it is written: one call at most comes with each
                    // read (contract WR-09), and its buffer is given back behind the reply.
                    commands.reply(TransactionFlags::default(), Carried { data, ..Carried::default() });
                    commands.free_buffer(call.buffer);
                }
                Return::Increfs(node, cookie) => commands.increfs_done(node, cookie),
                Return::Acquire(node, cookie) => commands.acquire_done(node, cookie),
                Return::Noop | Return::TransactionComplete | Return::Release(..) | Return::Decrefs(..) => {}
                got => return Err(unexpected(got)),
            }
        }
    }
}
