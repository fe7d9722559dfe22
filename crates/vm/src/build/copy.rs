//! Copies of a source that may be changed: for patches, and for a tree that was built in.
//! Not here: finding the source (`source`).
//!
//! Beside a copy stands its index: size and time of change of each file as it was copied. A file that a patch touches
//! leaves the index first, so that the next build copies it anew; what is copied again gets a new time, so that make sees it.
//! The first copy keeps the times, so that objects that were made from the source are good for its copy.

use std::collections::{BTreeMap, BTreeSet};
use std::fs::File;
use std::io;
use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

use crate::kernel::files_below;

use super::error::BuildError;
use super::source::{git, is_tracked};

/// Size and time of change in ns, as they were copied.
type Index = BTreeMap<String, (u64, i128)>;

/// Files of a source, relative to it: what git knows or does not ignore; without git all.
///
/// # Errors
/// [`BuildError::Vm`]: the folder cannot be read.
pub(super) fn files(source: &Path) -> Result<Vec<String>, BuildError> {
    if is_tracked(source)
        && let Some(listed) = git(source, &["ls-files", "-z", "--cached", "--others", "--exclude-standard"])
    {
        return Ok(listed.split('\0').filter(|name| !name.is_empty()).map(str::to_owned).collect());
    }
    let inside = |path: PathBuf| Some(path.strip_prefix(source).ok()?.to_str()?.to_owned());
    Ok(files_below(source)?.into_iter().filter_map(inside).collect())
}

/// Whether a source was built in, so that make refuses another output folder.
pub(super) fn was_built_in(source: &Path, folder: &str) -> bool {
    let marks =
        [".config".to_owned(), "include/config".to_owned(), format!("arch/{folder}/include/generated")];
    marks.iter().any(|mark| source.join(mark).exists())
}

/// Makes a copy the same as its source again, except for what patches will change.
///
/// # Errors
/// [`BuildError::Vm`].
pub(super) fn refresh(
    source: &Path,
    files: &[String],
    copy: &Path,
    patches: &[Vec<u8>],
) -> Result<(), BuildError> {
    let doing = || BuildError::host(format!("copying {} to {}", source.display(), copy.display()));
    std::fs::create_dir_all(copy).map_err(doing())?;
    let place = index_of(copy);
    let old: Index =
        std::fs::read(&place).ok().and_then(|text| serde_json::from_slice(&text).ok()).unwrap_or_default();
    let touched: BTreeSet<String> = patches.iter().flat_map(|patch| touches(patch)).collect();
    let mut index = Index::new();
    let mut stale = Vec::new();
    for name in files {
        // A file that git knows may have been removed.
        let Ok(found) = source.join(name).symlink_metadata() else { continue };
        if found.is_dir() {
            continue;
        }
        let state = (found.len(), i128::from(found.mtime()) * 1_000_000_000 + i128::from(found.mtime_nsec()));
        if old.get(name) != Some(&state) {
            stale.push(name);
        }
        index.insert(name.clone(), state);
    }
    let gone: Vec<&String> = old.keys().filter(|name| !index.contains_key(*name)).collect();
    // Files on their way are in no index: a build that is killed here copies them again. Files that only a patch makes
    // stay in it with no state, so that they are removed.
    let mut on_the_way = old.clone();
    on_the_way.retain(|name, state| index.get(name) == Some(state));
    on_the_way.extend(gone.iter().map(|name| ((*name).clone(), (0, 0))));
    on_the_way.retain(|name, _| !touched.contains(name));
    on_the_way.extend(touched.iter().map(|name| (name.clone(), (0, 0))));
    write_index(&place, &on_the_way).map_err(doing())?;
    for name in gone {
        remove_if_there(&copy.join(name)).map_err(doing())?;
    }
    let is_first = old.is_empty();
    for name in stale {
        transfer(&source.join(name), &copy.join(name), is_first).map_err(doing())?;
    }
    index.retain(|name, _| !touched.contains(name));
    index.extend(touched.into_iter().map(|name| (name, (0, 0))));
    write_index(&place, &index).map_err(doing())
}

