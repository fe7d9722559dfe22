//! The steps of threads and receivers.
//! Not here: steps that only the measuring process makes (`conductor`).
//! Facts: a call's time is that of its system calls and the runtime; requests and what they carry are made before.

use std::os::fd::OwnedFd;
use std::sync::Arc;
use std::sync::atomic::{AtomicU32, Ordering::Relaxed};
use std::time::Duration;

use abi::codes::tf;
use abi::{Payload, TransactionFlags};
use driver::Connection;
use ipc::binder::Parcel;
use ipc::{DeathLink, Outcome, Proxy, Refusal, TransactError};
use sys::clock::monotonic_ns;
use workload::description::{Carries, Expected, Step};

use super::board::Counter;
use super::place::{Place, Proxies, lock};
use super::program::{Act, STAMP, code, fetch_code};
use crate::call_error::{CallError, refused};
use crate::measure::echo::{Sabotage, compute};
use crate::plan::FaultKind;

/// The own part of one thread.
pub(super) struct Own {
    pub(super) proxies: Proxies,
    /// Number of the copy for which it makes calls.
    copy: u32,
    /// Objects of others that it keeps.
    kept: Vec<Proxy>,
    links: Vec<DeathLink>,
    /// Bytes of each request.
    request: Vec<u8>,
    /// Number of its last oneway call.
    sequence: u32,
    /// Requests with objects, by the number of their call, made before a sample.
    ready: Vec<(usize, Parcel)>,
    /// Requests that were sent, to be dropped outside of the samples.
    used: Vec<Parcel>,
    /// CPU time of the thread behind its last step, in ns; 0 where nobody asks for the times of calls.
    since: u64,
    /// Whether samples are taken of its steps.
    measures: bool,
}

impl Own {
    /// The begin of a thread whose largest request has this many bytes.
    pub(super) fn new<C: Connection>(place: &Place<C>, largest: usize, measures: bool) -> Self {
        let mut request = vec![0; largest];
        if let Some(stamp) = request.first_chunk_mut::<4>() {
            *stamp = fresh_stamp().to_ne_bytes();
        }
        Self {
            proxies: place.proxies.get().cloned().unwrap_or_default(),
            copy: place.identity.copy,
            kept: Vec::new(),
            links: Vec::new(),
            request,
            sequence: 0,
            ready: Vec::new(),
            used: Vec::new(),
            since: place.cpu_ns(),
            measures,
        }
    }

    /// Drops what the last sample used, and makes what the next one sends.
    ///
    /// # Errors
    /// Descriptors run out.
    pub(super) fn prepare<C: Connection>(&mut self, place: &Place<C>, acts: &[Act]) -> Result<(), CallError> {
        self.used.clear();
        for act in acts {
            if let Act::Call(site) = act
                && place.identity.program.sites[*site].call.carries != Carries::default()
                && !self.ready.iter().any(|(ready, _)| ready == site)
            {
                let parcel = parcel(place, *site, &self.kept)?;
                self.ready.push((*site, parcel));
            }
        }
        Ok(())
    }

    fn proxy(&self, process: usize, copy: u32) -> Result<&Proxy, CallError> {
        let copies = self.proxies.get(process).filter(|copies| !copies.is_empty());
        let copies = copies.ok_or_else(|| refused("a call to a process that was not looked up"))?;
        Ok(&copies[copy as usize % copies.len()])
    }
}

