//! Drafts as files, links, devices and full disks meet them.

use std::io::Read;
use std::os::unix::fs::symlink;
use std::process::Command;
use std::time::Duration;

use needs::{Lack, Need, need};

use super::*;
use crate::private_folder::PrivateFolder;

/// A folder of its own, removed on drop; a file system of its own where it was mounted.
struct Folder(PrivateFolder);

impl Folder {
    fn new(name: &str) -> Self {
        Self(PrivateFolder::new(name).expect("a folder"))
    }

    /// A file system with this much room.
    fn small(name: &str, options: &str) -> Result<Self, Lack> {
        let place = Self::new(name);
        crate::kernel::mount("tmpfs", place.0.path(), options).map_err(|why| Need::Mount.lacks(why))?;
        Ok(place)
    }

    fn path(&self, name: &str) -> PathBuf {
        self.0.path().join(name)
    }

    fn old(&self, name: &str) -> PathBuf {
        let path = self.path(name);
        fs::write(&path, "old").expect("written");
        path
    }

    /// The names in it, sorted.
    fn names(&self) -> Vec<String> {
        let entries = fs::read_dir(self.0.path()).expect("there");
        let mut names: Vec<String> =
            entries.map(|entry| entry.expect("read").file_name().to_string_lossy().into_owned()).collect();
        names.sort();
        names
    }
}

impl Drop for Folder {
    fn drop(&mut self) {
        let place = self.0.path();
        let _ = Command::new("umount").arg("-l").arg(place).stderr(std::process::Stdio::null()).status();
    }
}

fn text(path: &Path) -> String {
    fs::read_to_string(path).expect("there")
}

/// A draft under a hidden name, as on a file system without files that have none.
fn hidden(path: &Path) -> Draft {
    let (file, name) = named(folder_of(path), 0o666).expect("a name");
    let older = File::options().write(true).open(path).ok();
    Draft::at(file, Place::Beside { path: path.to_owned(), older, name: Some(name), shown: false })
}

#[test]
fn an_older_file_stays_until_the_new_one_is_whole() {
    let place = Folder::new("whole");
    let path = place.old("r.json");
    for begin in [|path: &Path| Draft::new(path).expect("begun"), hidden] {
        fs::write(&path, "old").expect("written");
        let mut draft = begin(&path);
        draft.write_all(b"ne").expect("written");
        assert_eq!(text(&path), "old");
        drop(draft);
        assert_eq!((text(&path), place.names()), ("old".to_owned(), vec!["r.json".to_owned()]));
        let mut draft = begin(&path);
        draft.write_all(b"new").expect("written");
        draft.commit().expect("whole");
        assert_eq!((text(&path), place.names()), ("new".to_owned(), vec!["r.json".to_owned()]));
    }
    let fresh = place.path("fresh.json");
    write(&fresh, "first").expect("written");
    assert_eq!(text(&fresh), "first");
    assert_eq!(place.names(), ["fresh.json", "r.json"]);
}

#[test]
fn mode_links_and_refusals_are_those_of_a_file_that_is_written() {
    let place = Folder::new("mode");
    let path = place.old("r.json");
    fs::set_permissions(&path, fs::Permissions::from_mode(0o640)).expect("own file");
    let (link, dangling) = (place.path("link"), place.path("dangling"));
    symlink("r.json", &link).expect("made");
    symlink(place.path("target"), &dangling).expect("made");
    write(&link, "new").expect("written");
    write(&dangling, "made").expect("written");
    assert_eq!((text(&path), text(&place.path("target"))), ("new".to_owned(), "made".to_owned()));
    assert!(fs::symlink_metadata(&link).expect("there").is_symlink(), "it is a link still");
    assert!(fs::symlink_metadata(&dangling).expect("there").is_symlink(), "it is a link still");
    assert_eq!(fs::metadata(&path).expect("there").mode() & 0o7777, 0o640);
    let errno = |path: &Path| Draft::new(path).expect_err("refused").raw_os_error();
    assert_eq!(errno(place.0.path()), Some(EISDIR));
    assert_eq!(errno(&place.path("none/r.json")), Some(crate::errno::ENOENT));
    assert_eq!(errno(&place.path("new/")), Some(EISDIR));
    symlink("loop", place.path("loop")).expect("made");
    assert_eq!(errno(&place.path("loop")), Some(crate::errno::ELOOP));
    assert!(write(Path::new("/dev/null"), "gone").is_ok());
    let full = write(Path::new("/dev/full"), "x").expect_err("no space");
    assert_eq!(full.raw_os_error(), Some(crate::errno::ENOSPC));
}

