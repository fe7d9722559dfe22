//! Code that the examples share: starting their processes and reporting the outcome.
//! Not here: services and clients, which the examples show.
//!
//! `EXAMPLE [PLACE [manager|service|client]]`; see `binder::find` for PLACE. Without a role the program is the client,
//! and starts itself again as the service and, where the context has none, as its service manager. These two end when
//! their standard input does, that is, with the process that started them.

use std::error::Error;
use std::io::{ErrorKind, Read};
use std::process::{Child, Command, ExitCode, Stdio};
use std::time::{Duration, Instant};

use binder::{AnyContext, Binder, Process, ProcessOptions, hwbinder};

/// Time limit for the other processes to start.
pub(crate) const PATIENCE: Duration = Duration::from_secs(30);

/// The result of an example's functions.
pub(crate) type Outcome = Result<(), Box<dyn Error>>;

/// Fails the example with a text unless something holds.
pub(crate) fn ensure(holds: bool, what: &str) -> Outcome {
    if holds { Ok(()) } else { Err(what.into()) }
}

/// Another process of the example, ended with this value.
struct Peer(Child);

impl Peer {
    /// Starts this program again in another role.
    fn start(context: &AnyContext, role: &str) -> Result<Self, Box<dyn Error>> {
        let mut command = Command::new(std::env::current_exe()?);
        Ok(Self(command.args([&context.address(), role]).stdin(Stdio::piped()).spawn()?))
    }
}

impl Drop for Peer {
    fn drop(&mut self) {
        // It may have ended already.
        let _ = self.0.kill();
        let _ = self.0.wait();
    }
}

/// Makes a service manager the context's.
fn manage(process: &Process, flavour: &str) -> Outcome {
    let end = Instant::now() + PATIENCE;
    loop {
        let managed = match flavour {
            "binder" => process.become_context_manager(binder::ServiceManager::new()).map(drop),
            _ => process.become_hidl_context_manager(hwbinder::manager::ServiceManager::new()).map(drop),
        };
        match managed {
            // The driver has not yet let go of one that has just ended.
            Err(error) if error.kind() == ErrorKind::ResourceBusy && Instant::now() < end => {
                std::thread::sleep(Duration::from_millis(5));
            }
            result => return Ok(result?),
        }
    }
}

/// Runs an example in a context of this flavour: `service` registers its objects, in a process of its own; `client` shows
/// what they do.
pub(crate) fn run(
    flavour: &str,
    service: impl FnOnce(&Process) -> Outcome,
    client: impl FnOnce(&Process) -> Outcome,
) -> ExitCode {
    let mut arguments = std::env::args().skip(1);
    let place = arguments.next().unwrap_or_else(|| "private".to_owned());
    let context = match binder::find(&place, flavour) {
        Ok(context) => context,
        Err(error) => {
            eprintln!("{error}");
            return ExitCode::from(3);
        }
    };
    let options = match flavour {
        "binder" => ProcessOptions::default(),
        // One thread that serves; the driver may ask for one more.
        _ => ProcessOptions::hwbinder_pool(2, false),
    };
    let play = || -> Outcome {
        let process = Process::open(&context, options)?;
        process.start_thread_pool()?;
        match arguments.next().as_deref() {
            None => {
                // A system's own manager serves as well.
                let manager = Binder::from(process.context_manager()?).ping();
                let missing = context.is_private() || manager.is_err_and(|error| error.is_dead());
                let _manager = if missing { Some(Peer::start(&context, "manager")?) } else { None };
                let _service = Peer::start(&context, "service")?;
                client(&process)?;
            }
            Some("client") => client(&process)?,
            Some(role) => {
                if role == "manager" { manage(&process, flavour) } else { service(&process) }?;
                // Until the process that started this one ends.
                let _ = std::io::stdin().read(&mut [0]);
            }
        }
        Ok(process.shutdown()?)
    };
    match play() {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => {
            eprintln!("{error}");
            ExitCode::FAILURE
        }
    }
}
