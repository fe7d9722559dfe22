//! Conditions that change while a run measures: frequencies, temperatures, cooling, battery, screen; the cpuset and the clamps of the test.
//! Not here: what the device is (`device`), judging (crate `doctor`).
//! Facts: `Documentation/admin-guide/pm/cpufreq.rst`; `Documentation/driver-api/thermal/sysfs-api.rst`;
//! `Documentation/ABI/testing/sysfs-class-power`; `cpuset(7)`; `Documentation/admin-guide/cgroup-v2.rst`
//! (`cpu.uclamp.*`). Android's `dumpsys` tells the user `shell` what sysfs does not: `battery`, `thermalservice`,
//! `power`.

use driver::Root;
use record::{Battery, Conditions, Cooling, Frequency, State, Temperature};

use super::device::said;

/// Most zones and devices that are kept.
const MOST: usize = 64;

/// The conditions at the start; [`until_now`] adds the end.
#[must_use]
pub fn conditions() -> Conditions {
    of(&Root::of_this_machine())
}

/// Adds the present state to the conditions of the start; `None` if nothing is known.
#[must_use]
pub fn until_now(start: Conditions) -> Option<Conditions> {
    let whole = Conditions { after: state(&Root::of_this_machine()), ..start };
    (whole != Conditions::default()).then_some(whole)
}

fn of(root: &Root) -> Conditions {
    Conditions { cpuset: cpuset(root), uclamp: uclamp(root), before: state(root), after: State::default() }
}

fn state(root: &Root) -> State {
    State {
        frequencies: frequencies(root),
        temperatures: temperatures(root),
        cooling: cooling(root),
        thermal_status: thermal_status(root),
        battery: battery(root),
        screen_on: screen_on(root),
    }
}

fn number<T: std::str::FromStr>(root: &Root, path: &str) -> Option<T> {
    root.text(path)?.parse().ok()
}

fn frequencies(root: &Root) -> Vec<Frequency> {
    const FOLDER: &str = "sys/devices/system/cpu/cpufreq";
    let of_policy = |name: &String| {
        let khz = |file: &str| number::<u64>(root, &format!("{FOLDER}/{name}/{file}"));
        Some(Frequency {
            cpus: listed(&root.text(format!("{FOLDER}/{name}/related_cpus"))?),
            governor: root.text(format!("{FOLDER}/{name}/scaling_governor")),
            khz: khz("scaling_cur_freq"),
            limit_khz: khz("scaling_max_freq"),
            max_khz: khz("cpuinfo_max_freq"),
        })
    };
    root.numbered(FOLDER, "policy").iter().filter_map(of_policy).take(MOST).collect()
}

/// `0 1 2 3` as `0-3`.
fn listed(cpus: &str) -> String {
    let cpus: Vec<u32> = cpus.split_whitespace().filter_map(|cpu| cpu.parse().ok()).collect();
    match cpus[..] {
        [first, .., last] if cpus.windows(2).all(|pair| pair[1] == pair[0] + 1) => format!("{first}-{last}"),
        _ => cpus.iter().map(u32::to_string).collect::<Vec<_>>().join(","),
    }
}

const THERMAL: &str = "sys/class/thermal";

fn temperatures(root: &Root) -> Vec<Temperature> {
    let zone = |name: &String| {
        Some(Temperature {
            zone: root.text(format!("{THERMAL}/{name}/type"))?,
            millidegrees: number(root, &format!("{THERMAL}/{name}/temp"))?,
        })
    };
    root.numbered(THERMAL, "thermal_zone").iter().filter_map(zone).take(MOST).collect()
}

fn cooling(root: &Root) -> Vec<Cooling> {
    let device = |name: &String| {
        let state = number(root, &format!("{THERMAL}/{name}/cur_state")).filter(|state| *state > 0)?;
        Some(Cooling {
            device: root.text(format!("{THERMAL}/{name}/type"))?,
            state,
            most: number(root, &format!("{THERMAL}/{name}/max_state"))?,
        })
    };
    root.numbered(THERMAL, "cooling_device").iter().filter_map(device).take(MOST).collect()
}

