//! Contract section 17: binderfs (FS).

mod contexts;
pub(super) mod mounts;

use std::os::unix::fs::MetadataExt;
use std::path::Path;
use std::{fs, io};

use abi::layout::BinderfsDevice;
use sys::binder_fd::{Access, BinderFd};
use sys::binderfs::PrivateBinderfs;

use crate::prelude::*;

items! {
    "FS-01" Both [differs] fs_01_each_mount_is_a_world "each mount is an instance of its own" or contexts::each_directory_is_a_world;
    "FS-02" Both [differs] fs_02_devices_are_added_by_name "CTL_ADD creates a device and returns its number" or contexts::contexts_have_names;
    "FS-03" Both [differs] fs_03_max_counts_all_devices "the option max counts the default devices too" or contexts::nothing_limits_contexts;
    "FS-04" Both [differs] fs_04_only_control_stays "binder-control cannot be removed, other devices can" or contexts::contexts_go_with_their_users;
    "FS-05" Both [differs] fs_05_stats_is_fixed_at_the_mount "the option stats cannot change on a remount" or contexts::the_account_is_always_kept;
    "FS-06" C [differs] fs_06_features_are_files "features are files that contain 1" or contexts::every_feature_is_there;
    "FS-07" C [differs] fs_07_logs_come_with_stats "logs exist only with stats=global" or contexts::every_log_is_told;
    "FS-08" Both [] fs_08_one_process_has_a_file in mounts "a process with a device open has a file of its state alone";
    "FS-09" Both [] fs_09_a_device_that_nobody_heard_of "a device whose number cannot be stored is not made";
    "FS-10" Both [] fs_10_the_list_of_mounts_has_the_options in mounts "the list of mounts has an instance's options";
    "FS-11" Both [] fs_11_the_owner_is_root_of_the_user_namespace in mounts "an instance is its user namespace's, without stats";
}

/// Mounts a binderfs instance; skips the test without binderfs or the right to mount it.
pub(super) fn instance(kit: &Kit, options: &[(&str, &str)]) -> Result<PrivateBinderfs, Stop> {
    kit.device()?;
    PrivateBinderfs::with_options(options).map_err(|error| match error.kind() {
        io::ErrorKind::PermissionDenied => Stop::Skip("mounting binderfs needs CAP_SYS_ADMIN".into()),
        // ENODEV has no stable `ErrorKind`.
        _ if super::check::errno::<()>(&Err(error)) == "ENODEV" => {
            Stop::Skip("this kernel has no binderfs".into())
        }
        _ => Stop::Fail(format!("an instance with the options {options:?} could not be made")),
    })
}

fn names(instance: &PrivateBinderfs) -> Result<Vec<String>, Stop> {
    let entries = done("listing an instance", fs::read_dir(instance.path("")))?;
    let mut names: Vec<String> =
        entries.flatten().map(|entry| entry.file_name().to_string_lossy().into_owned()).collect();
    names.sort();
    Ok(names)
}

/// The initial devices of an instance.
fn defaults(instance: &PrivateBinderfs) -> Result<Vec<String>, Stop> {
    let mut names = names(instance)?;
    names.retain(|name| !["binder-control", "features", "binder_logs"].contains(&name.as_str()));
    Ok(names)
}

fn open(path: &Path) -> Result<BinderFd, Stop> {
    done("opening an entry of binderfs", BinderFd::open(path, true))
}

fn fs_01_each_mount_is_a_world(kit: &Kit) -> Verdict {
    let magic = kit.by_driver(0x6c6f_6f70, 0x6c6f_6f71);
    let (one, two) = (instance(kit, &[])?, instance(kit, &[])?);
    expect("the file system's magic", done("fstatfs", one.magic())?, magic)?;
    let devices = defaults(&one)?;
    let first = devices.first().ok_or_else(|| Stop::Skip("this kernel has no default devices".into()))?;
    for name in devices.iter().map(String::as_str).chain(["binder-control"]) {
        let entry = done(name, fs::metadata(one.path(name)))?;
        expect(name, (entry.mode() & 0o7777, entry.uid(), entry.gid()), (0o600, 0, 0))?;
    }
    let managers = (open(&one.path(first))?, open(&two.path(first))?);
    expect_errno("managing it in one instance", &managers.0.request(ioctl::SET_CONTEXT_MGR, 0_i32), "OK")?;
    expect_errno("managing it in another", &managers.1.request(ioctl::SET_CONTEXT_MGR, 0_i32), "OK")?;
    done("adding a device", one.add_device("extra"))?;
    expect("the other instance", defaults(&two)?, devices)
}

