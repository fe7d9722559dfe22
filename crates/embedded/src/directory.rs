//! The directory that a broker and its clients share: permissions, content, and the lock under which brokers start
//! and end.
//! Not here: which directory (`context`), the broker itself (`broker`), starting one (`start`).
//!
//! Content: `broker.sock`, where the broker listens, and `broker.lock`. Only the holder of the lock may create or
//! remove the socket. A socket without a listener is left over from a killed broker; the next broker replaces it.

use std::fs::{self, DirBuilder, File, Metadata};
use std::io;
use std::os::unix::fs::{DirBuilderExt, MetadataExt};
use std::path::{Path, PathBuf};
use std::time::Duration;

use driver::error::OpenError;

/// Name prefix of a private directory, which is removed once its broker has ended.
pub(super) const PRIVATE: &str = "binderperf-private-";

/// Whether a directory is a private one.
pub(super) fn is_private(directory: &Path) -> bool {
    directory.file_name().is_some_and(|name| name.to_string_lossy().starts_with(PRIVATE))
}

/// Path of the broker's socket.
pub(super) fn socket(directory: &Path) -> PathBuf {
    directory.join("broker.sock")
}

fn lock_file(directory: &Path) -> PathBuf {
    directory.join("broker.lock")
}

/// The longest path of a socket in bytes (`unix(7)`: `sun_path`, less the 0 behind it).
const LONGEST: usize = 107;

/// Checks that the path of the broker's socket is short enough for the system. Call it before anything is created.
///
/// # Errors
/// Text with the length and the remedy.
pub(super) fn fits(directory: &Path) -> Result<(), String> {
    // A broker has another working directory.
    let absolute = std::path::absolute(directory).unwrap_or_else(|_| directory.to_owned());
    let len = socket(&absolute).as_os_str().len();
    if len <= LONGEST {
        return Ok(());
    }
    let users = super::context::user_directory() == directory;
    let shorter = match (is_private(directory), users) {
        (true, _) => "set TMPDIR to a directory with a shorter path",
        (false, true) => "set XDG_RUNTIME_DIR (else TMPDIR counts) to a directory with a shorter path",
        (false, false) => "name a directory with a shorter path (--context-dir)",
    };
    Err(format!(
        "the path of the socket in {} would have {len} bytes, and no socket's may have more than {LONGEST}: {shorter}",
        absolute.display()
    ))
}

/// Creates the directory if it is missing, and checks that no other user has access to it.
///
/// # Errors
/// [`OpenError`] with what was found there and the remedy.
pub(super) fn ensure(directory: &Path) -> Result<(), OpenError> {
    let refused = |why| OpenError::Embedded { directory: directory.to_owned(), why };
    if let Some(missing) = sys::needs::missing() {
        return Err(refused(missing));
    }
    fits(directory).map_err(refused)?;
    match DirBuilder::new().mode(0o700).create(directory) {
        Ok(()) => {}
        Err(error) if error.kind() == io::ErrorKind::AlreadyExists => {}
        Err(error) => {
            let what = sys::errno::describe(&error);
            return Err(refused(format!(
                "the directory cannot be made: {what}; set XDG_RUNTIME_DIR to a directory of this user's, or \
                 name another one"
            )));
        }
    }
    let said = |error| refused(format!("looking at it failed: {}", sys::errno::describe(&error)));
    let found = fs::symlink_metadata(directory).map_err(said)?;
    judge(&found, sys::identity::effective_uid()).map_err(refused)
}

/// Checks that user `me` may use what was found, and nobody else.
pub(super) fn judge(found: &Metadata, me: u32) -> Result<(), String> {
    let mode = found.mode() & 0o7777;
    if !found.is_dir() {
        Err("something else than a directory stands there; move it away, or name another place".to_owned())
    } else if found.uid() != me {
        Err(format!(
            "it belongs to user {}, not to {me}; run as that user, or name a directory of your own",
            found.uid()
        ))
    } else if mode & 0o077 != 0 {
        Err(format!("its mode is {mode:04o}, so others can reach into it; chmod it to 0700"))
    } else {
        Ok(())
    }
}

