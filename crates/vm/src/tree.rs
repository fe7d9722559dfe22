//! A file tree of the host that is the guest's root (`vm --root`): a folder, or a tar archive.
//! Not here: single files (`added`), what every guest has (`initramfs`).

use std::collections::BTreeSet;
use std::fs;
use std::io::{self, Write};
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

use sys::disk::bytes_below;
use sys::private_folder::PrivateFolder;

use super::added;
use super::cpio::Writer;
use super::error::VmError;

/// A file tree.
#[derive(Debug)]
pub(super) struct Tree {
    folder: PathBuf,
    /// Where it was unpacked for this guest; goes with it.
    _unpacked: Option<PrivateFolder>,
}

impl Tree {
    /// Finds a folder, or unpacks an archive; the guest has so much memory in MiB.
    ///
    /// # Errors
    /// [`VmError::BadRoot`]: it is neither, it is empty, or too large for the memory, where the kernel unpacks it.
    pub(super) fn of(given: &Path, memory_mib: u32) -> Result<Self, VmError> {
        let bad = |why: String| VmError::BadRoot { path: given.to_path_buf(), why };
        let found = given.metadata().map_err(|error| bad(sys::errno::describe(&error)))?;
        let tree = match found.is_dir() {
            true => Self { folder: given.to_path_buf(), _unpacked: None },
            false => Self::unpacked(given).map_err(bad)?,
        };
        let bytes = bytes_below(&tree.folder).map_err(|error| bad(sys::errno::describe(&error)))?;
        if bytes == 0 {
            return Err(bad("it has no files".to_owned()));
        }
        // The archive and the files that come out of it are in memory at the same time.
        let needed_mib = (2 * bytes).div_ceil(1 << 20) + 256;
        if needed_mib > memory_mib.into() {
            return Err(bad(format!(
                "its files have {} MiB and are in the guest's memory twice while it boots: give it --memory \
                 {needed_mib}",
                bytes.div_ceil(1 << 20)
            )));
        }
        Ok(tree)
    }

    fn unpacked(archive: &Path) -> Result<Self, String> {
        let own = PrivateFolder::new("root").map_err(|error| error.to_string())?;
        let tree = Self { folder: own.path().to_owned(), _unpacked: Some(own) };
        let mut tar = Command::new("tar");
        // Devices cannot be made without rights, and mean nothing in another kernel.
        tar.args(["--extract", "--no-same-owner", "--exclude=./dev/*", "--exclude=dev/*", "--file"]);
        tar.arg(archive).arg("--directory").arg(&tree.folder).stdin(Stdio::null()).stdout(Stdio::null());
        let output =
            tar.output().map_err(|error| format!("running tar: {}", sys::errno::describe(&error)))?;
        let said = String::from_utf8_lossy(&output.stderr);
        match output.status.success() {
            true => Ok(tree),
            false => Err(format!(
                "neither a folder nor an archive: {}",
                said.lines().next().unwrap_or("tar failed")
            )),
        }
    }

    /// Whether the tree has this path, given without the slash at the beginning.
    pub(super) fn has(&self, path: &str) -> bool {
        self.folder.join(path).symlink_metadata().is_ok()
    }

    /// Adds the tree to the archive.
    ///
    /// # Errors
    /// [`VmError::Host`]: a file cannot be read.
    pub(super) fn write(&self, archive: &mut Writer<impl Write>) -> Result<(), VmError> {
        let mut folders = BTreeSet::new();
        let mut all = || -> io::Result<()> {
            for name in names(&self.folder)? {
                added::entry(archive, &self.folder.join(&name), &name, &mut folders)?;
            }
            Ok(())
        };
        all().map_err(VmError::host(format!("copying {} into the guest", self.folder.display())))
    }
}

/// Names in a folder, sorted.
fn names(folder: &Path) -> io::Result<Vec<String>> {
    let name = |entry: io::Result<fs::DirEntry>| {
        entry?.file_name().into_string().map_err(|_| io::Error::from(io::ErrorKind::InvalidFilename))
    };
    let mut names = fs::read_dir(folder)?.map(name).collect::<io::Result<Vec<String>>>()?;
    names.sort();
    Ok(names)
}

#[cfg(test)]
mod tests {
    use driver::root::Fixture;

    use super::*;

    #[test]
    fn a_folder_and_its_archive_are_the_same_tree() {
        let root = Fixture::new("tree", &[("tree/etc/name", "me"), ("tree/bin/sh", "#!")]);
        let folder = root.path().join("tree");
        let archive = root.path().join("tree.tar");
        let tar = Command::new("tar").arg("-cf").arg(&archive).arg("-C").arg(&folder).arg(".").status();
        assert!(tar.expect("tar").success());
        let packed = |tree: &Tree| {
            let mut writer = Writer::new(Vec::new());
            tree.write(&mut writer).expect("readable");
            writer.finish().expect("memory takes all")
        };
        let (one, other) = (Tree::of(&folder, 512).expect("fits"), Tree::of(&archive, 512).expect("fits"));
        assert_eq!(packed(&one), packed(&other));
        assert!(one.has("etc/name") && !one.has("etc/none"));
        let place = other.folder.clone();
        drop((one, other));
        assert!(!place.exists() && folder.exists(), "only what was unpacked goes");
    }

    #[test]
    fn what_is_no_tree_is_told() {
        let root = Fixture::new("tree-bad", &[("file", "no archive"), ("full/f", "1234")]);
        std::fs::create_dir(root.path().join("empty")).expect("made");
        let why =
            |name: &str, memory| Tree::of(&root.path().join(name), memory).expect_err("no tree").to_string();
        assert!(why("file", 512).contains("neither a folder nor an archive"), "{}", why("file", 512));
        assert!(why("none", 512).contains("ENOENT"));
        assert!(why("empty", 512).contains("no files"));
        assert!(why("full", 128).contains("--memory 257"), "{}", why("full", 128));
    }
}
