//! Tests of the probes on small sets of files (`cases.txt`: each must report on some and not on others) and on whole
//! systems (`systems/`).

use std::collections::{BTreeMap, BTreeSet};
use std::fs;
use std::path::{Path, PathBuf};

use ::driver::root::{Fixture, LONGEST};
use record::checkup::{Check, Verdict};

use super::*;

mod field;

const FACTS: &str = facts::FILE;

/// A section of a table of expectations: the rest of its heading, and its cases.
struct Section<'t> {
    name: &'t str,
    rest: &'t str,
    cases: Vec<Case<'t>>,
}

/// An expected verdict, with its text and a machine's files.
#[derive(Debug)]
struct Case<'t> {
    want: Verdict,
    says: &'t str,
    files: Vec<(&'t str, String)>,
}

/// Parses a table; `cases.txt` describes the format.
fn sections(table: &str) -> Vec<Section<'_>> {
    let mut sections: Vec<Section<'_>> = Vec::new();
    for line in table.lines().filter(|line| !line.is_empty() && !line.starts_with('#')) {
        if let Some((name, rest)) = line.strip_prefix('[').and_then(|line| line.split_once(']')) {
            sections.push(Section { name, rest: rest.trim(), cases: Vec::new() });
            continue;
        }
        let cases = &mut sections.last_mut().expect("a heading comes first").cases;
        let (key, text) = line.split_once(':').unwrap_or_else(|| panic!("no colon: {line}"));
        let text = text.strip_prefix(' ').unwrap_or(text);
        match key.strip_prefix("  ") {
            Some(path) => {
                let text = text.replace("\\n", "\n").replace("\\t", "\t");
                cases.last_mut().expect("a verdict comes first").files.push((path, text));
            }
            None => {
                let want =
                    serde_json::from_value(key.into()).unwrap_or_else(|_| panic!("no verdict: {line}"));
                cases.push(Case { want, says: text, files: Vec::new() });
            }
        }
    }
    sections
}

/// All small machines, each with the probe that is tested on it.
fn cases() -> Vec<(&'static Probe, Case<'static>)> {
    let sections = sections(include_str!("tests/cases.txt")).into_iter();
    sections
        .flat_map(|section| section.cases.into_iter().map(move |case| (probe(section.name), case)))
        .collect()
}

/// A saved machine with these files. The facts are JSON fields.
fn machine(name: &str, files: &[(&str, String)]) -> Fixture {
    let machine = Fixture::new(&format!("doctor-{name}"), &[]);
    let facts = files.iter().filter(|(path, _)| *path == "facts").map(|(_, fields)| format!(",{fields}"));
    let head = "\"schema\":\"binderperf.snapshot\",\"version\":1";
    machine.put(FACTS, format!("{{{head}{}}}", facts.collect::<String>()));
    for (path, text) in files.iter().filter(|(path, _)| *path != "facts") {
        machine.put(path, format!("{text}\n"));
    }
    machine
}

fn snapshot(machine: &Fixture) -> Snapshot {
    Snapshot::open(machine.path()).expect("a snapshot")
}

fn probe(id: &str) -> &'static Probe {
    let found = catalogue().find(|(_, probe)| probe.id == id);
    found.unwrap_or_else(|| panic!("no probe {id}")).1
}

#[test]
fn each_probe_says_what_it_must_of_each_machine() {
    let mut wrong = Vec::new();
    for (number, (probe, case)) in cases().iter().enumerate() {
        let machine = machine(&format!("case-{number}"), &case.files);
        let check = probe.look(&snapshot(&machine));
        let told = format!("{} {:?}", check.text, check.fix);
        if check.verdict != case.want || !told.contains(case.says) {
            wrong.push(format!("{} {case:?}\n  gave {:?}: {told}", probe.id, check.verdict));
        }
        let found = check.verdict > Verdict::Unknown;
        if found && (check.effect.is_none() || check.evidence.is_empty()) {
            wrong.push(format!("found without effect or evidence: {check:?}"));
        }
    }
    assert!(wrong.is_empty(), "{}", wrong.join("\n"));
}

