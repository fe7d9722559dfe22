//! Contract section 22: when memory runs out (MEM). One allocation of the kernel after the other fails, in one system call.
//! Facts: `Documentation/fault-injection/fault-injection.rst` (`/proc/<pid>/fail-nth`), Linux 7.2.

use std::collections::BTreeMap;
use std::fs::{self, File, OpenOptions as FileOptions};
use std::io;
use std::os::fd::AsRawFd;
use std::os::unix::fs::FileExt;

use sys::binder_fd::BinderFd;
use sys::binderfs::PrivateBinderfs;

use crate::prelude::*;

items! {
    "MEM-01" Both [] mem_01_opening_without_memory "an open, a mapping or a thread without memory is ENOMEM";
    "MEM-02" Both [] mem_02_calls_without_memory "a call without memory fails, and can be made again";
    "MEM-03" Both [] mem_03_requests_without_memory "a request without memory is refused, and can be made again";
    "MEM-04" Both [] mem_04_devices_without_memory "an instance or device without memory is not made";
}

/// More allocations than any one system call makes.
const MOST: u32 = 400;

/// Makes allocations of the kernel for the calling thread fail.
struct Shortage {
    file: File,
    /// Settings of the kernel as they were.
    before: Vec<(String, String)>,
}

impl Drop for Shortage {
    fn drop(&mut self) {
        for (file, value) in &self.before {
            // Nobody can be told; without fail-nth the settings do nothing.
            let _ = fs::write(file, value);
        }
    }
}

impl Shortage {
    /// Skips the test where the kernel has no such means.
    fn new() -> Result<Self, Stop> {
        let means =
            "a kernel whose allocations can be made to fail: binderperf vm build-kernel --debug fail-alloc";
        let skip = |error: io::Error| Stop::Skip(format!("needs {means} ({})", sys::errno::describe(&error)));
        let mut before = Vec::new();
        for (file, value) in [
            ("failslab/ignore-gfp-wait", "N"),
            ("failslab/verbose", "0"),
            ("fail_page_alloc/ignore-gfp-wait", "N"),
            ("fail_page_alloc/min-order", "0"),
            ("fail_page_alloc/verbose", "0"),
        ] {
            let file = format!("/sys/kernel/debug/{file}");
            before.push((file.clone(), fs::read_to_string(&file).map_err(skip)?.trim().to_owned()));
            fs::write(file, value).map_err(skip)?;
        }
        let file =
            FileOptions::new().read(true).write(true).open("/proc/thread-self/fail-nth").map_err(skip)?;
        Ok(Self { file, before })
    }

    /// Runs a system call of which the allocation of this number, from 1, fails. Returns its result, and whether it made
    /// so many.
    fn at<T>(&self, nth: u32, call: impl FnOnce() -> T) -> Result<(T, bool), Stop> {
        done("fail-nth", self.file.write_all_at(nth.to_string().as_bytes(), 0))?;
        let result = call();
        let mut left = [0; 16];
        let len = done("reading fail-nth", self.file.read_at(&mut left, 0));
        done("fail-nth", self.file.write_all_at(b"0", 0))?;
        let failed = left[..len?].trim_ascii() == b"0";
        Ok((result, failed))
    }

    /// Takes a step, each time with another allocation that fails, until it makes no more; there must be one. `step` gets
    /// the number of the allocation and returns whether it failed.
    fn each(&self, what: &str, step: impl FnMut(u32) -> Result<bool, Stop>) -> Verdict {
        let made = self.each_if_any(what, step)?;
        ensure(made > 0, || format!("{what} allocates nothing, so nothing was tested"))
    }

    /// Takes a system call as in [`Self::each`]: it succeeds or is `ENOMEM`, and then succeeds when it is made again. `call` gets the
    /// number of the allocation.
    fn each_call<T>(&self, what: &str, mut call: impl FnMut(u32) -> io::Result<T>) -> Verdict {
        self.each(what, |nth| {
            let (result, failed) = self.at(nth, || call(nth))?;
            expect_out_of_memory(what, &result, failed)?;
            if result.is_err() {
                done("the same again", call(nth))?;
            }
            Ok(failed)
        })
    }

