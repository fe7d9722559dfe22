//! Room: a server of the scenes: a process with one thread that serves; and meeting it.
//! Not here: what it serves (`service`), when it is started (`conductor`).

use std::io::{self, Write};
use std::time::Duration;

use driver::{AnyConnection, AnyContext};
use ipc::binder::manager::Services;
use ipc::hwbinder::{HwBinder, manager as hidl};
use ipc::{Process, ProcessOptions};

use super::Question;
use super::service::{Callee, HIDL};
use super::words::{Serving, node};
use crate::plan::Dialect;

/// How long a service manager, or a service, is waited for.
const PATIENCE: Duration = Duration::from_secs(10);

/// What servers open; `None` when they shall behave otherwise than the context says, and cannot.
pub(super) fn address(context: &AnyContext, question: &Question) -> Option<String> {
    match (context, question.servers_inherit) {
        (_, None) => Some(context.address()),
        (AnyContext::Embedded(context), Some(inherit)) => Some(context.with_inherit(inherit).address()),
        (AnyContext::Kernel(_), Some(_)) => None,
    }
}

/// Opens a context with no thread besides those that join or call.
pub(super) fn open(address: &str, dialect: Dialect) -> Result<Process<AnyConnection>, String> {
    let options = match dialect {
        Dialect::Binder(release) => ProcessOptions { max_threads: 0, release, ..ProcessOptions::default() },
        Dialect::Hwbinder => ProcessOptions::hwbinder(),
    };
    Process::open(&AnyContext::parse(address), options).map_err(|error| error.to_string())
}

/// Finds a service of [`serve`] by the name that it has.
pub(super) fn find(process: &Process<AnyConnection>, dialect: Dialect, name: &str) -> Result<Callee, String> {
    match dialect {
        Dialect::Binder(_) => {
            let services = Services::of(process).map_err(|error| error.to_string())?;
            services.get(name).map(Callee::Binder).map_err(|error| format!("looking up {name}: {error}"))
        }
        Dialect::Hwbinder => {
            let services = hidl::Services::of(process).map_err(|error| error.to_string())?;
            let found = services.wait_for(HIDL, name, PATIENCE);
            found.map(Callee::Hwbinder).map_err(|error| error.to_string())
        }
    }
}

fn register(process: &Process<AnyConnection>, service: &Callee, name: &str) -> Result<(), String> {
    let result = match service {
        Callee::Binder(binder) => {
            let services = Services::wait(process, PATIENCE).map_err(|error| error.to_string())?;
            services.add(name, binder)
        }
        Callee::Hwbinder(binder) => {
            let services = hidl::Services::wait(process, PATIENCE).map_err(|error| error.to_string())?;
            services.add(name, &HwBinder::clone(binder))
        }
    };
    result.map_err(|error| format!("the service manager did not register {name}: {error}"))
}

/// Registers the service, says so, and serves on this thread until it is ended.
pub(super) fn serve(serving: &Serving) -> Result<(), String> {
    // Before the open: threads wait at the opener's nice (contract SCH-04). A refusal shows in what the
    // thread is seen to wait at.
    let _ = sys::sched::set_nice(0, serving.nice);
    let dialect = serving.dialect.parse()?;
    let process = open(&serving.address, dialect)?;
    let options = node(dialect, serving.inherit_rt, serving.least)?;
    let service = Callee::publish(&process, dialect, options);
    register(&process, &service, &serving.name)?;
    let mut stdout = io::stdout();
    writeln!(stdout, "{}", crate::stage::role::READY)
        .and_then(|()| stdout.flush())
        .map_err(|error| format!("telling that it serves: {}", sys::errno::describe(&error)))?;
    process.join_thread_pool().map_err(|error| error.to_string())
}

#[cfg(test)]
mod tests {
    use super::*;
    use driver::embedded::{EmbeddedContext, Inherit, Settings};
    use std::path::Path;

    #[test]
    fn only_servers_of_an_embedded_driver_can_drop_inheritance() {
        let fault = Question { servers_inherit: Some(Inherit::None), ..Question::usual(Dialect::Hwbinder) };
        let settings = Settings { inherit: Inherit::Rt, ..Settings::default() };
        let context = EmbeddedContext::at(Path::new("/x"), "hwbinder", settings);
        let dropping = address(&AnyContext::Embedded(context), &fault).expect("our own driver");
        let same = EmbeddedContext::parse(&dropping).expect("an address");
        assert_eq!(same.settings(), Settings { inherit: Inherit::None, ..settings });
        assert_eq!(address(&AnyContext::parse("/dev/hwbinder"), &fault), None);
        let usual = Question::usual(Dialect::Hwbinder);
        assert_eq!(address(&AnyContext::parse("/dev/hwbinder"), &usual).as_deref(), Some("/dev/hwbinder"));
    }
}
