//! Private folders beside another user who knows how their names begin.

use std::fs::{self, File, Permissions};
use std::os::fd::AsRawFd;
use std::os::unix::ffi::OsStrExt;
use std::os::unix::fs::{MetadataExt, PermissionsExt, symlink};

use needs::{Lack, Need, need};

use super::*;
use crate::identity::set_effective_uid;

/// The other user.
const OTHER: u32 = 65534;

/// A folder that every user can write, as `/tmp` is.
struct Shared(PrivateFolder);

impl std::ops::Deref for Shared {
    type Target = PrivateFolder;

    fn deref(&self) -> &PrivateFolder {
        &self.0
    }
}

impl Drop for Shared {
    fn drop(&mut self) {
        // What the other user made in it, too.
        let _ = fs::remove_dir_all(self.path());
    }
}

fn shared() -> Shared {
    let shared = PrivateFolder::new("test").expect("a folder");
    fs::set_permissions(shared.path(), Permissions::from_mode(0o1777)).expect("one's own");
    Shared(shared)
}

/// Does it as the other user.
fn as_other<T: Send>(what: impl FnOnce() -> T + Send) -> Result<T, Lack> {
    Need::OtherUser.met_if(effective_uid() == 0, "only root can act as another user")?;
    let acting = move || {
        set_effective_uid(OTHER).expect("root may");
        what()
    };
    std::thread::scope(|scope| Ok(scope.spawn(acting).join().expect("no panic")))
}

fn name(kind: &str, number: u64) -> String {
    format!("{BEGIN}{kind}-{number:0DIGITS$x}{END}")
}

/// As a killed command leaves it.
fn left(parent: &Path, number: u64) -> PathBuf {
    let path = parent.join(name("left", number));
    fs::create_dir(&path).expect("made");
    fs::set_permissions(&path, Permissions::from_mode(0o700)).expect("one's own");
    fs::create_dir_all(path.join("deep/er")).expect("made");
    fs::write(path.join("deep/file"), "text").expect("written");
    path
}

#[test]
fn it_is_this_users_alone_and_goes_with_its_value() {
    let shared = shared();
    let (one, two) = (
        PrivateFolder::below(shared.path(), "test").expect("made"),
        PrivateFolder::below(shared.path(), "test").expect("made"),
    );
    assert_ne!(one.path(), two.path());
    assert!(one.folder().found().expect("open").is_private_folder(effective_uid()));
    fs::create_dir_all(one.path().join("a/b")).expect("made");
    fs::write(one.path().join("a/b/c"), "").expect("written");
    let place = one.named().to_owned();
    drop(one);
    assert!(!place.exists() && two.path().exists());
    two.remove().expect("removed");
    assert!(shared.folder().is_empty().expect("open"));
}

#[test]
fn what_a_killed_command_left_goes_and_what_is_in_use_stays() {
    let shared = shared();
    let stale = left(shared.path(), 1);
    let claimed = left(shared.path(), 2);
    let claim = Held::of(&claimed).expect("nobody removes it");
    let used = PrivateFolder::below(shared.path(), "test").expect("made");
    assert!(!stale.exists() && claimed.exists(), "a new one removes what was left");
    let (open, named) = (left(shared.path(), 3), shared.path().join("binderperf-results.tmp"));
    fs::set_permissions(&open, Permissions::from_mode(0o755)).expect("one's own");
    fs::create_dir(&named).expect("made");
    sweep(shared.path());
    assert!([&claimed, &open, &named].iter().all(|path| path.exists()) && used.path().exists());
    drop(claim);
    sweep(shared.path());
    assert!(!claimed.exists());
    assert_eq!(Held::of(&claimed).expect_err("gone").kind(), io::ErrorKind::NotFound);
}

#[test]
fn folders_that_are_made_and_removed_beside_each_other_stay_whole() {
    let shared = shared();
    std::thread::scope(|scope| {
        for _ in 0..4 {
            scope.spawn(|| {
                for _ in 0..50 {
                    let folder = PrivateFolder::below(shared.path(), "test").expect("made");
                    fs::write(folder.path().join("file"), "text").expect("in use");
                    assert_eq!(fs::read(folder.path().join("file")).expect("in use"), b"text");
                }
            });
        }
    });
    assert!(shared.folder().is_empty().expect("open"));
}

