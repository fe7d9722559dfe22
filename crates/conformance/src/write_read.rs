//! Contract section 3: the mechanics of WRITE_READ (WR).

pub(super) mod edges;

use std::io;
use std::time::{Duration, Instant};

use abi::layout::WriteRead;
use sys::interrupt::Interrupter;

use crate::prelude::*;

items! {
    "WR-01" Both [] wr_01_consumed_counts_are_inputs "writing comes first, and both consumed counts are inputs";
    "WR-02" Both [seen] wr_02_a_failed_read_keeps_what_was_written "a read that fails does not have its writes repeated";
    "WR-03" Both [seen] wr_03_noop_heads_a_read "a read into an empty buffer starts with NOOP, another appends";
    "WR-04" Both [seen] wr_04_nothing_to_do_is_eagain "nothing to read is EAGAIN for a non-blocking file";
    "WR-05" C [seen] wr_05_a_first_read_never_blocks "a thread's first read never blocks";
    "WR-06" Both [seen] wr_06_a_signal_interrupts_a_read "a signal ends a blocking read with EINTR and loses nothing";
    "WR-07" C [differs] wr_07_interrupted_work_stays_with_its_thread "work that meets a signal stays with its thread";
    "WR-08" C [seen] wr_08_work_needs_80_bytes "work is returned only into 80 bytes or more";
    "WR-09" Both [] wr_09_a_big_return_is_the_last "a read stops after the first transaction or notification";
    "WR-10" Both [] wr_10_the_threads_own_work_comes_first "a thread's own work comes before its process's";
    "WR-11" Both [seen] wr_11_bad_commands_are_refused "a bad command is an errno and counts what came before";
    "WR-12" Both [seen] wr_12_a_refused_transaction_stops_the_write "a refused transaction is not an errno but stops the write";
    "WR-13" Both [seen] wr_13_an_unread_error_blocks_writes "until that error is read nothing more is written";
    "WR-14" C [seen differs] wr_14_a_write_may_reach_beyond_its_size "only a command's start must lie inside the size";
    "WR-15" Both [seen] wr_15_completion_of_a_call_is_deferred "the completion of a call alone wakes nobody";
    "WR-16" Both [] wr_16_a_call_that_cannot_be_stored_fails "a call that cannot be stored for its receiver fails the caller";
    "WR-17" Both [] wr_17_a_command_that_cannot_be_read in edges "a command that cannot be read as a whole is not taken";
    "WR-18" Both [] wr_18_a_return_that_cannot_be_stored in edges "a return that cannot be stored is EFAULT, and the process goes on";
}

/// A read behind this many bytes must append the call that waits, without a NOOP.
fn expect_appended(server: &RawProcess, behind: usize) -> Verdict {
    let mut buffer = [0xaa; ROOM];
    let mut exchange = Exchange::new(&[], &mut buffer);
    exchange.read_consumed = behind;
    expect_errno("reading behind some bytes", &server.conn.write_read(&mut exchange), "OK")?;
    let (before, appended) = exchange.returned().split_at(behind);
    ensure(before.iter().all(|byte| *byte == 0xaa), || format!("the {behind} bytes are now {before:?}"))?;
    expect("what was appended", Got::decode(appended)?.shape().as_str(), "TRANSACTION")
}

fn wr_01_consumed_counts_are_inputs(kit: &Kit) -> Verdict {
    let Pair { server, client, handle, .. } = kit.pair()?;
    let mut commands = Commands::default();
    commands.append(&[0xff; 4]);
    commands.acquire(handle);
    let mut exchange = Exchange::new(commands.as_bytes(), &mut []);
    exchange.write_consumed = 4;
    expect_errno("writing behind 4 bytes of junk", &client.conn.write_read(&mut exchange), "OK")?;
    expect("bytes consumed", exchange.write_consumed, commands.as_bytes().len())?;
    client.start_call(handle, 1, b"")?;
    expect_appended(&server, 8)?;
    let mut buffer = [0; ROOM];
    let reply = Commands::of(|c| c.reply(TransactionFlags::default(), Payload::default()));
    let mut exchange = Exchange::new(reply.as_bytes(), &mut buffer);
    expect_errno("replying and reading in one call", &server.conn.write_read(&mut exchange), "OK")?;
    expect_work("what that read gave", &Got::decode(exchange.returned())?, "COMPLETE")
}

