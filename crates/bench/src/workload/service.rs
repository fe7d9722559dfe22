//! The object of a process: calls of the load that come to it.
//! Not here: what its threads do of their own accord (`actor`).

use std::sync::{Arc, Mutex, Weak};

use abi::Payload;
use driver::Connection;
use ipc::binder::Parcel;
use ipc::{Serve, StatusCode, Transaction};

use super::actor;
use super::place::{Place, lock};
use super::program::{Asked, STAMP, decode};
use crate::call_error::CallError;
use crate::measure::echo::Sabotage;

/// The object.
pub(super) struct Service<C: Connection> {
    /// Not held: the process holds its objects.
    place: Weak<Place<C>>,
    /// Last oneway call of each thread that numbers them.
    last: Mutex<Vec<(u32, u32)>>,
    /// `None` except in tests of this tool.
    sabotage: Option<Mutex<Sabotage>>,
}

/// Registers the object of a process and starts the thread that serves it.
///
/// # Errors
/// The service manager refuses the name; no thread can be started.
pub(super) fn publish<C: Connection>(place: &Arc<Place<C>>) -> Result<(), CallError> {
    let Place { identity, endpoint, .. } = &**place;
    let object = endpoint.publish_bare(Service::new(Arc::downgrade(place)), endpoint.node_options(false));
    endpoint.register(&place.name(identity.process, identity.copy), &object)?;
    let _ = place.service.set(object);
    endpoint.start_thread()
}

impl<C: Connection> Service<C> {
    /// The object of a process.
    fn new(place: Weak<Place<C>>) -> Self {
        let fault = place.upgrade().and_then(|place| place.identity.fault);
        let sabotage = fault.map(|fault| Mutex::new(Sabotage::new(Some(fault))));
        Self { place, last: Mutex::default(), sabotage }
    }

    /// Returns whether this call comes behind all others of its thread.
    fn is_in_order(&self, request: &[u8]) -> bool {
        let Some(stamp) = request.first_chunk::<STAMP>() else { return true };
        let word = |at: usize| u32::from_ne_bytes([stamp[at], stamp[at + 1], stamp[at + 2], stamp[at + 3]]);
        let (thread, number) = (word(0), word(4));
        if thread == 0 {
            return true;
        }
        let mut last = lock(&self.last);
        match last.iter_mut().find(|(known, _)| *known == thread) {
            Some((_, before)) => {
                let behind = number.wrapping_sub(*before).cast_signed() > 0;
                *before = number;
                behind
            }
            None => {
                last.push((thread, number));
                true
            }
        }
    }

    /// Makes the receiver's steps of a call; returns the length of its reply.
    fn carry_out(&self, place: &Place<C>, site: usize, copy: u32, request: &[u8]) -> Option<usize> {
        let known = place.identity.program.sites.get(site)?;
        if known.call.oneway && !self.is_in_order(request) {
            place.identity.board.report_disorder();
        }
        // A call that fails within this one ends the load; its reason is the process's.
        if let Err(error) = actor::serve(place, &known.served, copy) {
            actor::give_up(place, &error);
        }
        Some(known.call.reply as usize)
    }
}

impl<C: Connection> Serve for Service<C> {
    fn serve(&self, call: Transaction<'_>) {
        let Some(place) = self.place.upgrade() else {
            // Errors are the caller's here and below: the driver reports them to it.
            let _ = call.reply_status(StatusCode::UNKNOWN_TRANSACTION);
            return;
        };
        let flags = call.answer_flags();
        match decode(call.code()) {
            Asked::Objects => {
                let wanted = call.data().first_chunk().map_or(0, |count| u32::from_ne_bytes(*count));
                let parcel = objects(&place, wanted as usize);
                let _ = call.reply(
                    flags,
                    Payload { data: parcel.data(), offsets: parcel.offsets(), ..Payload::default() },
                );
            }
            Asked::Call(site, copy) => {
                let reply = self.carry_out(&place, site, copy, call.data());
                let zeros = reply.and_then(|len| place.zeros.get(..len));
                let spoilt = zeros.zip(self.sabotage.as_ref()).map(|(zeros, sabotage)| {
                    let mut bytes = zeros.to_vec();
                    lock(sabotage).apply(&mut bytes);
                    bytes
                });
                actor::count_served(&place, site);
                let _ = match spoilt.as_deref().or(zeros) {
                    None => call.reply_status(StatusCode::UNKNOWN_TRANSACTION),
                    Some(data) => call.reply(flags, Payload { data, ..Payload::default() }),
                };
            }
        }
    }
}

/// Objects of the process, as many as were asked for, the same ones each time.
fn objects<C: Connection>(place: &Arc<Place<C>>, wanted: usize) -> Parcel {
    /// More than a reply can hold.
    const MOST: usize = 30_000;
    let wanted = wanted.min(MOST);
    let mut parcel = Parcel::for_release(place.endpoint.process.release());
    place.objects(wanted)[..wanted].iter().for_each(|object| parcel.write_binder(object));
    parcel
}
