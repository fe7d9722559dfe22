//! Contract section 18: events inside the driver: buffers, objects, pages, reports, ID assignment.
//! Not here: calls, ioctls and waits (`tracepoints`).

use std::os::fd::AsRawFd;

use crate::prelude::*;
use crate::recorder::names;
use crate::tracepoints::{ONLY_C, SIZES, Setup, TRANSACTION, expect_layout, ids, only_one};

pub(super) fn tp_05_buffers_are_traced(kit: &Kit) -> Verdict {
    kit.not_in_rust()?;
    let setup = Setup::new(kit)?;
    for event in ["alloc_buf", "buffer_release", "failed_buffer_release", "update_buffer_release"] {
        let fields = "debug_id data_size offsets_size extra_buffers_size";
        expect_layout(kit, &format!("binder_transaction_{event}"), fields)?;
    }
    setup.call(1)?;
    let (sent, allocated) = (
        setup.traced("binder_transaction", TRANSACTION)?,
        setup.traced("binder_transaction_alloc_buf", SIZES)?,
    );
    expect("the ids of buffers", ids(&allocated), ids(&sent))?;
    for buffer in &allocated {
        let sizes = buffer.texts(["data", "offsets", "extra"]);
        expect("the sizes of a buffer", sizes, ["8", "0", "0"])?;
    }
    let released = setup.traced("binder_transaction_buffer_release", SIZES)?;
    expect("the ids released", ids(&released), ids(&sent))?;
    // These bytes are no object, so the buffer exists by then.
    let Pair { client, handle, .. } = &setup.pair;
    let payload = Payload { data: &[0xee; 32], offsets: &[0], ..Payload::default() };
    expect_work("a call with a broken object", &client.call_with(*handle, 1, payload)?, "FAILED_REPLY")?;
    let failed = only_one(setup.traced("binder_transaction_failed_buffer_release", SIZES)?, "a failed call")?;
    expect("its sizes", (failed.text("data"), failed.text("offsets")), ("32", "8"))
}

/// Sends one object and has it delivered.
fn send_object(from: &RawProcess, target: Handle, to: &RawProcess, object: &Draft) -> Verdict {
    from.send(target, 1, TransactionFlags::ONEWAY, object.payload())?;
    // Completions of the receiver's own commands may come before.
    loop {
        if let Ok(call) = to.read()?.call() {
            return to.free(&call);
        }
    }
}

pub(super) fn tp_10_objects_are_traced(kit: &Kit) -> Verdict {
    let setup = Setup::new(kit)?;
    let Pair { server, client, handle, node } = &setup.pair;
    let third = kit.server()?;
    let to_client = kit.hand_over(client, server, Node::number(2))?;
    let to_third = kit.hand_over(&third, client, Node::number(3))?;
    setup.recorder.restart()?;
    let one = |name: &str, template: &str| {
        only_one(setup.traced(&format!("binder_transaction_{name}"), template)?, name)
    };

    let sent = done("opening a file", std::fs::File::open("/proc/self/status"))?;
    send_object(client, *handle, server, &Draft::of(&fd(sent.as_raw_fd() as u64)))?;
    // Offset of the handle in the object, which is at 0.
    if kit.is_embedded() {
        let order = setup.order()?;
        let objects = ["fd_send", "fd_recv", "_to_ref", "_to_node"];
        let told = |name: &&String| objects.iter().any(|object| name.ends_with(object));
        expect("marks of objects", order.iter().filter(told).count(), 0)?;
        return kit.differs("what becomes of objects is not traced");
    }
    let left = one("fd_send", "transaction={id} src_fd={fd} offset={offset}")?;
    expect("the descriptor sent", (left.number("fd"), left.text("offset")), (Ok(sent.as_raw_fd()), "8"))?;
    let came = one("fd_recv", "transaction={id} dest_fd={fd} offset={offset}")?;
    expect("the descriptor received", (came.text("id"), came.text("offset")), (left.text("id"), "8"))?;
    ensure(came.number::<i32>("fd")? > sent.as_raw_fd(), || "no new descriptor was received".into())?;
    if kit.is_rust() {
        return Ok(());
    }

    let new = Node::number(4);
    send_object(server, to_client, client, &Draft::of(&new.object(object::BINDER)))?;
    let event = one(
        "node_to_ref",
        "transaction={id} node={node} src_ptr=0x{ptr} ==> dest_ref={ref} dest_desc={desc}",
    )?;
    expect("the node passed on", event.hex("ptr"), Ok(new.ptr))?;
    expect("the handle it became", event.number::<u32>("desc")? > handle.0, true)?;
    send_object(client, *handle, server, &Draft::of(&handle_object(*handle)))?;
    let event = one(
        "ref_to_node",
        "transaction={id} node={node} src_ref={ref} src_desc={desc} ==> dest_ptr=0x{ptr}",
    )?;
    let home = (event.hex("ptr"), event.number("desc"));
    expect("a handle that goes home", home, (Ok(node.ptr), Ok(handle.0)))?;
    let its_ref = event.text("ref").to_owned();
    send_object(client, to_third, &third, &Draft::of(&handle_object(*handle)))?;
    let template =
        "transaction={id} node={node} src_ref={ref} src_desc={desc} ==> dest_ref={to} dest_desc={new}";
    let event = one("ref_to_ref", template)?;
    let passed_on = (event.text("ref"), event.number("desc"));
    expect("a handle passed on", passed_on, (its_ref.as_str(), Ok(handle.0)))?;
    ensure(event.text("to") != its_ref, || "the receiver has the sender's reference".into())
}

