//! `throughput ping`: calls that any object answers, of a manager and of another program's service.

use crate::support::{Folder, binderperf, read, signal, with_servers};
use record::Outcome;

const FEW: &str = "--benchmark_min_time=50x";

#[test]
fn a_manager_is_pinged_without_a_service() {
    for (more, cases) in
        [(&[][..], &["BM_ping/0", "BM_interface/0"][..]), (&["--flavour", "hwbinder"], &["BM_hwping/0"])]
    {
        let folder = Folder::new("ping");
        let record = folder.path("r.json");
        let words = ["throughput", "ping", "--driver", "embedded", FEW, "--record", &record];
        let called = binderperf(&[&words[..], more].concat()).ended(0);
        let run = read(&record);
        for case in cases {
            called.printed(case);
            let measured = &run.case(case).expect(case).repetitions[0].outcome;
            assert!(matches!(measured, Outcome::Measured(result) if result.iterations == 50), "{measured:?}");
        }
        // The floor of a call without payload, beside it.
        called.printed("x_futex=");
    }
}

#[test]
fn a_service_of_another_program_is_pinged_and_a_missing_one_named() {
    let folder = Folder::new("ping-service");
    let context = folder.path("context");
    let place = ["--driver", "embedded", "--context-dir", &context, "--device", "binder"];
    let words = ["throughput", "binder", "--benchmark_filter=binder/4$", "--benchmark_min_time=60s"];
    let (mut other, _) = with_servers(&[&words[..], &place].concat());
    let name = format!("binderperf.sendvec.{}", other.id());
    let ping = |name: &str| {
        let words = ["throughput", "ping", "--controls", "none", FEW, "--service", name];
        binderperf(&[&words[..], &place].concat())
    };
    ping(&name).ended(0).printed("BM_interface/0");
    ping("binderperf.nobody").ended(3).complained("nobody registered binderperf.nobody");
    signal(other.id(), "KILL");
    other.wait().expect("it ends");
    let private = ["throughput", "ping", "--driver", "embedded", "--device", "private", "--service", "x"];
    binderperf(&private).ended(2).complained("nobody has registered --service in a private context");
}
