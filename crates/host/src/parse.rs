//! Parsers of formats that several kernel files share: CPU lists, interrupt tables, pressure, command line.
//! Not here: the meaning of the values (the probes).
//! Facts: `Documentation/admin-guide/cputopology.rst`, `Documentation/accounting/psi.rst`,
//! `Documentation/filesystems/proc.rst` (`interrupts`, `meminfo`, `stat`), `proc_pid_limits(5)`.

/// Most CPUs accepted in a list; the kernel's limit is 8192.
const MOST_CPUS: u32 = 65_536;

/// `CAP_SYS_NICE`, `linux/capability.h`.
pub const CAP_SYS_NICE: u32 = 23;

/// Parses a CPU list such as `0-3,5,8-11:2/4`; `None` if malformed. An empty text is an empty list.
pub fn cpu_list(text: &str) -> Option<Vec<u32>> {
    let mut cpus = Vec::new();
    for part in text.trim().split(',').map(str::trim).filter(|part| !part.is_empty()) {
        let (range, step) = match part.split_once(':') {
            Some((range, group)) => {
                let (used, size) = group.split_once('/')?;
                (range, Some((used.parse::<u32>().ok()?, size.parse::<u32>().ok().filter(|size| *size > 0)?)))
            }
            None => (part, None),
        };
        let (first, last) = range.split_once('-').unwrap_or((range, range));
        let (first, last): (u32, u32) = (first.parse().ok()?, last.parse().ok()?);
        if last < first || last >= MOST_CPUS {
            return None;
        }
        let is_in = |cpu: &u32| step.is_none_or(|(used, size)| (cpu - first) % size < used);
        cpus.extend((first..=last).filter(is_in));
        if cpus.len() > MOST_CPUS as usize {
            return None;
        }
    }
    cpus.sort_unstable();
    cpus.dedup();
    Some(cpus)
}

/// Percentage of the last ten seconds in which some thread waited for the resource.
pub fn pressure(text: &str) -> Option<f64> {
    let line = text.lines().find(|line| line.starts_with("some "))?;
    let average = line.split(' ').find_map(|word| word.strip_prefix("avg10="))?;
    average.parse().ok().filter(|percent| (0.0..=100.0).contains(percent))
}

/// Device interrupts per CPU since boot. Interrupts of the CPUs themselves (timers, IPIs), whose names are not
/// numbers, are not counted. `None` if malformed.
pub fn device_interrupts(text: &str) -> Option<Vec<u64>> {
    let mut lines = text.lines();
    let cpus = lines.next()?.split_whitespace().filter(|head| head.starts_with("CPU")).count();
    if cpus == 0 {
        return None;
    }
    let mut taken = vec![0_u64; cpus];
    for line in lines {
        let Some((name, rest)) = line.split_once(':') else { continue };
        if name.trim().parse::<u32>().is_err() {
            continue;
        }
        for (sum, count) in taken.iter_mut().zip(rest.split_whitespace()) {
            *sum = sum.saturating_add(count.parse().unwrap_or(0));
        }
    }
    Some(taken)
}

/// The value of the last `name=value` on the kernel command line.
pub fn parameter<'c>(command_line: &'c str, name: &str) -> Option<&'c str> {
    let values = command_line.split_whitespace().filter_map(|word| word.split_once('='));
    values.filter(|(word, _)| *word == name).map(|(_, value)| value).next_back()
}

/// The value of a line `Name:   123 kB`, in bytes.
pub fn kibibytes(text: &str, name: &str) -> Option<u64> {
    let line = text.lines().find_map(|line| line.strip_prefix(name)?.strip_prefix(':'))?;
    line.trim().strip_suffix("kB")?.trim().parse::<u64>().ok()?.checked_mul(1024)
}

/// The soft limit in a line of `/proc/PID/limits`; `u64::MAX` if unlimited.
pub fn limit(text: &str, name: &str) -> Option<u64> {
    let rest = text.lines().find_map(|line| line.strip_prefix(name))?;
    match rest.split_whitespace().next()? {
        "unlimited" => Some(u64::MAX),
        number => number.parse().ok(),
    }
}

/// Whether `/proc/PID/status` lists a capability as effective, by its number; `None` if malformed.
pub fn has_capability(status: &str, number: u32) -> Option<bool> {
    let mask = status.lines().find_map(|line| line.strip_prefix("CapEff:"))?;
    Some(u64::from_str_radix(mask.trim(), 16).ok()? & 1 << number != 0)
}

