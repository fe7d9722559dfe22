//! Situations that are made on a driver, between processes: each is found, with the one to blame.
//! Not here: texts in files (`cases`), the contract's failures (`on_driver`), a busy system without faults (the command line's tests).
//!
//! `BINDERPERF_TEST_DRIVER` says which driver: embedded (the default) or kernel. A peer is this test binary with a role in its
//! environment; it ends with its parent.

use std::io::{ErrorKind, Read};
use std::process::{Child, Command, Stdio};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::thread;
use std::time::Duration;

use abi::layout::FreezeInfo;
use backend::locate::{Device, Driver, Wanted};
use backend::{AnyContext, locate};
use binder::{Process, ProcessOptions, ServiceManager, Services, Status};
use driver::Connection;
use driver::kernel_state::{self, StateFile};
use explain::{Explainer, Finding, Grade, Kind, Report};

const ROLE: &str = "EXPLAIN_TEST_ROLE";
const ADDRESS: &str = "EXPLAIN_TEST_ADDRESS";
/// Name of the peer that is the context manager.
const MANAGER: &str = "manager";
const THREADS: &str = "EXPLAIN_TEST_THREADS";
/// Generous: other work may share the machine.
const PATIENCE: Duration = Duration::from_secs(120);

binder::interface! {
    mod part = "example.IPart" {
        fn echo(text: String) -> String;
        /// Calls `echo` of another part again and again, until it fails.
        fn relay(name: String) -> String;
        /// Calls `echo` of a part so many times, and keeps the replies.
        fn keep(name: String, times: i32) -> i32;
        fn hold();
        oneway slow(text: String);
    }
}

struct Part {
    process: Process,
}

impl Part {
    fn other(&self, name: &str) -> Result<binder::Binder, Status> {
        let services = Services::wait(&self.process, PATIENCE).map_err(|_| Status::UNKNOWN_TRANSACTION)?;
        services.wait_for(name, PATIENCE).map_err(|_| Status::UNKNOWN_TRANSACTION)
    }
}

impl part::Service for Part {
    fn echo(&self, text: String) -> Result<String, Status> {
        Ok(text)
    }

    fn relay(&self, name: String) -> Result<String, Status> {
        let other = part::Client::from(self.other(&name)?);
        while other.echo("x").is_ok() {}
        Err(Status::UNKNOWN_TRANSACTION)
    }

    fn keep(&self, name: String, times: i32) -> Result<i32, Status> {
        let other: &'static binder::Binder = Box::leak(Box::new(self.other(&name)?));
        for _ in 0..times {
            let mut request = other.request("example.IPart");
            request.write_str(&"y".repeat(900));
            let reply = other.call(1, request).map_err(|_| Status::UNKNOWN_TRANSACTION)?;
            std::mem::forget(reply);
        }
        Ok(times)
    }

    fn hold(&self) -> Result<(), Status> {
        loop {
            thread::sleep(PATIENCE);
        }
    }

    fn slow(&self, _text: String) -> Result<(), Status> {
        loop {
            thread::sleep(PATIENCE);
        }
    }
}

/// Not a test: what a peer process runs.
#[test]
fn role() {
    let (Ok(name), Ok(address), Ok(threads)) =
        (std::env::var(ROLE), std::env::var(ADDRESS), std::env::var(THREADS))
    else {
        return;
    };
    let options =
        ProcessOptions { max_threads: threads.parse().expect("a number"), ..ProcessOptions::default() };
    let process = Process::open(&AnyContext::parse(&address), options).expect("open");
    process.start_thread_pool().expect("a pool");
    if name == MANAGER {
        become_manager(&process, &ServiceManager::new());
        let _ = std::io::stdin().read(&mut [0]);
        std::process::exit(0);
    }
    let part = process.publish(part::Served(Part { process: process.clone() }));
    Services::wait(&process, PATIENCE).expect("a manager").add(&name, &part).expect("registered");
    // The parent holds the other end as long as it lives.
    let _ = std::io::stdin().read(&mut [0]);
    std::process::exit(0);
}

/// The last situation's manager on this device is released some time after its end.
fn become_manager(process: &Process, names: &ServiceManager) {
    let free = sys::patience::until(PATIENCE, || match process.become_context_manager(names.clone()) {
        Err(error) if error.kind() == ErrorKind::ResourceBusy => false,
        result => {
            result.expect("the manager");
            true
        }
    });
    assert!(free, "another manager stays");
}

