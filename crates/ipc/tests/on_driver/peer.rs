//! Room: the other OS processes of a test, and the context they share.
//! A peer is this very test binary, told its role by the environment; it ends with its parent.

use std::io::Read;
use std::process::{Child, Command, Stdio};
use std::sync::{Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};

use driver::locate::{self, Located, Wanted};
use driver::{AnyConnection, AnyContext, Context, OpenOptions};
use ipc::binder::manager::{ServiceManager, Services};
use ipc::{Binder, Process, ProcessOptions, Release};

use crate::hwtoolbox;
use crate::toolbox::{self, Toolbox};

pub(crate) type TestProcess = Process<AnyConnection>;

const ROLE: &str = "BINDERPERF_TEST_ROLE";
/// Which driver to test on: `kernel` (the default) or `embedded`.
const DRIVER: &str = "BINDERPERF_TEST_DRIVER";
const ADDRESS: &str = "BINDERPERF_TEST_ADDRESS";
const RELEASE: &str = "BINDERPERF_TEST_RELEASE";
const THREADS: &str = "BINDERPERF_TEST_THREADS";

/// Generous: an emulated guest on a busy machine is slow.
pub(crate) const PATIENCE: Duration = Duration::from_secs(30);

static TURN: Mutex<()> = Mutex::new(());

/// One test's context and whose turn it is.
pub(crate) struct Bench {
    context: AnyContext,
    /// An embedded driver's broker may run in the first process that opens a context, and that must
    /// not be one that a test kills.
    _first: AnyConnection,
    _turn: MutexGuard<'static, ()>,
}

/// The context to test on; `None`, with the reason printed, where there is none.
pub(crate) fn bench() -> Option<Bench> {
    bench_of("binder")
}

/// The same for a flavour.
pub(crate) fn bench_of(flavour: &str) -> Option<Bench> {
    let turn = TURN.lock().unwrap_or_else(PoisonError::into_inner);
    let driver = std::env::var(DRIVER).unwrap_or_else(|_| "kernel".to_owned());
    let driver = driver.parse().expect("a driver");
    match locate::find(&Wanted { driver, ..Wanted::default() }, flavour) {
        Ok(Located { context, .. }) => {
            let options = OpenOptions { map_size: 0, ..OpenOptions::default() };
            let first = context.open(options).expect("open");
            Some(Bench { context, _first: first, _turn: turn })
        }
        Err(error) => {
            assert!(std::env::var_os("BINDERPERF_REQUIRE_DRIVER").is_none(), "no driver: {error}");
            println!("SKIP: {error}");
            None
        }
    }
}

/// A peer process, killed at the end of the test.
pub(crate) struct Peer {
    child: Child,
}

impl Peer {
    pub(crate) fn pid(&self) -> i32 {
        i32::try_from(self.child.id()).expect("a pid")
    }

    /// SIGKILL; returns when the process is reaped (its device is released a little later).
    pub(crate) fn kill(&mut self) {
        self.child.kill().expect("kill");
        self.child.wait().expect("wait");
    }
}

impl Drop for Peer {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

/// A process in the test itself, whose pool ends with the test.
pub(crate) struct Opened(TestProcess);

impl std::ops::Deref for Opened {
    type Target = TestProcess;

    fn deref(&self) -> &TestProcess {
        &self.0
    }
}

impl Drop for Opened {
    fn drop(&mut self) {
        let _ = self.0.shutdown();
    }
}

impl From<TestProcess> for Opened {
    fn from(process: TestProcess) -> Self {
        Self(process)
    }
}

impl Bench {
    /// The context itself.
    pub(crate) fn context(&self) -> &AnyContext {
        &self.context
    }

    /// Opens the device in this process, with a running pool of at most `threads` more threads.
    pub(crate) fn process(&self, release: Release, threads: u32) -> Opened {
        let options = ProcessOptions { release, max_threads: threads, ..ProcessOptions::default() };
        let process = Process::open(&self.context, options).expect("open");
        process.start_thread_pool().expect("start the pool");
        Opened(process)
    }

