//! Identity of a member process: its index, and its generation at that index.

use std::fmt;

use ipc::StatusCode;
use ipc::binder::{Parcel, Reader};
use serde::{Deserialize, Serialize};

/// A member process. Written `2.5`: index 2, generation 5 (the sixth process with this index).
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
pub(super) struct Instance {
    pub(super) index: usize,
    pub(super) generation: usize,
}

impl fmt::Display for Instance {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}.{}", self.index, self.generation)
    }
}

impl Instance {
    pub(super) fn write(self, parcel: &mut Parcel) {
        parcel.write_u64(self.index as u64);
        parcel.write_u64(self.generation as u64);
    }

    pub(super) fn read(reader: &mut Reader<'_>) -> Result<Self, StatusCode> {
        let mut number = || usize::try_from(reader.read_u64()?).map_err(|_| StatusCode::BAD_VALUE);
        Ok(Self { index: number()?, generation: number()? })
    }
}
