//! A description of the guest as its command sees it, for users and tests.
//! Not here: the doctor, which judges a machine.

use std::io;
use std::path::Path;

use serde::Serialize;

use super::{binder, machine, marked};
use host::CLASS_VARIABLE;

/// Description of a guest.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct Probe {
    /// `uname -r`.
    pub release: String,
    /// Class of the guest's CPUs: `kvm`, `tcg`, `icount`; `None` outside a guest.
    pub host_class: Option<String>,
    /// CPUs that are online.
    pub cpus: usize,
    /// Binder devices in `/dev`.
    pub devices: Vec<String>,
    /// Whether binderfs is mounted where Android mounts it.
    pub binderfs: bool,
    /// The clock that `clock_gettime` reads.
    pub clocksource: Option<String>,
    /// Seconds since boot.
    pub uptime_s: Option<f64>,
}

impl Probe {
    /// One line of JSON.
    #[must_use]
    pub fn to_json(&self) -> String {
        // Cannot fail: strings, numbers and lists only.
        serde_json::to_string(self).unwrap_or_default()
    }
}

/// Collects the description.
#[must_use]
pub fn look() -> Probe {
    let read = |path: &str| std::fs::read_to_string(path).ok().map(|text| text.trim().to_owned());
    let exists = |name: &&&str| Path::new("/dev").join(name).exists();
    Probe {
        release: machine::release(),
        host_class: std::env::var(CLASS_VARIABLE).ok(),
        cpus: std::thread::available_parallelism().map_or(1, usize::from),
        devices: binder::DEVICES.iter().filter(exists).map(|name| (*name).to_owned()).collect(),
        binderfs: Path::new("/dev/binderfs/binder-control").exists(),
        clocksource: read("/sys/devices/system/clocksource/clocksource0/current_clocksource"),
        uptime_s: machine::uptime().map(|up| up.as_secs_f64()),
    }
}

/// Makes the guest's kernel panic, to test how the host handles it.
///
/// # Errors
/// `PermissionDenied` outside a guest that `binderperf vm` booted.
pub fn panic_the_kernel() -> io::Result<()> {
    if !marked() {
        return Err(io::Error::new(
            io::ErrorKind::PermissionDenied,
            "only a guest of 'binderperf vm' may be panicked",
        ));
    }
    let trigger = "/proc/sysrq-trigger";
    std::fs::write(trigger, "c").map_err(|error| {
        let text =
            format!("writing {trigger} (it needs CONFIG_MAGIC_SYSRQ): {}", sys::errno::describe(&error));
        io::Error::new(error.kind(), text)
    })
}
