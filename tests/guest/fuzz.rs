//! `fuzz` on a kernel's driver in guests.
//! Not here: without a kernel's driver (`fuzz` of `tests/cli`).

use crate::support::{Folder, binderperf};

#[test]
fn random_programs_give_the_same_on_a_kernels_driver_and_the_embedded_one() {
    let words = ["fuzz", "--drivers", "kernel:c,embedded", "--programs", "20", "--seconds", "600"];
    binderperf(&words).ended(0).printed("fuzz: 20 programs, ").printed("differences: 0 new");
}

/// A child calls with its parent's descriptor; the owner of a node becomes another program, which loses its receiving area.
const HEIRS: &str = "
p0.t0 open 65536
p1.t0 open 65536
p0.t0 manager
p1.t0 fork call 0 code=7 data=8; read
p0.t0 enter; read
p1.t0 call 0 code=8 flags=0x1 [node 1]; read
p0.t0 read
p0.t0 acquire 1; free 1
p1.t0 exec
p0.t0 call 1 code=9 flags=0x1; read
p1.t0 version
p1.t0 call 0 code=10 flags=0x1; read
p1.t0 close
p1.t0 exec
";

#[test]
fn a_child_and_another_program_use_the_device_that_they_inherit() {
    let folder = Folder::new("heirs");
    let file = format!("{}:/heirs", folder.write("heirs", HEIRS));
    let called =
        binderperf(&["vm", "--smp", "1", "--add", &file, "--", "fuzz", "--serve", "/heirs"]).ended(0);
    let outcomes = [
        (3, "EAGAIN\""),
        (4, "ok NOOP TRANSACTION(node=0,0 code=7 flags=0x0 from=p1 "),
        (8, "ok\""),
        (9, "ok NOOP DEAD_REPLY\""),
        (10, "8\""),
        (11, "ok NOOP COMPLETE\""),
        (12, "ok\""),
        (13, "not open\""),
    ];
    for (step, text) in outcomes {
        called.printed(format!("{{\"step\":{step},\"thread\":null,\"text\":\"{text}"));
    }
}
