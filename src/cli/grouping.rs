//! The option `--across`: the fact by which records of many devices are grouped.
//! Not here: reading them (`store::across`).

use record::across::By;

use super::choice::Table;

/// Facts by which records are grouped.
pub(super) const GROUPINGS: Table<By, 3> = [
    (By::Device, "device", "The serial number of a phone, elsewhere the name of the machine"),
    (By::Kernel, "kernel", "The kernel's release and architecture"),
    (By::Build, "build", "The build of the system: of a phone its fingerprint, elsewhere that of the kernel"),
];
