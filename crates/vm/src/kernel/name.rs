//! Kernel names ("7.2", "rt") and the Debian packages that they stand for.
//! Not here: calling apt (`apt`).

use std::cmp::Reverse;
use std::fmt;
use std::str::FromStr;

use crate::arch::GUEST;

/// Suites that have kernels, newest first. Codenames, because "stable" changes.
const SUITES: [&str; 5] = ["sid", "forky", "trixie-backports", "trixie", "bookworm"];

/// A kernel by name.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Name {
    /// Leading numbers of the release; empty: the newest.
    numbers: Vec<u32>,
    /// Whether the PREEMPT_RT flavour is meant.
    rt: bool,
}

impl Name {
    /// The newest ordinary kernel.
    pub(super) const NEWEST: Self = Self { numbers: Vec::new(), rt: false };

    /// Whether the name moves to newer versions.
    pub(super) fn is_open(&self) -> bool {
        self.numbers.is_empty()
    }

    /// Whether a release ("6.1.0-50-amd64") matches this name.
    pub(super) fn fits(&self, release: &str) -> bool {
        let words: Vec<_> = release.split('-').collect();
        let special = ["cloud", "unsigned", "dbg"].iter().any(|flavour| words.contains(flavour));
        let ours = words.contains(&GUEST.debian) && !special;
        ours && words.contains(&"rt") == self.rt && numbers(release).starts_with(&self.numbers)
    }

    /// The suites to search: first the most likely one, then all.
    pub(super) fn suites(&self) -> [&'static [&'static str]; 2] {
        let first: &[&str] = match self.numbers.as_slice() {
            [6, 1, ..] => &["bookworm"],
            [6, 12, ..] => &["trixie"],
            _ => &["sid"],
        };
        [first, &SUITES]
    }

    /// Pattern of image packages for `apt-cache search --names-only`.
    pub(super) fn pattern() -> String {
        format!("^{IMAGE}[0-9].*-{}$", GUEST.debian)
    }

    /// The releases in that command's output that match, newest first.
    pub(super) fn releases(&self, search: &str) -> Vec<String> {
        let packages = search.lines().filter_map(|line| line.split_whitespace().next());
        let mut found: Vec<String> = packages
            .filter_map(|package| package.strip_prefix(IMAGE))
            .filter(|release| self.fits(release))
            .map(str::to_owned)
            .collect();
        newest_first(&mut found);
        found.dedup();
        found
    }
}

impl fmt::Display for Name {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let numbers: Vec<_> = self.numbers.iter().map(u32::to_string).collect();
        match (self.numbers.is_empty(), self.rt) {
            (true, false) => f.write_str("newest"),
            (true, true) => f.write_str("rt"),
            (false, false) => f.write_str(&numbers.join(".")),
            (false, true) => write!(f, "{}-rt", numbers.join(".")),
        }
    }
}

impl FromStr for Name {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        let (version, rt) = match text.strip_suffix("rt") {
            Some(version) => (version.strip_suffix('-').unwrap_or(version), true),
            None => (text, false),
        };
        if (version.is_empty() && rt) || text == "newest" {
            return Ok(Self { numbers: Vec::new(), rt });
        }
        let parts: Result<Vec<u32>, _> = version.split('.').map(str::parse).collect();
        match parts {
            Ok(numbers) if numbers.len() > 1 => Ok(Self { numbers, rt }),
            _ => Err(
                "there is no such file, and names are a version (6.1, 6.12, 7.2), rt, VERSION-rt or newest"
                    .into(),
            ),
        }
    }
}

const IMAGE: &str = "linux-image-";

/// The numbers of a release in order: 7.2.13+deb14-amd64 gives 7, 2, 13, 14.
fn numbers(release: &str) -> Vec<u32> {
    let version = release.split("-rt").next().unwrap_or(release).trim_end_matches(GUEST.debian);
    version.split(|c: char| !c.is_ascii_digit()).filter_map(|digits| digits.parse().ok()).collect()
}

/// Sorts releases by their numbers.
pub(super) fn newest_first(releases: &mut [String]) {
    releases.sort_by_cached_key(|release| Reverse(numbers(release)));
}

