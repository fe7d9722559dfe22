//! Inheritance of real-time priority on kernels that `vm build-kernel` left in the cache: it passes with
//! `contrib/kernel/inherit-rt.patch`, fails with each patch of `contrib/kernel/broken`, and is nice without any. Without such
//! a kernel the test says so: building one takes many minutes.
//! Not here: the build (`tests/cli/kernels`), what the patches do (`contrib/kernel/README.md`).

use needs::{Need, need};

use vm::build::Explained;

use crate::one_guest;
use crate::support::binderperf;

/// How `inheritance` must end.
enum Expected {
    /// Well, having measured this.
    Measured(&'static str),
    /// With a fault in this scene.
    Fails(&'static str),
}

fn expected(build: &Explained) -> Option<Expected> {
    let patched = |with: &str| build.patches.iter().any(|patch| patch.ends_with(with));
    let is_other = |patch: &String| {
        let known = ["inherit-rt.patch", "restores-late.patch", "forgets-queued.patch"];
        !known.iter().any(|with| patch.ends_with(with))
    };
    match () {
        () if build.driver != "c" || build.patches.iter().any(is_other) => None,
        () if patched("restores-late.patch") => Some(Expected::Fails("unwound")),
        () if patched("forgets-queued.patch") => Some(Expected::Fails("queued")),
        () if patched("inherit-rt.patch") => Some(Expected::Measured("rt")),
        () => Some(Expected::Measured("nice")),
    }
}

#[test]
fn inheritance_passes_with_the_patch_and_fails_with_a_broken_one() {
    let own = vm::Arch::own();
    let kept = vm::build::kept().expect("a cache");
    let mut looked_at = 0;
    for kernel in kept.iter().filter(|kernel| kernel.arch == own) {
        let Some(expected) = kernel.build.as_ref().and_then(expected) else { continue };
        let _guest = one_guest();
        // On one CPU the caller's queued call comes when its server is busy.
        let called = binderperf(&["vm", "--smp", "1", "--kernel", &kernel.word, "--", "inheritance"]);
        let is_faulty = |line: &str, scene| line.starts_with(scene) && line.ends_with("NO");
        match expected {
            Expected::Measured(mode) => {
                called.ended(0).printed(format!("measured {mode}, expected {mode}"));
            }
            Expected::Fails(scene) => {
                let called = called.ended(1);
                assert!(
                    called.stdout.lines().any(|line| is_faulty(line, scene)),
                    "{}: {called}",
                    kernel.word
                );
            }
        }
        looked_at += 1;
    }
    let why = format_args!("none for {own} was built; contrib/kernel/README.md has the commands");
    need!(Need::Kernel.met_if(looked_at > 0, why));
}
