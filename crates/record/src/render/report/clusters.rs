//! Results of a machine's clusters beside one another: the same test on its big and on its little CPUs.
//! Not here: choosing the CPUs (`bench::placing`), records of several machines (`crate::across`).

use crate::render::table::{Table, cells};
use crate::schema::{Case, CaseKind, Run};

/// The clusters of a run, and the cpuset if one was chosen; `None` where none was.
fn clusters(run: &Run) -> Option<&str> {
    let (_, chosen) = run.plan.placement.split_once("; ")?;
    let names_one = chosen.split([',', ' ']).any(|word| ["big", "mid", "little"].contains(&word));
    names_one.then_some(chosen)
}

/// Whether two runs differ in their clusters only, as far as a table can show.
fn are_alike(one: &Run, other: &Run) -> bool {
    let sides = |run: &Run| run.plan.placement.split(';').next().map(str::to_owned);
    let driver = |run: &Run| run.driver.as_ref().map(|driver| driver.kind);
    one.plan.test == other.plan.test
        && sides(one) == sides(other)
        && driver(one) == driver(other)
        && one.host.host_name == other.host.host_name
        && one.host.kernel.release == other.host.kernel.release
        && one.clock.unit == other.clock.unit
}

/// Every test that ran on several clusters. Of two runs on the same one the first is shown.
pub(super) fn beside(runs: &[&Run]) -> Vec<Table> {
    let mut groups: Vec<Vec<&Run>> = Vec::new();
    for run in runs.iter().copied().filter(|run| clusters(run).is_some()) {
        match groups.iter_mut().find(|group| are_alike(group[0], run)) {
            Some(group) if group.iter().any(|known| clusters(known) == clusters(run)) => {}
            Some(group) => group.push(run),
            None => groups.push(vec![run]),
        }
    }
    groups.iter().filter(|group| group.len() > 1).map(|group| table(group)).collect()
}

fn table(group: &[&Run]) -> Table {
    let names: Vec<&str> = group.iter().filter_map(|run| clusters(run)).collect();
    let mut heads = vec!["case".to_owned()];
    heads.extend(names.iter().map(|name| (*name).to_owned()));
    heads.extend(names.iter().skip(1).map(|name| format!("{name} / {}", names[0])));
    let tests = group[0].cases.iter().filter(|case| case.kind == CaseKind::Test);
    let row = |case: &Case| {
        let found: Vec<Option<&Case>> = group.iter().map(|run| same(run, case)).collect();
        let median = |case: &Option<&Case>| case.and_then(Case::median_real);
        let first = median(&found[0]);
        let cell = |case: &Option<&Case>| {
            let unit = group[0].clock.unit;
            let shown = median(case).map(|median| unit.show(median));
            let p99 = case.and_then(|case| case.samples()?.percentile(99.0));
            let p99 = p99.map_or(String::new(), |p99| format!(", p99 {}", unit.show(p99 as f64)));
            shown.map_or("-".to_owned(), |median| median + &p99)
        };
        let ratio = |case: &Option<&Case>| match (first, median(case)) {
            (Some(first), Some(median)) if first > 0.0 => format!("{:.2}x", median / first),
            _ => "-".to_owned(),
        };
        cells![&case.name].and(found.iter().map(cell)).and(found.iter().skip(1).map(ratio))
    };
    let title = format!("{} on {}", group[0].title(), names.join(" beside "));
    Table::new(heads).titled(title).rows(tests.map(row))
}

/// The case of a run that has this one's name.
fn same<'r>(run: &'r Run, case: &Case) -> Option<&'r Case> {
    run.cases.iter().find(|other| other.name == case.name)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::fixtures::{self, case, measured};

    fn run(placement: &str, times: &[(u64, u64)]) -> Run {
        let mut run = fixtures::run();
        run.plan.placement = placement.to_owned();
        let case = |(payload, ns): &(u64, u64)| {
            case("BM_sendVec_binder", *payload, 0, vec![measured(100, ns * 100, 100)])
        };
        run.cases = times.iter().map(case).collect();
        run
    }

    #[test]
    fn a_big_and_a_little_cluster_stand_side_by_side() {
        let (big, little) = (run("same; big", &[(4, 2000), (8, 3000)]), run("same; little", &[(4, 5000)]));
        let shown = beside(&[&big, &run("same", &[(4, 1000)]), &little, &big]);
        let [beside] = shown.as_slice() else { panic!("one table: {shown:?}") };
        assert!(beside.title().ends_with(" on big beside little"), "{}", beside.title());
        let text = beside.markdown();
        assert!(text.contains("\n| case | big | little | little / big |\n"), "{text}");
        assert!(text.contains("/4 | 2.00 us, p99 2.00 us | 5.00 us, p99 5.00 us | 2.50x |\n"), "{text}");
        assert!(
            text.contains("/8 | 3.00 us, p99 3.00 us | - | - |\n"),
            "what the other did not measure: {text}"
        );
    }

    #[test]
    fn unlike_runs_and_a_single_cluster_are_no_table() {
        let (big, little) = (run("same; big", &[(4, 2000)]), run("same; little", &[(4, 5000)]));
        let mut elsewhere = little.clone();
        elsewhere.host.host_name = "other".to_owned();
        for others in [
            run("cross; little", &[(4, 5000)]),
            run("same; cpuset top-app", &[(4, 1)]),
            run("same; big", &[(4, 1)]),
            elsewhere,
        ] {
            assert!(beside(&[&big, &others]).is_empty(), "{}", others.plan.placement);
        }
        assert!(beside(&[&big]).is_empty() && beside(&[]).is_empty());
    }
}
