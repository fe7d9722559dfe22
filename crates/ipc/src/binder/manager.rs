//! The service manager of the flavour `binder`: names for objects, at handle 0.
//!
//! - [`codes`]: the numbering of each Android release. - `dialect`: which release a caller is of. - [`wire`]: what its calls carry.
//! - [`server`]: a manager; [`registry`]: what it registers. - [`client`]: calling one, ours or Android's.
//!
//! Facts: Android's `IServiceManager.aidl` and `ServiceManager.cpp`, releases 8 to 16.

pub mod client;
pub mod codes;
mod dialect;
pub mod registry;
pub mod server;
pub mod wire;

pub use crate::manager::strangers::Report;
pub use client::Services;
pub use codes::Method;
pub use server::ServiceManager;
pub use wire::ServiceInfo;

/// The manager's interface.
pub const DESCRIPTOR: &str = "android.os.IServiceManager";
/// The interface that hears of registrations.
pub const CALLBACK_DESCRIPTOR: &str = "android.os.IServiceCallback";
/// `IServiceCallback.onRegistration(String name, IBinder binder)`, oneway.
pub const ON_REGISTRATION: u32 = 1;

/// When a service is dumped (`DUMP_FLAG_PRIORITY_*`), also the classes that `list` asks for.
pub mod dump_priority {
    /// Unless told otherwise.
    pub const DEFAULT: i32 = 8;
    /// Every class.
    pub const ALL: i32 = 15;
}
