//! Answers to what supervised threads ask: devices are mapped, copied, waited for and used here; everything else goes on in
//! the kernel.
//! Not here: calls with a path (`paths`), ioctls (`ioctl`), which calls ask (`rules`), the threads that answer (`worker`).

use std::io;
use std::os::fd::{AsFd, OwnedFd};
use std::sync::Arc;

use embedded::Settings;
use embedded::device_path::{Found, Paths};
use sys::call;
use sys::errno::{EBADF, EINVAL, EMFILE, EPERM};
use sys::notification::{Notification, Place};
use sys::other_process::OtherProcess;

use crate::Report;
use crate::calls::{Calls, Current};
use crate::device::Device;
use crate::ioctl::{Caller, End, Given, Kept};
use crate::path_only::PathOnly;
use crate::procfs;
use crate::registry::Registry;
use crate::rules::{Copied, Look, Question, Wait, question};

/// Most descriptors of one wait that are looked at.
const WAITS_MAX: u64 = 1024;
/// Looks for a mapping that its thread is about to make, and the pause between them.
const LOOKS: u32 = 200;
const PAUSE: std::time::Duration = std::time::Duration::from_micros(50);

/// State that the answers need.
#[derive(Debug)]
pub(crate) struct Supervisor {
    pub(crate) calls: Arc<Calls>,
    pub(crate) registry: Arc<Registry>,
    pub(crate) path_only: PathOnly,
    pub(crate) directory: std::path::PathBuf,
    pub(crate) paths: Paths,
    pub(crate) settings: Settings,
    pub(crate) report: Report,
}

/// A supervised thread as its worker knows it.
#[derive(Debug)]
pub(crate) struct Asker {
    thread: i32,
    process: Option<Arc<OtherProcess>>,
    /// Devices that it waited for when it asked last.
    waits_for: Vec<Arc<Device>>,
    /// Returns that it missed, and of which device.
    kept: Option<(Arc<Device>, Kept)>,
    /// Returns that it got by its last ioctl, unless the answer was lost.
    given: Option<Given>,
    /// The call that a signal took it out of.
    left: Option<Notification>,
    /// Number of its last call.
    last: Option<u64>,
}

impl Asker {
    pub(crate) fn new(thread: i32) -> Self {
        Self { thread, process: None, waits_for: Vec::new(), kept: None, given: None, left: None, last: None }
    }

    /// True if nothing would be lost without it.
    pub(crate) fn is_idle(&self) -> bool {
        self.kept.is_none() && self.waits_for.is_empty()
    }

    /// True if a call was made before the last one: it was received by a thread that was held up, and its own has left it.
    fn is_past(&mut self, id: u64) -> bool {
        // The kernel counts on from a random number.
        let is_past = self.last.is_some_and(|last| id.wrapping_sub(last) > u64::MAX / 2);
        if !is_past {
            self.last = Some(id);
        }
        is_past
    }

    /// Its process, as of this call: a number may be another's by now.
    fn process(&mut self) -> io::Result<Arc<OtherProcess>> {
        let own = |process: &&Arc<OtherProcess>| {
            process.is_alive() && procfs::has_thread(process.pid(), self.thread)
        };
        if let Some(process) = self.process.as_ref().filter(own) {
            return Ok(process.clone());
        }
        // What was kept was for a thread that is gone.
        (self.kept, self.given, self.left) = (None, None, None);
        self.waits_for.clear();
        let process = Arc::new(OtherProcess::open(procfs::process_of(self.thread)?)?);
        self.process = Some(process.clone());
        Ok(process)
    }
}

pub(crate) fn errno_of(error: &io::Error) -> i32 {
    sys::errno::number(error).unwrap_or(EINVAL)
}

impl Supervisor {
    /// True if a call is none of ours, as can be told at once.
    pub(crate) fn is_foreign(&self, asked: &Notification) -> bool {
        match question(asked) {
            None => true,
            Some(Question::Open { folder, path, .. }) => self.is_machines(asked.thread, folder, path),
            Some(Question::Look(Look { folder, path: Some(path), .. })) => {
                self.is_machines(asked.thread, folder, path)
            }
            Some(Question::Ioctl { request, .. }) if request == abi::codes::ioctl::CTL_ADD => false,
            Some(_) => !self.is_any_open(),
        }
    }

    /// True if a program may have a descriptor of ours.
    pub(crate) fn is_any_open(&self) -> bool {
        !self.registry.is_empty() || !self.path_only.is_empty()
    }

    /// A thread asks no more, for a while or for good.
    pub(crate) fn leave(&self, asker: Asker) {
        asker.waits_for.iter().for_each(|device| device.end_wait(asker.thread));
    }

