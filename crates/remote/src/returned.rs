//! Files that come back, written where this side wants them.
//! Not here: their transport (`frame`).

use std::fs::File;
use std::io::Write;
use std::path::{Component, Path, PathBuf};

use super::error::RemoteError;

/// The files of one transport. Each is whole when it gets its name.
#[derive(Debug, Default)]
pub(crate) struct Returned {
    current: Option<Incoming>,
    written: Vec<PathBuf>,
}

/// A file that is not whole yet; removed on drop.
#[derive(Debug)]
struct Incoming {
    part: PathBuf,
    path: PathBuf,
    file: File,
    left: u64,
}

impl Drop for Incoming {
    fn drop(&mut self) {
        // Fails if it got its name.
        let _ = std::fs::remove_file(&self.part);
    }
}

impl Returned {
    /// Starts a file, at the place that is given for its path.
    ///
    /// # Errors
    /// The path leads out of the folder, or the file cannot be made.
    pub(crate) fn begin(
        &mut self,
        path: &str,
        size: u64,
        place: &mut dyn FnMut(&str) -> PathBuf,
    ) -> Result<(), RemoteError> {
        let path = place(inside(path)?);
        let doing = || RemoteError::here(format!("writing {}", path.display()));
        if let Some(parent) = path.parent() {
            std::fs::create_dir_all(parent).map_err(doing())?;
        }
        let name = path.file_name().unwrap_or_default().to_string_lossy().into_owned();
        let part = path.with_file_name(format!(".{name}.{}", std::process::id()));
        let file = File::create(&part).map_err(doing())?;
        self.current = Some(Incoming { part, path, file, left: size });
        self.append(&[])
    }

    /// Makes a folder, at the place that is given for its path.
    ///
    /// # Errors
    /// The path leads out of the folder, or it cannot be made.
    pub(crate) fn folder(
        &mut self,
        path: &str,
        place: &mut dyn FnMut(&str) -> PathBuf,
    ) -> Result<(), RemoteError> {
        let path = place(inside(path)?);
        std::fs::create_dir_all(&path).map_err(RemoteError::here(format!("making {}", path.display())))
    }

    /// Appends to it.
    ///
    /// # Errors
    /// It cannot be written.
    pub(crate) fn append(&mut self, bytes: &[u8]) -> Result<(), RemoteError> {
        let Some(current) = &mut self.current else { return Ok(()) };
        let doing = || RemoteError::here(format!("writing {}", current.path.display()));
        current.file.write_all(bytes).map_err(doing())?;
        current.left = current.left.saturating_sub(bytes.len() as u64);
        if current.left == 0 {
            std::fs::rename(&current.part, &current.path).map_err(doing())?;
            self.written.push(current.path.clone());
            self.current = None;
        }
        Ok(())
    }

    /// Number of files that are whole.
    pub(crate) fn whole(&self) -> usize {
        self.written.len()
    }

    /// The files that are whole.
    pub(crate) fn into_paths(self) -> Vec<PathBuf> {
        self.written
    }
}

/// A path, if it is one below a folder and nothing in it is hidden: this program hides no file, and programs here take
/// orders from hidden ones.
fn inside(path: &str) -> Result<&str, RemoteError> {
    let plain = |part: Component<'_>| match part {
        Component::Normal(name) => !name.as_encoded_bytes().starts_with(b"."),
        _ => false,
    };
    let is_inside = Path::new(path).components().all(plain);
    if is_inside && !path.is_empty() {
        return Ok(path);
    }
    Err(RemoteError::Garbled(format!("a file named {path:?}, hidden or outside its folder")))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn files_are_whole_and_inside() {
        let folder = std::env::temp_dir().join(format!("binderperf-on-returned-{}", std::process::id()));
        let mut place = |path: &str| folder.join(path);
        let mut returned = Returned::default();
        returned.begin("a/b.txt", 7, &mut place).expect("inside");
        returned.append(b"one ").expect("written");
        assert!(!folder.join("a/b.txt").exists());
        returned.append(b"two").expect("written");
        assert_eq!(std::fs::read_to_string(folder.join("a/b.txt")).expect("whole"), "one two");
        returned.begin("empty", 0, &mut place).expect("inside");
        assert!(folder.join("empty").exists());
        returned.begin("cut", 9, &mut place).expect("inside");
        returned.append(b"x").expect("written");
        for outside in ["../c", "/etc/c", "a/../../c", ""] {
            assert!(returned.begin(outside, 0, &mut place).is_err(), "{outside:?}");
            assert!(returned.folder(outside, &mut place).is_err(), "{outside:?}");
        }
        assert_eq!(returned.into_paths(), [folder.join("a/b.txt"), folder.join("empty")]);
        assert_eq!(std::fs::read_dir(&folder).expect("there").count(), 2, "no part is left");
        let mut returned = Returned::default();
        assert!(returned.begin("b", 0, &mut |_| folder.join("empty/b")).is_err());
        std::fs::remove_dir_all(&folder).expect("removed");
    }
}