/// Beside the copy, whose name has dots of its own.
fn index_of(copy: &Path) -> PathBuf {
    copy.with_added_extension("index")
}

fn write_index(place: &Path, index: &Index) -> io::Result<()> {
    let draft = place.with_added_extension("draft");
    std::fs::write(&draft, serde_json::to_vec(index)?)?;
    std::fs::rename(&draft, place)
}

fn remove_if_there(path: &Path) -> io::Result<()> {
    match std::fs::remove_file(path) {
        Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(()),
        result => result,
    }
}

/// Copies a file or a link in place of what is there; its time of change is now, or with `keeps_time` that of its source.
fn transfer(from: &Path, to: &Path, keeps_time: bool) -> io::Result<()> {
    if let Some(folder) = to.parent() {
        std::fs::create_dir_all(folder)?;
    }
    remove_if_there(to)?;
    if from.symlink_metadata()?.is_symlink() {
        return std::os::unix::fs::symlink(std::fs::read_link(from)?, to);
    }
    std::fs::copy(from, to)?;
    if keeps_time {
        File::open(to)?.set_modified(from.metadata()?.modified()?)?;
    }
    Ok(())
}

/// The files that a patch names, without their first folder.
fn touches(patch: &[u8]) -> Vec<String> {
    let text = String::from_utf8_lossy(patch);
    let name = |line: &str| {
        let file = ["--- ", "+++ "].into_iter().find_map(|start| line.strip_prefix(start))?;
        let file = file.split('\t').next()?.trim();
        let inner = file.split_once('/')?.1;
        (file != "/dev/null").then(|| inner.to_owned())
    };
    let renamed = |line: &str| {
        ["rename from ", "rename to ", "copy to "]
            .into_iter()
            .find_map(|start| line.strip_prefix(start))
            .map(str::to_owned)
    };
    text.lines().filter_map(|line| name(line).or_else(|| renamed(line))).collect()
}

/// Applies patches to a copy, in order.
///
/// # Errors
/// [`BuildError::Patch`] with the first complaint; [`BuildError::Missing`]: there is no `patch`.
pub(super) fn apply(patches: &[PathBuf], copy: &Path) -> Result<(), BuildError> {
    for file in patches {
        let mut command = Command::new("patch");
        command.args(["-p1", "--batch", "--forward", "--no-backup-if-mismatch", "--reject-file=-", "-i"]);
        let whole = file.canonicalize().map_err(BuildError::host(format!("reading {}", file.display())))?;
        command.arg(whole).arg("-d").arg(copy).env("LC_ALL", "C").stdin(Stdio::null());
        let output = command.output().map_err(|_| BuildError::Missing {
            who: "this machine".to_owned(),
            programs: vec!["patch (package patch)".to_owned()],
            remedy: "install it: apt-get install patch".to_owned(),
        })?;
        if !output.status.success() {
            let said = [output.stdout, output.stderr].concat();
            let said = String::from_utf8_lossy(&said);
            let said = complaint(&said);
            return Err(BuildError::Patch { file: file.clone(), said });
        }
    }
    Ok(())
}

/// The first complaint of `patch`, with the file that it is about.
fn complaint(said: &str) -> String {
    const WORDS: [&str; 6] = ["FAILED", "can't find file", "malformed", "garbage", "Reversed", "patch: "];
    let lines: Vec<&str> = said.lines().collect();
    let at = lines.iter().position(|line| WORDS.iter().any(|word| line.contains(word)));
    let why = at.map(|at| lines[at]).or(lines.first().copied()).unwrap_or("patch said nothing");
    // "patching file X" comes before the lines about it.
    let before = &lines[..at.unwrap_or(0)];
    let file = before.iter().rfind(|line| line.starts_with("patching file")).copied();
    [file.unwrap_or_default(), why].join(" ").trim().to_owned()
}

#[cfg(test)]
mod tests {
    use super::*;
    use driver::root::Fixture;

    const PATCH: &str = "--- a/kernel/a.c\n+++ b/kernel/a.c\n@@ -1 +1 @@\n-one\n+two\n--- /dev/null\n+++ b/kernel/new.c\n@@ -0,0 +1 @@\n+new\n";

