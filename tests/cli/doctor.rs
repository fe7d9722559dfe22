//! `binderperf doctor` as its users meet it.
//! Not here: the probes, tested on files in `doctor`; a guest's kernel (`guest::doctor`).

use std::os::unix::fs::PermissionsExt;
use std::path::Path;

use needs::{Need, need};

use crate::support::{
    BINARY, Called, Folder, binderperf, call, contents, read, signal, start, wait_until, with_full_stdout,
    with_stdout_unread, words,
};
use serde_json::Value;

fn doctor(words: &[&str]) -> Called {
    binderperf(&[&["doctor"], words].concat())
}

fn put(folder: &str, path: &str, text: impl AsRef<[u8]>) {
    let path = Path::new(folder).join(path);
    std::fs::create_dir_all(path.parent().expect("a file has a folder")).expect("make folder");
    std::fs::write(path, text).expect("write file");
}

fn system(name: &str) -> String {
    format!("{}/crates/doctor/src/tests/systems/{name}", env!("CARGO_MANIFEST_DIR"))
}

/// Verdict of one check in the JSON.
fn verdict(document: &Value, id: &str) -> String {
    let checks = document["checks"].as_array().expect("checks");
    let check = checks.iter().find(|check| check["id"] == id).unwrap_or_else(|| panic!("no check {id}"));
    check["verdict"].as_str().expect("a verdict").to_owned()
}

#[test]
fn this_machine_is_examined_and_measured() {
    let called = doctor(&["--format", "json"]);
    let document: Value = serde_json::from_str(&called.stdout).expect("JSON");
    assert_eq!(document["schema"], "binderperf.checkup");
    assert_eq!(document["looked_at"], "this machine");
    for id in ["cpu-idle-exit", "clock-cost", "rights-realtime"] {
        assert_ne!(verdict(&document, id), "unknown", "{id} is measured");
    }
    let serious = called.stdout.contains("\"verdict\": \"error\"");
    assert_eq!(called.code, Some(u8::from(serious).into()), "1 only if something is serious");
    let quick = doctor(&["--no-measure", "--format", "json"]).stdout;
    let document: Value = serde_json::from_str(&quick).expect("JSON");
    assert_eq!(verdict(&document, "cpu-idle-exit"), "unknown");
}

/// A device node without a driver, below a `/dev` of its own.
#[test]
fn a_device_node_without_a_driver_is_no_driver() {
    const MINOR: &str = "250";
    let taken = std::fs::read_to_string("/proc/misc").unwrap_or_default();
    let (taken, listed) = (
        taken.lines().any(|line| line.split_whitespace().next() == Some(MINOR)),
        format!("{taken}{}", std::fs::read_to_string("/proc/filesystems").unwrap_or_default()),
    );
    let script = format!(
        "mount -t tmpfs tmpfs /dev && mknod /dev/binder c 10 {MINOR} || exit 77; exec {BINARY} doctor --all --no-measure"
    );
    let called = call("unshare", &["-m", "sh", "-c", &script], &[]);
    let impossible = called.code == Some(77) || called.stderr.contains("unshare");
    need!(Need::Mount.met_if(!impossible, format_args!("no device node can be made: {}", called.stderr)));
    need!(Need::Mount.met_if(!taken && !listed.contains("binder"), "a node here has a driver"));
    let said = called.stdout.split_whitespace().collect::<Vec<_>>().join(" ");
    assert!(said.contains("/dev/binder: no driver behind this node: open gave ENODEV"), "{said}");
    assert!(said.contains("rm /dev/binder"), "{said}");
    assert!(!said.contains("has a binder driver") && !said.contains("chmod 666"), "{said}");
}

#[test]
fn the_worst_comes_first_and_everything_can_be_shown() {
    let folder = system("guest-debian-7.2");
    let short = doctor(&["--from", &folder]);
    let at = |text: &str| short.stdout.find(text).unwrap_or_else(|| panic!("{text}: {}", short.stdout));
    assert!(at("Serious") < at("Worth knowing") && at("emulation") < at("sched-autogroup"));
    assert!(short.stdout.lines().count() < 50, "it fits a screen: {}", short.stdout);
    assert_eq!(short.code, Some(1), "an emulated machine's numbers are not to be trusted");
    let all = doctor(&["--from", &folder, "--all"]).stdout;
    for said in
        ["Nothing wrong with", "driver-kind", "says: /proc/sys/kernel/osrelease: 7.2.13", "show: uname -r"]
    {
        assert!(all.contains(said), "{said}: {all}");
    }
}

