//! `--on`: this machine as another one, by a real sshd on loopback, and by an `adb` that is a script.
//! Not here: the other side's shell script under each shell (`crates/remote`).

use std::net::TcpListener;
use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::time::Duration;

use needs::need;

use crate::support::{
    BINARY, Called, Folder, call, command, contents, end, read, signal, start, tracing_switch, wait_until,
    words,
};

/// A quick test with few words.
const QUICK: &str =
    "throughput binder --driver embedded --controls none --benchmark_filter=/4$ --benchmark_min_time=0.01s";

/// An sshd of this user, with keys and configuration of its own.
struct Server {
    folder: Folder,
    sshd: Child,
    port: u16,
}

impl Server {
    fn start(name: &str) -> Self {
        let folder = Folder::new(name);
        let free = TcpListener::bind("127.0.0.1:0").expect("a port");
        let port = free.local_addr().expect("bound").port();
        drop(free);
        for key in ["host", "own"] {
            let path = folder.path(key);
            let words = ["-q", "-t", "ed25519", "-N", "", "-f", &path];
            let made = Command::new("ssh-keygen").args(words).status();
            assert!(made.expect("tools/install-deps test").success());
        }
        let path = |name: &str| folder.path(name);
        std::fs::create_dir_all(path("there")).expect("made");
        let config = format!(
            "Port {port}\nListenAddress 127.0.0.1\nHostKey {}\nAuthorizedKeysFile {}\nPidFile none\nStrictModes no\nUsePAM no\n\
             SetEnv TMPDIR={}\n",
            path("host"),
            path("own.pub"),
            path("there")
        );
        let config = folder.write("sshd_config", config);
        let client = format!(
            "IdentityFile {}\nIdentitiesOnly yes\nUserKnownHostsFile /dev/null\nStrictHostKeyChecking no\nLogLevel ERROR\n",
            path("own")
        );
        let client = folder.write("ssh_config", client);
        script(&folder, "ssh", &format!("exec /usr/bin/ssh -F {client} \"$@\""));
        // As root it wants this folder, which only its service makes.
        let _ = std::fs::create_dir("/run/sshd");
        let log = std::fs::File::create(path("log")).expect("made");
        let sshd = Command::new("/usr/sbin/sshd").args(["-D", "-e", "-f", &config]).stderr(log).spawn();
        let server = Self { sshd: sshd.expect("tools/install-deps test"), port, folder };
        let there = || std::net::TcpStream::connect(("127.0.0.1", port)).is_ok();
        wait_until("sshd listens", there);
        server
    }

    fn target(&self) -> String {
        format!("--on=ssh:127.0.0.1:{}", self.port)
    }

