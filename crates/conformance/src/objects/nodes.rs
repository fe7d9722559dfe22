//! Contract section 8: nodes and handles in payloads.

use crate::objects::fds::taken;
use crate::payload_calls::refused;
use crate::prelude::*;

/// Whether a handle can be called.
pub(super) fn can_call(process: &RawProcess, handle: Handle) -> Result<bool, Stop> {
    process.send_oneway(handle, 5, b"")?;
    match process.read()?.work().as_str() {
        "COMPLETE" => Ok(true),
        "FAILED_REPLY" => Ok(false),
        other => Err(Stop::Fail(format!("a oneway call: expected COMPLETE or FAILED_REPLY, got {other:?}"))),
    }
}

pub(super) fn obj_03_a_node_becomes_a_handle(kit: &Kit) -> Verdict {
    const FLAGS: u32 = 0x00ab_0113;
    for (kind, want) in [(object::BINDER, object::HANDLE), (object::WEAK_BINDER, object::WEAK_HANDLE)] {
        let pair = kit.pair()?;
        let node = FlatBinderObject { kind, flags: FLAGS, binder: 0xdead_beef_0000_1230, cookie: u64::MAX };
        let call = pair.deliver(&Draft::with(&[9; 8]).object(&node))?;
        let got: FlatBinderObject = pair.server.arrived(&call, 8)?;
        expect("the type", got.kind, want)?;
        expect("the flags", got.flags, FLAGS)?;
        expect("the cookie", got.cookie, 0)?;
        expect("the handle, a process's first, and the upper half of its word", got.binder, 1)?;
        let callable = can_call(&pair.server, Handle(1))?;
        expect("whether it can be called", callable, want == object::HANDLE)?;
    }
    Ok(())
}

/// Whether the pair's node accepts a descriptor.
fn takes_fds(kit: &Kit, pair: &Pair) -> Result<bool, Stop> {
    let draft = Draft::of(&fd(1));
    if let Ok(()) = pair.refused(kit, "a descriptor", &draft, "EPERM", Some("EPERM")) {
        return Ok(false);
    }
    let call = pair.server.read()?.call()?;
    drop(taken(&pair.server, &call, 0)?);
    pair.conclude(&call)?;
    Ok(true)
}

pub(super) fn obj_04_the_first_send_fixes_the_flags(kit: &Kit) -> Verdict {
    const ACCEPTS_FDS: u32 = 0x100;
    for (first, later) in [(0, ACCEPTS_FDS), (ACCEPTS_FDS, 0)] {
        let node = Node::number(1).flags(first);
        let pair = kit.pair_of(kit.server()?, kit.open()?, node)?;
        let takes = first == ACCEPTS_FDS;
        expect("whether the node takes descriptors", takes_fds(kit, &pair)?, takes)?;
        let again = kit.hand_over(&pair.server, &pair.client, node.flags(later))?;
        expect("the handle of the node sent again", again, pair.handle)?;
        expect("the same after it was sent with other flags", takes_fds(kit, &pair)?, takes)?;
    }
    Ok(())
}

pub(super) fn obj_05_a_ptr_has_one_cookie(kit: &Kit) -> Verdict {
    let Pair { server, client: _client, node, .. } = kit.pair()?;
    for kind in [object::BINDER, object::WEAK_BINDER] {
        let draft = Draft::of(&flat_object(kind, node.ptr, node.cookie + 1)).bytes(&[0; 8]);
        let what = "a known ptr with another cookie";
        refused(kit, what, &server, Handle::CONTEXT_MANAGER, &draft, ("EINVAL", Some("EINVAL")))?;
    }
    Ok(())
}

