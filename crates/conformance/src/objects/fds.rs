//! Contract section 8: single descriptors in payloads.
//! Not here: arrays of descriptors (`fd_arrays`).
//! Facts: `/proc/self/fdinfo`: position and flags of an open descriptor (`proc(5)`).

use std::fs::{self, File};
use std::io::{Read, Seek, SeekFrom, Write};
use std::os::fd::{AsFd, AsRawFd, OwnedFd};

use sys::limits;

use crate::payload_calls::start;
use crate::prelude::*;

/// An open file that is identified by its file position.
pub(super) struct Marked(File);

impl Marked {
    pub(super) fn new(position: u64) -> Result<Self, Stop> {
        let mut file = done("opening the own executable", File::open("/proc/self/exe"))?;
        done("seeking", file.seek(SeekFrom::Start(position)))?;
        Ok(Self(file))
    }

    pub(super) fn number(&self) -> u64 {
        self.0.as_raw_fd() as u64
    }

    /// Fails unless this descriptor number refers to the same open file and is close-on-exec.
    pub(super) fn expect_same(&mut self, what: &str, number: u64) -> Verdict {
        ensure(number != self.number(), || format!("{what}: it has the sender's number {number}"))?;
        let before = done("seeking", self.0.stream_position())?;
        for position in [before + 1, before] {
            done("seeking", self.0.seek(SeekFrom::Start(position)))?;
            let told = required(OpenFile::of(number), || format!("{what}: {number} is not open"))?;
            expect(&format!("{what}: the position of the same open file"), told.position, position)?;
            ensure(told.flags & CLOEXEC != 0, || format!("{what}: {number} is not closed on exec"))?;
        }
        Ok(())
    }
}

/// `O_CLOEXEC` in `/proc/self/fdinfo`, on all relevant architectures.
const CLOEXEC: u64 = 0o2_000_000;

/// Properties of an open descriptor.
pub(super) struct OpenFile {
    position: u64,
    flags: u64,
}

impl OpenFile {
    /// `None`: it is not open.
    pub(super) fn of(number: u64) -> Option<Self> {
        let text = fs::read_to_string(format!("/proc/self/fdinfo/{number}")).ok()?;
        let field = |name: &str, radix| {
            let line = text.lines().find_map(|line| line.strip_prefix(name))?;
            u64::from_str_radix(line.trim(), radix).ok()
        };
        Some(Self { position: field("pos:", 10)?, flags: field("flags:", 8)? })
    }
}

/// Takes the descriptor of the object at an offset of a delivery. The object must be listed: numbers in plain bytes
/// are the sender's.
pub(super) fn taken(process: &RawProcess, call: &Delivery, at: u64) -> Result<OwnedFd, Stop> {
    let offsets =
        if call.offsets_size == 0 { Vec::new() } else { process.lent(call.offsets, call.offsets_size)? };
    let listed = offsets.chunks_exact(8).any(|listed| listed == at.to_ne_bytes());
    ensure(listed, || format!("the delivery lists no object at offset {at}"))?;
    let taken = process.conn.take_fd(call.buffer.0 + at);
    required(taken, || format!("expected a descriptor object at offset {at} of the delivery"))
}

/// Fails unless the client's call ends with a refused reply and this extended error.
fn expect_failed_by_reply(kit: &Kit, what: &str, pair: &Pair, errno: &str) -> Verdict {
    pair.client.expect_ending(what, "COMPLETE FAILED_REPLY")?;
    kit.expect_failure(&pair.client, errno, errno)
}

pub(super) fn obj_09_descriptors_need_leave(kit: &Kit) -> Verdict {
    let mut file = Marked::new(10)?;
    let draft = Draft::of(&fd(file.number()));
    let refusing = kit.pair_of(kit.server()?, kit.open()?, Node::number(1).flags(0))?;
    refusing.refused(kit, "a node that takes no descriptors", &draft, "EPERM", Some("EPERM"))?;
    let pair = kit.pair()?;
    let call = pair.deliver(&draft)?;
    let received = taken(&pair.server, &call, 0)?;
    file.expect_same("a node that takes descriptors", received.as_raw_fd() as u64)?;
    pair.conclude(&call)?;
    // For replies the node's flag is irrelevant.
    refusing.answer_with(TransactionFlags::CALL, &draft)?;
    let reply = refusing.client.ending()?.reply()?;
    let received = taken(&refusing.client, &reply, 0)?;
    file.expect_same("a caller that takes descriptors", received.as_raw_fd() as u64)?;
    pair.answer_with(PLAIN_CALL, &draft)?;
    expect_failed_by_reply(kit, "a caller that takes no descriptors", &pair, "EPERM")
}

pub(super) fn obj_10_a_bad_descriptor_fails(kit: &Kit) -> Verdict {
    let pair = kit.pair()?;
    // A high number: a driver in user space may open its own descriptors meanwhile.
    for (what, number) in [("a number that is not open", 9999), ("-1", u32::MAX.into())] {
        let draft = Draft::of(&fd(number));
        pair.refused(kit, what, &draft, "EBADF", Some("EBADF"))?;
        pair.answer_with(TransactionFlags::CALL, &draft)?;
        expect_failed_by_reply(kit, &format!("{what} in a reply"), &pair, "EBADF")?;
    }
    Ok(())
}

