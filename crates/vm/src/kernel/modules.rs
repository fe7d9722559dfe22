//! The kernel modules that a guest needs, in load order.
//! Not here: loading them (`guest::machine`).

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};

use crate::elf::module_needs;
use crate::error::VmError;

use super::{files_below, unpack};

/// Modules of the frame port. A kernel without these files has them built in.
const CHANNEL: [&str; 2] = ["virtio_pci", "virtio_console"];
/// Module of the network card, and those that only it needs.
const NETWORK: [&str; 3] = ["virtio_net", "net_failover", "failover"];
/// The C and the Rust driver; the first one found is used.
const DRIVERS: [&str; 2] = ["binder_linux", "rust_binder"];

/// A module, decompressed.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Module {
    pub(crate) name: String,
    pub(crate) content: Vec<u8>,
}

impl Module {
    /// File name in `modules/`, in the guest and in the cache.
    pub(crate) fn file_name(&self) -> String {
        format!("{}.ko", self.name)
    }

    /// Whether only a guest with a network needs it.
    pub(crate) fn is_of_network(&self) -> bool {
        NETWORK.contains(&self.name.as_str())
    }

    /// Module parameters. Debian's driver creates only `/dev/binder` by default (contract OPN-12).
    pub(crate) fn parameters(&self) -> &'static str {
        if self.name == DRIVERS[0] { "devices=binder,hwbinder,vndbinder" } else { "" }
    }
}

/// The usual module folders of an image: beside it, as packages unpack, or this machine's own.
pub(super) fn folder_beside(image: &Path, release: &str) -> Option<PathBuf> {
    let near = image.parent()?;
    let roots = [near.to_path_buf(), near.join(".."), PathBuf::from("/"), PathBuf::from("/usr")];
    let folders = roots.iter().map(|root| root.join("lib/modules").join(release));
    std::iter::once(near.join("modules").join(release)).chain(folders).find(|folder| folder.is_dir())
}

/// All module files below a folder, by module name.
fn index(folder: &Path) -> Result<BTreeMap<String, PathBuf>, VmError> {
    let files = files_below(folder)?.into_iter();
    Ok(files.filter_map(|path| Some((module_name(&path)?, path))).collect())
}

/// The module name of a file, such as `binder_linux` for `binder-linux.ko.xz`. The kernel treats dash and underscore
/// alike.
fn module_name(path: &Path) -> Option<String> {
    let (name, rest) = path.file_name()?.to_str()?.split_once(".ko")?;
    ["", ".xz", ".zst", ".gz"].contains(&rest).then(|| name.replace('-', "_"))
}

/// The guest's modules from a folder, dependencies first.
///
/// # Errors
/// [`VmError::Host`]; [`VmError::Tool`]: decompression failed; [`VmError::BadKernel`]: a dependency is missing.
pub(super) fn wanted(folder: &Path) -> Result<Vec<Module>, VmError> {
    let index = index(folder)?;
    let driver = DRIVERS.iter().find(|name| index.contains_key(**name));
    let mut list = Vec::new();
    for name in CHANNEL.iter().chain(&NETWORK[..1]).chain(driver).filter(|name| index.contains_key(**name)) {
        add(name, folder, &index, &mut list)?;
    }
    Ok(list)
}

/// Adds a module after its dependencies. `depends=` never names built-in code: it is generated from modules only.
fn add(
    name: &str,
    folder: &Path,
    index: &BTreeMap<String, PathBuf>,
    list: &mut Vec<Module>,
) -> Result<(), VmError> {
    let name = name.replace('-', "_");
    if list.iter().any(|module| module.name == name) {
        return Ok(());
    }
    let path = index.get(&name).ok_or_else(|| VmError::BadKernel {
        given: folder.display().to_string(),
        why: format!("another module needs {name}.ko, which is not in that folder"),
    })?;
    let content = unpack::module(path)?;
    for need in module_needs(&content) {
        add(&need, folder, index, list)?;
    }
    list.push(Module { name, content });
    Ok(())
}

/// The modules with another C driver.
pub(super) fn with_driver(mut modules: Vec<Module>, content: Vec<u8>) -> Vec<Module> {
    modules.retain(|module| !DRIVERS.contains(&module.name.as_str()));
    modules.push(Module { name: DRIVERS[0].to_owned(), content });
    modules
}

/// Whether the folder holds a Binder driver.
pub(super) fn has_driver(folder: &Path) -> bool {
    index(folder).is_ok_and(|index| DRIVERS.iter().any(|name| index.contains_key(*name)))
}

#[cfg(test)]
mod tests {
    use super::*;
    use driver::root::Fixture;

    #[test]
    fn modules_load_after_what_they_need() {
        let root = Fixture::new(
            "modules-order",
            &[
                ("kernel/a/virtio_console.ko", "\0depends=virtio_ring,virtio\0"),
                ("kernel/b/virtio-ring.ko", "\0depends=virtio\0"),
                ("kernel/b/virtio.ko", "\0depends=\0"),
                ("kernel/b/unwanted.ko", "\0depends=nowhere\0"),
                ("kernel/c/binder_linux.ko", "\0depends=\0"),
            ],
        );
        let names: Vec<_> = wanted(root.path())
            .expect("its lists can be read")
            .into_iter()
            .map(|module| module.name)
            .collect();
        assert_eq!(names, ["virtio", "virtio_ring", "virtio_console", "binder_linux"]);
    }

    #[test]
    fn another_driver_takes_the_place_of_the_kernels() {
        let module = |name: &str, content: &str| Module { name: name.into(), content: content.into() };
        let modules = vec![module("virtio", "v"), module("binder_linux", "old")];
        assert_eq!(
            with_driver(modules, "new".into()),
            [module("virtio", "v"), module("binder_linux", "new")]
        );
    }

    #[test]
    fn a_need_that_is_nowhere_is_named() {
        let root = Fixture::new("modules-need", &[("binder_linux.ko", "\0depends=lost\0")]);
        let error = wanted(root.path()).expect_err("lost is not there");
        assert!(error.to_string().contains("lost.ko"), "{error}");
    }

    #[test]
    fn dash_and_compression_do_not_change_a_name() {
        for (file, want) in [
            ("a/binder-linux.ko.xz", Some("binder_linux")),
            ("virtio.ko", Some("virtio")),
            ("virtio.ko.bak", None),
            ("modules.dep", None),
        ] {
            assert_eq!(module_name(Path::new(file)).as_deref(), want, "{file}");
        }
    }
}
