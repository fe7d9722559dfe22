//! The steps of threads and receivers.
//! Not here: steps that only the measuring process makes (`conductor`).
//! Facts: a call's time is that of its system calls and the runtime; requests and what they carry are made before.

use std::os::fd::OwnedFd;
use std::sync::Arc;
use std::time::Duration;

use abi::codes::tf;
use abi::{Payload, TransactionFlags};
use driver::Connection;
use ipc::binder::Parcel;
use ipc::{DeathLink, Outcome, Proxy};
use sys::clock::monotonic_ns;
use workload::description::{Carries, Expected, Step};

use super::board::Counter;
use super::place::{Place, Proxies, lock};
use super::program::{Act, code, fetch_code};
use super::service::STAMP;
use crate::call_error::{CallError, refused};
use crate::measure::echo::{Sabotage, compute};
use crate::plan::FaultKind;

/// What one thread has for itself.
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
}

impl Own {
    /// What a thread begins with. Threads of a load have different numbers, not 0.
    pub(super) fn new<C: Connection>(place: &Place<C>, thread: u32) -> Self {
        let mut request = place.zeros.clone();
        if let Some(stamp) = request.first_chunk_mut::<4>() {
            *stamp = thread.to_ne_bytes();
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
                let parcel = self.parcel(place, *site)?;
                self.ready.push((*site, parcel));
            }
        }
        Ok(())
    }

    /// A request that carries more than bytes.
    fn parcel<C: Connection>(&self, place: &Place<C>, site: usize) -> Result<Parcel, CallError> {
        let call = &place.identity.program.sites[site].call;
        let Carries { descriptors, new_objects, known_objects, handles } = call.carries;
        let mut parcel = Parcel::for_release(place.endpoint.process.release());
        // Whole words, as a parcel has.
        (0..call.request.div_ceil(4)).for_each(|_| parcel.write_i32(0));
        for _ in 0..descriptors {
            let copy = place.file.try_clone().map_err(CallError::os("copying a descriptor"))?;
            parcel.write_fd(OwnedFd::from(copy));
        }
        (0..new_objects).for_each(|_| parcel.write_binder(&place.new_object()));
        if known_objects > 0 {
            let known = known_objects as usize;
            place.objects(known + 1)[1..=known].iter().for_each(|object| parcel.write_binder(object));
        }
        if handles as usize > self.kept.len() {
            return Err(refused(format_args!(
                "{handles} handles are wanted, {} were fetched",
                self.kept.len()
            )));
        }
        for proxy in &self.kept[..handles as usize] {
            parcel.write_binder(&proxy.clone().into());
        }
        Ok(parcel)
    }

    fn proxy(&self, process: usize, copy: u32) -> Result<&Proxy, CallError> {
        let copies = self.proxies.get(process).filter(|copies| !copies.is_empty());
        let copies = copies.ok_or_else(|| refused("a call to a process that was not looked up"))?;
        Ok(&copies[copy as usize % copies.len()])
    }
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
/// As [`perform`].
pub(super) fn step_of_thread<C: Connection>(
    place: &Arc<Place<C>>,
    own: &mut Own,
    step: &Step,
) -> Result<(), CallError> {
    match step {
        Step::Work(ns) => compute(*ns),
        Step::Sleep(ns) => std::thread::sleep(Duration::from_nanos(*ns)),
        Step::At(ns) => {
            let at = place.identity.board.begin_ns().saturating_add(*ns);
            std::thread::sleep(Duration::from_nanos(at.saturating_sub(monotonic_ns())));
        }
        Step::Fetch { from, count } => fetch(place, own, *from, *count)?,
        Step::Link => link(place, own)?,
        Step::Unlink => own.links.clear(),
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
    Ok(())
}

/// Makes the steps of a receiver, for the copy of the caller.
///
/// # Errors
/// As [`perform`].
pub(super) fn serve<C: Connection>(place: &Place<C>, acts: &[Act], copy: u32) -> Result<(), CallError> {
    for act in acts {
        match act {
            Act::Call(site) => {
                // Calls come only after all processes have found each other.
                let copies = &place.proxies.wait()[place.identity.program.sites[*site].call.to];
                let proxy = &copies[copy as usize % copies.len().max(1)];
                for _ in 0..place.identity.program.sites[*site].call.times {
                    transact(place, proxy, *site, copy, payload(place, *site))?;
                }
            }
            Act::Other(Step::Work(ns)) => compute(*ns),
            Act::Other(Step::Sleep(ns)) => std::thread::sleep(Duration::from_nanos(*ns)),
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

fn payload<C: Connection>(place: &Place<C>, site: usize) -> Payload<'_> {
    let len = place.identity.program.sites[site].call.request as usize;
    Payload { data: &place.zeros[..len], ..Payload::default() }
}

fn call<C: Connection>(place: &Arc<Place<C>>, own: &mut Own, site: usize) -> Result<(), CallError> {
    let call = &place.identity.program.sites[site].call;
    let with_objects = call.carries != Carries::default();
    for _ in 0..call.times {
        if with_objects {
            let ready = own.ready.iter().position(|(ready, _)| *ready == site);
            let parcel = match ready {
                Some(at) => own.ready.swap_remove(at).1,
                None => own.parcel(place, site)?,
            };
            let payload = Payload { data: parcel.data(), offsets: parcel.offsets(), ..Payload::default() };
            let proxy = own.proxy(call.to, own.copy)?;
            transact(place, proxy, site, own.copy, payload)?;
            own.used.push(parcel);
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
        transact(place, own.proxy(call.to, own.copy)?, site, own.copy, payload)?;
    }
    Ok(())
}

/// Makes one transaction of a call, and compares its end with the expected one.
fn transact<C: Connection>(
    place: &Place<C>,
    proxy: &Proxy,
    site: usize,
    copy: u32,
    payload: Payload<'_>,
) -> Result<(), CallError> {
    let call = &place.identity.program.sites[site].call;
    let flags = if call.oneway { TransactionFlags::ONEWAY } else { TransactionFlags::CALL };
    let start = monotonic_ns();
    let outcome = proxy.transact_payload(code(site, copy), flags, payload);
    let end = monotonic_ns();
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
        Err(_) if call.expected != Expected::Taken => {}
        Err(error) => {
            let to = &place.identity.program.processes[call.to].name;
            return Err(refused(format_args!("a call to {to}: {error}")));
        }
    }
    place.keep(site, end - start);
    Ok(())
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
    lock(&place.objects).push(callback.map_err(refused)?);
    Ok(())
}

/// Name of a service that a process registers beside its own.
fn numbered<C: Connection>(place: &Place<C>, process: usize, copy: u32, number: u32) -> String {
    format!("{}.{number}", place.name(process, copy))
}

/// Registers this many objects; the same names and objects each time.
fn register<C: Connection>(place: &Arc<Place<C>>, count: u32) -> Result<(), CallError> {
    let services = place.services()?;
    let object = place.objects(2)[1].clone();
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
        return identity.board.break_off();
    }
    if !identity.board.is_broken() {
        procgroup::role::say(&error.to_string());
    }
    std::process::exit(1)
}

/// The samples of a process, taken out of it.
pub(super) fn samples<C: Connection>(place: &Place<C>) -> Vec<super::place::Sample> {
    place.samples.as_ref().map(|samples| std::mem::take(&mut *lock(samples))).unwrap_or_default()
}
