//! `binderperf watch` on a kernel's driver: its reports of failed calls over netlink.

use std::fs;

use crate::support::{Folder, binderperf, contents, end, start, wait_until};
use needs::Need;

#[test]
#[ignore = "for the guest of `session`"]
fn reports_of_failed_calls_are_caught() {
    let folder = Folder::new("guest-watch");
    let out = folder.path("caught");
    let mut watch = start(&["watch", "--when", "reports>0", "--then", "stop", "--for", "10m", "--out", &out]);
    wait_until("a catch", || {
        // The driver refuses some of its calls.
        binderperf(&["conformance", "--driver", "kernel", "--filter", "TX-13"]).ended(0);
        watch.try_wait().expect("asked").is_some()
    });
    let called = end(watch);
    if called.code == Some(3) {
        called.complained("the driver's reports over netlink are not heard");
        return Need::Feature.lacks("the driver does not report over netlink").skip();
    }
    called.ended(1).printed("reports>0: reports is ");
    let mut entries = fs::read_dir(&out).expect("there").flatten();
    let catch = entries.find(|entry| entry.path().is_dir()).expect("a catch");
    assert!(contents(catch.path().join("netlink.jsonl")).lines().count() > 0);
}
