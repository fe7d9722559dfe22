//! Contract section 9: references, handles, notifications to node owners (REF).

use crate::prelude::*;
use sys::late_page::LatePage;

use crate::test_manager;

items! {
    "REF-01" Both [seen] ref_01_the_lowest_free_number "a new handle takes the lowest free number, never 0";
    "REF-02" Both [] ref_02_a_handle_ends_with_its_counts "a handle is free again when both its counts are 0";
    "REF-03" Both [seen] ref_03_wrong_counting_is_ignored "counting an unknown handle, or below 0, is ignored";
    "REF-04" Both [] ref_04_a_weak_handle_is_not_promoted "ACQUIRE does not promote a weak handle, but for handle 0";
    "REF-05" Both [free] ref_05_handle_0_is_made_by_counting "counting handle 0 makes it, except for the manager";
    "REF-06" Both [] ref_06_calling_the_manager_needs_no_handle "calling handle 0 needs no reference and makes none";
    "REF-07" C [free] ref_07_a_new_manager_has_another_handle "if handle 0 names a dead manager, ACQUIRE gives the new one another number";
    "REF-08" Both [seen free] ref_08_the_owner_hears_of_the_first_holder "the owner hears of the first holder only, the manager of none";
    "REF-09" Both [seen] ref_09_the_sender_hears_it_with_its_call "the sending thread is notified, before its COMPLETE and as late";
    "REF-10" Both [seen] ref_10_counts_are_taken_when_read "a node that was released before the owner reads is not reported";
    "REF-11" Both [] ref_11_wrong_acknowledgements_are_ignored "unknown, mismatched or unasked acknowledgements are ignored";
    "REF-12" Both [] ref_12_release_waits_for_the_acknowledgement "RELEASE and DECREFS wait for the acknowledgements";
    "REF-13" Both [] ref_13_a_call_holds_its_target "a call holds its target node until its buffer is freed";
    "REF-14" C [] ref_14_node_work_dies_with_its_thread "node work on a thread's queue is lost when the thread exits";
    "REF-15" Both [] ref_15_a_strong_send_notifies_its_own_thread "a strong send notifies its own thread, also beside an unread weak notice";
    "REF-16" Both [differs] ref_16_a_node_goes_after_a_call_that_came_too_late "a node is gone once its owner closed in the middle of a call to it";
    "REF-17" Both [] ref_17_a_thread_goes_with_what_it_had_to_hear "what an exiting thread had to hear of a node goes to its process, in Rust";
}

/// Passes `handle` of `from` as a strong reference to the server of `target`; returns whether the driver accepted it,
/// which needs a strong count (contract OBJ-07).
fn passes(from: &RawProcess, handle: Handle, to: &RawProcess, target: Handle) -> Result<bool, Stop> {
    from.send(target, 9, TransactionFlags::CALL, Draft::of(&handle_object(handle)).payload())?;
    if let Some(got) = from.read_now()? {
        expect_work("passing a handle that is not strong", &got, "FAILED_REPLY")?;
        return Ok(false);
    }
    to.echo()?;
    from.take_reply()?;
    Ok(true)
}

fn ref_01_the_lowest_free_number(kit: &Kit) -> Verdict {
    let (server, client) = (kit.server()?, kit.open()?);
    let fetch = |n| kit.hand_over(&server, &client, Node::number(n));
    for n in 1..=3 {
        expect("a new handle", fetch(n)?, Handle(n as u32))?;
    }
    client.write(|c| {
        c.release(Handle(2));
        c.release(Handle(1));
    })?;
    for (n, want) in [(4, 1), (5, 2), (6, 4)] {
        expect("a new handle after 1 and 2 were given back", fetch(n)?, Handle(want))?;
    }
    Ok(())
}

