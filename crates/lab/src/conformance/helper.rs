//! Room: what the suite does in processes of its own: one item, a context manager, and single steps
//! that only another OS process (or user, or a process about to die) can take.
//! Not here: starting them (`kit`, `runner`).

use std::io::{self, Read};
use std::os::fd::AsFd;
use std::os::unix::process::CommandExt;
use std::process::{Command, Stdio};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use abi::codes::object;
use abi::layout::{FdObject, FreezeInfo};
use abi::{Commands, Handle, Payload, TransactionFlags};
use driver::connection::DEFAULT_MAP_SIZE;
use driver::{AnyContext, OpenOptions};
use sys::binder_fd::BinderFd;
use sys::receive_map::ReceiveMap;
use zerocopy::{FromZeros, IntoBytes};

use super::item::{Stop, errno};
use super::kit::Kit;
use super::party::{Node, Party};
use super::subject::Subject;
use super::{HELPER_COMMAND, evidence, lobby, puppet, runner};

/// Runs the helper that the words behind [`HELPER_COMMAND`] name. What it found goes to standard
/// output.
///
/// # Errors
/// What is wrong, for standard error.
pub fn main(words: &[String]) -> Result<(), String> {
    let mut words = words.iter().map(String::as_str);
    let mut word = |what: &str| words.next().ok_or_else(|| format!("a helper needs {what}"));
    let (role, address) = (word("a role")?, word("an address")?);
    let subject: Box<dyn Subject> = Box::new(AnyContext::parse(address));
    match role {
        "item" => {
            let id = word("an item")?;
            runner::serve_item(subject, id, words)
        }
        "manager" => manager(subject.as_ref(), word("a tag")?),
        "map-inherited" => map_inherited(),
        "map-after-exec" => map_after_exec(address),
        "touch-fresh-page" => touch_fresh_page(subject.as_ref()),
        "use-inherited" => use_inherited(word("a handle")?, TransactionFlags::ONEWAY),
        "call-inherited" => use_inherited(word("a handle")?, TransactionFlags::CALL),
        "manage" => manage(subject.as_ref()),
        "use-handle" => use_handle(subject.as_ref(), word("a handle")?),
        "manage-inherited" => manage_inherited(),
        "freeze-inherited" => freeze_inherited(word("a pid")?),
        "puppet" => puppet::serve(subject),
        "send" => {
            let [number, code, flags, size] =
                [word("a number")?, word("a code")?, word("flags")?, word("a size")?];
            send(subject, parsed(number)?, parsed(code)?, TransactionFlags(parsed(flags)?), parsed(size)?)
        }
        "tell-pid" => tell_pid(subject, parsed(word("a number")?)?),
        "call-manager" => call_manager(subject.as_ref(), word("a kind of payload")?),
        other => Err(format!("no helper has the role {other:?}")),
    }
}

/// The device that the parent handed over as standard input.
fn inherited() -> Result<BinderFd, String> {
    let fd = io::stdin().as_fd().try_clone_to_owned().map_err(|error| format!("standard input: {error}"))?;
    Ok(BinderFd::from(fd))
}

fn told<T>(result: Result<T, Stop>) -> Result<T, String> {
    result.map_err(Stop::why)
}

fn parsed<T: std::str::FromStr>(word: &str) -> Result<T, String> {
    word.parse().map_err(|_| format!("{word:?} is no number"))
}

/// Manages the context, with the lobby's services, until standard input ends.
fn manager(subject: &dyn Subject, tag: &str) -> Result<(), String> {
    let tag = parsed(tag)?;
    let connection = told(lobby::take(subject))?;
    println!("ready");
    let stop = Arc::new(AtomicBool::new(false));
    let flag = Arc::clone(&stop);
    std::thread::spawn(move || {
        // Its end is all that matters.
        let _ = io::stdin().read_to_end(&mut Vec::new());
        flag.store(true, Ordering::Relaxed);
    });
    told(lobby::serve(connection, tag, &stop))
}

fn map_inherited() -> Result<(), String> {
    println!("{}", errno(&ReceiveMap::new(inherited()?.as_fd(), DEFAULT_MAP_SIZE)));
    Ok(())
}

/// Opens the context, then becomes another program with another address space but the same pid.
fn map_after_exec(address: &str) -> Result<(), String> {
    let open = || std::fs::File::options().read(true).write(true).open(address);
    let device = open().map_err(|error| format!("{address}: {error}"))?;
    let error = Command::new("/proc/self/exe")
        .args([HELPER_COMMAND, "map-inherited", address])
        .stdin(Stdio::from(device))
        .exec();
    Err(format!("exec: {error}"))
}

