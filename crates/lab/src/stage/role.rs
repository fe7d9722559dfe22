//! Room: what this program does when another copy of it started it as a server.
//! Not here: the servers themselves (`crate::measure::echo`), starting them (`super`).

use std::fs::File;
use std::io::{self, Write};
use std::os::fd::AsFd;
use std::path::Path;

use driver::{AnyContext, Context, on_context};
use sys::shared_memory::SharedMemory;

use crate::measure::CallError;
use crate::measure::echo::rendezvous::{self, Rendezvous};
use crate::measure::echo::{Sabotage, binder, event, hwbinder, pipe, raw, shared, unix};
use crate::plan::{Dialect, FaultKind};

/// The hidden command that makes this program a server.
pub const COMMAND: &str = "__peer";
/// The line by which a server that needs time to start says that it has.
pub(crate) const READY: &str = "ready";
/// In place of a fault's name.
const NO_FAULT: &str = "-";

/// The words that start a role.
pub(crate) fn words(role: &str, arguments: &[String], fault: Option<FaultKind>) -> Vec<String> {
    let fault = fault.map_or(NO_FAULT, FaultKind::name);
    let head = [COMMAND, role, fault].map(str::to_owned);
    head.into_iter().chain(arguments.iter().cloned()).collect()
}

/// Plays the role that the words behind [`COMMAND`] name, until the conversation is over. Returns
/// the exit code: 0, 2 for words that make no sense, 4 when something broke.
#[must_use]
pub fn play(words: &[String]) -> u8 {
    let Some(cast) = Cast::parse(words) else {
        eprintln!("binderperf: {COMMAND} is started by binderperf itself");
        return 2;
    };
    match cast.act() {
        Ok(()) => 0,
        Err(error) => {
            // Whoever still waits for the ready line learns the reason from it.
            if cast.prints_ready() {
                let _ = writeln!(io::stdout(), "{error}");
            }
            eprintln!("binderperf: {} server: {error}", cast.role);
            4
        }
    }
}

struct Cast<'w> {
    role: &'w str,
    fault: Option<FaultKind>,
    scene: Scene<'w>,
}

