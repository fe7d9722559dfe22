//! A job of `fleet lava` from end to end: LAVA's dispatcher boots the guest and takes down its results.
//! Not here: the jobs' definitions and logs (`tests/cli/lava.rs`).

use needs::{Need, need};

use crate::support::{Folder, binderperf, contents, read, tool_lava};

#[test]
fn lava_runs_a_job_and_takes_down_its_results() {
    let _guest = crate::one_guest();
    let folder = Folder::new("lava");
    let out = folder.path("out");
    let test = ["--", "throughput", "binder", "--benchmark_filter=/(4|4096)$", "--benchmark_min_time=20x"];
    binderperf(&[&["fleet", "lava", "--out", &out], &test[..]].concat()).ended(0);
    let device =
        folder.write("device", "{% extends 'qemu.jinja2' %}{% set mac_addr = '52:54:00:12:34:59' %}");
    let ran = need!(tool_lava(&["run", &device, &format!("{out}/job.yaml"), &folder.path("job")]));
    let log = folder.write("job.log", &ran.stdout);
    need!(Need::Mount.met_if(!ran.stdout.contains("should be executed as root"), "lava-run wants root"));
    // What LAVA itself took down, with its unit.
    let taken: Vec<&str> = ran.stdout.lines().filter(|line| line.contains("\"lvl\": \"results\"")).collect();
    let p50 = taken.iter().find(|line| line.contains("\"case\": \"bm_sendvec_binder_4096_p50\""));
    let p50 = p50.unwrap_or_else(|| panic!("no such case: {ran}"));
    assert!(p50.contains("\"result\": \"pass\", \"units\": \"ns\"") && !p50.contains("\"0e0\""), "{p50}");
    ran.ended(0);
    binderperf(&["convert", "--from", "lava-log", &log]).ended(0);
    let run = read(&folder.path("job/throughput-binder.json"));
    assert_eq!((run.host.host_name.as_str(), run.host.class), ("guest", record::HostClass::Tcg));
    assert!(contents(folder.path("job/result.yaml")).contains("result: pass"));
}