/// Reads a page into which nothing was ever delivered; does not survive that.
fn touch_fresh_page(subject: &dyn Subject) -> Result<(), String> {
    let connection = subject.open(OpenOptions::default()).map_err(|error| error.to_string())?;
    let base = connection.map_base().ok_or("the receiving area has no known address")?;
    let bytes = connection.lent(base + 0x8000, 1).ok_or("the receiving area is too small")?;
    println!("survived, and read {}", bytes[0]);
    Ok(())
}

/// Asks for the version and calls a handle of the process that opened the device.
fn use_inherited(handle: &str, flags: TransactionFlags) -> Result<(), String> {
    let (fd, handle) = (inherited()?, Handle(parsed(handle)?));
    let version = fd.version();
    let mut commands = Commands::default();
    commands.transaction(handle, 77, flags, Payload::default());
    let called = fd.write_read(commands.as_bytes(), &mut 0, &mut [], &mut 0);
    println!("version {} call {}", errno(&version), errno(&called));
    Ok(())
}

/// Opens the context and asks to manage it.
fn manage(subject: &dyn Subject) -> Result<(), String> {
    match subject.open(OpenOptions::default()) {
        Ok(connection) => println!("{}", errno(&connection.become_context_manager(None))),
        Err(error) => println!("not opened: {error}"),
    }
    Ok(())
}

/// Opens the context and calls a handle of somebody else's.
fn use_handle(subject: &dyn Subject, handle: &str) -> Result<(), String> {
    let options = OpenOptions { nonblocking: true, ..OpenOptions::default() };
    let party = Party::new(subject.open(options).map_err(|error| error.to_string())?);
    let handle = Handle(parsed(handle)?);
    println!("{}", told(party.call(handle, 77, TransactionFlags::CALL, Payload::default()))?.work());
    Ok(())
}

fn manage_inherited() -> Result<(), String> {
    println!("{}", errno(&inherited()?.set_context_manager()));
    Ok(())
}

/// Freezes a process; whoever asked thaws it.
fn freeze_inherited(pid: &str) -> Result<(), String> {
    let info = FreezeInfo { pid: parsed(pid)?, enable: 1, timeout_ms: 0 };
    println!("{}", errno(&inherited()?.freeze(info)));
    Ok(())
}

/// What a helper needs to act as a test does.
fn kit(subject: Box<dyn Subject>) -> Result<Kit, String> {
    let evidence = evidence::examine(subject.as_ref()).map_err(|error| error.to_string())?;
    Ok(Kit { subject, evidence })
}

/// Leaves a node in the lobby, serves one call to it, and says which pid the call came from.
fn tell_pid(subject: Box<dyn Subject>, number: u64) -> Result<(), String> {
    let kit = kit(subject)?;
    let server = told(kit.server())?;
    told(kit.leave(&server, Node::number(number), number))?;
    let call = told(server.read().and_then(|got| got.call()))?;
    told(server.answer(b""))?;
    println!("{}", call.sender_pid);
    Ok(())
}

/// Calls a node that was left in the lobby with this many zeroes, and says how that ended.
fn send(
    subject: Box<dyn Subject>,
    number: u64,
    code: u32,
    flags: TransactionFlags,
    size: usize,
) -> Result<(), String> {
    let kit = kit(subject)?;
    let client = told(kit.open())?;
    let handle = told(kit.fetch(&client, number))?;
    let data = vec![0; size];
    told(
        client.write(|c| c.transaction(handle, code, flags, Payload { data: &data, ..Payload::default() })),
    )?;
    let got = told(if flags.is_oneway() { client.read() } else { client.ending() })?;
    println!("{}", got.work());
    Ok(())
}

/// Calls the context manager: with a descriptor (standard input), with nothing, or with a reference of its own.
fn call_manager(subject: &dyn Subject, payload: &str) -> Result<(), String> {
    let options = OpenOptions { nonblocking: true, ..OpenOptions::default() };
    let party = Party::new(subject.open(options).map_err(|error| error.to_string())?);
    told(party.conn.version().map_err(|error| Stop::Fail(error.to_string())))?;
    let object = FdObject { kind: object::FD, ..FdObject::new_zeroed() };
    if payload == "holding" {
        told(party.write(|c| c.acquire(Handle::CONTEXT_MANAGER)))?;
    }
    let payload = match payload {
        "fd" => Payload { data: object.as_bytes(), offsets: &[0], ..Payload::default() },
        _ => Payload::default(),
    };
    let got = told(party.call(Handle::CONTEXT_MANAGER, 1, TransactionFlags::CALL, payload))?;
    println!("{}", got.work());
    Ok(())
}
