//! Room: what a contract test has at hand: parties on the context under test, nodes handed from one
//! to another, helpers in other processes, what to expect of which driver.
//! Not here: the promises themselves (one file per section), the parties (`party`).

use std::io;
use std::path::Path;
use std::process::{Child, Command, ExitStatus, Stdio};
use std::time::{Duration, Instant};

use abi::codes::{br, object};
use abi::layout::{FlatBinderObject, FreezeInfo};
use abi::{Cookie, Handle, NodePtr, Payload, Return, TransactionFlags};
use driver::OpenOptions;
use driver::embedded::Inherit;
use driver::kernel_state::{StateError, StateFile};
use zerocopy::{FromBytes, IntoBytes};

use super::evidence::{Evidence, Kind, Release};
use super::item::{Stop, Verdict, done, ensure, expect, expect_errno};
use super::lobby;
use super::party::{Got, Node, PATIENCE, Party, expect_work};
use super::subject::Subject;

/// Everything a test may use.
pub(super) struct Kit {
    pub(super) subject: Box<dyn Subject>,
    pub(super) evidence: Evidence,
}

/// A server with one node, and a client with a strong reference to it.
pub(super) struct Pair {
    pub(super) server: Party,
    pub(super) client: Party,
    pub(super) node: Node,
    pub(super) handle: Handle,
}

impl Kit {
    /// The same on another context.
    pub(super) fn on(&self, subject: Box<dyn Subject>) -> Self {
        Self { subject, evidence: self.evidence.clone() }
    }

    /// The same with parties that hand on this of a caller's priority, where that can be chosen. Skips
    /// the rest of a test on a driver that does something else.
    pub(super) fn inheriting(
        &self,
        inherit: Inherit,
        otherwise: impl FnOnce() -> String,
    ) -> Result<Option<Self>, Stop> {
        let evidence = Evidence { inherit, ..self.evidence.clone() };
        match self.subject.inheriting(inherit) {
            Some(subject) => Ok(Some(Self { subject, evidence })),
            None if self.evidence.inherit == inherit => Ok(None),
            None => Err(Stop::Skip(otherwise())),
        }
    }

    /// Opens the context: mapped, reads do not block, the thread's record made.
    pub(super) fn open(&self) -> Result<Party, Stop> {
        self.open_with(OpenOptions { nonblocking: true, ..OpenOptions::default() })
    }

    /// Opens the context with a receiving area of this size.
    pub(super) fn open_mapped(&self, map_size: usize) -> Result<Party, Stop> {
        self.open_with(OpenOptions { nonblocking: true, map_size })
    }

    pub(super) fn open_with(&self, options: OpenOptions) -> Result<Party, Stop> {
        let party = Party::new(self.subject.open(options)?);
        // A thread's first contact with a C driver behaves specially (contract WR-05).
        done("BINDER_VERSION", party.conn.version())?;
        Ok(party)
    }

    /// Opens a party whose calling thread serves.
    pub(super) fn server(&self) -> Result<Party, Stop> {
        let party = self.open()?;
        party.enter_looper()?;
        Ok(party)
    }

    /// A server, a client, and the client's handle to the server's node.
    pub(super) fn pair(&self) -> Result<Pair, Stop> {
        self.pair_of(self.server()?, self.open()?, Node::number(1))
    }

    /// Hands `node` of `server` to `client`.
    pub(super) fn pair_of(&self, server: Party, client: Party, node: Node) -> Result<Pair, Stop> {
        let handle = self.hand_over(&server, &client, node)?;
        Ok(Pair { server, client, node, handle })
    }

    /// Gives `client` a strong reference to a node of `server`, through the lobby.
    pub(super) fn hand_over(&self, server: &Party, client: &Party, node: Node) -> Result<Handle, Stop> {
        self.leave(server, node, node.ptr)?;
        let handle = self.fetch(client, node.ptr)?;
        self.forget(client, node.ptr)?;
        Ok(handle)
    }

