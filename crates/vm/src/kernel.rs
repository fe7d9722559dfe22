//! The guest's kernel and modules.
//! Not here: booting them (`session`).

mod apt;
pub(crate) mod built;
mod cache;
mod deb;
mod fetch;
pub(crate) mod headers;
mod image;
mod linux_source;
mod modules;
mod name;
mod own;
mod sources;
mod unpack;

use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};

pub(crate) use cache::Cache;
pub(crate) use headers::Headers;
pub(crate) use linux_source::{SourcePackage, download, is_of};
pub(super) use modules::Module;
pub(crate) use unpack::tool;

use super::arch::Arch;
use super::elf::module_release;
use super::error::VmError;
use name::Name;

/// The user's choice.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Choice {
    /// Files (an image, or the Debian packages of one kernel) or one name; empty: the newest kernel available.
    pub given: Vec<String>,
    /// The kernel's architecture; `None`: what the file or the name says, else this machine's.
    pub arch: Option<Arch>,
    /// Folder with the image's modules (`.../lib/modules/RELEASE`).
    pub modules: Option<PathBuf>,
    /// A driver's module that takes the place of the kernel's own.
    pub driver: Option<PathBuf>,
    /// Look for a newer kernel of that name even if one is cached.
    pub refresh: bool,
}

impl Choice {
    /// The words of `--kernel` that choose the same kernel without `--arch`. A file says its architecture by itself.
    pub(super) fn words(&self) -> Vec<String> {
        let other = self.arch.filter(|arch| *arch != Arch::own()).map(|arch| arch.facts().debian);
        match (&self.given[..], other) {
            ([], Some(arch)) => vec![arch.to_owned()],
            ([name], Some(arch)) if has_no_arch(name, arch) => {
                vec![format!("{name}-{arch}")]
            }
            (given, _) => given.to_vec(),
        }
    }
}

/// Whether a word of `--kernel` is a name that this architecture has to be added to.
fn has_no_arch(word: &str, arch: &str) -> bool {
    !word.ends_with(arch) && built::name(word).is_none() && !Path::new(word).exists()
}

/// A bootable kernel.
#[derive(Clone, Debug)]
pub(crate) struct Kernel {
    pub(super) image: PathBuf,
    pub(crate) release: String,
    pub(crate) arch: Arch,
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

    /// Words for the command line of a kernel that checks itself: it stops at its first report, so that the report belongs to
    /// what ran, and nothing runs on behind it.
    pub(super) fn stops(&self) -> Vec<String> {
        let text = self.config().and_then(|path| std::fs::read_to_string(path).ok());
        stops(&text.unwrap_or_default())
    }
}

/// Those words for this configuration.
fn stops(config: &str) -> Vec<String> {
    let has = |option: &str| config.lines().any(|line| line.strip_suffix("=y") == Some(option));
    let kasan = has("CONFIG_KASAN");
    let words = [
        (kasan, "kasan.fault=panic"),
        (kasan || has("CONFIG_PROVE_LOCKING") || has("CONFIG_DEBUG_ATOMIC_SLEEP"), "panic_on_warn=1"),
    ];
    words.iter().filter(|(is_for, _)| *is_for).map(|(_, word)| (*word).to_owned()).collect()
}