/// The packages of a release, from `apt-cache show` of its image package. Since 6.19 that package is empty and
/// depends on three others.
pub(super) fn packages(release: &str, show: &str) -> Vec<String> {
    // One record per suite; apt lists the preferred one first.
    let record = show.split("\n\n").next().unwrap_or_default();
    let depends = record.lines().find_map(|line| line.strip_prefix("Depends:")).unwrap_or_default();
    let parts: Vec<String> =
        ["base", "binary", "modules"].map(|part| format!("linux-{part}-{release}")).into();
    let named = depends.split(',').filter_map(|one| one.split_whitespace().next());
    let split: Vec<String> =
        named.filter(|name| parts.iter().any(|part| part == name)).map(str::to_owned).collect();
    if split.is_empty() { vec![format!("{IMAGE}{release}")] } else { split }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Output for Debian's archive in late 2026, shortened.
    const SEARCH: &str = "\
linux-image-6.1.0-50-amd64 - Linux 6.1 for 64-bit PCs (signed)
linux-image-6.1.0-50-cloud-amd64 - Linux 6.1 for x86-64 cloud (signed)
linux-image-6.1.0-50-rt-amd64 - Linux 6.1 for 64-bit PCs, PREEMPT_RT (signed)
linux-image-6.1.0-9-amd64 - Linux 6.1 for 64-bit PCs (signed)
linux-image-6.12.107+deb13-amd64 - Linux 6.12 for 64-bit PCs (signed)
linux-image-6.12.94+deb13-amd64 - Linux 6.12 for 64-bit PCs (signed)
linux-image-6.12.107+deb13-amd64-unsigned - Linux 6.12 for 64-bit PCs
linux-image-6.12.107+deb13-rt-amd64 - Linux 6.12 for 64-bit PCs (signed), PREEMPT_RT
linux-image-7.2.12+deb13-amd64 - Linux 7.2.12 for 64-bit PCs
linux-image-7.2.12+deb14-amd64 - Linux 7.2.12 for 64-bit PCs
linux-image-7.2.9+deb13-amd64 - Linux 7.2.9 for 64-bit PCs
linux-image-7.2.12+deb14-rt-amd64 - Linux 7.2.12 for 64-bit PCs, PREEMPT_RT
linux-image-7.2.12+deb14-cloud-amd64 - Linux 7.2.12 for x86-64 cloud
";

    #[test]
    fn a_name_means_the_newest_release_that_bears_it() {
        for (name, want) in [
            ("6.1", &["6.1.0-50-amd64", "6.1.0-9-amd64"][..]),
            ("6.12", &["6.12.107+deb13-amd64", "6.12.94+deb13-amd64"]),
            ("6.12.94", &["6.12.94+deb13-amd64"]),
            ("7.2", &["7.2.12+deb14-amd64", "7.2.12+deb13-amd64", "7.2.9+deb13-amd64"]),
            ("rt", &["7.2.12+deb14-rt-amd64", "6.12.107+deb13-rt-amd64", "6.1.0-50-rt-amd64"]),
            ("6.1-rt", &["6.1.0-50-rt-amd64"]),
            ("5.10", &[]),
        ] {
            assert_eq!(name.parse::<Name>().expect("a name").releases(SEARCH), want, "{name}");
        }
        assert_eq!(Name::NEWEST.releases(SEARCH)[0], "7.2.12+deb14-amd64");
    }

    #[test]
    fn what_is_no_name_is_refused() {
        for text in ["", "7", "seven", "7.x", "6.1-", "-rt-", "v6.1"] {
            assert!(text.parse::<Name>().is_err(), "'{text}'");
        }
        for text in ["newest", "rt", "6.1", "6.12-rt", "7.2.13"] {
            assert_eq!(text.parse::<Name>().expect("a name").to_string(), text);
        }
    }

    #[test]
    fn a_split_image_is_its_parts_and_an_old_one_itself() {
        let split = "Package: linux-image-7.2.13+deb14-amd64\nVersion: 7.2.13-1\nDepends: dracut | initramfs-tools \
                     (>= 0.120+deb8u2), linux-base-7.2.13+deb14-amd64 (= 7.2.13-1), \
                     linux-binary-7.2.13+deb14-amd64 (= 7.2.13-1), linux-modules-7.2.13+deb14-amd64 (= 7.2.13-1)\n";
        assert_eq!(
            packages("7.2.13+deb14-amd64", split),
            ["base", "binary", "modules"].map(|part| format!("linux-{part}-7.2.13+deb14-amd64"))
        );
        let whole =
            "Package: linux-image-6.1.0-50-amd64\nDepends: kmod, linux-base (>= 4.3~), initramfs-tools\n";
        assert_eq!(packages("6.1.0-50-amd64", whole), ["linux-image-6.1.0-50-amd64"]);
        assert_eq!(packages("6.1.0-50-amd64", ""), ["linux-image-6.1.0-50-amd64"]);
    }
}
