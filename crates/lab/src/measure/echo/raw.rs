//! Room: the echo over binder by bare exchanges with the driver (the kernel's: ioctls): the least that
//! any runtime could do, one exchange per hop, commands encoded by `abi`, no parcels, no loopers, no
//! dispatch.
//! Not here: the runtime (`ipc`); it only lets the two processes find each other, so that the node
//! called is one like any other, and is left alone from then on.
//! Every buffer is read where it came and goes back with the next write. Facts: contract WR-09, WR-12, WR-15, TX-01.

use std::io;

use abi::{Commands, Handle, Payload as Carried, Return, Returns, TransactionFlags};
use driver::{Connection, Context, Exchange};
use ipc::Process;
use ipc::binder::{Incoming, Object, Parcel, Status};
use ipc::hwbinder::{self, HwParcel};

use super::rendezvous::{self, Rendezvous};
use super::{Payload, Sabotage};
use crate::measure::{CallError, RoundTrip};
use crate::plan::Dialect;

/// Room for the returns of one read: more than any answer to one command needs.
const READ_SIZE: usize = 256;
/// Its name in either flavour.
const INTERFACE: &str = "binderperf.raw@1.0::IRaw";
/// The method number; nobody looks at it.
const ECHO: u32 = 1;

/// The measuring end.
#[derive(Debug)]
pub struct Client<C: Connection> {
    process: Process<C>,
    /// Keeps the handle alive.
    _service: ipc::Binder,
    /// Handles that are only held.
    held: Vec<ipc::Binder>,
    handle: Handle,
    commands: Commands,
    payload: Payload,
    /// Address and size of the last reply, which stays in place until the next write.
    reply: Option<(u64, u64)>,
}

impl<C: Connection> Client<C> {
    /// For vectors of `len` bytes, served by [`serve`] at this place.
    ///
    /// # Errors
    /// The context cannot be opened, has no manager, or the manager does not know the name.
    pub fn find<X>(place: Rendezvous<'_, X>, len: usize) -> Result<Self, CallError>
    where
        X: Context<Connection = C>,
    {
        let (process, service) = place.find(INTERFACE)?;
        let foreign = || CallError::Refused("the service turned out to be this process's own".to_owned());
        let handle = service.proxy().ok_or_else(foreign)?.handle();
        process.flush();
        let commands = Commands::with_capacity(READ_SIZE);
        let payload = Payload::new(len);
        Ok(Self { process, _service: service, held: Vec::new(), handle, commands, payload, reply: None })
    }

    /// Gets handles of so many of the nodes that [`serve`] registered besides, and keeps them.
    ///
    /// # Errors
    /// The manager does not know one.
    pub fn hold(&mut self, service: &str, count: u32) -> Result<(), CallError> {
        self.held = rendezvous::look_up_more(&self.process, service, count)?;
        self.process.flush();
        Ok(())
    }
}

fn unexpected(got: Return) -> CallError {
    match got {
        Return::DeadReply => CallError::Closed,
        got => CallError::Refused(format!("the driver answered {got:?}")),
    }
}

impl<C: Connection> RoundTrip for Client<C> {
    fn stamp(&mut self, sequence: u32) {
        self.payload.stamp(sequence);
    }

    fn call(&mut self) -> Result<(), CallError> {
        let carried = Carried { data: &self.payload.sent, ..Carried::default() };
        self.commands.transaction(self.handle, ECHO, TransactionFlags::CALL, carried);
        let mut read = [0; READ_SIZE];
        self.reply = None;
        loop {
            let len = exchange(self.process.connection(), &mut self.commands, carried, &mut read)?;
            for item in Returns::new(&read[..len]) {
                match item {
                    Ok(Return::Noop | Return::TransactionComplete) => {}
                    Ok(Return::Reply(reply)) => {
                        self.reply = Some((reply.buffer.0, reply.data_size));
                        self.commands.free_buffer(reply.buffer);
                        return Ok(());
                    }
                    Ok(got) => return Err(unexpected(got)),
                    Err(error) => return Err(CallError::Refused(error.to_string())),
                }
            }
        }
    }