/// A request that carries more than bytes; `kept` are the handles that its thread keeps.
fn parcel<C: Connection>(place: &Place<C>, site: usize, kept: &[Proxy]) -> Result<Parcel, CallError> {
    let call = &place.identity.program.sites[site].call;
    let Carries { descriptors, new_objects, known_objects, handles, weak } = call.carries;
    let mut parcel = Parcel::for_release(place.endpoint.process.release());
    // Whole words, which a parcel consists of.
    (0..call.request.div_ceil(4)).for_each(|_| parcel.write_i32(0));
    for _ in 0..descriptors {
        let copy = place.file.try_clone().map_err(CallError::os("copying a descriptor"))?;
        parcel.write_fd(OwnedFd::from(copy));
    }
    let write = if weak { Parcel::write_weak_binder } else { Parcel::write_binder };
    (0..new_objects).for_each(|_| write(&mut parcel, &place.new_object()));
    if known_objects > 0 {
        let known = known_objects as usize;
        place.objects(known)[..known].iter().for_each(|object| write(&mut parcel, object));
    }
    let wanted = kept
        .get(..handles as usize)
        .ok_or_else(|| refused(format_args!("{handles} handles are wanted, {} were fetched", kept.len())))?;
    wanted.iter().for_each(|proxy| write(&mut parcel, &proxy.clone().into()));
    Ok(parcel)
}

/// A number that no other thread of a load has, not 0.
fn fresh_stamp() -> u32 {
    /// Bits for the threads of one process.
    const THREADS: u32 = 10;
    static LAST: AtomicU32 = AtomicU32::new(0);
    let thread = LAST.fetch_add(1, Relaxed) & ((1 << THREADS) - 1);
    (std::process::id() << THREADS | thread).max(1)
}

/// Counts a call that was served; oneway ones apart.
pub(super) fn count_served<C: Connection>(place: &Place<C>, site: usize) {
    let (board, process) = (&place.identity.board, place.identity.process);
    if place.identity.program.sites.get(site).is_some_and(|site| site.call.oneway) {
        board.count(process, Counter::Served);
    }
    board.count(process, Counter::Calls);
}

/// Makes steps of a thread.
///
/// # Errors
/// A call had another end than expected, or the load ends.
pub(super) fn perform<C: Connection>(
    place: &Arc<Place<C>>,
    own: &mut Own,
    acts: &[Act],
) -> Result<(), CallError> {
    acts.iter().try_for_each(|act| match act {
        Act::Call(site) => call(place, own, *site),
        Act::Other(step) => step_of_thread(place, own, step),
    })
}

/// Makes one step that is no call.
///
/// # Errors
/// Those of [`perform`].
pub(super) fn step_of_thread<C: Connection>(
    place: &Arc<Place<C>>,
    own: &mut Own,
    step: &Step,
) -> Result<(), CallError> {
    match step {
        Step::Work(ns) => own.since = place.work(own.since, *ns),
        Step::Sleep(ns) => std::thread::sleep(Duration::from_nanos(*ns)),
        Step::At(ns) => {
            let at = place.identity.board.begin_ns().saturating_add(*ns);
            std::thread::sleep(Duration::from_nanos(at.saturating_sub(monotonic_ns())));
        }
        Step::Fetch { from, count } => fetch(place, own, *from, *count)?,
        Step::Link => link(place, own)?,
        Step::Unlink => own.links.clear(),
        Step::Forget => own.kept.clear(),
        Step::Register(count) => register(place, *count)?,
        Step::Subscribe => subscribe(place)?,
        Step::LookUp(process) => {
            let copies = place.identity.program.processes[*process].copies.max(1);
            let proxy = place.look_up(*process, own.copy % copies)?;
            if let Some(kept) = own.proxies.get_mut(*process).filter(|kept| !kept.is_empty()) {
                let at = own.copy as usize % kept.len();
                kept[at] = proxy;
            }
        }
        Step::List => drop(place.services()?.list().map_err(refused)?),
        // The reader lets no others through in a thread's steps.
        _ => {}
    }
    if !matches!(step, Step::Work(_)) {
        own.since = place.cpu_ns();
    }
    place.identity.board.count(place.identity.process, Counter::Steps);
    Ok(())
}

