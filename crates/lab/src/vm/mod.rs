//! Room: `binderperf vm`: a command run inside a real kernel that this binary boots.
//! Not here: typed words (`cli::vm`), what a command measures.
//!
//! The same binary is the guest's first process ([`guest`]). Its root filesystem is made here
//! (`initramfs`, `cpio`), its kernel is found or fetched (`kernel`), and QEMU runs it (`qemu`,
//! `session`). One virtio port carries everything back (`frame`).

mod accel;
mod arch;
mod console;
mod cpio;
mod elf;
mod error;
mod frame;
pub mod guest;
mod initramfs;
mod job;
pub mod kernel;
mod qemu;
mod returned;
mod session;

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::time::Duration;

pub use accel::Accel;
pub use error::VmError;
pub use frame::Status;
pub use job::{CLASS_VARIABLE, GUEST_MARK, HostClass};
pub use session::Sinks;

use initramfs::Contents;
use job::{Job, ModuleLoad};
use kernel::Kernel;
pub(crate) use kernel::may_boot;
use qemu::Machine;
use session::{Attempt, Boot, Report};

/// Uptime before a counted command starts: the kernel's start-up work must be over, and peers that
/// measured found the first second unlike all others.
const COUNTED_SETTLE: Duration = Duration::from_secs(2);

/// Boots tried when the emulator, and not the kernel, is at fault.
const BOOTS: u32 = 3;

/// What to run, on what.
#[derive(Clone, Debug)]
pub struct Options {
    /// This binary: the guest's first process. Must be linked statically.
    pub binary: PathBuf,
    /// Which kernel.
    pub kernel: kernel::Choice,
    /// Another program to run instead of this binary.
    pub exec: Option<PathBuf>,
    /// Arguments of the program, without its name.
    pub args: Vec<String>,
    /// Variables of the command besides `PATH`, `HOME`, `TMPDIR` and [`CLASS_VARIABLE`].
    pub env: BTreeMap<String, String>,
    /// Number of CPUs; `None`: as many as this machine has, up to four. Counting uses one.
    pub smp: Option<u32>,
    /// Memory in MiB.
    pub memory_mib: u32,
    /// Words added to the kernel's command line.
    pub append: Vec<String>,
    /// Longest time that the command may take, and that the boot before it may take.
    pub timeout: Duration,
    /// Count instructions instead of time.
    pub icount: bool,
    /// Accelerator.
    pub accel: Accel,
    /// Where the files that the command leaves in its folder go; `None`: nowhere.
    pub out: Option<PathBuf>,
    /// Where the whole console goes; `None`: only its end, in errors.
    pub klog: Option<PathBuf>,
}

impl Options {
    /// The newest kernel that can be had, this machine's CPUs, 1 GiB, 600 s.
    #[must_use]
    pub fn new(binary: PathBuf, args: Vec<String>) -> Self {
        Self {
            binary,
            kernel: kernel::Choice::default(),
            exec: None,
            args,
            env: BTreeMap::new(),
            smp: None,
            memory_mib: 1024,
            append: Vec::new(),
            timeout: Duration::from_secs(600),
            icount: false,
            accel: Accel::Auto,
            out: None,
            klog: None,
        }
    }
}

/// A command that ran to its end in a guest.
#[derive(Clone, Debug)]
pub struct Outcome {
    /// How the command ended.
    pub status: Status,
    /// What the guest's CPUs were.
    pub class: HostClass,
    /// The guest's `uname -r`.
    pub release: String,
    /// From QEMU's start to the command's start.
    pub boot: Duration,
    /// The files that came back, as paths on this machine.
    pub files: Vec<PathBuf>,
}

/// Boots a guest, runs the command, and returns when QEMU is gone again. QEMU is tied to the calling
/// thread: it ends when that ends, however that ends. Once QEMU starts, SIGINT and SIGTERM ask the
/// command to stop, so that its results still come back.
///
/// # Errors
/// [`VmError`]: everything but the command's own failure.
pub fn run(options: &Options, sinks: &mut Sinks<'_>) -> Result<Outcome, VmError> {
    [&options.binary].into_iter().chain(&options.exec).try_for_each(|program| elf::check_program(program))?;
    let program = qemu::find(sinks.progress)?;
    let kernel = kernel::resolve(&options.kernel, sinks.progress)?;
    let initramfs = console::nameless_file("the guest's root filesystem")?;
    let job = job_of(options, &kernel)?;
    let programs: Vec<&Path> = options.exec.iter().map(PathBuf::as_path).collect();
    let config = kernel.config();
    let contents = Contents {
        binary: &options.binary,
        programs: &programs,
        modules: &kernel.modules,
        config: config.as_deref().map(|path| (kernel.release.as_str(), path)),
        job: &job,
    };
    initramfs::write(&contents, &initramfs)?;
    let boot = Boot {
        program: &program,
        initramfs: &initramfs,
        klog: options.klog.as_deref(),
        timeout: options.timeout,
        out: options.out.as_deref(),
    };
    sys::stop_signal::catch().map_err(VmError::host("preparing for signals"))?;
    let mut class = options.accel.first_class(options.icount);
    let mut boots_left = BOOTS;
    loop {
        boots_left -= 1;
        (sinks.progress)(&format!("booting {} ({})", kernel.release, class.name()));
        match session::run(&machine_of(options, &kernel, class), &boot, sinks)? {
            Attempt::Ran(Report { status, release, boot, files }) => {
                return Ok(Outcome { status, class, release, boot, files });
            }
            Attempt::KvmBroke(said) if options.accel == Accel::Kvm => return Err(VmError::Kvm { said }),
            Attempt::KvmBroke(_) => class = HostClass::Tcg,
            Attempt::EmulatorSlipped(error) if boots_left == 0 => return Err(error),
            Attempt::EmulatorSlipped(_) => {}
        }
    }
}

/// The guest's hardware and command line.
fn machine_of(options: &Options, kernel: &Kernel, class: HostClass) -> Machine {
    let here = std::thread::available_parallelism().map_or(1, |count| count.get().min(4) as u32);
    Machine {
        class,
        smp: if class == HostClass::Icount { 1 } else { options.smp.unwrap_or(here) },
        memory_mib: options.memory_mib,
        kernel: kernel.image.clone(),
        cmdline: job::cmdline(class, options.klog.is_some(), &options.append),
    }
}

/// What the guest is asked to do.
fn job_of(options: &Options, kernel: &Kernel) -> Result<Job, VmError> {
    let program = match &options.exec {
        Some(path) => format!("/bin/{}", initramfs::guest_name(path)?),
        None => "/bin/binderperf".to_owned(),
    };
    let mut env: BTreeMap<String, String> = [("PATH", "/bin"), ("HOME", "/root"), ("TMPDIR", "/tmp")]
        .map(|(k, v)| (k.to_owned(), v.to_owned()))
        .into();
    env.extend(options.env.clone());
    Ok(Job {
        argv: [program].into_iter().chain(options.args.iter().cloned()).collect(),
        env,
        modules: kernel
            .modules
            .iter()
            .map(|module| ModuleLoad { file: module.file_name(), parameters: module.parameters().to_owned() })
            .collect(),
        settle_ms: if options.icount { COUNTED_SETTLE.as_millis() as u64 } else { 0 },
        files: options.out.is_some(),
    })
}