    /// Answers a call.
    pub(crate) fn answer(&self, asker: &mut Asker, asked: &Notification) {
        let id = asked.id;
        if asker.is_past(id) {
            return;
        }
        let process = asker.process();
        for device in asker.waits_for.drain(..) {
            device.end_wait(asker.thread);
        }
        let (Ok(process), Some(question)) = (process, question(asked)) else { return self.go_on(id) };
        self.registry.settle(|device| {
            let own = device.program.process().pid() == process.pid();
            own && device.settle(&self.calls.listener, id, asker.thread, &process)
        });
        let current = Current { id, process: process.clone(), exchange: None, waits_here: false };
        self.calls.set(asker.thread, current);
        match question {
            Question::Open { folder, path, flags } => {
                self.open(asker.thread, &process, id, (folder, path, flags));
            }
            Question::Look(look) => self.look(asker.thread, &process, id, look),
            Question::Flags { number } => self.flags(&process, id, number),
            Question::Map { number, size, protection } => {
                self.map(asker, &process, id, (number, size, protection));
            }
            Question::Copy { number, to } => self.copy(&process, id, number, to),
            Question::Wait(wait) => {
                asker.waits_for = self.waited_for(&process, wait);
                for device in &asker.waits_for {
                    let has_kept = asker.kept.as_ref().is_some_and(|(from, _)| Arc::ptr_eq(from, device));
                    // A thread without a descriptor of the driver sees nothing to read.
                    let _ = self.registry.begin_wait(device, asker.thread, has_kept);
                }
                self.go_on(id);
            }
            Question::Ioctl { number, request, argument } => {
                self.ioctl(asker, &process, asked, (number, request, argument));
            }
        }
        self.calls.end(asker.thread);
    }

    pub(crate) fn go_on(&self, id: u64) {
        // A thread that has left its call needs no answer; so in all of these.
        let _ = self.calls.listener.go_on(id);
    }

    pub(crate) fn refuse(&self, id: u64, errno: i32) {
        let _ = self.calls.listener.answer(id, Err(errno));
    }

    /// Answers with a descriptor.
    pub(crate) fn give(&self, id: u64, end: OwnedFd, place: Place) {
        // A signal in the middle would answer without the descriptor.
        let _signals = sys::held_signals::HeldSignals::hold();
        match self.calls.listener.answer_with(id, end.as_fd(), place) {
            Err(error) if error.raw_os_error() == Some(EMFILE) => self.refuse(id, EMFILE),
            Err(error) if self.calls.listener.is_valid(id) => self.refuse(id, errno_of(&error)),
            _ => {}
        }
    }

    pub(crate) fn device(&self, process: &OtherProcess, number: i32) -> Option<(Arc<Device>, OwnedFd)> {
        let fd = process.descriptor(number).ok()?;
        Some((self.registry.find(fd.as_fd())?, fd))
    }

    /// The path of a descriptor that may only be looked at.
    pub(crate) fn path_only(&self, process: &OtherProcess, number: i32) -> Option<Found> {
        self.path_only.find(process.descriptor(number).ok()?.as_fd())
    }

    fn flags(&self, process: &OtherProcess, id: u64, number: i32) {
        let Some((device, fd)) = self.device(process, number) else {
            return match self.path_only(process, number) {
                Some(_) => _ = self.calls.listener.answer(id, Ok(call::O_PATH.into())),
                None => self.go_on(id),
            };
        };
        let nonblocking = sys::descriptor::is_nonblocking(fd.as_fd()).unwrap_or(false);
        let flags = device.opened.access | if nonblocking { call::O_NONBLOCK } else { 0 };
        let _ = self.calls.listener.answer(id, Ok(flags.into()));
    }

    fn copy(&self, process: &OtherProcess, id: u64, number: i32, to: Copied) {
        let Some((device, fd)) = self.device(process, number) else { return self.go_on(id) };
        let nonblocking = sys::descriptor::is_nonblocking(fd.as_fd()).unwrap_or(false);
        let place = match to {
            // The lowest free number is the kernel's to find, and above the standard streams as a rule.
            Copied::AtLeast { least, close_on_exec } if least <= 3 => Place { number: None, close_on_exec },
            Copied::Exactly { number: other, close_on_exec } if other != number && other >= 0 => {
                Place { number: Some(other), close_on_exec }
            }
            _ => return self.go_on(id),
        };
        match self.registry.add_end(&device, nonblocking) {
            Ok(end) => self.give(id, end, place),
            Err(error) => self.refuse(id, errno_of(&error)),
        }
    }

