//! Programs in C that are linked with libbinderperf, as it is installed: no `shim`, nothing preloaded.

use std::path::Path;
use std::process::Command;

use crate::shim::{ROOT, library, run};
use crate::support::{BINARY, Called, Folder, call};

/// Installs the library below a folder, and compiles a program against it by what pkg-config says.
fn linked(folder: &Folder, program: &str) -> String {
    let prefix = folder.path("usr");
    run(Command::new("tools/preload-files").current_dir(ROOT).arg(library()).arg(&prefix));
    let mut asked = Command::new("pkg-config");
    asked.args(["--cflags", "--libs", "binderperf"]);
    let told = asked.env("PKG_CONFIG_PATH", format!("{prefix}/lib/pkgconfig")).output().expect("pkg-config");
    let options = String::from_utf8(told.stdout).expect("text");
    assert!(options.contains("-lbinderperf"), "{options}{}", String::from_utf8_lossy(&told.stderr));
    let compiled = folder.path(program);
    let mut compiler = Command::new("cc");
    compiler.args(["-Wall", "-Werror", "-pthread", "-o", &compiled]);
    run(compiler.arg(format!("{ROOT}/tests/programs/{program}.c")).args(options.split_whitespace()));
    compiled
}

fn path() -> String {
    let own = Path::new(BINARY).parent().expect("a folder").display();
    format!("{own}:{}", std::env::var("PATH").unwrap_or_default())
}

#[test]
fn the_header_keeps_what_it_promises() {
    let folder = Folder::new("linked");
    let program = linked(&folder, "linked");
    let directory = folder.path("context");
    call(&program, &[&directory], &[("PATH", &path())]).ended(0).printed_nothing();
    let lost: Called = call(&program, &[&directory], &[("PATH", "/nowhere")]);
    lost.ended(1).complained("no program binderperf is along $PATH");
}

#[test]
fn a_program_that_opens_a_path_needs_only_to_be_linked() {
    let folder = Folder::new("linked-device");
    let program = linked(&folder, "device");
    let runtime = folder.path("runtime");
    std::fs::create_dir(&runtime).expect("a folder");
    call(&program, &["calls"], &[("PATH", &path()), ("XDG_RUNTIME_DIR", &runtime)])
        .ended(0)
        .printed_nothing();
}
