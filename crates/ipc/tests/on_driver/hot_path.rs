//! Allocations and exchanges per call, counted on both sides.
//! Not here: instructions and time (`make bench`).
//!
//! Counted after a warm-up, per thread. An *exchange* is one `BINDER_WRITE_READ`.
//! - Client: no allocation, and exactly one exchange per call: it carries the `BC_FREE_BUFFER` of
//!   the previous reply and the `BC_TRANSACTION`, and returns with the reply.
//! - Server: no allocation, and exactly two exchanges per call: one writes `BC_REPLY` and
//!   `BC_FREE_BUFFER` together and returns with that reply's `BR_TRANSACTION_COMPLETE`, which the
//!   driver does not defer (contract TX-01); the other waits for the next call.
//!
//! A hwbinder call costs as much as a binder call: vectors are not copied on either side, and the reply consists of the
//! request's own bytes.

use std::any::Any;

use needs::need;

use backend::AnyContext;
use ipc::binder::manager::{ServiceManager, Services};
use ipc::binder::{self, Parcel, Status};
use ipc::hwbinder::{self, HwBinder, HwParcel};
use ipc::{Binder, Process, ProcessOptions};
use sys::counting_alloc::CountingAlloc;

use crate::counting::{CountingConnection, CountingContext, Counts};
use crate::peer::{PATIENCE, become_manager, bench_of, eventually};

#[global_allocator]
static ALLOCATOR: CountingAlloc = CountingAlloc::new();

const DESCRIPTOR: &str = "example.ICounted";
const INTERFACE: &str = "example@1.0::ICounted";
/// `byte[] echo(byte[])`, `echo(vec<uint8_t>) generates (vec<uint8_t>)`
const ECHO: u32 = 1;
/// `long[] counts()`, `counts() generates (vec<int64_t>)`: the serving thread's.
const COUNTS: u32 = 2;
/// `words(vec<string>) generates (vec<string>)`
const WORDS: u32 = 3;
/// More objects than a call's usual two.
const SEVEN: [&str; 7] = ["a", "few", "strings", "", "of", "several", "lengths"];
const NAME: &str = "counted";

struct Counted;

impl binder::Object for Counted {
    fn descriptor(&self) -> &str {
        DESCRIPTOR
    }

    fn on_transact(&self, call: &mut binder::Incoming<'_>, reply: &mut Parcel) -> Result<(), Status> {
        match call.code() {
            ECHO => reply.write_byte_slice(call.read_byte_slice()?),
            COUNTS => reply.write_packed::<i64>(&Counts::of_this_thread().numbers()),
            _ => return Err(Status::UNKNOWN_TRANSACTION),
        }
        Ok(())
    }
}

impl hwbinder::Object for Counted {
    fn interfaces(&self) -> &[&str] {
        &[INTERFACE]
    }

    fn on_transact<'t>(
        &self,
        call: &mut hwbinder::Incoming<'t>,
        reply: &mut HwParcel<'t>,
    ) -> Result<(), Status> {
        match call.code() {
            ECHO => reply.write_vec(call.read_bytes()?),
            // Reading them makes a list; that is the reader's own.
            WORDS => reply.write_str_vec(&SEVEN),
            COUNTS => {
                let numbers = Counts::of_this_thread().numbers();
                let array = reply.write_structs(numbers.len(), 8);
                reply.set(array, 0, numbers.map(i64::to_le_bytes).as_flattened());
            }
            _ => return Err(Status::UNKNOWN_TRANSACTION),
        }
        Ok(())
    }
}

fn open(context: &AnyContext) -> Process<CountingConnection> {
    // No thread but the pool's first: its counts are the server's.
    let options = ProcessOptions { max_threads: 0, ..ProcessOptions::default() };
    Process::open(&CountingContext(context.clone()), options).expect("open")
}

/// The peer's side of `role`.
pub(crate) fn play(role: &str, context: &AnyContext) -> Box<dyn Any> {
    let process = open(context);
    if role == "counted" {
        let manager = ServiceManager::new();
        become_manager(|| process.become_context_manager(manager.clone()));
        manager.add(NAME, &process.publish(Counted)).expect("add");
    } else {
        become_manager(|| process.become_hidl_context_manager(Counted));
    }
    process.start_thread_pool().expect("start the pool");
    Box::new(process)
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
    let bench = need!(bench_of("binder"));
    let _peer = bench.peer("counted", ipc::Release::default(), 0);
    let services = Services::wait(&open(bench.context()), PATIENCE).expect("a manager");
    let service = services.get(NAME).expect("the service");
    let echo = |bytes: &[u8]| {
        let mut request = service.request(DESCRIPTOR);
        request.write_byte_slice(bytes);
        let reply = service.call(ECHO, request).expect("echo");
        assert_eq!(reply.reader().read_byte_slice().map(<[u8]>::len), Ok(bytes.len()));
    };
    let counts_there = || {
        let reply = service.call(COUNTS, service.request(DESCRIPTOR)).expect("counts");
        Counts::from_numbers(&reply.reader().read_packed_vec::<i64>().ok().flatten().expect("numbers"))
    };
    for size in [4, 4096, 65536] {
        check(size, echo, counts_there);
    }
}

#[test]
fn a_hidl_call_allocates_nothing_and_takes_one_exchange_per_hop() {
    let bench = need!(bench_of("hwbinder"));
    let _peer = bench.peer("hwcounted", ipc::Release::default(), 0);
    let process = open(bench.context());
    let service = HwBinder::from(Binder::from(process.context_manager().expect("not ours")));
    eventually("the service", || service.ping().is_ok());
    let echo = |bytes: &[u8]| {
        let mut request = service.request(INTERFACE);
        request.write_vec(bytes);
        let reply = service.call(ECHO, request).expect("echo");
        assert_eq!(reply.reader().read_bytes().map(<[u8]>::len), Ok(bytes.len()));
    };
    let words = |_: &[u8]| {
        let mut request = service.request(INTERFACE);
        request.write_str_vec(&SEVEN);
        service.call(WORDS, request).expect("words");
    };
    let counts_there = || {
        let reply = service.call(COUNTS, service.request(INTERFACE)).expect("counts");
        Counts::from_numbers(reply.reader().read_vec().expect("numbers"))
    };
    for size in [4, 4096, 65536] {
        check(size, echo, counts_there);
    }
    check(0, words, counts_there);
}