    pub(crate) fn peer(&self, role: &str, release: Release, threads: u32) -> Peer {
        self.peer_with(role, release, threads, &[])
    }

    fn peer_with(&self, role: &str, release: Release, threads: u32, more: &[(&str, &str)]) -> Peer {
        let child = Command::new(std::env::current_exe().expect("own path"))
            .args(["--exact", "role", "--nocapture", "--test-threads=1"])
            .env(ROLE, role)
            .env(ADDRESS, self.context.address())
            .env(RELEASE, release.name())
            .env(THREADS, threads.to_string())
            .envs(more.iter().copied())
            .stdin(Stdio::piped())
            .stdout(Stdio::null())
            .spawn()
            .expect("start a peer");
        Peer { child }
    }

    /// A manager with a toolbox in one peer, and this process as its client.
    pub(crate) fn served(&self, threads: u32) -> (Peer, Opened, Binder) {
        self.served_with(threads, &[])
    }

    /// The same, with more variables for the peer.
    pub(crate) fn served_with(&self, threads: u32, more: &[(&str, &str)]) -> (Peer, Opened, Binder) {
        let peer = self.peer_with("manager", Release::default(), threads, more);
        let process = self.process(Release::default(), 4);
        let services = Services::wait(&process, PATIENCE).expect("a manager");
        let toolbox = services.get(toolbox::NAME).expect("a toolbox");
        (peer, process, toolbox)
    }
}

/// Waits for something that another process or thread is about to do.
pub(crate) fn eventually(what: &str, mut done: impl FnMut() -> bool) {
    let end = Instant::now() + PATIENCE;
    while !done() {
        assert!(Instant::now() < end, "still not: {what}");
        std::thread::sleep(Duration::from_millis(2));
    }
}

/// The role that the environment gives; nothing in the test process itself.
pub(crate) fn play() {
    let Ok(role) = std::env::var(ROLE) else { return };
    let setting = |name| std::env::var(name).expect("a complete role");
    let options = ProcessOptions {
        release: setting(RELEASE).parse().expect("a release"),
        max_threads: setting(THREADS).parse().expect("a number"),
        background_scheduling: crate::scheduling::wanted(),
        ..ProcessOptions::default()
    };
    let context = AnyContext::parse(&setting(ADDRESS));
    let _process = match role.as_str() {
        "hwtoolbox" | "hwmanager" | "hwservice" => hwtoolbox::play(&role, &context, options.max_threads),
        _ => play_aidl(&role, &context, options),
    };
    // The parent holds the other end as long as it lives.
    let _ = std::io::stdin().read(&mut [0]);
    std::process::exit(0);
}

fn play_aidl(role: &str, context: &AnyContext, options: ProcessOptions) -> TestProcess {
    let process = Process::open(context, options).expect("open");
    match role {
        "manager" => {
            let manager = ServiceManager::new();
            manager.declare("example.IDeclared/default");
            // A device that others use too: the last test's manager is released a little after it
            // was reaped (contract EXT-04).
            eventually("manager", || match process.become_context_manager(manager.clone()) {
                Err(error) if error.kind() == std::io::ErrorKind::ResourceBusy => false,
                result => result.map(|_| true).expect("become the manager"),
            });
            let toolbox = process.publish(Toolbox::new(process.clone()));
            manager.add(toolbox::NAME, &toolbox).expect("add");
            process.start_thread_pool().expect("start the pool");
        }
        "service" => {
            process.start_thread_pool().expect("start the pool");
            let toolbox = process.publish(Toolbox::new(process.clone()));
            let services = Services::wait(&process, PATIENCE).expect("a manager");
            services.add("second", &toolbox).expect("add");
        }
        other => panic!("no role {other}"),
    }
    process
}
