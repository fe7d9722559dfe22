//! Room: contract section 16: threads that exit, files that close, processes that end (EXT).
//! Not here: what the peers of a call in progress read (`sync::death`).

use std::os::fd::{AsFd, OwnedFd};
use std::time::Instant;

use abi::{Cookie, Handle, Return};
use driver::connection::DEFAULT_MAP_SIZE;
use sys::binder_fd::BinderFd;
use sys::receive_map::ReceiveMap;

use super::item::{Stop, Verdict, done, expect, expect_errno, items};
use super::kit::{Kit, Pair, patiently};
use super::party::{Node, PATIENCE, Party, ROOM, SILENCE, expect_work};
use super::worker::Worker;
use super::write_read::sleeping_read;

pub(super) mod killed;
mod recycled;

use killed::ext_08_a_killed_sender_leaves_whole_calls;
use recycled::ext_03_a_recycled_number_is_the_same_thread;

items! {
    "EXT-01" Both [seen] ext_01_thread_exit_ends_what_it_serves "THREAD_EXIT fails the calls that the thread has, and tells nobody it called";
    "EXT-02" Both [seen] ext_02_a_silent_end_is_not_noticed "a thread that ends without THREAD_EXIT is not noticed";
    "EXT-03" Both [] ext_03_a_recycled_number_is_the_same_thread "a thread with a recycled number inherits the old one's state";
    "EXT-04" Both [] ext_04_release_comes_after_the_close "a process is released some time after its last close";
    "EXT-05" Both [free seen] ext_05_the_order_of_a_release "a release frees the manager's place, ends calls, then tells of dead nodes";
    "EXT-06" Both [free seen differs] ext_06_copies_and_the_mapping_keep_it_open "copies of the descriptor and the mapping keep a process";
    "EXT-07" C [seen] ext_07_closing_a_copy_wakes_readers "closing a copy of the descriptor ends blocking reads early";
    "EXT-08" Both [] ext_08_a_killed_sender_leaves_whole_calls "a process killed at any instant leaves whole transactions or none";
}

fn exit_thread(party: &Party) -> Verdict {
    done("THREAD_EXIT", party.conn.thread_exit())
}

fn ext_01_thread_exit_ends_what_it_serves(kit: &Kit) -> Verdict {
    let Pair { server, client, handle, .. } = kit.pair()?;
    client.start_call(handle, 1, b"")?;
    server.read()?.call()?;
    exit_thread(&server)?;
    expect_work("the caller of a thread that exits", &client.ending()?, "COMPLETE DEAD_REPLY")?;
    // The middle calls the server, which calls back: that call waits in the middle's own thread.
    let (middle, node) = (kit.server()?, Node::number(2));
    let to_middle = kit.hand_over(&middle, &server, node)?;
    let to_server = kit.hand_over(&server, &middle, Node::number(3))?;
    server.enter_looper()?;
    middle.start_call(to_server, 2, b"")?;
    let outer = server.read()?.call()?;
    server.start_call(to_middle, 3, b"")?;
    server.expect_silence("of the nested call, before the thread exits")?;
    exit_thread(&middle)?;
    expect_work("a call that the exiting thread had not read", &server.ending()?, "COMPLETE DEAD_REPLY")?;
    server.expect_silence("of the caller's exit")?;
    expect_work("answering the call of the thread that exited", &server.answer(b"")?, "COMPLETE")?;
    server.free(&outer)?;
    middle.enter_looper()?;
    middle.expect_silence("the new thread of the same number")?;
    server.start_call(to_middle, 4, b"")?;
    middle.echo()?;
    expect_work("a call of the process afterwards", &server.ending()?, "COMPLETE REPLY")
}

fn ext_02_a_silent_end_is_not_noticed(kit: &Kit) -> Verdict {
    let Pair { server, client, handle, .. } = kit.pair()?;
    let other = kit.open()?;
    let second = kit.hand_over(&server, &other, Node::number(2))?;
    client.start_call(handle, 1, b"")?;
    let party = server.clone();
    let thread = std::thread::spawn(move || {
        done("BINDER_VERSION", party.conn.version())?;
        party.enter_looper()?;
        party.read()?.call().map(drop)
    });
    thread.join().map_err(|_| Stop::Fail("a thread of the test panicked".into()))??;
    client.expect_silence("the caller of a thread that ended silently")?;
    other.start_call(second, 2, b"")?;
    server.acknowledge_call()?;
    expect_work("a call that another thread serves", &other.ending()?, "COMPLETE REPLY")?;
    client.expect_silence("the first caller, still")?;
    drop(server);
    expect_work("the first caller, once the process is released", &client.ending()?, "COMPLETE DEAD_REPLY")
}

fn ext_04_release_comes_after_the_close(kit: &Kit) -> Verdict {
    let (owner, node) = (kit.server()?, Node::number(1));
    let watch = kit.watch(&owner, node)?;
    drop(owner);
    // Nobody does anything any more, and the driver finishes by itself.
    watch.wait_for_death()
}

