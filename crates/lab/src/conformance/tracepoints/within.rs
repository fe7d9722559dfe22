//! Room: contract section 18, what the driver traces of its own working: buffers, objects, pages,
//! reports, numbers.
//! Not here: calls, ioctls and waits (`tracepoints`).

use std::os::fd::AsRawFd;

use abi::codes::object;
use abi::layout::{FdObject, FlatBinderObject};
use abi::{Handle, Payload, TransactionFlags};
use zerocopy::{FromZeros, IntoBytes};

use super::super::item::{Verdict, done, ensure, expect};
use super::super::kit::{Kit, Pair};
use super::super::party::{Node, Party, expect_work};
use super::super::recorder::{layout, names};
use super::{ONLY_C, SIZES, Scene, TRANSACTION, expect_layout, ids, only_one};

pub(super) fn tp_05_buffers_are_traced(kit: &Kit) -> Verdict {
    kit.not_in_rust()?;
    let scene = Scene::new(kit)?;
    let fields = ["debug_id", "data_size", "offsets_size", "extra_buffers_size"];
    for event in ["alloc_buf", "buffer_release", "failed_buffer_release", "update_buffer_release"] {
        expect_layout(kit, &format!("binder_transaction_{event}"), &fields)?;
    }
    scene.call(1)?;
    let (sent, allocated) = (
        scene.traced("binder_transaction", TRANSACTION)?,
        scene.traced("binder_transaction_alloc_buf", SIZES)?,
    );
    expect("the ids of buffers", ids(&allocated), ids(&sent))?;
    for buffer in &allocated {
        let sizes = ["data", "offsets", "extra"].map(|name| buffer.text(name));
        expect("the sizes of a buffer", sizes, ["8", "0", "0"])?;
    }
    let released = scene.traced("binder_transaction_buffer_release", SIZES)?;
    expect("the ids released", ids(&released), ids(&sent))?;
    // No object starts with such bytes: the buffer is there by then.
    let Pair { client, handle, .. } = &scene.pair;
    let payload = Payload { data: &[0xee; 32], offsets: &[0], ..Payload::default() };
    let got = client.call(*handle, 1, TransactionFlags::CALL, payload)?;
    expect_work("a call with a broken object", &got, "FAILED_REPLY")?;
    let failed = only_one(scene.traced("binder_transaction_failed_buffer_release", SIZES)?, "a failed call")?;
    expect("its sizes", (failed.text("data"), failed.text("offsets")), ("32", "8"))
}

/// Sends one object, and has it delivered.
fn send_object(from: &Party, target: Handle, to: &Party, object: &[u8]) -> Verdict {
    let payload = Payload { data: object, offsets: &[0], ..Payload::default() };
    from.write(|c| c.transaction(target, 1, TransactionFlags::ONEWAY, payload))?;
    // What the receiver itself has sent may be acknowledged before.
    loop {
        if let Ok(call) = to.read()?.call() {
            return to.free(&call);
        }
    }
}

