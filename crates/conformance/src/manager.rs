//! Contract section 12: the context manager (CTX).

use std::os::unix::fs::MetadataExt;
use std::os::unix::process::CommandExt;
use std::time::Instant;

use crate::open::context;
use crate::other_user::{self, NOBODY};
use crate::prelude::*;
use crate::test_manager;

items! {
    "CTX-01" Both [seen differs] ctx_01_there_is_one_manager "a second manager gets EBUSY, whichever process asks";
    "CTX-02" Both [seen free differs] ctx_02_the_first_managers_uid_stays "a later manager with another uid gets EPERM";
    "CTX-03" Both [free] ctx_03_the_managers_node_is_as_given "the manager's node is as given, or all 0";
    "CTX-04" Both [free] ctx_04_without_a_manager_handle_0_is_dead "handle 0 is dead until there is a manager again";
    "CTX-05" C [free] ctx_05_nobody_calls_their_own_manager "handle 0 cannot be called from the manager's own OS process";
}

/// A process of another user tries to manage the context; returns its errno.
fn ask_as_nobody(kit: &Kit, process: &RawProcess) -> Result<String, Stop> {
    let nobody = other_user::thread(kit)?;
    if kit.is_rust() {
        // Only the process that opened the device may use it (OPN-11).
        return process.on(&nobody, |process| Ok(errno(&process.conn.become_context_manager(None))));
    }
    let Some(device) = process.conn.device() else {
        let mut helper = kit.helper("manage", &[]);
        helper.uid(NOBODY);
        return kit.run_helper(helper);
    };
    let mut helper = kit.helper_with(device, "manage-inherited", &[])?;
    helper.uid(NOBODY);
    kit.run_helper(helper)
}

/// Other users cannot even open a context of the embedded driver.
fn strangers_stay_outside(kit: &Kit) -> Verdict {
    let directory = context(kit)?.directory().to_owned();
    let mode = done("the broker's directory", std::fs::metadata(&directory))?.mode() & 0o7777;
    expect("the mode of the broker's directory", mode, 0o700)?;
    if kit.is_root() {
        let said = ask_as_nobody(kit, &kit.open()?)?;
        let refused = said.starts_with("not opened: ") && said.contains(&*directory.to_string_lossy());
        ensure(refused, || format!("another user asked to manage the context, and was told {said:?}"))?;
    }
    kit.differs("another user cannot open the context")
}

fn ctx_01_there_is_one_manager(kit: &Kit) -> Verdict {
    let process = kit.open()?;
    let plain = process.conn.become_context_manager(None);
    expect_errno("SET_CONTEXT_MGR", &plain, "EBUSY")?;
    let ext = process.conn.become_context_manager(Some(FlatBinderObject::new_zeroed()));
    expect_errno("SET_CONTEXT_MGR_EXT", &ext, "EBUSY")?;
    let said = kit.run_helper(kit.helper("manage", &[]))?;
    expect("SET_CONTEXT_MGR of another process", said.as_str(), "EBUSY")?;
    if kit.is_embedded() {
        return strangers_stay_outside(kit);
    }
    expect("SET_CONTEXT_MGR of another user", ask_as_nobody(kit, &process)?.as_str(), "EBUSY")
}

fn ctx_02_the_first_managers_uid_stays(kit: &Kit) -> Verdict {
    let first = kit.open()?;
    kit.become_manager(&first, None)?;
    drop(first);
    if kit.is_embedded() {
        return strangers_stay_outside(kit);
    }
    let (process, start) = (kit.open()?, Instant::now());
    let mut said = ask_as_nobody(kit, &process)?;
    while said == "EBUSY" && !sys::patience::is_over(start, PATIENCE) {
        said = ask_as_nobody(kit, &process)?;
    }
    expect("SET_CONTEXT_MGR of another user after root's", said.as_str(), "EPERM")?;
    kit.become_manager(&process, None)
}

/// Another process calls the manager, which answers; returns what the caller read, and the node called.
fn called(kit: &Kit, manager: &RawProcess, payload: &str) -> Result<(String, (NodePtr, Cookie)), Stop> {
    let child = done("starting a helper process", kit.helper("call-manager", &[payload]).spawn())?;
    let call = manager.read()?.call()?;
    manager.finish_call()?;
    Ok((finish(child)?.1, (call.node, call.cookie)))
}

fn ctx_03_the_managers_node_is_as_given(kit: &Kit) -> Verdict {
    const ACCEPTS_FDS: u32 = 0x100;
    let node = FlatBinderObject { kind: 0x1234_5678, flags: ACCEPTS_FDS, binder: 0x770, cookie: 0x880 };
    let manager = kit.server()?;
    kit.become_manager(&manager, Some(node))?;
    let (said, seen) = called(kit, &manager, "fd")?;
    expect("a caller with a descriptor", said.as_str(), "COMPLETE REPLY")?;
    expect("ptr and cookie", seen, (NodePtr(0x770), Cookie(0x880)))?;
    drop(manager);
    let manager = kit.server()?;
    kit.become_manager(&manager, None)?;
    let (said, seen) = called(kit, &manager, "nothing")?;
    expect("a caller of the plain manager", said.as_str(), "COMPLETE REPLY")?;
    expect("ptr and cookie", seen, (NodePtr(0), Cookie(0)))?;
    let said = kit.run_helper(kit.helper("call-manager", &["fd"]))?;
    expect("a caller of the plain manager with a descriptor", said.as_str(), "FAILED_REPLY")
}

fn ctx_04_without_a_manager_handle_0_is_dead(kit: &Kit) -> Verdict {
    let client = kit.open()?;
    for tag in ["1", "2"] {
        let manager = kit.manager(tag)?;
        let reply = kit.ask(&client, test_manager::TAG, b"")?.reply()?;
        expect("the manager's tag", client.bytes(&reply)?[0].to_string().as_str(), tag)?;
        client.free(&reply)?;
        drop(manager);
        kit.wait_until_unmanaged(&client)?;
    }
    Ok(())
}

fn ctx_05_nobody_calls_their_own_manager(kit: &Kit) -> Verdict {
    let (manager, other) = (kit.server()?, kit.open()?);
    kit.become_manager(&manager, None)?;
    let zero = Handle::CONTEXT_MANAGER;
    kit.expect_failed(&manager, &manager.call(zero)?, "EINVAL", "EINVAL")?;
    if !kit.is_rust() {
        return kit.expect_failed(&other, &other.call(zero)?, "EINVAL", "");
    }
    other.round_trip("calling the manager from another open of its process", zero, &manager)
}
