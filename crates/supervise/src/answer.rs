//! Answers to what supervised threads ask: devices are opened, mapped, copied, waited for and used here; everything
//! else goes on in the kernel.
//! Not here: ioctls (`ioctl`), which calls ask (`rules`), the threads that answer (`worker`).

use std::io;
use std::os::fd::{AsFd, OwnedFd};
use std::sync::Arc;

use driver::OpenOptions;
use embedded::{EmbeddedConnection, EmbeddedContext, Settings, device_path};
use sys::call;
use sys::errno::{ECONNREFUSED, EINVAL, EMFILE, EPERM};
use sys::notification::{Notification, Place};
use sys::other_process::{self, OtherProcess};

use crate::Report;
use crate::calls::{Calls, Current, Program};
use crate::device::Device;
use crate::ioctl::{Caller, End, Kept};
use crate::procfs;
use crate::registry::Registry;
use crate::rules::{Copied, Flags, Question, Wait, question};

/// Longest path of a device, in bytes.
const PATH_MAX: usize = 300;
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
    pub(crate) directory: std::path::PathBuf,
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
    /// The call that a signal took it out of.
    left: Option<Notification>,
}

impl Asker {
    pub(crate) fn new(thread: i32) -> Self {
        Self { thread, process: None, waits_for: Vec::new(), kept: None, left: None }
    }

    /// Whether nothing would be lost without it.
    pub(crate) fn is_idle(&self) -> bool {
        self.kept.is_none() && self.waits_for.is_empty()
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
        (self.kept, self.left) = (None, None);
        self.waits_for.clear();
        let process = Arc::new(OtherProcess::open(procfs::process_of(self.thread)?)?);
        self.process = Some(process.clone());
        Ok(process)
    }
}

fn errno_of(error: &io::Error) -> i32 {
    sys::errno::number(error).unwrap_or(EINVAL)
}

impl Supervisor {
    /// Whether a call is none of ours, as can be told at once.
    pub(crate) fn is_foreign(&self, asked: &Notification) -> bool {
        match question(asked) {
            None => true,
            Some(Question::Open { path, .. }) => self.device_path(asked.thread, path).is_none(),
            Some(_) => self.registry.is_empty(),
        }
    }

    fn device_path(&self, thread: i32, path: u64) -> Option<String> {
        let mut bytes = [0; PATH_MAX];
        let count = other_process::read_some(thread as u32, path, &mut bytes).ok()?;
        let path = bytes[..count].split(|byte| *byte == 0).next()?;
        device_path::device(path)
    }

    /// Whether a call is under way that a signal may take its thread out of, or a mapping.
    pub(crate) fn is_busy(&self) -> bool {
        self.calls.any() || self.registry.any_unsettled()
    }

    /// A thread asks no more, for a while or for good.
    pub(crate) fn leave(&self, asker: Asker) {
        asker.waits_for.iter().for_each(|device| device.end_wait(asker.thread));
    }

    /// Answers a call.
    pub(crate) fn answer(&self, asker: &mut Asker, asked: &Notification) {
        let id = asked.id;
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
            Question::Open { path, flags } => self.open(asker, &process, id, (path, flags)),
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

    fn go_on(&self, id: u64) {
        // A thread that has left its call needs no answer; so in all of these.
        let _ = self.calls.listener.go_on(id);
    }

    fn refuse(&self, id: u64, errno: i32) {
        let _ = self.calls.listener.answer(id, Err(errno));
    }

    fn open(&self, asker: &Asker, process: &Arc<OtherProcess>, id: u64, (path, flags): (u64, Flags)) {
        let flags = match flags {
            Flags::Here(flags) => flags,
            Flags::At(address) => {
                let mut bytes = [0; 8];
                if process.read(address, &mut bytes).is_err() {
                    return self.go_on(id);
                }
                u64::from_ne_bytes(bytes)
            }
        };
        let Some(name) = self.device_path(asker.thread, path) else { return self.go_on(id) };
        let is_set = |flag: i32| flags & flag as u64 != 0;
        match self.open_device(asker.thread, process, &name) {
            Ok(device) => match self.registry.add_end(&device, is_set(call::O_NONBLOCK)) {
                Ok(end) => self.give(id, end, Place { number: None, close_on_exec: is_set(call::O_CLOEXEC) }),
                Err(error) => self.refuse(id, errno_of(&error)),
            },
            Err(why) => {
                (self.report)(&why);
                self.refuse(id, ECONNREFUSED);
            }
        }
    }

    fn open_device(
        &self,
        thread: i32,
        process: &Arc<OtherProcess>,
        name: &str,
    ) -> Result<Arc<Device>, String> {
        let context = EmbeddedContext::at(&self.directory, name, self.settings);
        let program = Program::new(process.clone(), self.calls.clone());
        let program = Arc::new(program.map_err(|error| sys::errno::describe(&error))?);
        let options = OpenOptions { map_size: 0, nonblocking: false };
        let connection = EmbeddedConnection::open_for(&context, options, program.clone(), thread);
        Ok(Arc::new(Device::new(connection.map_err(|error| error.to_string())?, program)))
    }

    /// Answers with a descriptor.
    fn give(&self, id: u64, end: OwnedFd, place: Place) {
        // A signal in the middle would answer without the descriptor.
        let _signals = sys::held_signals::HeldSignals::hold();
        match self.calls.listener.answer_with(id, end.as_fd(), place) {
            Err(error) if error.raw_os_error() == Some(EMFILE) => self.refuse(id, EMFILE),
            Err(error) if self.calls.listener.is_valid(id) => self.refuse(id, errno_of(&error)),
            _ => {}
        }
    }

    fn device(&self, process: &OtherProcess, number: i32) -> Option<(Arc<Device>, OwnedFd)> {
        let fd = process.descriptor(number).ok()?;
        Some((self.registry.find(fd.as_fd())?, fd))
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
        for (device, _) in numbers.into_iter().filter_map(|number| self.device(process, number)) {
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
        let Some((device, fd)) = self.device(process, number) else { return self.go_on(asked.id) };
        // The kernel begins a call again that a signal took its thread out of; the driver ends it (contract WR-06).
        let again = asker
            .left
            .take()
            .is_some_and(|left| (left.call, left.arguments) == (asked.call, asked.arguments));
        if again {
            return self.refuse(asked.id, sys::errno::EINTR);
        }
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
            let ended = caller.exchange(argument, &mut kept);
            if !kept.is_empty() {
                asker.kept = Some((device.clone(), kept));
            }
            match ended {
                End::Answered => {}
                End::Refused(errno) => self.refuse(asked.id, errno),
                End::Abandoned => asker.left = Some(*asked),
            }
        } else {
            let _ = self.calls.listener.answer(asked.id, caller.request(request, argument));
        }
    }
}
