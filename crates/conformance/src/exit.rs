//! Contract section 16: exits of threads, files and processes (EXT).
//! Facts: `ns_last_pid` in `Documentation/admin-guide/sysctl/kernel.rst`: the next ID is the first free one above it.
//! Not here: the returns that peers of a pending call read (`sync::death`).

mod killed;

use std::fs;
use std::os::fd::{AsFd, OwnedFd};
use std::time::Instant;

use sys::binder_fd::BinderFd;
use sys::interrupt::ThreadId;
use sys::receive_map::ReceiveMap;

use crate::prelude::*;
use crate::write_read::sleeping_read;

items! {
    "EXT-01" Both [seen] ext_01_thread_exit_ends_what_it_serves "THREAD_EXIT fails the calls that the thread has, and tells no callee";
    "EXT-02" Both [seen] ext_02_a_silent_end_is_not_noticed "a thread that ends without THREAD_EXIT is not noticed";
    "EXT-03" Both [] ext_03_a_recycled_number_is_the_same_thread "a thread with a reused number inherits the former thread's state";
    "EXT-04" Both [] ext_04_release_comes_after_the_close "a process is released some time after its last close";
    "EXT-05" Both [free seen] ext_05_the_order_of_a_release "a release frees the manager's slot, ends calls, then reports dead nodes";
    "EXT-06" Both [free seen differs] ext_06_copies_and_the_mapping_keep_it_open "copies of the descriptor and the mapping keep a process" or clones_keep_it_open;
    "EXT-07" C [seen] ext_07_closing_a_copy_wakes_readers "closing a copy of the descriptor ends blocking reads early";
    "EXT-08" Both [] ext_08_a_killed_sender_leaves_whole_calls in killed "a process killed at any instant leaves whole transactions or none";
}

fn ext_01_thread_exit_ends_what_it_serves(kit: &Kit) -> Verdict {
    let Pair { server, client, handle, .. } = kit.pair()?;
    client.start_call(handle, 1, b"")?;
    server.read()?.call()?;
    server.thread_exit()?;
    client.expect_ending("the caller of a thread that exits", "COMPLETE DEAD_REPLY")?;
    // The middle calls the server, which calls back; that call waits on the middle's own thread.
    let (middle, node) = (kit.server()?, Node::number(2));
    let to_middle = kit.hand_over(&middle, &server, node)?;
    let to_server = kit.hand_over(&server, &middle, Node::number(3))?;
    server.enter_looper()?;
    middle.start_call(to_server, 2, b"")?;
    let outer = server.read()?.call()?;
    server.start_call(to_middle, 3, b"")?;
    server.expect_silence("of the nested call, before the thread exits")?;
    middle.thread_exit()?;
    server.expect_ending("a call that the exiting thread had not read", "COMPLETE DEAD_REPLY")?;
    server.expect_silence("of the caller's exit")?;
    server.finish_call()?;
    server.free(&outer)?;
    middle.enter_looper()?;
    middle.expect_silence("the new thread of the same number")?;
    server.round_trip("a call of the process afterwards", to_middle, &middle)
}

fn ext_02_a_silent_end_is_not_noticed(kit: &Kit) -> Verdict {
    let Pair { server, client, handle, .. } = kit.pair()?;
    let (other, second) = kit.client_of(&server, Node::number(2))?;
    client.start_call(handle, 1, b"")?;
    let process = server.clone();
    on_new_thread(move || {
        process.version()?;
        process.read_as_looper()?.call()
    })??;
    client.expect_silence("the caller of a thread that ended silently")?;
    other.round_trip("a call that another thread serves", second, &server)?;
    client.expect_silence("the first caller, still")?;
    drop(server);
    expect_work("the first caller, once the process is released", &client.ending()?, "COMPLETE DEAD_REPLY")
}

/// Runs `job` on a new thread with a small stack, and waits for it.
fn on_new_thread<T: Send + 'static>(job: impl FnOnce() -> T + Send + 'static) -> Result<T, Stop> {
    let builder = std::thread::Builder::new().name("test thread".to_owned()).stack_size(128 << 10);
    let thread = done("starting a thread", builder.spawn(job))?;
    thread.join().map_err(|_| Stop::Fail("a thread of the test panicked".into()))
}

/// Reads on a new thread with this ID; another process may take the ID first.
fn read_as(number: i32, process: &RawProcess) -> Result<Got, Stop> {
    const LAST: &str = "/proc/sys/kernel/ns_last_pid";
    let start = Instant::now();
    while !sys::patience::is_over(start, PATIENCE) {
        fs::write(LAST, (number - 1).to_string()).map_err(|error| {
            let why = sys::errno::describe(&error);
            Stop::Skip(format!("needs to choose a thread's number, and {LAST} cannot be written: {why}"))
        })?;
        let process = process.clone();
        let got = on_new_thread(move || (ThreadId::current().number() == number).then(|| process.read()))?;
        if let Some(got) = got {
            return got;
        }
    }
    Err(Stop::Skip(format!("no thread got the number {number} within {PATIENCE:?}")))
}

