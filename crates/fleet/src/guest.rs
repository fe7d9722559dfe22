//! Commands in guests.
//! Not here: booting (crate `vm`).

use console::{complain, exit};

/// Tells which of a guest's files were not taken; returns the exit status for that.
pub fn refused(names: &[String]) -> u8 {
    if names.is_empty() {
        return exit::FINE;
    }
    complain(format_args!("files with names that are not taken here: {}", names.join(", ")));
    exit::UNABLE
}
