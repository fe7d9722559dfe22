//! Room: threads that may and may not become real-time, and machines made of files.

use std::fs;
use std::path::PathBuf;

use super::*;

/// Files of a machine on which nothing is in the way but what a test adds.
struct Machine(PathBuf);

impl Machine {
    fn new(name: &str, files: &[(&str, &str)]) -> Self {
        let machine =
            Self(std::env::temp_dir().join(format!("binderperf-realtime-{name}-{}", std::process::id())));
        machine.put("proc/self/uid_map", "         0          0 4294967295\n");
        machine.put("proc/thread-self/status", "Name:\tx\nCapEff:\t000001ffffffffff\n");
        machine.put("proc/self/limits", "Max realtime priority     0                    0     \n");
        files.iter().for_each(|(file, text)| machine.put(file, text));
        machine
    }

    fn put(&self, file: &str, text: &str) {
        let path = self.0.join(file);
        fs::create_dir_all(path.parent().expect("a file has a folder")).expect("make folder");
        fs::write(path, text).expect("write file");
    }

    fn root(&self) -> Root {
        Root::at(self.0.clone())
    }

    fn cause(&self, priority: u8) -> Cause {
        explain(&self.root(), priority, &io::ErrorKind::PermissionDenied.into())
    }
}

impl Drop for Machine {
    fn drop(&mut self) {
        let _ = fs::remove_dir_all(&self.0);
    }
}

/// A thread's status without `CAP_SYS_NICE`, bit 23.
const UNPRIVILEGED: (&str, &str) = ("proc/thread-self/status", "CapEff:\t000001ffff7fffff\n");

#[test]
fn neither_capability_nor_limit() {
    let machine = Machine::new("plain", &[UNPRIVILEGED]);
    assert_eq!(machine.cause(99), Cause::NotAllowed { limit: Some(0) });
    let text = machine.cause(99).to_string();
    assert!(text.contains("CAP_SYS_NICE") && text.contains("RLIMIT_RTPRIO is 0"), "{text}");
    machine.put("proc/self/limits", "Max realtime priority     50                   50    \n");
    assert_eq!(machine.cause(99), Cause::NotAllowed { limit: Some(50) });
    assert_eq!(
        machine.cause(50),
        Cause::Refused,
        "the limit allows it, so that something else is in the way"
    );
    machine.put("proc/self/limits", "Max realtime priority     unlimited            unlimited    \n");
    assert_eq!(machine.cause(99), Cause::Refused);
}

#[test]
fn a_capability_of_a_container() {
    let machine = Machine::new("namespace", &[("proc/self/uid_map", "0 100000 65536\n")]);
    assert_eq!(machine.cause(99), Cause::UserNamespace { limit: Some(0) });
    assert!(machine.cause(99).to_string().contains("user namespace"));
}

#[test]
fn control_groups_without_budget() {
    let of_cpu = ("proc/thread-self/cgroup", "4:cpu,cpuacct:/some/group\n1:name=systemd:/x\n");
    let file = "sys/fs/cgroup/cpu,cpuacct/some/group/cpu.rt_runtime_us";
    let machine = Machine::new("group", &[of_cpu, (file, "0\n")]);
    assert_eq!(machine.cause(99), Cause::NoGroupBudget { file: format!("/{file}") });
    assert!(machine.cause(99).to_string().contains("RT group scheduling"));
    machine.put(file, "950000\n");
    assert_eq!(machine.cause(99), Cause::Refused);

    let own = "sys/fs/cgroup/cpu/cpu.rt_runtime_us";
    let machine = Machine::new("container", &[("proc/thread-self/cgroup", "4:cpu:/x\n"), (own, "0\n")]);
    assert_eq!(machine.cause(99), Cause::NoGroupBudget { file: format!("/{own}") });

    let release = ("proc/sys/kernel/osrelease", "7.1-test\n");
    let machine = Machine::new("unified", &[release, ("boot/config-7.1-test", "CONFIG_RT_GROUP_SCHED=y\n")]);
    assert_eq!(machine.cause(99), Cause::GroupScheduling);
    machine.put("boot/config-7.1-test", "# CONFIG_RT_GROUP_SCHED is not set\n");
    assert_eq!(machine.cause(99), Cause::Refused);
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
    let machine = Machine::new("throttling", &[("proc/sys/kernel/sched_rt_runtime_us", "950000\n")]);
    assert_eq!(throttling_of(&machine.root()), None, "half of it says nothing");
    machine.put("proc/sys/kernel/sched_rt_period_us", "1000000\n");
    let found = throttling_of(&machine.root()).expect("both");
    assert_eq!(found, Throttling { runtime_us: 950_000, period_us: 1_000_000 });
    assert!(found.to_string().contains("950000 us of every 1000000 us"));
    assert!(Throttling { runtime_us: -1, ..found }.to_string().contains("off"));
}

/// The real kernel: with the capability a thread becomes what was asked for and knows it, without it the
/// reason is found.
#[test]
fn a_thread_is_real_time_or_knows_why_not() {
    sys::rt_limit::allow_priority(0).expect("less than before, or as much");
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
