//! A machine's files: below `/`, or below a folder with copies of another machine's.
//! Not here: what the files mean (`absence`, `kernel_config`, `kernel_state`, and the crates `host` and `doctor`).

use std::cell::RefCell;
use std::collections::BTreeSet;
use std::fs::{self, File};
use std::io::{self, ErrorKind, Read};
use std::path::{Path, PathBuf};

/// Longest part of a file that is read, in bytes. The longest files are `/proc/interrupts` of a machine with hundreds of
/// CPUs, and kernel configurations.
pub const LONGEST: u64 = 4 << 20;
/// Most entries of a folder that are read.
const MOST_NAMES: usize = 10_000;

/// A file system root. Paths have no leading slash.
#[derive(Debug)]
pub struct Root {
    folder: PathBuf,
    /// Every path that was asked for.
    asked: RefCell<BTreeSet<PathBuf>>,
}

impl Root {
    /// The root of the running system.
    #[must_use]
    pub fn of_this_machine() -> Self {
        Self::at("/")
    }

    /// A folder with copies of a system's files.
    #[must_use]
    pub fn at(folder: impl Into<PathBuf>) -> Self {
        Self { folder: folder.into(), asked: RefCell::default() }
    }

    /// The folder that stands for `/`.
    #[must_use]
    pub fn folder(&self) -> &Path {
        &self.folder
    }

    /// The real path of a file.
    #[must_use]
    pub fn path(&self, path: impl AsRef<Path>) -> PathBuf {
        self.asked.borrow_mut().insert(path.as_ref().to_owned());
        self.folder.join(path)
    }

    /// Every path that was asked for so far, whether or not it exists.
    #[must_use]
    pub fn asked(&self) -> BTreeSet<PathBuf> {
        self.asked.borrow().clone()
    }

    /// Whether the file or folder exists.
    #[must_use]
    pub fn exists(&self, path: impl AsRef<Path>) -> bool {
        self.path(path).exists()
    }

    /// Reads at most [`LONGEST`] bytes of a file; also returns whether it has more.
    ///
    /// # Errors
    /// See `open(2)`. Also for files that are not regular: a pipe in a folder of copied files would never end.
    pub fn bytes(&self, path: impl AsRef<Path>) -> io::Result<(Vec<u8>, bool)> {
        let path = self.path(path);
        let kind = fs::metadata(&path)?;
        if kind.is_dir() {
            return Err(ErrorKind::IsADirectory.into());
        }
        if !kind.is_file() {
            return Err(io::Error::other("it is not a regular file"));
        }
        let mut bytes = Vec::new();
        File::open(path)?.take(LONGEST + 1).read_to_end(&mut bytes)?;
        let longer = bytes.len() as u64 > LONGEST;
        bytes.truncate(LONGEST as usize);
        Ok((bytes, longer))
    }

    /// A file's text, trimmed; `None` if it is unreadable or empty.
    pub fn text(&self, path: impl AsRef<Path>) -> Option<String> {
        let (bytes, _) = self.bytes(path).ok()?;
        let text = String::from_utf8_lossy(&bytes).trim().to_owned();
        (!text.is_empty()).then_some(text)
    }

    /// The names in a folder, sorted, with numbers in numeric order. Empty if there is none.
    #[must_use]
    pub fn names(&self, folder: impl AsRef<Path>) -> Vec<String> {
        let entries = fs::read_dir(self.folder.join(folder)).into_iter().flatten().flatten();
        let mut names: Vec<String> =
            entries.take(MOST_NAMES).filter_map(|entry| entry.file_name().into_string().ok()).collect();
        names.sort_by_cached_key(|name| {
            let word = name.trim_end_matches(|c: char| c.is_ascii_digit());
            (word.to_owned(), name[word.len()..].parse::<u64>().unwrap_or(0), name.clone())
        });
        names
    }

    /// Names in a folder that consist of this word and a number, in numeric order: `cpu0`, `cpu1`.
    #[must_use]
    pub fn numbered(&self, folder: impl AsRef<Path>, word: &str) -> Vec<String> {
        let mut names = self.names(folder);
        names.retain(|name| {
            let number = name.strip_prefix(word).unwrap_or_default();
            !number.is_empty() && number.bytes().all(|byte| byte.is_ascii_digit())
        });
        names
    }
}

/// A machine's files for a test, removed on drop.
#[doc(hidden)]
#[derive(Debug)]
pub struct Fixture(sys::private_folder::PrivateFolder);

impl Fixture {
    /// A new folder with these files and `name` in its name.
    ///
    /// # Panics
    /// They cannot be written.
    #[must_use]
    pub fn new(name: &str, files: &[(&str, &str)]) -> Self {
        let fixture = Self(sys::private_folder::PrivateFolder::new(name).expect("make folder"));
        files.iter().for_each(|(path, text)| fixture.put(path, text));
        fixture
    }

    /// Writes a file.
    ///
    /// # Panics
    /// It cannot be written.
    pub fn put(&self, path: impl AsRef<Path>, bytes: impl AsRef<[u8]>) {
        let path = self.path().join(path);
        fs::create_dir_all(path.parent().expect("a file has a folder")).expect("make folder");
        fs::write(path, bytes).expect("write file");
    }

    /// The folder.
    #[must_use]
    pub fn path(&self) -> &Path {
        self.0.path()
    }

    /// The folder as a machine's root.
    #[must_use]
    pub fn root(&self) -> Root {
        Root::at(self.path())
    }
}