pub(super) fn obj_11_a_received_descriptor_is_new(kit: &Kit) -> Verdict {
    let pair = kit.pair()?;
    let mut file = Marked::new(100)?;
    let sent = FdObject {
        kind: object::FD,
        pad_flags: 0x55,
        fd: file.number() | 0xdead_beef << 32,
        cookie: 0x1122_3344_5566_7788,
    };
    start(&pair.client, pair.handle, TransactionFlags::CALL, &Draft::with(&[0; 12]).object(&sent))?;
    let lowest_free = done("opening a file", File::open("/dev/null"))?.as_raw_fd() as u64;
    ensure(OpenFile::of(lowest_free).is_none(), || "a number that was closed is open".into())?;
    let call = pair.server.read()?.call()?;
    let got: FdObject = pair.server.arrived(&call, 12)?;
    expect("type and cookie", (got.kind, got.cookie), (sent.kind, sent.cookie))?;
    expect("pad_flags", got.pad_flags, kit.by_driver(sent.pad_flags, 0))?;
    expect("the number, and the upper half of its word", got.fd, lowest_free)?;
    file.expect_same("the received descriptor", got.fd)?;
    let received = taken(&pair.server, &call, 12)?;
    expect("the descriptor taken", received.as_raw_fd() as u64, got.fd)?;
    pair.conclude(&call)
}

/// While it exists, no thread of this process can open more than so many descriptors (`EMFILE`).
struct DescriptorLimit {
    allowed: u64,
}

impl DescriptorLimit {
    fn new(room: usize) -> Result<Self, Stop> {
        let allowed = done("getrlimit", limits::open_files())?;
        let open = || File::open("/dev/null");
        // A new descriptor has the lowest free number, which gives the limit.
        let free = done("opening files", (0..=room).map(|_| open()).collect::<Result<Vec<_>, _>>())?;
        let first_too_many = free.last().map_or(0, |file| file.as_raw_fd() as u64);
        drop(free);
        done("setrlimit", limits::set_open_files(first_too_many))?;
        let limit = Self { allowed };
        ensure((0..=room).map(|_| open()).collect::<Result<Vec<_>, _>>().is_err(), || {
            "RLIMIT_NOFILE does not keep files closed".into()
        })?;
        Ok(limit)
    }
}

impl Drop for DescriptorLimit {
    fn drop(&mut self) {
        // Cannot fail: it restores the former value.
        let _ = limits::set_open_files(self.allowed);
    }
}

pub(super) fn obj_12_a_receiver_out_of_descriptors(kit: &Kit) -> Verdict {
    let (pair, file) = (kit.pair()?, Marked::new(0)?);
    let draft = Draft::of(&fd(file.number()));
    start(&pair.client, pair.handle, TransactionFlags::CALL, &draft)?;
    let limit = DescriptorLimit::new(0)?;
    pair.server.expect_silence("a receiver out of descriptors, called")?;
    drop(limit);
    pair.client.expect_ending("its caller", "COMPLETE FAILED_REPLY")?;
    pair.server.expect_silence("of the failed call")?;

    let number = fd(file.number());
    let two = Draft::default().object(&number).object(&number);
    start(&pair.client, pair.handle, TransactionFlags::CALL, &two)?;
    let limit = DescriptorLimit::new(1)?;
    pair.server.expect_silence("a receiver with room for one of two descriptors, called")?;
    done("opening a file in the place of the first, which came back", File::open("/dev/null"))?;
    drop(limit);
    pair.client.expect_ending("its caller", "COMPLETE FAILED_REPLY")?;

    start(&pair.client, pair.handle, TransactionFlags::ONEWAY, &draft)?;
    let limit = DescriptorLimit::new(0)?;
    pair.server.expect_silence("a receiver out of descriptors, called oneway")?;
    drop(limit);
    pair.client.expect_silence("its caller")?;
    // The dropped call's buffer does not hold back the next one (contract OW-02).
    pair.client.send_oneway(pair.handle, 7, b"")?;
    let next = pair.server.read()?.call()?;
    expect("the code of the next oneway call", next.code, 7)?;
    pair.server.free(&next)?;
    pair.client.expect_read("its caller", "COMPLETE")?;

    pair.answer_with(TransactionFlags::CALL, &draft)?;
    let limit = DescriptorLimit::new(0)?;
    let got = if kit.is_rust() { pair.client.read()? } else { pair.client.ending()? };
    drop(limit);
    let want = kit.by_driver("COMPLETE FAILED_REPLY", "COMPLETE");
    expect_work("a caller out of descriptors, replied to", &got, want)?;
    pair.client.expect_silence("after that")
}

pub(super) fn obj_14_the_file_is_held_from_send_to_delivery(kit: &Kit) -> Verdict {
    let Pair { server, client, handle, .. } = kit.pair()?;
    let send = |fd: &dyn AsFd| {
        let draft = Draft::of(&self::fd(fd.as_fd().as_raw_fd() as u64));
        start(&client, handle, TransactionFlags::ONEWAY, &draft)
    };
    let (mut reader, mut writer) = done("making a pipe", std::io::pipe())?;
    send(&writer)?;
    done("writing into the end that was sent", writer.write_all(b"sender "))?;
    drop(writer);
    let call = server.read()?.call()?;
    let mut received = File::from(taken(&server, &call, 0)?);
    done("writing into the end that was received", received.write_all(b"receiver"))?;
    drop(received);
    let mut text = String::new();
    // Returns only if the last write end is closed.
    done("reading the pipe", reader.read_to_string(&mut text))?;
    expect("what came through the pipe", text.as_str(), "sender receiver")?;
    server.free(&call)?;

    let (mut reader, writer) = done("making a pipe", std::io::pipe())?;
    send(&writer)?;
    drop(writer);
    let worker = Worker::new()?;
    let mut rest = worker.start(move || reader.read(&mut [0]))?;
    rest.expect_asleep("the pipe, while its other end waits to be delivered")?;
    drop(server);
    expect("bytes before the pipe's end", done("reading", rest.wait("the pipe")?)?, 0)?;
    expect_work("calling the receiver that closed", &client.call(handle)?, "DEAD_REPLY")
}
