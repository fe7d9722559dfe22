//! Folder with files for a test, instead of a tracefs.

use std::fs;
use std::ops::Deref;
use std::path::{Path, PathBuf};

/// Temporary folder, removed when dropped.
#[derive(Debug)]
pub(crate) struct Folder(PathBuf);

impl Folder {
    /// Creates a folder with these files; `name` distinguishes the tests of this process.
    pub(crate) fn new(name: &str, files: &[(&str, &str)]) -> Self {
        let root = std::env::temp_dir().join(format!("binderperf-{name}-{}", std::process::id()));
        fs::create_dir_all(&root).expect("a folder");
        for (file, text) in files {
            let path = root.join(file);
            fs::create_dir_all(path.parent().expect("its folder")).expect("a folder");
            fs::write(path, text).expect("a file");
        }
        Self(root)
    }

    /// Content of a file, without white space around it.
    pub(crate) fn says(&self, file: &str) -> String {
        fs::read_to_string(self.0.join(file)).expect("a file").trim().to_owned()
    }
}

impl Deref for Folder {
    type Target = Path;

    fn deref(&self) -> &Path {
        &self.0
    }
}

impl Drop for Folder {
    fn drop(&mut self) {
        let _ = fs::remove_dir_all(&self.0);
    }
}
