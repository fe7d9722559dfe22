//! Room: what one call of the flavour hwbinder costs: the same as one of binder's. Its vectors are not
//! copied, on either side; the reply is made of the request's own bytes.

use std::io::Read;
use std::time::Instant;

use driver::AnyContext;
use ipc::hwbinder::{HwBinder, HwParcel, Incoming, Object, Status};
use ipc::{Binder, Process, ProcessOptions};

use super::{ADDRESS, COUNTS, ECHO, PATIENCE, check, context, open_first, server};
use crate::counting::{CountingContext, Counts};

const INTERFACE: &str = "example@1.0::ICounted";

/// `words(vec<string>) generates (vec<string>)`
const WORDS: u32 = 3;
/// More objects than a call's usual two.
const SEVEN: [&str; 7] = ["a", "few", "strings", "", "of", "several", "lengths"];

struct Counted;

impl Object for Counted {
    fn interfaces(&self) -> &[&str] {
        &[INTERFACE]
    }

    fn on_transact<'t>(&self, call: &mut Incoming<'t>, reply: &mut HwParcel<'t>) -> Result<(), Status> {
        match call.code() {
            ECHO => reply.write_vec(call.read_bytes()?),
            // Reading them makes a list; that is the reader's own.
            WORDS => reply.write_str_vec(&SEVEN),
            COUNTS => {
                let numbers = Counts::of_this_thread().numbers();
                let array = reply.write_structs(numbers.len(), 8);
                for (index, number) in numbers.iter().enumerate() {
                    reply.set(array, 8 * index, &number.to_le_bytes());
                }
            }
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
    // No thread but the pool's first: its counts are the server's.
    let process = Process::open(&context, ProcessOptions::hwbinder()).expect("open");
    process.become_hidl_context_manager(Counted).expect("become the manager");
    process.start_thread_pool().expect("start the pool");
    let _ = std::io::stdin().read(&mut [0]);
    std::process::exit(0);
}

fn echo(service: &HwBinder, bytes: &[u8]) {
    let mut request = service.request(INTERFACE);
    request.write_vec(bytes);
    let reply = service.call(ECHO, request).expect("echo");
    assert_eq!(reply.reader().read_bytes().map(<[u8]>::len), Ok(bytes.len()));
}

fn words(service: &HwBinder) {
    let mut request = service.request(INTERFACE);
    request.write_str_vec(&SEVEN);
    service.call(WORDS, request).expect("words");
}

fn counts_there(service: &HwBinder) -> Counts {
    let reply = service.call(COUNTS, service.request(INTERFACE)).expect("counts");
    Counts::from_numbers(reply.reader().read_vec().expect("numbers"))
}

#[test]
fn a_hidl_call_allocates_nothing_and_takes_one_exchange_per_hop() {
    let Some(context) = context("hwbinder") else { return };
    let _first = open_first(&context);
    let _server = server(&context, "hwbinder::role");
    let process = Process::open(&CountingContext(context.clone()), ProcessOptions::hwbinder()).expect("open");
    let service = HwBinder::from(Binder::from(process.context_manager().expect("not ours")));
    let end = Instant::now() + PATIENCE;
    while let Err(error) = service.ping() {
        assert!(error.is_dead() && Instant::now() < end, "no service: {error}");
        std::thread::sleep(std::time::Duration::from_millis(2));
    }
    for size in [4, 4096, 65536] {
        check(size, |bytes| echo(&service, bytes), || counts_there(&service));
    }
    check(0, |_| words(&service), || counts_there(&service));
}
