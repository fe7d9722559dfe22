//! The directory that a broker and its clients share: permissions, content, and the lock under which brokers start
//! and end.
//! Not here: which directory a context has (`context`), the broker itself (`broker`), starting one (`start`).
//!
//! Content: `broker.sock`, where the broker listens, and `broker.lock`. Only the holder of the lock may create or
//! remove the socket. A socket without a listener is left over from a killed broker; the next broker replaces it.
//! Everything is reached through the descriptor of a directory that was found to be this user's alone, so that nothing of
//! another user is opened, locked or connected to; and each wait has an end.

use std::ffi::OsStr;
use std::fs::{DirBuilder, File};
use std::io;
use std::os::unix::fs::DirBuilderExt;
use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};

use driver::error::OpenError;
use sys::file_key::FileKey;
use sys::file_lock::lock_within;
use sys::folder::{Folder, Found};
use sys::identity::effective_uid;

/// Part of the name of a private directory, which is removed once its broker has ended.
pub(super) const KIND: &str = "private";
/// Begin of such a name.
pub(super) const PRIVATE: &str = "binderperf-private-";

/// Whether a directory is a private one.
pub(super) fn is_private(directory: &Path) -> bool {
    directory.file_name().is_some_and(|name| name.to_string_lossy().starts_with(PRIVATE))
}

/// `$XDG_RUNTIME_DIR/binderperf`, or a temporary directory with the user's number in its name.
pub(super) fn of_user() -> PathBuf {
    match std::env::var_os("XDG_RUNTIME_DIR") {
        Some(given) if Path::new(&given).is_absolute() => Path::new(&given).join(FOLDER),
        _ => {
            let user = effective_uid();
            std::env::temp_dir().join(format!("{FOLDER}-{user}"))
        }
    }
}

/// Path of the broker's socket.
pub(super) fn socket(directory: &Path) -> PathBuf {
    directory.join(SOCKET)
}

/// Name of a user's own directory below `$XDG_RUNTIME_DIR`.
const FOLDER: &str = "binderperf";
/// Name of the lock's file.
const LOCK: &str = "broker.lock";
/// Name of the socket's file.
const SOCKET: &str = "broker.sock";

/// The longest path of a socket in bytes (`unix(7)`: `sun_path`, less the 0 behind it).
const LONGEST: usize = 107;

/// Checks that the path of the broker's socket is short enough for the system. Call it before anything is created.
///
/// # Errors
/// Text with the length and the remedy.
pub(super) fn fits(directory: &Path) -> Result<(), String> {
    // A broker has another working directory.
    let absolute = std::path::absolute(directory).unwrap_or_else(|_| directory.to_owned());
    let absolute = &absolute;
    if absolute.to_str().is_none() {
        let what = if is_private(directory) { "set TMPDIR to one" } else { "name one" };
        return Err(format!(
            "its path must be valid UTF-8, because other processes get it as text: {what} that is"
        ));
    }
    let len = socket(absolute).as_os_str().len();
    if len <= LONGEST {
        return Ok(());
    }
    let users = of_user() == directory;
    let shorter = match (is_private(directory), users) {
        (true, _) => "set TMPDIR to a directory with a shorter path",
        (false, true) => "set XDG_RUNTIME_DIR (else TMPDIR counts) to a directory with a shorter path",
        (false, false) => "name a directory with a shorter path (--context-dir)",
    };
    Err(format!(
        "the path of its socket would have {len} bytes, and no socket's may have more than {LONGEST}: {shorter}"
    ))
}

/// Creates the directory if it is missing, and opens it if no other user has access to it.
///
/// # Errors
/// [`OpenError`] with what was found there and the remedy.
pub(super) fn ensure(directory: &Path) -> Result<Folder, OpenError> {
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
    opened(directory)?.ok_or_else(|| refused("it was removed at this moment".to_owned()))
}

/// Opens a directory to which no other user has access; none if there is none.
///
/// # Errors
/// [`OpenError`] with what was found there and the remedy.
pub(super) fn opened(directory: &Path) -> Result<Option<Folder>, OpenError> {
    let refused = |why| OpenError::Embedded { directory: directory.to_owned(), why };
    let me = effective_uid();
    let failed = |call: &str, error| refused(format!("{call} it failed: {}", sys::errno::describe(&error)));
    // Looked at first: another user's is not even opened. Then by its descriptor: another one may stand there by now.
    let found = match std::fs::symlink_metadata(directory) {
        Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(None),
        found => found.map_err(|error| failed("looking at", error))?,
    };
    judge(Found::from(&found), me).map_err(refused)?;
    let folder = Folder::open_itself(directory).map_err(|error| failed("opening", error))?;
    let found = folder.found().map_err(|error| failed("looking at", error))?;
    judge(found, me).map_err(refused)?;
    Ok(Some(folder))
}

