//! Writes a record as JSON, indented.
//! Not here: Google Benchmark's JSON (`super::gbench`).

use crate::checksum;
use crate::schema::Run;

impl Run {
    /// The document with its checksum, ending in a newline; `Run::from_json` reads it back unchanged.
    pub fn to_json(&self) -> String {
        checksum::added(&serde_json::to_string_pretty(self).expect("a Run has only string keys"))
    }
}