/// Makes the steps of a receiver, for the copy of the caller.
///
/// # Errors
/// Those of [`perform`].
pub(super) fn serve<C: Connection>(place: &Place<C>, acts: &[Act], copy: u32) -> Result<(), CallError> {
    let mut since = place.cpu_ns();
    for act in acts {
        match act {
            Act::Call(site) => {
                // Calls come only after all processes have found each other.
                let call = &place.identity.program.sites[*site].call;
                let copies = &place.proxies.wait()[call.to];
                let proxy = &copies[copy as usize % copies.len().max(1)];
                for _ in 0..call.times {
                    if call.carries == Carries::default() {
                        let payload =
                            Payload { data: &place.zeros[..call.request as usize], ..Payload::default() };
                        since = transact(place, proxy, *site, copy, payload)?;
                    } else {
                        let parcel = parcel(place, *site, &[])?;
                        let payload =
                            Payload { data: parcel.data(), offsets: parcel.offsets(), ..Payload::default() };
                        since = transact(place, proxy, *site, copy, payload)?;
                    }
                }
            }
            Act::Other(Step::Work(ns)) => since = place.work(since, *ns),
            Act::Other(Step::Sleep(ns)) => {
                std::thread::sleep(Duration::from_nanos(*ns));
                since = place.cpu_ns();
            }
            Act::Other(Step::Hold) => {
                place.identity.board.count(place.identity.process, Counter::Served);
                loop {
                    std::thread::park();
                }
            }
            // The reader lets no others through in a receiver's steps.
            Act::Other(_) => {}
        }
    }
    Ok(())
}

fn call<C: Connection>(place: &Arc<Place<C>>, own: &mut Own, site: usize) -> Result<(), CallError> {
    let call = &place.identity.program.sites[site].call;
    let with_objects = call.carries != Carries::default();
    for _ in 0..call.times {
        if with_objects {
            let ready = own.ready.iter().position(|(ready, _)| *ready == site);
            let parcel = match ready {
                Some(at) => own.ready.swap_remove(at).1,
                None => parcel(place, site, &own.kept)?,
            };
            let payload = Payload { data: parcel.data(), offsets: parcel.offsets(), ..Payload::default() };
            let proxy = own.proxy(call.to, own.copy)?;
            own.since = transact(place, proxy, site, own.copy, payload)?;
            if own.measures {
                own.used.push(parcel);
            }
            continue;
        }
        let len = call.request as usize;
        if call.oneway
            && let Some(stamp) = own.request[..len].first_chunk_mut::<STAMP>()
        {
            own.sequence = own.sequence.wrapping_add(1);
            stamp[4..].copy_from_slice(&own.sequence.to_ne_bytes());
        }
        let payload = Payload { data: &own.request[..len], ..Payload::default() };
        own.since = transact(place, own.proxy(call.to, own.copy)?, site, own.copy, payload)?;
    }
    Ok(())
}

/// Makes one transaction of a call, and compares its end with the expected one; returns the thread's CPU time behind it, in ns.
fn transact<C: Connection>(
    place: &Place<C>,
    proxy: &Proxy,
    site: usize,
    copy: u32,
    payload: Payload<'_>,
) -> Result<u64, CallError> {
    let call = &place.identity.program.sites[site].call;
    let flags = if call.oneway { TransactionFlags::ONEWAY } else { TransactionFlags::CALL };
    let cpu_start = place.cpu_ns();
    let start = monotonic_ns();
    let outcome = proxy.transact_payload(code(site, copy), flags, payload);
    let end = monotonic_ns();
    let cpu_end = place.cpu_ns();
    match outcome {
        Ok(_) if call.expected == Expected::Refused => {
            return Err(refused("a call was taken that the driver should refuse"));
        }
        Ok(Outcome::Replied { flags, received }) => {
            let bytes = received.data();
            if flags.0 & tf::STATUS_CODE != 0 {
                let status = bytes.first_chunk().map_or(0, |word| i32::from_ne_bytes(*word));
                let to = &place.identity.program.processes[call.to].name;
                return Err(refused(format_args!("{to} answered a call with status {status}")));
            }
            // Replies are zeros; the first and the last byte stand for them.
            let is_wrong =
                bytes.first().is_some_and(|byte| *byte != 0) || bytes.last().is_some_and(|byte| *byte != 0);
            if bytes.len() != call.reply as usize || is_wrong {
                let (sent, at) = (call.reply as usize, bytes.len().saturating_sub(1));
                return Err(CallError::Corrupt { sent, received: bytes.len(), at });
            }
        }
        Ok(Outcome::Taken(_)) => {}
        Err(error) if call.expected != Expected::Taken && is_refusal(&error) => {
            place.keep(site, None);
            return Ok(cpu_end);
        }
        Err(error) => {
            let to = &place.identity.program.processes[call.to].name;
            return Err(refused(format_args!("a call to {to}: {error}")));
        }
    }
    place.keep(site, Some((end - start, cpu_end - cpu_start)));
    Ok(cpu_end)
}

