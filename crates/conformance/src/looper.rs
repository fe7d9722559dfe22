//! Contract section 4: loopers and the thread pool (LP).

use std::fs;

use crate::prelude::*;
use crate::test_manager;

items! {
    "LP-01" Both [seen] lp_01_spawn_replaces_the_noop "SPAWN_LOOPER takes the place of NOOP";
    "LP-02" Both [seen] lp_02_when_a_thread_is_asked_for "a thread is requested when none waits and the limit permits";
    "LP-03" Both [] lp_03_one_request_at_a_time "there is one request at a time, until REGISTER_LOOPER";
    "LP-04" Both [] lp_04_the_count_of_threads_never_falls "the limit counts threads ever registered on request";
    "LP-05" Both [] lp_05_wrong_joining_still_works "entering the pool the wrong way is only recorded";
    "LP-06" Both [] lp_06_exit_looper_changes_little "a thread that left the pool still gets work if it reads";
    "LP-07" C [seen] lp_07_any_reader_is_served "a thread that never joined still gets the process's work";
    "LP-08" Both [seen] lp_08_the_last_idle_thread_is_first "work goes to the thread that became idle last, else in order";
    "LP-09" Both [] lp_09_a_busy_thread_takes_no_other_work "a thread inside a transaction takes none of its process's work";
}

/// The server receives one oneway call; returns the shape of that read.
fn shape_of_a_read(pair: &Pair) -> Result<String, Stop> {
    pair.client.oneway(pair.handle, 1, b"")?;
    let got = pair.server.read()?;
    pair.server.free(&got.call()?)?;
    Ok(got.shape())
}

const PLAIN: &str = "NOOP TRANSACTION";
const SPAWN: &str = "SPAWN_LOOPER TRANSACTION";

/// Writes on a worker thread.
fn write_on(worker: &Worker, process: &RawProcess, fill: fn(&mut Commands)) -> Verdict {
    process.on(worker, move |process| process.write(fill))
}

fn lp_01_spawn_replaces_the_noop(kit: &Kit) -> Verdict {
    let pair = kit.pair()?;
    pair.server.set_max_threads(1)?;
    expect("a read with nothing to return", pair.server.read_room(ROOM)?.map(|got| got.shape()), None)?;
    expect("a read that asks for a thread", shape_of_a_read(&pair)?.as_str(), SPAWN)
}

fn lp_02_when_a_thread_is_asked_for(kit: &Kit) -> Verdict {
    let pair = kit.pair()?;
    expect("with a limit of 0", shape_of_a_read(&pair)?.as_str(), PLAIN)?;
    if !kit.is_rust() {
        let outsider = kit.pair_of(kit.open()?, kit.open()?, Node::number(2))?;
        outsider.server.set_max_threads(1)?;
        expect("a thread that is not a looper", shape_of_a_read(&outsider)?.as_str(), PLAIN)?;
    }
    pair.server.set_max_threads(1)?;
    let (server, worker) = (&pair.server, Worker::new()?);
    let mut idle = waiting(&worker, server)?;
    // Its own reply reaches this thread, whichever threads wait.
    let got = own_reply(server)?;
    expect("while another thread waits", got.shape().as_str(), "NOOP COMPLETE REPLY")?;
    ensure(!idle.has_ended(), || "the waiting thread was woken by another's reply".into())?;
    pair.client.send_oneway(pair.handle, 1, b"")?;
    let got = idle.wait("the waiting thread")??;
    expect("the waiting thread, after which none waits", got.shape().as_str(), SPAWN)?;
    server.free(&got.call()?)?;
    let alone = kit.server()?;
    alone.set_max_threads(1)?;
    let got = own_reply(&alone)?;
    expect("a reply while no thread waits", got.shape().as_str(), "SPAWN_LOOPER COMPLETE REPLY")
}

/// Calls the manager; returns the read, or joined reads, with completion and reply.
fn own_reply(process: &RawProcess) -> Result<Got, Stop> {
    process.start_call(Handle::CONTEXT_MANAGER, test_manager::TAG, b"")?;
    let mut got = process.read()?;
    while got.reply().is_err() {
        got.returns.extend(process.read()?.returns.into_iter().skip(1));
    }
    process.free(&got.reply()?)?;
    Ok(got)
}

