//! Room: contract section 9: references, handles, and what a node's owner hears (REF).

use abi::codes::object;
use abi::layout::FlatBinderObject;
use abi::{Commands, Cookie, Handle, NodePtr, Payload, TransactionFlags};
use zerocopy::{FromBytes, FromZeros, IntoBytes};

use super::item::{Stop, Verdict, done, ensure, expect, expect_errno, items};
use super::kit::{Kit, Pair};
use super::lobby;
use super::party::{Got, Node, Party, expect_work};
use super::worker::Worker;

items! {
    "REF-01" Both [seen] ref_01_the_lowest_free_number "a new handle takes the lowest free number, never 0";
    "REF-02" Both [] ref_02_a_handle_ends_with_its_counts "a handle is free again when both its counts are 0";
    "REF-03" Both [seen] ref_03_wrong_counting_is_ignored "counting an unknown handle, or below 0, is ignored";
    "REF-04" Both [] ref_04_a_weak_handle_is_not_promoted "ACQUIRE does not promote a weak handle, but for handle 0";
    "REF-05" Both [free] ref_05_handle_0_is_made_by_counting "counting handle 0 makes it, except for the manager";
    "REF-06" Both [] ref_06_calling_the_manager_needs_no_handle "calling handle 0 needs no reference and makes none";
    "REF-07" C [free] ref_07_a_new_manager_has_another_handle "if handle 0 names a dead manager, ACQUIRE gives the new one another number";
    "REF-08" Both [seen free] ref_08_the_owner_hears_of_the_first_holder "the owner hears of the first holder only, the manager of none";
    "REF-09" Both [seen] ref_09_the_sender_hears_it_with_its_call "the sending thread hears it, before its COMPLETE and as late";
    "REF-10" Both [seen] ref_10_counts_are_taken_when_read "a node that was let go before the owner reads is not reported";
    "REF-11" Both [] ref_11_wrong_acknowledgements_are_ignored "unknown, mismatched or unasked acknowledgements are ignored";
    "REF-12" Both [] ref_12_release_waits_for_the_acknowledgement "RELEASE and DECREFS wait for the acknowledgements";
    "REF-13" Both [] ref_13_a_call_holds_its_target "a call holds its target node until its buffer is freed";
    "REF-14" C [] ref_14_node_work_dies_with_its_thread "node work on a thread's queue is lost when the thread exits";
}

/// Passes `handle` of `from` as a strong reference to whoever serves `target`; whether the driver
/// took it, which it does for a handle with a strong count (contract OBJ-07).
fn passes(from: &Party, handle: Handle, to: &Party, target: Handle) -> Result<bool, Stop> {
    let object =
        FlatBinderObject { kind: object::HANDLE, binder: handle.0.into(), ..FlatBinderObject::new_zeroed() };
    let payload = Payload { data: object.as_bytes(), offsets: &[0], ..Payload::default() };
    from.write(|c| c.transaction(target, 9, TransactionFlags::CALL, payload))?;
    let refused = from.read_now()?;
    if let Some(got) = refused {
        expect_work("passing a handle that is not strong", &got, "FAILED_REPLY")?;
        return Ok(false);
    }
    to.acknowledge_call()?;
    from.free(&from.ending()?.reply()?)?;
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
    kit.write_leave(&server, object::WEAK_BINDER, Node::number(2), 2)?;
    let weak = kit.fetch(&client, 2)?;
    expect_work("after sending a weak node", &server.read()?, "INCREFS COMPLETE")?;
    client.write(|c| c.acquire(weak))?;
    let got = client.call(weak, 1, TransactionFlags::CALL, Payload::default())?;
    expect_work("calling a weak handle after ACQUIRE", &got, "FAILED_REPLY")?;
    let zero = Handle::CONTEXT_MANAGER;
    client.write(|c| c.increfs(zero))?;
    expect("passing handle 0 on with a weak count", passes(&client, zero, &server, handle)?, false)?;
    client.write(|c| c.acquire(zero))?;
    expect("passing it on after ACQUIRE", passes(&client, zero, &server, handle)?, true)
}

fn ref_05_handle_0_is_made_by_counting(kit: &Kit) -> Verdict {
    let zero = Handle::CONTEXT_MANAGER;
    let helper = kit.serving_helper(kit.helper("manager", &["1"]))?;
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
        let mut commands = Commands::default();
        fill(&mut commands, zero);
        let (result, taken) = manager.write_refused(commands.as_bytes());
        expect_errno(&format!("{name} of handle 0 by the manager"), &result, "EINVAL")?;
        expect("bytes taken", taken, 0)?;
    }
    Ok(())
}

