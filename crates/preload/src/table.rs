//! Descriptors and mappings of this process that belong to open devices.
//!
//! No lock is needed to see that a descriptor is not in the table: nearly all calls are about such.
//!
//! A forked child has a copy of the table, whose devices are its parent's. A child of `vfork` shares the table with its
//! parent, and not the descriptors: it changes nothing here.
//! Facts: contract OPN-04, OPN-07, OPN-11, EXT-06; `fork(2)`, `vfork(2)`, `pthread_atfork(3)`.

use std::cell::RefCell;
use std::collections::BTreeMap;
use std::ops::RangeInclusive;
use std::os::fd::RawFd;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, PoisonError, RwLock, RwLockReadGuard, RwLockWriteGuard};

use crate::file::OpenFile;
use crate::members::Members;
use crate::owner;
use crate::watches::Watches;

/// A mapped receiving area.
#[derive(Debug)]
pub(crate) struct Mapped {
    pub(crate) base: u64,
    pub(crate) len: u64,
    pub(crate) file: Arc<OpenFile>,
}

/// The table, under its lock.
#[derive(Debug)]
pub(crate) struct Table {
    pub(crate) files: BTreeMap<RawFd, Arc<OpenFile>>,
    pub(crate) mapped: Vec<Mapped>,
    pub(crate) watches: Watches,
}

static MEMBERS: Members = Members::new();
/// Number of mapped areas.
static MAPPED: AtomicUsize = AtomicUsize::new(0);
static TABLE: RwLock<Table> =
    RwLock::new(Table { files: BTreeMap::new(), mapped: Vec::new(), watches: Watches::new() });

thread_local! {
    /// The table's lock while its thread forks.
    static FORKING: RefCell<Option<RwLockWriteGuard<'static, Table>>> = const { RefCell::new(None) };
}

pub(crate) fn read() -> RwLockReadGuard<'static, Table> {
    TABLE.read().unwrap_or_else(PoisonError::into_inner)
}

pub(crate) fn write() -> RwLockWriteGuard<'static, Table> {
    TABLE.write().unwrap_or_else(PoisonError::into_inner)
}

/// True if a descriptor names a device.
#[must_use]
pub fn has(fd: RawFd) -> bool {
    MEMBERS.has(fd)
}

/// True if anything is mapped.
#[must_use]
pub(crate) fn has_mapped() -> bool {
    MAPPED.load(Ordering::Relaxed) > 0
}

/// The device that a descriptor names.
#[must_use]
pub fn find(fd: RawFd) -> Option<Arc<OpenFile>> {
    if has(fd) { read().files.get(&fd).cloned() } else { None }
}

impl Table {
    /// Lets a descriptor name a device; the device that it named before.
    pub(crate) fn insert(&mut self, fd: RawFd, file: Arc<OpenFile>) -> Option<Arc<OpenFile>> {
        MEMBERS.set(fd, true);
        self.files.insert(fd, file)
    }

    /// Takes a descriptor out.
    pub(crate) fn remove(&mut self, fd: RawFd) -> Option<Arc<OpenFile>> {
        MEMBERS.set(fd, false);
        self.files.remove(&fd)
    }

    /// The descriptors of a range that are in the table.
    pub(crate) fn within(&self, range: RangeInclusive<RawFd>) -> Vec<RawFd> {
        self.files.range(range).map(|(fd, _)| *fd).collect()
    }

    /// True if a descriptor or a mapping belongs to a device. Threads that used it when their process forked are not in
    /// the child, and their references do not count.
    fn names(&self, file: &Arc<OpenFile>) -> bool {
        let mut known = self.files.values().chain(self.mapped.iter().map(|mapped| &mapped.file));
        known.any(|other| Arc::ptr_eq(other, file))
    }

    /// Adds a mapped area.
    pub(crate) fn add_mapped(&mut self, mapped: Mapped) {
        self.mapped.push(mapped);
        MAPPED.store(self.mapped.len(), Ordering::Relaxed);
    }

    /// Takes out the first mapped area that fits.
    pub(crate) fn take_mapped(&mut self, fits: impl Fn(&Mapped) -> bool) -> Option<Mapped> {
        let place = self.mapped.iter().position(fits)?;
        let taken = self.mapped.swap_remove(place);
        MAPPED.store(self.mapped.len(), Ordering::Relaxed);
        Some(taken)
    }
}

/// Gives a reference to a device back. Call it without the table's lock.
pub(crate) fn release(file: Arc<OpenFile>) {
    if !file.is_foreign() {
        return;
    }
    if !read().names(&file) {
        file.leave_to_parent();
    }
    // The parent's device is never released here: its memory is not mapped in a child, and its threads are not there.
    std::mem::forget(file);
}

/// Before a fork: takes the lock, so that the child gets a whole table.
pub extern "C" fn before_fork() {
    FORKING.set(Some(write()));
}

/// After a fork, in the parent.
pub extern "C" fn after_fork() {
    FORKING.take();
}

/// After a fork, in the child: the table is its own, its devices are not; the parent's mappings are not there.
pub extern "C" fn after_fork_in_child() {
    owner::take();
    let Some(mut table) = FORKING.take() else { return };
    let mapped = std::mem::take(&mut table.mapped);
    MAPPED.store(0, Ordering::Relaxed);
    table.watches.leave_to_parent();
    drop(table);
    mapped.into_iter().for_each(|mapped| release(mapped.file));
}
