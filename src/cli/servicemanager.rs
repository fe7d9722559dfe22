//! The command `servicemanager`: runs a service manager in the foreground.
//! Not here: the managers (`ipc::binder::manager`, `ipc::hwbinder::manager`).
//! Facts: Android's servicemanager registers itself as `manager`, hwservicemanager as the default instance of its
//! interfaces (their `main.cpp` and `service.cpp`).

use std::io::{self, ErrorKind};
use std::path::PathBuf;
use std::time::{Duration, Instant};

use backend::BrokerWatch;
use bench::plan::{Device, Driver, Settings, Wanted};
use binder::{CallError, Process, ProcessOptions, Release, ServiceManager, hwbinder};
use clap::{Args, ValueHint};
use driver::Context;
use sys::patience::is_over;

use super::driver::{DRIVERS, asked_for};
use super::{CommandResult, Failure, OrExit, choice, exit, note};

/// Run a service manager in the foreground until Ctrl-C: names for the objects of a context, as Android's servicemanager has them
#[derive(Clone, Debug, Args)]
pub(crate) struct ServiceManagerArgs {
    /// Serve hwbinder, as hwservicemanager does
    #[arg(long, conflicts_with = "release")]
    hw: bool,

    /// Android release whose dialect to speak
    #[arg(long, value_name = "RELEASE", default_value_t, value_parser = choice::of(Release::ALL))]
    release: Release,

    /// The kernel's driver, the embedded one in user space, or auto: the kernel's if usable [default: $BINDERPERF_DRIVER, else auto]
    #[arg(long, help_heading = "Driver", value_name = "DRIVER", value_parser = choice::of(DRIVERS))]
    driver: Option<Driver>,

    /// Binder context: a name (binder, hwbinder, ...), or the path of a kernel's device [default: binder; hwbinder with --hw]
    #[arg(long, help_heading = "Driver", value_name = "DEVICE")]
    device: Option<Device>,

    /// Embedded driver: the directory that its processes share [default: the user's]
    #[arg(long, help_heading = "Driver", value_name = "DIR", value_hint = ValueHint::DirPath)]
    context_dir: Option<PathBuf>,
}

/// How long a driver may take to let go of a manager that has just ended.
const PREDECESSOR: Duration = Duration::from_secs(2);

/// Time between two looks for a signal that ends the manager.
const LOOK: Duration = Duration::from_millis(50);

/// Why a manager without its broker ends: nobody can reach it any more, and the next broker's clients need a new one.
fn lost(place: &str, broker: &BrokerWatch) -> Failure {
    let pid = broker.pid();
    let why = format_args!(
        "the broker of {place}, process {pid}, is gone, and with it every name that was registered; start the service \
         manager again, then the services"
    );
    Failure::new(exit::UNABLE, why)
}

/// Runs it.
pub(crate) fn run(args: &ServiceManagerArgs) -> CommandResult {
    let flavour = if args.hw { "hwbinder" } else { "binder" };
    let device = args.device.clone().unwrap_or_else(|| Device::Named(flavour.to_owned()));
    let driver = asked_for(args.driver).or_exit(exit::USAGE)?;
    if driver == Driver::Kernel && args.context_dir.is_some() {
        let why = "--context-dir is a setting of the embedded driver, and --driver is kernel";
        return Err(Failure::new(exit::USAGE, why));
    }
    let wanted =
        Wanted { driver, device, context_dir: args.context_dir.clone(), settings: Settings::default() };
    let context = backend::locate::find(&wanted, flavour).or_exit(exit::UNABLE)?.context;
    sys::stop_signal::catch().or_exit(exit::UNABLE)?;
    let broker = context.watch().or_exit(exit::UNABLE)?;
    let options = ProcessOptions { release: args.release, ..ProcessOptions::default() };
    let process = Process::open(&context, options).or_exit(exit::UNABLE)?;
    let manage = if args.hw { manage_hidl } else { manage };
    let since = Instant::now();
    let registered = loop {
        match manage(&process) {
            Err(error) if error.kind() == ErrorKind::ResourceBusy && !is_over(since, PREDECESSOR) => {
                std::thread::sleep(Duration::from_millis(20));
            }
            managed => break managed.map_err(|error| context.manager_error(error)).or_exit(exit::UNABLE)?,
        }
    };
    registered.or_exit(exit::INTERNAL)?;
    process.start_thread_pool().or_exit(exit::UNABLE)?;
    let dialect =
        if args.hw { String::new() } else { format!(", in the dialect of Android {}", args.release) };
    let (place, pid) = (context.describe(), std::process::id());
    note(format_args!("The service manager of {place}{dialect}: process {pid}; Ctrl-C ends it.\n"));
    while sys::stop_signal::received().is_none() {
        match &broker {
            Some(broker) if broker.ends_within(LOOK) => return Err(lost(&place, broker)),
            Some(_) => {}
            None => std::thread::sleep(LOOK),
        }
    }
    process.shutdown().or_exit(exit::INTERNAL)?;
    Ok(exit::FINE)
}

/// Makes the process its context's manager; whether the manager registered itself is the inner result.
fn manage(process: &Process) -> io::Result<Result<(), CallError>> {
    let manager = ServiceManager::new();
    let object = process.become_context_manager(manager.clone())?;
    Ok(manager.add("manager", &object).map_err(CallError::from))
}

/// The same for hwbinder.
fn manage_hidl(process: &Process) -> io::Result<Result<(), CallError>> {
    let manager = hwbinder::manager::ServiceManager::new();
    let object = process.become_hidl_context_manager(manager.clone())?;
    Ok(manager.add("default", &object))
}
