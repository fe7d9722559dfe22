//! Facts about a phone or board: its build, its system on a chip, its clusters.
//! Not here: what changes during a run (`condition`).
//! Facts: Android's properties `ro.build.*` and `ro.soc.*`; `Documentation/ABI/testing/sysfs-devices-soc`;
//! `Documentation/ABI/testing/sysfs-devices-system-cpu` (`cpu_capacity`); cpufreq's `cpuinfo_max_freq`.

use std::collections::BTreeMap;
use std::path::Path;
use std::process::{Command, Stdio};

use driver::Root;
use record::{Cluster, ClusterKind, Device};

const CPUS: &str = "sys/devices/system/cpu";
/// Frequencies that differ by less than this share are of one cluster: favoured cores of one kind.
const ALIKE: f64 = 0.15;

/// Returns the output of a program of Android on this machine; on another, the file of this name in its folder.
pub(crate) fn said(root: &Root, program: &str, words: &[&str], file: &str) -> Option<String> {
    if root.folder() != Path::new("/") {
        return root.text(file);
    }
    let program = Path::new("/system/bin").join(program);
    if !program.exists() {
        return None;
    }
    let output =
        Command::new(program).args(words).stdin(Stdio::null()).stderr(Stdio::null()).output().ok()?;
    Some(String::from_utf8_lossy(&output.stdout).into_owned()).filter(|text| !text.is_empty())
}

/// Android's properties; empty elsewhere. Lines are `[NAME]: [VALUE]`.
pub(crate) fn properties(root: &Root) -> BTreeMap<String, String> {
    let text = said(root, "getprop", &[], "getprop.txt").unwrap_or_default();
    let pair = |line: &str| {
        let (name, value) = line.trim().strip_prefix('[')?.strip_suffix(']')?.split_once("]: [")?;
        (!value.is_empty()).then(|| (name.to_owned(), value.to_owned()))
    };
    text.lines().filter_map(pair).collect()
}

/// Returns this machine as a device; `None` if nothing is known.
pub(super) fn device(root: &Root) -> Option<Device> {
    let properties = properties(root);
    let property = |name: &str| properties.get(name).cloned();
    let both = |maker: Option<String>, model: Option<String>| match (maker, model) {
        (Some(maker), Some(model)) => Some(format!("{maker} {model}")),
        (one, other) => one.or(other),
    };
    let soc = both(property("ro.soc.manufacturer"), property("ro.soc.model"));
    let soc_file = |name: &str| root.text(format!("sys/devices/soc0/{name}"));
    let device = Device {
        serial: property("ro.serialno").or_else(|| property("ro.boot.serialno")),
        fingerprint: property("ro.build.fingerprint"),
        patch_level: property("ro.build.version.security_patch"),
        build_type: property("ro.build.type"),
        soc: soc.or_else(|| both(soc_file("family"), soc_file("machine").or_else(|| soc_file("soc_id")))),
        clusters: clusters(root),
    };
    (device != Device::default()).then_some(device)
}

/// Groups of CPUs of different speed, slowest first; empty where all are alike or nothing is known.
#[must_use]
pub fn clusters(root: &Root) -> Vec<Cluster> {
    let cpus: Vec<u32> =
        root.numbered(CPUS, "cpu").iter().filter_map(|name| name.strip_prefix("cpu")?.parse().ok()).collect();
    let number = |cpu: u32, file: &str| root.text(format!("{CPUS}/cpu{cpu}/{file}"))?.parse::<u64>().ok();
    let max_khz = |cpu: u32| number(cpu, "cpufreq/cpuinfo_max_freq");
    let capacity = |cpu: u32| number(cpu, "cpu_capacity").and_then(|value| u32::try_from(value).ok());
    let each = |of: &dyn Fn(u32) -> Option<u64>| -> Option<BTreeMap<u64, Vec<u32>>> {
        let mut groups = BTreeMap::<u64, Vec<u32>>::new();
        for cpu in &cpus {
            groups.entry(of(*cpu)?).or_default().push(*cpu);
        }
        Some(groups)
    };
    let by_capacity = each(&|cpu| capacity(cpu).map(u64::from)).filter(|groups| groups.len() > 1);
    let groups = match by_capacity {
        Some(groups) => groups,
        None => alike(each(&max_khz).unwrap_or_default()),
    };
    let last = groups.len().saturating_sub(1);
    if last == 0 {
        return Vec::new();
    }
    let mut clusters: Vec<Cluster> = Vec::new();
    for (at, (_, mut cpus)) in groups.into_iter().enumerate() {
        let kind = match at {
            0 => ClusterKind::Little,
            _ if at == last => ClusterKind::Big,
            _ => ClusterKind::Mid,
        };
        let (capacity, max_khz) = (
            cpus.iter().filter_map(|cpu| capacity(*cpu)).max(),
            cpus.iter().filter_map(|cpu| max_khz(*cpu)).max(),
        );
        match clusters.last_mut().filter(|before| before.kind == kind) {
            // All between the slowest and the fastest are one.
            Some(before) => {
                before.cpus.append(&mut cpus);
                before.cpus.sort_unstable();
                before.capacity = before.capacity.max(capacity);
                before.max_khz = before.max_khz.max(max_khz);
            }
            None => clusters.push(Cluster { kind, cpus, capacity, max_khz }),
        }
    }
    clusters
}

