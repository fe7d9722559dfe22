//! Test kit: opens processes on the context under test, passes nodes between them, starts helper processes, and
//! states what to expect of each driver.
//! Not here: the promises (one file per section), raw processes (`raw_process`).

use std::io;
use std::os::fd::AsFd;
use std::os::unix::fs::MetadataExt;
use std::path::Path;
use std::process::{Child, Command, ExitStatus, Stdio};
use std::time::Instant;

use abi::codes::{br, object};
use abi::layout::{FlatBinderObject, FreezeInfo};
use abi::{Cookie, Delivery, Handle, NodePtr, Return, TransactionFlags};
use driver::OpenOptions;
use driver::kernel_state::{StateError, StateFile};
use embedded::Inherit;
use host::Release;
use host::evidence::{Evidence, Kind};
use procgroup::{Streams, WorkerProcess};
use sys::binder_fd::BinderFd;
use zerocopy::{FromBytes, IntoBytes};

use super::check::{
    PATIENCE, Stop, Verdict, done, ensure, expect, expect_errno, patiently, skip_unless, soon,
};
use super::payload::Draft;
use super::raw_process::{Got, Node, RawProcess, expect_work, plain};
use super::subject::{Subject, examine};
use super::test_manager;

/// The test kit.
pub(super) struct Kit {
    pub(super) subject: Subject,
    pub(super) evidence: Evidence,
}

/// A server with one node, and a client with a strong reference to it.
pub(super) struct Pair {
    pub(super) server: RawProcess,
    pub(super) client: RawProcess,
    pub(super) node: Node,
    pub(super) handle: Handle,
}

impl Kit {
    /// A kit for this context.
    pub(super) fn new(subject: Subject) -> Result<Self, Stop> {
        let evidence = examine(&subject)?;
        Ok(Self { subject, evidence })
    }

    /// A kit for another context of the same driver.
    pub(super) fn on(&self, subject: Subject) -> Self {
        Self { subject, evidence: self.evidence.clone() }
    }

    /// A kit whose processes pass on this much of a caller's priority, if that is configurable; otherwise skips the
    /// test unless the driver does so anyway.
    pub(super) fn inheriting(&self, inherit: Inherit, why: impl FnOnce() -> String) -> Result<Self, Stop> {
        let subject = match self.subject.inheriting(inherit) {
            None if self.evidence.inherit == inherit => self.subject.clone(),
            other => other.ok_or_else(|| Stop::Skip(why()))?,
        };
        Ok(Self { subject, evidence: Evidence { inherit, ..self.evidence.clone() } })
    }

    /// Opens the context with mapping and non-blocking reads; the calling thread is known to the driver.
    pub(super) fn open(&self) -> Result<RawProcess, Stop> {
        self.open_with(OpenOptions { nonblocking: true, ..OpenOptions::default() })
    }

    /// Opens the context with a receive mapping of this size.
    pub(super) fn open_mapped(&self, map_size: usize) -> Result<RawProcess, Stop> {
        self.open_with(OpenOptions { nonblocking: true, map_size })
    }

    pub(super) fn open_with(&self, options: OpenOptions) -> Result<RawProcess, Stop> {
        let process = RawProcess::new(self.subject.open(options)?);
        // The C driver treats a thread's first ioctl specially (contract WR-05).
        process.version()?;
        Ok(process)
    }

    /// Opens a process whose calling thread is a looper.
    pub(super) fn server(&self) -> Result<RawProcess, Stop> {
        let process = self.open()?;
        process.enter_looper()?;
        Ok(process)
    }

    /// A server, a client, and the client's handle to the server's node.
    pub(super) fn pair(&self) -> Result<Pair, Stop> {
        self.pair_of(self.server()?, self.open()?, Node::number(1))
    }

    /// A pair whose server has a receive mapping of this size.
    pub(super) fn pair_mapped(&self, map_size: usize) -> Result<Pair, Stop> {
        let server = self.open_mapped(map_size)?;
        server.enter_looper()?;
        self.pair_of(server, self.open()?, Node::number(1))
    }

    /// A pair with a call that was delivered and not answered yet.
    pub(super) fn called_pair(&self, flags: TransactionFlags) -> Result<(Pair, Delivery), Stop> {
        let pair = self.pair()?;
        let call = pair.deliver_with(flags, &Draft::default())?;
        Ok((pair, call))
    }

    /// Two loopers, of which one has a handle to node 1 of the other.
    pub(super) fn looper_pair(&self) -> Result<Pair, Stop> {
        self.pair_of(self.server()?, self.server()?, Node::number(1))
    }

    /// Passes `node` of `server` to `client`.
    pub(super) fn pair_of(&self, server: RawProcess, client: RawProcess, node: Node) -> Result<Pair, Stop> {
        let handle = self.hand_over(&server, &client, node)?;
        Ok(Pair { server, client, node, handle })
    }

