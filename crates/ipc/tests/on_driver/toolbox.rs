//! The service that peers offer: one small method per behaviour under test.

use std::collections::BTreeSet;
use std::fs::File;
use std::io::{Read, Seek, Write};
use std::sync::atomic::{AtomicI32, Ordering};
use std::sync::{Arc, Barrier, Mutex};
use std::time::Duration;

use backend::AnyContext;
use ipc::binder::manager::{ServiceManager, Services};
use ipc::binder::{CallError, Incoming, Object, Parcel, Reply, Status};
use ipc::{Binder, Process, ProcessOptions};

use crate::peer::{PATIENCE, TestProcess, become_manager};
use crate::scheduling::{self, DISABLE, FLAVOURS, HOW, NESTED, NODE};

pub(crate) const NAME: &str = "toolbox";
pub(crate) const DESCRIPTOR: &str = "example.IToolbox";

/// `byte[] echo(byte[])`
pub(crate) const ECHO: u32 = 1;
/// `int bounce(IToolbox partner, int times)`: calls `bounce(self, times - 1)` at the partner.
pub(crate) const BOUNCE: u32 = 2;
/// `oneway void append(int)`
pub(crate) const APPEND: u32 = 3;
/// `int[] log()`
pub(crate) const LOG: u32 = 4;
/// `String readAll(FileDescriptor)`
pub(crate) const READ_ALL: u32 = 5;
/// `FileDescriptor open(String content)`
pub(crate) const OPEN: u32 = 6;
/// `void keep(IBinder)`
pub(crate) const KEEP: u32 = 7;
/// `void dropAll()`
pub(crate) const DROP_ALL: u32 = 8;
/// `IBinder make()`
pub(crate) const MAKE: u32 = 9;
/// `int living()`: made objects that still exist.
pub(crate) const LIVING: u32 = 10;
/// `int meet(int callers)`: returns when so many callers are inside at once.
pub(crate) const MEET: u32 = 11;
/// `String[] threads()`
pub(crate) const THREADS: u32 = 12;
/// `void exit()`: never answers.
pub(crate) const EXIT: u32 = 13;
/// `void panic()`
pub(crate) const PANIC: u32 = 14;
/// `int descriptors()`: how many this process has open.
pub(crate) const DESCRIPTORS: u32 = 15;
/// `void sleep()`: longer than any test.
pub(crate) const SLEEP: u32 = 16;
/// `void keptPing()`: calls each kept object's `_PNG`.
pub(crate) const PING_KEPT: u32 = 17;

pub(crate) struct Toolbox {
    process: TestProcess,
    log: Mutex<Vec<i32>>,
    kept: Mutex<Vec<Binder>>,
    living: Arc<AtomicI32>,
    meeting: Mutex<Option<(i32, Arc<Barrier>)>>,
}

/// Counts its own life.
pub(crate) struct Counted {
    living: Arc<AtomicI32>,
}

impl Counted {
    pub(crate) fn new(living: &Arc<AtomicI32>) -> Self {
        living.fetch_add(1, Ordering::SeqCst);
        Self { living: living.clone() }
    }
}

impl Drop for Counted {
    fn drop(&mut self) {
        self.living.fetch_sub(1, Ordering::SeqCst);
    }
}

impl Object for Counted {
    fn descriptor(&self) -> &str {
        "example.ICounted"
    }

    fn on_transact(&self, _call: &mut Incoming<'_>, _reply: &mut Parcel) -> Result<(), Status> {
        Err(Status::UNKNOWN_TRANSACTION)
    }
}

/// Names of this process's threads.
pub(crate) fn thread_names() -> Vec<String> {
    let tasks = std::fs::read_dir("/proc/self/task").expect("procfs").flatten();
    let names = tasks.filter_map(|task| std::fs::read_to_string(task.path().join("comm")).ok());
    names.map(|name| name.trim().to_owned()).collect::<BTreeSet<_>>().into_iter().collect()
}

/// How many descriptors this process has open, the one that looks included.
pub(crate) fn open_descriptors() -> usize {
    std::fs::read_dir("/proc/self/fd").expect("procfs").count()
}

/// A file without a name, positioned at its beginning.
pub(crate) fn nameless_file(content: &str) -> File {
    let folder = sys::private_folder::PrivateFolder::new("toolbox").expect("a folder");
    let options = File::options().read(true).write(true).create_new(true).open(folder.path().join("file"));
    let mut file = options.expect("create");
    file.write_all(content.as_bytes()).expect("write");
    file.rewind().expect("rewind");
    file
}

impl Toolbox {
    pub(crate) fn new(process: TestProcess) -> Self {
        Self {
            process,
            log: Mutex::default(),
            kept: Mutex::default(),
            living: Arc::default(),
            meeting: Mutex::default(),
        }
    }

