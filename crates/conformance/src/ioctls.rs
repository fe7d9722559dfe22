//! Contract section 2: ioctls other than WRITE_READ (IOC).

use std::os::unix::process::CommandExt;

use sys::binder_fd::Access;

use crate::prelude::*;
use crate::test_manager;
use crate::write_read::edges;

items! {
    "IOC-01" Both [seen differs] ioc_01_unknown_requests_are_refused "unknown and unsupported requests give EINVAL";
    "IOC-02" C [seen differs] ioc_02_null_pointers_are_refused "a null argument is refused, depending on the request";
    "IOC-03" Both [free] ioc_03_some_arguments_do_not_matter "some requests ignore their argument";
    "IOC-04" Both [seen] ioc_04_node_info_for_ref "only the manager may query a node's reference counts";
    "IOC-05" Both [] ioc_05_own_nodes_are_listed_upwards "own nodes are listed in ascending order, ptr 0 never";
    "IOC-06" Both [seen] ioc_06_the_extended_error_is_read_once "reading the extended error clears it";
    "IOC-07" Both [] ioc_07_freeze_takes_all_of_a_process "FREEZE reaches every open of a process, without privilege";
    "IOC-08" C [seen] ioc_08_freezing_a_stranger "FREEZE of a pid without binder gives EINVAL";
    "IOC-09" Both [] ioc_09_thread_exit_forgets_the_thread "THREAD_EXIT makes the thread a new one";
    "IOC-10" Both [] ioc_10_an_argument_is_as_long_as_it_says "a request reads no more than its argument";
    "IOC-11" Both [] ioc_11_an_answer_may_need_a_new_page "an answer is stored in memory that is not there yet";
    "IOC-12" Both [] ioc_12_an_answer_that_cannot_be_stored in edges "an answer that cannot be stored is EFAULT";
}

fn ioc_01_unknown_requests_are_refused(kit: &Kit) -> Verdict {
    let process = kit.open()?;
    let Some(device) = process.conn.device() else {
        // Closest equivalent without a device: an unknown command.
        process.expect_invalid("an unknown command", |c| c.append(&0x4004_63ff_u32.to_ne_bytes()))?;
        return kit.differs("requests are functions of a library, so none is unknown");
    };
    let unknown = ioctl::VERSION + 90;
    for (name, request) in [
        ("an unknown request", unknown),
        ("SET_IDLE_TIMEOUT", ioctl::SET_IDLE_TIMEOUT),
        ("SET_IDLE_PRIORITY", ioctl::SET_IDLE_PRIORITY),
    ] {
        expect_errno(name, &device.raw(request, Some(&mut [0; 8])), "EINVAL")?;
    }
    Ok(())
}

fn ioc_02_null_pointers_are_refused(kit: &Kit) -> Verdict {
    let process = kit.open()?;
    let Some(device) = process.conn.device() else { return null_payloads_are_refused(kit) };
    for (name, request, c) in [
        ("WRITE_READ", ioctl::WRITE_READ, "EFAULT"),
        ("FREEZE", ioctl::FREEZE, "EFAULT"),
        ("GET_FROZEN_INFO", ioctl::GET_FROZEN_INFO, "EFAULT"),
        ("GET_NODE_DEBUG_INFO", ioctl::GET_NODE_DEBUG_INFO, "EFAULT"),
        ("GET_NODE_INFO_FOR_REF", ioctl::GET_NODE_INFO_FOR_REF, "EFAULT"),
        ("ENABLE_ONEWAY_SPAM_DETECTION", ioctl::ENABLE_ONEWAY_SPAM_DETECTION, "EFAULT"),
        ("GET_EXTENDED_ERROR", ioctl::GET_EXTENDED_ERROR, "EFAULT"),
        ("SET_MAX_THREADS", ioctl::SET_MAX_THREADS, "EINVAL"),
        ("SET_CONTEXT_MGR_EXT", ioctl::SET_CONTEXT_MGR_EXT, "EINVAL"),
        ("VERSION", ioctl::VERSION, "EINVAL"),
    ] {
        let what = format!("{name} with a null pointer");
        expect_refused(kit, &what, &device.raw(request, None), c, "EFAULT")?;
    }
    Ok(())
}

