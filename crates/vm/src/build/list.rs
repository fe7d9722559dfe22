//! Kernels in the cache: listed, explained, removed.
//! Not here: building (`build`), fetching (`kernel::fetch`).

use std::time::Duration;

use crate::arch::Arch;
use crate::error::VmError;
use crate::kernel::{Cache, built};

use super::error::BuildError;
use super::recipe::Recipe;
use super::workshop::{Workshop, size};

/// A kernel in the cache.
#[derive(Clone, Debug)]
pub struct Kept {
    /// The word for `--kernel`.
    pub word: String,
    /// `uname -r`.
    pub release: String,
    /// The architecture.
    pub arch: Arch,
    /// Size of everything that is kept of it, in bytes.
    pub bytes: u64,
    /// The product, if there is one.
    pub build: Option<Explained>,
}

/// A built kernel's origin.
#[derive(Clone, Debug)]
pub struct Explained {
    /// The source as it was given.
    pub source: String,
    /// The driver.
    pub driver: String,
    /// Who built: `gcc`, `llvm` or `debian-llvm`.
    pub tools: String,
    /// How long it took.
    pub took: Duration,
    /// The patches' files.
    pub patches: Vec<String>,
    /// Lines of the configuration that the usual kernel of this driver and architecture has not; `-LINE`: only that one.
    pub differs: Vec<String>,
}

/// All kernels in the cache.
///
/// # Errors
/// [`VmError::Host`]: there is no cache, or an entry cannot be read.
pub fn kept() -> Result<Vec<Kept>, VmError> {
    let cache = Cache::of_user()?;
    let mut all = Vec::new();
    for key in cache.keys() {
        let Some(kernel) = cache.entry(&key)? else { continue };
        let place = cache.root().join(&key);
        let build = Recipe::read(&place).map(|recipe| Explained {
            source: recipe.source,
            driver: recipe.driver,
            tools: recipe.tools,
            took: Duration::from_secs(recipe.seconds),
            patches: recipe.patches,
            differs: recipe.differs,
        });
        let word = key.strip_prefix("built/").map_or_else(|| key.clone(), |name| format!("built:{name}"));
        all.push(Kept { word, release: kernel.release, arch: kernel.arch, bytes: size(&place), build });
    }
    Ok(all)
}

/// Removes a kernel by its word in the list, with or without `built:`.
///
/// # Errors
/// [`VmError::BadKernel`]: the cache has none of that name; [`VmError::Host`].
pub fn remove(word: &str) -> Result<(), VmError> {
    let cache = Cache::of_user()?;
    let keys = cache.keys();
    let named = built::key(built::name(word).unwrap_or(word));
    let key = keys.iter().find(|key| Some(*key) == named.as_ref() || key.as_str() == word);
    let none = || VmError::BadKernel {
        given: word.to_owned(),
        why: "the cache has none of that name; `binderperf vm kernels` lists what it has".to_owned(),
    };
    let key = key.ok_or_else(none)?;
    cache.write(&mut |_| {})?.remove(key)
}

/// Removes sources and objects of all builds; returns the bytes.
///
/// # Errors
/// [`BuildError::Vm`]: a build is at work, or they cannot be removed.
pub fn clean() -> Result<u64, BuildError> {
    Workshop::beside(&Cache::of_user()?).clean()
}