#[test]
fn nothing_of_another_user_is_opened_removed_or_waited_for() {
    let shared = shared();
    let target = PrivateFolder::new("test").expect("a folder");
    fs::write(target.path().join("kept"), "text").expect("written");
    let at = shared.path();
    let planted = as_other(|| {
        let folder = left(at, 1);
        let lock = File::open(&folder).expect("one's own");
        lock.lock().expect("free");
        let held = left(at, 2);
        let shared_lock = File::open(&held).expect("one's own");
        shared_lock.lock_shared().expect("free");
        let free = left(at, 3);
        symlink(target.path(), at.join(name("left", 4))).expect("linked");
        crate::kernel::make_fifo(&at.join(name("left", 5))).expect("made");
        ([folder, held, free], [lock, shared_lock])
    });
    let (folders, _locks) = need!(planted);
    let before = folders.each_ref().map(|path| path.metadata().expect("there").atime_nsec());
    drop(PrivateFolder::below(at, "test").expect("made beside them"));
    assert!(folders.iter().all(|path| path.join("deep/file").exists()), "each is as it was");
    assert_eq!(before, folders.each_ref().map(|path| path.metadata().expect("there").atime_nsec()));
    assert!(Held::of(&folders[2]).is_err(), "nor claimed");
    assert!(at.join(name("left", 4)).is_symlink() && target.path().join("kept").exists());
}

#[test]
fn what_another_user_owns_in_ones_own_folder_stays() {
    let shared = shared();
    let mine = left(shared.path(), 1);
    let foreign = mine.join("deep/theirs");
    need!(Need::OtherUser.met_if(effective_uid() == 0, "only root can give files to another user"));
    fs::create_dir(&foreign).expect("made");
    fs::write(foreign.join("file"), "").expect("written");
    std::os::unix::fs::chown(&foreign, Some(OTHER), None).expect("root may");
    symlink(&foreign, mine.join("link")).expect("linked");
    sweep(shared.path());
    assert!(
        foreign.join("file").exists() && !mine.join("deep/er").exists() && !mine.join("link").is_symlink()
    );
    std::os::unix::fs::chown(&foreign, Some(0), None).expect("root may");
    sweep(shared.path());
    assert!(!mine.exists());
}

#[test]
fn a_folder_that_another_user_put_in_its_place_is_neither_used_nor_removed() {
    let shared = shared();
    // Without the sticky bit each user can move what is another's.
    fs::set_permissions(shared.path(), Permissions::from_mode(0o777)).expect("one's own");
    let folder = PrivateFolder::below(shared.path(), "test").expect("made");
    let named = folder.named().to_owned();
    let swapped = as_other(|| {
        fs::rename(&named, shared.path().join("away")).expect("nothing is sticky");
        fs::create_dir(&named).expect("made");
        fs::set_permissions(&named, Permissions::from_mode(0o777)).expect("one's own");
    });
    need!(swapped);
    fs::write(folder.path().join("secret"), "").expect("written");
    assert!(shared.path().join("away/secret").exists() && !named.join("secret").exists());
    drop(folder);
    assert!(named.exists(), "theirs");
}

#[test]
fn without_descriptors_nothing_stays() {
    let shared = shared();
    // A thread's limit is its process's: a copy of this test has one of its own.
    let name = "private_folder::tests::without_descriptors_nothing_stays";
    let variable = "BINDERPERF_TEST_PLACE";
    if let Some(place) = std::env::var_os(variable) {
        let free = File::open("/").expect("a descriptor").as_raw_fd() as u64;
        for more in 0..4 {
            crate::limits::set_open_files(free + more).expect("lower");
            let made = PrivateFolder::below(Path::new(&place), "test");
            assert_eq!(made.is_ok(), more >= 2, "{made:?}");
        }
        return;
    }
    let own = std::env::current_exe().expect("this test");
    let status =
        std::process::Command::new(own).args(["--exact", name]).env(variable, shared.path()).output();
    let output = status.expect("it starts");
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stdout));
    assert!(shared.folder().is_empty().expect("open"));
}

#[test]
fn an_error_names_the_folder_once_and_what_to_do() {
    let none = Path::new(std::ffi::OsStr::from_bytes(b"/none\xff"));
    let text = PrivateFolder::below(none, "test").expect_err("no parent").to_string();
    assert_eq!(text, "making a folder of its own in \"/none\\xFF\": ENOENT (No such file or directory)");
    assert_eq!(shown(Path::new("/tmp")), "/tmp");
}

#[test]
fn looking_for_what_was_left_ends_whatever_is_beside_it() {
    let shared = shared();
    let stale = left(shared.path(), 1);
    remove_left(shared.folder(), Duration::ZERO);
    assert!(stale.exists(), "no time was left");
    remove_left(shared.folder(), LOOKING);
    assert!(!stale.exists());
}