#[test]
fn each_probe_has_a_machine_where_it_speaks_and_one_where_it_does_not() {
    let mut seen: BTreeMap<&str, (bool, bool)> = BTreeMap::new();
    for (probe, case) in cases() {
        let (speaks, silent) = seen.entry(probe.id).or_default();
        *speaks |= case.want > Verdict::Unknown;
        *silent |= case.want == Verdict::Ok;
    }
    let wanting: Vec<_> = catalogue()
        .map(|(_, probe)| probe.id)
        .filter(|id| seen.get(id) != Some(&(true, true)))
        .map(|id| format!("{id}: {:?}", seen.get(id)))
        .collect();
    assert!(wanting.is_empty(), "(speaks, is silent) must both be shown: {wanting:?}");
}

#[test]
fn names_are_unique_and_everything_is_said() {
    let mut ids = BTreeSet::new();
    for (area, probe) in catalogue() {
        assert!(ids.insert(probe.id), "{} twice", probe.id);
        let (one, other) = match probe.grounds {
            Grounds::Measured { effect, command } => (effect, command),
            Grounds::Cited { source, says } => (source, says),
        };
        for said in [area, probe.id, probe.looks_at, probe.proof, one, other] {
            assert!(!said.is_empty(), "{probe:?}");
        }
    }
    assert!(ids.len() > 40, "{}", ids.len());
}

/// No probe may claim anything about a machine of which nothing is known.
#[test]
fn of_nothing_nothing_is_said() {
    let machine = machine("nothing", &[]);
    let checkup = examine(&snapshot(&machine));
    let told: Vec<&Check> = checkup.checks.iter().filter(|check| check.verdict != Verdict::Unknown).collect();
    assert!(told.is_empty(), "{told:#?}");
}

/// A machine's files as if copied by hand, where no missing file is known not to exist.
fn by_hand(name: &str, files: &[(&str, String)]) -> Fixture {
    let copy = machine(name, files);
    fs::remove_file(copy.path().join(FACTS)).expect("it is there");
    if !copy.path().join("proc/version").exists() {
        copy.put("proc/version", "");
    }
    copy
}

/// Whatever file was not copied from a machine, no probe calls fine what the whole copy does not.
#[test]
fn a_copy_that_lacks_a_file_is_not_called_fine() {
    let mut wrong = Vec::new();
    let of_files =
        cases().into_iter().filter(|(_, case)| case.files.iter().all(|(path, _)| *path != "facts"));
    for (number, (probe, case)) in of_files.enumerate() {
        for lacking in 0..case.files.len() {
            let (path, _) = case.files[lacking];
            let rest: Vec<_> = case.files.iter().filter(|(other, _)| *other != path).cloned().collect();
            let copy = by_hand(&format!("fine-{number}-{lacking}"), &rest);
            let check = probe.look(&snapshot(&copy));
            if check.verdict == Verdict::Ok && case.want != Verdict::Ok {
                wrong.push(format!("{} without {path}: {}; {case:?}", probe.id, check.text));
            }
        }
    }
    assert!(wrong.is_empty(), "{}", wrong.join("\n"));
}

/// Whatever file was not copied from a machine, no probe accuses it of what the whole copy does not show.
#[test]
fn a_copy_that_lacks_a_file_accuses_of_nothing_new() {
    let mut wrong = Vec::new();
    let of_files =
        cases().into_iter().filter(|(_, case)| case.files.iter().all(|(path, _)| *path != "facts"));
    for (number, (probe, case)) in of_files.enumerate() {
        let whole = probe.look(&snapshot(&machine(&format!("lacks-{number}"), &case.files)));
        let copy = by_hand(&format!("lacks-{number}"), &case.files);
        let files = case.files.iter().map(|(path, _)| *path);
        for lacking in std::iter::once(None).chain(files.map(Some)) {
            let hidden = copy.path().join("hidden");
            let path = lacking.map(|lacking| copy.path().join(lacking));
            path.iter().for_each(|path| fs::rename(path, &hidden).expect("it was put there"));
            let check = Snapshot::open(copy.path()).map(|snapshot| probe.look(&snapshot));
            path.iter().for_each(|path| fs::rename(&hidden, path).expect("its folder is there"));
            // A folder without the kernel's version is none.
            let Ok(check) = check else { continue };
            if check.verdict > Verdict::Unknown && check.verdict > whole.verdict {
                wrong.push(format!("{} without {lacking:?}: {}; {case:?}", probe.id, check.text));
            }
        }
    }
    assert!(wrong.is_empty(), "{}", wrong.join("\n"));
}