    /// [`Self::each`] of a step that may need no memory; returns how many allocations it makes.
    fn each_if_any(&self, what: &str, mut step: impl FnMut(u32) -> Result<bool, Stop>) -> Result<u32, Stop> {
        for nth in 1..=MOST {
            if !step(nth).map_err(|stop| stop.during(&format!("{what}, allocation {nth}")))? {
                return Ok(nth - 1);
            }
        }
        Err(Stop::Fail(format!("{what} makes more than {MOST} allocations")))
    }
}

/// Fails unless the result is success, or `ENOMEM` for an allocation that failed.
fn expect_out_of_memory<T>(what: &str, result: &io::Result<T>, failed: bool) -> Verdict {
    let got = errno(result);
    ensure(got == "OK" || failed && got == "ENOMEM", || {
        format!("{what}: expected OK{}, got {got}", if failed { " or ENOMEM" } else { "" })
    })
}

/// How many of each kind the stats count as active; empty for a driver that counts nothing.
fn active(kit: &Kit) -> Result<BTreeMap<String, u64>, Stop> {
    let text = kit.state_text(StateFile::Stats)?;
    let lines = text.lines().filter_map(|line| Fields::read("{kind}: active {active} total {total}", line));
    let counts = lines.map(|line| {
        let kind = line.text("kind");
        Ok((kind.to_owned(), line.number("active").map_err(|stop| stop.during(kind))?))
    });
    counts.collect()
}

/// Fails unless the driver soon has no more of any kind than before.
fn expect_no_leak(kit: &Kit, before: &BTreeMap<String, u64>) -> Verdict {
    soon(|| {
        let mut more = active(kit)?;
        more.retain(|kind, now| *now > before.get(kind).copied().unwrap_or(0));
        Ok((!more.is_empty()).then(|| format!("something leaked: expected at most {before:?}, got {more:?}")))
    })
}

/// Runs a test, whose processes are gone when it returns, and fails if it leaves anything behind.
fn without_leak(kit: &Kit, test: impl FnOnce() -> Verdict) -> Verdict {
    let before = active(kit)?;
    test()?;
    expect_no_leak(kit, &before)
}

fn mem_01_opening_without_memory(kit: &Kit) -> Verdict {
    let path = kit.device()?.to_owned();
    let short = Shortage::new()?;
    without_leak(kit, || {
        short.each_call("open", |_| BinderFd::open(&path, true))?;
        short.each("mmap", |nth| {
            let fd = done("open", BinderFd::open(&path, true))?;
            let map = || sys::receive_map::ReceiveMap::new(std::os::fd::AsFd::as_fd(&fd), default_map_size());
            let (mapped, failed) = short.at(nth, map)?;
            expect_out_of_memory("mmap", &mapped, failed)?;
            if mapped.is_err() {
                done("mapping it afterwards", map())?;
            }
            Ok(failed)
        })?;
        let process = kit.open()?;
        short.each("a thread's first request", |nth| {
            process.thread_exit()?;
            let request = || process.conn.write_read(&mut Exchange::new(&[], &mut []));
            let (result, failed) = short.at(nth, request)?;
            expect_out_of_memory("WRITE_READ", &result, failed)?;
            done("the same again", request())?;
            Ok(failed)
        })
    })
}

/// A WRITE_READ with buffers that are there: commands, and what it returned.
struct Prepared {
    commands: Commands,
    buffer: [u8; ROOM],
    returned: usize,
}

impl Prepared {
    fn new(fill: impl FnOnce(&mut Commands)) -> Self {
        Self { commands: Commands::of(fill), buffer: [0xaa; ROOM], returned: 0 }
    }

