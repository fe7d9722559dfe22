//! Room: a submission to the kernel's results database, KCIDB, schema 5.3.
//! Facts: `kcidb_io/schema/v05_03.py` of kcidb-io 141. A test belongs to a build, a build to a checkout, and each id
//! begins with the origin. `path` is of dot-separated names; a number has a value and a unit, and `DONE` is the status
//! of what was only measured.

use serde_json::{Value, json};

use super::ConvertError;
use super::checks::{Came, Check, Measure, checks, suite};
use crate::schema::Run;

/// Who submits.
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
    match (&check.came, measure) {
        (Came::Passed, None) => test["status"] = "PASS".into(),
        (Came::Failed(why), None) => {
            test["status"] = "FAIL".into();
            test["comment"] = why.as_str().into();
        }
        (Came::Skipped(why), None) => {
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

/// A name as part of a path: slashes divide it, and what may not be in it becomes `_`.
fn part(name: &str) -> String {
    let keep = |c: char| match c {
        '/' => '.',
        c if c.is_ascii_alphanumeric() || "_.-".contains(c) => c,
        _ => '_',
    };
    name.chars().map(keep).collect()
}
