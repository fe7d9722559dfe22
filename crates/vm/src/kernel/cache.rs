//! Cache of guest kernels; each folder is complete from the moment it exists.
//! Not here: fetching kernels (`fetch`).
//!
//! `RELEASE/` holds `vmlinuz`, `config`, `modules/*.ko` and `kernel.json`; `names/NAME` holds the release that a
//! moving name ("newest", "rt") stands for. Files are never changed in place, so readers need no lock; writers take
//! one.

use std::fs::File;
use std::path::{Path, PathBuf};

use serde::{Deserialize, Serialize};

use crate::arch::Arch;
use crate::error::VmError;

use super::name::{Name, newest_first};
use super::{Kernel, Module};

/// Folder of the cache. Its name changes when guests need more modules than kernels in it were kept with.
const FOLDER: &str = "binderperf/kernels-2";

/// A cached kernel's description.
#[derive(Debug, Serialize, Deserialize)]
struct Manifest {
    release: String,
    /// Kernels that were cached before it was written down are x86-64's.
    #[serde(default)]
    arch: Option<String>,
    /// In load order.
    modules: Vec<String>,
}

/// The cache of one user.
#[derive(Debug)]
pub(crate) struct Cache {
    root: PathBuf,
}

/// The write lock, held until dropped.
#[derive(Debug)]
pub(crate) struct Writing<'a> {
    cache: &'a Cache,
    /// Temporary folder, removed on drop.
    pub(crate) scratch: PathBuf,
    _lock: File,
}

impl Drop for Writing<'_> {
    fn drop(&mut self) {
        // What cannot be removed now is removed by the next writer.
        let _ = std::fs::remove_dir_all(&self.scratch);
    }
}

impl Cache {
    /// `$XDG_CACHE_HOME/binderperf/kernels-2`, or below `~/.cache`.
    ///
    /// # Errors
    /// [`VmError::Host`]: neither variable is an absolute path.
    pub(crate) fn of_user() -> Result<Self, VmError> {
        let absolute =
            |name: &str| std::env::var_os(name).map(PathBuf::from).filter(|path| path.is_absolute());
        let base = absolute("XDG_CACHE_HOME").or_else(|| Some(absolute("HOME")?.join(".cache")));
        let none = std::io::Error::other("neither XDG_CACHE_HOME nor HOME is an absolute path");
        let base = base.ok_or(none).map_err(VmError::host("choosing a folder for kernels"))?;
        Ok(Self { root: base.join(FOLDER) })
    }

    /// The folder of all kernels.
    pub(crate) fn root(&self) -> &Path {
        &self.root
    }

    /// The kernel with this key, if it is cached.
    ///
    /// # Errors
    /// [`VmError::Host`]: it is cached but cannot be read.
    pub(crate) fn entry(&self, key: &str) -> Result<Option<Kernel>, VmError> {
        let folder = self.root.join(key);
        if !folder.is_dir() {
            return Ok(None);
        }
        let doing = || {
            VmError::host(format!("reading the cached kernel {} (remove it to fetch anew)", folder.display()))
        };
        let manifest = std::fs::read(folder.join("kernel.json")).map_err(doing())?;
        let manifest: Manifest =
            serde_json::from_slice(&manifest).map_err(std::io::Error::from).map_err(doing())?;
        let mut modules = Vec::new();
        for name in manifest.modules {
            let content = std::fs::read(folder.join("modules").join(format!("{name}.ko"))).map_err(doing())?;
            modules.push(Module { name, content });
        }
        let arch = manifest.arch.map_or(Ok(Arch::X86), |arch| arch.parse());
        let arch = arch.map_err(std::io::Error::other).map_err(doing())?;
        Ok(Some(Kernel { image: folder.join("vmlinuz"), release: manifest.release, arch, modules }))
    }

    /// The cached kernel that a name stands for.
    ///
    /// # Errors
    /// Those of [`Self::entry`].
    pub(super) fn named(&self, name: &Name) -> Result<Option<Kernel>, VmError> {
        let release = if name.is_open() {
            std::fs::read_to_string(self.root.join("names").join(name.to_string())).ok()
        } else {
            self.releases(name).into_iter().next()
        };
        release.map_or(Ok(None), |release| self.entry(release.trim()))
    }

