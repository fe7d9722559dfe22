//! A case that is profiled: tells the profiler of its begin, waits until the profiler listens, and marks each call.
//! Not here: the profiler and the words between the two (`profile`), the marks in the loop (`crate::measure`).

use std::fs::OpenOptions;
use std::io::{Read, Write};

use profile::Announcement;
use sys::errno::describe;

/// Announces a case to the profiler, if there is one; marks begin with its first call.
///
/// # Errors
/// The profiler is gone, or the kernel does not tell its symbols.
pub(crate) fn announce(case: &str) -> Result<(), String> {
    let Some(port) = std::env::var_os(profile::PORT_VARIABLE) else { return Ok(()) };
    let symbols = std::fs::read_to_string("/proc/kallsyms")
        .map_err(|error| format!("reading the kernel's symbols: {}", describe(&error)))?;
    let words = Announcement { case: case.to_owned(), mark: sys::mark::address(), symbols }.to_text();
    let talk = || {
        let mut port = OpenOptions::new().read(true).write(true).open(&port)?;
        port.write_all(words.as_bytes())?;
        // It answers when it listens.
        port.read_exact(&mut [0])
    };
    talk().map_err(|error| format!("telling the profiler: {}", describe(&error)))?;
    sys::mark::want();
    Ok(())
}
