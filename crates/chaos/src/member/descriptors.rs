//! Open descriptors and resident memory of this process.
//! Facts: `proc(5)`, `/proc/self/fd` and `/proc/self/statm`.

use std::collections::BTreeMap;
use std::fmt;
use std::fs;

/// Open descriptors, without the one used for listing them.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(super) struct Descriptors {
    /// Count per link target.
    others: BTreeMap<String, usize>,
    /// Count of whole-page memory files: an embedded driver's, some per peer.
    driver: usize,
}

impl Descriptors {
    pub(super) fn open() -> Self {
        let mut found = Self::default();
        let entries = fs::read_dir("/proc/self/fd").into_iter().flatten().flatten();
        for entry in entries {
            // The listing's own descriptor is closed by now or filtered by name.
            let Ok(target) = fs::read_link(entry.path()) else { continue };
            let target = target.display().to_string();
            if target.starts_with("/proc/") {
                continue;
            }
            let whole = || {
                fs::metadata(entry.path())
                    .is_ok_and(|file| file.len().is_multiple_of(sys::page::size() as u64))
            };
            if target.starts_with("/memfd:") && whole() {
                found.driver += 1;
            } else {
                *found.others.entry(target).or_default() += 1;
            }
        }
        found
    }

    /// Descriptors that are open now but were not before; `room`: additional memory files that the driver may have.
    pub(super) fn beyond(&self, before: &Self, room: usize) -> Vec<String> {
        let had = |target: &String| before.others.get(target).copied().unwrap_or_default();
        let more = self.others.iter().filter(|(target, count)| **count > had(target));
        let mut beyond: Vec<String> =
            more.map(|(target, count)| format!("{target}: {count} instead of {}", had(target))).collect();
        if self.driver > before.driver + room {
            beyond.push(format!("memory of the driver: {} instead of {}", self.driver, before.driver));
        }
        beyond
    }
}

impl fmt::Display for Descriptors {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{} and {} of the driver", self.others.values().sum::<usize>(), self.driver)
    }
}

/// Resident memory in KiB; 0 without procfs.
pub(super) fn resident_kib() -> u64 {
    let text = fs::read_to_string("/proc/self/statm").unwrap_or_default();
    let pages: Option<u64> = text.split(' ').nth(1).and_then(|word| word.parse().ok());
    pages.unwrap_or_default() * sys::page::size() as u64 / 1024
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_descriptor_more_is_noticed() {
        let of = |counts: &[(&str, usize)], driver| Descriptors {
            others: counts.iter().map(|(name, count)| ((*name).to_owned(), *count)).collect(),
            driver,
        };
        let before = of(&[("socket", 1)], 4);
        assert!(of(&[("socket", 1)], 6).beyond(&before, 2).is_empty());
        assert_eq!(of(&[("socket", 1)], 7).beyond(&before, 2).len(), 1);
        assert_eq!(of(&[("socket", 2), ("pipe", 1)], 4).beyond(&before, 2).len(), 2);
    }

    #[test]
    fn open_files_and_memory_are_found() {
        let before = Descriptors::open();
        assert!(before.others.values().sum::<usize>() >= 1 && resident_kib() > 0);
    }
}
