//! Room: what the examples share: the device, the other processes, the outcome.
//! Not here: how to write a service or a client, which is what the examples show.
//!
//! Each example is several processes: this program starts itself again for each of them. They end
//! when their standard input does, that is, with the process that started them.

use std::error::Error;
use std::io::{ErrorKind, Read};
use std::process::{Child, Command, ExitCode, Stdio};
use std::time::{Duration, Instant};

use driver::KernelConnection;
use driver::kernel::KernelContext;
use driver::locate::{Device, locate};
use ipc::binder::manager::{ServiceManager, Services};
use ipc::{Process, ProcessOptions};

#[allow(dead_code, reason = "only the examples about it use it")]
pub(crate) mod echo;

/// How long the other processes may take to start.
const PATIENCE: Duration = Duration::from_secs(30);

/// What an example's functions return.
pub(crate) type Outcome = Result<(), Box<dyn Error>>;

/// A process of an example's context.
pub(crate) type Here = Process<KernelConnection>;

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
fn start(role: &str, device: &str) -> Result<Peer, Box<dyn Error>> {
    let mut command = Command::new(std::env::current_exe()?);
    let child = command.args([device, role]).stdin(Stdio::piped()).spawn()?;
    Ok(Peer { child })
}

fn open(context: &KernelContext) -> Result<Here, Box<dyn Error>> {
    let process = Process::open(context, ProcessOptions::default())?;
    process.start_thread_pool()?;
    Ok(process)
}

/// Waits for the end of the process that started this one.
fn wait_for_parent() {
    let _ = std::io::stdin().read(&mut [0]);
}

/// The service manager, for contexts that have none.
fn manage(process: &Here) -> Outcome {
    let end = Instant::now() + PATIENCE;
    loop {
        match process.become_context_manager(ServiceManager::new()) {
            // The driver has not yet let go of one that has just ended.
            Err(error) if error.kind() == ErrorKind::ResourceBusy && Instant::now() < end => {
                std::thread::sleep(Duration::from_millis(5));
            }
            result => return Ok(result.map(drop)?),
        }
    }
}

/// Runs an example: `PROGRAM [DEVICE]`, where DEVICE is a path, a name, `private` or `auto`.
/// `service` registers its objects, in a process of its own; `client` shows what they do.
pub(crate) fn run(
    service: impl FnOnce(&Here, &Services) -> Outcome,
    client: impl FnOnce(&Here, &Services, &mut Peer) -> Outcome,
) -> ExitCode {
    let mut arguments = std::env::args().skip(1);
    let device = arguments.next().unwrap_or_else(|| "auto".to_owned());
    let context = match device.parse::<Device>().map(|device| locate(&device, "binder")) {
        Ok(Ok(context)) => context,
        Ok(Err(error)) => {
            eprintln!("{error}");
            return ExitCode::from(3);
        }
        Err(error) => {
            eprintln!("{error}");
            return ExitCode::from(2);
        }
    };
    let outcome = match arguments.next().as_deref() {
        None => demonstrate(&context, client),
        Some(role) => open(&context).and_then(|process| {
            match role {
                "manager" => manage(&process)?,
                _ => service(&process, &Services::wait(&process, PATIENCE)?)?,
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

fn demonstrate(
    context: &KernelContext,
    client: impl FnOnce(&Here, &Services, &mut Peer) -> Outcome,
) -> Outcome {
    let device = context.path().to_str().ok_or("a device with a strange name")?;
    let process = open(context)?;
    // A system's own manager serves as well.
    let has_manager = !context.is_private() && Services::of(&process).is_ok();
    let _manager = if has_manager { None } else { Some(start("manager", device)?) };
    let mut peer = start("service", device)?;
    let services = Services::wait(&process, PATIENCE)?;
    let outcome = client(&process, &services, &mut peer);
    process.shutdown()?;
    outcome
}
