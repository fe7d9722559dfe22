//! Programs under supervision that behave badly. Each one is this test's own program, started again with a role; it
//! reaches the device by plain system calls.
//! Not here: the driver's promises, which the conformance suite tests in the same way (`tests/cli`).

use std::os::unix::fs::{OpenOptionsExt, PermissionsExt};
use std::os::unix::process::ExitStatusExt;
use std::path::Path;
use std::process::{Command, ExitStatus, Stdio};
use std::sync::{Arc, Mutex};

use needs::{Lack, Need, need};

use abi::codes::ioctl;
use abi::layout::WriteRead;
use driver::connection::{Connection, Context, Exchange, OpenOptions};
use driver::kernel::{KernelConnection, KernelContext};
use supervise::{Options, SuperviseError};
use sys::binder_fd::BinderFd;
use sys::private_folder::PrivateFolder;

const ROLE: &str = "SUPERVISED_ROLE";

/// Supervisors of one process share the handler that interrupts, and the time of this machine.
static ONE_AT_A_TIME: Mutex<()> = Mutex::new(());

fn supervise(command: Command, folder: &Path) -> Result<Result<ExitStatus, SuperviseError>, Lack> {
    if let Some(why) = sys::seccomp::obstacle() {
        return Err(Need::Supervision.lacks(why));
    }
    let _turn = ONE_AT_A_TIME.lock().unwrap_or_else(std::sync::PoisonError::into_inner);
    let options = Options::new(Some(folder.to_owned()), |line| panic!("{line}"));
    match supervise::run(command, options) {
        Err(SuperviseError::Unable(why)) if why.contains("supervised by seccomp") => {
            Err(Need::Supervision.lacks(why))
        }
        other => Ok(other),
    }
}

/// Runs a role of this program under supervision.
fn run(role: &str, folder: &Path) -> Result<ExitStatus, Lack> {
    let mut command = Command::new(std::env::current_exe().expect("this program"));
    command.args(["--exact", "the_supervised_program", "--nocapture"]).env(ROLE, role).stdout(Stdio::null());
    supervise(command, folder).map(|status| status.expect("it runs"))
}

fn open(map_size: usize) -> KernelConnection {
    let options = OpenOptions { map_size, nonblocking: false };
    KernelContext::at("/dev/binder").open(options).expect("the supervisor opens it")
}

fn read(connection: &KernelConnection) -> Vec<u8> {
    let mut room = [0; 512];
    let mut exchange = Exchange::new(&[], &mut room);
    connection.write_read_uninterrupted(&mut exchange).expect("a read");
    exchange.returned().to_vec()
}

/// A thread that reads, past its first contact (contract WR-05).
fn reader(connection: &Arc<KernelConnection>) -> std::thread::JoinHandle<Vec<u8>> {
    let connection = connection.clone();
    let reads = std::thread::spawn(move || {
        connection.version().expect("a version");
        read(&connection)
    });
    std::thread::sleep(std::time::Duration::from_millis(100));
    assert!(!reads.is_finished(), "it waits");
    reads
}

/// Entry point of the roles; without one it tests nothing.
#[test]
fn the_supervised_program() {
    match std::env::var(ROLE).as_deref() {
        Ok("die") => {
            let connection = Arc::new(open(4096));
            connection.become_context_manager(None).expect("no other manager");
            let _reads = reader(&connection);
            let own = std::process::id().to_string();
            let _ = Command::new("kill").args(["-9", &own]).status();
            unreachable!("killed");
        }
        Ok("manage") => {
            let connection = open(4096);
            // The last manager's end is noticed a moment after it (contract EXT-04).
            let begun = std::time::Instant::now();
            while connection.become_context_manager(None).is_err() {
                let over = sys::patience::is_over(begun, std::time::Duration::from_secs(10));
                assert!(!over, "the manager that was killed is still there");
                std::thread::yield_now();
            }
        }
        Ok("close") => {
            let connection = Arc::new(open(4096));
            let reads = reader(&connection);
            connection.wake_readers().expect("a copy is closed");
            assert_eq!(reads.join().expect("it ends"), abi::codes::br::NOOP.to_ne_bytes());
        }
        Ok("repeat") => {
            let connection = open(4096);
            let (ended, ends) = std::sync::mpsc::channel();
            std::thread::spawn(move || {
                let (mut argument, mut room) = (WriteRead::default(), [0; 512]);
                for _ in 0..2 {
                    connection.device().write_read_from(&mut argument, &mut room).expect("an answer");
                    ended.send(argument.read_consumed).expect("it is waited for");
                }
            });
            let patience = std::time::Duration::from_secs(20);
            assert_eq!([(); 2].map(|()| ends.recv_timeout(patience)), [Ok(4); 2]);
        }
        Ok("storm") => {
            let connection = open(4096);
            let children: Vec<_> = (0..200).map(|_| Command::new("true").spawn().expect("true")).collect();
            for mut child in children {
                assert!(child.wait().expect("ours").success());
            }
            assert_eq!(connection.version().expect("a version"), 8);
        }
        Ok("garbage") => garbage(),
        Ok("nested") => {
            let options = Options::new(None, |_| {});
            let error = supervise::run(Command::new("true"), options).expect_err("one supervisor at a time");
            assert!(matches!(&error, SuperviseError::Unable(why) if why.contains("itself")), "{error}");
        }
        Ok(other) => panic!("no role {other}"),
        Err(_) => {}
    }
}