#[test]
fn what_the_machine_allows_comes_first() {
    let folder = Folder::new("doctor-first");
    let to = folder.path("snapshot");
    let called = doctor(&["--save", &to]);
    let saved = doctor(&["--from", &to]);
    let in_order = |text: &str| {
        let parts =
            ["This machine\n", "\nIs it allowed?\n", "\nWhat can run\n", "latency binder", "Looked at "];
        let places: Vec<_> = parts.iter().map(|part| text.find(part)).collect();
        places[0] == Some(0) && places.iter().all(Option::is_some) && places.is_sorted()
    };
    assert!(in_order(&called.stdout) && in_order(&saved.stdout), "{called}\n{saved}");
    let allows = doctor(&["--allows", "--from", &to]).ended(0).stdout;
    assert!(saved.stdout.starts_with(&allows), "the same table: {saved}\n{allows}");
    let untried = doctor(&["--no-measure"]).stdout;
    assert!(!untried.contains("What can run"), "{untried}");
}

#[test]
fn exit_statuses_follow_the_worst() {
    let (warned, fine) = (Folder::new("doctor-warned"), Folder::new("doctor-fine"));
    let (warned, fine) = (warned.path("s"), fine.path("s"));
    for folder in [&warned, &fine] {
        put(folder, "proc/version", "Linux version 6.1.0 (x) #1\n");
    }
    put(&warned, "sys/devices/system/cpu/cpu0/cpufreq/scaling_governor", "powersave\n");
    for (folder, strict, want) in
        [(&warned, false, 0), (&warned, true, 1), (&fine, false, 0), (&fine, true, 0)]
    {
        let words = ["--from", folder.as_str(), "--strict"];
        doctor(if strict { &words } else { &words[..2] }).ended(want);
    }
}

#[test]
fn a_saved_machine_is_told_of_as_the_machine() {
    let folder = Folder::new("doctor-save");
    let to = folder.path("snapshot");
    let here = doctor(&["--no-measure", "--save", &to, "--format", "json"]);
    here.complained("files in ");
    let there = doctor(&["--from", &to, "--format", "json"]);
    let parsed = |called: &Called| serde_json::from_str::<Value>(&called.stdout).expect("JSON");
    let (here, there) = (parsed(&here), parsed(&there));
    assert_eq!(here["release"], there["release"]);
    let checks = here["checks"].as_array().expect("checks");
    // What changes between two looks, and each probe's files are read twice; binder users come and go.
    let fleeting = words(
        "load pressure-cpu pressure-memory memory-free thermal cpu-frequency-limit steal-time binder-buffers binder-threads kernel-tracing",
    );
    for check in checks {
        let id = check["id"].as_str().expect("an id");
        if !fleeting.contains(&id) {
            assert_eq!(check["verdict"], verdict(&there, id).as_str(), "{check}");
        }
    }
    assert_eq!(doctor(&["--no-measure", "--save", &to]).code, Some(2), "it is not empty any more");
    assert_eq!(doctor(&["--no-measure", "--save", "/proc/nothing"]).code, Some(4), "it cannot be made");
}

#[test]
fn a_killed_command_leaves_no_folder_that_looks_whole() {
    let folder = Folder::new("doctor-killed");
    for attempt in 0..5 {
        let to = folder.path(&format!("{attempt}"));
        let mut child = start(&["doctor", "--no-measure", "--save", &to]);
        let begun = || std::fs::read_dir(&to).is_ok_and(|mut entries| entries.next().is_some());
        wait_until("the first file is there", begun);
        signal(child.id(), "KILL");
        child.wait().expect("it ends");
        let called = doctor(&["--from", &to]);
        if !Path::new(&to).join("binderperf-snapshot.json").exists() {
            called.ended(2).complained("a part of a snapshot only");
        }
        // The next command begins anew, unless the old one was all but done.
        let again = doctor(&["--no-measure", "--save", &to]);
        assert!(again.stderr.contains("files in") || again.stderr.contains("not empty"), "{again}");
    }
}