    /// Another client of `server`, and its handle to this node.
    pub(super) fn client_of(&self, server: &RawProcess, node: Node) -> Result<(RawProcess, Handle), Stop> {
        let client = self.open()?;
        let handle = self.hand_over(server, &client, node)?;
        Ok((client, handle))
    }

    /// Gives `client` a strong reference to a node of `server`, through the test manager.
    pub(super) fn hand_over(
        &self,
        server: &RawProcess,
        client: &RawProcess,
        node: Node,
    ) -> Result<Handle, Stop> {
        self.leave(server, node, node.ptr)?;
        let handle = self.fetch(client, node.ptr)?;
        self.forget(client, node.ptr)?;
        Ok(handle)
    }

    /// Leaves a node in the test manager; the server then has acknowledged its references.
    pub(super) fn leave(&self, server: &RawProcess, node: Node, number: u64) -> Verdict {
        Self::write_leave(server, object::BINDER, node, number)?;
        loop {
            let got = server.read()?;
            server.acknowledge(&got)?;
            if got.returns.contains(&Return::TransactionComplete) {
                return Ok(());
            }
        }
    }

    /// Sends a node to the test manager without reading the results.
    pub(super) fn write_leave(server: &RawProcess, kind: u32, node: Node, number: u64) -> Verdict {
        let draft = Draft::of(&node.object(kind)).bytes(number.as_bytes());
        let (manager, flags) = (Handle::CONTEXT_MANAGER, TransactionFlags::ONEWAY);
        server.send(manager, test_manager::LEAVE, flags, draft.payload())
    }

    /// Fetches the object left under a number: a handle with one count of its kind.
    pub(super) fn fetch(&self, client: &RawProcess, number: u64) -> Result<Handle, Stop> {
        let start = Instant::now();
        loop {
            let reply = self.ask(client, test_manager::FETCH, &number.to_ne_bytes())?.reply()?;
            let data = client.bytes(&reply)?;
            if let Ok((object, _)) = FlatBinderObject::read_from_prefix(&data) {
                client.write(|c| {
                    test_manager::count_up(c, &object);
                    c.free_buffer(reply.buffer);
                })?;
                return Ok(Handle(object.binder as u32));
            }
            client.free(&reply)?;
            ensure(!sys::patience::is_over(start, PATIENCE), || {
                "a node left with the context manager never arrived".into()
            })?;
        }
    }

    /// Makes the test manager drop the object left under a number.
    pub(super) fn forget(&self, client: &RawProcess, number: u64) -> Verdict {
        let reply = self.ask(client, test_manager::DROP, &number.to_ne_bytes())?.reply()?;
        client.free(&reply)
    }

    /// Calls the context manager.
    pub(super) fn ask(&self, client: &RawProcess, code: u32, data: &[u8]) -> Result<Got, Stop> {
        client.call_with(Handle::CONTEXT_MANAGER, code, plain(data))
    }

    pub(super) fn kind(&self) -> Kind {
        self.evidence.kind
    }

    pub(super) fn is_embedded(&self) -> bool {
        self.kind() == Kind::Embedded
    }

    pub(super) fn is_rust(&self) -> bool {
        self.kind() == Kind::Rust
    }

    /// Chooses the expectation: C driver (and embedded), or Rust driver.
    pub(super) fn by_driver<T>(&self, c: T, rust: T) -> T {
        if self.is_rust() { rust } else { c }
    }

    /// Skips the rest of a test on the Rust driver, to which it does not apply.
    pub(super) fn not_in_rust(&self) -> Verdict {
        skip_unless(!self.is_rust(), "a promise of the C driver only; this is the Rust driver")
    }

    /// Skips a test of the Rust driver's promise on other drivers.
    pub(super) fn only_in_rust(&self) -> Verdict {
        let why = format!("a promise of the Rust driver only; this is the {}", self.kind());
        skip_unless(self.is_rust(), &why)
    }

    /// Ends a test of a promise that cannot hold on this driver, after the documented alternative was found. The item
    /// has the option `differs` and a section in `docs/differences.md`.
    pub(super) fn differs(&self, instead: &str) -> Verdict {
        Err(Stop::Differs(format!("on the {}: {instead}", self.kind())))
    }

    /// The driver's state file; skips the rest of a test where it is not available.
    pub(super) fn state_text(&self, which: StateFile) -> Result<String, Stop> {
        match self.subject.state(which) {
            Ok(Some(text)) => Ok(text),
            Ok(None) => Err(Stop::Skip(format!("the {} keeps no {}", self.kind(), which.file_name()))),
            Err(error @ StateError::Os { .. }) => Err(Stop::Fail(error.to_string())),
            Err(error) => Err(Stop::Skip(error.to_string())),
        }
    }

