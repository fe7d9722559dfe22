//! Context of unmodified programs on the embedded driver: how their starter tells them which one.
//! Not here: reading it in the program (crate `preload`).

use std::path::Path;

use embedded::{EmbeddedContext, Settings};

pub use embedded::context::SHIM_VARIABLE as VARIABLE;
pub use embedded::device_path::{Paths, RULES_VARIABLE};

/// The context of the program's devices, if `shim` has started it.
#[must_use]
pub fn own() -> Option<EmbeddedContext> {
    EmbeddedContext::parse(&std::env::var(VARIABLE).ok()?)
}

/// The value of [`VARIABLE`] for a directory (the user's own if none is given), with the driver's settings.
///
/// # Errors
/// The directory's path cannot be made absolute.
pub fn address(directory: Option<&Path>, settings: Settings) -> Result<String, String> {
    let context = match directory {
        None => EmbeddedContext::named("binder", settings),
        Some(directory) => {
            let directory = std::path::absolute(directory).map_err(|error| {
                format!("{}: no absolute path: {}", directory.display(), sys::errno::describe(&error))
            })?;
            EmbeddedContext::at(&directory, "binder", settings)
        }
    };
    Ok(context.address())
}
