//! `poll(2)` and `ppoll(2)`: each device in the list gives its place to the calling thread's own descriptor.
//! Facts: contract POL-01 to POL-04.

use std::os::fd::RawFd;
use std::sync::Arc;

use crate::file::OpenFile;
use crate::table;

/// A list in which the calling thread's own descriptors stand for devices.
#[derive(Debug)]
pub struct Replaced {
    list: Vec<libc::pollfd>,
    /// Positions of the devices.
    places: Vec<usize>,
    /// Keeps the descriptors open.
    _files: Vec<Arc<OpenFile>>,
}

impl Replaced {
    /// The list to wait for in place of the program's; `None` if it names no device.
    #[must_use]
    pub fn new(list: &[libc::pollfd]) -> Option<Self> {
        if !list.iter().any(|entry| table::has(entry.fd)) {
            return None;
        }
        let mut replaced = Self { list: list.to_vec(), places: Vec::new(), _files: Vec::new() };
        for (place, entry) in replaced.list.iter_mut().enumerate() {
            let Some(file) = table::find(entry.fd) else { continue };
            // A device of the parent, or one without a descriptor left, stays never readable.
            let Ok(own) = file.poll_descriptor() else { continue };
            entry.fd = own;
            replaced.places.push(place);
            replaced._files.push(file);
        }
        Some(replaced)
    }

    /// The list for the C library.
    pub fn list(&mut self) -> &mut [libc::pollfd] {
        &mut self.list
    }

    /// Stores the answers in the program's list. Returns how many entries have one.
    #[must_use]
    pub fn answer(self, list: &mut [libc::pollfd]) -> usize {
        for (entry, answered) in list.iter_mut().zip(&self.list) {
            entry.revents = answered.revents;
        }
        for place in self.places {
            if let Some(entry) = list.get_mut(place) {
                entry.revents = device_events(entry.revents);
            }
        }
        list.iter().filter(|entry| entry.revents != 0).count()
    }
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
        assert!(Replaced::new(&[]).is_none());
        assert!(Replaced::new(&[entry(0, libc::POLLIN), entry(-1, 0), entry(i32::MAX, 0)]).is_none());
    }

    #[test]
    fn a_device_reports_only_that_it_is_readable() {
        assert_eq!(device_events(libc::POLLIN | libc::POLLRDNORM), libc::POLLIN);
        assert_eq!(device_events(libc::POLLRDNORM), 0);
        assert_eq!(device_events(libc::POLLHUP), libc::POLLHUP);
    }
}
