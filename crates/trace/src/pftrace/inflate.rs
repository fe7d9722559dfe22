//! Unpacks compressed packets, which hold packets.
//! Facts: `compressed_packets` is zlib, `zstd_compressed_packets` is zstd.

use std::io::{self, Read};

use flate2::read::ZlibDecoder;
use ruzstd::decoding::StreamingDecoder;

use super::index::Form;

/// Largest content in bytes. Perfetto packs at most some hundred kilobytes together.
const LARGEST: u64 = 16 << 20;

/// Content of compressed bytes.
///
/// # Errors
/// If the bytes are damaged or their content is too large.
pub(super) fn inflate(packed: &[u8], form: Form) -> io::Result<Vec<u8>> {
    let mut content = Vec::new();
    let taken = match form {
        Form::Zlib => ZlibDecoder::new(packed).take(LARGEST + 1).read_to_end(&mut content)?,
        Form::Zstd => {
            let decoder =
                StreamingDecoder::new(packed).map_err(|error| io::Error::other(error.to_string()))?;
            decoder.take(LARGEST + 1).read_to_end(&mut content)?
        }
    };
    if taken as u64 > LARGEST {
        return Err(io::Error::other(format!("its content has more than {} MB", LARGEST >> 20)));
    }
    Ok(content)
}
