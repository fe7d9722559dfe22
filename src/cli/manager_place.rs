//! Options that name the context of a service manager, shared by the commands that are one or ask one.
//! Not here: options of the tests (`driver`).

use std::path::PathBuf;

use backend::AnyContext;
use bench::plan::{Device, Driver, Settings, Wanted};
use clap::{Args, ValueHint};

use super::driver::{DRIVERS, asked_for};
use super::{Failure, OrExit, choice, exit};

/// The context of a service manager.
#[derive(Clone, Debug, Args)]
pub(super) struct PlaceArgs {
    /// The kernel's driver, the embedded one in user space, or auto: the kernel's if usable; under shim its own context
    /// [default: $BINDERPERF_DRIVER, else auto]
    #[arg(long, help_heading = "Driver", value_name = "DRIVER", value_parser = choice::of(DRIVERS))]
    driver: Option<Driver>,

    /// Binder context: a name (binder, hwbinder, ...), or the path of a kernel's device [default: binder; hwbinder with --hw]
    #[arg(long, help_heading = "Driver", value_name = "DEVICE")]
    device: Option<Device>,

    /// Embedded driver: the directory that its processes share [default: that of shim, under which it runs, else the user's]
    #[arg(long, help_heading = "Driver", value_name = "DIR", value_hint = ValueHint::DirPath)]
    context_dir: Option<PathBuf>,
}

impl PlaceArgs {
    /// The context of a manager of this flavour.
    pub(super) fn context(&self, hw: bool) -> Result<AnyContext, Failure> {
        let flavour = if hw { "hwbinder" } else { "binder" };
        let device = self.device.clone().unwrap_or_else(|| Device::Named(flavour.to_owned()));
        let driver = asked_for(self.driver).or_exit(exit::USAGE)?;
        if driver == Driver::Kernel && self.context_dir.is_some() {
            let why = "--context-dir is a setting of the embedded driver, and --driver is kernel";
            return Err(Failure::new(exit::USAGE, why));
        }
        let mut wanted =
            Wanted { driver, device, context_dir: self.context_dir.clone(), settings: Settings::default() };
        let is_open = self.context_dir.is_none() && driver != Driver::Kernel;
        if let Some(own) =
            backend::shim::own().filter(|_| is_open && !matches!(wanted.device, Device::Path(_)))
        {
            wanted.context_dir = Some(own.directory().to_owned());
            wanted.settings = own.settings();
        }
        Ok(backend::locate::find(&wanted, flavour).or_exit(exit::UNABLE)?.context)
    }
}
