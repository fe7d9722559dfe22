//! The headers of a fetched kernel, with which modules for it are built.
//! Not here: building one (`build::module`).
//!
//! Debian's packages expect to lie in `/usr/src`, and their programs (modpost, objtool) a C library as new as the suite.
//! So the tree has its own C library, and scripts that start the programs with it.

use std::fs::Permissions;
use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};
use std::process::Command;

use crate::arch::Arch;
use crate::error::VmError;

use super::apt::Apt;
use super::files_below;
use super::name::Name;
use super::unpack::tool;

/// Libraries of the packages' programs.
const LIBRARIES: [&str; 5] = ["libc6", "libelf1t64", "libzstd1", "zlib1g", "libxxhash0"];
/// The same before the change of `time_t`.
const OLD_LIBRARIES: [&str; 5] = ["libc6", "libelf1", "libzstd1", "zlib1g", "libxxhash0"];
/// The packages' programs below `linux-kbuild-*`, with the file that has the program where another starts it.
const PROGRAMS: [(&str, &str); 4] = [
    ("tools/objtool/objtool", ".real-x86"),
    ("scripts/mod/modpost", ".real-lsb-64"),
    ("scripts/basic/fixdep", ""),
    ("scripts/genksyms/genksyms", ""),
];

/// The headers of one kernel.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Headers {
    /// The folder that make takes: `make -C FOLDER M=...`.
    pub(crate) folder: PathBuf,
    /// Linux's version: `7.2.13`.
    pub(crate) version: String,
}

impl Headers {
    /// The headers of a release in this place, if they are there.
    pub(crate) fn at(place: &Path, release: &str) -> Option<Self> {
        let version = std::fs::read_to_string(place.join("version")).ok()?;
        Some(Self { folder: place.join("usr/src").join(format!("linux-headers-{release}")), version })
    }
}

/// Fetches the headers of a release of Debian's into `place`, which exists only when it is whole. `scratch` is on the same
/// file system, and its owner removes it.
///
/// # Errors
/// [`VmError::NoKernel`]: Debian has no headers of it any more; [`VmError::Tool`], [`VmError::Host`].
pub(crate) fn fetch(
    scratch: &Path,
    release: &str,
    place: &Path,
    progress: &mut dyn FnMut(&str),
) -> Result<Headers, VmError> {
    let bad = |why| VmError::BadKernel { given: release.to_owned(), why };
    // The suites that may have a release of that version; those of the newest have most.
    let name = Name::parse(numbers(release), Arch::own()).unwrap_or(Name::newest(Arch::own()));
    let (mut tried, package) = (Vec::new(), format!("linux-headers-{release}"));
    for (at, suites) in name.suites().into_iter().enumerate() {
        let apt = Apt::new(&scratch.join(format!("headers-apt{at}")), suites, Arch::own())?;
        progress(&format!("fetching the package lists of {}", suites.join(", ")));
        let updated = apt.update();
        let show = match apt.show(&package) {
            Ok(show) if show.contains("Depends:") => show,
            _ => {
                tried.push(format!("Debian's archive, suites {}: no {package}", suites.join(", ")));
                tried.extend(updated.err().map(|error| error.to_string()));
                continue;
            }
        };
        let libraries = if apt.show(LIBRARIES[1]).is_ok() { LIBRARIES } else { OLD_LIBRARIES };
        let list: Vec<String> =
            packages(&package, &show).into_iter().chain(libraries.map(str::to_owned)).collect();
        progress(&format!("fetching {} (about 15 MB, once)", list.join(", ")));
        let draft = scratch.join("headers");
        for file in apt.download(&list)? {
            std::fs::create_dir_all(&draft).map_err(VmError::host(format!("making {}", draft.display())))?;
            tool(Command::new("dpkg-deb").arg("-x").args([&file, &draft]), "dpkg")?;
        }
        settle(&draft, place, release)?;
        let version = version(&show).ok_or_else(|| bad("its package has no version".to_owned()))?;
        let doing = || VmError::host(format!("keeping the headers in {}", place.display()));
        std::fs::write(draft.join("version"), &version).map_err(doing())?;
        std::fs::create_dir_all(place.parent().unwrap_or(place)).map_err(doing())?;
        std::fs::rename(&draft, place).map_err(doing())?;
        return Headers::at(place, release).ok_or_else(|| bad("its headers vanished".to_owned()));
    }
    Err(VmError::NoKernel { wanted: format!("the headers of {release}"), tried })
}

/// The package of the headers and those of its kernel that it depends on.
fn packages(package: &str, show: &str) -> Vec<String> {
    let record = show.split("\n\n").next().unwrap_or_default();
    let depends = record.lines().find_map(|line| line.strip_prefix("Depends:")).unwrap_or_default();
    let named = depends.split([',', '|']).filter_map(|one| one.split_whitespace().next());
    let own = |name: &&str| {
        name.starts_with("linux-kbuild-") || name.starts_with("linux-headers-") && name.contains("common")
    };
    std::iter::once(package).chain(named.filter(own)).map(str::to_owned).collect()
}

/// Linux's version in the package's: `7.2.13` of `7.2.13-1`.
fn version(show: &str) -> Option<String> {
    let own = show.lines().find_map(|line| line.strip_prefix("Version:"))?;
    Some(numbers(own.trim()).to_owned()).filter(|text| !text.is_empty())
}

