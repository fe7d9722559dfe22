//! Figures of the calls of a span by process, thread, method and pair of processes, in bounded memory.
//! Not here: the driver's state (crate `explain`), rows and columns (`rows`).
//!
//! - [`figures`]: the figures of one subject; [`rows`]: all subjects as rows of a table; [`column`](mod@column): its columns.
//! - [`tasks`]: names and processes of threads; [`worst`]: the slowest calls, and how long each waited and was served.
//! - [`budget`]: what a view may cost, and what it does without.

pub mod budget;
pub mod column;
pub mod figures;
pub mod rows;
pub mod tasks;
pub mod worst;

use std::collections::HashMap;
use std::hash::Hash;
use std::sync::Arc;

use trace::event::Names;
use trace::hash::FastHash;
use trace::model::{Method, Outcome, Transaction};

use crate::stream::Observer;
use figures::Figures;
use tasks::Tasks;
use worst::Worst;

/// Maximum number of subjects of one kind with figures; those of further ones are in one sum. Each takes up to 20 KB.
pub const MOST: usize = 512;

/// The subject of figures.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub enum Subject {
    /// The process with this pid.
    Process(i32),
    /// A thread of a process; its pid is 0 if unknown.
    Thread {
        /// Its process.
        pid: i32,
        /// Its number.
        tid: i32,
    },
    /// A method of a node of a process.
    Method {
        /// The called process.
        pid: i32,
        /// The driver's number of the called node.
        node: i32,
        /// The transaction's code.
        code: u32,
        /// Its name, if a slice of the trace says it.
        name: Option<Arc<str>>,
    },
    /// A caller and the process that it calls; 0 for each that is unknown.
    Pair {
        /// The calling process.
        from: i32,
        /// The called process.
        to: i32,
    },
    /// All subjects beyond [`MOST`].
    Others,
}

impl Subject {
    /// True if it is about this process.
    #[must_use]
    pub fn concerns(&self, process: i32) -> bool {
        match self {
            Self::Process(pid) | Self::Thread { pid, .. } | Self::Method { pid, .. } => *pid == process,
            Self::Pair { from, to } => *from == process || *to == process,
            Self::Others => false,
        }
    }
}

/// Kinds of subjects.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum By {
    /// Processes.
    Processes,
    /// Threads.
    Threads,
    /// Methods of nodes.
    Methods,
    /// Pairs of processes.
    Pairs,
}

impl By {
    /// All of them, in the order in which a view shows them.
    pub const ALL: [Self; 4] = [Self::Processes, Self::Threads, Self::Methods, Self::Pairs];

    /// Its word.
    #[must_use]
    pub fn word(self) -> &'static str {
        match self {
            Self::Processes => "processes",
            Self::Threads => "threads",
            Self::Methods => "methods",
            Self::Pairs => "pairs",
        }
    }
}

/// The figures of all subjects of one kind.
#[derive(Debug, Default)]
struct Table {
    of: HashMap<Subject, Figures, FastHash>,
}

impl Table {
    fn at(&mut self, subject: Subject) -> &mut Figures {
        let is_known = self.of.len() < MOST || self.of.contains_key(&subject);
        self.of.entry(if is_known { subject } else { Subject::Others }).or_default()
    }
}

/// Figures of the calls that ended in a span.
#[derive(Debug, Default)]
pub struct Top {
    tables: [Table; 4],
    all: Figures,
    worst: Worst,
    tasks: Tasks,
}

impl Top {
    /// Figures of a kind of subjects, in no order.
    pub fn figures(&self, by: By) -> impl Iterator<Item = (&Subject, &Figures)> {
        self.tables[by as usize].of.iter()
    }

    /// Figures of all calls.
    #[must_use]
    pub fn all(&self) -> &Figures {
        &self.all
    }

    /// The slowest calls of the span.
    #[must_use]
    pub fn worst(&self) -> &Worst {
        &self.worst
    }

    /// Names and processes of threads.
    pub fn tasks(&mut self) -> &mut Tasks {
        &mut self.tasks
    }

    /// Begins the next span. Subjects without a call in the last one are forgotten.
    pub fn next_span(&mut self) {
        for table in &mut self.tables {
            table.of.retain(|subject, figures| !figures.is_idle() && *subject != Subject::Others);
            table.of.values_mut().for_each(Figures::clear);
        }
        self.all.clear();
        self.worst = Worst::default();
        self.tasks.age();
    }

    fn take(&mut self, call: &Transaction) {
        let to = call.to_proc;
        let from = call.client.tgid.or_else(|| self.tasks.process_of(call.client.tid)).unwrap_or(0);
        let name = call.method.as_ref().map(|method: &Arc<Method>| Arc::from(method.to_string()));
        let [processes, threads, methods, pairs] = &mut self.tables;
        processes.at(Subject::Process(from)).made(call);
        processes.at(Subject::Process(to)).served(call);
        threads.at(Subject::Thread { pid: from, tid: call.client.tid }).made(call);
        if let Some(server) = call.server {
            threads.at(Subject::Thread { pid: to, tid: server.tid }).served(call);
        }
        methods.at(Subject::Method { pid: to, node: call.node, code: call.code, name }).both(call);
        pairs.at(Subject::Pair { from, to }).both(call);
        self.all.both(call);
        // Now, while they are there.
        for pid in [from, to] {
            self.tasks.name(pid);
        }
        self.worst.take(call, from);
    }
}

impl Observer for Top {
    fn ended(&mut self, call: &Transaction, _: &Names) {
        // A stream that ends cuts calls short; they belong to no span.
        if !matches!(call.outcome, Outcome::Cut) {
            self.take(call);
        }
    }
}

#[cfg(test)]
mod tests;