/// All files below a folder.
pub(crate) fn files_below(root: &Path) -> Result<Vec<PathBuf>, VmError> {
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
pub(crate) fn resolve(choice: &Choice, progress: &mut dyn FnMut(&str)) -> Result<Kernel, VmError> {
    let arch = choice.arch.unwrap_or(Arch::own());
    let kernel = match choice.given.as_slice() {
        [] => newest(arch, choice.refresh, progress),
        files if files.iter().all(|given| is_file(given)) => {
            from_files(files, choice.modules.as_deref(), progress)
        }
        [name] if built::name(name).is_some() => kept(name),
        [name] => match fetched(name)? {
            Some(kernel) => Ok(kernel),
            None => {
                let bad = |why| VmError::BadKernel { given: name.clone(), why };
                named(&Name::parse(name, arch).map_err(bad)?, choice.refresh, progress)
            }
        },
        several => Err(VmError::BadKernel {
            given: several.join(" "),
            why: "--kernel may be repeated for the packages of one kernel, not for names".into(),
        }),
    }?;
    if let Some(wanted) = choice.arch.filter(|wanted| *wanted != kernel.arch) {
        return Err(VmError::BadKernel {
            given: choice.given.join(" "),
            why: format!("it is a kernel for {}, and --arch is {wanted}", kernel.arch),
        });
    }
    match &choice.driver {
        Some(driver) => with_driver(kernel, driver),
        None => Ok(kernel),
    }
}

/// The kernel with another driver's module.
fn with_driver(kernel: Kernel, driver: &Path) -> Result<Kernel, VmError> {
    let bad = |why: String| VmError::BadKernel { given: driver.display().to_string(), why };
    let content = unpack::module(driver)?;
    let release = module_release(&content).ok_or_else(|| bad("it is no kernel module".into()))?;
    if release != kernel.release {
        return Err(bad(format!("it is a module for {release}, and the kernel is {}", kernel.release)));
    }
    let modules = modules::with_driver(kernel.modules, content);
    Ok(Kernel { modules, ..kernel })
}

/// A kernel that was fetched, by its whole release, as `vm kernels` lists it.
fn fetched(given: &str) -> Result<Option<Kernel>, VmError> {
    let is_release = given.starts_with(|c: char| c.is_ascii_digit()) && !given.contains('/');
    if is_release { Cache::of_user()?.entry(given) } else { Ok(None) }
}

/// A kernel that was built here, by `built:NAME`.
fn kept(given: &str) -> Result<Kernel, VmError> {
    let bad = |why| VmError::BadKernel { given: given.to_owned(), why };
    let key = built::name(given)
        .and_then(built::key)
        .ok_or_else(|| bad("that is no name of a built kernel".into()))?;
    Cache::of_user()?.entry(&key)?.ok_or_else(|| {
        bad("no kernel of that name was built; `binderperf vm kernels` lists those that were".into())
    })
}

/// The machine's Debian archive with its newest suite, as a file of apt's sources.
///
/// # Errors
/// [`VmError::Tool`]: apt has no source for Debian's archive.
pub(crate) fn sid_sources() -> Result<String, VmError> {
    let archive = sources::machine_archive(Path::new("/etc/apt"));
    let archive = archive.map_err(|why| VmError::Tool { command: "apt".into(), why })?;
    let arch = if cfg!(target_arch = "aarch64") { Arch::Arm } else { Arch::X86 };
    Ok(archive.stanza(&["sid"], arch.facts().debian))
}

/// A kernel in an image that was just built.
///
/// # Errors
/// [`VmError::BadKernel`]: it is no image of a kernel.
pub(crate) fn of_image(image: &Path) -> Result<Kernel, VmError> {
    let bad = |why: String| VmError::BadKernel { given: image.display().to_string(), why };
    let facts = image::facts(&image::read(image)?).map_err(bad)?;
    Ok(Kernel { image: image.to_path_buf(), release: facts.release, arch: facts.arch, modules: Vec::new() })
}

fn is_file(given: &str) -> bool {
    given.contains('/') || Path::new(given).is_file()
}

/// Whether a value of `--kernel` is a bootable file, or possibly a name.
pub fn may_boot(given: &str) -> bool {
    let path = Path::new(given);
    let is_image =
        || image::read(path).is_ok_and(|file| image::facts(&file).is_ok() || image::packed(&file).is_some());
    !is_file(given) || deb::is_package(path) || is_image()
}

/// The newest available kernel: from the cache, from Debian, else a local kernel with a Binder driver.
fn newest(arch: Arch, refresh: bool, progress: &mut dyn FnMut(&str)) -> Result<Kernel, VmError> {
    let name = Name::newest(arch);
    let refused = match named(&name, refresh, progress) {
        Err(VmError::NoKernel { tried, .. }) => tried,
        other => return other,
    };
    if let Ok(cache) = Cache::of_user()
        && let Some(release) = cache.releases(&name).first()
        && let Some(kernel) = cache.entry(release)?
    {
        return Ok(kernel);
    }
    let own = if arch == Arch::own() {
        own::kernel()
    } else {
        Err(format!("this machine's own: it is not for {arch}"))
    };
    own.map_err(|why| VmError::NoKernel {
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
        [image] => from_image(image, folder, progress),
        _ => Err(VmError::BadKernel {
            given: files.join(" "),
            why: "of several files each must be a Debian package of the same kernel".into(),
        }),
    }
}

/// An image and the modules beside it.
fn from_image(
    image: &Path,
    folder: Option<&Path>,
    progress: &mut dyn FnMut(&str),
) -> Result<Kernel, VmError> {
    let bad = |why: String| VmError::BadKernel { given: image.display().to_string(), why };
    let content = image::read(image)?;
    let unpacked = match image::packed(&content) {
        Some(packed) => Some(unpack::zboot(&packed).map_err(bad)?),
        None => None,
    };
    let facts = image::facts(unpacked.as_deref().unwrap_or(&content)).map_err(bad)?;
    let folder = match folder {
        Some(folder) if folder.is_dir() => Some(folder.to_path_buf()),
        Some(folder) => {
            return Err(bad(format!("its modules should be in {}, which is not a folder", folder.display())));
        }
        None => modules::folder_beside(image, &facts.release),
    };
    let modules = folder.map_or(Ok(Vec::new()), |folder| modules::wanted(&folder))?;
    let kernel = Kernel { image: image.to_path_buf(), release: facts.release, arch: facts.arch, modules };
    match unpacked {
        None => Ok(kernel),
        Some(content) => keep_unpacked(kernel, &content, progress),
    }
}

/// A kernel whose image was unpacked, from the cache, where QEMU finds it.
fn keep_unpacked(kernel: Kernel, content: &[u8], progress: &mut dyn FnMut(&str)) -> Result<Kernel, VmError> {
    let key = file_key("zboot", [kernel.image.as_path()])?;
    let cache = Cache::of_user()?;
    if let Some(kept) = cache.entry(&key)? {
        return Ok(Kernel { modules: kernel.modules, ..kept });
    }
    let config = kernel.config();
    let writing = cache.write(progress)?;
    let image = writing.scratch.join("unpacked");
    std::fs::write(&image, content).map_err(VmError::host(format!("writing {}", image.display())))?;
    writing.keep(&key, &Kernel { image, ..kernel }, config.as_deref())
}

/// A cache key that changes with the files' sizes and modification times.
fn file_key<'a>(kind: &str, paths: impl IntoIterator<Item = &'a Path>) -> Result<String, VmError> {
    let mut key = kind.to_owned();
    for path in paths {
        let meta = path.metadata().map_err(VmError::host(format!("reading {}", path.display())))?;
        key.push_str(&format!("-{:x}.{:x}.{:x}", meta.len(), meta.mtime(), meta.mtime_nsec()));
    }
    Ok(key)
}

/// A kernel from Debian packages, cached by their sizes and modification times.
fn from_packages(paths: &[PathBuf], progress: &mut dyn FnMut(&str)) -> Result<Kernel, VmError> {
    let key = file_key("deb", paths.iter().map(PathBuf::as_path))?;
    let cache = Cache::of_user()?;
    if let Some(kernel) = cache.entry(&key)? {
        return Ok(kernel);
    }
    let writing = cache.write(progress)?;
    progress("unpacking the kernel's packages");
    let (kernel, config) = deb::unpack(paths, &writing.scratch.join("unpacked"))?;
    writing.keep(&key, &kernel, config.as_deref())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_kernel_that_checks_itself_stops_at_a_report_and_another_goes_on() {
        assert!(stops("CONFIG_KASAN_GENERIC=y\n# CONFIG_KASAN is not set\nCONFIG_SLUB_DEBUG=y\n").is_empty());
        assert_eq!(stops("CONFIG_SMP=y\nCONFIG_KASAN=y\n"), ["kasan.fault=panic", "panic_on_warn=1"]);
        assert_eq!(stops("CONFIG_PROVE_LOCKING=y\n"), ["panic_on_warn=1"]);
    }

    #[test]
    fn a_kernel_of_another_architecture_is_named_with_it() {
        let words = |given: &[&str], arch| {
            let given = given.iter().map(|word| (*word).to_owned()).collect();
            Choice { given, arch, ..Choice::default() }.words().join(" ")
        };
        let other = Arch::ALL.into_iter().find(|arch| *arch != Arch::own());
        let suffix = other.map(|arch| arch.facts().debian).expect("there are two");
        assert_eq!(words(&[], other), suffix);
        assert_eq!(words(&["6.12"], other), format!("6.12-{suffix}"));
        assert_eq!(words(&[&format!("rt-{suffix}")], other), format!("rt-{suffix}"));
        assert_eq!(words(&["/"], other), "/", "a file");
        assert_eq!(words(&["6.12"], Some(Arch::own())), "6.12");
        assert_eq!(words(&["6.12"], None), "6.12");
    }
}
