//! Who waits for whom: threads, the calls that they wait for, and the threads or pools that must answer.
//! Not here: which waits are worth a finding (`waits`).
//! Facts: contract LP-09: a thread inside a transaction takes none of its process's work; TX-06: a call back reaches the thread
//! that waits in the chain. A thread's last call has the highest number, since all numbers come from one counter (TP-13).

use std::collections::{HashMap, HashSet};

use crate::system::{Call, Dump, Id, System, Thread, Way};

/// Bits of threads that serve their process's calls: registered, entered.
const POOL: u32 = 0x3;

/// Target of a thread's wait.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub(super) enum Door {
    /// A thread that serves the call.
    Thread(Id),
    /// Any thread of a process that is free.
    Pool(i32),
}

/// Graph of a dump.
pub(super) struct Graph<'s> {
    /// Stack of each thread, the innermost call last.
    stacks: HashMap<Id, Vec<&'s Call>>,
    /// Threads that serve a call, by its number.
    servers: HashMap<i64, Id>,
    /// Threads of each process that serve its calls.
    pools: HashMap<i32, Vec<Id>>,
    /// Processes of which a thread is free or may be started.
    open: HashSet<i32>,
}

impl<'s> Graph<'s> {
    pub(super) fn of(system: &System, dump: &'s Dump) -> Self {
        let mut graph = Self {
            stacks: HashMap::new(),
            servers: HashMap::new(),
            pools: HashMap::new(),
            open: HashSet::new(),
        };
        for proc in &dump.procs {
            for thread in &proc.threads {
                graph.add(proc.pid, thread);
            }
            let may_start = system.stats(proc.pid, &proc.context).is_some_and(|stats| {
                stats.started.zip(stats.most).is_some_and(|(started, most)| started < most)
                    || stats.requested.is_some_and(|requested| requested > 0)
            });
            if may_start {
                graph.open.insert(proc.pid);
            }
        }
        for stack in graph.stacks.values_mut() {
            stack.sort_by_key(|call| call.id);
        }
        graph.find_open(dump);
        graph
    }

    fn add(&mut self, pid: i32, thread: &'s Thread) {
        let id = Id { pid, tid: thread.tid };
        if thread.looper & POOL != 0 {
            self.pools.entry(pid).or_default().push(id);
        }
        for call in thread.calls.iter().filter(|call| !call.oneway && !call.reply) {
            match call.way {
                Way::Outgoing | Way::Incoming => self.stacks.entry(id).or_default().push(call),
                Way::Pending | Way::Queued => {}
            }
            if call.way != Way::Outgoing {
                self.servers.insert(call.id, id);
            }
        }
    }

    /// Finds the processes with a thread that is in no call.
    fn find_open(&mut self, dump: &Dump) {
        for proc in &dump.procs {
            let is_free = |thread: &Thread| {
                thread.looper & POOL != 0 && !self.stacks.contains_key(&Id { pid: proc.pid, tid: thread.tid })
            };
            if proc.threads.iter().any(is_free) {
                self.open.insert(proc.pid);
            }
        }
    }

    /// The innermost call of a thread.
    pub(super) fn top(&self, id: Id) -> Option<&'s Call> {
        self.stacks.get(&id)?.last().copied()
    }

    /// Threads that are in a call.
    pub(super) fn threads(&self) -> Vec<Id> {
        let mut threads: Vec<Id> = self.stacks.keys().copied().collect();
        threads.sort_unstable();
        threads
    }

    pub(super) fn stack(&self, id: Id) -> &[&'s Call] {
        self.stacks.get(&id).map_or(&[], Vec::as_slice)
    }

    /// The call that a thread waits for, if it waits for one.
    pub(super) fn wait(&self, id: Id) -> Option<&'s Call> {
        self.top(id).filter(|call| call.way == Way::Outgoing)
    }

    /// Who must answer a call.
    pub(super) fn door(&self, call: &Call) -> Door {
        match self.servers.get(&call.id) {
            Some(server) => Door::Thread(*server),
            None if call.to.tid != 0 => Door::Thread(call.to),
            None => Door::Pool(call.to.pid),
        }
    }

    /// Threads that cannot go on whatever happens outside the driver: each waits for threads that wait, in a circle.
    pub(super) fn stuck(&self) -> HashSet<Id> {
        let mut stuck: HashSet<Id> =
            self.threads().into_iter().filter(|id| self.wait(*id).is_some()).collect();
        loop {
            let goes_on = |id: &Id| match self.wait(*id).map(|call| self.door(call)) {
                None => true,
                Some(Door::Thread(server)) => !stuck.contains(&server),
                Some(Door::Pool(pid)) => {
                    let pool = self.pool(pid);
                    self.open.contains(&pid)
                        || pool.is_empty()
                        || pool.iter().any(|thread| !stuck.contains(thread))
                }
            };
            let free: Vec<Id> = stuck.iter().copied().filter(goes_on).collect();
            if free.is_empty() {
                return stuck;
            }
            free.iter().for_each(|id| {
                stuck.remove(id);
            });
        }
    }

    /// Threads that may serve a process's calls: those of the pool, or, if none is marked as such, all that are known.
    pub(super) fn pool(&self, pid: i32) -> Vec<Id> {
        match self.pools.get(&pid) {
            Some(pool) => pool.clone(),
            None => self.stacks.keys().copied().filter(|id| id.pid == pid).collect(),
        }
    }

    /// The next thread that a stuck one waits for.
    pub(super) fn next_stuck(&self, id: Id, stuck: &HashSet<Id>) -> Option<Id> {
        match self.door(self.wait(id)?) {
            Door::Thread(server) => Some(server),
            Door::Pool(pid) => self.pool(pid).into_iter().filter(|thread| stuck.contains(thread)).min(),
        }
    }

    /// Threads from the server of a call on, each waiting for the next; ends at one that waits for none, or at a circle.
    pub(super) fn chain(&self, call: &Call) -> Vec<Door> {
        let mut chain = vec![self.door(call)];
        let mut seen = HashSet::new();
        while let Some(Door::Thread(id)) = chain.last().copied()
            && seen.insert(id)
            && let Some(call) = self.wait(id)
        {
            chain.push(self.door(call));
        }
        chain
    }
}

/// Calls that a thread waits for by the dump and that no thread or queue of their receiver has, although it is in the dump.
pub(super) fn torn(dump: &Dump) -> u64 {
    let known: HashSet<i32> = dump.procs.iter().map(|proc| proc.pid).collect();
    let calls = || dump.procs.iter().flat_map(|proc| proc.calls()).filter(|call| !call.oneway && !call.reply);
    let taken: HashSet<i64> = calls().filter(|call| call.way != Way::Outgoing).map(|call| call.id).collect();
    let outgoing: HashSet<i64> =
        calls().filter(|call| call.way == Way::Outgoing).map(|call| call.id).collect();
    let lost = calls().filter(|call| call.way == Way::Outgoing && known.contains(&call.to.pid));
    let lost = lost.filter(|call| !taken.contains(&call.id)).count();
    let alone = calls().filter(|call| call.way != Way::Outgoing && known.contains(&call.from.pid));
    let alone = alone.filter(|call| call.from.tid != 0 && !outgoing.contains(&call.id)).count();
    (lost + alone) as u64
}
