//! Room: the modules that a guest needs, found in a folder, in the order in which they load.
//! Not here: loading them (`guest::machine`).

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

use crate::vm::elf::module_needs;
use crate::vm::error::VmError;

/// Wanted in every guest: the way out for frames. Kernels that lack the files have them built in.
const CHANNEL: [&str; 2] = ["virtio_pci", "virtio_console"];
/// The driver, in C or in Rust; the first that is there.
const DRIVERS: [&str; 2] = ["binder_linux", "rust_binder"];

/// A module, decompressed.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(in crate::vm) struct Module {
    pub(in crate::vm) name: String,
    pub(in crate::vm) content: Vec<u8>,
}

impl Module {
    /// Its name below `modules/` in the guest, and in the cache.
    pub(in crate::vm) fn file_name(&self) -> String {
        format!("{}.ko", self.name)
    }

    /// Its parameters. Debian's driver makes only `/dev/binder` unless told (contract OPN-12).
    pub(in crate::vm) fn parameters(&self) -> &'static str {
        if self.name == DRIVERS[0] { "devices=binder,hwbinder,vndbinder" } else { "" }
    }
}

/// Where the modules of an image usually lie: beside it as packages unpack, or in this machine's.
pub(super) fn folder_beside(image: &Path, release: &str) -> Option<PathBuf> {
    let near = image.parent()?;
    let roots = [near.to_path_buf(), near.join(".."), PathBuf::from("/"), PathBuf::from("/usr")];
    let folders = roots.iter().map(|root| root.join("lib/modules").join(release));
    std::iter::once(near.join("modules").join(release)).chain(folders).find(|folder| folder.is_dir())
}

/// Every module file below a folder, by the module's name.
fn index(folder: &Path) -> Result<BTreeMap<String, PathBuf>, VmError> {
    let mut found = BTreeMap::new();
    let mut open = vec![folder.to_path_buf()];
    while let Some(next) = open.pop() {
        let doing = || VmError::host(format!("looking for modules in {}", next.display()));
        for entry in std::fs::read_dir(&next).map_err(doing())? {
            let entry = entry.map_err(doing())?;
            let path = entry.path();
            if entry.file_type().map_err(doing())?.is_dir() {
                open.push(path);
            } else if let Some(name) = module_name(&path) {
                found.insert(name, path);
            }
        }
    }
    Ok(found)
}

/// `binder_linux` of `.../binder-linux.ko.xz`: the kernel holds dash and underscore for the same.
fn module_name(path: &Path) -> Option<String> {
    let (name, rest) = path.file_name()?.to_str()?.split_once(".ko")?;
    ["", ".xz", ".zst", ".gz"].contains(&rest).then(|| name.replace('-', "_"))
}

/// The modules of a guest from a folder, dependencies first.
///
/// # Errors
/// [`VmError::Host`], [`VmError::Tool`] when one cannot be decompressed, [`VmError::BadKernel`] when
/// a dependency is not there.
pub(super) fn wanted(folder: &Path) -> Result<Vec<Module>, VmError> {
    let index = index(folder)?;
    let driver = DRIVERS.iter().find(|name| index.contains_key(**name));
    let mut list = Vec::new();
    for name in CHANNEL.iter().chain(driver).filter(|name| index.contains_key(**name)) {
        add(name, folder, &index, &mut list)?;
    }
    Ok(list)
}

/// Adds a module after those that it needs. What its `depends=` names is never built in: the list is
/// made when the kernel is built, of modules only.
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
    let content = decompressed(path)?;
    for need in module_needs(&content) {
        add(&need, folder, index, list)?;
    }
    list.push(Module { name, content });
    Ok(())
}

/// Whether the folder holds a Binder driver.
pub(super) fn has_driver(folder: &Path) -> bool {
    index(folder).is_ok_and(|index| DRIVERS.iter().any(|name| index.contains_key(*name)))
}

/// A module's bytes as the kernel loads them.
fn decompressed(path: &Path) -> Result<Vec<u8>, VmError> {
    let (tool, package) = match path.extension().and_then(|ending| ending.to_str()) {
        Some("xz") => ("xz", "xz-utils"),
        Some("zst") => ("zstd", "zstd"),
        Some("gz") => ("gzip", "gzip"),
        _ => return std::fs::read(path).map_err(VmError::host(format!("reading {}", path.display()))),
    };
    let failed = |why: String| VmError::Tool { command: format!("{tool} -dc {}", path.display()), why };
    let output = Command::new(tool)
        .arg("-dc")
        .arg(path)
        .stdin(Stdio::null())
        .output()
        .map_err(|error| failed(format!("{error}; install it: apt-get install {package}")))?;
    if output.status.success() {
        Ok(output.stdout)
    } else {
        Err(failed(String::from_utf8_lossy(&output.stderr).trim().to_owned()))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn folder(test: &str, files: &[(&str, &[u8])]) -> PathBuf {
        let root = std::env::temp_dir().join(format!("binderperf-modules-{test}-{}", std::process::id()));
        for (name, content) in files {
            let path = root.join(name);
            std::fs::create_dir_all(path.parent().expect("inside the folder")).expect("made");
            std::fs::write(path, content).expect("written");
        }
        root
    }

    #[test]
    fn modules_load_after_what_they_need() {
        let root = folder(
            "order",
            &[
                ("kernel/a/virtio_console.ko", b"\0depends=virtio_ring,virtio\0"),
                ("kernel/b/virtio-ring.ko", b"\0depends=virtio\0"),
                ("kernel/b/virtio.ko", b"\0depends=\0"),
                ("kernel/b/unwanted.ko", b"\0depends=nowhere\0"),
                ("kernel/c/binder_linux.ko", b"\0depends=\0"),
            ],
        );
        let names: Vec<_> =
            wanted(&root).expect("its lists can be read").into_iter().map(|module| module.name).collect();
        assert_eq!(names, ["virtio", "virtio_ring", "virtio_console", "binder_linux"]);
        std::fs::remove_dir_all(root).expect("removed");
    }

    #[test]
    fn a_need_that_is_nowhere_is_named() {
        let root = folder("need", &[("binder_linux.ko", b"\0depends=lost\0")]);
        let error = wanted(&root).expect_err("lost is not there");
        assert!(error.to_string().contains("lost.ko"), "{error}");
        std::fs::remove_dir_all(root).expect("removed");
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
