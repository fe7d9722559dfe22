//! The command `vm build-driver`.
//! Not here: building the module (`vm::build`), booting it (`vm`).

use std::path::PathBuf;

use clap::Args;
use console::building::{built_module, copied};
use vm::build::WantedModule;

use crate::cli::{CommandResult, note, say};

/// Build only the C driver, as a module for a kernel of Debian's, with binderfs: a minute for a patch
///
/// The kernel's headers and the source of its version are fetched once. The last line of the output is the module's file,
/// which boots with `vm --kernel NAME --driver-module FILE`. The same source and patches are compiled once; after a build
/// that was stopped the next one goes on.
#[derive(Clone, Debug, Args)]
pub(in crate::cli) struct DriverModuleArgs {
    /// The kernel: a name as for vm --kernel, of one for this machine's architecture [default: the newest]
    #[arg(long, value_name = "NAME")]
    kernel: Option<String>,

    /// A kernel's tree, or the drivers/android in one [default: the source of the kernel's own version]
    #[arg(long, value_name = "DIR", value_hint = clap::ValueHint::DirPath)]
    source: Option<PathBuf>,

    /// A patch, applied to a copy (as patch -p1 in a kernel's tree); may be repeated
    #[arg(long, value_name = "FILE", value_hint = clap::ValueHint::FilePath)]
    patch: Vec<PathBuf>,

    /// Also copy the module to FILE
    #[arg(long, value_name = "FILE", value_hint = clap::ValueHint::FilePath)]
    out: Option<PathBuf>,

    /// Compile even what was compiled before
    #[arg(long)]
    refresh: bool,
}

impl DriverModuleArgs {
    pub(super) fn run(self) -> CommandResult {
        let wanted = WantedModule {
            kernel: self.kernel,
            source: self.source,
            patches: self.patch,
            refresh: self.refresh,
        };
        let built = built_module(&wanted)?;
        let release = &built.release;
        match built.took {
            Some(took) => note(format_args!("the driver for {release}: built in {} s\n", took.as_secs())),
            None => note(format_args!("the driver for {release}: built before\n")),
        }
        if let Some(out) = &self.out {
            copied(&built.file, out)?;
        }
        say(&format!("{}\n", built.file.display()))
    }
}