/// The lock of a directory: its holder may create or remove the socket. Released on drop.
#[derive(Debug)]
pub(super) struct Lock(#[expect(dead_code, reason = "held, not used")] File);

/// Waits for the lock.
///
/// # Errors
/// `ENOENT`: the directory is gone. `EMFILE`, `EACCES`.
pub(super) fn lock(directory: &Path) -> io::Result<Lock> {
    let path = lock_file(directory);
    loop {
        let file = File::options().read(true).write(true).create(true).truncate(false).open(&path)?;
        file.lock()?;
        // The previous holder may have removed the directory: a lock on an unlinked file excludes nobody.
        match fs::metadata(&path) {
            Ok(now) if same(&now, &file.metadata()?) => return Ok(Lock(file)),
            Ok(_) => {}
            Err(error) if error.kind() == io::ErrorKind::NotFound => {}
            Err(error) => return Err(error),
        }
    }
}

fn same(one: &Metadata, other: &Metadata) -> bool {
    (one.dev(), one.ino()) == (other.dev(), other.ino())
}

/// Identity of a socket's file, which differs from that of a later broker's file.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct SocketFile(u64, u64);

/// The socket's file as it is now; `None` if there is none.
pub(super) fn socket_file(directory: &Path) -> Option<SocketFile> {
    fs::symlink_metadata(socket(directory)).ok().map(|found| SocketFile(found.dev(), found.ino()))
}

/// Removes the broker's socket, and a private directory as a whole. The caller holds the lock. Files that are gone
/// already, or belong to another broker by now, are left alone.
pub(super) fn leave(directory: &Path, own: SocketFile, _held: &Lock) {
    if socket_file(directory) != Some(own) {
        return;
    }
    // Failure is harmless: the next broker replaces a socket that stays.
    let _ = fs::remove_file(socket(directory));
    if is_private(directory) {
        let _ = fs::remove_file(lock_file(directory));
        // Fails if the directory holds any other file, which is not ours to remove.
        let _ = fs::remove_dir(directory);
    }
}

/// Minimum age of a private directory before others may remove it as stale.
const STALE: Duration = Duration::from_secs(60);

/// Removes private directories below `parent` whose creator is gone and where no broker listens: a killed process
/// cannot remove its own.
pub(super) fn sweep(parent: &Path) {
    for entry in fs::read_dir(parent).into_iter().flatten().flatten() {
        let name = entry.file_name();
        let maker = name.to_str().and_then(|name| name.strip_prefix(PRIVATE)?.split_once('-'));
        let Some((maker, _)) = maker else { continue };
        let untouched = entry.metadata().and_then(|found| found.modified()).map(|when| when.elapsed());
        let stale = untouched.is_ok_and(|age| age.is_ok_and(|age| age >= STALE));
        if stale && !Path::new("/proc").join(maker).exists() {
            remove_stale(&entry.path());
        }
    }
}

fn remove_stale(directory: &Path) {
    // A directory of another user, or one recreated meanwhile, fails one of these steps and stays.
    if sys::seqpacket::connect(&socket(directory)).is_err()
        && let Ok(_held) = lock(directory)
    {
        let _ = fs::remove_file(socket(directory));
        let _ = fs::remove_file(lock_file(directory));
        let _ = fs::remove_dir(directory);
    }
}

#[cfg(test)]
pub(super) mod tests {
    use super::*;
    use std::os::unix::fs::PermissionsExt;
    use std::sync::atomic::{AtomicU32, Ordering};

    /// A directory for one test, removed on drop.
    pub(in super::super) struct Folder(pub(in super::super) PathBuf);

    impl Folder {
        pub(in super::super) fn new() -> Self {
            static MADE: AtomicU32 = AtomicU32::new(0);
            let number = MADE.fetch_add(1, Ordering::Relaxed);
            let name = format!("binderperf-test-{}-{number}", std::process::id());
            let path = std::env::temp_dir().join(name);
            ensure(&path).expect("a directory of our own");
            Self(path)
        }
    }

    impl Drop for Folder {
        fn drop(&mut self) {
            let _ = fs::remove_dir_all(&self.0);
        }
    }

    #[test]
    fn a_missing_directory_is_made_for_its_user_alone() {
        let folder = Folder::new();
        let inner = folder.0.join("inner");
        ensure(&inner).expect("made");
        ensure(&inner).expect("there");
        assert_eq!(fs::metadata(&inner).expect("there").mode() & 0o7777, 0o700);
        let text = ensure(&folder.0.join("a/b")).expect_err("no parent").to_string();
        assert!(text.contains("ENOENT") && text.contains("XDG_RUNTIME_DIR"), "{text}");
    }

    #[test]
    fn a_directory_too_deep_for_a_socket_is_refused_before_it_is_made() {
        let folder = Folder::new();
        let rest = |len: usize| len - folder.0.as_os_str().len() - "//broker.sock".len();
        let longest = folder.0.join("x".repeat(rest(LONGEST)));
        ensure(&longest).expect("just short enough");
        drop(std::os::unix::net::UnixListener::bind(socket(&longest)).expect("the system takes it"));
        let beyond = folder.0.join("x".repeat(rest(LONGEST + 1)));
        let text = ensure(&beyond).expect_err("one byte too many").to_string();
        assert!(text.contains("108 bytes") && text.contains("--context-dir"), "{text}");
        assert!(!beyond.exists());
        let private = beyond.join(format!("{PRIVATE}1-0"));
        assert!(fits(&private).is_err_and(|why| why.contains("TMPDIR")));
    }

    #[test]
    fn what_others_can_reach_into_is_refused_with_what_to_do() {
        let folder = Folder::new();
        let inner = folder.0.join("open");
        fs::create_dir(&inner).expect("made");
        for mode in [0o755, 0o701, 0o770] {
            fs::set_permissions(&inner, fs::Permissions::from_mode(mode)).expect("chmod");
            let text = ensure(&inner).expect_err("open to others").to_string();
            assert!(text.contains(&format!("{mode:04o}")) && text.contains("chmod it to 0700"), "{text}");
        }
        let file = folder.0.join("file");
        fs::write(&file, "").expect("written");
        assert!(ensure(&file).expect_err("no directory").to_string().contains("something else"));
        let link = folder.0.join("link");
        std::os::unix::fs::symlink(&folder.0, &link).expect("linked");
        assert!(ensure(&link).is_err(), "a link may point anywhere tomorrow");
        let found = fs::metadata(&folder.0).expect("there");
        let text = judge(&found, found.uid() + 1).expect_err("somebody else's");
        assert!(text.contains("belongs to user"), "{text}");
    }

    #[test]
    fn one_holds_the_lock_at_a_time_also_when_its_file_was_replaced() {
        let folder = Folder::new();
        let private = folder.0.join(format!("{PRIVATE}1"));
        ensure(&private).expect("made");
        let held = lock(&private).expect("free");
        let waiter = {
            let private = private.clone();
            std::thread::spawn(move || lock(&private).map(drop))
        };
        fs::write(socket(&private), "").expect("stands for a socket");
        let own = socket_file(&private).expect("there");
        // An ending broker removes the file under a waiter, whose lock would be worth nothing.
        std::thread::sleep(std::time::Duration::from_millis(30));
        leave(&private, own, &held);
        assert!(!private.exists());
        drop(held);
        let error = waiter.join().expect("ended").expect_err("nothing left to lock");
        assert_eq!(error.kind(), io::ErrorKind::NotFound);
        fs::write(socket(&folder.0), "").expect("stands for a socket");
        let held = lock(&folder.0).expect("free");
        leave(&folder.0, own, &held);
        assert!(socket(&folder.0).exists(), "another broker's");
        leave(&folder.0, socket_file(&folder.0).expect("there"), &held);
        assert!(!socket(&folder.0).exists() && folder.0.exists(), "not private");
    }

    #[test]
    fn what_killed_processes_left_behind_is_removed() {
        let folder = Folder::new();
        fs::create_dir(&folder.0)
            .or_else(|error| if folder.0.is_dir() { Ok(()) } else { Err(error) })
            .expect("a folder");
        let make = |name: &str, old: bool| {
            let made = folder.0.join(name);
            fs::create_dir(&made).expect("make");
            fs::write(made.join("broker.lock"), "").expect("write");
            if old {
                let then = std::time::SystemTime::now() - 2 * STALE;
                File::open(&made).expect("open").set_modified(then).expect("set its time");
            }
            made
        };
        // No process has this pid: it is above the kernel's limit.
        let nobody = format!("{PRIVATE}4999999-0");
        let stale = make(&nobody, true);
        let kept = [
            make(&format!("{PRIVATE}4999999-1"), false),
            make(&format!("{PRIVATE}{}-0", std::process::id()), true),
            make("binderperf-else", true),
        ];
        sweep(&folder.0);
        assert!(!stale.exists());
        assert!(kept.iter().all(|directory| directory.exists()), "{kept:?}");
    }
}
