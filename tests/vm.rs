//! Room: `binderperf vm` as its users meet it: a command in a guest, and everything that can go wrong.
//! Not here: the lane's parts, tested beside them in `lab::vm`; what a measured command prints.
//! These tests boot guests, on the kernel that a user gets who names none.

use std::io::{BufRead, BufReader, Read};
use std::path::{Path, PathBuf};
use std::process::{Command, Output, Stdio};
use std::sync::{Mutex, PoisonError};
use std::time::Duration;

const BINARY: &str = env!("CARGO_BIN_EXE_binderperf");

/// Guests boot one after the other: emulated CPUs want real ones.
static ONE_GUEST: Mutex<()> = Mutex::new(());

fn binderperf(arguments: &[&str]) -> Command {
    let mut command = Command::new(BINARY);
    command.args(arguments).stdin(Stdio::null());
    command
}

fn run(command: &mut Command) -> (Option<i32>, String, String) {
    let Output { status, stdout, stderr } = command.output().expect("binderperf starts");
    let text = |bytes| String::from_utf8_lossy(bytes).into_owned();
    (status.code(), text(&stdout), text(&stderr))
}

fn boot(arguments: &[&str]) -> (Option<i32>, String, String) {
    let _guest = ONE_GUEST.lock().unwrap_or_else(PoisonError::into_inner);
    run(binderperf(&["vm"]).args(arguments))
}

/// A folder of this test's own, removed at its end.
struct Folder(PathBuf);

impl Folder {
    fn new(test: &str) -> Self {
        let path = Path::new(env!("CARGO_TARGET_TMPDIR")).join(format!("vm-{test}-{}", std::process::id()));
        std::fs::create_dir_all(&path).expect("the target folder is writable");
        Self(path)
    }

    fn path(&self, name: &str) -> String {
        self.0.join(name).display().to_string()
    }
}

impl Drop for Folder {
    fn drop(&mut self) {
        std::fs::remove_dir_all(&self.0).expect("it is this test's own");
    }
}

/// How many QEMU processes carry this word on their guest's command line.
fn guests_marked(word: &str) -> usize {
    let processes = std::fs::read_dir("/proc").expect("this is Linux").flatten();
    processes
        .filter_map(|process| std::fs::read(process.path().join("cmdline")).ok())
        .filter(|line| line.starts_with(b"/") || line.starts_with(b"qemu"))
        .map(|line| String::from_utf8_lossy(&line).into_owned())
        .filter(|line| {
            line.contains("qemu-system") && line.contains(word) && line.contains("binderperf.guest=1")
        })
        .count()
}