fn ref_06_calling_the_manager_needs_no_handle(kit: &Kit) -> Verdict {
    let Pair { server, client, handle, .. } = kit.pair()?;
    let got = kit.ask(&client, lobby::TAG, b"")?;
    expect_work("calling handle 0 without a reference", &got, "COMPLETE REPLY")?;
    expect("passing handle 0 on after that", passes(&client, Handle(0), &server, handle)?, false)
}

fn ref_07_a_new_manager_has_another_handle(kit: &Kit) -> Verdict {
    let client = kit.open()?;
    let first = kit.serving_helper(kit.helper("manager", &["1"]))?;
    client.write(|c| c.acquire(Handle(0)))?;
    drop(first);
    kit.wait_until_unmanaged(&client)?;
    let _second = kit.serving_helper(kit.helper("manager", &["2"]))?;
    client.write(|c| c.acquire(Handle(0)))?;
    let got = client.call(Handle(1), lobby::TAG, TransactionFlags::CALL, Payload::default())?;
    if kit.is_rust() && got.work() == "FAILED_REPLY" {
        return Err(Stop::Skip("a promise of the C driver only; here no other handle is made".into()));
    }
    expect_work("calling handle 1", &got, "COMPLETE REPLY")?;
    let tag = client.bytes(&got.reply()?)?;
    expect("the manager behind handle 1", tag, 2u64.to_ne_bytes().to_vec())
}

fn ref_08_the_owner_hears_of_the_first_holder(kit: &Kit) -> Verdict {
    let helper = kit.serving_helper(kit.helper("manager", &["1"]))?;
    let (server, client) = (kit.server()?, kit.open()?);
    let node = Node::number(1);
    kit.write_leave(&server, object::BINDER, node, 1)?;
    let got = server.read()?;
    expect_work("after sending a strong node", &got, "INCREFS ACQUIRE COMPLETE")?;
    let (ptr, cookie) = node.names();
    let told = [abi::Return::Increfs(ptr, cookie), abi::Return::Acquire(ptr, cookie)];
    ensure(told.iter().all(|item| got.returns.contains(item)), || format!("wrong ptr or cookie: {got:?}"))?;
    server.acknowledge(&got)?;
    kit.fetch(&client, 1)?;
    server.expect_silence("after another process got a handle")?;
    kit.write_leave(&server, object::WEAK_BINDER, Node::number(2), 2)?;
    expect_work("after sending a weak node", &server.read()?, "INCREFS COMPLETE")?;
    drop((helper, server, client));
    let manager = kit.server()?;
    kit.become_manager(&manager, None)?;
    let mut command = kit.helper("call-manager", &["holding"]);
    let child = done("starting a helper process", command.spawn())?;
    expect_work("the manager, called by a holder of a reference", &manager.read()?, "TRANSACTION")?;
    expect_work("answering", &manager.answer(b"")?, "COMPLETE")?;
    let said = super::kit::finish(child)?.1;
    expect("the caller", said.as_str(), "COMPLETE REPLY")?;
    manager.expect_silence("after the holder is gone")
}

/// Sends a node of `from` in a call to `target`.
fn send_node(from: &Party, target: Handle, node: Node) -> Verdict {
    let object =
        FlatBinderObject { kind: object::BINDER, flags: node.flags, binder: node.ptr, cookie: node.cookie };
    let payload = Payload { data: object.as_bytes(), offsets: &[0], ..Payload::default() };
    from.write(|c| c.transaction(target, 1, TransactionFlags::CALL, payload))
}

/// The handle in a call that delivered an object.
fn received(party: &Party, got: &Got) -> Result<Handle, Stop> {
    let data = party.bytes(&got.call()?)?;
    let object = FlatBinderObject::read_from_prefix(&data);
    let (object, _) =
        object.map_err(|_| Stop::Fail(format!("expected an object, got {} bytes", data.len())))?;
    expect("the type of the received object", object.kind, object::HANDLE)?;
    Ok(Handle(object.binder as u32))
}