/// Adds a device to an instance; the name is exactly these bytes.
fn add(control: &BinderFd, name: &[u8]) -> (io::Result<()>, BinderfsDevice) {
    let mut device = BinderfsDevice::new_zeroed();
    device.name[..name.len()].copy_from_slice(name);
    let result = control.raw(ioctl::CTL_ADD, Some(device.as_mut_bytes()));
    (result, device)
}

fn fs_02_devices_are_added_by_name(kit: &Kit) -> Verdict {
    let instance = instance(kit, &[])?;
    let control = open(&instance.path("binder-control"))?;
    let (result, device) = add(&control, b"mine");
    expect_errno("CTL_ADD", &result, "OK")?;
    let number = done("the new device", fs::metadata(instance.path("mine")))?.rdev();
    // The kernel's packing of a device number: 12 bits of major between two parts of minor.
    let (major, minor) = ((number >> 8 & 0xfff) as u32, (number & 0xff | number >> 12 & 0xfff00) as u32);
    expect("major and minor", (device.major, device.minor), (major, minor))?;
    expect("its protocol version", done("BINDER_VERSION", open(&instance.path("mine"))?.version())?, 8)?;
    let longest = [b'x'; 255];
    for (name, want) in [
        (&b"mine"[..], "EEXIST"),
        (b"", "EACCES"),
        (b".", "EACCES"),
        (b"..", "EACCES"),
        (b"a/b", "EACCES"),
        (&longest, "OK"),
    ] {
        expect_errno(&format!("a device {:?}", String::from_utf8_lossy(name)), &add(&control, name).0, want)?;
    }
    let unterminated = add(&control, &[b'y'; 256]).0;
    expect_errno("a name without an end, which is cut to 255 bytes", &unterminated, "OK")?;
    ensure(names(&instance)?.contains(&"y".repeat(255)), || "the cut name is not there".into())?;
    expect_errno("CTL_ADD with a null pointer", &control.raw(ioctl::CTL_ADD, None), "EFAULT")?;
    expect_errno("another request", &control.raw(ioctl::VERSION, Some(&mut [0; 4])), "EINVAL")
}

fn fs_03_max_counts_all_devices(kit: &Kit) -> Verdict {
    let count = defaults(&instance(kit, &[])?)?.len();
    let with_max = |max: usize| PrivateBinderfs::with_options(&[("max", &max.to_string())]);
    let room_for_one = done("an instance with room for one more", with_max(count + 1))?;
    let control = open(&room_for_one.path("binder-control"))?;
    expect_errno("the device that still fits", &add(&control, b"one").0, "OK")?;
    expect_errno("one more", &add(&control, b"two").0, "ENOSPC")?;
    expect_errno("a limit of 2^20", &with_max(1 << 20), "OK")?;
    expect_errno("a limit above", &with_max((1 << 20) + 1), "EINVAL")?;
    if count > 0 {
        expect_errno("a limit below the default devices", &with_max(count - 1), "ENOSPC")?;
    }
    Ok(())
}

fn fs_04_only_control_stays(kit: &Kit) -> Verdict {
    let instance = instance(kit, &[])?;
    let control = instance.path("binder-control");
    expect_errno("removing binder-control", &fs::remove_file(&control), "EPERM")?;
    expect_errno("renaming it", &fs::rename(&control, instance.path("other")), "EPERM")?;
    done("adding a device", instance.add_device("yours"))?;
    expect_errno("renaming a device to it", &fs::rename(instance.path("yours"), &control), "EPERM")?;
    expect_errno("renaming a device", &fs::rename(instance.path("yours"), instance.path("mine")), "OK")?;
    let device = open(&instance.path("mine"))?;
    expect_errno("removing a device in use", &fs::remove_file(instance.path("mine")), "OK")?;
    expect_errno("opening it afterwards", &BinderFd::open(&instance.path("mine"), true), "ENOENT")?;
    expect_errno("using it where it is open", &device.version(), "OK")?;
    done("adding another of its name", instance.add_device("mine"))?;
    drop(device);
    let another = open(&instance.path("mine"))?;
    expect_errno("using that one once the first is closed", &another.version(), "OK")
}

