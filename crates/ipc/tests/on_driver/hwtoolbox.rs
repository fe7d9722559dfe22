//! The HIDL object that a peer offers, as its context's manager: one small method per behaviour
//! under test.

use std::fs::File;
use std::io::Read;
use std::sync::{Arc, Mutex};

use needs::Lack;

use backend::AnyContext;
use driver::Connection;
use ipc::hwbinder::manager::{ServiceManager, Services};
use ipc::hwbinder::{CallError, HwBinder, HwParcel, Incoming, NativeHandle, Object, Status};
use ipc::{Process, ProcessOptions, StatusCode};

use crate::peer::{Bench, Opened, PATIENCE, Peer, TestProcess, become_manager, bench_of, eventually};
use crate::toolbox::{nameless_file, open_descriptors, thread_names};

pub(crate) const FLAVOUR: &str = "hwbinder";

/// The newer interface declares [`JOIN`] alone.
pub(crate) const V1_1: &str = "example@1.1::IToolbox";
pub(crate) const V1_0: &str = "example@1.0::IToolbox";

/// `echo(vec<uint8_t>) generates (vec<uint8_t>)`, in place.
pub(crate) const ECHO: u32 = 1;
/// `bounce(interface partner, int32_t times) generates (int32_t)`
pub(crate) const BOUNCE: u32 = 2;
/// `oneway append(vec<int32_t>)`
pub(crate) const APPEND: u32 = 3;
/// `log() generates (vec<int32_t>)`
pub(crate) const LOG: u32 = 4;
/// `readAll(handle) generates (string)`
pub(crate) const READ_ALL: u32 = 5;
/// `open(string content) generates (handle)`
pub(crate) const OPEN: u32 = 6;
/// `refuse(string why)`: fails with an exception.
pub(crate) const REFUSE: u32 = 7;
/// `panic()`
pub(crate) const PANIC: u32 = 8;
/// `threads() generates (vec<string>)`
pub(crate) const THREADS: u32 = 9;
/// `descriptors() generates (int32_t)`: how many this process has open.
pub(crate) const DESCRIPTORS: u32 = 10;
/// `join(vec<string>) generates (string)`
pub(crate) const JOIN: u32 = 11;
/// `inPlace(vec<uint8_t>) generates (bool)`: whether the service sees the driver's own bytes.
pub(crate) const IN_PLACE: u32 = 12;

pub(crate) struct HwToolbox {
    process: TestProcess,
    log: Mutex<Vec<i32>>,
}

impl HwToolbox {
    fn new(process: TestProcess) -> Arc<Self> {
        Arc::new(Self { process, log: Mutex::default() })
    }

    pub(crate) fn publish(process: &TestProcess) -> HwBinder {
        process.publish_hidl(Self::new(process.clone()))
    }

    fn bounce(&self, call: &mut Incoming<'_>, reply: &mut HwParcel<'_>) -> Result<(), Status> {
        let partner = call.read_binder()?;
        let times = call.read_i32()?;
        let mut deepest = times;
        if times > 0 {
            let own = Self::publish(&self.process);
            deepest = bounce(&partner, &own, times - 1)?;
        }
        reply.write_i32(deepest);
        Ok(())
    }

    fn read_all(call: &mut Incoming<'_>, reply: &mut HwParcel<'_>) -> Result<(), Status> {
        let handle = call.read_handle()?.ok_or(StatusCode::UNEXPECTED_NULL)?;
        let mut text = String::new();
        for fd in handle.fds {
            File::from(fd).read_to_string(&mut text).expect("read");
        }
        text.extend(handle.ints.iter().map(|int| format!(" {int}")));
        reply.write_str(&text);
        Ok(())
    }
}

/// `IToolbox.bounce`
pub(crate) fn bounce(at: &HwBinder, own: &HwBinder, times: i32) -> Result<i32, CallError> {
    let mut request = at.request(V1_0);
    request.write_binder(own);
    request.write_i32(times);
    Ok(at.call(BOUNCE, request)?.reader().read_i32()?)
}

