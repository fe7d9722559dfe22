//! Room: the flavour hwbinder as the examples use it.

use std::time::Duration;

use ipc::ProcessOptions;
use ipc::hwbinder::CallError;
use ipc::hwbinder::manager::{ServiceManager, Services};

use super::{Flavour, Here};

/// The flavour hwbinder: HIDL.
pub(crate) struct Hidl;

impl Flavour for Hidl {
    const CONTEXT: &str = "hwbinder";
    type Services = Services;

    fn options() -> ProcessOptions {
        // One thread that serves; the driver may ask for one more.
        ProcessOptions::hwbinder_pool(2, false)
    }

    fn services(process: &Here, patience: Duration) -> Result<Services, CallError> {
        Services::wait(process, patience)
    }

    fn manage(process: &Here) -> std::io::Result<()> {
        process.become_hidl_context_manager(ServiceManager::new()).map(drop)
    }
}
