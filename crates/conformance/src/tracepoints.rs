//! Contract section 18: tracepoints (TP).
//! Not here: recording (`recorder`), events inside the driver (`within`).
//! The embedded driver writes marker events with the same names and text, but without a format.

mod within;

use crate::prelude::*;
use crate::recorder::{Event, Recorder, layout, names};

items! {
    "TP-01" C [seen differs] tp_01_the_groups_events "the tracepoints are the group binder, or rust_binder";
    "TP-02" C [seen] tp_02_a_call_is_traced "binder_transaction reports where a call or reply goes";
    "TP-03" C [seen] tp_03_a_refused_call "binder_transaction fires before the buffer is allocated";
    "TP-04" Both [seen] tp_04_delivery_is_traced "binder_transaction_received pairs with it by its id";
    "TP-05" C [seen] tp_05_buffers_are_traced in within "allocation and release of a buffer are traced with its sizes";
    "TP-06" Both [seen] tp_06_commands_and_returns "commands and returns are traced by number and name";
    "TP-07" C [seen] tp_07_received_then_returned "a delivery is traced before its return word";
    "TP-08" Both [seen] tp_08_ioctls_and_waits "ioctls and attempts to read are traced with their results";
    "TP-09" C [seen] tp_09_the_end_of_a_call "binder_txn_latency_free ends a call, and swaps two labels";
    "TP-10" C [differs] tp_10_objects_are_traced in within "each translated object is traced";
    "TP-11" C [seen differs] tp_11_pages_are_traced in within "allocated and freed pages are traced";
    "TP-12" C [differs] tp_12_reports_need_a_listener in within "binder_netlink_report needs a listener";
    "TP-13" C [differs] tp_13_one_counter in within "transactions, nodes and references share one counter of ids";
    "TP-14" Rust [free] tp_14_what_the_rust_driver_traces "the Rust driver has eleven tracepoints";
    "TP-15" C [seen] tp_15_a_call_from_its_caller "a call's events come in one order at its caller";
}

/// Events of both drivers.
const COMMON: [&str; 11] = [
    "binder_command",
    "binder_ioctl",
    "binder_ioctl_done",
    "binder_read_done",
    "binder_return",
    "binder_transaction",
    "binder_transaction_fd_recv",
    "binder_transaction_fd_send",
    "binder_transaction_received",
    "binder_wait_for_work",
    "binder_write_done",
];

/// Events of the C driver only, on every known kernel.
const ONLY_C: [&str; 19] = [
    "binder_alloc_lru_end",
    "binder_alloc_lru_start",
    "binder_alloc_page_end",
    "binder_alloc_page_start",
    "binder_free_lru_end",
    "binder_free_lru_start",
    "binder_transaction_alloc_buf",
    "binder_transaction_buffer_release",
    "binder_transaction_failed_buffer_release",
    "binder_transaction_node_to_ref",
    "binder_transaction_ref_to_node",
    "binder_transaction_ref_to_ref",
    "binder_transaction_update_buffer_release",
    "binder_txn_latency_free",
    "binder_unmap_kernel_end",
    "binder_unmap_kernel_start",
    "binder_unmap_user_end",
    "binder_unmap_user_start",
    "binder_update_page_range",
];

const TRANSACTION: &str = "transaction={id} dest_node={node} dest_proc={proc} dest_thread={thread} reply={reply} flags=0x{flags} code=0x{code}";
const SIZES: &str = "transaction={id} data_size={data} offsets_size={offsets} extra_buffers_size={extra}";

/// A pair whose events on this thread are recorded from now on.
struct Setup {
    pair: Pair,
    recorder: Recorder,
}

impl Setup {
    fn new(kit: &Kit) -> Result<Self, Stop> {
        let recorder = Recorder::start(kit)?;
        let pair = recorder.kit(kit).pair()?;
        let setup = Self { pair, recorder };
        if kit.is_embedded() {
            // The first call of a handle sets up the call slot for the others.
            setup.call(0)?;
        }
        setup.recorder.restart()?;
        Ok(setup)
    }

    /// This thread's events of one name, parsed by a template.
    fn traced(&self, name: &str, template: &str) -> Result<Vec<Fields>, Stop> {
        let events = self.recorder.events_of(Worker::current())?;
        events.iter().filter(|event| event.name == name).map(|event| event.fields(template)).collect()
    }

    /// The names of this thread's events.
    fn order(&self) -> Result<Vec<String>, Stop> {
        Ok(self.recorder.events_of(Worker::current())?.into_iter().map(|event| event.name).collect())
    }