/// Without a device there are no pointers to requests, only to payloads.
fn null_payloads_are_refused(kit: &Kit) -> Verdict {
    let Pair { server, client, handle, .. } = kit.pair()?;
    let call = TransactionData { target: handle.0.into(), data_size: 8, ..TransactionData::default() };
    client.write_raw(bc::TRANSACTION, &call)?;
    kit.expect_failed(&client, &client.ending()?, "EFAULT", "EFAULT")?;
    server.expect_silence("of a call that was refused")?;
    kit.differs("requests are functions of a library that take no pointers; a payload at 0 is EFAULT")
}

fn ioc_03_some_arguments_do_not_matter(kit: &Kit) -> Verdict {
    let process = kit.open()?;
    let nothing = process.conn.write_read(&mut Exchange::new(&[], &mut []));
    expect_errno("WRITE_READ with nothing to write or read", &nothing, "OK")?;
    for enable in [true, false] {
        let result = process.conn.enable_oneway_spam_detection(enable);
        expect_errno("ENABLE_ONEWAY_SPAM_DETECTION", &result, "OK")?;
    }
    let Some(device) = process.conn.device() else { return Ok(()) };
    let spam = device.raw(ioctl::ENABLE_ONEWAY_SPAM_DETECTION, Some(&mut 77u32.to_ne_bytes()));
    expect_errno("ENABLE_ONEWAY_SPAM_DETECTION of 77", &spam, "OK")?;
    expect_errno("THREAD_EXIT with a null pointer", &device.raw(ioctl::THREAD_EXIT, None), "OK")?;
    let manager = patiently(|| device.raw(ioctl::SET_CONTEXT_MGR, None));
    expect_errno("SET_CONTEXT_MGR with a null pointer", &manager, "OK")
}

/// The context manager queries the driver about a handle of its own.
fn info(
    kit: &Kit,
    client: &RawProcess,
    number: u64,
    request: NodeInfoForRef,
) -> Result<(String, NodeInfoForRef), Stop> {
    let data = [number.as_bytes(), request.as_bytes()].concat();
    let reply = kit.ask(client, test_manager::INFO, &data)?.reply()?;
    let bytes = client.bytes(&reply)?;
    client.free(&reply)?;
    let broken = || Stop::Fail("the suite's context manager gave a short answer".into());
    let (errno, rest) = i64::read_from_prefix(&bytes).map_err(|_| broken())?;
    let (info, _) = NodeInfoForRef::read_from_prefix(rest).map_err(|_| broken())?;
    let name = if errno == 0 { "OK" } else { sys::errno::name(errno as i32).unwrap_or("?") };
    Ok((name.to_owned(), info))
}

fn ioc_04_node_info_for_ref(kit: &Kit) -> Verdict {
    let (server, client) = (kit.server()?, kit.open()?);
    let (strong, weak) = (Node::number(1), Node::number(2));
    kit.leave(&server, strong, 1)?;
    Kit::write_leave(&server, object::WEAK_BINDER, weak, 2)?;
    // Fetching it ensures that both have arrived.
    let held = (kit.fetch(&client, 1)?, kit.fetch(&client, 2)?);
    let ask = |number, request| info(kit, &client, number, request);
    let plain = NodeInfoForRef::default();
    let (errno, with_client) = ask(1, plain)?;
    expect("GET_NODE_INFO_FOR_REF of a strong handle", errno.as_str(), "OK")?;
    client.write(|c| c.release(held.0))?;
    let (_, without) = ask(1, plain)?;
    let both = with_client.strong_count;
    expect("strong references once another holder let go", without.strong_count + 1, both)?;
    ensure(without.strong_count >= 1, || format!("the manager's own reference is not counted: {without:?}"))?;
    expect("of a weak handle", ask(2, plain)?.0.as_str(), kit.by_driver("EINVAL", "OK"))?;
    let unknown = NodeInfoForRef { handle: 4000, ..plain };
    let (errno, _) = ask(test_manager::AS_GIVEN, unknown)?;
    expect("of an unknown handle", errno.as_str(), kit.by_driver("EINVAL", "ENOENT"))?;
    for dirty in [
        NodeInfoForRef { strong_count: 1, ..plain },
        NodeInfoForRef { weak_count: 1, ..plain },
        NodeInfoForRef { reserved1: 1, ..plain },
        NodeInfoForRef { reserved2: 1, ..plain },
        NodeInfoForRef { reserved3: 1, ..plain },
    ] {
        expect(&format!("with {dirty:?}"), ask(1, dirty)?.0.as_str(), "EINVAL")?;
    }
    let by_another = client.conn.node_info_for_ref(NodeInfoForRef { handle: held.1.0, ..plain });
    expect_errno("by anyone but the manager", &by_another, "EPERM")?;
    calls_hold_their_target(kit, &client)
}