/// The value behind this name and a colon.
fn field<'t>(text: &'t str, name: &str) -> Option<&'t str> {
    text.lines().find_map(|line| line.trim().strip_prefix(name)?.strip_prefix(':')).map(str::trim)
}

fn dumpsys(root: &Root, service: &str) -> Option<String> {
    said(root, "dumpsys", &["-t", "2", service], &format!("dumpsys-{service}.txt"))
}

fn thermal_status(root: &Root) -> Option<u32> {
    field(&dumpsys(root, "thermalservice")?, "Thermal Status")?.parse().ok()
}

/// The battery of the machine whose files are in `root`; `None` without one.
pub fn battery(root: &Root) -> Option<Battery> {
    const FOLDER: &str = "sys/class/power_supply";
    let names = root.names(FOLDER);
    let text = |name: &String, file: &str| root.text(format!("{FOLDER}/{name}/{file}"));
    let own = |name: &&String| {
        text(name, "type").as_deref() == Some("Battery") && text(name, "scope").as_deref() != Some("Device")
    };
    let of_files = names.iter().filter(own).find_map(|name| {
        let percent = text(name, "capacity")?.parse().ok()?;
        let charging = text(name, "status").and_then(|status| charging(&status));
        Some(Battery { percent, charging })
    });
    of_files.or_else(|| {
        let text = dumpsys(root, "battery")?;
        let percent = field(&text, "level")?.parse().ok()?;
        // Android's numbers: 2 charging, 3 discharging, 4 not charging, 5 full.
        let charging = match field(&text, "status")? {
            "2" | "5" => Some(true),
            "3" | "4" => Some(false),
            _ => None,
        };
        Some(Battery { percent, charging })
    })
}

fn charging(status: &str) -> Option<bool> {
    match status {
        "Charging" | "Full" => Some(true),
        "Discharging" | "Not charging" => Some(false),
        _ => None,
    }
}

fn screen_on(root: &Root) -> Option<bool> {
    let backlights = root.names("sys/class/backlight");
    let power = |name: &String| number::<u32>(root, &format!("sys/class/backlight/{name}/bl_power"));
    match backlights.iter().find_map(power) {
        Some(power) => Some(power == 0),
        None => match field(&dumpsys(root, "power")?.replace('=', ":"), "mWakefulness")? {
            "Awake" | "Dreaming" => Some(true),
            "Asleep" | "Dozing" => Some(false),
            _ => None,
        },
    }
}

fn cpuset(root: &Root) -> Option<String> {
    root.text("proc/self/cpuset")
}

/// The clamps of the control group of version 2 in which the test runs.
fn uclamp(root: &Root) -> Option<(u32, u32)> {
    let own = root.text("proc/self/cgroup")?;
    let own = own.lines().find_map(|line| line.strip_prefix("0::"))?.trim_start_matches('/').to_owned();
    let clamp = |end: &str| {
        let text = root.text(format!("sys/fs/cgroup/{own}/cpu.uclamp.{end}"))?;
        let share = match text.as_str() {
            "max" => 100.0,
            text => text.parse::<f64>().ok().filter(|percent| (0.0..=100.0).contains(percent))?,
        };
        Some((share * 10.24).round() as u32)
    };
    Some((clamp("min")?, clamp("max")?))
}

#[cfg(test)]
mod tests {
    use super::*;
    use driver::root::Fixture;