fn ref_02_a_handle_ends_with_its_counts(kit: &Kit) -> Verdict {
    let (server, client) = (kit.server()?, kit.open()?);
    let fetch = |n| kit.hand_over(&server, &client, Node::number(n));
    let first = fetch(1)?;
    client.write(|c| {
        c.increfs(first);
        c.release(first);
    })?;
    let second = fetch(2)?;
    ensure(second != first, || format!("handle {first} was given out again while it had a weak count"))?;
    client.write(|c| c.decrefs(first))?;
    expect("the next handle once both counts are 0", fetch(3)?, first)
}

fn ref_03_wrong_counting_is_ignored(kit: &Kit) -> Verdict {
    let Pair { server, client, handle, .. } = kit.pair()?;
    client.write(|c| {
        let unknown = Handle(4000);
        c.increfs(unknown);
        c.acquire(unknown);
        c.release(unknown);
        c.decrefs(unknown);
        c.decrefs(handle);
        c.increfs(handle);
        c.release(handle);
        c.release(handle);
        c.release(handle);
        c.decrefs(handle);
        c.decrefs(handle);
    })?;
    client.expect_silence("after wrong counting")?;
    let next = kit.hand_over(&server, &client, Node::number(2))?;
    expect("the next handle, all counts being 0", next, handle)
}

fn ref_04_a_weak_handle_is_not_promoted(kit: &Kit) -> Verdict {
    let Pair { server, client, handle, .. } = kit.pair()?;
    Kit::write_leave(&server, object::WEAK_BINDER, Node::number(2), 2)?;
    let weak = kit.fetch(&client, 2)?;
    server.expect_read("after sending a weak node", "INCREFS COMPLETE")?;
    client.write(|c| c.acquire(weak))?;
    expect_work("calling a weak handle after ACQUIRE", &client.call(weak)?, "FAILED_REPLY")?;
    let zero = Handle::CONTEXT_MANAGER;
    client.write(|c| c.increfs(zero))?;
    expect("passing handle 0 on with a weak count", passes(&client, zero, &server, handle)?, false)?;
    client.write(|c| c.acquire(zero))?;
    expect("passing it on after ACQUIRE", passes(&client, zero, &server, handle)?, true)
}

fn ref_05_handle_0_is_made_by_counting(kit: &Kit) -> Verdict {
    let zero = Handle::CONTEXT_MANAGER;
    let helper = kit.manager("1")?;
    let Pair { server, client, handle, .. } = kit.pair()?;
    expect("passing handle 0 on unasked", passes(&client, zero, &server, handle)?, false)?;
    client.write(|c| c.acquire(zero))?;
    expect("passing it on after ACQUIRE", passes(&client, zero, &server, handle)?, true)?;
    drop(helper);
    let manager = kit.server()?;
    kit.become_manager(&manager, None)?;
    for (name, fill) in
        [("ACQUIRE", Commands::acquire as fn(&mut Commands, Handle)), ("INCREFS", Commands::increfs)]
    {
        manager.expect_invalid(&format!("{name} of handle 0 by the manager"), |c| fill(c, zero))?;
    }
    Ok(())
}

fn ref_06_calling_the_manager_needs_no_handle(kit: &Kit) -> Verdict {
    let Pair { server, client, handle, .. } = kit.pair()?;
    expect_work(
        "calling handle 0 without a reference",
        &kit.ask(&client, test_manager::TAG, b"")?,
        "COMPLETE REPLY",
    )?;
    expect("passing handle 0 on after that", passes(&client, Handle(0), &server, handle)?, false)
}

fn ref_07_a_new_manager_has_another_handle(kit: &Kit) -> Verdict {
    let client = kit.open()?;
    let first = kit.manager("1")?;
    client.write(|c| c.acquire(Handle(0)))?;
    drop(first);
    kit.wait_until_unmanaged(&client)?;
    let _second = kit.manager("2")?;
    client.write(|c| c.acquire(Handle(0)))?;
    let got = client.call_with(Handle(1), test_manager::TAG, Payload::default())?;
    let made = !kit.is_rust() || got.work() != "FAILED_REPLY";
    skip_unless(made, "a promise of the C driver only; here no other handle is made")?;
    expect_work("calling handle 1", &got, "COMPLETE REPLY")?;
    let tag = client.bytes(&got.reply()?)?;
    expect("the manager behind handle 1", tag, 2u64.to_ne_bytes().to_vec())
}