/// Checks that user `me` may use what was found, and nobody else.
pub(super) fn judge(found: Found, me: u32) -> Result<(), String> {
    let mode = found.mode & 0o7777;
    if !found.is_folder() {
        Err("something else than a directory stands there; move it away, or name another place".to_owned())
    } else if found.uid != me {
        Err(format!(
            "it belongs to user {}, not to {me}; run as that user, or name a directory of your own",
            found.uid
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

/// Waits for the lock of a directory for at most `patience`; a broker holds it for some milliseconds when it begins or ends.
///
/// # Errors
/// `ENOENT`: the directory is gone. A text: another process keeps the lock (`TimedOut`). `ELOOP`, `EINVAL`: what has its name
/// is a link, or no file. `EMFILE`, `EACCES`.
pub(super) fn lock(folder: &Folder, patience: Duration) -> io::Result<Lock> {
    let (name, until) = (OsStr::new(LOCK), Instant::now() + patience);
    loop {
        let file = match folder.update_file(name) {
            Err(error) if error.kind() == io::ErrorKind::NotFound => match folder.create_file(name, 0o600) {
                // Another broker made it at this moment.
                Err(error) if error.kind() == io::ErrorKind::AlreadyExists => continue,
                other => other?,
            },
            other => other?,
        };
        let left = until.saturating_duration_since(Instant::now());
        lock_within(&file, left).map_err(|error| match error.kind() {
            io::ErrorKind::TimedOut => io::Error::new(
                io::ErrorKind::TimedOut,
                format!(
                    "another process has held {LOCK} for {} s; is a broker stopped? fuser or lsof name it",
                    patience.as_secs()
                ),
            ),
            _ => error,
        })?;
        // The previous holder may have removed the file: a lock on an unlinked one excludes nobody.
        let locked = Found::from(&file.metadata()?).key;
        match folder.look(name) {
            Ok(found) if found.key == locked => return Ok(Lock(file)),
            Err(error) if error.kind() != io::ErrorKind::NotFound => return Err(error),
            _ => {}
        }
    }
}

/// The socket's file as it is now, which differs from that of a later broker; `None` if there is none.
pub(super) fn socket_file(folder: &Folder) -> Option<FileKey> {
    folder.look(OsStr::new(SOCKET)).ok().map(|found| found.key)
}

/// Path of the broker's socket in an open directory, for this process.
pub(super) fn socket_in(folder: &Folder) -> PathBuf {
    socket(&folder.own_path())
}

/// Removes the socket that a killed broker left. The caller holds the lock.
///
/// # Errors
/// See `unlink(2)`.
pub(super) fn remove_socket(folder: &Folder, _held: &Lock) -> io::Result<()> {
    folder.remove_file(OsStr::new(SOCKET))
}

/// Removes the broker's socket, and a private directory as a whole. The caller holds the lock. Files that are gone
/// already, or belong to another broker by now, are left alone.
pub(super) fn leave(folder: &Folder, directory: &Path, own: FileKey, held: &Lock) {
    if socket_file(folder) != Some(own) {
        return;
    }
    // Failure is harmless: the next broker replaces a socket that stays.
    let _ = remove_socket(folder, held);
    if is_private(directory) {
        let _ = folder.remove_file(OsStr::new(LOCK));
        let is_same = std::fs::symlink_metadata(directory)
            .is_ok_and(|found| folder.found().is_ok_and(|own| own.key == Found::from(&found).key));
        if is_same {
            // Fails if the directory holds any other file, which is not ours to remove.
            let _ = std::fs::remove_dir(directory);
        }
    }
}

#[cfg(test)]
pub(super) mod tests {
    use super::*;
    use std::fs;
    use std::os::unix::fs::{MetadataExt, PermissionsExt};

    use sys::private_folder::PrivateFolder;

    /// Generous: no test waits so long.
    pub(in super::super) const PATIENCE: Duration = Duration::from_secs(600);

    /// A directory for one test, removed on drop.
    pub(in super::super) struct Folder {
        pub(in super::super) path: PathBuf,
        _private: Option<PrivateFolder>,
    }

    impl Folder {
        pub(in super::super) fn new() -> Self {
            let private = PrivateFolder::new("test").expect("a directory of our own");
            Self { path: private.named().to_owned(), _private: Some(private) }
        }

        /// A directory that somebody else makes.
        pub(in super::super) fn at(path: PathBuf) -> Self {
            Self { path, _private: None }
        }
    }

    impl Drop for Folder {
        fn drop(&mut self) {
            let _ = fs::remove_dir_all(&self.path);
        }
    }

    #[test]
    fn a_missing_directory_is_made_for_its_user_alone() {
        let folder = Folder::new();
        let inner = folder.path.join("inner");
        ensure(&inner).expect("made");
        ensure(&inner).expect("there");
        assert_eq!(fs::metadata(&inner).expect("there").mode() & 0o7777, 0o700);
        let text = ensure(&folder.path.join("a/b")).expect_err("no parent").to_string();
        assert!(text.contains("ENOENT") && text.contains("XDG_RUNTIME_DIR"), "{text}");
    }

    #[test]
    fn a_directory_too_deep_for_a_socket_is_refused_before_it_is_made() {
        let folder = Folder::new();
        let rest = |len: usize| len - folder.path.as_os_str().len() - "//broker.sock".len();
        let longest = folder.path.join("x".repeat(rest(LONGEST)));
        ensure(&longest).expect("just short enough");
        drop(std::os::unix::net::UnixListener::bind(socket(&longest)).expect("the system takes it"));
        let beyond = folder.path.join("x".repeat(rest(LONGEST + 1)));
        let text = ensure(&beyond).expect_err("one byte too many").to_string();
        assert!(text.contains("108 bytes") && text.contains("--context-dir"), "{text}");
        assert!(!beyond.exists());
        let private = beyond.join(format!("{PRIVATE}1-0"));
        assert!(fits(&private).is_err_and(|why| why.contains("TMPDIR")));
    }

    #[test]
    fn what_others_can_reach_into_is_refused_with_what_to_do() {
        let folder = Folder::new();
        let inner = folder.path.join("open");
        fs::create_dir(&inner).expect("made");
        for mode in [0o755, 0o701, 0o770] {
            fs::set_permissions(&inner, fs::Permissions::from_mode(mode)).expect("chmod");
            let text = ensure(&inner).expect_err("open to others").to_string();
            assert!(text.contains(&format!("{mode:04o}")) && text.contains("chmod it to 0700"), "{text}");
        }
        let file = folder.path.join("file");
        fs::write(&file, "").expect("written");
        assert!(ensure(&file).expect_err("no directory").to_string().contains("something else"));
        let link = folder.path.join("link");
        std::os::unix::fs::symlink(&folder.path, &link).expect("linked");
        assert!(ensure(&link).is_err(), "a link may point anywhere tomorrow");
        let found = Found::from(&fs::metadata(&folder.path).expect("there"));
        let text = judge(found, found.uid + 1).expect_err("somebody else's");
        assert!(text.contains("belongs to user"), "{text}");
    }

    #[test]
    fn one_holds_the_lock_at_a_time_also_when_its_file_was_replaced() {
        let folder = Folder::new();
        let private = folder.path.join(format!("{PRIVATE}1"));
        let open = ensure(&private).expect("made");
        let held = lock(&open, PATIENCE).expect("free");
        let waiter = {
            let open = ensure(&private).expect("there");
            std::thread::spawn(move || lock(&open, PATIENCE).map(drop))
        };
        fs::write(socket(&private), "").expect("stands for a socket");
        let own = socket_file(&open).expect("there");
        // While it is open, no other file gets its number.
        let _kept = fs::File::open(socket(&private)).expect("there");
        // An ending broker removes the file under a waiter, whose lock would be worth nothing.
        std::thread::sleep(std::time::Duration::from_millis(30));
        leave(&open, &private, own, &held);
        assert!(!private.exists());
        drop(held);
        let error = waiter.join().expect("ended").expect_err("nothing left to lock");
        assert_eq!(error.kind(), io::ErrorKind::NotFound);
        let open = ensure(&folder.path).expect("there");
        fs::write(socket(&folder.path), "").expect("stands for a socket");
        let held = lock(&open, PATIENCE).expect("free");
        leave(&open, &folder.path, own, &held);
        assert!(socket(&folder.path).exists(), "another broker's");
        leave(&open, &folder.path, socket_file(&open).expect("there"), &held);
        assert!(!socket(&folder.path).exists() && folder.path.exists(), "not private");
    }

    #[test]
    fn a_lock_that_is_kept_or_a_link_is_told() {
        let folder = Folder::new();
        let open = ensure(&folder.path).expect("there");
        let held = lock(&open, PATIENCE).expect("free");
        let text = lock(&open, Duration::ZERO).expect_err("held").to_string();
        assert!(text.contains("another process has held broker.lock"), "{text}");
        drop(held);
        let target = folder.path.join("target");
        fs::remove_file(folder.path.join(LOCK)).expect("there");
        std::os::unix::fs::symlink(&target, folder.path.join(LOCK)).expect("linked");
        assert!(lock(&open, PATIENCE).is_err() && !target.exists(), "what it leads to is not made");
    }

    #[test]
    fn a_path_that_is_no_text_is_refused_before_anything_is_made() {
        use std::os::unix::ffi::OsStrExt;
        let folder = Folder::new();
        let text = ensure(&folder.path.join(OsStr::from_bytes(b"x\xff"))).expect_err("no text").to_string();
        assert!(text.contains("x\\xFF\" cannot be used") && text.contains("must be valid UTF-8"), "{text}");
        assert_eq!(text.matches(&*folder.path.to_string_lossy()).count(), 1, "{text}");
        assert_eq!(fs::read_dir(&folder.path).expect("there").count(), 0);
    }
}