/// A configuration without the files that show a loaded driver proves no absence.
#[test]
fn a_configuration_alone_proves_no_absence() {
    for option in ["=y", "=m", " is not set"] {
        let config = format!("CONFIG_ANDROID_BINDER_IPC{option}\n");
        let copy = Fixture::new(
            &format!("doctor-alone{}", option.len()),
            &[("proc/sys/kernel/osrelease", "6.6.30-android15-8\n"), ("proc/config", &config)],
        );
        let check = probe("driver-missing").look(&snapshot(&copy));
        assert!(check.verdict <= Verdict::Unknown, "{option}: {check:?}");
    }
}

/// Every file that any probe reads in any case.
fn looked_at() -> BTreeSet<PathBuf> {
    let mut asked = BTreeSet::new();
    for (number, (probe, case)) in cases().iter().enumerate() {
        let machine = machine(&format!("asked-{number}"), &case.files);
        let snapshot = snapshot(&machine);
        let _ = probe.look(&snapshot);
        asked.extend(snapshot.root().asked());
    }
    // Some are folders of others.
    let all = asked.clone();
    asked.retain(|path| !all.iter().any(|other| other != path && other.starts_with(path)));
    asked
}

#[test]
fn what_is_unreadable_empty_enormous_or_garbage_is_survived_and_told() {
    let garbage: Vec<u8> = (0..5000_u32).map(|at| (at.wrapping_mul(2_654_435_761) >> 13) as u8).collect();
    let long = "9".repeat(100_000) + "\n";
    let asked = looked_at();
    for (name, bytes) in [
        ("empty", &b""[..]),
        ("garbage", &garbage),
        ("zero", b"\0\0\0\0"),
        ("long", long.as_bytes()),
        ("minus", b"-1\n"),
        ("lines", b"\n\n\n:::\n,,,\n===\n"),
    ] {
        let machine = machine(&format!("bad-{name}"), &[]);
        for path in asked.iter().filter(|path| *path != Path::new(FACTS)) {
            machine.put(path, bytes);
        }
        let checkup = examine(&snapshot(&machine));
        assert!(checkup.checks.iter().any(|check| check.verdict == Verdict::Unknown), "{name}");
    }
    let machine = machine("enormous", &[]);
    let file = fs::File::create(machine.path().join("huge")).expect("make file");
    file.set_len(LONGEST * 10).expect("a sparse file");
    let snapshot = snapshot(&machine);
    let why = snapshot.text("huge").expect_err("too long").to_string();
    assert!(why.contains("longer than"), "{why}");
    machine.put("folder/file", "");
    assert!(snapshot.text("folder").expect_err("a folder").to_string().contains("cannot be read"));
    std::os::unix::fs::symlink("loop", machine.path().join("loop")).expect("a link to itself");
    assert!(snapshot.text("loop").expect_err("a loop").to_string().contains("ELOOP"));
}

#[test]
fn a_saved_machine_is_the_machine() {
    // With the files of all cases: what a probe reads must be copied.
    for (number, (probe, case)) in cases().iter().enumerate() {
        let machine = machine(&format!("save-{number}"), &case.files);
        let copy = Fixture::new(&format!("doctor-copy-{number}"), &[]);
        let original = snapshot(&machine);
        save(&original, copy.path()).expect("it can be written");
        let (again, check) = (probe.look(&snapshot(&copy)), probe.look(&original));
        assert_eq!((again.verdict, &again.text), (check.verdict, &check.text), "{case:?}");
    }
}

/// Runs the collecting script on a machine's files; returns the archive.
fn collected(machine: &Fixture) -> Vec<u8> {
    use std::io::Write;
    let mut shell = std::process::Command::new("sh")
        .env("BINDERPERF_ROOT", machine.path())
        .stdin(std::process::Stdio::piped())
        .stdout(std::process::Stdio::piped())
        .spawn()
        .expect("a shell");
    let text = script();
    shell.stdin.take().expect("piped").write_all(text.as_bytes()).expect("the shell reads it");
    let output = shell.wait_with_output().expect("it ends");
    assert!(output.status.success(), "{:?}", output.status);
    output.stdout
}