pub(super) fn tp_11_pages_are_traced(kit: &Kit) -> Verdict {
    kit.not_in_rust()?;
    let setup = Setup::new(kit)?;
    if kit.is_embedded() {
        setup.oneway(1)?;
        let order = setup.order()?;
        let pages = |name: &&String| name.contains("page") || name.contains("lru");
        expect("marks of pages", order.iter().filter(pages).count(), 0)?;
        return kit.differs("no pages come and go: the receiving area is memory like any other");
    }
    expect_layout(kit, "binder_update_page_range", "proc allocate offset size")?;
    for event in ONLY_C.iter().filter(|name| name.ends_with("_start") || name.ends_with("_end")) {
        expect_layout(kit, event, "proc page_index")?;
    }
    let pid = std::process::id().to_string();
    setup.oneway(1)?;
    let steps = [
        ("binder_alloc_page_start", "a buffer's first page"),
        ("binder_alloc_page_end", "a buffer's first page"),
        ("binder_free_lru_start", "a page without buffers"),
        ("binder_free_lru_end", "a page without buffers"),
    ];
    for (name, what) in steps {
        let event = only_one(setup.traced(name, "proc={proc} page_index={page}")?, name)?;
        expect(what, (event.text("proc"), event.text("page")), (pid.as_str(), "0"))?;
    }
    let ranges =
        setup.traced("binder_update_page_range", "proc={proc} allocate={new} offset={at} size={size}")?;
    let first = ranges.first().map(|range| range.texts(["proc", "new", "at", "size"]));
    expect(
        "the range of the first page",
        first,
        Some([pid.as_str(), "1", "0", &sys::page::size().to_string()]),
    )?;
    expect("a range is given up", ranges.iter().any(|range| range.text("new") == "0"), true)?;
    setup.recorder.restart()?;
    setup.oneway(1)?;
    let order = setup.order()?;
    let has = |name: &str| order.iter().any(|one| one == name);
    let found = (has("binder_alloc_lru_start"), has("binder_alloc_page_start"));
    expect("a page comes back from the list", found, (true, false))
}

pub(super) fn tp_12_reports_need_a_listener(kit: &Kit) -> Verdict {
    const REPORT: &str = "binder_netlink_report";
    kit.not_in_rust()?;
    if !kit.is_embedded() && !names(kit)?.iter().any(|name| name == REPORT) {
        // Introduced somewhere between these releases; Linux 7.2 has it.
        kit.since(7, 2, "reports of failed calls")?;
    }
    let fields = "context error from_pid from_tid to_pid to_tid is_reply flags code data_size";
    expect_layout(kit, REPORT, fields)?;
    let setup = Setup::new(kit)?;
    setup.pair.client.start_call(setup.pair.handle, 1, &vec![0; 8 << 20])?;
    setup.pair.client.expect_ending("a call that fits no area", "FAILED_REPLY")?;
    expect("reports without a listener", setup.order()?.iter().any(|name| name == REPORT), false)?;
    if kit.is_embedded() {
        return kit
            .differs("there is no netlink interface: failed calls are in a log of the driver (DBG-04)");
    }
    Ok(())
}

pub(super) fn tp_13_one_counter(kit: &Kit) -> Verdict {
    let setup = Setup::new(kit)?;
    let Pair { server, client, .. } = &setup.pair;
    kit.hand_over(server, client, Node::number(5))?;
    setup.call(1)?;
    let events = setup.traced("binder_transaction", TRANSACTION)?;
    let numbers: Vec<i64> = events.iter().map(|event| event.number("id")).collect::<Result<_, _>>()?;
    if kit.is_embedded() {
        let mut different = numbers.clone();
        different.sort_unstable();
        different.dedup();
        ensure(
            different.len() == numbers.len() && different.first().is_some_and(|least| *least > 0),
            || format!("the ids of transactions are not each its own: {numbers:?}"),
        )?;
        return kit.differs("a process takes numbers of the one counter in advance, and ids do not rise");
    }
    ensure(numbers.len() > 2 && numbers.windows(2).all(|two| two[0] < two[1]), || {
        format!("the ids of transactions do not rise: {numbers:?}")
    })?;
    if kit.is_rust() {
        return Ok(());
    }
    let template = "transaction={id} node={node} src_ptr=0x{ptr} ==> dest_ref={ref} dest_desc={desc}";
    let passed = only_one(setup.traced("binder_transaction_node_to_ref", template)?, "a node passed on")?;
    let made: Vec<i64> =
        ["id", "node", "ref"].iter().map(|name| passed.number(name)).collect::<Result<_, _>>()?;
    ensure(made.is_sorted_by(|a, b| a < b) && made[2] < numbers[1] && made[0] == numbers[0], || {
        format!("a transaction, its node, its reference and what came later: {made:?}, {numbers:?}")
    })
}
