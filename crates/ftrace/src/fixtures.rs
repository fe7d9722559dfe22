//! Folder with files for a test, instead of a tracefs.

use std::fs;
use std::ops::Deref;
use std::path::Path;

use sys::private_folder::PrivateFolder;

/// Temporary folder, removed when dropped.
#[derive(Debug)]
pub(crate) struct Folder(PrivateFolder);

impl Folder {
    /// Creates a folder with these files; `name` is a part of its name.
    pub(crate) fn new(name: &str, files: &[(&str, &str)]) -> Self {
        let own = PrivateFolder::new(name).expect("a folder");
        for (file, text) in files {
            let path = own.path().join(file);
            fs::create_dir_all(path.parent().expect("its folder")).expect("a folder");
            fs::write(path, text).expect("a file");
        }
        Self(own)
    }

    /// Content of a file, without white space around it.
    pub(crate) fn says(&self, file: &str) -> String {
        fs::read_to_string(self.0.path().join(file)).expect("a file").trim().to_owned()
    }
}

impl Deref for Folder {
    type Target = Path;

    fn deref(&self) -> &Path {
        self.0.path()
    }
}
