//! The service manager of the flavour `hwbinder`: objects by interface and instance, at handle 0.
//!
//! - [`server`]: a manager; [`registry`]: what it registers. - [`client`]: calling one, ours or Android's.
//! - [`wire`]: what `debugDump` carries.
//!
//! Facts: `android.hidl.manager` 1.0 to 1.2 and hwservicemanager's `ServiceManager.cpp`.

pub mod client;
pub mod registry;
pub mod server;
pub mod wire;

pub use client::Services;
pub use server::ServiceManager;
pub use wire::InstanceInfo;

/// The manager's interfaces, most derived first.
pub const INTERFACES: [&str; 3] = [V1_2, V1_1, V1_0];

const V1_0: &str = "android.hidl.manager@1.0::IServiceManager";
const V1_1: &str = "android.hidl.manager@1.1::IServiceManager";
const V1_2: &str = "android.hidl.manager@1.2::IServiceManager";

/// The interface that hears of registrations.
pub const NOTIFICATION: &str = "android.hidl.manager@1.0::IServiceNotification";
/// `oneway onRegistration(string fqName, string instance, bool preexisting)`
pub const ON_REGISTRATION: u32 = 1;

/// A method of the manager.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Method {
    /// `get(string fqName, string instance) generates (interface)`
    Get,
    /// `add(string instance, interface) generates (bool)`
    Add,
    /// `getTransport(string fqName, string instance) generates (Transport)`
    GetTransport,
    /// `list() generates (vec<string>)`
    List,
    /// `listByInterface(string fqName) generates (vec<string>)`
    ListByInterface,
    /// `registerForNotifications(string fqName, string instance, interface) generates (bool)`
    RegisterForNotifications,
    /// `debugDump() generates (vec<InstanceDebugInfo>)`
    DebugDump,
    /// `registerPassthroughClient(string fqName, string instance)`
    RegisterPassthroughClient,
    /// `unregisterForNotifications(string fqName, string instance, interface) generates (bool)`
    UnregisterForNotifications,
    /// `registerClientCallback(string, string, interface server, interface cb) generates (bool)`
    RegisterClientCallback,
    /// `unregisterClientCallback(interface server, interface cb) generates (bool)`
    UnregisterClientCallback,
    /// `addWithChain(string instance, interface, vec<string> chain) generates (bool)`
    AddWithChain,
    /// `listManifestByInterface(string fqName) generates (vec<string>)`
    ListManifestByInterface,
    /// `tryUnregister(string fqName, string instance, interface) generates (bool)`
    TryUnregister,
}

impl Method {
    /// Every method, by number from 1 on.
    const ALL: [Self; 14] = [
        Self::Get,
        Self::Add,
        Self::GetTransport,
        Self::List,
        Self::ListByInterface,
        Self::RegisterForNotifications,
        Self::DebugDump,
        Self::RegisterPassthroughClient,
        Self::UnregisterForNotifications,
        Self::RegisterClientCallback,
        Self::UnregisterClientCallback,
        Self::AddWithChain,
        Self::ListManifestByInterface,
        Self::TryUnregister,
    ];

    /// Its number.
    #[must_use]
    pub const fn code(self) -> u32 {
        self as u32 + 1
    }

    /// The method of a number.
    #[must_use]
    pub fn numbered(code: u32) -> Option<Self> {
        let index = usize::try_from(code.checked_sub(1)?).ok()?;
        Self::ALL.get(index).copied()
    }

    /// The interface that declares it, whose name its requests carry.
    #[must_use]
    pub const fn interface(self) -> &'static str {
        match self.code() {
            ..=8 => V1_0,
            9 => V1_1,
            _ => V1_2,
        }
    }
}

/// How a service is reached.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Transport {
    /// Nobody knows of it.
    Empty,
    /// By calls to another process.
    Hwbinder,
    /// As a library in the caller's own process.
    Passthrough,
}

impl Transport {
    /// Its number on the wire.
    #[must_use]
    pub const fn number(self) -> u8 {
        self as u8
    }

    /// The transport of a number.
    #[must_use]
    pub const fn numbered(number: u8) -> Option<Self> {
        match number {
            0 => Some(Self::Empty),
            1 => Some(Self::Hwbinder),
            2 => Some(Self::Passthrough),
            _ => None,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn methods_have_the_numbers_of_the_interfaces_in_their_order() {
        for (code, method, interface) in [
            (1, Method::Get, V1_0),
            (7, Method::DebugDump, V1_0),
            (8, Method::RegisterPassthroughClient, V1_0),
            (9, Method::UnregisterForNotifications, V1_1),
            (10, Method::RegisterClientCallback, V1_2),
            (12, Method::AddWithChain, V1_2),
            (14, Method::TryUnregister, V1_2),
        ] {
            assert_eq!((method.code(), method.interface()), (code, interface));
        }
        for method in Method::ALL {
            assert_eq!(Method::numbered(method.code()), Some(method));
        }
        assert_eq!((Method::numbered(0), Method::numbered(15)), (None, None));
        for number in 0..=3 {
            assert!(Transport::numbered(number).is_none_or(|transport| transport.number() == number));
        }
    }
}
