//! The driver behind a binder context.
//! Facts: tracepoint group `rust_binder` (Rust driver) or `binder` (C driver); a kernel has one of the two. Since
//! Linux 5.18 binderfs has one file per feature in `features`.

use std::fs;

use backend::AnyContext;
use backend::locate::Located;
use driver::{Context, KernelContext, Root};
use embedded::Settings;
use record::{Driver, DriverKind, EmbeddedSettings};

/// The driver of a context that reported this protocol version.
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
        direct: settings.call_slots,
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

/// Whether the C and the Rust driver have trace events.
pub(crate) fn event_groups(root: &Root) -> (bool, bool) {
    // debugfs is read only without tracefs: access mounts it there, and newer kernels warn about that.
    let events = ["sys/kernel/tracing/events", "sys/kernel/debug/tracing/events"];
    let events = events.iter().find(|events| root.exists(events));
    let has = |group| events.is_some_and(|events| root.exists(format!("{events}/{group}")));
    (has("binder"), has("rust_binder"))
}

/// Detects the kernel driver from its trace events and modules.
#[must_use]
pub fn kind(root: &Root) -> DriverKind {
    let (c, rust) = event_groups(root);
    let loaded = |module| root.exists(format!("sys/module/{module}"));
    if rust || loaded("rust_binder") {
        DriverKind::KernelRust
    } else if c || loaded("binder_linux") || loaded("binder") {
        DriverKind::KernelC
    } else {
        DriverKind::Kernel
    }
}