    /// Skips the rest of a test on kernels older than this.
    pub(super) fn since(&self, major: u32, minor: u32, what: &str) -> Verdict {
        let (found, needed) = (self.evidence.release, Release(major, minor));
        let why = format!("the driver of Linux {found} lacks {what}: brought by Linux {needed}");
        skip_unless(found >= needed, &why)
    }

    /// Whether the driver of this kernel has a word of the protocol: those of freeze notifications came with Linux 6.12.
    pub(super) fn knows(&self, word: &str) -> bool {
        !(word.contains("FREEZE") || word.contains("FROZEN")) || self.evidence.release >= Release(6, 12)
    }

    /// The kernel's device node; skips the rest of a test without one.
    pub(super) fn device(&self) -> Result<&Path, Stop> {
        let why = || Stop::Skip(format!("needs a kernel's device; this is the {}", self.kind()));
        self.subject.device().ok_or_else(why)
    }

    /// Checks the caller's extended error after a refusal. `None`: this driver records none. Kernels without the
    /// ioctl pass, because the refusal itself was checked.
    pub(super) fn expect_error(
        &self,
        process: &RawProcess,
        c: Option<(u32, &str)>,
        rust: Option<(u32, &str)>,
    ) -> Verdict {
        let error = match process.extended_error() {
            Err(Stop::Skip(_)) => return Ok(()),
            other => other?,
        };
        let name = if error.param == 0 { "0" } else { sys::errno::name(-error.param).unwrap_or("?") };
        let want = self.by_driver(c, rust).unwrap_or((br::OK, "0"));
        if want.0 != br::OK {
            expect("a number as the id of the extended error", error.id != 0, true)?;
        }
        expect(
            "the extended error's command and negative errno",
            (abi::ReturnWord(error.command).to_string(), name),
            (abi::ReturnWord(want.0).to_string(), want.1),
        )
    }

    /// Checks a refused call: exactly these returns, and this extended error.
    pub(super) fn expect_failed(&self, process: &RawProcess, got: &Got, c: &str, rust: &str) -> Verdict {
        expect_work("a refused call", got, "FAILED_REPLY")?;
        self.expect_failure(process, c, rust)
    }

    /// Checks the caller's extended error after a `BR_FAILED_REPLY`.
    pub(super) fn expect_failure(&self, process: &RawProcess, c: &str, rust: &str) -> Verdict {
        self.expect_error(process, Some((br::FAILED_REPLY, c)), Some((br::FAILED_REPLY, rust)))
    }

    /// Prepares a helper process that dies with this one.
    pub(super) fn helper(&self, role: &str, words: &[&str]) -> Command {
        let mut command = self.untied_helper(role, words);
        sys::child::die_with_parent(&mut command);
        command
    }

    /// Prepares a helper process whose standard input is a copy of an open device.
    pub(super) fn helper_with(&self, fd: &BinderFd, role: &str, words: &[&str]) -> Result<Command, Stop> {
        let mut command = self.helper(role, words);
        command.stdin(done("duplicating the device", fd.as_fd().try_clone_to_owned())?);
        Ok(command)
    }

    /// Prepares a helper process that ends by itself; it may run where it cannot see its parent.
    pub(super) fn untied_helper(&self, role: &str, words: &[&str]) -> Command {
        let mut command = Command::new("/proc/self/exe");
        command.arg(super::HELPER_COMMAND).arg(role).arg(self.subject.address()).args(words);
        command.stdin(Stdio::null()).stdout(Stdio::piped()).stderr(Stdio::inherit());
        sys::title::give(&mut command, &format!("helper {role}"));
        command
    }

    /// Runs a helper to its end; returns its trimmed standard output.
    pub(super) fn run_helper(&self, mut command: Command) -> Result<String, Stop> {
        let child = done("starting a helper process", command.spawn())?;
        let (status, said) = finish(child)?;
        ensure(status.success(), || format!("a helper process ended with {status} after saying {said:?}"))?;
        Ok(said)
    }

    /// Runs a helper that must be killed by this signal.
    pub(super) fn expect_killed(&self, mut command: Command, signal: i32) -> Verdict {
        let child = done("starting a helper process", command.spawn())?;
        let (status, said) = finish(child)?;
        let killed_by = std::os::unix::process::ExitStatusExt::signal(&status);
        ensure(killed_by == Some(signal), || {
            format!("expected death by signal {signal}, got {status} after {said:?}")
        })
    }

