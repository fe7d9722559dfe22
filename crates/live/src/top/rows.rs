//! Rows of a table: the figures of a span, joined with the driver's state.
//! Not here: how a value is written (`column`).

use std::collections::{BTreeMap, HashMap};
use std::time::Duration;

use explain::Load;
use serde::Serialize;
use trace::model::OpenTransaction;
use trace::verdict::code_name;

use super::figures::Figures;
use super::{By, Subject, Top};

/// One subject. `None` is what no source tells.
#[derive(Clone, Debug, Default, PartialEq, Serialize)]
pub struct Row {
    /// The subject of the row.
    #[serde(skip)]
    pub subject: Option<Subject>,
    /// Process, the called one of a method.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub pid: Option<i32>,
    /// Thread.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub tid: Option<i32>,
    /// Called node.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub node: Option<i32>,
    /// Code of the method.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub code: Option<u32>,
    /// Calling process of a pair.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub from: Option<i32>,
    /// Called process of a pair.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub to: Option<i32>,
    /// The subject in words.
    pub name: String,
    /// Calls that it received and that ended in the span.
    pub calls: Option<u64>,
    /// Calls that it made and that ended in the span.
    pub made: Option<u64>,
    /// The same per second.
    pub calls_per_s: Option<f64>,
    /// The same per second.
    pub made_per_s: Option<f64>,
    /// Median of the two-way calls that it received, in ns.
    pub p50_ns: Option<u64>,
    /// 99th percentile of these, in ns.
    pub p99_ns: Option<u64>,
    /// Bytes of calls to it and of their answers.
    pub bytes_per_s: Option<f64>,
    /// Failed calls to it; where only counters are read, calls that it made.
    pub failed: Option<u64>,
    /// Oneway calls to it that nobody serves yet.
    pub backlog: Option<u64>,
    /// Bytes of the buffers in its area.
    pub buffer_bytes: Option<u64>,
    /// Bytes of its area.
    pub area_bytes: Option<u64>,
    /// Threads that serve a call.
    pub busy: Option<u64>,
    /// Threads that could.
    pub pool: Option<u64>,
    /// Age of the oldest call that it waits for, in ms.
    pub oldest_ms: Option<u64>,
    /// Death notices that it has not read or not acknowledged.
    pub deaths: Option<u64>,
}

/// Facts about subjects other than the calls that ended.
#[derive(Clone, Copy, Debug)]
pub struct State<'s> {
    /// The driver's state; `None` if it cannot be read.
    pub loads: Option<&'s [Load]>,
    /// The state at the last span.
    pub before: Option<&'s [Load]>,
    /// Calls that have not ended, by the trace; `None` where nothing is traced.
    pub open: Option<&'s [OpenTransaction]>,
    /// The trace's time, in ns.
    pub now: u64,
    /// The span.
    pub span: Duration,
}

impl Row {
    fn of(subject: Subject) -> Self {
        let mut row = Self::default();
        match &subject {
            Subject::Process(pid) => row.pid = Some(*pid),
            Subject::Thread { pid, tid } => (row.pid, row.tid) = (Some(*pid), Some(*tid)),
            Subject::Method { pid, node, code, .. } => {
                (row.pid, row.node, row.code) = (Some(*pid), Some(*node), Some(*code));
            }
            Subject::Pair { from, to } => (row.from, row.to) = (Some(*from), Some(*to)),
            Subject::Others => {}
        }
        row.subject = Some(subject);
        row
    }

    fn count(&mut self, figures: &Figures, span: Duration) {
        let per_s = |count: u64| Some(count as f64 / span.as_secs_f64());
        (self.calls, self.made) = (Some(figures.calls), Some(figures.made));
        (self.calls_per_s, self.made_per_s) = (per_s(figures.calls), per_s(figures.made));
        (self.p50_ns, self.p99_ns) = (figures.latency(50.0), figures.latency(99.0));
        self.bytes_per_s = figures.bytes.and_then(per_s);
        self.failed = Some(figures.failed);
    }

    /// Takes over the state of a process; it may be in several contexts.
    fn load(&mut self, load: &Load) {
        let add = |to: &mut Option<u64>, value: Option<u64>| {
            if let Some(value) = value {
                *to = Some(to.unwrap_or(0) + value);
            }
        };
        add(&mut self.backlog, Some(load.backlog));
        add(&mut self.buffer_bytes, Some(load.buffer_bytes));
        add(&mut self.area_bytes, load.area_bytes);
        add(&mut self.busy, Some(load.busy));
        add(&mut self.pool, load.pool);
        add(&mut self.deaths, Some(load.deaths_waiting));
        self.oldest_ms = self.oldest_ms.max(load.oldest_ms());
    }

