//! `poll(2)` and `ppoll(2)`: each device in the list gives its place to the calling thread's own descriptor.
//! The list is kept for the thread, not on its stack: waiting is a cancellation point.
//! Facts: contract POL-01 to POL-04; `pthreads(7)`, "Cancellation points".

use std::cell::RefCell;
use std::os::fd::RawFd;
use std::sync::Arc;

use crate::file::OpenFile;
use crate::table;

/// A list in which the calling thread's own descriptors stand for devices.
#[derive(Debug)]
struct Replaced {
    list: Vec<libc::pollfd>,
    /// Positions of the devices, and their numbers.
    places: Vec<(usize, RawFd)>,
    /// Keeps the descriptors open.
    _files: Vec<Arc<OpenFile>>,
}

impl Replaced {
    fn new(mut list: Vec<libc::pollfd>) -> Self {
        let (mut places, mut files) = (Vec::new(), Vec::new());
        for (place, entry) in list.iter_mut().enumerate() {
            let Some(file) = table::find(entry.fd) else { continue };
            // A device of the parent, or one without a descriptor left, stays never readable.
            let Ok(own) = file.poll_descriptor() else { continue };
            places.push((place, entry.fd));
            entry.fd = own;
            files.push(file);
        }
        Self { list, places, _files: files }
    }

    /// The program's list with the answers.
    fn answered(mut self) -> Vec<libc::pollfd> {
        for (place, device) in self.places {
            if let Some(entry) = self.list.get_mut(place) {
                entry.fd = device;
                entry.revents = device_events(entry.revents);
            }
        }
        self.list
    }
}

thread_local! {
    /// Lists of the calling thread's waits; several if signal handlers wait, too. A thread that is cancelled while it waits
    /// leaves its list here, because its stack then goes without a word.
    static WAITS: RefCell<Vec<Replaced>> = const { RefCell::new(Vec::new()) };
}

/// True if a list names a device.
#[must_use]
pub fn has_device(list: &[libc::pollfd]) -> bool {
    list.iter().any(|entry| table::has(entry.fd))
}

/// A wait that has begun: the list to wait for in place of the program's lives until [`end`].
#[derive(Clone, Copy, Debug)]
pub struct Wait {
    /// The list.
    pub list: *mut [libc::pollfd],
    depth: usize,
}

/// Begins a wait.
#[must_use]
pub fn begin(list: Vec<libc::pollfd>) -> Wait {
    let mut replaced = Replaced::new(list);
    // Its memory stays where it is when the value moves.
    let list: *mut [libc::pollfd] = &raw mut replaced.list[..];
    WAITS.with_borrow_mut(|waits| {
        waits.push(replaced);
        Wait { list, depth: waits.len() }
    })
}

/// Ends a wait of the calling thread, and those inside it that a jump left. Returns the program's list with the answers.
#[must_use]
pub fn end(wait: Wait) -> Vec<libc::pollfd> {
    WAITS.with_borrow_mut(|waits| {
        waits.truncate(wait.depth);
        waits.pop().map_or_else(Vec::new, Replaced::answered)
    })
}

/// Events of a device, from those of its stand-in: it reports `POLLIN` and none of the variants.
fn device_events(events: i16) -> i16 {
    events & (libc::POLLIN | libc::POLLERR | libc::POLLHUP | libc::POLLNVAL)
}

/// An entry of a list.
pub(crate) fn entry(fd: RawFd, events: i16) -> libc::pollfd {
    libc::pollfd { fd, events, revents: 0 }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn lists_without_devices_pass_through() {
        assert!(!has_device(&[]));
        assert!(!has_device(&[entry(0, libc::POLLIN), entry(-1, 0), entry(i32::MAX, 0)]));
    }

    #[test]
    fn waits_end_in_the_order_of_a_stack() {
        let [first, second, left] = [3, 1, 2].map(|length| begin(vec![entry(-1, 0); length]));
        assert_eq!((left.list.len(), second.list.len()), (2, 1));
        assert_eq!(end(second).len(), 1, "and not the one that was left");
        assert_eq!(end(first).len(), 3);
    }

    #[test]
    fn a_device_reports_only_that_it_is_readable() {
        assert_eq!(device_events(libc::POLLIN | libc::POLLRDNORM), libc::POLLIN);
        assert_eq!(device_events(libc::POLLRDNORM), 0);
        assert_eq!(device_events(libc::POLLHUP), libc::POLLHUP);
    }
}
