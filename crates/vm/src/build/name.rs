//! Names of built kernels, which say what they are: `7.2.13-c-rt-lockdep-patch:ab12cd`.
//! Not here: names of kernels that are fetched (`kernel::name`).

use crate::arch::Arch;

use super::options::{Driver, Preempt, Wanted};

/// Longest list of options in a name; a longer one is a hash.
const LONGEST_OPTIONS: usize = 40;
/// Longest `uname -r`.
const LONGEST_RELEASE: usize = 63;

/// A name's parts that are not the user's words.
#[derive(Clone, Copy, Debug)]
pub(super) struct Facts<'a> {
    /// The source's version.
    pub(super) version: &'a str,
    /// The source's state, if it is not a release: a commit, for example.
    pub(super) mark: Option<&'a str>,
    /// Whether LLVM builds it, where GNU's compiler is usual.
    pub(super) llvm: bool,
    /// The patches' contents.
    pub(super) patches: &'a [Vec<u8>],
}

/// The kernel's name.
pub(super) fn of(wanted: &Wanted, facts: Facts<'_>) -> String {
    format!("{}{}", facts.version, suffix(wanted, facts))
}

/// The name behind the version.
fn suffix(wanted: &Wanted, facts: Facts<'_>) -> String {
    let mut words: Vec<String> = facts.mark.map(str::to_owned).into_iter().collect();
    words.push(wanted.driver.to_string());
    words.push(wanted.preempt.unwrap_or(Preempt::Full).to_string());
    words.extend(wanted.checks.iter().map(ToString::to_string));
    let settings: Vec<String> = wanted
        .settings
        .iter()
        .map(|setting| match setting.value.as_str() {
            "y" => setting.symbol.to_lowercase(),
            value => format!("{}={}", setting.symbol.to_lowercase(), value.trim_matches('"')),
        })
        .collect();
    let listed = settings.join("-");
    let plain = |c: char| c.is_ascii_alphanumeric() || "_-=.".contains(c);
    if listed.len() > LONGEST_OPTIONS || !listed.chars().all(plain) {
        words.push(format!("set:{}", hash([listed.as_bytes()])));
    } else if !listed.is_empty() {
        words.push(listed);
    }
    if !facts.patches.is_empty() {
        words.push(format!("patch:{}", hash(facts.patches.iter().map(Vec::as_slice))));
    }
    // The Rust driver has no other compiler.
    if facts.llvm && wanted.driver == Driver::C {
        words.push("llvm".to_owned());
    }
    if wanted.arch != Arch::X86 {
        words.push(wanted.arch.to_string());
    }
    words.iter().map(|word| format!("-{word}")).collect()
}

/// The end of the kernel's release, so that `uname -r` and records name it.
pub(super) fn local_version(wanted: &Wanted, facts: Facts<'_>) -> String {
    let suffix = suffix(wanted, facts).replace([':', '='], ".");
    if facts.version.len() + suffix.len() <= LONGEST_RELEASE {
        return suffix;
    }
    format!("-{}-{}", wanted.driver, hash([suffix.as_bytes()]))
}

/// Six hexadecimal digits of these bytes (FNV-1a).
pub(super) fn hash<'a>(parts: impl IntoIterator<Item = &'a [u8]>) -> String {
    let mut sum: u64 = 0xcbf2_9ce4_8422_2325;
    for part in parts {
        // The length keeps two parts from being taken for one.
        for byte in part.iter().copied().chain((part.len() as u64).to_le_bytes()) {
            sum = (sum ^ u64::from(byte)).wrapping_mul(0x0100_0000_01b3);
        }
    }
    format!("{:06x}", (sum ^ (sum >> 24) ^ (sum >> 48)) & 0xff_ffff)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::build::fixtures::wanted;
    use crate::build::options::Check;
    use crate::kernel::built::key;

    const FACTS: Facts<'_> = Facts { version: "7.2.13", mark: None, llvm: false, patches: &[] };

    #[test]
    fn a_name_says_what_the_kernel_is() {
        let mut wish = wanted();
        assert_eq!(of(&wish, FACTS), "7.2.13-c-full");
        wish.preempt = Some(Preempt::Rt);
        wish.checks = vec![Check::Lockdep, Check::AtomicSleep];
        let patches = [b"diff".to_vec()];
        let name = of(&wish, Facts { patches: &patches, ..FACTS });
        assert!(name.starts_with("7.2.13-c-rt-lockdep-atomic-sleep-patch:"), "{name}");
        assert!(key(&name).is_some(), "{name}");
        let other = of(&wish, Facts { patches: &[b"other".to_vec()], ..FACTS });
        assert_ne!(name, other, "another patch is another kernel");
        let marked = of(&wanted(), Facts { mark: Some("g1a2b3c4d-dirty"), llvm: true, ..FACTS });
        assert_eq!(marked, "7.2.13-g1a2b3c4d-dirty-c-full-llvm");
        let mut wish = wanted();
        wish.driver = Driver::Rust;
        assert_eq!(of(&wish, Facts { llvm: true, ..FACTS }), "7.2.13-rust-full");
    }

    #[test]
    fn options_are_named_or_counted_in_a_hash() {
        let mut wish = wanted();
        wish.arch = Arch::Arm;
        let set = |words: &[&str]| words.iter().map(|word| word.parse().expect("an option")).collect();
        wish.settings = set(&["CONFIG_ARM64_64K_PAGES=y"]);
        assert_eq!(of(&wish, FACTS), "7.2.13-c-full-arm64_64k_pages-arm64");
        wish.settings = set(&["NR_CPUS=4", "ACPI=n"]);
        assert_eq!(of(&wish, FACTS), "7.2.13-c-full-nr_cpus=4-acpi=n-arm64");
        assert_eq!(local_version(&wish, FACTS), "-c-full-nr_cpus.4-acpi.n-arm64");
        for words in [&["CMDLINE=a b/c"][..], &["A_LONG_NAME_OF_AN_OPTION=y", "ANOTHER_LONG_NAME_OF_ONE=y"]] {
            wish.settings = set(words);
            let name = of(&wish, FACTS);
            assert!(name.contains("-set:") && key(&name).is_some(), "{name}");
        }
    }

    #[test]
    fn a_release_is_never_too_long_for_uname() {
        let mut wish = wanted();
        wish.checks = Check::ALL.to_vec();
        let local = local_version(&wish, FACTS);
        assert!(local.len() + "7.2.13".len() <= LONGEST_RELEASE, "{local}");
    }
}
