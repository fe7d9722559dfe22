//! Writes a record as JSON: indented, with the buckets of a distribution or all raw samples on one line.
//! Not here: Google Benchmark's JSON (`super::gbench`).

use crate::checksum;
use crate::schema::Run;
use serde::ser::{Error, Serialize, Serializer};

impl Run {
    /// The document with its checksum, ending in a newline; `Run::from_json` reads it back unchanged.
    pub fn to_json(&self) -> String {
        checksum::added(&serde_json::to_string_pretty(self).expect("a Run has only string keys"))
    }
}

/// Serialises a list on one line in indented JSON, for lists of thousands of numbers.
pub(crate) fn on_one_line<T: Serialize, S: Serializer>(list: &T, serializer: S) -> Result<S::Ok, S::Error> {
    serde_json::value::to_raw_value(list).map_err(S::Error::custom)?.serialize(serializer)
}
