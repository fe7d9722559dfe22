//! Helper processes of the suite: one item, a context manager, and single steps that only another OS process (or
//! user, or a process about to die) can take.
//! Not here: starting helpers (`kit`, `runner`).

use std::io::{self, Read};
use std::os::fd::AsFd;
use std::os::unix::process::CommandExt;
use std::process::{Command, Stdio};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use backend::AnyContext;
use sys::binder_fd::BinderFd;
use sys::receive_map::ReceiveMap;

use super::binderfs::mounts;
use super::subject::Subject;
use super::{HELPER_COMMAND, remote_process, runner, test_manager};
use crate::prelude::*;

/// Runs the helper with the arguments after [`HELPER_COMMAND`]; results go to standard output.
///
/// # Errors
/// The failure, for standard error.
pub fn main(words: &[String]) -> Result<(), String> {
    let words: Vec<&str> = words.iter().map(String::as_str).collect();
    let [role, address, words @ ..] = &words[..] else {
        return Err("a helper needs a role and an address".to_owned());
    };
    let subject = Subject::from(AnyContext::parse(address));
    let said = match (*role, words) {
        ("item", [id, faults @ ..]) => return runner::serve_item(subject, id, faults),
        ("manager", [tag]) => return manager(&subject, parsed(tag)?).map_err(Stop::why),
        ("remote", []) => return remote_process::serve(subject).map_err(Stop::why),
        ("map-after-exec", []) => return map_after_exec(address),
        ("map-inherited", []) => errno(&ReceiveMap::new(inherited()?.as_fd(), default_map_size())),
        ("use-inherited", [handle]) => use_inherited(parsed(handle)?, TransactionFlags::ONEWAY)?,
        ("call-inherited", [handle]) => use_inherited(parsed(handle)?, TransactionFlags::CALL)?,
        ("manage-inherited", []) => errno(&inherited()?.request(ioctl::SET_CONTEXT_MGR, 0_i32)),
        ("mount-options", [one, two]) => mounts::mount_options([one, two]).map_err(Stop::why)?,
        ("user-namespace", [how]) => mounts::in_user_namespace(*how == "mapped").map_err(Stop::why)?,
        ("manage", []) => match subject.open(OpenOptions::default()) {
            Ok(connection) => errno(&connection.become_context_manager(None)),
            Err(error) => format!("not opened: {error}"),
        },
        // The caller must thaw the process.
        ("freeze-inherited", [pid]) => {
            let info = FreezeInfo { pid: parsed(pid)?, enable: 1, timeout_ms: 0 };
            errno(&inherited()?.request(ioctl::FREEZE, info))
        }
        _ => Kit::new(subject).and_then(|kit| step(&kit, role, words)).map_err(Stop::why)?,
    };
    println!("{said}");
    Ok(())
}

/// The device that the parent passed as standard input.
fn inherited() -> Result<BinderFd, String> {
    let fd = io::stdin().as_fd().try_clone_to_owned().map_err(|error| format!("standard input: {error}"))?;
    Ok(BinderFd::from(fd))
}

fn parsed<T: std::str::FromStr>(word: &str) -> Result<T, String> {
    word.parse().map_err(|_| format!("{word:?} is not a number"))
}

/// Manages the context, as the test manager does, until standard input ends.
fn manager(subject: &Subject, tag: u64) -> Verdict {
    let connection = test_manager::become_manager(subject)?;
    println!("ready");
    let stop = Arc::new(AtomicBool::new(false));
    let flag = Arc::clone(&stop);
    let wait = move || {
        // Only the end matters.
        let _ = io::stdin().read_to_end(&mut Vec::new());
        flag.store(true, Ordering::Relaxed);
    };
    done("starting a thread", sys::title::thread("end watcher", wait))?;
    test_manager::serve(connection, tag, &stop, test_manager::Left::default())
}

/// Opens the context, then executes another program: another address space, same pid.
fn map_after_exec(address: &str) -> Result<(), String> {
    let open = || std::fs::File::options().read(true).write(true).open(address);
    let device = open().map_err(|error| format!("{address}: {error}"))?;
    let error = Command::new("/proc/self/exe")
        .args([HELPER_COMMAND, "map-inherited", address])
        .stdin(Stdio::from(device))
        .exec();
    Err(format!("exec: {error}"))
}

/// Requests the version and makes a call on the device that another process opened.
fn use_inherited(handle: u32, flags: TransactionFlags) -> Result<String, String> {
    let fd = inherited()?;
    let version = fd.version();
    let commands = Commands::of(|c| c.transaction(Handle(handle), 77, flags, Payload::default()));
    let called = fd.write_read(commands.as_bytes(), &mut 0, &mut [], &mut 0);
    Ok(format!("version {} call {}", errno(&version), errno(&called)))
}

/// Takes one step with a connection of its own; returns what came of it.
fn step(kit: &Kit, role: &str, words: &[&str]) -> Result<String, Stop> {
    let process = kit.open()?;
    let number = |at: usize| {
        let number = words.get(at).and_then(|word| word.parse::<u32>().ok());
        required(number, || format!("the helper {role:?} lacks a number: {words:?}"))
    };
    Ok(match role {
        // Reads a page that was never delivered to, of which the process may die.
        "touch-fresh-page" => {
            let base = process.conn.map_base();
            let base = required(base, || "the receiving area has no known address".into())?;
            format!("survived, and read {}", process.lent(base + 0x8000, 1)?[0])
        }
        // Calls a handle that another process owns.
        "use-handle" => process.call(Handle(number(0)?))?.work(),
        // Calls a node in the test manager: its number, the code, the flags, and how many zeroes to send.
        "send" => {
            let handle = kit.fetch(&process, number(0)?.into())?;
            let flags = TransactionFlags(number(2)?);
            process.send(handle, number(1)?, flags, plain(zeroes(number(3)? as usize)))?;
            let got = if flags.is_oneway() { process.read()? } else { process.ending()? };
            got.work()
        }
        // Leaves a node in the test manager, serves one call to it, and tells the sender's pid.
        "tell-pid" => {
            process.enter_looper()?;
            let node = Node::number(number(0)?.into());
            kit.leave(&process, node, number(0)?.into())?;
            let call = process.read()?.call()?;
            process.answer(b"")?;
            call.sender_pid.to_string()
        }
        // Calls the context manager: with a descriptor, without data, or holding a reference.
        "call-manager" => {
            if words == ["holding"] {
                process.write(|c| c.acquire(Handle::CONTEXT_MANAGER))?;
            }
            let draft = if words == ["fd"] { Draft::of(&fd(0)) } else { Draft::default() };
            process.call_with(Handle::CONTEXT_MANAGER, 1, draft.payload())?.work()
        }
        other => return Err(Stop::Fail(format!("no helper has the role {other:?}"))),
    })
}