/// A looper of the process that waits for work on another thread.
pub(super) fn waiting(worker: &Worker, process: &RawProcess) -> Result<Task<Result<Got, Stop>>, Stop> {
    write_on(worker, process, Commands::enter_looper)?;
    done("switching to blocking", process.conn.set_nonblocking(false))?;
    let mut task = process.start_on(worker, RawProcess::read)?;
    let asleep = task.expect_asleep("a looper with nothing to do");
    done("switching to non-blocking", process.conn.set_nonblocking(true))?;
    asleep.map(|()| task)
}

fn lp_03_one_request_at_a_time(kit: &Kit) -> Verdict {
    let pair = kit.pair()?;
    pair.server.set_max_threads(3)?;
    expect("the first read", shape_of_a_read(&pair)?.as_str(), SPAWN)?;
    for _ in 0..3 {
        expect("a read while a request is outstanding", shape_of_a_read(&pair)?.as_str(), PLAIN)?;
    }
    write_on(&Worker::new()?, &pair.server, Commands::register_looper)?;
    expect("a read once the request was honoured", shape_of_a_read(&pair)?.as_str(), SPAWN)
}

fn lp_04_the_count_of_threads_never_falls(kit: &Kit) -> Verdict {
    let pair = kit.pair()?;
    for _ in 0..3 {
        write_on(&Worker::new()?, &pair.server, Commands::enter_looper)?;
    }
    pair.server.set_max_threads(1)?;
    expect("a read although three threads joined unasked", shape_of_a_read(&pair)?.as_str(), SPAWN)?;
    let worker = Worker::new()?;
    write_on(&worker, &pair.server, Commands::register_looper)?;
    expect("a read at the limit", shape_of_a_read(&pair)?.as_str(), PLAIN)?;
    write_on(&worker, &pair.server, Commands::exit_looper)?;
    expect("a read once that thread left the pool", shape_of_a_read(&pair)?.as_str(), PLAIN)?;
    pair.server.on(&worker, RawProcess::thread_exit)?;
    expect("a read once that thread is gone", shape_of_a_read(&pair)?.as_str(), PLAIN)?;
    pair.server.set_max_threads(2)?;
    expect("a read once the limit is higher", shape_of_a_read(&pair)?.as_str(), SPAWN)
}

/// The looper bits of a thread in the C driver's state file, if readable.
fn looper_bits(worker: &Worker) -> Option<u32> {
    let state = fs::read_to_string("/sys/kernel/debug/binder/state").ok()?;
    let line = format!("thread {}: l ", worker.thread.number());
    let bits = state.split_once(&line)?.1.split_whitespace().next()?;
    u32::from_str_radix(bits, 16).ok()
}

fn lp_05_wrong_joining_still_works(kit: &Kit) -> Verdict {
    const INVALID: u32 = 8;
    type Steps = &'static [fn(&mut Commands)];
    let cases: [(&str, Steps, bool, bool); 5] = [
        ("ENTER", &[Commands::enter_looper], false, false),
        ("REGISTER unasked", &[Commands::register_looper], false, true),
        ("REGISTER when asked", &[Commands::register_looper], true, false),
        ("REGISTER after ENTER", &[Commands::enter_looper, Commands::register_looper], false, true),
        ("ENTER after REGISTER", &[Commands::register_looper, Commands::enter_looper], true, true),
    ];
    for (what, steps, asked, invalid) in cases {
        let pair = kit.pair()?;
        if asked {
            pair.server.set_max_threads(1)?;
            expect(what, shape_of_a_read(&pair)?.as_str(), SPAWN)?;
        }
        let worker = Worker::new()?;
        for step in steps {
            write_on(&worker, &pair.server, *step)?;
        }
        pair.client.send_oneway(pair.handle, 5, b"")?;
        let got = pair.server.on(&worker, RawProcess::read)?;
        expect(what, got.call()?.code, 5)?;
        if let (Some(bits), false) = (looper_bits(&worker), kit.is_rust()) {
            expect(&format!("{what}: bit 8 of the looper bits {bits:#x}"), bits & INVALID != 0, invalid)?;
        }
    }
    Ok(())
}

fn lp_06_exit_looper_changes_little(kit: &Kit) -> Verdict {
    let pair = kit.pair()?;
    pair.server.write(Commands::exit_looper)?;
    expect("a read after EXIT_LOOPER", shape_of_a_read(&pair)?.as_str(), PLAIN)
}

