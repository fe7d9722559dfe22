//! Pings: the calls that every object answers, whoever wrote it. They need no service of ours, so they measure a system on
//! which none may be registered.
//! Not here: finding the object (`crate::endpoint`).
//! Facts: `IBinder`'s `PING_TRANSACTION` and `INTERFACE_TRANSACTION`; `IBase::ping` of HIDL.

use driver::Context;
use ipc::Binder;
use ipc::binder::Parcel;
use ipc::binder::special;
use ipc::hwbinder::HwBinder;

use crate::call_error::{CallError, refused};
use crate::endpoint::Rendezvous;
use crate::measure::RoundTrip;

/// A call without arguments.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Question {
    /// Is the object there? The answer is empty.
    Ping,
    /// The name of its interface.
    Interface,
    /// HIDL's ping, whose answer is a status.
    HidlPing,
}

enum Target {
    Binder { object: Binder, code: u32, request: Parcel },
    Hwbinder(HwBinder),
}

/// The calling end.
pub(crate) struct Client {
    target: Target,
    /// The first answer: all others must be the same.
    answer: String,
}

impl Client {
    /// Creates a client of the object at this place.
    ///
    /// # Errors
    /// The context cannot be opened, has no manager, or the manager does not know the name; the object refuses the call.
    pub(crate) fn find<X: Context>(place: Rendezvous<'_, X>, question: Question) -> Result<Self, CallError> {
        let object = Binder::Remote(place.find_object()?);
        let target = match question {
            Question::HidlPing => Target::Hwbinder(HwBinder::from(object)),
            Question::Ping | Question::Interface => {
                let code = if question == Question::Ping { special::PING } else { special::INTERFACE };
                let request = object.bare_request();
                Target::Binder { object, code, request }
            }
        };
        let mut client = Self { target, answer: String::new() };
        client.answer = client.asked()?;
        Ok(client)
    }

    /// Asks, and returns the name in the answer; empty for a ping.
    fn asked(&self) -> Result<String, CallError> {
        match &self.target {
            Target::Binder { object, code: special::INTERFACE, .. } => object.descriptor().map_err(refused),
            Target::Binder { object, .. } => object.ping().map(|()| String::new()).map_err(refused),
            Target::Hwbinder(object) => object.ping().map(|()| String::new()).map_err(refused),
        }
    }
}

impl RoundTrip for Client {
    fn stamp(&mut self, _sequence: u32) {}

    fn call(&mut self) -> Result<(), CallError> {
        match &self.target {
            Target::Binder { object, code, request } => {
                object.transact(*code, request).map(drop).map_err(refused)
            }
            Target::Hwbinder(object) => object.ping().map_err(refused),
        }
    }

    fn check(&self) -> Result<(), CallError> {
        let (first, now) = (&self.answer, self.asked()?);
        if *first == now {
            Ok(())
        } else {
            Err(refused(format_args!("the object was {first}, and now is {now}")))
        }
    }
}