    /// Takes over what the driver counted in the span.
    fn difference(&mut self, before: &Load, now: &Load, span: Duration) {
        let grown = |now: Option<u64>, before: Option<u64>| now?.checked_sub(before?);
        let per_s = |count: Option<u64>| count.map(|count| count as f64 / span.as_secs_f64());
        let sum =
            |known: Option<u64>, more: Option<u64>| more.map(|more| known.unwrap_or(0) + more).or(known);
        self.calls = sum(self.calls, grown(now.received, before.received));
        self.made = sum(self.made, grown(now.sent, before.sent));
        self.failed = sum(self.failed, grown(now.failed, before.failed));
        (self.calls_per_s, self.made_per_s) = (per_s(self.calls), per_s(self.made));
    }
}

/// All subjects of a kind, in no order.
pub fn rows(top: &mut Top, by: By, state: &State<'_>) -> Vec<Row> {
    let mut rows: HashMap<Subject, Row> = HashMap::new();
    if state.open.is_some() {
        for (subject, figures) in top.figures(by) {
            let mut row = Row::of(subject.clone());
            row.count(figures, state.span);
            rows.insert(subject.clone(), row);
        }
    }
    if by == By::Processes {
        processes(&mut rows, state);
    }
    let mut rows: Vec<Row> = rows.into_values().collect();
    rows.iter_mut().for_each(|row| row.name = name(top, row.subject.as_ref()));
    rows
}

fn processes(rows: &mut HashMap<Subject, Row>, state: &State<'_>) {
    // The calls of a process without a row are then among those of others, and not 0.
    let is_full = rows.contains_key(&Subject::Others);
    let before: HashMap<(i32, &str), &Load> =
        state.before.unwrap_or(&[]).iter().map(|load| ((load.pid, load.context.as_str()), load)).collect();
    for load in state.loads.unwrap_or(&[]) {
        let subject = Subject::Process(load.pid);
        let row = rows.entry(subject.clone()).or_insert_with(|| {
            let mut row = Row::of(subject);
            if state.open.is_some() && !is_full {
                row.count(&Figures::default(), state.span);
            }
            row
        });
        row.load(load);
        if let (None, Some(before)) = (state.open, before.get(&(load.pid, load.context.as_str()))) {
            row.difference(before, load, state.span);
        }
    }
    let (mut waiting, mut oldest): (BTreeMap<i32, u64>, BTreeMap<i32, u64>) = Default::default();
    for call in state.open.unwrap_or(&[]).iter().filter(|call| !call.doubtful) {
        match call.client_tgid {
            _ if call.oneway => {
                *waiting.entry(call.to_proc).or_default() += u64::from(call.received.is_none())
            }
            Some(pid) => {
                let age_ms = state.now.saturating_sub(call.begin) / 1_000_000;
                let known = oldest.entry(pid).or_default();
                *known = age_ms.max(*known);
            }
            None => {}
        }
    }
    for (subject, row) in rows {
        let Subject::Process(pid) = subject else { continue };
        // The state also knows calls that are older than the trace.
        row.backlog = row.backlog.max(waiting.get(pid).copied());
        row.oldest_ms = row.oldest_ms.max(oldest.get(pid).copied());
        if state.loads.is_none() && state.open.is_some() {
            row.backlog = row.backlog.or(Some(0));
        }
    }
}

fn name(top: &mut Top, subject: Option<&Subject>) -> String {
    let tasks = top.tasks();
    let mut process = |pid: i32| match tasks.name(pid) {
        _ if pid == 0 => "unknown process".to_owned(),
        "" => format!("process {pid}"),
        name => name.to_owned(),
    };
    match subject {
        Some(Subject::Process(pid)) => process(*pid),
        Some(Subject::Thread { pid, tid }) => {
            let process = process(*pid);
            match tasks.thread(*tid) {
                "" => format!("{process} thread {tid}"),
                thread => format!("{process} {thread}"),
            }
        }
        Some(Subject::Method { pid, node, code, name }) => {
            let method = match (name, code_name(*code)) {
                (Some(name), _) => name.to_string(),
                (None, Some(name)) => name.to_owned(),
                (None, None) => format!("code {code}"),
            };
            format!("{} node {node} {method}", process(*pid))
        }
        Some(Subject::Pair { from, to }) => format!("{} > {}", process(*from), process(*to)),
        Some(Subject::Others) | None => "others".to_owned(),
    }
}
