//! Permissions of a machine, and which tests can run on it: a pure function of a snapshot and of what was tried there.
//! Not here: trying (`bench::permission`), checks of what affects numbers (`probes`).

use record::Battery;
use record::permissions::{Answer, Permission, Permissions, TestPermission};

use super::facts::{Attempt, ContextTried, Tried};
use super::probes::build::property;
use super::snapshot::Snapshot;

/// Permissions of the machine.
#[must_use]
pub fn allows(snapshot: &Snapshot) -> Permissions {
    let tried = snapshot.facts().tried.clone().unwrap_or_default();
    let grants = Grants::of(snapshot, &tried);
    Permissions {
        machine: machine(snapshot, &tried),
        tried: rows(snapshot, &tried),
        tests: grants.tests(),
        denials: tried.denials,
    }
}

fn permission(what: impl Into<String>, answer: Answer, why: impl Into<String>) -> Permission {
    Permission { what: what.into(), answer, why: why.into() }
}

/// The kind of machine: build, user, SELinux.
fn machine(snapshot: &Snapshot, tried: &Tried) -> Vec<Permission> {
    let root = match tried.uid {
        Some(0) => permission("root", Answer::Yes, "uid 0"),
        Some(2000) => permission("root", Answer::No, "uid 2000, Android's user shell"),
        Some(uid) => permission("root", Answer::No, format!("uid {uid}")),
        None => permission("root", Answer::Unknown, "the user is not known"),
    };
    let build = property(snapshot, "ro.build.type").ok().flatten().map(|(_, kind)| kind);
    let soc = |name: &str| {
        property(snapshot, name).ok().flatten().map_or(String::new(), |(_, soc)| format!(" {soc}"))
    };
    let soc = soc("ro.soc.manufacturer") + &soc("ro.soc.model");
    let soc = if soc.is_empty() { soc } else { format!("; SoC{soc}") };
    let production = match build.as_deref() {
        Some("user") => permission("production build", Answer::Yes, format!("ro.build.type is user{soc}")),
        Some(kind) => permission("production build", Answer::No, format!("ro.build.type is {kind}{soc}")),
        None if snapshot.is_complete() => permission("production build", Answer::No, "no Android"),
        None => permission("production build", Answer::Unknown, "no build properties"),
    };
    let selinux = match snapshot.text("sys/fs/selinux/enforce").as_deref() {
        Ok("1") => permission("SELinux enforces", Answer::Yes, "accesses without a rule are refused"),
        Ok(_) => permission("SELinux enforces", Answer::No, "permissive: accesses without a rule are logged"),
        Err(super::snapshot::Unavailable::Absent(_)) if snapshot.is_complete() => {
            permission("SELinux enforces", Answer::No, "not in use")
        }
        Err(why) => permission("SELinux enforces", Answer::Unknown, why.to_string()),
    };
    // Android saves power on a low battery.
    let battery = host::battery(snapshot.root()).map(|Battery { percent, charging }| {
        let answer =
            charging.map_or(Answer::Unknown, |charging| if charging { Answer::No } else { Answer::Yes });
        permission("runs on battery", answer, format!("{percent} %"))
    });
    [production, root, selinux].into_iter().chain(battery).collect()
}

/// Whether an attempt succeeded.
fn answer(attempt: Option<&Attempt>) -> Answer {
    match attempt {
        Some(Attempt { refused: None }) => Answer::Yes,
        Some(_) => Answer::No,
        None => Answer::Unknown,
    }
}

fn row(what: impl Into<String>, attempt: Option<&Attempt>) -> Permission {
    let why = match attempt {
        Some(Attempt { refused: None }) => "tried".to_owned(),
        Some(Attempt { refused: Some(why) }) => why.clone(),
        None => "it was not tried".to_owned(),
    };
    permission(what, answer(attempt), why)
}

