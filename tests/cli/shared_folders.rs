//! Folders that all users write, where another user has put what a command could meet: commands neither follow nor take nor
//! wait for it, and leave nothing behind.

use std::fs::{self, File, Permissions};
use std::os::unix::ffi::OsStrExt;
use std::os::unix::fs::{PermissionsExt, symlink};
use std::os::unix::process::CommandExt;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::time::{Duration, Instant};

use needs::{Lack, Need, need};

use super::support::{BINARY, Called, Folder, command, end, signal, wait_until};

/// The other user.
const OTHER: u32 = 65534;
/// Generous limit of a command: what was planted makes it wait for ever, or not at all.
const LIMIT: Duration = Duration::from_secs(300);

/// A folder as `/tmp` is, where this user can act as another one.
fn shared() -> Result<Folder, Lack> {
    Need::OtherUser.met_if(sys::identity::effective_uid() == 0, "only root can act as another user")?;
    let folder = Folder::new("shared");
    fs::set_permissions(folder.path(""), Permissions::from_mode(0o1777)).expect("one's own");
    Ok(folder)
}

/// Does it as the other user, in a thread with that identity.
fn as_other<T: Send>(what: impl FnOnce() -> T + Send) -> T {
    let acting = move || {
        sys::identity::set_effective_uid(OTHER).expect("root may");
        what()
    };
    std::thread::scope(|scope| scope.spawn(acting).join().expect("no panic"))
}

/// Runs a shell's script as the other user, in a process that has no way back.
fn sh_as_other(script: &str, variables: &[(&str, &str)]) {
    let mut shell = Command::new("sh");
    shell.args(["-euc", script]).envs(variables.iter().copied()).uid(OTHER).gid(OTHER);
    assert!(shell.status().expect("sh").success(), "{script}");
}

/// Runs `binderperf` with this folder for temporary files and no runtime folder; ends it after [`LIMIT`].
fn run_in(tmp: &str, at: &str, words: &[&str]) -> Called {
    let mut program = command(BINARY, words);
    program.env("TMPDIR", tmp).env_remove("XDG_RUNTIME_DIR").current_dir(at);
    let child = program.stdout(Stdio::piped()).stderr(Stdio::piped()).spawn().expect("the program starts");
    let (pid, start) = (child.id(), Instant::now());
    let waiter = std::thread::spawn(move || end(child));
    while !waiter.is_finished() {
        if start.elapsed() > LIMIT {
            signal(pid, "KILL");
        }
        std::thread::sleep(Duration::from_millis(20));
    }
    waiter.join().expect("it ended")
}

const ON_THE_DRIVER: [&str; 4] = ["chaos", "--driver=embedded", "--seconds=1", "--processes=2"];

/// Names of private directories, of this version and of one whose names had a process's number.
fn private(at: &Path, number: u32) -> [PathBuf; 2] {
    let now = format!("binderperf-private-{number:016x}.tmp");
    [now, format!("binderperf-private-{}-0", 4_999_900 + number)].map(|name| at.join(name))
}

/// Makes a folder as the other user, older than a minute at the end of `fill`.
fn old(path: &Path, fill: impl FnOnce(&Path)) {
    fs::create_dir(path).expect("made");
    fs::set_permissions(path, Permissions::from_mode(0o700)).expect("one's own");
    fill(path);
    let then = std::time::SystemTime::now() - Duration::from_secs(3600);
    File::open(path).expect("one's own").set_modified(then).expect("one's own");
}

#[test]
fn nothing_that_another_user_left_as_a_private_directory_is_followed_or_waited_for() {
    let folder = need!(shared());
    let roots_own = Folder::new("roots-own");
    let target = roots_own.path("created");
    let at = PathBuf::from(folder.path(""));
    let held = as_other(|| {
        let mut held: Vec<std::os::fd::OwnedFd> = Vec::new();
        for place in private(&at, 1) {
            old(&place, |place| symlink(&target, place.join("broker.lock")).expect("linked"));
        }
        for place in private(&at, 2) {
            old(&place, |place| {
                let lock = File::create(place.join("broker.lock")).expect("made");
                lock.lock().expect("free");
                held.push(lock.into());
            });
            let itself = File::open(&place).expect("one's own");
            itself.lock().expect("free");
            held.push(itself.into());
        }
        for place in private(&at, 3) {
            old(&place, |place| {
                let socket = place.join("broker.sock");
                held.push(sys::seqpacket::listen(&socket).expect("listens"));
                let limit = Duration::from_millis(50);
                held.extend(std::iter::from_fn(|| sys::seqpacket::connect(&socket, limit).ok()));
            });
        }
        for place in private(&at, 4) {
            symlink(roots_own.path(""), place).expect("linked");
        }
        held
    });
    let before = fs::read_dir(&at).expect("there").count();
    run_in(&folder.path(""), "/", &ON_THE_DRIVER).ended(0);
    assert!(!Path::new(&target).exists(), "a link was followed");
    // The command's broker ends a moment after it.
    wait_until("only what was planted is left", || fs::read_dir(&at).expect("there").count() == before);
    assert!(private(&at, 3).iter().all(|place| place.join("broker.sock").exists()));
    drop(held);
}

#[test]
fn a_directory_that_another_user_put_where_brokers_meet_is_refused_at_once() {
    let folder = need!(shared());
    sh_as_other(
        "mkdir -m 700 $TMP/binderperf-0; mkfifo $TMP/binderperf-0/broker.lock $TMP/binderperf-0/tracing",
        &[("TMP", &folder.path(""))],
    );
    let called =
        run_in(&folder.path(""), "/", &["throughput", "binder", "--driver=embedded", "--device=binder"]);
    called.complained(format!("belongs to user {OTHER}"));
    assert_ne!(called.code, Some(0), "{called}");
    // A private context has nothing to do with it.
    run_in(&folder.path(""), "/", &ON_THE_DRIVER).ended(0);
}

