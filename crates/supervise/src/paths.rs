//! Answers to calls with a path: devices are opened, and looked at by the files in their place.
//! Not here: which paths lead to a device (`embedded::device_path`).

use std::ffi::CString;
use std::io;
use std::os::fd::OwnedFd;
use std::sync::Arc;

use abi::layout::BinderfsDevice;
use driver::OpenOptions;
use embedded::device_path::{self, Found, Whose};
use embedded::{EmbeddedConnection, EmbeddedContext};
use sys::call;
use sys::errno::{ECONNREFUSED, EEXIST, EINVAL, ENODATA, ENOTDIR};
use sys::notification::Place;
use sys::other_process::{self, OtherProcess};
use zerocopy::{FromZeros, IntoBytes};

use crate::answer::{Supervisor, errno_of};
use crate::calls::Program;
use crate::device::{Device, Opened};
use crate::rules::{Flags, Look, What};

/// The end of a path, or of a descriptor.
enum Target {
    /// An open device.
    Open(Arc<Device>),
    /// A file of the driver's.
    Ours(Found),
    /// A descriptor of one that may only be looked at.
    PathOnly(Found),
}

/// True if a path may name a descriptor.
fn is_below_proc(path: &[u8]) -> bool {
    (path.starts_with(b"/proc/") || path.starts_with(b"/dev/fd/"))
        && path.windows(3).any(|part| part == b"fd/")
}

/// A path in a thread's memory.
fn path_at(thread: i32, address: u64) -> Option<Vec<u8>> {
    let mut bytes = vec![0; sys::path::LONGEST];
    let count = other_process::read_some(thread as u32, address, &mut bytes).ok()?;
    let length = bytes[..count].iter().position(|byte| *byte == 0)?;
    bytes.truncate(length);
    Some(bytes)
}

impl Supervisor {
    /// True if a path leads to a file of the machine's, as can be seen without its process.
    pub(crate) fn is_machines(&self, thread: i32, folder: i32, path: u64) -> bool {
        let Some(path) = path_at(thread, path) else { return true };
        if path.is_empty() || is_below_proc(&path) {
            return !self.is_any_open() && path.is_empty();
        }
        let find = |follow| self.paths.find(Whose::Thread(thread), folder, &path, follow);
        self.is_there(thread, folder, &path) || find(true).or_else(|| find(false)).is_none()
    }

    /// True if the machine has a file at a path that does not read as one of a device.
    fn is_there(&self, thread: i32, folder: i32, path: &[u8]) -> bool {
        let whose = Whose::Thread(thread);
        let Ok(text) = std::str::from_utf8(path) else { return true };
        let reached = sys::path::terminated(whose.reached(folder, text).as_ref());
        !self.paths.is_likely_in(whose, folder, path) && reached.is_ok_and(|path| sys::path::exists(&path))
    }

    fn find(&self, thread: i32, folder: i32, path: &[u8], follow: bool) -> Option<Found> {
        match self.is_there(thread, folder, path) {
            true => None,
            false => self.paths.find(Whose::Thread(thread), folder, path, follow),
        }
    }

    fn target(&self, thread: i32, process: &OtherProcess, look: (i32, &[u8], bool)) -> Option<Target> {
        let (folder, path, follow) = look;
        match device_path::descriptor(path, process.pid()).filter(|_| follow) {
            Some(number) => self.open_at(process, number),
            None => self.find(thread, folder, path, follow).map(Target::Ours),
        }
    }

    fn open_at(&self, process: &OtherProcess, number: i32) -> Option<Target> {
        let device = self.device(process, number).map(|(device, _)| Target::Open(device));
        device.or_else(|| self.path_only(process, number).map(Target::PathOnly))
    }

    fn stand_in(&self, found: &Found) -> io::Result<CString> {
        device_path::ensure(&self.directory)?;
        sys::path::terminated(&self.paths.stand_in(found))
    }

