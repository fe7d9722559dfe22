//! The interface of `tests/programs/clients` by rsbinder: `rsbinder-echo service|client NAME`.
//! The client says each step on its standard output and obeys its standard input, as `echo_client.py` does.

use std::error::Error;
use std::io::{BufRead, Write};
use std::sync::atomic::{AtomicI32, Ordering};
use std::sync::{Arc, Mutex, PoisonError};
use std::thread::sleep;
use std::time::{Duration, Instant};

use rsbinder::{
    BinderResult, DeathRecipient, Interface, ParcelFileDescriptor, ProcessState, SIBinder, Strong, WIBinder,
    hub, interface,
};

/// How long anything may take, on an emulated machine too.
const PATIENCE: Duration = Duration::from_secs(60);

#[interface(descriptor = "binderperf.test.IEcho")]
pub trait IEcho {
    fn number(&self, value: i32) -> BinderResult<i32>;
    fn text(&self, value: &str) -> BinderResult<String>;
    fn bytes(&self, value: &[u8]) -> BinderResult<Vec<u8>>;
    fn numbers(&self, value: &[i32]) -> BinderResult<Vec<i32>>;
    fn write(&self, into: &ParcelFileDescriptor) -> BinderResult<()>;
    fn watch(&self, who: &SIBinder) -> BinderResult<()>;
    fn deaths(&self) -> BinderResult<i32>;
    fn pid(&self) -> BinderResult<i32>;
    #[oneway]
    fn add(&self, number: i32) -> BinderResult<()>;
    fn sum(&self) -> BinderResult<i32>;
    fn listen(&self, who: &Strong<dyn IListener>) -> BinderResult<()>;
}

#[interface(descriptor = "binderperf.test.IListener")]
pub trait IListener {
    #[oneway]
    fn event(&self, number: i32) -> BinderResult<()>;
}

/// The events that a listener is told of.
const EVENTS: [i32; 3] = [3, 1, 2];

#[derive(Default)]
struct Listener(Arc<Mutex<Vec<i32>>>);

impl Interface for Listener {}

impl IListener for Listener {
    fn event(&self, number: i32) -> BinderResult<()> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner).push(number);
        Ok(())
    }
}

/// Counts the deaths that it hears of.
#[derive(Default)]
struct Deaths(AtomicI32);

impl DeathRecipient for Deaths {
    fn binder_died(&self, _who: &WIBinder) {
        self.0.fetch_add(1, Ordering::SeqCst);
    }
}

#[derive(Default)]
struct Echo {
    deaths: Arc<Deaths>,
    sum: AtomicI32,
    watched: Mutex<Vec<SIBinder>>,
}

impl Interface for Echo {}

impl IEcho for Echo {
    fn number(&self, value: i32) -> BinderResult<i32> {
        Ok(value)
    }

    fn text(&self, value: &str) -> BinderResult<String> {
        Ok(value.to_owned())
    }

    fn bytes(&self, value: &[u8]) -> BinderResult<Vec<u8>> {
        Ok(value.to_vec())
    }

    fn numbers(&self, value: &[i32]) -> BinderResult<Vec<i32>> {
        Ok(value.to_vec())
    }

    fn write(&self, into: &ParcelFileDescriptor) -> BinderResult<()> {
        let mut into = into.try_clone()?;
        into.write_all(b"written by the service\n").map_err(|_| rsbinder::StatusCode::BadValue)?;
        Ok(())
    }

    fn watch(&self, who: &SIBinder) -> BinderResult<()> {
        who.link_to_death_arc(&self.deaths)?;
        self.watched.lock().unwrap_or_else(PoisonError::into_inner).push(who.clone());
        Ok(())
    }

    fn deaths(&self) -> BinderResult<i32> {
        Ok(self.deaths.0.load(Ordering::SeqCst))
    }

    fn pid(&self) -> BinderResult<i32> {
        Ok(std::process::id() as i32)
    }

    fn add(&self, number: i32) -> BinderResult<()> {
        self.sum.fetch_add(number, Ordering::SeqCst);
        Ok(())
    }

    fn sum(&self) -> BinderResult<i32> {
        Ok(self.sum.load(Ordering::SeqCst))
    }

    fn listen(&self, who: &Strong<dyn IListener>) -> BinderResult<()> {
        EVENTS.into_iter().try_for_each(|event| who.event(event))
    }
}

type Outcome = Result<(), Box<dyn Error>>;

