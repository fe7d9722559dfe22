//! Writes the files that the guest's command left.
//! Not here: their transport (`frame`, `guest::files`).

use std::fs::{File, OpenOptions};
use std::io::Write;
use std::os::unix::fs::OpenOptionsExt;
use std::path::{Component, Path, PathBuf};

use super::error::VmError;

/// Writes a guest's files into one folder and nowhere else.
#[derive(Debug)]
pub(super) struct Returned {
    folder: Option<PathBuf>,
    current: Option<(PathBuf, File)>,
    written: Vec<PathBuf>,
}

impl Returned {
    /// Writes into `folder`, created with the first file; `None` discards all files.
    pub(super) fn into_folder(folder: Option<&Path>) -> Self {
        Self { folder: folder.map(Path::to_path_buf), current: None, written: Vec::new() }
    }

    /// Starts a file.
    pub(super) fn begin(&mut self, path: &str, mode: u32) -> Result<(), VmError> {
        let Some(folder) = &self.folder else { return Ok(()) };
        let relative = Path::new(path);
        let inside = relative.components().all(|part| matches!(part, Component::Normal(_)));
        if !inside || path.is_empty() {
            let said = format!("it sent a file named '{path}', which lies outside its folder");
            return Err(VmError::Guest { said, console: String::new() });
        }
        let path = folder.join(relative);
        let doing = || VmError::host(format!("writing {}", path.display()));
        if let Some(parent) = path.parent() {
            std::fs::create_dir_all(parent).map_err(doing())?;
        }
        let file = OpenOptions::new().write(true).create(true).truncate(true).mode(mode).open(&path);
        self.written.push(path.clone());
        self.current = Some((path.clone(), file.map_err(doing())?));
        Ok(())
    }

    /// Appends to the current file.
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
    use driver::root::Fixture;

    #[test]
    fn files_land_in_the_folder_and_only_there() {
        let fixture = Fixture::new("returned", &[]);
        let folder = fixture.path();
        let mut returned = Returned::into_folder(Some(folder));
        returned.begin("a/b.txt", 0o640).expect("a name inside");
        returned.append(b"one ").expect("written");
        returned.append(b"two").expect("written");
        for outside in ["../c", "/etc/c", "a/../../c", ""] {
            assert!(returned.begin(outside, 0o640).is_err(), "'{outside}' must be refused");
        }
        assert_eq!(std::fs::read_to_string(folder.join("a/b.txt")).expect("it was kept"), "one two");
        assert_eq!(returned.into_paths(), [folder.join("a/b.txt")]);
    }

    #[test]
    fn without_a_folder_files_are_dropped() {
        let mut returned = Returned::into_folder(None);
        returned.begin("a", 0o640).expect("a name inside");
        returned.append(b"x").expect("written");
        assert!(returned.into_paths().is_empty());
    }
}