struct Peer(Child);

impl Peer {
    fn pid(&self) -> i32 {
        i32::try_from(self.0.id()).expect("a pid")
    }
}

impl Drop for Peer {
    fn drop(&mut self) {
        let _ = self.0.kill();
        let _ = self.0.wait();
    }
}

/// A machine may have only one device of a kernel's driver.
static TURN: Mutex<()> = Mutex::new(());

/// A context, of which this process is the manager or a peer is.
struct Stage {
    context: AnyContext,
    process: Process,
    names: ServiceManager,
    _turn: Option<MutexGuard<'static, ()>>,
}

impl Stage {
    fn new() -> Self {
        let stage = Self::without_manager();
        become_manager(&stage.process, &stage.names);
        stage.process.start_thread_pool().expect("a pool");
        stage
    }

    fn without_manager() -> Self {
        let name = std::env::var("BINDERPERF_TEST_DRIVER").unwrap_or_else(|_| "embedded".to_owned());
        let driver: Driver = name.parse().expect("a driver");
        let of_kernel = driver == Driver::Kernel;
        let turn = of_kernel.then(|| TURN.lock().unwrap_or_else(PoisonError::into_inner));
        let device = if of_kernel { Device::Auto } else { Device::Private };
        let wanted = Wanted { driver, device, ..Wanted::default() };
        let context = locate::find(&wanted, "binder").expect("the driver").context;
        let process = Process::open(&context, ProcessOptions::default()).expect("open");
        Self { context, process, names: ServiceManager::new(), _turn: turn }
    }

    fn peer(&self, name: &str, threads: u32) -> Peer {
        let child = Command::new(std::env::current_exe().expect("own path"))
            .args(["--exact", "role", "--nocapture", "--test-threads=1"])
            .envs([(ROLE, name), (ADDRESS, &self.context.address()), (THREADS, &threads.to_string())])
            .stdin(Stdio::piped())
            .stdout(Stdio::null())
            .spawn()
            .expect("start a peer");
        Peer(child)
    }

    fn part(&self, name: &str) -> part::Client {
        assert!(sys::patience::until(PATIENCE, || self.names.find(name).is_some()), "no {name}");
        part::Client::from(self.names.find(name).expect(name))
    }

    /// Calls a part in a thread that nobody waits for.
    fn in_background(&self, name: &str, call: impl FnOnce(&part::Client) + Send + 'static) {
        let part = self.part(name);
        thread::spawn(move || call(&part));
    }

    fn file(&self, which: StateFile) -> Option<String> {
        match &self.context {
            AnyContext::Embedded(context) => context.state(which).expect("a broker"),
            AnyContext::Kernel(context) => {
                kernel_state::read_here(Some(context.path()), which).expect("the driver's files")
            }
        }
    }

    /// Whether the driver keeps a log of refused calls; the Rust driver of 7.2 does not.
    fn logs_failures(&self) -> bool {
        self.file(StateFile::FailedTransactionLog).is_some()
    }

    fn look(&self, explainer: &mut Explainer) {
        for which in [StateFile::State, StateFile::Stats, StateFile::FailedTransactionLog] {
            let text = self.file(which).unwrap_or_default();
            explainer.read_lines(which.file_name(), text.as_bytes()).expect("memory");
        }
    }

    fn explain(&self) -> Report {
        let mut explainer = Explainer::new();
        self.look(&mut explainer);
        explainer.explain(None)
    }

    /// Looks until there is such a finding.
    fn found(&self, kind: Kind, fits: impl Fn(&Finding) -> bool) -> Finding {
        let last = Arc::new(Mutex::new(None));
        let found = sys::patience::until(PATIENCE, || {
            let report = self.explain();
            let found = report.findings.iter().find(|finding| finding.kind == kind && fits(finding)).cloned();
            *last.lock().unwrap_or_else(PoisonError::into_inner) = Some((found.clone(), report));
            found.is_some()
        });
        let last = last.lock().unwrap_or_else(PoisonError::into_inner).take();
        let (finding, report) = last.expect("it looked");
        assert!(found, "no {kind:?} in:\n{report}");
        finding.expect("it was found")
    }
}

