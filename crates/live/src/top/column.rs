//! Columns of the table: their titles, values and order, and which of them fit.
//! Not here: drawing them.

use std::borrow::Borrow;
use std::cmp::Ordering;

use super::rows::Row;

/// A column.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Column {
    /// The subject in words.
    Name,
    /// Process; for a thread its number.
    Pid,
    /// Calls received per second.
    Calls,
    /// Calls made per second.
    Made,
    /// Median latency.
    P50,
    /// 99th percentile of the latency.
    P99,
    /// Bytes per second.
    Bytes,
    /// Failed calls.
    Failed,
    /// Oneway calls that wait.
    Backlog,
    /// Use of the area for buffers.
    Buffers,
    /// Busy threads, of those of the pool.
    Threads,
    /// Age of the oldest call.
    Oldest,
    /// Death notices that wait.
    Deaths,
}

impl Column {
    /// All of them, from left to right.
    pub const ALL: [Self; 13] = [
        Self::Pid,
        Self::Name,
        Self::Calls,
        Self::Made,
        Self::P50,
        Self::P99,
        Self::Bytes,
        Self::Failed,
        Self::Backlog,
        Self::Buffers,
        Self::Threads,
        Self::Oldest,
        Self::Deaths,
    ];

    /// Those that go first where not all fit.
    const DROPPED: [Self; 10] = [
        Self::Deaths,
        Self::Bytes,
        Self::Made,
        Self::P50,
        Self::Buffers,
        Self::Threads,
        Self::Backlog,
        Self::Oldest,
        Self::Failed,
        Self::Pid,
    ];

    /// Its title, and its word on the command line in lower case.
    #[must_use]
    pub fn title(self) -> &'static str {
        match self {
            Self::Name => "NAME",
            Self::Pid => "PID",
            Self::Calls => "CALLS/S",
            Self::Made => "MADE/S",
            Self::P50 => "P50",
            Self::P99 => "P99",
            Self::Bytes => "BYTES/S",
            Self::Failed => "FAILED",
            Self::Backlog => "ONEWAY",
            Self::Buffers => "BUFFERS",
            Self::Threads => "BUSY",
            Self::Oldest => "OLDEST",
            Self::Deaths => "DEATHS",
        }
    }

    /// Its width; the name takes what is left.
    #[must_use]
    pub fn width(self) -> usize {
        match self {
            Self::Name => 12,
            Self::Failed | Self::Backlog | Self::Deaths => 6,
            Self::Pid | Self::Threads => 7,
            Self::Calls | Self::Made | Self::Oldest => 8,
            Self::P50 | Self::P99 => 9,
            Self::Bytes => 11,
            Self::Buffers => 8,
        }
    }

    /// The text of a row's cell; empty where no source tells.
    #[must_use]
    pub fn text(self, row: &Row) -> String {
        let whole = |value: Option<u64>| value.map(|value| value.to_string());
        let time = |ns: Option<u64>| ns.map(|ns| units::duration(ns as f64));
        // Eight places hold a tenth of a call up to here.
        let tenths = |rate: f64| usize::from(rate < 999_999.95);
        let rate = |rate: Option<f64>| rate.map(|rate| format!("{rate:.*}", tenths(rate)));
        let text = match self {
            Self::Name => Some(row.name.clone()),
            Self::Pid => row.tid.or(row.pid).map(|pid| pid.to_string()),
            Self::Calls => rate(row.calls_per_s),
            Self::Made => rate(row.made_per_s),
            Self::P50 => time(row.p50_ns),
            Self::P99 => time(row.p99_ns),
            Self::Bytes => row.bytes_per_s.map(units::byte_rate),
            Self::Failed => whole(row.failed),
            Self::Backlog => whole(row.backlog),
            Self::Buffers => match (row.buffer_bytes, row.area_bytes) {
                (Some(used), Some(area)) if area > 0 => {
                    Some(format!("{:.0}%", used as f64 / area as f64 * 100.0))
                }
                (used, _) => used.map(units::bytes),
            },
            Self::Threads => row.busy.map(|busy| match row.pool {
                Some(pool) => format!("{busy}/{pool}"),
                None => busy.to_string(),
            }),
            Self::Oldest => time(row.oldest_ms.map(|ms| ms * 1_000_000)),
            Self::Deaths => whole(row.deaths),
        };
        text.unwrap_or_default()
    }

    /// Sorts rows by this column: the largest first, and names by the alphabet. What is blank comes last.
    pub fn sort(self, rows: &mut [impl Borrow<Row>]) {
        let whole = |value: Option<u64>| value.map(|value| value as f64);
        let value = |row: &Row| match self {
            Self::Name => None,
            Self::Pid => row.tid.or(row.pid).map(f64::from),
            Self::Calls => row.calls_per_s,
            Self::Made => row.made_per_s,
            Self::P50 => whole(row.p50_ns),
            Self::P99 => whole(row.p99_ns),
            Self::Bytes => row.bytes_per_s,
            Self::Failed => whole(row.failed),
            Self::Backlog => whole(row.backlog),
            Self::Buffers => whole(row.buffer_bytes),
            Self::Threads => whole(row.busy),
            Self::Oldest => whole(row.oldest_ms),
            Self::Deaths => whole(row.deaths),
        };
        let places = |row: &Row| (row.from, row.to, row.pid, row.tid, row.node, row.code);
        rows.sort_by(|one, other| {
            let (one, other) = (one.borrow(), other.borrow());
            let by_value = value(other).partial_cmp(&value(one)).unwrap_or(Ordering::Equal);
            by_value.then_with(|| one.name.cmp(&other.name)).then_with(|| places(one).cmp(&places(other)))
        });
    }

    /// The columns for this width, and the width of each; those go first that matter least.
    #[must_use]
    pub fn fitting(width: usize) -> Vec<(Self, usize)> {
        let needed = |columns: &[Self]| columns.iter().map(|column| column.width() + 1).sum::<usize>() - 1;
        let mut columns = Self::ALL.to_vec();
        for dropped in Self::DROPPED {
            if needed(&columns) <= width {
                break;
            }
            columns.retain(|column| *column != dropped);
        }
        let spare = width.saturating_sub(needed(&columns));
        let wide = |column: Self| {
            if column == Self::Name { (column.width() + spare).min(40) } else { column.width() }
        };
        columns.into_iter().map(|column| (column, wide(column))).collect()
    }
}

impl std::str::FromStr for Column {
    type Err = String;

    fn from_str(word: &str) -> Result<Self, String> {
        let found = Self::ALL.into_iter().find(|column| column.title().eq_ignore_ascii_case(word));
        found.ok_or_else(|| {
            let all = Self::ALL.map(|column| column.title().to_lowercase()).join(", ");
            format!("no such column {word:?}; there are {all}")
        })
    }
}
