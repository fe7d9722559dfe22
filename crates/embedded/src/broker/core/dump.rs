//! State files as text, in the layout of the kernel's files.
//! Not here: the request for them (`broker::serve`).
//! Facts: contract section 19. Doorbells supply what only a process knows: its threads, pool and words. Of a call through a
//! call slot, which has no number of the broker's and no time of its beginning, `direct` makes both.

mod direct;

use std::collections::BTreeMap;
use std::fmt::{self, Write};

use abi::codes::{bc, br};

use super::Core;
use super::host::{Host, ProcSnapshot, ThreadSnapshot};
use super::node::Node;
use super::proc::Proc;
use super::transact::Call;
use super::transaction_log::{Kind, LogEntry};
use crate::rpc::protocol::{Link, ProcId, StateFile};
use crate::shm::lease::Range;
use direct::DirectLine;

/// Totals since the broker started.
#[derive(Debug, Default)]
pub(super) struct Totals {
    pub(super) procs: u64,
    pub(super) transactions: u64,
    pub(super) refs: u64,
    /// Registrations for a node's death.
    pub(super) deaths: u64,
    /// Threads of processes that have ended.
    pub(super) threads: u64,
    /// Count of each `BC_*` and `BR_*` word at processes that have ended.
    pub(super) words: BTreeMap<u32, u64>,
}

/// Writing to a `String` cannot fail.
macro_rules! line {
    ($text:expr, $($arg:tt)*) => {{
        let _ = writeln!($text, $($arg)*);
    }};
}

impl Core {
    /// The text of a state file.
    #[must_use]
    pub fn state(&self, which: StateFile, host: &mut impl Host) -> String {
        match which {
            StateFile::State => self.state_text(&self.direct_lines(host), host),
            StateFile::Stats => self.stats_text(host),
            StateFile::Transactions => self.transactions_text(&self.direct_lines(host), host),
            StateFile::TransactionLog => self.log_text(self.transaction_log.all.iter(), host),
            StateFile::FailedTransactionLog => self.log_text(self.transaction_log.failed.iter(), host),
        }
    }

    fn state_text(&self, direct: &[DirectLine], host: &impl Host) -> String {
        let mut text = String::from("binder state:\n");
        let dead: Vec<&Node> = self.nodes.values().filter(|node| node.owner.is_none()).collect();
        if !dead.is_empty() {
            text.push_str("dead nodes:\n");
        }
        for node in dead {
            self.node_line(&mut text, node);
        }
        for (id, proc) in self.procs.iter().filter(|(_, proc)| !proc.only_looks()) {
            self.heading(&mut text, proc);
            self.threads(&mut text, (*id, proc), direct, true, host);
            for node in proc.nodes.values().filter_map(|key| self.nodes.get(key)) {
                self.node_lines(&mut text, node, host);
            }
            self.handles(&mut text, proc);
            for (offset, buffer) in &proc.buffers {
                let (data, offsets, extra) = (buffer.data_size, buffer.offsets_size, buffer.extra);
                let (id, used) = (buffer.transaction, self.calls.contains_key(&buffer.transaction));
                let stage = if used || buffer.waiting { "active" } else { "delivered" };
                line!(text, "  buffer {id}: {offset:x} size {data}:{offsets}:{extra} {stage}");
            }
            // Of direct calls: only their process knows of them, and they have no numbers.
            for Range { start, len } in host.placed(*id).into_iter().filter(|range| range.len > 0) {
                line!(text, "  buffer 0: {start:x} size {len}:0:0 delivered");
            }
            self.unread(&mut text, (*id, proc), direct, host);
        }
        text
    }

    fn heading(&self, text: &mut String, proc: &Proc) {
        let context = self.contexts.get(&proc.context).map_or("", |context| &*context.name);
        line!(text, "proc {}", proc.client.pid);
        line!(text, "context {context}");
    }

