//! Cost of a full driver relative to an almost empty one: nodes, client processes, handles; and the memory of
//! an idle client.
//! Not here: an idle client (`role`), counting memory (`memory`). Two contexts with a broker each exist at
//! once, a small one and a grown one, and batches on both alternate: the ratio of a round is that of two
//! consecutive batches.

use backend::AnyContext;
use embedded::EmbeddedConnection;
use procgroup::WorkerProcess;
use record::stats::median;

use super::memory;
use super::role::{SpeedRole, go_on, hear};
use super::row::{Limit, Row, Unit};
use super::trip::{self, BatchRunner};
use crate::measure::echo::raw;
use crate::plan::{Family, Placement, Plan, Waiting};
use crate::servers::{AnyClient, Servers};
use crate::spread::Spread;

/// Maximum ratio of a transaction's cost in a grown context.
const MOST: f64 = 1.5;
/// Maximum memory per idle client, in KiB.
const MOST_KIB: f64 = 150.0;

/// Kind of growth.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Growth {
    /// Nodes of the server, held by the service manager.
    Nodes,
    /// Client processes, each of which made a call and is idle.
    Clients,
    /// Handles of the measuring client, each to another node of the server.
    Handles,
}

/// All kinds of growth.
pub(super) const GROWTHS: [Growth; 3] = [Growth::Nodes, Growth::Clients, Growth::Handles];

/// Ways of waiting and placements in which the cost is measured.
const SITES: [(&str, Waiting, Placement); 2] = [
    ("sleeping on one CPU", Waiting::Sleep, Placement::Same),
    ("spinning on two", Waiting::Spin, Placement::Cross),
];

impl Growth {
    /// Returns the number in the grown context.
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

    /// Returns the title of the row.
    pub(super) fn title(self) -> String {
        format!("{} {}", self.many(), self.noun())
    }
}

/// One context with its server, its idle clients, and the measuring client.
struct MeasuredContext {
    servers: Servers,
    client: Box<raw::Client<EmbeddedConnection>>,
    address: String,
    /// Text that occurs in the command lines of its processes only.
    mark: String,
    idle: Vec<WorkerProcess>,
}

impl MeasuredContext {
    /// Creates a context with one client and `nodes` nodes; the client holds `handles` of them.
    fn new(plan: &Plan, nodes: u32, handles: u32) -> Result<Self, String> {
        let context = trip::context(plan)?;
        let address = context.address();
        let AnyContext::Embedded(embedded) = &context else {
            return Err("not the embedded driver".to_owned());
        };
        let mark = embedded.directory().display().to_string();
        let mut servers = trip::servers(plan, Some(context)).with_more_nodes(nodes - 1);
        let planned = plan.cases().into_iter().find(|planned| planned.family == Family::Raw);
        let client = servers.open_case(&planned.ok_or("not planned")?).map_err(|error| error.to_string())?;
        let AnyClient::RawEmbedded(mut client) = client else {
            return Err("not the embedded driver".to_owned());
        };
        let hold = client.hold(&Servers::service_name(), handles - 1);
        hold.map_err(|error| error.to_string())?;
        Ok(Self { servers, client, address, mark, idle: Vec::new() })
    }

    /// Adds clients that make one call each and then are idle; returns the memory per client, in KiB.
    fn add_clients(&mut self, count: u32) -> Result<f64, String> {
        // They run wherever the scheduler puts them.
        self.servers.release();
        let role = SpeedRole::Idle { context: self.address.clone(), service: Servers::service_name() };
        for _ in 0..count {
            self.idle.push(role.start()?);
        }
        self.idle.iter().try_for_each(|idle| hear(idle).map(drop))?;
        let before = memory::of_those_with(&self.mark)?;
        for idle in &self.idle {
            go_on(idle)?;
            hear(idle)?;
        }
        Ok((memory::of_those_with(&self.mark)? - before) / f64::from(count))
    }
}

/// Measures the rows of one growth.
pub(super) fn measure(growth: Growth, rounds: usize) -> Result<Vec<Row>, String> {
    let mut rows = Vec::new();
    for (how, waiting, placement) in SITES {
        let plan = trip::plan(&[], 4, placement, waiting)?;
        let title = format!("{}, {how}", growth.title());
        let (row, kib) = compare(growth, &plan, rounds, &title)?;
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

fn compare(growth: Growth, plan: &Plan, rounds: usize, title: &str) -> Result<(Row, Option<f64>), String> {
    let many = growth.many();
    let (nodes, handles, clients) = match growth {
        Growth::Nodes => (many, 1, 1),
        Growth::Handles => (many, many, 1),
        Growth::Clients => (1, 1, many),
    };
    let mut grown = MeasuredContext::new(plan, nodes, handles)?;
    let kib = if clients > 1 { Some(grown.add_clients(clients - 1)?) } else { None };
    // Both contexts choose the same CPUs, the second one from all CPUs; then this thread stays there.
    grown.servers.release();
    let mut small = MeasuredContext::new(plan, 1, 1)?;
    let mut runner = BatchRunner::new(super::LAP_S);
    let mut made = Vec::new();
    for _ in 0..rounds {
        let base = runner.median(&mut small.client, small.servers.watchdog())?;
        made.push((base, runner.median(&mut grown.client, grown.servers.watchdog())?));
    }
    small.servers.release();
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
    use super::*;

    #[test]
    fn a_cost_that_grows_misses() {
        let flat = row("nodes", &[(1000.0, 1100.0), (1500.0, 1600.0), (1000.0, 2000.0)]).expect("a row");
        assert!(flat.is_met());
        let linear = row("nodes", &[(1000.0, 1600.0), (1500.0, 2400.0)]).expect("a row");
        assert_eq!((linear.is_met(), linear.ratio.median), (false, 1.6));
    }

    #[test]
    fn a_heavy_client_misses() {
        assert!(idle_row(149.0).expect("a row").is_met());
        assert!(!idle_row(151.0).expect("a row").is_met());
    }
}
