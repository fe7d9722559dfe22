//! Contract section 10: death notifications (DTH).
//! Not here: calls whose peer dies (`sync::death`).

use crate::prelude::*;

items! {
    "DTH-01" Both [seen free] dth_01_any_count_will_do "any count on a handle suffices, an unknown handle is ignored";
    "DTH-02" Both [] dth_02_one_registration_a_handle "a handle has one registration, which fires at once if the node is dead";
    "DTH-03" Both [seen] dth_03_it_is_the_process_that_dies "it fires when the owner's process is released, and carries only the cookie";
    "DTH-04" Both [] dth_04_any_idle_looper_one_a_read "any idle looper gets it, one per read";
    "DTH-05" Both [seen] dth_05_done_then_clear "it must be acknowledged before a CLEAR is answered";
    "DTH-06" Both [] dth_06_taking_it_back "CLEAR on a live target is answered to its thread if that is a looper, else to any";
    "DTH-07" Both [] dth_07_the_last_count_takes_it_back "dropping the last count cancels the registration";
    "DTH-08" Both [] dth_08_it_stays_until_cleared "the registration and the dead handle remain until they are released";
    "DTH-09" Both [] dth_09_never_to_a_thread_that_serves "a registration on a dead node fires for the process, never within a call";
    "DTH-10" Both [] dth_10_an_answer_that_was_owed "an answer to CLEAR that was owed goes to the thread that acknowledges if that is a looper, else to any";
    "DTH-11" Both [] dth_11_clearing_while_the_owner_goes "a CLEAR while the owner goes is answered, after at most one notification";
}

/// A cookie of no node.
const COOKIE: Cookie = Cookie(0x0d1e_0000_0000_0001);
const OTHER: Cookie = Cookie(0x0d1e_0000_0000_0002);

/// Ends the server; returns after all its notifications were sent.
fn dead(kit: &Kit, Pair { server, client, handle, .. }: Pair) -> Result<(RawProcess, Handle), Stop> {
    // Nodes die in the order of their ptrs (contract EXT-05), so this one is last.
    kit.watch(&server, Node::number(99))?.outlive(server)?;
    Ok((client, handle))
}

/// A client that asked for the death of a handle's owner, which is dead now.
fn client_of_dead_node(kit: &Kit) -> Result<(RawProcess, Handle), Stop> {
    let mortal = kit.looper_pair()?;
    mortal.client.write(|c| c.request_death(mortal.handle, COOKIE))?;
    dead(kit, mortal)
}

/// Fails unless the returns are one death notification with this cookie.
fn expect_death(what: &str, got: &Got, cookie: Cookie) -> Verdict {
    expect_work(what, got, "DEAD_BINDER")?;
    expect(&format!("{what}: the cookie"), got.returns.last(), Some(&Return::DeadBinder(cookie)))
}

/// Fails unless the returns are one acknowledgement of a CLEAR with this cookie.
fn expect_cleared(what: &str, got: &Got, cookie: Cookie) -> Verdict {
    expect_work(what, got, "CLEAR_DEATH_NOTIFICATION_DONE")?;
    let cleared = Return::ClearDeathNotificationDone(cookie);
    expect(&format!("{what}: the cookie"), got.returns.last(), Some(&cleared))
}

fn dth_01_any_count_will_do(kit: &Kit) -> Verdict {
    let zero = Handle::CONTEXT_MANAGER;
    let manager = kit.manager("1")?;
    let (bare, client) = (kit.server()?, kit.server()?);
    let (strong_owner, weak_owner) = (kit.server()?, kit.server()?);
    let strong = kit.hand_over(&strong_owner, &client, Node::number(1))?;
    Kit::write_leave(&weak_owner, object::WEAK_BINDER, Node::number(2), 2)?;
    let weak = kit.fetch(&client, 2)?;
    client.write(|c| {
        c.request_death(Handle(4000), Cookie(4000));
        c.request_death(strong, Cookie(1));
        c.request_death(weak, Cookie(2));
    })?;
    drop(strong_owner);
    expect_death("with a strong count", &client.read()?, Cookie(1))?;
    drop(weak_owner);
    expect_death("with a weak count", &client.read()?, Cookie(2))?;
    bare.write(|c| c.request_death(zero, Cookie(3)))?;
    client.write(|c| {
        c.increfs(zero);
        c.request_death(zero, Cookie(4));
    })?;
    drop(manager);
    expect_death("with a count on handle 0", &client.read()?, Cookie(4))?;
    client.expect_silence("of a handle that does not exist")?;
    bare.expect_silence("without a count on handle 0")
}

