//! The environment of a run as table rows.
//! Not here: its problems (`Finding`s).

use crate::render::{device, imported};
use crate::schema::Run;

/// Name and value of each known fact.
pub(super) fn rows(run: &Run) -> Vec<(&'static str, String)> {
    let (host, kernel, cpu, tool) = (&run.host, &run.host.kernel, &run.host.cpu, &run.tool);
    let git = tool.git.as_ref().map_or(String::new(), |git| format!(" ({git})"));
    let clock = match run.clock.read_cost {
        Some(cost) => {
            format!("{}, {cost:.0} {} a pair of readings", run.clock.name, run.clock.unit.name())
        }
        None => run.clock.name.clone(),
    };
    let known: [(&'static str, Option<String>); 15] = [
        (
            "tool",
            Some(match run.imported {
                Some(_) => imported::name(run),
                None => format!("{} {}{git}, {} build", tool.name, tool.version, tool.build_profile),
            }),
        ),
        (
            "machine",
            Some(match run.imported {
                Some(_) => host.host_name.clone(),
                None => format!("{}, {}", host.host_name, host.class.name()),
            }),
        ),
        ("kernel", Some(format!("{} {}", kernel.release, kernel.machine).trim_end().to_owned())),
        ("kernel build", Some(kernel.version.clone())),
        ("preemption", kernel.preemption.clone()),
        ("driver", run.driver.as_ref().map(|driver| format!("{}, {}", driver.kind.name(), driver.details()))),
        ("driver chosen", run.driver.as_ref().map(|driver| driver.reason.clone())),
        ("CPUs", (cpu.count > 0).then(|| format!("{} {}", cpu.count, cpu.model).trim_end().to_owned())),
        ("CPU clock", cpu.mhz.map(|mhz| format!("{mhz:.0} MHz"))),
        ("governor", cpu.governor.clone()),
        ("memory", host.memory_bytes.map(|bytes| format!("{:.1} GiB", bytes as f64 / f64::from(1 << 30)))),
        (
            "load at the start",
            (!host.load_avg.is_empty())
                .then(|| host.load_avg.iter().map(|load| format!("{load:.2}")).collect::<Vec<_>>().join(" ")),
        ),
        ("clock source", host.clocksource.clone()),
        ("clock", Some(clock)),
        ("took", run.imported.is_none().then(|| units::duration(run.elapsed_ns as f64))),
    ];
    known
        .into_iter()
        .filter_map(|(what, value)| Some((what, value.filter(|value| !value.is_empty())?)))
        .chain(device::facts(run))
        .collect()
}
