//! The interface in HIDL, on `/dev/hwbinder`: vectors of strings in place of AIDL's vectors, and no descriptor.

use std::error::Error;
use std::sync::atomic::{AtomicI32, Ordering};
use std::sync::{Arc, Mutex, PoisonError};

use binder::hwbinder::manager::Services;
use binder::hwbinder::{CallError, HwBinder, HwParcel, Incoming, Object, Reply, Status};
use binder::{DeathLink, Process, Registration};

use crate::{EVENTS, Outcome, PATIENCE, ensure, until};

const INTERFACE: &str = "binderperf.test@1.0::IEcho";
const LISTENER: &str = "binderperf.test.IListener";
/// The listener's only method.
const EVENT: u32 = 1;

/// Methods, by the numbers of the same ones in AIDL.
mod method {
    pub(super) const NUMBER: u32 = 1;
    pub(super) const TEXT: u32 = 2;
    pub(super) const TEXTS: u32 = 3;
    pub(super) const WATCH: u32 = 6;
    pub(super) const DEATHS: u32 = 7;
    pub(super) const PID: u32 = 8;
    pub(super) const ADD: u32 = 9;
    pub(super) const SUM: u32 = 10;
    pub(super) const LISTEN: u32 = 11;
}

#[derive(Default)]
struct Echo {
    deaths: Arc<AtomicI32>,
    sum: AtomicI32,
    watched: Mutex<Vec<DeathLink>>,
}

impl Object for Echo {
    fn interfaces(&self) -> &[&str] {
        &[INTERFACE]
    }

    fn on_transact<'t>(&self, call: &mut Incoming<'t>, reply: &mut HwParcel<'t>) -> Result<(), Status> {
        match call.code() {
            method::NUMBER => reply.write_i32(call.read_i32()?),
            method::TEXT => reply.write_str(call.read_str()?),
            method::TEXTS => reply.write_str_vec(&call.read_str_vec()?),
            method::WATCH => self.watch(&call.read_binder()?)?,
            method::DEATHS => reply.write_i32(self.deaths.load(Ordering::SeqCst)),
            method::PID => reply.write_i32(std::process::id().cast_signed()),
            method::ADD => drop(self.sum.fetch_add(call.read_i32()?, Ordering::SeqCst)),
            method::SUM => reply.write_i32(self.sum.load(Ordering::SeqCst)),
            method::LISTEN => tell(&call.read_binder()?)?,
            _ => return Err(Status::UNKNOWN_TRANSACTION),
        }
        Ok(())
    }
}

impl Echo {
    fn watch(&self, who: &HwBinder) -> Result<(), Status> {
        let deaths = Arc::clone(&self.deaths);
        let proxy = who.proxy().ok_or_else(|| Status::illegal_argument("an object of this process"))?;
        let link = proxy.link_to_death(move || {
            deaths.fetch_add(1, Ordering::SeqCst);
        });
        let link = link.map_err(|_| Status::illegal_argument("it is dead already"))?;
        self.watched.lock().unwrap_or_else(PoisonError::into_inner).push(link);
        Ok(())
    }
}

/// Tells a listener of all events.
fn tell(listener: &HwBinder) -> Result<(), Status> {
    for event in EVENTS {
        let mut request = listener.request(LISTENER);
        request.write_i32(event);
        listener.oneway(EVENT, request).map_err(|_| Status::illegal_argument("it cannot be told"))?;
    }
    Ok(())
}

#[derive(Default)]
struct Listener(Arc<Mutex<Vec<i32>>>);

impl Object for Listener {
    fn interfaces(&self) -> &[&str] {
        &[LISTENER]
    }

    fn on_transact<'t>(&self, call: &mut Incoming<'t>, _reply: &mut HwParcel<'t>) -> Result<(), Status> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner).push(call.read_i32()?);
        Ok(())
    }
}

/// A service that a client found, and whether it died.
pub(crate) struct Found {
    echo: HwBinder,
    died: Arc<AtomicI32>,
    _link: DeathLink,
}

/// The service, as soon as it is there.
pub(crate) fn find(process: &Process, instance: &str) -> Result<Found, Box<dyn Error>> {
    let echo = Services::wait(process, PATIENCE)?.wait_for(INTERFACE, instance, PATIENCE)?;
    let died = Arc::<AtomicI32>::default();
    let told = Arc::clone(&died);
    let proxy = echo.proxy().ok_or("an object of this process")?;
    let link = proxy.link_to_death(move || told.store(1, Ordering::SeqCst))?;
    Ok(Found { echo, died, _link: link })
}

impl Found {
    fn call<'a>(&self, code: u32, write: impl FnOnce(&mut HwParcel<'a>)) -> Result<Reply<'_>, CallError> {
        let mut request = self.echo.request(INTERFACE);
        write(&mut request);
        self.echo.call(code, request)
    }

    /// Result of a method without arguments.
    fn number(&self, code: u32) -> Result<i32, Box<dyn Error>> {
        Ok(self.call(code, |_| ())?.reader().read_i32()?)
    }

    fn echo_number(&self, number: i32) -> Outcome {
        let reply = self.call(method::NUMBER, |request| request.write_i32(number))?;
        ensure(reply.reader().read_i32()? == number, "another number")
    }
}

/// Does one step with the service.
pub(crate) fn step(process: &Process, found: &Found, word: &str) -> Outcome {
    match word {
        "numbers" => found.echo_number(-7),
        "text" => {
            let sent = "Grüße, 世界";
            let reply = found.call(method::TEXT, |request| request.write_str(sent))?;
            ensure(reply.reader().read_str()? == sent, "another text")
        }
        "texts" => [0, 1, 3, 200].into_iter().try_for_each(|count| {
            let sent: Vec<String> = (0..count).map(|at| "x".repeat(at)).collect();
            let reply = found.call(method::TEXTS, |request| request.write_str_vec(&sent))?;
            ensure(reply.reader().read_str_vec()? == sent, "other texts")
        }),
        "oneway" => {
            let before = found.number(method::SUM)?;
            for number in 1..=100 {
                let mut request = found.echo.request(INTERFACE);
                request.write_i32(number);
                found.echo.oneway(method::ADD, request)?;
            }
            // The next call may overtake them.
            until("not all were added", || Ok(found.number(method::SUM)? == before + 5050))
        }
        "events" => {
            let told = Arc::<Mutex<Vec<i32>>>::default();
            let object = process.publish_hidl(Listener(Arc::clone(&told)));
            found.call(method::LISTEN, |request| request.write_binder(&object))?;
            until("other events", || Ok(*told.lock().unwrap_or_else(PoisonError::into_inner) == EVENTS))
        }
        "many" => (0..200).try_for_each(|number| found.echo_number(number)),
        "watch" => {
            let object = process.publish_hidl(Listener::default());
            found.call(method::WATCH, |request| request.write_binder(&object)).map(drop)?;
            Ok(())
        }
        "deaths" => {
            println!("= {}", found.number(method::DEATHS)?);
            Ok(())
        }
        "pid" => {
            println!("= {}", found.number(method::PID)?);
            Ok(())
        }
        "died" => {
            until("not told of the death", || Ok(found.died.load(Ordering::SeqCst) != 0))?;
            ensure(found.number(method::PID).is_err(), "a dead service answered")
        }
        _ => Err(format!("no such step: {word}").into()),
    }
}

/// Registers the service.
pub(crate) fn serve(process: &Process, instance: &str) -> Result<Registration, Box<dyn Error>> {
    Ok(Registration::of_hidl(process, instance, &process.publish_hidl(Echo::default()))?)
}
