//! Kernel names ("7.2", "rt") and the Debian packages that they stand for.
//! Not here: calling apt (`apt`).

use std::cmp::Reverse;
use std::fmt;

use crate::arch::Arch;

/// Suites that have kernels, newest first. Codenames, because "stable" changes.
const SUITES: [&str; 5] = ["sid", "forky", "trixie-backports", "trixie", "bookworm"];

/// What Debian builds of one version.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Flavour {
    Plain,
    /// PREEMPT_RT.
    Rt,
    /// Pages of 16 KiB, on arm64 only.
    Pages16K,
}

impl Flavour {
    /// The flavour's word in a release and in a name; empty: none.
    fn word(self) -> &'static str {
        match self {
            Self::Plain => "",
            Self::Rt => "rt",
            Self::Pages16K => "16k",
        }
    }

    /// The flavour of a release's words; `None`: one that no name stands for.
    fn of(words: &[&str]) -> Option<Self> {
        let has = |word: &str| words.contains(&word);
        match () {
            () if ["cloud", "unsigned", "dbg"].into_iter().any(has) => None,
            () if has("rt") => Some(Self::Rt),
            () if has("16k") => Some(Self::Pages16K),
            () => Some(Self::Plain),
        }
    }
}

/// A kernel by name.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Name {
    /// Leading numbers of the release; empty: the newest.
    numbers: Vec<u32>,
    flavour: Flavour,
    arch: Arch,
}

impl Name {
    /// The newest ordinary kernel.
    pub(super) fn newest(arch: Arch) -> Self {
        Self { numbers: Vec::new(), flavour: Flavour::Plain, arch }
    }

    /// Reads a name; one without an architecture stands for a kernel of `arch`.
    ///
    /// # Errors
    /// It is none; the text says what names are.
    pub(super) fn parse(text: &str, arch: Arch) -> Result<Self, String> {
        let is_arch = |word: &str| Arch::ALL.into_iter().find(|arch| arch.facts().debian == word);
        let mut words: Vec<&str> = text.split('-').collect();
        let named = words.last().and_then(|last| is_arch(last));
        if named.is_some() {
            words.pop();
        }
        let flavours = [Flavour::Rt, Flavour::Pages16K];
        let flavour = words.last().and_then(|last| flavours.into_iter().find(|one| one.word() == *last));
        if flavour.is_some() {
            words.pop();
        }
        let parts: Option<Vec<u32>> = match words.as_slice() {
            ["newest"] => Some(Vec::new()),
            [] => Some(Vec::new()),
            [version] => {
                let parts: Result<Vec<u32>, _> = version.split('.').map(str::parse).collect();
                parts.ok().filter(|numbers| numbers.len() > 1)
            }
            _ => None,
        };
        let numbers = parts.ok_or(
            "there is no such file, and names are a version (6.1, 6.12, 7.2) or newest, with -rt, -16k (pages of \
             16 KiB) or -arm64 behind it",
        )?;
        Ok(Self { numbers, flavour: flavour.unwrap_or(Flavour::Plain), arch: named.unwrap_or(arch) })
    }

    /// The architecture of the kernel that it stands for.
    pub(super) fn arch(&self) -> Arch {
        self.arch
    }

    /// Whether the name moves to newer versions.
    pub(super) fn is_open(&self) -> bool {
        self.numbers.is_empty()
    }

    /// Whether a release ("6.1.0-50-amd64") matches this name.
    pub(super) fn fits(&self, release: &str) -> bool {
        let words: Vec<_> = release.split('-').collect();
        words.contains(&self.arch.facts().debian)
            && Flavour::of(&words) == Some(self.flavour)
            && numbers(release).starts_with(&self.numbers)
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
    pub(super) fn pattern(&self) -> String {
        // The other flavours stand before the architecture.
        let end = if self.flavour == Flavour::Pages16K { "-16k" } else { "" };
        format!("^{IMAGE}[0-9].*-{}{end}$", self.arch.facts().debian)
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
        match (self.numbers.is_empty(), self.flavour.word()) {
            (true, "") => f.write_str("newest")?,
            (true, flavour) => f.write_str(flavour)?,
            (false, "") => f.write_str(&numbers.join("."))?,
            (false, flavour) => write!(f, "{}-{flavour}", numbers.join("."))?,
        }
        if self.arch == Arch::X86 { Ok(()) } else { write!(f, "-{}", self.arch.facts().debian) }
    }
}

const IMAGE: &str = "linux-image-";

/// The numbers of a release in order: 7.2.13+deb14-amd64 gives 7, 2, 13, 14.
fn numbers(release: &str) -> Vec<u32> {
    let is_version = |word: &&str| word.starts_with(|c: char| c.is_ascii_digit()) && *word != "16k";
    let words = release.split('-').filter(is_version);
    words
        .flat_map(|word| word.split(|c: char| !c.is_ascii_digit()))
        .filter_map(|digits| digits.parse().ok())
        .collect()
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
linux-image-6.12.107+deb13-arm64 - Linux 6.12 for 64-bit ARMv8 machines (signed)
linux-image-6.12.107+deb13-arm64-16k - Linux 6.12 for 64-bit ARMv8 machines with 16k pages (signed)
linux-image-6.12.107+deb13-rt-arm64 - Linux 6.12 for 64-bit ARMv8 machines (signed), PREEMPT_RT
linux-image-6.12.117+deb13-arm64-16k - Linux 6.12 for 64-bit ARMv8 machines with 16k pages (signed)
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
            ("6.12-arm64", &["6.12.107+deb13-arm64"]),
            ("16k-arm64", &["6.12.117+deb13-arm64-16k", "6.12.107+deb13-arm64-16k"]),
            ("arm64", &["6.12.107+deb13-arm64"]),
            ("rt-arm64", &["6.12.107+deb13-rt-arm64"]),
            ("5.10", &[]),
        ] {
            let parsed = Name::parse(name, Arch::X86).expect("a name");
            assert_eq!(parsed.releases(SEARCH), want, "{name}");
        }
        assert_eq!(Name::newest(Arch::X86).releases(SEARCH)[0], "7.2.12+deb14-amd64");
    }

    #[test]
    fn what_is_no_name_is_refused() {
        for text in ["", "7", "seven", "7.x", "6.1-", "-rt-", "v6.1"] {
            assert!(Name::parse(text, Arch::X86).is_err(), "'{text}'");
        }
        for text in ["newest", "rt", "6.1", "6.12-rt", "7.2.13", "newest-arm64", "6.12-16k-arm64", "rt-arm64"]
        {
            assert_eq!(Name::parse(text, Arch::X86).expect("a name").to_string(), text);
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
