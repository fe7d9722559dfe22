//! The peer processes of a test, and the context they share. A peer is this test binary with a role in its
//! environment; it ends with its parent.

use std::any::Any;
use std::io::Read;
use std::process::{Child, Command, Stdio};
use std::sync::{Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use needs::{Lack, Need};

use backend::locate::{self, Located, Wanted};
use backend::{AnyConnection, AnyContext};
use driver::{Context, OpenOptions};
use ipc::binder::manager::Services;
use ipc::{Binder, Process, ProcessOptions, Release};

use crate::{hot_path, hwtoolbox, toolbox};

pub(crate) type TestProcess = Process<AnyConnection>;

const ROLE: &str = "BINDERPERF_TEST_ROLE";
/// Which driver to test on: `kernel` (the default) or `embedded`.
const DRIVER: &str = "BINDERPERF_TEST_DRIVER";
const ADDRESS: &str = "BINDERPERF_TEST_ADDRESS";
const RELEASE: &str = "BINDERPERF_TEST_RELEASE";
const THREADS: &str = "BINDERPERF_TEST_THREADS";

/// Generous: an emulated guest on a busy machine is slow.
pub(crate) const PATIENCE: Duration = Duration::from_secs(120);

static TURN: Mutex<()> = Mutex::new(());

/// One test's context and whose turn it is.
pub(crate) struct Bench {
    context: AnyContext,
    /// An embedded driver's broker may run in the first process that opens a context, and that must
    /// not be one that a test kills.
    _first: AnyConnection,
    _turn: MutexGuard<'static, ()>,
}

/// The context to test on.
pub(crate) fn bench() -> Result<Bench, Lack> {
    bench_of("binder")
}

/// The context of a flavour to test on.
pub(crate) fn bench_of(flavour: &str) -> Result<Bench, Lack> {
    let turn = TURN.lock().unwrap_or_else(PoisonError::into_inner);
    let driver = std::env::var(DRIVER).unwrap_or_else(|_| "kernel".to_owned());
    let driver = driver.parse().expect("a driver");
    match locate::find(&Wanted { driver, ..Wanted::default() }, flavour) {
        Ok(Located { context, .. }) => {
            let options = OpenOptions { map_size: 0, ..OpenOptions::default() };
            let first = context.open(options).expect("open");
            Ok(Bench { context, _first: first, _turn: turn })
        }
        Err(error) => Err(Need::Driver.lacks(error)),
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

impl Bench {
    /// The context itself.
    pub(crate) fn context(&self) -> &AnyContext {
        &self.context
    }

    /// Opens the device in this process, with a running pool of at most `threads` more threads.
    pub(crate) fn process(&self, release: Release, threads: u32) -> Opened {
        self.open(ProcessOptions { release, max_threads: threads, ..ProcessOptions::default() })
    }

    /// Opens the device in this process, with a running pool.
    pub(crate) fn open(&self, options: ProcessOptions) -> Opened {
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
            .envs([(ROLE, role), (ADDRESS, &self.context.address()), (RELEASE, release.name())])
            .env(THREADS, threads.to_string())
            .envs(more.iter().copied())
            .stdin(Stdio::piped())
            .stdout(Stdio::null())
            .spawn()
            .expect("start a peer");
        Peer { child }
    }
}

/// A test's context, a peer with a manager and a toolbox, and this process as its client; `None` without a driver.
pub(crate) fn served(threads: u32) -> Result<(Bench, Peer, Opened, Binder), Lack> {
    Ok(served_with(bench()?, threads, &[]))
}

/// [`served`] with more variables for the peer.
pub(crate) fn served_with(
    bench: Bench,
    threads: u32,
    more: &[(&str, &str)],
) -> (Bench, Peer, Opened, Binder) {
    let peer = bench.peer_with("manager", Release::default(), threads, more);
    let process = bench.process(Release::default(), 4);
    let services = Services::wait(&process, PATIENCE).expect("a manager");
    let toolbox = services.get(toolbox::NAME).expect("a toolbox");
    (bench, peer, process, toolbox)
}

/// Waits for something that another process or thread is about to do.
pub(crate) fn eventually(what: &str, mut done: impl FnMut() -> bool) {
    assert!(sys::patience::until(PATIENCE, &mut done), "still not: {what}");
}

/// Makes a process its context's manager. The last test's is released a little after it was reaped
/// (contract EXT-04).
pub(crate) fn become_manager<T>(become_it: impl Fn() -> std::io::Result<T>) {
    eventually("manager", || match become_it() {
        Err(error) if error.kind() == std::io::ErrorKind::ResourceBusy => false,
        result => result.map(|_| true).expect("become the manager"),
    });
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
    let _process: Box<dyn Any> = match role.as_str() {
        "counted" | "hwcounted" => hot_path::play(&role, &context),
        "hwtoolbox" | "hwmanager" | "hwservice" => {
            Box::new(hwtoolbox::play(&role, &context, options.max_threads))
        }
        _ => Box::new(toolbox::play(&role, &context, options)),
    };
    // The parent holds the other end as long as it lives.
    let _ = std::io::stdin().read(&mut [0]);
    std::process::exit(0);
}