#[test]
fn a_commands_output_files_and_exit_status_come_back() {
    let folder = Folder::new("returns");
    let (out, klog) = (folder.path("out"), folder.path("klog"));
    let probe = ["--", "guest-probe", "--stderr", "to the side", "--file", "left.txt=behind", "--exit", "7"];
    let (code, stdout, stderr) =
        boot(&[&["--smp", "2", "--out", &out, "--klog", &klog], &probe[..]].concat());
    assert_eq!(code, Some(7), "{stdout}{stderr}");
    for want in [
        r#""devices":["binder","hwbinder","vndbinder"]"#,
        r#""cpus":2"#,
        r#""clocksource":"tsc"#, // tsc, or tsc-early in the first second: both are read without a system call.
    ] {
        assert!(stdout.contains(want), "{want} in {stdout}");
    }
    assert!(
        ["kvm", "tcg"].iter().any(|class| stdout.contains(&format!(r#""host_class":"{class}""#))),
        "{stdout}"
    );
    assert_eq!(stderr, "to the side\n", "quiet in a pipe but for the command itself");
    assert_eq!(std::fs::read_to_string(folder.0.join("out/left.txt")).unwrap(), "behind");
    let log = std::fs::read_to_string(&klog).unwrap();
    assert!(
        log.contains("Linux version") && log.contains("binderperf.guest=1"),
        "the whole kernel log: {log}"
    );
}

#[test]
fn another_program_runs_as_cargo_would_run_it_and_a_panic_is_one_clear_error() {
    let (code, stdout, stderr) = boot(&["--exec", BINARY, "guest-probe", "--panic", "--exit", "9"]);
    assert!(stdout.starts_with(r#"{"release":"#), "what came before the panic is kept: {stdout}");
    assert_eq!(code, Some(4), "{stderr}");
    assert!(stderr.contains("the guest's kernel panicked (sysrq triggered crash)"), "{stderr}");
    assert!(
        stderr.contains("| ") && stderr.contains("Kernel panic - not syncing"),
        "the console is quoted: {stderr}"
    );
    assert_eq!(stderr.matches("binderperf: ").count(), 1, "one error: {stderr}");
}

#[test]
fn counting_instructions_runs_one_processor_from_a_settled_start() {
    let (code, stdout, stderr) = boot(&["--icount", "--smp", "4", "--", "guest-probe"]);
    assert_eq!(code, Some(0), "{stderr}");
    assert!(stdout.contains(r#""host_class":"icount""#) && stdout.contains(r#""cpus":1"#), "{stdout}");
    let uptime = stdout.split(r#""uptime_s":"#).nth(1).unwrap().trim_end().trim_end_matches('}');
    assert!(uptime.parse::<f64>().unwrap() >= 2.0, "{stdout}");
}

#[test]
fn qemu_goes_when_time_is_up() {
    let mark = format!("mark={}.timeout", std::process::id());
    let (code, _, stderr) =
        boot(&["--timeout", "1", "--append", &mark, "--", "guest-probe", "--sleep", "600"]);
    assert_eq!(code, Some(4), "{stderr}");
    assert!(
        stderr.contains("did not come up within") || stderr.contains("still running after 1 s"),
        "{stderr}"
    );
    assert_eq!(guests_marked(&mark), 0);
}

#[test]
fn qemu_goes_when_its_host_process_is_killed() {
    let _guest = ONE_GUEST.lock().unwrap_or_else(PoisonError::into_inner);
    let mark = format!("mark={}.killed", std::process::id());
    let mut host = binderperf(&["vm", "--append", &mark, "--", "guest-probe", "--sleep", "600"])
        .stdout(Stdio::piped())
        .spawn()
        .unwrap();
    let mut line = String::new();
    BufReader::new(host.stdout.take().unwrap()).read_line(&mut line).unwrap();
    assert!(line.contains("release"), "output comes while the command runs: {line}");
    assert_eq!(guests_marked(&mark), 1, "the guest is up");
    host.kill().unwrap();
    host.wait().unwrap();
    // The kernel has sent its signal; the process takes a moment to be gone.
    while guests_marked(&mark) > 0 {
        std::thread::sleep(Duration::from_millis(10));
    }
}

#[test]
fn a_stopped_command_still_hands_over_what_it_has() {
    let _guest = ONE_GUEST.lock().unwrap_or_else(PoisonError::into_inner);
    let folder = Folder::new("stopped");
    let mark = format!("mark={}.stopped", std::process::id());
    let words = [
        "vm",
        "--append",
        &mark,
        "--out",
        &folder.path("out"),
        "--",
        "throughput",
        "binder",
        "--controls=pipe",
    ];
    // JSON begins before the first case.
    let record = [
        "--benchmark_format=json",
        "--benchmark_filter=pipe",
        "--benchmark_min_time=600s",
        "--record=r.json",
    ];
    let mut host = binderperf(&[&words[..], &record].concat()).stdout(Stdio::piped()).spawn().unwrap();
    let (mut line, mut output) = (String::new(), BufReader::new(host.stdout.take().unwrap()));
    output.read_line(&mut line).unwrap();
    let pid = host.id().to_string();
    assert!(Command::new("kill").args(["-TERM", &pid]).status().unwrap().success());
    output.read_to_string(&mut line).unwrap();
    assert_eq!(host.wait().unwrap().code(), Some(1), "the command's own status");
    let record = std::fs::read_to_string(folder.0.join("out/r.json")).expect("the record came back");
    assert!(record.contains("stopped by SIGTERM"), "{record}");
    assert_eq!(guests_marked(&mark), 0);
}

#[test]
fn bad_input_is_told_before_anything_is_booted() {
    let folder = Folder::new("input");
    let script = folder.path("script");
    std::fs::write(&script, "#!/bin/sh\n").unwrap();
    for (arguments, want) in [
        (
            &["--kernel", "/no/such/bzImage", "--", "guest-probe"][..],
            "'/no/such/bzImage' is no kernel to boot: there is no such file",
        ),
        (&["--kernel", BINARY, "--", "guest-probe"], "it is no bzImage"),
        (&["--kernel", "seven", "--", "guest-probe"], "names are a version"),
        (&["--kernel", "6.1", "--kernel", "6.12", "--", "guest-probe"], "not for names"),
        (&["--exec", &script], "cannot run in a guest: it is not a 64-bit little-endian ELF program"),
        (&["--exec", "/no/such/program"], "/no/such/program cannot run in a guest: reading it: ENOENT"),
        (&["--smp", "0", "--", "guest-probe"], "'--smp <N>'"),
        (&["--timeout", "-5", "--", "guest-probe"], "invalid value '-5' for '--timeout <S>'"),
        (&["--timeout", "18446744073709551615", "--", "guest-probe"], "'--timeout <S>'"),
        (&["--accel", "abacus", "--", "guest-probe"], "auto, kvm, tcg"),
        (&[], "<COMMAND>"),
    ] {
        let (code, stdout, stderr) = run(binderperf(&["vm"]).args(arguments));
        assert_eq!(code, Some(2), "{arguments:?}: {stderr}");
        assert!(stderr.contains(want) && stdout.is_empty(), "{arguments:?}: {stderr}");
    }
}

#[test]
fn a_machine_without_qemu_is_told_what_to_install() {
    let (code, _, stderr) = run(binderperf(&["vm", "--", "guest-probe"]).env("PATH", ""));
    assert_eq!(code, Some(3), "{stderr}");
    assert!(stderr.contains("no qemu-system-x86_64 in PATH; install it: apt-get install"), "{stderr}");
}

#[test]
fn a_kernel_that_cannot_be_fetched_is_told_with_what_was_tried() {
    let folder = Folder::new("offline");
    // A PATH with QEMU's name and nothing else: there is no apt to fetch with.
    std::fs::write(folder.0.join("qemu-system-x86_64"), "").unwrap();
    let mut command = binderperf(&["vm", "--kernel", "6.1", "--", "guest-probe"]);
    let (code, _, stderr) = run(command.env("PATH", &folder.0).env("XDG_CACHE_HOME", folder.path("cache")));
    assert_eq!(code, Some(3), "{stderr}");
    assert!(stderr.contains("no kernel for 6.1; tried:\n  - apt: "), "{stderr}");
    assert!(stderr.contains("--kernel FILE"), "and what to do: {stderr}");
}

#[test]
fn nobody_panics_the_machine_that_they_work_on() {
    let (code, _, stderr) = run(&mut binderperf(&["guest-probe", "--panic"]));
    assert_eq!(code, Some(3), "{stderr}");
    assert!(stderr.contains("only a guest"), "{stderr}");
}
