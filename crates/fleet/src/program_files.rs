//! Files of a harness's folder, and the architecture of the programs among them.

use std::fs;
use std::path::Path;

use store::{StoreError, input};

use crate::FleetError;

/// Writes a file of a folder, which is created if missing.
pub(crate) fn write(
    folder: &Path,
    file: &Path,
    act: impl Fn(&Path) -> std::io::Result<()>,
) -> Result<(), StoreError> {
    fs::create_dir_all(folder).map_err(|error| StoreError::unwritten("make", folder, error))?;
    act(file).map_err(|error| StoreError::unwritten("write", file, error))
}

/// The architecture of a program by Android's name. Facts: `elf(5)`, `e_machine` at byte 18.
pub(crate) fn architecture(program: &Path) -> Result<&'static str, FleetError> {
    input::whole(program)?;
    let bytes = fs::read(program).map_err(|error| StoreError::unread("read", program, error))?;
    let machine = bytes.get(18..20).filter(|_| bytes.starts_with(b"\x7fELF"));
    let known = match machine {
        Some([183, 0]) => Some("arm64"),
        Some([40, 0]) => Some("arm"),
        Some([62, 0]) => Some("x86_64"),
        Some([3, 0]) => Some("x86"),
        _ => None,
    };
    let message = || {
        format!("{} is no program for a device's architecture (arm64, arm, x86_64, x86)", program.display())
    };
    known.ok_or_else(|| FleetError::Unusable(message()))
}
