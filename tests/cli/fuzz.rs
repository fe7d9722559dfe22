//! `fuzz` on the embedded driver: programs that drivers take alike, one that they do not, and files that are no program.
//! Not here: programs, comparison, shrinking (crate `fuzzer`), kernels' drivers.

use crate::support::{Folder, binderperf, contents};

/// A second call of 40,000 bytes does not fit into 64 KiB if the broker gives the space when it is sent (BUF-04); through a
/// call slot it takes none yet.
const TWO_LARGE_CALLS: &str = "
p0.t0 open 65536
p0.t0 manager
p0.t0 enter
p1.t0 open 65536
p1.t0 call 0 code=1; read    # makes the acquaintance
p0.t0 read
p0.t0 reply code=2; free 0; read
p1.t0 read
p1.t0 free 0; call 0 code=3 data=40000; read
p2.t0 version
p1.t1 call 0 code=4 data=40000; read
";

#[test]
fn random_programs_give_the_same_with_direct_calls_and_without() {
    let called = binderperf(&["fuzz", "--programs", "40", "--seconds", "600", "--seed", "1"]).ended(0);
    called.printed("fuzz: 40 programs, ").printed("differences: 0 new");
}

#[test]
fn a_difference_is_found_shrunk_and_kept_and_the_same_program_shows_it_again() {
    let folder = Folder::new("fuzz");
    let (program, out) = (folder.write("two", TWO_LARGE_CALLS), folder.path("out"));
    let called = binderperf(&["fuzz", "--program", &program, "--out", &out]).ended(1);
    called.printed("difference 1, the given program: EAGAIN / ok NOOP FAILED_REPLY");
    assert!(!called.stdout.contains("p2"), "not shrunk: {}", called.stdout);
    let kept = contents(format!("{out}/given-1.txt"));
    assert!(kept.contains("      # embedded:broker: ok NOOP FAILED_REPLY\n"), "{kept}");
    let c = contents(format!("{out}/given-1.c"));
    assert!(c.contains("int main(") && c.lines().count() <= 60, "{c}");
    binderperf(&["fuzz", "--program", &format!("{out}/given-1.txt")]).ended(1).printed("difference 1");
}

#[test]
fn threads_side_by_side_leave_nothing_behind_in_any_order() {
    let args = ["fuzz", "--drivers", "embedded", "--programs", "8", "--seconds", "600", "--schedules", "4"];
    binderperf(&args).ended(0).printed("fuzz: 8 programs and 32 with threads side by side, 8 alike");
    let counted = binderperf(&["fuzz", "--icount", "3"]).ended(2);
    counted.complained("--icount is for guests");
}

#[test]
fn the_next_seed_is_kept_and_gone_on_from() {
    let folder = Folder::new("fuzz");
    let out = folder.path("out");
    // What others cannot be made from is left out.
    std::fs::create_dir_all(&out).expect("a folder");
    std::fs::write(format!("{out}/corpus.txt"), "p0.t0 open 4096\n---\n").expect("written");
    let once =
        || binderperf(&["fuzz", "--drivers", "embedded", "--programs", "2", "--seed", "7", "--out", &out]);
    for next in ["9\n", "11\n"] {
        once().ended(0);
        assert_eq!(contents(format!("{out}/next-seed")), next);
    }
    std::fs::write(format!("{out}/corpus.txt"), "p0.t0 sing\n").expect("written");
    once().ended(2).complained("line 1: \"sing\" is no command");
}

#[test]
fn what_is_no_program_and_no_driver_is_refused() {
    let folder = Folder::new("fuzz");
    let program = folder.write("bad", "p0.t0 open 4096\n---\np0.t0 open 1\n\np0.t0 dance\n");
    binderperf(&["fuzz", "--program", &program])
        .ended(2)
        .complained("program 1, line 3: \"dance\" is no command");
    binderperf(&["fuzz", "--program", "/nonexistent"]).ended(2).complained("cannot read /nonexistent");
    binderperf(&["fuzz", "--drivers", "embedded,wooden"]).ended(2).complained("no driver \"wooden\"");
}
