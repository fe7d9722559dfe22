//! JUnit XML, in the dialect that continuous integration systems share.
//! Facts: `testsuites` > `testsuite` (tests, failures, errors, skipped, time, timestamp, hostname) > `testcase`
//! (name, classname, time in seconds) with at most one of `failure` and `skipped`, then `system-out`. Properties of
//! single cases are not portable: measures are `name=value unit` lines in `system-out`, facts of the host are
//! properties of the suite.

use super::checks::{Check, CheckOutcome, checks, suite};
use crate::schema::Run;

/// The whole document.
pub(super) fn document(run: &Run) -> String {
    let checks = checks(run);
    let count = |is: fn(&CheckOutcome) -> bool| checks.iter().filter(|check| is(&check.outcome)).count();
    let failures = count(|outcome| matches!(outcome, CheckOutcome::Failed(_)));
    let skipped = count(|outcome| matches!(outcome, CheckOutcome::Skipped(_)));
    let (tests, time) = (checks.len(), seconds(run.elapsed_ns));
    let suite = suite(run);
    let mut text = format!(
        "<?xml version=\"1.0\" encoding=\"UTF-8\"?>\n\
         <testsuites name=\"{0}\" tests=\"{tests}\" failures=\"{failures}\" errors=\"0\" time=\"{time}\">\n  \
         <testsuite name=\"{0}\" tests=\"{tests}\" failures=\"{failures}\" errors=\"0\" skipped=\"{skipped}\" \
         time=\"{time}\" timestamp=\"{1}\" hostname=\"{2}\">\n    <properties>\n",
        escaped(&suite),
        escaped(&run.started),
        escaped(&run.host.host_name),
    );
    for (name, value) in properties(run) {
        text += &format!("      <property name=\"{name}\" value=\"{}\"/>\n", escaped(&value));
    }
    text += "    </properties>\n";
    for check in &checks {
        text += &case(check, &suite);
    }
    text + "  </testsuite>\n</testsuites>\n"
}

fn properties(run: &Run) -> Vec<(&'static str, String)> {
    let driver = run.driver.as_ref().map_or("none".to_owned(), |driver| driver.kind.name().to_owned());
    vec![
        ("tool", format!("{} {}", run.tool.name, run.tool.version)),
        ("kernel", run.host.kernel.release.clone()),
        ("architecture", run.host.kernel.machine.clone()),
        ("driver", driver),
        ("host_class", run.host.class.name().to_owned()),
        ("cpus", run.host.cpu.count.to_string()),
    ]
}

fn case(check: &Check, suite: &str) -> String {
    let mut text = format!(
        "    <testcase name=\"{}\" classname=\"binderperf.{}\" time=\"{}\">\n",
        escaped(&check.name),
        escaped(suite),
        seconds(check.took_ns)
    );
    match &check.outcome {
        CheckOutcome::Passed => {}
        CheckOutcome::Failed(why) => {
            text += &format!("      <failure message=\"{0}\" type=\"failure\">{0}</failure>\n", escaped(why));
        }
        CheckOutcome::Skipped(why) => text += &format!("      <skipped message=\"{}\"/>\n", escaped(why)),
    }
    if !check.measures.is_empty() {
        text += "      <system-out>";
        for measure in &check.measures {
            text += format!("{}={} {}", escaped(&measure.name), measure.value, measure.unit).trim_end();
            text.push('\n');
        }
        text += "</system-out>\n";
    }
    text + "    </testcase>\n"
}

/// Seconds with three decimals, as the schema requires; the measures are exact.
fn seconds(ns: u64) -> String {
    let ms = ns.saturating_add(500_000) / 1_000_000;
    format!("{}.{:03}", ms / 1000, ms % 1000)
}

/// Escapes text for XML 1.0, which forbids most control characters even as references.
fn escaped(text: &str) -> String {
    let mut safe = String::with_capacity(text.len());
    for c in text.chars() {
        match c {
            '&' => safe += "&amp;",
            '<' => safe += "&lt;",
            '>' => safe += "&gt;",
            '"' => safe += "&quot;",
            '\t' | '\n' | '\r' => safe.push(' '),
            c if c.is_control() || c == '\u{fffe}' || c == '\u{ffff}' => safe.push('\u{fffd}'),
            c => safe.push(c),
        }
    }
    safe
}
