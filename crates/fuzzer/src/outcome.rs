//! Results of a read, as text that is the same on every driver that does the same: without addresses, debug numbers and
//! process numbers.
//! Not here: the comparison (`compare`).

use abi::codes::object;
use abi::layout::{BufferObject, FdArrayObject, FlatBinderObject};
use abi::{Delivery, Return, ReturnWord, Returns};
use driver::Connection;
use zerocopy::FromBytes;

/// A decoded read.
pub(crate) struct Seen {
    /// Its text.
    pub(crate) text: String,
    /// Buffers that came with it.
    pub(crate) buffers: Vec<u64>,
}

/// Decodes what a read filled in. `pids`: the processes of the program, in order.
pub(crate) fn decode(bytes: &[u8], connection: &dyn Connection, pids: &[u32]) -> Seen {
    let mut words = Vec::new();
    let mut buffers = Vec::new();
    let mut items = Returns::new(bytes);
    while let (at, Some(item)) = (items.position(), items.next()) {
        words.push(match item {
            Err(why) => format!("UNDECODABLE {why:?}"),
            Ok(Return::Transaction(call)) => transaction("TRANSACTION", &call, connection, pids),
            Ok(Return::Reply(reply)) => transaction("REPLY", &reply, connection, pids),
            Ok(other) => plain(&name(&bytes[at..]), other),
        });
        if let Ok(Return::Transaction(delivery) | Return::Reply(delivery)) = item {
            buffers.push(delivery.buffer.0);
        }
    }
    Seen { text: words.join(" "), buffers }
}

/// The C name of the word that `bytes` begin with, without what goes without saying.
fn name(bytes: &[u8]) -> String {
    let word = u32::read_from_prefix(bytes).map_or(0, |(word, _)| word);
    let name = ReturnWord(word).to_string();
    name.trim_start_matches("BR_").trim_start_matches("TRANSACTION_").replace("_NOTIFICATION", "")
}

fn plain(name: &str, item: Return) -> String {
    match item {
        Return::Increfs(ptr, cookie)
        | Return::Acquire(ptr, cookie)
        | Return::Release(ptr, cookie)
        | Return::Decrefs(ptr, cookie) => format!("{name}({},{})", ptr.0, cookie.0),
        Return::DeadBinder(cookie)
        | Return::ClearDeathNotificationDone(cookie)
        | Return::ClearFreezeNotificationDone(cookie) => format!("{name}({})", cookie.0),
        Return::FrozenBinder(cookie, frozen) => format!("{name}({},{})", cookie.0, u8::from(frozen)),
        Return::Error(errno) => format!("{name}({errno})"),
        Return::Unknown(_) => format!("{item:?}"),
        _ => name.to_owned(),
    }
}

fn transaction(word: &str, call: &Delivery, connection: &dyn Connection, pids: &[u32]) -> String {
    let from = match u32::try_from(call.sender_pid) {
        Ok(0) => "-".to_owned(),
        Ok(pid) => pids.iter().position(|known| *known == pid).map_or("?".to_owned(), |at| format!("p{at}")),
        Err(_) => "?".to_owned(),
    };
    let head = format!(
        "{word}(node={},{} code={} flags={:#x} from={from} uid={} data={} offsets={}",
        call.node.0,
        call.cookie.0,
        call.code,
        call.flags.0,
        if call.sender_euid == 0 { "own" } else { "other" },
        call.data_size,
        call.offsets_size,
    );
    match content(call, connection) {
        Ok(content) => format!("{head}{content})"),
        Err(why) => format!("{head} {why})"),
    }
}