fn ref_08_the_owner_hears_of_the_first_holder(kit: &Kit) -> Verdict {
    let helper = kit.manager("1")?;
    let (server, client) = (kit.server()?, kit.open()?);
    let node = Node::number(1);
    Kit::write_leave(&server, object::BINDER, node, 1)?;
    let got = server.expect_read("after sending a strong node", "INCREFS ACQUIRE COMPLETE")?;
    let (ptr, cookie) = node.names();
    let told = [abi::Return::Increfs(ptr, cookie), abi::Return::Acquire(ptr, cookie)];
    ensure(told.iter().all(|item| got.returns.contains(item)), || format!("wrong ptr or cookie: {got:?}"))?;
    server.acknowledge(&got)?;
    kit.fetch(&client, 1)?;
    server.expect_silence("after another process got a handle")?;
    Kit::write_leave(&server, object::WEAK_BINDER, Node::number(2), 2)?;
    server.expect_read("after sending a weak node", "INCREFS COMPLETE")?;
    drop((helper, server, client));
    let manager = kit.server()?;
    kit.become_manager(&manager, None)?;
    let mut command = kit.helper("call-manager", &["holding"]);
    let child = done("starting a helper process", command.spawn())?;
    manager.expect_read("the manager, called by a holder of a reference", "TRANSACTION")?;
    manager.finish_call()?;
    expect("the caller", finish(child)?.1.as_str(), "COMPLETE REPLY")?;
    manager.expect_silence("after the holder is gone")
}

/// Sends a node of `from` in a call to `target`.
fn send_node(from: &RawProcess, target: Handle, node: Node) -> Verdict {
    send_as(from, target, TransactionFlags::CALL, &node.object(object::BINDER))
}

/// Sends an object.
fn send_as(from: &RawProcess, target: Handle, flags: TransactionFlags, object: &FlatBinderObject) -> Verdict {
    from.send(target, 1, flags, Draft::of(object).payload())
}

/// The handle in a delivered object.
fn received(process: &RawProcess, got: &Got) -> Result<Handle, Stop> {
    let object: FlatBinderObject = process.arrived(&got.call()?, 0)?;
    expect("the type of the received object", object.kind, object::HANDLE)?;
    Ok(Handle(object.binder as u32))
}

fn ref_09_the_sender_hears_it_with_its_call(kit: &Kit) -> Verdict {
    // The "client" owns the node that it sends, and has a second looper that could be notified.
    let Pair { server, client, handle, .. } = kit.pair()?;
    let worker = Worker::new()?;
    client.on(&worker, RawProcess::enter_looper)?;
    send_node(&client, handle, Node::number(4))?;
    client.expect_silence("the sender before the reply")?;
    client.on(&worker, |client| client.expect_silence("another thread of the sender's"))?;
    let got = server.read()?;
    let held = received(&server, &got)?;
    server.write(|c| {
        c.acquire(held);
        c.free_buffer(got.call().map_or(abi::BufferAddress(0), |call| call.buffer));
    })?;
    server.finish_call()?;
    expect_work("the sender", &client.ending()?, "INCREFS ACQUIRE COMPLETE REPLY")
}

fn ref_10_counts_are_taken_when_read(kit: &Kit) -> Verdict {
    let Pair { server, client, handle, .. } = kit.pair()?;
    let node = Node::number(4);
    send_node(&client, handle, node)?;
    expect("the node before the receiver lets it go", kit.lists_node(&client, node)?, true)?;
    server.free(&server.read()?.call()?)?;
    server.finish_call()?;
    client.expect_ending("the sender", "COMPLETE REPLY")?;
    expect("the node afterwards", kit.lists_node(&client, node)?, false)
}