impl Drop for Stage {
    /// Ends the pool: its threads would keep the device's context, and this process its manager.
    fn drop(&mut self) {
        let _ = self.process.shutdown();
    }
}

/// Peers of one thread each, of which each calls the next one until nothing comes back.
fn deadlock_of(stage: &Stage, names: &'static [&'static str]) -> Vec<Peer> {
    let peers = names.iter().map(|name| stage.peer(name, 0)).collect();
    for name in names {
        stage.part(name);
    }
    for (at, name) in names.iter().enumerate() {
        let whom = names[(at + 1) % names.len()];
        stage.in_background(name, move |part| drop(part.relay(whom)));
    }
    peers
}

fn sorted(pids: impl IntoIterator<Item = i32>) -> Vec<i32> {
    let mut pids: Vec<i32> = pids.into_iter().collect();
    pids.sort_unstable();
    pids
}

#[test]
fn two_processes_that_call_each_other_with_their_last_threads() {
    let stage = Stage::new();
    let peers = deadlock_of(&stage, &["one", "other"]);
    let deadlock = stage.found(Kind::Deadlock, |finding| finding.grade == Grade::Bad);
    assert_eq!(sorted(deadlock.pids.clone()), sorted(peers.iter().map(Peer::pid)), "{deadlock}");
    assert!(deadlock.what.starts_with("deadlock: 2 threads"), "{deadlock}");
    assert!(deadlock.to_string().contains("2 more threads wait behind"), "{deadlock}");
}

#[test]
fn three_processes_that_call_each_other_in_a_circle() {
    let stage = Stage::new();
    let bystander = stage.peer("bystander", 4);
    stage.part("bystander");
    let peers = deadlock_of(&stage, &["red", "green", "blue"]);
    let deadlock = stage.found(Kind::Deadlock, |finding| finding.grade == Grade::Bad);
    assert!(deadlock.what.starts_with("deadlock: 3 threads"), "{deadlock}");
    assert_eq!(sorted(deadlock.pids.clone()), sorted(peers.iter().map(Peer::pid)), "{deadlock}");
    assert!(!stage.explain().findings.iter().any(|finding| finding.pids.contains(&bystander.pid())));
}

#[test]
fn a_context_manager_that_died() {
    let stage = Stage::without_manager();
    let manager = stage.peer(MANAGER, 0);
    let services = Services::wait(&stage.process, PATIENCE).expect("a manager");
    assert!(services.check("x").expect("it answers").is_none());
    drop(manager);
    // It is released some time after its end.
    assert!(sys::patience::until(PATIENCE, || services.check("x").is_err()));
    let own = i32::try_from(std::process::id()).expect("a pid");
    let orphaned = stage.found(Kind::DeadTarget, |finding| finding.contract == ["TX-07"]);
    assert!(orphaned.pids == [own] && orphaned.what.contains("1 process still holds"), "{orphaned}");
    if stage.logs_failures() {
        let refused = stage.found(Kind::Failure, |finding| finding.contract == ["TX-07"]);
        assert!(refused.pids == [own] && refused.why[0].contains("no context manager"), "{refused}");
    }
    // A new manager ends it, although the old handle is still dead.
    let _new = stage.peer(MANAGER, 0);
    assert!(sys::patience::until(PATIENCE, || {
        !stage.explain().findings.iter().any(|finding| finding.kind == Kind::DeadTarget)
    }));
}

/// Not a test: a deadlock and a leak that stay for a while, so that `explain --live` can be seen to find them.
#[test]
#[ignore = "makes a situation to look at"]
fn hold() {
    let stage = Stage::new();
    let peers = deadlock_of(&stage, &["one", "other"]);
    let (leaker, _giver) = (stage.peer("leaker", 4), stage.peer("giver", 4));
    let leaks = stage.part("leaker");
    stage.part("giver");
    let seconds =
        std::env::var("EXPLAIN_TEST_HOLD_S").ok().and_then(|seconds| seconds.parse().ok()).unwrap_or(60);
    println!("deadlock of {:?}, leak of {}", sorted(peers.iter().map(Peer::pid)), leaker.pid());
    for _ in 0..seconds {
        let _ = leaks.keep("giver", 40);
        thread::sleep(Duration::from_secs(1));
    }
}

