//! `epoll_ctl(2)`: in a set, a device is represented by a descriptor of the thread that added it.
//! Facts: contract POL-04; `epoll(7)`, questions 2 and 6.

use std::io;
use std::os::fd::RawFd;

use sys::errno::{EEXIST, ENOENT};

use crate::table;

/// The descriptor to give to `epoll_ctl` in place of a device; `None` if the descriptor names no device.
pub fn stand_in(set: RawFd, operation: i32, device: RawFd) -> Option<io::Result<RawFd>> {
    let file = table::find(device)?;
    let known = table::read().watches.stand_in(set, device);
    let refused = |errno| Err(io::Error::from_raw_os_error(errno));
    Some(match (operation == libc::EPOLL_CTL_ADD, known) {
        (true, Some(_)) => refused(EEXIST),
        (false, None) => refused(ENOENT),
        (false, Some(number)) => Ok(number),
        (true, None) => file
            .poll_descriptor()
            .and_then(sys::descriptor::duplicate)
            .map(|stand_in| table::write().watches.add(set, device, stand_in)),
    })
}

/// After `epoll_ctl` on a stand-in: forgets a device that could not be added, or was taken out.
pub fn controlled(set: RawFd, operation: i32, device: RawFd, done: bool) {
    let gone = match operation {
        libc::EPOLL_CTL_ADD => !done,
        libc::EPOLL_CTL_DEL => done,
        _ => false,
    };
    if gone {
        let taken = table::write().watches.remove(set, device);
        drop(taken);
    }
}
