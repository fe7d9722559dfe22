//! The CPUs as the kernel describes them.
//! Facts: `Documentation/ABI/testing/sysfs-devices-system-cpu`; `/proc/cpuinfo` of x86 and ARM. The clock rate is
//! chosen as Google Benchmark does: `tsc_freq_khz`, else cpufreq's maximum, else `/proc/cpuinfo`.

use driver::Root;
use record::{Cpu, CpuCache};

const CPUS: &str = "sys/devices/system/cpu";

pub(super) fn cpu(root: &Root, usable: u32) -> Cpu {
    let info = root.text("proc/cpuinfo").unwrap_or_default();
    let governors = governors(root);
    Cpu {
        model: model(root, &info),
        count: usable,
        mhz: mhz(root, &info),
        scaling_enabled: root
            .exists(CPUS)
            .then(|| governors.iter().any(|governor| governor != "performance")),
        governor: governors.into_iter().next(),
        caches: caches(root),
    }
}

fn field<'i>(info: &'i str, name: &str) -> Option<&'i str> {
    let fields = info.lines().filter_map(|line| line.split_once(':'));
    fields.into_iter().find(|(key, _)| key.trim() == name).map(|(_, value)| value.trim())
}

/// x86 has a model name; ARM names the board in `Hardware`, or at least the part number.
fn model(root: &Root, info: &str) -> String {
    let named = field(info, "model name").or_else(|| field(info, "Hardware")).map(str::to_owned);
    let board = || root.text("proc/device-tree/model").map(|text| text.trim_end_matches('\0').to_owned());
    let part =
        || Some(format!("implementer {} part {}", field(info, "CPU implementer")?, field(info, "CPU part")?));
    named.or_else(board).or_else(part).unwrap_or_default()
}

fn mhz(root: &Root, info: &str) -> Option<f64> {
    let khz = ["tsc_freq_khz", "cpufreq/cpuinfo_max_freq"].iter();
    let from_files = khz.filter_map(|file| root.text(format!("{CPUS}/cpu0/{file}"))?.parse::<f64>().ok());
    from_files.map(|khz| khz / 1000.0).next().or_else(|| field(info, "cpu MHz")?.parse().ok())
}

fn governors(root: &Root) -> Vec<String> {
    let cpus = root.numbered(CPUS, "cpu");
    cpus.iter().filter_map(|cpu| root.text(format!("{CPUS}/{cpu}/cpufreq/scaling_governor"))).collect()
}

fn caches(root: &Root) -> Vec<CpuCache> {
    (0..).map_while(|index| cache(root, &format!("{CPUS}/cpu0/cache/index{index}"))).collect()
}

fn cache(root: &Root, folder: &str) -> Option<CpuCache> {
    let text = |file| root.text(format!("{folder}/{file}"));
    Some(CpuCache {
        kind: text("type")?,
        level: text("level")?.parse().ok()?,
        size: bytes(&text("size")?)?,
        num_sharing: text("shared_cpu_map")
            .map_or(0, |map| map.chars().filter_map(|digit| digit.to_digit(16)).map(u32::count_ones).sum()),
    })
}

/// Parses sizes such as `32K`.
fn bytes(text: &str) -> Option<u64> {
    let unit = match text.chars().last()? {
        'K' => 1 << 10,
        'M' => 1 << 20,
        'G' => 1 << 30,
        _ => 1,
    };
    text.trim_end_matches(['K', 'M', 'G']).parse::<u64>().ok()?.checked_mul(unit)
}
