//! The four serialisation steps in hwbinder's format: HIDL's scatter-gather parcel.
//! Not here: number and duration of the calls (`super`).
//!
//! A receiver does not read what a sender wrote: the driver has copied the buffers behind the parcel and put
//! their new addresses into it. That is the driver's work, so it is done once, before the measurement: the
//! steps write parcels that are not read, and read deliveries that were made before.

use std::hint::black_box;

use abi::codes::object;
use ipc::StatusCode;
use ipc::hwbinder::{HwParcel, Image, Reader, Status};
use zerocopy::IntoBytes;

use crate::Steps;

/// Has the length of a typical interface name.
const DESCRIPTOR: &str = "android.hardware.tests.libhwbinder@1.0::IBenchmark";
/// Start address of the deliveries' areas, as their readers see it.
const BASE: u64 = 0x7000_0000_0000;

/// A receiver's view of a parcel.
#[derive(Debug)]
struct Delivered {
    data: Vec<u8>,
    offsets: Vec<u64>,
    area: Vec<u8>,
}

/// Size of a PTR object: type, flags, address, length, parent, offset in the parent.
const OBJECT: usize = 40;

impl Delivered {
    /// Does a driver's work on a parcel of PTR objects.
    fn from(parcel: HwParcel<'_>) -> Self {
        parcel.with_payload(|payload| {
            let mut delivered =
                Self { data: payload.data.to_vec(), offsets: payload.offsets.to_vec(), area: Vec::new() };
            let mut starts: Vec<usize> = Vec::with_capacity(payload.offsets.len());
            for (at, bytes) in payload.offsets.iter().zip(payload.buffers) {
                let start = delivered.area.len();
                delivered.area.extend_from_slice(bytes);
                delivered.area.resize(delivered.area.len().next_multiple_of(8), 0);
                delivered.bind(*at as usize, start, &starts);
                starts.push(start);
            }
            delivered
        })
    }

    /// Writes a buffer's new address into its object, and into the parent that points to it.
    fn bind(&mut self, at: usize, start: usize, starts: &[usize]) {
        let address = (BASE + start as u64).to_le_bytes();
        let (flags, fields) = self.data[at + 4..at + OBJECT].split_at_mut(4);
        fields[..8].copy_from_slice(&address);
        if flags == object::BUFFER_FLAG_HAS_PARENT.to_le_bytes() {
            let word = |bytes: &[u8]| bytes.iter().rev().fold(0, |word, byte| word << 8 | usize::from(*byte));
            let (parent, inside) = (word(&fields[16..24]), word(&fields[24..32]));
            self.area[starts[parent] + inside..][..8].copy_from_slice(&address);
        }
    }

    fn reader(&self) -> Reader<'_> {
        let Self { data, offsets, area } = self;
        Reader::of_image(Image { data, offsets: offsets.as_bytes(), area, base: BASE })
    }
}

/// A call of a vector that is made again and again.
#[derive(Debug)]
pub struct Call {
    sent: Vec<u8>,
    received: Vec<u8>,
    request: Delivered,
    reply: Delivered,
}

fn request(sent: &[u8]) -> HwParcel<'_> {
    let mut request = HwParcel::new();
    request.write_header(DESCRIPTOR);
    request.write_vec(sent);
    request
}

/// The service's half: in place, without a copy.
fn serve(request: &Delivered) -> Result<HwParcel<'_>, StatusCode> {
    let mut reader = request.reader();
    reader.read_header(&[DESCRIPTOR])?;
    let mut reply = HwParcel::new();
    reply.write_no_exception();
    reply.write_vec(reader.read_bytes()?);
    Ok(reply)
}

/// The client's second half.
fn take(reply: &Delivered, received: &mut Vec<u8>) -> Result<(), Status> {
    let mut reader = reply.reader();
    reader.read_status()?;
    received.extend_from_slice(reader.read_bytes()?);
    Ok(())
}

/// Consumes a written parcel.
fn send(parcel: HwParcel<'_>) {
    parcel.with_payload(|payload| {
        black_box(payload);
    });
}

impl Call {
    /// Creates one for vectors of `payload` bytes.
    #[must_use]
    pub fn new(payload: usize) -> Self {
        let sent = super::vector(payload);
        let delivered = Delivered::from(request(&sent));
        let reply = serve(&delivered).map(Delivered::from).expect("it was written just now");
        Self { received: Vec::with_capacity(payload), request: delivered, reply, sent }
    }
}

impl Steps for Call {
    fn call(&mut self) {
        let Self { sent, received, request: delivered, reply } = self;
        // A failure leaves the vector empty, which the caller checks.
        received.clear();
        send(request(black_box(sent)));
        if let Ok(answer) = serve(black_box(delivered)) {
            send(answer);
            let _ = take(black_box(reply), received);
        }
    }

    fn came_back(&self) -> bool {
        self.sent == self.received
    }
}
