//! Many kernels beside the first: what each costs by case, and the verdicts of its tests.
//! Not here: measuring them (`bench::matrix`), comparing two groups (`crate::compare`), tables and pages
//! (`crate::render::matrix`).

use serde::Serialize;

use crate::compare::{CannotCompare, CaseComparison, Group, Metric, Options, RatioEstimate, compare};
use crate::schema::{CaseKind, ClockUnit, Severity};
use crate::verdict::{Verdict, of_run};

/// A kernel, and what it did in each test.
#[derive(Clone, Debug)]
pub struct Kernel {
    /// The user's name for it.
    pub name: String,
    /// One for each test, in their order: its runs, or why there is none.
    pub tests: Vec<Result<Group, String>>,
}

/// The result of many kernels.
#[derive(Clone, Debug, Serialize)]
pub struct Matrix {
    /// The compared figure.
    pub metric: Metric,
    /// The tests, in their order.
    pub tests: Vec<Table>,
}

/// One test on all kernels.
#[derive(Clone, Debug, Serialize)]
pub struct Table {
    /// The words of the test.
    pub test: String,
    /// The kernel that the others are compared with: the first that has a result.
    pub baseline: Option<String>,
    /// The unit of all values; `None` without a baseline.
    pub unit: Option<ClockUnit>,
    /// The cases of the baseline; subjects first.
    pub columns: Vec<Column>,
    /// The kernels, in their order.
    pub rows: Vec<Row>,
    /// Differences between the runs that are not those of the kernels.
    pub environment: Vec<String>,
}

/// A case.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct Column {
    /// Its name.
    pub case: String,
    /// Whether it is a subject of the test or a control.
    pub kind: CaseKind,
}

/// One kernel in one test.
#[derive(Clone, Debug, Serialize)]
pub struct Row {
    /// The kernel's name.
    pub kernel: String,
    /// The release that ran, and its version; empty if none did.
    pub release: String,
    /// One for each column; `None`: this kernel has no figure for it.
    pub cells: Vec<Option<Cell>>,
    /// The verdicts of the last run.
    pub verdicts: Vec<Verdict>,
    /// Why there is no result; `None` with one.
    pub failure: Option<String>,
}

/// A figure, and its cost relative to the baseline's.
#[derive(Clone, Copy, Debug, Serialize)]
pub struct Cell {
    /// Median over the runs, in the table's unit.
    pub value: f64,
    /// The comparison with the baseline; `None` for the baseline itself.
    pub to_first: Option<ToFirst>,
}

/// The comparison of a cell with the baseline.
#[derive(Clone, Copy, Debug, Serialize)]
pub struct ToFirst {
    /// The ratio, with its interval.
    #[serde(flatten)]
    pub estimate: RatioEstimate,
    /// Whether that is a difference.
    pub verdict: crate::compare::Verdict,
}

impl Matrix {
    /// Whether every kernel has a result in every test.
    #[must_use]
    pub fn is_whole(&self) -> bool {
        self.tests.iter().flat_map(|table| &table.rows).all(|row| row.failure.is_none())
    }
}

/// Puts kernels beside one another. `tests`: the words of each test.
#[must_use]
pub fn matrix(tests: &[String], kernels: &[Kernel], options: &Options) -> Matrix {
    let tables = tests.iter().enumerate().map(|(at, test)| table(test, at, kernels, options));
    Matrix { metric: options.metric, tests: tables.collect() }
}

fn table(test: &str, at: usize, kernels: &[Kernel], options: &Options) -> Table {
    // The first that has a figure; compared with itself it gives its own values, in the order of its cases.
    let first = kernels.iter().find_map(|kernel| {
        let group = of(kernel, at).ok()?;
        Some((kernel, group, compare(group, group, options).ok()?))
    });
    let Some((baseline, group, own)) = first else {
        let rows = kernels
            .iter()
            .map(|kernel| failed(kernel, of(kernel, at).err().unwrap_or("no case has a number")));
        return Table {
            test: test.to_owned(),
            baseline: None,
            unit: None,
            columns: Vec::new(),
            rows: rows.collect(),
            environment: Vec::new(),
        };
    };
    let mut columns: Vec<Column> =
        own.cases.iter().map(|case| Column { case: case.name.clone(), kind: case.kind }).collect();
    columns.sort_by_key(|column| column.kind == CaseKind::Control);
    let cells = |cases: &[CaseComparison], cell: fn(&CaseComparison) -> Cell| -> Vec<Option<Cell>> {
        let of_column = |column: &Column| cases.iter().find(|case| case.name == column.case).map(cell);
        columns.iter().map(of_column).collect()
    };
    let (mut rows, mut environment) = (Vec::new(), Vec::new());
    for kernel in kernels {
        let other = match of(kernel, at) {
            Ok(other) => other,
            Err(why) => {
                rows.push(failed(kernel, why));
                continue;
            }
        };
        let cells = if kernel.name == baseline.name {
            cells(&own.cases, |case| Cell { value: case.a, to_first: None })
        } else {
            match compare(group, other, options) {
                Ok(found) => {
                    let told = found.environment.iter().filter(|one| one.severity == Severity::Warning);
                    environment.extend(told.map(|one| {
                        format!(
                            "{}: {} is {}, of {} it is {}",
                            kernel.name, one.what, one.b, baseline.name, one.a
                        )
                    }));
                    cells(&found.cases, to_first)
                }
                Err(CannotCompare::NothingInCommon { .. }) => vec![None; columns.len()],
                Err(error) => {
                    rows.push(failed(kernel, &error.to_string()));
                    continue;
                }
            }
        };
        rows.push(Row { cells, ..measured(kernel, other) });
    }
    let (test, baseline) = (test.to_owned(), Some(baseline.name.clone()));
    Table { test, baseline, unit: Some(own.unit), columns, rows, environment }
}

fn of(kernel: &Kernel, at: usize) -> Result<&Group, &str> {
    match kernel.tests.get(at) {
        Some(Ok(group)) if group.members.is_empty() => Err("not measured"),
        Some(Ok(group)) => Ok(group),
        Some(Err(why)) => Err(why),
        None => Err("not measured"),
    }
}

fn to_first(case: &CaseComparison) -> Cell {
    Cell { value: case.b, to_first: Some(ToFirst { estimate: case.estimate, verdict: case.verdict }) }
}

fn measured(kernel: &Kernel, group: &Group) -> Row {
    let last = group.members.last();
    let release = last.map(|member| {
        let kernel = &member.run.host.kernel;
        format!("{} {}", kernel.release, kernel.version)
    });
    let verdicts =
        last.map(|member| of_run(&member.run).into_iter().flat_map(|test| test.verdicts).collect());
    Row {
        kernel: kernel.name.clone(),
        release: release.unwrap_or_default(),
        cells: Vec::new(),
        verdicts: verdicts.unwrap_or_default(),
        failure: None,
    }
}

fn failed(kernel: &Kernel, why: &str) -> Row {
    Row {
        kernel: kernel.name.clone(),
        release: String::new(),
        cells: Vec::new(),
        verdicts: Vec::new(),
        failure: Some(why.to_owned()),
    }
}
