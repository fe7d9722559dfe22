//! Priorities of serving threads, during a call and after it.
//! Not here: the drivers without the runtime (conformance, contract section 14).
//!
//! Observed from inside the served method, and from here once the reply is there. On the kernel's C
//! driver and on the embedded one, which inherits nice values by default.

use std::fmt::Debug;
use std::path::{Path, PathBuf};

use needs::{Lack, Need, need};

use ipc::binder::{Incoming, Parcel, Status};
use ipc::{BackgroundGroup, BackgroundScheduling, Binder, NodeOptions};
use sys::sched::{self, Policy};

use crate::peer::{Bench, Opened, Peer, bench, eventually, served_with};
use crate::toolbox::DESCRIPTOR;

/// `int[] how(out String group)`: the serving thread, its nice, whether its policy is `SCHED_BATCH`.
pub(crate) const HOW: u32 = 30;
/// `IToolbox node(int flavour)`: another toolbox, published as [`FLAVOURS`] says; -1: without options.
pub(crate) const NODE: u32 = 31;
/// `void disableBackgroundScheduling(bool)`
pub(crate) const DISABLE: u32 = 32;
/// `int[] nested(IToolbox partner)`: how this runs after a call to the partner's `how`.
pub(crate) const NESTED: u32 = 33;

/// What the libraries' nodes ask for.
pub(crate) const FLAVOURS: [NodeOptions; 3] =
    [NodeOptions::BINDER, NodeOptions::BINDER_FOREGROUND, NodeOptions::HWBINDER];
const BINDER: i32 = 0;
const BINDER_FOREGROUND: i32 = 1;
const HWBINDER: i32 = 2;

/// How a thread runs.
#[derive(Clone, Debug, PartialEq, Eq)]
struct How {
    thread: i32,
    nice: i32,
    batch: bool,
    groups: String,
}

fn groups(task: &Path) -> String {
    std::fs::read_to_string(task.join("cgroup")).unwrap_or_default()
}

impl How {
    fn here() -> Self {
        let thread = sys::interrupt::ThreadId::current().number();
        Self { groups: groups(Path::new("/proc/thread-self")), ..Self::of(0, thread) }
    }

    fn of(pid: i32, thread: i32) -> Self {
        Self {
            thread,
            nice: sched::nice_of(thread).expect("its nice"),
            batch: sched::policy_of(thread).expect("its policy") == Policy::Batch,
            groups: groups(Path::new(&format!("/proc/{pid}/task/{thread}"))),
        }
    }

    fn write(&self, reply: &mut Parcel) {
        reply.write_packed::<i32>(&[self.thread, self.nice, i32::from(self.batch)]);
        reply.write_str(&self.groups);
    }

    fn ask(at: &Binder, code: u32, partner: Option<&Binder>) -> Self {
        let mut request = at.request(DESCRIPTOR);
        if let Some(partner) = partner {
            request.write_binder(partner);
        }
        let reply = at.call(code, request).expect("how");
        let mut reader = reply.reader();
        let numbers = reader.read_i32_vec().expect("numbers");
        let groups = reader.read_str().expect("groups");
        Self { thread: numbers[0], nice: numbers[1], batch: numbers[2] != 0, groups }
    }
}

/// The served half of [`How::ask`].
pub(crate) fn serve(code: u32, call: &mut Incoming<'_>, reply: &mut Parcel) -> Result<(), Status> {
    if code == NESTED {
        How::ask(&call.read_binder()?, HOW, None);
    }
    How::here().write(reply);
    Ok(())
}

fn node(toolbox: &Binder, flavour: i32) -> Binder {
    let mut request = toolbox.request(DESCRIPTOR);
    request.write_i32(flavour);
    toolbox.call(NODE, request).expect("a node").reader().read_binder().expect("a node")
}

fn disable(toolbox: &Binder, disabled: bool) {
    let mut request = toolbox.request(DESCRIPTOR);
    request.write_bool(disabled);
    toolbox.call(DISABLE, request).expect("disable");
}

/// What `job` returns in a thread of this nice.
fn at_nice<T: Send>(nice: i32, job: impl FnOnce() -> T + Send) -> T {
    std::thread::scope(|scope| {
        let thread = scope.spawn(|| {
            sched::set_nice(0, nice).expect("may be set");
            assert_eq!(sched::nice_of(0).expect("own nice"), nice);
            job()
        });
        thread.join().expect("no panic")
    })
}

/// The right without which nobody could come back from an inherited priority.
fn may_inherit() -> Result<(), Lack> {
    let may = sys::urgency::most_urgent_nice() <= -20 && sched::nice_of(0).expect("own nice") == 0;
    Need::Realtime.met_if(may, "nice is not 0, or no right to become more urgent (CAP_SYS_NICE)")
}

