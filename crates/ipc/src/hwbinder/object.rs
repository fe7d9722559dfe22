//! The trait of a HIDL service, and the dispatch of a delivered transaction to it.
//! Not here: the node table (`runtime::node`), calling objects (`client`), IBase's wire form (`base`).
//! Facts: libhwbinder's `BHwBinder::transact`; generated HIDL code checks the header of each method.

use std::fs::File;
use std::io;
use std::sync::Arc;

use driver::Connection;

use crate::hwbinder::base::{self, DebugInfo};
use crate::hwbinder::hw_binder::HwBinder;
use crate::hwbinder::parcel::HwParcel;
use crate::hwbinder::reader::Reader;
use crate::process::Process;
use crate::runtime::proxy::Proxy;
use crate::runtime::received::Received;
use crate::runtime::serve::{Serve, Transaction};
use crate::runtime::target::Binder;
use crate::scheduling::NodeOptions;
use crate::status::Status;
use crate::status_code::StatusCode;

/// A service: an object of one interface and those that it extends. Its methods run on any pool
/// thread, several at once.
pub trait Object: Send + Sync + 'static {
    /// The interfaces' names, most derived first, without IBase: `["a.b@1.1::IFoo",
    /// "a.b@1.0::IFoo"]`. Calls for another are answered `BAD_TYPE`.
    fn interfaces(&self) -> &[&str];

    /// One of the interfaces' methods. `call` stands at the first argument; `reply` already says "no
    /// exception", so results are simply appended, and may be the request's own bytes in place. A
    /// oneway call's reply goes nowhere.
    ///
    /// # Errors
    /// Whatever the caller shall get instead of results; [`Status::UNKNOWN_TRANSACTION`] for a
    /// method number that the interfaces do not have.
    fn on_transact<'t>(&self, call: &mut Incoming<'t>, reply: &mut HwParcel<'t>) -> Result<(), Status>;

    /// Hears of a call whose header is not one of these interfaces', before it is answered `BAD_TYPE`.
    fn on_other_header(&self, call: &Incoming<'_>) {
        let _ = call;
    }

    /// Hashes of the interfaces as released, in their order, and IBase's. Zeros: never released.
    fn hashes(&self) -> Vec<[u8; base::HASH]> {
        vec![[0; base::HASH]; self.interfaces().len() + 1]
    }

    /// Describes the object's state to a person. Not asked for by callers with an app's uid (Android's
    /// 10000 and up), unless it is this process's own: they get `PERMISSION_DENIED`.
    ///
    /// # Errors
    /// Writing fails; ignored.
    fn debug(&self, to: &mut dyn io::Write, options: &[&str]) -> io::Result<()> {
        let _ = options;
        writeln!(to, "{}", self.interfaces().first().unwrap_or(&base::DESCRIPTOR))
    }
}

impl<O: Object + ?Sized> Object for Arc<O> {
    fn interfaces(&self) -> &[&str] {
        (**self).interfaces()
    }

    fn on_transact<'t>(&self, call: &mut Incoming<'t>, reply: &mut HwParcel<'t>) -> Result<(), Status> {
        (**self).on_transact(call, reply)
    }

    fn on_other_header(&self, call: &Incoming<'_>) {
        (**self).on_other_header(call);
    }

    fn hashes(&self) -> Vec<[u8; base::HASH]> {
        (**self).hashes()
    }

    fn debug(&self, to: &mut dyn io::Write, options: &[&str]) -> io::Result<()> {
        (**self).debug(to, options)
    }
}

/// A call to a HIDL object, with a [`Reader`] of its arguments.
pub type Incoming<'t> = crate::incoming::Incoming<'t, Reader<'t>>;

/// An [`Object`] as a node runs it.
pub(crate) struct Served {
    object: Box<dyn Object>,
}

impl Served {
    pub(crate) fn new(object: impl Object) -> Box<Self> {
        Box::new(Self { object: Box::new(object) })
    }

    /// Runs a method or answers one of IBase's; what it leaves in `reply` is the answer.
    pub(crate) fn dispatch<'t>(
        &self,
        call: &mut Incoming<'t>,
        reply: &mut HwParcel<'t>,
    ) -> Result<(), Status> {
        reply.write_no_exception();
        if call.code() > base::LAST_METHOD {
            call.reader.read_header(&[base::DESCRIPTOR])?;
            return self.base(call, reply);
        }
        if let Err(other) = call.reader.read_header(self.object.interfaces()) {
            self.object.on_other_header(call);
            return Err(other.into());
        }
        self.object.on_transact(call, reply)
    }

    fn base(&self, call: &mut Incoming<'_>, reply: &mut HwParcel<'_>) -> Result<(), Status> {
        let interfaces = self.object.interfaces();
        match call.code() {
            base::PING | base::SYSPROPS_CHANGED | base::SET_INSTRUMENTATION => {}
            base::INTERFACE_CHAIN => {
                reply.write_str_vec(&[interfaces, &[base::DESCRIPTOR]].concat());
            }
            base::INTERFACE_DESCRIPTOR => {
                reply.write_str(interfaces.first().unwrap_or(&base::DESCRIPTOR));
            }
            base::DEBUG_INFO => {
                let address = std::ptr::from_ref(self).addr() as u64;
                DebugInfo::of_this_process(address).write(reply);
            }
            base::HASH_CHAIN => {
                let hashes = self.object.hashes();
                let array = reply.write_structs(hashes.len(), base::HASH);
                reply.set(array, 0, hashes.as_flattened());
            }
            base::DEBUG => {
                if is_app(call.sender_euid()) && call.sender_euid() != sys::identity::effective_uid() {
                    return Err(StatusCode::PERMISSION_DENIED.into());
                }
                let handle = call.read_handle()?.ok_or(StatusCode::UNEXPECTED_NULL)?;
                let options = call.read_str_vec()?;
                let to = handle.fds.into_iter().next().ok_or(StatusCode::BAD_VALUE)?;
                // The caller sees that the text is short.
                let _ = self.object.debug(&mut File::from(to), &options);
            }
            _ => return Err(Status::UNKNOWN_TRANSACTION),
        }
        Ok(())
    }
}