fn garbage() {
    let connection = open(4096);
    let device: &BinderFd = connection.device();
    for number in 0..64 {
        for size in [0, 4, 8, 24, 48, 0x3fff] {
            for direction in 0..4 {
                let request = direction << 30 | size << 16 | u32::from(b'b') << 8 | number;
                let mut bytes = [0xff; 0x4000];
                if ![ioctl::WRITE_READ, ioctl::THREAD_EXIT].contains(&request) {
                    // Any answer will do, but a wait or an end.
                    let _ = device.raw(request, Some(&mut bytes));
                    let _ = device.raw(request, None);
                }
            }
        }
    }
    let wild = [0, 1, 4, 4095, 1 << 20, 1 << 40, 1 << 63, u64::MAX - 7, u64::MAX];
    let mut errors = 0;
    for write_size in wild {
        for write_consumed in wild {
            for write_buffer in wild {
                let mut argument =
                    WriteRead { write_size, write_consumed, write_buffer, ..WriteRead::default() };
                errors += usize::from(device.write_read_from(&mut argument, &mut []).is_err());
            }
        }
    }
    assert!(errors > 100, "{errors}");
    assert_eq!(connection.version().expect("a version"), 8);
}

#[test]
fn a_program_killed_in_the_middle_of_a_call_leaves_its_context_free() {
    let folder = PrivateFolder::new("die").expect("a folder");
    let status = need!(run("die", folder.path()));
    assert_eq!(status.signal(), Some(9));
    assert!(run("manage", folder.path()).expect("as before").success());
}

#[test]
fn closing_a_copy_wakes_a_thread_that_waits() {
    let folder = PrivateFolder::new("close").expect("a folder");
    let status = need!(run("close", folder.path()));
    assert!(status.success());
}

/// The repetition of a call whose answer the kernel dropped, because a signal came at that moment.
#[test]
fn an_answer_that_was_lost_is_given_again() {
    let folder = PrivateFolder::new("repeat").expect("a folder");
    let status = need!(run("repeat", folder.path()));
    assert!(status.success());
}

#[test]
fn a_storm_of_children_is_survived() {
    let folder = PrivateFolder::new("storm").expect("a folder");
    let status = need!(run("storm", folder.path()));
    assert!(status.success());
}

#[test]
fn garbage_is_refused() {
    let folder = PrivateFolder::new("garbage").expect("a folder");
    let status = need!(run("garbage", folder.path()));
    assert!(status.success());
}

#[test]
fn a_supervised_program_cannot_supervise() {
    let folder = PrivateFolder::new("nested").expect("a folder");
    let status = need!(run("nested", folder.path()));
    assert!(status.success());
}

#[test]
fn a_program_that_raises_its_rights_is_refused_and_a_missing_one_named() {
    let folder = PrivateFolder::new("rights").expect("a folder");
    let program = folder.path().join("raises");
    std::fs::copy("/bin/true", &program).expect("a copy");
    let given = std::os::unix::fs::chown(&program, Some(1), None);
    need!(given.map_err(|error| Need::OtherUser.lacks(format_args!("no file can be given away: {error}"))));
    std::fs::set_permissions(&program, std::fs::Permissions::from_mode(0o4755)).expect("a mode");
    let result = need!(supervise(Command::new(&program), folder.path()));
    let error = result.expect_err("it would run with the wrong rights").to_string();
    assert!(error.contains("set-user-ID"), "{error}");
    let result = need!(supervise(Command::new("/nonexistent/program"), folder.path()));
    let error = result.expect_err("there is none");
    assert!(matches!(error, SuperviseError::Program { .. }), "{error}");
}

