//! Room: contract section 1: open, mmap, version (OPN).

mod embedded;

use std::fs;
use std::os::fd::AsFd;
use std::path::Path;
use std::process::Stdio;
use std::sync::Arc;

use abi::codes::{br, ioctl};
use abi::{Handle, Payload, TransactionFlags};
use driver::connection::DEFAULT_MAP_SIZE;
use sys::binder_fd::BinderFd;
use sys::receive_map::ReceiveMap;

use super::item::{Stop, Verdict, done, ensure, expect, expect_errno, items};
use super::kit::{Kit, Pair, expect_refused};
use super::lobby;
use super::party::{Node, Party, expect_work};
pub(super) use embedded::context;

items! {
    "OPN-01" Both [] opn_01_each_open_is_a_process_of_its_own "each open is a process of its own";
    "OPN-02" Both [seen] opn_02_the_version_is_8 "the version is 8, and a null pointer is refused";
    "OPN-03" Both [seen differs] opn_03_the_mapping_is_read_only "the mapping cannot be made writable";
    "OPN-04" Both [seen differs] opn_04_one_mapping_per_open "an open file is mapped once, even after unmapping";
    "OPN-05" Both [seen differs] opn_05_only_the_opener_maps "only the opener maps, and not after exec";
    "OPN-06" Both [] opn_06_four_mebibytes_are_used "4 MiB of a mapping are used, half of it for oneway";
    "OPN-07" Both [] opn_07_fork_does_not_copy_the_mapping "the mapping is not copied by fork";
    "OPN-08" Both [seen differs] opn_08_a_fresh_page_has_nothing_behind_it "touching a page that never held a buffer is SIGBUS";
    "OPN-09" Both [] opn_09_a_target_without_mapping_is_dead "a target that never mapped gives DEAD_REPLY";
    "OPN-10" C [] opn_10_a_target_that_unmapped_is_dead "a target that unmapped gives DEAD_REPLY";
    "OPN-11" C [seen differs] opn_11_an_inherited_device_is_the_openers "an inherited device acts for the process that opened it";
    "OPN-12" C [differs] opn_12_devices_without_binderfs "without binderfs the module parameter names the devices";
}

fn opn_01_each_open_is_a_process_of_its_own(kit: &Kit) -> Verdict {
    let Pair { server, client, handle, .. } = kit.pair()?;
    let stranger = kit.open()?;
    let got = stranger.call(handle, 1, TransactionFlags::CALL, Payload::default())?;
    expect_work("calling with a handle of another open", &got, "FAILED_REPLY")?;
    // The same OS thread is another thread in each open: a call under way here hinders none there.
    client.start_call(handle, 1, b"")?;
    expect_work("calling from another open", &kit.ask(&stranger, lobby::TAG, &[])?, "COMPLETE REPLY")?;
    server.echo()?;
    expect_work("two opens of one process calling each other", &client.ending()?, "COMPLETE REPLY")
}

fn opn_02_the_version_is_8(kit: &Kit) -> Verdict {
    let party = kit.open()?;
    expect("the protocol version", done("BINDER_VERSION", party.conn.version())?, 8)?;
    let Some(device) = party.conn.device() else { return Ok(()) };
    expect_refused(
        kit,
        "BINDER_VERSION with a null pointer",
        &device.raw(ioctl::VERSION, None),
        "EINVAL",
        "EFAULT",
    )
}

fn open_device(kit: &Kit) -> Result<BinderFd, Stop> {
    done("opening the device", BinderFd::open(kit.device()?, true))
}

fn map(fd: &BinderFd) -> Result<ReceiveMap, Stop> {
    done("mapping the device", ReceiveMap::new(fd.as_fd(), DEFAULT_MAP_SIZE))
}

fn opn_03_the_mapping_is_read_only(kit: &Kit) -> Verdict {
    if kit.is_embedded() {
        return embedded::the_mapping_is_read_only(kit);
    }
    let fd = open_device(kit)?;
    expect_errno("a writable mapping", &ReceiveMap::try_writable(fd.as_fd(), DEFAULT_MAP_SIZE), "EPERM")?;
    expect_errno("making a mapping writable", &map(&fd)?.try_protect_writable(), "EACCES")
}

