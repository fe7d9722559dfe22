//! Operations of a worker in any flavour: offer a service, find others, call them.
//! Not here: their order (`super::role`), the HIDL interface (`crate::measure::echo::benchmark`).
//! Facts: flavour `binder` is as in `BinderWorkerService` of `binderThroughputTest.cpp`: bare bytes without an
//! interface header, and an empty reply. Flavour `hwbinder` is as in libhwbinder's `Benchmark_throughput.cpp`:
//! `IBenchmark::sendVec` of 16 bytes of 0, 1, 2, ...; writing the arguments and reading the results are timed,
//! too; a service has one thread.

use std::hint::black_box;
use std::sync::{Arc, Mutex, PoisonError};

use driver::Connection;
use ipc::binder::special;
use ipc::hwbinder::HwBinder;
use ipc::{Binder, NodeOptions, Proxy};

use crate::call_error::{CallError, refused};
use crate::endpoint::{BareService, Endpoint, call_bare};
use crate::measure::echo::Sabotage;
use crate::measure::echo::benchmark::{Benchmark, Echo, INTERFACE, Offered, SEND_VEC, returned};
use crate::plan::Dialect;

/// The only method of a bare service.
const NOP: u32 = 1;

/// Registers a service under this name. It lives as long as the returned value.
pub(super) fn offer<C: Connection>(
    endpoint: &Endpoint<C>,
    name: &str,
    sabotage: Option<Sabotage>,
) -> Result<Binder, CallError> {
    let service = match endpoint.dialect {
        Dialect::Binder(_) => {
            let sabotage = sabotage.map(Mutex::new);
            let answer = move || {
                if let Some(sabotage) = &sabotage {
                    sabotage.lock().unwrap_or_else(PoisonError::into_inner).apply(&mut []);
                }
                [0; 0]
            };
            endpoint.publish_bare(BareService(answer), NodeOptions::default())
        }
        Dialect::Hwbinder => endpoint.process.publish_hidl(Offered(Echo::with(sabotage))).as_binder().clone(),
    };
    endpoint.register(name, &service)?;
    Ok(service)
}

/// A callable service.
pub(super) trait Callee {
    /// Makes one call, and releases its reply. The measured time is that of this function.
    ///
    /// # Errors
    /// The call failed or its reply is malformed.
    fn call(&mut self) -> Result<(), CallError>;
}

/// A service found by flavour `binder`.
pub(super) struct BareCallee {
    proxy: Proxy,
    request: Arc<[u8]>,
    code: u32,
}

impl BareCallee {
    /// Finds a service; one that `pings` is another program's and answers only a ping.
    pub(super) fn find<C: Connection>(
        endpoint: &Endpoint<C>,
        name: &str,
        request: &Arc<[u8]>,
        pings: bool,
    ) -> Result<Self, CallError> {
        let code = if pings { special::PING } else { NOP };
        Ok(Self { proxy: endpoint.find("", name)?, request: Arc::clone(request), code })
    }
}

impl Callee for BareCallee {
    fn call(&mut self) -> Result<(), CallError> {
        call_bare(&self.proxy, self.code, &self.request, |_| Some(()))
    }
}

/// A service found by flavour `hwbinder`.
pub(super) struct HidlCallee {
    service: HwBinder,
    data: Arc<[u8]>,
}

impl HidlCallee {
    /// Finds a service. Each call carries `data`.
    pub(super) fn find<C: Connection>(
        endpoint: &Endpoint<C>,
        name: &str,
        data: &Arc<[u8]>,
    ) -> Result<Self, CallError> {
        let service = HwBinder::from(Binder::Remote(endpoint.find(INTERFACE, name)?));
        Ok(Self { service, data: Arc::clone(data) })
    }
}

impl Callee for HidlCallee {
    fn call(&mut self) -> Result<(), CallError> {
        let mut request = self.service.request(INTERFACE);
        request.write_vec(&self.data);
        let reply = self.service.call(SEND_VEC, request).map_err(refused)?;
        let came = reply.reader().read_bytes().map_err(refused)?;
        returned(&self.data, black_box(came))
    }
}

/// An implementation in this process, called through the interface, as in Android.
pub(super) struct InProcess {
    service: Box<dyn Benchmark>,
    data: Arc<[u8]>,
}

impl InProcess {
    /// Creates a service. Each call carries `data`.
    pub(super) fn new(data: &Arc<[u8]>) -> Self {
        Self { service: Box::new(Echo::default()), data: Arc::clone(data) }
    }
}

impl Callee for InProcess {
    fn call(&mut self) -> Result<(), CallError> {
        returned(&self.data, black_box(self.service.send_vec(black_box(&self.data))))
    }
}
