//! `throughput rpc`: RPC binder over unix sockets, by one thread and by several.
//! Not here: the bytes of the protocol (`bench`).

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
fn several_threads_call_through_one_session_and_pings_carry_nothing() {
    let folder = Folder::new("rpc-threads");
    let record = folder.path("r.json");
    let filter = "--benchmark_filter=ing/0|rpc/64($|/threads)";
    let own = ["--threads", "1,3", "--controls", "pipe", "--record", &record];
    let words = ["throughput", "rpc", "--driver", "embedded", FEW, filter];
    let called = binderperf(&[&words[..], &own].concat()).ended(0);
    for row in ["BM_rpcPing/0 ", "BM_ping/0 ", "BM_sendVec_rpc/64 ", "BM_sendVec_rpc/64/threads:3 "] {
        called.printed(row);
    }
    let run = read(&record);
    let case = run.case("BM_sendVec_rpc/64/threads:3").expect("measured");
    let Outcome::Measured(result) = &case.repetitions[0].outcome else { panic!("{case:?}") };
    // Twenty of each thread.
    assert_eq!((case.threads, result.iterations, result.samples.count), (3, 60, 60));
    assert!(result.counters.find("calls_per_second").is_some_and(|rate| rate.value > 0.0), "{result:?}");
    // Beside others' calls a ratio to one caller's would say nothing, and a pipe carries no empty message.
    assert!(
        called.stdout.lines().all(|line| !line.contains("threads:3") || !line.contains("x_pipe")),
        "{called}"
    );
    assert!(run.case("BM_sendVec_pipe/0").is_none());
}

#[test]
fn a_server_that_breaks_ends_all_threads() {
    let name = "BM_sendVec_rpc/64/threads:3";
    let words = ["throughput", "rpc", "--driver", "embedded", "--controls", "none", FEW, "--threads=3"];
    for (fault, why) in
        [("kill-server", "the server died (signal: 6"), ("corrupt-reply", "64 came back, byte 63")]
    {
        let fault = format!("--fault={fault}={name}");
        let filter = "--benchmark_filter=rpc/64/";
        binderperf(&[&words[..], &[&fault, filter]].concat()).ended(1).printed(why);
    }
    let hanging = format!("--fault=hang-server={name}");
    let called =
        binderperf(&[&words[..], &[&hanging, "--patience=1", "--benchmark_filter=rpc/(64|1024)/"]].concat());
    called.ended(1).printed("so the server was killed").printed("BM_sendVec_rpc/1024/threads:3 ");
    binderperf(&["throughput", "binder", "--threads", "2"]).ended(2).complained("--threads does not go with");
}
