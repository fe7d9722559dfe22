//! The interface in AIDL, on `/dev/binder`.

use std::error::Error;
use std::io::{BufRead, BufReader, Write};
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};
use std::sync::atomic::{AtomicI32, Ordering};
use std::sync::{Arc, Mutex, PoisonError};

use binder::{Binder, DeathLink, Parcel, Process, Reader, Registration, Services, Status, StatusCode, Value};

use crate::{EVENTS, Outcome, PATIENCE, ensure, until};

const LINE: &str = "written by the service\n";

/// A descriptor as AIDL's `ParcelFileDescriptor`: it is not null, and no second descriptor reports on it.
struct ParcelFile(OwnedFd);

impl Value for ParcelFile {
    type Given<'a> = BorrowedFd<'a>;

    fn write(given: BorrowedFd<'_>, parcel: &mut Parcel) -> Result<(), StatusCode> {
        parcel.write_i32(1);
        parcel.write_i32(0);
        <OwnedFd as Value>::write(given, parcel)
    }

    fn read(reader: &mut Reader<'_>) -> Result<Self, StatusCode> {
        match (reader.read_i32()?, reader.read_i32()?) {
            (1, 0) => reader.read_fd().map(Self),
            _ => Err(StatusCode::BAD_VALUE),
        }
    }

    fn given(&self) -> BorrowedFd<'_> {
        self.0.as_fd()
    }
}

binder::interface! {
    mod echo = "binderperf.test.IEcho" {
        fn number(value: i32) -> i32;
        fn text(value: String) -> String;
        fn bytes(value: Vec<u8>) -> Vec<u8>;
        fn numbers(value: Vec<i32>) -> Vec<i32>;
        fn write(into: ParcelFile);
        fn watch(who: Binder);
        fn deaths() -> i32;
        fn pid() -> i32;
        oneway add(number: i32);
        fn sum() -> i32;
        fn listen(who: Binder);
    }
}

binder::interface! {
    mod listener = "binderperf.test.IListener" {
        oneway event(number: i32);
    }
}

#[derive(Default)]
struct Listener(Arc<Mutex<Vec<i32>>>);

impl listener::Service for Listener {
    fn event(&self, number: i32) -> Result<(), Status> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner).push(number);
        Ok(())
    }
}

#[derive(Default)]
struct Echo {
    deaths: Arc<AtomicI32>,
    sum: AtomicI32,
    watched: Mutex<Vec<DeathLink>>,
}

impl echo::Service for Echo {
    fn number(&self, value: i32) -> Result<i32, Status> {
        Ok(value)
    }

    fn text(&self, value: String) -> Result<String, Status> {
        Ok(value)
    }

    fn bytes(&self, value: Vec<u8>) -> Result<Vec<u8>, Status> {
        Ok(value)
    }

    fn numbers(&self, value: Vec<i32>) -> Result<Vec<i32>, Status> {
        Ok(value)
    }

    fn write(&self, into: ParcelFile) -> Result<(), Status> {
        let written = std::fs::File::from(into.0).write_all(LINE.as_bytes());
        written.map_err(|_| Status::illegal_argument("it takes nothing"))
    }

    fn watch(&self, who: Binder) -> Result<(), Status> {
        let deaths = Arc::clone(&self.deaths);
        let proxy = who.proxy().ok_or_else(|| Status::illegal_argument("an object of this process"))?;
        let link = proxy.link_to_death(move || {
            deaths.fetch_add(1, Ordering::SeqCst);
        });
        let link = link.map_err(|_| Status::illegal_argument("it is dead already"))?;
        self.watched.lock().unwrap_or_else(PoisonError::into_inner).push(link);
        Ok(())
    }

    fn deaths(&self) -> Result<i32, Status> {
        Ok(self.deaths.load(Ordering::SeqCst))
    }

    fn pid(&self) -> Result<i32, Status> {
        Ok(std::process::id().cast_signed())
    }

    fn add(&self, number: i32) -> Result<(), Status> {
        self.sum.fetch_add(number, Ordering::SeqCst);
        Ok(())
    }

    fn sum(&self) -> Result<i32, Status> {
        Ok(self.sum.load(Ordering::SeqCst))
    }

    fn listen(&self, who: Binder) -> Result<(), Status> {
        let listener = listener::Client::from(who);
        let told = EVENTS.into_iter().try_for_each(|event| listener.event(event).map(drop));
        told.map_err(|_| Status::illegal_argument("it cannot be told"))
    }
}

/// A service that a client found, and whether it died.
pub(crate) struct Found {
    echo: echo::Client,
    died: Arc<AtomicI32>,
    _link: DeathLink,
}

/// The service, as soon as it is there.
pub(crate) fn find(process: &Process, name: &str) -> Result<Found, Box<dyn Error>> {
    let object = Services::wait(process, PATIENCE)?.wait_for(name, PATIENCE)?;
    let died = Arc::<AtomicI32>::default();
    let told = Arc::clone(&died);
    let proxy = object.proxy().ok_or("an object of this process")?;
    let link = proxy.link_to_death(move || told.store(1, Ordering::SeqCst))?;
    Ok(Found { echo: object.into(), died, _link: link })
}

/// Does one step with the service.
pub(crate) fn step(process: &Process, found: &Found, word: &str) -> Outcome {
    let echo = &found.echo;
    match word {
        "numbers" => {
            ensure(echo.number(-7)? == -7, "another number")?;
            ensure(echo.numbers(&[1, -2, i32::MAX])? == [1, -2, i32::MAX], "other numbers")
        }
        "text" => ensure(echo.text("Grüße, 世界")? == "Grüße, 世界", "another text"),
        "bytes" => [1, 4, 1000, 65536, 400_000].into_iter().try_for_each(|size| {
            let sent: Vec<u8> = (0..=250).cycle().take(size).collect();
            ensure(echo.bytes(&sent)? == sent, "other bytes")
        }),
        "descriptor" => {
            let (from, into) = std::io::pipe()?;
            echo.write(into.as_fd())?;
            drop(into);
            let mut line = String::new();
            BufReader::new(from).read_line(&mut line)?;
            ensure(line == LINE, "something else was written")
        }
        "oneway" => {
            let before = echo.sum()?;
            (1..=100).try_for_each(|number| echo.add(number).map(drop))?;
            // The next call may overtake them.
            until("not all were added", || Ok(echo.sum()? == before + 5050))
        }
        "events" => {
            let told = Arc::<Mutex<Vec<i32>>>::default();
            let object = process.publish(listener::Served(Listener(Arc::clone(&told))));
            echo.listen(&object)?;
            until("other events", || Ok(*told.lock().unwrap_or_else(PoisonError::into_inner) == EVENTS))
        }
        "many" => (0..200).try_for_each(|number| ensure(echo.number(number)? == number, "another number")),
        "watch" => Ok(echo.watch(&process.publish(echo::Served(Echo::default())))?),
        "deaths" => {
            println!("= {}", echo.deaths()?);
            Ok(())
        }
        "pid" => {
            println!("= {}", echo.pid()?);
            Ok(())
        }
        "died" => {
            until("not told of the death", || Ok(found.died.load(Ordering::SeqCst) != 0))?;
            ensure(echo.number(1).is_err_and(|error| error.is_dead()), "a dead service answered")
        }
        _ => Err(format!("no such step: {word}").into()),
    }
}

/// Registers the service.
pub(crate) fn serve(process: &Process, name: &str) -> Result<Registration, Box<dyn Error>> {
    Ok(Registration::of_binder(process, name, &process.publish(echo::Served(Echo::default())))?)
}
