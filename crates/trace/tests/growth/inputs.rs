//! Traces that once cost more than in proportion to their length, of any length.

use std::fmt::Write;

/// Text of ftrace that is being written; one microsecond between two events.
#[derive(Default)]
struct Text {
    text: String,
    us: u64,
}

impl Text {
    fn event(&mut self, tid: u32, cpu: usize, event: &str) {
        self.us += 1;
        let (s, us) = (self.us / 1_000_000, self.us % 1_000_000);
        writeln!(self.text, "t-{tid} [{cpu:03}] .... {s}.{us:06}: {event}").expect("memory");
    }

    fn call(&mut self, tid: u32, to: u32, to_thread: u32, id: usize) {
        self.sent(tid, to, to_thread, id, 0);
    }

    fn reply(&mut self, tid: u32, to: u32, id: usize) {
        self.sent(tid, to, to, id, 1);
    }

    fn sent(&mut self, tid: u32, to: u32, to_thread: u32, id: usize, reply: u32) {
        let whom = format!("dest_node=1 dest_proc={to} dest_thread={to_thread}");
        let event = format!("binder_transaction: transaction={id} {whom} reply={reply} flags=0x0 code=0x1");
        self.event(tid, 0, &event);
    }

    fn received(&mut self, tid: u32, id: usize) {
        self.event(tid, 1, &format!("binder_transaction_received: transaction={id}"));
    }

    fn switch(&mut self, cpu: usize, from: u32, state: char, to: u32) {
        let event = format!(
            "sched_switch: prev_comm=t prev_pid={from} prev_prio=120 prev_state={state} ==> next_comm=t \
             next_pid={to} next_prio=120"
        );
        self.event(from, cpu, &event);
    }

    fn waking(&mut self, by: u32, tid: u32, cpu: usize) {
        self.event(by, cpu, &format!("sched_waking: comm=t pid={tid} prio=120 target_cpu=00{cpu}"));
    }

    fn done(self) -> Vec<u8> {
        self.text.into_bytes()
    }
}

fn number(n: usize) -> u32 {
    u32::try_from(n).expect("small")
}

/// A thread calls the next one while it serves, `n` times; then all reply.
pub(crate) fn chain(n: usize) -> Vec<u8> {
    let mut text = Text::default();
    for depth in 0..n {
        let tid = 1000 + number(depth);
        text.call(tid, tid + 1, 0, 2 * depth + 1);
        text.received(tid + 1, 2 * depth + 1);
    }
    for depth in (0..n).rev() {
        let tid = 1000 + number(depth);
        text.reply(tid + 1, tid, 2 * depth + 2);
        text.received(tid, 2 * depth + 2);
    }
    text.done()
}

/// How the calls of [`ping_pong`] end.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(crate) enum End {
    Replies,
    Deaths,
    Nothing,
    StrayReplies,
}

/// Two threads call each other back, `n` deep.
pub(crate) fn ping_pong(n: usize, end: End) -> Vec<u8> {
    let mut text = Text::default();
    let of = |depth: usize| if depth.is_multiple_of(2) { (101, 201) } else { (201, 101) };
    for depth in 0..n {
        let (from, to) = of(depth);
        text.call(from, to, if depth == 0 { 0 } else { to }, 2 * depth + 1);
        text.received(to, 2 * depth + 1);
        text.switch(1, to, 'S', 300);
        text.switch(1, 300, 'S', to);
    }
    match end {
        End::Nothing => {}
        End::Deaths => {
            text.switch(1, 101, 'X', 300);
            text.switch(1, 201, 'X', 300);
        }
        End::StrayReplies => (0..2 * n).for_each(|at| text.reply(101, 77, 10 * n + at)),
        End::Replies => {
            for depth in (0..n).rev() {
                let (from, to) = of(depth);
                text.reply(to, from, 2 * depth + 2);
                text.received(from, 2 * depth + 2);
            }
        }
    }
    text.done()
}

/// A server takes `n` calls, answers none, and goes on to run and sleep.
pub(crate) fn hoard(n: usize) -> Vec<u8> {
    let mut text = Text::default();
    for at in 0..n {
        text.call(1000 + number(at), 200, 0, at + 1);
        text.received(200, at + 1);
    }
    for _ in 0..n {
        text.switch(1, 200, 'S', 300);
        text.switch(1, 300, 'S', 200);
    }
    text.done()
}