fn ext_03_a_recycled_number_is_the_same_thread(kit: &Kit) -> Verdict {
    let Pair { server, client, handle, .. } = kit.pair()?;
    let process = client.clone();
    let number = on_new_thread(move || {
        process.version()?;
        process.start_call(handle, 1, b"")?;
        Ok::<_, Stop>(ThreadId::current().number())
    })??;
    expect("the code of a call whose thread ended", server.echo()?.code, 1)?;
    client.expect_silence("another thread of the caller")?;
    let mut got = read_as(number, &client)?;
    if got.reply().is_err() {
        got.returns.extend(read_as(number, &client)?.returns);
    }
    expect_work("a new thread of that number", &got, "COMPLETE REPLY")
}

fn ext_04_release_comes_after_the_close(kit: &Kit) -> Verdict {
    let (owner, node) = (kit.server()?, Node::number(1));
    // It closes, and from there on the driver finishes by itself.
    kit.watch(&owner, node)?.outlive(owner)
}

/// The owner of two watched nodes, with a queued oneway call and a call being served, closes.
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
    client.oneway(handle, 2, b"")?;
    drop(server);
    let mut deaths = Vec::new();
    while deaths.len() < 2 {
        deaths.extend(watcher.read()?.returns.into_iter().filter(|item| *item != Return::Noop));
    }
    let want = [low, high].map(|node| Return::DeadBinder(Cookie(node.cookie)));
    expect("deaths in the order of the nodes' ptr", deaths, want.to_vec())?;
    caller.expect_ending("a caller that also watches", "COMPLETE DEAD_REPLY")?;
    caller.expect_read("what it reads next", "DEAD_BINDER")?;
    client.expect_silence("the sender of the oneway call")
}

fn ext_05_the_order_of_a_release(kit: &Kit) -> Verdict {
    let manager = kit.manager("1")?;
    closing_owner(kit)?;
    drop(manager);
    // When the death of the manager's node is reported, the context is already free.
    let (manager, client) = (kit.server()?, kit.server()?);
    kit.become_manager(&manager, None)?;
    client.write(|c| {
        c.acquire(Handle::CONTEXT_MANAGER);
        c.request_death(Handle::CONTEXT_MANAGER, Cookie(1));
    })?;
    drop(manager);
    client.expect_read("the manager's death", "DEAD_BINDER")?;
    expect_errno("becoming its successor at once", &kit.open()?.conn.become_context_manager(None), "OK")
}

/// Fails if the context can be managed within [`SILENCE`].
fn expect_taken(kit: &Kit, what: &str) -> Verdict {
    let (process, start) = (kit.open()?, Instant::now());
    while start.elapsed() < SILENCE {
        expect_errno(what, &process.conn.become_context_manager(None), "EBUSY")?;
    }
    Ok(())
}

/// Without a descriptor to duplicate, the connection object is shared.
fn clones_keep_it_open(kit: &Kit) -> Verdict {
    let process = kit.open()?;
    kit.become_manager(&process, None)?;
    let copy = process.clone();
    drop(process);
    expect_taken(kit, "becoming manager while a closed one is used elsewhere in its process")?;
    drop(copy);
    kit.become_manager(&kit.open()?, None)?;
    kit.differs("what a process shares within itself keeps it open; there is nothing else to copy")
}

fn ext_06_copies_and_the_mapping_keep_it_open(kit: &Kit) -> Verdict {
    let device = kit.device()?;
    let open = || -> Result<BinderFd, Stop> {
        let fd = done("opening the device", BinderFd::open(device, true))?;
        done("becoming the context manager", patiently(|| fd.request(ioctl::SET_CONTEXT_MGR, 0_i32)))?;
        Ok(fd)
    };
    let fd = open()?;
    let map = done("mapping the device", ReceiveMap::new(fd.as_fd(), default_map_size()))?;
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
    let (process, worker) = (kit.open()?, Worker::new()?);
    let task = sleeping_read(&worker, &process, ROOM)?;
    let Some(device) = process.conn.device() else {
        // Without a descriptor to duplicate, sharing the connection must have the same effect.
        let (mut task, start) = (task, Instant::now());
        while !task.has_ended() && !sys::patience::is_over(start, PATIENCE) {
            done("waking the readers", process.conn.wake_readers())?;
        }
        return task.wait("a blocking read").map(drop);
    };
    let busy = Worker::new()?;
    process.on(&busy, RawProcess::version)?;
    drop(done("duplicating the device", device.as_fd().try_clone_to_owned())?);
    let (result, _, got) = task.wait("a blocking read")?;
    let found = (result.as_str(), &*got?.shape());
    expect("a blocking read when a copy is closed", found, ("OK", "NOOP"))?;
    if kit.is_rust() {
        return Ok(());
    }
    done("switching to blocking", process.conn.set_nonblocking(false))?;
    let next = process.start_on(&busy, |process| process.read_room(ROOM))?;
    let next = next.wait("the next read of a thread that did not read then")??;
    expect("what it gave", next.map(|got| got.shape()).as_deref(), Some("NOOP"))
}
