//! Folders that two commands want to write at once.

use super::support::{Folder, binderperf, end, signal, with_servers};

#[test]
fn a_second_run_in_the_same_folder_is_refused_while_the_first_lives() {
    let folder = Folder::new("locked");
    let out = folder.path("out");
    let run = ["run", "--quick", "--driver=embedded", "--no-trace", "--out", &out];
    let (first, _servers) = with_servers(&run);
    let pid = first.id();
    let second = binderperf(&run).ended(2);
    second
        .complained(format!("process {pid} is writing to {out}"))
        .complained("give another folder")
        .printed_nothing();
    binderperf(&["doctor", "--no-measure", "--save", &out]).ended(2).complained(format!("process {pid}"));
    signal(pid, "KILL");
    assert_eq!(end(first).code, None, "killed");
    // Its lock went with it.
    let later = binderperf(&["doctor", "--no-measure", "--save", &out]);
    assert!(!later.stderr.contains("is writing to"), "{later}");
}
