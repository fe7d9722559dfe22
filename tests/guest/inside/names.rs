//! Each process and thread in a guest says what it is, process 1 included.

use crate::support::names::all_named;
use crate::support::{contents, start, words};

#[test]
#[ignore = "for the guest of `session`"]
fn each_process_of_a_guest_says_what_it_is() {
    let test = "latency hwbinder --driver=kernel -i 100000 --rate=50 -pair 1 --no-scenes --load=cpu:1";
    all_named(
        start(&words(test)),
        &["client 0", "fifo-caller 0", "server 0", "hwservicemanage", "HwBinder:", "hog 0 cpu"],
    );
    assert_eq!(contents("/proc/1/comm"), "guest\n");
    assert_eq!(contents("/proc/1/cmdline"), "/binderperf\0");
    let threads = std::fs::read_dir("/proc/1/task").expect("process 1").flatten();
    let mut names: Vec<String> = threads.map(|thread| contents(thread.path().join("comm"))).collect();
    names.sort();
    assert_eq!(names, ["guest\n", "guest orders\n", "guest output\n", "guest output\n"]);
}