/// What a role needs to know.
enum Scene<'w> {
    /// Vectors of this length, over descriptors that were inherited.
    Inherited(usize),
    /// Vectors of this length, over counters that were inherited and memory that lies there.
    Events(usize, &'w Path),
    /// A context to be the service manager of.
    Manager(AnyContext, Dialect),
    /// A context and a name to register there.
    Service(AnyContext, Dialect, &'w str),
    /// The same for bare exchanges, and how many nodes to register besides.
    Nodes(AnyContext, Dialect, &'w str, u32),
}

impl<'w> Cast<'w> {
    fn parse(words: &'w [String]) -> Option<Self> {
        let [role, fault, arguments @ ..] = words else { return None };
        let fault = match fault.as_str() {
            NO_FAULT => None,
            name => Some(name.parse().ok()?),
        };
        let arguments: Vec<&str> = arguments.iter().map(String::as_str).collect();
        let scene = match (role.as_str(), arguments[..].as_ref()) {
            ("pipe" | "unix" | "futex" | "spin", &[len]) => Scene::Inherited(len.parse().ok()?),
            ("eventfd", &[len, place]) => Scene::Events(len.parse().ok()?, Path::new(place)),
            ("manager", &[address, dialect]) => {
                Scene::Manager(AnyContext::parse(address), dialect.parse().ok()?)
            }
            ("service" | "raw", &[address, dialect, name]) => {
                Scene::Service(AnyContext::parse(address), dialect.parse().ok()?, name)
            }
            ("raw", &[address, dialect, name, more]) => {
                let context = AnyContext::parse(address);
                Scene::Nodes(context, dialect.parse().ok()?, name, more.parse().ok()?)
            }
            _ => return None,
        };
        Some(Self { role, fault, scene })
    }

    fn prints_ready(&self) -> bool {
        !matches!(self.scene, Scene::Inherited(_) | Scene::Events(..))
    }

    fn act(&self) -> Result<(), CallError> {
        let sabotage = Sabotage::new(self.fault);
        match &self.scene {
            Scene::Inherited(len) => self.act_on_descriptors(*len, sabotage),
            Scene::Events(len, place) => {
                let memory = File::options().read(true).write(true).open(place);
                let memory = memory.and_then(|file| SharedMemory::map(file.into()));
                let memory = memory.map_err(CallError::os("mapping shared memory"))?;
                event::serve(event::Events { memory, requests: input()?, replies: output()? }, *len, sabotage)
            }
            Scene::Manager(any, dialect) => {
                let explain = |error| any.manager_error(error).to_string();
                on_context!(any, |context| rendezvous::manage(context, *dialect, explain, ready))
            }
            Scene::Service(any, dialect, name) => {
                on_context!(any, |context| self
                    .serve(Rendezvous { context, dialect: *dialect, name }, sabotage))
            }
            Scene::Nodes(any, dialect, name, more) => {
                on_context!(any, |context| raw::serve(
                    Rendezvous { context, dialect: *dialect, name },
                    *more,
                    ready,
                    sabotage
                ))
            }
        }
    }

    fn serve<X: Context>(&self, place: Rendezvous<'_, X>, sabotage: Sabotage) -> Result<(), CallError> {
        match self.role {
            "raw" => raw::serve(place, 0, ready, sabotage),
            _ => match place.dialect {
                Dialect::Binder(_) => binder::serve(place, ready, sabotage),
                Dialect::Hwbinder => hwbinder::serve(place, ready, sabotage),
            },
        }
    }

    fn act_on_descriptors(&self, len: usize, sabotage: Sabotage) -> Result<(), CallError> {
        match self.role {
            "pipe" => pipe::serve(input()?, output()?, len, sabotage),
            "unix" => unix::serve(input()?, len, sabotage),
            "futex" => shared::serve::<shared::Sleep>(memory()?, len, sabotage),
            _ => shared::serve::<shared::Spin>(memory()?, len, sabotage),
        }
    }
}

fn input() -> Result<File, CallError> {
    io::stdin().as_fd().try_clone_to_owned().map(File::from).map_err(CallError::os("taking over stdin"))
}

fn output() -> Result<File, CallError> {
    io::stdout().as_fd().try_clone_to_owned().map(File::from).map_err(CallError::os("taking over stdout"))
}

fn memory() -> Result<SharedMemory, CallError> {
    SharedMemory::map(input()?.into()).map_err(CallError::os("mapping shared memory"))
}

fn ready() -> io::Result<()> {
    let mut stdout = io::stdout();
    writeln!(stdout, "{READY}")?;
    stdout.flush()
}

#[cfg(test)]
mod tests {
    use super::*;
    use ipc::Release;

    fn strings(words: &[&str]) -> Vec<String> {
        words.iter().map(|word| (*word).to_owned()).collect()
    }

    #[test]
    fn what_is_started_is_understood() {
        let made = words("pipe", &["64".to_owned()], Some(FaultKind::KillServer));
        assert_eq!(made, strings(&["__peer", "pipe", "kill-server", "64"]));
        let cast = Cast::parse(&made[1..]).expect("a role");
        assert_eq!((cast.role, cast.fault), ("pipe", Some(FaultKind::KillServer)));
        assert!(matches!(cast.scene, Scene::Inherited(64)));
        let made = words("service", &["/dev/binder", "12", "a.name"].map(str::to_owned), None);
        let cast = Cast::parse(&made[1..]).expect("a role");
        assert!(matches!(cast.scene, Scene::Service(_, Dialect::Binder(Release::Android12), "a.name")));
        let made = words("service", &["/dev/hwbinder", "hwbinder", "an.instance"].map(str::to_owned), None);
        let cast = Cast::parse(&made[1..]).expect("a role");
        assert!(matches!(cast.scene, Scene::Service(_, Dialect::Hwbinder, "an.instance")));
    }

    #[test]
    fn nonsense_is_refused() {
        for bad in [
            &[][..],
            &["pipe"],
            &["pipe", "-", "many"],
            &["cook", "-", "1"],
            &["pipe", "burn", "4"],
            &["service", "-", "d", "99", "n"],
        ] {
            assert_eq!(play(&strings(bad)), 2, "{bad:?}");
        }
    }
}
