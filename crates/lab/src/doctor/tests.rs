//! Room: machines made of files; each probe must speak on some and be silent on others.
//! Not here: the machines (beside the probes), real ones (`fixtures`).

use std::collections::{BTreeMap, BTreeSet};
use std::fs;
use std::path::{Path, PathBuf};

use super::*;

pub(super) use record::checkup::Verdict;

mod fixtures;

/// The place of a case's facts; its content is what stands between the braces.
pub(super) const FACTS: &str = facts::FILE;

/// A machine of a few files, and what one probe must say of it.
#[derive(Debug)]
pub(super) struct Case {
    probe: &'static str,
    want: Verdict,
    /// A part of what it says.
    says: &'static str,
    files: &'static [(&'static str, &'static str)],
}

pub(super) const fn case(
    probe: &'static str,
    want: Verdict,
    says: &'static str,
    files: &'static [(&'static str, &'static str)],
) -> Case {
    Case { probe, want, says, files }
}

/// A machine's files, gone with the value.
pub(super) struct Machine(PathBuf);

impl Machine {
    pub(super) fn new(name: &str, files: &[(&str, &str)]) -> Self {
        let root = std::env::temp_dir().join(format!("binderperf-doctor-{name}-{}", std::process::id()));
        let machine = Self(root);
        fs::create_dir_all(&machine.0).expect("make folder");
        machine.put(FACTS, "{\"schema\":\"binderperf.snapshot\",\"version\":1}");
        for (path, text) in files {
            match *path {
                FACTS => {
                    machine.put(FACTS, format!("{{\"schema\":\"binderperf.snapshot\",\"version\":1,{text}}}"))
                }
                path => machine.put(path, text),
            }
        }
        machine
    }

    pub(super) fn put(&self, path: &str, bytes: impl AsRef<[u8]>) {
        let path = self.0.join(path);
        fs::create_dir_all(path.parent().expect("a file has a folder")).expect("make folder");
        fs::write(path, bytes).expect("write file");
    }

    pub(super) fn snapshot(&self) -> Snapshot {
        Snapshot::open(&self.0).expect("a snapshot")
    }
}

impl Drop for Machine {
    fn drop(&mut self) {
        let _ = fs::remove_dir_all(&self.0);
    }
}

fn probe(id: &str) -> &'static Probe {
    let found = catalogue().find(|(_, probe)| probe.id == id);
    found.unwrap_or_else(|| panic!("no probe {id}")).1
}

#[test]
fn each_probe_says_what_it_must_of_each_machine() {
    let mut wrong = Vec::new();
    for (number, case) in probes::cases().enumerate() {
        let machine = Machine::new(&format!("case-{number}"), case.files);
        let check = probe(case.probe).look(&machine.snapshot());
        let told = format!("{} {:?}", check.text, check.fix);
        if check.verdict != case.want || !told.contains(case.says) {
            wrong.push(format!("{case:?}\n  gave {:?}: {told}", check.verdict));
        }
        let found = check.verdict > Verdict::Unknown;
        if found && (check.effect.is_none() || check.evidence.is_empty()) {
            wrong.push(format!("{case:?} is found without effect or evidence: {check:?}"));
        }
    }
    assert!(wrong.is_empty(), "{}", wrong.join("\n"));
}

#[test]
fn each_probe_has_a_machine_where_it_speaks_and_one_where_it_does_not() {
    let mut seen: BTreeMap<&str, (bool, bool)> = BTreeMap::new();
    for case in probes::cases() {
        let (speaks, silent) = seen.entry(case.probe).or_default();
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
        for said in [area, probe.id, probe.looks_at, probe.source, probe.proof] {
            assert!(!said.is_empty(), "{probe:?}");
        }
    }
    assert!(ids.len() > 40, "{}", ids.len());
}

/// What no probe may say of a machine of which nothing is known.
#[test]
fn of_nothing_nothing_is_said() {
    let machine = Machine::new("nothing", &[]);
    let checkup = examine(&machine.snapshot());
    // Two say that what they want to see is not there, which is true.
    let found: Vec<&str> = checkup
        .checks
        .iter()
        .filter(|check| check.verdict > Verdict::Unknown)
        .map(|check| check.id.as_str())
        .collect();
    assert_eq!(found, ["kernel-config", "tracefs"]);
}

/// Every file that any probe looks at, in any case.
fn looked_at() -> BTreeSet<String> {
    let mut asked = BTreeSet::new();
    for (number, case) in probes::cases().enumerate() {
        let machine = Machine::new(&format!("asked-{number}"), case.files);
        let snapshot = machine.snapshot();
        let _ = probe(case.probe).look(&snapshot);
        asked.extend(snapshot.asked());
    }
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
        let machine = Machine::new(&format!("bad-{name}"), &[]);
        for path in &asked {
            machine.put(path, bytes);
        }
        let checkup = examine(&machine.snapshot());
        assert!(checkup.checks.iter().any(|check| check.verdict == Verdict::Unknown), "{name}");
    }
    let machine = Machine::new("enormous", &[]);
    let file = fs::File::create(machine.0.join("huge")).expect("make file");
    file.set_len(snapshot::LONGEST * 10).expect("a sparse file");
    let snapshot = machine.snapshot();
    let why = snapshot.text("huge").expect_err("too long").to_string();
    assert!(why.contains("longer than"), "{why}");
    machine.put("folder/file", "");
    assert!(snapshot.text("folder").expect_err("a folder").to_string().contains("cannot be read"));
    std::os::unix::fs::symlink("loop", machine.0.join("loop")).expect("a link to itself");
    assert!(snapshot.text("loop").expect_err("a loop").to_string().contains("ELOOP"));
}

#[test]
fn a_saved_machine_is_the_machine() {
    // All cases in one: what a probe looks at must be among what is copied.
    for (number, case) in probes::cases().enumerate() {
        let machine = Machine::new(&format!("save-{number}"), case.files);
        let copy = Machine(
            std::env::temp_dir().join(format!("binderperf-doctor-copy-{number}-{}", std::process::id())),
        );
        let snapshot = machine.snapshot();
        save(&snapshot, &copy.0).expect("it can be written");
        let again = probe(case.probe).look(&copy.snapshot());
        let check = probe(case.probe).look(&snapshot);
        assert_eq!((again.verdict, &again.text), (check.verdict, &check.text), "{case:?}");
    }
}

#[test]
fn what_is_no_snapshot_is_refused() {
    let refused = |path: &Path| Snapshot::open(path).expect_err("no snapshot").to_string();
    assert!(refused(Path::new("/nonexistent")).contains("ENOENT"));
    let machine = Machine::new("none", &[]);
    fs::remove_file(machine.0.join(FACTS)).expect("it is there");
    assert!(refused(&machine.0).contains("--save"));
    for (text, want) in [
        ("{", "not understood"),
        (r#"{"schema":"x","version":1}"#, "not a snapshot's facts"),
        (r#"{"schema":"binderperf.snapshot","version":9}"#, "version 9"),
    ] {
        machine.put(FACTS, text);
        assert!(refused(&machine.0).contains(want), "{}", refused(&machine.0));
    }
    fs::remove_file(machine.0.join(FACTS)).expect("it is there");
    machine.put("proc/version", "Linux version 5.10.1 (x) #1\n");
    assert_eq!(machine.snapshot().release(), "5.10.1", "copied by hand");
    let full = save(&machine.snapshot(), &machine.0).expect_err("not empty").to_string();
    assert!(full.contains("not empty"), "{full}");
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
