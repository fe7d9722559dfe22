//! `binderperf vm`: runs commands in a guest with a real kernel.
//! Not here: command-line options (`cli::vm`), what the command measures.
//!
//! The same binary is the guest's init ([`guest`]). The host builds its root file system (`initramfs`, `cpio`), finds
//! or fetches a kernel (`kernel`), and runs QEMU (`qemu`, `session`). Results come back over one virtio port
//! (`frame`).
#![forbid(unsafe_code)]

mod accel;
mod added;
mod arch;
pub mod build;
mod console;
mod cpio;
mod elf;
mod error;
mod export;
mod forward;
mod frame;
pub mod guest;
mod initramfs;
mod job;
pub mod kernel;
mod profiler;
mod program;
mod qemu;
pub mod script;
mod session;
mod time_limit;
mod tree;

use std::collections::BTreeMap;
use std::io::Write;
use std::path::{Path, PathBuf};
use std::time::Duration;

pub use accel::Accel;
pub use added::Added;
pub use arch::Arch;
pub use error::VmError;
pub use export::{Exported, export};
pub use forward::Forward;
pub use frame::Status;
pub use host::{CLASS_VARIABLE, KERNEL_VARIABLE};
pub use session::Sinks;
pub use time_limit::{TimeLimit, USUAL_LIMIT};

use initramfs::Contents;
use job::{Job, ModuleLoad};
use kernel::Kernel;
pub use kernel::may_boot;
use qemu::Machine;
use record::HostClass;
use session::{Attempt, Boot, Report};
use tree::Tree;

/// Uptime before a counted command starts. Processes that measured during the first second gave different counts.
const COUNTED_SETTLE: Duration = Duration::from_secs(2);

/// Attempts to boot when the emulator is at fault.
const BOOTS: u32 = 3;

/// What to run, and on which guest.
#[derive(Clone, Debug)]
pub struct Options {
    /// This binary: the guest's init, or what the init of another architecture is looked for beside.
    pub binary: PathBuf,
    /// The guest's init, if it is another file: this program, statically linked, for the guest's architecture.
    pub init: Option<PathBuf>,
    /// The kernel.
    pub kernel: kernel::Choice,
    /// Another program to run instead of this binary.
    pub exec: Option<PathBuf>,
    /// Arguments of the program, without its name, for each time that it runs.
    pub commands: Vec<Vec<String>>,
    /// Whether the list goes on after a command that fails. It always does after a verdict that failed (status 1).
    pub keep_going: bool,
    /// Further names of this binary in the guest's `PATH`.
    pub names: Vec<String>,
    /// A file tree that is the guest's root: a folder or a tar archive. `exec` is then a program in it.
    pub root: Option<PathBuf>,
    /// Files and folders of the host that the guest has too.
    pub added: Vec<Added>,
    /// Ports of this machine that lead to the guest.
    pub forward: Vec<Forward>,
    /// Environment of the command, in addition to `PATH`, `HOME`, `TMPDIR`, [`CLASS_VARIABLE`] and
    /// [`KERNEL_VARIABLE`].
    pub env: BTreeMap<String, String>,
    /// Number of CPUs; `None`: the host's, at most four. Instruction counting uses one.
    pub smp: Option<u32>,
    /// Memory in MiB.
    pub memory_mib: u32,
    /// Additions to the kernel command line.
    pub append: Vec<String>,
    /// Time limit of the command, and of the boot before it.
    pub limit: TimeLimit,
    /// Count instructions instead of measuring time.
    pub icount: bool,
    /// With `icount`: an instruction takes 2 to this power nanoseconds of the guest's clock.
    pub icount_shift: u8,
    /// Count the instructions of each case by function; requires `icount`.
    pub profile: bool,
    /// Accelerator.
    pub accel: Accel,
    /// File for the whole console output; `None`: only its end, in errors.
    pub klog: Option<PathBuf>,
}

