//! Android's `binderAddInts`: a call with two numbers, answered by their sum, without the header of an interface.
//! Not here: finding the peer (`crate::endpoint`), the CPUs of both sides (`crate::placing`).
//! Facts: `binderAddInts.cpp` of AOSP's `system/extras`: the transaction code, the numbers `n` and `n + 3` of call `n`, and a delay
//! behind each call that is not part of its time.

use std::io;
use std::sync::{Mutex, PoisonError};
use std::time::Duration;

use abi::Payload;
use driver::Context;
use ipc::{Proxy, Serve, StatusCode, Transaction};
use sys::clock::{monotonic_ns, thread_cpu_ns};

use super::Sabotage;
use crate::call_error::{CallError, refused};
use crate::endpoint::{Rendezvous, call_bare};
use crate::measure::RoundTrip;

const ADD_INTS: u32 = 0x120;

/// The numbers of a request, or the number of a reply.
fn numbers<const N: usize>(bytes: &[u8]) -> Option<[i32; N]> {
    let (words, rest) = bytes.as_chunks::<4>();
    let words: [[u8; 4]; N] = words.try_into().ok()?;
    rest.is_empty().then(|| words.map(i32::from_ne_bytes))
}

/// The measuring end.
pub(crate) struct Client {
    service: Proxy,
    terms: [i32; 2],
    sum: i32,
    /// Time between two calls, in which the thread spins.
    delay: Duration,
    /// CPU time of all delays.
    delayed_ns: u64,
}

impl Client {
    /// Creates a client of the service at this place.
    ///
    /// # Errors
    /// The context cannot be opened, has no manager, or the manager does not know the name.
    pub(crate) fn find<X: Context>(place: Rendezvous<'_, X>, delay: Duration) -> Result<Self, CallError> {
        Ok(Self { service: place.find_object()?, terms: [0; 2], sum: 0, delay, delayed_ns: 0 })
    }

    fn pause(&mut self) {
        let (start, cpu_start) = (monotonic_ns(), thread_cpu_ns());
        while u128::from(monotonic_ns() - start) < self.delay.as_nanos() {
            std::hint::spin_loop();
        }
        self.delayed_ns += thread_cpu_ns() - cpu_start;
    }
}

impl RoundTrip for Client {
    fn stamp(&mut self, sequence: u32) {
        if !self.delay.is_zero() {
            self.pause();
        }
        let first = sequence.cast_signed();
        self.terms = [first, first.wrapping_add(3)];
    }

    fn call(&mut self) -> Result<(), CallError> {
        let [first, second] = self.terms.map(i32::to_ne_bytes);
        let request = [first, second];
        [self.sum] = call_bare(&self.service, ADD_INTS, request.as_flattened(), numbers)?;
        Ok(())
    }

    fn check(&self) -> Result<(), CallError> {
        let ([first, second], sum) = (self.terms, self.sum);
        match first.wrapping_add(second) == sum {
            true => Ok(()),
            false => Err(refused(format_args!("{first} and {second} came back as {sum}"))),
        }
    }

    fn untimed_cpu_ns(&self) -> u64 {
        self.delayed_ns
    }
}

struct AddInts {
    /// `None` except in tests of this tool.
    sabotage: Option<Mutex<Sabotage>>,
}

impl Serve for AddInts {
    fn serve(&self, call: Transaction<'_>) {
        // The driver reports an undeliverable reply to the caller.
        let _ = match numbers(call.data()).filter(|_| call.code() == ADD_INTS) {
            Some([first, second]) => {
                let mut sum = i32::wrapping_add(first, second).to_ne_bytes();
                if let Some(sabotage) = &self.sabotage {
                    sabotage.lock().unwrap_or_else(PoisonError::into_inner).apply(&mut sum);
                }
                let flags = call.answer_flags();
                call.reply(flags, Payload { data: &sum, ..Payload::default() })
            }
            None => call.reply_status(StatusCode::UNKNOWN_TRANSACTION),
        };
    }
}

/// Registers the service, reports readiness, and serves on this thread until the process is killed.
///
/// # Errors
/// No manager exists, it refuses the name, or the driver failed.
pub(crate) fn serve<X: Context>(
    place: Rendezvous<'_, X>,
    ready: impl FnOnce() -> io::Result<()>,
    sabotage: Sabotage,
) -> Result<(), CallError> {
    let sabotage = sabotage.is_planned().then(|| Mutex::new(sabotage));
    let options = place.dialect.node_options();
    let publish = |process: &ipc::Process<_>| {
        ipc::Binder::Local(process.publish_node(Box::new(AddInts { sabotage }), options))
    };
    let (endpoint, _service) = place.register(publish)?;
    ready().map_err(CallError::os("telling the client"))?;
    endpoint.serve()
}