fn wr_02_a_failed_read_keeps_what_was_written(kit: &Kit) -> Verdict {
    let Pair { server: _server, client, handle, .. } = kit.pair()?;
    let commands = Commands::of(|c| c.acquire(handle));
    let mut buffer = [0; ROOM];
    let mut exchange = Exchange::new(commands.as_bytes(), &mut buffer);
    for attempt in ["the first attempt", "the same again"] {
        expect_errno(attempt, &client.conn.write_read(&mut exchange), "EAGAIN")?;
        expect(attempt, (exchange.write_consumed, exchange.read_consumed), (8, 0))?;
    }
    // One count is from the manager, one from above. With a third the call would be delivered.
    client.write(|c| {
        c.release(handle);
        c.release(handle);
    })?;
    expect_work("calling once all counts are given back", &client.call(handle)?, "FAILED_REPLY")
}

fn wr_03_noop_heads_a_read(kit: &Kit) -> Verdict {
    let Pair { server, client, handle, .. } = kit.pair()?;
    client.start_call(handle, 1, b"")?;
    let got = server.read_room(ROOM)?.unwrap_or_default();
    expect("a read into an empty buffer", got.shape().as_str(), "NOOP TRANSACTION")?;
    server.finish_call()?;
    client.expect_ending("the call", "COMPLETE REPLY")?;
    client.start_call(handle, 1, b"")?;
    expect_appended(&server, 4)
}

fn wr_04_nothing_to_do_is_eagain(kit: &Kit) -> Verdict {
    let process = kit.open_with(OpenOptions::default())?;
    done("O_NONBLOCK after open", process.conn.set_nonblocking(true))?;
    let mut buffer = [0xaa; ROOM];
    let mut exchange = Exchange::new(&[], &mut buffer);
    expect_errno("reading nothing", &process.conn.write_read(&mut exchange), "EAGAIN")?;
    expect("bytes returned", exchange.read_consumed, 0)?;
    expect("the first word of the buffer all the same", &buffer[..4], &br::NOOP.to_ne_bytes())
}

/// Result of a read on another thread: errno, bytes consumed, returns.
pub(super) type ReadEnd = (String, usize, Result<Got, Stop>);

/// One read by the calling thread.
pub(super) fn one_read(process: &RawProcess, room: usize, commands: &[u8]) -> ReadEnd {
    let mut buffer = vec![0; room];
    let mut exchange = Exchange::new(commands, &mut buffer);
    let result = process.conn.write_read(&mut exchange);
    (errno(&result), exchange.write_consumed, Got::decode(exchange.returned()))
}

fn wr_05_a_first_read_never_blocks(kit: &Kit) -> Verdict {
    let process = kit.open()?;
    let worker = Worker::new()?;
    let read = |process: &RawProcess| process.on(&worker, |process| Ok(one_read(process, ROOM, &[])));
    let (first, _, got) = read(&process)?;
    expect("a new thread's first read", first.as_str(), kit.by_driver("OK", "EAGAIN"))?;
    expect("its second", read(&process)?.0.as_str(), "EAGAIN")?;
    if kit.is_rust() {
        return Ok(());
    }
    expect("what the first read gave", got?.shape().as_str(), "NOOP")?;
    let blocking = kit.open_with(OpenOptions::default())?;
    let (first, _, got) = read(&blocking)?;
    expect("the first read where reads block", (first.as_str(), got?.shape().as_str()), ("OK", "NOOP"))
}

/// Starts a blocking read on another thread of a process; returns once it sleeps. The process is non-blocking again when the read has
/// ended, and not before: with a driver in another process, a caller that sleeps may not be in its read yet.
pub(super) fn sleeping_read(
    worker: &Worker,
    process: &RawProcess,
    room: usize,
) -> Result<Task<ReadEnd>, Stop> {
    done("switching to blocking", process.conn.set_nonblocking(false))?;
    process.on(worker, RawProcess::version)?;
    let read = move |process: &RawProcess| {
        let (result, written, got) = one_read(process, room, &bc::ENTER_LOOPER.to_ne_bytes());
        let switched = done("switching to non-blocking", process.conn.set_nonblocking(true));
        (result, written, switched.and(got))
    };
    let mut task = process.start_on(worker, read)?;
    task.expect_asleep("a blocking read").map(|()| task)
}

fn interrupter() -> Result<Interrupter, Stop> {
    done("installing a signal handler", Interrupter::install())
}