/// Whether the driver did not take the call: no space, or a frozen receiver; a dead one and failures of this side are none.
fn is_refusal(error: &TransactError) -> bool {
    matches!(error, TransactError::Refused { by: Refusal::Failed(_) | Refusal::Frozen, .. })
}

/// Gets objects of a process, in place of those that were kept.
fn fetch<C: Connection>(
    place: &Arc<Place<C>>,
    own: &mut Own,
    from: usize,
    count: u32,
) -> Result<(), CallError> {
    own.links.clear();
    own.kept.clear();
    let copies = place.identity.program.processes[from].copies.max(1);
    let proxy = place.look_up(from, own.copy % copies)?;
    let mut request = Parcel::for_release(place.endpoint.process.release());
    request.write_i32(count.cast_signed());
    let reply = proxy.transact(fetch_code(), &request).map_err(refused)?;
    let mut reader = reply.reader();
    for _ in 0..count {
        let object =
            reader.read_binder().map_err(|error| refused(format_args!("fetching objects: {error}")))?;
        match object {
            ipc::Binder::Remote(proxy) => own.kept.push(proxy),
            ipc::Binder::Local(_) => return Err(refused("a fetched object is this very process's")),
        }
    }
    Ok(())
}

fn link<C: Connection>(place: &Arc<Place<C>>, own: &mut Own) -> Result<(), CallError> {
    for proxy in &own.kept {
        let (board, process) = (place.identity.board.clone(), place.identity.process);
        let slow = place.identity.fault == Some(FaultKind::SlowServer);
        let link = proxy.link_to_death(move || {
            if slow {
                compute(Sabotage::SLOW_NS);
            }
            board.count(process, Counter::Notified);
        });
        own.links.push(link.map_err(refused)?);
    }
    Ok(())
}

/// Has the service manager report each registration of the measuring process's first service.
fn subscribe<C: Connection>(place: &Arc<Place<C>>) -> Result<(), CallError> {
    let (board, process) = (place.identity.board.clone(), place.identity.process);
    let name = numbered(place, place.identity.program.measuring, 0, 0);
    let callback =
        place.services()?.on_registration(&name, move |_, _| board.count(process, Counter::Notified));
    lock(&place.callbacks).push(callback.map_err(refused)?);
    Ok(())
}

/// Name of a service that a process registers beside its own.
fn numbered<C: Connection>(place: &Place<C>, process: usize, copy: u32, number: u32) -> String {
    format!("{}.{number}", place.name(process, copy))
}

/// Registers this many objects; the same names and objects each time.
fn register<C: Connection>(place: &Arc<Place<C>>, count: u32) -> Result<(), CallError> {
    let services = place.services()?;
    let object = place.objects(1)[0].clone();
    for number in 0..count {
        let name = numbered(place, place.identity.process, place.identity.copy, number);
        services.add(&name, &object).map_err(refused)?;
    }
    Ok(())
}

/// Ends the load, because its process cannot go on: a process that was started ends with its reason.
pub(super) fn give_up<C: Connection>(place: &Place<C>, error: &CallError) {
    let Place { identity, .. } = place;
    if identity.process == identity.program.measuring {
        return identity.board.break_off(identity.process);
    }
    if !identity.board.is_broken() {
        procgroup::role::say(&error.to_string());
        identity.board.break_off(identity.process);
    }
    std::process::exit(1)
}
