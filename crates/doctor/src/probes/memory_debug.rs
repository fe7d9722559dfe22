//! Kernel memory debugging, built in or enabled at boot.
//! Not here: other kernel options (`kernel_options`).
//! Facts: help texts of `mm/Kconfig.debug`, `lib/Kconfig.debug` and `security/Kconfig.hardening`; `slab_debug`,
//! `debug_pagealloc`, `page_poison`, `kmemleak`, `init_on_alloc` and `init_on_free` of
//! `Documentation/admin-guide/kernel-parameters.txt`; boolean values as in `kstrtobool`.

use driver::kernel_config::KernelConfig;
use record::checkup::Verdict;

use crate::probe::{Grounds, Probe, ProbeResult};
use crate::snapshot::{Snapshot, Unavailable};
use host::parse::parameter;

pub(super) const PROBE: Probe = Probe {
    id: "kernel-memory-debug",
    looks_at: "memory debugging: SLUB, page allocation, poisoning, kmemleak, objects, VM; clearing at allocation and release",
    proof: "zcat /proc/config.gz | grep -E 'SLUB_DEBUG_ON|PAGE_POISONING|DEBUG_(PAGEALLOC|VM|OBJECTS|KMEMLEAK|SG)|INIT_ON'; cat /proc/cmdline",
    grounds: Grounds::Cited {
        source: "mm/Kconfig.debug, security/Kconfig.hardening; Android, Binder performance tests: what can affect latency",
        says: "debugging options; their help texts tell of slower allocations",
    },
    look: memory_debug,
};

