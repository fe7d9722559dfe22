//! Choosing the driver and the context of this machine.
//! Not here: opening it (`kernel`, `embedded`), explaining why there is none (`absence`).

use std::fmt;
use std::io;
use std::path::{Path, PathBuf};
use std::str::FromStr;

use crate::any::AnyContext;
use driver::absence::Absence;
use driver::connection::{Context, OpenOptions};
use driver::error::{OpenError, is_driverless};
use driver::kernel::KernelContext;
use embedded::{EmbeddedContext, Settings};

/// The device requested by the user.
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

impl fmt::Display for Device {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Auto => f.write_str("auto"),
            Self::Private => f.write_str("private"),
            Self::Named(name) => f.write_str(name),
            Self::Path(path) => write!(f, "{}", path.display()),
        }
    }
}

/// The driver requested by the user.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Driver {
    /// The kernel driver if it can be used, else the embedded driver.
    #[default]
    Auto,
    /// The kernel driver.
    Kernel,
    /// The one in user space.
    Embedded,
}

impl FromStr for Driver {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        match text {
            "auto" => Ok(Self::Auto),
            "kernel" => Ok(Self::Kernel),
            "embedded" => Ok(Self::Embedded),
            _ => Err(format!("no driver {text:?}; use auto, kernel or embedded")),
        }
    }
}

impl fmt::Display for Driver {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Auto => "auto",
            Self::Kernel => "kernel",
            Self::Embedded => "embedded",
        })
    }
}

/// All that the user asked for about driver and context.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Wanted {
    /// Which driver.
    pub driver: Driver,
    /// Which context. For the embedded driver a name is that of a context, and `Auto` is `Private`:
    /// a directory and a broker of its own.
    pub device: Device,
    /// The embedded driver's directory, in place of the user's or a private one.
    pub context_dir: Option<PathBuf>,
    /// How the embedded driver behaves.
    pub settings: Settings,
}

/// A context that was found.
#[derive(Clone, Debug)]
pub struct Located {
    /// The context.
    pub context: AnyContext,
    /// The request.
    pub choice: Driver,
    /// Why it is this driver.
    pub reason: String,
}

/// Finds the context that the user asked for, of either driver. `flavour` is its name where none was
/// given (`binder` or `hwbinder`). A kernel's device that `auto` finds is opened once to see whether
/// it can be used.
///
/// # Errors
/// See [`locate`] for the kernel's driver; [`OpenError::Embedded`] for a device path with the
/// embedded one, and what making its directory met.
pub fn find(wanted: &Wanted, flavour: &str) -> Result<Located, OpenError> {
    let located =
        |context, reason: &str| Ok(Located { context, choice: wanted.driver, reason: reason.to_owned() });
    match wanted.driver {
        Driver::Kernel => located(AnyContext::Kernel(locate(&wanted.device, flavour)?), "it was asked for"),
        Driver::Embedded => located(AnyContext::Embedded(embedded(wanted, flavour)?), "it was asked for"),
        Driver::Auto if matches!(wanted.device, Device::Path(_)) => {
            let context = locate(&wanted.device, flavour)?;
            located(AnyContext::Kernel(context), "a device of its was named")
        }
        Driver::Auto if wanted.context_dir.is_some() => {
            let context = embedded(wanted, flavour)?;
            located(AnyContext::Embedded(context), "a directory for its broker was named")
        }
        Driver::Auto => match usable(&wanted.device, flavour) {
            Ok(context) => located(AnyContext::Kernel(context), "this machine has it"),
            Err(why) => {
                let context = embedded(wanted, flavour)?;
                located(AnyContext::Embedded(context), &format!("the kernel's cannot be used: {why}"))
            }
        },
    }
}

/// The kernel's context, if it can be opened.
fn usable(device: &Device, flavour: &str) -> Result<KernelContext, OpenError> {
    let context = locate(device, flavour)?;
    context.open(OpenOptions { map_size: 0, ..OpenOptions::default() })?;
    Ok(context)
}

