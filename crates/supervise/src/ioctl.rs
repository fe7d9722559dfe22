//! The ioctls of a supervised thread, from its memory to the driver and back.
//! Not here: which device is meant (`answer`).
//! Facts: contract sections 2 and 3.

use std::io;
use std::mem::offset_of;
use std::sync::Arc;

use abi::codes::{ReturnWord, br, ioctl};
use abi::layout::{
    ExtendedError, FlatBinderObject, FreezeInfo, FrozenStatusInfo, NodeDebugInfo, NodeInfoForRef, WriteRead,
};
use driver::Connection;
use driver::connection::Exchange;
use embedded::EmbeddedConnection;
use sys::errno::{EAGAIN, EFAULT, EINTR, EINVAL};
use sys::other_process::OtherProcess;
use zerocopy::{FromBytes, Immutable, IntoBytes};

use crate::calls::{Calls, Current};

/// Most bytes of commands that are copied at once, and most room for returns that is used.
const PART: u64 = 64 << 10;

fn errno_of(error: &io::Error) -> i32 {
    sys::errno::number(error).unwrap_or(sys::errno::EIO)
}

/// End of an exchange.
#[derive(Debug, PartialEq, Eq)]
pub(crate) enum End {
    /// It is answered, perhaps with returns.
    Answered(Option<Given>),
    /// It is to be answered with this errno; nothing was done.
    Refused(i32),
    /// A signal took the thread out of it: nothing is to be answered.
    Abandoned,
}

/// Returns that a thread did not get, because a signal came between them and the answer: it reads them next.
#[derive(Debug, Default)]
pub(crate) struct Kept(Vec<u8>);

impl Kept {
    /// Keeps returns again that were handed over and not taken, before the others.
    fn put_back(&mut self, returns: &[u8]) {
        self.0.splice(0..0, returns.iter().copied());
    }

    /// True if there are none.
    pub(crate) fn is_empty(&self) -> bool {
        self.0.is_empty()
    }
}

/// Returns that a thread was given. The kernel drops an answer, and calls it sent, if a signal has just taken the thread
/// out of its call: then the thread asks again with the structure as the answer left it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Given {
    argument: u64,
    structure: [u8; size_of::<WriteRead>()],
}

impl Given {
    fn new(argument: u64, structure: WriteRead) -> Self {
        Self { argument, structure: zerocopy::transmute!(structure) }
    }
}

/// A supervised thread in an ioctl.
pub(crate) struct Caller<'c> {
    pub(crate) calls: &'c Calls,
    pub(crate) connection: EmbeddedConnection,
    pub(crate) thread: i32,
    pub(crate) id: u64,
    pub(crate) process: &'c Arc<OtherProcess>,
}

