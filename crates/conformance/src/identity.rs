//! Contract section 13: the sender's identity (ID).

use sys::{child, identity};

use crate::other_user::{self, NOBODY};
use crate::prelude::*;

items! {
    "ID-01" Both [seen differs] id_01_the_pid_of_the_opener "a call names the process that opened its sender's device";
    "ID-02" C [differs] id_02_no_pid_of_a_thread_that_is_gone "a call names no process if its thread exited before it was read";
    "ID-03" Both [differs] id_03_the_euid_of_the_sending_thread "a call names the effective uid that its thread had when it sent";
    "ID-04" Both [] id_04_the_context_of_the_opener "the security context is that of the process that opened the device";
    "ID-05" Both [] id_05_nobody_forges_an_identity "a sender's claims about itself are ignored";
}

/// Arguments of the `send` helper: node number 1, code, no flags (a two-way call), no data.
const CALL_NODE_1: [&str; 4] = ["1", "1", "0", "0"];

/// This process's identity as deliveries report it.
fn own_pid() -> i32 {
    std::process::id() as i32
}

fn id_01_the_pid_of_the_opener(kit: &Kit) -> Verdict {
    let Pair { server, client, handle, node } = kit.pair()?;
    client.start_call(handle, 1, b"")?;
    expect("the pid of a call from this process", server.echo()?.sender_pid, own_pid())?;
    expect("the pid of its reply", client.ending()?.reply()?.sender_pid, 0)?;
    client.send_oneway(handle, 1, b"")?;
    let oneway = server.read()?.call()?;
    expect("the pid of a oneway call", oneway.sender_pid, 0)?;
    server.free(&oneway)?;
    kit.leave(&server, node, 1)?;
    let child = done("starting a helper process", kit.helper("send", &CALL_NODE_1).spawn())?;
    let pid = child.id() as i32;
    expect("the pid of a call from another process", server.echo()?.sender_pid, pid)?;
    expect("what it read", finish(child)?.1.as_str(), "COMPLETE REPLY")?;
    if let Some(device) = client.conn.device() {
        let helper = kit.helper_with(device, "call-inherited", &[&handle.0.to_string()])?;
        let said = kit.run_helper(helper)?;
        let want = kit.by_driver("version OK call OK", "version OK call EINVAL");
        expect("a child with the opener's device", said.as_str(), want)?;
        if !kit.is_rust() {
            expect("the pid of its call", server.echo()?.sender_pid, own_pid())?;
        }
    }
    across_namespaces(kit, &server)
}

/// Pids across pid namespaces: the sender's pid in the reader's namespace, or 0 if it has none. Skips without the
/// right to create a namespace.
fn across_namespaces(kit: &Kit, server: &RawProcess) -> Verdict {
    let spawn = |role: &str, words: &[&str]| {
        let mut command = kit.untied_helper(role, words);
        Worker::new()?.run(move || {
            child::unshare_for_children()?;
            command.spawn()
        })
    };
    let child = spawn("send", &CALL_NODE_1)?.map_err(|error| {
        Stop::Skip(format!("no pid namespace for the last part of this test: {error}; needs root"))
    })?;
    let pid = child.id() as i32;
    expect("the pid of a call from an inner pid namespace", server.echo()?.sender_pid, pid)?;
    expect("what it read", finish(child)?.1.as_str(), "COMPLETE REPLY")?;
    let child = done("starting a helper process", spawn("tell-pid", &["2"])?)?;
    let client = kit.open()?;
    let handle = kit.fetch(&client, 2)?;
    expect_work("a call into an inner pid namespace", &client.call(handle)?, "COMPLETE REPLY")?;
    let seen = finish(child)?.1;
    if kit.is_embedded() {
        expect("the pid that was seen there", seen, own_pid().to_string())?;
        return kit.differs("the pid is a number in the broker's pid namespace");
    }
    expect("the pid that was seen there", seen.as_str(), "0")
}

fn id_02_no_pid_of_a_thread_that_is_gone(kit: &Kit) -> Verdict {
    let Pair { server, client, handle, .. } = kit.pair()?;
    client.start_call(handle, 1, b"")?;
    client.thread_exit()?;
    let call = server.read()?.call()?;
    let stays = kit.is_rust() || kit.is_embedded();
    expect("the pid of a call whose thread is gone", call.sender_pid, if stays { own_pid() } else { 0 })?;
    expect("the euid of that call", Some(call.sender_euid), kit.euid())?;
    if kit.is_embedded() { kit.differs("the pid stays, as in the Rust driver") } else { Ok(()) }
}

/// Whether euids are the sending thread's. The embedded driver reports the opener's; kernels before 7.2 reported that
/// of the process's first thread.
fn by_thread(kit: &Kit) -> bool {
    !kit.is_embedded() && kit.evidence.release >= Release(7, 2)
}

