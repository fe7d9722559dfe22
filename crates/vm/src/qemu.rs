//! The QEMU process: finding or installing it, arguments, start, end.
//! Not here: the guest's messages (`session`).

use std::io::Read;
use std::os::unix::fs::MetadataExt;
use std::os::unix::process::CommandExt;
use std::path::PathBuf;
use std::process::{Child, ChildStderr, ChildStdin, ChildStdout, Command, Stdio};

use record::HostClass;

use super::arch::{Arch, Facts};
use super::console::path_for_child;
use super::error::VmError;
use super::forward::Forward;
use super::job::PORT;

/// A guest's hardware.
#[derive(Debug)]
pub(super) struct Machine {
    pub(super) arch: Arch,
    pub(super) class: HostClass,
    /// See [`crate::Options::icount_shift`].
    pub(super) icount_shift: u8,
    pub(super) smp: u32,
    pub(super) memory_mib: u32,
    pub(super) kernel: PathBuf,
    pub(super) forward: Vec<Forward>,
    pub(super) cmdline: String,
}

/// Accelerator and CPU model of a class.
fn cpu_arguments(machine: &Machine, facts: &Facts) -> Vec<String> {
    let (accel, cpu) = match machine.class {
        HostClass::Kvm => ("kvm", "host"),
        HostClass::Icount => ("tcg,thread=single", facts.counted_cpu),
        _ => ("tcg,thread=multi", facts.emulated_cpu),
    };
    let mut list = vec!["-accel".to_owned(), accel.to_owned()];
    if machine.class == HostClass::Icount {
        list.extend(["-icount".to_owned(), format!("shift={},sleep=off", machine.icount_shift)]);
    }
    list.extend(["-cpu".to_owned(), cpu.to_owned()]);
    list
}

/// Doubles commas, which separate options in QEMU's arguments.
pub(super) fn escaped(value: &str) -> String {
    value.replace(',', ",,")
}

/// QEMU's arguments. Frames come out of its standard output.
fn arguments(machine: &Machine, initramfs: &str, console: &str, more: &[String]) -> Vec<String> {
    let facts = machine.arch.facts();
    let mut list: Vec<String> = ["-nodefaults", "-no-user-config", "-no-reboot", "-display", "none"]
        .into_iter()
        .chain(["-machine", facts.machine])
        .map(str::to_owned)
        .chain(cpu_arguments(machine, facts))
        .collect();
    let mut option = |name: &str, value: String| list.extend([name.to_owned(), value]);
    option("-smp", machine.smp.to_string());
    option("-m", machine.memory_mib.to_string());
    option("-chardev", format!("file,id=console,path={}", escaped(console)));
    option("-serial", "chardev:console".into());
    option("-chardev", "stdio,id=frames,signal=off".into());
    let ports = if more.is_empty() { 2 } else { 4 };
    option("-device", format!("virtio-serial-pci,max_ports={ports}"));
    option("-device", format!("virtserialport,chardev=frames,name={PORT}"));
    if !machine.forward.is_empty() {
        let rules: String = machine.forward.iter().map(|forward| format!(",{}", forward.rule())).collect();
        // Nothing of the outside but these ports.
        option("-netdev", format!("user,id=net,restrict=on{rules}"));
        option("-device", "virtio-net-pci,netdev=net,romfile=".into());
    }
    option("-kernel", machine.kernel.display().to_string());
    option("-initrd", initramfs.to_owned());
    option("-append", machine.cmdline.clone());
    list.extend_from_slice(more);
    list
}

/// A running QEMU, killed on drop and when this process ends.
#[derive(Debug)]
pub(super) struct Qemu {
    child: Child,
    /// Input of the guest's port; closing it would disconnect the port.
    pub(super) orders: Option<ChildStdin>,
    /// The guest's frames.
    pub(super) frames: Option<ChildStdout>,
    /// QEMU's own error output.
    pub(super) complaints: Option<ChildStderr>,
}

impl Qemu {
    /// Starts `program` with a machine on these files, and with these further arguments.
    pub(super) fn start(
        program: &PathBuf,
        machine: &Machine,
        initramfs: &std::fs::File,
        console: &std::fs::File,
        more: &[String],
    ) -> Result<Self, VmError> {
        let mut command = Command::new(program);
        command
            .args(arguments(machine, &path_for_child(initramfs), &path_for_child(console), more))
            // Ctrl-C must not reach QEMU: this process forwards it, so that the command can end in order.
            .process_group(0)
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .stderr(Stdio::piped());
        sys::child::die_with_parent(&mut command);
        let mut child = command.spawn().map_err(VmError::host(format!("starting {}", program.display())))?;
        let (orders, frames, complaints) = (child.stdin.take(), child.stdout.take(), child.stderr.take());
        Ok(Self { child, orders, frames, complaints })
    }

