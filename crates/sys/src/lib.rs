//! Room: every unsafe line of binderperf; one small safe type per file.
//! Not here: what the bytes mean (`abi`), what a driver promises (`driver`).

pub mod binder_fd;
pub mod binderfs;
pub mod capability;
pub mod clock;
pub mod counting_alloc;
pub mod descriptor;
pub mod detached_child;
pub mod epoll;
pub mod errno;
pub mod event_fd;
pub mod futex;
pub mod held_signals;
pub mod identity;
pub mod interrupt;
pub mod kernel_module;
pub mod local_time;
mod mapping;
pub mod mount;
pub mod nice_limit;
pub mod open_files;
pub mod own_memory;
pub mod pid_namespace;
pub mod pid_one;
mod racing_copy;
pub mod receive_map;
pub mod sched;
pub mod sealed_memory;
pub mod seqpacket;
pub mod shared_memory;
pub mod socket_pair;
pub mod stop_signal;
pub mod sync;
pub mod thread_uid;
pub mod tied_child;
