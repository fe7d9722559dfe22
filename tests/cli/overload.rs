//! The overload experiment as a user calls it, on the embedded driver.
//! Not here: the verdict's rules (`record::verdict`).

use needs::{Need, need};

use crate::support::{Folder, binderperf, call, read, realtime, words};
use record::Class;

const SHORT: &str = "overload --driver=embedded --cpus=1 --pairs=1,2 -i 25 --rounds=1";

#[test]
fn a_second_real_time_pair_on_one_cpu_misses_its_deadline() {
    need!(realtime());
    let folder = Folder::new("overload");
    let (record, page) = (folder.path("r.json"), folder.path("r.html"));
    let called = binderperf(&[&words(SHORT)[..], &["--record", &record]].concat());
    // Other tests may take the CPU, and then it says so.
    assert!(matches!(called.code, Some(0 | 1)), "{}", called.stdout);
    called.printed("2 real-time pairs").printed("must miss").printed("Next: ");
    let run = read(&record);
    let experiment = run.overload().expect("the experiment");
    assert_eq!((experiment.cpus.len(), experiment.rows.len()), (1, 4));
    let of = |class| experiment.of(class).map(|row| row.calls).collect::<Vec<_>>();
    assert_eq!((of(Class::Fifo), of(Class::Other)), (vec![25, 50], vec![25, 50]));
    // Whatever else runs, two calls of 1.5 ms cannot both end within 2.5 ms on one CPU.
    assert!(
        experiment.rows.iter().filter(|row| row.pairs == 2).all(|row| row.misses >= 20),
        "{experiment:?}"
    );
    binderperf(&["show", &record]).ended(0).printed("2 real-time pairs");
    binderperf(&["report", &record, "-o", &page]).ended(0);
    let page = std::fs::read_to_string(&page).expect("a page");
    assert!(page.contains("<svg role=\"img\"") && page.contains("real-time overload"), "{page}");
}

#[test]
fn without_rights_it_cannot_be_told() {
    let dropped: &[&str] = match sys::identity::effective_uid() {
        0 => &["setpriv", "--bounding-set=-sys_nice", "--inh-caps=-sys_nice", "--"],
        _ => {
            need!(Need::OtherUser.met_if(realtime().is_err(), "this process is allowed to be real-time"));
            &["env"]
        }
    };
    let called =
        call(dropped[0], &[&dropped[1..], &[crate::support::BINARY], &words(SHORT)[..]].concat(), &[]);
    called.ended(3).printed("cannot be told").printed("RLIMIT_RTPRIO").printed("ordinary pair");
}

#[test]
fn nonsense_is_refused() {
    for (words, says) in [
        (&["--deadline-us=3000"][..], "less than 3000"),
        (&["--work=0"], "1 to 50000"),
        (&["--cpus=0"], "use 1 to"),
        (&["--pairs=2,1"], "ascend"),
        (&["--pairs=0"], "1 to 128"),
        (&["--period-us=10"], "a period of"),
        (&["-i", "0"], "1.."),
    ] {
        binderperf(&[&["overload", "--driver=embedded"], words].concat()).ended(2).complained(says);
    }
}
