//! A binder device that a program has open: the context, the descriptors that stand for it, its receiving area.
//!
//! Each descriptor in the program is the reading end of a pipe of its own. The kernel keeps the truth about it: a copy,
//! a fork or an exec is a matter of the program's descriptor table, and when the last copy is closed the writing end
//! here hangs up. The pipe holds a byte while a thread that waits for it would find something to read.
//!
//! Not here: how the program asks for each step (`answer`).

use std::collections::HashMap;
use std::fs::{File, OpenOptions};
use std::io::{self, Read, Write};
use std::os::fd::{AsFd, AsRawFd, OwnedFd};
use std::os::unix::fs::OpenOptionsExt;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use driver::Connection;
use embedded::device_path::Found;
use embedded::{Area, EmbeddedConnection};
use sys::errno::{EBUSY, EINVAL};
use sys::file_key::FileKey;
use sys::notification::{Listener, Place};

use crate::calls::Program;
use crate::procfs;
use crate::rules;

/// An open device.
#[derive(Debug)]
pub(crate) struct Device {
    pub(crate) connection: EmbeddedConnection,
    pub(crate) program: Arc<Program>,
    pub(crate) opened: Opened,
    state: Mutex<State>,
    /// No descriptor of it is left.
    closed: AtomicBool,
}

/// The path and the way in which a device was opened.
#[derive(Clone, Debug)]
pub(crate) struct Opened {
    /// The context's name.
    pub(crate) name: String,
    /// The path without links.
    pub(crate) path: String,
    /// `O_RDWR` and the like.
    pub(crate) access: i32,
}

impl Opened {
    /// The file of the driver's that it was.
    pub(crate) fn found(&self) -> Found {
        Found::Device { path: self.path.clone(), name: self.name.clone() }
    }
}

#[derive(Debug, Default)]
struct State {
    ends: Vec<End>,
    nonblocking: bool,
    mapping: Mapping,
    /// Threads that waited for it.
    pollers: HashMap<i32, Poller>,
}

/// A thread that waits for the device, or did.
#[derive(Debug)]
struct Poller {
    /// Shows the readiness of the thread.
    fd: OwnedFd,
    waits: bool,
    /// Returns are kept for it, which it reads next.
    has_kept: bool,
}

impl Poller {
    fn is_readable(&self) -> bool {
        // Hung up: the broker is gone, and a read says so.
        let shown =
            || sys::seqpacket::poll(self.fd.as_fd(), 0).is_ok_and(|seen| seen.readable || seen.hung_up);
        self.waits && (self.has_kept || shown())
    }
}

/// Writing end of a pipe whose reading end the program has.
#[derive(Debug)]
struct End {
    writer: File,
    key: FileKey,
    readable: bool,
}

impl End {
    fn set_readable(&mut self, readable: bool) {
        if self.readable == readable {
            return;
        }
        self.readable = readable;
        // Nothing waits here: a byte fits an empty pipe, and a program that took it is served as before.
        let _ = match readable {
            true => self.writer.write_all(&[1]),
            false => self.drain(),
        };
    }

    /// Takes the byte out, by a reading end that exists only meanwhile: one that stayed would hide the program's close.
    fn drain(&self) -> io::Result<()> {
        reopen(self.writer.as_raw_fd(), sys::call::O_NONBLOCK)?.read_exact(&mut [0])
    }
}

fn reopen(number: i32, flags: i32) -> io::Result<File> {
    OpenOptions::new().read(true).custom_flags(flags).open(format!("/proc/self/fd/{number}"))
}

/// The receiving area's way into the program.
#[derive(Debug, Default)]
enum Mapping {
    #[default]
    None,
    /// The program's own `mmap` is under way or over: its descriptor is the area's memory instead of the pipe.
    UnderWay(Box<UnderWay>),
    /// Mapped, or was.
    Done,
}

#[derive(Debug)]
struct UnderWay {
    /// Taken out once it is mapped.
    area: Option<Area>,
    memory: FileKey,
    /// The pipe's reading end, to take its number again.
    pipe: OwnedFd,
    place: Place,
    /// The thread that maps.
    thread: i32,
}

impl Device {
    pub(crate) fn new(connection: EmbeddedConnection, program: Arc<Program>, opened: Opened) -> Self {
        Self { connection, program, opened, state: Mutex::default(), closed: AtomicBool::new(false) }
    }

