//! Options of Kconfig that a kernel is built with: the guest's needs, the driver, and what the user chose.
//! Not here: whether this source has them (`dropped`, `kconfig`), calling make (`make`).

use std::collections::BTreeMap;

use crate::arch::Arch;

use super::options::{Preempt, Wanted};

/// One option with its value.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Entry {
    /// The name, without `CONFIG_`.
    pub(super) symbol: String,
    /// The value as in `.config`; `n`: not set.
    pub(super) value: String,
    /// Whether the user asked for it, in whatever words.
    pub(super) asked: bool,
}

impl Entry {
    /// The line of `.config`.
    pub(super) fn line(&self) -> String {
        match self.value.as_str() {
            "n" => format!("# CONFIG_{} is not set", self.symbol),
            value => format!("CONFIG_{}={value}", self.symbol),
        }
    }
}

/// The options of a kernel, each once.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(super) struct Fragment {
    pub(super) entries: Vec<Entry>,
}

impl Fragment {
    /// The options for what the user wants; `suffix` ends the kernel's release.
    pub(super) fn of(wanted: &Wanted, suffix: &str) -> Self {
        let mut fragment = Self::default();
        let own = match wanted.arch {
            Arch::X86 => include_str!("guest-x86.config"),
            Arch::Arm => include_str!("guest-arm64.config"),
        };
        for (symbol, value) in [include_str!("guest.config"), own].into_iter().flat_map(read) {
            fragment.put(&symbol, &value, false);
        }
        fragment.put("LOCALVERSION", &format!("\"{suffix}\""), false);
        let checks = wanted.checks.iter().flat_map(|check| check.symbols());
        let chosen = wanted.driver.symbols().iter().chain(checks);
        chosen.for_each(|symbol| fragment.put(symbol, "y", true));
        for symbol in wanted.preempt.unwrap_or(Preempt::Full).symbols() {
            fragment.put(symbol, "y", wanted.preempt.is_some());
        }
        wanted.settings.iter().for_each(|setting| fragment.put(&setting.symbol, &setting.value, true));
        fragment
    }

    fn put(&mut self, symbol: &str, value: &str, asked: bool) {
        self.entries.retain(|entry| entry.symbol != symbol);
        self.entries.push(Entry { symbol: symbol.to_owned(), value: value.to_owned(), asked });
    }

    /// The file for `KCONFIG_ALLCONFIG`.
    pub(super) fn text(&self) -> String {
        self.entries.iter().map(|entry| entry.line() + "\n").collect()
    }

    /// The lines of this fragment that another lacks, and `-LINE` for what only the other has.
    pub(super) fn beyond(&self, other: &Self) -> Vec<String> {
        let differs = |entry: &&Entry, there: &Self| {
            entry.symbol != "LOCALVERSION" && !there.entries.iter().any(|one| one.line() == entry.line())
        };
        let more = self.entries.iter().filter(|entry| differs(entry, other)).map(Entry::line);
        let gone = other.entries.iter().filter(|entry| {
            differs(entry, self) && !self.entries.iter().any(|one| one.symbol == entry.symbol)
        });
        more.chain(gone.map(|entry| format!("-{}", entry.line()))).collect()
    }
}

/// The options of a `.config`: names without `CONFIG_` and values. What is not set is left out.
pub(super) fn read(text: &str) -> BTreeMap<String, String> {
    let options = text.lines().filter_map(|line| line.strip_prefix("CONFIG_")?.split_once('='));
    options.map(|(name, value)| (name.to_owned(), value.to_owned())).collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::build::fixtures::wanted;
    use crate::build::options::{Check, Driver};

    #[test]
    fn the_users_options_go_before_the_others() {
        let mut wish = wanted();
        wish.preempt = Some(Preempt::Rt);
        wish.checks = vec![Check::Lockdep];
        wish.settings =
            vec!["CONFIG_NR_CPUS=64".parse().expect("one"), "CONFIG_ACPI=n".parse().expect("one")];
        let text = Fragment::of(&wish, "-c-rt").text();
        for line in [
            "CONFIG_BINFMT_ELF=y",
            "CONFIG_SERIAL_8250_CONSOLE=y",
            "CONFIG_ANDROID_BINDERFS=y",
            "CONFIG_PREEMPT_RT=y",
            "CONFIG_EXPERT=y",
            "CONFIG_PROVE_LOCKING=y",
            "CONFIG_LOCALVERSION=\"-c-rt\"",
            "CONFIG_NR_CPUS=64",
            "# CONFIG_ACPI is not set",
        ] {
            assert_eq!(text.lines().filter(|one| *one == line).count(), 1, "{line}: {text}");
        }
        assert!(!text.contains("NR_CPUS=8") && !text.contains("CONFIG_ACPI=y"), "{text}");
    }

    #[test]
    fn each_architecture_has_its_console_and_each_driver_its_option() {
        let mut wish = wanted();
        wish.arch = Arch::Arm;
        wish.driver = Driver::Rust;
        let text = Fragment::of(&wish, "").text();
        assert!(text.contains("AMBA_PL011_CONSOLE=y") && !text.contains("8250"), "{text}");
        assert!(text.contains("BINDER_IPC_RUST=y") && !text.contains("BINDER_IPC=y"), "{text}");
    }

    #[test]
    fn what_differs_from_another_kernel_is_both_sides_lines() {
        let mut wish = wanted();
        let usual = Fragment::of(&wish, "-c-full");
        wish.preempt = Some(Preempt::Lazy);
        wish.settings = vec!["NR_CPUS=2".parse().expect("one")];
        let other = Fragment::of(&wish, "-c-lazy");
        assert_eq!(other.beyond(&usual), ["CONFIG_PREEMPT_LAZY=y", "CONFIG_NR_CPUS=2", "-CONFIG_PREEMPT=y"]);
        assert!(usual.beyond(&usual).is_empty());
    }

    #[test]
    fn a_config_is_its_options_that_are_set() {
        let config = read("#\n# CONFIG_A is not set\nCONFIG_B=y\nCONFIG_C=\"x=y\"\n");
        assert_eq!(
            config.into_iter().collect::<Vec<_>>(),
            [("B".to_owned(), "y".to_owned()), ("C".to_owned(), "\"x=y\"".to_owned())]
        );
    }
}
