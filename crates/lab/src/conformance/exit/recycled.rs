//! Room: contract section 16: a thread's number that is given out again (EXT-03).
//! Facts: `ns_last_pid` in `Documentation/admin-guide/sysctl/kernel.rst`: the next number is the first free one
//! above it.

use std::fs;
use std::time::Instant;

use sys::interrupt::ThreadId;

use crate::conformance::item::{Stop, Verdict, done, expect};
use crate::conformance::kit::{Kit, Pair};
use crate::conformance::party::{Got, PATIENCE, Party, expect_work};

/// Runs `job` on a new, small thread, and waits for it.
fn on_new_thread<T: Send + 'static>(job: impl FnOnce() -> T + Send + 'static) -> Result<T, Stop> {
    let builder = std::thread::Builder::new().stack_size(128 << 10);
    let thread = done("starting a thread", builder.spawn(job))?;
    thread.join().map_err(|_| Stop::Fail("a thread of the test panicked".into()))
}

/// Reads on a new thread of this number, which others may be given before we are.
fn read_as(number: i32, party: &Party) -> Result<Got, Stop> {
    const LAST: &str = "/proc/sys/kernel/ns_last_pid";
    let start = Instant::now();
    while start.elapsed() < PATIENCE {
        fs::write(LAST, (number - 1).to_string()).map_err(|error| {
            let why = sys::errno::describe(&error);
            Stop::Skip(format!("needs to choose a thread's number, and {LAST} cannot be written: {why}"))
        })?;
        let party = party.clone();
        let got = on_new_thread(move || (ThreadId::current().number() == number).then(|| party.read()))?;
        if let Some(got) = got {
            return got;
        }
    }
    Err(Stop::Skip(format!("no thread got the number {number} within {PATIENCE:?}")))
}

pub(in crate::conformance) fn ext_03_a_recycled_number_is_the_same_thread(kit: &Kit) -> Verdict {
    let Pair { server, client, handle, .. } = kit.pair()?;
    let party = client.clone();
    let number = on_new_thread(move || {
        done("BINDER_VERSION", party.conn.version())?;
        party.start_call(handle, 1, b"")?;
        Ok::<_, Stop>(ThreadId::current().number())
    })??;
    expect("the code of a call whose thread ended", server.echo()?.code, 1)?;
    client.expect_silence("another thread of the caller")?;
    let mut got = read_as(number, &client)?;
    if got.reply().is_err() {
        got.returns.extend(read_as(number, &client)?.returns);
    }
    expect_work("a new thread of that number", &got, "COMPLETE REPLY")
}
