//! Room: the `Run` itself as JSON text: indented, one distribution's buckets or raw samples to a line.
//! Not here: Google Benchmark's JSON (`super::gbench`).

use crate::schema::Run;
use serde::Serialize;
use serde_json::ser::{Formatter, PrettyFormatter, Serializer};
use std::io::{self, Write};

impl Run {
    /// The document, ending in a newline; `Run::from_json` reads it back unchanged.
    pub fn to_json(&self) -> String {
        let mut bytes = Vec::new();
        let mut serializer = Serializer::with_formatter(&mut bytes, BucketsInLine::default());
        self.serialize(&mut serializer).expect("a Run has only string keys and a Vec takes any byte");
        bytes.push(b'\n');
        String::from_utf8(bytes).expect("JSON text is UTF-8")
    }
}

/// Indents like serde_json, except that lists under a key `buckets` or `raw` stay on their line: they
/// hold thousands of numbers that nobody reads one by one.
#[derive(Default)]
struct BucketsInLine {
    pretty: PrettyFormatter<'static>,
    in_key: bool,
    at_buckets: bool,
    /// Lists open since that key; 0 outside of it.
    depth: u32,
}

impl Formatter for BucketsInLine {
    fn begin_object_key<W: ?Sized + Write>(&mut self, writer: &mut W, first: bool) -> io::Result<()> {
        (self.in_key, self.at_buckets) = (true, false);
        self.pretty.begin_object_key(writer, first)
    }

    fn end_object_key<W: ?Sized + Write>(&mut self, writer: &mut W) -> io::Result<()> {
        self.in_key = false;
        self.pretty.end_object_key(writer)
    }

    fn write_string_fragment<W: ?Sized + Write>(&mut self, writer: &mut W, text: &str) -> io::Result<()> {
        self.at_buckets |= self.in_key && ["buckets", "raw"].contains(&text);
        self.pretty.write_string_fragment(writer, text)
    }

    fn begin_array<W: ?Sized + Write>(&mut self, writer: &mut W) -> io::Result<()> {
        if !self.at_buckets {
            return self.pretty.begin_array(writer);
        }
        self.depth += 1;
        writer.write_all(b"[")
    }

    fn end_array<W: ?Sized + Write>(&mut self, writer: &mut W) -> io::Result<()> {
        if self.depth == 0 {
            return self.pretty.end_array(writer);
        }
        self.depth -= 1;
        self.at_buckets = self.depth > 0;
        writer.write_all(b"]")
    }

    fn begin_array_value<W: ?Sized + Write>(&mut self, writer: &mut W, first: bool) -> io::Result<()> {
        match (self.depth, first) {
            (0, _) => self.pretty.begin_array_value(writer, first),
            (_, true) => Ok(()),
            (_, false) => writer.write_all(b","),
        }
    }

    fn end_array_value<W: ?Sized + Write>(&mut self, writer: &mut W) -> io::Result<()> {
        if self.depth == 0 {
            return self.pretty.end_array_value(writer);
        }
        Ok(())
    }

    fn begin_object<W: ?Sized + Write>(&mut self, writer: &mut W) -> io::Result<()> {
        self.pretty.begin_object(writer)
    }

    fn end_object<W: ?Sized + Write>(&mut self, writer: &mut W) -> io::Result<()> {
        self.pretty.end_object(writer)
    }

    fn begin_object_value<W: ?Sized + Write>(&mut self, writer: &mut W) -> io::Result<()> {
        self.pretty.begin_object_value(writer)
    }

    fn end_object_value<W: ?Sized + Write>(&mut self, writer: &mut W) -> io::Result<()> {
        self.pretty.end_object_value(writer)
    }
}