/// A manager with a toolbox whose process treats background callers so.
fn served(how: &BackgroundScheduling) -> Result<(Bench, Peer, Opened, Binder), Lack> {
    let bench = bench()?;
    may_inherit()?;
    let word = match how {
        BackgroundScheduling::ByDriver => String::new(),
        BackgroundScheduling::ByThread(BackgroundGroup::Batch) => "batch".to_owned(),
        BackgroundScheduling::ByThread(BackgroundGroup::Cgroups { foreground, background }) => {
            format!("{}:{}", foreground.display(), background.display())
        }
    };
    Ok(served_with(bench, 0, &[(BACKGROUND, &word)]))
}

/// Names what [`served`] wants to the peer.
pub(crate) const BACKGROUND: &str = "BINDERPERF_TEST_BACKGROUND";

/// Reads what [`served`] wrote.
pub(crate) fn wanted() -> BackgroundScheduling {
    let word = std::env::var(BACKGROUND).unwrap_or_default();
    match word.split_once(':') {
        None if word.is_empty() => BackgroundScheduling::ByDriver,
        None => BackgroundScheduling::ByThread(BackgroundGroup::Batch),
        Some((foreground, background)) => BackgroundScheduling::ByThread(BackgroundGroup::Cgroups {
            foreground: foreground.into(),
            background: background.into(),
        }),
    }
}

/// The reply is here: the thread has its own nice back (contract SCH-03), and soon everything else.
fn returns<T: Debug + PartialEq>(peer: &Peer, thread: i32, rest: impl Fn(&How) -> T, want: &T) {
    assert_eq!(How::of(peer.pid(), thread).nice, 0, "the reply restores the nice");
    eventually("a thread back in the foreground", || rest(&How::of(peer.pid(), thread)) == *want);
}

/// How an object is served for a caller of this nice; its thread returns to the foreground.
fn asked(peer: &Peer, object: &Binder, caller: i32) -> How {
    at_nice(caller, || {
        let inside = How::ask(object, HOW, None);
        returns(peer, inside.thread, |how| how.batch, &false);
        inside
    })
}

/// SCH-01, SCH-03: binder's nodes are served at a background caller's nice, hwbinder's at nice 0.
#[test]
fn background_callers_make_binders_server_background_but_not_hwbinders() {
    let (_bench, peer, _process, toolbox) = need!(served(&BackgroundScheduling::ByDriver));
    for (flavour, caller, want) in [
        (BINDER, 10, 10),
        (BINDER, 19, 19),
        (BINDER, 0, 0),
        (BINDER, -5, -5),
        (BINDER_FOREGROUND, 10, 0),
        (BINDER_FOREGROUND, -5, -5),
        (HWBINDER, 10, 0),
        (HWBINDER, 19, 0),
        (HWBINDER, 0, 0),
        (HWBINDER, -5, -5),
    ] {
        let object = node(&toolbox, flavour);
        let inside = asked(&peer, &object, caller);
        assert_eq!(
            (inside.nice, inside.batch),
            (want, false),
            "{:?} from {caller}",
            FLAVOURS[flavour as usize]
        );
    }
}

/// Only objects that are published later, and without options of their own, are concerned.
#[test]
fn disabled_background_scheduling_changes_what_later_objects_ask_for() {
    let (_bench, _peer, _process, toolbox) = need!(served(&BackgroundScheduling::ByDriver));
    const WITHOUT_OPTIONS: i32 = -1;
    let nice = |object: &Binder| at_nice(12, || How::ask(object, HOW, None).nice);
    let before = node(&toolbox, WITHOUT_OPTIONS);
    disable(&toolbox, true);
    let (after, explicit) = (node(&toolbox, WITHOUT_OPTIONS), node(&toolbox, BINDER));
    disable(&toolbox, false);
    let again = node(&toolbox, WITHOUT_OPTIONS);
    assert_eq!([&before, &after, &explicit, &again].map(nice), [12, 0, 12, 12]);
}

/// As up to Android 7.0, where the kernel has no groups.
#[test]
fn a_thread_that_cares_for_itself_serves_background_callers_as_batch() {
    let by_thread = BackgroundScheduling::ByThread(BackgroundGroup::Batch);
    let (_bench, peer, _process, toolbox) = need!(served(&by_thread));
    let hwbinder = node(&toolbox, HWBINDER);
    for (object, caller, nice, batch) in [
        (&toolbox, 10, 10, true),
        (&toolbox, 9, 9, false),
        (&toolbox, 0, 0, false),
        (&hwbinder, 15, 0, false),
    ] {
        let inside = asked(&peer, object, caller);
        assert_eq!((inside.nice, inside.batch), (nice, batch), "from {caller}");
    }
    disable(&toolbox, true);
    let inside = at_nice(15, || How::ask(&toolbox, HOW, None));
    assert_eq!((inside.nice, inside.batch), (0, false), "raised to nice 0 instead");
    returns(&peer, inside.thread, |how| how.batch, &false);
}