fn embedded(wanted: &Wanted, flavour: &str) -> Result<EmbeddedContext, OpenError> {
    let settings = wanted.settings;
    let refused = |directory: &PathBuf, why: &str| {
        Err(OpenError::Embedded { directory: directory.clone(), why: why.to_owned() })
    };
    match (&wanted.device, &wanted.context_dir) {
        (Device::Path(path), _) => refused(path, "a path names a device of the kernel's driver; give a name"),
        (Device::Private, Some(directory)) => {
            refused(directory, "a private context has a directory of its own; give either")
        }
        (Device::Named(name), Some(directory)) => Ok(EmbeddedContext::at(directory, name, settings)),
        (Device::Named(name), None) => Ok(EmbeddedContext::named(name, settings)),
        (Device::Auto, Some(directory)) => Ok(EmbeddedContext::at(directory, flavour, settings)),
        (Device::Auto | Device::Private, None) => {
            EmbeddedContext::private(flavour, settings).map_err(|source| OpenError::NoDirectory { source })
        }
    }
}

/// Places of the system's device of this name, best first.
fn places(name: &str) -> Vec<PathBuf> {
    ["/dev", "/dev/binderfs"].map(|folder| PathBuf::from(folder).join(name)).to_vec()
}

/// Finds the kernel's context that the user asked for. `flavour` is the device name that `Auto` falls back
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
    let opened = |path: &Path| std::fs::OpenOptions::new().read(true).write(true).open(path).map(drop);
    match best(&looked_for, opened) {
        Some(path) => Ok(KernelContext::at(path)),
        None => Err(OpenError::Absent { looked_for, why: Absence::here() }),
    }
}

/// The first of these that exists. A node that a driver left behind must not hide a later one.
fn best(places: &[PathBuf], opened: impl Fn(&Path) -> io::Result<()>) -> Option<&PathBuf> {
    let mut there = places.iter().filter(|path| path.exists());
    let (first, more) = (there.next()?, there.next());
    let left_behind = |path: &Path| opened(path).is_err_and(|error| is_driverless(&error));
    Some(more.filter(|_| left_behind(first)).unwrap_or(first))
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

    fn found(driver: Driver, device: &str, context_dir: Option<&str>) -> Result<Located, OpenError> {
        let device = device.parse().expect("a device");
        let context_dir = context_dir.map(PathBuf::from);
        find(&Wanted { driver, device, context_dir, settings: Settings::default() }, "binder")
    }

    #[test]
    fn without_a_kernels_device_the_embedded_driver_is_found_and_says_why() {
        let located = found(Driver::Auto, "no-such-context", None).expect("an embedded one");
        let AnyContext::Embedded(context) = &located.context else { panic!("{located:?}") };
        assert_eq!((context.name(), context.is_private()), ("no-such-context", false));
        assert!(located.reason.contains("/dev/no-such-context"), "{}", located.reason);
        assert!(found(Driver::Kernel, "no-such-context", None).is_err(), "only the kernel's will do");
    }

    #[test]
    fn an_embedded_context_is_private_unless_named() {
        let context =
            |device, directory| match found(Driver::Embedded, device, directory).expect("one").context {
                AnyContext::Embedded(context) => context,
                kernel => panic!("{kernel:?}"),
            };
        assert!(context("auto", None).is_private() && context("private", None).is_private());
        let named = context("hwbinder", Some("/x"));
        assert_eq!((named.name(), named.directory()), ("hwbinder", std::path::Path::new("/x")));
        assert_eq!(context("auto", Some("/x")).name(), "binder");
    }

    #[test]
    fn a_device_path_means_the_kernels_driver() {
        let error = found(Driver::Embedded, "/dev/binder", None).expect_err("no such thing");
        assert!(error.to_string().contains("give a name"), "{error}");
        let located = found(Driver::Auto, "/no/such/device", None).expect("not opened yet");
        assert_eq!(located.context.device(), Some(std::path::Path::new("/no/such/device")));
    }

    #[test]
    fn a_node_that_a_driver_left_behind_hides_no_driver() {
        let places = ["/proc/self/stat", "/proc/self/status", "/proc/self/none"].map(PathBuf::from);
        let with = |errno: Option<i32>| {
            let opened = |path: &Path| match errno {
                Some(errno) if path == places[0] => Err(io::Error::from_raw_os_error(errno)),
                _ => Ok(()),
            };
            best(&places, opened).cloned()
        };
        assert_eq!([None, Some(13), Some(16)].map(with), [0; 3].map(|_| Some(places[0].clone())));
        assert_eq!([19, 6, 3].map(|errno| with(Some(errno))), [0; 3].map(|_| Some(places[1].clone())));
        assert_eq!(best(&places[..1], |_| Err(io::Error::from_raw_os_error(19))), Some(&places[0]));
        assert_eq!(best(&places[2..], |_| Ok(())), None);
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
