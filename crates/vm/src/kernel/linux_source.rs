//! Debian's packages with Linux's source.
//! Not here: unpacking and building it (`build`).

use std::path::{Path, PathBuf};

use crate::arch::Arch;
use crate::error::VmError;

use super::apt::Apt;
use super::name::Name;

const PACKAGE: &str = "linux-source-";

/// A package with a source.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct SourcePackage {
    /// The package: `linux-source-7.2`.
    pub(crate) package: String,
    /// Debian's version of it: `7.2.13-1`.
    pub(crate) version: String,
}

/// Fetches the newest source whose version starts with these numbers, into a folder that the caller removes. `None`
/// instead of a file: it is the package that `has` already.
///
/// # Errors
/// [`VmError::Tool`] with apt's error; [`VmError::NoKernel`]: Debian has no such source; [`VmError::Host`].
pub(crate) fn download(
    scratch: &Path,
    version: Option<&str>,
    has: &dyn Fn(&SourcePackage) -> bool,
    progress: &mut dyn FnMut(&str),
) -> Result<(SourcePackage, Option<PathBuf>), VmError> {
    let bad = |why| VmError::BadKernel { given: version.unwrap_or_default().to_owned(), why };
    let name = Name::parse(version.unwrap_or("newest"), Arch::own()).map_err(bad)?;
    let mut said = None;
    for (at, suites) in name.suites().into_iter().enumerate() {
        let apt = Apt::new(&scratch.join(format!("apt{at}")), suites, Arch::own())?;
        progress(&format!("fetching the package lists of {}", suites.join(", ")));
        let updated = apt.update();
        for package in packages(&apt.search(&format!("^{PACKAGE}[0-9.]+$"))?, version) {
            let Some(found) = of_record(&apt.show(&package)?, version) else { continue };
            if has(&found) {
                return Ok((found, None));
            }
            progress(&format!("fetching {package} {} (about 160 MB, once)", found.version));
            let file = apt.download(std::slice::from_ref(&package))?.pop();
            let none =
                || VmError::Tool { command: "apt-get download".into(), why: "it left no package".into() };
            return Ok((found, Some(file.ok_or_else(none)?)));
        }
        said = said.or(updated.err());
    }
    Err(said.unwrap_or_else(|| VmError::NoKernel {
        wanted: format!("the source {}", version.unwrap_or("newest")),
        tried: vec![format!(
            "Debian's archive, suites {}: no such linux-source",
            name.suites()[1].join(", ")
        )],
    }))
}

/// The packages of a search that may have a source of this version, newest first.
fn packages(search: &str, version: Option<&str>) -> Vec<String> {
    let names = search.lines().filter_map(|line| line.split_whitespace().next());
    let fits = |name: &&str| {
        let Some(own) = name.strip_prefix(PACKAGE) else { return false };
        version.is_none_or(|version| is_of(version, own) || is_of(own, version))
    };
    let mut found: Vec<String> = names.filter(fits).map(str::to_owned).collect();
    super::name::newest_first(&mut found);
    found
}

/// Whether a version is another one or an update of it: 7.2.13 is of 7.2.
pub(crate) fn is_of(version: &str, whole: &str) -> bool {
    version.strip_prefix(whole).is_some_and(|rest| !rest.starts_with(|c: char| c.is_ascii_digit()))
}

/// The first package of `apt-cache show` that has this version.
fn of_record(show: &str, version: Option<&str>) -> Option<SourcePackage> {
    show.split("\n\n").find_map(|record| {
        let field = |name: &str| record.lines().find_map(|line| line.strip_prefix(name)).map(str::trim);
        let (package, own) = (field("Package:")?, field("Version:")?);
        let fits = version.is_none_or(|version| is_of(own, version));
        fits.then(|| SourcePackage { package: package.to_owned(), version: own.to_owned() })
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_package_of_a_version_is_found() {
        let search = "linux-source-6.12 - Linux kernel source for version 6.12\n\
                      linux-source-7.2 - Linux kernel source\nlinux-source-6.1 - Linux\nlinux-source - newest\n";
        for (version, want) in [
            (None, &["linux-source-7.2", "linux-source-6.12", "linux-source-6.1"][..]),
            (Some("6.1"), &["linux-source-6.1"]),
            (Some("6.12.107"), &["linux-source-6.12"]),
            (Some("5.10"), &[]),
        ] {
            assert_eq!(packages(search, version), want, "{version:?}");
        }
        let show =
            "Package: linux-source-7.2\nVersion: 7.2.13-1\n\nPackage: linux-source-7.2\nVersion: 7.2.9-1\n";
        let found = |version| of_record(show, version).map(|found| found.version);
        assert_eq!(found(None).as_deref(), Some("7.2.13-1"));
        assert_eq!(found(Some("7.2.9")).as_deref(), Some("7.2.9-1"));
        assert_eq!(found(Some("7.2.1")), None, "7.2.13 is another");
    }
}
