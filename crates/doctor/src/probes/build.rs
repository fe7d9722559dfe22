//! Build variants: Android's build type, this program's.
//! Not here: the kernel's options (`kernel_options`).
//! Facts: Android's page on binder performance (eng is usually slower than userdebug); `ro.build.type` in the output
//! of `getprop` and in `build.prop`.

use crate::probe::{Grounds, Probe, ProbeResult};
use crate::snapshot::{Snapshot, Unavailable};

pub(super) const PROBES: &[Probe] = &[
    Probe {
        id: "android-build",
        looks_at: "Android's build mode",
        proof: "getprop ro.build.type",
        grounds: Grounds::Cited {
            source: "Android, Binder performance tests: what can affect latency",
            says: "eng builds are usually slower than userdebug",
        },
        look: android_build,
    },
    Probe {
        id: "debug-build",
        looks_at: "binderperf's build profile",
        proof: "binderperf show --format json RECORD | grep build_profile",
        grounds: Grounds::Cited {
            source: "The Cargo Book, Profiles",
            says: "the dev profile optimises nothing and checks overflow and debug assertions, unless configured otherwise",
        },
        look: debug_build,
    },
];

/// Sources of properties: output of `getprop`, or property files.
const PROPERTIES: [&str; 3] = ["getprop.txt", "system/build.prop", "vendor/build.prop"];

/// An Android system property, and the file it is from.
pub(crate) fn property(
    snapshot: &Snapshot,
    name: &str,
) -> Result<Option<(&'static str, String)>, Unavailable> {
    for file in PROPERTIES {
        let text = match snapshot.text(file) {
            Ok(text) => text,
            Err(Unavailable::Absent(_)) => continue,
            Err(why) => return Err(why),
        };
        // `[name]: [value]`, or `name=value`.
        let value = text.lines().find_map(|line| match line.strip_prefix('[') {
            Some(rest) => rest.strip_prefix(name)?.strip_prefix("]: [")?.trim_end().strip_suffix(']'),
            None => line.strip_prefix(name)?.strip_prefix('='),
        });
        if let Some(value) = value {
            return Ok(Some((file, value.trim().to_owned())));
        }
    }
    Ok(None)
}

fn android_build(snapshot: &Snapshot) -> Result<ProbeResult, Unavailable> {
    let Some((file, kind)) = property(snapshot, "ro.build.type")? else {
        return match snapshot.is_complete() {
            true if snapshot.shows_absence("proc/version") => {
                Ok(ProbeResult::fine("no Android system properties here"))
            }
            _ => Err(Unavailable::absent(PROPERTIES[0])),
        };
    };
    let said = match kind.as_str() {
        "user" | "userdebug" => ProbeResult::fine(format!("a {kind} build of Android")),
        "eng" => ProbeResult::warning("an eng build of Android")
            .effect("usually slower than userdebug, according to Android's documentation: more debugging code and checks")
            .fix("measure a userdebug build (lunch PRODUCT-userdebug)"),
        _ => ProbeResult::info(format!("an Android build of the unknown type {kind:?}"))
            .effect("its amount of debugging code is unknown"),
    };
    Ok(said.seen(file, format!("ro.build.type {kind}")))
}

fn debug_build(snapshot: &Snapshot) -> Result<ProbeResult, Unavailable> {
    match snapshot.facts().debug_build {
        Some(true) => Ok(ProbeResult::warning("binderperf is a debug build")
            .effect("its share of every result is too large")
            .fix("cargo build --release")
            .because("binderperf", "debug assertions are on")),
        Some(false) => Ok(ProbeResult::fine("binderperf is a release build")),
        None => Err(Unavailable::NotMeasured("binderperf's build profile")),
    }
}
