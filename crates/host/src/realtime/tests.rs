//! Threads that may or may not become real-time, on the real kernel and on fixture files.

use super::*;
use driver::root::Fixture;

/// Fixture files of a machine that permits real-time threads, plus those of a test.
fn machine_with(name: &str, files: &[(&str, &str)]) -> Fixture {
    let allowing = [
        ("proc/self/uid_map", "         0          0 4294967295\n"),
        ("proc/thread-self/status", "Name:\tx\nCapEff:\t000001ffffffffff\n"),
        ("proc/self/limits", "Max realtime priority     0                    0     \n"),
    ];
    Fixture::new(&format!("realtime-{name}"), &[&allowing[..], files].concat())
}

fn cause(machine: &Fixture, priority: u8) -> Cause {
    explain(&machine.root(), priority, &io::ErrorKind::PermissionDenied.into())
}

/// A thread's status without `CAP_SYS_NICE`, bit 23.
const UNPRIVILEGED: (&str, &str) = ("proc/thread-self/status", "CapEff:\t000001ffff7fffff\n");

#[test]
fn neither_capability_nor_limit() {
    let machine = machine_with("plain", &[UNPRIVILEGED]);
    assert_eq!(cause(&machine, 99), Cause::NotAllowed { limit: Some(0) });
    let text = cause(&machine, 99).to_string();
    assert!(text.contains("CAP_SYS_NICE") && text.contains("RLIMIT_RTPRIO is 0"), "{text}");
    machine.put("proc/self/limits", "Max realtime priority     50                   50    \n");
    assert_eq!(cause(&machine, 99), Cause::NotAllowed { limit: Some(50) });
    assert_eq!(
        cause(&machine, 50),
        Cause::Refused,
        "the limit allows it, so that something else is in the way"
    );
    machine.put("proc/self/limits", "Max realtime priority     unlimited            unlimited    \n");
    assert_eq!(cause(&machine, 99), Cause::Refused);
}

#[test]
fn a_capability_of_a_container() {
    let machine = machine_with("namespace", &[("proc/self/uid_map", "0 100000 65536\n")]);
    assert_eq!(cause(&machine, 99), Cause::UserNamespace { limit: Some(0) });
    assert!(cause(&machine, 99).to_string().contains("user namespace"));
}

#[test]
fn control_groups_without_budget() {
    let of_cpu = ("proc/thread-self/cgroup", "4:cpu,cpuacct:/some/group\n1:name=systemd:/x\n");
    let file = "sys/fs/cgroup/cpu,cpuacct/some/group/cpu.rt_runtime_us";
    let machine = machine_with("group", &[of_cpu, (file, "0\n")]);
    assert_eq!(cause(&machine, 99), Cause::NoGroupBudget { file: format!("/{file}") });
    assert!(cause(&machine, 99).to_string().contains("RT group scheduling"));
    machine.put(file, "950000\n");
    assert_eq!(cause(&machine, 99), Cause::Refused);

    let own = "sys/fs/cgroup/cpu/cpu.rt_runtime_us";
    let machine = machine_with("container", &[("proc/thread-self/cgroup", "4:cpu:/x\n"), (own, "0\n")]);
    assert_eq!(cause(&machine, 99), Cause::NoGroupBudget { file: format!("/{own}") });

    let release = ("proc/sys/kernel/osrelease", "7.1-test\n");
    let machine = machine_with("unified", &[release, ("boot/config-7.1-test", "CONFIG_RT_GROUP_SCHED=y\n")]);
    assert_eq!(cause(&machine, 99), Cause::GroupScheduling);
    machine.put("boot/config-7.1-test", "# CONFIG_RT_GROUP_SCHED is not set\n");
    assert_eq!(cause(&machine, 99), Cause::Refused);
}

#[test]
fn priorities_that_there_are_not() {
    for priority in [0, 100, 255] {
        let problem = become_fifo(priority).expect_err("no such priority");
        assert_eq!(problem.cause, Cause::NoPriority);
        assert!(problem.answer.as_deref().is_some_and(|answer| answer.starts_with("EINVAL")), "{problem}");
    }
}

#[test]
fn throttling_is_read() {
    let machine = machine_with("throttling", &[("proc/sys/kernel/sched_rt_runtime_us", "950000\n")]);
    assert_eq!(throttling_of(&machine.root()), None, "half of it says nothing");
    machine.put("proc/sys/kernel/sched_rt_period_us", "1000000\n");
    let found = throttling_of(&machine.root()).expect("both");
    assert_eq!(found, Throttling { runtime_us: 950_000, period_us: 1_000_000 });
    assert!(found.to_string().contains("950000 us of every 1000000 us"));
    assert!(Throttling { runtime_us: -1, ..found }.to_string().contains("off"));
}

/// On the real kernel a thread becomes real-time with the capability, and finds the cause without it.
#[test]
fn a_thread_is_real_time_or_knows_why_not() {
    sys::limits::set_realtime_priority(0).expect("less than before, or as much");
    let tried = || std::thread::spawn(|| (become_fifo(7), own())).join().expect("no panic");
    let (got, found) = tried();
    match got {
        Ok(sched) => assert_eq!((sched, found), (Sched { nice: sched.nice, ..Sched::fifo(7) }, sched)),
        Err(problem) => {
            assert!(!found.is_realtime());
            assert!(
                !sys::capability::has_sys_nice() || problem.cause != Cause::NotAllowed { limit: Some(0) }
            );
        }
    }
    let (got, found) = sys::capability::without_sys_nice(tried).expect("putting it aside");
    let problem = got.expect_err("neither capability nor limit");
    assert_eq!(problem.cause, Cause::NotAllowed { limit: Some(0) });
    assert!(problem.to_string().contains("SCHED_FIFO 7: EPERM"), "{problem}");
    assert!(!found.is_realtime());
}

#[test]
fn threads_are_seen_from_outside() {
    let thread = sys::interrupt::ThreadId::current().number();
    assert_eq!(of_thread(thread).expect("this thread"), own());
    assert!(of_thread(i32::MAX).is_err());
}
