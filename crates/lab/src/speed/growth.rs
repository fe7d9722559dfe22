//! Room: what a driver with much in it costs beside one with next to nothing: nodes, client processes,
//! handles; and the memory of an idle client.
//! Not here: an idle client (`role`), counting memory (`memory`).
//! Two contexts with a broker each are there at once, a small one and a grown one, and batches on both
//! take turns: the ratio of a round is that of two batches, one right after the other.

use std::path::Path;

use driver::{AnyContext, EmbeddedConnection};
use record::stats::median;

use super::helper::Helper;
use super::memory;
use super::role::{self, DONE, STARTED};
use super::row::{Limit, Row, Spread, Unit};
use super::trip::{self, Tools};
use crate::measure::echo::raw;
use crate::plan::{Family, Placement, Plan, Waiting};
use crate::stage::{Stage, Subject};

/// The most that a transaction may cost in a grown context, as a multiple.
const MOST: f64 = 1.3;
/// The most memory that an idle client may cost, in KiB.
const MOST_KIB: f64 = 300.0;

/// What grows.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Growth {
    /// Nodes of the server, held by the service manager.
    Nodes,
    /// Client processes, each of which made a call and is idle.
    Clients,
    /// Handles of the measuring client, each of another node of the server.
    Handles,
}

/// All of them.
pub(super) const GROWTHS: [Growth; 3] = [Growth::Nodes, Growth::Clients, Growth::Handles];

/// The ways in which the cost is measured.
const SITES: [(&str, Waiting, Placement); 2] = [
    ("sleeping on one CPU", Waiting::Sleep, Placement::Same),
    ("spinning on two", Waiting::Spin, Placement::Cross),
];

impl Growth {
    /// How many there are in the grown context.
    fn many(self) -> u32 {
        match self {
            Self::Nodes => 10_000,
            Self::Clients => 256,
            Self::Handles => 1000,
        }
    }

    fn noun(self) -> &'static str {
        match self {
            Self::Nodes => "nodes",
            Self::Clients => "clients",
            Self::Handles => "handles",
        }
    }

    /// For people.
    pub(super) fn title(self) -> String {
        format!("{} {}", self.many(), self.noun())
    }
}

/// One context with its server, its idle clients, and the client that measures.
struct World<'p> {
    stage: Stage<'p>,
    client: Box<raw::Client<EmbeddedConnection>>,
    address: String,
    /// What its processes, and no others, have in their command lines.
    mark: String,
    idle: Vec<Helper>,
}

impl<'p> World<'p> {
    /// A context with one client and so many nodes, of which the client holds `handles`.
    fn new(plan: &'p Plan, program: &Path, nodes: u32, handles: u32) -> Result<Self, String> {
        let context = trip::context(plan)?;
        let address = context.address();
        let AnyContext::Embedded(embedded) = &context else {
            return Err("not the embedded driver".to_owned());
        };
        let mark = embedded.directory().display().to_string();
        let class = crate::host::class();
        let mut stage = Stage::new(plan, program, Some(context), class).with_more_nodes(nodes - 1);
        let planned = plan.cases().into_iter().find(|planned| planned.family == Family::Raw);
        let subject = stage.enter(&planned.ok_or("not planned")?).map_err(|error| error.to_string())?;
        let Subject::RawEmbedded(mut client) = subject else {
            return Err("not the embedded driver".to_owned());
        };
        let hold = client.hold(&Stage::service_name(), handles - 1);
        hold.map_err(|error| error.to_string())?;
        Ok(Self { stage, client, address, mark, idle: Vec::new() })
    }

    /// Has so many further processes make a call each and be idle; returns the KiB that one of them costs.
    fn add_clients(&mut self, program: &Path, count: u32) -> Result<f64, String> {
        // They run wherever the scheduler likes.
        self.stage.release();
        let words = role::idle(&self.address, &Stage::service_name());
        for _ in 0..count {
            self.idle.push(Helper::start(program, &words)?);
        }
        self.idle.iter_mut().try_for_each(|idle| idle.hear(STARTED).map(drop))?;
        let before = memory::of_those_with(&self.mark)?;
        for idle in &mut self.idle {
            idle.go()?;
            idle.hear(DONE)?;
        }
        Ok((memory::of_those_with(&self.mark)? - before) / f64::from(count))
    }
}

