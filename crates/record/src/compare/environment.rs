//! Differences between the environments of two groups, and checks that their numbers are comparable.

use super::{CannotCompare, Group};
use crate::schema::{ClockUnit, HostClass, Run, Severity};
use serde::Serialize;
use std::collections::BTreeSet;
use units::visible::printable;

/// A difference between the environments.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct Difference {
    /// The name of the fact that differs.
    pub what: String,
    /// Its value in the first group; several values if its runs differ.
    pub a: String,
    /// Its value in the second group.
    pub b: String,
    /// How much it spoils the comparison, unless it is the intended difference.
    pub severity: Severity,
}

/// A fact of a run: its name, the severity of a difference, and its value.
type Fact = (&'static str, Severity, fn(&Run) -> String);

const FACTS: [Fact; 29] = [
    ("driver", Severity::Info, |run| {
        let none = if run.imported.is_some() { "" } else { "none" };
        run.driver.as_ref().map_or(none, |driver| driver.kind.name()).to_owned()
    }),
    ("driver's protocol", Severity::Info, |run| {
        number(run.driver.as_ref().map(|driver| driver.protocol_version))
    }),
    ("driver's features", Severity::Info, |run| {
        run.driver.as_ref().map_or_else(unknown, |driver| driver.features.join(" "))
    }),
    ("driver's settings", Severity::Info, |run| {
        let settings = run.driver.as_ref().and_then(|driver| driver.embedded.as_ref());
        settings.map_or_else(unknown, crate::EmbeddedSettings::describe)
    }),
    ("kernel", Severity::Info, |run| run.host.kernel.release.clone()),
    ("kernel's build", Severity::Info, |run| run.host.kernel.version.clone()),
    ("architecture", Severity::Warning, |run| run.host.kernel.machine.clone()),
    ("preemption", Severity::Info, |run| run.host.kernel.preemption.clone().unwrap_or_else(unknown)),
    ("machine", Severity::Warning, |run| run.host.class.name().to_owned()),
    ("host", Severity::Info, |run| run.host.host_name.clone()),
    ("CPU", Severity::Warning, |run| run.host.cpu.model.clone()),
    ("CPUs", Severity::Warning, |run| number(Some(run.host.cpu.count).filter(|count| *count > 0))),
    ("another program's settings", Severity::Warning, |run| match &run.imported {
        // Its workers, pairs, iterations, deadline.
        Some(_) => {
            run.context.iter().map(|(key, value)| format!("{key} {value}")).collect::<Vec<_>>().join(" ")
        }
        None => unknown(),
    }),
    ("governor", Severity::Warning, |run| run.host.cpu.governor.clone().unwrap_or_else(unknown)),
    ("clock scaling", Severity::Warning, |run| run.host.cpu.scaling_enabled.map_or_else(unknown, yes)),
    ("clock source", Severity::Warning, |run| run.host.clocksource.clone().unwrap_or_else(unknown)),
    ("memory in MiB", Severity::Info, |run| number(run.host.memory_bytes.map(|bytes| bytes >> 20))),
    ("address randomisation", Severity::Info, |run| run.host.aslr_enabled.map_or_else(unknown, yes)),
    ("overloaded", Severity::Warning, |run| yes(run.overloaded)),
    ("binderperf", Severity::Info, |run| {
        let git = run.tool.git.as_ref().map(|git| format!(" ({git})")).unwrap_or_default();
        match &run.imported {
            Some(other) => format!("{} {}", other.program, run.tool.version).trim_end().to_owned(),
            None => run.tool.version.clone() + &git,
        }
    }),
    ("binderperf's build", Severity::Warning, |run| run.tool.build_profile.clone()),
    ("least time of a case", Severity::Info, |run| run.plan.min_time.clone()),
    ("repetitions", Severity::Info, |run| run.plan.repetitions.to_string()),
    ("placement", Severity::Warning, |run| run.plan.placement.clone()),
    ("constraints", Severity::Warning, |run| {
        run.constraints.as_ref().map_or_else(|| "none".to_owned(), crate::Constraints::words)
    }),
    ("device", Severity::Info, |run| run.plan.device.clone()),
    ("iterations", Severity::Info, |run| number(run.latency().map(|test| test.iterations))),
    ("flight recorder", Severity::Warning, |run| {
        let recorded = |test: &crate::LatencyTest| {
            yes(test.recorder.as_ref().is_some_and(crate::Recorder::is_in_figures))
        };
        run.latency().map_or_else(unknown, recorded)
    }),
    ("injected", Severity::Info, |run| run.latency().map_or_else(unknown, |test| test.injected.join(" "))),
];

fn unknown() -> String {
    String::new()
}

fn yes(is: bool) -> String {
    if is { "yes" } else { "no" }.to_owned()
}

fn number(value: Option<impl ToString>) -> String {
    value.map_or_else(unknown, |value| value.to_string())
}

/// Facts that differ between the groups or within the runs of one test, the most severe first.
pub(super) fn differences(a: &Group, b: &Group) -> Vec<Difference> {
    let tests = |group: &Group| -> BTreeSet<String> {
        group.members.iter().map(|member| member.run.plan.test.clone()).collect()
    };
    let (tests_a, tests_b) = (tests(a), tests(b));
    let facts = FACTS.iter().filter_map(|(what, severity, tell)| {
        // Only tests that both sides have are compared: a latency test beside a throughput test is no difference
        // between the sides.
        let differs = match tests_a.intersection(&tests_b).next() {
            None => values(a, None, tell) != values(b, None, tell),
            Some(_) => tests_a.intersection(&tests_b).any(|test| {
                let (of_a, of_b) = (values(a, Some(test), tell), values(b, Some(test), tell));
                of_a != of_b || of_a.len() > 1
            }),
        };
        let difference = |of_a: &BTreeSet<String>, of_b: &BTreeSet<String>| Difference {
            what: (*what).to_owned(),
            a: listed(of_a),
            b: listed(of_b),
            severity: *severity,
        };
        differs.then(|| difference(&values(a, None, tell), &values(b, None, tell)))
    });
    let others = (tests_a != tests_b).then(|| Difference {
        what: "test".to_owned(),
        a: listed(&tests_a),
        b: listed(&tests_b),
        severity: Severity::Warning,
    });
    let mut all: Vec<Difference> =
        facts.chain(others).chain(load(a, b)).chain(findings(a, b)).chain(incomplete(a, b)).collect();
    // A stable sort keeps the order of the facts among equals.
    all.sort_by_key(|difference| std::cmp::Reverse(difference.severity));
    all
}

/// The values of a fact over the runs of a test, or over all runs.
fn values(group: &Group, test: Option<&String>, tell: &fn(&Run) -> String) -> BTreeSet<String> {
    let runs = group.members.iter().map(|member| &member.run);
    let runs = runs.filter(|run| test.is_none_or(|test| run.plan.test == *test));
    runs.map(|run| printable(&tell(run)).into_owned()).collect()
}

fn listed(values: &BTreeSet<String>) -> String {
    const SHOWN: usize = 3;
    let words =
        values.iter().take(SHOWN).map(|value| if value.is_empty() { "not known" } else { value.as_str() });
    let more =
        if values.len() > SHOWN { format!(" and {} more", values.len() - SHOWN) } else { String::new() };
    words.collect::<Vec<_>>().join(", ") + &more
}

/// Load at the start, if the medians of both sides differ by half a CPU of each.
fn load(a: &Group, b: &Group) -> Option<Difference> {
    let of = |group: &Group| {
        let each = group.members.iter().filter_map(|member| {
            let cpus = Some(member.run.host.cpu.count).filter(|count| *count > 0)?;
            Some(member.run.host.load_avg.first()? / f64::from(cpus))
        });
        crate::stats::median(&each.collect::<Vec<f64>>())
    };
    let (a, b) = of(a).zip(of(b))?;
    ((a - b).abs() > 0.5).then(|| Difference {
        what: "load by CPU".to_owned(),
        a: format!("{a:.1}"),
        b: format!("{b:.1}"),
        severity: Severity::Warning,
    })
}

/// Findings of the checks that are not in all runs of both sides.
fn findings(a: &Group, b: &Group) -> Vec<Difference> {
    let all = [a, b].into_iter().flat_map(|group| &group.members).flat_map(|member| &member.run.findings);
    let ids: BTreeSet<&str> = all.map(|finding| finding.id.as_str()).collect();
    let in_group = |group: &Group, id: &str| -> (usize, Severity) {
        let found =
            group.members.iter().filter_map(|member| member.run.findings.iter().find(|one| one.id == id));
        found.fold((0, Severity::Info), |(count, worst), one| (count + 1, worst.max(one.severity)))
    };
    let told = |count: usize, group: &Group| format!("in {count} of {} runs", group.members.len());
    let differs = ids.into_iter().filter_map(|id| {
        let ((of_a, bad), (of_b, worse)) = (in_group(a, id), in_group(b, id));
        // A finding in all runs, in none, or in about the same share of both is no difference.
        let alike = of_a * b.members.len() == of_b * a.members.len();
        (!alike).then(|| Difference {
            what: format!("finding {}", printable(id)),
            a: told(of_a, a),
            b: told(of_b, b),
            severity: bad.max(worse),
        })
    });
    differs.collect()
}

fn incomplete(a: &Group, b: &Group) -> Option<Difference> {
    let of = |group: &Group| group.members.iter().filter(|member| !member.run.complete).count();
    let (of_a, of_b) = (of(a), of(b));
    (of_a + of_b > 0).then(|| Difference {
        what: "stopped early".to_owned(),
        a: format!("{of_a} of {} runs", a.members.len()),
        b: format!("{of_b} of {} runs", b.members.len()),
        severity: Severity::Warning,
    })
}

/// The clock unit of all runs, or an error if their numbers mean different things.
pub(super) fn check(a: &Group, b: &Group, force: bool) -> Result<ClockUnit, CannotCompare> {
    let runs = || a.members.iter().chain(&b.members).map(|member| &member.run);
    let unit = a.members[0].run.clock.unit;
    if runs().any(|run| run.clock.unit != unit) {
        return Err(CannotCompare::Clocks);
    }
    let unlike = |what: &'static str, kind: &dyn Fn(&Run) -> String| {
        let of = |group: &Group| {
            group.members.iter().map(|member| kind(&member.run)).collect::<BTreeSet<String>>()
        };
        let (of_a, of_b) = (of(a), of(b));
        let all: BTreeSet<&String> = of_a.iter().chain(&of_b).collect();
        (all.len() > 1).then(|| CannotCompare::Unlike { what, a: listed(&of_a), b: listed(&of_b) })
    };
    let clock = |run: &Run| match run.host.class {
        HostClass::Tcg | HostClass::Icount => "emulated",
        HostClass::Bare | HostClass::Virtual | HostClass::Kvm | HostClass::Unknown => "real CPUs",
    };
    let build = |run: &Run| if run.tool.debug_assertions { "with debug assertions" } else { "optimised" };
    let found = unlike("kind of machine", &|run| clock(run).to_owned())
        .or_else(|| unlike("build of binderperf", &|run| build(run).to_owned()));
    match found {
        Some(unlike) if !force => Err(unlike),
        _ => Ok(unit),
    }
}
