//! Room: the driver in user space, behind the same seam as the kernel's.
//!
//! - [`protocol`]: what broker and processes say to each other.
//!
//! Not here: the seam (`crate::connection`), choosing a backend (`crate::locate`).

pub mod protocol;