#[test]
fn nothing_of_another_user_comes_into_the_users_folder_from_a_guests() {
    let folder = need!(shared());
    let (work, secret) = (Folder::new("work"), Folder::new("secret"));
    let secret = secret.write("secret", "kept");
    fs::set_permissions(&secret, Permissions::from_mode(0o600)).expect("one's own");
    sh_as_other(
        "at=$(sh -c 'echo $PPID')
         for pid in $(seq $at $((at + 400))); do
             d=$TMP/binderperf-on-$pid
             mkdir $d; echo evil >$d/.bashrc; ln -s $SECRET $d/r.json; mkdir $d/sub; ln -s $SECRET $d/sub/copy
         done",
        &[("TMP", &folder.path("")), ("SECRET", &secret)],
    );
    let words = ["throughput", "--on=vm:/no/such/kernel", "binder", "--record=r.json"];
    let called = run_in(&folder.path(""), &work.path(""), &words);
    assert_ne!(called.code, Some(0), "{called}");
    let came: Vec<_> =
        fs::read_dir(work.path("")).expect("there").flatten().map(|entry| entry.path()).collect();
    assert!(came.is_empty(), "{came:?}");
    assert_eq!(fs::read(&secret).expect("there"), b"kept");
}

#[test]
fn a_state_of_tracing_that_another_user_planted_is_not_opened() {
    let folder = need!(shared());
    // Root's with the runtime folder of another user, as `su` leaves it.
    let secret = Folder::new("secret");
    let secret = secret.write("secret", "{}");
    fs::set_permissions(folder.path(""), Permissions::from_mode(0o700)).expect("one's own");
    std::os::unix::fs::chown(folder.path(""), Some(OTHER), Some(OTHER)).expect("root may");
    as_other(|| symlink(&secret, folder.path("binderperf-tracing-0.json")).expect("linked"));
    let mut program = command(BINARY, &["atrace", "--async_stop"]);
    program.env("XDG_RUNTIME_DIR", folder.path("")).stdout(Stdio::piped()).stderr(Stdio::piped());
    let called = end(program.spawn().expect("the program starts"));
    assert!(!called.stderr.contains("binderperf-tracing-0.json"), "{called}");
    assert_eq!(fs::read(&secret).expect("there"), b"{}");
}

#[test]
fn the_next_command_removes_what_a_killed_one_left() {
    let folder = Folder::new("killed");
    let mut program = command(BINARY, &["chaos", "--driver=embedded", "--seconds=600", "--processes=2"]);
    program.env("TMPDIR", folder.path("")).stdout(Stdio::null()).stderr(Stdio::null());
    let mut child = program.spawn().expect("the program starts");
    let left = || {
        let entries = fs::read_dir(folder.path("")).expect("there").flatten();
        entries.map(|entry| entry.file_name().to_string_lossy().into_owned()).collect::<Vec<_>>()
    };
    wait_until("it has its directory", || left().iter().any(|name| name.starts_with("binderperf-private-")));
    let name = left().remove(0);
    child.kill().expect("one's own");
    child.wait().expect("it ended");
    // Its broker may remove it, or be killed as well: this is what stays then.
    fs::create_dir_all(folder.path(&name)).expect("made");
    fs::set_permissions(folder.path(&name), Permissions::from_mode(0o700)).expect("one's own");
    fs::write(folder.path(&format!("{name}/broker.lock")), "").expect("written");
    wait_until("nobody uses it", || {
        run_in(&folder.path(""), "/", &ON_THE_DRIVER).ended(0);
        !left().contains(&name)
    });
}

#[test]
fn without_descriptors_or_with_a_path_that_is_no_text_nothing_is_left() {
    let folder = Folder::new("odd");
    for limit in 3..9 {
        let script =
            format!("ulimit -n {limit}; exec \"$0\" chaos --driver=embedded --seconds=1 --processes=2");
        let mut shell = Command::new("sh");
        let child = shell
            .args(["-c", &script, BINARY])
            .env("TMPDIR", folder.path(""))
            .stdin(Stdio::null())
            .stdout(Stdio::piped())
            .stderr(Stdio::piped())
            .spawn();
        let called = end(child.expect("sh"));
        assert_ne!(called.code, Some(0), "{called}");
        wait_until("nothing is left", || fs::read_dir(folder.path("")).expect("there").count() == 0);
    }
    let odd = Path::new(&folder.path("")).join(std::ffi::OsStr::from_bytes(b"x\xff"));
    let run = || {
        let mut program = command(BINARY, &ON_THE_DRIVER);
        end(program
            .env("TMPDIR", &odd)
            .stdout(Stdio::piped())
            .stderr(Stdio::piped())
            .spawn()
            .expect("starts"))
    };
    let missing = run().ended(3);
    assert_eq!(missing.stderr.matches("x\\xFF").count(), 1, "{missing}");
    missing.complained("ENOENT").complained("TMPDIR");
    fs::create_dir(&odd).expect("made");
    let called = run().ended(3);
    assert_eq!(called.stderr.matches("x\\xFF").count(), 1, "{called}");
    called.complained("must be valid UTF-8").complained("TMPDIR");
    assert_eq!(fs::read_dir(&odd).expect("there").count(), 0);
}
