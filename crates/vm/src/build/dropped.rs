//! Options that Kconfig did not take, and why as far as its files tell.
//! Not here: reading those files (`kconfig`).

use std::collections::BTreeMap;
use std::fmt;

use super::config::{Entry, Fragment};
use super::expression::unmet;
use super::kconfig::Kconfig;

/// An option that a kernel has not, or has with another value.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Dropped {
    /// The line of `.config` that was wanted.
    pub(super) line: String,
    /// The reason.
    pub(super) why: String,
}

impl fmt::Display for Dropped {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}: {}", self.line, self.why)
    }
}

/// The fate of the options that were not taken.
#[derive(Debug, Default, PartialEq, Eq)]
pub(super) struct Outcome {
    /// The kernel would not be what was asked for.
    pub(super) missing: Vec<Dropped>,
    /// Options of our own that this version of Linux does not know.
    pub(super) unknown: Vec<String>,
}

/// Compares a kernel's configuration with what it should be. An option of our own gives way to a rival that the user
/// chose, and is no fault where this version of Linux does not have it.
pub(super) fn outcome(fragment: &Fragment, config: &BTreeMap<String, String>, kconfig: &Kconfig) -> Outcome {
    let mut outcome = Outcome::default();
    for entry in fragment.entries.iter().filter(|entry| !is_taken(entry, config)) {
        let chosen_instead = kconfig.rivals(&entry.symbol).into_iter().any(|rival| {
            fragment.entries.iter().any(|one| one.symbol == rival && one.asked && one.value == "y")
        });
        match () {
            () if !entry.asked && chosen_instead => {}
            () if !entry.asked && kconfig.definitions(&entry.symbol).is_empty() => {
                outcome.unknown.push(format!("CONFIG_{}", entry.symbol));
            }
            () => outcome.missing.push(Dropped { line: entry.line(), why: reason(entry, config, kconfig) }),
        }
    }
    outcome
}

fn is_taken(entry: &Entry, config: &BTreeMap<String, String>) -> bool {
    config.get(&entry.symbol).map_or("n", String::as_str) == entry.value
}

/// Why an option was not taken: a clause.
fn reason(entry: &Entry, config: &BTreeMap<String, String>, kconfig: &Kconfig) -> String {
    let definitions = kconfig.definitions(&entry.symbol);
    if definitions.is_empty() {
        return "this source has no such option".to_owned();
    }
    if let (true, Some(value)) = (entry.value == "n", config.get(&entry.symbol)) {
        return format!("it is {value}: something that is on selects it, or it cannot be switched off");
    }
    // Of several definitions the one that lacks least says most.
    let lacks = definitions.iter().map(|one| {
        let conditions = one.depends.iter().chain(one.prompt.as_ref());
        conditions.flat_map(|condition| unmet(condition, config)).collect::<Vec<String>>()
    });
    let mut lacks: Vec<Vec<String>> = lacks.collect();
    lacks.sort_by_key(Vec::len);
    let mut least = lacks.into_iter().next().unwrap_or_default();
    least.dedup();
    if !least.is_empty() {
        return format!("it depends on {}, which does not hold", least.join(" and "));
    }
    let rival = kconfig.rivals(&entry.symbol).into_iter().find(|rival| config.contains_key(*rival));
    if let Some(rival) = rival {
        return format!("CONFIG_{rival} is chosen in its place");
    }
    if definitions.iter().all(|one| one.prompt.is_none()) {
        return "nobody can set it: the kernel's other options decide it".to_owned();
    }
    match config.get(&entry.symbol) {
        Some(value) => format!("it became {value}"),
        None => "Kconfig left it out; its files do not say why".to_owned(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::build::config::read;
    use driver::root::Fixture;

    fn entry(symbol: &str, value: &str, asked: bool) -> Entry {
        Entry { symbol: symbol.to_owned(), value: value.to_owned(), asked }
    }

    #[test]
    fn each_reason_is_told() {
        let root = Fixture::new(
            "dropped",
            &[(
                "Kconfig",
                "config EXPERT\n\tbool \"e\"\nconfig RT\n\tbool \"rt\"\n\tdepends on EXPERT && ARCH_RT\n\
             config ARCH_RT\n\tbool\nchoice\nconfig NONE\n\tbool \"n\"\nconfig FULL\n\tbool \"f\"\nendchoice\n\
             config ACPI\n\tbool \"acpi\"\nconfig CPUS\n\tint \"cpus\"\nconfig ODD\n\tbool \"odd\"\n",
            )],
        );
        let kconfig = Kconfig::read(root.path(), "x86");
        let config = read("CONFIG_FULL=y\nCONFIG_ACPI=y\nCONFIG_CPUS=64\nCONFIG_SMP=y\n");
        for (symbol, value, want) in [
            ("RT", "y", "CONFIG_RT=y: it depends on EXPERT and ARCH_RT, which does not hold"),
            ("ARCH_RT", "y", "CONFIG_ARCH_RT=y: nobody can set it: the kernel's other options decide it"),
            ("NONE", "y", "CONFIG_NONE=y: CONFIG_FULL is chosen in its place"),
            ("NOSUCH", "y", "CONFIG_NOSUCH=y: this source has no such option"),
            ("CPUS", "8", "CONFIG_CPUS=8: it became 64"),
            ("ODD", "y", "CONFIG_ODD=y: Kconfig left it out; its files do not say why"),
            ("ACPI", "n", "# CONFIG_ACPI is not set: it is y: something that is on selects it"),
        ] {
            let fragment = Fragment { entries: vec![entry(symbol, value, true)] };
            let found = outcome(&fragment, &config, &kconfig);
            let [dropped] = &found.missing[..] else { panic!("{symbol}: {found:?}") };
            assert!(dropped.to_string().starts_with(want), "{dropped}");
        }
        let fine = [entry("SMP", "y", true), entry("EXPERT", "n", true), entry("FULL", "y", true)];
        assert_eq!(outcome(&Fragment { entries: fine.to_vec() }, &config, &kconfig), Outcome::default());
    }

    #[test]
    fn an_option_of_ours_gives_way() {
        let root = Fixture::new(
            "gives-way",
            &[("Kconfig", "choice\nconfig FULL\n\tbool \"f\"\nconfig LAZY\n\tbool \"l\"\nendchoice\n")],
        );
        let kconfig = Kconfig::read(root.path(), "x86");
        let config = read("CONFIG_LAZY=y\n");
        let ours = [entry("FULL", "y", false), entry("OLD", "y", false)];
        let asked = Fragment { entries: [&ours[..], &[entry("LAZY", "y", true)]].concat() };
        let found = outcome(&asked, &config, &kconfig);
        assert_eq!(found, Outcome { missing: Vec::new(), unknown: vec!["CONFIG_OLD".to_owned()] });
        let alone = outcome(&Fragment { entries: ours.to_vec() }, &config, &kconfig);
        assert_eq!(alone.missing.len(), 1, "nobody asked for another: {alone:?}");
    }
}