    /// Leaves a node in the lobby; the server has acknowledged its references afterwards.
    pub(super) fn leave(&self, server: &Party, node: Node, number: u64) -> Verdict {
        self.write_leave(server, object::BINDER, node, number)?;
        loop {
            let got = server.read()?;
            server.acknowledge(&got)?;
            if got.returns.contains(&Return::TransactionComplete) {
                return Ok(());
            }
        }
    }

    /// Sends a node to the lobby and leaves what comes of it unread.
    pub(super) fn write_leave(&self, server: &Party, kind: u32, node: Node, number: u64) -> Verdict {
        let object = FlatBinderObject { kind, flags: node.flags, binder: node.ptr, cookie: node.cookie };
        let data = [object.as_bytes(), number.as_bytes()].concat();
        let payload = Payload { data: &data, offsets: &[0], ..Payload::default() };
        server.write(|c| {
            c.transaction(Handle::CONTEXT_MANAGER, lobby::LEAVE, TransactionFlags::ONEWAY, payload)
        })
    }

    /// Fetches what was left under a number: a handle with one count of its own kind.
    pub(super) fn fetch(&self, client: &Party, number: u64) -> Result<Handle, Stop> {
        let start = Instant::now();
        loop {
            let reply = self.ask(client, lobby::FETCH, &number.to_ne_bytes())?.reply()?;
            let data = client.bytes(&reply)?;
            if let Ok((object, _)) = FlatBinderObject::read_from_prefix(&data) {
                let handle = Handle(object.binder as u32);
                client.write(|c| {
                    match object.kind {
                        object::HANDLE => c.acquire(handle),
                        _ => c.increfs(handle),
                    }
                    c.free_buffer(reply.buffer);
                })?;
                return Ok(handle);
            }
            client.free(&reply)?;
            ensure(start.elapsed() < PATIENCE, || {
                "a node left with the context manager never arrived".into()
            })?;
        }
    }

    /// Has the lobby drop what was left under a number.
    pub(super) fn forget(&self, client: &Party, number: u64) -> Verdict {
        let reply = self.ask(client, lobby::DROP, &number.to_ne_bytes())?.reply()?;
        client.free(&reply)
    }

