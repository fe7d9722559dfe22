//! Services by name, with the terms of their registration.
//! Not here: the table (`crate::manager::registry`), the manager's methods (`server`).
//! Facts: Android's `ServiceManager.cpp`: rules for names.

use crate::binder::manager::wire::Entry;
use crate::binder::manager::{CALLBACK_DESCRIPTOR, ON_REGISTRATION};
use crate::manager::registry::Flavour;
use crate::runtime::target::Binder;

/// Longest name of a service, in characters.
const LONGEST_NAME: usize = 127;

/// Whether a service may have this name.
#[must_use]
pub fn is_name(name: &str) -> bool {
    let allowed = |byte: u8| byte.is_ascii_alphanumeric() || b"_.-/".contains(&byte);
    (1..=LONGEST_NAME).contains(&name.len()) && name.bytes().all(allowed)
}

/// A registered service.
#[derive(Clone)]
pub(crate) struct Service {
    pub(crate) entry: Entry,
    pub(crate) allow_isolated: bool,
    pub(crate) dump_priority: i32,
    /// The process that registered it.
    pub(crate) pid: i32,
}

/// The flavour's [`crate::manager::registry::Registry`].
pub(crate) enum Names {}

impl Flavour for Names {
    type Key = String;
    type Service = Service;

    fn binder(service: &Service) -> &Binder {
        &service.entry.0
    }

    fn is_same_instance(one: &String, other: &String) -> bool {
        one == other
    }

    fn matches(wanted: &String, key: &String) -> bool {
        wanted == key
    }

    fn tell(callback: &Binder, name: &String, service: &Service, _preexisting: bool) {
        let (binder, stability) = &service.entry;
        let mut request = callback.request(CALLBACK_DESCRIPTOR);
        request.write_str(name);
        request.write_nullable_binder_as(Some(binder), *stability);
        // A callback that is gone is removed by its death notification.
        let _ = callback.oneway(ON_REGISTRATION, request);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_are_short_and_plain() {
        for name in ["a", "media.player", "a.b.IFoo/default", "x-y_Z9", &"n".repeat(127)] {
            assert!(is_name(name), "{name}");
        }
        for name in ["", " ", "ä", "a b", "a:b", "a\0", &"n".repeat(128)] {
            assert!(!is_name(name), "{name}");
        }
    }
}
