//! `select(2)` and `pselect(2)` with devices in the sets, as a `poll(2)`: a stand-in's number may not fit a set.
//! Facts: `select(2)`, "Correspondence between select() and poll() notifications".

use std::os::fd::RawFd;

use crate::polling::entry;
use crate::{members, table};

/// Events that make a descriptor readable, writable and exceptional, in the order of `select`'s sets.
const EVENTS: [i16; 3] = [libc::POLLIN, libc::POLLOUT, libc::POLLPRI];
/// Events that a set reports.
const REPORTED: [i16; 3] = [
    libc::POLLIN | libc::POLLRDNORM | libc::POLLRDBAND | libc::POLLHUP | libc::POLLERR,
    libc::POLLOUT | libc::POLLWRNORM | libc::POLLWRBAND | libc::POLLERR,
    libc::POLLPRI,
];

/// Word of a set, as the C library declares it.
pub type Word = libc::c_ulong;
const BITS: usize = Word::BITS as usize;

/// The three sets of a `select`, each with a bit for a descriptor; `None` where the program gave none.
pub type Sets<'s> = [Option<&'s mut [Word]>; 3];

/// Number of words for descriptors below `count`; `None` if no set can have so many.
#[must_use]
pub fn words(count: i32) -> Option<usize> {
    usize::try_from(count).ok().map(|count| count.div_ceil(BITS)).filter(|_| count <= members::LIMIT)
}

fn is_in(set: Option<&[Word]>, fd: RawFd) -> bool {
    set.and_then(|set| set.get(fd as usize / BITS)).is_some_and(|word| word >> (fd as usize % BITS) & 1 != 0)
}

/// The descriptors below `count` in the sets, as a list for `poll`; `None` if no device is among them.
#[must_use]
pub fn as_list(count: i32, sets: &Sets<'_>) -> Option<Vec<libc::pollfd>> {
    let events_of = |fd| {
        let asked = sets.iter().zip(EVENTS).filter(|(set, _)| is_in(set.as_deref(), fd));
        asked.fold(0, |all, (_, events)| all | events)
    };
    let has_device = (0..count).any(|fd| table::has(fd) && events_of(fd) != 0);
    has_device
        .then(|| (0..count).map(|fd| entry(fd, events_of(fd))).filter(|entry| entry.events != 0).collect())
}

/// Stores the answers of a list in the sets. Returns how many bits are set; `None` if a descriptor is not open.
#[must_use]
pub fn answer(list: &[libc::pollfd], sets: &mut Sets<'_>) -> Option<usize> {
    if list.iter().any(|entry| entry.revents & libc::POLLNVAL != 0) {
        return None;
    }
    let mut count = 0;
    for ((set, asked), reported) in sets.iter_mut().zip(EVENTS).zip(REPORTED) {
        let Some(set) = set else { continue };
        set.fill(0);
        for entry in list.iter().filter(|entry| entry.events & asked != 0 && entry.revents & reported != 0) {
            if let Some(word) = set.get_mut(entry.fd as usize / BITS) {
                *word |= 1 << (entry.fd as usize % BITS);
                count += 1;
            }
        }
    }
    Some(count)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn answers_go_back_into_their_sets() {
        let first_of_second = BITS as RawFd;
        let (mut read, mut write): ([Word; 2], [Word; 2]) = ([0b1000, 1], [0b1000, 0]);
        let mut sets: Sets<'_> = [Some(&mut read), Some(&mut write), None];
        assert!(as_list(2 * first_of_second, &sets).is_none(), "no device");
        let mut list = [entry(3, libc::POLLIN | libc::POLLOUT), entry(first_of_second, libc::POLLIN)];
        list[0].revents = libc::POLLHUP;
        list[1].revents = libc::POLLIN;
        assert_eq!(answer(&list, &mut sets), Some(2));
        assert_eq!((read, write), ([0b1000, 1], [0, 0]));
        list[0].revents = libc::POLLNVAL;
        assert_eq!(answer(&list, &mut [None, None, None]), None);
    }

    #[test]
    fn a_count_of_descriptors_is_checked() {
        let more = Word::BITS as i32 + 1;
        assert_eq!((words(0), words(1), words(more)), (Some(0), Some(1), Some(2)));
        assert_eq!((words(-1), words(i32::MAX)), (None, None));
    }
}
