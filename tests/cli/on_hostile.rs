//! `--on` with machines that are no friends: an `adb` and a QEMU that are scripts, and answer as an attacker would.
//! Not here: machines that do their work (`on`), the rules for names (crate `intake`).

use std::fs;
use std::os::unix::fs::{PermissionsExt, symlink};
use std::path::Path;
use std::process::{Child, Stdio};
use std::time::{Duration, Instant};

use crate::support::{BINARY, Called, Folder, command, contents, end, signal, wait_until, words};

/// A user's folder `here`, and `else`, in which nothing may change.
struct Desk(Folder);

impl Desk {
    fn new(name: &str) -> Self {
        let desk = Self(Folder::new(name));
        desk.0.write("here/notes", "the user's");
        desk.0.write("else/kept", "kept");
        symlink(desk.0.path("else"), desk.0.path("here/adb-one")).expect("a link");
        symlink(desk.0.path("else"), desk.0.path("here/vm")).expect("a link");
        desk
    }

    fn script(&self, name: &str, text: &str) -> String {
        let path = self.0.write(name, format!("#!/bin/sh\n{text}\n"));
        fs::set_permissions(&path, fs::Permissions::from_mode(0o755)).expect("set");
        path
    }

    /// Starts a command in `here`. The device `one` answers as the parts of a shell's `case` say, by the call's action, and
    /// else as one does that works.
    fn start(&self, name: &str, answers: &str, line: &str) -> Child {
        let machine = std::env::consts::ARCH;
        let adb = self.script(
            name,
            &format!(
                "[ \"$1\" = -s ] && shift 2\n[ \"$1\" = exec-out ] || exit 0\necho @binderperf\n\
                 action=${{2#set -- }}; action=${{action%%[ \n]*}}\ncase $action in\n{answers}\n\
                 probe) echo '=machine {machine}'; echo '=home /data/home' ;;\n\
                 begin) echo =started x ;;\nesac\necho X 0"
            ),
        );
        let mut command = command(BINARY, &words(line));
        command.env("BINDERPERF_ADB", adb).current_dir(self.0.path("here"));
        command.stdout(Stdio::piped()).stderr(Stdio::piped()).spawn().expect("it starts")
    }

    fn call(&self, answers: &str, line: &str) -> Called {
        end(self.start("adb", answers, line))
    }

    /// Starts a command in `here`, whose guest sends these frames, and then the other ones again and again, or none and stays.
    fn guest(&self, frames: &[u8], again: &[u8], line: &str) -> Child {
        self.0.write("again", again);
        self.0.write("frames", frames);
        self.script(
            "bin/qemu-system-x86_64",
            &format!(
                "echo $$ >{0}/qemu; cat {0}/frames; while [ -s {0}/again ]; do cat {0}/again; done; exec sleep 1000",
                self.0.path("")
            ),
        );
        // The head of a bzImage that names its release.
        let mut image = vec![0; 0x1000];
        image[0x202..0x206].copy_from_slice(b"HdrS");
        image[0x20e..0x210].copy_from_slice(&0x100u16.to_le_bytes());
        image[0x300..0x30b].copy_from_slice(b"7.2.0-fake ");
        let kernel = self.0.write("kernel", image);
        let path = format!("{}:{}", self.0.path("bin"), std::env::var("PATH").unwrap_or_default());
        let target = format!("--on=vm:{kernel}");
        let mut command = command(BINARY, &[&words(line)[..], &[&target]].concat());
        command.env("PATH", path).env("TMPDIR", self.0.path("tmp")).current_dir(self.0.path("here"));
        fs::create_dir_all(self.0.path("tmp")).expect("made");
        command.stdout(Stdio::piped()).stderr(Stdio::piped()).spawn().expect("it starts")
    }

    /// The names in `here`, and that nothing happened elsewhere.
    #[track_caller]
    fn has(&self, names: &[&str]) {
        assert_eq!(listed(self.0.path("here")), names);
        assert_eq!(listed(self.0.path("else")), ["kept"]);
        assert_eq!(contents(self.0.path("else/kept")), "kept");
        assert_eq!(contents(self.0.path("here/notes")), "the user's");
    }
}

fn listed(folder: impl AsRef<Path>) -> Vec<String> {
    let entries = fs::read_dir(folder).expect("a folder").flatten();
    let mut names: Vec<String> =
        entries.map(|entry| entry.file_name().to_string_lossy().into_owned()).collect();
    names.sort();
    names
}

