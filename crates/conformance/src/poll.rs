//! Contract section 15: when a connection is readable (POL).

use std::os::fd::AsFd;

use sys::epoll::Epoll;

use crate::prelude::*;

items! {
    "POL-01" Both [] pol_01_when_a_thread_is_readable "a thread is readable while there is work that it would be given";
    "POL-02" C [seen] pol_02_a_first_poll_is_readable "a thread that polls before any other call is told to read";
    "POL-03" Both [] pol_03_all_who_poll_are_told "every free thread that polls is told of a call, one gets it";
    "POL-04" Both [] pol_04_readiness_belongs_to_a_thread "work for one thread makes no other one readable";
    "POL-05" C [] pol_05_own_work_is_told "a thread that polls is told of its own acknowledgements and errors";
    "POL-06" Both [] pol_06_a_watched_thread_may_exit "a thread may exit while an epoll watches it";
}

/// Fails unless the calling thread's readiness is as given.
fn expect_readable(what: &str, process: &RawProcess, want: bool) -> Verdict {
    let readable = done("polling", process.conn.poll_readable(0))?;
    expect(&format!("whether a thread is readable {what}"), readable, want)
}

fn pol_01_when_a_thread_is_readable(kit: &Kit) -> Verdict {
    let Pair { server, client, handle, .. } = kit.pair()?;
    let other = kit.hand_over(&server, &client, Node::number(2))?;
    expect_readable("with nothing to do", &client, false)?;
    client.start_call(handle, 1, b"")?;
    expect_readable("with only the completion of a call", &client, false)?;
    expect_readable("with a call for its process", &server, true)?;
    server.expect_read("reading then", "TRANSACTION")?;
    expect_readable("while it serves", &server, false)?;
    client.send_oneway(other, 2, b"")?;
    expect_readable("with the completion of a oneway call", &client, true)?;
    client.expect_read("reading then", "COMPLETE COMPLETE")?;
    expect_readable("while it serves and its process has work", &server, false)?;
    server.reply(Payload::default())?;
    expect_readable("with the completion of its reply", &server, true)?;
    expect_readable("with a reply", &client, true)?;
    client.expect_read("reading then", "REPLY")?;
    expect_readable("with nothing left", &client, false)?;
    let mut got = server.read()?;
    if got.call().is_err() {
        // The Rust driver may return both in one read (WR-10).
        expect_readable("when it serves no more and its process has work", &server, true)?;
        got.returns.extend(server.read()?.returns);
    }
    expect_work("reading all that", &got, "COMPLETE TRANSACTION")?;
    expect_readable("with nothing left", &server, false)
}

fn pol_02_a_first_poll_is_readable(kit: &Kit) -> Verdict {
    let process = kit.open()?;
    let worker = Worker::new()?;
    let polled = |what: &str| {
        let what = what.to_owned();
        process.on(&worker, move |process| done(&what, process.conn.poll_readable(0)))
    };
    let want = kit.by_driver(true, false);
    expect("whether a new thread is readable", polled("polling")?, want)?;
    expect("whether it still is", polled("polling again")?, want)?;
    process.on(&worker, RawProcess::version)?;
    expect("whether it is after an ioctl", polled("polling after that")?, false)
}

/// A looper of the process that polls on another thread, asleep.
fn polling(worker: &Worker, process: &RawProcess) -> Result<Task<Result<bool, Stop>>, Stop> {
    process.on(worker, RawProcess::enter_looper)?;
    let patience = sys::patience::stretched(PATIENCE);
    let poll = move |process: &RawProcess| {
        let start = std::time::Instant::now();
        let readable = done("polling", process.conn.poll_readable(patience.as_millis() as i32))?;
        // At its end `poll` looks once more, whether it was woken or not.
        Ok(readable && start.elapsed() < patience)
    };
    let mut task = process.start_on(worker, poll)?;
    task.expect_asleep("polling with nothing to do").map(|()| task)
}