impl Options {
    /// Defaults: the newest available kernel, this machine's CPUs, 1 GiB, [`USUAL_LIMIT`].
    #[must_use]
    pub fn new(binary: PathBuf, args: Vec<String>) -> Self {
        Self {
            binary,
            init: None,
            kernel: kernel::Choice::default(),
            exec: None,
            commands: vec![args],
            keep_going: false,
            names: Vec::new(),
            root: None,
            added: Vec::new(),
            forward: Vec::new(),
            env: BTreeMap::new(),
            smp: None,
            memory_mib: 1024,
            append: Vec::new(),
            limit: USUAL_LIMIT,
            icount: false,
            icount_shift: 0,
            profile: false,
            accel: Accel::Auto,
            klog: None,
        }
    }
}

/// Commands that ran to their end in a guest.
#[derive(Clone, Debug)]
pub struct Outcome {
    /// How the first command ended that failed, or success.
    pub status: Status,
    /// Class of the guest's CPUs.
    pub class: HostClass,
    /// The guest's `uname -r`.
    pub release: String,
    /// Time from QEMU's start to the command's start.
    pub boot: Duration,
    /// The returned files, as host paths.
    pub files: Vec<PathBuf>,
    /// Names that were not taken, each quoted and with the reason.
    pub refused: Vec<String>,
    /// The profile of each case, or why there is none.
    pub profiles: Vec<Result<profile::Profile, String>>,
}

/// Boots a guest, runs the commands, and returns after QEMU has ended. QEMU dies with the calling thread. While QEMU
/// runs, SIGINT and SIGTERM ask the command to stop, so that its results still come back.
///
/// # Errors
/// [`VmError`]: every failure except the command's own.
pub fn run(options: &Options, sinks: &mut Sinks<'_>) -> Result<Outcome, VmError> {
    let prepared = Prepared::of(options, sinks.progress)?;
    let kernel = &prepared.kernel;
    let program = qemu::find(kernel.arch, sinks.progress)?;
    let initramfs = console::nameless_file("the guest's root filesystem")?;
    prepared.write_initramfs(options, &job_of(options, kernel, sinks.place.is_some())?, &initramfs)?;
    let boot = Boot {
        program: &program,
        initramfs: &initramfs,
        klog: options.klog.as_deref(),
        limit: options.limit,
        profile: options.profile,
    };
    sys::stop_signal::catch().map_err(VmError::host("preparing for signals"))?;
    let mut class = options.accel.first_class(options.icount, kernel.arch);
    let mut boots_left = BOOTS;
    loop {
        boots_left -= 1;
        (sinks.progress)(&format!("booting {} ({})", kernel.release, class.name()));
        match session::run(&machine_of(options, kernel, class), &boot, sinks)? {
            Attempt::Ran(Report { status, release, boot, files, refused, profiles }) => {
                return Ok(Outcome { status, class, release, boot, files, refused, profiles });
            }
            Attempt::KvmBroke(said) if options.accel == Accel::Kvm => return Err(VmError::Kvm(said)),
            Attempt::KvmBroke(_) => class = HostClass::Tcg,
            Attempt::EmulatorSlipped(error) if boots_left == 0 => return Err(error),
            Attempt::EmulatorSlipped(_) => {}
        }
    }
}

/// A guest's kernel and the file of this program for it.
struct Prepared {
    kernel: Kernel,
    binary: PathBuf,
    root: Option<Tree>,
}

