//! A submission to KCIDB, the kernel's results database, schema 5.3.
//! Facts: `kcidb_io/schema/v05_03.py` of kcidb-io 141. A test belongs to a build, a build to a checkout; each id
//! begins with the origin. `path` consists of dot-separated names; a number has a value and a unit. `DONE` is the
//! status of tests that only measure.

use serde_json::{Value, json};

use super::ConvertError;
use super::checks::{Check, CheckOutcome, Measure, checks, suite};
use crate::schema::Run;

/// The origin of the submission.
const ORIGIN: &str = "binderperf";

/// The whole document.
pub(super) fn document(run: &Run) -> Result<String, ConvertError> {
    let kernel = &run.host.kernel;
    let needed = |text: &str, what| {
        if text.is_empty() { Err(ConvertError::Lacks { what, format: "kcidb" }) } else { Ok(()) }
    };
    needed(&kernel.release, "kernel release")?;
    needed(&kernel.machine, "architecture")?;
    needed(&run.started, "start")?;
    let checkout = format!("{ORIGIN}:{}", kernel.release);
    let build = format!("{checkout}/{}", kernel.machine);
    let mut tests = Vec::new();
    for check in checks(run) {
        tests.push(test(run, &build, &check, None));
        tests.extend(check.measures.iter().map(|measure| test(run, &build, &check, Some(measure))));
    }
    let document = json!({
        "version": { "major": 5, "minor": 3 },
        "checkouts": [{ "id": checkout, "origin": ORIGIN, "comment": kernel.version }],
        "builds": [{
            "id": build,
            "checkout_id": checkout,
            "origin": ORIGIN,
            "architecture": kernel.machine,
            "misc": { "kernel_release": kernel.release },
        }],
        "tests": tests,
    });
    Ok(format!("{document:#}\n"))
}

fn test(run: &Run, build: &str, check: &Check, measure: Option<&Measure>) -> Value {
    let mut path = format!("{ORIGIN}.{}.{}", part(&suite(run)), part(&check.name));
    let mut test = json!({ "build_id": build, "origin": ORIGIN, "start_time": run.started });
    match (&check.outcome, measure) {
        (CheckOutcome::Passed, None) => test["status"] = "PASS".into(),
        (CheckOutcome::Failed(why), None) => {
            test["status"] = "FAIL".into();
            test["comment"] = why.as_str().into();
        }
        (CheckOutcome::Skipped(why), None) => {
            test["status"] = "SKIP".into();
            test["comment"] = why.as_str().into();
        }
        (_, Some(measure)) => {
            path += &format!(".{}", part(&measure.name));
            test["status"] = "DONE".into();
            let unit = if measure.unit.is_empty() { "1" } else { measure.unit };
            test["number"] = json!({ "value": measure.value, "unit": unit });
        }
    }
    if measure.is_none() && check.took_ns > 0 {
        test["duration"] = (check.took_ns as f64 / 1e9).into();
    }
    test["id"] = format!("{ORIGIN}:{}/{}/{path}", run.started, run.host.host_name).into();
    test["path"] = path.into();
    test["environment"] = json!({
        "comment": format!("{}, {} CPU {}", run.host.host_name, run.host.cpu.count, run.host.cpu.model).trim_end(),
        "misc": { "host_class": run.host.class.name() },
    });
    test
}

/// A name as part of a path: slashes become dots, invalid characters `_`.
fn part(name: &str) -> String {
    let keep = |c: char| match c {
        '/' => '.',
        c if c.is_ascii_alphanumeric() || "_.-".contains(c) => c,
        _ => '_',
    };
    name.chars().map(keep).collect()
}
