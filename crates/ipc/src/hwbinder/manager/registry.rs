//! Services by interface and instance.
//! Not here: the table (`crate::manager::registry`), the manager's methods (`server`).
//! Facts: hwservicemanager's `ServiceManager.cpp`: an object is registered under every interface of its chain.

use crate::hwbinder::hw_binder::HwBinder;
use crate::hwbinder::manager::{NOTIFICATION, ON_REGISTRATION};
use crate::manager::registry::Flavour;
use crate::runtime::target::Binder;

/// Longest chain of interfaces that is believed.
const LONGEST_CHAIN: usize = 64;

/// Whether an interface may be called this. No '/': "interface/instance" is taken apart at the first one.
fn is_interface(name: &str) -> bool {
    !name.is_empty() && name.bytes().all(|byte| byte.is_ascii_graphic() && byte != b'/')
}

/// Whether an instance may be called this. Cameras are "legacy/0"; Android checks nothing at all.
fn is_instance(name: &str) -> bool {
    !name.is_empty() && !name.contains('\0')
}

/// The name of a service: interface, then instance.
pub(crate) type Key = (String, String);

/// The key of an instance.
pub(crate) fn key(interface: &str, instance: &str) -> Key {
    (interface.to_owned(), instance.to_owned())
}

/// The keys of an object with this chain of interfaces; `None` for names that cannot be.
pub(crate) fn keys(instance: &str, chain: &[impl AsRef<str>]) -> Option<Vec<Key>> {
    let named = is_instance(instance) && chain.iter().all(|name| is_interface(name.as_ref()));
    let believed = named && (1..=LONGEST_CHAIN).contains(&chain.len());
    believed.then(|| chain.iter().map(|interface| key(interface.as_ref(), instance)).collect())
}

/// A registered service.
#[derive(Clone)]
pub(crate) struct Service {
    pub(crate) object: HwBinder,
    /// The process that registered it.
    pub(crate) pid: i32,
}

/// The flavour's [`crate::manager::registry::Registry`].
pub(crate) enum Instances {}

impl Flavour for Instances {
    type Key = Key;
    type Service = Service;

    fn binder(service: &Service) -> &Binder {
        service.object.as_binder()
    }

    fn is_same_instance(one: &Key, other: &Key) -> bool {
        one.1 == other.1
    }

    /// An empty name is any.
    fn matches(wanted: &Key, key: &Key) -> bool {
        let fits = |wanted: &String, name: &String| wanted.is_empty() || wanted == name;
        fits(&wanted.0, &key.0) && fits(&wanted.1, &key.1)
    }

    fn tell(callback: &Binder, (interface, instance): &Key, _service: &Service, preexisting: bool) {
        let callback = HwBinder::from(callback.clone());
        let mut request = callback.request(NOTIFICATION);
        request.write_str(interface);
        request.write_str(instance);
        request.write_bool(preexisting);
        // A callback that is gone is removed by its death notification.
        let _ = callback.oneway(ON_REGISTRATION, request);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_can_be_told_apart() {
        let is_interface = |name| keys("default", &[name]).is_some();
        let is_instance = |name| keys(name, &["a@1.0::IA"]).is_some();
        for name in ["a.b@1.0::IFoo", "IFoo"] {
            assert!(is_interface(name), "{name}");
        }
        for name in ["", "a/b", "a b", "ä", "a\0"] {
            assert!(!is_interface(name), "{name}");
        }
        for name in ["default", "x-y_z", "legacy/0", "a b", "ä", "/"] {
            assert!(is_instance(name), "{name}");
        }
        for name in ["", "a\0"] {
            assert!(!is_instance(name), "{name:?}");
        }
        assert_eq!(keys("default", &[] as &[&str]), None);
        assert_eq!(keys("default", &["IA"; 65]), None);
    }
}
