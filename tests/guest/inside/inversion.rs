//! The priority-inversion experiment on a kernel's driver.
//! Not here: the embedded driver (`inversion` of `tests/cli`).

use crate::support::{Folder, binderperf, read};
use record::{DriverKind, Sched, Setting};

/// Mainline's C driver takes the flag and hands no policy on, so the experiment must find the inversion. The times of the
/// server that is raised by hand are not judged: on an emulated machine they depend on what else its host does.
#[test]
#[ignore = "for the guest of `session`"]
fn mainlines_driver_leaves_the_inversion() {
    let folder = Folder::new("guest-inversion");
    let record = format!("--record={}", folder.path("r.json"));
    let words = ["inversion", "--driver=kernel", "-i", "40", "--rounds=2", "--expect=inversion", &record];
    binderperf(&words).ended(0).printed("mainline's C driver passes on nice only");
    let run = read(&folder.path("r.json"));
    assert_eq!(run.driver.as_ref().map(|driver| driver.kind), Some(DriverKind::KernelC));
    let experiment = run.inversion().expect("the experiment");
    assert_eq!(experiment.caller, Sched::fifo(99), "it was real-time all the same");
    for (setting, is_realtime) in [(Setting::Off, false), (Setting::On, false), (Setting::Raised, true)] {
        let row = experiment.row(setting).expect("a row");
        assert!(is_realtime || row.inverted == Some(true), "{row:?}");
        assert!(row.served.iter().all(|served| served.sched.is_realtime() == is_realtime), "{row:?}");
    }
    assert_eq!(experiment.row(Setting::On).map(|row| row.means.as_str()), Some("node with INHERIT_RT"));
}
