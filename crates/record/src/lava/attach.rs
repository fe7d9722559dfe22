//! A file as lines for a log.

use std::io::Write;

use base64::Engine;
use base64::engine::general_purpose::STANDARD;
use flate2::Compression;
use flate2::write::GzEncoder;

use super::MARK;

/// Bytes of a line. With the mark it fits a console of 200 columns.
const BYTES: usize = 96;

/// The lines that attach a file. Characters that a name must not have become `_`.
#[must_use]
pub fn attachment(name: &str, content: &[u8]) -> String {
    let keep = |c: char| if c.is_ascii_alphanumeric() || "_.-".contains(c) { c } else { '_' };
    let name: String = name.chars().map(keep).collect();
    let mut packer = GzEncoder::new(Vec::new(), Compression::default());
    // Memory takes all.
    let packed = packer.write_all(content).and_then(|()| packer.finish()).unwrap_or_default();
    let parts = packed.len().div_ceil(BYTES);
    let mut text = String::new();
    for (at, part) in packed.chunks(BYTES).enumerate() {
        text += &format!("{MARK}{name} {}/{parts} {}\n", at + 1, STANDARD.encode(part));
    }
    text
}