#[test]
fn the_script_collects_every_file_that_a_probe_reads() {
    let machine = machine("collect", &[]);
    let mut groups = String::new();
    let mut asked = BTreeSet::new();
    for path in looked_at() {
        let text = path.to_str().expect("a text");
        // One machine has one release.
        let parts: Vec<&str> = text.split('/').collect();
        if parts.len() == 3 && parts[0] == "lib" {
            continue;
        }
        asked.insert(match parts.as_slice() {
            ["boot", _] => "boot/config-R".to_owned(),
            ["lib", "modules", _, rest @ ..] => format!("lib/modules/R/{}", rest.join("/")),
            _ => text.to_owned(),
        });
    }
    for (_, case) in cases() {
        let lines = case.files.iter().filter(|(path, _)| *path == "proc/self/cgroup");
        lines.for_each(|(_, text)| groups += &format!("{text}\n"));
    }
    let made = [
        ("proc/self/cgroup", groups.as_str()),
        ("proc/self/mounts", "binder /dev/binderfs binder rw 0 0\n/dev/secret / ext4 rw 0 0\n"),
        ("proc/sys/kernel/osrelease", "R\n"),
        ("lib/modules/R/modules.dep", "kernel/binder_linux.ko.xz:\nkernel/other.ko:\n"),
    ];
    for path in &asked {
        let text = made.iter().find(|(name, _)| name == path).map_or("1\n", |(_, text)| text);
        match collect::FOLDERS.contains(&path.as_str()) {
            true => machine.put(format!("{path}/file"), text),
            false => machine.put(path, text),
        }
    }
    let archive = Fixture::new("doctor-collected", &[]);
    archive.put("snap.tar", collected(&machine));
    let snapshot = Snapshot::open(&archive.path().join("snap.tar")).expect("a snapshot");
    // These are not files of the machine but facts.
    let facts = [FACTS, "getprop.txt", "binder-stats.txt"];
    let lacking: Vec<&String> = asked
        .iter()
        .filter(|path| !facts.contains(&path.as_str()) && !snapshot.root().exists(path))
        .collect();
    assert!(lacking.is_empty(), "the script does not collect {lacking:#?}");
    let mounts = snapshot.text("proc/self/mounts").expect("collected");
    assert!(mounts.contains("binderfs") && !mounts.contains("secret"), "{mounts}");
    assert!(!snapshot.text("lib/modules/R/modules.dep").expect("collected").contains("other"));
}

#[test]
fn an_archive_that_is_none_or_leads_out_is_refused() {
    let folder = Fixture::new("doctor-archive", &[]);
    let place = folder.path().join("x.tar");
    let refused = |bytes: &[u8]| {
        folder.put("x.tar", bytes);
        Snapshot::open(&place).expect_err("refused").to_string()
    };
    assert!(refused(b"").contains("not a snapshot"));
    assert!(refused(&[b'x'; 2000]).contains("not a tar archive"));
    let entry = |name: &str, size: &str| {
        let mut block = [0; 512];
        block[..name.len()].copy_from_slice(name.as_bytes());
        block[124..124 + size.len()].copy_from_slice(size.as_bytes());
        block[257..262].copy_from_slice(b"ustar");
        block
    };
    assert!(refused(&entry("../out", "0")).contains("leads out"));
    assert!(refused(&entry("/etc/x", "0")).contains("leads out"));
    assert!(refused(&entry("proc/version", "777")).contains("middle"));
    assert!(refused(&entry("proc/version", "x")).contains("no size"));
}

