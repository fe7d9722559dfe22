//! Records in formats that other programs define, one module each: what they read must stay what they know.
//! Not here: our own forms (`crate::render`), what other programs write (`crate::import`), the lines of Android's latency and
//! throughput tests, which are forms of our tables (`crate::render::latency::aosp`, `crate::render::crowd`).

pub mod convert;
pub mod gbench;