    /// A call of 8 bytes with a reply of 8 bytes.
    fn call(&self, code: u32) -> Verdict {
        let Pair { server, client, handle, .. } = &self.pair;
        client.start_call(*handle, code, b"12345678")?;
        server.echo()?;
        client.take_reply()
    }

    /// A oneway call of 4 bytes.
    fn oneway(&self, code: u32) -> Verdict {
        let Pair { server, client, handle, .. } = &self.pair;
        client.send_oneway(*handle, code, b"1234")?;
        server.free(&server.read()?.call()?)?;
        expect_work("the sender", &client.read()?, "COMPLETE")
    }
}

/// The fields of an event, if it is a kernel event.
fn expect_layout(kit: &Kit, event: &str, fields: &str) -> Verdict {
    if kit.is_embedded() {
        return Ok(());
    }
    expect(&format!("the fields of {event}"), layout(kit, event)?.as_str(), fields)
}

fn ids(events: &[Fields]) -> Vec<String> {
    events.iter().map(|event| event.text("id").to_owned()).collect()
}

fn only_one(events: Vec<Fields>, what: &str) -> Result<Fields, Stop> {
    let [event] = &events[..] else {
        return Err(Stop::Fail(format!("{what}: expected one event, got {}", events.len())));
    };
    Ok(event.clone())
}

fn tp_01_the_groups_events(kit: &Kit) -> Verdict {
    if kit.is_embedded() {
        let setup = Setup::new(kit)?;
        setup.oneway(1)?;
        setup.call(2)?;
        let marks = setup.order()?;
        let known = |name: &String| COMMON.iter().chain(&ONLY_C).any(|one| one == name);
        expect("marks of other names", marks.iter().filter(|name| !known(name)).count(), 0)?;
        ensure(marks.len() > 20, || format!("few marks of three transactions: {marks:?}"))?;
        return kit.differs("marks with the names and the text of the C driver's tracepoints");
    }
    let found = names(kit)?;
    let wanted = COMMON.iter().chain(kit.by_driver(&ONLY_C[..], &[]));
    let missing: Vec<&str> = wanted.copied().filter(|name| !found.iter().any(|one| one == name)).collect();
    expect("events that are missing", missing, Vec::new())?;
    let gone = ["binder_lock", "binder_locked", "binder_unlock"];
    if kit.since(7, 2, "").is_ok() {
        expect("events of a lock", found.iter().any(|name| gone.contains(&name.as_str())), false)?;
    }
    Ok(())
}

fn tp_02_a_call_is_traced(kit: &Kit) -> Verdict {
    let setup = Setup::new(kit)?;
    let Pair { server, client, handle, .. } = &setup.pair;
    let back = kit.hand_over(client, server, Node::number(2))?;
    setup.recorder.restart()?;
    setup.oneway(0x31)?;
    client.start_call(*handle, 0x32, b"")?;
    let call = server.read()?.call()?;
    server.start_call(back, 0x33, b"")?;
    client.echo()?;
    let reply = server.ending()?.reply()?;
    server.free(&reply)?;
    server.finish_call()?;
    server.free(&call)?;
    client.ending()?;
    expect_layout(kit, "binder_transaction", "debug_id target_node to_proc to_thread reply code flags")?;
    let events = setup.traced("binder_transaction", TRANSACTION)?;
    let (pid, tid) = (std::process::id().to_string(), Worker::current().to_string());
    // Oneway, call, nested call, its reply, the outer reply: thread, reply, flags, code.
    let want = [
        ["0", "0", "11", "31"],
        ["0", "0", "10", "32"],
        [&tid, "0", "10", "33"],
        [&tid, "1", "0", "0"],
        [&tid, "1", "0", "0"],
    ];
    let got: Vec<_> = events.iter().map(|event| event.texts(["thread", "reply", "flags", "code"])).collect();
    expect("thread, reply, flags and code", got, want.to_vec())?;
    expect("the process", events.iter().all(|event| event.text("proc") == pid), true)?;
    let nodes: Vec<&str> = events.iter().map(|event| event.text("node")).collect();
    ensure(
        nodes[0] == nodes[1] && nodes[0] != "0" && nodes[2] != nodes[1] && nodes[3..] == ["0", "0"],
        || format!("the nodes of two calls of one, one of another and two replies: {nodes:?}"),
    )
}