    fn tree(name: &str) -> (Fixture, PathBuf) {
        let root =
            Fixture::new(name, &[("src/kernel/a.c", "one\n"), ("src/kernel/b.c", "b\n"), ("p.diff", PATCH)]);
        let copy = root.path().join("copy");
        (root, copy)
    }

    #[test]
    fn a_complaint_names_the_file_that_it_is_about() {
        let said = "patching file a.c\nHunk #2 FAILED at 493.\n1 out of 34 hunks FAILED\npatching file b.c\n";
        assert_eq!(complaint(said), "patching file a.c Hunk #2 FAILED at 493.");
        assert_eq!(complaint("patch: **** malformed patch\n"), "patch: **** malformed patch");
        assert_eq!(complaint(""), "patch said nothing");
    }

    #[test]
    fn a_patch_changes_the_copy_only_and_the_next_refresh_undoes_it() {
        let (root, copy) = tree("copy-patch");
        let source = root.path().join("src");
        let text = |path: &str| std::fs::read_to_string(copy.join(path)).ok();
        let names = files(&source).expect("a folder");
        refresh(&source, &names, &copy, &[PATCH.as_bytes().to_vec()]).expect("copied");
        let before = copy.join("kernel/b.c").metadata().expect("copied").mtime_nsec();
        let times =
            [&source, &copy].map(|tree| tree.join("kernel/b.c").metadata().expect("a file").mtime_nsec());
        assert_eq!(times[0], times[1], "objects of the source are good for its copy");
        apply(&[root.path().join("p.diff")], &copy).expect("it applies");
        assert_eq!(
            (text("kernel/a.c").as_deref(), text("kernel/new.c").as_deref()),
            (Some("two\n"), Some("new\n"))
        );
        assert_eq!(std::fs::read_to_string(source.join("kernel/a.c")).expect("the source"), "one\n");
        assert!(!source.join("kernel/new.c").exists());
        root.put("src/kernel/b.c", "longer\n");
        refresh(&source, &names, &copy, &[]).expect("copied");
        assert_eq!((text("kernel/a.c").as_deref(), text("kernel/new.c")), (Some("one\n"), None));
        assert_eq!(text("kernel/b.c").as_deref(), Some("longer\n"));
        let after = copy.join("kernel/b.c").metadata().expect("copied").mtime_nsec();
        assert_ne!(before, after, "make sees the change");
        refresh(&source, &names, &copy, &[]).expect("copied");
        let again = copy.join("kernel/b.c").metadata().expect("copied").mtime_nsec();
        assert_eq!(after, again, "what did not change keeps its time");
    }

    #[test]
    fn a_patch_that_does_not_apply_is_told() {
        let (root, copy) = tree("copy-bad");
        let source = root.path().join("src");
        root.put("src/kernel/a.c", "something else\n");
        refresh(&source, &files(&source).expect("a folder"), &copy, &[PATCH.as_bytes().to_vec()])
            .expect("copied");
        let error = apply(&[root.path().join("p.diff")], &copy).expect_err("it does not apply");
        assert_eq!(error.exit_code(), 2);
        assert!(error.to_string().contains("does not apply: patching file kernel"), "{error}");
        root.put("junk", "no patch\n");
        let error = apply(&[root.path().join("junk")], &copy).expect_err("no patch");
        assert!(error.to_string().contains("garbage"), "{error}");
    }

    #[test]
    fn a_tree_that_was_built_in_is_noticed() {
        let (root, _) = tree("copy-built");
        let source = root.path().join("src");
        assert!(!was_built_in(&source, "x86"));
        root.put("src/.config", "");
        assert!(was_built_in(&source, "x86"));
    }

    #[test]
    fn each_copy_has_an_index_of_its_own() {
        assert_ne!(index_of(Path::new("/c/linux-7.2.13-1")), index_of(Path::new("/c/linux-7.2.14-1")));
    }

    #[test]
    fn a_patch_names_its_files() {
        assert_eq!(touches(PATCH.as_bytes()), ["kernel/a.c", "kernel/a.c", "kernel/new.c"]);
        assert_eq!(touches(b"rename from a/b\nrename to a/c\n"), ["a/b", "a/c"]);
    }
}
