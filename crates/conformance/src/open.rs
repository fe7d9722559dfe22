//! Contract section 1: open, mmap, version (OPN).

mod embedded;

use std::fs;
use std::os::fd::AsFd;
use std::path::Path;
use std::sync::Arc;

use sys::binder_fd::BinderFd;
use sys::receive_map::ReceiveMap;

use crate::prelude::*;
use crate::test_manager;

pub(super) use embedded::context;

items! {
    "OPN-01" Both [] opn_01_each_open_is_a_process_of_its_own "each open is a process of its own";
    "OPN-02" Both [seen] opn_02_the_version_is_8 "the version is 8, and a null pointer is refused";
    "OPN-03" Both [seen differs] opn_03_the_mapping_is_read_only "the mapping cannot be made writable" or embedded::the_mapping_is_read_only;
    "OPN-04" Both [seen] opn_04_one_mapping_per_open "an open file is mapped once, even after unmapping" or embedded::one_mapping_per_open;
    "OPN-05" Both [seen differs] opn_05_only_the_opener_maps "only the opener maps, and not after exec" or embedded::nothing_survives_exec;
    "OPN-06" Both [] opn_06_four_mebibytes_are_used "4 MiB of a mapping are used, half of it for oneway";
    "OPN-07" Both [] opn_07_fork_does_not_copy_the_mapping "the mapping is not copied by fork" or embedded::fork_copies_no_mapping;
    "OPN-08" Both [seen differs] opn_08_a_fresh_page_has_nothing_behind_it "touching a page that never held a buffer is SIGBUS" or embedded::a_fresh_page_is_zero;
    "OPN-09" Both [] opn_09_a_target_without_mapping_is_dead "a target that never mapped gives DEAD_REPLY";
    "OPN-10" C [] opn_10_a_target_that_unmapped_is_dead "a target that unmapped gives DEAD_REPLY";
    "OPN-11" C [seen differs] opn_11_an_inherited_device_is_the_openers "an inherited device acts for the process that opened it" or embedded::a_child_is_a_process_of_its_own;
    "OPN-12" C [differs] opn_12_devices_without_binderfs "without binderfs the module parameter names the devices" or embedded::a_context_is_there_when_it_is_opened;
    "OPN-13" Both [] opn_13_any_thread_may_map "any thread of a process may open and map";
    "OPN-14" Both [] opn_14_another_opens_mapping_is_left_alone "a mapping that took the place of another open's holds none of its calls";
}

fn opn_01_each_open_is_a_process_of_its_own(kit: &Kit) -> Verdict {
    let Pair { server, client, handle, .. } = kit.pair()?;
    let stranger = kit.open()?;
    expect_work("calling with a handle of another open", &stranger.call(handle)?, "FAILED_REPLY")?;
    // The same OS thread is another thread in each open: a call under way here hinders none there.
    client.start_call(handle, 1, b"")?;
    expect_work("calling from another open", &kit.ask(&stranger, test_manager::TAG, &[])?, "COMPLETE REPLY")?;
    server.echo()?;
    expect_work("two opens of one process calling each other", &client.ending()?, "COMPLETE REPLY")
}

fn opn_02_the_version_is_8(kit: &Kit) -> Verdict {
    let process = kit.open()?;
    expect("the protocol version", process.version()?, 8)?;
    let Some(device) = process.conn.device() else { return Ok(()) };
    let refused = device.raw(ioctl::VERSION, None);
    expect_refused(kit, "BINDER_VERSION with a null pointer", &refused, "EINVAL", "EFAULT")
}

fn open_device(kit: &Kit) -> Result<BinderFd, Stop> {
    done("opening the device", BinderFd::open(kit.device()?, true))
}

fn map(fd: &BinderFd) -> Result<ReceiveMap, Stop> {
    done("mapping the device", ReceiveMap::new(fd.as_fd(), default_map_size()))
}

fn opn_03_the_mapping_is_read_only(kit: &Kit) -> Verdict {
    let fd = open_device(kit)?;
    expect_errno("a writable mapping", &ReceiveMap::try_writable(fd.as_fd(), default_map_size()), "EPERM")?;
    expect_errno("making a mapping writable", &map(&fd)?.try_protect_writable(), "EACCES")
}

