//! Writer of a JSON object over several lines, with numbers in plain notation.
//! Not here: the content.

use serde::ser::{Error, Serialize, Serializer};
use serde_json::ser::Formatter;
use serde_json::value::RawValue;
use std::io::{self, Write};

use crate::schema::Percentiles;

/// An object that is being written; a value of other objects as well. A key begins a new line or continues the current
/// one.
pub(crate) struct Object {
    text: String,
    /// Text between two keys on different lines.
    new_line: &'static str,
}

impl Object {
    /// The outermost object.
    pub(crate) fn outer() -> Object {
        Object { text: "{\n".to_owned(), new_line: ",\n" }
    }

    /// A nested object; its first keys continue the line of its own key.
    pub(crate) fn inner() -> Object {
        Object { text: "{".to_owned(), new_line: ",\n  " }
    }

    /// Adds a key on a new line.
    pub(crate) fn line(self, key: &str, value: &impl Serialize) -> Object {
        let separator = self.new_line;
        self.put(separator, key, &compact(value))
    }

    /// Adds a key on the current line.
    pub(crate) fn beside(self, key: &str, value: &impl Serialize) -> Object {
        self.put(",", key, &compact(value))
    }

    /// Adds a list with one entry on each line.
    pub(crate) fn list<T: Serialize>(self, key: &str, values: impl IntoIterator<Item = T>) -> Object {
        let lines: Vec<String> =
            values.into_iter().map(|value| "\n  ".to_owned() + &compact(&value)).collect();
        let separator = self.new_line;
        self.put(separator, key, &format!("[{}]", lines.join(",")))
    }

    fn put(mut self, separator: &str, key: &str, value: &str) -> Object {
        let first = self.text.ends_with('{') || self.text.ends_with("{\n");
        let separator = if first { "" } else { separator };
        self.text += &format!("{separator}{}:{value}", compact(&key));
        self
    }

    /// The text of the outermost object, which ends in a newline.
    pub(crate) fn close(self) -> String {
        self.text + "\n}\n"
    }
}

impl Serialize for Object {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        let text = RawValue::from_string(self.text.clone() + "}");
        text.map_err(S::Error::custom)?.serialize(serializer)
    }
}

/// A value on one line; a number that is not finite becomes `null`.
pub(crate) fn compact(value: &impl Serialize) -> String {
    let mut bytes = Vec::new();
    let mut serializer = serde_json::Serializer::with_formatter(&mut bytes, Plain);
    value.serialize(&mut serializer).expect("all keys are strings and a Vec takes any byte");
    String::from_utf8(bytes).expect("JSON text is UTF-8")
}

/// Percentiles in ms, as JSON.
pub(crate) fn spread(percentiles: Percentiles) -> Object {
    let Percentiles { p50, p90, p95, p99 } = percentiles;
    let all = [("p50", p50), ("p90", p90), ("p95", p95), ("p99", p99)];
    all.into_iter().fold(Object::inner(), |object, (key, time)| object.beside(key, &millis(time)))
}

/// A time in ns as ms.
pub(crate) fn millis(time: u64) -> f64 {
    time as f64 / 1e6
}

/// Formatter of numbers without exponents, in the fewest digits that read back as the same number.
struct Plain;

impl Formatter for Plain {
    fn write_f64<W: ?Sized + Write>(&mut self, writer: &mut W, value: f64) -> io::Result<()> {
        write!(writer, "{value}")
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn numbers_are_plain_and_exact() {
        for (nanos, text) in [
            (1_u64, "0.000001"),
            (123_456, "0.123456"),
            (200_000, "0.2"),
            (2_000_000, "2"),
            (3_600_000_000_001, "3600000.000001"),
            (0, "0"),
        ] {
            assert_eq!(compact(&(nanos as f64 / 1e6)), text);
        }
        assert_eq!(compact(&f64::NAN), "null");
        assert!(!compact(&1e-9).contains('e') && !compact(&1e30).contains('e'));
    }

    #[test]
    fn keys_and_strings_are_escaped() {
        let inner = Object::inner().beside("S", &1).beside("\"I\"", &"line\n\u{1b}[31m");
        let outer = Object::outer().line("P0", &inner.line("x", &[0.5, 1.0])).line("end", &None::<u8>);
        let text = outer.list("none", [0; 0]).list("some", [1, 2]).close();
        assert_eq!(
            text,
            "{\n\"P0\":{\"S\":1,\"\\\"I\\\"\":\"line\\n\\u001b[31m\",\n  \"x\":[0.5,1]},\n\"end\":null,\n\"none\":[],\n\"some\":[\n  1,\n  2]\n}\n"
        );
        let read: serde_json::Value = serde_json::from_str(&text).expect("it is JSON");
        assert_eq!(read["P0"]["x"][1], 1);
    }
}
