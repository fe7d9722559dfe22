//! Echo over binder by bare exchanges with the driver (ioctls on the kernel's): the lower bound for any
//! runtime, one exchange per hop, commands encoded by `abi`, no parcels, no loopers, no dispatch.
//! Not here: the runtime (`ipc`); it only lets the two processes find each other, so that the called node is
//! an ordinary one, and is not used afterwards. Every buffer is read in place and freed with the next write.
//! Facts: contract WR-09, WR-12, WR-15, TX-01.

use std::io;

use abi::{Commands, Handle, Payload as Carried, Return, Returns, TransactionFlags};
use driver::{Connection, Context, Exchange};
use ipc::binder::manager::Services;
use ipc::binder::{Incoming, Object, Parcel, Status};
use ipc::hwbinder::{self, HwParcel};
use ipc::{Binder, Process, Proxy};

use super::{Payload, Sabotage};
use crate::call_error::{CallError, refused};
use crate::endpoint::Rendezvous;
use crate::measure::RoundTrip;
use crate::plan::Dialect;

/// Buffer size of one read, in bytes: more than any answer to one command needs.
const READ_SIZE: usize = 256;
/// Name of the interface in either flavour.
const INTERFACE: &str = "binderperf.raw@1.0::IRaw";
/// Method number; the server ignores it.
const ECHO: u32 = 1;

/// The measuring end.
#[derive(Debug)]
pub(crate) struct Client<C: Connection> {
    process: Process<C>,
    /// Keeps the handle alive.
    _service: Proxy,
    /// Handles that are only held.
    held: Vec<Binder>,
    handle: Handle,
    commands: Commands,
    payload: Payload,
    /// Address and size of the last reply, which stays in place until the next write.
    reply: Option<(u64, u64)>,
}

impl<C: Connection> Client<C> {
    /// Creates a client for vectors of `len` bytes, with [`serve`] at this place.
    ///
    /// # Errors
    /// The context cannot be opened, has no manager, or the manager does not know the name.
    pub(crate) fn find<X>(place: Rendezvous<'_, X>, len: usize) -> Result<Self, CallError>
    where
        X: Context<Connection = C>,
    {
        let (endpoint, service) = place.find(INTERFACE)?;
        let (process, handle) = (endpoint.process, service.handle());
        process.flush();
        let commands = Commands::with_capacity(READ_SIZE);
        let payload = Payload::new(len);
        Ok(Self { process, _service: service, held: Vec::new(), handle, commands, payload, reply: None })
    }

    /// Gets and keeps handles of `count` additional nodes that [`serve`] registered.
    ///
    /// # Errors
    /// The manager does not know one.
    pub(crate) fn hold(&mut self, service: &str, count: u32) -> Result<(), CallError> {
        let services = Services::of(&self.process).map_err(refused)?;
        let find = |number| services.get(&numbered(service, number)).map_err(refused);
        self.held = (0..count).map(find).collect::<Result<_, _>>()?;
        self.process.flush();
        Ok(())
    }
}

/// Name of an additional node.
fn numbered(service: &str, number: u32) -> String {
    format!("{service}.{number}")
}

fn unexpected(got: Return) -> CallError {
    match got {
        Return::DeadReply => CallError::Closed,
        got => refused(format_args!("the driver answered {got:?}")),
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
                    Err(error) => return Err(refused(error)),
                }
            }
        }
    }

    fn check(&self) -> Result<(), CallError> {
        let reply = self.reply.and_then(|(at, len)| self.process.connection().lent(at, len));
        self.payload.check_against(reply.unwrap_or_default())
    }
}

/// Writes the pending commands, with the bytes that their transaction points to, and reads the returns;
/// returns their size in bytes.
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

/// The registered object; it is never called, because the bare loop takes its calls.
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

/// Registers a node and `more` additional ones, reports readiness, and echoes until the process is killed.
///
/// # Errors
/// No manager exists, it refuses the name, or the driver failed.
pub(crate) fn serve<X: Context>(
    place: Rendezvous<'_, X>,
    more: u32,
    ready: impl FnOnce() -> io::Result<()>,
    mut sabotage: Sabotage,
) -> Result<(), CallError> {
    let (endpoint, _node) = place.register(|process| match place.dialect {
        Dialect::Binder(_) => process.publish(Name),
        Dialect::Hwbinder => process.publish_hidl(Name).as_binder().clone(),
    })?;
    let process = endpoint.process;
    let mut held = Vec::new();
    if more > 0 {
        let services = Services::of(&process).map_err(refused)?;
        for number in 0..more {
            let node = process.publish(Name);
            services.add(&numbered(place.name, number), &node).map_err(refused)?;
            held.push(node);
        }
    }
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
                    // Both stay in place until they are written: each read returns at most one call (contract
                    // WR-09), and its buffer is freed after the reply.
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
                Err(error) => return Err(refused(error)),
            }
        }
    }
}
