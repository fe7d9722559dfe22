//! The answer at the top of a page: calls without an answer, failed ones, the slowest, and the methods that cost most.
//! Not here: sentences (`verdict`), the pictures that lines lead to (`page`).

use serde::Serialize;

use crate::verdict::overview::{kinds_of_failures, under_way_words};
use crate::verdict::text::{headline, time};
use crate::verdict::{Analysis, SlowCall};

/// Maximum number of lines of each list.
const MOST: usize = 8;
/// Maximum number of methods.
const MOST_METHODS: usize = 8;

/// The answer.
#[derive(Serialize)]
pub(super) struct Answer {
    lists: Vec<List>,
    under_way: Option<String>,
    /// What the rows have in common: `method`, `interface`, `pair`.
    by: Option<String>,
    methods: Vec<Method>,
}

#[derive(Serialize)]
struct List {
    title: &'static str,
    lines: Vec<Line>,
    /// Calls that have no line.
    more: usize,
}

#[derive(Serialize)]
struct Line {
    missed: bool,
    text: String,
    /// Number of its picture, from 1, if it has one.
    picture: Option<usize>,
}

#[derive(Serialize)]
struct Method {
    name: String,
    calls: u64,
    total: String,
    median: String,
    most: String,
    cause: String,
}

impl Answer {
    /// The answer of an analysis; `picture` says which picture shows a call. `None` if there is nothing to say.
    pub(super) fn of(analysis: &Analysis, picture: &impl Fn(&SlowCall) -> Option<usize>) -> Option<Self> {
        let line =
            |slow: &SlowCall| Line { missed: slow.missed, text: headline(slow), picture: picture(slow) };
        let list = |title, calls: &[&SlowCall]| List {
            title,
            lines: calls.iter().take(MOST).map(|slow| line(slow)).collect(),
            more: calls.len().saturating_sub(MOST),
        };
        let (late, under_way): (Vec<&SlowCall>, Vec<&SlowCall>) =
            analysis.unanswered.iter().partition(|slow| analysis.is_late(slow));
        let kinds = kinds_of_failures(&analysis.failed);
        let failed = List {
            title: "Failed",
            lines: kinds.iter().take(MOST).map(|(first, times)| failure(first, *times)).collect(),
            more: kinds.iter().skip(MOST).map(|(_, times)| times).sum(),
        };
        let spam = analysis.oneway_spam.iter().take(MOST);
        let spam = List {
            title: "Oneway spam suspected by the driver",
            lines: spam.map(|spam| Line { missed: false, text: spam.to_string(), picture: None }).collect(),
            more: analysis.oneway_spam.len().saturating_sub(MOST),
        };
        let lists = [
            list("No answer", &late),
            failed,
            spam,
            list("Slowest", &analysis.slow.iter().collect::<Vec<_>>()),
        ];
        let answer = Self {
            lists: lists.into_iter().filter(|list| !list.lines.is_empty()).collect(),
            under_way: under_way_words(&under_way),
            by: analysis.by.map(|by| by.to_string()),
            methods: methods(analysis),
        };
        (!answer.lists.is_empty() || !answer.methods.is_empty()).then_some(answer)
    }
}

fn failure(first: &SlowCall, times: usize) -> Line {
    let more = if times > 1 { format!("; {} more like it", times - 1) } else { String::new() };
    Line { missed: false, text: headline(first) + &more, picture: None }
}

/// The rows with the most time.
fn methods(analysis: &Analysis) -> Vec<Method> {
    let rows = analysis.groups.iter().filter(|group| !group.waits_by_design).take(MOST_METHODS);
    rows.map(|group| {
        let sum = &group.sum;
        let cause =
            sum.shares.first().map(|share| format!("{} {:.0} %", share.cause.words(), share.share * 100.0));
        Method {
            name: group.name.clone(),
            calls: sum.calls,
            total: time(sum.ns),
            median: time(sum.p50_ns),
            most: time(sum.max_ns),
            cause: cause.unwrap_or_default(),
        }
    })
    .collect()
}
