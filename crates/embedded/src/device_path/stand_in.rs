//! Files that are looked at in place of devices: the folder `binderfs` in a directory of contexts, as a binderfs is at first.
//! Devices lead to no driver there: what they are opened for is the library's or the supervisor's to do.
//! Facts: contract FS-01, FS-06.

use std::ffi::OsStr;
use std::fs::File;
use std::io;
use std::os::fd::OwnedFd;
use std::os::unix::ffi::OsStrExt;
use std::path::{Path, PathBuf};

use sys::call::{O_ACCMODE, O_CREAT, O_DIRECTORY, O_EXCL, O_PATH, O_TRUNC};
use sys::errno::{EACCES, EEXIST, EINVAL, EIO, EISDIR, ENOTDIR, ENXIO};
use sys::folder::Folder;
use sys::path::terminated;

use super::{CONTROL, Found, NAMES, is_name};
use crate::directory;

/// The folder's name in a directory of contexts.
const FOLDER: &str = "binderfs";
/// Name of the file that is open in place of `binder-control`, next to the folder.
const OPENED: &str = "binderfs.control";
/// Features that a binderfs names and the driver has.
const FEATURES: [&str; 3] = ["oneway_spam_detection", "extended_error", "freeze_notification"];

/// The folder of a directory of contexts.
pub(super) fn folder(directory: &Path) -> PathBuf {
    directory.join(FOLDER)
}

/// A directory of contexts, which may not be there yet, by its path without links: so the kernel names what is open in it.
pub(super) fn without_links(directory: &Path) -> io::Result<PathBuf> {
    let above = directory.parent().filter(|above| !above.as_os_str().is_empty()).unwrap_or(Path::new("."));
    let above = sys::path::real(&terminated(above)?)?;
    // The directory itself is no link.
    Ok(Path::new(OsStr::from_bytes(&above)).join(directory.file_name().unwrap_or_default()))
}

/// The file that is open in place of `binder-control`, by the folder.
pub(super) fn control_beside(folder: &Path) -> PathBuf {
    folder.with_file_name(OPENED)
}

/// The file that is open in place of `binder-control`.
#[must_use]
pub fn control_file(directory: &Path) -> PathBuf {
    directory.join(OPENED)
}

/// Lets be what is there already.
fn or_there(made: io::Result<()>) -> io::Result<()> {
    match made {
        Err(error) if error.kind() == io::ErrorKind::AlreadyExists => Ok(()),
        other => other,
    }
}

/// Makes the folder if it is missing.
///
/// # Errors
/// `EIO`: the directory of contexts cannot be used. Those of making files.
pub fn ensure(directory: &Path) -> io::Result<()> {
    ensured(directory).map(drop)
}

/// The directory of contexts, found to be this user's alone, and the folder in it, with all that a binderfs has at first.
fn ensured(directory: &Path) -> io::Result<(Folder, Folder)> {
    let contexts = directory::ensure(directory).map_err(|_| io::Error::from_raw_os_error(EIO))?;
    or_there(contexts.make_folder(OsStr::new(FOLDER), 0o755))?;
    let folder = contexts.folder(OsStr::new(FOLDER))?;
    let last = OsStr::new(OPENED);
    if contexts.look(last).is_err() {
        fill(&folder)?;
        or_there(contexts.create_file(last, 0o600).map(drop))?;
    }
    Ok((contexts, folder))
}

fn fill(folder: &Folder) -> io::Result<()> {
    for name in NAMES.map(|(name, _)| name).into_iter().chain([CONTROL]) {
        or_there(folder.make_device(OsStr::new(name)))?;
    }
    let name = OsStr::new("features");
    or_there(folder.make_folder(name, 0o755))?;
    let features = folder.folder(name)?;
    FEATURES.iter().try_for_each(|name| features.replace_file(OsStr::new(name), b"1\n", 0o444))
}

/// `BINDER_CTL_ADD`: a device is seen in the folder.
///
/// # Errors
/// `EEXIST`: it is there. `EINVAL`: no name. Those of [`ensure`].
pub fn add_device(directory: &Path, name: &[u8]) -> io::Result<()> {
    let name = name.split(|byte| *byte == 0).next().and_then(|name| std::str::from_utf8(name).ok());
    let name = name.filter(|name| is_name(name)).ok_or_else(|| io::Error::from_raw_os_error(EINVAL))?;
    ensured(directory)?.1.make_device(OsStr::new(name))
}