/// Measures the rows of one growth.
pub(super) fn measure(growth: Growth, program: &Path, rounds: usize) -> Result<Vec<Row>, String> {
    let mut rows = Vec::new();
    for (how, waiting, placement) in SITES {
        let plan = trip::plan(&[], 4, placement, waiting)?;
        let title = format!("{}, {how}", growth.title());
        let (row, kib) = compare(growth, &plan, program, rounds, &title)?;
        rows.push(row);
        if let Some(kib) = kib
            && placement == Placement::Same
        {
            rows.push(idle_row(kib)?);
        }
    }
    Ok(rows)
}

fn idle_row(kib: f64) -> Result<Row, String> {
    let spread = Spread::of(&[kib]).ok_or("no memory was counted")?;
    let mut row = Row::new("memory per idle client", Unit::Kib, kib, None, spread, Limit::AtMost(MOST_KIB));
    let clients = Growth::Clients.many() - 1;
    row.note = Some(format!(
        "growth of the PSS of broker, service manager, server and clients while {clients} processes open the \
         context, find the service and call it, per process; without the kernel's own memory"
    ));
    Ok(row)
}

fn compare(
    growth: Growth,
    plan: &Plan,
    program: &Path,
    rounds: usize,
    title: &str,
) -> Result<(Row, Option<f64>), String> {
    let many = growth.many();
    let (nodes, handles, clients) = match growth {
        Growth::Nodes => (many, 1, 1),
        Growth::Handles => (many, many, 1),
        Growth::Clients => (1, 1, many),
    };
    let mut grown = World::new(plan, program, nodes, handles)?;
    let kib = if clients > 1 { Some(grown.add_clients(program, clients - 1)?) } else { None };
    // Both worlds choose the same CPUs, the second one from all that there are; there this thread stays.
    grown.stage.release();
    let mut small = World::new(plan, program, 1, 1)?;
    let mut tools = Tools::new(super::LAP_S);
    let mut made = Vec::new();
    for _ in 0..rounds {
        let base = tools.median(&mut small.client, small.stage.watch())?;
        made.push((base, tools.median(&mut grown.client, grown.stage.watch())?));
    }
    small.stage.release();
    Ok((row(title, &made)?, kib))
}

fn row(title: &str, rounds: &[(f64, f64)]) -> Result<Row, String> {
    let none = "no round was made";
    let middle =
        |which: fn(&(f64, f64)) -> f64| median(&rounds.iter().map(which).collect::<Vec<_>>()).ok_or(none);
    let ratio =
        Spread::of(&rounds.iter().map(|(base, grown)| grown / base).collect::<Vec<_>>()).ok_or(none)?;
    let beside = Some(("with one".to_owned(), middle(|round| round.0)?));
    Ok(Row::new(title, Unit::Ns, middle(|round| round.1)?, beside, ratio, Limit::AtMost(MOST)))
}

#[cfg(test)]
mod tests {
    use super::super::row::Verdict;
    use super::*;

    #[test]
    fn a_cost_that_grows_misses() {
        let flat = row("nodes", &[(1000.0, 1100.0), (1500.0, 1600.0), (1000.0, 2000.0)]).expect("a row");
        assert_eq!(flat.verdict, Verdict::Met);
        let linear = row("nodes", &[(1000.0, 1400.0), (1500.0, 2100.0)]).expect("a row");
        assert_eq!((linear.verdict, linear.ratio.median), (Verdict::Missed, 1.4));
    }

    #[test]
    fn a_heavy_client_misses() {
        assert_eq!(idle_row(299.0).expect("a row").verdict, Verdict::Met);
        assert_eq!(idle_row(301.0).expect("a row").verdict, Verdict::Missed);
    }
}
