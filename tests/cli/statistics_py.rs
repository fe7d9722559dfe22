//! Whether what is stored of scipy's results is what scipy says.
//! Not here: our statistics beside them (`record::stats`).

use std::path::Path;

use crate::support::{call, contents};
use serde_json::Value;

/// Debian's interpreter: its modules are not for another.
const PYTHON: &str = "/usr/bin/python3";
const FIXTURES: &str = "crates/record/src/stats/fixtures";

/// Whether two documents are the same but for the last digits of their numbers.
fn alike(one: &Value, other: &Value) -> bool {
    match (one, other) {
        (Value::Array(one), Value::Array(other)) => {
            one.len() == other.len() && one.iter().zip(other).all(|(one, other)| alike(one, other))
        }
        (Value::Object(one), Value::Object(other)) => {
            one.len() == other.len()
                && one.iter().all(|(key, one)| other.get(key).is_some_and(|other| alike(one, other)))
        }
        (Value::Number(one), Value::Number(other)) => {
            let (one, other) = (one.as_f64().expect("a number"), other.as_f64().expect("a number"));
            (one - other).abs() <= 1e-9 * (1.0 + one.abs())
        }
        (one, other) => one == other,
    }
}

#[test]
fn the_stored_results_are_scipys() {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join(FIXTURES);
    let script = folder.join("by_scipy.py").display().to_string();
    // -B: it leaves nothing in the tree.
    let called = call(PYTHON, &["-B", &script], &[]);
    assert_eq!(called.code, Some(0), "tools/install-deps test installs scipy: {}", called.stderr);
    let stored = contents(folder.join("scipy.json"));
    let parsed = |text: &str| serde_json::from_str::<Value>(text).expect("JSON");
    assert!(alike(&parsed(&stored), &parsed(&called.stdout)), "write it anew: by_scipy.py > scipy.json");
}