impl Caller<'_> {
    fn get<T: FromBytes + IntoBytes>(&self, address: u64) -> Result<T, i32> {
        let mut value = T::new_zeroed();
        self.process.read(address, value.as_mut_bytes()).map_err(|_| EFAULT)?;
        Ok(value)
    }

    fn put<T: IntoBytes + Immutable>(&self, address: u64, value: &T) -> Result<(), i32> {
        self.process.write(address, value.as_bytes()).map_err(|_| EFAULT)
    }

    /// Carries out an ioctl other than `BINDER_WRITE_READ`.
    pub(crate) fn request(&self, request: u32, argument: u64) -> Result<i64, i32> {
        let connection = &self.connection;
        let failed = |error: io::Error| errno_of(&error);
        match request {
            ioctl::VERSION => {
                let version = connection.version().map_err(failed)?;
                // The C driver's answer for a null pointer (contract OPN-02).
                self.put(argument, &version).map_err(|_| EINVAL)?;
            }
            ioctl::SET_MAX_THREADS => {
                connection.set_max_threads(self.get(argument).map_err(|_| EINVAL)?).map_err(failed)?;
            }
            ioctl::SET_CONTEXT_MGR => connection.become_context_manager(None).map_err(failed)?,
            ioctl::SET_CONTEXT_MGR_EXT => {
                let node: FlatBinderObject = self.get(argument).map_err(|_| EINVAL)?;
                connection.become_context_manager(Some(node)).map_err(failed)?;
            }
            ioctl::THREAD_EXIT => connection.thread_exit().map_err(failed)?,
            ioctl::GET_NODE_DEBUG_INFO => {
                let info: NodeDebugInfo = self.get(argument)?;
                self.put(argument, &connection.node_debug_info(info.ptr).map_err(failed)?)?;
            }
            ioctl::GET_NODE_INFO_FOR_REF => {
                let info: NodeInfoForRef = self.get(argument)?;
                self.put(argument, &connection.node_info_for_ref(info).map_err(failed)?)?;
            }
            ioctl::FREEZE => {
                let info: FreezeInfo = self.get(argument)?;
                self.begin(None);
                let frozen = connection.freeze(info).map_err(failed);
                self.calls.set_waiting(self.thread, false);
                frozen?;
                if info.enable != 0 && !self.is_there() {
                    // Nobody learns that it is frozen.
                    connection.freeze(FreezeInfo { enable: 0, ..info }).map_err(failed)?;
                }
            }
            ioctl::GET_FROZEN_INFO => {
                let info: FrozenStatusInfo = self.get(argument)?;
                self.put(argument, &connection.frozen_info(info.pid).map_err(failed)?)?;
            }
            ioctl::ENABLE_ONEWAY_SPAM_DETECTION => {
                let enable: u32 = self.get(argument)?;
                connection.enable_oneway_spam_detection(enable != 0).map_err(failed)?;
            }
            ioctl::GET_EXTENDED_ERROR => {
                let error: ExtendedError = connection.extended_error().map_err(failed)?;
                self.put(argument, &error)?;
            }
            _ => return Err(EINVAL),
        }
        Ok(0)
    }

    /// Carries out a `BINDER_WRITE_READ`, and answers it. `given`: what the thread got by its ioctl before.
    pub(crate) fn exchange(&self, argument: u64, kept: &mut Kept, given: Option<Given>) -> End {
        let Ok(asked) = self.get::<WriteRead>(argument) else { return End::Refused(EFAULT) };
        if given == Some(Given::new(argument, asked)) {
            let answered = self.calls.listener.answer(self.id, Ok(0));
            return End::Answered(given.filter(|_| answered.is_err()));
        }
        let mut now = asked;
        let at = asked.read_consumed;
        let room = asked.read_size.saturating_sub(at).min(PART);
        // The driver asks of what was filled before only whether it is nothing, the filler, or more.
        let before = at.min(8) as usize;
        let mut bytes = vec![0; if room > 0 { before + room as usize } else { 0 }];
        let mut filled = before;
        let result = self.transfer(argument, &mut now, (&mut bytes, &mut filled), kept);
        if result == Err(EINTR) && !self.is_there() {
            return End::Abandoned;
        }
        // After a bad command the read part is skipped (contract WR-11).
        let new = bytes.get(before..filled).unwrap_or_default();
        if result == Err(EAGAIN) && before == 0 && bytes.len() >= 4 {
            // The filler is stored, and not counted (contract WR-04).
            let _ = self.process.write(asked.read_buffer, &br::NOOP.to_ne_bytes());
        }
        now.read_consumed = if filled < before { 0 } else { at + new.len() as u64 };
        let stored = self.process.write(asked.read_buffer.wrapping_add(at), new).map_err(|_| EFAULT);
        let stored = stored.and_then(|()| self.put(argument, &now));
        let answer = result.and(stored).map(|()| 0);
        if self.calls.listener.answer(self.id, answer).is_err() {
            if !new.is_empty() {
                // Without the filler, which is only at the start of a buffer.
                let filler = if at == 0 { 4.min(new.len()) } else { 0 };
                kept.put_back(&new[filler..]);
                let place = argument + offset_of!(WriteRead, read_consumed) as u64;
                // A structure that is gone by now is not asked with again, and other things may stand there.
                if self.get::<WriteRead>(argument).is_ok_and(|there| there.as_bytes() == now.as_bytes()) {
                    let _ = self.process.write(place, &at.to_ne_bytes());
                }
            }
            return End::Abandoned;
        }
        End::Answered((answer.is_ok() && !new.is_empty()).then(|| Given::new(argument, now)))
    }

    /// The driver works for the thread from now on.
    fn begin(&self, exchange: Option<(u64, u64)>) {
        let current = Current { id: self.id, process: self.process.clone(), exchange, waits_here: true };
        self.calls.set(self.thread, current);
    }

    fn is_there(&self) -> bool {
        self.calls.listener.is_valid(self.id)
    }

    /// Passes the commands and the room on, part by part; only the last one reads.
    fn transfer(
        &self,
        argument: u64,
        now: &mut WriteRead,
        (room, filled): (&mut [u8], &mut usize),
        kept: &mut Kept,
    ) -> Result<(), i32> {
        loop {
            let rest = now.write_size.saturating_sub(now.write_consumed);
            let mut part = vec![0; rest.min(PART) as usize];
            let from = now.write_buffer.wrapping_add(now.write_consumed);
            let read = if part.is_empty() { 0 } else { self.process.read_some(from, &mut part).unwrap_or(0) };
            part.truncate(read);
            if part.is_empty() && rest > 0 {
                *filled = 0;
                return Err(EFAULT);
            }
            let is_last = part.len() as u64 == rest;
            let reads = is_last && !room.is_empty() && kept.is_empty();
            let result =
                self.pass(argument, now, &part, if reads { Some((&mut *room, &mut *filled)) } else { None });
            match result {
                // The command at the end was cut off here.
                Err(errno)
                    if !is_last
                        && matches!(errno, EFAULT | EINVAL)
                        && now.write_size - now.write_consumed < rest => {}
                Err(errno) => {
                    *filled = if matches!(errno, EINTR | EAGAIN) { *filled } else { 0 };
                    return Err(errno);
                }
                Ok(()) if reads || room.is_empty() && is_last => return Ok(()),
                Ok(()) if !kept.is_empty() && is_last => {
                    hand_over(kept, room, filled);
                    return Ok(());
                }
                // A transaction failed: what is behind it stays (contract WR-12), and the failure is to be read.
                Ok(()) if now.write_size - now.write_consumed > rest - part.len() as u64 => {
                    if room.is_empty() {
                        return Ok(());
                    }
                    return self.pass(argument, now, &[], Some((room, filled)));
                }
                Ok(()) => {}
            }
        }
    }

    /// One exchange with the driver, repeated while a signal that is not the thread's interrupts it.
    fn pass(
        &self,
        argument: u64,
        now: &mut WriteRead,
        commands: &[u8],
        room: Option<(&mut [u8], &mut usize)>,
    ) -> Result<(), i32> {
        let before = now.write_consumed;
        self.begin(Some((argument, before)));
        let (mut nothing, mut none) = ([0; 0], 0);
        let (read, filled) = match room {
            Some((read, filled)) => (read, filled),
            None => (&mut nothing[..], &mut none),
        };
        let mut exchange = Exchange::new(commands, read);
        exchange.read_consumed = *filled;
        let result = loop {
            match self.connection.write_read(&mut exchange) {
                Err(error) if error.raw_os_error() == Some(EINTR) && self.is_there() => {}
                other => break other,
            }
        };
        self.calls.set_waiting(self.thread, false);
        now.write_consumed = before + exchange.write_consumed as u64;
        *filled = exchange.read_consumed;
        result.map_err(|error| errno_of(&error))
    }
}