    fn check(&self) -> Result<(), CallError> {
        let reply = self.reply.and_then(|(at, len)| self.process.connection().lent(at, len));
        self.payload.check_against(reply.unwrap_or_default())
    }
}

/// Writes what waits, with the bytes that its transaction points to, and reads what comes; returns
/// how many bytes that is.
fn exchange(
    connection: &impl Connection,
    commands: &mut Commands,
    carried: Carried<'_>,
    read: &mut [u8],
) -> Result<usize, CallError> {
    let mut exchange = Exchange::new(commands.as_bytes(), read).with_payload(carried);
    let result = connection.write_read_uninterrupted(&mut exchange);
    let (written, got) = (exchange.write_consumed, exchange.read_consumed);
    result.map_err(CallError::os("BINDER_WRITE_READ"))?;
    commands.consume(written);
    Ok(got)
}

/// What is registered; it never runs, as the bare loop takes its calls.
struct Name;

impl Object for Name {
    fn descriptor(&self) -> &str {
        INTERFACE
    }

    fn on_transact(&self, _call: &mut Incoming<'_>, _reply: &mut Parcel) -> Result<(), Status> {
        Err(Status::UNKNOWN_TRANSACTION)
    }
}

impl hwbinder::Object for Name {
    fn interfaces(&self) -> &[&str] {
        &[INTERFACE]
    }

    fn on_transact<'t>(&self, _: &mut hwbinder::Incoming<'t>, _: &mut HwParcel<'t>) -> Result<(), Status> {
        Err(Status::UNKNOWN_TRANSACTION)
    }
}

/// Registers a node and `more` besides, says so, and echoes until it is ended.
///
/// # Errors
/// There is no manager, it refuses the name, or the driver broke.
pub(crate) fn serve<X: Context>(
    place: Rendezvous<'_, X>,
    more: u32,
    ready: impl FnOnce() -> io::Result<()>,
    mut sabotage: Sabotage,
) -> Result<(), CallError> {
    let (process, _node) = place.register(|process| match place.dialect {
        Dialect::Binder(_) => process.publish(Name),
        Dialect::Hwbinder => process.publish_hidl(Name).as_binder().clone(),
    })?;
    let _more = place.register_more(&process, more, || Name)?;
    process.flush();
    let connection = process.connection();
    let mut commands = Commands::with_capacity(READ_SIZE);
    commands.enter_looper();
    ready().map_err(CallError::os("telling the client"))?;
    let mut broken_reply = Vec::new();
    let mut read = [0; READ_SIZE];
    let mut carried = Carried::default();
    loop {
        let len = exchange(connection, &mut commands, carried, &mut read)?;
        carried = Carried::default();
        for item in Returns::new(&read[..len]) {
            match item {
                Ok(Return::Transaction(call)) => {
                    let bytes = connection.lent(call.buffer.0, call.data_size).unwrap_or_default();
                    // Either stays in place until it is written: one call at most comes with each
                    // read (contract WR-09), and its buffer is given back behind the reply.
                    if sabotage.is_planned() {
                        broken_reply.clear();
                        broken_reply.extend_from_slice(bytes);
                        sabotage.apply(&mut broken_reply);
                        let broken = Carried { data: &broken_reply, ..Carried::default() };
                        commands.reply(TransactionFlags::default(), broken);
                    } else {
                        carried = Carried { data: bytes, ..Carried::default() };
                        commands.reply(TransactionFlags::default(), carried);
                    }
                    commands.free_buffer(call.buffer);
                }
                Ok(Return::Increfs(node, cookie)) => commands.increfs_done(node, cookie),
                Ok(Return::Acquire(node, cookie)) => commands.acquire_done(node, cookie),
                Ok(
                    Return::Noop | Return::TransactionComplete | Return::Release(..) | Return::Decrefs(..),
                ) => {}
                Ok(got) => return Err(unexpected(got)),
                Err(error) => return Err(CallError::Refused(error.to_string())),
            }
        }
    }
}
