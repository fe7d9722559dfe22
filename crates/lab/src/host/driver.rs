//! Room: which driver serves a binder context.
//! Facts: the Rust driver's tracepoints are in the group `rust_binder`, the C driver's in `binder`,
//! and one kernel holds one of the two; binderfs has a folder `features` since Linux 5.18, with one
//! file for each.

use std::fs;

use driver::embedded::Settings;
use driver::locate::Located;
use driver::{AnyContext, Context, KernelContext};
use record::{Driver, DriverKind, EmbeddedSettings};

use super::Root;

/// The driver behind a context that answered with this protocol version.
#[must_use]
pub fn driver(located: &Located, protocol_version: i32) -> Driver {
    let driver = Driver {
        kind: DriverKind::Embedded,
        opened: located.context.describe(),
        protocol_version,
        features: Vec::new(),
        choice: located.choice.to_string(),
        reason: located.reason.clone(),
        embedded: None,
    };
    match &located.context {
        AnyContext::Kernel(context) => {
            Driver { kind: kind(&Root::of_this_machine()), features: features(context), ..driver }
        }
        AnyContext::Embedded(context) => Driver { embedded: Some(settings(context.settings())), ..driver },
    }
}

fn settings(settings: Settings) -> EmbeddedSettings {
    EmbeddedSettings {
        inherit: settings.inherit.to_string(),
        waiting: settings.waiting.to_string(),
        spin_budget_ns: settings.spin_budget_ns,
        lanes: settings.lanes,
    }
}

fn features(context: &KernelContext) -> Vec<String> {
    let folder = context.path().parent().map(|instance| instance.join("features"));
    let mut features: Vec<String> = folder
        .and_then(|folder| fs::read_dir(folder).ok())
        .into_iter()
        .flatten()
        .flatten()
        .filter_map(|entry| entry.file_name().into_string().ok())
        .collect();
    features.sort_unstable();
    features
}

pub(crate) fn kind(root: &Root) -> DriverKind {
    // The second is not touched where the first is there: looking at it mounts it, and newer kernels warn.
    let events = ["sys/kernel/tracing/events", "sys/kernel/debug/tracing/events"];
    let events = events.iter().find(|events| root.path(events).exists());
    let traced = |group| events.is_some_and(|events| root.path(events).join(group).exists());
    let loaded = |module| root.path("sys/module").join(module).exists();
    if traced("rust_binder") || loaded("rust_binder") {
        DriverKind::KernelRust
    } else if traced("binder") || loaded("binder_linux") || loaded("binder") {
        DriverKind::KernelC
    } else {
        DriverKind::Kernel
    }
}