/// `n` clients wait for the one thread of a server, which serves them one after another.
pub(crate) fn queue(n: usize) -> Vec<u8> {
    let mut text = Text::default();
    for at in 0..n {
        let client = 1000 + number(at);
        text.call(client, 200, 0, 2 * at + 1);
        text.switch(0, client, 'S', 300);
    }
    for at in 0..n {
        let client = 1000 + number(at);
        text.received(200, 2 * at + 1);
        text.switch(1, 200, 'S', 301);
        text.waking(301, 200, 1);
        text.switch(1, 301, 'S', 200);
        text.reply(200, client, 2 * at + 2);
        text.waking(200, client, 0);
        text.switch(0, 300, 'S', client);
        text.received(client, 2 * at + 2);
        text.switch(0, client, 'X', 300);
    }
    text.done()
}

/// Calls over a time in which a server runs and sleeps without the clock going on.
pub(crate) fn standing_clock(n: usize) -> Vec<u8> {
    let mut text = Text::default();
    for at in 0..n {
        text.call(1000 + number(at), 200, 0, at + 1);
        text.received(200, at + 1);
    }
    let now = text.us + 1;
    for _ in 0..n {
        text.us = now;
        text.switch(1, 200, 'S', 300);
        text.us = now;
        text.switch(1, 300, 'S', 200);
    }
    text.done()
}

/// One call whose server waits for a CPU and is moved from queue to queue.
pub(crate) fn migrations(n: usize) -> Vec<u8> {
    let mut text = Text::default();
    text.call(1000, 200, 0, 1);
    text.received(200, 1);
    text.switch(1, 200, 'R', 300);
    for at in 0..n {
        let (from, to) = (at % 4, (at + 1) % 4);
        text.event(
            300,
            1,
            &format!("sched_migrate_task: comm=t pid=200 prio=120 orig_cpu={from} dest_cpu={to}"),
        );
    }
    text.reply(200, 1000, 2);
    text.received(1000, 2);
    text.done()
}

/// Threads that wait for kernel locks, each with an open call, then gaps.
pub(crate) fn gaps(n: usize) -> Vec<u8> {
    let mut text = Text::default();
    for at in 0..n {
        let tid = 1000 + number(at);
        text.event(tid, at % 4, "contention_begin: 00000000 (flags=MUTEX)");
        text.call(tid, 200, 0, at + 1);
    }
    (0..4 * n).for_each(|_| text.text.push_str("CPU:1 [LOST 12 EVENTS]\n"));
    text.done()
}

/// Calls, then gaps of a CPU that has no event.
pub(crate) fn gaps_of_a_silent_cpu(n: usize) -> Vec<u8> {
    let mut text = Text::default();
    for at in 0..n {
        text.call(100, 200, 0, 2 * at + 1);
        text.received(200, 2 * at + 1);
        text.reply(200, 100, 2 * at + 2);
        text.received(100, 2 * at + 2);
    }
    (0..8 * n).for_each(|_| text.text.push_str("CPU:9 [LOST EVENTS]\n"));
    text.done()
}

/// Calls whose clock goes back with each event.
pub(crate) fn backwards(n: usize) -> Vec<u8> {
    let mut text = Text::default();
    let mut us = 1_000_000_000;
    for at in 0..n {
        for step in 0..4 {
            us -= 1;
            text.us = us;
            match step {
                0 => text.call(100, 200, 0, 2 * at + 1),
                1 => text.received(200, 2 * at + 1),
                2 => text.reply(200, 100, 2 * at + 2),
                _ => text.received(100, 2 * at + 2),
            }
        }
    }
    text.done()
}

fn varint(mut number: u64) -> Vec<u8> {
    let mut bytes = Vec::new();
    while number >= 128 {
        bytes.push(number as u8 | 128);
        number >>= 7;
    }
    bytes.push(number as u8);
    bytes
}

/// A field of a protobuf message: a number.
fn value(field: u64, number: u64) -> Vec<u8> {
    [varint(field << 3), varint(number)].concat()
}

/// A field of a protobuf message: bytes.
fn bytes(field: u64, content: &[u8]) -> Vec<u8> {
    [varint(field << 3 | 2), varint(content.len() as u64), content.to_vec()].concat()
}

/// Clock snapshots of Perfetto, each before the one in front of it.
pub(crate) fn clock_snapshots(n: usize) -> Vec<u8> {
    let mut trace = bytes(1, &value(10, 1));
    for at in 0..n as u64 {
        let clock = |number, ts| bytes(1, &[value(1, number), value(2, ts)].concat());
        let clocks = [clock(3, 1_000_000_000 - at), clock(6, 2_000_000_000 - at)].concat();
        trace.extend(bytes(1, &bytes(6, &clocks)));
    }
    trace
}

