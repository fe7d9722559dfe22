//! Payloads of transactions: rules for their objects, and their forms in transit.
//!
//! - [`scatter`]: positions of objects, and rules of scattered buffers, for sender, broker and receiver.
//! - [`packed`]: short form of payloads that end with one vector or string.
//! - [`shape`]: sizes of a payload's parts in a call slot.
//! - [`encode`], [`gather`]: the bytes for a call slot, and those for the broker.
//! - [`vouched`]: bytes of the caller that may be read in place.
//!
//! Not here: translation of nodes, handles and descriptors (`broker::core`).

pub(crate) mod encode;
pub(crate) mod gather;
pub(crate) mod packed;
pub(crate) mod scatter;
pub(crate) mod shape;
mod vouched;
