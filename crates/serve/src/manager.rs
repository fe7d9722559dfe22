//! A service manager in the foreground.
//! Not here: the managers (`ipc::binder::manager`, `ipc::hwbinder::manager`).
//! Facts: Android's servicemanager registers itself as `manager`, hwservicemanager as the default instance of its
//! interfaces (their `main.cpp` and `service.cpp`).

use std::io::{self, ErrorKind};
use std::time::{Duration, Instant};

use backend::{AnyContext, BrokerWatch};
use binder::{CallError, Process, ProcessOptions, Release, ServiceManager, hwbinder};
use console::{CommandResult, Failure, OrExit, exit, note};
use driver::Context;
use sys::patience::is_over;

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

/// Runs it until a signal comes. `hw`: it serves hwbinder; `release`: the one whose dialect it speaks, else that of each caller.
///
/// # Errors
/// The context has a manager, or its broker is gone.
pub fn run(context: &AnyContext, hw: bool, release: Option<Release>) -> CommandResult {
    sys::stop_signal::catch().or_exit(exit::UNABLE)?;
    let broker = context.watch().or_exit(exit::UNABLE)?;
    let options = ProcessOptions { release: release.unwrap_or_default(), ..ProcessOptions::default() };
    let process = Process::open(context, options).or_exit(exit::UNABLE)?;
    let any = release.is_none();
    let manage = |process: &Process| if hw { manage_hidl(process) } else { manage(process, any) };
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
    let dialect = match release {
        _ if hw => String::new(),
        Some(release) => format!(", in the dialect of Android {release}"),
        None => format!(", in the dialect of Android 8, 9, 10 or {}", Release::default()),
    };
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

fn report(line: &str) {
    note(format_args!("binderperf: {line}\n"));
}

/// Makes the process its context's manager; whether the manager registered itself is the inner result.
fn manage(process: &Process, any: bool) -> io::Result<Result<(), CallError>> {
    let manager = ServiceManager::new().reporting(report);
    let manager = if any { manager.speaking_any() } else { manager };
    let object = process.become_context_manager(manager.clone())?;
    Ok(manager.add("manager", &object).map_err(CallError::from))
}

/// The same for hwbinder.
fn manage_hidl(process: &Process) -> io::Result<Result<(), CallError>> {
    let manager = hwbinder::manager::ServiceManager::new().reporting(report);
    let object = process.become_hidl_context_manager(manager.clone())?;
    Ok(manager.add("default", &object))
}
