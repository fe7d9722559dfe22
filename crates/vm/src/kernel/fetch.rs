//! Fetches a kernel by name from Debian's archive into the cache.
//! Not here: the single steps (`apt`, `name`, `deb`, `cache`).

use crate::error::VmError;

use super::Kernel;
use super::apt::Apt;
use super::cache::{Cache, Writing};
use super::deb::unpack;
use super::name::{Name, packages};

/// Fetches the newest release of a name, unless another process just did.
///
/// # Errors
/// [`VmError::Tool`] with apt's error; [`VmError::Host`]; [`VmError::NoKernel`]: the archive has no kernel of that
/// name.
pub(super) fn fetch(
    cache: &Cache,
    name: &Name,
    refresh: bool,
    progress: &mut dyn FnMut(&str),
) -> Result<Kernel, VmError> {
    let writing = cache.write(progress)?;
    if let (false, Some(kernel)) = (refresh, cache.named(name)?) {
        return Ok(kernel);
    }
    let mut said = None;
    for suites in name.suites() {
        match from_suites(cache, &writing, name, suites, progress) {
            Ok(Some(kernel)) => return Ok(kernel),
            Ok(None) => {}
            // The first suites are a guess; the first error is reported if all fail.
            Err(error) => said = said.or(Some(error)),
        }
    }
    Err(said.unwrap_or_else(|| VmError::NoKernel {
        wanted: name.to_string(),
        tried: vec![format!("Debian's archive, suites {}: no such kernel", name.suites()[1].join(", "))],
    }))
}

/// Fetches from these suites: lists, choice, download, unpacking. `None`: no such kernel there.
fn from_suites(
    cache: &Cache,
    writing: &Writing<'_>,
    name: &Name,
    suites: &[&str],
    progress: &mut dyn FnMut(&str),
) -> Result<Option<Kernel>, VmError> {
    let apt = Apt::new(&writing.scratch.join("apt"), suites, name.arch())?;
    progress(&format!("fetching the package lists of {}", suites.join(", ")));
    // A mirror may lack one of several suites, which matters only if the others have no kernel either.
    let updated = apt.update();
    let releases = name.releases(&apt.search(&name.pattern())?);
    let Some(release) = releases.first() else {
        return updated.map(|()| None);
    };
    let kernel = match cache.entry(release)? {
        Some(kernel) => kernel,
        None => {
            let list = packages(release, &apt.show(&format!("linux-image-{release}"))?);
            progress(&format!("fetching {} (about 100 MB, once)", list.join(", ")));
            let files = apt.download(&list)?;
            progress(&format!("unpacking {release}"));
            let (kernel, config) = unpack(&files, &writing.scratch.join("unpacked"))?;
            writing.keep(release, &kernel, config.as_deref())?
        }
    };
    if name.is_open() {
        writing.point(name, release)?;
    }
    Ok(Some(kernel))
}
