//! Room: how what runs was built: Android's build mode, this program.
//! Not here: the kernel's options (`kernel_options`).
//! Facts: Android's page on binder performance names the build mode (eng is usually slower than userdebug);
//! `ro.build.type` as `getprop` and `build.prop` tell it.

use crate::doctor::probe::{Probe, Said};
use crate::doctor::snapshot::{Snapshot, Unread};

pub(super) const PROBES: &[Probe] = &[
    Probe {
        id: "android-build",
        looks_at: "Android's build mode",
        source: "Android's page on binder performance; system property ro.build.type",
        proof: "getprop ro.build.type",
        look: android_build,
    },
    Probe {
        id: "debug-build",
        looks_at: "how binderperf was built",
        source: "Cargo's profile",
        proof: "binderperf show --format json RECORD | grep build_profile",
        look: debug_build,
    },
];

/// Where properties may be found: what `getprop` prints, or a file of them.
pub(in crate::doctor) const PROPERTIES: [&str; 3] = ["getprop.txt", "system/build.prop", "vendor/build.prop"];

/// A system property of Android's, and the file that tells it.
pub(super) fn property(snapshot: &Snapshot, name: &str) -> Result<Option<(&'static str, String)>, Unread> {
    for file in PROPERTIES {
        let text = match snapshot.text(file) {
            Ok(text) => text,
            Err(Unread::Absent(_)) => continue,
            Err(why) => return Err(why),
        };
        // [name]: [value], or name=value.
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

fn android_build(snapshot: &Snapshot) -> Result<Said, Unread> {
    let Some((file, kind)) = property(snapshot, "ro.build.type")? else {
        return match snapshot.is_complete() {
            true => Ok(Said::fine("no Android system properties here")),
            false => Err(Unread::Absent(PROPERTIES[0].to_owned())),
        };
    };
    let said = match kind.as_str() {
        "user" | "userdebug" => Said::fine(format!("a {kind} build of Android")),
        "eng" => Said::warning("an eng build of Android")
            .effect("usually slower than userdebug, by Android's own word: more debugging code and checks")
            .fix("measure a userdebug build (lunch PRODUCT-userdebug)"),
        _ => Said::info(format!("an Android build of the unknown type {kind:?}"))
            .effect("how much of it was built for debugging is not known"),
    };
    Ok(said.seen(file, format!("ro.build.type {kind}")))
}

fn debug_build(snapshot: &Snapshot) -> Result<Said, Unread> {
    match snapshot.facts().debug_build {
        Some(true) => Ok(Said::warning("binderperf was built for debugging")
            .effect("its part of every number is too large")
            .fix("cargo build --release")
            .because("binderperf", "debug assertions are on")),
        Some(false) => Ok(Said::fine("binderperf is a release build")),
        None => Err(Unread::NotMeasured("how binderperf was built")),
    }
}

#[cfg(test)]
pub(super) use cases::CASES;

#[cfg(test)]
mod cases {
    use crate::doctor::tests::{Case, FACTS, Verdict::*, case};

    pub(in crate::doctor) const CASES: &[Case] = &[
        case("android-build", Ok, "no Android", &[]),
        case(
            "android-build",
            Warning,
            "eng build",
            &[("getprop.txt", "[ro.x]: [1]\n[ro.build.type]: [eng]\n")],
        ),
        case("android-build", Ok, "userdebug", &[("system/build.prop", "ro.build.type=userdebug\n")]),
        case("android-build", Info, "unknown type", &[("getprop.txt", "[ro.build.type]: [mine]\n")]),
        case("debug-build", Warning, "built for debugging", &[(FACTS, r#""debug_build":true"#)]),
        case("debug-build", Ok, "release", &[(FACTS, r#""debug_build":false"#)]),
        case("debug-build", Unknown, "not measured", &[]),
    ];
}