    /// Kills QEMU. May be called after its end.
    pub(super) fn kill(&mut self) {
        // Both fail only if the process has already ended.
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

impl Drop for Qemu {
    fn drop(&mut self) {
        self.kill();
    }
}

/// A program found in `PATH`.
pub(super) fn in_path(program: &str) -> Option<PathBuf> {
    std::env::split_paths(&std::env::var_os("PATH")?)
        .map(|folder| folder.join(program))
        .find(|path| path.is_file())
}

/// Whether this process may install packages.
fn is_root() -> bool {
    std::fs::metadata("/proc/self").is_ok_and(|meta| meta.uid() == 0)
}

/// Finds QEMU, or installs it with apt if this process has the rights.
///
/// # Errors
/// [`VmError::NoQemu`] with the package to install, and apt's error if it was tried.
pub(super) fn find(arch: Arch, progress: &mut dyn FnMut(&str)) -> Result<PathBuf, VmError> {
    let Facts { qemu, qemu_package, .. } = *arch.facts();
    if let Some(path) = in_path(qemu) {
        return Ok(path);
    }
    let missing = |remedy: String| VmError::NoQemu { program: qemu, remedy };
    let by_hand = format!("install it: apt-get install --no-install-recommends {}", qemu_package);
    if !is_root() || in_path("apt-get").is_none() {
        return Err(missing(by_hand));
    }
    progress(&format!("installing {}", qemu_package));
    // The package list may be missing or old; only the installation's error counts.
    let _ = apt_get(&["update"]);
    apt_get(&["install", "-y", "-o", "DPkg::Lock::Timeout=120", "--no-install-recommends", qemu_package])
        .map_err(|said| missing(format!("{by_hand} (tried just now, as root: {said})")))?;
    in_path(qemu).ok_or_else(|| missing(format!("{} is installed but does not bring it", qemu_package)))
}

/// Runs the system's apt-get; the error is its last message.
fn apt_get(arguments: &[&str]) -> Result<(), String> {
    let output = Command::new("apt-get")
        .args(arguments)
        .env("DEBIAN_FRONTEND", "noninteractive")
        .stdin(Stdio::null())
        .output()
        .map_err(|error| error.to_string())?;
    if output.status.success() { Ok(()) } else { Err(last_line(&output.stderr)) }
}

/// The last non-empty line of a tool's error output.
pub(super) fn last_line(bytes: &[u8]) -> String {
    let text = String::from_utf8_lossy(bytes);
    text.lines().rev().find(|line| !line.trim().is_empty()).unwrap_or("it said nothing").trim().to_owned()
}

/// Reads a stream of text in pieces.
pub(super) fn pieces(mut source: impl Read, mut take: impl FnMut(String)) {
    let mut buffer = [0u8; 4096];
    while let Ok(len @ 1..) = source.read(&mut buffer) {
        take(String::from_utf8_lossy(&buffer[..len]).into_owned());
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn machine(class: HostClass) -> Machine {
        Machine {
            arch: Arch::X86,
            class,
            icount_shift: 0,
            smp: 2,
            memory_mib: 512,
            kernel: "/k,1".into(),
            cmdline: "quiet".into(),
            forward: Vec::new(),
        }
    }

    #[test]
    fn each_class_has_its_accelerator() {
        for (class, want) in [
            (HostClass::Kvm, "-accel kvm -cpu host -smp 2"),
            (HostClass::Tcg, "-accel tcg,thread=multi -cpu max -smp 2"),
            (
                HostClass::Icount,
                "-accel tcg,thread=single -icount shift=0,sleep=off -cpu max,-erms,-fsrm -smp 2",
            ),
        ] {
            let line = arguments(&machine(class), "/i", "/c,2", &[]).join(" ");
            assert!(line.contains(want), "{class:?}: {line}");
            assert!(line.contains("path=/c,,2 ") && line.contains("-kernel /k,1 "), "{line}");
        }
    }

    #[test]
    fn an_instruction_takes_as_long_as_asked_for() {
        let line = arguments(&Machine { icount_shift: 3, ..machine(HostClass::Icount) }, "/i", "/c", &[]);
        assert!(line.join(" ").contains("-icount shift=3,sleep=off"), "{line:?}");
    }

    #[test]
    fn an_arm64_guest_has_a_machine_of_its_own_and_a_clock_that_counts_each_instruction() {
        let line =
            arguments(&Machine { arch: Arch::Arm, ..machine(HostClass::Icount) }, "/i", "/c", &[]).join(" ");
        assert!(line.contains("-machine virt -accel tcg,thread=single -icount shift=0"), "{line}");
        assert!(line.contains("-cpu cortex-a76,cntfrq=1000000000 "), "{line}");
    }

    #[test]
    fn the_last_word_of_a_tool_is_found() {
        assert_eq!(last_line(b"a\nE: no network\n\n"), "E: no network");
        assert_eq!(last_line(b""), "it said nothing");
    }
}