fn ref_09_the_sender_hears_it_with_its_call(kit: &Kit) -> Verdict {
    // The "client" owns the node that it sends, and has a second looper that could hear of it.
    let Pair { server, client, handle, .. } = kit.pair()?;
    let worker = Worker::new()?;
    let party = client.clone();
    worker.run(move || party.enter_looper())??;
    send_node(&client, handle, Node::number(4))?;
    client.expect_silence("the sender before the reply")?;
    let party = client.clone();
    worker.run(move || party.expect_silence("another thread of the sender's"))??;
    let got = server.read()?;
    let held = received(&server, &got)?;
    server.write(|c| {
        c.acquire(held);
        c.free_buffer(got.call().map_or(abi::BufferAddress(0), |call| call.buffer));
    })?;
    expect_work("answering", &server.answer(b"")?, "COMPLETE")?;
    expect_work("the sender", &client.ending()?, "INCREFS ACQUIRE COMPLETE REPLY")
}

fn ref_10_counts_are_taken_when_read(kit: &Kit) -> Verdict {
    let Pair { server, client, handle, .. } = kit.pair()?;
    let node = Node::number(4);
    send_node(&client, handle, node)?;
    expect("the node before the receiver lets it go", kit.lists_node(&client, node)?, true)?;
    let call = server.read()?.call()?;
    server.free(&call)?;
    expect_work("answering", &server.answer(b"")?, "COMPLETE")?;
    expect_work("the sender", &client.ending()?, "COMPLETE REPLY")?;
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
        // Acknowledged once already, when the pair was made.
        c.increfs_done(ptr, cookie);
        c.acquire_done(ptr, cookie);
    })?;
    server.expect_silence("after wrong acknowledgements")?;
    client.start_call(handle, 1, b"")?;
    server.echo()?;
    expect_work("a call after wrong acknowledgements", &client.ending()?, "COMPLETE REPLY")
}

fn ref_12_release_waits_for_the_acknowledgement(kit: &Kit) -> Verdict {
    let (server, client) = (kit.server()?, kit.open()?);
    let node = Node::number(1);
    kit.write_leave(&server, object::BINDER, node, 1)?;
    expect_work("after sending a node", &server.read()?, "INCREFS ACQUIRE COMPLETE")?;
    let handle = kit.fetch(&client, 1)?;
    kit.forget(&client, 1)?;
    client.write(|c| c.release(handle))?;
    server.expect_silence("while the acknowledgements are owed")?;
    let (ptr, cookie) = node.names();
    server.write(|c| {
        c.increfs_done(ptr, cookie);
        c.acquire_done(ptr, cookie);
    })?;
    // On the process's queue: any looper may have them.
    let (worker, party) = (Worker::new()?, server.clone());
    let mut got = worker.run(move || {
        party.enter_looper()?;
        party.read()
    })??;
    if got.work() == "RELEASE" {
        let party = server.clone();
        got.returns.extend(worker.run(move || party.read())??.returns);
    }
    expect_work("another looper, once acknowledged", &got, "RELEASE DECREFS")
}

fn ref_13_a_call_holds_its_target(kit: &Kit) -> Verdict {
    let Pair { server, client, handle, .. } = kit.pair()?;
    client.send_oneway(handle, 1, b"")?;
    let call = server.read()?.call()?;
    client.write(|c| c.release(handle))?;
    server.expect_silence("while the call's buffer is out")?;
    server.free(&call)?;
    let mut got = server.read()?;
    if got.work() == "RELEASE" {
        got.returns.extend(server.read()?.returns);
    }
    expect_work("once it is freed", &got, "RELEASE DECREFS")
}

fn ref_14_node_work_dies_with_its_thread(kit: &Kit) -> Verdict {
    let (server, client) = (kit.server()?, kit.open()?);
    let (worker, party) = (Worker::new()?, server.clone());
    let node = Node::number(1);
    let leave = {
        let object = FlatBinderObject {
            kind: object::BINDER,
            flags: node.flags,
            binder: node.ptr,
            cookie: node.cookie,
        };
        [object.as_bytes(), 1u64.as_bytes()].concat()
    };
    worker.run(move || {
        let payload = Payload { data: &leave, offsets: &[0], ..Payload::default() };
        party.write(|c| c.transaction(Handle(0), lobby::LEAVE, TransactionFlags::ONEWAY, payload))?;
        done("THREAD_EXIT", party.conn.thread_exit())
    })??;
    kit.fetch(&client, 1)?;
    if kit.is_rust() {
        return expect_work("another looper, after the sender exited", &server.read()?, "INCREFS ACQUIRE");
    }
    server.expect_silence("another looper, after the sender exited")
}
