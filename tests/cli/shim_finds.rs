//! Ways in which programs look for a device, preloaded and supervised: the table of `programs/finds.c`.

use needs::{Need, need};

use crate::shim::{ROOT, compiled, library};
use crate::support::{Called, Folder, binderperf, call};

/// Ways that cannot be had under supervision: no process changes another one's working directory.
const NOT_SUPERVISED: [&str; 2] = ["chdir to the folder", "chdir to a device"];
/// A path that a rule makes a device. Its folder is not there.
const RULE: &str = "/opt/none/my-binder";

/// Runs the program, in a fresh context.
fn find(folder: &Folder, options: &[&str]) -> Called {
    let program = compiled(folder, "finds", &[]);
    // The directory is behind a link, as below some `/tmp` or `/var/run`.
    std::os::unix::fs::symlink(folder.path(""), folder.path("link-to-itself")).expect("linked");
    let (directory, links) = (folder.path("link-to-itself/context"), folder.path(""));
    let rule = format!("{RULE}=binder");
    let mut words = vec!["shim", "--context-dir", &directory, "--device-path", &rule];
    words.extend(options);
    words.extend(["--", &program, &links, RULE]);
    binderperf(&words)
}

/// Checks that all ways work but these.
fn check(called: &Called, not: &[&str]) {
    let ways = |begin| called.stdout.lines().filter_map(move |line| line.strip_prefix(begin));
    let failed: Vec<_> = ways("FAILED ").map(|line| line.split(" (").next().unwrap_or(line)).collect();
    assert_eq!(failed, not, "{}{}", called.stdout, called.stderr);
    assert!(ways("ok ").count() > 60, "{}{}", called.stdout, called.stderr);
}

#[test]
fn a_preloaded_program_finds_its_device() {
    let folder = Folder::new("finds-preloaded");
    let library = library().to_string_lossy();
    check(&find(&folder, &["--library", &library]).ended(0), &[]);
}

#[test]
fn a_supervised_program_finds_its_device() {
    let folder = Folder::new("finds-supervised");
    let called = find(&folder, &["--supervise"]);
    need!(Need::Supervision.met_if(!called.stderr.contains("cannot supervise"), &called.stderr));
    check(&called.ended(0), &NOT_SUPERVISED);
}

#[test]
fn a_rule_that_is_none_is_refused() {
    for rule in ["/dev/my-binder", "my-binder=binder", "/dev/x=a/b", "/dev/x=binder:/dev/y=binder"] {
        binderperf(&["shim", "--device-path", rule, "--", "true"]).ended(2).complained("--device-path");
    }
}

#[test]
fn a_program_with_address_sanitizer_is_sent_to_the_supervisor() {
    let folder = Folder::new("finds-sanitized");
    let source = format!("{ROOT}/tests/programs/finds.c");
    let program = folder.path("sanitized");
    let built = call("cc", &["-fsanitize=address", "-o", &program, &source], &[]);
    need!(Need::Programs.met_if(built.code == Some(0), "the compiler has no AddressSanitizer"));
    let library = library().to_string_lossy();
    let words = ["shim", "--library", &library, "--context-dir", &folder.path("context"), "--", &program];
    binderperf(&words).ended(3).complained("shim --supervise");
}