/// Android runs apps under these uids, of each of its users.
fn is_app(uid: u32) -> bool {
    const PER_USER: u32 = 100_000;
    const FIRST: u32 = 10_000;
    uid % PER_USER >= FIRST
}

impl Serve for Served {
    fn serve(&self, call: Transaction<'_>) {
        let mut reply = HwParcel::new();
        let outcome = match call.received().map(Received::lent) {
            Some(lent) => {
                let mut incoming = Incoming::delivered(&call, Reader::of_received(lent));
                self.dispatch(&mut incoming, &mut reply)
            }
            None => Err(Status::Code(StatusCode::UNKNOWN_ERROR)),
        };
        let flags = call.answer_flags();
        // A reply that cannot be delivered is reported to the caller by the driver.
        let _ = match outcome {
            Ok(()) => reply.with_payload(|payload| call.reply(flags, payload)),
            Err(Status::Code(code)) => call.reply_status(code),
            Err(Status::Exception(exception)) => {
                reply.clear();
                reply.write_exception(&exception);
                reply.with_payload(|payload| call.reply(flags, payload))
            }
        };
    }
}

impl Proxy {
    /// Offers a HIDL object from the process that holds this proxy.
    #[must_use]
    pub fn publish_hidl_beside(&self, object: impl Object) -> HwBinder {
        let nodes = &self.inner.runtime.shared().nodes;
        HwBinder::from(Binder::Local(nodes.publish(Served::new(object), NodeOptions::HWBINDER.flags())))
    }
}

impl<C: Connection> Process<C> {
    /// Offers a HIDL object: it takes descriptors, is never served behind nice 0, and inherits
    /// real-time priority. It lives while the result, a parcel under way or another process holds
    /// it; calls come once the pool runs.
    pub fn publish_hidl(&self, object: impl Object) -> HwBinder {
        self.publish_hidl_with(object, NodeOptions::HWBINDER)
    }

    /// [`Self::publish_hidl`] with options for the driver.
    pub fn publish_hidl_with(&self, object: impl Object, options: NodeOptions) -> HwBinder {
        HwBinder::from(Binder::Local(self.publish_node(Served::new(object), options)))
    }

    /// Makes a HIDL object the context manager: what every process finds at handle 0.
    ///
    /// # Errors
    /// `EBUSY`: there is one. `EPERM`: the first manager had another uid.
    /// `driver::manager::ManagerError` finds out who.
    pub fn become_hidl_context_manager(&self, object: impl Object) -> io::Result<HwBinder> {
        let node = self.become_context_manager_node(Served::new(object), NodeOptions::HWBINDER)?;
        Ok(HwBinder::from(Binder::Local(node)))
    }
}

#[cfg(test)]
mod tests {
    use std::io::{Read, Seek};

    use abi::TransactionFlags;

    use super::*;
    use crate::hwbinder::parcel::NativeHandle;

    struct Talkative;

    impl Object for Talkative {
        fn interfaces(&self) -> &[&str] {
            &["a@1.0::IA"]
        }

        fn on_transact<'t>(&self, _: &mut Incoming<'t>, _: &mut HwParcel<'t>) -> Result<(), Status> {
            Err(Status::UNKNOWN_TRANSACTION)
        }

        fn debug(&self, to: &mut dyn io::Write, options: &[&str]) -> io::Result<()> {
            write!(to, "secret {}", options.join(" "))
        }
    }

    /// What a caller of this uid gets to read.
    fn debug_as(uid: u32) -> Result<String, Status> {
        let folder = sys::private_folder::PrivateFolder::new("debug").expect("a folder");
        let path = folder.path().join("file");
        let mut file = File::options().create_new(true).read(true).write(true).open(path).expect("a file");
        let mut request = HwParcel::new();
        request.write_header(base::DESCRIPTOR);
        let fds = vec![file.try_clone().expect("a copy").into()];
        request.write_handle(Some(NativeHandle { fds, ints: vec![] }));
        request.write_str_vec(&["now"]);
        request.seal();
        let mut call = Incoming::from_uid(base::DEBUG, TransactionFlags::CALL, uid, request.sealed_reader());
        Served::new(Talkative).dispatch(&mut call, &mut HwParcel::new())?;
        let mut text = String::new();
        file.rewind().expect("rewind");
        file.read_to_string(&mut text).expect("read");
        Ok(text)
    }

    #[test]
    fn apps_are_not_told_an_objects_state() {
        for uid in [0, 1000, 2000, 9_999, 1_001_000, sys::identity::effective_uid()] {
            assert_eq!(debug_as(uid).as_deref(), Ok("secret now"), "{uid}");
        }
        for uid in [10_000, 19_999, 99_000, 1_010_123]
            .into_iter()
            .filter(|uid| *uid != sys::identity::effective_uid())
        {
            assert_eq!(debug_as(uid), Err(StatusCode::PERMISSION_DENIED.into()), "{uid}");
        }
    }
}