    /// Calls the context manager.
    pub(super) fn ask(&self, client: &Party, code: u32, data: &[u8]) -> Result<Got, Stop> {
        let payload = Payload { data, ..Payload::default() };
        client.call(Handle::CONTEXT_MANAGER, code, TransactionFlags::CALL, payload)
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

    /// One expectation for the C driver and those that follow it, another for the Rust driver.
    pub(super) fn by_driver<T>(&self, c: T, rust: T) -> T {
        if self.is_rust() { rust } else { c }
    }

    /// Skips the rest of a test on the Rust driver, where it says nothing.
    pub(super) fn not_in_rust(&self) -> Verdict {
        match self.kind() {
            Kind::Rust => Err(Stop::Skip("a promise of the C driver only; this is the Rust driver".into())),
            _ => Ok(()),
        }
    }

    /// Ends a test that has found, on a driver where the promise cannot hold, what holds there
    /// instead; its item has the option `differs` and a section in `docs/differences.md`.
    pub(super) fn differs(&self, instead: &str) -> Verdict {
        Err(Stop::Differs(format!("on the {}: {instead}", self.kind())))
    }

    /// What the driver says of itself; skips the rest of a test where that is not to be had.
    pub(super) fn account(&self, which: StateFile) -> Result<String, Stop> {
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
        if found >= needed {
            return Ok(());
        }
        Err(Stop::Skip(format!("the driver of Linux {found} lacks {what}: brought by Linux {needed}")))
    }

    /// The kernel's device node; skips the rest of a test where there is none.
    pub(super) fn device(&self) -> Result<&Path, Stop> {
        let why = || Stop::Skip(format!("needs a kernel's device; this is the {}", self.kind()));
        self.subject.device().ok_or_else(why)
    }

    /// Checks the caller's extended error after a refusal. `None` stands for a driver that leaves
    /// no record of it. Kernels without the ioctl are let pass: the refusal itself was checked.
    pub(super) fn expect_error(
        &self,
        party: &Party,
        c: Option<(u32, &str)>,
        rust: Option<(u32, &str)>,
    ) -> Verdict {
        let error = match party.extended_error() {
            Err(Stop::Skip(_)) => return Ok(()),
            other => other?,
        };
        let name = if error.param == 0 { "0" } else { sys::errno::name(-error.param).unwrap_or("?") };
        let want = self.by_driver(c, rust).unwrap_or((br::OK, "0"));
        expect(
            "the extended error's command and negative errno",
            (abi::ReturnWord(error.command).to_string(), name),
            (abi::ReturnWord(want.0).to_string(), want.1),
        )
    }

    /// Checks a refused call: these returns and nothing else, and this extended error.
    pub(super) fn expect_failed(&self, party: &Party, got: &Got, c: &str, rust: &str) -> Verdict {
        expect_work("a refused call", got, "FAILED_REPLY")?;
        self.expect_error(party, Some((br::FAILED_REPLY, c)), Some((br::FAILED_REPLY, rust)))
    }

    /// Prepares a helper of the suite in another process of its own.
    pub(super) fn helper(&self, role: &str, words: &[&str]) -> Command {
        let mut command = self.untied_helper(role, words);
        sys::tied_child::die_with_parent(&mut command);
        command
    }

    /// The same for one that ends by itself, and may be where it cannot see its parent.
    pub(super) fn untied_helper(&self, role: &str, words: &[&str]) -> Command {
        let mut command = Command::new("/proc/self/exe");
        command.arg(super::HELPER_COMMAND).arg(role).arg(self.subject.address()).args(words);
        command.stdin(Stdio::null()).stdout(Stdio::piped()).stderr(Stdio::inherit());
        command
    }

    /// Runs a helper to its end; what it said on its standard output, trimmed.
    pub(super) fn run_helper(&self, mut command: Command) -> Result<String, Stop> {
        let child = done("starting a helper process", command.spawn())?;
        let (status, said) = finish(child)?;
        ensure(status.success(), || format!("a helper process ended with {status} after saying {said:?}"))?;
        Ok(said)
    }

    /// Runs a helper that must die of this signal.
    pub(super) fn expect_killed(&self, mut command: Command, signal: i32) -> Verdict {
        let child = done("starting a helper process", command.spawn())?;
        let (status, said) = finish(child)?;
        let killed_by = std::os::unix::process::ExitStatusExt::signal(&status);
        ensure(killed_by == Some(signal), || {
            format!("expected death by signal {signal}, got {status} after {said:?}")
        })
    }

    /// Starts a helper that serves until it is dropped, and waits for its first word, which must be
    /// `ready`.
    pub(super) fn serving_helper(&self, mut command: Command) -> Result<Helper, Stop> {
        command.stdin(Stdio::piped());
        let mut helper = Helper(done("starting a helper process", command.spawn())?);
        let mut said = [0; 64];
        let stdout = helper.0.stdout.as_mut().ok_or_else(|| Stop::Fail("a helper has no output".into()))?;
        let count = done("reading from a helper", io::Read::read(stdout, &mut said))?;
        let said = String::from_utf8_lossy(&said[..count]);
        expect("the first word of a helper", said.trim(), "ready")?;
        Ok(helper)
    }

    /// Makes a party the context manager, waiting for a former one's release.
    pub(super) fn become_manager(&self, party: &Party, node: Option<FlatBinderObject>) -> Verdict {
        let result = patiently(|| party.conn.become_context_manager(node));
        done("becoming the context manager", result)
    }

    /// A handle to a node, in a process of its own that will hear of the owner's death.
    pub(super) fn watch(&self, owner: &Party, node: Node) -> Result<Watcher, Stop> {
        let party = self.server()?;
        let handle = self.hand_over(owner, &party, node)?;
        party.write(|c| c.request_death(handle, Cookie(node.cookie)))?;
        Ok(Watcher(party))
    }

    /// The effective uid of this process.
    pub(super) fn euid(&self) -> Option<u32> {
        let status = std::fs::read_to_string("/proc/self/status").unwrap_or_default();
        let uids = status.lines().find_map(|line| line.strip_prefix("Uid:"))?;
        uids.split_whitespace().nth(1)?.parse().ok()
    }

    /// Whether this process may change its uid.
    pub(super) fn is_root(&self) -> bool {
        self.euid() == Some(0)
    }

    /// Skips the rest of a test where processes cannot be frozen.
    pub(super) fn can_freeze(&self) -> Verdict {
        let status = std::fs::read_to_string("/proc/self/status").unwrap_or_default();
        let pids = status.lines().find_map(|line| line.strip_prefix("NSpid:")).unwrap_or_default();
        if pids.split_whitespace().count() > 1 && self.kind() != Kind::Embedded {
            return Err(Stop::Skip("in a pid namespace, where BINDER_FREEZE cannot name a process".into()));
        }
        self.since(5, 13, "BINDER_FREEZE")
    }

    /// Freezes or thaws all parties of this process; skips the rest of a test where that cannot be.
    pub(super) fn freeze_self(&self, party: &Party, enable: bool) -> Verdict {
        self.can_freeze()?;
        let info = FreezeInfo { pid: std::process::id(), enable: u32::from(enable), timeout_ms: 2000 };
        done("BINDER_FREEZE", party.conn.freeze(info))
    }

    /// Waits until nobody manages the context any more.
    pub(super) fn wait_until_unmanaged(&self, client: &Party) -> Verdict {
        let start = Instant::now();
        loop {
            let got = self.ask(client, lobby::TAG, &[])?;
            if got.work() == "DEAD_REPLY" {
                return Ok(());
            }
            if let Ok(reply) = got.reply() {
                client.free(&reply)?;
            }
            ensure(start.elapsed() < PATIENCE, || format!("the context is still managed: {:?}", got.work()))?;
            std::thread::sleep(Duration::from_millis(2));
        }
    }

    /// Whether the party's own node is still listed, walking up from 0 (contract IOC-05).
    pub(super) fn lists_node(&self, party: &Party, node: Node) -> Result<bool, Stop> {
        let info = done("BINDER_GET_NODE_DEBUG_INFO", party.conn.node_debug_info(node.ptr - 1))?;
        Ok(NodePtr(info.ptr) == NodePtr(node.ptr))
    }
}

/// Repeats a system call that finds the context's manager still in release (contract EXT-04).
pub(super) fn patiently<T>(mut call: impl FnMut() -> io::Result<T>) -> io::Result<T> {
    let start = Instant::now();
    loop {
        match call() {
            Err(error) if error.kind() == io::ErrorKind::ResourceBusy && start.elapsed() < PATIENCE => {
                std::thread::sleep(Duration::from_millis(2));
            }
            result => return result,
        }
    }
}

/// Hears of the death of one node's owner.
pub(super) struct Watcher(Party);

impl Watcher {
    /// Waits until the owner was released, which is asynchronous.
    pub(super) fn wait_for_death(&self) -> Verdict {
        expect_work("watching for a death", &self.0.read()?, "DEAD_BINDER")
    }
}

/// A helper process that serves; ended when dropped.
pub(super) struct Helper(Child);

impl Drop for Helper {
    fn drop(&mut self) {
        // It may have ended already; either way it is reaped.
        let _ = self.0.kill();
        let _ = self.0.wait();
    }
}

/// Waits for a helper's end: how it ended, and what it said.
pub(super) fn finish(child: Child) -> Result<(ExitStatus, String), Stop> {
    let output = done("waiting for a helper process", child.wait_with_output())?;
    Ok((output.status, String::from_utf8_lossy(&output.stdout).trim().to_owned()))
}

/// Checks that a system call was refused with one errno by the C driver and another by the Rust one.
pub(super) fn expect_refused<T>(
    kit: &Kit,
    what: &str,
    result: &io::Result<T>,
    c: &str,
    rust: &str,
) -> Verdict {
    expect_errno(what, result, kit.by_driver(c, rust))
}
