//! What a folder's descriptor reaches, and what it does not.

use std::io::{Read, Write};
use std::os::unix::fs::{PermissionsExt, symlink};

use super::*;
use crate::private_folder::PrivateFolder;

fn os(name: &str) -> &OsStr {
    OsStr::new(name)
}

#[test]
fn one_name_is_no_path() {
    for name in ["", ".", "..", "a/b", "/", "a\0b"] {
        assert!(!is_name(os(name)), "{name:?}");
    }
    assert!(is_name(os("..a")) && is_name(OsStr::from_bytes(b"\xff")));
    let folder = PrivateFolder::new("test").expect("a folder");
    let error = folder.folder().create_file(os("../x"), 0o600).expect_err("a path");
    assert_eq!(error.raw_os_error(), Some(EINVAL));
}

#[test]
fn no_link_is_followed() {
    let (folder, other) =
        (PrivateFolder::new("test").expect("a folder"), PrivateFolder::new("test").expect("a folder"));
    let here = folder.folder();
    std::fs::write(other.path().join("secret"), "kept").expect("written");
    symlink(other.path(), folder.path().join("link")).expect("linked");
    symlink(other.path().join("secret"), folder.path().join("file")).expect("linked");
    symlink(other.path().join("none"), folder.path().join("dangling")).expect("linked");
    assert!(here.look(os("link")).expect("there").is_link());
    assert!(here.folder(os("link")).is_err());
    assert!(Folder::open_itself(&folder.path().join("link")).is_err());
    for name in ["file", "dangling"] {
        assert!(here.read_file(os(name)).is_err() && here.update_file(os(name)).is_err(), "{name}");
        assert_eq!(
            here.create_file(os(name), 0o600).expect_err("taken").kind(),
            io::ErrorKind::AlreadyExists
        );
    }
    here.clear().expect("removed");
    assert!(here.is_empty().expect("open"));
    assert_eq!(std::fs::read(other.path().join("secret")).expect("there"), b"kept");
    assert!(!other.path().join("none").exists());
}

#[test]
fn files_are_made_read_moved_and_removed() {
    let folder = PrivateFolder::new("test").expect("a folder");
    let here = folder.folder();
    here.create_file(os("a"), 0o600).expect("new").write_all(b"text").expect("written");
    let mut text = String::new();
    here.read_file(os("a")).expect("there").read_to_string(&mut text).expect("text");
    assert_eq!((text.as_str(), here.look(os("a")).expect("there").mode & 0o777), ("text", 0o600));
    here.replace_file(os("a"), b"new", 0o600).expect("written");
    assert_eq!(std::fs::read(folder.path().join("a")).expect("there"), b"new");
    here.make_folder(os("sub"), 0o700).expect("made");
    assert!(here.replace_file(os("sub"), b"", 0o600).is_err(), "a folder is not replaced");
    let sub = here.folder(os("sub")).expect("there");
    here.rename(os("a"), &sub, os("b")).expect("moved");
    let names = |folder: &Folder| folder.entries().expect("open").into_iter().map(|entry| entry.name);
    assert_eq!(names(&sub).collect::<Vec<_>>(), ["b"]);
    assert!(names(here).eq(["sub"]) && names(here).eq(["sub"]), "from the beginning each time");
    assert!(std::fs::read(sub.path_through().join("b")).is_ok());
    assert_eq!(here.remove_file(os("sub")).expect_err("a folder").raw_os_error(), Some(EISDIR));
    sub.remove_file(os("b")).expect("removed");
    here.remove_folder(os("sub")).expect("removed");
}

#[test]
fn a_fifo_is_refused_without_a_wait() {
    let folder = PrivateFolder::new("test").expect("a folder");
    crate::kernel::make_fifo(&folder.path().join("fifo")).expect("made");
    let error = folder.folder().read_file(os("fifo")).expect_err("no file");
    assert_eq!(error.raw_os_error(), Some(EINVAL));
}

#[test]
fn a_nameless_file_leaves_no_name() {
    let folder = PrivateFolder::new("test").expect("a folder");
    folder.folder().nameless_file().expect("a file").write_all(b"x").expect("written");
    assert!(folder.folder().is_empty().expect("open"));
}

#[test]
fn all_goes_however_deep_it_is_and_closed() {
    let folder = PrivateFolder::new("test").expect("a folder");
    let mut at = folder.path().to_owned();
    for depth in 0..300 {
        at.push("d");
        std::fs::create_dir(&at).expect("made");
        std::fs::write(at.join(format!("f{depth}")), "").expect("written");
    }
    let closed = folder.path().join("closed");
    std::fs::create_dir_all(closed.join("in/er")).expect("made");
    for path in [closed.join("in"), closed] {
        std::fs::set_permissions(path, std::fs::Permissions::from_mode(0o0)).expect("one's own");
    }
    folder.folder().clear().expect("removed");
    assert!(folder.folder().is_empty().expect("open"));
}