/// A call that comes back while its caller serves from the background does not bring it home early.
#[test]
fn a_nested_call_leaves_its_thread_in_the_background() {
    let by_thread = BackgroundScheduling::ByThread(BackgroundGroup::Batch);
    let (_bench, peer, _process, toolbox) = need!(served(&by_thread));
    // Its own process serves it, by the thread that waits for this call (contract TX-06).
    let partner = node(&toolbox, BINDER);
    let inside = at_nice(14, || How::ask(&toolbox, NESTED, Some(&partner)));
    assert_eq!((inside.nice, inside.batch), (14, true));
    returns(&peer, inside.thread, |how| how.batch, &false);
}

/// Two groups for threads; removed in the end.
struct Groups {
    folders: Vec<PathBuf>,
    takes: &'static str,
}

impl Groups {
    const NAMES: [&'static str; 2] = ["foreground", "background"];

    /// Below this folder of a hierarchy of either version.
    fn below(folder: &Path, takes: &'static str) -> std::io::Result<Self> {
        let mut groups = Self { folders: Vec::new(), takes };
        for name in Self::NAMES {
            let path = folder.join(format!("binderperf-{}-{name}", std::process::id()));
            std::fs::create_dir(&path)?;
            groups.folders.push(path.clone());
            if takes == "cgroup.threads" {
                std::fs::write(path.join("cgroup.type"), "threaded")?;
            }
            // Whether a thread may go there at all.
            let moved = std::thread::spawn(move || std::fs::write(path.join(takes), "0"));
            moved.join().expect("no panic")?;
        }
        Ok(groups)
    }

    /// In a hierarchy that is mounted, or that this may mount.
    fn find() -> Result<Self, String> {
        let mounts = std::fs::read_to_string("/proc/self/mounts").map_err(|error| error.to_string())?;
        let mut tried = Vec::new();
        for line in mounts.lines() {
            let mut words = line.split(' ').skip(1);
            let (folder, kind, options) = (words.next(), words.next(), words.next().unwrap_or_default());
            let takes = match kind {
                Some("cgroup2") => "cgroup.threads",
                Some("cgroup") if options.split(',').any(|option| option == "cpu") => "tasks",
                _ => continue,
            };
            let folder = Path::new(folder.unwrap_or_default());
            match Self::below(folder, takes) {
                Ok(groups) => return Ok(groups),
                Err(error) => tried.push(format!("{}: {error}", folder.display())),
            }
        }
        let folder = Path::new(env!("CARGO_TARGET_TMPDIR")).join("groups");
        let mounted = std::fs::create_dir_all(&folder)
            .and_then(|()| sys::kernel::mount("cgroup2", &folder, ""))
            .and_then(|()| Self::below(&folder, "cgroup.threads"));
        mounted.map_err(|error| format!("{}; mounting one: {error}", tried.join("; ")))
    }

    fn file(&self, which: usize) -> PathBuf {
        self.folders[which].join(self.takes)
    }
}

impl Drop for Groups {
    fn drop(&mut self) {
        for folder in &self.folders {
            // Busy until the last thread in it is gone.
            eventually("an empty group", || std::fs::remove_dir(folder).is_ok());
        }
    }
}

/// As up to Android 7.0, with its two groups.
#[test]
fn a_thread_that_cares_for_itself_serves_background_callers_in_their_group() {
    let groups = need!(Groups::find().map_err(|why| Need::Cgroups.lacks(why)));
    let by_thread = BackgroundScheduling::ByThread(BackgroundGroup::Cgroups {
        foreground: groups.file(0),
        background: groups.file(1),
    });
    let (_bench, peer, _process, toolbox) = need!(served(&by_thread));
    let hwbinder = node(&toolbox, HWBINDER);
    let is_in = |how: &How| {
        Groups::NAMES.map(|name| how.groups.contains(&format!("binderperf-{}-{name}", std::process::id())))
    };
    let (nowhere_yet, foreground, background) = ([false, false], [true, false], [false, true]);
    let mut home = nowhere_yet;
    for (object, caller, want) in
        [(&toolbox, 0, None), (&toolbox, 10, Some(background)), (&hwbinder, 10, None), (&toolbox, 9, None)]
    {
        let inside = at_nice(caller, || How::ask(object, HOW, None));
        assert_eq!(is_in(&inside), want.unwrap_or(home), "from {caller}: {inside:?}");
        if want.is_some() {
            home = foreground;
        }
        returns(&peer, inside.thread, is_in, &home);
    }
}