fn opn_04_one_mapping_per_open(kit: &Kit) -> Verdict {
    if kit.is_embedded() {
        return embedded::one_mapping_per_open(kit);
    }
    let fd = open_device(kit)?;
    let first = map(&fd)?;
    expect_errno("a second mapping", &ReceiveMap::new(fd.as_fd(), DEFAULT_MAP_SIZE), "EBUSY")?;
    drop(first);
    expect_errno("a mapping after unmapping", &ReceiveMap::new(fd.as_fd(), DEFAULT_MAP_SIZE), "EBUSY")
}

/// A copy of a device's descriptor as a helper's standard input.
pub(super) fn as_stdin(fd: &BinderFd) -> Result<Stdio, Stop> {
    Ok(done("duplicating the device", fd.as_fd().try_clone_to_owned())?.into())
}

fn opn_05_only_the_opener_maps(kit: &Kit) -> Verdict {
    if kit.is_embedded() {
        return embedded::nothing_survives_exec(kit);
    }
    let fd = open_device(kit)?;
    let mut helper = kit.helper("map-inherited", &[]);
    helper.stdin(as_stdin(&fd)?);
    expect("mapping from another OS process", kit.run_helper(helper)?.as_str(), "EINVAL")?;
    let said = kit.run_helper(kit.helper("map-after-exec", &[]))?;
    expect("mapping after the opener's exec", said.as_str(), "EINVAL")
}

fn opn_06_four_mebibytes_are_used(kit: &Kit) -> Verdict {
    const USED: usize = 4 << 20;
    let server = kit.open_mapped(2 * USED)?;
    server.enter_looper()?;
    let Pair { server, client, handle, .. } = kit.pair_of(server, kit.open()?, Node::number(1))?;
    let data = vec![0; USED + 8];
    let call = |size: usize, flags| {
        client
            .write(|c| c.transaction(handle, 1, flags, Payload { data: &data[..size], ..Payload::default() }))
    };
    call(USED, TransactionFlags::CALL)?;
    let served = server.read()?.call()?;
    expect("bytes delivered", served.data_size, USED as u64)?;
    expect_work("answering", &server.answer(b"")?, "COMPLETE")?;
    server.free(&served)?;
    expect_work("a call that fills the used part", &client.ending()?, "COMPLETE REPLY")?;
    call(USED + 8, TransactionFlags::CALL)?;
    kit.expect_failed(&client, &client.ending()?, "ENOSPC", "ENOSPC")?;
    // Older drivers charge a header of less than a page beside the bytes.
    call(USED / 2 - 4096, TransactionFlags::ONEWAY)?;
    expect_work("a oneway call within half of it", &client.read()?, "COMPLETE")?;
    server.free(&server.read()?.call()?)?;
    call(USED / 2 + 8, TransactionFlags::ONEWAY)?;
    kit.expect_failed(&client, &client.read()?, "ENOSPC", "ENOSPC")
}

fn opn_07_fork_does_not_copy_the_mapping(kit: &Kit) -> Verdict {
    let party = kit.open()?;
    let base =
        party.conn.map_base().ok_or_else(|| Stop::Skip("the receiving area has no known address".into()))?;
    let Ok(smaps) = fs::read_to_string("/proc/self/smaps") else {
        return Err(Stop::Skip("this kernel has no /proc/self/smaps, which lists a mapping's flags".into()));
    };
    if kit.is_embedded() {
        return embedded::fork_copies_no_mapping(&smaps);
    }
    let start = format!("{base:08x}-");
    let flags = smaps.split_once(start.as_str()).and_then(|(_, rest)| rest.split_once("VmFlags:"));
    let flags = flags.and_then(|(_, rest)| rest.lines().next()).unwrap_or_default();
    ensure(flags.split_whitespace().any(|flag| flag == "dc"), || {
        format!("expected the flag dc (do not copy on fork) on the mapping, it has{flags}")
    })
}

