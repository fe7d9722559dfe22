//! Room: a JSON object over several lines, with numbers that stand as people write them.
//! Not here: what stands in it.

use serde::Serialize;
use serde_json::ser::{Formatter, Serializer};
use std::io::{self, Write};

/// An object in the making. Some keys begin a line, others stay on the line before them.
pub(super) struct Object {
    text: String,
    indent: &'static str,
}

impl Object {
    /// The outermost one.
    pub(super) fn outer() -> Object {
        Object { text: "{\n".to_owned(), indent: "" }
    }

    /// One within it; its first keys stay on the line of its own key.
    pub(super) fn inner() -> Object {
        Object { text: "{".to_owned(), indent: "  " }
    }

    /// A key on a line of its own.
    pub(super) fn line(&mut self, key: &str, value: &impl Serialize) {
        self.put(key, &compact(value), true);
    }

    /// A key on the line of the one before.
    pub(super) fn beside(&mut self, key: &str, value: &impl Serialize) {
        self.put(key, &compact(value), false);
    }

    /// An object of several lines.
    pub(super) fn object(&mut self, key: &str, value: Object) {
        self.put(key, value.close().trim_end(), true);
    }

    /// A list with an entry to a line.
    pub(super) fn list<T: Serialize>(&mut self, key: &str, values: impl IntoIterator<Item = T>) {
        let lines: Vec<String> =
            values.into_iter().map(|value| "\n  ".to_owned() + &compact(&value)).collect();
        self.put(key, &format!("[{}]", lines.join(",")), true);
    }

    fn put(&mut self, key: &str, value: &str, own_line: bool) {
        let first = self.text.ends_with('{') || self.text.ends_with("{\n");
        if !first {
            self.text.push(',');
            if own_line {
                self.text += "\n";
                self.text += self.indent;
            }
        }
        self.text += &format!("{}:{value}", compact(&key));
    }

    /// Its text, which ends a line.
    pub(super) fn close(mut self) -> String {
        if self.indent.is_empty() {
            self.text += "\n";
        }
        self.text + "}\n"
    }
}

/// The value on one line; a number that is not finite becomes `null`.
pub(super) fn compact(value: &impl Serialize) -> String {
    let mut bytes = Vec::new();
    let mut serializer = Serializer::with_formatter(&mut bytes, Plain);
    value.serialize(&mut serializer).expect("all keys are strings and a Vec takes any byte");
    String::from_utf8(bytes).expect("JSON text is UTF-8")
}

/// Numbers without exponents, in the fewest digits that mean the same number.
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
        let mut inner = Object::inner();
        inner.beside("S", &1);
        inner.beside("\"I\"", &"line\n\u{1b}[31m");
        inner.line("x", &[0.5, 1.0]);
        let mut outer = Object::outer();
        outer.object("P0", inner);
        outer.line("end", &None::<u8>);
        outer.list("none", [0; 0]);
        outer.list("some", [1, 2]);
        let text = outer.close();
        assert_eq!(
            text,
            "{\n\"P0\":{\"S\":1,\"\\\"I\\\"\":\"line\\n\\u001b[31m\",\n  \"x\":[0.5,1]},\n\"end\":null,\n\"none\":[],\n\"some\":[\n  1,\n  2]\n}\n"
        );
        let read: serde_json::Value = serde_json::from_str(&text).expect("it is JSON");
        assert_eq!(read["P0"]["x"][1], 1);
    }
}
