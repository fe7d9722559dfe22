//! Contract section 17: what others see of an instance: its files of one process, its line in the list of mounts, its owner
//! (FS-08 to FS-11).

use std::fs;
use std::os::unix::fs::MetadataExt;
use std::os::unix::process::CommandExt;

use sys::binderfs::PrivateBinderfs;
use sys::namespace;
use sys::private_folder::PrivateFolder;

use super::{add, defaults, instance, open};
use crate::prelude::*;

pub(super) fn fs_08_one_process_has_a_file(kit: &Kit) -> Verdict {
    let with_logs = instance(kit, &[("stats", "global")])?;
    let other = RemoteProcess::start(kit)?;
    let own = std::process::id();
    let file = with_logs.path(&format!("binder_logs/proc/{own}"));
    ensure(!file.exists(), || "a process without a device of the instance has a file".into())?;
    let device = open(&done("adding a device", with_logs.add_device("mine"))?)?;
    let entered = device.write_read(&bc::ENTER_LOOPER.to_ne_bytes(), &mut 0, &mut [], &mut 0);
    expect_errno("ENTER_LOOPER", &entered, "OK")?;
    let read = || done("reading a file below proc", fs::read_to_string(&file));
    let text = read()?;
    let pids: Vec<&str> = text.lines().filter_map(|line| line.strip_prefix("proc ")).collect();
    ensure(!pids.is_empty() && pids.iter().all(|pid| **pid == own.to_string()), || {
        format!("expected blocks of process {own} only, got those of {pids:?}")
    })?;
    let thread = format!("  thread {}: l 02", Worker::current());
    ensure(text.lines().any(|line| line.starts_with(&thread)), || format!("no line {thread:?} in:\n{text}"))?;
    let all = kit.state_text(StateFile::State)?;
    let others = format!("proc {}", other.pid());
    ensure(all.lines().any(|line| line == others), || format!("no line {others:?} in the state of all"))?;
    drop(device);
    ensure(patient(|| !file.exists()), || {
        "the file of a process is there after its last device was closed".into()
    })
}

/// Whether this comes true while the driver may still clean up.
fn patient(is_true: impl Fn() -> bool) -> bool {
    let start = std::time::Instant::now();
    while !is_true() {
        if sys::patience::is_over(start, PATIENCE) {
            return false;
        }
        std::thread::sleep(std::time::Duration::from_millis(2));
    }
    true
}

pub(super) fn fs_09_a_device_that_nobody_heard_of(kit: &Kit) -> Verdict {
    let count = defaults(&instance(kit, &[])?)?.len();
    let instance = instance(kit, &[("max", &(count + 1).to_string())])?;
    let control = open(&instance.path("binder-control"))?;
    let mut request = abi::layout::BinderfsDevice::new_zeroed();
    request.name[..4].copy_from_slice(b"lost");
    for _ in 0..2 {
        let added = control.raw_read_only(ioctl::CTL_ADD, request.as_bytes());
        expect_errno("CTL_ADD whose answer cannot be stored", &added, "EFAULT")?;
    }
    expect("devices after that", defaults(&instance)?.len(), count)?;
    let (result, first) = add(&control, b"one");
    expect_errno("the one device that fits", &result, "OK")?;
    done("removing it", fs::remove_file(instance.path("one")))?;
    let (result, second) = add(&control, b"two");
    expect_errno("another in its place", &result, "OK")?;
    expect("its minor number, which is free again", second.minor, first.minor)
}

/// The words of an instance in this process's list of mounts.
fn options_at(place: &str) -> Result<String, Stop> {
    let mounts = done("reading the list of mounts", fs::read_to_string("/proc/self/mounts"))?;
    let mut of_place = mounts.lines().map(|line| line.split(' ').collect::<Vec<_>>());
    let line = of_place.find(|words| words.get(1) == Some(&place) && words.get(2) == Some(&"binder"));
    required(line.and_then(|words| words.get(3).map(|word| (*word).to_owned())), || {
        format!("no instance at {place} in the list of mounts:\n{mounts}")
    })
}

/// Mounts instances in a list of mounts of this process's own; returns their options. Runs in a helper.
pub(crate) fn mount_options() -> Result<String, Stop> {
    done("a list of mounts of its own", namespace::own_mounts())?;
    let mut all = Vec::new();
    for options in [&[][..], &[("max", "77"), ("stats", "global")]] {
        let folder = done("making a folder", PrivateFolder::new("mount"))?;
        let instance = done("an instance", PrivateBinderfs::with_options(options))?;
        done("attaching it", instance.attach(folder.path()))?;
        all.push(options_at(&folder.path().to_string_lossy())?);
    }
    Ok(all.join(" "))
}

pub(super) fn fs_10_the_list_of_mounts_has_the_options(kit: &Kit) -> Verdict {
    drop(instance(kit, &[])?);
    let said = kit.run_helper(kit.helper("mount-options", &[]))?;
    expect("the options of an instance without any, and of one with two", said.as_str(), {
        "rw,relatime,max=1048576 rw,relatime,max=77,stats=global"
    })
}

/// The owner of an instance that is mounted in a user namespace, as that namespace sees it, and what came of one with
/// statistics. Runs in a helper. `mapped`: whether user 0 of the namespace is this user.
pub(crate) fn in_user_namespace(mapped: bool) -> Result<String, Stop> {
    let own = fs::metadata("/proc/self").map_or(0, |entry| entry.uid());
    // Ubuntu's kernels let a process make one, and take all rights in it away.
    let restricted = fs::read_to_string("/proc/sys/kernel/apparmor_restrict_unprivileged_userns");
    if restricted.is_ok_and(|text| text.trim() != "0") {
        return Ok("not here: AppArmor restricts them".into());
    }
    if let Err(error) = namespace::own_users() {
        return Ok(format!("not here: {}", errno::<()>(&Err(error))));
    }
    if mapped {
        done("mapping a user", fs::write("/proc/self/uid_map", format!("0 {own} 1")))?;
        done("leaving groups alone", fs::write("/proc/self/setgroups", "deny"))?;
        let group = fs::metadata("/proc/self").map_or(0, |entry| entry.gid());
        // The group that was outside is 65534 here; it is the same as the user's in all guests.
        let group = if group == 65_534 { own } else { group };
        done("mapping a group", fs::write("/proc/self/gid_map", format!("0 {group} 1")))?;
    }
    let plain = done("an instance in a user namespace", PrivateBinderfs::new())?;
    let entry = done("its binder-control", fs::metadata(plain.path("binder-control")))?;
    let with_logs = PrivateBinderfs::with_options(&[("stats", "global")]);
    Ok(format!("{} {} {}", entry.uid(), entry.gid(), errno(&with_logs)))
}

/// An id that no user of a guest has.
const SOMEBODY: u32 = 4242;

pub(super) fn fs_11_the_owner_is_root_of_the_user_namespace(kit: &Kit) -> Verdict {
    drop(instance(kit, &[])?);
    for (mapped, want) in [("unmapped", "65534 65534 EPERM"), ("mapped", "0 0 EPERM")] {
        let mut helper = kit.helper("user-namespace", &[mapped]);
        if kit.is_root() {
            // A user who is not the machine's root, so that the two roots differ.
            helper.uid(SOMEBODY).gid(SOMEBODY);
        }
        let said = kit.run_helper(helper)?;
        if let Some(why) = said.strip_prefix("not here: ") {
            return Err(Stop::Skip(format!("no user namespace can be made: {why}")));
        }
        let what = format!("owner, group, and an instance with stats=global, where user 0 is {mapped}");
        expect(&what, said.as_str(), want)?;
    }
    Ok(())
}