/// Everything that was tried.
fn rows(snapshot: &Snapshot, tried: &Tried) -> Vec<Permission> {
    let mut rows = Vec::new();
    for context in &tried.contexts {
        let name = &context.name;
        rows.push(row(format!("open the context {name}"), Some(&context.opened)));
        if context.opened.refused.is_some() {
            continue;
        }
        rows.push(match context.managed {
            Some(true) => permission(format!("{name} has a manager"), Answer::Yes, "it answered"),
            Some(false) => permission(format!("{name} has a manager"), Answer::No, "handle 0 is dead"),
            None => permission(format!("{name} has a manager"), Answer::Unknown, "it did not answer as one"),
        });
        if context.managed != Some(false) {
            rows.push(row(format!("register a service of {name}"), context.registered.as_ref()));
        }
    }
    if tried.contexts.is_empty() {
        let why = if tried.uid.is_some() { "this machine has none" } else { "it was not tried" };
        let answer = if tried.uid.is_some() { Answer::No } else { Answer::Unknown };
        rows.push(permission("open a context of the system", answer, why));
    }
    rows.push(row("mount a binderfs", tried.private.as_ref()));
    rows.push(row("be SCHED_FIFO", realtime(snapshot).as_ref()));
    rows.push(row("record by tracefs", tried.tracefs.as_ref()));
    rows.push(row("record by perfetto", tried.perfetto.as_ref()));
    rows
}

fn realtime(snapshot: &Snapshot) -> Option<Attempt> {
    let realtime = snapshot.facts().measured.realtime.as_ref()?;
    Some(Attempt { refused: realtime.refused.clone() })
}

/// Needs of tests, and whether each is given.
struct Grants {
    /// A context that no other program uses.
    alone: Answer,
    binder: Answer,
    hwbinder: Answer,
    pings: Answer,
    realtime: Answer,
    tracefs: Answer,
    perfetto: Answer,
}

impl Grants {
    fn of(snapshot: &Snapshot, tried: &Tried) -> Self {
        let private = answer(tried.private.as_ref());
        let absent = if tried.uid.is_some() { Answer::No } else { Answer::Unknown };
        let named = |name: &str| tried.contexts.iter().find(|context| context.name == name);
        // A context without a manager: the test becomes it, unless a rule of SELinux is against it.
        let enforces = snapshot.text("sys/fs/selinux/enforce").is_ok_and(|text| text == "1");
        let free = if enforces { Answer::Unknown } else { Answer::Yes };
        let own = |name: &str| private.or(named(name).map_or(absent, |context| may_serve(context, free)));
        let pinged = |context: &ContextTried| {
            let managed = match context.managed {
                Some(true) => Answer::Yes,
                Some(false) => free,
                None => Answer::Unknown,
            };
            answer(Some(&context.opened)).and(managed)
        };
        let freely = |context: &ContextTried| match context.managed {
            Some(false) => answer(Some(&context.opened)).and(free),
            _ => Answer::No,
        };
        let alone = tried.contexts.iter().map(freely).fold(private, Answer::or);
        let pings = tried.contexts.iter().map(pinged).fold(private, Answer::or);
        Self {
            alone: if tried.uid.is_none() { private.or(absent) } else { alone },
            binder: own("binder"),
            hwbinder: own("hwbinder"),
            pings: if tried.uid.is_none() { private.or(absent) } else { pings },
            realtime: answer(realtime(snapshot).as_ref()),
            tracefs: answer(tried.tracefs.as_ref()),
            perfetto: answer(tried.perfetto.as_ref()),
        }
    }

    fn tests(&self) -> Vec<TestPermission> {
        let row = |test: &str, needs: &str, answer: Answer, instead: &str| TestPermission {
            test: test.to_owned(),
            needs: needs.to_owned(),
            answer,
            instead: (answer != Answer::Yes && !instead.is_empty()).then(|| instead.to_owned()),
        };
        let embedded = "the same with --driver embedded";
        let place = "a binderfs, a context without a manager, or to register a service";
        let pings = |ping: &str| match self.pings {
            Answer::Yes => format!("{ping}, or {embedded}"),
            _ => embedded.to_owned(),
        };
        let recorder = if self.perfetto == Answer::Yes { "trace record --via perfetto" } else { "" };
        vec![
            row("throughput binder", place, self.binder, &pings("throughput ping")),
            row("throughput hwbinder", place, self.hwbinder, &pings("throughput ping --flavour hwbinder")),
            row("latency binder", place, self.binder, &pings("latency ping")),
            row("latency hwbinder", place, self.hwbinder, &pings("latency ping --flavour hwbinder")),
            row("throughput ping, latency ping", "a context, or a binderfs", self.pings, embedded),
            row("real-time callers of latency tests", "SCHED_FIFO", self.realtime, "ordinary callers only"),
            row(
                "inheritance, inversion, overload, background",
                place,
                self.binder.or(self.hwbinder),
                embedded,
            ),
            row("conformance, chaos", "a binderfs, or a context without a manager", self.alone, embedded),
            row("trace record", "tracefs", self.tracefs, recorder),
        ]
    }
}