/// Default state of a built-in check.
enum Unasked {
    On,
    Off,
    /// On if this option is set.
    With(&'static str),
    /// On unless this option is set.
    Without(&'static str),
}

struct Check {
    name: &'static str,
    verdict: Verdict,
    built: &'static str,
    unasked: Unasked,
    /// Kernel parameters that switch it.
    words: &'static [&'static str],
    effect: &'static str,
}

const CHECKED: &str = "each allocation of a transaction is checked: all times are too long, tails most";

const CHECKS: [Check; 9] = [
    Check {
        name: "slab_debug",
        verdict: Verdict::Error,
        built: "SLUB_DEBUG",
        unasked: Unasked::With("SLUB_DEBUG_ON"),
        words: &["slub_debug", "slab_debug"],
        effect: "each allocation of a transaction is filled, checked and traced",
    },
    Check {
        name: "debug_pagealloc",
        verdict: Verdict::Error,
        built: "DEBUG_PAGEALLOC",
        unasked: Unasked::With("DEBUG_PAGEALLOC_ENABLE_DEFAULT"),
        words: &["debug_pagealloc"],
        effect: "each page is unmapped when freed and mapped when allocated: buffers cost several times as much",
    },
    Check {
        name: "page_poison",
        verdict: Verdict::Warning,
        built: "PAGE_POISONING",
        unasked: Unasked::Off,
        words: &["page_poison"],
        effect: "each page is filled when freed and checked when allocated",
    },
    Check {
        name: "kmemleak",
        verdict: Verdict::Warning,
        built: "DEBUG_KMEMLEAK",
        unasked: Unasked::Without("DEBUG_KMEMLEAK_DEFAULT_OFF"),
        words: &["kmemleak"],
        effect: "each allocation of a transaction is recorded, and periodic scans occupy a CPU",
    },
    Check {
        name: "DEBUG_OBJECTS",
        verdict: Verdict::Warning,
        built: "DEBUG_OBJECTS",
        unasked: Unasked::On,
        words: &[],
        effect: CHECKED,
    },
    Check {
        name: "DEBUG_VM",
        verdict: Verdict::Warning,
        built: "DEBUG_VM",
        unasked: Unasked::On,
        words: &[],
        effect: CHECKED,
    },
    Check {
        name: "DEBUG_SG",
        verdict: Verdict::Info,
        built: "DEBUG_SG",
        unasked: Unasked::On,
        words: &[],
        effect: "scatter-gather lists of devices are checked; binder has none",
    },
    Check {
        name: "init_on_alloc",
        verdict: Verdict::Info,
        built: "",
        unasked: Unasked::With("INIT_ON_ALLOC_DEFAULT_ON"),
        words: &["init_on_alloc"],
        effect: "each transaction's kernel memory is written once more, with zeroes, when it is allocated",
    },
    Check {
        name: "init_on_free",
        verdict: Verdict::Info,
        built: "",
        unasked: Unasked::With("INIT_ON_FREE_DEFAULT_ON"),
        words: &["init_on_free"],
        effect: "each transaction's kernel memory is written once more, with zeroes, when it is freed",
    },
];

impl Check {
    /// The evidence that the check is on: file and text; `None` if it is off.
    fn shown(&self, config: Option<&KernelConfig>, command_line: Option<&str>) -> Option<(String, String)> {
        let is_built = config.is_none_or(|config| self.built.is_empty() || config.is_on(self.built));
        if !is_built {
            return None;
        }
        for word in self.words {
            // Without the command line it is unknown.
            let command_line = command_line?;
            let plain = command_line.split_whitespace().any(|given| given == *word);
            match parameter(command_line, word) {
                Some(value) if is_off(value) => return None,
                Some(value) => return Some(("/proc/cmdline".to_owned(), format!("{word}={value}"))),
                None if plain => return Some(("/proc/cmdline".to_owned(), (*word).to_owned())),
                None => {}
            }
        }
        let config = config?;
        let option = match self.unasked {
            Unasked::On => Some(self.built),
            Unasked::Off => None,
            Unasked::With(option) => Some(option).filter(|option| config.is_on(option)),
            Unasked::Without(option) => Some(self.built).filter(|_| !config.is_on(option)),
        };
        option.map(|option| (config.source.clone(), format!("CONFIG_{option}=y")))
    }
}

/// `slub_debug=-` also means off.
fn is_off(value: &str) -> bool {
    matches!(value, "-" | "0" | "n" | "N" | "off" | "f" | "F")
}

fn memory_debug(snapshot: &Snapshot) -> Result<ProbeResult, Unavailable> {
    let command_line = snapshot.text("proc/cmdline");
    let config = match snapshot.config() {
        // The kernel may lack what its command line asks for.
        Err(why) if !snapshot.is_complete() => return Err(why),
        config => config,
    };
    let found: Vec<(&Check, (String, String))> = CHECKS
        .iter()
        .filter_map(|check| {
            Some((check, check.shown(config.as_ref().ok().copied(), command_line.as_deref().ok())?))
        })
        .collect();
    let Some(worst) = found.iter().map(|(check, _)| check.verdict).max() else {
        // Without a command line or a configuration the state is unknown.
        command_line?;
        return Ok(ProbeResult::fine("the kernel has no memory debugging")
            .because(&config?.source, "none of these options is set"));
    };
    let names: Vec<&str> = found.iter().map(|(check, _)| check.name).collect();
    let mut effects: Vec<&str> =
        found.iter().filter(|(check, _)| check.verdict == worst).map(|(check, _)| check.effect).collect();
    effects.dedup();
    let boot: Vec<String> = found
        .iter()
        .filter_map(|(check, _)| check.words.last())
        .map(|word| if *word == "slab_debug" { "slab_debug=-".to_owned() } else { format!("{word}=off") })
        .collect();
    let rebuild = "use a kernel built without them";
    let fix = if boot.is_empty() {
        rebuild.to_owned()
    } else {
        format!("boot with {}, or {rebuild}", boot.join(" "))
    };
    let doing = if worst == Verdict::Info { "the kernel clears memory" } else { "the kernel debugs memory" };
    let said =
        ProbeResult::new(worst, format!("{doing}: {}", names.join(", "))).effect(effects.join("; ")).fix(fix);
    Ok(found.iter().fold(said, |said, (_, (file, says))| said.because(file, says.clone())))
}
