//! Signals for LAVA, which its dispatcher finds in the output of a job.
//! Facts: `lava_dispatcher/actions/test.py` of LAVA 2023.01: `<LAVA_SIGNAL_NAME words>` on a line of its own; words
//! are `KEY=value` without spaces. Observed in jobs: TESTSET and TESTCASE with MEASUREMENT and UNITS. Ids are
//! lower-cased, and characters other than letters, digits, `.`, `-` and `_` become `_`.

use super::checks::{CheckOutcome, checks, suite};
use crate::lava::TEST_CASE;
use crate::schema::Run;

/// The whole document. Names of checks of the whole run begin with its test, so that those of several records in a job
/// are not alike.
pub(super) fn signals(run: &Run) -> String {
    let suite = suite(run);
    let mut text = format!("<LAVA_SIGNAL_TESTSET START {suite}>\n");
    for (at, check) in checks(run).into_iter().enumerate() {
        let name = if at < run.cases.len() { check.name } else { format!("{suite}/{}", check.name) };
        let (result, why) = match &check.outcome {
            CheckOutcome::Passed => ("pass", None),
            CheckOutcome::Failed(why) => ("fail", Some(why)),
            CheckOutcome::Skipped(why) => ("skip", Some(why)),
        };
        if let Some(why) = why {
            // For readers of the log: LAVA shows this line beside the signal.
            text += &format!("{name}: {}\n", why.replace(['<', '>'], " "));
        }
        text += &format!("{TEST_CASE}{name} RESULT={result}>\n");
        for measure in &check.measures {
            let unit = if measure.unit.is_empty() { "none" } else { measure.unit };
            text += &format!(
                "{TEST_CASE}{name}/{} RESULT={result} UNITS={unit} MEASUREMENT={:e}>\n",
                measure.name, measure.value
            );
        }
    }
    text + "<LAVA_SIGNAL_TESTSET STOP>\n"
}