    /// Lines of a process's threads; `all`: also of idle ones.
    fn threads(
        &self,
        text: &mut String,
        (id, proc): (ProcId, &Proc),
        direct: &[DirectLine],
        all: bool,
        host: &impl Host,
    ) {
        for thread in host.threads(id) {
            let ThreadSnapshot { tid, looper, need_return, depth, serving, .. } = thread;
            let incoming = serving.iter().filter(|call| proc.incoming.contains(*call));
            let mine = |call: &&u32| self.calls.get(call).is_some_and(|c| from_thread(c, id, thread));
            let outgoing: Vec<&u32> = proc.outgoing.iter().filter(mine).collect();
            if all || depth > 0 || !outgoing.is_empty() {
                line!(
                    text,
                    "  thread {tid}: l {looper:02x} need_return {} tr {depth}",
                    u32::from(need_return)
                );
            }
            for call in outgoing {
                self.call_line(text, "    outgoing", *call, (0, false), host);
            }
            for call in direct.iter().filter(|call| call.from == Link { proc: id, thread: thread.key }) {
                line!(text, "    outgoing {}", call.sent);
            }
            for call in incoming {
                self.call_line(text, "    incoming", *call, (tid, true), host);
            }
            for call in direct.iter().filter(|call| call.to == id && call.server == Some(thread.key.slot)) {
                line!(text, "    incoming {}", call.at(tid));
            }
        }
    }

    /// Calls that no thread has read.
    fn unread(
        &self,
        text: &mut String,
        (id, proc): (ProcId, &Proc),
        direct: &[DirectLine],
        host: &impl Host,
    ) {
        for call in untaken(proc, &host.threads(id)) {
            self.call_line(text, "  pending", call, (0, true), host);
        }
        for call in direct.iter().filter(|call| call.to == id && call.server.is_none()) {
            line!(text, "  pending {}", call.at(0));
        }
    }

    /// Line of a call; `at`: the thread that serves it, 0 for none, and whether to print
    /// the buffer.
    fn call_line(&self, text: &mut String, what: &str, id: u32, at: (u32, bool), host: &impl Host) {
        let (to_tid, buffer) = at;
        let Some(call) = self.calls.get(&id) else { return };
        let sent = Sent {
            id,
            ptr: call.ptr,
            from: call.from.map_or((0, 0), |from| self.names(from, host)),
            to: (self.procs.get(&call.to).map_or(0, |proc| proc.client.pid), to_tid),
            code: call.code,
            flags: call.flags,
            elapsed_ms: host.now_ms().saturating_sub(call.began_ms),
            buffer: buffer.then_some((call.node, call.data_size, call.offsets_size, call.buffer)),
        };
        line!(text, "{what} {sent}");
    }

    fn node_line(&self, text: &mut String, node: &Node) {
        let (strong, weak) = (u32::from(node.has_strong), u32::from(node.has_weak));
        let _ = write!(
            text,
            "  node {}: u{:016x} c{:016x} hs {strong} hw {weak} ls {} lw {} is {} iw {} tr 0",
            node.debug_id,
            node.ptr,
            node.cookie,
            node.local_strong,
            node.local_weak,
            node.remote_strong,
            node.holders.len()
        );
        if !node.holders.is_empty() {
            text.push_str(" proc");
        }
        for holder in node.holders.keys().filter_map(|holder| self.procs.get(holder)) {
            let _ = write!(text, " {}", holder.client.pid);
        }
        text.push('\n');
    }

    /// Lines of a node and its queued oneway calls.
    fn node_lines(&self, text: &mut String, node: &Node, host: &impl Host) {
        self.node_line(text, node);
        for (waiting, began_ms) in node.oneways.waiting() {
            let elapsed = host.now_ms().saturating_sub(began_ms);
            let (pid, tid) = self.names(waiting.from, host);
            let to = node.owner.and_then(|owner| self.procs.get(&owner)).map_or(0, |p| p.client.pid);
            line!(
                text,
                "    pending async transaction {}: {:016x} from {pid}:{tid} to {to}:0 code {:x} flags {:x} \
                 pri 0 a1 r0 elapsed {elapsed}ms node {} size {}:{} offset {:x}",
                waiting.transaction,
                waiting.ptr,
                waiting.code,
                waiting.flags,
                node.debug_id,
                waiting.data_size,
                waiting.offsets_size,
                waiting.buffer
            );
        }
    }