fn dth_02_one_registration_a_handle(kit: &Kit) -> Verdict {
    let mortal = kit.looper_pair()?;
    mortal.client.write(|c| {
        c.request_death(mortal.handle, COOKIE);
        c.request_death(mortal.handle, OTHER);
    })?;
    let (client, _) = dead(kit, mortal)?;
    expect_death("of two registrations", &client.read()?, COOKIE)?;
    client.write(|c| c.dead_binder_done(COOKIE))?;
    client.expect_silence("after the first registration's notification")?;
    let (client, handle) = dead(kit, kit.looper_pair()?)?;
    client.write(|c| c.request_death(handle, OTHER))?;
    expect_death("asking when the node is dead", &client.read()?, OTHER)
}

fn dth_03_it_is_the_process_that_dies(kit: &Kit) -> Verdict {
    let Pair { server, client, handle, .. } = kit.looper_pair()?;
    client.write(|c| c.request_death(handle, COOKIE))?;
    server.thread_exit()?;
    client.expect_silence("after the owner's only thread left")?;
    drop(server);
    expect_death("after the owner closed", &client.read()?, COOKIE)
}

fn dth_04_any_idle_looper_one_a_read(kit: &Kit) -> Verdict {
    let (server, client) = (kit.server()?, kit.server()?);
    for n in 1..=3 {
        let handle = kit.hand_over(&server, &client, Node::number(n))?;
        client.write(|c| c.request_death(handle, Cookie(n)))?;
    }
    kit.watch(&server, Node::number(99))?.outlive(server)?;
    let elsewhere = client.on(&Worker::new()?, RawProcess::read_as_looper)?;
    let reads = [client.read()?, elsewhere, client.read()?];
    let mut cookies = Vec::new();
    for got in &reads {
        expect_work("one read", got, "DEAD_BINDER")?;
        cookies.extend(got.returns.iter().filter_map(|item| match item {
            Return::DeadBinder(cookie) => Some(cookie.0),
            _ => None,
        }));
    }
    cookies.sort_unstable();
    expect("the cookies of all reads", cookies, vec![1, 2, 3])?;
    client.expect_silence("after all three")
}

fn dth_05_done_then_clear(kit: &Kit) -> Verdict {
    let (client, handle) = client_of_dead_node(kit)?;
    expect_death("the notification", &client.read()?, COOKIE)?;
    client.write(|c| c.dead_binder_done(OTHER))?;
    client.expect_silence("after acknowledging what never came")?;
    client.write(|c| {
        c.dead_binder_done(COOKIE);
        c.clear_death(handle, COOKIE);
    })?;
    expect_cleared("CLEAR after the acknowledgement", &client.read()?, COOKIE)?;
    let (client, handle) = client_of_dead_node(kit)?;
    expect_death("the notification", &client.read()?, COOKIE)?;
    client.write(|c| c.clear_death(handle, COOKIE))?;
    client.expect_silence("CLEAR while the acknowledgement is owed")?;
    client.write(|c| c.dead_binder_done(COOKIE))?;
    expect_cleared("once it is acknowledged", &client.read()?, COOKIE)?;
    let (client, handle) = client_of_dead_node(kit)?;
    client.write(|c| c.clear_death(handle, COOKIE))?;
    expect_death("CLEAR after the death, before it is read", &client.read()?, COOKIE)?;
    client.expect_silence("while the acknowledgement is owed")?;
    client.write(|c| c.dead_binder_done(COOKIE))?;
    expect_cleared("once it is acknowledged", &client.read()?, COOKIE)?;
    client.expect_silence("after the end of the registration")
}

fn dth_06_taking_it_back(kit: &Kit) -> Verdict {
    let mortal = kit.looper_pair()?;
    let (client, handle) = (&mortal.client, mortal.handle);
    let worker = Worker::new()?;
    client.write(|c| {
        c.clear_death(handle, COOKIE);
        c.clear_death(Handle(4000), COOKIE);
        c.request_death(handle, COOKIE);
        c.clear_death(handle, OTHER);
    })?;
    client.expect_silence("after CLEARs of no registration")?;
    client.on(&worker, RawProcess::enter_looper)?;
    client.write(|c| c.clear_death(handle, COOKIE))?;
    client.on(&worker, |client| client.expect_silence("another looper, after a looper's CLEAR"))?;
    expect_cleared("the looper that asked", &client.read()?, COOKIE)?;
    // This thread is no looper, so its acknowledgement goes to any looper.
    client.on(&Worker::new()?, move |stranger| {
        stranger.write(|c| {
            c.request_death(handle, OTHER);
            c.clear_death(handle, OTHER);
        })
    })?;
    expect_cleared("a looper that did not ask", &client.on(&worker, RawProcess::read)?, OTHER)?;
    let (client, _) = dead(kit, mortal)?;
    client.expect_silence("of a registration taken back")
}

