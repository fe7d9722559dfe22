//! Whose priority serving threads take over, on the embedded driver with each of its settings, with a
//! fault, and for callers without rights.
//! Not here: the kernel's driver (`guest::inheritance`), the scenes (`bench::inheritance`).

use needs::{Lack, Need, need};

use crate::support::{BINARY, Called, binderperf, call, contents};
use record::{Hop, Inheritance, Level, Sched};

fn called(words: &[&str]) -> Called {
    binderperf(&[&["inheritance", "--driver=embedded", "--format=json"], words].concat())
}

fn read(called: &Called) -> Inheritance {
    serde_json::from_value(called.json()["inheritance"].take()).expect("an inheritance")
}

/// The right to make threads real-time, and more urgent.
fn privileged() -> Result<(), Lack> {
    Need::Realtime.met_if(sys_may(), "no CAP_SYS_NICE")
}

fn sys_may() -> bool {
    let status = contents("/proc/thread-self/status");
    let mask = status.lines().find_map(|line| line.strip_prefix("CapEff:")).expect("capabilities");
    u64::from_str_radix(mask.trim(), 16).expect("a mask") & 1 << 23 != 0
}

fn hops<'f>(found: &'f Inheritance, scene: &str) -> Vec<&'f Hop> {
    found.hops.iter().filter(|hop| hop.scene == scene).collect()
}

fn served(found: &Inheritance, scene: &str) -> Sched {
    let hop = hops(found, scene).into_iter().next().unwrap_or_else(|| panic!("no {scene}"));
    hop.served.unwrap_or_else(|| panic!("{scene} was not seen: {}", hop.note))
}

const SCENES: [&str; 10] = [
    "call", "queued", "nested-1", "nested-2", "callback", "unwound", "oneway", "minimum", "restored", "after",
];

/// Then nothing but the policy changes on a hop, and what is remembered of that must not be older than a boost.
#[test]
fn a_caller_as_nice_as_the_servers_passes_its_policy_on_all_the_same() {
    need!(privileged());
    for direct in ["on", "off"].repeat(4) {
        let words = ["-n", "4", BINARY, "inheritance", "--driver=embedded"];
        let called = call("nice", &[&words[..], &["--inherit=rt", "--direct", direct]].concat(), &[]);
        assert_eq!(called.code, Some(0), "--direct={direct}: {}{}", called.stdout, called.stderr);
    }
}

#[test]
fn the_level_is_what_the_driver_was_set_to() {
    need!(privileged());
    for direct in ["on", "off"] {
        for (flavour, inherit, want) in [
            ("hwbinder", "none", Level::None),
            ("hwbinder", "nice", Level::Nice),
            ("hwbinder", "rt", Level::Rt),
            ("binder", "none", Level::None),
            ("binder", "nice", Level::Nice),
            // Its nodes do not ask for more.
            ("binder", "rt", Level::Nice),
        ] {
            let called = called(&["--flavour", flavour, "--inherit", inherit, "--direct", direct]);
            let found = read(&called);
            let what = format!("{flavour} {inherit} {direct}: {}{}", called.stdout, called.stderr);
            assert_eq!((found.measured, found.expected), (Some(want), Some(want)), "{what}");
            assert_eq!(called.code, Some(0), "{what}");
            for scene in SCENES {
                let hops = hops(&found, scene);
                assert!(!hops.is_empty(), "{scene} is missing: {what}");
                assert!(hops.iter().all(|hop| hop.as_expected() == Some(true)), "{scene}: {what}");
            }
        }
    }
}

