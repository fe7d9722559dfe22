//! Room: which process of the test: its place, and which one in a row it is at that place.

use std::fmt;
use std::str::FromStr;

use ipc::StatusCode;
use ipc::binder::{Parcel, Reader};

/// One process of the test. Written `2.5`: at place 2, the sixth one there.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub(super) struct Instance {
    pub(super) place: usize,
    pub(super) generation: usize,
}

impl fmt::Display for Instance {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}.{}", self.place, self.generation)
    }
}

impl FromStr for Instance {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        let strange = || format!("{text:?} is no process of the test");
        let (place, generation) = text.split_once('.').ok_or_else(strange)?;
        Ok(Self {
            place: place.parse().map_err(|_| strange())?,
            generation: generation.parse().map_err(|_| strange())?,
        })
    }
}

impl Instance {
    pub(super) fn write(self, parcel: &mut Parcel) {
        parcel.write_u64(self.place as u64);
        parcel.write_u64(self.generation as u64);
    }

    pub(super) fn read(reader: &mut Reader<'_>) -> Result<Self, StatusCode> {
        let mut number = || usize::try_from(reader.read_u64()?).map_err(|_| StatusCode::BAD_VALUE);
        Ok(Self { place: number()?, generation: number()? })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_are_read_as_they_are_written() {
        let instance = Instance { place: 2, generation: 15 };
        assert_eq!(instance.to_string().parse(), Ok(instance));
        assert!("2".parse::<Instance>().is_err() && "2.x".parse::<Instance>().is_err());
        let mut parcel = Parcel::new();
        instance.write(&mut parcel);
        assert_eq!(Instance::read(&mut parcel.reader()), Ok(instance));
    }
}
