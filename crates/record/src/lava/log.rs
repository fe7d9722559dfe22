//! The log of a job, as `lava-run` and LAVA's server write it, or the plain output of a device.
//! Facts: LAVA 2023.01: a line of the log is a YAML mapping with the device's line in `msg`; results are lines of the
//! level `results`, whose case `job` of the definition `lava` says whether the job itself ran.

use std::collections::BTreeMap;
use std::fmt;
use std::io::{self, Read};

use base64::Engine;
use base64::engine::general_purpose::STANDARD;
use flate2::read::GzDecoder;

use super::{MARK, TEST_CASE};
use crate::read::MAX_BYTES;

/// A file that was attached.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Attached {
    /// Its name, without folders.
    pub name: String,
    /// Its content.
    pub content: Vec<u8>,
}

/// The contents of a log.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct JobLog {
    /// Attached files, in their order.
    pub attached: Vec<Attached>,
    /// Number of test cases by their result, as the device printed them.
    pub results: BTreeMap<String, usize>,
    /// Test cases that failed, in their order.
    pub failed: Vec<String>,
    /// Number of results that LAVA took down from the device; `None` in a device's plain output.
    pub taken_down: Option<usize>,
    /// LAVA's own words if the job itself failed.
    pub job_failure: Option<String>,
}

/// Why a log cannot be used.
#[derive(Debug)]
#[non_exhaustive]
pub enum LogError {
    /// It cannot be read.
    Io(io::Error),
    /// It is larger than [`MAX_BYTES`].
    TooLarge,
    /// Lines of an attached file are missing or torn.
    Torn {
        /// The file's name.
        name: String,
        /// The first line that is wrong.
        part: usize,
        /// Number of its lines, as far as that is known.
        parts: usize,
    },
    /// The attached files are larger together than [`MAX_BYTES`].
    Swollen {
        /// The file with which they are.
        name: String,
    },
    /// The lines are all there, and make no file.
    Damaged {
        /// The file's name.
        name: String,
        /// The unpacker's message.
        why: String,
    },
}

impl fmt::Display for LogError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Io(error) => write!(f, "cannot read the log: {error}"),
            Self::TooLarge => write!(f, "the log is larger than {} MiB", MAX_BYTES >> 20),
            Self::Swollen { name } => {
                write!(f, "the attached files up to {name} are larger than {} MiB", MAX_BYTES >> 20)
            }
            Self::Torn { name, part, parts } => write!(
                f,
                "line {part} of {parts} of the attached {name} is missing or torn: the job ended early, or another message \
                 of the console runs through it"
            ),
            Self::Damaged { name, why } => write!(f, "the attached {name} is damaged: {why}"),
        }
    }
}

impl std::error::Error for LogError {
    fn source(&self) -> Option<&(dyn std::error::Error + 'static)> {
        match self {
            Self::Io(error) => Some(error),
            _ => None,
        }
    }
}

/// Lines of a file so far.
struct Partial {
    name: String,
    parts: usize,
    read: usize,
    packed: Vec<u8>,
}

impl JobLog {
    /// Reads a log to its end.
    ///
    /// # Errors
    /// Any of [`LogError`]; nothing is read beyond [`MAX_BYTES`].
    pub fn read(source: impl Read) -> Result<Self, LogError> {
        let mut bytes = Vec::new();
        source.take(MAX_BYTES + 1).read_to_end(&mut bytes).map_err(LogError::Io)?;
        if bytes.len() as u64 > MAX_BYTES {
            return Err(LogError::TooLarge);
        }
        let (mut log, mut open) = (Self::default(), None);
        for line in bytes.split(|byte| *byte == b'\n') {
            let line = String::from_utf8_lossy(line);
            if let Some((_, rest)) = line.split_once(MARK) {
                log.take_part(rest, &mut open)?;
            } else if let Some((_, rest)) = line.split_once(TEST_CASE) {
                log.take_case(rest);
            } else if line.contains("\"lvl\": \"results\"") {
                log.take_result(&line);
            }
        }
        match open {
            Some(Partial { name, parts, read, .. }) => Err(LogError::Torn { name, part: read + 1, parts }),
            None => Ok(log),
        }
    }

