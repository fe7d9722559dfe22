//! The interface of `tests/programs/clients` by our own library: `own-echo PLACE RELEASE service|client NAME`. PLACE is a device, or the
//! directory of a context of the embedded driver; RELEASE is Android's whose dialect it speaks, or `hidl`. The client obeys its standard
//! input and answers, as the clients by python3-gbinder do.

mod aidl;
mod hidl;

use std::error::Error;
use std::process::exit;
use std::thread::sleep;
use std::time::{Duration, Instant};

use backend::locate::{Device, Driver, Wanted};
use binder::{Process, ProcessOptions, Registration};

/// How long anything may take, on an emulated machine too.
const PATIENCE: Duration = Duration::from_secs(60);
/// The events that a listener is told of.
const EVENTS: [i32; 3] = [3, 1, 2];

type Outcome = Result<(), Box<dyn Error>>;

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

/// Does the steps that stand on the standard input, the first of which finds the service.
fn obey<F>(find: impl Fn() -> Result<F, Box<dyn Error>>, step: impl Fn(&F, &str) -> Outcome) -> Outcome {
    let mut found = None;
    for word in std::io::stdin().lines() {
        let done = match (word?.as_str(), &found) {
            ("find", _) => find().map(|new| found = Some(new)),
            (word, Some(found)) => step(found, word),
            _ => Err("find it first".into()),
        };
        match done {
            Ok(()) => println!("done"),
            Err(error) => println!("error: {error}"),
        }
    }
    Ok(())
}

fn serve(process: &Process, registered: Result<Registration, Box<dyn Error>>) -> Outcome {
    let _kept = registered?;
    println!("registered");
    Ok(process.join_thread_pool()?)
}

fn run() -> Outcome {
    let words: Vec<String> = std::env::args().skip(1).collect();
    let [place, release, role, name] = words.as_slice() else {
        return Err("usage: own-echo PLACE RELEASE service|client NAME".into());
    };
    let (flavour, options) = if release == "hidl" {
        ("hwbinder", ProcessOptions::hwbinder_pool(2, false))
    } else {
        ("binder", ProcessOptions { release: release.parse()?, ..ProcessOptions::default() })
    };
    let wanted = if place.starts_with("/dev/") {
        Wanted { driver: Driver::Kernel, device: Device::Path(place.into()), ..Wanted::default() }
    } else {
        let device = Device::Named(flavour.to_owned());
        Wanted { driver: Driver::Embedded, device, context_dir: Some(place.into()), ..Wanted::default() }
    };
    let process = Process::open(&backend::locate::find(&wanted, flavour)?.context, options)?;
    process.start_thread_pool()?;
    match (flavour, role.as_str()) {
        ("binder", "service") => serve(&process, aidl::serve(&process, name)),
        ("binder", _) => obey(|| aidl::find(&process, name), |found, word| aidl::step(&process, found, word)),
        (_, "service") => serve(&process, hidl::serve(&process, name)),
        _ => obey(|| hidl::find(&process, name), |found, word| hidl::step(&process, found, word)),
    }
}

fn main() {
    if let Err(error) = run() {
        eprintln!("{error}");
        exit(1);
    }
}
