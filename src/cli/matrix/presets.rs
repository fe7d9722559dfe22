//! Presets of `matrix`: kernels of which each shows what one choice costs, and the tests for them.
//! Not here: building (`vm::build`), measuring (`bench::matrix`).
//! Facts: the words of Android's page on binder performance: kernel version, configuration, preemption, driver.

use std::path::PathBuf;

use clap::{Parser, ValueEnum};
use vm::build::Wanted;

use crate::cli::kernels::KindArgs;

/// A set of kernels.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub(super) enum Preset {
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

/// A kernel of a preset.
#[derive(Clone, Debug)]
pub(super) enum Source {
    /// A kernel as `--kernels` takes it.
    Given(String),
    /// A kernel as `--kernels` takes it, booted with a preemption model.
    Preempted(String, &'static str),
    /// A kernel as `--kernels` takes it, whose tests have a further flag.
    Flagged(String, &'static str),
    /// One that is built, unless it is in the cache, and a word of its command line.
    Built(Box<Wanted>, Option<&'static str>),
}

/// A configuration's name, and the flags of `vm build-kernel`.
type Flavour = (&'static str, &'static str);

/// The first is what the others are compared with.
const PAGE: [Flavour; 9] = [
    ("plain", ""),
    ("DEBUG_PREEMPT", "--debug preempt"),
    ("DEBUG_SPINLOCK", "--debug spinlock"),
    ("lockdep", "--debug lockdep"),
    ("PREEMPT_LAZY", "--preempt lazy"),
    ("PREEMPT_RT", "--preempt rt"),
    ("no tracing", "--set CONFIG_FTRACE=n --set CONFIG_ENABLE_DEFAULT_TRACERS=n"),
    ("HZ 1000", "--set CONFIG_HZ_1000=y"),
    ("HZ 100", "--set CONFIG_HZ_100=y"),
];

/// One compiler for both, because its choices cost as much as the driver's.
const DRIVERS: [Flavour; 2] = [("C", "--driver c --tools debian"), ("Rust", "--driver rust --tools debian")];

/// Values of the boot option `preempt=`; the first is what the others are compared with. A kernel knows some of them.
const MODELS: [&str; 4] = ["full", "lazy", "voluntary", "none"];

/// One kernel, booted with proxy execution and without it: they differ in nothing else.
const PROXY: &str = "--set CONFIG_EXPERT=y --set CONFIG_SCHED_PROXY_EXEC=y";

const INHERIT: [Flavour; 2] =
    [("none (Rust)", "--driver rust --tools debian"), ("nice (C)", "--driver c --tools debian")];

/// The patch that makes the C driver pass on real-time policies.
const PATCH: &str = "contrib/kernel/inherit-rt.patch";

/// The source of kernels that are built.
const SOURCE: &str = "debian";

impl Preset {
    /// Its kernels by name.
    ///
    /// # Errors
    /// A patch is not where it should be.
    pub(super) fn kernels(self) -> Result<Vec<(String, Source)>, String> {
        let built = |flavours: &[Flavour]| -> Vec<(String, Source)> {
            flavours
                .iter()
                .map(|(name, flags)| ((*name).to_owned(), Source::Built(Box::new(wanted(flags)), None)))
                .collect()
        };
        Ok(match self {
            Self::Page => built(&PAGE),
            Self::Drivers => built(&DRIVERS),
            Self::Versions => {
                ["6.1", "6.12", "7.2"].map(|name| (name.to_owned(), Source::Given(name.to_owned()))).to_vec()
            }
            Self::Sched => {
                let booted =
                    MODELS.map(|model| (model.to_owned(), Source::Preempted("7.2".to_owned(), model)));
                let proxy =
                    |name: &str, word| (name.to_owned(), Source::Built(Box::new(wanted(PROXY)), Some(word)));
                let others = [
                    ("rt".to_owned(), Source::Given("rt".to_owned())),
                    ("sched_ext".to_owned(), Source::Flagged("7.2".to_owned(), "sched-ext")),
                    proxy("small", "sched_proxy_exec=0"),
                    proxy("small, proxy execution", "sched_proxy_exec=1"),
                ];
                booted.into_iter().chain(others).collect()
            }
            Self::Inherit => {
                let patched = Wanted { patches: vec![patch()?], ..wanted("--driver c --tools debian") };
                let patched = ("rt (C, patched)".to_owned(), Source::Built(Box::new(patched), None));
                built(&INHERIT).into_iter().chain([patched]).collect()
            }
        })
    }

    /// Its tests as one line each; empty for the usual ones.
    pub(super) fn tests(self) -> &'static [&'static str] {
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

/// The kernel that `vm build-kernel` makes of these flags.
fn wanted(flags: &str) -> Wanted {
    #[derive(Parser)]
    struct Flags {
        #[command(flatten)]
        kind: KindArgs,
    }
    // The flags are constants, which a test parses.
    Flags::parse_from(std::iter::once("build-kernel").chain(flags.split_whitespace())).kind.of(SOURCE, false)
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
    fn every_flavour_is_one_that_can_be_built_and_every_test_is_one() {
        for (name, flags) in PAGE.iter().chain(&DRIVERS).chain(&INHERIT).chain(&[("proxy", PROXY)]) {
            let wanted = wanted(flags);
            assert_eq!(wanted.source, SOURCE, "{name}");
        }
        for preset in Preset::value_variants() {
            let tests = preset.tests().iter();
            tests.for_each(|test| {
                assert!(super::super::words(test).is_ok(), "{test}: {:?}", super::super::words(test))
            });
            let names: std::collections::BTreeSet<String> =
                preset.kernels().expect("in the checkout").into_iter().map(|(name, _)| name).collect();
            assert!(names.len() > 1, "{preset:?}");
        }
    }
}
