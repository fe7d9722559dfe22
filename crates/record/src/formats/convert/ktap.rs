//! KTAP, the kernel's test protocol.
//! Facts: `Documentation/dev-tools/ktap.rst`, Linux 7.2. Diagnostics begin with `# ` and precede their result; a
//! directive follows ` # `. YAML blocks do not exist.

use super::checks::{CheckOutcome, checks, suite};
use crate::schema::Run;

/// The whole document.
pub(super) fn lines(run: &Run) -> String {
    let checks = checks(run);
    let mut text = format!("KTAP version 1\n# Subtest: {}\n1..{}\n", suite(run), checks.len());
    for (index, check) in checks.iter().enumerate() {
        let name = &check.name;
        for measure in &check.measures {
            let unit = if measure.unit.is_empty() { String::new() } else { format!(" {}", measure.unit) };
            text += &format!("# {name}: {} {}{unit}\n", measure.name, measure.value);
        }
        let number = index + 1;
        text += &match &check.outcome {
            CheckOutcome::Passed => format!("ok {number} {name}\n"),
            CheckOutcome::Skipped(why) => format!("ok {number} {name} # SKIP {}\n", plain(why)),
            CheckOutcome::Failed(why) => format!("# {name}: {}\nnot ok {number} {name}\n", plain(why)),
        };
    }
    text
}

/// Text that cannot begin a directive.
fn plain(text: &str) -> String {
    text.replace('#', "no.")
}
