//! A kernel with another driver than its own, in words: KERNEL+DRIVER.
//! Not here: building the module (`module`), booting it (`session`).

use std::path::{Path, PathBuf};

use super::module::WantedModule;

/// A kernel with another driver than its own.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct OnDriver {
    /// The kernel, as `vm --kernel` takes it.
    pub kernel: String,
    /// The driver's module: its file, or what is to be built.
    pub module: Module,
}

/// A driver's module.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Module {
    /// Its file.
    There(PathBuf),
    /// One that is built, unless it is in the cache.
    Wanted(WantedModule),
}

impl OnDriver {
    /// Reads KERNEL+DRIVER; `None`: the word names a kernel alone. Releases of Debian's have a plus too.
    pub fn parse(word: &str) -> Option<Self> {
        let (kernel, driver) = word.rsplit_once('+')?;
        let path = Path::new(driver);
        let ends = |endings: &[&str]| {
            path.extension().is_some_and(|ending| endings.iter().any(|one| ending == *one))
        };
        let own = WantedModule { kernel: Some(kernel.to_owned()), ..WantedModule::default() };
        let module = match () {
            () if driver == "driver" => Module::Wanted(own),
            () if ends(&["ko", "xz", "zst"]) => Module::There(path.to_owned()),
            () if ends(&["patch", "diff"]) => {
                Module::Wanted(WantedModule { patches: vec![path.to_owned()], ..own })
            }
            () if path.is_dir() => Module::Wanted(WantedModule { source: Some(path.to_owned()), ..own }),
            () => return None,
        };
        (!kernel.is_empty()).then(|| Self { kernel: kernel.to_owned(), module })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_plus_names_a_driver_and_a_release_has_one_too() {
        let of = |kernel: &str, module| Some(OnDriver { kernel: kernel.to_owned(), module });
        let own = |kernel: &str| WantedModule { kernel: Some(kernel.to_owned()), ..WantedModule::default() };
        let patched = WantedModule { patches: vec!["a/fix.patch".into()], ..own("7.2") };
        assert_eq!(OnDriver::parse("7.2+a/fix.patch"), of("7.2", Module::Wanted(patched)));
        assert_eq!(OnDriver::parse("7.2+b.ko"), of("7.2", Module::There("b.ko".into())));
        let given = WantedModule { source: Some(".".into()), ..own("7.2") };
        assert_eq!(OnDriver::parse("7.2+."), of("7.2", Module::Wanted(given)));
        let release = "7.2.13+deb14-amd64";
        let built = Module::Wanted(own(release));
        assert_eq!(OnDriver::parse("7.2.13+deb14-amd64+driver"), of(release, built));
        for plain in ["7.2", "7.2.13+deb14-amd64", "/boot/vmlinuz-7.2.13+deb14-amd64", "+a.ko"] {
            assert_eq!(OnDriver::parse(plain), None, "{plain}");
        }
    }
}