fn opn_04_one_mapping_per_open(kit: &Kit) -> Verdict {
    let fd = open_device(kit)?;
    let first = map(&fd)?;
    expect_errno("a second mapping", &ReceiveMap::new(fd.as_fd(), default_map_size()), "EBUSY")?;
    drop(first);
    expect_errno("a mapping after unmapping", &ReceiveMap::new(fd.as_fd(), default_map_size()), "EBUSY")
}

fn opn_05_only_the_opener_maps(kit: &Kit) -> Verdict {
    let fd = open_device(kit)?;
    let helper = kit.helper_with(&fd, "map-inherited", &[])?;
    expect("mapping from another OS process", kit.run_helper(helper)?.as_str(), "EINVAL")?;
    let said = kit.run_helper(kit.helper("map-after-exec", &[]))?;
    expect("mapping after the opener's exec", said.as_str(), "EINVAL")
}

fn opn_06_four_mebibytes_are_used(kit: &Kit) -> Verdict {
    const USED: usize = 4 << 20;
    let Pair { server, client, handle, .. } = kit.pair_mapped(2 * USED)?;
    let data = vec![0; USED + 8];
    let call = |size: usize, flags| client.send(handle, 1, flags, plain(&data[..size]));
    call(USED, TransactionFlags::CALL)?;
    let served = server.read()?.call()?;
    expect("bytes delivered", served.data_size, USED as u64)?;
    server.finish_call()?;
    server.free(&served)?;
    client.expect_ending("a call that fills the used part", "COMPLETE REPLY")?;
    call(USED + 8, TransactionFlags::CALL)?;
    kit.expect_failed(&client, &client.ending()?, "ENOSPC", "ENOSPC")?;
    // Older drivers charge a header of less than a page beside the bytes.
    call(USED / 2 - 4096, TransactionFlags::ONEWAY)?;
    client.expect_read("a oneway call within half of it", "COMPLETE")?;
    server.free(&server.read()?.call()?)?;
    call(USED / 2 + 8, TransactionFlags::ONEWAY)?;
    kit.expect_failed(&client, &client.read()?, "ENOSPC", "ENOSPC")
}

/// This process's mappings with their flags.
fn smaps() -> Result<String, Stop> {
    let why = |_| Stop::Skip("this kernel has no /proc/self/smaps, which lists a mapping's flags".into());
    fs::read_to_string("/proc/self/smaps").map_err(why)
}

fn opn_07_fork_does_not_copy_the_mapping(kit: &Kit) -> Verdict {
    let process = kit.open()?;
    let base = required(process.conn.map_base(), || "the receiving area has no known address".into())?;
    let smaps = smaps()?;
    let start = format!("{base:08x}-");
    let flags = smaps.split_once(start.as_str()).and_then(|(_, rest)| rest.split_once("VmFlags:"));
    let flags = flags.and_then(|(_, rest)| rest.lines().next()).unwrap_or_default();
    ensure(flags.split_whitespace().any(|flag| flag == "dc"), || {
        format!("expected the flag dc (do not copy on fork) on the mapping, it has{flags}")
    })
}

fn opn_08_a_fresh_page_has_nothing_behind_it(kit: &Kit) -> Verdict {
    const SIGBUS: i32 = 7;
    kit.expect_killed(kit.helper("touch-fresh-page", &[]), SIGBUS)
}

fn opn_09_a_target_without_mapping_is_dead(kit: &Kit) -> Verdict {
    let Pair { server: _server, client, handle, .. } = kit.pair_mapped(0)?;
    expect_work("calling a process that never mapped", &client.call(handle)?, "DEAD_REPLY")?;
    kit.expect_error(&client, Some((br::DEAD_REPLY, "ESRCH")), None)
}

fn opn_10_a_target_that_unmapped_is_dead(kit: &Kit) -> Verdict {
    let Pair { server: RawProcess { mut conn }, client, handle, .. } = kit.pair()?;
    let unmapped = Arc::get_mut(&mut conn).is_some_and(|conn| conn.unmap());
    ensure(unmapped, || "the receiving area could not be given up".into())?;
    client.start_call(handle, 1, b"")?;
    if !kit.is_rust() {
        client.expect_ending("calling a process that unmapped", "DEAD_REPLY")?;
        return kit.expect_error(&client, Some((br::DEAD_REPLY, "ESRCH")), None);
    }
    // The Rust driver keeps the range: what needs a fresh page fails, the rest may be delivered.
    match client.read_now()? {
        Some(got) => kit.expect_failed(&client, &got, "", "ESRCH"),
        None => RawProcess::new(conn).read()?.call().map(drop),
    }
}

