//! Room: contract section 20: what libraries rely on (US): their ways of using a driver, as they use it.
//! Not here: each promise by itself (the other sections).

use abi::codes::{object, tf};
use abi::layout::BufferObject;
use abi::{Commands, Cookie, Handle, Payload, Return, TransactionFlags};
use driver::connection::DEFAULT_MAP_SIZE;
use driver::{Exchange, OpenOptions};
use sys::interrupt::Interrupter;
use zerocopy::{FromBytes, FromZeros, IntoBytes};

use super::item::{Stop, Verdict, done, ensure, expect, expect_errno, items};
use super::kit::{Kit, Pair};
use super::party::{Got, Node, Party, ROOM, expect_work};
use super::worker::Worker;

items! {
    "US-01" Both [] us_01_libbinder_starts "libbinder's way to open works";
    "US-02" Both [] us_02_libbinder_reads "libbinder's reads of 256 bytes lose nothing, and only signals fail them";
    "US-03" Both [] us_03_libgbinder_waits "libgbinder polls, then reads, and is asked for no thread";
    "US-04" Both [] us_04_the_interface_test "what Android's test of the interface does works";
    "US-05" Both [] us_05_hidl_puts_its_token_first "scattered payloads as HIDL makes them arrive";
}

fn us_01_libbinder_starts(kit: &Kit) -> Verdict {
    let server = Party::new(kit.subject.open(OpenOptions::default())?);
    expect("the version", done("BINDER_VERSION", server.conn.version())?, 8)?;
    done("SET_MAX_THREADS", server.conn.set_max_threads(15))?;
    // A driver without it is fine.
    let _ = server.conn.enable_oneway_spam_detection(true);
    expect("the area", (server.conn.map_size(), DEFAULT_MAP_SIZE), (DEFAULT_MAP_SIZE, (1 << 20) - 2 * 4096))?;
    server.enter_looper()?;
    let Pair { server, client, handle, .. } = kit.pair_of(server, kit.open()?, Node::number(1))?;
    client.start_call(handle, 1, b"ping")?;
    server.echo()?;
    expect_work("a call", &client.ending()?, "COMPLETE REPLY")
}

/// Room for returns in a libbinder thread.
const LIBBINDER_ROOM: usize = 256;

fn us_02_libbinder_reads(kit: &Kit) -> Verdict {
    const NODES: u64 = 8;
    let server = kit.server()?;
    for number in 1..=NODES {
        kit.write_leave(&server, object::BINDER, Node::number(number), number)?;
    }
    // What is told of the nodes is more than one read holds.
    let mut all = Got::default();
    let count = |got: &Got, wanted: fn(&Return) -> bool| {
        got.returns.iter().filter(|item| wanted(item)).count() as u64
    };
    let mut reads = 0;
    while count(&all, |item| matches!(item, Return::TransactionComplete)) < NODES {
        all.returns.extend(server.read_room(LIBBINDER_ROOM)?.unwrap_or_default().returns);
        reads += 1;
        ensure(reads < 1000, || format!("acknowledgements are missing: {}", all.shape()))?;
    }
    let told = (
        count(&all, |item| matches!(item, Return::Increfs(..))),
        count(&all, |item| matches!(item, Return::Acquire(..))),
    );
    expect("nodes told of, weakly and strongly", told, (NODES, NODES))?;
    ensure(reads > 1, || "more than 256 bytes came in one read".into())?;

    let signal = done("installing a signal handler", Interrupter::install())?;
    let looper = kit.open_with(OpenOptions { nonblocking: false, ..OpenOptions::default() })?;
    let pair = kit.pair_of(looper, kit.open()?, Node::number(1))?;
    let (worker, party) = (Worker::new()?, pair.server.clone());
    worker.run(move || {
        done("BINDER_VERSION", party.conn.version())?;
        party.enter_looper()
    })??;
    let read = |party: Party| {
        worker.start(move || {
            let mut room = [0; LIBBINDER_ROOM];
            let mut exchange = Exchange::new(&[], &mut room);
            let result = party.conn.write_read(&mut exchange);
            (result, Got::decode(exchange.returned()))
        })
    };
    let mut task = read(pair.server.clone())?;
    task.expect_asleep("a pool thread")?;
    done("sending a signal", signal.interrupt(worker.thread))?;
    let (result, _) = task.wait("an interrupted read")?;
    expect_errno("a read that a signal met", &result, "EINTR")?;
    let mut task = read(pair.server.clone())?;
    task.expect_asleep("the same read again")?;
    pair.client.start_call(pair.handle, 7, b"")?;
    let (result, got) = task.wait("a read with a call to come")?;
    expect_errno("the read again", &result, "OK")?;
    expect("the call", got?.call()?.code, 7)
}

fn us_03_libgbinder_waits(kit: &Kit) -> Verdict {
    let server = kit.open_with(OpenOptions { nonblocking: false, ..OpenOptions::default() })?;
    done("SET_MAX_THREADS", server.conn.set_max_threads(0))?;
    let Pair { server, client, handle, .. } = kit.pair_of(server, kit.open()?, Node::number(1))?;
    server.enter_looper()?;
    for code in 1..=3 {
        client.send_oneway(handle, code, b"")?;
        expect("poll with a call to come", done("poll", server.conn.poll_readable(2000))?, true)?;
        let got = server.read()?;
        ensure(!got.returns.contains(&Return::SpawnLooper), || {
            format!("asked for a thread: {}", got.shape())
        })?;
        let call = got.call()?;
        expect("the call", call.code, code)?;
        server.free(&call)?;
        expect_work("the sender", &client.read()?, "COMPLETE")?;
    }
    expect("poll with nothing to come", done("poll", server.conn.poll_readable(0))?, false)
}