    fn handles(&self, text: &mut String, proc: &Proc) {
        for (handle, held) in proc.refs.iter() {
            let Some(node) = self.nodes.get(&held.node) else { continue };
            let dead = if node.owner.is_none() { "dead " } else { "" };
            line!(
                text,
                "  ref {}: desc {handle} {dead}node {} s {} w {} d {:016x}",
                held.debug_id,
                node.debug_id,
                held.strong,
                held.weak,
                held.death.unwrap_or(0)
            );
        }
    }

    fn transactions_text(&self, direct: &[DirectLine], host: &impl Host) -> String {
        let mut text = String::from("binder transactions:\n");
        for (id, proc) in self.procs.iter().filter(|(_, proc)| !proc.only_looks()) {
            let before = text.len();
            self.heading(&mut text, proc);
            let headed = text.len();
            self.threads(&mut text, (*id, proc), direct, false, host);
            let nodes = proc.nodes.values().filter_map(|key| self.nodes.get(key));
            for node in nodes.filter(|node| node.oneways.waiting().next().is_some()) {
                self.node_lines(&mut text, node, host);
            }
            self.unread(&mut text, (*id, proc), direct, host);
            if text.len() == headed {
                text.truncate(before);
            }
        }
        text
    }

    fn stats_text(&self, host: &impl Host) -> String {
        let mut text = String::from("binder stats:\n");
        let mut all = self.totals.words.clone();
        let (mut threads, mut threads_ever) = (0, self.totals.threads);
        for id in self.procs.keys() {
            let shown = host.snapshot(*id);
            threads += host.threads(*id).len();
            threads_ever += shown.threads_ever;
            for (word, times) in shown.words {
                *all.entry(word).or_default() += times;
            }
        }
        words(&mut text, "", &all);
        let active = self.procs.values().filter(|proc| !proc.only_looks()).count();
        line!(text, "proc: active {active} total {}", self.totals.procs);
        line!(text, "thread: active {threads} total {threads_ever}");
        line!(text, "node: active {} total {}", self.nodes.len(), self.last_node);
        let refs: usize = self.procs.values().map(|proc| proc.refs.len()).sum();
        line!(text, "ref: active {refs} total {}", self.totals.refs);
        let deaths: usize = self.procs.values().map(|proc| proc.deaths.len()).sum();
        line!(text, "death: active {deaths} total {}", self.totals.deaths);
        line!(text, "transaction: active {} total {}", self.calls.len(), self.totals.transactions);
        for (id, proc) in self.procs.iter().filter(|(_, proc)| !proc.only_looks()) {
            self.proc_stats(&mut text, *id, proc, host);
        }
        text
    }

    fn proc_stats(&self, text: &mut String, id: ProcId, proc: &Proc, host: &impl Host) {
        let threads = host.threads(id);
        let ProcSnapshot { requested, started, untaken: elsewhere, words: counted, .. } = host.snapshot(id);
        let (strong, weak) = proc
            .refs
            .iter()
            .fold((0, 0), |(strong, weak), (_, held)| (strong + held.strong, weak + held.weak));
        self.heading(text, proc);
        line!(text, "  threads: {}", threads.len());
        line!(text, "  requested threads: {requested}+{started}/{}", proc.max_threads);
        line!(text, "  ready threads {}", threads.iter().filter(|thread| thread.ready).count());
        line!(text, "  free async space {}", proc.arena.oneway_free());
        line!(text, "  nodes: {}", proc.nodes.len());
        line!(text, "  refs: {} s {strong} w {weak}", proc.refs.len());
        let mut arena = proc.arena.clone();
        arena.count_placed(&host.placed(id));
        line!(text, "  buffers: {}", arena.buffers());
        let (active, spare, free) = arena.pages();
        line!(text, "  pages: {active}:{spare}:{free}");
        line!(text, "  pages high watermark: {}", active + spare);
        let pending = untaken(proc, &threads).count() + elsewhere as usize;
        line!(text, "  pending transactions: {pending}");
        words(text, "  ", &counted);
    }

