//! Situations that are made on the embedded driver, between processes: each is found, with the one to blame.
//! Not here: other drivers' texts (`cases`), a busy system without faults (the command line's tests).
//!
//! A peer is this test binary with a role in its environment; it ends with its parent.

use std::io::Read;
use std::process::{Child, Command, Stdio};
use std::sync::{Arc, Mutex, PoisonError};
use std::thread;
use std::time::Duration;

use abi::layout::FreezeInfo;
use backend::locate::{Device, Driver, Wanted};
use backend::{AnyContext, locate};
use binder::{Process, ProcessOptions, ServiceManager, Services, Status};
use driver::Connection;
use driver::kernel_state::StateFile;
use embedded::Settings;
use explain::{Explainer, Finding, Grade, Kind, Report};

const ROLE: &str = "EXPLAIN_TEST_ROLE";
const ADDRESS: &str = "EXPLAIN_TEST_ADDRESS";
const THREADS: &str = "EXPLAIN_TEST_THREADS";
/// Generous: other work may share the machine.
const PATIENCE: Duration = Duration::from_secs(120);

binder::interface! {
    mod part = "example.IPart" {
        fn echo(text: String) -> String;
        /// Calls `echo` of another part, which does the same by then.
        fn relay(name: String) -> String;
        /// Calls `echo` of a part so many times, and keeps the replies.
        fn keep(name: String, times: i32) -> i32;
        fn hold();
        oneway fn slow(text: String);
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
        // The other one is to be in `relay`, too.
        thread::sleep(Duration::from_millis(500));
        other.echo("x").map_err(|_| Status::UNKNOWN_TRANSACTION)
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
    let part = process.publish(part::Served(Part { process: process.clone() }));
    Services::wait(&process, PATIENCE).expect("a manager").add(&name, &part).expect("registered");
    // The parent holds the other end as long as it lives.
    let _ = std::io::stdin().read(&mut [0]);
    std::process::exit(0);
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

/// A private context, of which this process is the manager.
struct Stage {
    context: AnyContext,
    process: Process,
    names: ServiceManager,
}

impl Stage {
    fn new() -> Self {
        // Calls through call slots are not in the state.
        let settings = Settings { call_slots: false, ..Settings::default() };
        let wanted =
            Wanted { driver: Driver::Embedded, device: Device::Private, settings, ..Wanted::default() };
        let context = locate::find(&wanted, "binder").expect("the embedded driver").context;
        let process = Process::open(&context, ProcessOptions::default()).expect("open");
        let names = ServiceManager::new();
        process.become_context_manager(names.clone()).expect("the manager");
        process.start_thread_pool().expect("a pool");
        Self { context, process, names }
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

    fn look(&self, explainer: &mut Explainer) {
        let AnyContext::Embedded(context) = &self.context else { panic!("another driver") };
        for which in [StateFile::State, StateFile::Stats, StateFile::FailedTransactionLog] {
            let text = context.state(which).expect("a broker").expect("a state");
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

#[test]
fn two_processes_that_call_each_other_with_their_last_threads() {
    let stage = Stage::new();
    let (one, other) = (stage.peer("one", 0), stage.peer("other", 0));
    for (part, whom) in [("one", "other"), ("other", "one")] {
        stage.part(whom);
        stage.in_background(part, move |part| drop(part.relay(whom)));
    }
    let deadlock = stage.found(Kind::Deadlock, |finding| finding.grade == Grade::Bad);
    let mut pids = [one.pid(), other.pid()];
    pids.sort_unstable();
    let mut blamed = deadlock.pids.clone();
    blamed.sort_unstable();
    assert_eq!(blamed, pids, "{deadlock}");
    assert!(deadlock.what.starts_with("deadlock: 2 threads"), "{deadlock}");
    assert!(
        deadlock.to_string().contains("2 more threads wait behind")
            || deadlock.to_string().contains("more wait behind"),
        "{deadlock}"
    );
}

#[test]
fn a_pool_of_which_every_thread_hangs() {
    let stage = Stage::new();
    let busy = stage.peer("busy", 2);
    for _ in 0..5 {
        stage.in_background("busy", |part| drop(part.hold()));
    }
    let pool = stage.found(Kind::StarvedPool, |finding| {
        finding.grade >= Grade::Warning && finding.what.contains("2 calls wait")
    });
    assert_eq!(pool.pids, [busy.pid()], "{pool}");
    let own = i32::try_from(std::process::id()).expect("a pid");
    assert!(pool.to_string().contains(&format!("3 calls (code 4) from process {own}")), "{pool}");
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
    assert!(kept.pids == [leaker.pid()] && kept.what.contains(&format!("keeps {times} buffers")), "{report}");
    let grown = of(Kind::Growth);
    assert!(
        grown.pids == [leaker.pid()] && grown.what.contains(&format!("{times} more buffers")),
        "{report}"
    );
    assert!(!report.findings.iter().any(|finding| finding.pids.contains(&giver.pid())), "{report}");
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
    let refused = stage.found(Kind::Failure, |finding| finding.what.contains("oneway call"));
    assert!(refused.contract == ["BUF-04", "OW-06"] && refused.pids == [slow.pid(), own], "{refused}");
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
    let refused = stage.found(Kind::Frozen, |finding| finding.what.contains("29202"));
    assert_eq!(refused.pids, [cold.pid(), own], "{refused}");
}