fn ref_11_wrong_acknowledgements_are_ignored(kit: &Kit) -> Verdict {
    let Pair { server, client, handle, node } = kit.pair()?;
    let (ptr, cookie) = node.names();
    server.write(|c| {
        c.increfs_done(NodePtr(0xbad0), cookie);
        c.acquire_done(NodePtr(0xbad0), cookie);
        c.increfs_done(ptr, Cookie(1));
        c.acquire_done(ptr, Cookie(1));
        // Already acknowledged when the pair was created.
        c.increfs_done(ptr, cookie);
        c.acquire_done(ptr, cookie);
    })?;
    server.expect_silence("after wrong acknowledgements")?;
    client.round_trip("a call after wrong acknowledgements", handle, &server)
}

fn ref_12_release_waits_for_the_acknowledgement(kit: &Kit) -> Verdict {
    let (server, client) = (kit.server()?, kit.open()?);
    let node = Node::number(1);
    Kit::write_leave(&server, object::BINDER, node, 1)?;
    server.expect_read("after sending a node", "INCREFS ACQUIRE COMPLETE")?;
    let handle = kit.fetch(&client, 1)?;
    kit.forget(&client, 1)?;
    client.write(|c| c.release(handle))?;
    server.expect_silence("while the acknowledgements are owed")?;
    let (ptr, cookie) = node.names();
    server.write(|c| {
        c.increfs_done(ptr, cookie);
        c.acquire_done(ptr, cookie);
    })?;
    // On the process queue: any looper may get them.
    server.on(&Worker::new()?, |server| {
        let got = server.read_on(server.read_as_looper()?, |got| got.work() != "RELEASE")?;
        expect_work("another looper, once acknowledged", &got, "RELEASE DECREFS")
    })
}

fn ref_13_a_call_holds_its_target(kit: &Kit) -> Verdict {
    let Pair { server, client, handle, .. } = kit.pair()?;
    client.send_oneway(handle, 1, b"")?;
    let call = server.read()?.call()?;
    client.write(|c| c.release(handle))?;
    server.expect_silence("while the call's buffer is out")?;
    server.free(&call)?;
    let got = server.read_on(server.read()?, |got| got.work() != "RELEASE")?;
    expect_work("once it is freed", &got, "RELEASE DECREFS")
}

fn ref_14_node_work_dies_with_its_thread(kit: &Kit) -> Verdict {
    let (server, client) = (kit.server()?, kit.open()?);
    server.on(&Worker::new()?, |server| {
        Kit::write_leave(server, object::BINDER, Node::number(1), 1)?;
        server.thread_exit()
    })?;
    kit.fetch(&client, 1)?;
    let survives = |server: &RawProcess, what: &str| match kit.is_rust() {
        true => server.expect_read(what, "INCREFS ACQUIRE").map(drop),
        false => server.expect_silence(what),
    };
    survives(&server, "another looper, after the sender of a oneway call exited")?;
    // A call's completion waits for its reply, and node work with it. Nobody reads the call, which keeps the node.
    let pair = kit.pair_of(kit.server()?, kit.server()?, Node::number(2))?;
    let handle = pair.handle;
    pair.client.on(&Worker::new()?, move |caller| {
        send_node(caller, handle, Node::number(3))?;
        caller.thread_exit()
    })?;
    survives(&pair.client, "another looper, after the sender of a call exited")
}

fn ref_15_a_strong_send_notifies_its_own_thread(kit: &Kit) -> Verdict {
    let Pair { server: _server, client, handle, .. } = kit.looper_pair()?;
    let send = move |process: &RawProcess, kind: u32| {
        send_as(process, handle, TransactionFlags::ONEWAY, &Node::number(4).object(kind))
    };
    send(&client, object::WEAK_BINDER)?;
    client.on(&Worker::new()?, move |other| {
        other.version()?;
        send(other, object::BINDER)?;
        other.expect_read("the thread that sent the node strongly", "INCREFS ACQUIRE COMPLETE").map(drop)
    })?;
    client.expect_read("the thread that sent it weakly before", "COMPLETE").map(drop)
}

