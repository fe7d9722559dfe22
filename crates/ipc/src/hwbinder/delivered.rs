//! Delivered payloads made without a driver, for tests and fuzzing only.
//! Facts: contract OBJ-15, OBJ-16.

use abi::codes::object;
use zerocopy::IntoBytes;

use crate::hwbinder::parcel::HwParcel;
use crate::hwbinder::reader::{Image, Reader};

/// Where the receiver's area begins.
const BASE: u64 = 0x7000_0000_0000;

/// A payload that a driver delivered.
#[derive(Clone, Debug, Default)]
pub(crate) struct Delivered {
    pub(crate) data: Vec<u8>,
    pub(crate) offsets: Vec<u64>,
    pub(crate) area: Vec<u64>,
}

fn word(data: &[u8], at: usize) -> u64 {
    u64::from_le_bytes(*data[at..].first_chunk().expect("an object is inside the payload"))
}

/// Does as the driver does: copies what PTR objects describe, and writes where it went.
pub(crate) fn deliver<'a>(write: impl FnOnce(&mut HwParcel<'a>)) -> Delivered {
    let mut parcel = HwParcel::new();
    write(&mut parcel);
    parcel.with_payload(|payload| {
        let mut data = payload.data.to_vec();
        let mut area: Vec<u8> = Vec::new();
        // For each object: where its bytes went.
        let mut places = Vec::new();
        let mut buffers = payload.buffers.iter();
        for offset in payload.offsets {
            let at = *offset as usize;
            places.push(area.len());
            if data[at..at + 4] != object::PTR.to_le_bytes() {
                continue;
            }
            let address = (BASE + area.len() as u64).to_le_bytes();
            area.extend_from_slice(buffers.next().expect("one for each PTR"));
            area.resize(area.len().next_multiple_of(8), 0);
            data[at + 8..at + 16].copy_from_slice(&address);
            if data[at + 4] == 1 {
                let (parent, inside) = (word(&data, at + 24) as usize, word(&data, at + 32) as usize);
                area[places[parent] + inside..][..8].copy_from_slice(&address);
            }
        }
        assert!(area.len() as u64 <= payload.buffers_size.unwrap_or_default(), "room for every buffer");
        let mut words = vec![0u64; area.len() / 8];
        words.as_mut_bytes().copy_from_slice(&area);
        Delivered { data, offsets: payload.offsets.to_vec(), area: words }
    })
}

impl Delivered {
    pub(crate) fn reader(&self) -> Reader<'_> {
        let Self { data, offsets, area } = self;
        let (offsets, area) = (offsets.as_bytes(), area.as_bytes());
        Reader::of_image(Image { data, offsets, area, base: BASE })
    }

    /// The same with another byte of an object.
    #[cfg(test)]
    pub(crate) fn with(&self, object: usize, at: usize, byte: u8) -> Self {
        let mut other = self.clone();
        other.data[self.offsets[object] as usize + at] = byte;
        other
    }
}
