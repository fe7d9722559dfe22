//! Room: which driver serves a binder context.
//! Facts: the Rust driver's tracepoints are in the group `rust_binder`, the C driver's in `binder`,
//! and one kernel holds one of the two; binderfs has a folder `features` since Linux 5.18, with one
//! file for each.

use std::fs;

use driver::{Context, KernelContext};
use record::{Driver, DriverKind};

use super::Root;

/// The driver behind a context that answered with this protocol version.
#[must_use]
pub fn driver(context: &KernelContext, protocol_version: i32) -> Driver {
    let root = Root::of_this_machine();
    let folder = context.path().parent().map(|instance| instance.join("features"));
    let mut features: Vec<String> = folder
        .and_then(|folder| fs::read_dir(folder).ok())
        .into_iter()
        .flatten()
        .flatten()
        .filter_map(|entry| entry.file_name().into_string().ok())
        .collect();
    features.sort_unstable();
    Driver { kind: kind(&root), opened: context.describe(), protocol_version, features }
}

pub(super) fn kind(root: &Root) -> DriverKind {
    let traced = |group| {
        ["sys/kernel/tracing/events", "sys/kernel/debug/tracing/events"]
            .iter()
            .any(|events| root.path(events).join(group).exists())
    };
    let loaded = |module| root.path("sys/module").join(module).exists();
    if traced("rust_binder") || loaded("rust_binder") {
        DriverKind::KernelRust
    } else if traced("binder") || loaded("binder_linux") || loaded("binder") {
        DriverKind::KernelC
    } else {
        DriverKind::Kernel
    }
}
