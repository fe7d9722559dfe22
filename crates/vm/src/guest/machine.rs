//! Basic set-up of the guest: file systems, modules, waiting until the kernel is idle.
//! Not here: the driver's devices (`binder`).

use std::fs::File;
use std::io::ErrorKind;
use std::path::Path;
use std::time::Duration;

use sys::kernel::mount;

use crate::job::ModuleLoad;

/// Mounts: type, mount point, options, and whether the guest can do without.
const MOUNTS: &[(&str, &str, &str, bool)] = &[
    ("sysfs", "/sys", "", false),
    ("devtmpfs", "/dev", "mode=0755", false),
    ("devpts", "/dev/pts", "", true),
    ("tmpfs", "/dev/shm", "mode=1777", true),
    ("tmpfs", "/tmp", "mode=1777", true),
    ("tmpfs", "/run", "mode=0755", true),
    ("debugfs", "/sys/kernel/debug", "", true),
    ("tracefs", "/sys/kernel/tracing", "", true),
    ("cgroup2", "/sys/fs/cgroup", "", true),
];

/// Mounts `/proc`, which the check for being a guest needs.
pub(super) fn mount_proc() -> std::io::Result<()> {
    std::fs::create_dir_all("/proc")?;
    mount("proc", Path::new("/proc"), "")
}

/// Mounts all file systems that programs expect.
pub(super) fn mount_all() -> Result<(), String> {
    for (kind, place, options, optional) in MOUNTS {
        let attempt = make_folder(Path::new(place)).and_then(|()| mount(kind, Path::new(place), options));
        match attempt {
            // The kernel may already have mounted devtmpfs.
            Err(error) if error.kind() == ErrorKind::ResourceBusy => {}
            Err(error) if !optional => {
                return Err(format!("mounting {kind} on {place}: {}", sys::errno::describe(&error)));
            }
            _ => {}
        }
    }
    Ok(())
}

/// Address to which QEMU's user network forwards by default.
const ADDRESS: std::net::Ipv4Addr = std::net::Ipv4Addr::new(10, 0, 2, 15);

/// Host name in the guest's records.
const HOST_NAME: &str = "guest";

/// Sets the host name. A failure is ignored: the name is then "(none)".
pub(super) fn take_name() {
    let _ = std::fs::write("/proc/sys/kernel/hostname", HOST_NAME);
}

/// Keeps the kernel's messages off the console, where they would tear the commands' lines. A failure is ignored: only
/// lines that a message tears are lost, and their readers see that.
pub(super) fn silence_the_kernel() {
    let _ = std::fs::write("/proc/sys/kernel/printk", "1");
}

/// Puts the network up: the loopback interface, and the card that QEMU's user network is behind.
pub(super) fn bring_up_network() -> Result<(), String> {
    let said = |name: &str, error: &std::io::Error| {
        format!("putting the network interface {name} up: {}", sys::errno::describe(error))
    };
    sys::interface::put_up("lo").map_err(|error| said("lo", &error))?;
    for _ in 0..LOOKS {
        let names = std::fs::read_dir("/sys/class/net").into_iter().flatten().flatten();
        let card = names.filter_map(|entry| entry.file_name().into_string().ok()).find(|name| name != "lo");
        if let Some(name) = card {
            return sys::interface::put_up_with(&name, ADDRESS).map_err(|error| said(&name, &error));
        }
        std::thread::sleep(LOOK);
    }
    Err("no network card appeared; the kernel needs CONFIG_VIRTIO_NET, built in or as a module (--modules DIR)".into())
}

fn make_folder(place: &Path) -> std::io::Result<()> {
    if place.is_dir() { Ok(()) } else { std::fs::create_dir_all(place) }
}

/// Loads the modules in this order.
pub(super) fn load_modules(modules: &[ModuleLoad]) -> Result<(), String> {
    let cmdline = std::fs::read_to_string("/proc/cmdline").unwrap_or_default();
    modules.iter().try_for_each(|module| {
        let parameters = with_given(&module.file, &module.parameters, &cmdline);
        let attempt = File::open(Path::new("/modules").join(&module.file))
            .and_then(|file| sys::kernel::load_module(&file, &parameters));
        match attempt {
            Err(error) if error.kind() != ErrorKind::AlreadyExists => Err(format!(
                "loading the module {}: {} (is it this very kernel's?)",
                module.file,
                sys::errno::describe(&error)
            )),
            _ => Ok(()),
        }
    })
}

/// A module's parameters with those on the kernel's command line (`MODULE.NAME=VALUE`), which `modprobe` would add.
fn with_given(file: &str, own: &str, cmdline: &str) -> String {
    let name = file.strip_suffix(".ko").unwrap_or(file);
    let given = cmdline.split_whitespace().filter_map(|word| word.strip_prefix(name)?.strip_prefix('.'));
    std::iter::once(own).filter(|own| !own.is_empty()).chain(given).collect::<Vec<_>>().join(" ")
}

/// `uname -r`.
pub(super) fn release() -> String {
    std::fs::read_to_string("/proc/sys/kernel/osrelease").unwrap_or_default().trim().to_owned()
}

/// Time since boot; `None` without `/proc`.
pub(super) fn uptime() -> Option<Duration> {
    up_and_idle().map(|(up, _)| up)
}

/// Time since boot, and idle time summed over all CPUs.
fn up_and_idle() -> Option<(Duration, Duration)> {
    let text = std::fs::read_to_string("/proc/uptime").ok()?;
    let mut words = text.split_whitespace().map(|word| word.parse().ok().map(Duration::from_secs_f64));
    Some((words.next()??, words.next()??))
}

/// Interval of the idle check and of the look for a network card.
const LOOK: Duration = Duration::from_millis(100);
/// Give up waiting for either after this time.
const LOOKS: u32 = 50;

/// Waits until the machine has been up for `until` and is idle. The kernel continues its start-up work (cipher
/// self-tests, probing) for seconds after it starts the first process, which would be counted as part of the
/// measurement.
pub(super) fn settle(until: Duration) {
    if let Some(rest) = uptime().and_then(|up| until.checked_sub(up)) {
        std::thread::sleep(rest);
    }
    let cpus = std::thread::available_parallelism().map_or(1, usize::from) as f64;
    for _ in 0..LOOKS {
        let Some(before) = up_and_idle() else { return };
        std::thread::sleep(LOOK);
        let Some(after) = up_and_idle() else { return };
        let idle = (after.1.saturating_sub(before.1)).as_secs_f64();
        let passed = (after.0.saturating_sub(before.0)).as_secs_f64();
        // The kernel's resolution is 10 ms, so one tick of ten is the best that can be observed.
        if idle >= 0.85 * passed * cpus {
            return;
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_modules_parameters_may_be_on_the_kernels_command_line() {
        let given = with_given("binder_linux.ko", "devices=binder", "quiet binder_linux.debug_mask=7 x.y=1");
        assert_eq!(given, "devices=binder debug_mask=7");
        assert_eq!(with_given("virtio.ko", "", "quiet binder_linux.debug_mask=7"), "");
    }
}
