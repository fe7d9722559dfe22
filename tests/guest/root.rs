//! `vm --root`: a guest on a file tree with dynamic programs.

use std::path::Path;

use crate::support::{Folder, binderperf, call};

/// Copies a program with its loader and libraries into a folder, as they lie here.
fn copied(folder: &Folder, program: &str) -> bool {
    let libraries = call("ldd", &[program], &[]).stdout;
    let files = libraries.split_whitespace().filter(|word| word.starts_with('/')).chain([program]);
    files.into_iter().all(|file| {
        let to = folder.path(&format!("tree{file}"));
        let made = Path::new(&to).parent().map(std::fs::create_dir_all);
        made.is_some_and(|made| made.is_ok()) && std::fs::copy(file, to).is_ok()
    })
}

#[test]
fn dynamic_programs_of_a_tree_run_beside_this_one() {
    let folder = Folder::new("vm-root");
    assert!(copied(&folder, "/bin/sh"), "a shell and its libraries");
    folder.write("tree/etc/whose", "the tree's\n");
    let root = folder.path("tree");
    let _guest = crate::one_guest();
    let script = "read x </etc/whose; echo $x; binderperf guest-probe; exit 5";
    let called = binderperf(&["vm", "--root", &root, "--exec", "/bin/sh", "-c", script]).ended(5);
    assert!(called.stdout.starts_with("the tree's\n"), "{called}");
    called.printed(r#""devices":["binder","hwbinder","vndbinder"]"#);
}

#[test]
fn what_is_no_tree_is_told_before_the_boot() {
    let folder = Folder::new("vm-root-bad");
    let file = folder.write("file", "no archive");
    binderperf(&["vm", "--root", &file, "--exec", "sh"])
        .ended(2)
        .complained("neither a folder nor an archive");
    folder.write("tree/f", "x");
    let root = folder.path("tree");
    binderperf(&["vm", "--root", &root, "--exec", "/bin/sh"])
        .ended(2)
        .complained("the tree of --root has no such file");
}
