//! Load beside a measurement, as processes of the real binary: that each kind does what it says, is
//! scheduled as asked, leaves the machine alive, and goes with whoever started it.
//! Not here: words and portions of work (`bench::load`).

use crate::support::{BINARY, contents, realtime};
use std::os::unix::process::CommandExt;
use std::path::PathBuf;
use std::process::Command;
use std::time::{Duration, Instant};

use needs::{Need, need};

use bench::load::{LoadSpec, Loads};
use sys::sched::{self, Policy};

const PROGRAM: &str = BINARY;

fn start(words: &[&str], cpus: Option<&[u32]>) -> Result<Loads, String> {
    let specs: Vec<LoadSpec> = words.iter().map(|word| word.parse().expect("a load")).collect();
    procgroup::process::use_program(PROGRAM.into());
    Loads::start(&specs, cpus)
}

/// The actual policies.
fn policies(loads: &Loads) -> Vec<Policy> {
    let of = |pid: u32| sched::policy_of(i32::try_from(pid).expect("a process"));
    loads.pids().into_iter().map(|pid| of(pid).expect("it lives")).collect()
}

fn of(pid: u32, file: &str) -> PathBuf {
    PathBuf::from(format!("/proc/{pid}/{file}"))
}

/// A number in a file of lines `NAME: NUMBER ...`.
fn figure(pid: u32, file: &str, name: &str) -> u64 {
    let text = contents(of(pid, file));
    let line =
        text.lines().find_map(|line| line.strip_prefix(name)).unwrap_or_else(|| panic!("{name}: {text}"));
    let number = line.trim_start_matches(':').split_whitespace().next().expect("a number");
    number.parse().expect("a number")
}

/// CPU time that a process has used, in ns.
fn cpu_ns(pid: u32) -> u64 {
    let text = contents(of(pid, "schedstat"));
    text.split(' ').next().expect("the time").parse().expect("a number")
}

/// Waits until a figure has grown by so much; a test that hangs shows that it does not.
fn grows(by: u64, figure: impl Fn() -> u64) {
    let before = figure();
    while figure() < before + by {
        std::thread::sleep(Duration::from_millis(5));
    }
}

#[test]
fn each_kind_does_what_it_says() {
    let loads = start(&["cpu:1", "memory:1", "irq:1", "io:1"], None).expect("all of them");
    let pids = loads.pids();
    let [cpu, memory, irq, io] = pids[..] else { panic!("four of them: {pids:?}") };
    grows(20_000_000, || cpu_ns(cpu));
    grows(5_000_000, || cpu_ns(memory));
    assert!(figure(memory, "status", "VmRSS") > 4 << 10, "in KiB: more than caches nearby hold");
    // Each sleep ends with its timer's interrupt.
    grows(500, || figure(irq, "status", "voluntary_ctxt_switches"));
    grows(1 << 20, || figure(io, "io", "wchar"));
    grows(1 << 20, || figure(io, "io", "rchar"));
    loads.check().expect("all are still there");
}

#[test]
fn they_are_scheduled_as_asked_and_where() {
    let cpu = *sched::affinity().expect("own CPUs").last().expect("one");
    let loads = start(&["cpu:2:batch", "irq:1:idle", "io:1:nice7", "cpu:1"], Some(&[cpu])).expect("allowed");
    let want = [Policy::Batch, Policy::Batch, Policy::Idle, Policy::Other, Policy::Other];
    assert_eq!(policies(&loads), want);
    let own = sched::nice_of(0).expect("own nice");
    for (pid, nice) in loads.pids().into_iter().zip([own, own, own, 7, own]) {
        assert_eq!(sched::nice_of(i32::try_from(pid).expect("a process")).expect("it lives"), nice);
        let text = contents(of(pid, "status"));
        assert!(text.contains(&format!("Cpus_allowed_list:\t{cpu}\n")), "{text}");
    }
}

/// A parent that is real-time has no real-time load by accident.
#[test]
fn load_is_not_more_urgent_than_asked_whoever_starts_it() {
    need!(realtime());
    let found = std::thread::spawn(|| {
        sched::set_policy(0, Policy::Fifo(2)).expect("allowed");
        let loads = start(&["cpu:1", "cpu:1:fifo1"], None).expect("allowed");
        policies(&loads)
    });
    assert_eq!(found.join().expect("no panic"), [Policy::Other, Policy::Fifo(1)]);
}