fn calls_hold_their_target(kit: &Kit, asker: &RawProcess) -> Verdict {
    let (server, caller, number) = (kit.server()?, kit.open()?, 3);
    kit.leave(&server, Node::number(number), number)?;
    let handle = kit.fetch(&caller, number)?;
    let strong = || -> Result<u32, Stop> {
        let (errno, info) = info(kit, asker, number, NodeInfoForRef::default())?;
        expect("GET_NODE_INFO_FOR_REF of a called node", errno.as_str(), "OK").map(|()| info.strong_count)
    };
    let before = strong()?;
    // The later ones may take another way than the first.
    for _ in 0..3 {
        caller.start_call(handle, 1, b"")?;
        expect("strong references with an unread call", strong()?, before + 1)?;
        let call = server.read()?.call()?;
        expect("strong references while it is served", strong()?, before + 1)?;
        server.reply(Payload::default())?;
        server.expect_read("what the replier reads", "COMPLETE")?;
        caller.free(&caller.ending()?.reply()?)?;
        expect("strong references before its buffer is freed", strong()?, before + 1)?;
        server.free(&call)?;
        expect("strong references behind that", strong()?, before)?;
    }
    Ok(())
}

fn ioc_05_own_nodes_are_listed_upwards(kit: &Kit) -> Verdict {
    let server = kit.server()?;
    let (high, low, zero) = (Node::number(9), Node::number(3), Node { ptr: 0, ..Node::number(0) });
    for (number, node) in (1..).zip([high, low, zero]) {
        kit.leave(&server, node, number)?;
    }
    let above = |ptr| done("GET_NODE_DEBUG_INFO", server.conn.node_debug_info(ptr));
    let first = above(0)?;
    expect("the lowest node", (first.ptr, first.cookie), (low.ptr, low.cookie))?;
    ensure(first.has_strong_ref != 0, || "the lowest node has no strong reference".into())?;
    expect("the node above a ptr below the next", above(high.ptr - 1)?.ptr, high.ptr)?;
    let second = above(low.ptr)?;
    expect("the next node", (second.ptr, second.cookie), (high.ptr, high.cookie))?;
    let none = above(high.ptr)?;
    expect("above the highest", (none.ptr, none.cookie, none.has_strong_ref, none.has_weak_ref), (0, 0, 0, 0))
}

fn ioc_06_the_extended_error_is_read_once(kit: &Kit) -> Verdict {
    let client = kit.open()?;
    expect_work("calling an unknown handle", &client.call(Handle(4000))?, "FAILED_REPLY")?;
    let first = client.extended_error()?;
    expect("the command of the first reading", first.command, br::FAILED_REPLY)?;
    expect("the second reading", client.extended_error()?, ExtendedError { id: 0, command: br::OK, param: 0 })
}