fn service(name: &str) -> Outcome {
    let echo = BnEcho::new_binder(Echo::default());
    loop {
        // Each service manager that comes hears of it.
        if hub::check_service(name).is_none() && hub::add_service(name, echo.as_binder()).is_ok() {
            println!("registered");
        }
        sleep(Duration::from_millis(200));
    }
}

fn ensure(holds: bool, what: &str) -> Outcome {
    if holds { Ok(()) } else { Err(what.into()) }
}

/// Waits until something holds, and is an error if it never does.
fn until(what: &str, mut holds: impl FnMut() -> Result<bool, Box<dyn Error>>) -> Outcome {
    let end = Instant::now() + PATIENCE;
    while !holds()? {
        ensure(Instant::now() < end, what)?;
        sleep(Duration::from_millis(20));
    }
    Ok(())
}

fn find(name: &str) -> Result<Strong<dyn IEcho>, Box<dyn Error>> {
    let end = Instant::now() + PATIENCE;
    loop {
        match hub::check_interface::<dyn IEcho>(name) {
            Ok(found) => return Ok(found),
            Err(_) if Instant::now() < end => sleep(Duration::from_millis(100)),
            Err(error) => return Err(error.into()),
        }
    }
}

/// One word of what the client is told to do.
fn step(name: &str, word: &str, echo: &mut Option<Strong<dyn IEcho>>, deaths: &Arc<Deaths>) -> Outcome {
    if word == "find" {
        let found = find(name)?;
        found.as_binder().link_to_death_arc(deaths)?;
        *echo = Some(found);
        return Ok(());
    }
    let echo = echo.as_ref().ok_or("not found yet")?;
    match word {
        "numbers" => {
            ensure(echo.number(-7)? == -7, "another number")?;
            ensure(echo.numbers(&[1, -2, i32::MAX])? == [1, -2, i32::MAX], "other numbers")
        }
        "text" => ensure(echo.text("Grüße, 世界")? == "Grüße, 世界", "another text"),
        "bytes" => [1, 4, 1000, 65536, 400_000].into_iter().try_for_each(|size| {
            let sent: Vec<u8> = (0..size).map(|at| (at * 7) as u8).collect();
            ensure(echo.bytes(&sent)? == sent, "other bytes")
        }),
        "descriptor" => {
            let (from, into) = ParcelFileDescriptor::pipe()?;
            echo.write(&into)?;
            let mut line = String::new();
            std::io::BufReader::new(from).read_line(&mut line)?;
            ensure(line == "written by the service\n", "something else was written")
        }
        "oneway" => {
            let before = echo.sum()?;
            (1..=100).try_for_each(|number| echo.add(number))?;
            // The next call may overtake them.
            until("not all were added", || Ok(echo.sum()? == before + 5050))
        }
        "events" => {
            let told = Arc::<Mutex<Vec<i32>>>::default();
            let listener = BnListener::new_binder(Listener(Arc::clone(&told)));
            echo.listen(&listener)?;
            until("other events", || Ok(*told.lock().unwrap_or_else(PoisonError::into_inner) == EVENTS))
        }
        "many" => (0..200).try_for_each(|number| ensure(echo.number(number)? == number, "another number")),
        "watch" => Ok(echo.watch(&BnEcho::new_binder(Echo::default()).as_binder())?),
        "deaths" => {
            println!("= {}", echo.deaths()?);
            Ok(())
        }
        "pid" => {
            println!("= {}", echo.pid()?);
            Ok(())
        }
        "died" => {
            until("not told of the death", || Ok(deaths.0.swap(0, Ordering::SeqCst) != 0))?;
            ensure(echo.number(1).is_err(), "a dead service answered")
        }
        _ => Err(format!("no such step: {word}").into()),
    }
}

fn client(name: &str) -> Outcome {
    let (mut echo, deaths) = (None, Arc::default());
    for word in std::io::stdin().lines() {
        match step(name, &word?, &mut echo, &deaths) {
            Ok(()) => println!("done"),
            Err(error) => println!("error: {error}"),
        }
    }
    Ok(())
}

fn main() -> Outcome {
    let words: Vec<String> = std::env::args().skip(1).collect();
    let [role, name] = words.as_slice() else {
        return Err("usage: rsbinder-echo service|client NAME".into());
    };
    ProcessState::init("/dev/binder", 0)?;
    ProcessState::start_thread_pool();
    match role.as_str() {
        "service" => service(name),
        "client" => client(name),
        _ => Err("service or client".into()),
    }
}