/// With each shell that is here: phones have mksh, Debian dash, routers busybox.
#[test]
fn the_script_collects_this_machine() {
    let folder = Folder::new("doctor-collect");
    let script = folder.path("collect.sh");
    std::fs::write(&script, doctor(&["--collect"]).ended(0).stdout).expect("write file");
    let here: Value =
        serde_json::from_str(&doctor(&["--no-measure", "--format", "json"]).stdout).expect("JSON");
    // Android's programs.
    let properties = "echo '[ro.build.type]: [user]'; echo '[ro.soc.manufacturer]: [Maker]'; echo '[ro.soc.model]: [S1]'; \
                      echo '[wifi.interface]: [wlan0]'";
    for (name, script) in [("getprop", properties), ("dumpsys", "echo '  status: 3'; echo '  level: 14'")] {
        let file = folder.write(&format!("bin/{name}"), format!("#!/bin/sh\n{script}\n"));
        std::fs::set_permissions(file, std::fs::Permissions::from_mode(0o755)).expect("ours");
    }
    let path = format!("{}:{}", folder.path("bin"), std::env::var("PATH").expect("a PATH"));
    for shell in [&["sh"][..], &["bash"], &["busybox", "sh"], &["mksh"]] {
        let archive = folder.path("snap.tar");
        let stdout = std::fs::File::create(&archive).expect("make file");
        let stdin = std::fs::File::open(&script).expect("it was written");
        let mut command = std::process::Command::new(shell[0]);
        command.env("PATH", &path);
        match command.args(&shell[1..]).stdin(stdin).stdout(stdout).output() {
            Err(_) => continue,
            Ok(output) => {
                assert!(output.status.success() && output.stderr.is_empty(), "{shell:?} {output:?}")
            }
        }
        let allows = doctor(&["--from", &archive, "--allows"]).ended(0);
        allows.printed("ro.build.type is user; SoC Maker S1").printed("14 %");
        let listed = call("tar", &["-xOf", &archive, "./getprop.txt"], &[]).ended(0).stdout;
        assert!(!listed.contains("wifi"), "only what is needed leaves the machine: {listed}");
        let called = doctor(&["--from", &archive, "--format", "json"]);
        let there: Value = serde_json::from_str(&called.stdout).expect("JSON");
        assert_eq!(there["release"], here["release"], "{shell:?}");
        for id in [
            "driver-missing",
            "driver-permission",
            "kernel-sanitizers",
            "mitigations",
            "sched-autogroup",
            "tracefs",
            "rights-nice",
            "cpu-affinity",
            "cpu-smt",
            "virtualisation",
        ] {
            assert_eq!(verdict(&there, id), verdict(&here, id), "{shell:?} {id}");
        }
    }
}

#[test]
fn the_script_collects_without_rights_and_names_what_it_may_not_read() {
    use std::os::unix::process::CommandExt;
    let folder = Folder::new("doctor-nobody");
    let script = doctor(&["--collect"]).ended(0).stdout;
    for shell in ["sh", "busybox"] {
        let archive = folder.path("snap.tar");
        let stdout = std::fs::File::create(&archive).expect("make file");
        let mut command = std::process::Command::new(shell);
        command.args(if shell == "busybox" { &["sh", "-c"][..] } else { &["-c"] }).arg(&script);
        command.current_dir("/").stdout(stdout);
        if sys::identity::effective_uid() == 0 {
            command.uid(65534).gid(65534);
        }
        match command.output() {
            Err(_) => continue,
            Ok(output) => assert!(output.status.success(), "{shell} {output:?}"),
        }
        let called = doctor(&["--from", &archive, "--format", "json"]);
        let there: Value = serde_json::from_str(&called.stdout).expect("JSON");
        let here: Value =
            serde_json::from_str(&doctor(&["--no-measure", "--format", "json"]).stdout).expect("JSON");
        // Whether there is a driver shows without rights, too.
        assert_eq!(verdict(&there, "driver-missing"), verdict(&here, "driver-missing"), "{shell}");
        // What nobody may read is no finding.
        assert!(["ok", "unknown"].contains(&verdict(&there, "kernel-tracing").as_str()), "{shell} {there}");
    }
}

#[test]
fn what_is_no_snapshot_and_bad_words_are_refused() {
    let folder = Folder::new("doctor-bad");
    put(&folder.path("empty"), "x", "");
    put(
        &folder.path("newer"),
        "binderperf-snapshot.json",
        r#"{"schema":"binderperf.snapshot","version":99}"#,
    );
    for (words, want) in [
        (&["--from", "/nonexistent"][..], "ENOENT"),
        (&["--from", &folder.path("empty")], "not a snapshot"),
        (&["--from", &folder.path("newer")], "version 99"),
        (&["--from", "/etc/passwd"], "not a tar archive"),
        (&["--collect", "--all"], "cannot be used with"),
        (&["--from", "x", "--save", "y"], "cannot be used with"),
        (&["--from", "x", "--klog-check"], "cannot be used with"),
        (&["--nonsense"], "unexpected argument"),
    ] {
        doctor(words).ended(2).complained(want);
    }
}

