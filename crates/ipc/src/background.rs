//! Moving a serving thread to the background for a background caller, and back.
//! Not here: the nice that the driver hands on (contract SCH-01 to SCH-05), what nodes ask for
//! (`scheduling`).
//! Facts: libbinder's `IPCThreadState::executeCommand` up to Android 7.0 (the serving thread moves
//! itself from nice 10 on; gone in 7.1) and `disableBackgroundScheduling`; libcutils' `set_sched_policy`,
//! which without groups took `SCHED_BATCH` for the background; cgroups(7): `tasks` and
//! `cgroup.threads` take a thread number, 0 for the writer.

use std::cell::Cell;
use std::fmt;
use std::fs::File;
use std::io::{self, Write};
use std::path::PathBuf;
use std::sync::atomic::{AtomicBool, Ordering};

use sys::sched::{self, Policy};

use crate::scheduling::{Nice, NodeOptions};

/// Which side makes a thread run as background while it serves a background caller.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub enum BackgroundScheduling {
    /// The driver, as since Android 7.1: the thread gets its caller's nice, or the node's minimum if
    /// that is more urgent, and its own again with the reply.
    #[default]
    ByDriver,
    /// The thread, too, as up to Android 7.0: one that serves at nice 10 or more moves to the
    /// background and comes back when it has served. Costs a system call for every call served.
    ByThread(BackgroundGroup),
}

/// Where a thread runs while it serves a background caller.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum BackgroundGroup {
    /// Control groups, by their files that take thread numbers: `tasks` in version 1,
    /// `cgroup.threads` in version 2. A thread that cannot be moved stays where it is, and serves.
    Cgroups {
        /// Where threads belong otherwise.
        foreground: PathBuf,
        /// Where they serve background callers.
        background: PathBuf,
    },
    /// `SCHED_BATCH`, which Android took where a kernel had no groups. Only `SCHED_OTHER` threads move:
    /// a server that runs as `SCHED_BATCH` or `SCHED_IDLE` stays what it is.
    Batch,
}

/// A group's file that cannot be opened for writing.
#[derive(Debug)]
pub struct GroupError {
    /// The file.
    pub path: PathBuf,
    /// The error.
    pub source: io::Error,
}

impl fmt::Display for GroupError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let (path, source) = (self.path.display(), sys::errno::describe(&self.source));
        write!(
            f,
            "the control group's file {path} does not open for writing: {source}; give a group's tasks or \
             cgroup.threads, or let the driver alone care for background callers"
        )
    }
}

impl std::error::Error for GroupError {
    fn source(&self) -> Option<&(dyn std::error::Error + 'static)> {
        Some(&self.source)
    }
}

enum Mover {
    Nobody,
    Cgroups { foreground: File, background: File },
    Batch,
}

impl Mover {
    fn open(wanted: BackgroundScheduling) -> Result<Self, GroupError> {
        let open = |path: PathBuf| {
            let file = File::options().write(true).open(&path);
            file.map_err(|source| GroupError { path, source })
        };
        match wanted {
            BackgroundScheduling::ByDriver => Ok(Self::Nobody),
            BackgroundScheduling::ByThread(BackgroundGroup::Batch) => Ok(Self::Batch),
            BackgroundScheduling::ByThread(BackgroundGroup::Cgroups { foreground, background }) => {
                Ok(Self::Cgroups { foreground: open(foreground)?, background: open(background)? })
            }
        }
    }

    /// Moves the calling thread.
    fn send(&self, to_background: bool) -> io::Result<()> {
        match self {
            Self::Nobody => Ok(()),
            Self::Cgroups { foreground, background } => {
                let mut group = if to_background { background } else { foreground };
                group.write_all(b"0")
            }
            Self::Batch => sched::set_policy(0, if to_background { Policy::Batch } else { Policy::Other }),
        }
    }

    /// Whether a thread of this policy has somewhere to go, and finds back. One that is `SCHED_BATCH`
    /// or `SCHED_IDLE` all its life has no way into the background, least of all out of it.
    fn takes(&self, policy: Policy) -> bool {
        match self {
            Self::Nobody => false,
            Self::Cgroups { .. } => !policy.is_realtime(),
            Self::Batch => policy == Policy::Other,
        }
    }
}

thread_local! {
    /// The calling thread has moved to the background.
    static AWAY: Cell<bool> = const { Cell::new(false) };
}

/// How one process treats its background callers.
pub(crate) struct Background {
    mover: Mover,
    /// `disableBackgroundScheduling`
    disabled: AtomicBool,
}

impl Background {
    pub(crate) fn open(wanted: BackgroundScheduling) -> Result<Self, GroupError> {
        Ok(Self { mover: Mover::open(wanted)?, disabled: AtomicBool::new(false) })
    }

    pub(crate) fn disable(&self, disabled: bool) {
        self.disabled.store(disabled, Ordering::Relaxed);
    }

    /// Options of objects that are published without any.
    pub(crate) fn node_options(&self) -> NodeOptions {
        let disabled = self.disabled.load(Ordering::Relaxed);
        if disabled { NodeOptions::BINDER_FOREGROUND } else { NodeOptions::BINDER }
    }