    fn variables(&self) -> [(&'static str, String); 1] {
        [("BINDERPERF_SSH", self.folder.path("ssh"))]
    }

    fn call(&self, line: &str) -> Called {
        let [(name, value)] = self.variables();
        let target = self.target();
        let mut all = words(line);
        all.push(&target);
        call(BINARY, &all, &[(name, &value)])
    }

    fn start_call(&self, line: &str) -> Child {
        let target = self.target();
        let mut all = words(line);
        all.push(&target);
        let mut command = command(BINARY, &all);
        command.envs(self.variables()).stdout(Stdio::piped()).stderr(Stdio::piped());
        command.spawn().expect("it starts")
    }

    /// Files on the other side besides the user's folder and the program in it.
    fn left(&self) -> Vec<PathBuf> {
        let list = |path: &Path| {
            let entries = std::fs::read_dir(path).into_iter().flatten().flatten();
            entries.map(|entry| entry.path()).collect::<Vec<_>>()
        };
        let there = PathBuf::from(self.folder.path("there"));
        let home = there.join(format!("binderperf-on-{}", sys::identity::effective_uid()));
        let is_program =
            |path: &PathBuf| path.file_name().is_some_and(|name| name.to_string_lossy().starts_with("bin-"));
        let all = list(&there).into_iter().filter(|path| *path != home).chain(list(&home));
        all.filter(|path| !is_program(path)).collect()
    }

    /// The pid of the command that runs on the other side.
    fn job(&self) -> Option<u32> {
        let text = self.left().iter().find_map(|path| std::fs::read_to_string(path.join("pid")).ok())?;
        text.split_once(' ')?.0.parse().ok()
    }
}

impl Drop for Server {
    fn drop(&mut self) {
        let _ = self.sshd.kill();
        let _ = self.sshd.wait();
    }
}

fn script(folder: &Folder, name: &str, text: &str) -> String {
    let path = folder.write(name, format!("#!/bin/sh\n{text}\n"));
    std::fs::set_permissions(&path, std::fs::Permissions::from_mode(0o755)).expect("set");
    path
}

/// The processes whose parent this is, and those below them.
fn below(parent: u32) -> Vec<u32> {
    let mut found = Vec::new();
    for entry in std::fs::read_dir("/proc").expect("/proc").flatten() {
        let Ok(pid) = entry.file_name().to_string_lossy().parse::<u32>() else { continue };
        let stat = std::fs::read_to_string(format!("/proc/{pid}/stat")).unwrap_or_default();
        let fields = stat.rsplit_once(')').map_or("", |(_, rest)| rest);
        if fields.split_whitespace().nth(1) == Some(&parent.to_string()) {
            found.push(pid);
            found.extend(below(pid));
        }
    }
    found
}

#[test]
fn a_test_on_another_machine_leaves_its_record_here_and_nothing_there() {
    let server = Server::start("on-ssh");
    let record = server.folder.path("r.json");
    let called = server.call(&format!("{QUICK} --record {record}")).ended(0);
    called.printed("BM_sendVec_binder/4").complained("r.json");
    assert!(read(&record).complete);
    assert_eq!(server.left(), Vec::<PathBuf>::new());
    // Its own statuses, and its own words about them.
    server.call("conformance --filter no/such").ended(2).complained("no item has");
    server.call("throughput binder --benchmark_filter=no_such").ended(2).complained("Failed to match any");
    assert_eq!(server.left(), Vec::<PathBuf>::new());
}

#[test]
fn top_prints_the_intervals_of_another_machine() {
    drop(need!(tracing_switch()));
    let server = Server::start("on-top");
    let called = server.call("top --interval 0.2 -n 2 --format json --driver embedded").ended(0);
    assert_eq!(called.stdout.matches("\"span_s\"").count(), 2, "{called}");
}

#[test]
fn a_stopped_command_ends_in_order_and_leaves_nothing() {
    let server = Server::start("on-stop");
    let desk = server.start_call("chaos --driver embedded --seconds 300");
    let workers = || server.job().map_or(0, |job| below(job).len());
    wait_until("its workers run there", || workers() > 3);
    let job = server.job().expect("it runs");
    signal(desk.id(), "INT");
    end(desk).ended(1).printed("chaos: stopped by SIGINT");
    assert_eq!(server.left(), Vec::<PathBuf>::new());
    // Whoever inherited it may take its time to notice.
    let is_gone =
        |stat: String| stat.rsplit_once(')').is_none_or(|(_, rest)| rest.trim_start().starts_with('Z'));
    wait_until("it is gone", || {
        is_gone(std::fs::read_to_string(format!("/proc/{job}/stat")).unwrap_or_default())
    });
}

#[test]
fn a_lost_connection_costs_nothing() {
    let server = Server::start("on-lost");
    let desk = server.start_call("chaos --driver embedded --seconds 6 --no-kill");
    wait_until("it runs there", || server.job().is_some());
    // Of each connection there are two processes; the command is nobody's.
    let is_sshd =
        |pid: &u32| std::fs::read_to_string(format!("/proc/{pid}/comm")).is_ok_and(|name| name == "sshd\n");
    let cut = || {
        let connections: Vec<u32> = below(server.sshd.id()).into_iter().filter(is_sshd).collect();
        // One ends with the other.
        connections.iter().for_each(|pid| drop(call("kill", &["-KILL", &pid.to_string()], &[])));
        !connections.is_empty()
    };
    // The first may be the one that started the command, and end by itself.
    wait_until("a connection is cut", cut);
    std::thread::sleep(Duration::from_millis(100));
    wait_until("the next one is cut", cut);
    let called = end(desk).ended(0);
    called.printed("chaos: passed").complained("was lost");
    assert_eq!(server.left(), Vec::<PathBuf>::new());
}

#[test]
fn what_a_watch_catches_comes_back_while_it_watches() {
    let server = Server::start("on-watch");
    let (out, context) = (server.folder.path("night"), server.folder.path("context"));
    // Met by the first look, whatever it sees.
    let desk = server.start_call(&format!("watch --when dead<=0 --context-dir {context} --out {out}"));
    let catch = || std::fs::read_dir(&out).ok()?.flatten().map(|entry| entry.path()).next();
    let report = || std::fs::read_to_string(catch()?.join("report.txt")).ok();
    wait_until("the report", || report().is_some_and(|report| report.contains("dead<=0: dead is 0")));
    signal(desk.id(), "INT");
    let called = end(desk).ended(1);
    called.printed("caught dead<=0").complained("SIGINT ended the watch: 1 time caught");
    // The folder in which the embedded driver's processes were asked for their events stays.
    let left = server.left();
    assert!(left.iter().all(|path| !path.to_string_lossy().contains("run-")), "{left:?}");
}

#[test]
fn several_machines_end_in_a_table() {
    let server = Server::start("on-several");
    let [(name, value)] = server.variables();
    let target = server.target();
    let mut command = command(BINARY, &[&words(QUICK)[..], &["--on=local", &target]].concat());
    command
        .env(name, value)
        .current_dir(server.folder.path("there"))
        .stdout(Stdio::piped())
        .stderr(Stdio::piped());
    let called = end(command.spawn().expect("it starts")).ended(0);
    let row = |start: &str| {
        let line = called.stdout.lines().find(|line| line.starts_with(start));
        line.unwrap_or_else(|| panic!("no {start}: {called}")).to_owned()
    };
    assert!(row("Target").contains("local") && row("Target").contains(&target["--on=".len()..]));
    assert!(row("ended").matches("status 0").count() == 2, "{called}");
    let median = row("BM_sendVec_binder/4 median");
    let times = median.split_whitespace().filter(|word| ["ns", "us", "ms"].contains(word));
    assert!(times.count() == 2, "{called}");
}

#[test]
fn a_copy_on_this_machine_goes_with_its_parent_however_that_ends() {
    let long = "throughput binder --driver embedded --benchmark_min_time=1s --benchmark_repetitions=500";
    let child = start(&words(&format!("{long} --on=local --on=adb:nobody")));
    // Of two targets this one comes first, in a copy, which has a server.
    wait_until("it measures", || below(child.id()).len() >= 2);
    let family = below(child.id());
    signal(child.id(), "KILL");
    assert_eq!(end(child).code, None, "killed");
    let runs = |pid: &u32| std::fs::read_link(format!("/proc/{pid}/exe")).is_ok();
    wait_until("none of them is left", || !family.iter().any(runs));
}

#[test]
fn machines_that_are_not_there_are_told() {
    let folder = Folder::new("on-nowhere");
    let none = call(BINARY, &["state", "--on", "ssh:host"], &[("BINDERPERF_SSH", "/nonexistent/ssh")]);
    none.ended(3).complained("openssh-client");
    let closed = TcpListener::bind("127.0.0.1:0").expect("a port").local_addr().expect("bound").port();
    let target = format!("ssh:127.0.0.1:{closed}");
    call(BINARY, &["state", "--on", &target], &[]).ended(3).complained("refused");
    for (words, why) in [
        (&["state", "--on", "phone"][..], "none of adb"),
        (&["run", "--on", "adb", "--vm"], "cannot go with --on"),
        (&["chaos", "--on", "adb", "--secnds", "1"], "--seconds"),
        (&["throughput", "binder", "--on", "adb", "--nosuch"], "--nosuch"),
        (&["run", "--binary", "x"], "go with --on"),
        (&["compare", "--on", "adb", "a", "b"], "--on"),
        (
            &["throughput", "binder", "--on", "adb", "--record", "/nonexistent/r.json"],
            "no folder /nonexistent",
        ),
    ] {
        call(BINARY, words, &[]).ended(2).complained(why).printed_nothing();
    }
    let full = folder.path("full");
    std::fs::create_dir(&full).expect("made");
    std::fs::write(format!("{full}/x"), "").expect("written");
    call(BINARY, &["run", "--on", "adb", "--out", &full], &[]).ended(2).complained("is not empty");
}

/// An adb that reaches this machine, and knows what this does not.
fn adb(folder: &Folder) -> String {
    let there = folder.path("there");
    std::fs::create_dir_all(&there).expect("made");
    script(
        folder,
        "adb",
        &format!(
            "export TMPDIR={there}\nserial=\n[ \"$1\" = -s ] && {{ serial=$2; shift 2; }}\n\
             case $serial in locked) echo 'error: device unauthorized.' >&2; exit 1 ;; asleep) echo 'error: device offline' >&2; exit 1 ;;\n\
             gone) echo \"error: device 'gone' not found\" >&2; exit 1 ;; esac\n\
             [ \"$1\" = devices ] && {{ printf 'List of devices attached\\none\\tdevice\\nother\\tdevice\\n\\n'; exit; }}\n\
             [ -n \"$serial\" ] || {{ echo 'error: more than one device/emulator' >&2; exit 1; }}\n\
             case $1 in exec-out) exec sh -c \"$2\" 2>&1 ;; push) cat \"$2\" >\"$3\" ;; *) exit 1 ;; esac"
        ),
    )
}

#[test]
fn a_device_is_measured_through_adb() {
    let folder = Folder::new("on-adb");
    let adb = adb(&folder);
    let record = folder.path("r.json");
    let on = |serial: &str, line: &str| {
        let target = format!("--on=adb{serial}");
        call(BINARY, &[&words(line)[..], &[&target]].concat(), &[("BINDERPERF_ADB", &adb)])
    };
    on(":one", &format!("{QUICK} --record {record}")).ended(0).printed("BM_sendVec_binder/4");
    let run = read(&record);
    assert!(run.complete);
    // What comes next is then a command for that device.
    assert_eq!(run.host.on.as_deref(), Some("adb:one"));
    on(":one", "conformance --filter no/such").ended(2).complained("no item has");
    on("", "state").ended(2).complained("--on adb:one --on adb:other");
    on(":locked", "state").ended(3).complained("on the device's screen");
    on(":asleep", "state").ended(3).complained("offline");
    on(":gone", "state").ended(3).complained("adb devices");
    assert!(contents(&adb).contains("exec-out"));
}

#[test]
fn another_machines_calls_are_explained() {
    let server = Server::start("on-explain");
    let adb = adb(&server.folder);
    let context = server.folder.path("context");
    let manager = start(&["servicemanager", "--driver=embedded", "--context-dir", &context]);
    let line = format!("explain --live --context-dir {context}");
    wait_until("its state", || server.call(&line).stdout.contains("1 open device with"));
    server.call(&line).ended(0).printed("nothing wrong was found");
    let through_adb = [&words(&line)[..], &["--on=adb:one"]].concat();
    call(BINARY, &through_adb, &[("BINDERPERF_ADB", &adb)]).ended(0).printed("1 open device with");
    signal(manager.id(), "TERM");
    end(manager);
    server.call(&line).ended(3).complained("nobody uses the embedded driver");
}

#[test]
fn a_machine_without_a_build_is_told_where_to_get_one() {
    let folder = Folder::new("on-arm");
    let bin = folder.path("there");
    let adb = adb(&folder);
    // A machine that calls itself another one.
    script(&folder, "uname", "[ \"$1\" = -m ] && { echo riscv64; exit; }\nexec /usr/bin/uname \"$@\"");
    let path = format!(
        "{}:{}",
        Path::new(&adb).parent().expect("a folder").display(),
        std::env::var("PATH").expect("set")
    );
    let on = |words: &[&str]| {
        let words = [&["state", "--on", "adb:one"], words].concat();
        call(BINARY, &words, &[("BINDERPERF_ADB", &adb), ("PATH", &path), ("XDG_DATA_HOME", &bin)])
    };
    on(&[]).ended(3).complained("no build for riscv64");
    script(&folder, "uname", "[ \"$1\" = -m ] && { echo armv7l; exit; }\nexec /usr/bin/uname \"$@\"");
    let text = folder.write("text", "no program, but long enough to be one");
    on(&["--binary", &text]).ended(2).complained("no program for x86_64");
    on(&["--binary", BINARY]).ended(2).complained("it is for x86_64, and that machine is armv7l");
}
