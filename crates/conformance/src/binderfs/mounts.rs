//! Contract section 17: what others see of an instance: its files of one process, its line in the list of mounts, its owner
//! (FS-08, FS-10, FS-11).

use std::fs;
use std::os::unix::fs::MetadataExt;
use std::os::unix::process::CommandExt;
use std::path::Path;

use sys::binderfs::PrivateBinderfs;
use sys::namespace;
use sys::private_folder::PrivateFolder;

use super::{instance, open};
use crate::prelude::*;

pub(super) fn fs_08_one_process_has_a_file(kit: &Kit) -> Verdict {
    kit.names_itself()?;
    let with_logs = instance(kit, &[("stats", "global")])?;
    let other = RemoteProcess::start(kit)?;
    let own = std::process::id();
    let file = with_logs.path(&format!("binder_logs/proc/{own}"));
    ensure(!file.exists(), || "a process without a device of the instance has a file".into())?;
    let path = done("adding a device", with_logs.add_device("mine"))?;
    let device = open(&path)?;
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
    let second = open(&path)?;
    drop(device);
    ensure(sys::patience::until(PATIENCE, || !file.exists()), || {
        "the file of a process is there after the open that made it was closed".into()
    })?;
    expect_errno("the second open", &second.version(), "OK")
}

/// The options of an instance in this process's list of mounts that are binderfs's own.
fn options_at(place: &Path) -> Result<String, Stop> {
    let mounts = done("reading the list of mounts", fs::read_to_string("/proc/self/mounts"))?;
    // The list writes a blank as \040.
    let is_there =
        |words: &Vec<&str>| words[1].replace("\\040", " ") == place.to_string_lossy() && words[2] == "binder";
    let mut lines =
        mounts.lines().map(|line| line.split(' ').collect::<Vec<_>>()).filter(|words| words.len() > 3);
    let line = required(lines.find(is_there), || {
        format!("no instance at {place:?} in the list of mounts:\n{mounts}")
    })?;
    let own = line[3].split(',').filter(|word| word.starts_with("max=") || word.starts_with("stats="));
    Ok(own.collect::<Vec<_>>().join(","))
}

/// Mounts instances on two folders in a list of mounts of this process's own; returns their options. Runs in a helper.
pub(crate) fn mount_options(folders: [&str; 2]) -> Result<String, Stop> {
    done("a list of mounts of its own", namespace::own_mounts())?;
    let mut all = Vec::new();
    for (folder, options) in folders.into_iter().zip([&[][..], &[("max", "77"), ("stats", "global")]]) {
        let folder = done("the folder", fs::canonicalize(folder))?;
        let instance = done("an instance", PrivateBinderfs::with_options(options))?;
        done("attaching it", instance.attach(&folder))?;
        all.push(options_at(&folder)?);
    }
    Ok(all.join(" "))
}

pub(super) fn fs_10_the_list_of_mounts_has_the_options(kit: &Kit) -> Verdict {
    drop(instance(kit, &[])?);
    // This process's, for nothing is mounted on them here when they are removed.
    let folders = [(); 2].map(|()| PrivateFolder::new("mount"));
    let [one, two] = folders.map(|folder| done("making a folder", folder));
    let (one, two) = (one?, two?);
    let paths = [&one, &two].map(|folder| folder.named().to_string_lossy());
    let said = kit.run_helper(kit.helper("mount-options", &[&paths[0], &paths[1]]))?;
    let want = "max=1048576 max=77,stats=global";
    expect("the options of an instance without any, and of one with two", said.as_str(), want)
}

/// The owner of an instance that is mounted in a user namespace, as that namespace sees it, and what came of one with
/// statistics. Runs in a helper. `mapped`: whether user 0 of the namespace is this user.
pub(crate) fn in_user_namespace(mapped: bool) -> Result<String, Stop> {
    let own = done("the own entry of /proc", fs::metadata("/proc/self"))?;
    // Ubuntu's kernels let a process make one, and take all rights in it away.
    let restricted = fs::read_to_string("/proc/sys/kernel/apparmor_restrict_unprivileged_userns");
    if restricted.is_ok_and(|text| text.trim() != "0") {
        return Ok("not here: AppArmor restricts them".into());
    }
    if let Err(error) = namespace::own_users() {
        return Ok(format!("not here: {}", errno::<()>(&Err(error))));
    }
    if mapped {
        done("mapping a user", fs::write("/proc/self/uid_map", format!("0 {} 1", own.uid())))?;
        done("leaving groups alone", fs::write("/proc/self/setgroups", "deny"))?;
        done("mapping a group", fs::write("/proc/self/gid_map", format!("0 {} 1", own.gid())))?;
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
