//! Cost of a typed call, compared with one that writes its parcels by hand, in counted instructions.
//! Not here: what the driver adds to both (`docs/reading-the-numbers.md`).
//!
//! The object is of this process, so the driver takes no part: with it the ratio is closer to 1.

use std::hint::black_box;

use binder::{Binder, Incoming, Object, Parcel, Process, ProcessOptions, Status};
use steps::count;

/// Most instructions of a typed call, in those of one with parcels written by hand.
const LIMIT: f64 = 1.05;
/// Environment variable with the kind and the number of calls for a counted run.
const COUNTED: &str = "BINDERPERF_COUNTED_CALLS";
const SENT: [u8; 4] = [1, 2, 3, 4];

binder::interface! {
    mod bytes = "example.IBytes" {
        fn send(bytes: Vec<u8>) -> Vec<u8>;
    }
}

struct Typed;

impl bytes::Service for Typed {
    fn send(&self, bytes: Vec<u8>) -> Result<Vec<u8>, Status> {
        Ok(bytes)
    }
}

struct Bare;

impl Object for Bare {
    fn descriptor(&self) -> &str {
        bytes::DESCRIPTOR
    }

    fn on_transact(&self, call: &mut Incoming<'_>, reply: &mut Parcel) -> Result<(), Status> {
        match call.code() {
            // A vector of its own, as a method with types gets.
            1 => reply.write_byte_slice(&black_box(call.read_byte_slice()?.to_vec())),
            _ => return Err(Status::UNKNOWN_TRANSACTION),
        }
        Ok(())
    }
}

fn bare(object: &Binder) -> Vec<u8> {
    let mut request = object.request(bytes::DESCRIPTOR);
    request.write_byte_slice(black_box(&SENT));
    let reply = object.call(1, request).expect("served");
    reply.reader().read_byte_slice().expect("bytes").to_vec()
}

#[test]
fn counted_calls() {
    let Ok(wanted) = std::env::var(COUNTED) else { return };
    let (kind, calls) = wanted.split_once(' ').expect("a kind and a number of calls");
    let context = binder::find("embedded:private", "binder").expect("the embedded driver");
    let process = Process::open(&context, ProcessOptions::default()).expect("it opens");
    let typed = bytes::Client::publish(&process, Typed);
    let object = process.publish(Bare);
    for _ in 0..calls.parse::<u64>().expect("a number") {
        let came = match kind {
            "typed" => typed.send(black_box(&SENT)).expect("served"),
            _ => bare(&object),
        };
        assert_eq!(black_box(came), SENT);
    }
}

#[test]
fn a_typed_call_costs_hardly_more_than_parcels_by_hand() {
    let [typed, bare] = ["typed", "bare"].map(|kind| {
        let run = |calls| count::of_test("counted_calls", (COUNTED, &format!("{kind} {calls}")));
        count::of_one(run).expect("valgrind counts")
    });
    println!("typed {typed:.0} instructions, by hand {bare:.0}: {:.3}", typed / bare);
    assert!(typed <= LIMIT * bare, "{typed:.0} instructions a typed call, {bare:.0} by hand");
}
