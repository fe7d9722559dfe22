//! Checks of the source tree itself: contract pages against tests, file headers and sizes, imports between modules, the runner of tests.
//! Not here: cycles of crates, which Cargo refuses, and `unsafe`, which the compiler does.
//!
//! Every checker is a function of text, with a test that sees it object.

mod contract;
mod crates;
mod files;
mod gate;
mod modules;
mod printing;

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};

fn root() -> &'static Path {
    Path::new(env!("CARGO_MANIFEST_DIR"))
}

fn read(path: &Path) -> String {
    std::fs::read_to_string(path).unwrap_or_else(|error| panic!("{}: {error}", path.display()))
}

/// Every Rust source of the tree, by its path from the root.
fn sources() -> BTreeMap<String, String> {
    let mut folders: Vec<PathBuf> =
        ["src", "crates", "tests", "fuzz"].iter().map(|name| root().join(name)).collect();
    let mut found = BTreeMap::new();
    while let Some(folder) = folders.pop() {
        for entry in std::fs::read_dir(&folder).into_iter().flatten().flatten() {
            let path = entry.path();
            let name = entry.file_name();
            if path.is_dir() && name != "target" && name != "corpus" && name != "artifacts" {
                folders.push(path);
            } else if path.extension().is_some_and(|extension| extension == "rs") {
                let short = path.strip_prefix(root()).expect("below the root").display().to_string();
                found.insert(short, read(&path));
            }
        }
    }
    assert!(found.len() > 50, "the tree was not found: {} files", found.len());
    found
}