fn pol_03_all_who_poll_are_told(kit: &Kit) -> Verdict {
    let Pair { server, client, handle, .. } = kit.pair()?;
    let workers = [Worker::new()?, Worker::new()?];
    // The drivers wake for a call and for a oneway call in different ways.
    for oneway in [true, false] {
        let [first, second] = workers.each_ref().map(|worker| polling(worker, &server));
        let tasks = [first?, second?];
        if oneway {
            client.send_oneway(handle, 1, b"")?;
        } else {
            client.start_call(handle, 1, b"")?;
        }
        for task in tasks {
            let what = if oneway { "a oneway call" } else { "a call" };
            ensure(task.wait("polling")??, || format!("a thread that polls was not woken for {what}"))?;
        }
        let [first, second] = workers.each_ref().map(|worker| server.on(worker, RawProcess::read_now));
        let got = first?.unwrap_or_default();
        expect_work("the first to read", &got, "TRANSACTION")?;
        expect("what the second to read got", second?.map(|got| got.shape()), None)?;
        server.free(&got.call()?)?;
    }
    Ok(())
}

fn pol_04_readiness_belongs_to_a_thread(kit: &Kit) -> Verdict {
    let Pair { server, client, handle, .. } = kit.pair()?;
    let worker = Worker::new()?;
    client.on(&worker, move |client| client.start_call(handle, 1, b""))?;
    server.echo()?;
    client.on(&worker, |client| expect_readable("with the reply to its call", client, true))?;
    expect_readable("with a reply to another thread's call", &client, false)?;
    client.on(&worker, |client| client.expect_ending("the caller's read", "COMPLETE REPLY"))?;
    client.send_oneway(handle, 1, b"")?;
    expect_readable("with its own acknowledgement", &client, true)?;
    client.on(&worker, |client| expect_readable("with another thread's acknowledgement", client, false))
}

fn pol_05_own_work_is_told(kit: &Kit) -> Verdict {
    let Pair { server: _server, client, handle, .. } = kit.pair()?;
    // An epoll that once found nothing checks again only after a wake-up.
    let epoll = match (client.conn.device(), kit.is_rust()) {
        (Some(device), false) => {
            let epoll = done("epoll_create", Epoll::new())?;
            done("epoll_ctl", epoll.add(device.as_fd(), 1))?;
            Some(epoll)
        }
        _ => None,
    };
    let expect_told = |what: &str, want: bool| -> Verdict {
        let Some(epoll) = &epoll else { return Ok(()) };
        let mut ready = Vec::new();
        done("epoll_wait", epoll.wait(&mut ready, 0))?;
        expect(&format!("whether a thread is told {what}"), !ready.is_empty(), want)
    };
    for (what, handle, gives) in
        [("acknowledgement", handle, "COMPLETE"), ("error", Handle(4000), "FAILED_REPLY")]
    {
        expect_told("with nothing to do", false)?;
        client.send_oneway(handle, 1, b"")?;
        expect_told(&format!("of its own {what}"), true)?;
        expect_readable(&format!("with its own {what}"), &client, true)?;
        expect_work("reading then", &client.read()?, gives)?;
    }
    Ok(())
}

fn pol_06_a_watched_thread_may_exit(kit: &Kit) -> Verdict {
    kit.device()?;
    let process = kit.open()?;
    let (watcher, epoll) = (Worker::new()?, std::sync::Arc::new(done("epoll_create", Epoll::new())?));
    let device = |process: &RawProcess,
                  what: fn(&Epoll, std::os::fd::BorrowedFd<'_>) -> std::io::Result<()>,
                  epoll: &Epoll| {
        process.conn.device().map_or(Ok(()), |device| done("epoll_ctl", what(epoll, device.as_fd())))
    };
    let watching = std::sync::Arc::clone(&epoll);
    process.on(&watcher, move |process| {
        process.version()?;
        device(process, |epoll, fd| epoll.add(fd, 1), &watching)?;
        process.thread_exit()
    })?;
    // Threads that are new to the driver get what it freed of the old one.
    let others: Vec<Worker> = (0..16).map(|_| Worker::new()).collect::<Result<_, _>>()?;
    for other in &others {
        process.on(other, RawProcess::version)?;
    }
    let ready = |epoll: &Epoll| {
        let mut ready = Vec::new();
        done("epoll_wait", epoll.wait(&mut ready, 0))
    };
    ready(&epoll)?;
    device(&process, |epoll, fd| epoll.remove(fd), &epoll)?;
    ready(&epoll)?;
    drop(epoll);
    for other in &others {
        process.on(other, RawProcess::version)?;
    }
    Ok(())
}
