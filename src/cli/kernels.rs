//! The commands `vm build-kernel` and `vm kernels`, and what they share with `vm build-driver`.
//! Not here: that one (`module`), building, the cache (`vm::build`), booting (`vm`).

mod module;

use std::path::PathBuf;

use clap::{Args, Subcommand};
use console::building::{built, copied};
use vm::Arch;
use vm::build::{Check, Driver, Preempt, Setting, Tools, Wanted, clean, kept, remove, table};

use module::DriverModuleArgs;

use super::{CommandResult, OrExit, choice, exit, note, say};

/// Commands about the kernels that guests boot.
#[derive(Clone, Debug, Subcommand)]
pub(super) enum KernelCommand {
    BuildKernel(Box<BuildArgs>),
    BuildDriver(DriverModuleArgs),
    Kernels(KernelsArgs),
}

/// Build a small kernel with a Binder driver from Debian's source or your own tree
///
/// Everything a guest needs is built in. The kernel is kept in the cache under a name that says what it is, and boots
/// with `vm --kernel built:NAME` or `run --vm=built:NAME`. The source is never changed: make writes elsewhere, and
/// patches are applied to a copy. A second kernel of the same source, driver and architecture compiles only what
/// differs.
#[derive(Clone, Debug, Args)]
pub(super) struct BuildArgs {
    /// Linux's source: debian (the newest package), debian:VERSION, a folder, or an archive
    #[arg(long, value_name = "X", default_value = "debian", value_hint = clap::ValueHint::AnyPath)]
    source: String,

    #[command(flatten)]
    kind: KindArgs,

    /// Also copy the image to FILE
    #[arg(long, value_name = "FILE", value_hint = clap::ValueHint::FilePath)]
    out: Option<PathBuf>,

    /// Look for a newer version of Debian's source, and build even what is in the cache
    #[arg(long)]
    refresh: bool,
}

/// The kind of kernel that is built of a source.
#[derive(Clone, Debug, Args)]
pub(super) struct KindArgs {
    /// Binder driver that is built in
    #[arg(help_heading = "Kernel", long, value_name = "WHICH", default_value = "c", value_parser = choice::of(Driver::ALL.iter().copied()))]
    driver: Driver,

    /// Preemption [default: full, unless --set says otherwise]
    #[arg(help_heading = "Kernel", long, value_name = "MODEL", value_parser = choice::of(Preempt::ALL.iter().copied()))]
    preempt: Option<Preempt>,

    /// The kernel's checks of itself, separated by commas
    #[arg(help_heading = "Kernel", long, value_name = "CHECKS", value_delimiter = ',', value_parser = choice::of(Check::ALL.iter().copied()))]
    debug: Vec<Check>,

    /// An option of Kconfig, which goes before all others; may be repeated
    #[arg(help_heading = "Kernel", long, value_name = "CONFIG_X=y")]
    set: Vec<Setting>,

    /// A patch, applied to a copy of the source (as patch -p1); may be repeated
    #[arg(help_heading = "Kernel", long, value_name = "FILE", value_hint = clap::ValueHint::FilePath)]
    pub(super) patch: Vec<PathBuf>,

    /// Architecture [default: this machine's]
    #[arg(help_heading = "Kernel", long, value_name = "ARCH", value_parser = choice::of(Arch::ALL))]
    arch: Option<Arch>,

    /// Who builds: this machine's programs, Debian's in a file tree that is thrown away, or auto: Debian's where this
    /// machine's do not suffice
    #[arg(help_heading = "Build", long, value_name = "WHOSE", default_value = "auto", value_parser = choice::of(Tools::ALL.iter().copied()))]
    tools: Tools,

    /// Programs that run at the same time [default: one for each CPU]
    #[arg(help_heading = "Build", long, short, value_name = "N", value_parser = clap::value_parser!(u16).range(1..=4096))]
    jobs: Option<u16>,
}

/// List the kernels in the cache, or remove some
#[derive(Clone, Debug, Args)]
pub(super) struct KernelsArgs {
    /// Remove a kernel, fetched or built; may be repeated
    #[arg(long, value_name = "NAME")]
    remove: Vec<String>,

    /// Remove sources and objects of all builds; kernels stay
    #[arg(long)]
    clean: bool,
}

impl KernelCommand {
    pub(super) fn run(self) -> CommandResult {
        match self {
            Self::BuildKernel(args) => args.run(),
            Self::BuildDriver(args) => args.run(),
            Self::Kernels(args) => args.run(),
        }
    }
}

impl KindArgs {
    /// The options that were given, for a command that takes them in one case only.
    pub(super) fn given(&self) -> Vec<&'static str> {
        let all = [
            ("--driver", self.driver != Driver::C),
            ("--preempt", self.preempt.is_some()),
            ("--debug", !self.debug.is_empty()),
            ("--set", !self.set.is_empty()),
            ("--patch", !self.patch.is_empty()),
            ("--arch", self.arch.is_some()),
            ("--tools", self.tools != Tools::Auto),
            ("--jobs", self.jobs.is_some()),
        ];
        all.into_iter().filter(|(_, is_given)| *is_given).map(|(name, _)| name).collect()
    }

    /// The kernel of this kind from a source.
    pub(super) fn of(&self, source: &str, refresh: bool) -> Wanted {
        let usual = Wanted::usual(source);
        Wanted {
            driver: self.driver,
            preempt: self.preempt,
            checks: self.debug.clone(),
            settings: self.set.clone(),
            patches: self.patch.clone(),
            arch: self.arch.unwrap_or(usual.arch),
            tools: self.tools,
            jobs: self.jobs.map_or(usual.jobs, usize::from),
            refresh,
            ..usual
        }
    }
}

impl BuildArgs {
    fn run(&self) -> CommandResult {
        let wanted = self.kind.of(&self.source, self.refresh);
        let built = built(&wanted)?;
        let shown = built.image.display();
        match built.took {
            Some(took) => {
                let seconds = took.as_secs();
                note(format_args!(
                    "{}: built in {} min {} s: {shown}\n",
                    built.name,
                    seconds / 60,
                    seconds % 60
                ));
            }
            None => note(format_args!("{}: in the cache: {shown}\n", built.name)),
        }
        if let Some(out) = &self.out {
            copied(&built.image, out)?;
        }
        say(&format!("built:{}\n", built.name))
    }
}

impl KernelsArgs {
    fn run(&self) -> CommandResult {
        for name in &self.remove {
            remove(name)?;
        }
        if self.clean {
            let bytes = clean()?;
            note(format_args!("removed {:.1} GB\n", bytes as f64 / 1e9));
        }
        if self.clean || !self.remove.is_empty() {
            return Ok(exit::FINE);
        }
        let all = kept().or_exit(exit::UNABLE)?;
        if all.is_empty() {
            note(
                "no kernel is in the cache; `binderperf vm` fetches one, `binderperf vm build-kernel` builds one\n",
            );
        }
        say(&table(&all))
    }
}
