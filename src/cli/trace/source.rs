//! Opens the trace that a command reads, packed or not.
//! Not here: the formats (crate `trace`).

use std::io::{Read, Seek};

use sys::folder::Folder;
use trace::file::OpenError;

/// Opens a trace. One that must be unpacked first is, in a nameless file in the folder for temporary ones.
pub(in crate::cli) fn open<R: Read + Seek>(input: R) -> Result<trace::Reader<R>, OpenError> {
    trace::open_with(input, &mut || Folder::open(&std::env::temp_dir())?.nameless_file())
}