    /// Writes its commands, and reads if there are none.
    fn run(&mut self, process: &RawProcess) -> io::Result<()> {
        let room = if self.commands.is_empty() { ROOM } else { 0 };
        let mut exchange = Exchange::new(self.commands.as_bytes(), &mut self.buffer[..room]);
        let result = process.conn.write_read(&mut exchange);
        self.returned = exchange.read_consumed;
        result
    }
}

/// A call with an object of each kind.
struct Full {
    node: Node,
    words: [u32; 4],
    file: File,
    own: Handle,
}

impl Full {
    /// Over a handle of the sender.
    fn new(own: Handle, number: u64) -> Result<Self, Stop> {
        let file = done("/dev/null", File::open("/dev/null"))?;
        let number_of = file.as_raw_fd() as u32;
        Ok(Self { node: Node::number(number), words: [7, number_of, 8, 9], file, own })
    }

    fn draft(&self) -> Draft {
        // Not at offset 0, which the C driver takes for no buffer when it looks for an array's.
        Draft::with(&[0; 8])
            .object(&ptr(&self.words))
            .object(&fda(1, 0, 4))
            .object(&self.node.object(object::BINDER))
            .object(&handle_object(self.own))
            .object(&fd(self.file.as_raw_fd() as u64))
            .room(64)
    }
}

/// Reads the end of a thread's call, without notices of counts.
fn heard(process: &RawProcess) -> Result<Got, Stop> {
    let mut got = process.ending()?;
    let about_counts = |item: &Return| {
        matches!(item, Return::Increfs(..) | Return::Acquire(..) | Return::Release(..) | Return::Decrefs(..))
    };
    got.returns.retain(|item| !about_counts(item));
    Ok(got)
}

const CALL: TransactionFlags = TransactionFlags(TransactionFlags::CALL.0 | tf::ACCEPT_FDS);

fn mem_02_calls_without_memory(kit: &Kit) -> Verdict {
    kit.device()?;
    let short = Shortage::new()?;
    without_leak(kit, || {
        sent_without_memory(kit, &short)?;
        read_without_memory(kit, &short)?;
        answered_without_memory(kit, &short)?;
        oneway_without_memory(kit, &short)
    })
}

/// Calls with objects.
fn sent_without_memory(kit: &Kit, short: &Shortage) -> Verdict {
    let pair = kit.looper_pair()?;
    let full = Full::new(pair.handle, 50)?;
    let draft = full.draft();
    short.each("a call with objects", |nth| {
        let mut call = Prepared::new(|c| c.transaction(pair.handle, 1, CALL, draft.payload()));
        let (result, failed) = short.at(nth, || call.run(&pair.client))?;
        expect_out_of_memory("the call", &result, failed)?;
        if let Some(got) = pair.server.read_now()?.filter(|got| got.call().is_ok()) {
            pair.server.answer(b"")?;
            pair.server.free(&got.call()?)?;
        }
        if result.is_ok() {
            let ended = heard(&pair.client)?;
            expect_ended(&ended, "COMPLETE REPLY", "FAILED_REPLY", failed)?;
            if let Ok(reply) = ended.reply() {
                pair.client.free(&reply)?;
            }
        }
        pair.client.round_trip("a call afterwards", pair.handle, &pair.server)?;
        Ok(failed)
    })
}

/// Fails unless the call went well, or failed as an allocation did.
fn expect_ended(got: &Got, well: &str, ill: &str, failed: bool) -> Verdict {
    let work = got.work();
    ensure(work == well || failed && work == ill, || {
        format!("it ended with {work:?}, {}", if failed { "" } else { "though no allocation failed" })
    })
}

