//! Commands with a guest that are killed (`kill -9`): no QEMU and no second program go on, and the next command removes what is left.

use std::path::Path;

use crate::support::{BINARY, Folder, command, end, signal, wait_until};

/// The running processes that descend from this one, by number and command line.
fn descendants(of: u32) -> Vec<(u32, String)> {
    let mut found = Vec::new();
    for task in std::fs::read_dir(format!("/proc/{of}/task")).into_iter().flatten().flatten() {
        let children = std::fs::read_to_string(task.path().join("children")).unwrap_or_default();
        for child in children.split_whitespace().filter_map(|word| word.parse().ok()) {
            let line = std::fs::read(format!("/proc/{child}/cmdline")).unwrap_or_default();
            found.push((child, String::from_utf8_lossy(&line).into_owned()));
            found.extend(descendants(child));
        }
    }
    found
}

/// The names in a folder.
fn names(folder: &Folder) -> Vec<String> {
    let entries = std::fs::read_dir(folder.path("")).expect("there").flatten();
    entries.map(|entry| entry.file_name().to_string_lossy().into_owned()).collect()
}

#[test]
fn nothing_of_a_killed_command_goes_on_or_stays() {
    for words in [
        &["vm", "--", "guest-probe", "--sleep", "600"][..],
        &["vm", "--icount", "--profile", "/dev/null", "--", "guest-probe", "--sleep", "600"],
        &["run", "--quick", "--vm", "--out", "killed-run"],
    ] {
        let _guest = crate::one_guest();
        let (temporary, here) = (Folder::new("killed-tmp"), Folder::new("killed"));
        let mut command = command(BINARY, words);
        let child = command.env("TMPDIR", temporary.path("")).current_dir(here.path(""));
        let child = child.stdout(std::process::Stdio::null()).stderr(std::process::Stdio::null());
        let child = child.spawn().expect("it starts");
        let has_qemu = || descendants(child.id()).iter().any(|(_, line)| line.contains("qemu-system"));
        wait_until("QEMU runs", has_qemu);
        let all = descendants(child.id());
        signal(child.id(), "KILL");
        assert_eq!(end(child).code, None, "killed");
        let runs = |pid: u32| Path::new(&format!("/proc/{pid}/exe")).read_link().is_ok();
        wait_until("none of them is left", || !all.iter().any(|(pid, _)| runs(*pid)));
        // Any command that needs a folder of its own; this one is refused then.
        let mut next = crate::support::command(BINARY, &["run", "--vm=/nonexistent", "--out", "next"]);
        let next =
            next.env("TMPDIR", temporary.path("")).current_dir(here.path("")).output().expect("it starts");
        assert_ne!(next.status.code(), Some(0));
        assert_eq!(names(&temporary), Vec::<String>::new(), "{words:?}");
    }
}