/// The digits and dots that a text begins with.
fn numbers(text: &str) -> &str {
    text.split(|c: char| !c.is_ascii_digit() && c != '.').next().unwrap_or_default()
}

/// Makes an unpacked tree one that works in `place`.
fn settle(draft: &Path, place: &Path, release: &str) -> Result<(), VmError> {
    let doing = || VmError::host(format!("preparing the headers in {}", draft.display()));
    let makefile = draft.join("usr/src").join(format!("linux-headers-{release}")).join("Makefile");
    let text = std::fs::read_to_string(&makefile).map_err(doing())?;
    let own = place.join("usr/src");
    std::fs::write(&makefile, text.replace("/usr/src", &own.display().to_string())).map_err(doing())?;
    let Some(loader) = loader(draft) else { return Ok(()) };
    let libraries = loader.parent().unwrap_or(Path::new("/")).to_path_buf();
    let (loader, libraries) = (place.join(&loader), place.join(libraries));
    for kbuild in std::fs::read_dir(draft.join("usr/lib")).map_err(doing())?.flatten() {
        let name = kbuild.file_name();
        if !name.to_string_lossy().starts_with("linux-kbuild-") {
            continue;
        }
        for (program, real) in PROGRAMS {
            let path = kbuild.path().join(program);
            let with = |ending: &str| PathBuf::from(format!("{}{ending}", path.display()));
            if !path.is_file() {
                continue;
            }
            let ending = if !real.is_empty() && with(real).is_file() { real } else { ".program" };
            if ending == ".program" {
                std::fs::rename(&path, with(ending)).map_err(doing())?;
            }
            let target = place.join("usr/lib").join(&name).join(format!("{program}{ending}"));
            let script = format!(
                "#!/bin/sh\nexec '{}' --library-path '{}' '{}' \"$@\"\n",
                loader.display(),
                libraries.display(),
                target.display()
            );
            // The package's file may be a link to another.
            let _ = std::fs::remove_file(&path);
            std::fs::write(&path, script).map_err(doing())?;
            std::fs::set_permissions(&path, Permissions::from_mode(0o755)).map_err(doing())?;
        }
    }
    Ok(())
}

/// The path of the C library's loader below the tree's root.
fn loader(draft: &Path) -> Option<PathBuf> {
    // There is no folder `lib` where it is a link of the whole system's.
    let mut files =
        ["usr/lib", "lib"].iter().flat_map(|root| files_below(&draft.join(root)).unwrap_or_default());
    let is_loader = |path: &PathBuf| {
        let name = path.file_name().and_then(|name| name.to_str()).unwrap_or_default();
        name.starts_with("ld-linux") && path.with_file_name("libc.so.6").exists()
    };
    files.find(is_loader)?.strip_prefix(draft).ok().map(Path::to_path_buf)
}

#[cfg(test)]
mod tests {
    use super::*;
    use driver::root::Fixture;

    #[test]
    fn the_packages_of_a_kernels_headers_are_its_own() {
        let show = "Package: linux-headers-7.2.13+deb14-amd64\nVersion: 7.2.13-1\nDepends: gcc-16-for-host, linux-base (>= 4.12~), \
                    linux-headers-7.2.13+deb14-common (= 7.2.13-1), linux-kbuild-7.2.13+deb14\n\nPackage: x\nDepends: y\n";
        assert_eq!(
            packages("linux-headers-7.2.13+deb14-amd64", show),
            [
                "linux-headers-7.2.13+deb14-amd64",
                "linux-headers-7.2.13+deb14-common",
                "linux-kbuild-7.2.13+deb14"
            ]
        );
        assert_eq!(version(show).as_deref(), Some("7.2.13"));
        assert_eq!(version("Version: 6.1.176-1\n").as_deref(), Some("6.1.176"));
    }

    #[test]
    fn a_tree_works_where_it_will_be() {
        let root = Fixture::new(
            "headers",
            &[
                (
                    "usr/src/linux-headers-1-amd64/Makefile",
                    "include /usr/src/linux-headers-1-common/Makefile\n",
                ),
                ("usr/lib/x86_64-linux-gnu/ld-linux-x86-64.so.2", ""),
                ("usr/lib/x86_64-linux-gnu/libc.so.6", ""),
                ("usr/lib/linux-kbuild-1/scripts/mod/modpost", "starts the other"),
                ("usr/lib/linux-kbuild-1/scripts/mod/modpost.real-lsb-64", "elf"),
                ("usr/lib/linux-kbuild-1/scripts/basic/fixdep", "elf"),
            ],
        );
        settle(root.path(), Path::new("/place"), "1-amd64").expect("a tree");
        let text = |path: &str| std::fs::read_to_string(root.path().join(path)).expect("a file");
        assert_eq!(
            text("usr/src/linux-headers-1-amd64/Makefile"),
            "include /place/usr/src/linux-headers-1-common/Makefile\n"
        );
        let modpost = text("usr/lib/linux-kbuild-1/scripts/mod/modpost");
        assert!(
            modpost.contains("exec '/place/usr/lib/x86_64-linux-gnu/ld-linux-x86-64.so.2' "),
            "{modpost}"
        );
        assert!(modpost.contains("/scripts/mod/modpost.real-lsb-64' \"$@\""), "{modpost}");
        assert_eq!(text("usr/lib/linux-kbuild-1/scripts/basic/fixdep.program"), "elf");
    }
}