/// The file that is looked at in place of a device that was opened, which makes its context.
///
/// # Errors
/// Those of [`ensure`].
pub fn shown(directory: &Path, name: &str) -> io::Result<PathBuf> {
    or_there(add_device(directory, name.as_bytes()))?;
    Ok(folder(directory).join(name))
}

/// Opens what is no device, with flags of `open(2)`. Nothing is made or changed.
///
/// # Errors
/// `EACCES`: a file of a binderfs is to be written, or made. `EEXIST`, `EISDIR`, `ENOTDIR`, `ENOENT`. Those of [`ensure`].
pub fn open(directory: &Path, found: &Found, flags: i32) -> io::Result<OwnedFd> {
    let refused = |errno| Err(io::Error::from_raw_os_error(errno));
    let flags = if flags & O_PATH == 0 { flags } else { flags & O_DIRECTORY };
    let (creates, is_new) = (flags & O_CREAT != 0, flags & O_EXCL != 0);
    let writes = flags & (O_ACCMODE | O_TRUNC) != 0;
    let (contexts, folder) = ensured(directory)?;
    let below = match found {
        Found::Device { .. } => return refused(ENXIO),
        Found::Control if creates && is_new => return refused(EEXIST),
        Found::Control if flags & O_DIRECTORY != 0 => return refused(ENOTDIR),
        Found::Control => return contexts.update_file(OsStr::new(OPENED)).map(OwnedFd::from),
        Found::Entry(below) => below,
    };
    match entry(folder, below) {
        Err(error) if creates && error.kind() == io::ErrorKind::NotFound => refused(EACCES),
        Err(error) => Err(error),
        Ok(_) if creates && is_new => refused(EEXIST),
        Ok(Entry::Folder(_)) if creates || writes => refused(EISDIR),
        Ok(Entry::File(_)) if flags & O_DIRECTORY != 0 => refused(ENOTDIR),
        Ok(Entry::File(_)) if writes => refused(EACCES),
        Ok(Entry::Folder(folder)) => Ok(folder.into()),
        Ok(Entry::File(file)) => Ok(file.into()),
    }
}

/// An open entry of the folder.
enum Entry {
    Folder(Folder),
    File(File),
}

/// Opens an entry below a folder, to be read.
fn entry(mut folder: Folder, below: &str) -> io::Result<Entry> {
    let mut parts = below.split('/').filter(|part| !part.is_empty()).map(OsStr::new).peekable();
    while let Some(part) = parts.next() {
        folder = match folder.folder(part) {
            Err(error) if error.raw_os_error() == Some(ENOTDIR) && parts.peek().is_none() => {
                return folder.read_file(part).map(Entry::File);
            }
            other => other?,
        };
    }
    Ok(Entry::Folder(folder))
}

#[cfg(test)]
mod tests {
    use std::fs::{self, Permissions};
    use std::os::unix::fs::PermissionsExt;

    use super::*;

    #[test]
    fn a_folder_has_what_a_binderfs_has() {
        let private = sys::private_folder::PrivateFolder::new("test").expect("a folder");
        let directory = private.path().join("contexts");
        for _ in 0..2 {
            ensure(&directory).expect("made, or there");
        }
        let mut names: Vec<_> = fs::read_dir(folder(&directory))
            .expect("there")
            .flatten()
            .map(|entry| entry.file_name())
            .collect();
        names.sort();
        assert_eq!(names, ["binder", "binder-control", "features", "hwbinder", "vndbinder"]);
        add_device(&directory, b"new\0rest").expect("a name");
        assert!(folder(&directory).join("new").exists());
        let error = |name: &[u8]| add_device(&directory, name).expect_err("refused").raw_os_error();
        assert_eq!(error(b"new\0"), Some(EEXIST));
        assert_eq!(
            (error(b"features\0"), error(b"a/b\0"), error(b"\0")),
            (Some(EINVAL), Some(EINVAL), Some(EINVAL))
        );
    }

