//! Room: KTAP, the kernel's test protocol.
//! Facts: `Documentation/dev-tools/ktap.rst`, Linux 7.2. Diagnostics begin with `# ` and go before the result that they
//! belong to; a directive follows ` # `. There are no YAML blocks.

use super::checks::{Came, checks, suite};
use crate::schema::Run;

/// The whole of it.
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
        text += &match &check.came {
            Came::Passed => format!("ok {number} {name}\n"),
            Came::Skipped(why) => format!("ok {number} {name} # SKIP {}\n", plain(why)),
            Came::Failed(why) => format!("# {name}: {}\nnot ok {number} {name}\n", plain(why)),
        };
    }
    text
}

/// Text in which nothing begins another directive.
fn plain(text: &str) -> String {
    text.replace('#', "no.")
}
