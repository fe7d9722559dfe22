//! Requests and answers between the library of a process and the broker.
//!
//! - [`protocol`]: the messages as types; [`objects`]: the values that several of them carry.
//! - [`codec`]: messages as bytes. `fields`: the bytes of each value. [`framing`]: the handshake and the frames on the socket.
//!
//! Not here: the library's end of the socket (`broker_connection`), the broker's (`broker::serve`), the rings that
//! items come through (`shm::ring`).

pub mod codec;
mod fields;
pub(crate) mod framing;
pub mod objects;
pub mod protocol;