fn lp_07_any_reader_is_served(kit: &Kit) -> Verdict {
    let pair = kit.pair_of(kit.open()?, kit.open()?, Node::number(1))?;
    if kit.is_rust() {
        pair.client.send_oneway(pair.handle, 1, b"")?;
        pair.server.expect_silence("reading on a thread that never joined")?;
        pair.server.enter_looper()?;
        return expect_work("reading once it joined", &pair.server.read()?, "TRANSACTION");
    }
    expect("a read of a thread that never joined", shape_of_a_read(&pair)?.as_str(), PLAIN)
}

fn lp_08_the_last_idle_thread_is_first(kit: &Kit) -> Verdict {
    let Pair { server, client, handle, .. } = kit.pair()?;
    let others = [2, 3].map(|n| (n, Node::number(u64::from(n))));
    let mut handles = vec![(1, handle)];
    for (code, node) in others {
        handles.push((code, kit.hand_over(&server, &client, node)?));
    }
    let (first, last) = (Worker::new()?, Worker::new()?);
    let (mut early, late) = (waiting(&first, &server)?, waiting(&last, &server)?);
    client.send_oneway(handle, 10, b"")?;
    let call = late.wait("the thread that became idle last")??.call()?;
    expect("the call it got", call.code, 10)?;
    ensure(!early.has_ended(), || "the thread that was idle longer was woken too".into())?;
    server.free(&call)?;
    client.send_oneway(handle, 11, b"")?;
    let call = early.wait("the thread that was idle longer")??.call()?;
    expect("the call it got", call.code, 11)?;
    server.free(&call)?;
    for (code, handle) in &handles {
        client.send_oneway(*handle, *code, b"")?;
    }
    for (code, _) in handles {
        expect("the order of calls that found no idle thread", server.read()?.call()?.code, code)?;
    }
    // The first round trip makes the acquaintance, after which the embedded driver calls directly.
    let pair = kit.pair()?;
    pair.client.round_trip("a call", pair.handle, &pair.server)?;
    pair.client.start_call(pair.handle, 1, b"")?;
    pair.client.send_oneway(pair.handle, 2, b"")?;
    let call = pair.server.read()?.call()?;
    expect("what comes first of a call and a oneway call behind it", call.code, 1)?;
    pair.server.finish_call()?;
    expect("what comes behind the call", pair.server.read()?.call()?.code, 2)?;
    // A call between two oneway calls of another thread, which go to two nodes: those to one node are delivered one at a time.
    let Pair { server, client, handle, .. } = kit.pair()?;
    let other = kit.hand_over(&server, &client, Node::number(2))?;
    client.round_trip("a call", handle, &server)?;
    client.send_oneway(handle, 1, b"")?;
    client.on(&Worker::new()?, move |client| client.start_call(handle, 2, b""))?;
    client.send_oneway(other, 3, b"")?;
    for (code, what) in [(1, "the oneway call"), (2, "the other thread's call behind it")] {
        expect(what, server.read()?.call()?.code, code)?;
    }
    server.finish_call()?;
    expect("the oneway call behind that", server.read()?.call()?.code, 3)
}

fn lp_09_a_busy_thread_takes_no_other_work(kit: &Kit) -> Verdict {
    let Pair { server, client, handle, node } = kit.pair()?;
    let mortal = kit.server()?;
    let watch = kit.watch(&mortal, Node::number(7))?;
    let lent = kit.hand_over(&mortal, &server, Node::number(8))?;
    let partner = kit.server()?;
    let other = kit.hand_over(&partner, &server, Node::number(9))?;
    server.write(|c| c.request_death(lent, Cookie(8)))?;
    client.start_call(handle, 1, b"")?;
    let call = server.read()?.call()?;
    expect("the node called", call.node, node.names().0)?;
    // While serving, and in a call made meanwhile, the transaction stack is not empty.
    watch.outlive(mortal)?;
    server.expect_silence("a thread that serves, while a death waits")?;
    server.start_call(other, 2, b"")?;
    server.expect_silence("a thread that calls, while a death waits")?;
    partner.echo()?;
    server.expect_ending("its call", "COMPLETE REPLY")?;
    server.expect_silence("back in serving")?;
    server.reply(Payload::default())?;
    let got = server.read_on(server.read()?, |got| got.work().contains("DEAD_BINDER"))?;
    expect_work("once it serves no more", &got, "COMPLETE DEAD_BINDER")
}