    /// The calling thread has read a transaction and is about to serve it, at the nice that the
    /// driver gave it. Drop the result when it has served.
    pub(crate) fn serve(&self) -> Away<'_> {
        match self.mover {
            Mover::Nobody => Away(None),
            _ => self.leave_foreground(),
        }
    }

    fn leave_foreground(&self) -> Away<'_> {
        // Asking about oneself cannot fail.
        let nice = sched::nice_of(0).unwrap_or(0);
        if self.disabled.load(Ordering::Relaxed) {
            if nice > Nice::NORMAL.value() {
                // Where it may not, it serves as the driver left it. The reply restores its own.
                let _ = sched::set_nice(0, Nice::NORMAL.value());
            }
            return Away(None);
        }
        // A nested call finds the thread in the background already.
        let moves = nice >= Nice::BACKGROUND.value()
            && !AWAY.get()
            && sched::policy_of(0).is_ok_and(|policy| self.mover.takes(policy));
        let moved = moves && self.mover.send(true).is_ok();
        if moved {
            AWAY.set(true);
        }
        Away(moved.then_some(&self.mover))
    }
}

/// A thread that serves; dropped, it is back where it belongs.
pub(crate) struct Away<'b>(Option<&'b Mover>);

impl Drop for Away<'_> {
    fn drop(&mut self) {
        if let Some(mover) = self.0 {
            AWAY.set(false);
            // The way back is never forbidden where the way there was not.
            let _ = mover.send(false);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn batch() -> Background {
        let wanted = BackgroundScheduling::ByThread(BackgroundGroup::Batch);
        Background::open(wanted).expect("nothing to open")
    }

    fn policy() -> Policy {
        sched::policy_of(0).expect("own policy")
    }

    /// What `job` returns in a thread of this nice (added to the test's own).
    fn at_nice<T: Send + 'static>(nice: i32, job: impl FnOnce() -> T + Send + 'static) -> T {
        let thread = std::thread::spawn(move || {
            sched::set_nice(0, nice).expect("nicer is always allowed");
            job()
        });
        thread.join().expect("no panic")
    }

    /// The calling thread's policy while it serves, and after it.
    fn inside_and_after() -> (Policy, Policy) {
        let background = batch();
        let serving = background.serve();
        let inside = policy();
        drop(serving);
        (inside, policy())
    }

    #[test]
    fn a_thread_moves_to_the_background_from_nice_10_on_and_comes_back() {
        for (nice, want) in [(0, Policy::Other), (9, Policy::Other), (10, Policy::Batch), (19, Policy::Batch)]
        {
            assert_eq!(at_nice(nice, inside_and_after), (want, Policy::Other), "nice {nice}");
        }
    }

    #[test]
    fn a_thread_that_runs_as_background_anyway_keeps_its_policy() {
        for own in [Policy::Batch, Policy::Idle] {
            let seen = at_nice(12, move || {
                sched::set_policy(0, own).expect("less urgent is always allowed");
                inside_and_after()
            });
            assert_eq!(seen, (own, own));
        }
    }

    #[test]
    fn a_call_within_a_call_does_not_end_the_outer_ones_stay() {
        let seen = at_nice(12, || {
            let background = batch();
            let outer = background.serve();
            drop(background.serve());
            let after_inner = policy();
            drop(outer);
            (after_inner, policy())
        });
        assert_eq!(seen, (Policy::Batch, Policy::Other));
    }

    #[test]
    fn a_thread_comes_back_from_a_service_that_panics() {
        let seen = at_nice(12, || {
            let background = batch();
            let panics = std::panic::AssertUnwindSafe(|| {
                let _serving = background.serve();
                std::panic::resume_unwind(Box::new("asked to"));
            });
            assert!(std::panic::catch_unwind(panics).is_err());
            policy()
        });
        assert_eq!(seen, Policy::Other);
    }

    #[test]
    fn by_default_no_thread_moves() {
        let seen = at_nice(15, || {
            let background = Background::open(BackgroundScheduling::default()).expect("nothing to open");
            let _serving = background.serve();
            policy()
        });
        assert_eq!(seen, Policy::Other);
    }

    #[test]
    fn disabled_no_thread_moves_and_objects_ask_for_nice_0() {
        let background = batch();
        assert_eq!(background.node_options().flags(), 0x113);
        background.disable(true);
        assert_eq!(background.node_options().flags(), 0x100);
        let seen = at_nice(15, move || {
            let _serving = background.serve();
            (policy(), sched::nice_of(0).expect("own nice"), sys::urgency::most_urgent_nice() <= 0)
        });
        assert_eq!(seen.0, Policy::Other);
        assert_eq!(seen.1, if seen.2 { 0 } else { 15 }, "as far as it may");
    }

    #[test]
    fn the_threads_are_written_to_the_groups_and_a_group_that_is_none_is_told() {
        let private = sys::private_folder::PrivateFolder::new("groups").expect("a folder");
        let folder = private.path();
        let [foreground, background] = ["foreground", "background"].map(|name| folder.join(name));
        for file in [&foreground, &background] {
            std::fs::write(file, "").expect("a file");
        }
        let cgroups = |background: &PathBuf| {
            let (foreground, background) = (foreground.clone(), background.clone());
            Background::open(BackgroundScheduling::ByThread(BackgroundGroup::Cgroups {
                foreground,
                background,
            }))
        };
        let opened = cgroups(&background).expect("both are there");
        at_nice(12, move || drop(opened.serve()));
        let read = |file| std::fs::read_to_string(file).expect("readable");
        assert_eq!((read(&background), read(&foreground)), ("0".to_owned(), "0".to_owned()));
        let error = cgroups(&folder.join("none")).err().expect("not there").to_string();
        assert!(error.contains("none") && error.contains("ENOENT"), "{error}");
    }
}