    fn lock(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Makes another descriptor for the program; `watch` is told of the end whose hang-up is the program's close.
    pub(crate) fn add_end(
        &self,
        nonblocking: bool,
        watch: impl FnOnce(&File) -> io::Result<()>,
    ) -> io::Result<OwnedFd> {
        let (reader, writer) = sys::descriptor::nonblocking_pipe()?;
        sys::descriptor::set_nonblocking(reader.as_fd(), nonblocking)?;
        let key = FileKey::of(reader.as_fd())?;
        // Among the ends first: the hang-up may come at once.
        let mut state = self.lock();
        watch(&writer)?;
        state.ends.push(End { writer, key, readable: false });
        drop(state);
        self.show_readiness();
        Ok(reader.into())
    }

    /// True if the program's `mmap` is under way.
    pub(crate) fn is_mapping(&self) -> bool {
        matches!(self.lock().mapping, Mapping::UnderWay(_))
    }

    /// A descriptor's last copy is closed.
    pub(crate) fn remove_end(&self, key: FileKey) {
        let mut state = self.lock();
        state.ends.retain(|end| end.key != key);
        let last = state.ends.is_empty();
        drop(state);
        self.closed.fetch_or(last, Ordering::Relaxed);
        // Each close does (contract EXT-07), so that no thread waits with what is closed.
        let _ = self.connection.wake_readers();
    }

    /// True if no descriptor is left.
    pub(crate) fn is_closed(&self) -> bool {
        self.closed.load(Ordering::Relaxed)
    }

    /// Follows `O_NONBLOCK` of the descriptor that is used (contract WR-04).
    pub(crate) fn follow_nonblocking(&self, on: bool) -> io::Result<()> {
        let mut state = self.lock();
        if state.nonblocking != on {
            state.nonblocking = on;
            self.connection.set_nonblocking(on)?;
        }
        Ok(())
    }

    /// Shows the readiness of the waiting threads at all descriptors.
    pub(crate) fn show_readiness(&self) {
        let mut state = self.lock();
        let readable = state.pollers.values().any(Poller::is_readable);
        state.ends.iter_mut().for_each(|end| end.set_readable(readable));
    }

    /// A thread begins to wait for the device, for which returns are kept or not; `watch` is told of a descriptor to watch
    /// for it.
    pub(crate) fn begin_wait(
        &self,
        thread: i32,
        has_kept: bool,
        watch: impl FnOnce(&OwnedFd) -> io::Result<()>,
    ) -> io::Result<()> {
        let known = match self.lock().pollers.get_mut(&thread) {
            Some(poller) => {
                (poller.waits, poller.has_kept) = (true, has_kept);
                // Brings it up to date at once: what came a moment ago is taken in by the driver's own thread later.
                let _ = self.connection.as_thread(thread).poll_descriptor();
                // Hung up by BINDER_THREAD_EXIT.
                !sys::seqpacket::poll(poller.fd.as_fd(), 0).is_ok_and(|seen| seen.hung_up)
            }
            None => false,
        };
        if !known {
            let fd = self.connection.as_thread(thread).poll_descriptor()?;
            // After the end of the broker no news come.
            if !sys::seqpacket::poll(fd.as_fd(), 0).is_ok_and(|seen| seen.hung_up) {
                watch(&fd)?;
            }
            self.lock().pollers.insert(thread, Poller { fd, waits: true, has_kept });
        }
        // Others may have come back from their wait without asking for anything since (contract POL-04).
        for (other, poller) in &mut self.lock().pollers {
            poller.waits &= *other == thread || procfs::sleeps_in(*other).is_none_or(rules::is_wait);
        }
        self.show_readiness();
        Ok(())
    }

    /// A thread does something else than wait.
    pub(crate) fn end_wait(&self, thread: i32) {
        if let Some(poller) = self.lock().pollers.get_mut(&thread) {
            poller.waits = false;
        }
        self.show_readiness();
    }

    /// Prepares the program's own `mmap` of the descriptor at `place`, whose pipe is `pipe`. Returns the memory to be
    /// put there, and its identity.
    pub(crate) fn begin_map(
        &self,
        size: u64,
        thread: i32,
        pipe: OwnedFd,
        place: Place,
    ) -> io::Result<(File, FileKey)> {
        let mut state = self.lock();
        if !matches!(state.mapping, Mapping::None) {
            return Err(io::Error::from_raw_os_error(EBUSY));
        }
        let size = usize::try_from(size).map_err(|_| io::Error::from_raw_os_error(EINVAL))?;
        let area = self.connection.area(size)?;
        // Open for reading only: the mapping cannot be made writable (contract OPN-03).
        let memory = reopen(area.as_fd().as_raw_fd(), 0)?;
        let key = FileKey::of(memory.as_fd())?;
        state.mapping =
            Mapping::UnderWay(Box::new(UnderWay { area: Some(area), memory: key, pipe, place, thread }));
        Ok((memory, key))
    }

    /// Looks whether the program has mapped the area, and receives into it from then on.
    pub(crate) fn look_for_mapping(&self) -> bool {
        let mut state = self.lock();
        let Mapping::UnderWay(under_way) = &mut state.mapping else { return true };
        if under_way.area.is_none() {
            return true;
        }
        let Some(base) = procfs::mapped_at(self.program.process().pid(), under_way.memory) else {
            return false;
        };
        let Some(area) = under_way.area.take() else { return true };
        // Fails without memory only; the program cannot be called then.
        self.connection.adopt(area, base).is_ok()
    }

    /// Puts the pipe back, once the `mmap` is over: `thread` of the program, or of its child, waits in call `id`.
    /// True if this call ended it.
    pub(crate) fn settle(
        &self,
        listener: &Listener,
        id: u64,
        thread: i32,
        process: &sys::other_process::OtherProcess,
    ) -> bool {
        let mapped = self.look_for_mapping();
        let mut state = self.lock();
        let Mapping::UnderWay(under_way) = &state.mapping else { return false };
        if !mapped && thread != under_way.thread {
            return false;
        }
        let UnderWay { memory, pipe, place, .. } = &**under_way;
        let number = place.number.unwrap_or(-1);
        let there = process.descriptor(number).and_then(|fd| FileKey::of(fd.as_fd()));
        // A program that closed it meanwhile may have something else there.
        if there.is_ok_and(|there| there == *memory) && listener.install(id, pipe.as_fd(), *place).is_err() {
            return false;
        }
        // An area that the kernel refused to map cannot be mapped later, either.
        state.mapping = Mapping::Done;
        true
    }

    /// Gives up an `mmap` under way of a program that is gone; true if this call ended it.
    pub(crate) fn forget_mapping_of_dead(&self) -> bool {
        let mut state = self.lock();
        let gone = !self.program.process().is_alive();
        let ends = gone && matches!(state.mapping, Mapping::UnderWay(_));
        if ends {
            state.mapping = Mapping::Done;
        }
        ends
    }
}