/// Blocks of compressed packets whose bundles, each of a CPU of its own, are needed in turns.
pub(crate) fn blocks_in_turns(n: usize) -> Vec<u8> {
    const BLOCKS: u64 = 8;
    const CONTENT: usize = 15 << 20;
    let mut trace = bytes(1, &value(10, 1));
    for block in 0..BLOCKS {
        let mut packets = Vec::new();
        for at in 0..n as u64 {
            let print = bytes(3, &bytes(2, b"x"));
            let event = [value(1, 1000 + at * BLOCKS + block), value(2, 7), print].concat();
            let bundle = [value(1, block), bytes(2, &event)].concat();
            packets.extend(bytes(1, &[value(10, 1), bytes(1, &bundle)].concat()));
        }
        packets.extend(bytes(1, &bytes(900, &vec![0; CONTENT - packets.len()])));
        trace.extend(bytes(1, &bytes(50, &packed(&packets))));
    }
    trace
}

/// Compressed packets of one event each.
pub(crate) fn small_blocks(n: usize) -> Vec<u8> {
    let mut trace = bytes(1, &value(10, 1));
    for at in 0..n as u64 {
        let event = [value(1, 1000 + at), value(2, 7), bytes(3, &bytes(2, b"x"))].concat();
        let bundle = [value(1, at % 4), bytes(2, &event)].concat();
        let packet = bytes(1, &[value(10, 1), bytes(1, &bundle)].concat());
        trace.extend(bytes(1, &bytes(50, &packed(&packet))));
    }
    trace
}

fn packed(content: &[u8]) -> Vec<u8> {
    let mut encoder = flate2::write::ZlibEncoder::new(Vec::new(), flate2::Compression::best());
    std::io::Write::write_all(&mut encoder, content).expect("memory");
    encoder.finish().expect("memory")
}

/// CPUs that lost events by the kernel's counters, and as many streams of events.
pub(crate) fn counted_losses(n: usize) -> Vec<u8> {
    let mut trace = bytes(1, &value(10, 1));
    for cpu in 0..n as u64 {
        let event = [value(1, 1000 + cpu), value(2, 7), bytes(3, &bytes(2, b"x"))].concat();
        trace.extend(bytes(
            1,
            &[value(10, 1), bytes(1, &[value(1, cpu), bytes(2, &event)].concat())].concat(),
        ));
    }
    let cpus: Vec<u8> =
        (0..n as u64).flat_map(|cpu| bytes(2, &[value(1, cpu), value(3, 5)].concat())).collect();
    trace.extend(bytes(1, &bytes(34, &[value(1, 2), cpus].concat())));
    trace
}

/// Slices that share one long name.
pub(crate) fn long_slice_names(n: usize) -> Vec<u8> {
    let thread = bytes(4, &[value(1, 5), value(2, 5)].concat());
    let mut trace = bytes(1, &[value(10, 1), bytes(60, &[value(1, 9), thread].concat())].concat());
    let name = bytes(2, &[value(1, 1), bytes(2, &[b'n'; 1000])].concat());
    trace.extend(bytes(1, &[value(10, 1), bytes(12, &name)].concat()));
    for at in 0..n as u64 {
        let begins = bytes(11, &[value(9, 1), value(10, 1), value(11, 9)].concat());
        trace.extend(bytes(1, &[value(8, 1000 + 2 * at), value(10, 1), begins].concat()));
        let ends = bytes(11, &[value(9, 2), value(11, 9)].concat());
        trace.extend(bytes(1, &[value(8, 1001 + 2 * at), value(10, 1), ends].concat()));
    }
    trace
}

/// Lines of brackets that might each be the CPU's.
pub(crate) fn brackets(n: usize) -> Vec<u8> {
    let line = " [1]".repeat(n);
    format!("# tracer: nop\n{line}\n{line}\n{line}\n{line}\n").into_bytes()
}

/// Threads that each run once and sleep.
pub(crate) fn threads(n: usize) -> Vec<u8> {
    let mut text = String::from("# tracer: nop\n");
    for at in 0..n {
        let (us, tid, next) = (at + 10, 1000 + at, 1001 + at);
        let (s, us) = (us / 1_000_000, us % 1_000_000);
        writeln!(
            text,
            "thread-{at}-{tid} [00{}] d... {s}.{us:06}: sched_switch: prev_comm=thread-{at} prev_pid={tid} prev_prio=120 \
             prev_state=S ==> next_comm=thread-{} next_pid={next} next_prio=120",
            at % 8,
            at + 1
        )
        .expect("memory");
    }
    text.into_bytes()
}
