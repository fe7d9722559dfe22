//! Reads Perfetto's protobuf traces as events, merged over CPUs and writers by time.
//! Not here: writing such traces (`perfetto`).
//! Facts: `protos/perfetto/trace` of Perfetto for the field numbers; protobuf.dev, "Encoding", for the wire format.
//!
//! Two passes over the file. The first one notes where each CPU's event bundles and each thread's slices are, and takes
//! what later packets may be needed for: clocks, names, processes, symbols. The second one merges them. So memory grows
//! with the number of bundles, 24 bytes for each, and not with the events.

mod blocks;
mod bundle;
mod clocks;
mod decode;
mod generic;
mod index;
mod inflate;
mod packet;
mod reader;
mod scan;
mod schema;
mod source;
mod threads;
mod tracks;
mod wire;

pub use reader::PerfettoReader;
pub(crate) use scan::looks_like_trace;

#[cfg(test)]
mod tests;
