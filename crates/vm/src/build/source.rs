//! The source of a kernel: Debian's package, the user's folder or an archive, and its version.
//! Not here: copies of it and patches (`copy`), fetching packages (`kernel::linux_source`).

use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

use crate::kernel::{self, Cache, SourcePackage, is_of, tool};

use super::error::BuildError;
use super::name::hash;
use super::workshop::{Workshop, room};

/// Bytes of an unpacked source, with the package that it comes in.
const UNPACKED: u64 = 2_500_000_000;

/// Where a kernel's source has the driver.
pub(super) const DRIVER: &str = "drivers/android";

/// A folder with a kernel's source.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Source {
    pub(super) folder: PathBuf,
    /// The name of what it is, for folders beside it.
    pub(super) id: String,
    /// Linux's version.
    pub(super) version: String,
    /// The state of a folder that is no release: `g1a2b3c4d`, `g1a2b3c4d-dirty` or `tree`.
    pub(super) mark: Option<String>,
    /// Whether the same id and mark mean the same content.
    pub(super) is_fixed: bool,
}

/// The meaning of a word of `--source`.
#[derive(Debug, PartialEq, Eq)]
enum Given<'a> {
    Debian(Option<&'a str>),
    Path(&'a Path),
}

impl<'a> Given<'a> {
    fn of(text: &'a str) -> Self {
        match text.strip_prefix("debian") {
            Some("") => Self::Debian(None),
            Some(rest) if rest.starts_with(':') => Self::Debian(Some(&rest[1..])),
            _ => Self::Path(Path::new(text)),
        }
    }
}

/// Finds the source, fetching or unpacking it if necessary.
///
/// # Errors
/// [`BuildError::Source`]; [`BuildError::Space`]; [`BuildError::Vm`] for fetching and unpacking.
pub(super) fn find(
    given: &str,
    refresh: bool,
    cache: &Cache,
    shop: &Workshop,
    progress: &mut dyn FnMut(&str),
) -> Result<Source, BuildError> {
    let bad = |why: String| BuildError::Source { given: given.to_owned(), why };
    match Given::of(given) {
        Given::Debian(version) => {
            let strange =
                |text: &str| !text.split('.').all(|part| part.parse::<u32>().is_ok()) || !text.contains('.');
            match version.filter(|text| strange(text)) {
                Some(_) => Err(bad("a version is as in debian:7.2 or debian:7.2.13".to_owned())),
                None => debian(version, refresh, cache, shop, progress),
            }
        }
        Given::Path(path) if path.is_dir() => {
            let folder =
                path.canonicalize().map_err(BuildError::host(format!("reading {}", path.display())))?;
            of_folder(&folder).map_err(bad)
        }
        Given::Path(path) if path.is_file() => archive(path, cache, shop, progress),
        Given::Path(_) => {
            Err(bad("there is no such folder or archive, and it is not debian or debian:VERSION".to_owned()))
        }
    }
}

/// Debian's source: one that is unpacked already, unless a newer one is asked for.
fn debian(
    version: Option<&str>,
    refresh: bool,
    cache: &Cache,
    shop: &Workshop,
    progress: &mut dyn FnMut(&str),
) -> Result<Source, BuildError> {
    let sources = shop.folder("sources")?;
    if !refresh && let Some(found) = unpacked(&sources, version) {
        return Ok(found);
    }
    let writing = cache.write(progress)?;
    // Another build may have fetched it meanwhile.
    if !refresh && let Some(found) = unpacked(&sources, version) {
        return Ok(found);
    }
    room(&sources, UNPACKED)?;
    let place = |package: &SourcePackage| sources.join(format!("{}_{}", package.package, package.version));
    let has = |package: &SourcePackage| place(package).is_dir();
    let (package, file) = kernel::download(&writing.scratch, version, &has, progress)?;
    let place = place(&package);
    if let Some(file) = file {
        progress(&format!("unpacking {}", package.package));
        let all = writing.scratch.join("package");
        tool(Command::new("dpkg-deb").arg("-x").arg(&file).arg(&all), "dpkg")?;
        let archive = archive_in(&all.join("usr/src")).ok_or_else(|| BuildError::Source {
            given: package.package.clone(),
            why: "there is no usr/src/linux-source-*.tar.* in the package".to_owned(),
        })?;
        unpack(&archive, &writing.scratch.join("source"), &place)?;
    }
    released(&place).map_err(|why| BuildError::Source { given: package.package, why })
}

/// The driver's folder of Debian's source of exactly this version, and a name for it: from a source that is unpacked, else
/// unpacked without the rest.
///
/// # Errors
/// [`BuildError::Source`]: Debian has no such source any more; [`BuildError::Vm`].
pub(super) fn android_of(
    version: &str,
    cache: &Cache,
    shop: &Workshop,
    progress: &mut dyn FnMut(&str),
) -> Result<(PathBuf, String), BuildError> {
    if let Some(found) = unpacked(&shop.folder("sources")?, Some(version)) {
        return Ok((found.folder.join(DRIVER), found.id));
    }
    let id = format!("linux-{version}");
    let all = shop.folder("driver-sources")?;
    let place = all.join(&id);
    let there = || place.join("binder.c").is_file().then(|| (place.clone(), id.clone()));
    if let Some(found) = there() {
        return Ok(found);
    }
    let writing = cache.write(progress)?;
    if let Some(found) = there() {
        return Ok(found);
    }
    let bad = |why: &str| BuildError::Source { given: format!("debian:{version}"), why: why.to_owned() };
    let (_, file) = kernel::download(&writing.scratch, Some(version), &|_| false, progress)?;
    let file = file.ok_or_else(|| bad("apt left no package"))?;
    progress("unpacking the driver's source");
    let draft = writing.scratch.join("driver");
    std::fs::create_dir_all(&draft).map_err(BuildError::host(format!("making {}", draft.display())))?;
    // One archive in the other: the package is 160 MB, and the source in it 1.7 GB.
    let script = "dpkg-deb --fsys-tarfile \"$1\" | tar -xO --wildcards './usr/src/linux-source-*.tar.xz' | \
                  tar -xJ -C \"$2\" --no-same-owner --strip-components=3 --wildcards 'linux-source-*/drivers/android/*'";
    tool(Command::new("sh").args(["-c", script, "sh"]).arg(&file).arg(&draft), "dpkg, tar and xz-utils")?;
    if !draft.join("binder.c").is_file() {
        return Err(bad("there is no drivers/android/binder.c in the package"));
    }
    std::fs::rename(&draft, &place)
        .map_err(BuildError::host(format!("keeping the source in {}", place.display())))?;
    Ok((place, id))
}

/// The archive in the folder of Debian's package.
fn archive_in(folder: &Path) -> Option<PathBuf> {
    let entries = std::fs::read_dir(folder).ok()?.flatten().map(|entry| entry.path());
    let is_source = |path: &PathBuf| {
        path.file_name()
            .and_then(|name| name.to_str())
            .is_some_and(|name| name.starts_with("linux-source-") && name.contains(".tar."))
    };
    entries.into_iter().find(is_source)
}

/// The newest of Debian's sources that is unpacked and has this version.
fn unpacked(sources: &Path, version: Option<&str>) -> Option<Source> {
    let entries = std::fs::read_dir(sources).into_iter().flatten().flatten().map(|entry| entry.path());
    let debians = entries.filter(|path| {
        path.file_name().and_then(|name| name.to_str()).is_some_and(|name| name.starts_with("linux-source-"))
    });
    let fitting = debians.filter_map(|path| released(&path).ok());
    let fitting = fitting.filter(|found| version.is_none_or(|version| is_of(&found.version, version)));
    let numbers = |source: &Source| -> Vec<u32> {
        source.id.split(|c: char| !c.is_ascii_digit()).filter_map(|digits| digits.parse().ok()).collect()
    };
    fitting.max_by_key(numbers)
}

/// An archive of the user's, unpacked once for each size and time of change.
fn archive(
    path: &Path,
    cache: &Cache,
    shop: &Workshop,
    progress: &mut dyn FnMut(&str),
) -> Result<Source, BuildError> {
    let bad = |why: String| BuildError::Source { given: path.display().to_string(), why };
    let doing = || BuildError::host(format!("reading {}", path.display()));
    let found = path.metadata().map_err(doing())?;
    let changed = std::os::unix::fs::MetadataExt::mtime_nsec(&found);
    let key = format!("{}.{}.{changed}", found.len(), std::os::unix::fs::MetadataExt::mtime(&found));
    let whole = path.canonicalize().map_err(doing())?;
    let id = format!("archive-{}", hash([whole.as_os_str().as_encoded_bytes(), key.as_bytes()]));
    let sources = shop.folder("sources")?;
    let place = sources.join(&id);
    if !place.is_dir() {
        let writing = cache.write(progress)?;
        room(&sources, UNPACKED)?;
        progress(&format!("unpacking {}", path.display()));
        let draft = writing.scratch.join("source");
        unpack(path, &draft, &draft).map_err(|error| bad(error.to_string()))?;
        version(&draft).map_err(bad)?;
        std::fs::rename(&draft, &place)
            .map_err(BuildError::host(format!("keeping the source in {}", place.display())))?;
    }
    released(&place).map_err(bad)
}

/// Unpacks an archive without its first folder, and moves the result to its place.
fn unpack(archive: &Path, draft: &Path, place: &Path) -> Result<(), BuildError> {
    std::fs::create_dir_all(draft).map_err(BuildError::host(format!("making {}", draft.display())))?;
    let mut tar = Command::new("tar");
    tar.arg("-xf").arg(archive).args(["--strip-components=1", "--no-same-owner", "-C"]).arg(draft);
    tool(&mut tar, "tar and xz-utils")?;
    if draft != place {
        std::fs::rename(draft, place)
            .map_err(BuildError::host(format!("keeping the source in {}", place.display())))?;
    }
    Ok(())
}

/// A source in the workshop, which never changes.
fn released(folder: &Path) -> Result<Source, String> {
    let id = folder.file_name().and_then(|name| name.to_str()).unwrap_or_default().to_owned();
    Ok(Source { folder: folder.to_path_buf(), id, version: version(folder)?, mark: None, is_fixed: true })
}

/// The user's folder.
fn of_folder(folder: &Path) -> Result<Source, String> {
    let version = version(folder)?;
    let id = format!("tree-{}", hash([folder.as_os_str().as_encoded_bytes()]));
    let commit = if is_tracked(folder) { git(folder, &["rev-parse", "--short=9", "HEAD"]) } else { None };
    let is_clean = git(folder, &["--no-optional-locks", "status", "--porcelain", "-uno"])
        .is_some_and(|text| text.is_empty());
    let (mark, is_fixed) = match commit {
        Some(commit) if is_clean => (format!("g{}", commit.trim()), true),
        Some(commit) => (format!("g{}-dirty", commit.trim()), false),
        None => ("tree".to_owned(), false),
    };
    Ok(Source { folder: folder.to_path_buf(), id, version, mark: Some(mark), is_fixed })
}

/// Whether git knows the source in a folder: it may be in a tree of another project that ignores it.
pub(super) fn is_tracked(folder: &Path) -> bool {
    git(folder, &["ls-files", "--error-unmatch", "Makefile"]).is_some()
}

/// The output of git in a folder; `None`: it is no git tree, or there is no git.
pub(super) fn git(folder: &Path, words: &[&str]) -> Option<String> {
    let output = Command::new("git").arg("-C").arg(folder).args(words).stdin(Stdio::null()).output().ok()?;
    output.status.success().then(|| String::from_utf8_lossy(&output.stdout).into_owned())
}

/// Linux's version in a source's Makefile.
fn version(folder: &Path) -> Result<String, String> {
    let none = || {
        "there is no kernel's source in it (no Makefile with VERSION and PATCHLEVEL, or no Kconfig)"
            .to_owned()
    };
    let text = std::fs::read_to_string(folder.join("Makefile")).map_err(|_| none())?;
    let field = |name: &str| {
        let lines = text.lines().take(20).filter_map(|line| line.split_once('='));
        lines.into_iter().find(|(key, _)| key.trim() == name).map(|(_, value)| value.trim().to_owned())
    };
    let is_number = |text: &String| !text.is_empty() && text.chars().all(|c| c.is_ascii_digit());
    let number = |name: &str| field(name).filter(is_number);
    let (Some(major), Some(minor)) = (number("VERSION"), number("PATCHLEVEL")) else { return Err(none()) };
    if !folder.join("Kconfig").is_file() {
        return Err(none());
    }
    let patch = number("SUBLEVEL").unwrap_or_else(|| "0".to_owned());
    let extra = field("EXTRAVERSION").unwrap_or_default();
    let plain = extra.chars().all(|c| c.is_ascii_alphanumeric() || "-._+".contains(c));
    Ok(format!("{major}.{minor}.{patch}{}", if plain { &extra } else { "" }))
}

#[cfg(test)]
mod tests {
    use super::*;
    use driver::root::Fixture;

    const MAKEFILE: &str =
        "# SPDX\nVERSION = 7\nPATCHLEVEL = 2\nSUBLEVEL = 13\nEXTRAVERSION = -rc1\nNAME = x\n";

    #[test]
    fn a_word_is_debian_or_a_path() {
        assert_eq!(Given::of("debian"), Given::Debian(None));
        assert_eq!(Given::of("debian:7.2"), Given::Debian(Some("7.2")));
        assert_eq!(Given::of("debian-tree"), Given::Path(Path::new("debian-tree")));
        assert_eq!(Given::of("../linux"), Given::Path(Path::new("../linux")));
    }

    #[test]
    fn a_version_is_read_from_the_makefile() {
        let root = Fixture::new("version", &[("Makefile", MAKEFILE), ("Kconfig", "")]);
        assert_eq!(version(root.path()).as_deref(), Ok("7.2.13-rc1"));
        root.put("Makefile", "VERSION = 7\nPATCHLEVEL = 2\nSUBLEVEL =\nEXTRAVERSION = $(shell x)\n");
        assert_eq!(version(root.path()).as_deref(), Ok("7.2.0"));
        root.put("Makefile", "all:\n");
        assert!(version(root.path()).expect_err("another project").contains("no kernel's source"));
    }

    #[test]
    fn the_newest_unpacked_source_of_a_version_is_taken() {
        let root = Fixture::new("unpacked", &[]);
        for (name, patch) in [("linux-source-7.2_7.2.9-1", 9), ("linux-source-7.2_7.2.13-1", 13)] {
            root.put(
                format!("{name}/Makefile"),
                format!("VERSION = 7\nPATCHLEVEL = 2\nSUBLEVEL = {patch}\n"),
            );
            root.put(format!("{name}/Kconfig"), "");
        }
        let found = |version| unpacked(root.path(), version).map(|found| found.version);
        assert_eq!(found(None).as_deref(), Some("7.2.13"));
        assert_eq!(found(Some("7.2")).as_deref(), Some("7.2.13"));
        assert_eq!(found(Some("7.2.9")).as_deref(), Some("7.2.9"));
        assert_eq!(found(Some("7.2.1")), None);
        assert_eq!(found(Some("6.12")), None);
    }

    #[test]
    fn a_users_folder_is_marked_by_its_commit() {
        let root = Fixture::new("marked", &[("Makefile", MAKEFILE), ("Kconfig", "")]);
        let ceiling = || of_folder(root.path()).expect("a source");
        let alone = ceiling();
        assert!(!alone.is_fixed && alone.id.starts_with("tree-"), "{alone:?}");
        let git = |words: &[&str]| {
            let who = ["-c", "user.name=a", "-c", "user.email=a@b"];
            git(root.path(), &[&who[..], words].concat()).expect("git works")
        };
        git(&["init", "-q"]);
        assert_eq!(ceiling(), alone, "git does not know it yet");
        git(&["add", "."]);
        git(&["commit", "-q", "-m", "one"]);
        let clean = ceiling();
        assert!(clean.is_fixed && clean.mark.as_ref().is_some_and(|mark| mark.len() == 10), "{clean:?}");
        root.put("Kconfig", "# changed\n");
        let dirty = ceiling();
        assert!(!dirty.is_fixed && dirty.mark.is_some_and(|mark| mark.ends_with("-dirty")));
    }
}