    /// All cached releases that match a name, newest first.
    pub(super) fn releases(&self, name: &Name) -> Vec<String> {
        let entries = std::fs::read_dir(&self.root).into_iter().flatten().flatten();
        let mut found: Vec<String> = entries
            .filter_map(|entry| entry.file_name().into_string().ok())
            .filter(|key| name.fits(key))
            .collect();
        newest_first(&mut found);
        found
    }

    /// The keys of all cached kernels, sorted.
    pub(crate) fn keys(&self) -> Vec<String> {
        let below = |folder: &str| {
            let entries = std::fs::read_dir(self.root.join(folder)).into_iter().flatten().flatten();
            let is_kernel = |entry: &std::fs::DirEntry| entry.path().join("kernel.json").is_file();
            let named = entries.filter(is_kernel).filter_map(|entry| entry.file_name().into_string().ok());
            named.map(|name| format!("{folder}{name}")).collect::<Vec<String>>()
        };
        let mut keys = [below(""), below("built/")].concat();
        keys.sort();
        keys
    }

    /// Takes the write lock and removes what a killed writer left.
    ///
    /// # Errors
    /// [`VmError::Host`].
    pub(crate) fn write(&self, progress: &mut dyn FnMut(&str)) -> Result<Writing<'_>, VmError> {
        let doing = || VmError::host(format!("writing to the kernel cache {}", self.root.display()));
        std::fs::create_dir_all(self.root.join("names")).map_err(doing())?;
        let lock = File::create(self.root.join("lock")).map_err(doing())?;
        if lock.try_lock().is_err() {
            progress("waiting for another fetch to end");
            lock.lock().map_err(doing())?;
        }
        let scratch = self.root.join("scratch");
        if scratch.exists() {
            std::fs::remove_dir_all(&scratch).map_err(doing())?;
        }
        std::fs::create_dir_all(&scratch).map_err(doing())?;
        Ok(Writing { cache: self, scratch, _lock: lock })
    }
}

