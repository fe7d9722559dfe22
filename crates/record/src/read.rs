//! Room: bytes to a checked `Run`: says what was found instead, never panics, never takes more
//! memory than the document's size calls for.
//! Not here: opening files (the caller's); the rules a document must keep (`check`).

mod check;

use crate::schema::{Run, SCHEMA, VERSION};
use serde::Deserialize;
use serde::de::IgnoredAny;
use serde_json::Value;
use serde_json::error::Category;
use std::fmt;
use std::io::{self, Read};

/// The largest document that is read, in bytes; a full run of ours is below a tenth of it.
pub const MAX_BYTES: u64 = 128 << 20;

/// Why bytes are not a run.
#[derive(Debug)]
#[non_exhaustive]
pub enum ReadError {
    /// The source could not be read.
    Io(io::Error),
    /// There is nothing.
    Empty,
    /// The document is larger than [`MAX_BYTES`].
    TooLarge,
    /// The JSON ends in its middle.
    Truncated {
        /// Where it ends.
        line: usize,
    },
    /// Not JSON at all.
    NotJson {
        /// What the parser said, with line and column.
        detail: String,
    },
    /// JSON, but not a document of ours.
    Foreign {
        /// What it looks like.
        found: String,
    },
    /// A document of ours, of a version this program does not know.
    Version {
        /// The version it states.
        found: String,
    },
    /// Says it is ours, but a field is missing or of another type.
    Malformed {
        /// Which, and where.
        detail: String,
    },
    /// Well-formed, but its numbers or names contradict each other.
    Inconsistent {
        /// Which part of the document.
        place: String,
        /// What is wrong with it.
        problem: String,
    },
}

impl fmt::Display for ReadError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            ReadError::Io(error) => write!(f, "cannot read the record: {error}"),
            ReadError::Empty => f.write_str("the record is empty; was the run interrupted?"),
            ReadError::TooLarge => {
                write!(f, "the record is larger than {} MiB, so it is none of ours", MAX_BYTES >> 20)
            }
            ReadError::Truncated { line } => {
                write!(f, "the record breaks off in line {line}; was the disk full or the copy cut short?")
            }
            ReadError::NotJson { detail } => {
                write!(f, "this is not a binderperf record, it is not JSON: {detail}")
            }
            ReadError::Foreign { found } => {
                write!(f, "this is not a binderperf record: expected \"schema\": \"{SCHEMA}\", found {found}")
            }
            ReadError::Version { found } => write!(
                f,
                "the record is of version {found}, this program reads version {VERSION}; \
                 use the binderperf that wrote it or a newer one"
            ),
            ReadError::Malformed { detail } => write!(f, "the record is damaged: {detail}"),
            ReadError::Inconsistent { place, problem } => {
                write!(f, "the record contradicts itself: {place}: {problem}")
            }
        }
    }
}

impl std::error::Error for ReadError {
    fn source(&self) -> Option<&(dyn std::error::Error + 'static)> {
        match self {
            ReadError::Io(error) => Some(error),
            _ => None,
        }
    }
}

impl Run {
    /// Reads a document to its end, and checks it.
    ///
    /// # Errors
    /// Any of [`ReadError`]; nothing is read beyond [`MAX_BYTES`].
    pub fn read(source: impl Read) -> Result<Run, ReadError> {
        let mut bytes = Vec::new();
        source.take(MAX_BYTES + 1).read_to_end(&mut bytes).map_err(ReadError::Io)?;
        Run::from_json(&bytes)
    }

    /// Parses a document, and checks it. Fields this version does not know are passed over.
    ///
    /// # Errors
    /// Any of [`ReadError`] but `Io`.
    pub fn from_json(bytes: &[u8]) -> Result<Run, ReadError> {
        if bytes.len() as u64 > MAX_BYTES {
            return Err(ReadError::TooLarge);
        }
        if bytes.trim_ascii().is_empty() {
            return Err(ReadError::Empty);
        }
        expect_our_schema(bytes)?;
        let run: Run = serde_json::from_slice(bytes).map_err(|error| describe(bytes, error))?;
        run.check()?;
        Ok(run)
    }

    /// Checks the rules that reading enforces, so that a writer can know its document will be read.
    ///
    /// # Errors
    /// [`ReadError::Inconsistent`] for the first rule that is broken.
    pub fn check(&self) -> Result<(), ReadError> {
        check::run(self)
    }
}

/// The fields that tell whose document it is.
#[derive(Deserialize)]
struct Label {
    schema: Option<Value>,
    version: Option<Value>,
    context: Option<IgnoredAny>,
    benchmarks: Option<IgnoredAny>,
}

fn expect_our_schema(bytes: &[u8]) -> Result<(), ReadError> {
    if !matches!(bytes.trim_ascii_start().first(), Some(b'{')) {
        // Tells a list or number from noise; objects are told apart below.
        serde_json::from_slice::<IgnoredAny>(bytes).map_err(|error| describe(bytes, error))?;
        return Err(ReadError::Foreign { found: "JSON that is not an object".to_owned() });
    }
    let label: Label = serde_json::from_slice(bytes).map_err(|error| describe(bytes, error))?;
    match (&label.schema, &label.version) {
        (Some(Value::String(schema)), version) if schema == SCHEMA => match version {
            Some(Value::Number(number)) if number.as_u64() == Some(u64::from(VERSION)) => Ok(()),
            other => Err(ReadError::Version { found: excerpt(other) }),
        },
        (None, _) if label.context.is_some() && label.benchmarks.is_some() => {
            Err(ReadError::Foreign { found: "Google Benchmark's JSON output".to_owned() })
        }
        (None, _) => Err(ReadError::Foreign { found: "JSON without a schema field".to_owned() }),
        (schema, _) => Err(ReadError::Foreign { found: excerpt(schema) }),
    }
}

/// A few printable characters of a value.
fn excerpt(value: &Option<Value>) -> String {
    let Some(value) = value else {
        return "(none)".to_owned();
    };
    let text = value.to_string();
    let mut short: String = text.chars().filter(|c| !c.is_control()).take(40).collect();
    if short.len() < text.len() {
        short.push('…');
    }
    short
}

fn describe(bytes: &[u8], error: serde_json::Error) -> ReadError {
    let detail = crate::render::printable(&error.to_string()).into_owned();
    match error.classify() {
        Category::Eof => ReadError::Truncated { line: error.line() },
        Category::Syntax if at_end(bytes, &error) => ReadError::Truncated { line: error.line() },
        Category::Syntax => ReadError::NotJson { detail },
        Category::Data | Category::Io => ReadError::Malformed { detail },
    }
}

/// Whether an object's text ends where the parser stumbled, as in a number cut at its point.
fn at_end(bytes: &[u8], error: &serde_json::Error) -> bool {
    let last_line = bytes.rsplit(|&byte| byte == b'\n').next().unwrap_or_default();
    let lines = 1 + bytes.iter().filter(|&&byte| byte == b'\n').count();
    let object = bytes.trim_ascii_start().starts_with(b"{");
    object && error.line() == lines && error.column() >= last_line.len()
}

#[cfg(test)]
mod tests;
