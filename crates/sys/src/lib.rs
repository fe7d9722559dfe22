//! System calls and shared memory behind safe types: all `unsafe` code of binderperf.
//! Not here: the meaning of the bytes (`abi`), a driver's behaviour (`driver`).

pub mod binder_fd;
pub mod binderfs;
mod cache;
pub mod capability;
pub mod child;
pub mod clock;
pub mod counting_alloc;
pub mod descriptor;
pub mod epoll;
pub mod errno;
pub mod fixed_memory;
pub mod futex;
pub mod held_signals;
pub mod identity;
pub mod interrupt;
pub mod kernel;
pub mod limits;
pub mod local_time;
pub mod lock;
mod mapping;
pub mod needs;
pub mod own_memory;
pub mod page;
pub mod pid_one;
mod racing_copy;
pub mod receive_map;
pub mod sched;
pub mod sealed_memory;
pub mod seqpacket;
pub mod shared_memory;
pub mod stop_signal;
pub mod sync;
pub mod title;
pub mod urgency;
