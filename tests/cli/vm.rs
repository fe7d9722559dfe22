//! `binderperf vm` up to the boot: what is wrong with a script is said before one.
//! Not here: guests (`tests/guest`).

use crate::support::{Folder, binderperf, refused};

#[test]
fn a_bad_script_is_told_before_anything_is_booted() {
    let folder = Folder::new("script");
    let empty = folder.write("empty", "#!/bin/sh\n\n");
    let wrong = folder.write("wrong", "# two\ntrace analyze t.txt\nlatency hwbinder --pear=3\n");
    let quote = folder.write("quote", "doctor\nshow 'a\n");
    let shell = folder.write("shell", "doctor > findings\n");
    let cases: [(&[&str], &str); 7] = [
        (&["--script", "/no/such/script"], "cannot read /no/such/script: ENOENT"),
        (&["--script", &empty], "it has no command"),
        (&["--script", &quote], "line 2: the quote ' is not closed"),
        (
            &["--script", &shell],
            "line 1: > is for a shell: quote it, or run a static shell's script with --exec SHELL",
        ),
        (&["--script", &wrong], "latency hwbinder --pear=3: error: "),
        (&["--script", &wrong, "--", "doctor"], "cannot be used with"),
        (&["--keep-going", "--", "doctor"], "cannot be used with"),
    ];
    refused(|words| binderperf(&[&["vm"], words].concat()), &cases);
}