#[test]
fn the_status_is_the_programs() {
    let folder = PrivateFolder::new("status").expect("a folder");
    let shell = |text: &str| {
        let mut command = Command::new("sh");
        command.args(["-c", text]);
        command
    };
    let result = need!(supervise(shell("exit 7"), folder.path()));
    assert_eq!(result.expect("it runs").code(), Some(7));
    // What it leaves behind is served until it ends.
    let left = folder.path().join("left");
    let text = format!("(sleep 0.3; echo > {}) & exit 0", left.display());
    let status = supervise(shell(&text), folder.path()).expect("as before").expect("it runs");
    assert!(status.success() && left.exists());
}

/// Programs look for files of a file system that nobody serves: those calls wait until it is gone, and all others go on.
const HANGS: &str = r#"
    mkdir "$1/mount" && exec 3<>/dev/fuse || exit
    mount -i -t fuse -o fd=3,rootmode=40000,user_id=0,group_id=0 none "$1/mount" || exit
    : >"$1/mounted"
    for one in 1 2 3; do
        cat "$1/mount/$one" 3>&- &
    done
    sleep 0.3
    for file in /etc /usr /proc/self/status; do
        [ -e $file ] || exit 1
    done
    cat /proc/self/status >"$1/read" || exit 2
    exec 3>&-
    wait
"#;

#[test]
fn a_file_system_that_hangs_stops_nobody_else() {
    let folder = PrivateFolder::new("hangs").expect("a folder");
    let mut command = Command::new("timeout");
    // If all hang: the mount ends with the program that made it.
    command.args(["-s", "KILL", "60", "unshare", "-m", "sh", "-c", HANGS, "sh"]).arg(folder.path());
    command.stderr(Stdio::null());
    let status = need!(supervise(command, folder.path())).expect("it runs");
    need!(Need::Mount.met_if(folder.path().join("mounted").exists(), "no FUSE can be mounted"));
    assert_eq!(status.code(), Some(0), "{status:?}");
    assert!(folder.path().join("read").exists());
}

/// Mounts a file system that this shell alone could serve, in a namespace of its own, and lives on.
const HANGS_OUTSIDE: &str = r#"
    mkdir "$1/mount" && exec 3<>/dev/fuse || exit
    mount -i -t fuse -o fd=3,rootmode=40000,user_id=0,group_id=0 none "$1/mount" || exit
    : >"$1/mounted"
    exec sleep 120
"#;

#[test]
fn a_program_that_was_killed_while_its_files_hang_is_over() {
    let folder = PrivateFolder::new("outside").expect("a folder");
    let mut mounts = Command::new("unshare");
    mounts.args(["-m", "sh", "-c", HANGS_OUTSIDE, "sh"]).arg(folder.path()).stderr(Stdio::null());
    let mut mounts = mounts.spawn().expect("unshare");
    while !folder.path().join("mounted").exists() && mounts.try_wait().expect("ours").is_none() {
        std::thread::yield_now();
    }
    let mount = format!("/proc/{}/root{}/mount", mounts.id(), folder.path().display());
    let opened = std::fs::OpenOptions::new().read(true).custom_flags(sys::call::O_PATH).open(mount);
    let opened =
        need!(opened.map_err(|error| Need::Mount.lacks(format_args!("no FUSE can be mounted: {error}"))));
    let (ended, ends) = std::sync::mpsc::channel();
    let own = folder.path().to_owned();
    std::thread::spawn(move || {
        let mut command = Command::new("timeout");
        command.args(["-s", "KILL", "1", "cat", "/proc/self/fd/0/file"]).stdin(opened);
        ended.send(supervise(command, &own)).expect("it is waited for");
    });
    let result = ends.recv_timeout(std::time::Duration::from_secs(30));
    // Whatever hangs goes on now.
    mounts.kill().and_then(|()| mounts.wait()).expect("ours");
    let status = need!(result.expect("supervision ends with the program")).expect("it runs");
    assert!(!status.success(), "{status:?}");
}