fn opn_11_an_inherited_device_is_the_openers(kit: &Kit) -> Verdict {
    let Pair { server, client, handle: Handle(handle), .. } = kit.pair()?;
    let Some(device) = client.conn.device() else {
        return kit.device().map(drop);
    };
    let helper = kit.helper_with(device, "use-inherited", &[&handle.to_string()])?;
    let (said, want) = (kit.run_helper(helper)?, kit.by_driver("OK", "EINVAL"));
    expect("a child with the opener's descriptor", said, format!("version OK call {want}"))?;
    if kit.is_rust() {
        return server.expect_silence("no call was made");
    }
    expect("the code of the child's call with the opener's handle", server.read()?.call()?.code, 77)
}

fn opn_12_devices_without_binderfs(kit: &Kit) -> Verdict {
    kit.not_in_rust()?;
    let read = |path: &str| fs::read_to_string(path).unwrap_or_default();
    let filesystems = read("/proc/filesystems");
    let has_binderfs = filesystems.lines().any(|line| line.split_whitespace().last() == Some("binder"));
    skip_unless(!has_binderfs, "this kernel has binderfs")?;
    let parameter =
        ["binder_linux", "binder"].map(|module| format!("/sys/module/{module}/parameters/devices"));
    let path = parameter.iter().find(|path| Path::new(path).exists());
    let path = required(path, || format!("no module parameter: looked for {}", parameter.join(", ")))?;
    let (devices, misc) = (read(path), read("/proc/misc"));
    let named: Vec<&str> = devices.trim().split(',').filter(|name| !name.is_empty()).collect();
    ensure(!named.is_empty(), || format!("{path} names no devices"))?;
    let listed = |name: &&&str| !misc.lines().any(|line| line.split_whitespace().nth(1) == Some(**name));
    let missing: Vec<_> = named.iter().filter(listed).collect();
    ensure(missing.is_empty(), || format!("{path} names {missing:?}, /proc/misc lacks them"))
}

fn opn_13_any_thread_may_map(kit: &Kit) -> Verdict {
    let subject = kit.subject.clone();
    let opened =
        Worker::new()?.run(move || subject.open(OpenOptions { nonblocking: true, ..OpenOptions::default() }));
    let server =
        RawProcess::new(opened?.map_err(|error| Stop::from(error).during("mapping on another thread"))?);
    server.version()?;
    server.enter_looper()?;
    let Pair { server, client, handle, .. } = kit.pair_of(server, kit.open()?, Node::number(1))?;
    client.round_trip("a call to a process that another thread opened", handle, &server)
}

fn opn_14_another_opens_mapping_is_left_alone(kit: &Kit) -> Verdict {
    kit.device()?;
    let size = 8 * sys::page::size();
    let payload = vec![0x5a; size / 2];
    let Pair { server: RawProcess { mut conn }, client, handle, .. } = kit.pair_mapped(size)?;
    let base = conn.map_base();
    let unmapped = Arc::get_mut(&mut conn).is_some_and(|conn| conn.unmap());
    ensure(unmapped, || "the receiving area could not be given up".into())?;
    let second = kit.open_mapped(size)?;
    skip_unless(second.conn.map_base() == base, "the second mapping lies elsewhere")?;
    second.enter_looper()?;
    let Pair { server: second, client, handle: other, .. } = kit.pair_of(second, client, Node::number(2))?;
    client.send(handle, 1, TransactionFlags::CALL, plain(&payload))?;
    let refused = client.read_now()?;
    let refused = required(refused, || "a call to a process that unmapped was delivered".into())?;
    let want = kit.by_driver("DEAD_REPLY", "FAILED_REPLY");
    expect_work("a call to a process that unmapped", &refused, want)?;
    client.send(other, 1, TransactionFlags::CALL, plain(&payload))?;
    let call = second.expect_read("a call to the process mapped there", "TRANSACTION")?.call()?;
    expect("whether its bytes are those sent", second.bytes(&call)? == payload, true)?;
    second.finish_call()?;
    client.expect_reply("that call")
}
