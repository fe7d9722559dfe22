//! Binder and hwbinder services and clients on whichever driver this machine has, the kernel's or the embedded one.
//!
//! - [`find`], [`Process`]: a context, and one process of it.
//! - [`Object`], [`Incoming`], [`Parcel`], [`Status`]: a service in AIDL's format; [`Binder`]: calling one.
//! - [`ServiceManager`], [`Services`]: names for objects.
//! - [`hwbinder`]: the same for HIDL.
//!
//! - [`interface!`], [`Value`]: an interface's two sides from its methods; [`Caller`]: who called a method.
//! - [`parcelable!`], [`union!`], [`enumeration!`]: AIDL's structures, unions and enums; [`errors!`]: a service's
//!   own error numbers.
//! - With the feature `tokio`, interfaces have an `AsyncClient` and an `AsyncService`, too.
//! - [`Registration`]: a service that is registered again when the service manager comes back.
//!
//! Not here: the runtime itself (`ipc`), the drivers (`backend`).
//!
//! A service and its client are two processes of one context, which has a service manager. Where the system has none
//! (`binderperf servicemanager` starts one), [`Services::of`] says so. On the embedded driver, contexts belong to a user:
//! all programs of a user that ask for `auto` meet, as long as the kernel has no driver. Its broker is a process of the
//! `binderperf` program, found along `$PATH` or by `$BINDERPERF_BROKER`.
//!
//! The service:
//!
//! ```no_run
//! use binder::{Process, ProcessOptions, Status};
//!
//! binder::interface! {
//!     mod echo = "example.IEcho" {
//!         fn echo(text: String) -> String;
//!     }
//! }
//!
//! struct Echo;
//!
//! impl echo::Service for Echo {
//!     fn echo(&self, text: String) -> Result<String, Status> {
//!         Ok(text)
//!     }
//! }
//!
//! fn main() -> Result<(), Box<dyn std::error::Error>> {
//!     let process = Process::open(&binder::find("auto", "binder")?, ProcessOptions::default())?;
//!     let _kept = echo::Client::register(&process, "echo", Echo)?;
//!     Ok(process.join_thread_pool()?)
//! }
//! ```
//!
//! The client, with the same interface:
//!
//! ```no_run
//! use binder::{Process, ProcessOptions};
//!
//! binder::interface! {
//!     mod echo = "example.IEcho" {
//!         fn echo(text: String) -> String;
//!     }
//! }
//!
//! fn main() -> Result<(), Box<dyn std::error::Error>> {
//!     let process = Process::open(&binder::find("auto", "binder")?, ProcessOptions::default())?;
//!     let echo = echo::Client::find(&process, "echo")?;
//!     println!("{}", echo.echo("hello")?);
//!     Ok(())
//! }
//! ```
//!
//! [`guide`] shows the rest, one page from the first service to its test.
//!
//! [`Object`] is what the macro writes: implement it where arguments are to be read in place.
#![forbid(unsafe_code)]

#[cfg(feature = "tokio")]
pub mod asynchronous;
mod enumeration;
mod errors;
#[doc = include_str!("guide.md")]
pub mod guide {}
mod interface;

pub mod structure;
pub mod value;

use std::error::Error;

use backend::locate::{self, Device, Driver, Wanted};

pub use backend::{AnyConnection, AnyContext};
pub use ipc::binder::manager::{ServiceManager, Services};
pub use ipc::binder::{
    CallError, Exception, ExceptionKind, Incoming, Object, Parcel, Reader, Reply, ShellCommand, Stability,
    Status,
};
pub use ipc::{
    Binder, Caller, DeathLink, Node, NodeOptions, ProcessOptions, Proxy, Refusal, Registration, Release,
    StatusCode, Taken, TransactError, hwbinder,
};
pub use structure::Parcelable;
pub use value::{ParcelFileDescriptor, Value};

#[cfg(feature = "tokio")]
#[doc(hidden)]
pub use tokio;

/// Without the feature `tokio`, interfaces have no async half.
#[cfg(not(feature = "tokio"))]
#[doc(hidden)]
#[macro_export]
macro_rules! __asynchronous {
    ($($rest:tt)*) => {};
}

/// A process of a context of either driver.
pub type Process = ipc::Process<AnyConnection>;

/// Finds a context of the flavour `binder`, `hwbinder` or `vndbinder`. `place` is one of:
///
/// - `auto`: the system's device of this flavour, or else the context of the embedded driver that all programs of this user share.
/// - `kernel`, `embedded`: one of these two.
/// - `private`, `kernel:private`, `embedded:private`: a context of this process alone, for it and the programs to which it gives its
///   [`AnyContext::address`].
/// - `kernel:NAME`, `embedded:NAME`: a context by another name.
/// - the path of a device, or an [`AnyContext::address`].
///
/// # Errors
/// The machine has no such driver or device; the error says what to do.
pub fn find(place: &str, flavour: &str) -> Result<AnyContext, Box<dyn Error>> {
    if place.contains('/') {
        return Ok(AnyContext::parse(place));
    }
    let (driver, device) = match place.split_once(':') {
        Some((driver, device)) => (driver.parse()?, device),
        None if place == "private" => (Driver::Auto, place),
        None => (place.parse()?, flavour),
    };
    let device: Device = device.parse()?;
    Ok(locate::find(&Wanted { driver, device, ..Wanted::default() }, flavour)?.context)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn places_are_read() {
        let shared = find("embedded", "binder").expect("no device is needed");
        assert!(!shared.is_private() && shared.address().contains(":binder:"), "{}", shared.address());
        assert_eq!(find(&shared.address(), "hwbinder").expect("an address").address(), shared.address());
        let named = find("embedded:other", "binder").expect("no device is needed");
        assert!(named.address().contains(":other:"), "{}", named.address());
        assert!(find("embedded:private", "binder").expect("a private one").is_private());
        assert_eq!(find("/dev/x", "binder").expect("a path").address(), "/dev/x");
        for wrong in ["", "embeded", "kernel:", "private:x"] {
            assert!(find(wrong, "binder").is_err(), "{wrong:?}");
        }
    }

    #[test]
    fn a_missing_manager_and_a_missing_service_are_named() {
        let context = find("embedded:private", "binder").expect("the embedded driver");
        let process = Process::open(&context, ProcessOptions::default()).expect("it opens");
        let error = Services::of(&process).expect_err("nobody manages it");
        let CallError::NoManager { remedy, .. } = &error else { panic!("{error}") };
        assert!(
            error.is_dead() && remedy.starts_with("binderperf servicemanager --driver embedded"),
            "{remedy}"
        );
        let remedy = "binderperf services list".to_owned();
        let waited = std::time::Duration::from_secs(5);
        let absent = CallError::NoService { name: "echo".to_owned(), waited, remedy }.to_string();
        assert!(absent.starts_with("nobody serves echo: not registered within 5s"), "{absent}");
        assert!(absent.ends_with("see `binderperf services list`"), "{absent}");
    }
}