    pub(crate) fn open(
        &self,
        thread: i32,
        process: &Arc<OtherProcess>,
        id: u64,
        (folder, path, flags): (i32, u64, Flags),
    ) {
        let flags = match flags {
            Flags::Here(flags) => flags,
            Flags::At(address) => {
                let mut bytes = [0; 8];
                if process.read(address, &mut bytes).is_err() {
                    return self.go_on(id);
                }
                u64::from_ne_bytes(bytes)
            }
        } as i32;
        let is_set = |flag: i32| flags & flag == flag;
        let creates = is_set(call::O_CREAT | call::O_EXCL);
        let follow = !is_set(call::O_NOFOLLOW) && !creates;
        let Some(path) = path_at(thread, path) else { return self.go_on(id) };
        let access = flags & call::O_ACCMODE;
        let found = match self.target(thread, process, (folder, &path, follow)) {
            Some(Target::Open(device)) => device.opened.found(),
            Some(Target::Ours(found) | Target::PathOnly(found)) => found,
            None => return self.go_on(id),
        };
        let opened = match found {
            Found::Device { name, path } if !is_set(call::O_PATH) => Opened { name, path, access },
            found => return self.open_stand_in(id, &found, flags),
        };
        if is_set(call::O_DIRECTORY) {
            return self.refuse(id, ENOTDIR);
        }
        if creates {
            return self.refuse(id, EEXIST);
        }
        let place = Place { number: None, close_on_exec: is_set(call::O_CLOEXEC) };
        match self.open_device(thread, process, opened) {
            Ok(device) => match self.registry.add_end(&device, is_set(call::O_NONBLOCK)) {
                Ok(end) => self.give(id, end, place),
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
        opened: Opened,
    ) -> Result<Arc<Device>, String> {
        let context = EmbeddedContext::at(&self.directory, &opened.name, self.settings);
        let program = Program::new(process.clone(), self.calls.clone());
        let program = Arc::new(program.map_err(|error| sys::errno::describe(&error))?);
        let options = OpenOptions { map_size: 0, nonblocking: false };
        let connection = EmbeddedConnection::open_for(&context, options, program.clone(), thread);
        let connection = connection.map_err(|error| error.to_string())?;
        // It opens without a file to look at, too.
        let _ = device_path::shown(&self.directory, &opened.name);
        Ok(Arc::new(Device::new(connection, program, opened)))
    }

    /// Opens what is no device, or is only looked at.
    fn open_stand_in(&self, id: u64, found: &Found, flags: i32) {
        let place = Place { number: None, close_on_exec: flags & call::O_CLOEXEC != 0 };
        let opened = match found {
            // A folder is where other paths begin.
            Found::Device { .. } | Found::Control if flags & call::O_PATH != 0 => {
                self.open_path_only(found, flags)
            }
            _ => device_path::open(&self.directory, found, flags),
        };
        match opened {
            Ok(opened) => self.give(id, opened, place),
            Err(error) => self.refuse(id, errno_of(&error)),
        }
    }

    fn open_path_only(&self, found: &Found, flags: i32) -> io::Result<OwnedFd> {
        sys::path::access(&self.stand_in(found)?, 0)?;
        match flags & call::O_DIRECTORY != 0 {
            true => Err(io::Error::from_raw_os_error(ENOTDIR)),
            false => self.path_only.open(found),
        }
    }

    /// Answers a look.
    pub(crate) fn look(&self, thread: i32, process: &OtherProcess, id: u64, look: Look) {
        let path = look.path.map_or(Some(Vec::new()), |path| path_at(thread, path));
        let Some(path) = path else { return self.go_on(id) };
        // A link below /proc is the descriptor itself.
        let follow = look.follow || matches!(look.what, What::Link { .. }) && is_below_proc(&path);
        let target = match path.is_empty() {
            true if look.may_be_empty => self.open_at(process, look.folder),
            true => None,
            false => self.target(thread, process, (look.folder, &path, follow)),
        };
        let answer = match (target, look.what) {
            (Some(Target::Open(device)), What::Link { to, room }) => {
                self.store((id, process), device.opened.path.as_bytes(), to, room)
            }
            (Some(Target::PathOnly(found)), What::Link { to, room }) => {
                self.store((id, process), found.path().as_bytes(), to, room)
            }
            (Some(Target::Open(device)), what) => self.looked((id, process), &device.opened.found(), what),
            (Some(Target::PathOnly(found)), what) => self.looked((id, process), &found, what),
            (Some(Target::Ours(found)), what) => self.looked((id, process), &found, what),
            (None, What::Link { to, room }) if is_below_proc(&path) => match self.outward(process, &path) {
                Some(seen) => self.store((id, process), seen.as_bytes(), to, room),
                None => return self.go_on(id),
            },
            (None, _) => return self.go_on(id),
        };
        let answer = answer.map_err(|error| errno_of(&error));
        // A thread that has left its call needs no answer.
        let _ = self.calls.listener.answer(id, answer);
    }

    fn looked(&self, call: (u64, &OtherProcess), found: &Found, what: What) -> io::Result<i64> {
        let file = self.stand_in(found)?;
        let put = |to, bytes: Vec<u8>| self.calls.write(call.0, call.1, to, &bytes).map(|()| 0);
        match what {
            What::Stat(to) => put(to, sys::path::stat(&file)?),
            What::ExtendedStat { mask, to } => put(to, sys::path::extended_stat(&file, mask)?),
            What::Access { mode } => sys::path::access(&file, mode).map(|()| 0),
            What::Attribute | What::Attributes => {
                sys::path::access(&file, 0)?;
                // A device has none.
                if what == What::Attributes { Ok(0) } else { Err(io::Error::from_raw_os_error(ENODATA)) }
            }
            What::Link { to, room } => self.store(call, &sys::path::read_link(&file)?, to, room),
        }
    }

    /// The path of a descriptor of a file of ours that is no device.
    fn outward(&self, process: &OtherProcess, path: &[u8]) -> Option<String> {
        let number = device_path::descriptor(path, process.pid())?;
        let link = sys::path::terminated(format!("/proc/{}/fd/{number}", process.pid()).as_ref()).ok()?;
        self.paths.outward(&sys::path::read_link(&link).ok()?)
    }

    /// `BINDER_CTL_ADD`.
    pub(crate) fn add_device(&self, process: &OtherProcess, id: u64, (number, argument): (i32, u64)) {
        let control = self.outward(process, format!("/proc/self/fd/{number}").as_bytes());
        if control.is_none_or(|path| path != Found::Control.path()) {
            return self.go_on(id);
        }
        let mut device = BinderfsDevice::new_zeroed();
        let added = process
            .read(argument, device.as_mut_bytes())
            .and_then(|()| device_path::add_device(&self.directory, &device.name))
            .and_then(|()| self.calls.write(id, process, argument, device.as_bytes()));
        let _ = self.calls.listener.answer(id, added.map(|()| 0).map_err(|error| errno_of(&error)));
    }

    /// Stores the beginning of a text in the memory of a call's program; how much of it.
    fn store(&self, (id, process): (u64, &OtherProcess), text: &[u8], to: u64, room: u64) -> io::Result<i64> {
        // The kernel takes an `int`.
        let room = usize::try_from(room as i32).unwrap_or(0);
        if room == 0 {
            return Err(io::Error::from_raw_os_error(EINVAL));
        }
        let stored = &text[..text.len().min(room)];
        self.calls.write(id, process, to, stored)?;
        Ok(stored.len() as i64)
    }
}
