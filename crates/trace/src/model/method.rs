//! Methods of calls, by the slices that generated proxies and stubs put around them.
//! Not here: which call a slice belongs to (`calls`).
//! Facts: AIDL's backends write `AIDL::LANGUAGE::INTERFACE::METHOD::SIDE`, with the sides `client` and `server`, in C++
//! `cppClient` and `cppServer`; HIDL's write `HIDL::INTERFACE::METHOD::SIDE`.

use std::collections::HashMap;
use std::sync::Arc;

/// A method of an interface.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Method {
    /// The interface as the trace names it, e.g. `IActivityManager`.
    pub interface: Box<str>,
    /// The method's name.
    pub name: Box<str>,
}

impl std::fmt::Display for Method {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "{}.{}", self.interface, self.name)
    }
}

/// Who wrote the slice.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Side {
    /// The proxy, around the call.
    Client,
    /// The stub, around the method's work.
    Server,
}

/// A slice that names a method.
#[derive(Clone, Debug)]
pub(crate) struct NamedSlice {
    pub(crate) method: Arc<Method>,
    pub(crate) side: Side,
    /// Number of open slices of the thread, this one included.
    pub(crate) depth: usize,
    /// Number of calls that the thread served when it began.
    pub(crate) serving: usize,
}

/// Reads a slice's name; `None` if it names no method.
fn parse(slice: &str) -> Option<(Method, Side)> {
    let rest = match slice.strip_prefix("AIDL::") {
        // The language.
        Some(rest) => rest.split_once("::")?.1,
        None => slice.strip_prefix("HIDL::")?,
    };
    let (rest, side) = rest.rsplit_once("::")?;
    let side = match side {
        "client" | "cppClient" => Side::Client,
        "server" | "cppServer" => Side::Server,
        _ => return None,
    };
    let (interface, name) = rest.rsplit_once("::")?;
    (!interface.is_empty() && !name.is_empty())
        .then(|| (Method { interface: interface.into(), name: name.into() }, side))
}

/// The method that a slice names.
pub(crate) fn method_of(slice: &str) -> Option<Method> {
    parse(slice).map(|(method, _)| method)
}

/// Maximum number of methods known by name; only a forged trace has more. Further ones stay unnamed.
const MOST: usize = 1 << 16;

/// Each method's name once.
#[derive(Clone, Debug, Default)]
pub(crate) struct Methods {
    known: HashMap<Box<str>, (Arc<Method>, Side)>,
}

impl Methods {
    /// The method that a slice names.
    pub(crate) fn of(&mut self, slice: &str) -> Option<(Arc<Method>, Side)> {
        if !slice.starts_with("AIDL::") && !slice.starts_with("HIDL::") {
            return None;
        }
        if let Some(known) = self.known.get(slice) {
            return Some(known.clone());
        }
        let (method, side) = parse(slice).filter(|_| self.known.len() < MOST)?;
        let known = (Arc::new(method), side);
        self.known.insert(slice.into(), known.clone());
        Some(known)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn slices_of_each_backend_name_a_method() {
        for (slice, want) in [
            (
                "AIDL::java::IActivityManager::getServices::server",
                Some(("IActivityManager", "getServices", Side::Server)),
            ),
            (
                "AIDL::cpp::android::os::IPower::boost::cppClient",
                Some(("android::os::IPower", "boost", Side::Client)),
            ),
            ("AIDL::ndk::ILights::setLight::client", Some(("ILights", "setLight", Side::Client))),
            ("HIDL::ILight::setLight::server", Some(("ILight", "setLight", Side::Server))),
            ("HIDL::ILight::setLight::passthrough", None),
            ("AIDL::java::::server", None),
            ("AIDL::", None),
            ("binder transaction", None),
        ] {
            let want = want.map(|(interface, name, side)| {
                (Method { interface: interface.into(), name: name.into() }, side)
            });
            assert_eq!(parse(slice), want, "{slice}");
        }
    }

    #[test]
    fn a_method_is_kept_once() {
        let mut methods = Methods::default();
        let slice = "HIDL::ILight::setLight::server";
        let (one, _) = methods.of(slice).expect("a method");
        let (two, _) = methods.of(slice).expect("a method");
        assert!(Arc::ptr_eq(&one, &two));
        assert_eq!(one.to_string(), "ILight.setLight");
    }
}