/// Reads of calls with objects.
fn read_without_memory(kit: &Kit, short: &Shortage) -> Verdict {
    // On the C driver the kernel may need none: a table of descriptors has room.
    let read = short.each_if_any("reading a call with descriptors", |nth| {
        let pair = kit.pair()?;
        let full = Full::new(pair.handle, 50)?;
        pair.client.send(pair.handle, 1, CALL, full.draft().payload())?;
        let mut read = Prepared::new(|_| ());
        let (result, failed) = short.at(nth, || read.run(&pair.server))?;
        let got = errno(&result);
        ensure(got == "OK" || failed && ["ENOMEM", "EAGAIN"].contains(&got.as_str()), || {
            format!("the read: {got}")
        })?;
        let got = Got::decode(&read.buffer[..read.returned])?;
        let delivered = got.call().is_ok();
        if delivered {
            pair.server.answer(b"")?;
            pair.server.free(&got.call()?)?;
        }
        let want = if delivered { "COMPLETE REPLY" } else { "COMPLETE FAILED_REPLY" };
        expect_work("the call", &heard(&pair.client)?, want)?;
        ensure(failed || delivered, || "it was not delivered, though no allocation failed".into())?;
        Ok(failed)
    })?;
    ensure(read > 0 || !kit.is_rust(), || "reading a call allocates nothing".into())
}

/// Replies with objects.
fn answered_without_memory(kit: &Kit, short: &Shortage) -> Verdict {
    short.each("a reply with objects", |nth| {
        let pair = kit.looper_pair()?;
        let own = kit.hand_over(&pair.client, &pair.server, Node::number(2))?;
        let full = Full::new(own, 50)?;
        pair.client.send(pair.handle, 1, CALL, Payload::default())?;
        let call = pair.server.read()?.call()?;
        let draft = full.draft();
        let mut reply = Prepared::new(|c| c.reply(TransactionFlags::default(), draft.payload()));
        let (result, failed) = short.at(nth, || reply.run(&pair.server))?;
        expect_out_of_memory("the reply", &result, failed)?;
        // Refused before the driver looked for the call: it waits for its answer still.
        let refused = result.is_err() || pair.server.read()?.work() == "FAILED_REPLY";
        ensure(failed || !refused, || "it was refused, though no allocation failed".into())?;
        if refused {
            pair.server.answer(b"")?;
        }
        expect_ended(&heard(&pair.client)?, "COMPLETE REPLY", "COMPLETE FAILED_REPLY", failed)?;
        pair.server.free(&call)?;
        Ok(failed)
    })
}

/// Oneway calls while one is being served, which are queued.
fn oneway_without_memory(kit: &Kit, short: &Shortage) -> Verdict {
    let pair = kit.pair()?;
    short.each("a oneway call", |nth| {
        let mut call =
            Prepared::new(|c| c.transaction(pair.handle, 1, TransactionFlags::ONEWAY, plain(&[7; 200])));
        let (result, failed) = short.at(nth, || call.run(&pair.client))?;
        expect_out_of_memory("the call", &result, failed)?;
        let ended = if result.is_ok() { pair.client.read()?.work() } else { String::new() };
        let delivered = ended == "COMPLETE";
        ensure(delivered || failed && ["FAILED_REPLY", ""].contains(&ended.as_str()), || {
            format!("it ended with {ended:?}")
        })?;
        if delivered {
            pair.server.free(&pair.server.read()?.call()?)?;
        }
        Ok(failed)
    })
}

/// A command that needs memory.
struct Request {
    name: &'static str,
    /// Commands that come before it.
    before: fn(&mut Commands, Handle),
    ask: fn(&mut Commands, Handle),
    /// The return that it leads to at once; empty: none.
    answer: &'static str,
}

const COOKIE: Cookie = Cookie(0x3e3_0001);