/// Joins groups whose frequencies are nearly the same.
fn alike(groups: BTreeMap<u64, Vec<u32>>) -> BTreeMap<u64, Vec<u32>> {
    let mut joined: Vec<(u64, Vec<u32>)> = Vec::new();
    for (khz, mut cpus) in groups {
        match joined.last_mut().filter(|(least, _)| (khz as f64) < *least as f64 * (1.0 + ALIKE)) {
            Some((_, together)) => together.append(&mut cpus),
            None => joined.push((khz, cpus)),
        }
    }
    joined.iter_mut().for_each(|(_, cpus)| cpus.sort_unstable());
    joined.into_iter().collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use driver::root::Fixture;

    fn machine(name: &str, speeds: &[(Option<u64>, Option<u64>)]) -> Fixture {
        let machine = Fixture::new(name, &[("sys/devices/system/cpu/online", "0-7\n")]);
        for (cpu, (capacity, khz)) in speeds.iter().enumerate() {
            for (file, value) in [("cpu_capacity", capacity), ("cpufreq/cpuinfo_max_freq", khz)] {
                if let Some(value) = value {
                    machine.put(format!("{CPUS}/cpu{cpu}/{file}"), format!("{value}\n"));
                }
            }
        }
        machine
    }

    fn found(machine: &Fixture) -> Vec<(ClusterKind, Vec<u32>)> {
        clusters(&machine.root()).into_iter().map(|cluster| (cluster.kind, cluster.cpus)).collect()
    }

    #[test]
    fn clusters_are_told_by_capacity_and_without_it_by_frequency() {
        use ClusterKind::{Big, Little, Mid};
        let of = |capacities: &[u64]| -> Vec<_> {
            capacities.iter().map(|capacity| (Some(*capacity), Some(2_000_000))).collect()
        };
        let phone = machine("clusters-phone", &of(&[250, 250, 250, 250, 620, 620, 700, 1024]));
        let want = vec![(Little, vec![0, 1, 2, 3]), (Mid, vec![4, 5, 6]), (Big, vec![7])];
        assert_eq!(found(&phone), want);
        assert_eq!(clusters(&phone.root())[1].capacity, Some(700));
        let of = |khz: &[u64]| -> Vec<_> { khz.iter().map(|khz| (None, Some(*khz))).collect() };
        let old = machine("clusters-old", &of(&[1_800_000, 1_800_000, 2_400_000, 2_400_000]));
        assert_eq!(found(&old), [(Little, vec![0, 1]), (Big, vec![2, 3])]);
        let favoured = machine("clusters-favoured", &of(&[4_700_000, 4_800_000, 4_900_000, 4_900_000]));
        assert_eq!(found(&favoured), [], "one kind of core");
        assert_eq!(found(&machine("clusters-unknown", &[(None, None), (None, Some(1))])), []);
    }

    #[test]
    fn a_phone_is_told_by_its_properties_and_a_board_by_its_files() {
        let phone = Fixture::new(
            "device-phone",
            &[(
                "getprop.txt",
                "[ro.build.fingerprint]: [maker/phone/phone:16/BP1A/1:user/release-keys]\n[ro.build.type]: [user]\n\
                 [ro.build.version.security_patch]: [2026-10-05]\n[ro.soc.manufacturer]: [Maker]\n[ro.soc.model]: [S1]\n\
                 [ro.serialno]: []\n[ro.boot.serialno]: [A1]\nnonsense\n",
            )],
        );
        let found = device(&phone.root()).expect("properties");
        assert_eq!(found.soc.as_deref(), Some("Maker S1"));
        assert_eq!(found.build_type.as_deref(), Some("user"));
        assert_eq!(found.serial.as_deref(), Some("A1"));
        assert_eq!(found.patch_level.as_deref(), Some("2026-10-05"));
        let board = Fixture::new("device-board", &[("sys/devices/soc0/family", "Freescale i.MX\n")]);
        assert_eq!(device(&board.root()).and_then(|found| found.soc).as_deref(), Some("Freescale i.MX"));
        assert_eq!(device(&Fixture::new("device-none", &[("proc/stat", "x")]).root()), None);
    }
}
