//! Files and folders of the host that are copied into the guest (`vm --add`).
//! Not here: what every guest has (`initramfs`).

use std::collections::BTreeSet;
use std::fs::{self, File};
use std::io::{self, Write};
use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};

use super::cpio::Writer;
use super::error::VmError;

/// File or folder of the host, and its path in the guest.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Added {
    from: PathBuf,
    /// Without the slash at the beginning.
    to: String,
}

impl Added {
    /// Parses `FILE[:PATH]`. Without a path, the file keeps its name and is in the guest's root folder.
    ///
    /// # Errors
    /// If there is no name, or the path leads upwards.
    pub fn parse(text: &str) -> Result<Self, String> {
        let (from, to) = text.split_once(':').unwrap_or((text, ""));
        Self::at(Path::new(from), to)
    }

    /// A file and its path in the guest; without a path as [`Self::parse`].
    ///
    /// # Errors
    /// See [`Self::parse`].
    pub fn at(from: &Path, to: &str) -> Result<Self, String> {
        let name = || from.file_name().and_then(|name| name.to_str()).unwrap_or_default();
        let to = if to.is_empty() { name() } else { to.trim_matches('/') };
        let parts: Vec<&str> = to.split('/').filter(|part| !part.is_empty()).collect();
        if from.as_os_str().is_empty() || parts.is_empty() || parts.contains(&"..") {
            return Err("it must be FILE or FILE:PATH, and PATH a path in the guest, as /data".to_owned());
        }
        Ok(Self { from: from.into(), to: parts.join("/") })
    }
}

/// Adds all to the archive, with the folders above them.
///
/// # Errors
/// If a file cannot be read, or one that was named is neither file, folder nor link. In a folder such files are left
/// out.
pub(super) fn write(archive: &mut Writer<impl Write>, added: &[Added]) -> Result<(), VmError> {
    let mut folders = BTreeSet::new();
    for Added { from, to } in added {
        let doing = VmError::host(format!("copying {} into the guest", from.display()));
        let slashes = to.match_indices('/').map(|(at, _)| &to[..at]);
        let above = slashes.filter(|above| folders.insert((*above).to_owned()));
        let made: io::Result<()> = above.into_iter().try_for_each(|above| archive.folder(above));
        let fit = || match fs::symlink_metadata(from)? {
            kind if kind.is_file() || kind.is_dir() || kind.is_symlink() => Ok(()),
            _ => Err(io::Error::other("it is neither a file nor a folder nor a link")),
        };
        made.and_then(|()| fit()).and_then(|()| entry(archive, from, to, &mut folders)).map_err(doing)?;
    }
    Ok(())
}

/// Adds a file, a link or a folder with all that is in it; others are left out.
pub(super) fn entry(
    archive: &mut Writer<impl Write>,
    from: &Path,
    to: &str,
    folders: &mut BTreeSet<String>,
) -> io::Result<()> {
    let told = |error: io::Error| io::Error::new(error.kind(), format!("{}: {error}", from.display()));
    let metadata = fs::symlink_metadata(from).map_err(told)?;
    if metadata.is_symlink() {
        let target = fs::read_link(from).map_err(told)?;
        return archive.symlink(to, &target.to_string_lossy());
    }
    if metadata.is_dir() {
        if folders.insert(to.to_owned()) {
            archive.folder(to)?;
        }
        let mut names: Vec<_> = fs::read_dir(from).map_err(told)?.collect::<Result<_, _>>().map_err(told)?;
        names.sort_by_key(fs::DirEntry::file_name);
        return names.into_iter().try_for_each(|inner| {
            let name = inner.file_name();
            let name = name.to_str().ok_or_else(|| told(io::ErrorKind::InvalidFilename.into()))?;
            entry(archive, &inner.path(), &format!("{to}/{name}"), folders)
        });
    }
    if !metadata.is_file() {
        // Devices and sockets mean nothing in another kernel.
        return Ok(());
    }
    let file = File::open(from).map_err(told)?;
    archive.file(to, metadata.permissions().mode(), metadata.len(), file).map_err(told)
}

#[cfg(test)]
mod tests {
    use sys::private_folder::PrivateFolder;

    use super::*;

    #[test]
    fn a_path_in_the_guest_is_the_name_or_what_was_said() {
        let parsed = |text| Added::parse(text).map(|added| (added.from.display().to_string(), added.to));
        for (text, from, to) in [
            ("/a/b.txt", "/a/b.txt", "b.txt"),
            ("b:/data/c", "b", "data/c"),
            ("tree:usr//lib/", "tree", "usr/lib"),
        ] {
            assert_eq!(parsed(text), Ok((from.to_owned(), to.to_owned())), "{text}");
        }
        for bad in ["", ":/x", "/", "a:/../b", "a:.."] {
            assert!(parsed(bad).is_err(), "{bad}");
        }
    }

    #[test]
    fn folders_come_before_what_is_in_them_and_links_stay_links() {
        let private = PrivateFolder::new("added").expect("a folder");
        let folder = private.path().join("tree");
        fs::create_dir_all(folder.join("in")).expect("made");
        fs::write(folder.join("in/file"), "content").expect("written");
        let _ = std::os::unix::fs::symlink("in/file", folder.join("link"));
        let mut archive = Writer::new(Vec::new());
        let added = Added::parse(&format!("{}:/x/tree", folder.display())).expect("a path");
        write(&mut archive, &[added]).expect("written");
        let bytes = archive.finish().expect("memory takes all");
        let text = String::from_utf8_lossy(&bytes);
        let places = ["x/tree\0", "x/tree/in\0", "x/tree/in/file\0", "x/tree/link\0"];
        let found: Vec<_> = places.iter().map(|name| text.find(name)).collect();
        assert!(found.is_sorted() && found.iter().all(Option::is_some), "{found:?}");
        fs::remove_dir_all(&folder).expect("removed");
        let missing = write(&mut Writer::new(Vec::new()), &[Added { from: folder, to: "x".into() }]);
        assert!(missing.is_err());
        let device = Added { from: "/dev/null".into(), to: "x".into() };
        let refused =
            write(&mut Writer::new(Vec::new()), &[device]).expect_err("a device means nothing there");
        assert!(refused.to_string().contains("neither a file nor a folder"), "{refused}");
    }
}
