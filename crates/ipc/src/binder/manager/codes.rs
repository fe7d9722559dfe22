//! Numbers of the service manager's methods and forms of its lookup replies, per release.
//! Facts: `IServiceManager.aidl` of Android 11 to 16, `IServiceManager.h` before; 15 was renumbered
//! within the release.

use crate::release::Release;

/// A method of the service manager.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Method {
    /// A service by name, started if need be.
    GetService,
    /// [`Self::GetService`], answered with a union.
    GetService2,
    /// A service by name, if it is there.
    CheckService,
    /// [`Self::CheckService`], answered with a union.
    CheckService2,
    /// Registers a service.
    AddService,
    /// The registered names.
    ListServices,
    /// Registers a callback for registrations of a name.
    RegisterForNotifications,
    /// Removes such a callback.
    UnregisterForNotifications,
    /// Whether the system's manifest declares a name.
    IsDeclared,
    /// The declared instances of an interface.
    GetDeclaredInstances,
    /// The APEX module that updates a service.
    UpdatableViaApex,
    /// The services that an APEX module updates.
    GetUpdatableNames,
    /// The address of a service on another machine.
    GetConnectionInfo,
    /// Registers a callback for the presence of clients.
    RegisterClientCallback,
    /// Unregisters a service that has no clients.
    TryUnregisterService,
    /// The names and process ids of all services.
    GetServiceDebugInfo,
}

use Release::{Android8, Android11, Android12, Android13, Android14, Android15Qpr, Android16};

/// Every method with the release that introduced it, in the order of their numbers. A release numbers the
/// methods that it has from 1, without gaps; none was ever removed or moved.
const METHODS: [(Method, Release); 16] = [
    (Method::GetService, Android8),
    (Method::GetService2, Android15Qpr),
    (Method::CheckService, Android8),
    (Method::CheckService2, Android16),
    (Method::AddService, Android8),
    (Method::ListServices, Android8),
    (Method::RegisterForNotifications, Android11),
    (Method::UnregisterForNotifications, Android11),
    (Method::IsDeclared, Android11),
    (Method::GetDeclaredInstances, Android12),
    (Method::UpdatableViaApex, Android12),
    (Method::GetUpdatableNames, Android14),
    (Method::GetConnectionInfo, Android13),
    (Method::RegisterClientCallback, Android11),
    (Method::TryUnregisterService, Android11),
    (Method::GetServiceDebugInfo, Android12),
];

fn methods(release: Release) -> impl Iterator<Item = Method> {
    METHODS.into_iter().filter(move |(_, since)| *since <= release).map(|(method, _)| method)
}

/// The form of a lookup's reply.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum LookupReply {
    /// Up to 10: the object alone, or a word of 0; no status word.
    Bare,
    /// A nullable binder.
    Plain,
    /// From 15, quarterly, on: a union of a binder with metadata and an accessor.
    Union,
}

impl Method {
    /// The method that a number means; `None` for a number that the release does not have.
    #[must_use]
    pub fn numbered(code: u32, release: Release) -> Option<Self> {
        let index = usize::try_from(code).ok()?.checked_sub(1)?;
        methods(release).nth(index)
    }

    /// The number of the method; `None` in a release that does not have it.
    #[must_use]
    pub fn code(self, release: Release) -> Option<u32> {
        let index = methods(release).position(|method| method == self)?;
        u32::try_from(index + 1).ok()
    }

    /// How a lookup is answered; meaningless for other methods.
    #[must_use]
    pub const fn lookup_reply(self, release: Release) -> LookupReply {
        match (release, self) {
            (Release::Android8 | Release::Android9 | Release::Android10, _) => LookupReply::Bare,
            (Release::Android15Qpr, Self::CheckService) => LookupReply::Union,
            (_, Self::GetService2 | Self::CheckService2) => LookupReply::Union,
            _ => LookupReply::Plain,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn numbers_that_are_known_from_elsewhere() {
        use Method::*;
        use Release::*;
        for (method, codes) in [
            (GetService, [(Android8, 1), (Android11, 1), (Android16, 1)]),
            (CheckService, [(Android15, 2), (Android15Qpr, 3), (Android16, 3)]),
            (AddService, [(Android10, 3), (Android15Qpr, 4), (Android16, 5)]),
            (ListServices, [(Android9, 4), (Android15Qpr, 5), (Android16, 6)]),
            (RegisterClientCallback, [(Android11, 8), (Android12, 10), (Android16, 14)]),
            (TryUnregisterService, [(Android13, 12), (Android14, 13), (Android15Qpr, 14)]),
            (GetServiceDebugInfo, [(Android12, 12), (Android13, 13), (Android16, 16)]),
            (GetConnectionInfo, [(Android13, 10), (Android14, 11), (Android15Qpr, 12)]),
        ] {
            for (release, code) in codes {
                assert_eq!(method.code(release), Some(code), "{method:?} in {release}");
            }
        }
        assert_eq!(GetService2.code(Android15), None);
        assert_eq!(RegisterForNotifications.code(Android10), None);
    }

    #[test]
    fn numbers_and_methods_are_each_other_s_inverse() {
        for release in Release::ALL {
            for code in 1..=16 {
                if let Some(method) = Method::numbered(code, release) {
                    assert_eq!(method.code(release), Some(code), "{release}");
                }
            }
            assert_eq!(Method::numbered(0, release), None);
            assert_eq!(Method::numbered(17, release), None);
        }
    }
}