/// Writes and reads with one structure, again as long as it gives nothing; what came, and in how
/// many reads that gave something.
fn exchange_like_the_test(
    party: &Party,
    fill: impl FnOnce(&mut Commands),
    wanted: &str,
) -> Result<(Got, usize), Stop> {
    let mut commands = Commands::default();
    fill(&mut commands);
    let mut room = [0; ROOM];
    let mut exchange = Exchange::new(commands.as_bytes(), &mut room);
    let mut reads = 0;
    loop {
        let before = exchange.read_consumed;
        match party.conn.write_read(&mut exchange) {
            Ok(()) => {}
            Err(error) if error.kind() == std::io::ErrorKind::WouldBlock => {}
            Err(error) => {
                return Err(Stop::Fail(format!("writing and reading: {}", sys::errno::describe(&error))));
            }
        }
        reads += usize::from(exchange.read_consumed > before);
        let got = Got::decode(exchange.returned())?;
        if got.work() == wanted || !done("poll", party.conn.poll_readable(2000))? {
            expect("commands taken", exchange.write_consumed, commands.as_bytes().len())?;
            return Ok((got, reads));
        }
    }
}

fn us_04_the_interface_test(kit: &Kit) -> Verdict {
    const PING: u32 = 0x5f50_4e47;
    let party = kit.open()?;
    let call = |c: &mut Commands| {
        c.transaction(Handle::CONTEXT_MANAGER, PING, TransactionFlags(tf::ACCEPT_FDS), Payload::default());
    };
    let (got, reads) = exchange_like_the_test(&party, call, "COMPLETE REPLY")?;
    expect("a call of the manager", got.shape().as_str(), "NOOP COMPLETE REPLY")?;
    ensure(reads <= 2, || format!("one answer took {reads} reads"))?;
    party.free(&got.reply()?)?;

    let cookie = Cookie(0x1234);
    let death = |c: &mut Commands| {
        c.increfs(Handle::CONTEXT_MANAGER);
        c.acquire(Handle::CONTEXT_MANAGER);
        c.request_death(Handle::CONTEXT_MANAGER, cookie);
        c.enter_looper();
        c.clear_death(Handle::CONTEXT_MANAGER, cookie);
        c.release(Handle::CONTEXT_MANAGER);
        c.decrefs(Handle::CONTEXT_MANAGER);
        c.exit_looper();
    };
    let (got, reads) = exchange_like_the_test(&party, death, "CLEAR_DEATH_NOTIFICATION_DONE")?;
    expect("a death asked for and cleared", got.shape().as_str(), "NOOP CLEAR_DEATH_NOTIFICATION_DONE")?;
    expect("in the ioctl that asked", reads, 1)?;
    expect("whose", got.returns.contains(&Return::ClearDeathNotificationDone(cookie)), true)
}

/// A scattered buffer of these bytes.
fn scattered(bytes: &[u8]) -> BufferObject {
    let (buffer, length) = (bytes.as_ptr() as u64, bytes.len() as u64);
    BufferObject { kind: object::PTR, buffer, length, ..BufferObject::new_zeroed() }
}

fn us_05_hidl_puts_its_token_first(kit: &Kit) -> Verdict {
    const TOKEN: &[u8; 32] = b"android.hardware.test@1.0::IX\0\0\0";
    const OBJECT: usize = size_of::<BufferObject>();
    let Pair { server, client, handle, .. } = kit.pair()?;
    // A string as HIDL lays it out: the address of its bytes, its length, whose it is.
    let text = *b"scatter\0";
    let string = [0, 7, 0_u64];
    let parent = scattered(string.as_bytes());
    let child = BufferObject {
        flags: object::BUFFER_FLAG_HAS_PARENT,
        parent: 0,
        parent_offset: 0,
        ..scattered(&text)
    };
    let data = [TOKEN, parent.as_bytes(), child.as_bytes()].concat();
    let offsets = [TOKEN.len() as u64, (TOKEN.len() + OBJECT) as u64];
    let payload =
        Payload { data: &data, offsets: &offsets, buffers_size: Some(24 + 8), ..Payload::default() };
    client.write(|c| c.transaction(handle, 1, TransactionFlags::CALL, payload))?;
    let call = server.read()?.call()?;
    let arrived = server.bytes(&call)?;
    expect("the token", &arrived[..TOKEN.len()], TOKEN.as_slice())?;
    let lent = |address: u64, len: u64| {
        let outside = || Stop::Fail(format!("{len} bytes at {address:#x} lie outside the receiving area"));
        Ok::<_, Stop>(server.conn.lent(address, len).ok_or_else(outside)?.to_vec())
    };
    let broken = |_| Stop::Fail("an object did not arrive whole".into());
    let (parent, _) = BufferObject::read_from_prefix(&arrived[TOKEN.len()..]).map_err(|_| broken(()))?;
    let string = lent(parent.buffer, 24)?;
    let (address, _) = u64::read_from_prefix(&string).map_err(|_| broken(()))?;
    expect("the bytes of the string", lent(address, 8)?, text.to_vec())?;
    server.free(&call)?;
    expect_work("answering", &server.answer(b"")?, "COMPLETE")?;
    expect_work("the caller", &client.ending()?, "COMPLETE REPLY")
}
