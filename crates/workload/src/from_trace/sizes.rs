//! Sizes of requests and replies.
//! Not here: what a request carries beside bytes.
//!
//! A size that the trace lacks is drawn: from the sizes of other calls of the same kind, if the trace has at least [`LEAST_KNOWN`] of them;
//! otherwise log-uniformly from [`ASSUMED`]. The latter is an assumption, not a measurement, and a note of the description says so.

use fastrand::Rng;

use crate::recording::{Call, Size};

/// Fewest known sizes that others are drawn from.
const LEAST_KNOWN: usize = 32;
/// Assumed least and largest size in bytes; the median is 128.
pub(super) const ASSUMED: (u32, u32) = (16, 1024);
/// Largest size in bytes: a process has hardly more room for all its calls.
const LARGEST: u64 = 1 << 20;
/// Most objects of a request.
const MOST_OBJECTS: u32 = 1024;
/// Bytes of an object in a request.
/// Fact: `struct flat_binder_object` and `struct binder_fd_object`, `include/uapi/linux/android/binder.h`.
const OF_OBJECT: u64 = 24;

/// Gives sizes.
#[derive(Debug)]
pub(super) struct Sizes {
    rng: Rng,
    requests: Vec<u32>,
    oneway: Vec<u32>,
    replies: Vec<u32>,
    /// Sizes that were drawn from those of other calls.
    pub(super) from_others: u64,
    /// Sizes that were drawn from the assumed ones.
    pub(super) assumed: u64,
}

impl Sizes {
    /// Sizes of these calls, and as drawn by this seed.
    pub(super) fn of<'c>(calls: impl Iterator<Item = &'c Call>, seed: u64) -> Self {
        let rng = Rng::with_seed(seed);
        let (requests, oneway, replies) = Default::default();
        let mut sizes = Self { rng, requests, oneway, replies, from_others: 0, assumed: 0 };
        for call in calls {
            if let Some(size) = call.request {
                let known = if call.oneway { &mut sizes.oneway } else { &mut sizes.requests };
                known.push(bytes(size));
            }
            if let (Some(size), false) = (call.reply, call.oneway) {
                sizes.replies.push(whole(size));
            }
        }
        sizes
    }

    /// Bytes and objects of a call's request.
    pub(super) fn request(&mut self, call: &Call) -> (u32, u32) {
        match call.request {
            Some(size) => (bytes(size), size.objects.max(call.descriptors).min(MOST_OBJECTS)),
            None => (self.draw(if call.oneway { Kind::Oneway } else { Kind::Request }), call.descriptors),
        }
    }

    /// Bytes of its reply.
    pub(super) fn reply(&mut self, call: &Call) -> u32 {
        call.reply.map_or_else(|| self.draw(Kind::Reply), whole)
    }

    fn draw(&mut self, kind: Kind) -> u32 {
        let known = match kind {
            Kind::Request => &self.requests,
            Kind::Oneway => &self.oneway,
            Kind::Reply => &self.replies,
        };
        if known.len() >= LEAST_KNOWN
            && let Some(size) = self.rng.choice(known)
        {
            self.from_others += 1;
            return *size;
        }
        self.assumed += 1;
        let (least, largest) = (f64::from(ASSUMED.0), f64::from(ASSUMED.1));
        let size = (least.ln() + self.rng.f64() * (largest / least).ln()).exp().round() as u32;
        size / 4 * 4
    }
}

#[derive(Clone, Copy)]
enum Kind {
    Request,
    Oneway,
    Reply,
}

/// Bytes without objects.
fn bytes(size: Size) -> u32 {
    let bytes = size.bytes.saturating_sub(OF_OBJECT * u64::from(size.objects));
    u32::try_from(bytes.min(LARGEST)).unwrap_or(u32::MAX)
}

/// Bytes of a reply, whose objects are bytes like others.
fn whole(size: Size) -> u32 {
    bytes(Size { objects: 0, ..size })
}
