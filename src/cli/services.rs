//! The command `services`: the names of a context's service manager, and the objects behind them.
//! Not here: the manager itself (`servicemanager`), the calls (`ipc::binder::manager`, `ipc::hwbinder::manager`).

use std::fmt;
use std::os::fd::OwnedFd;
use std::str::FromStr;
use std::time::Duration;

use binder::hwbinder::{self, NativeHandle};
use binder::{CallError, Process, ProcessOptions, Release, Services};
use clap::Args;

use super::manager_place::PlaceArgs;
use super::{CommandResult, Failure, OrExit, choice, complain, exit, say, terminal};

/// Ask a service manager: which names there are, whether one is served, what its object says
#[derive(Clone, Debug, Args)]
pub(crate) struct ServicesArgs {
    /// list the names, check whether a name is served, wait until it is, dump what its object says of itself, ping it
    #[arg(value_name = "WHAT", default_value_t = What::List, value_parser = choice::of(What::ALL))]
    what: What,

    /// The name, of HIDL interface/instance
    #[arg(value_name = "NAME", required_if_eq_any([("what", "check"), ("what", "wait"), ("what", "dump"), ("what", "ping")]))]
    name: Option<String>,

    /// Words for the object, with dump
    #[arg(value_name = "WORD", last = true)]
    words: Vec<String>,

    /// Ask hwservicemanager
    #[arg(long, conflicts_with = "release")]
    hw: bool,

    /// Android release whose dialect the manager speaks
    #[arg(long, value_name = "RELEASE", default_value_t, value_parser = choice::of(Release::ALL))]
    release: Release,

    /// Seconds to wait for the name, with wait, or for the end of a dump
    #[arg(long, value_name = "S", default_value_t = 60, value_parser = clap::value_parser!(u64).range(..=super::A_YEAR_S))]
    timeout: u64,

    #[command(flatten)]
    place: PlaceArgs,
}

/// A question to a service manager.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum What {
    List,
    Check,
    Wait,
    Dump,
    Ping,
}

impl What {
    const ALL: [Self; 5] = [Self::List, Self::Check, Self::Wait, Self::Dump, Self::Ping];
}

impl fmt::Display for What {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::List => "list",
            Self::Check => "check",
            Self::Wait => "wait",
            Self::Dump => "dump",
            Self::Ping => "ping",
        })
    }
}

impl FromStr for What {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        let found = Self::ALL.into_iter().find(|what| what.to_string() == text);
        found.ok_or_else(|| format!("no such question: {text}"))
    }
}

/// A service manager of either flavour.
enum Manager {
    Aidl(Services),
    Hidl(hwbinder::manager::Services),
}

/// An object of either flavour.
enum Object {
    Aidl(binder::Binder),
    Hidl(hwbinder::HwBinder),
}

impl Manager {
    fn list(&self) -> Result<Vec<String>, CallError> {
        match self {
            Self::Aidl(services) => services.list(),
            Self::Hidl(services) => services.list(),
        }
    }

    fn wait_for(&self, name: &str, patience: Duration) -> Result<Object, CallError> {
        match self {
            Self::Aidl(services) => services.wait_for(name, patience).map(Object::Aidl),
            Self::Hidl(services) => {
                let (interface, instance) = name.split_once('/').unwrap_or((name, "default"));
                services.wait_for(interface, instance, patience).map(Object::Hidl)
            }
        }
    }
}

impl Object {
    fn ping(&self) -> Result<(), CallError> {
        match self {
            Self::Aidl(object) => object.ping(),
            Self::Hidl(object) => object.ping(),
        }
    }

    fn descriptor(&self) -> Result<String, CallError> {
        match self {
            Self::Aidl(object) => object.descriptor(),
            Self::Hidl(object) => object.descriptor(),
        }
    }

    fn dump(&self, to: OwnedFd, words: &[String]) -> Result<(), CallError> {
        match self {
            Self::Aidl(object) => object.dump(to, words),
            Self::Hidl(object) => {
                let words: Vec<&str> = words.iter().map(String::as_str).collect();
                object.debug(NativeHandle { fds: vec![to], ints: Vec::new() }, &words)
            }
        }
    }
}

/// The failure of a call: a missing manager is the environment's, a missing service the verdict.
fn failed(error: CallError) -> Failure {
    let status = if matches!(error, CallError::NoManager { .. }) { exit::UNABLE } else { exit::FAILED };
    Failure::new(status, error)
}

/// Asks.
pub(crate) fn run(args: &ServicesArgs) -> CommandResult {
    if args.what == What::List && args.name.is_some() {
        return Err(Failure::new(exit::USAGE, "list takes no NAME: it prints all names; check asks for one"));
    }
    if args.what != What::Dump && !args.words.is_empty() {
        return Err(Failure::new(exit::USAGE, "only dump passes words to the object"));
    }
    let context = args.place.context(args.hw)?;
    let options = match args.hw {
        true => ProcessOptions::hwbinder(),
        false => ProcessOptions { release: args.release, ..ProcessOptions::default() },
    };
    let process = Process::open(&context, options).or_exit(exit::UNABLE)?;
    process.start_thread_pool().or_exit(exit::UNABLE)?;
    let manager = match args.hw {
        false => Services::of(&process).map(Manager::Aidl),
        true => hwbinder::manager::Services::of(&process).map(Manager::Hidl),
    };
    let manager = manager.map_err(failed)?;
    let dialect = |error: CallError| {
        if matches!(error, CallError::Status(_)) {
            complain("the manager may speak another release's dialect: --release names it");
        }
        failed(error)
    };
    let Some(name) = args.name.as_deref().filter(|_| args.what != What::List) else {
        let names = manager.list().map_err(dialect)?;
        return say(&names.iter().map(|name| format!("{name}\n")).collect::<String>());
    };
    let patience = if args.what == What::Wait { Duration::from_secs(args.timeout) } else { Duration::ZERO };
    let object = manager.wait_for(name, patience).map_err(dialect)?;
    match args.what {
        What::List | What::Check | What::Wait => {
            say(&format!("{name}: {}\n", object.descriptor().map_err(failed)?))
        }
        What::Ping => {
            object.ping().map_err(failed)?;
            say(&format!("{name} answers\n"))
        }
        What::Dump => dump(object, args.words.clone(), Duration::from_secs(args.timeout)),
    }
}

/// Prints what an object says of itself. An object may keep the pipe open, or not answer, for ever.
fn dump(object: Object, words: Vec<String>, limit: Duration) -> CommandResult {
    let (mut from, to) = std::io::pipe().or_exit(exit::INTERNAL)?;
    let (done, end) = std::sync::mpsc::channel();
    let copied = done.clone();
    let copies = move || {
        let all = std::io::copy(&mut from, &mut terminal::passed_on());
        let _ = copied.send(all.map(drop).or_exit(exit::INTERNAL));
    };
    let asks = move || {
        let _ = done.send(object.dump(to.into(), &words).map_err(failed));
    };
    sys::title::thread("dump", asks).or_exit(exit::INTERNAL)?;
    sys::title::thread("dump output", copies).or_exit(exit::INTERNAL)?;
    for _ in 0..2 {
        let late = || format!("the dump has no end after {} s (--timeout)", limit.as_secs());
        end.recv_timeout(limit).map_err(|_| Failure::new(exit::FAILED, late()))??;
    }
    Ok(exit::FINE)
}
