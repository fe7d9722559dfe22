//! Room: signals that LAVA's dispatcher finds in the output of a job, whoever prints them.
//! Facts: `lava_dispatcher/actions/test.py` of LAVA 2023.01: `<LAVA_SIGNAL_NAME words>` on a line of its own, words are
//! `KEY=value` without spaces; seen in jobs: TESTSET and TESTCASE with MEASUREMENT and UNITS. Ids are lower-cased and
//! what is no letter, digit, `.`, `-`, `_` becomes `_`.

use super::checks::{Came, checks, suite};
use crate::schema::Run;

/// The whole of it.
pub(super) fn signals(run: &Run) -> String {
    let mut text = format!("<LAVA_SIGNAL_TESTSET START {}>\n", suite(run));
    for check in checks(run) {
        let name = &check.name;
        let (result, why) = match &check.came {
            Came::Passed => ("pass", None),
            Came::Failed(why) => ("fail", Some(why)),
            Came::Skipped(why) => ("skip", Some(why)),
        };
        if let Some(why) = why {
            // A line for people: LAVA shows it beside the signal.
            text += &format!("{name}: {}\n", why.replace(['<', '>'], " "));
        }
        text += &format!("<LAVA_SIGNAL_TESTCASE TEST_CASE_ID={name} RESULT={result}>\n");
        for measure in &check.measures {
            let unit = if measure.unit.is_empty() { "none" } else { measure.unit };
            text += &format!(
                "<LAVA_SIGNAL_TESTCASE TEST_CASE_ID={name}/{} RESULT={result} UNITS={unit} MEASUREMENT={:e}>\n",
                measure.name, measure.value
            );
        }
    }
    text + "<LAVA_SIGNAL_TESTSET STOP>\n"
}
