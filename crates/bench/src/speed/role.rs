//! Workers of a row: one of many busy pairs, or one of many idle clients.
//! Not here: the server of a pair (`crate::servers`).

use std::time::{Duration, Instant};

use backend::{AnyContext, on_context};
use procgroup::role::{tell_ready, wait_for_go};
use procgroup::{Role, Streams, Watchdog, WorkerProcess};
use serde::{Deserialize, Serialize};

use super::trip;
use crate::endpoint::Rendezvous;
use crate::measure::RoundTrip;
use crate::measure::echo::raw;
use crate::plan::{Dialect, Family, Placement, Release, Waiting};
use crate::servers::on_client;

/// Length of a slice in ns: some ticks of a scheduler, of which a process that spins for another one on its
/// own CPU loses whole ones.
pub(super) const SLICE_NS: u128 = 20_000_000;

/// Time limit for a worker to get ready, or a pair to count.
const PATIENCE: Duration = Duration::from_secs(60);

#[derive(Debug, Serialize, Deserialize)]
pub(crate) enum SpeedRole {
    /// A pair that counts round trips of 4 B in each slice of time.
    Pair { family: String, placement: String, slices: u16, context: Option<String> },
    /// A client that makes one call to this service and then is idle.
    Idle { context: String, service: String },
}

impl Role for SpeedRole {
    const NAME: &'static str = "embedded-speed";

    fn title(&self) -> String {
        match self {
            Self::Pair { .. } => "busy pair",
            Self::Idle { .. } => "idle client",
        }
        .to_owned()
    }

    fn run(self) -> Result<(), String> {
        match self {
            Self::Idle { context, service } => be_idle(&AnyContext::parse(&context), &service),
            Self::Pair { family, placement, slices, context } => {
                let family = Family::control(&family).ok_or("no such family")?;
                let context = context.map(|context| AnyContext::parse(&context));
                be_busy(family, placement.parse()?, slices.into(), context)
            }
        }
    }
}

impl SpeedRole {
    /// Starts the worker; it waits for [`go_on`] when it is ready.
    pub(super) fn start(&self) -> Result<WorkerProcess, String> {
        let streams = Streams { stdin: std::process::Stdio::piped(), ..Streams::heard() };
        WorkerProcess::start(self, streams, None)
            .map_err(|error| format!("starting a worker process: {}", sys::errno::describe(&error)))
    }
}

/// Waits until a worker is ready, or has finished its task; returns its text.
pub(super) fn hear(worker: &WorkerProcess) -> Result<String, String> {
    worker.ready(PATIENCE).map_err(|why| format!("a worker process: {why}"))
}

/// Lets a worker continue.
pub(super) fn go_on(worker: &WorkerProcess) -> Result<(), String> {
    worker.go().map_err(|error| format!("talking to a worker process: {}", sys::errno::describe(&error)))
}

/// Reports readiness to the parent, and waits until it may continue.
fn tell_and_wait(text: &str) -> Result<(), String> {
    tell_ready(text)
        .and_then(|()| wait_for_go())
        .map_err(|error| format!("talking to the parent: {}", sys::errno::describe(&error)))
}

fn be_idle(any: &AnyContext, service: &str) -> Result<(), String> {
    tell_and_wait("")?;
    on_context!(any, |context| {
        let place = Rendezvous { context, dialect: Dialect::Binder(Release::default()), name: service };
        let mut client = raw::Client::find(place, 4).map_err(|error| error.to_string())?;
        client.call().and_then(|()| client.check()).map_err(|error| error.to_string())?;
        tell_and_wait("")
    })
}

fn be_busy(
    family: Family,
    placement: Placement,
    slices: usize,
    context: Option<AnyContext>,
) -> Result<(), String> {
    // The context's address determines how the driver waits.
    let plan = trip::plan(&[family], 4, placement, Waiting::default())?;
    let planned = plan.cases().into_iter().find(|planned| planned.family == family);
    let planned = planned.ok_or("the pair is not planned")?;
    let mut servers = trip::servers(&plan, context);
    let client = servers.open_case(&planned).map_err(|error| error.to_string())?;
    let counted = on_client!(client, |mut client| count(&mut client, slices, servers.watchdog()))?;
    let words: Vec<String> = counted.iter().map(u64::to_string).collect();
    tell_and_wait(&words.join(" "))
}

/// Makes round trips in `slices` slices of time, after the parent's signal; returns the number in each.
fn count<R: RoundTrip>(client: &mut R, slices: usize, watchdog: &Watchdog) -> Result<Vec<u64>, String> {
    client.stamp(0);
    watchdog.during(|| client.call().and_then(|()| client.check())).map_err(|error| error.to_string())?;
    let mut counted = vec![0; slices];
    tell_and_wait("")?;
    watchdog.during(|| {
        let (begun, mut calls) = (Instant::now(), 0_u32);
        loop {
            calls = calls.wrapping_add(1);
            client.stamp(calls);
            client.call().map_err(|error| error.to_string())?;
            watchdog.beat();
            let slice = usize::try_from(begun.elapsed().as_nanos() / SLICE_NS).unwrap_or(usize::MAX);
            match counted.get_mut(slice) {
                Some(count) => *count += 1,
                None => break,
            }
        }
        client.check().map_err(|error| error.to_string())
    })?;
    Ok(counted)
}
