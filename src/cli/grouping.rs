//! The option `--across`: the fact by which records of many devices are grouped.
//! Not here: reading them (`store::across`).

use clap::ValueEnum;
use record::across::By;

/// Fact by which records are grouped.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub(super) enum Grouping {
    /// The serial number of a phone, elsewhere the name of the machine
    Device,
    /// The kernel's release and architecture
    Kernel,
    /// The build of the system: of a phone its fingerprint, elsewhere that of the kernel
    Build,
}

impl From<Grouping> for By {
    fn from(grouping: Grouping) -> Self {
        match grouping {
            Grouping::Device => Self::Device,
            Grouping::Kernel => Self::Kernel,
            Grouping::Build => Self::Build,
        }
    }
}
