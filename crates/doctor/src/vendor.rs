//! Who makes a machine's kernel, where that is not its distribution, and what can be done about a missing driver there.
//! Not here: kernels of distributions (`distribution`).
//! Facts: kernels of WSL end in `-microsoft-standard-WSL2`, and `wsl.conf(5)` of Microsoft's documentation describes
//! `.wslconfig`; ChromeOS's kernels, and others built from a git tree, end as `scripts/setlocalversion` makes them
//! (`-COMMITS-gHASH`); names of boards' kernels as in the repositories of Armbian, Asahi Linux and Raspberry Pi.

/// A maker of kernels.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Vendor {
    /// Parts of a kernel's release, in small letters.
    marks: &'static [&'static str],
    /// Whose kernel it is.
    pub(super) whose: &'static str,
    /// Advice; `OPTIONS` stands for the kernel's options.
    pub(super) way: &'static str,
    /// Whether distributions package these kernels with their modules.
    pub(super) is_packaged: bool,
}

const BOARD: &str = "only who builds it can add the driver: ask for OPTIONS, or build the board's kernel from its vendor's tree with \
                     them";

const VENDORS: [Vendor; 5] = [
    Vendor {
        marks: &["microsoft", "wsl"],
        whose: "Microsoft's, for WSL",
        way: "no package changes it: build one of your own from Microsoft's WSL2-Linux-Kernel with OPTIONS, name its image as \
              kernel=PATH below [wsl2] in .wslconfig of the Windows user, then wsl --shutdown",
        is_packaged: false,
    },
    Vendor {
        marks: &[
            "rockchip", "-rk3", "sunxi", "meson", "-tegra", "-qcom", "-imx", "xilinx", "-bsp", "odroid",
            "mediatek",
        ],
        whose: "the board's vendor's",
        way: BOARD,
        is_packaged: false,
    },
    Vendor {
        marks: &["asahi"],
        whose: "Asahi Linux's",
        way: "only Asahi Linux can add the driver: ask there for OPTIONS, or build its kernel with them",
        is_packaged: false,
    },
    Vendor { marks: &["raspi", "-rpi", "+rpt"], whose: "Raspberry Pi's", way: BOARD, is_packaged: true },
    Vendor {
        marks: &[],
        whose: "built from a git tree",
        way: "no package changes it: in a Linux container of ChromeOS (Crostini) Google decides and takes no modules; set \
              OPTIONS in a build of your own",
        is_packaged: false,
    },
];

/// Who makes the kernel of this release; `None` for a distribution's.
pub(super) fn of(release: &str) -> Option<Vendor> {
    let [named @ .., tree] = VENDORS;
    let small = release.to_lowercase();
    let found = named.into_iter().find(|vendor| vendor.marks.iter().any(|mark| small.contains(mark)));
    found.or(is_of_tree(release).then_some(tree))
}

/// Whether a release ends in the number of commits since a tag and the last one's hash.
fn is_of_tree(release: &str) -> bool {
    let mut parts = release.rsplit('-');
    let hash = parts.next().and_then(|part| part.strip_prefix('g')).unwrap_or_default();
    let commits = parts.next().unwrap_or_default();
    hash.len() >= 7
        && hash.bytes().all(|byte| byte.is_ascii_hexdigit())
        && !commits.is_empty()
        && commits.bytes().all(|byte| byte.is_ascii_digit())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn releases_tell_whose_kernel_it_is() {
        for (release, want) in [
            ("5.15.153.1-microsoft-standard-WSL2", "Microsoft"),
            ("4.4.0-19041-Microsoft", "Microsoft"),
            ("5.10.159-20950-g3963226d9eb4", "git tree"),
            ("6.1.43-rockchip-rk3588", "board's vendor"),
            ("5.10.160-rk356x", "board's vendor"),
            ("6.14.2-401.asahi.fc43.aarch64+16k", "Asahi"),
            ("5.19.0-1012-raspi", "Raspberry Pi"),
            ("6.6.20+rpt-rpi-v8", "Raspberry Pi"),
        ] {
            assert!(
                of(release).is_some_and(|vendor| vendor.whose.contains(want)),
                "{release}: {:?}",
                of(release)
            );
        }
        for release in [
            "6.6.6-arch1-1",
            "6.0.6-76060006-generic",
            "5.15.107-1-pve",
            "6.10.13-304.current",
            "6.1.0-50-amd64",
            "6.6.30-android15-8-gabcdef012345-ab1",
            "7.2.13",
            "6.1.0-1-generic",
            "",
        ] {
            assert_eq!(of(release), None, "{release}");
        }
    }
}