    #[test]
    fn a_rooted_phone_tells_everything_by_its_files() {
        let cpufreq = "sys/devices/system/cpu/cpufreq/policy4";
        let phone = Fixture::new(
            "condition-root",
            &[
                ("sys/devices/system/cpu/cpufreq/policy4/related_cpus", "4 5 6\n"),
                ("sys/devices/system/cpu/cpufreq/policy4/scaling_governor", "sched_pixel\n"),
                ("sys/devices/system/cpu/cpufreq/policy4/scaling_cur_freq", "1200000\n"),
                ("sys/devices/system/cpu/cpufreq/policy4/scaling_max_freq", "1800000\n"),
                ("sys/devices/system/cpu/cpufreq/policy4/cpuinfo_max_freq", "2400000\n"),
                ("sys/class/thermal/thermal_zone3/type", "BIG\n"),
                ("sys/class/thermal/thermal_zone3/temp", "71000\n"),
                ("sys/class/thermal/thermal_zone4/type", "broken\n"),
                ("sys/class/thermal/cooling_device0/type", "thermal-cpufreq-1\n"),
                ("sys/class/thermal/cooling_device0/cur_state", "3\n"),
                ("sys/class/thermal/cooling_device0/max_state", "11\n"),
                ("sys/class/thermal/cooling_device1/type", "idle\n"),
                ("sys/class/thermal/cooling_device1/cur_state", "0\n"),
                ("sys/class/thermal/cooling_device1/max_state", "4\n"),
                ("sys/class/power_supply/mouse/type", "Battery\n"),
                ("sys/class/power_supply/mouse/scope", "Device\n"),
                ("sys/class/power_supply/mouse/capacity", "3\n"),
                ("sys/class/power_supply/battery/type", "Battery\n"),
                ("sys/class/power_supply/battery/capacity", "14\n"),
                ("sys/class/power_supply/battery/status", "Discharging\n"),
                ("sys/class/backlight/panel0/bl_power", "4\n"),
                ("proc/self/cpuset", "/top-app\n"),
                ("proc/self/cgroup", "3:cpuset:/top-app\n0::/uid_2000\n"),
                ("sys/fs/cgroup/uid_2000/cpu.uclamp.min", "25.00\n"),
                ("sys/fs/cgroup/uid_2000/cpu.uclamp.max", "max\n"),
            ],
        );
        let found = of(&phone.root());
        let State { frequencies, temperatures, cooling, battery, screen_on, .. } = found.before;
        assert_eq!(
            (frequencies[0].cpus.as_str(), frequencies[0].limit_khz),
            ("4-6", Some(1_800_000)),
            "{cpufreq}"
        );
        assert_eq!((temperatures.len(), temperatures[0].millidegrees), (1, 71_000));
        assert_eq!((cooling.len(), cooling[0].state, cooling[0].most), (1, 3, 11));
        assert_eq!(battery, Some(Battery { percent: 14, charging: Some(false) }));
        assert_eq!((screen_on, found.cpuset.as_deref()), (Some(false), Some("/top-app")));
        assert_eq!(found.uclamp, Some((256, 1024)));
    }

    #[test]
    fn a_production_phone_tells_the_user_shell_by_its_services() {
        let phone = Fixture::new(
            "condition-shell",
            &[
                (
                    "dumpsys-battery.txt",
                    "Current Battery Service state:\n  AC powered: true\n  status: 2\n  level: 88\n",
                ),
                ("dumpsys-thermalservice.txt", "IsStatusOverride: false\nThermal Status: 2\n"),
                ("dumpsys-power.txt", "Power Manager State:\n  mWakefulness=Awake\n"),
            ],
        );
        let found = state(&phone.root());
        assert_eq!(found.battery, Some(Battery { percent: 88, charging: Some(true) }));
        assert_eq!((found.thermal_status, found.screen_on), (Some(2), Some(true)));
    }

    #[test]
    fn of_a_machine_without_such_files_nothing_is_said() {
        let machine = Fixture::new(
            "condition-none",
            &[("proc/stat", "x"), ("sys/class/thermal/thermal_zone0/temp", "x")],
        );
        assert!(state(&machine.root()).is_empty() && of(&machine.root()) == Conditions::default());
        assert_eq!(listed("0 2 3"), "0,2,3");
    }
}