/// Hash of the plain bytes, then the objects.
fn content(call: &Delivery, connection: &dyn Connection) -> Result<String, &'static str> {
    let data = connection.lent(call.buffer.0, call.data_size).ok_or("DATA-OUTSIDE")?;
    let offsets = match call.offsets_size {
        0 => &[],
        size => connection.lent(call.offsets, size).ok_or("OFFSETS-OUTSIDE")?,
    };
    let mut plain = data.to_vec();
    let (mut objects, mut buffers) = (Vec::new(), Vec::new());
    for offset in offsets.chunks_exact(8) {
        let at = u64::from_ne_bytes(offset.try_into().unwrap_or_default()) as usize;
        let rest = data.get(at..).ok_or("OBJECT-OUTSIDE")?;
        let (text, len) =
            arrived(rest, call.buffer.0 + at as u64, connection, &mut buffers).ok_or("CUT-OBJECT")?;
        objects.push(text);
        plain.get_mut(at..at + len).ok_or("CUT-OBJECT")?.fill(0);
    }
    // An object that is not listed keeps its sender's address, which differs from run to run.
    for word in plain.chunks_exact_mut(8) {
        if matches!(u64::from_ne_bytes(word.try_into().unwrap_or_default()) >> 32, 1..0x1_0000) {
            word.fill(0);
        }
    }
    let hash = if plain.is_empty() { String::new() } else { format!(" hash={:08x}", hash(&plain)) };
    let objects = if objects.is_empty() { String::new() } else { format!(" [{}]", objects.join(", ")) };
    Ok(format!("{hash}{objects}"))
}

/// FNV-1a of 32 bits.
fn hash(bytes: &[u8]) -> u32 {
    bytes.iter().fold(0x811c_9dc5, |hash, byte| (hash ^ u32::from(*byte)).wrapping_mul(0x0100_0193))
}

/// Text and length of the object that `bytes` begin with.
fn arrived(
    bytes: &[u8],
    address: u64,
    connection: &dyn Connection,
    buffers: &mut Vec<Option<BufferObject>>,
) -> Option<(String, usize)> {
    let (kind, _) = u32::read_from_prefix(bytes).ok()?;
    let mut buffer_here = None;
    let made = match kind {
        object::BINDER | object::WEAK_BINDER | object::HANDLE | object::WEAK_HANDLE => {
            let (flat, _) = FlatBinderObject::read_from_prefix(bytes).ok()?;
            let weak = if matches!(kind, object::WEAK_BINDER | object::WEAK_HANDLE) { " weak" } else { "" };
            let text = if matches!(kind, object::BINDER | object::WEAK_BINDER) {
                format!("node {},{}{weak}", flat.binder, flat.cookie)
            } else {
                format!("handle {}{weak}", flat.binder as u32)
            };
            (text, size_of::<FlatBinderObject>())
        }
        object::FD => (format!("fd {}", descriptor(address, connection)), 24),
        object::PTR => {
            let (buffer, _) = BufferObject::read_from_prefix(bytes).ok()?;
            let text = scattered(&buffer, connection, buffers);
            buffer_here = Some(buffer);
            (text, size_of::<BufferObject>())
        }
        object::FDA => {
            let (array, _) = FdArrayObject::read_from_prefix(bytes).ok()?;
            (format!("fds {}", array.num_fds), size_of::<FdArrayObject>())
        }
        other => (format!("kind {other:#x}"), 4),
    };
    buffers.push(buffer_here);
    Some(made)
}

/// The file behind a descriptor that arrived; it is closed again.
fn descriptor(address: u64, connection: &dyn Connection) -> String {
    let Some(fd) = connection.take_fd(address) else { return "none".to_owned() };
    let number = std::os::fd::AsRawFd::as_raw_fd(&fd);
    let name = std::fs::read_link(format!("/proc/self/fd/{number}"));
    name.map_or_else(|_| "not-open".to_owned(), |name| name.display().to_string())
}

/// A scattered buffer: its length, hash (only without children, whose addresses are in it), and whether its parent points
/// to it.
fn scattered(buffer: &BufferObject, connection: &dyn Connection, before: &[Option<BufferObject>]) -> String {
    let Some(bytes) = connection.lent(buffer.buffer, buffer.length) else {
        return format!("buf {} OUTSIDE", buffer.length);
    };
    let first =
        bytes.first().map_or(String::new(), |byte| format!(" last={:02x}", bytes.last().unwrap_or(byte)));
    if buffer.flags & object::BUFFER_FLAG_HAS_PARENT == 0 {
        return format!("buf {}{first}", buffer.length);
    }
    let pointed = before
        .get(buffer.parent as usize)
        .and_then(Option::as_ref)
        .and_then(|parent| connection.lent(parent.buffer.checked_add(buffer.parent_offset)?, 8))
        .map(|place| u64::from_ne_bytes(place.try_into().unwrap_or_default()));
    let right = if pointed == Some(buffer.buffer) { "patched" } else { "NOT-PATCHED" };
    format!("buf {}{first} in {} at {} {right}", buffer.length, buffer.parent, buffer.parent_offset)
}