fn fs_05_stats_is_fixed_at_the_mount(kit: &Kit) -> Verdict {
    let plain = instance(kit, &[])?;
    expect_errno("a remount with stats=global", &plain.reconfigure(&[("stats", "global")]), "EINVAL")?;
    expect_errno("a remount with another limit", &plain.reconfigure(&[("max", "77")]), "OK")?;
    expect_errno("stats=something", &PrivateBinderfs::with_options(&[("stats", "something")]), "EINVAL")
}

fn fs_06_features_are_files(kit: &Kit) -> Verdict {
    let instance = instance(kit, &[])?;
    let folder = done("the folder features", fs::metadata(instance.path("features")))?;
    expect("its links: a folder without folders", folder.nlink(), 2)?;
    for (name, since, in_rust) in [
        ("oneway_spam_detection", Release(5, 14), true),
        ("extended_error", Release(6, 0), true),
        ("freeze_notification", Release(6, 12), true),
        ("transaction_report", Release(7, 2), false),
    ] {
        if kit.evidence.release < since {
            continue;
        }
        let found = fs::read_to_string(instance.path(&format!("features/{name}"))).ok();
        let want = (in_rust || !kit.is_rust()).then(|| "1\n".to_owned());
        expect(&format!("features/{name}"), found, want)?;
    }
    Ok(())
}

fn fs_07_logs_come_with_stats(kit: &Kit) -> Verdict {
    let plain = instance(kit, &[])?;
    ensure(!plain.path("binder_logs").exists(), || "an instance without stats has logs".into())?;
    let with_logs = instance(kit, &[("stats", "global")])?;
    let everywhere = ["state", "stats", "transactions"];
    let in_c = ["transaction_log", "failed_transaction_log"];
    for name in everywhere.iter().chain(if kit.is_rust() { &[][..] } else { &in_c }) {
        let path = with_logs.path(&format!("binder_logs/{name}"));
        let entry = done(name, fs::metadata(&path))?;
        expect(name, entry.mode() & 0o7777, 0o444)?;
        done(name, fs::read(&path))?;
    }
    let device = done("adding a device", with_logs.add_device("mine"))?;
    let _open = open(&device)?;
    let mine = with_logs.path(&format!("binder_logs/proc/{}", std::process::id()));
    ensure(mine.exists(), || "a process with a device of the instance open has no log below proc".into())
}

fn fs_09_a_device_that_nobody_heard_of(kit: &Kit) -> Verdict {
    let count = defaults(&instance(kit, &[])?)?.len();
    let instance = instance(kit, &[("max", &(count + 1).to_string())])?;
    let control = open(&instance.path("binder-control"))?;
    let mut request = BinderfsDevice::new_zeroed();
    request.name[..4].copy_from_slice(b"lost");
    for _ in 0..2 {
        let added = control.raw_on_edge(ioctl::CTL_ADD, request.as_bytes(), Access::ReadOnly);
        expect_errno("CTL_ADD whose answer cannot be stored", &added, "EFAULT")?;
    }
    expect("devices after that", defaults(&instance)?.len(), count)?;
    let (result, first) = add(&control, b"one");
    expect_errno("the one device that fits", &result, "OK")?;
    done("removing it", fs::remove_file(instance.path("one")))?;
    let (result, second) = add(&control, b"two");
    expect_errno("another in its place", &result, "OK")?;
    // The lowest free one of all instances.
    ensure(second.minor <= first.minor, || {
        format!("the minor number {} of the removed device is not free again: {}", first.minor, second.minor)
    })
}