    #[test]
    fn a_feature_may_be_read_only() {
        let private = sys::private_folder::PrivateFolder::new("test").expect("a folder");
        let directory = private.path().join("contexts");
        ensure(&directory).expect("made");
        let features = folder(&directory).join("features");
        for name in FEATURES {
            let mode = features.join(name).metadata().expect("there").permissions().mode();
            assert_eq!(mode & 0o222, 0, "{name}: {mode:o}");
        }
        assert_eq!(fs::read_dir(features).expect("there").count(), FEATURES.len(), "no draft is left");
    }

    #[test]
    fn what_is_no_device_is_opened_to_be_read() {
        let private = sys::private_folder::PrivateFolder::new("test").expect("a folder");
        let directory = private.path().join("contexts");
        let opened = |below: &str, flags| open(&directory, &Found::Entry(below.to_owned()), flags);
        let error = |below: &str, flags| opened(below, flags).expect_err("refused").raw_os_error();
        let text = opened("features/extended_error", 0).map(|fd| io::read_to_string(File::from(fd)));
        assert_eq!(text.expect("there").expect("read"), "1\n");
        opened("", O_DIRECTORY).expect("the folder");
        opened("features", 0).expect("a folder");
        let write = sys::call::O_RDWR;
        assert_eq!(error("features/extended_error", write), Some(EACCES));
        for (below, flags, errno) in [
            ("features/extended_error", O_TRUNC, EACCES),
            ("features/extended_error", O_CREAT | O_EXCL, EEXIST),
            ("features/none", O_CREAT | write, EACCES),
            ("features", O_CREAT, EISDIR),
        ] {
            assert_eq!(error(below, flags), Some(errno), "{below} {flags:o}");
        }
        opened("features/extended_error", O_CREAT).expect("there");
        assert_eq!((error("features", write), error("none", 0)), (Some(EISDIR), Some(sys::errno::ENOENT)));
        assert_eq!(error("features/extended_error", O_DIRECTORY), Some(ENOTDIR));
        open(&directory, &Found::Control, write).expect("to add devices");
        assert_eq!(
            open(&directory, &Found::Control, O_DIRECTORY).expect_err("a file").raw_os_error(),
            Some(ENOTDIR)
        );
        // What somebody of the same user puts there does not hold the supervisor up.
        std::os::unix::fs::symlink("/etc/passwd", folder(&directory).join("link")).expect("linked");
        assert!(opened("link", 0).is_err());
    }

    #[test]
    fn a_directory_that_others_reach_is_refused_and_nothing_written() {
        let private = sys::private_folder::PrivateFolder::new("test").expect("a folder");
        let directory = private.path().join("contexts");
        fs::create_dir(&directory).expect("made");
        // As if all had been made.
        fs::write(control_file(&directory), "").expect("written");
        fs::create_dir(folder(&directory)).expect("made");
        let refused = || {
            let results =
                [ensure(&directory), add_device(&directory, b"new"), shown(&directory, "binder").map(drop)];
            for result in results {
                assert_eq!(result.expect_err("others reach it").raw_os_error(), Some(EIO));
            }
            assert_eq!(fs::read_dir(folder(&directory)).expect("there").count(), 0);
        };
        fs::set_permissions(&directory, Permissions::from_mode(0o755)).expect("chmod");
        refused();
        fs::set_permissions(&directory, Permissions::from_mode(0o700)).expect("chmod");
        // Only root can give it away.
        if std::os::unix::fs::chown(&directory, Some(1), None).is_ok() {
            refused();
        }
    }

    #[test]
    fn a_link_in_place_of_the_folder_is_not_followed() {
        let private = sys::private_folder::PrivateFolder::new("test").expect("a folder");
        let (directory, target) = (private.path().join("contexts"), private.path().join("target"));
        fs::create_dir(&target).expect("made");
        directory::ensure(&directory).expect("made");
        std::os::unix::fs::symlink(&target, folder(&directory)).expect("linked");
        assert!(ensure(&directory).is_err());
        assert_eq!(fs::read_dir(&target).expect("there").count(), 0);
    }
}