/// Not by the oracle but by what a reader expects of the three words.
#[test]
fn real_time_passes_through_queues_and_other_servers_but_not_oneway() {
    need!(privileged());
    let found = read(&called(&["--inherit=rt"]));
    for scene in ["call", "queued", "nested-1", "nested-2", "callback"] {
        let fifo = served(&found, scene);
        assert_eq!((fifo.policy, fifo.priority), (1, 99), "{scene}");
    }
    for scene in ["oneway", "restored", "after"] {
        assert!(!served(&found, scene).is_realtime(), "{scene}");
    }
    let minimum: Vec<Option<Sched>> = hops(&found, "minimum").iter().map(|hop| hop.served).collect();
    let seen = |nth: usize| minimum[nth].expect("seen");
    assert_eq!((seen(0).nice, seen(1).policy, seen(1).priority), (3, 1, 10));

    let found = read(&called(&["--inherit=nice"]));
    assert!(
        SCENES.iter().filter(|scene| **scene != "callback").all(|scene| !served(&found, scene).is_realtime())
    );
    // The real-time caller has the nice that these tests were started with.
    let calls: Vec<(i32, i32)> =
        hops(&found, "call").iter().map(|hop| (served_nice(hop), hop.caller.nice)).collect();
    assert_eq!((calls[0].0, calls[1]), (calls[0].1.min(0), (-5, -5)));

    let found = read(&called(&["--inherit=none"]));
    assert_eq!(hops(&found, "call").iter().map(|hop| served_nice(hop)).collect::<Vec<_>>(), [4, 4]);
}

fn served_nice(hop: &Hop) -> i32 {
    hop.served.expect("seen").nice
}

#[test]
fn a_node_decides_about_real_time() {
    need!(privileged());
    for (flavour, asks, want) in [("binder", "on", Level::Rt), ("hwbinder", "off", Level::Nice)] {
        let called = called(&["--inherit=rt", "--flavour", flavour, "--inherit-rt", asks]);
        let found = read(&called);
        assert_eq!((found.measured, found.expected), (Some(want), Some(want)), "{flavour} {}", called.stdout);
        assert_eq!(called.code, Some(0), "{flavour}: {}", called.stderr);
    }
}

#[test]
fn dropped_inheritance_is_found() {
    need!(privileged());
    for (inherit, want) in [("rt", Level::Rt), ("nice", Level::Nice)] {
        let called = called(&["--inherit", inherit, "--driver-fault=drop-inheritance"]);
        let found = read(&called);
        assert_eq!((found.measured, found.expected), (Some(Level::None), Some(want)), "{}", called.stdout);
        assert_eq!(called.code, Some(1), "{}", called.stderr);
        for scene in ["call", "queued", "nested-1", "nested-2", "oneway", "minimum", "after"] {
            assert!(hops(&found, scene).iter().all(|hop| hop.as_expected() == Some(false)), "{scene}");
        }
        called.complained("not as expected of this driver: call");
    }
}

/// Whoever may raise nothing learns what is missing, and is not told that the driver failed.
#[test]
fn without_rights_nothing_is_claimed() {
    // Where there is nothing to give up, there is no right to give it up either.
    let give_up: &[&str] = match sys_may() {
        true => &["setpriv", "--bounding-set=-sys_nice", "--inh-caps=-sys_nice", "--"],
        false => &[],
    };
    let program = ["prlimit", "--rtprio=0", "--nice=0", "--", BINARY];
    let words = ["inheritance", "--driver=embedded", "--inherit=rt", "--format=json"];
    let all = [give_up, &program, &words].concat();
    let called = call(all[0], &all[1..], &[]);
    let found = read(&called);
    assert_eq!((found.measured, found.expected), (Some(Level::None), Some(Level::None)), "{}", called.stdout);
    assert!(found.expected_reason.contains("RLIMIT_NICE 0"), "{}", found.expected_reason);
    let fifo = hops(&found, "call")[0];
    assert_eq!((fifo.served, fifo.expected), (None, None));
    for word in ["CAP_SYS_NICE", "RLIMIT_RTPRIO is 0"] {
        assert!(fifo.note.contains(word), "{}", fifo.note);
    }
    assert_eq!(called.code, Some(3), "{}", called.stderr);
    called.complained("RLIMIT_RTPRIO");
}

#[test]
fn words_that_make_no_sense_are_refused() {
    for bad in [&["--inherit-rt=yes"][..], &["--flavour=vndbinder"], &["--driver-fault=other"]] {
        called(bad).ended(2);
    }
}

#[test]
fn a_table_names_level_and_reason() {
    let called = binderperf(&["inheritance", "--driver=embedded", "--inherit=none"]);
    for words in ["measured none, expected none", "--inherit none", "\nqueued", "\nnested-2"] {
        called.printed(words);
    }
}