/// All real-time load on one CPU together leaves some of it, and the kernel would end one that did not.
#[test]
fn real_time_load_leaves_every_cpu_some_time() {
    need!(realtime());
    let cpu = *sched::affinity().expect("own CPUs").last().expect("one");
    let words = ["cpu:3:fifo50", "memory:1:rr50", "io:1:fifo20", "irq:2:fifo98"];
    let loads = start(&words, Some(&[cpu])).expect("allowed");
    let beside = std::thread::spawn(move || {
        sched::set_affinity(&[cpu]).expect("one of ours");
        // It ends at all: SCHED_OTHER gets its turn on that CPU.
        let start = sys::clock::thread_cpu_ns();
        while sys::clock::thread_cpu_ns() - start < 20_000_000 {
            std::hint::spin_loop();
        }
    });
    beside.join().expect("it had its turns");
    let used = || loads.pids().into_iter().map(cpu_ns).sum::<u64>();
    let (before, start) = (used(), Instant::now());
    std::thread::sleep(Duration::from_millis(300));
    let share = (used() - before) as f64 / start.elapsed().as_nanos() as f64;
    assert!(share < 0.92, "real-time load took {share:.2} of a CPU");
    assert!(share > 0.1, "it does work: {share:.2} of a CPU");
    for pid in loads.pids() {
        let limits = contents(of(pid, "limits"));
        let line = limits.lines().find(|line| line.starts_with("Max realtime timeout")).expect("the limit");
        assert!(!line.contains("unlimited"), "{line}");
    }
    loads.check().expect("none of them was ended for it");
}

#[test]
fn one_that_dies_is_noticed_and_all_go_with_their_owner() {
    let loads = start(&["cpu:1:nice19", "irq:1"], None).expect("both");
    let pids = loads.pids();
    loads.check().expect("both are there");
    let kill = Command::new("/bin/sh").args(["-c", &format!("kill -9 {}", pids[1])]).status();
    assert!(kill.expect("a shell").success());
    let died = loop {
        match loads.check() {
            Ok(()) => std::thread::sleep(Duration::from_millis(2)),
            Err(why) => break why,
        }
    };
    assert!(died.contains("irq:1") && died.contains(&pids[1].to_string()) && died.contains('9'), "{died}");
    drop(loads);
    assert!(pids.iter().all(|pid| !of(*pid, "stat").exists()), "{pids:?}");
}

#[test]
fn they_go_with_the_thread_that_started_them_however_it_ends() {
    let pids = std::thread::spawn(|| {
        let loads = start(&["cpu:2"], None).expect("both");
        let pids = loads.pids();
        std::mem::forget(loads);
        pids
    });
    let pids = pids.join().expect("no panic");
    // Nobody waits for them here, so what is left of them is a zombie.
    let gone = |pid: &u32| {
        let status = std::fs::read_to_string(of(*pid, "status")).unwrap_or_default();
        status.is_empty() || status.contains("State:\tZ")
    };
    while !pids.iter().all(gone) {
        std::thread::sleep(Duration::from_millis(5));
    }
}

/// What [`a_class_that_cannot_be_had_is_an_error_that_says_why`] does without privileges.
#[test]
#[ignore = "started by another test, as another user"]
fn as_nobody() {
    let error = start(&["cpu:1:fifo10"], None).err().expect("no right to it");
    assert!(error.contains("cpu:1:fifo10") && error.contains("EPERM"), "{error}");
    assert!(error.contains("RLIMIT_RTPRIO") && error.contains("CAP_SYS_NICE"), "{error}");
    let error = start(&["io:1:nice-5"], None).err().expect("no right to it");
    assert!(error.contains("EACCES") && error.contains("RLIMIT_NICE"), "{error}");
    start(&["cpu:1:batch", "cpu:1:idle", "cpu:1:nice19"], None).expect("anybody may be less urgent");
}

#[test]
fn a_class_that_cannot_be_had_is_an_error_that_says_why() {
    const NOBODY: u32 = 65534;
    let mut command = Command::new(std::env::current_exe().expect("own path"));
    command.args(["--exact", "load::as_nobody", "--ignored", "--nocapture"]);
    if sys::identity::effective_uid() == 0 {
        command.uid(NOBODY);
    }
    let output = need!(command.output().map_err(|error| Need::OtherUser.lacks(error)));
    let said = String::from_utf8_lossy(&output.stdout);
    assert!(output.status.success() && said.contains("1 passed"), "{said}");
}
