//! Reads a record: turns untrusted bytes into a checked `Run` or an error. It never panics and takes no more memory
//! than the document's size requires.
//! Not here: opening files (the caller does), the rules that a document must keep (`check`).

mod check;

use crate::checksum;
use crate::schema::{Fields, Measured, Run, SCHEMA, VERSION};
use serde::Deserialize;
use serde::de::IgnoredAny;
use serde_json::Value;
use serde_json::error::Category;
use std::fmt;
use std::io::{self, Read};

/// Largest size of a document that is read, in bytes; a full run takes less than a tenth of it.
pub const MAX_BYTES: u64 = 128 << 20;

/// Why the output of another program makes no sense.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ImportError {
    /// The program whose output it seems to be.
    pub program: &'static str,
    /// Line, from 1; 0 where the whole is meant.
    pub line: usize,
    /// What is wrong.
    pub problem: String,
}

impl fmt::Display for ImportError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let problem = units::visible::printable(&self.problem);
        match self.line {
            0 => write!(f, "this output of {} makes no sense: {problem}", self.program),
            line => write!(f, "this output of {} makes no sense in line {line}: {problem}", self.program),
        }
    }
}

impl std::error::Error for ImportError {}

/// Reason why bytes are not a valid record.
#[derive(Debug)]
#[non_exhaustive]
pub enum ReadError {
    /// The source could not be read.
    Io(io::Error),
    /// The source is empty.
    Empty,
    /// The document is larger than [`MAX_BYTES`].
    TooLarge,
    /// The JSON ends early.
    Truncated {
        /// The line at which it ends.
        line: usize,
    },
    /// Not JSON.
    NotJson {
        /// The parser's message, with line and column.
        detail: String,
    },
    /// JSON, but not a binderperf record.
    Foreign {
        /// The kind of document that it seems to be.
        found: String,
    },
    /// A record of an unknown version.
    Version {
        /// The version it states.
        found: String,
    },
    /// A record with a missing field or one of the wrong type.
    Malformed {
        /// The parser's message: which field, and where.
        detail: String,
    },
    /// A well-formed record whose numbers or names contradict each other.
    Inconsistent {
        /// The part of the document.
        place: String,
        /// The broken rule.
        problem: String,
    },
    /// The output of another program makes no sense.
    Import(ImportError),
    /// A record whose content does not match its checksum.
    Altered {
        /// The rule that its content breaks as well, if any.
        problem: Option<Box<ReadError>>,
    },
}

impl fmt::Display for ReadError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            ReadError::Io(error) => write!(f, "cannot read the record: {error}"),
            ReadError::Empty => f.write_str("the record is empty; was the run interrupted?"),
            ReadError::TooLarge => {
                write!(
                    f,
                    "the record is larger than {} MiB, so it is not a binderperf record",
                    MAX_BYTES >> 20
                )
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
            ReadError::Import(error) => error.fmt(f),
            ReadError::Altered { problem } => {
                f.write_str("the record was edited or is damaged: its content does not match its checksum")?;
                if let Some(problem) = problem {
                    write!(f, ", and {problem}")?;
                }
                write!(
                    f,
                    "; use the file as it was written, or measure again (a record without the field \"{}\" is \
                     read without this check)",
                    checksum::FIELD
                )
            }
        }
    }
}

impl std::error::Error for ReadError {
    fn source(&self) -> Option<&(dyn std::error::Error + 'static)> {
        match self {
            ReadError::Io(error) => Some(error),
            ReadError::Import(error) => Some(error),
            _ => None,
        }
    }
}

impl Run {
    /// Reads a document to its end and checks it.
    ///
    /// # Errors
    /// Any of [`ReadError`]; nothing is read beyond [`MAX_BYTES`].
    pub fn read(source: impl Read) -> Result<Run, ReadError> {
        let mut bytes = Vec::new();
        source.take(MAX_BYTES + 1).read_to_end(&mut bytes).map_err(ReadError::Io)?;
        Run::from_json(&bytes)
    }

    /// Parses and checks a document. Unknown fields are ignored.
    ///
    /// # Errors
    /// Any of [`ReadError`] except `Io`.
    pub fn from_json(bytes: &[u8]) -> Result<Run, ReadError> {
        if bytes.len() as u64 > MAX_BYTES {
            return Err(ReadError::TooLarge);
        }
        if bytes.trim_ascii().is_empty() {
            return Err(ReadError::Empty);
        }
        let stated = expect_our_schema(bytes)?;
        let mut run: Run = serde_json::from_slice(bytes).map_err(|error| describe(bytes, error))?;
        let fields: Fields = serde_json::from_slice(bytes).map_err(|error| describe(bytes, error))?;
        let measured = Measured::try_from(fields)
            .map_err(|problem| ReadError::Inconsistent { place: "results".to_owned(), problem });
        let checked = measured.and_then(|measured| {
            run.measured = measured;
            run.check()
        });
        if let Some(stated) = stated {
            let computed = checksum::of(bytes).map_err(|error| describe(bytes, error))?;
            if stated.as_str() != Some(&computed) {
                return Err(ReadError::Altered { problem: checked.err().map(Box::new) });
            }
        }
        checked.map(|()| run)
    }

    /// Checks the rules that reading enforces, so that a writer knows its document can be read.
    ///
    /// # Errors
    /// [`ReadError::Inconsistent`] for the first rule that is broken.
    pub fn check(&self) -> Result<(), ReadError> {
        check::run(self)
    }
}

/// The fields that identify a document.
#[derive(Deserialize)]
struct Label {
    schema: Option<Value>,
    version: Option<Value>,
    context: Option<IgnoredAny>,
    benchmarks: Option<IgnoredAny>,
    checksum: Option<Value>,
}

/// Refuses documents of other kinds and versions; returns the checksum that this one states.
fn expect_our_schema(bytes: &[u8]) -> Result<Option<Value>, ReadError> {
    if !matches!(bytes.trim_ascii_start().first(), Some(b'{')) {
        // Tells JSON of another type from noise; objects are distinguished below.
        serde_json::from_slice::<IgnoredAny>(bytes).map_err(|error| describe(bytes, error))?;
        return Err(ReadError::Foreign { found: "JSON that is not an object".to_owned() });
    }
    let label: Label = serde_json::from_slice(bytes).map_err(|error| describe(bytes, error))?;
    match (&label.schema, &label.version) {
        (Some(Value::String(schema)), version) if schema == SCHEMA => match version {
            Some(Value::Number(number)) if number.as_u64() == Some(u64::from(VERSION)) => Ok(label.checksum),
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
    let detail = units::visible::printable(&error.to_string()).into_owned();
    match error.classify() {
        Category::Eof => ReadError::Truncated { line: error.line() },
        Category::Syntax if at_end(bytes, &error) => ReadError::Truncated { line: error.line() },
        Category::Syntax => ReadError::NotJson { detail },
        Category::Data | Category::Io => ReadError::Malformed { detail },
    }
}

/// Whether the object's text ends at the parser's error, as in a number cut at its decimal point.
fn at_end(bytes: &[u8], error: &serde_json::Error) -> bool {
    let last_line = bytes.rsplit(|&byte| byte == b'\n').next().unwrap_or_default();
    let lines = 1 + bytes.iter().filter(|&&byte| byte == b'\n').count();
    let object = bytes.trim_ascii_start().starts_with(b"{");
    object && error.line() == lines && error.column() >= last_line.len()
}

#[cfg(test)]
mod tests;