fn wr_06_a_signal_interrupts_a_read(kit: &Kit) -> Verdict {
    let (signal, worker) = (interrupter()?, Worker::new()?);
    let Pair { server, client, handle, .. } = kit.pair()?;
    let task = sleeping_read(&worker, &server, ROOM)?;
    done("sending a signal", signal.interrupt(worker.thread))?;
    let (result, written, got) = task.wait("an interrupted read")?;
    expect("a read interrupted by a signal with SA_RESTART", result.as_str(), "EINTR")?;
    expect("bytes written before (WR-02)", written, 4)?;
    expect("bytes read", got?.returns.len(), 0)?;
    client.send_oneway(handle, 7, b"")?;
    expect("the call that came after", server.read()?.call()?.code, 7)
}

/// One attempt to have work and a signal meet in a sleeping thread. `Some(true)`: they met, and the work stayed with
/// the thread; `Some(false)`: they met, and the work was handed on or returned.
fn let_them_meet(kit: &Kit, pair: &Pair, worker: &Worker, signal_first: bool) -> Result<Option<bool>, Stop> {
    let signal = interrupter()?;
    let Pair { server, client, handle, .. } = pair;
    let task = sleeping_read(worker, server, ROOM)?;
    let hog = Hog::start()?;
    let interrupt = || done("sending a signal", signal.interrupt(worker.thread));
    if signal_first {
        interrupt()?;
    }
    client.send_oneway(*handle, 1, b"")?;
    if !signal_first {
        interrupt()?;
    }
    drop(hog);
    let (result, _, got) = task.wait("an interrupted read")?;
    client.expect_read("a oneway call", "COMPLETE")?;
    let mine = got?;
    if result == "OK" && !mine.work().is_empty() {
        server.free(&mine.call()?)?;
        return Ok(None);
    }
    if let Some(got) = server.read_now()? {
        // The signal came first and the call found no waiting thread, so any thread may get it.
        server.free(&got.call()?)?;
        return Ok(None);
    }
    let kept = server.on(worker, RawProcess::read_now)?;
    let kept = required(kept, || "a call that met a signal was lost".into())?;
    server.free(&kept.call()?)?;
    Ok(Some(kit.by_driver(true, false)))
}

fn wr_07_interrupted_work_stays_with_its_thread(kit: &Kit) -> Verdict {
    let (pair, worker, start) = (kit.pair()?, Worker::new()?, Instant::now());
    worker.run(|| done("waiting for the CPU as batch jobs do", Hog::yield_to()))??;
    let mut tries = 0;
    // On the embedded driver their meeting is no chance to wait for.
    while kit.is_embedded() || !sys::patience::is_over(start, Duration::from_secs(4)) {
        if kit.is_embedded() && tries == 100 {
            return kit
                .differs("the read returns the work, or fails and leaves it to any thread; none is lost");
        }
        tries += 1;
        match let_them_meet(kit, &pair, &worker, tries % 2 == 0)? {
            Some(true) => return Ok(()),
            Some(false) => {
                return Err(Stop::Fail("EINTR although there was work, which the read should return".into()));
            }
            None => {}
        }
    }
    skip_unless(kit.is_rust(), &format!("work and signal did not meet in {tries} tries"))
}

fn wr_08_work_needs_80_bytes(kit: &Kit) -> Verdict {
    let Pair { server, client, handle, .. } = kit.pair()?;
    let idle = server.read_room(79)?.map(|got| got.shape());
    expect("reading nothing into 79 bytes", idle.is_none(), kit.by_driver(true, false))?;
    client.start_call(handle, 1, b"")?;
    let short = server.read_room(79)?.map(|got| got.shape());
    expect("reading a call into 79 bytes", short.as_deref(), Some("NOOP"))?;
    let enough = server.read_room(80)?.map(|got| got.shape());
    expect("reading it into 80 bytes", enough.as_deref(), Some("NOOP TRANSACTION"))
}