/// Gives a thread the returns that it missed, as many as its room holds.
fn hand_over(kept: &mut Kept, room: &mut [u8], filled: &mut usize) {
    if *filled == 0 {
        let Some(place) = room.get_mut(..4) else { return };
        place.copy_from_slice(&br::NOOP.to_ne_bytes());
        *filled = 4;
    }
    let count = whole(&kept.0, room.len() - *filled);
    room[*filled..*filled + count].copy_from_slice(&kept.0[..count]);
    *filled += count;
    kept.0.drain(..count);
}

/// Number of bytes of the returns that fit into `room` bytes.
fn whole(returns: &[u8], room: usize) -> usize {
    let mut end = 0;
    while let Some(word) = returns.get(end..).and_then(<[u8]>::first_chunk) {
        let next = end + 4 + ReturnWord(u32::from_ne_bytes(*word)).payload_len();
        if next > room.min(returns.len()) {
            break;
        }
        end = next;
    }
    end
}

#[cfg(test)]
mod tests {
    use super::*;

    /// `BR_INCREFS` with its two numbers, then `BR_TRANSACTION_COMPLETE`, then `BR_NOOP`.
    fn missed() -> Vec<u8> {
        let words = [br::INCREFS, 1, 0, 2, 0, br::TRANSACTION_COMPLETE, br::NOOP];
        words.iter().flat_map(|word| word.to_ne_bytes()).collect()
    }

    #[test]
    fn returns_are_handed_over_whole_and_the_rest_is_kept() {
        let mut kept = Kept(missed());
        let mut handed = Vec::new();
        // The filler and nothing, the first return, the others.
        for (size, count) in [(3, 0), (4, 4), (4 + 19, 4), (4 + 20 + 3, 24), (64, 12)] {
            let (mut room, mut filled) = (vec![0; size], 0);
            hand_over(&mut kept, &mut room, &mut filled);
            assert_eq!(filled, count, "of {size} bytes");
            handed.extend_from_slice(room.get(4..filled).unwrap_or_default());
        }
        assert!(kept.is_empty());
        assert_eq!(handed, missed());
    }

    #[test]
    fn returns_that_were_not_taken_come_before_the_rest() {
        let mut kept = Kept(missed());
        let (mut room, mut filled) = ([0; 4 + 20], 0);
        hand_over(&mut kept, &mut room, &mut filled);
        kept.put_back(&room[4..filled]);
        assert_eq!(kept.0, missed());
    }
}