    fn log_text<'a>(&self, entries: impl Iterator<Item = &'a LogEntry>, host: &impl Host) -> String {
        let mut text = String::new();
        for entry in entries {
            let kind = match entry.kind {
                Kind::Call => "call ",
                Kind::Oneway => "async",
                Kind::Reply => "reply",
            };
            let from = self.tid(entry.from, host);
            let to = entry.to.zip(entry.to_thread);
            let to = to.map_or(0, |(proc, thread)| self.tid(Link { proc, thread }, host));
            let (ret, errno) = entry.refusal.map_or((0, 0), |refusal| (refusal.outcome, -refusal.errno));
            line!(
                text,
                "{}: {kind} from {}:{from} to {}:{to} context {} node {} handle {} size {}:{} ret {ret}/{errno} l=0",
                entry.id,
                entry.from_pid,
                entry.to_pid,
                entry.context,
                entry.node,
                entry.handle,
                entry.data_size,
                entry.offsets_size
            );
        }
        text
    }

    pub(super) fn names(&self, link: Link, host: &impl Host) -> (u32, u32) {
        let pid = self.procs.get(&link.proc).map_or(0, |proc| proc.client.pid);
        (pid, self.tid(link, host))
    }

    /// Kernel thread id of a thread; 0 if it has ended.
    fn tid(&self, link: Link, host: &impl Host) -> u32 {
        if !self.procs.contains_key(&link.proc) {
            return 0;
        }
        let threads = host.threads(link.proc);
        threads.iter().find(|thread| thread.key == link.thread).map_or(0, |thread| thread.tid)
    }
}

/// A call in the words of the state file.
#[derive(Clone, Copy, Debug)]
struct Sent {
    id: u32,
    ptr: u64,
    /// Pid and tid of either side, a tid that is not known as 0.
    from: (u32, u32),
    to: (u32, u32),
    code: u32,
    flags: u32,
    elapsed_ms: u64,
    /// The node, the sizes of data and offsets, and the place in the receiving area.
    buffer: Option<(u32, u64, u64, u64)>,
}

impl fmt::Display for Sent {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { id, ptr, from, to, code, flags, elapsed_ms, .. } = *self;
        write!(
            f,
            "transaction {id}: {ptr:016x} from {}:{} to {}:{} code {code:x} flags {flags:x} pri 0 a0 r0 elapsed {elapsed_ms}ms",
            from.0, from.1, to.0, to.1
        )?;
        match self.buffer {
            Some((node, data, offsets, at)) => write!(f, " node {node} size {data}:{offsets} offset {at:x}"),
            None => Ok(()),
        }
    }
}

fn from_thread(call: &Call, proc: ProcId, thread: ThreadSnapshot) -> bool {
    call.from == Some(Link { proc, thread: thread.key })
}

/// Sync calls to a process that no thread serves yet.
fn untaken<'p>(proc: &'p Proc, threads: &'p [ThreadSnapshot]) -> impl Iterator<Item = u32> + 'p {
    let taken = |call: &u32| threads.iter().any(|thread| thread.serving.contains(call));
    proc.incoming.iter().copied().filter(move |call| !taken(call))
}

/// Lines of the counters that are not 0, `BC_*` before `BR_*`, each in numeric order.
fn words(text: &mut String, indent: &str, counted: &BTreeMap<u32, u64>) {
    for (name, word) in bc::ALL.iter().chain(br::ALL) {
        if let Some(times) = counted.get(word) {
            line!(text, "{indent}{name}: {times}");
        }
    }
}