fn wr_09_a_big_return_is_the_last(kit: &Kit) -> Verdict {
    let Pair { server, client, handle, .. } = kit.pair()?;
    let other = kit.hand_over(&server, &client, Node::number(2))?;
    client.send_oneway(handle, 1, b"")?;
    client.send_oneway(other, 2, b"")?;
    client.expect_read("acknowledgements of two oneway calls", "COMPLETE COMPLETE")?;
    for code in [1, 2] {
        let got = server.expect_read("a read while two calls wait", "TRANSACTION")?;
        expect("its code", got.call()?.code, code)?;
    }
    let owner = kit.server()?;
    let lent = kit.hand_over(&owner, &client, Node::number(3))?;
    client.enter_looper()?;
    client.write(|c| {
        c.request_death(other, Cookie(1));
        c.request_death(lent, Cookie(2));
    })?;
    drop((owner, server));
    for _ in 0..2 {
        client.expect_read("a read while two deaths wait", "DEAD_BINDER")?;
    }
    kit.since(6, 12, "freeze notifications (the last part of this test)")?;
    let owner = kit.server()?;
    let nodes = [Node::number(4), Node::number(5)].map(|node| kit.hand_over(&owner, &client, node));
    for (cookie, handle) in (1..).zip(nodes) {
        let handle = handle?;
        client.write(|c| c.request_freeze(handle, Cookie(cookie)))?;
    }
    for _ in 0..2 {
        client.expect_read("a read while two freeze states wait", "FROZEN_BINDER")?;
    }
    Ok(())
}

fn wr_10_the_threads_own_work_comes_first(kit: &Kit) -> Verdict {
    let Pair { server, client, handle, .. } = kit.pair()?;
    let (other, second) = kit.client_of(&server, Node::number(2))?;
    client.start_call(handle, 1, b"")?;
    server.expect_read("the call", "TRANSACTION")?;
    other.send_oneway(second, 2, b"")?;
    server.expect_silence("the process's work while the thread serves")?;
    server.reply(Payload::default())?;
    let mut got = server.read()?;
    if kit.is_rust() {
        // There the same read may continue with process work.
        if got.work() == "COMPLETE" {
            got.returns.extend(server.read()?.returns);
        }
        return expect_work("both", &got, "COMPLETE TRANSACTION");
    }
    expect_work("a read of a thread with work of its own", &got, "COMPLETE")?;
    expect_work("the next read", &server.read()?, "TRANSACTION")
}

fn wr_11_bad_commands_are_refused(kit: &Kit) -> Verdict {
    let Pair { server, client, handle, .. } = kit.pair()?;
    let good = [&bc::ACQUIRE.to_ne_bytes()[..], handle.0.as_bytes()].concat();
    for (name, word, payload) in [
        ("an unknown command", 0x4004_63ff, 4),
        ("BC_ATTEMPT_ACQUIRE", bc::ATTEMPT_ACQUIRE, 8),
        ("BC_ACQUIRE_RESULT", bc::ACQUIRE_RESULT, 4),
    ] {
        let bytes = [&good[..], &word.to_ne_bytes(), zeroes(payload), &good].concat();
        let mut buffer = [0; ROOM];
        let mut exchange = Exchange::new(&bytes, &mut buffer);
        exchange.read_consumed = 12;
        expect_errno(name, &client.conn.write_read(&mut exchange), "EINVAL")?;
        expect(name, (exchange.write_consumed, exchange.read_consumed), (8, 0))?;
    }
    client.start_call(handle, 1, b"")?;
    let mut buffer = [0; ROOM];
    let mut exchange = Exchange::new(&[0xff; 4], &mut buffer);
    expect_errno("a bad command before a read", &server.conn.write_read(&mut exchange), "EINVAL")?;
    expect("bytes returned by the skipped read", exchange.read_consumed, 0)?;
    server.expect_read("the call that the skipped read left", "TRANSACTION")?;
    let Some(device) = client.conn.device() else { return Ok(()) };
    let mut argument = WriteRead { write_size: 4, write_buffer: 8, ..WriteRead::default() };
    let unreadable = device.write_read_from(&mut argument, &mut []);
    expect_errno("commands at an unreadable address", &unreadable, "EFAULT")?;
    expect("bytes consumed of them", argument.write_consumed, 0)
}

/// A call to an unknown handle, then a harmless command.
fn refused_then_more() -> Commands {
    Commands::of(|c| {
        c.transaction(Handle(4000), 1, TransactionFlags::CALL, Payload::default());
        c.enter_looper();
    })
}

fn wr_12_a_refused_transaction_stops_the_write(kit: &Kit) -> Verdict {
    let client = kit.open()?;
    expect("bytes taken", client.write_some(&refused_then_more())?, 68)?;
    expect_work("what the caller reads", &client.read()?, "FAILED_REPLY")
}