/// Two watched nodes, a queued oneway call and a call being served, when their owner closes.
fn closing_owner(kit: &Kit) -> Verdict {
    let (low, high) = (Node::number(2), Node::number(9));
    let Pair { server, client, handle, .. } = kit.pair()?;
    let (caller, watcher) = (kit.server()?, kit.server()?);
    let called = kit.hand_over(&server, &caller, high)?;
    caller.write(|c| c.request_death(called, Cookie(high.cookie)))?;
    for node in [high, low] {
        let handle = kit.hand_over(&server, &watcher, node)?;
        watcher.write(|c| c.request_death(handle, Cookie(node.cookie)))?;
    }
    caller.start_call(called, 1, b"")?;
    server.read()?.call()?;
    client.send_oneway(handle, 2, b"")?;
    expect_work("a oneway call that nobody reads", &client.read()?, "COMPLETE")?;
    drop(server);
    let mut deaths = Vec::new();
    while deaths.len() < 2 {
        deaths.extend(watcher.read()?.returns.into_iter().filter(|item| *item != Return::Noop));
    }
    let want = [low, high].map(|node| Return::DeadBinder(Cookie(node.cookie)));
    expect("deaths in the order of the nodes' ptr", deaths, want.to_vec())?;
    let ending = caller.ending()?;
    expect_work("a caller that also watches", &ending, "COMPLETE DEAD_REPLY")?;
    expect_work("what it reads next", &caller.read()?, "DEAD_BINDER")?;
    client.expect_silence("the sender of the oneway call")
}

fn ext_05_the_order_of_a_release(kit: &Kit) -> Verdict {
    let lobby = kit.serving_helper(kit.helper("manager", &["1"]))?;
    closing_owner(kit)?;
    drop(lobby);
    // A death of the manager's node is told when its place is free already.
    let (manager, client) = (kit.server()?, kit.server()?);
    kit.become_manager(&manager, None)?;
    client.write(|c| {
        c.acquire(Handle::CONTEXT_MANAGER);
        c.request_death(Handle::CONTEXT_MANAGER, Cookie(1));
    })?;
    drop(manager);
    expect_work("the manager's death", &client.read()?, "DEAD_BINDER")?;
    expect_errno("becoming its successor at once", &kit.open()?.conn.become_context_manager(None), "OK")
}

/// Fails if the context can be managed within [`SILENCE`].
fn expect_taken(kit: &Kit, what: &str) -> Verdict {
    let (party, start) = (kit.open()?, Instant::now());
    while start.elapsed() < SILENCE {
        expect_errno(what, &party.conn.become_context_manager(None), "EBUSY")?;
    }
    Ok(())
}

/// Where there is no descriptor to copy, what stands for it can be shared.
fn clones_keep_it_open(kit: &Kit) -> Verdict {
    let party = kit.open()?;
    done("becoming the context manager", patiently(|| party.conn.become_context_manager(None)))?;
    let copy = party.clone();
    drop(party);
    expect_taken(kit, "becoming manager while a closed one is used elsewhere in its process")?;
    drop(copy);
    let next = kit.open()?;
    done("becoming its successor", patiently(|| next.conn.become_context_manager(None)))?;
    kit.differs("what a process shares within itself keeps it open; there is nothing else to copy")
}

fn ext_06_copies_and_the_mapping_keep_it_open(kit: &Kit) -> Verdict {
    if kit.is_embedded() {
        return clones_keep_it_open(kit);
    }
    let device = kit.device()?;
    let open = || -> Result<BinderFd, Stop> {
        let fd = done("opening the device", BinderFd::open(device, true))?;
        done("becoming the context manager", patiently(|| fd.set_context_manager()))?;
        Ok(fd)
    };
    let fd = open()?;
    let map = done("mapping the device", ReceiveMap::new(fd.as_fd(), DEFAULT_MAP_SIZE))?;
    drop(fd);
    expect_taken(kit, "becoming manager while a closed one is mapped")?;
    drop(map);
    let fd = open()?;
    let copy: OwnedFd = done("duplicating the device", fd.as_fd().try_clone_to_owned())?;
    drop(fd);
    expect_taken(kit, "becoming manager while a copy of a closed one's descriptor is open")?;
    drop(copy);
    open().map(drop)
}

fn ext_07_closing_a_copy_wakes_readers(kit: &Kit) -> Verdict {
    let (party, worker) = (kit.open()?, Worker::new()?);
    let task = sleeping_read(&worker, &party, ROOM)?;
    let Some(device) = party.conn.device() else {
        // No descriptor to copy: what stands for it must do the same.
        let (mut task, start) = (task, Instant::now());
        while !task.has_ended() && start.elapsed() < PATIENCE {
            done("waking the readers", party.conn.wake_readers())?;
        }
        return task.wait("a blocking read").map(drop);
    };
    let (busy, idle) = (Worker::new()?, party.clone());
    done("BINDER_VERSION", busy.run(move || idle.conn.version())?)?;
    drop(done("duplicating the device", device.as_fd().try_clone_to_owned())?);
    let (result, _, got) = task.wait("a blocking read")?;
    expect(
        "a blocking read when a copy is closed",
        (result.as_str(), got?.shape().as_str()),
        ("OK", "NOOP"),
    )?;
    if kit.is_rust() {
        return Ok(());
    }
    done("switching to blocking", party.conn.set_nonblocking(false))?;
    let reader = party.clone();
    let next = busy
        .start(move || reader.read_room(ROOM))?
        .wait("the next read of a thread that did not read then")??;
    expect("what it gave", next.map(|got| got.shape()).as_deref(), Some("NOOP"))
}