pub(super) fn tp_10_objects_are_traced(kit: &Kit) -> Verdict {
    let scene = Scene::new(kit)?;
    let Pair { server, client, handle, node } = &scene.pair;
    let third = kit.server()?;
    let to_client = kit.hand_over(client, server, Node::number(2))?;
    let to_third = kit.hand_over(&third, client, Node::number(3))?;
    scene.recorder.restart()?;
    let one = |name: &str, template: &str| {
        only_one(scene.traced(&format!("binder_transaction_{name}"), template)?, name)
    };

    let sent = done("opening a file", std::fs::File::open("/proc/self/status"))?;
    let fd = FdObject { kind: object::FD, fd: sent.as_raw_fd() as u64, ..FdObject::new_zeroed() };
    send_object(client, *handle, server, fd.as_bytes())?;
    // Where the number stands in the object, which is at 0.
    if kit.is_embedded() {
        let order = scene.order()?;
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

    let flat = |kind, binder, cookie| FlatBinderObject { kind, flags: 0x113, binder, cookie };
    let new = Node::number(4);
    send_object(server, to_client, client, flat(object::BINDER, new.ptr, new.cookie).as_bytes())?;
    let event = one(
        "node_to_ref",
        "transaction={id} node={node} src_ptr=0x{ptr} ==> dest_ref={ref} dest_desc={desc}",
    )?;
    expect("the node passed on", event.hex("ptr"), Ok(new.ptr))?;
    expect("the handle it became", event.number::<u32>("desc")? > handle.0, true)?;
    send_object(client, *handle, server, flat(object::HANDLE, handle.0.into(), 0).as_bytes())?;
    let event = one(
        "ref_to_node",
        "transaction={id} node={node} src_ref={ref} src_desc={desc} ==> dest_ptr=0x{ptr}",
    )?;
    expect(
        "a handle that goes home",
        (event.hex("ptr"), event.number("desc")),
        (Ok(node.ptr), Ok(handle.0)),
    )?;
    let its_ref = event.text("ref").to_owned();
    send_object(client, to_third, &third, flat(object::HANDLE, handle.0.into(), 0).as_bytes())?;
    let template =
        "transaction={id} node={node} src_ref={ref} src_desc={desc} ==> dest_ref={to} dest_desc={new}";
    let event = one("ref_to_ref", template)?;
    expect(
        "a handle passed on",
        (event.text("ref"), event.number("desc")),
        (its_ref.as_str(), Ok(handle.0)),
    )?;
    ensure(event.text("to") != its_ref, || "the receiver has the sender's reference".into())
}

pub(super) fn tp_11_pages_are_traced(kit: &Kit) -> Verdict {
    kit.not_in_rust()?;
    let scene = Scene::new(kit)?;
    if kit.is_embedded() {
        scene.oneway(1)?;
        let order = scene.order()?;
        let pages = |name: &&String| name.contains("page") || name.contains("lru");
        expect("marks of pages", order.iter().filter(pages).count(), 0)?;
        return kit.differs("no pages come and go: the receiving area is memory like any other");
    }
    let range = ["proc", "allocate", "offset", "size"].map(str::to_owned).to_vec();
    expect("the fields of binder_update_page_range", layout(kit, "binder_update_page_range")?, range)?;
    for event in ONLY_C.iter().filter(|name| name.ends_with("_start") || name.ends_with("_end")) {
        expect(event, layout(kit, event)?, vec!["proc".to_owned(), "page_index".to_owned()])?;
    }
    let pid = std::process::id().to_string();
    scene.oneway(1)?;
    let steps = [
        ("binder_alloc_page_start", "a buffer's first page"),
        ("binder_alloc_page_end", "a buffer's first page"),
        ("binder_free_lru_start", "a page without buffers"),
        ("binder_free_lru_end", "a page without buffers"),
    ];
    for (name, what) in steps {
        let event = only_one(scene.traced(name, "proc={proc} page_index={page}")?, name)?;
        expect(what, (event.text("proc"), event.text("page")), (pid.as_str(), "0"))?;
    }
    let ranges =
        scene.traced("binder_update_page_range", "proc={proc} allocate={new} offset={at} size={size}")?;
    let first = ranges.first().map(|range| ["proc", "new", "at", "size"].map(|name| range.text(name)));
    expect("the range of the first page", first, Some([pid.as_str(), "1", "0", "4096"]))?;
    expect("a range is given up", ranges.iter().any(|range| range.text("new") == "0"), true)?;
    scene.recorder.restart()?;
    scene.oneway(1)?;
    let order = scene.order()?;
    let has = |name: &str| order.iter().any(|one| one == name);
    expect(
        "a page comes back from the list",
        (has("binder_alloc_lru_start"), has("binder_alloc_page_start")),
        (true, false),
    )
}

pub(super) fn tp_12_reports_need_a_listener(kit: &Kit) -> Verdict {
    const REPORT: &str = "binder_netlink_report";
    kit.not_in_rust()?;
    if !kit.is_embedded() && !names(kit)?.iter().any(|name| name == REPORT) {
        // Somewhere between the two; Linux 7.2 has it.
        kit.since(7, 2, "reports of failed calls")?;
    }
    let fields = [
        "context",
        "error",
        "from_pid",
        "from_tid",
        "to_pid",
        "to_tid",
        "is_reply",
        "flags",
        "code",
        "data_size",
    ];
    expect_layout(kit, REPORT, &fields)?;
    let scene = Scene::new(kit)?;
    let Pair { client, handle, .. } = &scene.pair;
    let payload = Payload { data: &vec![0; 8 << 20], ..Payload::default() };
    let got = client.call(*handle, 1, TransactionFlags::CALL, payload)?;
    expect_work("a call that fits no area", &got, "FAILED_REPLY")?;
    expect("reports without a listener", scene.order()?.iter().any(|name| name == REPORT), false)?;
    if kit.is_embedded() {
        return kit.differs("nobody can listen: calls that fail are in a log of the driver's (DBG-04)");
    }
    Ok(())
}

pub(super) fn tp_13_one_counter(kit: &Kit) -> Verdict {
    let scene = Scene::new(kit)?;
    let Pair { server, client, .. } = &scene.pair;
    kit.hand_over(server, client, Node::number(5))?;
    scene.call(1)?;
    let numbers: Vec<i64> = scene
        .traced("binder_transaction", TRANSACTION)?
        .iter()
        .map(|event| event.number("id"))
        .collect::<Result<_, _>>()?;
    if kit.is_embedded() {
        let mut different = numbers.clone();
        different.sort_unstable();
        different.dedup();
        ensure(different.len() == numbers.len() && different[0] > 0, || {
            format!("the ids of transactions are not each its own: {numbers:?}")
        })?;
        return kit.differs("a process takes numbers of the one counter in advance, and ids do not rise");
    }
    ensure(numbers.len() > 2 && numbers.windows(2).all(|two| two[0] < two[1]), || {
        format!("the ids of transactions do not rise: {numbers:?}")
    })?;
    if kit.is_rust() {
        return Ok(());
    }
    let template = "transaction={id} node={node} src_ptr=0x{ptr} ==> dest_ref={ref} dest_desc={desc}";
    let passed = only_one(scene.traced("binder_transaction_node_to_ref", template)?, "a node passed on")?;
    let made: Vec<i64> =
        ["id", "node", "ref"].iter().map(|name| passed.number(name)).collect::<Result<_, _>>()?;
    ensure(made.is_sorted_by(|a, b| a < b) && made[2] < numbers[1] && made[0] == numbers[0], || {
        format!("a transaction, its node, its reference and what came later: {made:?}, {numbers:?}")
    })
}