fn tp_03_a_refused_call(kit: &Kit) -> Verdict {
    let setup = Setup::new(kit)?;
    let Pair { client, handle, .. } = &setup.pair;
    expect_work("a call of no handle", &client.call(Handle(9999))?, "FAILED_REPLY")?;
    expect("events of it", setup.traced("binder_transaction", TRANSACTION)?.len(), 0)?;
    expect_work(
        "a call that fits no area",
        &client.call_with(*handle, 1, plain(&vec![0; 8 << 20]))?,
        "FAILED_REPLY",
    )?;
    let events = setup.traced("binder_transaction", TRANSACTION)?;
    expect("events of a call that finds no room", events.len(), kit.by_driver(1, 0))?;
    expect("buffers allocated", setup.order()?.iter().any(|name| name.ends_with("alloc_buf")), false)
}

fn tp_04_delivery_is_traced(kit: &Kit) -> Verdict {
    let setup = Setup::new(kit)?;
    setup.oneway(1)?;
    setup.call(2)?;
    expect_layout(kit, "binder_transaction_received", "debug_id")?;
    let sent = ids(&setup.traced("binder_transaction", TRANSACTION)?);
    expect("transactions", sent.len(), 3)?;
    expect("the ids received", ids(&setup.traced("binder_transaction_received", "transaction={id}")?), sent)
}

fn tp_06_commands_and_returns(kit: &Kit) -> Verdict {
    const WORD: &str = "cmd=0x{cmd} {name}";
    let setup = Setup::new(kit)?;
    setup.pair.server.set_max_threads(1)?;
    setup.call(1)?;
    let (commands, returns) = (setup.traced("binder_command", WORD)?, setup.traced("binder_return", WORD)?);
    for (event, is_command) in commands.iter().map(|e| (e, true)).chain(returns.iter().map(|e| (e, false))) {
        let word = event.hex("cmd")? as u32;
        let name = if is_command { CommandWord(word).to_string() } else { ReturnWord(word).to_string() };
        expect("the name of a word", event.text("name"), name.as_str())?;
    }
    let in_order =
        |events: &[Fields]| events.iter().map(|event| event.text("name")).collect::<Vec<_>>().join(" ");
    let told = in_order(&commands);
    expect("commands", told.as_str(), "BC_TRANSACTION BC_REPLY BC_FREE_BUFFER BC_FREE_BUFFER")?;
    let mut got = in_order(&returns);
    if kit.is_rust() {
        ensure(got.contains("BR_NOOP") && !got.contains("BR_SPAWN_LOOPER"), || format!("returns: {got}"))?;
        got = got.replace("BR_NOOP ", "");
    }
    let spawn = kit.by_driver(" BR_SPAWN_LOOPER", "");
    let want = format!("BR_TRANSACTION{spawn} BR_TRANSACTION_COMPLETE BR_TRANSACTION_COMPLETE BR_REPLY");
    expect("returns", got.as_str(), want.as_str())
}

fn tp_07_received_then_returned(kit: &Kit) -> Verdict {
    let setup = Setup::new(kit)?;
    setup.oneway(1)?;
    let events = setup.recorder.events_of(Worker::current())?;
    let at = |wanted: &dyn Fn(&Event) -> bool| events.iter().position(wanted);
    let received = at(&|event| event.name == "binder_transaction_received");
    let returned = at(&|event| event.name == "binder_return" && event.text.ends_with("BR_TRANSACTION"));
    let (Some(received), Some(returned)) = (received, returned) else {
        return Err(Stop::Fail("a delivery was not traced".into()));
    };
    expect("a delivery is traced before its return word", received < returned, !kit.is_rust())
}

fn tp_08_ioctls_and_waits(kit: &Kit) -> Verdict {
    let setup = Setup::new(kit)?;
    let server = &setup.pair.server;
    expect("an empty read", server.read_now()?.is_none(), true)?;
    let mut order = setup.order()?;
    if kit.is_rust() {
        // The NOOP that it traces (TP-06) is written before it looks for more.
        expect("the filler", order.iter().position(|name| name == "binder_return"), Some(2))?;
        order.remove(2);
    }
    let read = "binder_ioctl binder_wait_for_work binder_read_done binder_ioctl_done";
    expect("events of an empty read", order.join(" ").as_str(), read)?;
    let one = |name: &str, template: &str| only_one(setup.traced(name, template)?, name);
    expect("the request", one("binder_ioctl", "cmd=0x{cmd} arg=0x{arg}")?.hex("cmd"), Ok(0xc030_6201))?;
    let wait = one("binder_wait_for_work", "proc_work={p} transaction_stack={s} thread_todo={t}")?;
    // It may take process work, is in no call, and has no work of its own.
    expect("an idle looper", wait.texts(["p", "s", "t"]), ["1", "0", "0"])?;
    for name in ["binder_read_done", "binder_ioctl_done"] {
        expect(name, one(name, "ret={ret}")?.text("ret"), "-11")?;
    }
    setup.recorder.restart()?;
    server.write(Commands::enter_looper)?;
    let write = "binder_ioctl binder_command binder_write_done binder_ioctl_done";
    expect("events of a write", setup.order()?.join(" ").as_str(), write)?;
    for name in ["binder_write_done", "binder_ioctl_done"] {
        expect(name, one(name, "ret={ret}")?.text("ret"), "0")?;
    }
    Ok(())
}

