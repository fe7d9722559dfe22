//! Open device: a connection, and the process that it belongs to.
//! Facts: contract OPN-01, OPN-05, OPN-11.

use std::cell::RefCell;
use std::io;
use std::os::fd::{AsRawFd, OwnedFd, RawFd};
use std::path::{Path, PathBuf};
use std::sync::{Arc, Weak};

use driver::connection::{Connection, Context, OpenOptions};
use embedded::{EmbeddedConnection, EmbeddedContext, OwnNumbers, Settings, device_path};
use sys::errno::{EINVAL, EIO};

use crate::context;

/// A device to be opened.
#[derive(Clone, Copy, Debug)]
pub struct Place<'p> {
    /// The directory of its context; `None` for that of the program's devices.
    pub directory: Option<&'p Path>,
    /// The context's name.
    pub name: &'p str,
    /// Its path without links.
    pub path: &'p str,
}

/// An open device.
#[derive(Debug)]
pub struct OpenFile {
    opener: u32,
    connection: EmbeddedConnection,
    /// See [`Place`].
    directory: Option<PathBuf>,
    name: String,
    path: String,
    /// The file that is looked at in its place.
    stand_in: PathBuf,
    /// `O_RDWR` and the like.
    access: i32,
}

thread_local! {
    /// The calling thread's descriptors for polling.
    static DESCRIPTORS: RefCell<Vec<(Weak<OpenFile>, OwnedFd)>> = const { RefCell::new(Vec::new()) };
}

/// Says on standard error why the program meets an error that the kernel's driver has not.
pub(crate) fn say(why: std::fmt::Arguments<'_>) {
    eprintln!("libbinderperf: {why}");
}

impl OpenFile {
    /// Opens the device of a context, with flags of `open(2)`. `own`: which numbers stand for devices.
    ///
    /// # Errors
    /// `EIO`, with the reason on standard error.
    pub fn open(device: &Place<'_>, flags: i32, own: OwnNumbers) -> io::Result<Arc<Self>> {
        let Place { directory, name, path } = *device;
        let failed = |why: &dyn std::fmt::Display| {
            say(format_args!("cannot open the context {name}: {why}"));
            io::Error::from_raw_os_error(EIO)
        };
        // A broker inside this process would end with it.
        if !embedded::start::finds_program() {
            return Err(failed(
                &"no program binderperf is along $PATH: put it there, or set BINDERPERF_BROKER to it",
            ));
        }
        let context = match directory {
            None => context::named(name).map_err(|why| failed(&why))?,
            Some(directory) => EmbeddedContext::at(directory, name, Settings::default()),
        };
        let options = OpenOptions { map_size: 0, nonblocking: flags & libc::O_NONBLOCK != 0 };
        let connection = context.open(options).map_err(|error| failed(&error))?;
        connection.install_descriptors(own);
        // It opens without a file to look at, too.
        let stand_in = device_path::shown(context.directory(), name).unwrap_or_default();
        let (directory, name, path) = (directory.map(Path::to_owned), name.to_owned(), path.to_owned());
        let (opener, access) = (std::process::id(), flags & libc::O_ACCMODE);
        Ok(Arc::new(Self { opener, connection, directory, name, path, stand_in, access }))
    }

    /// The device, to be opened once more.
    #[must_use]
    pub fn place(&self) -> Place<'_> {
        Place { directory: self.directory.as_deref(), name: &self.name, path: &self.path }
    }

    /// The file that is looked at in its place.
    #[must_use]
    pub fn stand_in(&self) -> &Path {
        &self.stand_in
    }

    /// The way of access that it was opened for, `O_RDWR` and the like.
    #[must_use]
    pub fn access(&self) -> i32 {
        self.access
    }

    /// True if the process that opened the device is a parent of this one: the connection is not this process's. Asks the
    /// kernel, because nobody reports a child that the C library did not make (`clone(2)`).
    #[must_use]
    pub fn is_foreign(&self) -> bool {
        self.opener != std::process::id()
    }

    /// Stops a forked child's copy of the device from hiding its parent's end.
    pub(crate) fn leave_to_parent(&self) {
        self.connection.leave_to_parent();
    }

    /// The connection.
    ///
    /// # Errors
    /// `EINVAL`: another process opened it (contract OPN-05, OPN-11 of the Rust driver).
    pub fn connection(&self) -> io::Result<&EmbeddedConnection> {
        match self.is_foreign() {
            false => Ok(&self.connection),
            true => Err(io::Error::from_raw_os_error(EINVAL)),
        }
    }

    /// Makes blocked reads return, as each close of a copy does (contract EXT-07).
    pub fn wake_readers(&self) {
        if let Ok(connection) = self.connection() {
            // Cannot fail: no descriptor is made.
            let _ = connection.wake_readers();
        }
    }

    /// The calling thread's descriptor for polling, which shows what is there at this moment; it stays open at least until the
    /// thread's next call of this method or of [`Self::forget_descriptor`].
    ///
    /// # Errors
    /// `EINVAL`: another process opened the device. `EMFILE`, `ENFILE`, `EAGAIN`.
    pub fn poll_descriptor(self: &Arc<Self>) -> io::Result<RawFd> {
        let connection = self.connection()?;
        DESCRIPTORS.with_borrow_mut(|known| {
            known.retain(|(file, _)| file.strong_count() > 0);
            if let Some((_, descriptor)) = known.iter().find(|(file, _)| file.as_ptr() == Arc::as_ptr(self)) {
                // Takes in what has come: a helper thread shows it, perhaps later than the program looks. A signal that
                // interrupts this interrupts what follows, too.
                let _ = connection.poll_readable(0);
                return Ok(descriptor.as_raw_fd());
            }
            let descriptor = connection.poll_descriptor()?;
            let number = descriptor.as_raw_fd();
            known.push((Arc::downgrade(self), descriptor));
            Ok(number)
        })
    }

    /// Drops the calling thread's descriptor: it hangs up with `BINDER_THREAD_EXIT`.
    pub fn forget_descriptor(self: &Arc<Self>) {
        DESCRIPTORS.with_borrow_mut(|known| known.retain(|(file, _)| file.as_ptr() != Arc::as_ptr(self)));
    }
}