    fn bounce(&self, call: &mut Incoming<'_>, reply: &mut Parcel) -> Result<(), Status> {
        let partner = call.read_binder()?;
        let times = call.read_i32()?;
        let mut deepest = times;
        if times > 0 {
            let own = self.process.publish(Self::new(self.process.clone()));
            deepest = bounce(&partner, &own, times - 1)?;
        }
        reply.write_i32(deepest);
        Ok(())
    }

    fn meet(&self, callers: i32) {
        let barrier = {
            let mut meeting = self.meeting.lock().expect("meeting");
            let size = usize::try_from(callers).expect("callers");
            match &*meeting {
                Some((size, barrier)) if *size == callers => barrier.clone(),
                _ => meeting.insert((callers, Arc::new(Barrier::new(size)))).1.clone(),
            }
        };
        barrier.wait();
    }

    /// Another toolbox, with the options of one of [`FLAVOURS`] or with none.
    fn node(&self, flavour: i32) -> Binder {
        let toolbox = Self::new(self.process.clone());
        match usize::try_from(flavour) {
            Ok(index) => self.process.publish_with(toolbox, FLAVOURS[index]),
            Err(_) => self.process.publish(toolbox),
        }
    }

    fn objects(&self, call: &mut Incoming<'_>, reply: &mut Parcel) -> Result<(), Status> {
        match call.code() {
            KEEP => self.kept.lock().expect("kept").push(call.read_binder()?),
            DROP_ALL => self.kept.lock().expect("kept").clear(),
            MAKE => reply.write_binder(&self.process.publish(Counted::new(&self.living))),
            LIVING => reply.write_i32(self.living.load(Ordering::SeqCst)),
            PING_KEPT => {
                let kept = self.kept.lock().expect("kept").clone();
                for object in kept {
                    object.ping()?;
                }
            }
            _ => return Err(Status::UNKNOWN_TRANSACTION),
        }
        Ok(())
    }
}

/// `IToolbox.bounce`
pub(crate) fn bounce(at: &Binder, own: &Binder, times: i32) -> Result<i32, CallError> {
    let mut request = at.request(DESCRIPTOR);
    request.write_binder(own);
    request.write_i32(times);
    Ok(at.call(BOUNCE, request)?.reader().read_i32()?)
}

/// A method without arguments.
pub(crate) fn plain(at: &Binder, code: u32) -> Result<Reply<'_>, CallError> {
    at.call(code, at.request(DESCRIPTOR))
}

impl Object for Toolbox {
    fn descriptor(&self) -> &str {
        DESCRIPTOR
    }

    fn on_transact(&self, call: &mut Incoming<'_>, reply: &mut Parcel) -> Result<(), Status> {
        match call.code() {
            ECHO => reply.write_byte_slice(call.read_byte_slice()?),
            BOUNCE => self.bounce(call, reply)?,
            APPEND => self.log.lock().expect("log").push(call.read_i32()?),
            LOG => reply.write_packed::<i32>(&self.log.lock().expect("log")),
            READ_ALL => {
                let mut text = String::new();
                File::from(call.read_fd()?).read_to_string(&mut text).expect("read");
                reply.write_str(&text);
            }
            OPEN => reply.write_fd(nameless_file(&call.read_str()?)),
            MEET => {
                let callers = call.read_i32()?;
                self.meet(callers);
                reply.write_i32(callers);
            }
            THREADS => reply.write_str_slice(&thread_names()),
            EXIT => std::process::exit(0),
            // Without the hook that would print it.
            PANIC => std::panic::resume_unwind(Box::new("asked to")),
            DESCRIPTORS => reply.write_i32(i32::try_from(open_descriptors()).expect("few")),
            SLEEP => std::thread::sleep(Duration::from_secs(3600)),
            code @ (HOW | NESTED) => scheduling::serve(code, call, reply)?,
            DISABLE => self.process.disable_background_scheduling(call.read_bool()?),
            NODE => reply.write_binder(&self.node(call.read_i32()?)),
            _ => self.objects(call, reply)?,
        }
        Ok(())
    }
}

/// Runs a peer's process, which plays this role.
pub(crate) fn play(role: &str, context: &AnyContext, options: ProcessOptions) -> TestProcess {
    let process = Process::open(context, options).expect("open");
    let toolbox = process.publish(Toolbox::new(process.clone()));
    match role {
        "manager" => {
            let manager = ServiceManager::new();
            manager.declare("example.IDeclared/default");
            manager.declare("example.IDeclaredToo/default");
            become_manager(|| process.become_context_manager(manager.clone()));
            manager.add(NAME, &toolbox).expect("add");
            process.start_thread_pool().expect("start the pool");
        }
        "service" => {
            process.start_thread_pool().expect("start the pool");
            let services = Services::wait(&process, PATIENCE).expect("a manager");
            services.add("second", &toolbox).expect("add");
        }
        other => panic!("no role {other}"),
    }
    process
}
