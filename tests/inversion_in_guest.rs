//! Room: the priority-inversion experiment on a kernel's driver, in a guest that this boots.
//! Not here: the embedded driver (`inversion`).

mod support;

use record::{DriverKind, Sched, Setting};
use support::{Folder, binderperf, read};

/// Mainline's C driver takes the flag and hands no policy on, so the experiment must find the inversion.
#[test]
fn mainlines_driver_leaves_the_inversion() {
    let folder = Folder::new("guest-inversion");
    let out = folder.path("out");
    let words =
        ["inversion", "--driver=kernel", "-i", "40", "--rounds=2", "--expect=inversion", "--record=r.json"];
    let called = binderperf(&[&["vm", "--out", &out, "--"], &words[..]].concat());
    assert_eq!(called.code, Some(0), "{}\n{}", called.stdout, called.stderr);
    assert!(called.stdout.contains("mainline's C driver passes on nice only"), "{}", called.stdout);
    let run = read(&format!("{out}/r.json"));
    assert_eq!(run.driver.as_ref().map(|driver| driver.kind), Some(DriverKind::KernelC));
    let experiment = run.inversion.as_ref().expect("the experiment");
    assert_eq!(experiment.caller, Sched::fifo(99), "it was real-time all the same");
    for (setting, inverted, is_realtime) in [
        (Setting::Off, Some(true), false),
        (Setting::On, Some(true), false),
        (Setting::Raised, Some(false), true),
    ] {
        let row = experiment.row(setting).expect("a row");
        assert_eq!(row.inverted, inverted, "{row:?}");
        assert!(row.served.iter().all(|served| served.sched.is_realtime() == is_realtime), "{row:?}");
    }
    assert_eq!(experiment.row(Setting::On).map(|row| row.means.as_str()), Some("node with INHERIT_RT"));
}