fn id_03_the_euid_of_the_sending_thread(kit: &Kit) -> Verdict {
    let euid = if by_thread(kit) { NOBODY } else { 0 };
    let Pair { server, client, handle, .. } = kit.pair()?;
    let worker = other_user::thread(kit)?;
    let send = |flags| client.on(&worker, move |client| client.send(handle, 1, flags, Payload::default()));
    let become_root = || done("going back", worker.run(|| identity::set_effective_uid(0))?);
    client.send_oneway(handle, 1, b"")?;
    send(TransactionFlags::ONEWAY)?;
    // A sent call keeps the thread's euid at the time of sending.
    become_root()?;
    send(TransactionFlags::ONEWAY)?;
    for (what, want) in [("this thread", 0), ("a thread of another user", euid), ("it, as root again", 0)] {
        let call = server.read()?.call()?;
        expect(&format!("the euid of a oneway call of {what}"), call.sender_euid, want)?;
        server.free(&call)?;
    }
    done("changing back", worker.run(|| identity::set_effective_uid(NOBODY))?)?;
    send(TransactionFlags::CALL)?;
    become_root()?;
    expect("the euid of a call of a thread of another user", server.echo()?.sender_euid, euid)?;
    client.start_call(handle, 1, b"")?;
    server.on(&other_user::thread(kit)?, |server| {
        server.enter_looper()?;
        server.echo()
    })?;
    expect("the euid of its reply", client.ending()?.reply()?.sender_euid, euid)?;
    if kit.is_embedded() { kit.differs("the euid is that of the process when it opened") } else { Ok(()) }
}

/// The security context delivered with a call.
fn context(server: &RawProcess, call: &Delivery) -> Result<String, Stop> {
    let start = required(call.security_context, || "a call without a security context".into())?;
    let byte = |address| server.conn.lent(address, 1).map_or(0, |bytes| bytes[0]);
    let text: Vec<u8> = (start..).map(byte).take_while(|&byte| byte != 0).collect();
    Ok(String::from_utf8_lossy(&text).into_owned())
}

fn id_04_the_context_of_the_opener(kit: &Kit) -> Verdict {
    let asking = Node::number(1).flags(Node::number(1).flags | flat::TXN_SECURITY_CTX);
    let Pair { server, client, handle, .. } = kit.pair_of(kit.server()?, kit.open()?, asking)?;
    client.start_call(handle, 1, b"")?;
    if let Some(got) = client.read_now()? {
        expect_work("a call of a node that asks for security contexts", &got, "FAILED_REPLY")?;
        return skip_unless(false, "no security module here gives a context (OBJ-22)");
    }
    let own = std::fs::read_to_string("/proc/self/attr/current").unwrap_or_default();
    let own = own.trim_end_matches(['\0', '\n']);
    expect("the context of this thread's call", context(&server, &server.read()?.call()?)?.as_str(), own)?;
    server.finish_call()?;
    client.expect_ending("the call", "COMPLETE REPLY")?;
    client.on(&other_user::thread(kit)?, move |client| client.start_call(handle, 1, b""))?;
    let call = server.read()?.call()?;
    expect("the context of another user's thread", context(&server, &call)?.as_str(), own)?;
    expect("the euid of that thread (ID-03)", call.sender_euid, if by_thread(kit) { NOBODY } else { 0 })
}

fn id_05_nobody_forges_an_identity(kit: &Kit) -> Verdict {
    let Pair { server, client, handle, .. } = kit.pair()?;
    let forged = |handle: Handle, flags| TransactionData {
        target: handle.0.into(),
        flags,
        sender_pid: 1,
        sender_euid: NOBODY - 1,
        ..Default::default()
    };
    let send = |process: &RawProcess, word: u32, data: TransactionData| process.write_raw(word, &data);
    send(&client, bc::TRANSACTION, forged(handle, tf::ONE_WAY))?;
    client.expect_read("a forged oneway call", "COMPLETE")?;
    let oneway = server.read()?.call()?;
    expect("who sent it", (oneway.sender_pid, Some(oneway.sender_euid)), (0, kit.euid()))?;
    server.free(&oneway)?;
    send(&client, bc::TRANSACTION, forged(handle, 0))?;
    let call = server.read()?.call()?;
    expect("who sent a forged call", (call.sender_pid, Some(call.sender_euid)), (own_pid(), kit.euid()))?;
    send(&server, bc::REPLY, forged(Handle(0), 0))?;
    let reply = client.ending()?.reply()?;
    expect("who sent a forged reply", (reply.sender_pid, Some(reply.sender_euid)), (0, kit.euid()))
}
