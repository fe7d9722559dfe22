//! `binderperf shim` as its users meet it, with a program in C that knows nothing of binderperf (`programs/device.c`).

use std::path::{Path, PathBuf};
use std::process::Command;
use std::sync::OnceLock;

use needs::{Need, need};

use crate::support::{BINARY, Called, Folder, binderperf, call};

pub(crate) const ROOT: &str = env!("CARGO_MANIFEST_DIR");

pub(crate) fn run(command: &mut Command) {
    let output = command.output().unwrap_or_else(|error| panic!("{command:?}: {error}"));
    assert!(output.status.success(), "{command:?}: {}", String::from_utf8_lossy(&output.stderr));
}

/// The library, made of the tree as it is.
pub(crate) fn library() -> &'static Path {
    static MADE: OnceLock<PathBuf> = OnceLock::new();
    MADE.get_or_init(|| {
        let folder = Path::new(BINARY).parent().expect("a folder");
        let target = folder.parent().and_then(Path::file_name).expect("a target");
        run(Command::new("tools/preload").current_dir(ROOT).arg("dev").arg(target).arg(folder));
        folder.join("libbinderperf.so")
    })
}

/// Compiles a program of `tests/programs`.
pub(crate) fn compiled(folder: &Folder, name: &str, options: &[&str]) -> String {
    let program = folder.path(name);
    let mut compiler = Command::new("cc");
    compiler.args(["-O1", "-D_FORTIFY_SOURCE=2", "-Wall", "-Werror", "-pthread", "-o", &program]);
    run(compiler.args(options).arg(format!("{ROOT}/tests/programs/{name}.c")));
    program
}

/// Plays a scene in a context of its own.
fn play(scene: &str) -> Called {
    let folder = Folder::new(&format!("shim-{scene}"));
    let program = compiled(&folder, "device", &[]);
    let library = library().to_string_lossy();
    let words =
        ["shim", "--library", &library, "--context-dir", &folder.path("context"), "--", &program, scene];
    binderperf(&words)
}

#[test]
fn a_device_refuses_bad_input() {
    play("bad_input").ended(0).printed_nothing();
}

#[test]
fn a_device_is_open_as_long_as_any_of_its_numbers() {
    play("numbers").ended(0).printed_nothing();
}

#[test]
fn children_do_not_disturb_a_device() {
    play("forks").ended(0).printed_nothing();
}

#[test]
fn closing_a_device_wakes_who_waits() {
    play("close_wakes").ended(0).printed_nothing();
}

#[test]
fn calls_arrive_by_every_way_of_waiting() {
    play("calls").ended(0).printed_nothing();
}

#[test]
fn a_callee_that_dies_is_known_to_be_dead() {
    play("dies").ended(0).printed_nothing();
}

#[test]
fn a_thread_is_cancelled_where_it_waits() {
    play("cancelled").ended(0).printed_nothing();
}

#[test]
fn signals_take_nothing_from_a_thread() {
    play("signals").ended(0).printed_nothing();
}

#[test]
fn a_signal_handler_finds_devices_while_its_thread_waits() {
    play("handlers").ended(0).printed_nothing();
}

#[test]
fn a_device_is_not_sent_to_another_process() {
    play("sends").ended(0).printed_nothing();
}

#[test]
fn a_defect_would_be_seen() {
    let folder = Folder::new("shim-without");
    let program = compiled(&folder, "device", &[]);
    binderperf(&["shim", "--library", &folder.path("none"), "--", &program, "calls"])
        .ended(3)
        .complained("ENOENT");
    let alone = call(&program, &["numbers"], &[]);
    need!(Need::Driver.met_if(!Path::new("/dev/binder").exists(), "this machine has a device"));
    alone.ended(1).printed("fd >= 0");
}

/// Nothing can be preloaded into it, so it is supervised, where that can be.
#[test]
fn a_static_program_is_supervised() {
    let folder = Folder::new("shim-static");
    let program = compiled(&folder, "device", &["-static"]);
    let directory = folder.path("context");
    for scene in ["calls", "signals", "handlers", "sends"] {
        let called = binderperf(&["shim", "--context-dir", &directory, "--", &program, scene]);
        need!(Need::Supervision.met_if(!called.stderr.contains("cannot supervise"), &called.stderr));
        called.ended(0).printed_nothing().complained("no time measured here");
    }
}

#[test]
fn what_cannot_be_run_is_refused() {
    binderperf(&["shim", "--", "no-such-program"]).ended(2).complained("no-such-program");
    binderperf(&["shim", "--", "/no/such/program"]).ended(2).complained("ENOENT");
    binderperf(&["shim", "--", &format!("{ROOT}/Cargo.toml")]).ended(3).complained("no program");
    binderperf(&["shim"]).ended(2);
}
