//! `throughput rpc` and `throughput kpi`: RPC binder over a unix socket, and the three figures of Android's kernel releases.

use crate::support::{Folder, binderperf, read};
use record::Outcome;

const FEW: &str = "--benchmark_min_time=20x";

#[test]
fn rpc_binder_is_measured_beside_binder() {
    let folder = Folder::new("rpc");
    let record = folder.path("r.json");
    let filter = "--benchmark_filter=/(64|65537)$";
    let words =
        ["throughput", "rpc", "--driver", "embedded", "--controls", "unix", FEW, filter, "--record", &record];
    binderperf(&words).ended(0).printed("x_unix=");
    let run = read(&record);
    for name in ["rpc/64", "rpc/65537", "binder/64", "binder/65537"] {
        let case = run.case(&format!("BM_sendVec_{name}")).expect(name);
        assert!(
            matches!(&case.repetitions[0].outcome, Outcome::Measured(result) if result.iterations == 20),
            "{case:?}"
        );
    }
}

#[test]
fn rpc_servers_that_break_are_named() {
    let faults = ["--fault=corrupt-reply=BM_sendVec_rpc/64", "--fault=kill-server=BM_sendVec_rpc/1024"];
    let words = ["throughput", "rpc", "--driver", "embedded", "--controls", "none", FEW];
    let called =
        binderperf(&[&words[..], &faults, &["--benchmark_filter=rpc/(64|1024|2048)$"]].concat()).ended(1);
    called.printed("64 came back, byte 63 is the first that differs").printed("the server died (signal: 6");
    called.printed("BM_sendVec_rpc/2048 ");
}

#[test]
fn the_kpis_are_one_table() {
    let words = ["throughput", "kpi", "--driver", "embedded", FEW, "--benchmark_filter=addInts|/(8|64)$"];
    let called = binderperf(&words).ended(0);
    for row in ["BM_sendVec_rpc/64 ", "BM_addInts ", "BM_sendVec_binderize/8 ", "BM_sendVec_pipe/8 "] {
        called.printed(row);
    }
    // Each test has the sizes of its Android tool.
    let listed = binderperf(&["throughput", "kpi", "--benchmark_list_tests", "--controls", "none"]).ended(0);
    assert_eq!(listed.stdout.lines().count(), 10 + 1 + 15, "{listed}");
}
