//! Room: where a text comes from: a file as it is, or compressed.

use flate2::read::{MultiGzDecoder, ZlibDecoder};
use std::io::{self, Read};

/// Bytes of a text.
#[derive(Debug)]
pub(crate) enum Input<R> {
    /// As they are.
    Plain(R),
    /// As `atrace -z` writes them.
    Zlib(Box<ZlibDecoder<R>>),
    /// A `.gz` file.
    Gzip(Box<MultiGzDecoder<R>>),
}

impl<R: Read> Read for Input<R> {
    fn read(&mut self, space: &mut [u8]) -> io::Result<usize> {
        match self {
            Self::Plain(input) => input.read(space),
            Self::Zlib(input) => input.read(space),
            Self::Gzip(input) => input.read(space),
        }
    }
}