const REQUESTS: [Request; 4] = [
    Request {
        name: "REQUEST_DEATH_NOTIFICATION",
        before: |_, _| (),
        ask: |c, handle| c.request_death(handle, COOKIE),
        answer: "",
    },
    Request {
        name: "CLEAR_DEATH_NOTIFICATION",
        before: |c, handle| c.request_death(handle, COOKIE),
        ask: |c, handle| c.clear_death(handle, COOKIE),
        answer: "CLEAR_DEATH_NOTIFICATION_DONE",
    },
    Request {
        name: "REQUEST_FREEZE_NOTIFICATION",
        before: |_, _| (),
        ask: |c, handle| c.request_freeze(handle, COOKIE),
        answer: "FROZEN_BINDER",
    },
    Request {
        name: "ACQUIRE",
        before: |c, _| c.release(Handle::CONTEXT_MANAGER),
        ask: |c, _| c.acquire(Handle::CONTEXT_MANAGER),
        answer: "",
    },
];

fn mem_03_requests_without_memory(kit: &Kit) -> Verdict {
    kit.device()?;
    let short = Shortage::new()?;
    without_leak(kit, || {
        for request in REQUESTS.iter().filter(|request| kit.knows(request.name)) {
            let made = short.each_if_any(request.name, |nth| requested(kit, &short, request, nth))?;
            // To clear one or to count may need no memory; to ask for one needs some.
            let asks = request.name.starts_with("REQUEST_");
            ensure(made > 0 || !asks, || {
                format!("{} allocates nothing, so nothing was tested", request.name)
            })?;
        }
        Ok(())
    })
}

/// Makes a request of which one allocation fails, and again if it was refused. Returns whether one failed.
fn requested(kit: &Kit, short: &Shortage, request: &Request, nth: u32) -> Result<bool, Stop> {
    let pair = kit.looper_pair()?;
    pair.client.write(|c| (request.before)(c, pair.handle))?;
    let mut asked = Prepared::new(|c| (request.ask)(c, pair.handle));
    let (result, failed) = short.at(nth, || asked.run(&pair.client))?;
    expect_out_of_memory("the request", &result, failed)?;
    let mut got = Prepared::new(|_| ());
    let read = got.run(&pair.client);
    let first = got.buffer[..got.returned].chunks_exact(4).nth(1).and_then(|word| word.try_into().ok());
    let is_error = first.map(u32::from_ne_bytes) == Some(br::ERROR);
    ensure(failed || result.is_ok() && !is_error, || "refused, though no allocation failed".into())?;
    if is_error {
        // The drivers store the word of BR_ERROR alone, without the errno that the header gives it.
        expect("bytes read with BR_ERROR", got.returned, 8)?;
    }
    if result.is_err() || is_error {
        pair.client.write(|c| (request.ask)(c, pair.handle))?;
        if !request.answer.is_empty() {
            pair.client.expect_read("the same again", request.answer)?;
        }
    } else if request.answer.is_empty() {
        expect("a read behind it", errno(&read).as_str(), "EAGAIN")?;
    } else {
        expect_work("a read behind it", &Got::decode(&got.buffer[..got.returned])?, request.answer)?;
    }
    Ok(failed)
}

fn mem_04_devices_without_memory(kit: &Kit) -> Verdict {
    kit.device()?;
    let short = Shortage::new()?;
    let instance = crate::binderfs::instance(kit, &[("stats", "global")])?;
    short.each_call("mounting", |_| PrivateBinderfs::with_options(&[("stats", "global")]))?;
    let control = done("opening binder-control", BinderFd::open(&instance.path("binder-control"), true))?;
    short.each("CTL_ADD", |nth| {
        let name = format!("device-{nth}");
        let mut device = required(abi::layout::BinderfsDevice::named(&name), || "a short name".into())?;
        let add = |device: &mut abi::layout::BinderfsDevice| {
            control.raw(ioctl::CTL_ADD, Some(device.as_mut_bytes()))
        };
        let (added, failed) = short.at(nth, || add(&mut device))?;
        expect_out_of_memory("CTL_ADD", &added, failed)?;
        if added.is_err() {
            done("CTL_ADD afterwards", add(&mut device))?;
        }
        done("opening the device", BinderFd::open(&instance.path(&name), true))?;
        Ok(failed)
    })
}
