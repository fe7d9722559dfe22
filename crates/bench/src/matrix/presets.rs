//! Presets of `matrix`: kernels of which each shows what one choice costs, and the tests for them.
//! Not here: building (`vm::build`), measuring (`bench::matrix`).
//! Facts: the words of Android's page on binder performance: kernel version, configuration, preemption, driver.

use std::path::PathBuf;

use vm::build::{Check, Driver, Preempt, Setting, Tools, Wanted};

use super::kernels::Source;

/// A set of kernels.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Preset {
    /// Checks of the kernel, preemption models, HZ, tracing: what configuration costs
    Page,
    /// The driver in C and the one in Rust
    Drivers,
    /// Debian's 6.1, 6.12 and 7.2
    Versions,
    /// Debian's 7.2 with each preemption model of the boot option preempt=, its real-time build, sched_ext; proxy execution
    Sched,
    /// Priorities: passed on not at all (Rust), nice (C), real-time (C with contrib/kernel/inherit-rt.patch)
    Inherit,
}

/// A kernel that is built, with the name of what it differs in.
type Flavour = (&'static str, Wanted);

/// The source of kernels that are built.
const SOURCE: &str = "debian";

/// The usual kernel.
fn usual() -> Wanted {
    Wanted::usual(SOURCE)
}

/// The usual kernel with this driver, by Debian's tools: one compiler for both, because its choices cost as much as the driver's.
fn with_driver(driver: Driver) -> Wanted {
    Wanted { driver, tools: Tools::Debian, ..usual() }
}

/// The usual kernel with these options.
fn with(settings: &[&str]) -> Wanted {
    let parsed = |text: &&str| -> Setting { text.parse().expect("a constant, which a test parses") };
    Wanted { settings: settings.iter().map(parsed).collect(), ..usual() }
}

/// The first is what the others are compared with.
fn page() -> Vec<Flavour> {
    let checked = |check| Wanted { checks: vec![check], ..usual() };
    let preempted = |preempt| Wanted { preempt: Some(preempt), ..usual() };
    vec![
        ("plain", usual()),
        ("DEBUG_PREEMPT", checked(Check::Preempt)),
        ("DEBUG_SPINLOCK", checked(Check::Spinlock)),
        ("lockdep", checked(Check::Lockdep)),
        ("PREEMPT_LAZY", preempted(Preempt::Lazy)),
        ("PREEMPT_RT", preempted(Preempt::Rt)),
        ("no tracing", with(&NO_TRACING)),
        ("HZ 1000", with(&["CONFIG_HZ_1000=y"])),
        ("HZ 100", with(&["CONFIG_HZ_100=y"])),
    ]
}

const NO_TRACING: [&str; 2] = ["CONFIG_FTRACE=n", "CONFIG_ENABLE_DEFAULT_TRACERS=n"];

/// Values of the boot option `preempt=`; the first is what the others are compared with. A kernel knows some of them.
const MODELS: [&str; 4] = ["full", "lazy", "voluntary", "none"];

/// One kernel, booted with proxy execution and without it: they differ in nothing else.
const PROXY: [&str; 2] = ["CONFIG_EXPERT=y", "CONFIG_SCHED_PROXY_EXEC=y"];

/// The patch that makes the C driver pass on real-time policies.
const PATCH: &str = "contrib/kernel/inherit-rt.patch";

impl Preset {
    /// Each preset.
    pub const ALL: [Self; 5] = [Self::Page, Self::Drivers, Self::Versions, Self::Sched, Self::Inherit];

    /// Its kernels by name.
    ///
    /// # Errors
    /// A patch is not where it should be.
    pub fn kernels(self) -> Result<Vec<(String, Source)>, String> {
        let built = |(name, wanted): Flavour| (name.to_owned(), Source::Built(Box::new(wanted), None));
        Ok(match self {
            Self::Page => page().into_iter().map(built).collect(),
            Self::Drivers => {
                let both = [("C", with_driver(Driver::C)), ("Rust", with_driver(Driver::Rust))];
                both.map(built).to_vec()
            }
            Self::Versions => {
                ["6.1", "6.12", "7.2"].map(|name| (name.to_owned(), Source::Given(name.to_owned()))).to_vec()
            }
            Self::Sched => {
                let booted =
                    MODELS.map(|model| (model.to_owned(), Source::Preempted("7.2".to_owned(), model)));
                let proxy =
                    |name: &str, word| (name.to_owned(), Source::Built(Box::new(with(&PROXY)), Some(word)));
                let others = [
                    ("rt".to_owned(), Source::Given("rt".to_owned())),
                    ("sched_ext".to_owned(), Source::Flagged("7.2".to_owned(), "sched-ext")),
                    proxy("small", "sched_proxy_exec=0"),
                    proxy("small, proxy execution", "sched_proxy_exec=1"),
                ];
                booted.into_iter().chain(others).collect()
            }
            Self::Inherit => {
                let patched = Wanted { patches: vec![patch()?], ..with_driver(Driver::C) };
                let all = [
                    ("none (Rust)", with_driver(Driver::Rust)),
                    ("nice (C)", with_driver(Driver::C)),
                    ("rt (C, patched)", patched),
                ];
                all.map(built).to_vec()
            }
        })
    }

    /// Its tests as one line each; empty for the usual ones.
    pub fn tests(self) -> &'static [&'static str] {
        match self {
            Self::Page | Self::Versions => &[],
            Self::Sched => &["kpi --driver kernel -s 64,4096", "latency hwbinder --driver kernel -i 300"],
            Self::Drivers => &[
                "throughput binder --driver kernel --controls pipe,raw --benchmark_filter='/(4|4096|65536)$'",
                "throughput hwbinder --driver kernel --controls pipe,raw --benchmark_filter='/(4|4096|65536)$'",
                "throughput workers --driver kernel -w 2 -i 500 -s 4",
                "throughput workers --driver kernel -w 8 -i 200 -s 4096",
            ],
            Self::Inherit => &[
                "throughput hwbinder --driver kernel --controls raw --benchmark_filter=/4$",
                "latency hwbinder --driver kernel -i 300",
                "inversion --driver kernel -i 60 --rounds 2",
            ],
        }
    }
}

/// The patch, below the working folder. It has the kernel's licence, so that no package of this program brings it.
fn patch() -> Result<PathBuf, String> {
    let patch = PathBuf::from(PATCH);
    let why =
        || format!("{PATCH} is not here: it is in binderperf's source, so call this from a checkout of it");
    patch.is_file().then_some(patch).ok_or_else(why)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_option_is_one_and_every_test_is_one() {
        for options in [&NO_TRACING[..], &PROXY, &["CONFIG_HZ_1000=y"], &["CONFIG_HZ_100=y"]] {
            assert_eq!(with(options).settings.len(), options.len());
        }
        for preset in Preset::ALL {
            for test in preset.tests() {
                assert!(
                    crate::matrix::kernels::words(test).is_ok(),
                    "{test}: {:?}",
                    crate::matrix::kernels::words(test)
                );
            }
            let Ok(kernels) = preset.kernels() else {
                assert_eq!(preset, Preset::Inherit, "only it needs the checkout");
                continue;
            };
            let names: std::collections::BTreeSet<String> =
                kernels.into_iter().map(|(name, _)| name).collect();
            assert!(names.len() > 1, "{preset:?}");
        }
    }
}
