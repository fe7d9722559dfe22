//! A device and its conditions in words, for summaries and reports.
//! Not here: judging them (crate `doctor`).

use crate::schema::{Battery, Cluster, Conditions, Device, Frequency, Run, State};

/// Name and value of each known fact of the device and of its conditions before and after the run.
pub(super) fn facts(run: &Run) -> Vec<(&'static str, String)> {
    let device = run.host.device.clone().unwrap_or_default();
    let Device { serial, fingerprint, patch_level, build_type, soc, clusters } = &device;
    let build = fingerprint.as_ref().map(|build| match build_type {
        Some(kind) => format!("{build} ({kind})"),
        None => build.clone(),
    });
    let nothing = Conditions::default();
    let conditions = run.conditions.as_ref().unwrap_or(&nothing);
    let Conditions { cpuset, uclamp, before, after } = conditions;
    let changed = |of: &dyn Fn(&State) -> String| match (of(before), of(after)) {
        (one, other) if one == other || other.is_empty() => one,
        (one, other) if one.is_empty() => format!("at the end {other}"),
        (one, other) => format!("{one} -> {other}"),
    };
    let known = [
        ("build", build.or_else(|| build_type.clone()).unwrap_or_default()),
        ("serial number", serial.clone().unwrap_or_default()),
        ("patch level", patch_level.clone().unwrap_or_default()),
        ("SoC", soc.clone().unwrap_or_default()),
        ("clusters", clusters.iter().map(cluster).collect::<Vec<_>>().join("; ")),
        ("cpuset", cpuset.clone().unwrap_or_default()),
        ("uclamp", uclamp.map_or(String::new(), |(least, most)| format!("{least} to {most} of 1024"))),
        ("frequencies", changed(&frequencies)),
        ("hottest", changed(&hottest)),
        ("cooling", changed(&cooling)),
        ("battery", changed(&|state| state.battery.as_ref().map_or(String::new(), battery))),
        (
            "screen",
            changed(&|state| state.screen_on.map_or("", |on| if on { "on" } else { "off" }).to_owned()),
        ),
    ];
    known.into_iter().filter(|(_, value)| !value.is_empty()).collect()
}

fn cluster(cluster: &Cluster) -> String {
    let cpus: Vec<String> = cluster.cpus.iter().map(u32::to_string).collect();
    let capacity = cluster.capacity.map_or(String::new(), |capacity| format!(", capacity {capacity}"));
    let clock = cluster.max_khz.map_or(String::new(), |khz| format!(", {} MHz", khz / 1000));
    format!("{}: CPUs {}{capacity}{clock}", cluster.kind.name(), cpus.join(","))
}

fn frequencies(state: &State) -> String {
    let one = |frequency: &Frequency| {
        let Frequency { cpus, governor, khz, limit_khz, max_khz } = frequency;
        let now = khz.map_or("unknown".to_owned(), |khz| format!("{} MHz", khz / 1000));
        let limit = match (limit_khz, max_khz) {
            (Some(limit), Some(max)) if limit < max => {
                format!(", limited to {} of {} MHz", limit / 1000, max / 1000)
            }
            _ => String::new(),
        };
        let governor = governor.as_ref().map_or(String::new(), |name| format!(" {name}"));
        format!("{cpus}{governor} {now}{limit}")
    };
    state.frequencies.iter().map(one).collect::<Vec<_>>().join("; ")
}

fn hottest(state: &State) -> String {
    let hottest = state.temperatures.iter().max_by_key(|zone| zone.millidegrees);
    hottest.map_or(String::new(), |zone| format!("{} {:.1} C", zone.zone, zone.millidegrees as f64 / 1000.0))
}

fn cooling(state: &State) -> String {
    let status =
        state.thermal_status.filter(|status| *status > 0).map(|status| format!("thermal status {status}"));
    let devices =
        state.cooling.iter().map(|device| format!("{} {}/{}", device.device, device.state, device.most));
    devices.chain(status).collect::<Vec<_>>().join(", ")
}

fn battery(battery: &Battery) -> String {
    let charging = match battery.charging {
        Some(true) => ", charging",
        Some(false) => ", discharging",
        None => "",
    };
    format!("{} %{charging}", battery.percent)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::schema::{ClusterKind, Cooling, Temperature};

    #[test]
    fn what_changed_is_shown_as_a_change_and_the_unknown_not_at_all() {
        let mut run = crate::fixtures::run();
        assert_eq!(facts(&run), []);
        let hot = |millidegrees| vec![Temperature { zone: "BIG".to_owned(), millidegrees }];
        let state = |millidegrees, percent, state| State {
            temperatures: hot(millidegrees),
            battery: Some(Battery { percent, charging: Some(false) }),
            cooling: if state == 0 {
                Vec::new()
            } else {
                vec![Cooling { device: "cpu".to_owned(), state, most: 9 }]
            },
            screen_on: Some(true),
            ..State::default()
        };
        run.conditions = Some(Conditions {
            before: state(40_000, 50, 0),
            after: state(71_500, 49, 3),
            ..Conditions::default()
        });
        let clusters =
            vec![Cluster { kind: ClusterKind::Big, cpus: vec![6, 7], capacity: Some(1024), max_khz: None }];
        run.host.device = Some(Device { clusters, ..Device::default() });
        let shown: Vec<String> =
            facts(&run).into_iter().map(|(what, value)| format!("{what}: {value}")).collect();
        assert_eq!(
            shown,
            [
                "clusters: big: CPUs 6,7, capacity 1024",
                "hottest: BIG 40.0 C -> BIG 71.5 C",
                "cooling: at the end cpu 3/9",
                "battery: 50 %, discharging -> 49 %, discharging",
                "screen: on",
            ]
        );
    }
}