impl Writing<'_> {
    /// Stores a kernel under a key; returns the stored one.
    ///
    /// # Errors
    /// [`VmError::Host`].
    pub(super) fn keep(&self, key: &str, kernel: &Kernel, config: Option<&Path>) -> Result<Kernel, VmError> {
        let place = self.cache.root.join(key);
        if !place.exists() {
            let draft = self.draft(kernel, config)?;
            std::fs::rename(&draft, &place)
                .map_err(VmError::host(format!("keeping the kernel in {}", place.display())))?;
        }
        Ok(Kernel { image: place.join("vmlinuz"), ..kernel.clone() })
    }

    /// Stores a kernel in place of one that may be there, with further files (name, path); returns the stored one.
    ///
    /// # Errors
    /// [`VmError::Host`].
    pub(crate) fn replace(
        &self,
        key: &str,
        kernel: &Kernel,
        config: &Path,
        beside: &[(&str, &Path)],
    ) -> Result<Kernel, VmError> {
        let place = self.cache.root.join(key);
        let doing = || VmError::host(format!("keeping the kernel in {}", place.display()));
        let draft = self.draft(kernel, Some(config))?;
        for (name, path) in beside {
            std::fs::copy(path, draft.join(name)).map_err(doing())?;
        }
        let folder = place.parent().unwrap_or(&self.cache.root);
        std::fs::create_dir_all(folder).map_err(doing())?;
        if place.exists() {
            std::fs::rename(&place, self.scratch.join("replaced")).map_err(doing())?;
        }
        std::fs::rename(&draft, &place).map_err(doing())?;
        Ok(Kernel { image: place.join("vmlinuz"), ..kernel.clone() })
    }

    /// Removes the kernel with this key, and the moving names that stand for it.
    ///
    /// # Errors
    /// [`VmError::Host`].
    pub(crate) fn remove(&self, key: &str) -> Result<(), VmError> {
        let place = self.cache.root.join(key);
        // Gone at once; what it consists of goes with the scratch folder.
        std::fs::rename(&place, self.scratch.join("removed"))
            .and_then(|()| std::fs::remove_dir_all(self.scratch.join("removed")))
            .map_err(VmError::host(format!("removing {}", place.display())))?;
        for name in std::fs::read_dir(self.cache.root.join("names")).into_iter().flatten().flatten() {
            let stands_for_it = std::fs::read_to_string(name.path()).is_ok_and(|text| text.trim() == key);
            if stands_for_it {
                std::fs::remove_file(name.path())
                    .map_err(VmError::host(format!("removing {}", name.path().display())))?;
            }
        }
        Ok(())
    }

    /// A complete entry in the temporary folder.
    fn draft(&self, kernel: &Kernel, config: Option<&Path>) -> Result<PathBuf, VmError> {
        let draft = self.scratch.join("entry");
        let doing = || VmError::host(format!("writing a kernel into {}", draft.display()));
        std::fs::create_dir_all(draft.join("modules")).map_err(doing())?;
        std::fs::copy(&kernel.image, draft.join("vmlinuz")).map_err(doing())?;
        if let Some(config) = config {
            std::fs::copy(config, draft.join("config")).map_err(doing())?;
        }
        for module in &kernel.modules {
            std::fs::write(draft.join("modules").join(module.file_name()), &module.content)
                .map_err(doing())?;
        }
        let modules = kernel.modules.iter().map(|module| module.name.clone()).collect();
        let arch = Some(kernel.arch.to_string());
        let manifest = Manifest { release: kernel.release.clone(), arch, modules };
        let manifest = serde_json::to_vec_pretty(&manifest).map_err(std::io::Error::from).map_err(doing())?;
        std::fs::write(draft.join("kernel.json"), manifest).map_err(doing())?;
        Ok(draft)
    }

    /// Makes a moving name stand for a release.
    ///
    /// # Errors
    /// [`VmError::Host`].
    pub(super) fn point(&self, name: &Name, release: &str) -> Result<(), VmError> {
        let draft = self.scratch.join("name");
        let place = self.cache.root.join("names").join(name.to_string());
        std::fs::write(&draft, release)
            .and_then(|()| std::fs::rename(&draft, &place))
            .map_err(VmError::host(format!("writing {}", place.display())))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use driver::root::Fixture;

    fn kernel(folder: &Path, release: &str) -> Kernel {
        let image = folder.join("image");
        std::fs::write(&image, "bzImage").expect("written");
        let module = |name: &str| Module { name: name.into(), content: name.into() };
        let arch = Arch::X86;
        Kernel {
            image,
            release: release.into(),
            arch,
            modules: vec![module("virtio"), module("binder_linux")],
        }
    }

    #[test]
    fn a_kernel_comes_back_as_it_was_kept() {
        let folder = Fixture::new("kernel-cache", &[]);
        let root = folder.path();
        let cache = Cache { root: root.to_path_buf() };
        let name = |text: &str| Name::parse(text, Arch::X86).expect("a name");
        let rt = name("rt");
        assert!(cache.named(&rt).expect("it can be read").is_none(), "an empty cache has nothing");
        let writing = cache.write(&mut |_| {}).expect("it is free");
        for release in ["6.1.0-9-rt-amd64", "6.1.0-50-rt-amd64", "7.2.9-amd64"] {
            let kept = writing.keep(release, &kernel(&writing.scratch, release), None).expect("kept");
            assert_eq!(kept.image, root.join(release).join("vmlinuz"));
        }
        writing.point(&rt, "6.1.0-9-rt-amd64").expect("pointed");
        drop(writing);
        assert!(!root.join("scratch").exists(), "nothing but kernels stays");
        let back = cache.named(&rt).expect("it can be read").expect("it was kept");
        assert_eq!(back.release, "6.1.0-9-rt-amd64");
        assert_eq!(
            back.modules.iter().map(|m| m.name.as_str()).collect::<Vec<_>>(),
            ["virtio", "binder_linux"]
        );
        assert_eq!(cache.releases(&name("6.1-rt")), ["6.1.0-50-rt-amd64", "6.1.0-9-rt-amd64"]);
        let newest = cache.named(&name("7.2")).expect("it can be read");
        assert_eq!(newest.expect("it was kept").release, "7.2.9-amd64");
    }
}