    fn map(
        &self,
        asker: &Asker,
        process: &OtherProcess,
        id: u64,
        (number, size, protection): (i32, u64, u64),
    ) {
        let Some((device, pipe)) = self.device(process, number) else { return self.go_on(id) };
        if device.program.process().pid() != process.pid() {
            return self.refuse(id, EINVAL);
        }
        if protection & call::PROT_WRITE as u64 != 0 {
            return self.refuse(id, EPERM);
        }
        let place =
            Place { number: Some(number), close_on_exec: procfs::closes_on_exec(process.pid(), number) };
        let memory = match device.begin_map(size, asker.thread, pipe, place) {
            Ok((memory, key)) => {
                self.registry.add_memory(&device, key);
                memory
            }
            Err(error) => return self.refuse(id, errno_of(&error)),
        };
        if self.calls.listener.install(id, memory.as_fd(), place).is_err() {
            return self.refuse(id, EMFILE);
        }
        drop(memory);
        self.go_on(id);
        // So that the program can be called at once; otherwise its next call finds the mapping.
        for _ in 0..LOOKS {
            if device.look_for_mapping() {
                break;
            }
            std::thread::sleep(PAUSE);
        }
    }

    /// The devices among the descriptors that are waited for.
    fn waited_for(&self, process: &OtherProcess, wait: Wait) -> Vec<Arc<Device>> {
        let numbers: Vec<i32> = match wait {
            Wait::Epoll { number } => {
                return self.registry.of_inodes(&procfs::waited_for(process.pid(), number));
            }
            Wait::Poll { address, count } => {
                let mut entries = vec![[0_i32; 2]; count.min(WAITS_MAX) as usize];
                let bytes = zerocopy::IntoBytes::as_mut_bytes(&mut entries[..]);
                if process.read(address, bytes).is_err() {
                    return Vec::new();
                }
                entries.into_iter().map(|[number, _]| number).collect()
            }
            Wait::Select { address, count } => {
                let mut words = vec![0_u64; count.min(WAITS_MAX).div_ceil(64) as usize];
                let bytes = zerocopy::IntoBytes::as_mut_bytes(&mut words[..]);
                if process.read(address, bytes).is_err() {
                    return Vec::new();
                }
                (0..count.min(WAITS_MAX) as i32)
                    .filter(|bit| words[*bit as usize / 64] >> (bit % 64) & 1 != 0)
                    .collect()
            }
        };
        let mut found: Vec<Arc<Device>> = Vec::new();
        let of_number = |number| match self.device(process, number) {
            Some((device, _)) => vec![device],
            None if procfs::is_epoll(process.pid(), number) => {
                self.registry.of_inodes(&procfs::waited_for(process.pid(), number))
            }
            None => Vec::new(),
        };
        for device in numbers.into_iter().flat_map(of_number) {
            if !found.iter().any(|other| Arc::ptr_eq(other, &device)) {
                found.push(device);
            }
        }
        found
    }

    fn ioctl(
        &self,
        asker: &mut Asker,
        process: &Arc<OtherProcess>,
        asked: &Notification,
        (number, request, argument): (i32, u32, u64),
    ) {
        let Some((device, fd)) = self.device(process, number) else {
            return match request {
                _ if self.path_only(process, number).is_some() => self.refuse(asked.id, EBADF),
                abi::codes::ioctl::CTL_ADD => self.add_device(process, asked.id, (number, argument)),
                _ => self.go_on(asked.id),
            };
        };
        // The kernel begins a call again that a signal took its thread out of; the driver ends it (contract WR-06).
        let again = asker
            .left
            .take()
            .is_some_and(|left| (left.call, left.arguments) == (asked.call, asked.arguments));
        if again {
            return self.refuse(asked.id, sys::errno::EINTR);
        }
        let given = asker.given.take();
        let nonblocking = sys::descriptor::is_nonblocking(fd.as_fd()).unwrap_or(false);
        // A copy that stayed would hide the program's close.
        drop(fd);
        if device.follow_nonblocking(nonblocking).is_err() {
            return self.refuse(asked.id, EINVAL);
        }
        let caller = Caller {
            calls: &self.calls,
            connection: device.connection.as_thread(asker.thread),
            thread: asker.thread,
            id: asked.id,
            process,
        };
        if request == abi::codes::ioctl::WRITE_READ {
            let mut kept = match asker.kept.take() {
                Some((from, kept)) if Arc::ptr_eq(&from, &device) => kept,
                other => {
                    asker.kept = other;
                    Kept::default()
                }
            };
            let ended = caller.exchange(argument, &mut kept, given);
            if !kept.is_empty() {
                asker.kept = Some((device.clone(), kept));
            }
            match ended {
                End::Answered(given) => asker.given = given,
                End::Refused(errno) => self.refuse(asked.id, errno),
                End::Abandoned => asker.left = Some(*asked),
            }
        } else {
            let _ = self.calls.listener.answer(asked.id, caller.request(request, argument));
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_call_that_was_made_before_another_is_past() {
        let mut asker = Asker::new(1);
        let past: Vec<_> = [u64::MAX - 1, 0, u64::MAX, 1].map(|id| asker.is_past(id)).into();
        assert_eq!(past, [false, false, true, false]);
    }
}