#[test]
fn a_pool_of_which_every_thread_hangs() {
    let stage = Stage::new();
    let busy = stage.peer("busy", 2);
    for _ in 0..5 {
        stage.in_background("busy", |part| drop(part.hold()));
    }
    let own = i32::try_from(std::process::id()).expect("a pid");
    let served = format!("3 calls (code 4) from process {own}");
    // Not in the moment in which the calls arrive.
    let pool = stage.found(Kind::StarvedPool, |finding| {
        finding.grade >= Grade::Warning
            && finding.what.contains("2 calls wait")
            && finding.to_string().contains(&served)
    });
    assert_eq!(pool.pids, [busy.pid()], "{pool}");
    let wait = stage.found(Kind::Wait, |finding| finding.pids.first() == Some(&busy.pid()));
    assert!(wait.what.starts_with("5 threads wait for"), "{wait}");
}

#[test]
fn a_process_that_keeps_what_it_was_sent() {
    let stage = Stage::new();
    let (leaker, giver) = (stage.peer("leaker", 4), stage.peer("giver", 4));
    let leaks = stage.part("leaker");
    stage.part("giver");
    let mut explainer = Explainer::new();
    stage.look(&mut explainer);
    let times = leaks.keep("giver", 300).expect("it keeps");
    stage.look(&mut explainer);
    let report = explainer.explain(None);
    let of = |kind: Kind| {
        let found = report.findings.iter().find(|finding| finding.kind == kind);
        found.unwrap_or_else(|| panic!("no {kind:?}: {report}"))
    };
    let kept = of(Kind::BufferSpace);
    assert!(
        // One more if a reply from before was not given back yet: the runtime does that with its next call.
        kept.pids[0] == leaker.pid()
            && (times..=times + 1).any(|kept_now| kept.what.contains(&format!("keeps {kept_now} buffers"))),
        "{report}"
    );
    let grown = of(Kind::Growth);
    assert!(
        grown.pids == [leaker.pid()]
            && (times..=times + 1)
                .any(|kept_now| grown.what.contains(&format!("more buffers: {kept_now} of"))),
        "{report}"
    );
    // Where a driver names senders, it is one.
    assert!(!report.findings.iter().any(|finding| finding.pids.first() == Some(&giver.pid())), "{report}");
}

#[test]
fn a_flood_of_oneway_calls() {
    let stage = Stage::new();
    let slow = stage.peer("slow", 4);
    let part = stage.part("slow");
    let sent = (0..2000).take_while(|_| part.slow(&"z".repeat(400)).is_ok()).count();
    assert!(sent > 100, "{sent}");
    let own = i32::try_from(std::process::id()).expect("a pid");
    let backlog = stage.found(Kind::OnewayBacklog, |finding| finding.when.contains(" s"));
    assert!(backlog.pids == [own, slow.pid()], "{backlog}");
    assert!(backlog.why[0].contains(&format!("from process {own}")), "{backlog}");
    let full = stage.found(Kind::BufferSpace, |finding| finding.what.contains("left for oneway calls"));
    assert_eq!((full.grade, full.pids.as_slice()), (Grade::Bad, &[slow.pid()][..]), "{full}");
    if stage.logs_failures() {
        let refused = stage.found(Kind::Failure, |finding| finding.what.contains("oneway call"));
        assert!(refused.contract == ["OW-06", "BUF-04"] && refused.pids == [slow.pid(), own], "{refused}");
    }
}

#[test]
fn a_frozen_process_that_is_called() {
    let stage = Stage::new();
    let cold = stage.peer("cold", 4);
    let part = stage.part("cold");
    let pid = cold.0.id();
    // Its registration may not be over.
    let freeze =
        || stage.process.connection().freeze(FreezeInfo { pid, enable: 1, timeout_ms: 1000 }).is_ok();
    assert!(sys::patience::until(PATIENCE, freeze));
    assert!(part.echo("x").is_err());
    let _ = part.slow("x");
    let own = i32::try_from(std::process::id()).expect("a pid");
    let caller = stage
        .found(Kind::Frozen, |finding| finding.what.contains("1 call refused, 1 oneway call left waiting"));
    assert_eq!(caller.pids, [own], "{caller}");
    if stage.logs_failures() {
        let refused = stage.found(Kind::Frozen, |finding| finding.what.contains("29202"));
        assert_eq!(refused.pids, [cold.pid(), own], "{refused}");
    }
}