fn ref_17_a_thread_goes_with_what_it_had_to_hear(kit: &Kit) -> Verdict {
    let Pair { server, client, handle, .. } = kit.looper_pair()?;
    let send = move |process: &RawProcess, kind: u32| {
        send_as(process, handle, TransactionFlags::ONEWAY, &Node::number(4).object(kind))
    };
    send(&client, object::WEAK_BINDER)?;
    let worker = Worker::new()?;
    client.on(&worker, move |other| {
        other.version()?;
        send(other, object::BINDER)?;
        other.thread_exit()
    })?;
    // The weak count waits for its thread; the strong one went to the thread that exited.
    let got = client.read()?;
    let want = kit.by_driver("COMPLETE", "INCREFS ACQUIRE COMPLETE");
    let mut work: Vec<String> = got.work().split(' ').map(str::to_owned).collect();
    while work.len() < want.split(' ').count() {
        work.extend(client.read()?.work().split(' ').map(str::to_owned));
    }
    work.sort();
    let mut want: Vec<&str> = want.split(' ').collect();
    want.sort_unstable();
    expect("what the first thread reads", work, want.into_iter().map(str::to_owned).collect())?;
    client.expect_silence("all read")?;
    drop(server);
    Ok(())
}

/// Nodes without a process in the driver's state, as lines.
fn dead_nodes(kit: &Kit) -> Result<Vec<String>, Stop> {
    let state = kit.state_text(StateFile::State)?;
    let behind = state.lines().skip_while(|line| !line.starts_with("dead nodes:")).skip(1);
    Ok(behind.take_while(|line| line.starts_with("  node ")).map(|line| line.trim().to_owned()).collect())
}

fn ref_16_a_node_goes_after_a_call_that_came_too_late(kit: &Kit) -> Verdict {
    let mut end = Ok(());
    for flags in [TransactionFlags::CALL, TransactionFlags::ONEWAY] {
        match late_call(kit, flags) {
            Err(Stop::Differs(why)) => end = Err(Stop::Differs(why)),
            other => other?,
        }
    }
    end
}

/// A call whose target closes while the driver copies its data.
fn late_call(kit: &Kit, flags: TransactionFlags) -> Verdict {
    let why = |error: std::io::Error| {
        Stop::Skip(format!("a page that comes late needs userfaultfd: {}", sys::errno::describe(&error)))
    };
    let page = LatePage::new().map_err(why)?;
    let before = dead_nodes(kit)?;
    let server = kit.server()?;
    let watcher = kit.watch(&server, Node::number(2))?;
    let Pair { server, client, handle, .. } = kit.pair_of(server, kit.open()?, Node::number(1))?;
    let worker = Worker::new()?;
    let call = TransactionData {
        target: handle.0.into(),
        flags: flags.0,
        data_size: 8,
        buffer: page.address(),
        ..TransactionData::default()
    };
    let task = client.start_on(&worker, move |client| client.write_raw(bc::TRANSACTION, &call))?;
    let patience = sys::patience::stretched(PATIENCE).as_millis() as i32;
    ensure(done("waiting for the copy", page.is_awaited(patience))?, || {
        "the driver does not copy the data of the call".into()
    })?;
    watcher.outlive(server)?;
    done("bringing the page", page.bring())?;
    task.wait("a call whose target closed meanwhile")??;
    let answer = client.on(&worker, RawProcess::read)?;
    expect_work("a call whose target closed meanwhile", &answer, "DEAD_REPLY")?;
    drop((client, watcher, worker));
    soon(|| {
        let left = dead_nodes(kit)?.into_iter().find(|line| !before.contains(line));
        if left.as_ref().is_some_and(|line| line.contains(" ls -1 ")) && !kit.is_rust() && !kit.is_embedded()
        {
            kit.differs("the C driver keeps the node for ever, with -1 local strong references")?;
        }
        Ok(left.map(|line| format!("a node is left: {line}")))
    })
}
