//! Choices that a user has for a kernel: source, driver, preemption, checks, options, patches, tools.
//! Not here: the file for Kconfig (`config`).

use std::fmt;
use std::path::PathBuf;
use std::str::FromStr;

use crate::arch::Arch;

/// Declares an enum whose values have words, and options of Kconfig that they switch on.
macro_rules! words {
    ($(#[$doc:meta])* $name:ident { $($(#[$about:meta])* $value:ident = $word:literal $(=> $($symbol:ident)+)?),* $(,)? }) => {
        $(#[$doc])*
        #[derive(Clone, Copy, Debug, PartialEq, Eq)]
        pub enum $name { $($(#[$about])* $value),* }

        impl $name {
            /// Each value.
            pub const ALL: &'static [Self] = &[$(Self::$value),*];

            /// The options of Kconfig that it switches on, without `CONFIG_`.
            #[must_use]
            pub fn symbols(self) -> &'static [&'static str] {
                match self { $(Self::$value => &[$($(stringify!($symbol)),+)?]),* }
            }
        }

        impl fmt::Display for $name {
            fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                f.write_str(match self { $(Self::$value => $word),* })
            }
        }
    };
}

words! {
    /// The kernel's Binder driver.
    Driver {
        /// The driver in C.
        C = "c" => ANDROID_BINDER_IPC ANDROID_BINDERFS,
        /// The driver in Rust.
        Rust = "rust" => RUST ANDROID_BINDER_IPC_RUST,
    }
}

words! {
    /// The kernel's preemption.
    Preempt {
        /// Only where the kernel returns to user space or sleeps.
        None = "none" => PREEMPT_NONE,
        /// Also at points that the kernel's code offers.
        Voluntary = "voluntary" => PREEMPT_VOLUNTARY,
        /// Anywhere outside critical sections.
        Full = "full" => PREEMPT,
        /// Full for real-time tasks; others at the tick.
        Lazy = "lazy" => PREEMPT_LAZY,
        /// PREEMPT_RT. It needs EXPERT; beside it a choice remains, of which full is the usual one.
        Rt = "rt" => EXPERT PREEMPT_RT PREEMPT,
    }
}

words! {
    /// The kernel's checks of itself.
    Check {
        /// Use of per-CPU data where preemption is possible.
        Preempt = "preempt" => DEBUG_KERNEL DEBUG_PREEMPT,
        /// Misuse of spin locks.
        Spinlock = "spinlock" => DEBUG_KERNEL DEBUG_SPINLOCK,
        /// Misuse of mutexes.
        Mutex = "mutex" => DEBUG_KERNEL DEBUG_MUTEXES,
        /// The order of locks, proven.
        Lockdep = "lockdep" => DEBUG_KERNEL PROVE_LOCKING,
        /// Waiting times of locks.
        Lockstat = "lockstat" => DEBUG_KERNEL LOCK_STAT,
        /// Sleeping where that is forbidden.
        AtomicSleep = "atomic-sleep" => DEBUG_KERNEL DEBUG_ATOMIC_SLEEP,
        /// Use of memory that is not allocated.
        Kasan = "kasan" => DEBUG_KERNEL KASAN,
        /// Data races.
        Kcsan = "kcsan" => DEBUG_KERNEL KCSAN,
        /// Undefined behaviour.
        Ubsan = "ubsan" => UBSAN,
        /// Sampled use of memory that is not allocated.
        Kfence = "kfence" => KFENCE,
        /// Damaged lists.
        List = "list" => DEBUG_LIST,
        /// Damaged slab memory.
        Slub = "slub" => SLUB_DEBUG SLUB_DEBUG_ON,
        /// Tasks that wait for two minutes.
        HungTask = "hung-task" => DEBUG_KERNEL DETECT_HUNG_TASK,
        /// Allocations that fail when a test asks for it.
        FailAlloc = "fail-alloc" => DEBUG_KERNEL FAULT_INJECTION FAULT_INJECTION_DEBUG_FS FAILSLAB FAIL_PAGE_ALLOC,
    }
}

words! {
    /// The compiler and other tools that build.
    Tools {
        /// This machine's if they suffice, else Debian's.
        Auto = "auto",
        /// This machine's.
        Machine = "machine",
        /// Those of Debian's newest suite, in a file tree that is thrown away.
        Debian = "debian",
    }
}

/// One option of Kconfig and its value, as the user gave them.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Setting {
    /// The name, without `CONFIG_`.
    pub(super) symbol: String,
    /// The value as in `.config`; `n` for one that is not set.
    pub(super) value: String,
}

impl FromStr for Setting {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        let (name, value) =
            text.split_once('=').ok_or_else(|| format!("'{text}' is no option: CONFIG_X=y is one"))?;
        let symbol = name.strip_prefix("CONFIG_").unwrap_or(name);
        let is_name = |c: char| c.is_ascii_uppercase() || c.is_ascii_digit() || c == '_';
        if symbol.is_empty() || !symbol.chars().all(is_name) {
            return Err(format!("'{name}' is no name of an option: CONFIG_X is one"));
        }
        let is_number = value.strip_prefix("0x").map_or_else(
            || value.strip_prefix('-').unwrap_or(value).chars().all(|c| c.is_ascii_digit()),
            |hex| hex.chars().all(|c| c.is_ascii_hexdigit()),
        );
        let value = match value {
            "" => return Err(format!("CONFIG_{symbol} has no value: n is not set, \"\" is an empty text")),
            "m" => {
                return Err(format!(
                    "CONFIG_{symbol}=m: modules are not built; =y builds it into the kernel"
                ));
            }
            "y" | "n" => value.to_owned(),
            _ if is_number => value.to_owned(),
            text => {
                let inner = text.strip_prefix('"').and_then(|rest| rest.strip_suffix('"')).unwrap_or(text);
                if inner.contains(['"', '\\', '\n']) {
                    return Err(format!("CONFIG_{symbol}: a text without quotes and backslashes"));
                }
                format!("\"{inner}\"")
            }
        };
        Ok(Self { symbol: symbol.to_owned(), value })
    }
}

/// Everything that the user says about a kernel.
#[derive(Clone, Debug)]
pub struct Wanted {
    /// `debian`, `debian:VERSION`, a folder or an archive with a kernel's source.
    pub source: String,
    /// The driver that is built in.
    pub driver: Driver,
    /// Preemption; `None`: full, unless an option says otherwise.
    pub preempt: Option<Preempt>,
    /// Checks.
    pub checks: Vec<Check>,
    /// Options, which go before all others.
    pub settings: Vec<Setting>,
    /// Patches, in the order in which they are applied.
    pub patches: Vec<PathBuf>,
    /// The guests' architecture.
    pub arch: Arch,
    /// Who builds.
    pub tools: Tools,
    /// Jobs of make.
    pub jobs: usize,
    /// Look for a newer version of Debian's source, and build even what is there.
    pub refresh: bool,
}

impl Wanted {
    /// The usual kernel of a source: the driver in C, for this machine's CPUs, with a job for each of them.
    #[must_use]
    pub fn usual(source: &str) -> Self {
        Self {
            source: source.to_owned(),
            driver: Driver::C,
            preempt: None,
            checks: Vec::new(),
            settings: Vec::new(),
            patches: Vec::new(),
            arch: Arch::own(),
            tools: Tools::Auto,
            jobs: std::thread::available_parallelism().map_or(1, std::num::NonZero::get),
            refresh: false,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_option_is_read_as_config_writes_it() {
        for (text, want) in [
            ("CONFIG_HZ_1000=y", Ok(("HZ_1000", "y"))),
            ("HZ_1000=n", Ok(("HZ_1000", "n"))),
            ("CONFIG_NR_CPUS=64", Ok(("NR_CPUS", "64"))),
            ("CONFIG_BASE=0xff", Ok(("BASE", "0xff"))),
            ("CONFIG_CMDLINE=quiet a=b", Ok(("CMDLINE", "\"quiet a=b\""))),
            ("CONFIG_CMDLINE=\"quiet\"", Ok(("CMDLINE", "\"quiet\""))),
            ("CONFIG_HZ_1000", Err("CONFIG_X=y is one")),
            ("CONFIG_=y", Err("no name")),
            ("hz=y", Err("no name")),
            ("CONFIG_HZ=", Err("no value")),
            ("CONFIG_USB=m", Err("modules are not built")),
            ("CONFIG_CMDLINE=a\"b", Err("without quotes")),
        ] {
            match (text.parse::<Setting>(), want) {
                (Ok(got), Ok((symbol, value))) => assert_eq!((&*got.symbol, &*got.value), (symbol, value)),
                (Err(got), Err(part)) => assert!(got.contains(part), "{text}: {got}"),
                (got, want) => panic!("{text}: {got:?}, not {want:?}"),
            }
        }
    }
}
