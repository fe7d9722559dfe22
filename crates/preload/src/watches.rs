//! Devices in epoll sets, each represented by a descriptor of the thread that added it.
//! Facts: `epoll(7)`, questions 2 and 6.

use std::ops::RangeInclusive;
use std::os::fd::{AsRawFd, OwnedFd, RawFd};

use crate::members::Members;

/// Sets with a device in them.
static SETS: Members = Members::new();

/// A device in a set. Dropping it takes it out.
#[derive(Debug)]
pub struct Watch {
    set: RawFd,
    device: RawFd,
    stand_in: OwnedFd,
}

impl Drop for Watch {
    fn drop(&mut self) {
        // Fails if the set is gone: then nothing is left to do.
        let _ = sys::epoll::take_out(self.set, self.stand_in.as_raw_fd());
    }
}

/// The devices in all sets.
#[derive(Debug)]
pub(crate) struct Watches(Vec<Watch>);

impl Watches {
    pub(crate) const fn new() -> Self {
        Self(Vec::new())
    }

    /// The stand-in for a device in a set.
    pub(crate) fn stand_in(&self, set: RawFd, device: RawFd) -> Option<RawFd> {
        let watch = self.0.iter().find(|watch| watch.set == set && watch.device == device)?;
        Some(watch.stand_in.as_raw_fd())
    }

    /// Notes that a set has a device, by its stand-in, whose number is returned.
    pub(crate) fn add(&mut self, set: RawFd, device: RawFd, stand_in: OwnedFd) -> RawFd {
        let number = stand_in.as_raw_fd();
        SETS.set(set, true);
        self.0.push(Watch { set, device, stand_in });
        number
    }

    /// Takes a device out of a set.
    pub(crate) fn remove(&mut self, set: RawFd, device: RawFd) -> Vec<Watch> {
        self.take(|watch| watch.set == set && watch.device == device)
    }

    fn take(&mut self, goes: impl Fn(&Watch) -> bool) -> Vec<Watch> {
        let (gone, kept) = std::mem::take(&mut self.0).into_iter().partition(|watch| goes(watch));
        self.0 = kept;
        gone
    }

    /// Takes out what is in sets of these numbers.
    pub(crate) fn of_sets(&mut self, sets: &RangeInclusive<RawFd>) -> Vec<Watch> {
        let gone = self.take(|watch| sets.contains(&watch.set));
        gone.iter().for_each(|watch| SETS.set(watch.set, false));
        gone
    }

    /// Forgets all in a forked child: the sets are the parent's, too, and keep what they have.
    pub(crate) fn leave_to_parent(&mut self) {
        std::mem::take(&mut self.0).into_iter().for_each(std::mem::forget);
    }

    /// Takes out the device of a number, from all sets.
    pub(crate) fn of_device(&mut self, device: RawFd) -> Vec<Watch> {
        self.take(|watch| watch.device == device)
    }
}

/// True if a descriptor is a set with a device in it, or was one.
#[must_use]
pub(crate) fn has(set: RawFd) -> bool {
    SETS.has(set)
}
