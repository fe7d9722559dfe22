//! A service that lives as long as a soak, in a process of its own, and its client in this process.
//! Not here: counting what it keeps (`growth`).

use std::any::Any;
use std::io::BufRead;
use std::process::Stdio;
use std::time::Duration;

use abi::{Payload, TransactionFlags};
use backend::{AnyContext, on_context};
use driver::{Connection, Context};
use procgroup::role::tell_ready;
use procgroup::{Role, Streams, WorkerProcess};
use serde::{Deserialize, Serialize};
use sys::clock::monotonic_ns;

use super::fault::SoakFault;
use crate::endpoint::Endpoint;
use crate::inversion::service::{self, Callee};
use crate::plan::Dialect;

/// Time limit for the process to start, and to answer at the end of a turn.
const PATIENCE: Duration = Duration::from_secs(30);
/// Calls of each turn.
const CALLS: usize = 2000;
/// A method of the manager; whatever it is, there is a reply.
const ANY_METHOD: u32 = 1;

#[derive(Clone, Debug, Serialize, Deserialize)]
pub(crate) struct ResidentRole {
    /// Address of the context.
    address: String,
    dialect: String,
    name: String,
    faults: Vec<SoakFault>,
}

impl Role for ResidentRole {
    const NAME: &'static str = "soak";

    fn title(&self) -> String {
        "soak service".to_owned()
    }

    fn run(self) -> Result<(), String> {
        let dialect = self.dialect.parse()?;
        on_context!(&AnyContext::parse(&self.address), |context| self.serve(context, dialect))
    }
}

impl ResidentRole {
    /// Serves on a thread; commits the faults at each line of the standard input, until its end.
    fn serve<X: Context>(&self, context: &X, dialect: Dialect) -> Result<(), String> {
        let told = |error: std::io::Error| sys::errno::describe(&error);
        let endpoint = Endpoint::open(context, dialect, 0).map_err(|error| error.to_string())?;
        let _service = service::offer(&endpoint, &self.name, false, 0).map_err(|error| error.to_string())?;
        endpoint.start_thread().map_err(|error| error.to_string())?;
        tell_ready("").map_err(told)?;
        let mut kept = Vec::new();
        for (turn, line) in std::io::stdin().lock().lines().enumerate() {
            line.map_err(told)?;
            for fault in &self.faults {
                self.commit(*fault, turn, &endpoint, &mut kept)?;
            }
            tell_ready("").map_err(told)?;
        }
        Ok(())
    }

    fn commit<C: Connection>(
        &self,
        fault: SoakFault,
        turn: usize,
        endpoint: &Endpoint<C>,
        kept: &mut Vec<Box<dyn Any>>,
    ) -> Result<(), String> {
        match fault {
            SoakFault::LeakBroker | SoakFault::SlowDown(_) => {}
            SoakFault::LeakNodes(number) => {
                for number in 0..number {
                    let name = format!("{}.{turn}.{number}", self.name);
                    let offered = service::offer(endpoint, &name, false, 0);
                    kept.push(Box::new(offered.map_err(|error| error.to_string())?));
                }
            }
            SoakFault::LeakBuffers(number) => {
                let manager = endpoint.manager().map_err(|error| error.to_string())?;
                for _ in 0..number {
                    // Its buffer is never given back.
                    let reply =
                        manager.transact_payload(ANY_METHOD, TransactionFlags::CALL, Payload::default());
                    std::mem::forget(reply.map_err(|error| error.to_string())?);
                }
            }
            SoakFault::LeakMemory(kib) => kept.push(Box::new(vec![1_u8; kib as usize * 1024])),
            SoakFault::LeakDescriptors(number) => {
                let open = || std::fs::File::open("/dev/null").map_err(|error| sys::errno::describe(&error));
                let files = (0..number).map(|_| open()).collect::<Result<Vec<_>, _>>()?;
                kept.push(Box::new(files));
            }
        }
        Ok(())
    }
}

/// The service and its client.
pub(super) struct Resident {
    callee: Callee,
    worker: WorkerProcess,
    /// The client's process in the context.
    _endpoint: Box<dyn Any>,
}

impl Resident {
    /// Starts the service, and finds it. This program is started again, so it must call [`crate::start_worker`].
    pub(super) fn start(
        context: &AnyContext,
        dialect: Dialect,
        faults: &[SoakFault],
    ) -> Result<Self, String> {
        let name = format!("binderperf.soak.{}", std::process::id());
        let role = ResidentRole {
            address: context.address(),
            dialect: dialect.to_string(),
            name: name.clone(),
            faults: faults.to_vec(),
        };
        let worker = WorkerProcess::start(&role, Streams::of(Stdio::piped(), Stdio::piped()), None)
            .map_err(|error| format!("starting the service: {}", sys::errno::describe(&error)))?;
        worker.ready(PATIENCE).map_err(|why| format!("the service did not start: {why}"))?;
        let (callee, endpoint) = on_context!(context, |context| client(context, dialect, &name))?;
        Ok(Self { callee, worker, _endpoint: endpoint })
    }

    /// Process number of the service.
    pub(super) fn pid(&self) -> u32 {
        self.worker.pid()
    }

    /// Makes the calls of a turn; returns median and 99th percentile by name. Then the service commits its faults.
    pub(super) fn turn(&self) -> Result<[(String, f64); 2], String> {
        let mut times = Vec::with_capacity(CALLS);
        for _ in 0..CALLS {
            let start = monotonic_ns();
            self.callee.call().map_err(|error| format!("calling the resident service: {error}"))?;
            times.push((monotonic_ns() - start) as f64);
        }
        let end = |why: String| format!("the resident service broke: {why}");
        self.worker.write_line("turn").map_err(|error| end(sys::errno::describe(&error)))?;
        self.worker.ready(PATIENCE).map_err(end)?;
        let name = |metric: &str| format!("resident service {metric}");
        let percentile = |percent| record::stats::percentile(&times, percent).unwrap_or_default();
        Ok([(name("median"), percentile(50.0)), (name("p99"), percentile(99.0))])
    }
}

fn client<X>(context: &X, dialect: Dialect, name: &str) -> Result<(Callee, Box<dyn Any>), String>
where
    X: Context,
    X::Connection: 'static,
{
    let endpoint = Endpoint::open(context, dialect, 0).map_err(|error| error.to_string())?;
    let callee = Callee::find(&endpoint, name).map_err(|error| error.to_string())?;
    Ok((callee, Box::new(endpoint)))
}
