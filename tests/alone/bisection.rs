//! Whether `bisect-step` tells runs that are as fast as a baseline, measured before, from slower ones.
//! Not here: its words and exit statuses (`tests/cli/ab.rs`), how often verdicts are right (`make trials`).

use crate::alone;
use crate::support::{Folder, binderperf};

/// A test of a few milliseconds, without inheritance to be judged.
const TEST: [&str; 8] =
    ["--", "latency", "binder", "--driver=embedded", "-i", "200", "--no-scenes", "--inherit-rt=on"];

#[test]
fn a_delay_is_bad_and_the_same_once_more_is_good() {
    let _alone = alone();
    let folder = Folder::new("bisection");
    let (same, records) = ("inject=delay=300", folder.path("records"));
    let baseline = ["ab", "--a", same, "--b", same, "--records", &records, "--pairs=8", "--until-width=0%"];
    binderperf(&[&baseline[..], &TEST].concat()).ended(0);
    let good: Vec<String> = (1..=8).map(|pair| folder.path(&format!("records/a-{pair:03}.json"))).collect();
    let good = good.join(",");
    let step = |side| {
        let own = ["bisect-step", "--baseline", &good, "--max-regress=100%", "--side", side, "--runs=8"];
        binderperf(&[&own[..], &TEST].concat())
    };
    step(same).ended(0);
    step("inject=delay=900").ended(1);
}