#[test]
fn an_open_descriptor_is_written_at_its_place() {
    let place = Folder::new("open");
    let path = place.path("out");
    let mut open = File::create(&path).expect("made");
    open.write_all(b"before ").expect("written");
    let number = std::os::fd::AsRawFd::as_raw_fd(&open);
    let link = place.path("link");
    symlink(format!("/proc/self/fd/{number}"), &link).expect("made");
    write(Path::new(&format!("/proc/self/fd/{number}")), "one ").expect("written");
    write(&link, "two ").expect("written");
    open.write_all(b"after").expect("written");
    assert_eq!(text(&path), "before one two after");
    let (mut reader, writer) = io::pipe().expect("a pipe");
    write(Path::new(&format!("/dev/fd/{}", std::os::fd::AsRawFd::as_raw_fd(&writer))), "piped")
        .expect("written");
    drop(writer);
    let mut said = String::new();
    reader.read_to_string(&mut said).expect("read");
    assert_eq!(said, "piped");
}

#[test]
fn what_a_killed_writer_left_goes_with_the_next_draft() {
    let place = Folder::new("left");
    let path = place.old("r.json");
    // A writer that is alive, and one whose lock went with it.
    let (alive, hers) = named(place.0.path(), 0o600).expect("a name");
    let (dead, left) = named(place.0.path(), 0o600).expect("a name");
    drop(dead);
    assert_ne!(hers, left);
    write(&path, "new").expect("written");
    assert_eq!(place.names(), [".binderperf-draft-0", "r.json"]);
    assert!(is_at(&alive, &hers));
    drop(alive);
    // A link of that name is not followed.
    fs::remove_file(&hers).expect("removed");
    symlink("r.json", place.path(".binderperf-draft-1")).expect("made");
    write(&path, "newer").expect("written");
    assert_eq!((text(&path).as_str(), place.names().len()), ("newer", 2));
}

#[test]
fn all_names_may_be_taken() {
    let place = Folder::new("taken");
    let path = place.old("r.json");
    for number in 0..16 {
        // Folders: never taken for a draft, as another user's files.
        fs::create_dir(place.path(&format!(".binderperf-draft-{number}"))).expect("made");
    }
    write(&path, "new").expect("written");
    assert_eq!((text(&path).as_str(), place.names().len()), ("new", 17));
}

#[test]
fn a_part_stands_beside_the_older_file() {
    let place = Folder::new("part");
    let path = place.path("r.json");
    for (content, kept) in [("first", Kept::There), ("second", Kept::Beside(partial(&path)))] {
        let mut draft = Draft::new(&path).expect("begun");
        draft.write_all(content.as_bytes()).expect("written");
        assert_eq!(draft.commit_part().expect("kept"), kept);
    }
    assert_eq!((text(&path).as_str(), text(&partial(&path)).as_str()), ("first", "second"));
    // A later one replaces the part; the whole one takes its place.
    let mut draft = Draft::new(&path).expect("begun");
    draft.show();
    assert_eq!(text(&partial(&path)), "");
    draft.write_all(b"third").expect("written");
    assert_eq!(text(&partial(&path)), "third");
    draft.commit().expect("whole");
    assert_eq!((text(&path).as_str(), place.names().len()), ("third", 1));
    // What was shown stays if its writer fails, unless it is empty or thrown away.
    for (content, discarded, names) in [("", false, 1), ("x", true, 1), ("x", false, 2)] {
        let mut draft = Draft::new(&path).expect("begun");
        draft.show();
        draft.write_all(content.as_bytes()).expect("written");
        if discarded {
            draft.discard()
        } else {
            drop(draft)
        }
        assert_eq!(place.names().len(), names, "{content:?} {discarded}");
    }
    assert_eq!(text(&path), "third");
}

#[test]
fn a_full_disk_leaves_the_older_file() {
    let place = need!(Folder::small("full", "size=64k"));
    let path = place.old("r.json");
    let error = write(&path, vec![b'x'; 200_000]).expect_err("it does not fit");
    assert_eq!(error.raw_os_error(), Some(crate::errno::ENOSPC));
    assert_eq!((text(&path).as_str(), place.names().len()), ("old", 1));
    // A process that another test is starting may have the removed file open until its exec.
    assert!(crate::patience::until(Duration::from_secs(20), || write(&path, "new").is_ok()), "it fits");
    assert_eq!(text(&path), "new");
}

#[test]
fn a_folder_that_takes_no_files_has_its_file_written() {
    let place = need!(Folder::small("inodes", "size=1m"));
    let path = place.old("r.json");
    let file = place.path("mounted");
    fs::write(&file, "old and long").expect("written");
    // A file that is a mount of its own cannot be replaced.
    let mounted = Command::new("mount").arg("--bind").arg(&path).arg(&file).status();
    assert!(mounted.is_ok_and(|status| status.success()), "mount --bind");
    write(&file, "new").expect("written");
    assert_eq!(text(&path), "new");
    let readonly = Command::new("mount").args(["-o", "remount,ro"]).arg(place.0.path()).status();
    assert!(readonly.is_ok_and(|status| status.success()), "remount,ro");
    let written = write(&file, "newer");
    assert!(written.is_err() || text(&path) == "newer", "{written:?}");
    assert_ne!(text(&path), "", "it is whole in any case");
    let _ = Command::new("umount").arg(&file).status();
}
