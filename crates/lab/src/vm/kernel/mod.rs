//! Room: which kernel a guest boots, and with which modules.
//! Not here: booting it (`session`).

mod image;
mod modules;

use std::path::{Path, PathBuf};

pub(super) use modules::Module;

use super::error::VmError;

/// What the user asked for.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Choice {
    /// Files (a bzImage, Debian packages) or one name; empty: the newest that can be had.
    pub given: Vec<String>,
    /// Folder with the image's modules (`.../lib/modules/RELEASE`).
    pub modules: Option<PathBuf>,
    /// Look for a newer kernel of that name even if one is in the cache.
    pub refresh: bool,
}

/// A kernel ready to boot.
#[derive(Clone, Debug)]
pub(super) struct Kernel {
    pub(super) image: PathBuf,
    pub(super) release: String,
    /// In the order in which they are to be loaded.
    pub(super) modules: Vec<Module>,
}

/// Finds, and fetches if it must, the kernel of choice.
///
/// # Errors
/// [`VmError::BadKernel`], [`VmError::NoKernel`], [`VmError::Tool`], [`VmError::Host`].
pub(super) fn resolve(choice: &Choice, progress: &mut dyn FnMut(&str)) -> Result<Kernel, VmError> {
    progress("looking for a kernel");
    match choice.given.first() {
        Some(image) => from_image(Path::new(image), choice.modules.as_deref()),
        None => Err(VmError::NoKernel { wanted: "this guest".into(), tried: vec!["none was given".into()] }),
    }
}

/// A kernel image of the user's own.
fn from_image(image: &Path, folder: Option<&Path>) -> Result<Kernel, VmError> {
    let release = image::release(image)?;
    let folder = match folder {
        Some(folder) => Some(folder.to_path_buf()),
        None => modules::folder_beside(image, &release),
    };
    let modules = folder.map_or(Ok(Vec::new()), |folder| modules::wanted(&folder))?;
    Ok(Kernel { image: image.to_path_buf(), release, modules })
}
