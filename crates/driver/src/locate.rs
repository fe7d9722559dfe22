//! Room: which context of this machine to use.
//! Not here: opening it (`kernel`), explaining why there is none (`absence`).

use std::path::PathBuf;
use std::str::FromStr;

use crate::absence::Absence;
use crate::error::OpenError;
use crate::kernel::KernelContext;

/// Which device the user asked for.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub enum Device {
    /// A private binderfs device if one may be made, else the system's own.
    #[default]
    Auto,
    /// A private binderfs device or nothing.
    Private,
    /// The system's device of this name (`binder`, `hwbinder`, `vndbinder`), wherever it lies.
    Named(String),
    /// This device node.
    Path(PathBuf),
}

impl FromStr for Device {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        match text {
            "" => Err("an empty device name".to_owned()),
            "auto" => Ok(Self::Auto),
            "private" => Ok(Self::Private),
            path if path.contains('/') => Ok(Self::Path(path.into())),
            name => Ok(Self::Named(name.to_owned())),
        }
    }
}

impl std::fmt::Display for Device {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match self {
            Self::Auto => f.write_str("auto"),
            Self::Private => f.write_str("private"),
            Self::Named(name) => f.write_str(name),
            Self::Path(path) => write!(f, "{}", path.display()),
        }
    }
}

/// Places of the system's device of this name, best first.
fn places(name: &str) -> Vec<PathBuf> {
    ["/dev", "/dev/binderfs"].map(|folder| PathBuf::from(folder).join(name)).to_vec()
}

/// Finds the context that the user asked for. `flavour` is the device name that `Auto` falls back
/// to and that a private device gets (`binder` or `hwbinder`).
///
/// # Errors
/// [`OpenError::Absent`] with the places looked at and the reason, [`OpenError::Os`] when a private
/// device was demanded and cannot be made.
pub fn locate(device: &Device, flavour: &str) -> Result<KernelContext, OpenError> {
    match device {
        Device::Path(path) => Ok(KernelContext::at(path)),
        Device::Named(name) => system(name),
        Device::Private => private(flavour),
        Device::Auto => private(flavour).or_else(|_| system(flavour)),
    }
}

fn private(flavour: &str) -> Result<KernelContext, OpenError> {
    KernelContext::private(&format!("binderperf-{flavour}")).map_err(|source| OpenError::Os {
        path: PathBuf::from("binderfs"),
        call: "making a private instance (it needs binderfs in the kernel and CAP_SYS_ADMIN)",
        source,
    })
}

fn system(name: &str) -> Result<KernelContext, OpenError> {
    let looked_for = places(name);
    match looked_for.iter().find(|path| path.exists()) {
        Some(path) => Ok(KernelContext::at(path)),
        None => Err(OpenError::Absent { looked_for, why: Absence::find(std::path::Path::new("/")) }),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_was_typed_is_what_is_meant() {
        for (text, want) in [
            ("auto", Device::Auto),
            ("private", Device::Private),
            ("vndbinder", Device::Named("vndbinder".into())),
            ("/dev/x", Device::Path("/dev/x".into())),
        ] {
            assert_eq!(text.parse(), Ok(want.clone()));
            assert_eq!(want.to_string(), text);
        }
        assert!("".parse::<Device>().is_err());
    }

    #[test]
    fn a_missing_device_says_where_it_was_looked_for() {
        let error = locate(&Device::Named("no-such-context".into()), "binder").expect_err("no such device");
        let text = error.to_string();
        assert!(
            text.contains("/dev/no-such-context") && text.contains("/dev/binderfs/no-such-context"),
            "{text}"
        );
    }
}
