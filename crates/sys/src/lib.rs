//! Room: every unsafe line of binderperf; one small safe type per file.
//! Not here: what the bytes mean (`abi`), what a driver promises (`driver`).

pub mod binder_fd;
pub mod binderfs;
pub mod errno;
pub mod receive_map;
