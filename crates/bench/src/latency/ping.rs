//! Pings as the calls of a latency test: of objects of other programs, which tell nothing of the threads that serve.
//! Not here: pings in a row (`measure::echo::ping`).
//! Facts: `IBinder`'s `PING_TRANSACTION`; `IBase::ping` of HIDL.

use std::sync::Arc;

use driver::Connection;
use ipc::Binder;
use ipc::binder::{Parcel, special};
use ipc::hwbinder::HwBinder;

use super::endpoint::Callee;
use super::sample::ServerFacts;
use crate::call_error::{CallError, refused};
use crate::endpoint::Endpoint;
use crate::plan::Dialect;

/// An object of another program.
#[derive(Clone)]
pub(super) enum PingCallee {
    /// Object of flavour binder, with the request.
    Binder(Binder, Arc<Parcel>),
    /// Object of flavour hwbinder.
    Hwbinder(HwBinder),
}

impl PingCallee {
    /// Finds the object of this name, of hwbinder `INTERFACE/INSTANCE`; without a name the context's manager.
    pub(super) fn find<C: Connection>(endpoint: &Endpoint<C>, name: &str) -> Result<Self, CallError> {
        let object = Binder::Remote(endpoint.find_object(name)?);
        Ok(match endpoint.dialect {
            Dialect::Binder(_) => {
                let request = Arc::new(object.bare_request());
                Self::Binder(object, request)
            }
            Dialect::Hwbinder => Self::Hwbinder(HwBinder::from(object)),
        })
    }
}

impl Callee for PingCallee {
    fn call(&self) -> Result<ServerFacts, CallError> {
        match self {
            Self::Binder(object, request) => {
                object.transact(special::PING, request).map(drop).map_err(refused)?
            }
            Self::Hwbinder(object) => object.ping().map_err(refused)?,
        }
        Ok(ServerFacts::default())
    }
}