#[test]
fn garbage_in_every_file_is_survived() {
    let folder = Folder::new("doctor-garbage");
    let to = folder.path("snapshot");
    assert!(doctor(&["--no-measure", "--save", &to]).stderr.contains("files in"));
    let mut folders = vec![std::path::PathBuf::from(&to)];
    while let Some(inner) = folders.pop() {
        for entry in std::fs::read_dir(inner).expect("it was made").flatten() {
            let path = entry.path();
            if path.is_dir() {
                folders.push(path);
            } else if entry.file_name() != "binderperf-snapshot.json" {
                std::fs::write(path, [0xff, 0, b'9', b'\n', 0x1b, b'[', b'2', b'J'])
                    .expect("it was written before");
            }
        }
    }
    let called = doctor(&["--from", &to, "--all"]);
    assert!(matches!(called.code, Some(0 | 1)), "{}", called.stderr);
    called.printed("Could not be told");
    assert!(!called.stdout.contains('\u{1b}'), "no file steers the terminal");
}

#[test]
fn the_kernels_log_is_watched_or_said_to_be_closed() {
    let called = doctor(&["--klog-check", "--no-measure"]);
    match called.code {
        Some(3) => assert!(called.stderr.contains("/dev/kmsg"), "{}", called.stderr),
        code => {
            let bad = called.stderr.contains("complained") || called.stdout.contains("Serious");
            assert_eq!(code, Some(i32::from(bad)), "{}{}", called.stdout, called.stderr);
        }
    }
}

#[test]
fn outputs_that_take_nothing_are_told_apart() {
    let folder = system("guest-c-7.2");
    assert_eq!(with_full_stdout(&["doctor", "--from", &folder]), Some(4));
    let called = with_stdout_unread(&["doctor", "--from", &folder]);
    assert!(called.stderr.is_empty() && called.code != Some(4), "{:?} {}", called.code, called.stderr);
}

#[test]
fn a_run_keeps_what_was_found() {
    let folder = Folder::new("doctor-run");
    let record = folder.path("r.json");
    let words = ["throughput", "binder", "--driver=embedded", "--benchmark_filter=/4$", "--controls=none"];
    binderperf(&[&words[..], &["--benchmark_min_time=5x", "--record", &record]].concat()).ended(0);
    let run = read(&record);
    let found = run.findings.iter().any(|finding| finding.id == "debug-build");
    assert_eq!(found, cfg!(debug_assertions), "{:?}", run.findings);
    assert!(run.findings.iter().all(|finding| finding.proof.is_some() && !finding.evidence.is_empty()));
    assert!(!run.findings.iter().any(|finding| finding.id == "driver-missing"), "another driver served");
}

#[test]
fn the_page_lists_every_probe_and_no_other() {
    let page = contents(format!("{}/docs/doctor.md", env!("CARGO_MANIFEST_DIR")));
    let rows = page.lines().filter_map(|line| line.strip_prefix("| `")?.split_once("` | "));
    let listed: Vec<(&str, &str)> = rows.collect();
    let known: Vec<&str> = doctor::catalogue().map(|(_, probe)| probe.id).collect();
    assert_eq!(listed.iter().map(|(id, _)| *id).collect::<Vec<_>>(), known);
    for ((id, rest), (_, probe)) in listed.iter().zip(doctor::catalogue()) {
        assert!(rest.starts_with(probe.looks_at), "{id} looks at something else on its page: {rest}");
        assert!(
            rest.ends_with(&format!("| {} |", probe.grounds)),
            "{id} has other grounds: {}",
            probe.grounds
        );
    }
    assert!(page.contains(&format!("{} probes.", known.len())));
}

#[test]
fn what_is_allowed_is_tried_and_each_test_has_an_answer() {
    let called = doctor(&["--allows", "--format", "json"]).ended(0);
    let told = called.json();
    let answer = |rows: &str, key: &str, what: &str| {
        let rows = told[rows].as_array().expect("rows");
        let row = rows.iter().find(|row| row[key] == what).unwrap_or_else(|| panic!("no {what}: {told}"));
        row["answer"].as_str().expect("an answer").to_owned()
    };
    for what in ["mount a binderfs", "be SCHED_FIFO", "record by tracefs", "record by perfetto"] {
        assert_ne!(answer("tried", "what", what), "unknown", "{what} was tried");
    }
    // A binderfs of its own suffices for all tests of the driver.
    if answer("tried", "what", "mount a binderfs") == "yes" {
        assert_eq!(answer("tests", "test", "conformance, chaos"), "yes");
    } else {
        assert_eq!(answer("tests", "test", "conformance, chaos"), "no");
    }
    // Of a snapshot on which nothing was tried nothing is claimed.
    let folder = system("guest-debian-7.2");
    let called = doctor(&["--allows", "--from", &folder]).ended(0);
    called.printed("mount a binderfs").printed("it was not tried");
}