fn dth_07_the_last_count_takes_it_back(kit: &Kit) -> Verdict {
    // Either kind of remaining count keeps it.
    for weak_count_left in [false, true] {
        let mortal = kit.looper_pair()?;
        mortal.client.write(|c| {
            c.request_death(mortal.handle, COOKIE);
            if weak_count_left {
                c.increfs(mortal.handle);
            }
            c.release(mortal.handle);
        })?;
        let (client, _) = dead(kit, mortal)?;
        match weak_count_left {
            true => expect_death("with a weak count left", &client.read()?, COOKIE)?,
            false => client.expect_silence("of a handle that was given back")?,
        }
    }
    Ok(())
}

fn dth_08_it_stays_until_cleared(kit: &Kit) -> Verdict {
    let (client, handle) = client_of_dead_node(kit)?;
    expect_death("the notification", &client.read()?, COOKIE)?;
    client.write(|c| {
        c.dead_binder_done(COOKIE);
        c.request_death(handle, OTHER);
    })?;
    client.expect_silence("a second registration while the first stands")?;
    expect_work("calling the dead handle", &client.call(handle)?, "DEAD_REPLY")?;
    client.write(|c| c.clear_death(handle, COOKIE))?;
    expect_cleared("CLEAR", &client.read()?, COOKIE)?;
    client.write(|c| c.request_death(handle, OTHER))?;
    expect_death("a registration after it", &client.read()?, OTHER)?;
    let live = kit.server()?;
    let next = kit.hand_over(&live, &client, Node::number(2))?;
    ensure(next != handle, || format!("the dead handle {handle} was given to another node"))
}

fn dth_09_never_to_a_thread_that_serves(kit: &Kit) -> Verdict {
    let (served, handle) = dead(kit, kit.looper_pair()?)?;
    let Pair { server, client, handle: own, .. } = kit.pair_of(served, kit.open()?, Node::number(7))?;
    client.start_call(own, 1, b"")?;
    server.expect_read("a call", "TRANSACTION")?;
    server.write(|c| c.request_death(handle, COOKIE))?;
    server.expect_silence("a thread that serves, after its request for a dead node")?;
    let got = server.on(&Worker::new()?, RawProcess::read_as_looper)?;
    expect_death("another looper", &got, COOKIE)?;
    server.finish_call()?;
    client.expect_ending("the call", "COMPLETE REPLY").map(drop)
}

fn dth_10_an_answer_that_was_owed(kit: &Kit) -> Verdict {
    for is_looper in [true, false] {
        let (client, handle) = client_of_dead_node(kit)?;
        expect_death("the notification", &client.read()?, COOKIE)?;
        client.write(|c| c.clear_death(handle, COOKIE))?;
        let worker = Worker::new()?;
        client.on(&worker, move |client| {
            if is_looper {
                client.enter_looper()?;
            }
            client.write(|c| c.dead_binder_done(COOKIE))
        })?;
        if !is_looper {
            expect_cleared("a looper, as the one that acknowledged is none", &client.read()?, COOKIE)?;
            continue;
        }
        client.expect_silence("another looper than the one that acknowledged")?;
        expect_cleared("the looper that acknowledged", &client.on(&worker, RawProcess::read)?, COOKIE)?;
    }
    Ok(())
}

fn dth_11_clearing_while_the_owner_goes(kit: &Kit) -> Verdict {
    /// Owners that come and go, and processes that watch each.
    const ROUNDS: u64 = 60;
    const WATCHERS: usize = 24;
    let watchers = (0..WATCHERS).map(|_| kit.server()).collect::<Result<Vec<_>, _>>()?;
    let worker = Worker::new()?;
    for round in 1..=ROUNDS {
        let (server, node, cookie) = (kit.server()?, Node::number(round), Cookie(round));
        kit.leave(&server, node, round)?;
        let mut handles = Vec::new();
        for watcher in &watchers {
            let handle = kit.fetch(watcher, round)?;
            watcher.write(|c| c.request_death(handle, cookie))?;
            handles.push(handle);
        }
        kit.forget(&watchers[0], round)?;
        let gone = worker.start(move || drop(server))?;
        // The driver tells them in the order in which they asked, so it and this meet.
        for (watcher, handle) in watchers.iter().zip(&handles).rev() {
            watcher.write(|c| c.clear_death(*handle, cookie))?;
        }
        gone.wait("closing the owner")?;
        for (watcher, handle) in watchers.iter().zip(&handles) {
            let mut got = watcher.read()?;
            if got.returns.contains(&Return::DeadBinder(cookie)) {
                expect_death("the notification", &got, cookie)?;
                watcher.write(|c| c.dead_binder_done(cookie))?;
                got = watcher.read()?;
            }
            expect_cleared("a CLEAR while the owner goes", &got, cookie)?;
            watcher.write(|c| c.release(*handle))?;
        }
    }
    Ok(())
}
