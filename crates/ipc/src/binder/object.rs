//! The trait of an AIDL service, and the dispatch of a delivered transaction to it.
//! Not here: the node table (`runtime::node`), calling objects (`client`).
//! Facts: Android's `BBinder::transact`; the special codes of `special`.

use std::fs::File;
use std::io;
use std::sync::Arc;

use driver::Connection;

use crate::binder::parcel::Parcel;
use crate::binder::reader::Reader;
use crate::binder::shell::{self, ShellCommand};
use crate::binder::special;
use crate::process::Process;
use crate::release::Release;
use crate::runtime::proxy::Proxy;
use crate::runtime::serve::{Serve, Transaction};
use crate::runtime::target::Binder;
use crate::scheduling::NodeOptions;
use crate::status::Status;
use crate::status_code::StatusCode;

/// A service: an object of one interface. Its methods run on any pool thread, several at once.
pub trait Object: Send + Sync + 'static {
    /// The interface's name; calls with another in their header are answered `BAD_TYPE`.
    fn descriptor(&self) -> &str;

    /// One of the interface's methods. `call` stands at the first argument; `reply` already says
    /// "no exception", so results are simply appended. A oneway call's reply goes nowhere.
    ///
    /// # Errors
    /// Whatever the caller shall get instead of results; [`Status::UNKNOWN_TRANSACTION`] for a
    /// method number that the interface does not have.
    fn on_transact(&self, call: &mut Incoming<'_>, reply: &mut Parcel) -> Result<(), Status>;

    /// Hears of a call whose header is not this interface's, before it is answered `BAD_TYPE`. `call` is at its beginning.
    fn on_other_header(&self, call: &Incoming<'_>) {
        let _ = call;
    }

    /// The object that extends this one, for clients that know of it.
    fn extension(&self) -> Option<Binder> {
        None
    }

    /// Describes the object's state to a person.
    ///
    /// # Errors
    /// Writing fails; ignored.
    fn dump(&self, to: &mut dyn io::Write, arguments: &[String]) -> io::Result<()> {
        let _ = arguments;
        writeln!(to, "{}", self.descriptor())
    }

    /// Runs a command that a person typed; the result is its exit status.
    ///
    /// # Errors
    /// `INVALID_OPERATION`: the object has no commands.
    fn shell_command(&self, command: ShellCommand) -> Result<i32, StatusCode> {
        drop(command);
        Err(StatusCode::INVALID_OPERATION)
    }
}

impl<O: Object + ?Sized> Object for Arc<O> {
    fn descriptor(&self) -> &str {
        (**self).descriptor()
    }

    fn on_transact(&self, call: &mut Incoming<'_>, reply: &mut Parcel) -> Result<(), Status> {
        (**self).on_transact(call, reply)
    }

    fn on_other_header(&self, call: &Incoming<'_>) {
        (**self).on_other_header(call);
    }

    fn extension(&self) -> Option<Binder> {
        (**self).extension()
    }

    fn dump(&self, to: &mut dyn io::Write, arguments: &[String]) -> io::Result<()> {
        (**self).dump(to, arguments)
    }

    fn shell_command(&self, command: ShellCommand) -> Result<i32, StatusCode> {
        (**self).shell_command(command)
    }
}

/// A call to an AIDL object, with a [`Reader`] of its arguments.
pub type Incoming<'t> = crate::incoming::Incoming<'t, Reader<'t>>;

/// An [`Object`] as a node runs it.
pub(crate) struct Served {
    object: Box<dyn Object>,
    release: Release,
}

impl Served {
    pub(crate) fn release(&self) -> Release {
        self.release
    }

    /// Runs a method or answers a special code; what it leaves in `reply` is the answer.
    pub(crate) fn dispatch(&self, call: &mut Incoming<'_>, reply: &mut Parcel) -> Result<(), Status> {
        call.caller().runs(|| self.run(call, reply))
    }