    /// Starts a helper that serves until it is dropped; it is ready.
    pub(super) fn serving_helper(&self, role: &str, words: &[&str]) -> Result<WorkerProcess, Stop> {
        let address = self.subject.address();
        let own = [super::HELPER_COMMAND, role, &address];
        let words: Vec<String> = own.iter().chain(words).map(|word| (*word).to_owned()).collect();
        let streams = Streams::of(Stdio::piped(), Stdio::piped());
        let started = WorkerProcess::spawn(
            Path::new("/proc/self/exe"),
            &format!("helper {role}"),
            &words,
            streams,
            None,
        );
        let helper = done("starting a helper process", started)?;
        match helper.ready(4 * PATIENCE) {
            Ok(_) => Ok(helper),
            Err(why) => Err(Stop::Fail(format!("starting a helper process: {why}"))),
        }
    }

    /// A context manager in another OS process, which answers with this tag.
    pub(super) fn manager(&self, tag: &str) -> Result<WorkerProcess, Stop> {
        self.serving_helper("manager", &[tag])
    }

    /// Makes a process the context manager; waits for the release of a former one.
    pub(super) fn become_manager(&self, process: &RawProcess, node: Option<FlatBinderObject>) -> Verdict {
        let result = patiently(|| process.conn.become_context_manager(node));
        done("becoming the context manager", result)
    }

    /// A new process with a handle to `node` that is notified of the owner's death.
    pub(super) fn watch(&self, owner: &RawProcess, node: Node) -> Result<Watcher, Stop> {
        let process = self.server()?;
        let handle = self.hand_over(owner, &process, node)?;
        process.write(|c| c.request_death(handle, Cookie(node.cookie)))?;
        Ok(Watcher(process))
    }

    /// The effective uid of this process.
    pub(super) fn euid(&self) -> Option<u32> {
        std::fs::metadata("/proc/self").ok().map(|entry| entry.uid())
    }

    /// Whether this process may change its uid.
    pub(super) fn is_root(&self) -> bool {
        self.euid() == Some(0)
    }

    /// Skips the rest of a test if processes cannot be frozen here.
    pub(super) fn can_freeze(&self) -> Verdict {
        self.names_itself()?;
        self.since(5, 13, "BINDER_FREEZE")
    }

    /// Skips the rest of a test in a pid namespace, where the driver knows this process by another number.
    pub(super) fn names_itself(&self) -> Verdict {
        let status = std::fs::read_to_string("/proc/self/status").unwrap_or_default();
        let pids = status.lines().find_map(|line| line.strip_prefix("NSpid:")).unwrap_or_default();
        let named = self.is_embedded() || pids.split_whitespace().count() <= 1;
        skip_unless(named, "in a pid namespace, where the driver knows a process by another number")
    }

    /// Freezes or thaws this OS process; skips the rest of a test where that is impossible.
    pub(super) fn freeze_self(&self, process: &RawProcess, enable: bool) -> Verdict {
        self.can_freeze()?;
        let timeout_ms = sys::patience::stretched(PATIENCE).as_millis() as u32;
        let info = FreezeInfo { pid: std::process::id(), enable: u32::from(enable), timeout_ms };
        done("BINDER_FREEZE", process.conn.freeze(info))
    }

    /// Waits until the context has no manager.
    pub(super) fn wait_until_unmanaged(&self, client: &RawProcess) -> Verdict {
        soon(|| {
            let got = self.ask(client, test_manager::TAG, &[])?;
            if let Ok(reply) = got.reply() {
                client.free(&reply)?;
            }
            let work = got.work();
            Ok((work != "DEAD_REPLY").then(|| format!("the context is still managed: {work:?}")))
        })
    }

    /// Whether the process's node is still listed by GET_NODE_DEBUG_INFO (contract IOC-05).
    pub(super) fn lists_node(&self, process: &RawProcess, node: Node) -> Result<bool, Stop> {
        let info = done("BINDER_GET_NODE_DEBUG_INFO", process.conn.node_debug_info(node.ptr - 1))?;
        Ok(NodePtr(info.ptr) == NodePtr(node.ptr))
    }
}

/// A process notified of one node owner's death.
pub(super) struct Watcher(RawProcess);

impl Watcher {
    /// Drops the owner, and waits for its release, which is asynchronous.
    pub(super) fn outlive<T>(&self, owner: T) -> Verdict {
        drop(owner);
        self.0.expect_read("watching for a death", "DEAD_BINDER").map(drop)
    }
}

/// Waits for a helper's end; returns status and output.
pub(super) fn finish(child: Child) -> Result<(ExitStatus, String), Stop> {
    let output = done("waiting for a helper process", child.wait_with_output())?;
    Ok((output.status, String::from_utf8_lossy(&output.stdout).trim().to_owned()))
}

/// Checks that a system call was refused with one errno by the C driver and another by the Rust driver.
pub(super) fn expect_refused<T>(
    kit: &Kit,
    what: &str,
    result: &io::Result<T>,
    c: &str,
    rust: &str,
) -> Verdict {
    expect_errno(what, result, kit.by_driver(c, rust))
}
