//! The guest's kernel and modules.
//! Not here: booting them (`session`).

mod apt;
mod cache;
mod deb;
mod fetch;
mod image;
mod modules;
mod name;
mod own;
mod sources;

use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};

pub(super) use modules::Module;

use super::error::VmError;
use cache::Cache;
use name::Name;

/// The user's choice.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Choice {
    /// Files (a bzImage, or the Debian packages of one kernel) or one name; empty: the newest kernel available.
    pub given: Vec<String>,
    /// Folder with the image's modules (`.../lib/modules/RELEASE`).
    pub modules: Option<PathBuf>,
    /// Look for a newer kernel of that name even if one is cached.
    pub refresh: bool,
}

/// A bootable kernel.
#[derive(Clone, Debug)]
pub(super) struct Kernel {
    pub(super) image: PathBuf,
    pub(super) release: String,
    /// In load order.
    pub(super) modules: Vec<Module>,
}

impl Kernel {
    /// The kernel's configuration file beside the image, named as in the cache or in `/boot`.
    pub(super) fn config(&self) -> Option<PathBuf> {
        let is_kept = self.image.file_name().is_some_and(|name| name == "vmlinuz");
        let name = if is_kept { "config".to_owned() } else { format!("config-{}", self.release) };
        Some(self.image.with_file_name(name)).filter(|path| path.is_file())
    }
}

/// All files below a folder.
fn files_below(root: &Path) -> Result<Vec<PathBuf>, VmError> {
    let mut files = Vec::new();
    let mut open = vec![root.to_path_buf()];
    while let Some(folder) = open.pop() {
        let doing = || VmError::host(format!("reading {}", folder.display()));
        for entry in std::fs::read_dir(&folder).map_err(doing())? {
            let entry = entry.map_err(doing())?;
            let list = if entry.file_type().map_err(doing())?.is_dir() { &mut open } else { &mut files };
            list.push(entry.path());
        }
    }
    Ok(files)
}

/// Finds the chosen kernel, fetching it if necessary.
///
/// # Errors
/// [`VmError::BadKernel`], [`VmError::NoKernel`], [`VmError::Tool`], [`VmError::Host`].
pub(super) fn resolve(choice: &Choice, progress: &mut dyn FnMut(&str)) -> Result<Kernel, VmError> {
    match choice.given.as_slice() {
        [] => newest(choice.refresh, progress),
        files if files.iter().all(|given| is_file(given)) => {
            from_files(files, choice.modules.as_deref(), progress)
        }
        [name] => {
            let bad = |why| VmError::BadKernel { given: name.clone(), why };
            named(&name.parse().map_err(bad)?, choice.refresh, progress)
        }
        several => Err(VmError::BadKernel {
            given: several.join(" "),
            why: "--kernel may be repeated for the packages of one kernel, not for names".into(),
        }),
    }
}

fn is_file(given: &str) -> bool {
    given.contains('/') || Path::new(given).is_file()
}

/// Whether a value of `--kernel` is a bootable file, or possibly a name.
pub fn may_boot(given: &str) -> bool {
    !is_file(given) || image::release(Path::new(given)).is_ok() || deb::is_package(Path::new(given))
}

/// The newest available kernel: from the cache, from Debian, else a local kernel with a Binder driver.
fn newest(refresh: bool, progress: &mut dyn FnMut(&str)) -> Result<Kernel, VmError> {
    let refused = match named(&Name::NEWEST, refresh, progress) {
        Err(VmError::NoKernel { tried, .. }) => tried,
        other => return other,
    };
    if let Ok(cache) = Cache::of_user()
        && let Some(release) = cache.releases(&Name::NEWEST).first()
        && let Some(kernel) = cache.entry(release)?
    {
        return Ok(kernel);
    }
    own::kernel().map_err(|why| VmError::NoKernel {
        wanted: "this guest".into(),
        tried: refused.into_iter().chain(["the cache: it holds none".into(), why]).collect(),
    })
}

/// A kernel by name, from the cache or from Debian.
fn named(name: &Name, refresh: bool, progress: &mut dyn FnMut(&str)) -> Result<Kernel, VmError> {
    let cache = Cache::of_user()?;
    if let (false, Some(kernel)) = (refresh, cache.named(name)?) {
        return Ok(kernel);
    }
    fetch::fetch(&cache, name, refresh, progress).or_else(|error| match cache.named(name)? {
        // The update failed; the cached kernel is used.
        Some(kernel) => Ok(kernel),
        None => Err(match error {
            none @ VmError::NoKernel { .. } => none,
            other => VmError::NoKernel { wanted: name.to_string(), tried: vec![other.to_string()] },
        }),
    })
}

/// A kernel from the user's files.
fn from_files(
    files: &[String],
    folder: Option<&Path>,
    progress: &mut dyn FnMut(&str),
) -> Result<Kernel, VmError> {
    let paths: Vec<PathBuf> = files.iter().map(PathBuf::from).collect();
    if paths.iter().all(|path| deb::is_package(path)) {
        return from_packages(&paths, progress);
    }
    match paths.as_slice() {
        [image] => from_image(image, folder),
        _ => Err(VmError::BadKernel {
            given: files.join(" "),
            why: "of several files each must be a Debian package of the same kernel".into(),
        }),
    }
}

/// An image and the modules beside it.
fn from_image(image: &Path, folder: Option<&Path>) -> Result<Kernel, VmError> {
    let release = image::release(image)?;
    let folder = match folder {
        Some(folder) if folder.is_dir() => Some(folder.to_path_buf()),
        Some(folder) => {
            let why = format!("its modules should be in {}, which is not a folder", folder.display());
            return Err(VmError::BadKernel { given: image.display().to_string(), why });
        }
        None => modules::folder_beside(image, &release),
    };
    let modules = folder.map_or(Ok(Vec::new()), |folder| modules::wanted(&folder))?;
    Ok(Kernel { image: image.to_path_buf(), release, modules })
}

/// A kernel from Debian packages, cached by their sizes and modification times.
fn from_packages(paths: &[PathBuf], progress: &mut dyn FnMut(&str)) -> Result<Kernel, VmError> {
    let mut key = String::from("deb");
    for path in paths {
        let meta = path.metadata().map_err(VmError::host(format!("reading {}", path.display())))?;
        key.push_str(&format!("-{:x}.{:x}.{:x}", meta.len(), meta.mtime(), meta.mtime_nsec()));
    }
    let cache = Cache::of_user()?;
    if let Some(kernel) = cache.entry(&key)? {
        return Ok(kernel);
    }
    let writing = cache.write(progress)?;
    progress("unpacking the kernel's packages");
    let (kernel, config) = deb::unpack(paths, &writing.scratch.join("unpacked"))?;
    writing.keep(&key, &kernel, config.as_deref())
}
