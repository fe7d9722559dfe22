//! Context behind a device's name: where its broker's directory is, and with which settings.

use std::env;
use std::path::PathBuf;

use embedded::{EmbeddedContext, Settings};

pub use embedded::context::SHIM_VARIABLE as VARIABLE;

/// The context of a name. Without the variable: in the user's own directory, with the default settings.
///
/// # Errors
/// Text for the user: the variable holds something else.
pub fn named(name: &str) -> Result<EmbeddedContext, String> {
    match env::var_os(VARIABLE) {
        None => Ok(EmbeddedContext::named(name, Settings::default())),
        Some(address) => beside(&address.to_string_lossy(), name),
    }
}

/// The directory of the program's contexts.
///
/// # Errors
/// See [`named`].
pub fn directory() -> Result<PathBuf, String> {
    Ok(named("binder")?.directory().to_owned())
}

/// The context of a name in the directory of another one.
fn beside(address: &str, name: &str) -> Result<EmbeddedContext, String> {
    let given = EmbeddedContext::parse(address)
        .ok_or_else(|| format!("{VARIABLE} is no address of a context: {address:?}"))?;
    Ok(EmbeddedContext::at(given.directory(), name, given.settings()))
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::path::Path;

    #[test]
    fn all_names_share_the_directory() {
        let settings = Settings { call_slots: false, ..Settings::default() };
        let given = EmbeddedContext::at(Path::new("/d"), "binder", settings).address();
        let found = beside(&given, "hwbinder").expect("an address");
        assert_eq!((found.directory(), found.name()), (Path::new("/d"), "hwbinder"));
        assert_eq!(found.settings(), settings);
        assert!(beside("/d", "binder").expect_err("a path").contains(VARIABLE));
    }
}