fn tp_09_the_end_of_a_call(kit: &Kit) -> Verdict {
    const FREE: &str = "transaction={id} from {from} to {to} flags=0x{code} code=0x{flags}";
    kit.not_in_rust()?;
    let setup = Setup::new(kit)?;
    let fields = "debug_id from_proc from_thread to_proc to_thread code flags";
    expect_layout(kit, "binder_txn_latency_free", fields)?;
    setup.oneway(0x41)?;
    setup.call(0x42)?;
    let events = setup.traced("binder_txn_latency_free", FREE)?;
    expect("the ids", ids(&events), ids(&setup.traced("binder_transaction", TRANSACTION)?))?;
    let me = format!("{}:{}", std::process::id(), Worker::current());
    let nobody = format!("{}:0", std::process::id());
    let got: Vec<_> = events.iter().map(|event| event.texts(["from", "to", "code", "flags"])).collect();
    // A oneway call, a call, its reply. The printed labels of code and flags are swapped.
    let want = [["0:0", &nobody, "41", "11"], ["0:0", &me, "42", "10"], ["0:0", &me, "0", "0"]];
    expect("from, to, code and flags", got, want.to_vec())?;
    let order = setup.order()?;
    let position = |name: &str, nth: usize| {
        order.iter().enumerate().filter(|(_, n)| *n == name).nth(nth).map(|(at, _)| at)
    };
    // The call ends when it is answered, before the reply is delivered.
    ensure(position("binder_txn_latency_free", 1) < position("binder_transaction_received", 2), || {
        format!("a call's end was not traced with its answer: {order:?}")
    })
}

fn tp_14_what_the_rust_driver_traces(kit: &Kit) -> Verdict {
    kit.only_in_rust()?;
    expect("the group's events", names(kit)?, COMMON.map(str::to_owned).to_vec())
}

fn tp_15_a_call_from_its_caller(kit: &Kit) -> Verdict {
    kit.not_in_rust()?;
    let recorder = Recorder::start(kit)?;
    let kit = &recorder.kit(kit);
    let caller = kit.open_with(OpenOptions { nonblocking: false, ..OpenOptions::default() })?;
    let Pair { server, client, handle, .. } = kit.pair_of(kit.server()?, caller, Node::number(1))?;
    let worker = Worker::new()?;
    // A thread's first ioctl does not block (contract WR-05).
    client.on(&worker, RawProcess::version)?;
    recorder.restart()?;
    let mut task = worker.start(move || {
        let commands = Commands::of(|c| c.transaction(handle, 1, TransactionFlags::CALL, Payload::default()));
        let mut room = [0; ROOM];
        let mut exchange = Exchange::new(commands.as_bytes(), &mut room);
        done("a call", client.conn.write_read(&mut exchange))
    })?;
    let tid = worker.thread.number();
    task.expect_asleep("a caller")?;
    server.echo()?;
    task.wait("the call")??;
    let told = |event: &Event| match event.name.as_str() {
        "binder_command" | "binder_return" => event.text.rsplit(' ').next().unwrap_or_default().to_owned(),
        name => name.trim_start_matches("binder_").to_owned(),
    };
    let events = recorder.events_of(tid)?;
    let pages = |event: &&Event| !event.name.contains("page") && !event.name.contains("lru");
    let mut order: Vec<String> = events.iter().filter(pages).map(told).collect();
    // A wait may have several attempts; the end of the reply is covered by TP-09.
    order.dedup();
    order.retain(|name| name != "txn_latency_free");
    expect(
        "the caller's events",
        order.join(" ").as_str(),
        "ioctl BC_TRANSACTION transaction transaction_alloc_buf write_done wait_for_work \
         BR_TRANSACTION_COMPLETE transaction_received BR_REPLY read_done ioctl_done",
    )
}
