//! Whether `ab` tells a slower side of `kpi` case by case.
//! Not here: its table and words (`tests/cli/kpi.rs`).

use crate::alone;
use crate::support::{Folder, binderperf};

#[test]
fn a_slower_side_is_found_by_ab() {
    let _alone = alone();
    let folder = Folder::new("kpi-ab");
    let records = folder.path("records");
    // Every call through the broker: several times the cost of a direct one.
    let sides =
        ["--a", "direct=on", "--b", "direct=off", "--records", &records, "--pairs=12", "--until-width=0%"];
    let test =
        ["--", "kpi", "--driver", "embedded", "-s", "64", "-i", "20", "--rounds", "1", "--controls", "none"];
    let called = binderperf(&[&["ab", "--seed=5"][..], &sides, &test].concat()).ended(0);
    let verdict = |case: &str| {
        let line = called.stdout.lines().find(|line| line.contains(case));
        line.unwrap_or_else(|| panic!("{case} in {called}")).to_owned()
    };
    for case in ["BM_addInts", "BM_sendVec_binderize/64"] {
        assert!(verdict(case).contains("slower"), "{}", verdict(case));
    }
    // RPC binder has no driver.
    assert!(!verdict("BM_sendVec_rpc/64 ").contains("slower"), "{called}");
}