impl Object for HwToolbox {
    fn interfaces(&self) -> &[&str] {
        &[V1_1, V1_0]
    }

    fn on_transact<'t>(&self, call: &mut Incoming<'t>, reply: &mut HwParcel<'t>) -> Result<(), Status> {
        match call.code() {
            ECHO => reply.write_vec(call.read_bytes()?),
            BOUNCE => self.bounce(call, reply)?,
            APPEND => self.log.lock().expect("log").extend_from_slice(call.read_vec()?),
            LOG => {
                let log = self.log.lock().expect("log");
                let numbers: Vec<[u8; 4]> = log.iter().map(|number| number.to_le_bytes()).collect();
                let array = reply.write_structs(log.len(), 4);
                reply.set(array, 0, numbers.as_flattened());
            }
            READ_ALL => Self::read_all(call, reply)?,
            OPEN => {
                let file = nameless_file(call.read_str()?);
                reply.write_handle(Some(NativeHandle { fds: vec![file.into()], ints: vec![7] }));
            }
            REFUSE => return Err(Status::illegal_argument(call.read_str()?)),
            // Without the hook that would print it.
            PANIC => std::panic::resume_unwind(Box::new("asked to")),
            THREADS => reply.write_str_vec(&thread_names()),
            DESCRIPTORS => reply.write_i32(i32::try_from(open_descriptors()).expect("few")),
            IN_PLACE => {
                let bytes = call.read_bytes()?;
                let lent = self.process.connection().lent(bytes.as_ptr() as u64, bytes.len() as u64);
                reply.write_bool(lent.is_some_and(|lent| std::ptr::eq(lent, bytes)));
            }
            JOIN => reply.write_str(&call.read_str_vec()?.join("+")),
            _ => return Err(Status::UNKNOWN_TRANSACTION),
        }
        Ok(())
    }
}

/// Runs a peer's process, which plays this role.
pub(crate) fn play(role: &str, context: &AnyContext, threads: u32) -> TestProcess {
    let process = Process::open(context, ProcessOptions::hwbinder_pool(threads, false)).expect("open");
    let toolbox = HwToolbox::new(process.clone());
    match role {
        "hwtoolbox" => become_manager(|| process.become_hidl_context_manager(toolbox.clone())),
        "hwmanager" => {
            let manager = ServiceManager::new();
            manager.declare(V1_0, "declared");
            manager.add("default", &process.publish_hidl(toolbox)).expect("add");
            become_manager(|| process.become_hidl_context_manager(manager.clone()));
        }
        "hwservice" => {
            let services = Services::wait(&process, PATIENCE).expect("a manager");
            services.add_with_chain("second", &process.publish_hidl(toolbox)).expect("add");
        }
        other => panic!("no role {other}"),
    }
    process.start_thread_pool().expect("start the pool");
    process
}

impl Bench {
    /// A process of this flavour in the test itself, with a running pool.
    pub(crate) fn hw_process(&self) -> Opened {
        self.open(ProcessOptions::hwbinder_pool(4, false))
    }
}

/// A test's context, a peer with a service manager and a toolbox, and this process as its client; `None` without a driver.
pub(crate) fn hw_managed() -> Result<(Bench, Peer, Opened, Services), Lack> {
    let bench = bench_of(FLAVOUR)?;
    let peer = bench.peer("hwmanager", ipc::Release::default(), 2);
    let process = bench.hw_process();
    let services = Services::wait(&process, PATIENCE).expect("a manager");
    Ok((bench, peer, process, services))
}

/// [`hw_managed`] with a toolbox at handle 0 instead of a manager.
pub(crate) fn hw_served(threads: u32) -> Result<(Bench, Peer, Opened, HwBinder), Lack> {
    let bench = bench_of(FLAVOUR)?;
    let peer = bench.peer("hwtoolbox", ipc::Release::default(), threads);
    let process = bench.hw_process();
    let toolbox = HwBinder::from(ipc::Binder::from(process.context_manager().expect("not ours")));
    eventually("a toolbox", || toolbox.ping().is_ok());
    Ok((bench, peer, process, toolbox))
}
