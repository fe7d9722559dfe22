//! A kernel with another driver than its own, in words: KERNEL+DRIVER.
//! Not here: building the module (`module`), booting it (`session`).

use std::path::{Path, PathBuf};

use super::module::WantedModule;

/// A kernel with another driver than its own.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct OnDriver {
    /// The kernel, as `vm --kernel` takes it.
    pub kernel: String,
    driver: Origin,
}

/// A driver's module.
#[derive(Clone, Debug)]
pub enum Module {
    /// Its file.
    There(PathBuf),
    /// One that is built, unless it is in the cache.
    Wanted(WantedModule),
}

/// Source of the driver.
#[derive(Clone, Debug, PartialEq, Eq)]
enum Origin {
    /// A module's file.
    Module(PathBuf),
    /// The source of the kernel's version, with this patch.
    Patch(PathBuf),
    /// A source of the user's.
    Source(PathBuf),
    /// The source of the kernel's version.
    Own,
}

impl OnDriver {
    /// Reads KERNEL+DRIVER; `None`: the word names a kernel alone. Releases of Debian's have a plus too.
    pub fn parse(word: &str) -> Option<Self> {
        let (kernel, driver) = word.rsplit_once('+')?;
        let path = Path::new(driver);
        let ends = |endings: &[&str]| {
            path.extension().is_some_and(|ending| endings.iter().any(|one| ending == *one))
        };
        let driver = match () {
            () if driver == "driver" => Origin::Own,
            () if ends(&["ko", "xz", "zst"]) => Origin::Module(path.to_owned()),
            () if ends(&["patch", "diff"]) => Origin::Patch(path.to_owned()),
            () if path.is_dir() => Origin::Source(path.to_owned()),
            () => return None,
        };
        (!kernel.is_empty()).then(|| Self { kernel: kernel.to_owned(), driver })
    }

    /// The driver's module: its file, or what is to be built.
    #[must_use]
    pub fn module(self) -> Module {
        let mut wanted =
            WantedModule { kernel: Some(self.kernel), source: None, patches: Vec::new(), refresh: false };
        match self.driver {
            Origin::Module(file) => return Module::There(file),
            Origin::Patch(file) => wanted.patches.push(file),
            Origin::Source(folder) => wanted.source = Some(folder),
            Origin::Own => {}
        }
        Module::Wanted(wanted)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_plus_names_a_driver_and_a_release_has_one_too() {
        let of = |kernel: &str, driver| Some(OnDriver { kernel: kernel.to_owned(), driver });
        assert_eq!(OnDriver::parse("7.2+a/fix.patch"), of("7.2", Origin::Patch("a/fix.patch".into())));
        assert_eq!(OnDriver::parse("7.2+b.ko"), of("7.2", Origin::Module("b.ko".into())));
        assert_eq!(OnDriver::parse("7.2+."), of("7.2", Origin::Source(".".into())));
        assert_eq!(OnDriver::parse("7.2.13+deb14-amd64+driver"), of("7.2.13+deb14-amd64", Origin::Own));
        for plain in ["7.2", "7.2.13+deb14-amd64", "/boot/vmlinuz-7.2.13+deb14-amd64", "+a.ko"] {
            assert_eq!(OnDriver::parse(plain), None, "{plain}");
        }
    }
}
