//! Tests of the doctor's findings on systems from the field (`field/`).

use std::fs;
use std::path::{Path, PathBuf};

use ::driver::root::Fixture;
use record::checkup::{Check, Verdict};

use crate::{Snapshot, catalogue};

fn folder(name: &str) -> PathBuf {
    PathBuf::from(env!("CARGO_MANIFEST_DIR")).join("src/tests/field").join(name)
}

fn look(place: &Path, id: &str) -> Check {
    let (_, probe) = catalogue().find(|(_, probe)| probe.id == id).expect("a probe");
    probe.look(&Snapshot::open(place).expect("a snapshot"))
}

#[test]
fn advice_fits_who_makes_the_kernel() {
    for (system, want, not) in [
        ("wsl", ".wslconfig", "linux-image"),
        ("crostini", "Crostini", "linux-image"),
        ("rockchip", "vendor", "linux-image"),
        ("asahi", "Asahi Linux", "Fedora's own"),
        // Ubuntu packages the modules of this vendor's kernel.
        ("raspi", "apt install linux-modules-extra-5.19.0-1012-raspi", "linux-image-generic"),
        ("arch", "pacman -S linux", "vendor"),
        ("popos", "linux-image-generic", "vendor"),
        ("pve", "mount -t binder", "vendor"),
        ("solus", "boot a kernel with CONFIG_ANDROID_BINDER_IPC", "vendor"),
    ] {
        let check = look(&folder(system), "driver-missing");
        let fix = check.fix.clone().unwrap_or_default();
        assert!(check.verdict > Verdict::Unknown, "{system}: {check:?}");
        assert!(fix.contains(want) && !fix.contains(not), "{system}: {fix}");
        let goes_on = fix.contains("binderperf vm") && fix.contains("--driver embedded");
        assert!(goes_on || system == "pve", "{system}: {fix}");
    }
}

/// The driver's stats in its own folder, and the same text as a snapshot made by hand has it.
#[test]
fn an_old_drivers_stats_are_read_in_both_places() {
    let by_hand = Fixture::new("doctor-field", &[]);
    for file in ["proc/version", "sys/kernel/debug/binder/stats"] {
        let name = if file.ends_with("stats") { "binder-stats.txt" } else { file };
        by_hand.put(name, fs::read(folder("snap2").join(file)).expect("readable"));
    }
    for place in [folder("snap2").as_path(), by_hand.path()] {
        let threads = look(place, "binder-threads");
        let says = &threads.evidence[0].says;
        assert_eq!(threads.verdict, Verdict::Warning, "{threads:?}");
        assert!(threads.text.contains("4271") && !threads.text.contains("6019"), "{}", threads.text);
        assert!(says.contains("15 of 15 threads started, 0 ready"), "{says}");
        let buffers = look(place, "binder-buffers");
        assert_eq!(buffers.verdict, Verdict::Warning, "{buffers:?}");
        assert!(buffers.text.contains("6019") && !buffers.text.contains("6127"), "{}", buffers.text);
        assert!(buffers.evidence[0].says.contains("2024 B free"), "{buffers:?}");
    }
}