/// CPU time of all CPUs since boot in ticks, and the part that the hypervisor gave to other guests.
pub fn total_and_stolen(stat: &str) -> Option<(u64, u64)> {
    let line = stat.lines().find_map(|line| line.strip_prefix("cpu "))?;
    // user nice system idle iowait irq softirq steal; guest time is part of user time.
    let ticks: Vec<u64> = line.split_whitespace().take(8).map_while(|word| word.parse().ok()).collect();
    let [.., stolen] = ticks[..] else { return None };
    (ticks.len() == 8).then(|| (ticks.iter().fold(0_u64, |sum, ticks| sum.saturating_add(*ticks)), stolen))
}

/// Formats CPU numbers as `0-3,5`.
#[must_use]
pub fn ranges(cpus: &[u32]) -> String {
    let mut text = String::new();
    let mut at = 0;
    while let Some(&first) = cpus.get(at) {
        let mut last = first;
        while cpus.get(at + 1) == Some(&(last + 1)) {
            at += 1;
            last += 1;
        }
        at += 1;
        let comma = if text.is_empty() { "" } else { "," };
        text += &if last > first { format!("{comma}{first}-{last}") } else { format!("{comma}{first}") };
    }
    text
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    #[test]
    fn lists_of_cpus() {
        for (text, want) in [
            ("0-3,5", Some(vec![0, 1, 2, 3, 5])),
            ("", Some(vec![])),
            ("0-7:2/4\n", Some(vec![0, 1, 4, 5])),
            ("3,1", Some(vec![1, 3])),
            ("3-1", None),
            ("a", None),
            ("0-4294967295", None),
            ("0-3:1/0", None),
        ] {
            assert_eq!(cpu_list(text), want, "{text:?}");
        }
        assert_eq!(ranges(&[0, 1, 2, 5, 7, 8]), "0-2,5,7-8");
    }

    #[test]
    fn tables_and_lines() {
        let psi = "some avg10=12.50 avg60=1.00 avg300=0.10 total=9\nfull avg10=0.00 avg60=0.00 avg300=0.00 total=0\n";
        assert_eq!(pressure(psi), Some(12.5));
        assert_eq!(pressure("some avg10=x"), None);
        let table = "           CPU0       CPU1\n 24:          1          2  IO-APIC   5-edge  x\n 31: 7 0 PCI y\nLOC: 99 99 Local\nERR: 3\n";
        assert_eq!(device_interrupts(table), Some(vec![8, 2]));
        assert_eq!(device_interrupts("nothing"), None);
        assert_eq!(parameter("quiet isolcpus=1 isolcpus=2-3", "isolcpus"), Some("2-3"));
        assert_eq!(kibibytes("MemTotal:  16 kB\nMemFree: x kB\n", "MemTotal"), Some(16 << 10));
        assert_eq!(
            limit(
                "Max open files            1024                 524288               files\n",
                "Max open files"
            ),
            Some(1024)
        );
        assert_eq!(total_and_stolen("cpu  1 2 3 4 5 6 7 8 9 10\ncpu0 1\n"), Some((36, 8)));
        assert_eq!(total_and_stolen("cpu  1 2 3\n"), None);
    }

    proptest! {
        #[test]
        fn anything_is_taken(text in "(?s).{0,400}") {
            let _ = (cpu_list(&text), pressure(&text), device_interrupts(&text), parameter(&text, "x"));
            let _ = (kibibytes(&text, "MemTotal"), limit(&text, "Max"), total_and_stolen(&text));
        }

        #[test]
        fn nearly_right_things_are_taken(numbers in proptest::collection::vec("[0-9,:/ -]{0,12}", 0..8)) {
            let text = numbers.join(",");
            if let Some(cpus) = cpu_list(&text) {
                prop_assert_eq!(cpu_list(&ranges(&cpus)), Some(cpus));
            }
            let _ = device_interrupts(&format!("CPU0 CPU1\n{}: {text}\n", text.len()));
            let _ = pressure(&format!("some avg10={text} total={text}"));
            let _ = total_and_stolen(&format!("cpu  {}", text.replace(',', " ")));
        }

        #[test]
        fn a_list_comes_back_as_it_was_written(mut cpus in proptest::collection::vec(0_u32..300, 0..40)) {
            cpus.sort_unstable();
            cpus.dedup();
            prop_assert_eq!(cpu_list(&ranges(&cpus)), Some(cpus));
        }
    }
}