#[test]
fn what_is_no_snapshot_is_refused() {
    let refused = |path: &Path| Snapshot::open(path).expect_err("no snapshot").to_string();
    assert!(refused(Path::new("/nonexistent")).contains("ENOENT"));
    let machine = machine("none", &[]);
    let remove_facts = || fs::remove_file(machine.path().join(FACTS)).expect("it is there");
    remove_facts();
    assert!(refused(machine.path()).contains("--save"));
    for (text, want) in [
        ("{", "not understood"),
        (r#"{"schema":"x","version":1}"#, "not a snapshot's facts"),
        (r#"{"schema":"binderperf.snapshot","version":9}"#, "version 9"),
    ] {
        machine.put(FACTS, text);
        assert!(refused(machine.path()).contains(want), "{}", refused(machine.path()));
    }
    remove_facts();
    machine.put("proc/version", "Linux version 5.10.1 (x) #1\n");
    assert_eq!(snapshot(&machine).release(), "5.10.1", "copied by hand");
    let full = save(&snapshot(&machine), machine.path()).expect_err("not empty").to_string();
    assert!(full.contains("not empty"), "{full}");
    machine.put("binderperf-snapshot-0123456789abcdef.tmp/proc/version", "Linux version 5.10.1 (x) #1\n");
    assert!(refused(machine.path()).contains("a part of a snapshot only"), "its writer was killed");
}

#[test]
fn this_machine_is_examined_and_a_run_keeps_what_is_found() {
    let checkup = examine(&Snapshot::live(gather(true)));
    assert_eq!(checkup.checks.len(), catalogue().count());
    assert!(!checkup.release.is_empty());
    let unknown =
        |id: &str| checkup.checks.iter().any(|check| check.id == id && check.verdict == Verdict::Unknown);
    assert!(unknown("cpu-idle-exit") && unknown("clock-cost"), "nothing was measured");
    let found = at_start(HostClass::Bare, None);
    assert!(found.iter().all(|finding| finding.severity < Severity::Error), "{found:?}");
    assert!(
        found.iter().all(|finding| !finding.id.starts_with("driver-") && !finding.id.starts_with("binder-"))
    );
}

#[test]
fn what_every_rendering_says_anyway_is_not_said_twice() {
    let found = at_start(HostClass::Tcg, None);
    let severity = |id: &str| found.iter().find(|finding| finding.id == id).map(|finding| finding.severity);
    assert_eq!(severity("emulation"), Some(Severity::Info));
    assert!(severity("debug-build").is_none_or(|severity| severity == Severity::Info));
}

fn folder(name: &str) -> PathBuf {
    PathBuf::from(env!("CARGO_MANIFEST_DIR")).join("src/tests/systems").join(name)
}

/// All findings on these systems that are not OK, in output order.
const FINDINGS: &str = include_str!("tests/systems/findings.txt");

#[test]
fn each_system_is_told_of_as_it_is() {
    let mut wrong = Vec::new();
    for Section { name, rest: release, cases } in sections(FINDINGS) {
        let checkup = examine(&Snapshot::open(&folder(name)).expect("a snapshot"));
        let told = checkup.checks.iter().filter(|check| check.verdict != Verdict::Ok);
        let told: Vec<(&str, Verdict)> = told.map(|check| (check.id.as_str(), check.verdict)).collect();
        let want: Vec<(&str, Verdict)> = cases.iter().map(|case| (case.says, case.want)).collect();
        if told != want || checkup.release != release {
            wrong.push(format!("{name} ({}): {told:?}", checkup.release));
        }
    }
    assert!(wrong.is_empty(), "{}", wrong.join("\n"));
}

#[test]
fn every_system_in_the_folder_is_told_of_and_names_no_owner() {
    let mut names: Vec<String> = std::fs::read_dir(folder(""))
        .expect("the folder")
        .flatten()
        .filter(|entry| entry.path().is_dir())
        .filter_map(|entry| entry.file_name().into_string().ok())
        .collect();
    names.sort_unstable();
    let mut known: Vec<&str> = sections(FINDINGS).iter().map(|section| section.name).collect();
    known.sort_unstable();
    assert_eq!(names, known);
    for name in names {
        assert!(!folder(&name).join("proc/sys/kernel/hostname").exists(), "{name} names its host");
    }
}

#[test]
fn words_of_a_few_systems() {
    let said = |system: &str, id: &str| {
        let checkup = examine(&Snapshot::open(&folder(system)).expect("a snapshot"));
        let check = checkup.checks.into_iter().find(|check| check.id == id).expect("a check");
        format!("{}; {}", check.text, check.fix.unwrap_or_default())
    };
    for (system, id, want) in [
        ("microvm-6.18", "driver-missing", "(not built)"),
        ("microvm-6.18", "driver-missing", "Debian's linux-image-amd64"),
        ("guest-rust-7.2", "driver-kind", "in Rust"),
        ("guest-c-7.2", "driver-kind", "in C"),
        ("guest-debian-7.2", "kernel-preemption", "lazy"),
        ("synthetic-phone-eng", "binder-threads", "1500 (binder)"),
        ("synthetic-phone-eng", "cpu-asymmetry", "3 capacities"),
        ("synthetic-phone-old", "driver-locking", "backported"),
    ] {
        assert!(said(system, id).contains(want), "{system} {id}: {}", said(system, id));
    }
}
