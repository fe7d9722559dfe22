//! Room: what the examples share: the device, the other processes, the outcome.
//! Not here: how to write a service or a client, which is what the examples show.
//!
//! Each example is several processes: this program starts itself again for each of them. They end
//! when their standard input does, that is, with the process that started them.

use std::error::Error;
use std::io::{ErrorKind, Read};
use std::process::{Child, Command, ExitCode, Stdio};
use std::time::{Duration, Instant};

use driver::locate::{self, Device, Driver, Wanted};
use driver::{AnyConnection, AnyContext};
use ipc::binder::CallError;
use ipc::binder::manager::{ServiceManager, Services};
use ipc::{Process, ProcessOptions};

#[allow(dead_code, reason = "only the examples about it use it")]
pub(crate) mod echo;
#[allow(dead_code, reason = "only the examples about it use it")]
pub(crate) mod hidl;

/// How long the other processes may take to start.
const PATIENCE: Duration = Duration::from_secs(30);

/// What an example's functions return.
pub(crate) type Outcome = Result<(), Box<dyn Error>>;

/// A process of an example's context.
pub(crate) type Here = Process<AnyConnection>;

/// A flavour of the runtime: which context it lives in, and its service manager.
pub(crate) trait Flavour {
    /// The context's name.
    const CONTEXT: &str;
    /// A client of its service manager.
    type Services;
    /// How its processes start.
    fn options() -> ProcessOptions;
    /// Its service manager, waiting for one that is about to start.
    fn services(process: &Here, patience: Duration) -> Result<Self::Services, CallError>;
    /// Makes a service manager the context's.
    fn manage(process: &Here) -> std::io::Result<()>;
}

/// The flavour binder: AIDL.
pub(crate) struct Aidl;

impl Flavour for Aidl {
    const CONTEXT: &str = "binder";
    type Services = Services;

    fn options() -> ProcessOptions {
        ProcessOptions::default()
    }

    fn services(process: &Here, patience: Duration) -> Result<Services, CallError> {
        Services::wait(process, patience)
    }

    fn manage(process: &Here) -> std::io::Result<()> {
        process.become_context_manager(ServiceManager::new()).map(drop)
    }
}

/// Fails the example with a text unless something holds.
#[allow(dead_code, reason = "not every example checks something itself")]
pub(crate) fn ensure(holds: bool, what: &str) -> Outcome {
    if holds { Ok(()) } else { Err(what.into()) }
}

/// Another process of the example, ended with this value.
pub(crate) struct Peer {
    child: Child,
}

impl Peer {
    /// Kills it, as a crash would.
    #[allow(dead_code, reason = "one example kills")]
    pub(crate) fn kill(&mut self) -> Outcome {
        self.child.kill()?;
        self.child.wait()?;
        Ok(())
    }
}

impl Drop for Peer {
    fn drop(&mut self) {
        // It may have ended already.
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

/// Starts this program again in another role.
fn start(role: &str, address: &str) -> Result<Peer, Box<dyn Error>> {
    let mut command = Command::new(std::env::current_exe()?);
    let child = command.args([address, role]).stdin(Stdio::piped()).spawn()?;
    Ok(Peer { child })
}

fn open<F: Flavour>(context: &AnyContext) -> Result<Here, Box<dyn Error>> {
    let process = Process::open(context, F::options())?;
    process.start_thread_pool()?;
    Ok(process)
}

/// Waits for the end of the process that started this one.
fn wait_for_parent() {
    let _ = std::io::stdin().read(&mut [0]);
}

/// The service manager, for contexts that have none.
fn manage<F: Flavour>(process: &Here) -> Outcome {
    let end = Instant::now() + PATIENCE;
    loop {
        match F::manage(process) {
            // The driver has not yet let go of one that has just ended.
            Err(error) if error.kind() == ErrorKind::ResourceBusy && Instant::now() < end => {
                std::thread::sleep(Duration::from_millis(5));
            }
            result => return Ok(result?),
        }
    }
}

/// Where an example runs: `auto`, `kernel` or `embedded` is a driver, anything else a device of the
/// kernel's driver by path or name, or what an embedded context gave as its address.
fn find(word: &str, flavour: &str) -> Result<AnyContext, Box<dyn Error>> {
    let wanted = match word.parse::<Driver>() {
        Ok(driver) => Wanted { driver, ..Wanted::default() },
        Err(_) if word.contains('/') => return Ok(AnyContext::parse(word)),
        Err(_) => Wanted { driver: Driver::Kernel, device: word.parse::<Device>()?, ..Wanted::default() },
    };
    Ok(locate::find(&wanted, flavour)?.context)
}

/// Runs an example of the flavour binder; see [`run_as`].
#[allow(dead_code, reason = "not for examples of the other flavour")]
pub(crate) fn run(
    service: impl FnOnce(&Here, &Services) -> Outcome,
    client: impl FnOnce(&Here, &Services, &mut Peer) -> Outcome,
) -> ExitCode {
    run_as::<Aidl>(service, client)
}

/// Runs an example: `PROGRAM [WHERE]`; see [`find`].
/// `service` registers its objects, in a process of its own; `client` shows what they do.
pub(crate) fn run_as<F: Flavour>(
    service: impl FnOnce(&Here, &F::Services) -> Outcome,
    client: impl FnOnce(&Here, &F::Services, &mut Peer) -> Outcome,
) -> ExitCode {
    let mut arguments = std::env::args().skip(1);
    let place = arguments.next().unwrap_or_else(|| "auto".to_owned());
    let context = match find(&place, F::CONTEXT) {
        Ok(context) => context,
        Err(error) => {
            eprintln!("{error}");
            return ExitCode::from(3);
        }
    };
    let outcome = match arguments.next().as_deref() {
        None => demonstrate::<F>(&context, client),
        Some(role) => open::<F>(&context).and_then(|process| {
            match role {
                "manager" => manage::<F>(&process)?,
                _ => service(&process, &F::services(&process, PATIENCE)?)?,
            }
            wait_for_parent();
            Ok(())
        }),
    };
    match outcome {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => {
            eprintln!("{error}");
            ExitCode::FAILURE
        }
    }
}

fn demonstrate<F: Flavour>(
    context: &AnyContext,
    client: impl FnOnce(&Here, &F::Services, &mut Peer) -> Outcome,
) -> Outcome {
    let address = context.address();
    let process = open::<F>(context)?;
    // A system's own manager serves as well.
    let has_manager = !context.is_private() && F::services(&process, Duration::ZERO).is_ok();
    let _manager = if has_manager { None } else { Some(start("manager", &address)?) };
    let mut peer = start("service", &address)?;
    let services = F::services(&process, PATIENCE)?;
    let outcome = client(&process, &services, &mut peer);
    process.shutdown()?;
    outcome
}
