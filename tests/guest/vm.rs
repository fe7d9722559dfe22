//! `binderperf vm` as its users meet it: a command in a guest, and everything that can go wrong.
//! Not here: the lane's parts, tested beside them in `vm`; what a measured command prints.
//! These tests boot guests, on the kernel that a user gets who names none.

use std::io::{BufRead, BufReader, Read};

use crate::support::{
    BINARY, Called, Folder, binderperf, call, contents, end, refused, signal, start, wait_until, words,
};

fn vm(words: &[&str]) -> Called {
    binderperf(&[&["vm"], words].concat())
}

fn boot(words: &[&str]) -> Called {
    let _guest = crate::one_guest();
    vm(words)
}

/// How many QEMU processes carry this word on their guest's command line.
fn guests_marked(word: &str) -> usize {
    let processes = std::fs::read_dir("/proc").expect("this is Linux").flatten();
    processes
        .filter_map(|process| std::fs::read(process.path().join("cmdline")).ok())
        .filter(|line| line.starts_with(b"/") || line.starts_with(b"qemu"))
        .map(|line| String::from_utf8_lossy(&line).into_owned())
        .filter(|line| {
            line.contains("qemu-system") && line.contains(word) && line.contains("binderperf_guest=1")
        })
        .count()
}

#[test]
fn a_commands_output_files_and_exit_status_come_back() {
    let folder = Folder::new("returns");
    let (out, klog) = (folder.path("out"), folder.path("klog"));
    let probe = ["--", "guest-probe", "--stderr", "to the side", "--file", "left.txt=behind", "--exit", "7"];
    let guest = ["--smp", "2", "--out", &out, "--klog", &klog];
    let called = boot(&[&guest, &probe[..]].concat()).ended(7);
    // tsc, or tsc-early in the first second: both are read without a system call.
    called.printed(r#""devices":["binder","hwbinder","vndbinder"]"#).printed(r#""clocksource":"tsc"#);
    called.printed(r#""cpus":2"#);
    let class = |class: &str| called.stdout.contains(&format!(r#""host_class":"{class}""#));
    assert!(class("kvm") || class("tcg"), "{called}");
    assert_eq!(called.stderr, "to the side\n", "quiet in a pipe but for the command itself");
    assert_eq!(contents(folder.path("out/left.txt")), "behind");
    let log = contents(&klog);
    assert!(log.contains("Linux version") && log.contains("binderperf_guest=1"), "the kernel's log: {log}");
}

#[test]
fn another_program_runs_as_cargo_would_run_it_and_a_panic_is_one_clear_error() {
    let called = boot(&["--exec", BINARY, "guest-probe", "--sleep", "1", "--panic", "--exit", "9"]).ended(4);
    assert!(called.stdout.starts_with(r#"{"release":"#), "what came before the panic is kept: {called}");
    called.complained("the guest's kernel panicked (sysrq triggered crash)");
    called.complained("| ").complained("Kernel panic - not syncing");
    assert_eq!(called.stderr.matches("binderperf: ").count(), 1, "one error: {called}");
}

#[test]
fn a_script_runs_in_one_boot_and_has_the_status_of_its_first_failure() {
    let folder = Folder::new("script");
    let script = folder.write(
        "script",
        "guest-probe --file 'first=x y' # its files stay for the next\n\
         guest-probe --stderr \"to the side\" --exit 1\n\
         binderperf guest-probe\n\
         guest-probe --exit 7\n\
         guest-probe --file last=x\n",
    );
    let out = folder.path("out");
    let called = boot(&["--smp", "1", "--out", &out, "--script", &script]).ended(1);
    let (said, rest) =
        called.stderr.split_once("$ guest-probe --exit 7\n").unwrap_or_else(|| panic!("{called}"));
    assert_eq!(
        said,
        "$ guest-probe --file 'first=x y'\n[status 0]\n\
         $ guest-probe --stderr 'to the side' --exit 1\nto the side\n[status 1]\n\
         $ guest-probe\n[status 0]\n"
    );
    assert_eq!(rest, "[status 7]\n[not run: the command behind it]\n");
    assert_eq!(called.stdout.matches(r#"{"release":"#).count(), 4, "{called}");
    assert_eq!(contents(folder.path("out/first")), "x y");
    assert!(!std::path::Path::new(&folder.path("out/last")).exists());
}

#[test]
fn counting_instructions_runs_one_processor_from_a_settled_start() {
    let called = boot(&["--icount", "--smp", "4", "--", "guest-probe"]).ended(0);
    called.printed(r#""host_class":"icount""#).printed(r#""cpus":1"#);
    assert!(called.json()["uptime_s"].as_f64().is_some_and(|seconds| seconds >= 2.0), "{called}");
}

#[test]
fn qemu_goes_when_time_is_up() {
    let mark = format!("mark={}.timeout", std::process::id());
    let sleep = ["--timeout", "1", "--append", &mark, "--", "guest-probe", "--sleep", "600"];
    let called = boot(&sleep).ended(4);
    let late = ["did not come up within", "still running after 1 s"];
    assert!(late.iter().any(|words| called.stderr.contains(words)), "{called}");
    assert_eq!(guests_marked(&mark), 0);
}

#[test]
fn qemu_goes_when_its_host_process_is_killed() {
    let _guest = crate::one_guest();
    let mark = format!("mark={}.killed", std::process::id());
    let mut host = start(&["vm", "--append", &mark, "--", "guest-probe", "--sleep", "600"]);
    let mut line = String::new();
    BufReader::new(host.stdout.take().expect("piped")).read_line(&mut line).expect("text");
    assert!(line.contains("release"), "output comes while the command runs: {line}");
    assert_eq!(guests_marked(&mark), 1, "the guest is up");
    host.kill().and_then(|()| host.wait()).expect("it was running");
    // The kernel has sent its signal; the process takes a moment to be gone.
    wait_until("QEMU is gone", || guests_marked(&mark) == 0);
}

#[test]
fn a_stopped_command_still_hands_over_what_it_has() {
    let _guest = crate::one_guest();
    let folder = Folder::new("stopped");
    let mark = format!("mark={}.stopped", std::process::id());
    let out = folder.path("out");
    let guest = ["vm", "--append", &mark, "--out", &out, "--", "throughput", "binder", "--controls=pipe"];
    // JSON begins before the first case.
    let test = "--benchmark_format=json --benchmark_filter=pipe --benchmark_min_time=600s --record=r.json";
    let mut host = start(&[&guest[..], &words(test)].concat());
    let (mut line, mut output) = (String::new(), BufReader::new(host.stdout.take().expect("piped")));
    output.read_line(&mut line).expect("text");
    signal(host.id(), "TERM");
    output.read_to_string(&mut line).expect("text");
    // The command's own status.
    end(host).ended(1);
    let record = contents(folder.path("out/r.json"));
    assert!(record.contains("stopped by SIGTERM"), "{record}");
    assert_eq!(guests_marked(&mark), 0);
}

#[test]
fn bad_input_is_told_before_anything_is_booted() {
    let folder = Folder::new("input");
    let script = folder.write("script", "#!/bin/sh\n");
    let cases: [(&[&str], &str); 11] = [
        (
            &["--kernel", "/no/such/bzImage", "--", "guest-probe"],
            "'/no/such/bzImage' is not a bootable kernel: there is no such file",
        ),
        (&["--kernel", BINARY, "--", "guest-probe"], "it is neither a bzImage"),
        (&["--kernel", "seven", "--", "guest-probe"], "names are a version"),
        (&["--kernel", "6.1", "--kernel", "6.12", "--", "guest-probe"], "not for names"),
        (&["--exec", &script], "cannot run in a guest: it is not a little-endian ELF program"),
        (&["--exec", "/no/such/program"], "/no/such/program cannot run in a guest: reading it: ENOENT"),
        (&["--smp", "0", "--", "guest-probe"], "'--smp <N>'"),
        (&["--timeout", "-5", "--", "guest-probe"], "invalid value '-5' for '--timeout <S>'"),
        (&["--timeout", "18446744073709551615", "--", "guest-probe"], "'--timeout <S>'"),
        (&["--accel", "abacus", "--", "guest-probe"], "auto, kvm, tcg"),
        (&[], "<COMMAND>"),
    ];
    refused(vm, &cases);
}

#[test]
fn run_takes_the_words_of_vm() {
    for flag in ["--vm=seven", "--kernel=seven"] {
        let folder = Folder::new("words");
        let called = binderperf(&["run", flag, "--out", &folder.path("out")]).ended(2);
        called.complained("'seven' is not a bootable kernel").complained("names are a version");
    }
}

#[test]
fn a_machine_without_qemu_is_told_what_to_install() {
    let called = call(BINARY, &["vm", "--", "guest-probe"], &[("PATH", "")]).ended(3);
    called.complained("no qemu-system-x86_64 in PATH; install it: apt-get install");
}

#[test]
fn a_kernel_that_cannot_be_fetched_is_told_with_what_was_tried() {
    let folder = Folder::new("offline");
    // A PATH with QEMU's name and nothing else: there is no apt to fetch with.
    folder.write("qemu-system-x86_64", "");
    let variables = [("PATH", &*folder.path("")), ("XDG_CACHE_HOME", &folder.path("cache"))];
    let called = call(BINARY, &["vm", "--kernel", "6.1", "--", "guest-probe"], &variables).ended(3);
    // And what to do.
    called.complained("no kernel for 6.1; tried:\n  - apt: ").complained("vm --kernel FILE or run --vm=FILE");
}

#[test]
fn nobody_panics_the_machine_that_they_work_on() {
    binderperf(&["guest-probe", "--panic"]).ended(3).complained("only a guest");
}
