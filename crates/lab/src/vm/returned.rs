//! Room: the files that a guest's command left, written on the host.
//! Not here: how they travel (`frame`, `guest::files`).

use std::fs::{File, OpenOptions};
use std::io::Write;
use std::os::unix::fs::OpenOptionsExt;
use std::path::{Component, Path, PathBuf};

use super::error::VmError;
use super::frame::FileHead;

/// Takes a guest's files into one folder and nowhere else.
#[derive(Debug)]
pub(super) struct Returned {
    folder: Option<PathBuf>,
    current: Option<(PathBuf, File)>,
    written: Vec<PathBuf>,
}

impl Returned {
    /// Into `folder`, which is made when the first file comes; `None` drops them all.
    pub(super) fn into_folder(folder: Option<&Path>) -> Self {
        Self { folder: folder.map(Path::to_path_buf), current: None, written: Vec::new() }
    }

    /// Starts a file.
    pub(super) fn begin(&mut self, head: &FileHead) -> Result<(), VmError> {
        let Some(folder) = &self.folder else { return Ok(()) };
        let relative = Path::new(&head.path);
        let inside = relative.components().all(|part| matches!(part, Component::Normal(_)));
        if !inside || head.path.is_empty() {
            let said = format!("it sent a file named '{}', which lies outside its folder", head.path);
            return Err(VmError::Guest { said, console: String::new() });
        }
        let path = folder.join(relative);
        let doing = || VmError::host(format!("writing {}", path.display()));
        if let Some(parent) = path.parent() {
            std::fs::create_dir_all(parent).map_err(doing())?;
        }
        let file = OpenOptions::new().write(true).create(true).truncate(true).mode(head.mode).open(&path);
        self.written.push(path.clone());
        self.current = Some((path.clone(), file.map_err(doing())?));
        Ok(())
    }

    /// Adds to the file begun last.
    pub(super) fn append(&mut self, content: &[u8]) -> Result<(), VmError> {
        let Some((path, file)) = &mut self.current else { return Ok(()) };
        file.write_all(content).map_err(VmError::host(format!("writing {}", path.display())))
    }

    /// The files written.
    pub(super) fn into_paths(self) -> Vec<PathBuf> {
        self.written
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn head(path: &str) -> FileHead {
        FileHead { path: path.into(), mode: 0o640 }
    }

    #[test]
    fn files_land_in_the_folder_and_only_there() {
        let folder = std::env::temp_dir().join(format!("binderperf-returned-{}", std::process::id()));
        let mut returned = Returned::into_folder(Some(&folder));
        returned.begin(&head("a/b.txt")).expect("a name inside");
        returned.append(b"one ").expect("written");
        returned.append(b"two").expect("written");
        for outside in ["../c", "/etc/c", "a/../../c", ""] {
            assert!(returned.begin(&head(outside)).is_err(), "'{outside}' must be refused");
        }
        assert_eq!(std::fs::read_to_string(folder.join("a/b.txt")).expect("it was kept"), "one two");
        assert_eq!(returned.into_paths(), [folder.join("a/b.txt")]);
        std::fs::remove_dir_all(folder).expect("removed");
    }

    #[test]
    fn without_a_folder_files_are_dropped() {
        let mut returned = Returned::into_folder(None);
        returned.begin(&head("a")).expect("a name inside");
        returned.append(b"x").expect("written");
        assert!(returned.into_paths().is_empty());
    }
}