/// Names that an attacker would like, and some that are fine.
const NAMES: [&str; 9] = [
    "../else/kept",
    "/tmp/binderperf-planted",
    ".bashrc",
    "x/.git/hooks/pre-commit",
    "notes",
    "Makefile",
    "adb-one/kept",
    "a\u{1b}[2J",
    "r.json",
];

/// What is wrong with them, as it is told.
fn complains(called: &Called) {
    for told in ["../else/kept", "/tmp/binderperf-planted", ".bashrc", "pre-commit", "\\u{1b}[2J"] {
        called.complained(told);
    }
    assert!(!Path::new("/tmp/binderperf-planted").exists());
}

#[test]
fn a_device_writes_where_the_command_line_says_and_into_a_new_folder() {
    let desk = Desk::new("on-names");
    let files: String = NAMES.iter().map(|name| format!("echo 'F 2 {name}'; echo x; ")).collect();
    let answers = format!("fetch) {files} echo D .hidden; echo D plain ;;");
    let called = desk.call(&answers, "throughput binder --on adb:one --record r.json").ended(3);
    complains(&called);
    // The user has a link where the new folder would be.
    desk.has(&["adb-one", "adb-one.2", "notes", "r.json", "vm"]);
    assert_eq!(listed(desk.0.path("here/adb-one.2")), ["Makefile", "adb-one", "notes", "plain"]);
}

