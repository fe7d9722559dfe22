//! `binderperf matrix` as typed: what is refused before anything boots.
//! Not here: kernels (`guest::matrix`).

use crate::support::{Folder, binderperf};

#[test]
fn bad_words_are_told_before_anything_boots() {
    let folder = Folder::new("matrix-words");
    let records = folder.path("records");
    let matrix = |more: &[&str]| binderperf(&[&["matrix", "--records", &records], more].concat()).ended(2);
    matrix(&[]).complained("--kernels");
    matrix(&["--kernels", "a=6.1,a=6.12"]).complained("two kernels are called a");
    matrix(&["--kernels", "=6.1"]).complained("no KERNEL and no NAME=KERNEL");
    matrix(&["--kernels", "6.1", "--tests", ""]).complained("no command");
    matrix(&["--kernels", "6.1", "--tests", "throughput 'binder"]).complained("not closed");
    matrix(&["--kernels", "6.1", "--icount", "--rounds", "2"]).complained("--rounds");
    matrix(&["--kernels", "7.2+a/fix.patch,7.2+b/fix.patch"]).complained("two kernels are called fix.patch");
    matrix(&["--kernels", "6.1", "--tests", "throughput binder --nonsense"]).complained("--nonsense");
    assert!(!std::path::Path::new(&records).exists(), "nothing was begun");
}
