//! Room: what one call costs besides the driver's own work: allocations and exchanges, counted on both
//! sides, on the driver that BINDERPERF_TEST_DRIVER names: kernel (the default) or embedded.
//! Not here: instructions and time (`make bench`).
//!
//! Counted after a warm-up, per thread. An *exchange* is one `BINDER_WRITE_READ`.
//! - Client: no allocation, and exactly one exchange per call: it carries the `BC_FREE_BUFFER` of
//!   the previous reply and the `BC_TRANSACTION`, and returns with the reply.
//! - Server: no allocation, and exactly two exchanges per call: one writes `BC_REPLY` and
//!   `BC_FREE_BUFFER` together and returns with that reply's `BR_TRANSACTION_COMPLETE`, which the
//!   driver does not defer (contract TX-01); the other waits for the next call.
#![forbid(unsafe_code)]

mod counting;
mod hwbinder;

use std::io::Read;
use std::process::{Child, Command, Stdio};
use std::time::Duration;

use driver::locate::{self, Wanted};
use driver::{AnyConnection, AnyContext, Context, OpenOptions};
use ipc::binder::manager::{ServiceManager, Services};
use ipc::binder::{Incoming, Object, Parcel, Status};
use ipc::{Binder, Process, ProcessOptions};
use sys::counting_alloc::CountingAlloc;

use counting::{CountingContext, Counts};

#[global_allocator]
static ALLOCATOR: CountingAlloc = CountingAlloc::new();

const DRIVER: &str = "BINDERPERF_TEST_DRIVER";
const ADDRESS: &str = "BINDERPERF_TEST_ADDRESS";
const DESCRIPTOR: &str = "example.ICounted";
/// `byte[] echo(byte[])`
const ECHO: u32 = 1;
/// `long[] counts()`: the serving thread's.
const COUNTS: u32 = 2;
const NAME: &str = "counted";
/// Generous: an emulated guest on a busy machine is slow.
const PATIENCE: Duration = Duration::from_secs(30);

struct Counted;

impl Object for Counted {
    fn descriptor(&self) -> &str {
        DESCRIPTOR
    }

    fn on_transact(&self, call: &mut Incoming<'_>, reply: &mut Parcel) -> Result<(), Status> {
        match call.code() {
            ECHO => reply.write_byte_slice(call.read_byte_slice()?),
            COUNTS => reply.write_i64_slice(&Counts::of_this_thread().numbers()),
            _ => return Err(Status::UNKNOWN_TRANSACTION),
        }
        Ok(())
    }
}

/// Not a test: what the server process runs.
#[test]
fn role() {
    let Ok(address) = std::env::var(ADDRESS) else { return };
    let context = CountingContext(AnyContext::parse(&address));
    // One pool thread: its counts are the server's.
    let options = ProcessOptions { max_threads: 0, ..ProcessOptions::default() };
    let process = Process::open(&context, options).expect("open");
    let manager = ServiceManager::new();
    process.become_context_manager(manager.clone()).expect("become the manager");
    manager.add(NAME, &process.publish(Counted)).expect("add");
    process.start_thread_pool().expect("start the pool");
    let _ = std::io::stdin().read(&mut [0]);
    std::process::exit(0);
}

struct Server(Child);

impl Drop for Server {
    fn drop(&mut self) {
        let _ = self.0.kill();
        let _ = self.0.wait();
    }
}

fn server(context: &AnyContext, role: &str) -> Server {
    let child = Command::new(std::env::current_exe().expect("own path"))
        .args(["--exact", role, "--nocapture", "--test-threads=1"])
        .env(ADDRESS, context.address())
        .stdin(Stdio::piped())
        .stdout(Stdio::null())
        .spawn();
    Server(child.expect("start the server"))
}

fn echo(service: &Binder, bytes: &[u8]) {
    let mut request = service.request(DESCRIPTOR);
    request.write_byte_slice(bytes);
    let reply = service.call(ECHO, request).expect("echo");
    assert_eq!(reply.reader().read_byte_slice().map(<[u8]>::len), Ok(bytes.len()));
}

fn counts_there(service: &Binder) -> Counts {
    let reply = service.call(COUNTS, service.request(DESCRIPTOR)).expect("counts");
    Counts::from_numbers(&reply.reader().read_i64_vec().expect("numbers"))
}

/// The context to test on; `None`, with the reason printed, where there is none.
fn context(flavour: &str) -> Option<AnyContext> {
    let driver = std::env::var(DRIVER).unwrap_or_else(|_| "kernel".to_owned());
    let driver = driver.parse().expect("a driver");
    match locate::find(&Wanted { driver, ..Wanted::default() }, flavour) {
        Ok(located) => Some(located.context),
        Err(error) => {
            assert!(std::env::var_os("BINDERPERF_REQUIRE_DRIVER").is_none(), "no driver: {error}");
            println!("SKIP: {error}");
            None
        }
    }
}

/// An embedded driver's broker may run in the first process that opens a context: this one.
fn open_first(context: &AnyContext) -> AnyConnection {
    context.open(OpenOptions { map_size: 0, ..OpenOptions::default() }).expect("open")
}

/// Calls and counts, on both sides, what the calls cost.
fn check(size: usize, echo: impl Fn(&[u8]), counts_there: impl Fn() -> Counts) {
    const CALLS: u64 = 200;
    let bytes = vec![1; size];
    for _ in 0..10 {
        echo(&bytes);
        counts_there();
    }

    let (here, there) = (Counts::of_this_thread(), counts_there());
    for _ in 0..CALLS {
        echo(&bytes);
    }
    let (here, there) = (Counts::of_this_thread().since(here), counts_there().since(there));

    // Both ends also count the call that fetched the first counts, or the rest of it.
    assert_eq!(here.exchanges, CALLS + 1, "{size} bytes: client's exchanges");
    assert_eq!(there.exchanges, 2 * (CALLS + 1), "{size} bytes: server's exchanges");
    assert_eq!(there.replies_with_free, CALLS + 1, "{size} bytes: replies that carry a free");
    assert_eq!(there.allocations, 0, "{size} bytes: server's allocations");
    let before = CountingAlloc::allocations_of_this_thread();
    for _ in 0..CALLS {
        echo(&bytes);
    }
    let allocations = CountingAlloc::allocations_of_this_thread() - before;
    assert_eq!(allocations, 0, "{size} bytes: client's allocations");
}

#[test]
fn a_call_allocates_nothing_and_takes_one_exchange_per_hop() {
    let Some(context) = context("binder") else { return };
    let _first = open_first(&context);
    let _server = server(&context, "role");
    let options = ProcessOptions { max_threads: 0, ..ProcessOptions::default() };
    let process = Process::open(&CountingContext(context.clone()), options).expect("open");
    let services = Services::wait(&process, PATIENCE).expect("a manager");
    let service = services.get(NAME).expect("the service");
    for size in [4, 4096, 65536] {
        check(size, |bytes| echo(&service, bytes), || counts_there(&service));
    }
}