impl Prepared {
    /// Finds both, and checks that the guest's CPUs can run what it gets.
    fn of(options: &Options, progress: &mut dyn FnMut(&str)) -> Result<Self, VmError> {
        let mut kernel = kernel::resolve(&options.kernel, progress)?;
        if options.forward.is_empty() {
            kernel.modules.retain(|module| !module.is_of_network());
        }
        let binary = match &options.init {
            Some(init) => init.clone(),
            None => program::of(&options.binary, kernel.arch)?,
        };
        let root = options.root.as_deref().map(|given| Tree::of(given, options.memory_mib)).transpose()?;
        elf::check_program(&binary, kernel.arch)?;
        match (&options.exec, &root) {
            (Some(file), None) => elf::check_program(file, kernel.arch)?,
            (Some(file), Some(tree)) if file.is_absolute() && !tree.has(&initramfs::below_root(file)) => {
                let why = "the tree of --root has no such file".to_owned();
                return Err(VmError::BadProgram { path: file.clone(), why });
            }
            _ => {}
        }
        Ok(Self { kernel, binary, root })
    }

    /// Writes the guest's root file system.
    fn write_initramfs(&self, options: &Options, job: &Job, sink: impl Write) -> Result<(), VmError> {
        // In a tree, the program is there.
        let programs: Vec<&Path> =
            options.exec.iter().filter(|_| self.root.is_none()).map(PathBuf::as_path).collect();
        let config = self.kernel.config();
        let contents = Contents {
            binary: &self.binary,
            programs: &programs,
            names: &options.names,
            root: self.root.as_ref(),
            added: &options.added,
            modules: &self.kernel.modules,
            config: config.as_deref().map(|path| (self.kernel.release.as_str(), path)),
            job,
        };
        initramfs::write(&contents, sink)
    }
}

/// Parameters that a kernel needs that checks itself, and behind them the user's own words, which go before.
fn appended(options: &Options, kernel: &Kernel) -> Vec<String> {
    kernel.stops().into_iter().chain(options.append.iter().cloned()).collect()
}

/// The guest's hardware and command line.
fn machine_of(options: &Options, kernel: &Kernel, class: HostClass) -> Machine {
    let here = std::thread::available_parallelism().map_or(1, |count| count.get().min(4) as u32);
    Machine {
        arch: kernel.arch,
        class,
        icount_shift: options.icount_shift,
        smp: options.smp.unwrap_or(if class == HostClass::Icount { 1 } else { here }),
        memory_mib: options.memory_mib,
        kernel: kernel.image.clone(),
        forward: options.forward.clone(),
        cmdline: job::cmdline(kernel.arch, class, options.klog.is_some(), &appended(options, kernel)),
    }
}

/// Where a tree has its programs, behind this program's own in `PATH`.
const OF_A_TREE: &str = ":/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin";

/// The guest's instructions.
fn job_of(options: &Options, kernel: &Kernel, files: bool) -> Result<Job, VmError> {
    let folder = initramfs::folder(options.root.is_some());
    let program = match &options.exec {
        Some(path) if options.root.is_some() => path.display().to_string(),
        Some(path) => format!("/{folder}/{}", initramfs::guest_name(path)?),
        None => format!("/{folder}/binderperf"),
    };
    let others = if options.root.is_some() { OF_A_TREE } else { "" };
    let path = format!("/{folder}{others}");
    let mut env: BTreeMap<String, String> = [("PATH", path.as_str()), ("HOME", "/root"), ("TMPDIR", "/tmp")]
        .map(|(k, v)| (k.to_owned(), v.to_owned()))
        .into();
    // Not where instructions count: the same boot has the same bytes.
    if !options.icount {
        env.insert(sys::patience::HOST_VARIABLE.to_owned(), format!("{:.0}", sys::patience::demand()));
    }
    env.extend(options.env.clone());
    let words = options.kernel.words();
    if !words.is_empty() {
        env.insert(KERNEL_VARIABLE.to_owned(), words.join("\n"));
    }
    Ok(Job {
        program,
        commands: options.commands.clone(),
        keep_going: options.keep_going,
        env,
        modules: kernel
            .modules
            .iter()
            .map(|module| ModuleLoad { file: module.file_name(), parameters: module.parameters().to_owned() })
            .collect(),
        settle_ms: if options.icount { COUNTED_SETTLE.as_millis() as u64 } else { 0 },
        files,
        network: !options.forward.is_empty(),
        console: false,
    })
}
