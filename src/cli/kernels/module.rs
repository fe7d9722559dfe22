//! The command `vm build-driver`, and kernels with another driver as `matrix` takes them.
//! Not here: building the module (`vm::build`), booting it (`vm`).

use std::path::{Path, PathBuf};

use clap::Args;
use vm::build::{BuildError, BuiltModule, WantedModule, build_module};

use super::{copied, telling};
use crate::cli::{CommandResult, Failure, note, say};

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

/// Builds the driver as a module; says on standard error what it does.
pub(crate) fn built_module(wanted: &WantedModule) -> Result<BuiltModule, BuildError> {
    telling(|tell| build_module(wanted, tell))
}

impl DriverModuleArgs {
    pub(super) fn run(self) -> CommandResult {
        let wanted = WantedModule {
            kernel: self.kernel,
            source: self.source,
            patches: self.patch,
            refresh: self.refresh,
        };
        let built = built_module(&wanted).map_err(|error| Failure::new(error.exit_code(), error))?;
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

/// A kernel with another driver than its own.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct OnDriver {
    /// The kernel, as `vm --kernel` takes it.
    pub(crate) kernel: String,
    driver: Origin,
}

/// Source of the driver.
#[derive(Clone, Debug, PartialEq, Eq)]
enum Origin {
    /// A module's file.
    Module(PathBuf),
    /// The source of the kernel's version, with this patch.
    Patch(PathBuf),
    /// A source of the user's.
    Source(PathBuf),
    /// The source of the kernel's version.
    Own,
}

impl OnDriver {
    /// Reads KERNEL+DRIVER; `None`: the word names a kernel alone. Releases of Debian's have a plus too.
    pub(crate) fn parse(word: &str) -> Option<Self> {
        let (kernel, driver) = word.rsplit_once('+')?;
        let path = Path::new(driver);
        let ends = |endings: &[&str]| {
            path.extension().is_some_and(|ending| endings.iter().any(|one| ending == *one))
        };
        let driver = match () {
            () if driver == "driver" => Origin::Own,
            () if ends(&["ko", "xz", "zst"]) => Origin::Module(path.to_owned()),
            () if ends(&["patch", "diff"]) => Origin::Patch(path.to_owned()),
            () if path.is_dir() => Origin::Source(path.to_owned()),
            () => return None,
        };
        (!kernel.is_empty()).then(|| Self { kernel: kernel.to_owned(), driver })
    }

    /// The driver's module, which is built unless it is one.
    ///
    /// # Errors
    /// [`BuildError`].
    pub(crate) fn module(self) -> Result<PathBuf, BuildError> {
        let mut wanted =
            WantedModule { kernel: Some(self.kernel), source: None, patches: Vec::new(), refresh: false };
        match self.driver {
            Origin::Module(file) => return Ok(file),
            Origin::Patch(file) => wanted.patches.push(file),
            Origin::Source(folder) => wanted.source = Some(folder),
            Origin::Own => {}
        }
        Ok(built_module(&wanted)?.file)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_plus_names_a_driver_and_a_release_has_one_too() {
        let of = |kernel: &str, driver| Some(OnDriver { kernel: kernel.to_owned(), driver });
        assert_eq!(OnDriver::parse("7.2+a/fix.patch"), of("7.2", Origin::Patch("a/fix.patch".into())));
        assert_eq!(OnDriver::parse("7.2+b.ko"), of("7.2", Origin::Module("b.ko".into())));
        assert_eq!(OnDriver::parse("7.2+."), of("7.2", Origin::Source(".".into())));
        assert_eq!(OnDriver::parse("7.2.13+deb14-amd64+driver"), of("7.2.13+deb14-amd64", Origin::Own));
        for plain in ["7.2", "7.2.13+deb14-amd64", "/boot/vmlinuz-7.2.13+deb14-amd64", "+a.ko"] {
            assert_eq!(OnDriver::parse(plain), None, "{plain}");
        }
    }
}
