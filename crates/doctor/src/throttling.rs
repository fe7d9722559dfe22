//! Findings of a run from its conditions: CPUs that were throttled, a battery that is nearly empty.
//! Not here: heat before a run (`probes::cpu`), reading the conditions (`host::conditions`).
//! Facts: `Documentation/driver-api/thermal/sysfs-api.rst`: a cooling device at a state above 0 takes speed away;
//! `Documentation/admin-guide/pm/cpufreq.rst`: `scaling_max_freq` is the present limit. Android's thermal status 1 is "light throttling".

use record::{Conditions, Evidence, Finding, Severity, State};

/// Charge in percent below which phones save power.
const LOW_PERCENT: u32 = 20;

/// All findings.
#[must_use]
pub fn of_conditions(conditions: &Conditions) -> Vec<Finding> {
    throttled(conditions).into_iter().chain(low_battery(conditions)).collect()
}

/// The finding on a battery that is nearly empty and not charged.
fn low_battery(conditions: &Conditions) -> Option<Finding> {
    let battery = conditions.after.battery.as_ref().or(conditions.before.battery.as_ref())?;
    let percent = battery.percent;
    if percent >= LOW_PERCENT || battery.charging == Some(true) {
        return None;
    }
    Some(Finding {
        effect: Some(
            "the system may save power: lower frequencies, fewer CPUs, applications on hold".to_owned(),
        ),
        fix: Some("charge it".to_owned()),
        evidence: vec![Evidence {
            source: "/sys/class/power_supply/*/capacity, or dumpsys battery".to_owned(),
            says: format!("{percent} %, not charging"),
        }],
        proof: Some("grep . /sys/class/power_supply/*/{capacity,status}; dumpsys battery".to_owned()),
        ..Finding::new("battery-low", Severity::Warning, format!("the battery has {percent} % left"))
    })
}

/// The finding on throttling; `None` if nothing was throttled, or nothing is known.
fn throttled(conditions: &Conditions) -> Option<Finding> {
    let Conditions { before, after, .. } = conditions;
    let mut evidence = Vec::new();
    let mut seen = |source: &str, says: String| evidence.push(Evidence { source: source.to_owned(), says });
    for device in &after.cooling {
        let name = device.device.to_lowercase();
        if !["cpu", "processor"].iter().any(|word| name.contains(word)) {
            continue;
        }
        let then =
            before.cooling.iter().find(|then| then.device == device.device).map_or(0, |then| then.state);
        let says = format!("{}: {then} before, {} of {} after", device.device, device.state, device.most);
        seen("/sys/class/thermal/cooling_device*/cur_state", says);
    }
    for (cpus, limit, max) in limits(after) {
        let then =
            limits(before).into_iter().find(|(then, ..)| *then == cpus).map_or(max, |(_, then, _)| then);
        if limit < then {
            let says = format!("CPUs {cpus}: {} MHz before, {} MHz after", then / 1000, limit / 1000);
            seen("/sys/devices/system/cpu/cpufreq/policy*/scaling_max_freq", says);
        }
    }
    if let Some(status) = after.thermal_status.filter(|status| *status > 0) {
        let then = before.thermal_status.map_or("unknown".to_owned(), |then| then.to_string());
        seen("dumpsys thermalservice", format!("thermal status {then} before, {status} after"));
    }
    if evidence.is_empty() {
        return None;
    }
    Some(Finding {
        effect: Some(
            "the CPUs ran slower than before or than they can: times are too long and drift".to_owned(),
        ),
        fix: Some("let it cool down, measure for a shorter time, or with pauses; cool the device".to_owned()),
        evidence,
        proof: Some(
            "grep . /sys/class/thermal/cooling_device*/{type,cur_state}; dumpsys thermalservice".to_owned(),
        ),
        ..Finding::new("throttling", Severity::Warning, "CPUs were throttled because of heat during the test")
    })
}

/// CPUs with the limit of their frequency and that of the hardware, in kHz.
fn limits(state: &State) -> Vec<(&str, u64, u64)> {
    let known = |frequency: &'_ record::Frequency| frequency.limit_khz.zip(frequency.max_khz);
    let limits = state.frequencies.iter();
    limits.filter_map(|of| known(of).map(|(limit, max)| (of.cpus.as_str(), limit, max))).collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use record::{Battery, Cooling, Frequency};

    fn cooled(device: &str, state: u64) -> State {
        State { cooling: vec![Cooling { device: device.to_owned(), state, most: 9 }], ..State::default() }
    }

    fn limited(limit: u64) -> State {
        let frequency = Frequency {
            cpus: "4-7".to_owned(),
            governor: None,
            khz: None,
            limit_khz: Some(limit),
            max_khz: Some(2_400_000),
        };
        State { frequencies: vec![frequency], ..State::default() }
    }

    fn found(before: State, after: State) -> Option<Finding> {
        throttled(&Conditions { before, after, ..Conditions::default() })
    }

    #[test]
    fn a_battery_is_low_unless_it_is_charged() {
        let of = |percent, charging| {
            let battery = Some(Battery { percent, charging });
            let after = State { battery, ..State::default() };
            of_conditions(&Conditions { after, ..Conditions::default() }).len()
        };
        assert_eq!(
            [of(12, Some(false)), of(12, None), of(12, Some(true)), of(20, Some(false))],
            [1, 1, 0, 0]
        );
    }

    #[test]
    fn throttling_is_told_by_cooling_limits_or_androids_status() {
        let finding = found(State::default(), cooled("thermal-cpufreq-0", 3)).expect("a cooled CPU");
        assert!(finding.evidence[0].says.contains("0 before, 3 of 9 after"), "{finding:?}");
        let finding = found(limited(2_400_000), limited(1_800_000)).expect("a lower limit");
        assert!(finding.evidence[0].says.contains("2400 MHz before, 1800 MHz after"), "{finding:?}");
        let status = |status| State { thermal_status: Some(status), ..State::default() };
        assert!(found(status(0), status(2)).is_some());
        for (before, after) in [
            (State::default(), State::default()),
            // A limit that was there before is a setting; a fan disturbs nothing.
            (limited(1_800_000), limited(1_800_000)),
            (limited(1_800_000), limited(2_400_000)),
            (State::default(), cooled("Fan", 1)),
            (status(2), status(0)),
        ] {
            assert_eq!(found(before, after), None);
        }
    }
}