fn wr_13_an_unread_error_blocks_writes(kit: &Kit) -> Verdict {
    let client = kit.open()?;
    client.write_some(&refused_then_more())?;
    let more = Commands::of(Commands::enter_looper);
    for _ in 0..2 {
        expect("bytes taken while an error is unread", client.write_some(&more)?, 0)?;
    }
    client.expect_read("the error", "FAILED_REPLY")?;
    expect("bytes taken afterwards", client.write_some(&more)?, 4)
}

fn wr_14_a_write_may_reach_beyond_its_size(kit: &Kit) -> Verdict {
    let Pair { server, client, handle, .. } = kit.pair()?;
    let Some(device) = client.conn.device() else {
        let call = [&bc::TRANSACTION.to_ne_bytes()[..], &[0; 64]].concat();
        for cut in [2, 4, call.len() - 1] {
            let (result, taken) = client.write_refused(&call[..cut]);
            expect(&format!("{cut} bytes of a command"), (errno(&result).as_str(), taken), ("EFAULT", 0))?;
        }
        return kit.differs("a command must lie inside as a whole, as in the Rust driver for its payload");
    };
    let write = |bytes: &[u8], write_size| {
        let address = bytes.as_ptr() as u64;
        let mut argument = WriteRead { write_size, write_buffer: address, ..WriteRead::default() };
        let result: io::Result<()> = device.write_read_from(&mut argument, &mut []);
        (errno(&result), argument.write_consumed)
    };
    let want = |c: (&str, u64), rust: (&str, u64)| {
        let (errno, consumed) = kit.by_driver(c, rust);
        (errno.to_owned(), consumed)
    };
    let enter = write(&bc::ENTER_LOOPER.to_ne_bytes(), 2);
    expect("a command cut inside its word", enter, want(("OK", 4), ("OK", 0)))?;
    let call =
        TransactionData { target: handle.0.into(), flags: TransactionFlags::ONEWAY.0, ..Default::default() };
    let bytes = [bc::TRANSACTION.as_bytes(), call.as_bytes()].concat();
    expect("a command cut behind its word", write(&bytes, 4), want(("OK", 68), ("EFAULT", 0)))?;
    if kit.is_rust() {
        return Ok(());
    }
    expect_work("the cut call", &server.read()?, "TRANSACTION")
}

fn wr_15_completion_of_a_call_is_deferred(kit: &Kit) -> Verdict {
    let Pair { server, client, handle, .. } = kit.pair()?;
    client.start_call(handle, 1, b"")?;
    let readable = |what| done(what, client.conn.poll_readable(0));
    expect("poll while only the completion waits", readable("polling")?, false)?;
    client.expect_silence("reading while only the completion waits")?;
    server.echo()?;
    ensure(readable("polling")?, || "expected poll to report the reply".into())?;
    let mut bytes = 0;
    let mut all = Got::default();
    while all.reply().is_err() {
        let got = client.read()?;
        // NOOP and COMPLETE are 4 bytes, a REPLY is 68.
        bytes += got.returns.len() * 4 + if got.reply().is_ok() { 64 } else { 0 };
        all.returns.extend(got.returns);
    }
    expect_work("the answer, in one read or two", &all, "COMPLETE REPLY")?;
    ensure(bytes == 76 || bytes == 80, || format!("expected 76 bytes in one read or 80 in two, got {bytes}"))
}

fn wr_16_a_call_that_cannot_be_stored_fails(kit: &Kit) -> Verdict {
    kit.device()?;
    let Pair { server, client, handle, .. } = kit.pair()?;
    let device = server.device()?;
    // Room for the NOOP; then for the word of the call, but not for the rest.
    for writable in [4, 8] {
        client.start_call(handle, 1, b"")?;
        let what = format!("reading a call into a buffer that ends after {writable} bytes");
        expect_errno(&what, &device.read_at_end(writable), "EFAULT")?;
        client.expect_ending("its caller", "COMPLETE FAILED_REPLY")?;
        if kit.can_freeze().is_ok() {
            let info = done("GET_FROZEN_INFO", client.conn.frozen_info(std::process::id()))?;
            expect(&format!("whether a call is pending, after {what}"), info.sync_recv & 2, 0)?;
        }
    }
    client.round_trip("a call after that", handle, &server)
}
