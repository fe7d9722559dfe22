//! The background experiment as a user calls it, on the embedded driver.
//! Not here: the verdicts' rules (`record::verdict`), finding the control groups (`bench::background`).

use crate::support::{BINARY, Folder, binderperf, call, read, words};
use needs::{Lack, Need, need};
use record::Ground;

const SHORT: &str = "background --driver=embedded -i 10 --rounds=2 --work=500";

/// The right to come back from a nice value.
fn may_return() -> Result<(), Lack> {
    Need::Realtime.met_if(sys::urgency::most_urgent_nice() <= 0, "RLIMIT_NICE lets nobody come back")
}

#[test]
fn each_setting_is_measured_alone_and_beside_hogs() {
    need!(may_return());
    let folder = Folder::new("background");
    let (record, page) = (folder.path("r.json"), folder.path("r.html"));
    for group in ["--group=nice", "--group=auto"] {
        let called = binderperf(&[&words(SHORT)[..], &[group, "--record", &record]].concat());
        // Other tests may take the CPU, and a nice background promises nothing.
        assert!(matches!(called.code, Some(0 | 1)), "{}", called.stdout);
        called.printed("server moves for each call, beside hogs").printed("both moves of a call: median");
        let run = read(&record);
        let experiment = run.background().expect("the experiment");
        assert_eq!(experiment.rows.len(), 8);
        assert!(experiment.rows.iter().all(|row| row.calls == 20), "{experiment:?}");
        let moves = experiment.row(Ground::Moves, false).and_then(|row| row.moves).expect("it moves");
        assert!(moves.p50 > 0);
        called.printed(&experiment.group);
    }
    binderperf(&["show", &record]).ended(0).printed("caller in the background, alone");
    binderperf(&["report", &record, "-o", &page]).ended(0);
    let page = std::fs::read_to_string(&page).expect("a page");
    assert!(page.contains("<svg role=\"img\"") && page.contains("foreground and background"), "{page}");
}

#[test]
fn without_the_right_to_come_back_it_says_so() {
    let dropped: &[&str] = match sys::identity::effective_uid() {
        0 => &["setpriv", "--bounding-set=-sys_nice", "--inh-caps=-sys_nice", "--"],
        _ => {
            need!(Need::OtherUser.met_if(may_return().is_err(), "this user may come back from a nice value"));
            &["env"]
        }
    };
    let rest = [&dropped[1..], &[BINARY], &words(SHORT)[..], &["--group=nice"]].concat();
    call(dropped[0], &rest, &[]).ended(3).complained("may not come back");
}

#[test]
fn nonsense_is_refused() {
    for (words, says) in [
        (&["--hogs=0"][..], "1 to 64"),
        (&["--work=50001"], "50000 at most"),
        (&["-i", "1", "--rounds=1"], "20 in all"),
        (&["--group=x"], "possible values"),
    ] {
        binderperf(&[&["background", "--driver=embedded"], words].concat()).ended(2).complained(says);
    }
}
