//! Open devices of all supervised programs, and the descriptors that tell of changes to them.
//! Not here: a device (`device`).

use std::collections::HashMap;
use std::fs::File;
use std::io;
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};
use std::sync::atomic::{AtomicU64, AtomicUsize, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError, Weak};

use sys::epoll::Epoll;
use sys::file_key::FileKey;

use crate::device::Device;

/// First number in the epoll set that the registry gives.
const FIRST: u64 = 1 << 32;

/// A watched descriptor.
#[derive(Debug)]
enum Watched {
    /// Writing end of a device's pipe: its hang-up is the program's close.
    End(Arc<Device>, FileKey),
    /// A thread's descriptor: it became readable.
    Poller(Weak<Device>),
}

/// Open devices.
#[derive(Debug)]
pub(crate) struct Registry {
    epoll: Epoll,
    by_file: Mutex<HashMap<FileKey, Arc<Device>>>,
    watched: Mutex<HashMap<u64, Watched>>,
    next: AtomicU64,
    /// Devices whose `mmap` is under way.
    unsettled: AtomicUsize,
}

fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

impl Registry {
    pub(crate) fn new() -> io::Result<Self> {
        let (by_file, watched) = Default::default();
        let (next, unsettled) = (AtomicU64::new(FIRST), AtomicUsize::new(0));
        Ok(Self { epoll: Epoll::new()?, by_file, watched, next, unsettled })
    }

    /// The set that all changes show in.
    pub(crate) fn epoll(&self) -> &Epoll {
        &self.epoll
    }

    /// True if no device is open.
    pub(crate) fn is_empty(&self) -> bool {
        lock(&self.by_file).is_empty()
    }

    /// The device behind an open file.
    pub(crate) fn find(&self, fd: BorrowedFd<'_>) -> Option<Arc<Device>> {
        let key = FileKey::of(fd).ok()?;
        lock(&self.by_file).get(&key).cloned()
    }

    /// Devices among files of these inodes.
    pub(crate) fn of_inodes(&self, inodes: &[u64]) -> Vec<Arc<Device>> {
        let found = lock(&self.by_file);
        found
            .iter()
            .filter(|(key, _)| inodes.contains(&key.inode))
            .map(|(_, device)| device.clone())
            .collect()
    }

    /// Makes a descriptor of a device for a program.
    pub(crate) fn add_end(&self, device: &Arc<Device>, nonblocking: bool) -> io::Result<OwnedFd> {
        let number = self.next.fetch_add(1, Ordering::Relaxed);
        let watch = |writer: &File| {
            let key = FileKey::of(writer.as_fd())?;
            lock(&self.watched).insert(number, Watched::End(device.clone(), key));
            lock(&self.by_file).insert(key, device.clone());
            self.epoll.add(writer.as_fd(), number)
        };
        device.add_end(nonblocking, watch)
    }

    /// A thread begins to wait for a device, for which returns are kept or not.
    pub(crate) fn begin_wait(&self, device: &Arc<Device>, thread: i32, has_kept: bool) -> io::Result<()> {
        let number = self.next.fetch_add(1, Ordering::Relaxed);
        device.begin_wait(thread, has_kept, |fd| {
            lock(&self.watched).insert(number, Watched::Poller(Arc::downgrade(device)));
            self.epoll.add_for_news(fd.as_fd(), number)
        })
    }

    /// Another file stands for the device while its `mmap` is under way.
    pub(crate) fn add_memory(&self, device: &Arc<Device>, memory: FileKey) {
        lock(&self.by_file).insert(memory, device.clone());
        self.unsettled.fetch_add(1, Ordering::Relaxed);
    }

    /// True if a device's `mmap` is under way.
    pub(crate) fn any_unsettled(&self) -> bool {
        self.unsettled.load(Ordering::Relaxed) > 0
    }

    /// Applies `step` to each device whose `mmap` is under way, until one call of it says that it ended that.
    pub(crate) fn settle(&self, step: impl Fn(&Device) -> bool) {
        if !self.any_unsettled() {
            return;
        }
        let mut all: Vec<Arc<Device>> = lock(&self.by_file).values().cloned().collect();
        all.sort_by_key(Arc::as_ptr);
        all.dedup_by(|one, other| Arc::ptr_eq(one, other));
        for device in all.iter().filter(|device| device.is_mapping()) {
            if step(device) {
                self.unsettled.fetch_sub(1, Ordering::Relaxed);
            }
        }
    }

    /// Closes everything: no program is left.
    pub(crate) fn clear(&self) {
        let watched = std::mem::take(&mut *lock(&self.watched));
        lock(&self.by_file).clear();
        for watched in watched.into_values() {
            if let Watched::End(device, key) = watched {
                device.remove_end(key);
            }
        }
    }

    /// A watched descriptor has changed.
    pub(crate) fn changed(&self, number: u64) {
        let mut watched = lock(&self.watched);
        match watched.get(&number) {
            Some(Watched::Poller(device)) => {
                let device = device.upgrade();
                if device.is_none() {
                    watched.remove(&number);
                }
                drop(watched);
                device.inspect(|device| device.show_readiness());
            }
            Some(Watched::End(..)) => {
                let Some(Watched::End(device, key)) = watched.remove(&number) else { return };
                drop(watched);
                device.remove_end(key);
                let mut found = lock(&self.by_file);
                found.remove(&key);
                if device.is_closed() {
                    found.retain(|_, other| !Arc::ptr_eq(other, &device));
                }
            }
            None => {}
        }
    }
}