fn opn_08_a_fresh_page_has_nothing_behind_it(kit: &Kit) -> Verdict {
    const SIGBUS: i32 = 7;
    if kit.is_embedded() {
        return embedded::a_fresh_page_is_zero(kit);
    }
    kit.expect_killed(kit.helper("touch-fresh-page", &[]), SIGBUS)
}

fn opn_09_a_target_without_mapping_is_dead(kit: &Kit) -> Verdict {
    let server = kit.open_mapped(0)?;
    server.enter_looper()?;
    let Pair { server: _server, client, handle, .. } = kit.pair_of(server, kit.open()?, Node::number(1))?;
    let got = client.call(handle, 1, TransactionFlags::CALL, Payload::default())?;
    expect_work("calling a process that never mapped", &got, "DEAD_REPLY")?;
    kit.expect_error(&client, Some((br::DEAD_REPLY, "ESRCH")), None)
}

fn opn_10_a_target_that_unmapped_is_dead(kit: &Kit) -> Verdict {
    let Pair { server: Party { mut conn }, client, handle, .. } = kit.pair()?;
    let unmapped = Arc::get_mut(&mut conn).is_some_and(|conn| conn.unmap());
    ensure(unmapped, || "the receiving area could not be given up".into())?;
    client.start_call(handle, 1, b"")?;
    if !kit.is_rust() {
        expect_work("calling a process that unmapped", &client.ending()?, "DEAD_REPLY")?;
        return kit.expect_error(&client, Some((br::DEAD_REPLY, "ESRCH")), None);
    }
    // The Rust driver keeps the range: what needs a fresh page fails, the rest may be delivered.
    match client.read_now()? {
        Some(got) => kit.expect_failed(&client, &got, "", "ESRCH"),
        None => Party::new(conn).read()?.call().map(drop),
    }
}

fn opn_11_an_inherited_device_is_the_openers(kit: &Kit) -> Verdict {
    if kit.is_embedded() {
        return embedded::a_child_is_a_process_of_its_own(kit);
    }
    let Pair { server, client, handle: Handle(handle), .. } = kit.pair()?;
    let Some(device) = client.conn.device() else {
        return kit.device().map(drop);
    };
    let mut helper = kit.helper("use-inherited", &[&handle.to_string()]);
    helper.stdin(as_stdin(device)?);
    let said = kit.run_helper(helper)?;
    expect(
        "a child with the opener's descriptor",
        said.as_str(),
        kit.by_driver("version OK call OK", "version OK call EINVAL"),
    )?;
    match kit.by_driver(true, false) {
        true => {
            expect("the code of the child's call with the opener's handle", server.read()?.call()?.code, 77)
        }
        false => server.expect_silence("no call was made"),
    }
}

fn opn_12_devices_without_binderfs(kit: &Kit) -> Verdict {
    if kit.is_embedded() {
        return embedded::a_context_is_there_when_it_is_opened(kit);
    }
    kit.not_in_rust()?;
    let read = |path: &str| fs::read_to_string(path).unwrap_or_default();
    if read("/proc/filesystems").lines().any(|line| line.split_whitespace().last() == Some("binder")) {
        return Err(Stop::Skip("this kernel has binderfs".into()));
    }
    let parameter =
        ["binder_linux", "binder"].map(|module| format!("/sys/module/{module}/parameters/devices"));
    let Some(path) = parameter.iter().find(|path| Path::new(path).exists()) else {
        return Err(Stop::Fail(format!("no module parameter: looked for {}", parameter.join(", "))));
    };
    let (devices, misc) = (read(path), read("/proc/misc"));
    let named: Vec<&str> = devices.trim().split(',').filter(|name| !name.is_empty()).collect();
    ensure(!named.is_empty(), || format!("{path} names no devices"))?;
    let listed = |name: &&&str| !misc.lines().any(|line| line.split_whitespace().nth(1) == Some(**name));
    let missing: Vec<_> = named.iter().filter(listed).collect();
    ensure(missing.is_empty(), || format!("{path} names {missing:?}, /proc/misc lacks them"))
}
