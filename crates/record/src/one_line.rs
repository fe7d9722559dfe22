//! Lists of thousands of numbers in indented JSON: the buckets of a distribution, all raw samples.
//! Not here: the document (`crate::render::json`).

use serde::ser::{Error, Serialize, Serializer};

/// Serialises a list on one line in indented JSON.
pub(crate) fn on_one_line<T: Serialize, S: Serializer>(list: &T, serializer: S) -> Result<S::Ok, S::Error> {
    serde_json::value::to_raw_value(list).map_err(S::Error::custom)?.serialize(serializer)
}