fn ioc_07_freeze_takes_all_of_a_process(kit: &Kit) -> Verdict {
    let Pair { server, client, handle, .. } = kit.pair()?;
    let second = kit.server()?;
    let other = kit.hand_over(&second, &client, Node::number(2))?;
    let frozen = |what: &str| -> Verdict {
        [handle, other]
            .into_iter()
            .try_for_each(|target| expect_work(what, &client.call(target)?, "FROZEN_REPLY"))
    };
    kit.freeze_self(&client, true)?;
    frozen("calling either open of a frozen process")?;
    kit.freeze_self(&client, false)?;
    client.round_trip("calling a thawed process", handle, &server)?;
    let (true, Some(device)) = (kit.is_root(), client.conn.device()) else { return Ok(()) };
    let mut helper = kit.helper_with(device, "freeze-inherited", &[&std::process::id().to_string()])?;
    helper.uid(65534);
    expect("FREEZE by an unprivileged process", kit.run_helper(helper)?.as_str(), "OK")?;
    frozen("calling after that")?;
    kit.freeze_self(&client, false)
}

fn ioc_08_freezing_a_stranger(kit: &Kit) -> Verdict {
    kit.since(5, 13, "BINDER_FREEZE")?;
    let process = kit.open()?;
    // Above every possible pid.
    const NOBODY: u32 = 1 << 30;
    let freeze = process.conn.freeze(FreezeInfo { pid: NOBODY, enable: 1, timeout_ms: 0 });
    expect_refused(kit, "FREEZE of a process without binder", &freeze, "EINVAL", "OK")?;
    expect_errno("GET_FROZEN_INFO of a process without binder", &process.conn.frozen_info(NOBODY), "EINVAL")
}

fn ioc_09_thread_exit_forgets_the_thread(kit: &Kit) -> Verdict {
    let Pair { server, client, handle, .. } = kit.pair()?;
    server.set_max_threads(1)?;
    expect_errno("THREAD_EXIT", &server.conn.thread_exit(), "OK")?;
    expect_errno("THREAD_EXIT of a forgotten thread", &server.conn.thread_exit(), "OK")?;
    client.send_oneway(handle, 1, b"")?;
    // Only a looper is asked to spawn (LP-02), and the Rust driver serves only loopers.
    if !kit.is_rust() {
        let got = server.read()?;
        expect("a read of a thread that is not a looper any more", got.shape().as_str(), "NOOP TRANSACTION")?;
        server.free(&got.call()?)?;
        client.send_oneway(handle, 2, b"")?;
    } else {
        server.expect_silence("a thread that is not a looper any more")?;
    }
    server.write(Commands::enter_looper)?;
    expect("a read of the new looper", server.read()?.shape().as_str(), "SPAWN_LOOPER TRANSACTION")
}

fn ioc_10_an_argument_is_as_long_as_it_says(kit: &Kit) -> Verdict {
    kit.device()?;
    let process = kit.open()?;
    let device = process.device()?;
    let mut requests = vec![("SET_MAX_THREADS", ioctl::SET_MAX_THREADS)];
    if kit.evidence.release >= Release(5, 14) {
        requests.push(("ENABLE_ONEWAY_SPAM_DETECTION", ioctl::ENABLE_ONEWAY_SPAM_DETECTION));
    }
    for (name, request) in requests {
        let what = format!("{name} with its word at the end of a page and nothing behind it");
        expect_errno(&what, &device.raw_on_edge(request, &0_u32.to_ne_bytes(), Access::ReadWrite), "OK")?;
    }
    Ok(())
}

fn ioc_11_an_answer_may_need_a_new_page(kit: &Kit) -> Verdict {
    kit.device()?;
    kit.since(6, 0, "BINDER_GET_EXTENDED_ERROR")?;
    let process = kit.open()?;
    let device = process.device()?;
    let page = sys::page::size();
    // Zeroes in such a number are pages that nobody has touched.
    let mut fresh = vec![0; 64 * page];
    let requests = [("GET_EXTENDED_ERROR", ioctl::GET_EXTENDED_ERROR, 12), ("VERSION", ioctl::VERSION, 4)];
    for (at, (name, request, len)) in (8..).step_by(8).zip(requests) {
        let answer = &mut fresh[at * page..][..len];
        let what = format!("{name} into a page that was never touched");
        expect_errno(&what, &device.raw(request, Some(answer)), "OK")?;
    }
    Ok(())
}