pub(super) fn obj_06_a_handle_becomes_what_the_receiver_has(kit: &Kit) -> Verdict {
    let pair = kit.pair()?;
    let mine = u64::from(pair.handle.0);
    for (kind, want) in [(object::HANDLE, object::BINDER), (object::WEAK_HANDLE, object::WEAK_BINDER)] {
        let call = pair.deliver(&Draft::of(&flat_object(kind, mine, 77)))?;
        let got: FlatBinderObject = pair.server.arrived(&call, 0)?;
        expect("at the owner, type, ptr and cookie", (got.kind, got.binder, got.cookie), {
            (want, pair.node.ptr, pair.node.cookie)
        })?;
        pair.conclude(&call)?;
    }
    // A third process that knows the node by another handle than the sender.
    let third = kit.server()?;
    kit.hand_over(&pair.server, &third, Node::number(8))?;
    let Pair { server, client, node, .. } = pair;
    let to_third = kit.pair_of(third, client, Node::number(7))?;
    for kind in [object::HANDLE, object::WEAK_HANDLE] {
        let call = to_third.deliver(&Draft::of(&flat_object(kind, mine, 77)))?;
        let got: FlatBinderObject = to_third.server.arrived(&call, 0)?;
        expect("at a third process, type and cookie", (got.kind, got.cookie), (kind, 0))?;
        ensure(got.binder != mine, || format!("the third process got the sender's number {mine}"))?;
        if kind == object::HANDLE {
            to_third.server.send_oneway(Handle(got.binder as u32), 6, b"")?;
            expect("what the third process then calls", server.read()?.call()?.node, node.names().0)?;
            to_third.server.read()?;
        }
        to_third.conclude(&call)?;
    }
    Ok(())
}

pub(super) fn obj_07_passing_on_needs_a_count(kit: &Kit) -> Verdict {
    let pair = kit.pair()?;
    Kit::write_leave(&pair.server, object::WEAK_BINDER, Node::number(2), 2)?;
    let weak = u64::from(kit.fetch(&pair.client, 2)?.0);
    pair.server.read()?;
    for kind in [object::HANDLE, object::WEAK_HANDLE] {
        let unknown = Draft::of(&flat_object(kind, 4000, 0));
        pair.refused(kit, "a handle that does not exist", &unknown, "EINVAL", Some("ENOENT"))?;
        let strong = Draft::of(&flat_object(kind, pair.handle.0.into(), 0));
        pair.conclude(&pair.deliver(&strong)?)?;
    }
    let strongly = Draft::of(&flat_object(object::HANDLE, weak, 0));
    pair.refused(kit, "a weak handle, passed on as a strong one", &strongly, "EINVAL", None)?;
    let call = pair.deliver(&Draft::of(&flat_object(object::WEAK_HANDLE, weak, 0)))?;
    let got: FlatBinderObject = pair.server.arrived(&call, 0)?;
    expect("a weak handle, passed on weakly", got.kind, object::WEAK_BINDER)?;
    pair.conclude(&call)
}

pub(super) fn obj_08_each_occurrence_is_a_count(kit: &Kit) -> Verdict {
    let node = flat_object(object::BINDER, 0x5000, 1);
    let twice = Draft::of(&node).object(&node);
    let delivered = |pair: &Pair, draft: &Draft| {
        let call = pair.deliver(draft)?;
        let [one, two]: [FlatBinderObject; 2] = pair.server.arrived(&call, 0)?;
        expect("the handles of one node listed twice", two.binder, one.binder)?;
        Ok::<_, Stop>((call, Handle(one.binder as u32)))
    };
    let pair = kit.pair()?;
    let (_call, handle) = delivered(&pair, &twice)?;
    pair.server.write(|c| c.release(handle))?;
    expect("calling it after one RELEASE", can_call(&pair.server, handle)?, true)?;
    pair.server.write(|c| c.release(handle))?;
    expect("calling it after two", can_call(&pair.server, handle)?, false)?;

    let pair = kit.pair()?;
    let (call, handle) = delivered(&pair, &twice)?;
    pair.server.free(&call)?;
    expect("calling it after FREE_BUFFER", can_call(&pair.server, handle)?, false)?;

    let pair = kit.pair()?;
    let (call, handle) = delivered(&pair, &twice)?;
    pair.server.write(|c| c.acquire(handle))?;
    pair.conclude(&call)?;
    let (call, again) = delivered(&pair, &twice)?;
    expect("the handle of a node that the process holds", again, handle)?;
    pair.conclude(&call)?;
    expect("calling it with a count of its own", can_call(&pair.server, handle)?, true)?;
    pair.server.write(|c| c.release(handle))?;
    expect("calling it without", can_call(&pair.server, handle)?, false)
}