    fn run(&self, call: &mut Incoming<'_>, reply: &mut Parcel) -> Result<(), Status> {
        if call.code() > special::LAST_METHOD {
            return self.special(call, reply);
        }
        if let Err(other) = call.reader.read_header(self.object.descriptor()) {
            self.object.on_other_header(call);
            return Err(other.into());
        }
        reply.write_no_exception();
        self.object.on_transact(call, reply)
    }

    fn special(&self, call: &mut Incoming<'_>, reply: &mut Parcel) -> Result<(), Status> {
        match call.code() {
            special::PING | special::SYSPROPS => {}
            special::INTERFACE => reply.write_str(self.object.descriptor()),
            special::DEBUG_PID => reply.write_u32(std::process::id()),
            special::EXTENSION => reply.write_nullable_binder(self.object.extension().as_ref()),
            special::DUMP => {
                let mut to = File::from(call.read_fd()?);
                let arguments = call.read_str_vec()?;
                // The caller sees that the dump is short.
                let _ = self.object.dump(&mut to, &arguments);
            }
            special::SHELL_COMMAND => {
                let (command, receiver) = ShellCommand::read(call)?;
                let status = self.object.shell_command(command);
                if let Some(receiver) = receiver {
                    shell::report(&receiver, status.unwrap_or_else(|error| error.0));
                }
            }
            _ => return Err(Status::UNKNOWN_TRANSACTION),
        }
        Ok(())
    }
}

impl Serve for Served {
    fn serve(&self, call: Transaction<'_>) {
        let mut reply = Parcel::for_release(self.release);
        let outcome = match call.received() {
            Some(received) => {
                let reader = Reader::of_received(received, self.release);
                let mut incoming = Incoming::delivered(&call, reader);
                self.dispatch(&mut incoming, &mut reply)
            }
            None => Err(Status::Code(StatusCode::UNKNOWN_ERROR)),
        };
        let flags = call.answer_flags();
        // A reply that cannot be delivered is reported to the caller by the driver.
        let _ = match outcome {
            Ok(()) => call.reply(flags, reply.payload()),
            Err(Status::Code(code)) => call.reply_status(code),
            Err(Status::Exception(exception)) => {
                reply.clear();
                reply.write_exception(&exception);
                call.reply(flags, reply.payload())
            }
        };
    }
}

impl Proxy {
    /// Offers an object from the process that holds this proxy.
    #[must_use]
    pub fn publish_beside(&self, object: impl Object) -> Binder {
        let shared = self.inner.runtime.shared();
        let served = Served { object: Box::new(object), release: shared.release };
        let flags = shared.background.node_options().flags();
        Binder::Local(shared.nodes.publish(Box::new(served), flags))
    }
}

impl<C: Connection> Process<C> {
    fn served(&self, object: impl Object) -> Box<Served> {
        Box::new(Served { object: Box::new(object), release: self.release() })
    }

    /// Offers an object. It lives while the result, a parcel under way or another process holds it;
    /// calls come once the pool runs.
    pub fn publish(&self, object: impl Object) -> Binder {
        self.publish_with(object, self.inner.shared.background.node_options())
    }

    /// [`Self::publish`] with options for the driver, whatever
    /// [`Self::disable_background_scheduling`] says.
    pub fn publish_with(&self, object: impl Object, options: NodeOptions) -> Binder {
        Binder::Local(self.publish_node(self.served(object), options))
    }

    /// Makes an object the context manager: what every process finds at handle 0.
    ///
    /// # Errors
    /// `EBUSY`: there is one. `EPERM`: the first manager had another uid.
    /// `driver::manager::ManagerError` finds out who.
    pub fn become_context_manager(&self, object: impl Object) -> io::Result<Binder> {
        // A manager must not run behind its callers.
        let options = NodeOptions::BINDER_FOREGROUND;
        self.become_context_manager_node(self.served(object), options).map(Binder::Local)
    }
}
