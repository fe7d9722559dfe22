//! Room: the echo service of two examples.

use ipc::binder::{Incoming, Object, Parcel, Status};

/// The interface's name.
pub(crate) const DESCRIPTOR: &str = "example.IEcho";
/// The service's name.
pub(crate) const NAME: &str = "example.echo";
/// `byte[] echo(in byte[] bytes)`
pub(crate) const ECHO: u32 = 1;

/// The service.
pub(crate) struct Echo;

impl Object for Echo {
    fn descriptor(&self) -> &str {
        DESCRIPTOR
    }

    fn on_transact(&self, call: &mut Incoming<'_>, reply: &mut Parcel) -> Result<(), Status> {
        match call.code() {
            // Read where the driver put it, written into the reply: one copy.
            ECHO => reply.write_byte_slice(call.read_byte_slice()?),
            _ => return Err(Status::UNKNOWN_TRANSACTION),
        }
        Ok(())
    }
}
