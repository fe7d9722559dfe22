//! Room: which number each method of the service manager has, and what form its answer takes, per
//! release. A flat table.
//! Facts: `IServiceManager.aidl` of Android 11 to 16, `IServiceManager.h` before; 15 was renumbered
//! within the release.

use crate::release::Release;

/// A method of the service manager.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Method {
    /// A service by name, started if need be.
    GetService,
    /// The same, answered with a union.
    GetService2,
    /// A service by name, if it is there.
    CheckService,
    /// The same, answered with a union.
    CheckService2,
    /// Registers a service.
    AddService,
    /// The names.
    ListServices,
    /// Be told of registrations of a name.
    RegisterForNotifications,
    /// No more.
    UnregisterForNotifications,
    /// Whether a name is announced by the system's manifest.
    IsDeclared,
    /// Which instances of an interface are.
    GetDeclaredInstances,
    /// Which module updates a service.
    UpdatableViaApex,
    /// Which services a module updates.
    GetUpdatableNames,
    /// Where a service on another machine is.
    GetConnectionInfo,
    /// Be told whether a service has clients.
    RegisterClientCallback,
    /// Take a service back.
    TryUnregisterService,
    /// Names and process ids.
    GetServiceDebugInfo,
}

use Method::{
    AddService, CheckService, CheckService2, GetConnectionInfo, GetDeclaredInstances, GetService,
    GetService2, GetServiceDebugInfo, GetUpdatableNames, IsDeclared, ListServices, RegisterClientCallback,
    RegisterForNotifications, TryUnregisterService, UnregisterForNotifications, UpdatableViaApex,
};

/// In the order of their numbers, from 1.
const UP_TO_10: &[Method] = &[GetService, CheckService, AddService, ListServices];

/// In the order of their numbers, from 1.
const IN_11: &[Method] = &[
    GetService,
    CheckService,
    AddService,
    ListServices,
    RegisterForNotifications,
    UnregisterForNotifications,
    IsDeclared,
    RegisterClientCallback,
    TryUnregisterService,
];

/// In the order of their numbers, from 1.
const IN_12: &[Method] = &[
    GetService,
    CheckService,
    AddService,
    ListServices,
    RegisterForNotifications,
    UnregisterForNotifications,
    IsDeclared,
    GetDeclaredInstances,
    UpdatableViaApex,
    RegisterClientCallback,
    TryUnregisterService,
    GetServiceDebugInfo,
];

/// In the order of their numbers, from 1.
const IN_13: &[Method] = &[
    GetService,
    CheckService,
    AddService,
    ListServices,
    RegisterForNotifications,
    UnregisterForNotifications,
    IsDeclared,
    GetDeclaredInstances,
    UpdatableViaApex,
    GetConnectionInfo,
    RegisterClientCallback,
    TryUnregisterService,
    GetServiceDebugInfo,
];

/// In the order of their numbers, from 1.
const IN_14: &[Method] = &[
    GetService,
    CheckService,
    AddService,
    ListServices,
    RegisterForNotifications,
    UnregisterForNotifications,
    IsDeclared,
    GetDeclaredInstances,
    UpdatableViaApex,
    GetUpdatableNames,
    GetConnectionInfo,
    RegisterClientCallback,
    TryUnregisterService,
    GetServiceDebugInfo,
];

/// In the order of their numbers, from 1.
const IN_15_QPR: &[Method] = &[
    GetService,
    GetService2,
    CheckService,
    AddService,
    ListServices,
    RegisterForNotifications,
    UnregisterForNotifications,
    IsDeclared,
    GetDeclaredInstances,
    UpdatableViaApex,
    GetUpdatableNames,
    GetConnectionInfo,
    RegisterClientCallback,
    TryUnregisterService,
    GetServiceDebugInfo,
];

/// In the order of their numbers, from 1.
const IN_16: &[Method] = &[
    GetService,
    GetService2,
    CheckService,
    CheckService2,
    AddService,
    ListServices,
    RegisterForNotifications,
    UnregisterForNotifications,
    IsDeclared,
    GetDeclaredInstances,
    UpdatableViaApex,
    GetUpdatableNames,
    GetConnectionInfo,
    RegisterClientCallback,
    TryUnregisterService,
    GetServiceDebugInfo,
];

const fn numbering(release: Release) -> &'static [Method] {
    match release {
        Release::Android8 | Release::Android9 | Release::Android10 => UP_TO_10,
        Release::Android11 => IN_11,
        Release::Android12 => IN_12,
        Release::Android13 => IN_13,
        Release::Android14 | Release::Android15 => IN_14,
        Release::Android15Qpr => IN_15_QPR,
        Release::Android16 => IN_16,
    }
}

/// What the answer to a lookup looks like.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Found {
    /// Up to 10: the object alone, or a word of 0; no status word.
    Bare,
    /// A nullable binder.
    Plain,
    /// 15, quarterly: a union of a binder and an accessor.
    Union,
    /// 16: a union of a binder with metadata and an accessor.
    UnionWithMetadata,
}

impl Method {
    /// The method that a number means; `None` for a number that the release does not have.
    #[must_use]
    pub fn numbered(code: u32, release: Release) -> Option<Self> {
        let index = usize::try_from(code).ok()?.checked_sub(1)?;
        numbering(release).get(index).copied()
    }

    /// The number of the method; `None` in a release that does not have it.
    #[must_use]
    pub fn code(self, release: Release) -> Option<u32> {
        let index = numbering(release).iter().position(|method| *method == self)?;
        u32::try_from(index + 1).ok()
    }

    /// How a lookup is answered; meaningless for other methods.
    #[must_use]
    pub const fn found(self, release: Release) -> Found {
        match (release, self) {
            (Release::Android8 | Release::Android9 | Release::Android10, _) => Found::Bare,
            (Release::Android15Qpr, Self::GetService2 | Self::CheckService) => Found::Union,
            (_, Self::GetService2 | Self::CheckService2) => Found::UnionWithMetadata,
            _ => Found::Plain,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn numbers_that_are_known_from_elsewhere() {
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