/// Whether a test may offer its services in a context of the system.
fn may_serve(context: &ContextTried, free: Answer) -> Answer {
    let serves = match (context.managed, &context.registered) {
        (Some(false), _) => free,
        (_, attempt) => answer(attempt.as_ref()),
    };
    answer(Some(&context.opened)).and(serves)
}

#[cfg(test)]
mod tests {
    use super::*;
    use driver::root::Fixture;

    /// A saved machine with these facts and files.
    fn permissions(name: &str, facts: &str, files: &[(&str, &str)]) -> Permissions {
        let machine = Fixture::new(&format!("allows-{name}"), files);
        let head = "\"schema\":\"binderperf.snapshot\",\"version\":1";
        machine.put("binderperf-snapshot.json", format!("{{{head},{facts}}}"));
        allows(&Snapshot::open(machine.path()).expect("a snapshot"))
    }

    fn told(permissions: &Permissions) -> Vec<(&str, Answer, &str)> {
        let tests = permissions.tests.iter();
        tests.map(|test| (test.test.as_str(), test.answer, test.instead.as_deref().unwrap_or(""))).collect()
    }

    fn find<'p>(rows: &'p [Permission], what: &str) -> &'p Permission {
        rows.iter().find(|row| row.what == what).unwrap_or_else(|| panic!("no {what}: {rows:?}"))
    }

    use Answer::{No, Unknown, Yes};

    #[test]
    fn a_production_phone_lets_the_user_shell_ping_and_record_by_perfetto() {
        let found = permissions(
            "shell",
            r#""tried":{"uid":2000,"contexts":[
                {"name":"binder","opened":{},"managed":true,"registered":{"refused":"the manager did not register it: EPERM"}},
                {"name":"hwbinder","opened":{"refused":"EACCES"}}],
                "private":{"refused":"EPERM"},"tracefs":{"refused":"run as root"},"perfetto":{}},
               "measured":{"realtime":{"refused":"EPERM"}}"#,
            &[
                (
                    "getprop.txt",
                    "[ro.build.type]: [user]\n[ro.soc.manufacturer]: [Maker]\n[ro.soc.model]: [S1]\n",
                ),
                ("dumpsys-battery.txt", "Current Battery Service state:\n  status: 3\n  level: 14\n"),
                ("sys/fs/selinux/enforce", "1"),
            ],
        );
        assert_eq!(find(&found.machine, "production build").answer, Yes);
        assert_eq!(find(&found.machine, "production build").why, "ro.build.type is user; SoC Maker S1");
        let battery = find(&found.machine, "runs on battery");
        assert_eq!((battery.answer, battery.why.as_str()), (Yes, "14 %"));
        assert_eq!(find(&found.machine, "SELinux enforces").answer, Yes);
        assert!(find(&found.machine, "root").why.contains("shell"));
        assert_eq!(find(&found.tried, "register a service of binder").answer, No);
        assert_eq!(find(&found.tried, "open the context hwbinder").why, "EACCES");
        assert!(!found.tried.iter().any(|row| row.what.contains("hwbinder has")), "{found:?}");
        let tests = told(&found);
        assert_eq!(
            tests[0],
            ("throughput binder", No, "throughput ping, or the same with --driver embedded")
        );
        assert_eq!(tests[2].2, "latency ping, or the same with --driver embedded");
        assert_eq!(tests[4], ("throughput ping, latency ping", Yes, ""));
        assert_eq!(tests[8], ("trace record", No, "trace record --via perfetto"));
        assert_eq!(found.denials, None);
    }

    #[test]
    fn root_on_a_userdebug_phone_may_do_everything() {
        let found = permissions(
            "userdebug",
            r#""tried":{"uid":0,"contexts":[{"name":"binder","opened":{},"managed":true,"registered":{}},
                {"name":"hwbinder","opened":{},"managed":true,"registered":{}}],
                "private":{},"tracefs":{},"perfetto":{},"denials":[]},"measured":{"realtime":{"refused":null}}"#,
            &[("getprop.txt", "[ro.build.type]: [userdebug]\n"), ("sys/fs/selinux/enforce", "0")],
        );
        assert!(
            told(&found).iter().all(|(_, answer, instead)| *answer == Yes && instead.is_empty()),
            "{found:?}"
        );
        assert_eq!(find(&found.machine, "production build").answer, No);
        assert_eq!(find(&found.machine, "SELinux enforces").answer, No);
    }

    #[test]
    fn a_linux_host_without_binder_has_the_embedded_driver() {
        let found = permissions(
            "host",
            r#""tried":{"uid":1000,"contexts":[],"private":{"refused":"no driver"},
                "tracefs":{"refused":"run as root"},"perfetto":{"refused":"no program perfetto"}},
               "measured":{"realtime":{"refused":"EPERM"}}"#,
            &[],
        );
        assert_eq!(find(&found.tried, "open a context of the system").answer, No);
        assert_eq!(find(&found.machine, "SELinux enforces").why, "not in use");
        let tests = told(&found);
        assert!(tests[..5].iter().all(|(_, answer, instead)| *answer == No && instead.contains("embedded")));
        assert_eq!(tests[8], ("trace record", No, ""));
    }

    #[test]
    fn a_guest_with_a_driver_and_no_manager_has_its_own_binderfs() {
        let found = permissions(
            "guest",
            r#""tried":{"uid":0,"contexts":[{"name":"binder","opened":{},"managed":false}],"private":{},"tracefs":{},
                "perfetto":{"refused":"no program perfetto"},"denials":["avc:  denied  { set_context_mgr }"]},
               "measured":{"realtime":{"refused":null}}"#,
            &[],
        );
        assert_eq!(find(&found.tried, "binder has a manager").answer, No);
        assert!(told(&found).iter().all(|(_, answer, _)| *answer == Yes), "{found:?}");
        assert_eq!(found.denials.as_ref().map(Vec::len), Some(1));
    }

    #[test]
    fn a_context_without_a_manager_is_enough_unless_selinux_decides() {
        // Debian's kernels have the driver as a module, and no binderfs.
        let facts = r#""tried":{"uid":0,"contexts":[{"name":"binder","opened":{},"managed":false},
                {"name":"hwbinder","opened":{},"managed":false}],"private":{"refused":"ENODEV"},"tracefs":{},
                "perfetto":{"refused":"no program perfetto"}},"measured":{"realtime":{"refused":null}}"#;
        let found = permissions("debian", facts, &[]);
        assert!(told(&found).iter().all(|(_, answer, _)| *answer == Yes), "{found:?}");
        let found = permissions("debian-selinux", facts, &[("sys/fs/selinux/enforce", "1")]);
        let tests = told(&found);
        assert!(tests[..5].iter().all(|(_, answer, _)| *answer == Unknown), "{found:?}");
        assert_eq!(tests[7].1, Unknown);
        let closed = facts.replace("\"opened\":{}", "\"opened\":{\"refused\":\"EACCES\"}");
        let found = permissions("debian-closed", &closed, &[]);
        assert!(told(&found)[..5].iter().all(|(_, answer, _)| *answer == No), "{found:?}");
        assert_eq!(told(&found)[7].1, No);
    }

    #[test]
    fn of_a_machine_on_which_nothing_was_tried_nothing_is_claimed() {
        let found = permissions("untried", "\"tool\":\"x\"", &[("sys/fs/selinux/enforce", "1")]);
        assert!(found.tried.iter().all(|row| row.answer == Unknown), "{found:?}");
        assert!(told(&found).iter().all(|(_, answer, _)| *answer == Unknown), "{found:?}");
    }
}
