//! Contract section 20: driver use patterns that libraries rely on (US).
//! Not here: the single promises (other sections).

use sys::interrupt::Interrupter;

use crate::prelude::*;
use crate::write_read::one_read;

items! {
    "US-01" Both [] us_01_libbinder_starts "libbinder's way to open works";
    "US-02" Both [] us_02_libbinder_reads "libbinder's reads of 256 bytes lose nothing, and only signals fail them";
    "US-03" Both [] us_03_libgbinder_waits "libgbinder polls, then reads, and is never asked for a thread";
    "US-04" Both [] us_04_the_interface_test "what Android's test of the interface does works";
    "US-05" Both [] us_05_hidl_puts_its_token_first "scatter-gather payloads in HIDL's layout arrive";
}

fn us_01_libbinder_starts(kit: &Kit) -> Verdict {
    let server = RawProcess::new(kit.subject.open(OpenOptions::default())?);
    expect("the version", server.version()?, 8)?;
    server.set_max_threads(15)?;
    // A driver without it is acceptable.
    let _ = server.conn.enable_oneway_spam_detection(true);
    expect(
        "the area",
        (server.conn.map_size(), default_map_size()),
        (default_map_size(), (1 << 20) - 2 * sys::page::size()),
    )?;
    server.enter_looper()?;
    let Pair { server, client, handle, .. } = kit.pair_of(server, kit.open()?, Node::number(1))?;
    client.round_trip("a call", handle, &server)
}

/// Read buffer size of a libbinder thread.
const LIBBINDER_ROOM: usize = 256;

fn us_02_libbinder_reads(kit: &Kit) -> Verdict {
    const NODES: u64 = 8;
    let server = kit.server()?;
    for number in 1..=NODES {
        Kit::write_leave(&server, object::BINDER, Node::number(number), number)?;
    }
    // The node notifications exceed one read.
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
    let worker = Worker::new()?;
    pair.server.on(&worker, |server| {
        server.version()?;
        server.enter_looper()
    })?;
    let read = || pair.server.start_on(&worker, |server| one_read(server, LIBBINDER_ROOM, &[]));
    let mut task = read()?;
    task.expect_asleep("a pool thread")?;
    done("sending a signal", signal.interrupt(worker.thread))?;
    let (result, ..) = task.wait("an interrupted read")?;
    expect("a read that a signal met", result.as_str(), "EINTR")?;
    let mut task = read()?;
    task.expect_asleep("the same read again")?;
    pair.client.start_call(pair.handle, 7, b"")?;
    let (result, _, got) = task.wait("a read with a call to come")?;
    expect("the read again", result.as_str(), "OK")?;
    expect("the call", got?.call()?.code, 7)
}

fn us_03_libgbinder_waits(kit: &Kit) -> Verdict {
    let server = kit.open_with(OpenOptions { nonblocking: false, ..OpenOptions::default() })?;
    server.set_max_threads(0)?;
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
        client.expect_read("the sender", "COMPLETE")?;
    }
    expect("poll with nothing to come", done("poll", server.conn.poll_readable(0))?, false)
}

/// Writes and reads with one structure, repeated while it returns something; all returns, and the number of non-empty
/// reads.
fn exchange_like_the_test(
    process: &RawProcess,
    fill: impl FnOnce(&mut Commands),
    wanted: &str,
) -> Result<(Got, usize), Stop> {
    let commands = Commands::of(fill);
    let mut room = [0; ROOM];
    let mut exchange = Exchange::new(commands.as_bytes(), &mut room);
    let mut reads = 0;
    loop {
        let before = exchange.read_consumed;
        match process.conn.write_read(&mut exchange) {
            Ok(()) => {}
            Err(error) if error.kind() == std::io::ErrorKind::WouldBlock => {}
            Err(error) => {
                return Err(Stop::Fail(format!("writing and reading: {}", sys::errno::describe(&error))));
            }
        }
        reads += usize::from(exchange.read_consumed > before);
        let got = Got::decode(exchange.returned())?;
        if got.work() == wanted || !done("poll", process.conn.poll_readable(2000))? {
            expect("commands taken", exchange.write_consumed, commands.as_bytes().len())?;
            return Ok((got, reads));
        }
    }
}

fn us_04_the_interface_test(kit: &Kit) -> Verdict {
    const PING: u32 = 0x5f50_4e47;
    let process = kit.open()?;
    let call = |c: &mut Commands| {
        c.transaction(Handle::CONTEXT_MANAGER, PING, TransactionFlags(tf::ACCEPT_FDS), Payload::default());
    };
    let (got, reads) = exchange_like_the_test(&process, call, "COMPLETE REPLY")?;
    expect("a call of the manager", got.shape().as_str(), "NOOP COMPLETE REPLY")?;
    ensure(reads <= 2, || format!("one answer took {reads} reads"))?;
    process.free(&got.reply()?)?;

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
    let (got, reads) = exchange_like_the_test(&process, death, "CLEAR_DEATH_NOTIFICATION_DONE")?;
    expect("a death asked for and cleared", got.shape().as_str(), "NOOP CLEAR_DEATH_NOTIFICATION_DONE")?;
    expect("in the ioctl that asked", reads, 1)?;
    expect("whose", got.returns.contains(&Return::ClearDeathNotificationDone(cookie)), true)
}

fn us_05_hidl_puts_its_token_first(kit: &Kit) -> Verdict {
    const TOKEN: &[u8; 32] = b"android.hardware.test@1.0::IX\0\0\0";
    let pair = kit.pair()?;
    // A string in HIDL's layout: address, length, ownership.
    let text = *b"scatter\0";
    let string = [0, 7, 0_u64];
    let draft = Draft::with(TOKEN).object(&ptr(&string)).object(&child(&text, 0, 0)).room(24 + 8);
    let call = pair.deliver(&draft)?;
    let server = &pair.server;
    expect("the token", server.arrived(&call, 0)?, *TOKEN)?;
    let parent: BufferObject = server.arrived(&call, TOKEN.len() as u64)?;
    let string = server.lent(parent.buffer, 24)?;
    let address = u64::from_ne_bytes(*required(string.first_chunk(), || "no string arrived".into())?);
    expect("the bytes of the string", server.lent(address, 8)?, text.to_vec())?;
    pair.conclude(&call)
}