    /// Takes a line of an attached file, without its mark.
    fn take_part(&mut self, rest: &str, open: &mut Option<Partial>) -> Result<(), LogError> {
        let torn = |open: &Option<Partial>| match open {
            Some(Partial { name, parts, read, .. }) => {
                LogError::Torn { name: name.clone(), part: read + 1, parts: *parts }
            }
            None => LogError::Torn { name: "file".to_owned(), part: 1, parts: 1 },
        };
        let mut words = rest.split(' ');
        let (name, number, data) = (words.next(), words.next(), words.next());
        let number = number.and_then(|number| number.split_once('/'));
        let number = number
            .and_then(|(part, parts)| Some((part.parse::<usize>().ok()?, parts.parse::<usize>().ok()?)));
        let is_data = |c: char| c.is_ascii_alphanumeric() || "+/=".contains(c);
        let data = data.map(|data| data.split(|c| !is_data(c)).next().unwrap_or_default());
        let data = data.and_then(|data| STANDARD.decode(data).ok()).filter(|data| !data.is_empty());
        let (Some(name), Some((part, parts)), Some(data)) = (name, number, data) else {
            return Err(torn(open));
        };
        if open.is_none() {
            *open = Some(Partial { name: name.to_owned(), parts, read: 0, packed: Vec::new() });
        }
        let Some(partial) = open else { return Ok(()) };
        if partial.name != name || partial.parts != parts || partial.read + 1 != part || part > parts {
            return Err(torn(open));
        }
        partial.packed.extend(data);
        partial.read = part;
        if part < parts {
            return Ok(());
        }
        let Some(Partial { name, packed, .. }) = open.take() else { return Ok(()) };
        let mut content = Vec::new();
        let before: usize = self.attached.iter().map(|attached| attached.content.len()).sum();
        let most = MAX_BYTES.saturating_sub(before as u64);
        match GzDecoder::new(packed.as_slice()).take(most + 1).read_to_end(&mut content) {
            Ok(length) if length as u64 > most => return Err(LogError::Swollen { name: plain(&name) }),
            Ok(_) => self.attached.push(Attached { name: plain(&name), content }),
            Err(error) => return Err(LogError::Damaged { name, why: error.to_string() }),
        }
        Ok(())
    }

    /// Takes a test case, without the beginning of its line.
    fn take_case(&mut self, rest: &str) {
        let Some((words, _)) = rest.split_once('>') else { return };
        let mut words = words.split(' ');
        let id = words.next().unwrap_or_default();
        let Some(result) = words.find_map(|word| word.strip_prefix("RESULT=")) else { return };
        *self.results.entry(result.to_owned()).or_default() += 1;
        if result == "fail" {
            self.failed.push(id.to_owned());
        }
    }

    /// Takes a result that LAVA took down: a flow mapping of YAML, which is not always JSON.
    fn take_result(&mut self, line: &str) {
        let is = |key: &str, value: &str| line.contains(&format!("\"{key}\": \"{value}\""));
        if !is("definition", "lava") {
            *self.taken_down.get_or_insert(0) += 1;
            return;
        }
        self.taken_down.get_or_insert(0);
        if is("case", "job") && is("result", "fail") {
            let said = line.split_once("\"error_msg\": \"").map_or("", |(_, rest)| rest);
            let said = said.split('"').next().unwrap_or_default();
            self.job_failure = Some(if said.is_empty() { "no reason given" } else { said }.to_owned());
        }
    }
}

/// A name that denotes no folder and no hidden file; one of dots only stays, and its reader refuses it.
fn plain(name: &str) -> String {
    let keep = |c: char| if c.is_ascii_alphanumeric() || "_.-".contains(c) { c } else { '_' };
    let name: String = name.chars().map(keep).collect();
    let shown = name.trim_start_matches('.');
    if shown.is_empty() { name } else { shown.to_owned() }
}