#[test]
fn a_guest_writes_where_the_command_line_says_and_into_a_new_folder() {
    let desk = Desk::new("on-guest-names");
    let mut frames = event(r#"{"Hello":{"release":"7.2"}}"#);
    for name in NAMES.iter().map(|name| name.replace("r.json", "0-r.json")) {
        let file = serde_json::json!({"File": {"path": name, "mode": 0o4755}});
        frames.extend(event(&file.to_string()));
        frames.extend(frame(b'C', b"x\n"));
    }
    frames.extend(event(r#"{"Done":{"Code":0}}"#));
    let called = end(desk.guest(&frames, b"", "throughput binder --record r.json")).ended(3);
    complains(&called);
    let folder = listed(desk.0.path("here")).into_iter().find(|name| name.starts_with("vm-"));
    let folder = folder.unwrap_or_else(|| panic!("no folder: {called}"));
    desk.has(&["adb-one", "notes", "r.json", "vm", &folder]);
    assert_eq!(listed(desk.0.path("here").clone() + "/" + &folder), ["Makefile", "adb-one", "notes"]);
    let mode = fs::metadata(desk.0.path("here/r.json")).expect("there").permissions().mode();
    assert_eq!(mode & 0o7000, 0);
    assert!(listed(desk.0.path("tmp")).is_empty(), "nothing is left of it");
}

#[test]
fn too_much_is_refused_by_its_announcement() {
    let desk = Desk::new("on-much");
    let called = desk.call("fetch) echo 'F 99999999999999 r.json'; yes ;;", "state --on adb:one").ended(4);
    called.complained("more than 8 GiB").complained("still there");
    let many = "fetch) yes 'F 0 r.json' ;;";
    let called = desk.call(many, "throughput binder --on adb:one --record r.json").ended(4);
    called.complained("more than 10000 files");
}

#[test]
fn a_device_that_is_unplugged_leaves_the_old_record() {
    let desk = Desk::new("on-unplugged");
    desk.0.write("here/r.json", "an old result");
    for (name, answers) in [
        ("test", "follow) [ -e $0.gone ] || echo .; : >$0.gone; exit 1 ;;"),
        (
            "file",
            "fetch) [ -e $0.gone ] || echo 'F 100000 r.json'; head -c 50000 /dev/zero; : >$0.gone; exit 1 ;;",
        ),
    ] {
        let line = "throughput binder --on adb:one --reconnect 1 --record r.json";
        let called = end(desk.start(&format!("adb-gone-{name}"), answers, line)).ended(3);
        called.complained("the connection to adb:one was lost").complained("what it leaves is in");
        desk.has(&["adb-one", "notes", "r.json", "vm"]);
        assert_eq!(contents(desk.0.path("here/r.json")), "an old result", "in the middle of the {name}");
    }
}

#[test]
fn what_comes_back_replaces_no_device() {
    let desk = Desk::new("on-device");
    let called = desk.call("", "throughput binder --on adb:one --record /dev/null").ended(2);
    called.complained("/dev/null is neither a file nor a folder");
}

/// Attackers that never end: each of these has begun its work when its folder has this name.
const DEAF: [(&str, &str); 5] = [
    ("follow", "follow) while echo .; do : >$0.begun; sleep 0.1; done ;;"),
    ("silent", "follow) : >$0.begun; exec sleep 1000 ;; stop) exec sleep 1000 ;;"),
    ("garbage", "follow) while echo .; do : >$0.begun; sleep 0.1; done ;; stop) echo what ;;"),
    (
        "fetch",
        "follow) : >$0.begun; sleep 1; echo X 1; exit ;; fetch) echo 'F 1000000000 r.json'; while echo x; do sleep 0.1; done ;;",
    ),
    ("clean", "follow) : >$0.begun; sleep 1; echo X 1; exit ;; clean) while echo .; do sleep 0.1; done ;;"),
];

#[test]
fn one_request_to_stop_ends_it_whatever_the_device_does() {
    let desk = Desk::new("on-deaf");
    let begun = |name: &str| desk.0.path(&format!("adb-{name}.begun"));
    let calls: Vec<_> = DEAF
        .iter()
        .map(|(name, answers)| {
            let line = "throughput binder --on adb:127.0.0.1:5555 --record r.json";
            (name, desk.start(&format!("adb-{name}"), answers, line))
        })
        .collect();
    for (name, _) in &calls {
        wait_until(&format!("{name} is at work"), || Path::new(&begun(name)).exists());
    }
    let asked = Instant::now();
    calls.iter().for_each(|(_, child)| signal(child.id(), "INT"));
    for (name, child) in calls {
        let called = end(child);
        assert!(!called.stderr.contains("panicked"), "{name}: {called}");
        if !["clean"].contains(name) {
            called.complained("did not end the command in time");
        }
    }
    // Half a minute, on a machine that may have much else to do.
    assert!(!sys::patience::is_over(asked, Duration::from_secs(50)), "{:?}", asked.elapsed());
}

#[test]
fn a_guest_that_talks_without_end_is_stopped() {
    let desk = Desk::new("on-guest-deaf");
    let frames = event(r#"{"Hello":{"release":"7.2"}}"#);
    let child = desk.guest(&frames, &frame(b'O', b".\n"), "state");
    let qemu = desk.0.path("qemu");
    wait_until("the guest is there", || Path::new(&qemu).exists());
    let asked = Instant::now();
    signal(child.id(), "INT");
    end(child).ended(1).complained("stopped by SIGINT");
    assert!(!sys::patience::is_over(asked, Duration::from_secs(50)), "{:?}", asked.elapsed());
}

#[test]
fn kill_takes_the_guest_along_and_leaves_no_folder() {
    let desk = Desk::new("on-guest-kill");
    let child =
        desk.guest(&event(r#"{"Hello":{"release":"7.2"}}"#), b"", "throughput binder --record r.json");
    let pid = || fs::read_to_string(desk.0.path("qemu")).unwrap_or_default();
    wait_until("the guest is there", || pid().ends_with('\n'));
    let qemu: u32 = pid().trim().parse().expect("a pid");
    // The fields behind the name: state, parent.
    let fields = || {
        let stat = fs::read_to_string(format!("/proc/{qemu}/stat")).unwrap_or_default();
        let fields = stat.rsplit_once(')').map_or("", |(_, rest)| rest).split_whitespace();
        fields.map(str::to_owned).take(2).collect::<Vec<_>>()
    };
    assert_eq!(fields().get(1), Some(&child.id().to_string()), "no second program in between");
    signal(child.id(), "KILL");
    end(child);
    let is_gone = || fields().first().is_none_or(|state| state == "Z");
    wait_until("QEMU is gone", is_gone);
    assert!(listed(desk.0.path("tmp")).is_empty());
    desk.has(&["adb-one", "notes", "vm"]);
}

/// A frame of a guest.
fn frame(tag: u8, payload: &[u8]) -> Vec<u8> {
    [&[tag][..], &(payload.len() as u32).to_le_bytes(), payload].concat()
}

fn event(json: &str) -> Vec<u8> {
    frame(b'J', json.as_bytes())
}
