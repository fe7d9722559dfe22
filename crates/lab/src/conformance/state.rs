//! Room: contract section 19: what the driver says of itself (DBG).
//! Not here: reading lines (`account`), where the text lies (`driver::kernel_state`).

use abi::{Commands, Cookie, Handle, Payload, TransactionFlags};
use driver::OpenOptions;
use driver::kernel_state::StateFile;

use super::account::{Block, Fields, block_with};
use super::item::{Stop, Verdict, done, ensure, expect, items};
use super::kit::{Kit, Pair};
use super::party::{Node, expect_work};
use super::worker::Worker;

mod rust;

use rust::dbg_06_what_the_rust_driver_writes;

items! {
    "DBG-01" C [seen] dbg_01_processes_and_threads "the state has a block for each open and a line for each thread";
    "DBG-02" C [seen] dbg_02_nodes_references_buffers "the state lists nodes, references and buffers";
    "DBG-03" C [] dbg_03_calls_under_way "the state lists calls under way where they wait";
    "DBG-04" C [seen differs] dbg_04_the_last_calls "the log holds the last 32 calls, another one those that failed";
    "DBG-05" C [seen] dbg_05_counters "the stats count what each open holds and every word but NOOP";
    "DBG-06" Rust [] dbg_06_what_the_rust_driver_writes "the Rust driver's state and stats have fewer and other words";
}

const THREAD: &str = "  thread {tid}: l {l} need_return {need_return} tr {tr}";
const NODE: &str = "  node {id}: u{ptr} c{cookie} hs {hs} hw {hw} ls {ls} lw {lw} is {is} iw {iw} tr {tr}";
const NODE_HELD: &str =
    "  node {id}: u{ptr} c{cookie} hs {hs} hw {hw} ls {ls} lw {lw} is {is} iw {iw} tr {tr} proc {holder}";
const REF: &str = "  ref {id}: desc {handle} node {node} s {s} w {w} d {death}";
const DEAD_REF: &str = "  ref {id}: desc {handle} dead node {node} s {s} w {w} d {death}";
const BUFFER: &str = "  buffer {id}: {at} size {data}:{offsets}:{extra} {what}";

/// The words of every transaction as today's kernels write them, as those from 6.4 or so did, and
/// those before.
const CALL: [&str; 3] = [
    "{id}: {ptr} from {from} to {to} code {code} flags {flags} pri {pri} a{oneway} r{reply} elapsed {age}ms",
    "{id}: {ptr} from {from} to {to} code {code} flags {flags} pri {pri} r{answered} elapsed {age}ms",
    "{id}: {ptr} from {from} to {to} code {code} flags {flags} pri {pri} r{answered}",
];

/// The words behind them where the buffer is the block's own, now and before 6.9 or so.
const PAYLOAD: [&str; 2] =
    [" node {node} size {size}:{offsets} offset {at}", " node {node} size {size}:{offsets} data {at}"];

/// Templates of a transaction's line.
fn call(head: &str, payload: bool) -> Vec<String> {
    let tails = if payload { &PAYLOAD[..] } else { &[""] };
    let all = CALL.iter().flat_map(|call| tails.iter().map(move |tail| (call, tail)));
    all.map(|(call, tail)| format!("{head} transaction {call}{tail}")).collect()
}

/// The line of a transaction of this code in a block.
fn find_call(block: &Block, head: &str, payload: bool, code: u64) -> Result<Fields, Stop> {
    let templates = call(head, payload);
    let templates: Vec<&str> = templates.iter().map(String::as_str).collect();
    block.find(&templates, |fields| fields.hex("code") == Ok(code))
}

/// A server's block: the one with this node.
fn owner(text: &str, node: Node) -> Result<Block, Stop> {
    let is_it = |fields: &Fields| fields.hex("ptr") == Ok(node.ptr);
    block_with(text, NODE_HELD, is_it)
        .or_else(|_| block_with(text, NODE, is_it))
        .or_else(|missing| block_with(text, rust::NODE, is_it).map_err(|_| missing))
}

/// A client's block: the one with a reference by this handle.
fn holder(text: &str, handle: Handle) -> Result<Block, Stop> {
    block_with(text, REF, |fields| fields.number("handle") == Ok(handle.0))
}

fn dbg_01_processes_and_threads(kit: &Kit) -> Verdict {
    let server = kit.open_with(OpenOptions { nonblocking: false, ..OpenOptions::default() })?;
    let client = kit.open()?;
    let pair = kit.pair_of(server, client, Node::number(1))?;
    type Step = fn(&mut Commands);
    // Registering unasked, and after entering, is invalid (contract LP-05).
    let joined: [(&str, &[Step], u64); 4] = [
        ("a thread that entered", &[Commands::enter_looper], 0x02),
        ("one that entered and left", &[Commands::enter_looper, Commands::exit_looper], 0x06),
        ("one that registered unasked", &[Commands::register_looper], 0x09),
        ("one that entered, then registered", &[Commands::enter_looper, Commands::register_looper], 0x0b),
    ];
    let mut threads = Vec::new();
    for (what, steps, want) in joined {
        let (worker, party) = (Worker::new()?, pair.server.clone());
        worker.run(move || party.write(|c| steps.iter().for_each(|step| step(c))))??;
        threads.push((what, worker, want));
    }
    let (worker, party) = (Worker::new()?, pair.server.clone());
    worker.run(move || done("poll", party.conn.poll_readable(0)))??;
    threads.push(("one that polled", worker, kit.by_driver(0x20, 0x40)));
    let (worker, party) = (Worker::new()?, pair.server.clone());
    let mut waiting = worker.start(move || party.enter_looper().and_then(|()| party.read().map(drop)))?;
    waiting.expect_asleep("a looper with nothing to do")?;
    threads.push(("one that waits for work", worker, kit.by_driver(0x12, 0x32)));

    let text = kit.account(StateFile::State)?;
    expect("the first line", text.lines().next(), Some("binder state:"))?;
    let block = owner(&text, pair.node)?;
    if let Some(name) = kit.subject.device().and_then(|path| path.file_name()) {
        expect("the context", block.context.as_str(), name.to_string_lossy().as_ref())?;
    }
    for (what, worker, want) in threads {
        let tid = worker.thread.number();
        let line = block.find(&[THREAD, rust::THREAD], |fields| fields.number("tid") == Ok(tid))?;
        expect(what, line.hex("l")?, want)?;
    }
    Ok(())
}

fn dbg_02_nodes_references_buffers(kit: &Kit) -> Verdict {
    kit.not_in_rust()?;
    let Pair { server, client, handle, node } = kit.pair_of(kit.server()?, kit.server()?, Node::number(1))?;
    client.send_oneway(handle, 1, b"read")?;
    client.send_oneway(handle, 1, b"waiting")?;
    let first = server.read()?.call()?;
    let text = kit.account(StateFile::State)?;
    let (of_server, of_client) = (owner(&text, node)?, holder(&text, handle)?);

    let line = of_server.find(&[NODE_HELD], |fields| fields.hex("ptr") == Ok(node.ptr))?;
    expect("the node's cookie", line.hex("cookie")?, node.cookie)?;
    expect("what it is held by", line.text("holder"), std::process::id().to_string().as_str())?;
    let counts = ["hs", "hw", "lw", "is", "iw"].map(|name| line.text(name));
    expect("its counts hs, hw, lw, is, iw", counts, ["1", "1", "0", "1", "1"])?;
    // The two calls hold it, and the one the owner was asked to acknowledge.
    ensure(line.number::<u32>("ls")? >= 2, || format!("two calls hold the node, ls is {}", line.text("ls")))?;
    let reference = of_client.find(&[REF], |fields| fields.number("handle") == Ok(handle.0))?;
    expect("the reference's node", reference.text("node"), line.text("id"))?;
    expect("its counts", (reference.text("s"), reference.text("w")), ("1", "0"))?;
    expect("no death is asked for", reference.text("death").trim_start_matches('0'), "")?;

    for (size, what) in [(4, "delivered"), (7, "active")] {
        let line = of_server.find(&[BUFFER], |fields| fields.number("data") == Ok(size))?;
        let rest = (line.text("offsets"), line.text("extra"), line.text("what"));
        expect(&format!("the buffer of {size} bytes"), rest, ("0", "0", what))?;
        let at = line.hex("at")?;
        // Kernels before 6.9 or so wrote an obfuscated address.
        if let (4, Some(base), true) = (size, server.conn.map_base(), line.text("at").len() < 16) {
            expect("its offset", at, first.buffer.0 - base)?;
        }
    }

    client.write(|c| c.request_death(handle, Cookie(5)))?;
    let text = kit.account(StateFile::State)?;
    let asked = holder(&text, handle)?.find(&[REF], |fields| fields.number("handle") == Ok(handle.0))?;
    ensure(asked.hex("death")? != 0, || "a death was asked for, d is 0".into())?;
    drop(server);
    // What became of the calls may be read before.
    while !client.read()?.work().ends_with("DEAD_BINDER") {}
    let text = kit.account(StateFile::State)?;
    block_with(&text, DEAD_REF, |fields| fields.number("handle") == Ok(handle.0)).map(drop)
}

fn dbg_03_calls_under_way(kit: &Kit) -> Verdict {
    kit.not_in_rust()?;
    let Pair { server, client, handle, node } = kit.pair()?;
    client.send_oneway(handle, 0x71, b"one")?;
    client.send_oneway(handle, 0x72, b"two")?;
    client.start_call(handle, 0x73, b"three")?;
    let one = server.read()?.call()?;
    let text = kit.account(StateFile::State)?;
    let (of_server, of_client) = (owner(&text, node)?, holder(&text, handle)?);
    let (pid, tid) = (std::process::id(), Worker::current());
    let me = format!("{pid}:{tid}");
    let oneway = find_call(&of_server, "    pending async", true, 0x72)?;
    expect("a oneway call behind another", (oneway.hex("flags")?, oneway.text("size")), (0x11, "3"))?;
    expect("where it goes", oneway.text("to"), format!("{pid}:0").as_str())?;
    let pending = find_call(&of_server, "  pending", true, 0x73)?;
    let outgoing = find_call(&of_client, "    outgoing", false, 0x73)?;
    expect("a call nobody has read", (pending.text("from"), pending.text("size")), (me.as_str(), "5"))?;
    expect("the same at its sender", outgoing.text("id"), pending.text("id"))?;
    // Only the newer form tells these, and then the same everywhere.
    if !pending.text("reply").is_empty() {
        let flags = |fields: &Fields| format!("a{} r{}", fields.text("oneway"), fields.text("reply"));
        expect("a oneway call", flags(&oneway), "a1 r0".into())?;
        expect("a call", flags(&pending), "a0 r0".into())?;
    }
    // The list of calls has the same lines without the rest.
    let calls = kit.account(StateFile::Transactions)?;
    expect("the first line", calls.lines().next(), Some("binder transactions:"))?;
    ensure(!calls.contains("  ref "), || "the list of calls has references".into())?;
    let listed = block_with(&calls, NODE_HELD, |fields| fields.hex("ptr") == Ok(node.ptr))?;
    expect(
        "its id in the list of calls",
        find_call(&listed, "  pending", true, 0x73)?.text("id"),
        pending.text("id"),
    )?;

    let incoming = server.read()?.call()?;
    let text = kit.account(StateFile::State)?;
    let line = find_call(&owner(&text, node)?, "    incoming", true, 0x73)?;
    expect("the call at its server", (line.text("id"), line.text("to")), (pending.text("id"), me.as_str()))?;
    expect_work("answering", &server.answer(b"answer")?, "COMPLETE")?;
    server.write(|c| {
        c.free_buffer(incoming.buffer);
        c.free_buffer(one.buffer);
    })?;
    let text = kit.account(StateFile::State)?;
    ensure(find_call(&owner(&text, node)?, "    incoming", true, 0x73).is_err(), || {
        "an answered call is still incoming".into()
    })?;
    ensure(find_call(&holder(&text, handle)?, "    outgoing", false, 0x73).is_err(), || {
        "an answered call is still outgoing".into()
    })
}

const LOGGED: &str = "{id}: {kind} from {from} to {to} context {context} node {node} handle {handle} size {size}:{offsets} ret {word}/{errno} l={line}";

/// The log's lines about calls that this process sent, oldest first.
fn logged(text: &str) -> Vec<Fields> {
    let own = format!("{}:", std::process::id());
    let lines = text.lines().filter_map(|line| Fields::read(LOGGED, line));
    lines.filter(|fields| fields.text("from").starts_with(&own)).collect()
}

fn dbg_04_the_last_calls(kit: &Kit) -> Verdict {
    let log = |which| kit.account(which);
    log(StateFile::TransactionLog)?;
    let Pair { server, client, handle, .. } = kit.pair()?;
    client.send_oneway(handle, 1, &[1; 5])?;
    let call = server.read()?.call()?;
    server.free(&call)?;
    client.start_call(handle, 1, &[1; 6])?;
    server.echo()?;
    client.ending()?;
    let payload = Payload { data: &[1; 7], ..Payload::default() };
    let refused = client.call(Handle(9999), 1, TransactionFlags::CALL, payload)?;
    expect_work("a call of no handle", &refused, "FAILED_REPLY")?;
    let lines = logged(&log(StateFile::TransactionLog)?);
    let of = |kind: &str, size: usize| {
        let is_it = |fields: &&Fields| fields.text("kind") == kind && fields.number("size") == Ok(size);
        lines
            .iter()
            .rfind(is_it)
            .cloned()
            .ok_or_else(|| Stop::Fail(format!("no {kind} of {size} bytes in the log")))
    };
    for (kind, size, target) in
        [("async", 5, handle.0), ("call", 6, handle.0), ("reply", 6, 0), ("call", 7, 9999)]
    {
        let line = of(kind, size)?;
        expect(&format!("the handle of the {kind} of {size} bytes"), line.number("handle"), Ok(target))?;
        // BR_FAILED_REPLY and EINVAL.
        let want = if target == 9999 { ("29201", "-22") } else { ("0", "0") };
        expect("what came of it", (line.text("word"), line.text("errno")), want)?;
        expect(
            "whether a source line is named",
            line.text("line") != "0",
            target == 9999 && !kit.is_embedded(),
        )?;
    }
    let failed = logged(&log(StateFile::FailedTransactionLog)?);
    let found: Vec<&str> = failed.iter().map(|line| line.text("handle")).collect();
    expect("the handles in the log of failures", found, vec!["9999"])?;

    for size in 1..=40 {
        client.send_oneway(handle, 2, &vec![2; size])?;
        client.read()?;
    }
    let text = log(StateFile::TransactionLog)?;
    expect("lines in the log after 40 more calls", text.lines().count(), 32)?;
    let sizes: Vec<usize> = logged(&text).iter().filter_map(|line| line.number("size").ok()).collect();
    // Others may call meanwhile; what is left is in order and up to the last.
    ensure(sizes.is_sorted() && sizes.last() == Some(&40), || format!("sizes in the log: {sizes:?}"))?;
    if kit.is_embedded() { kit.differs("no line of a source is named: l=0") } else { Ok(()) }
}

/// A line of a block's counters, `label: value` or `label value`.
fn counted<'b>(block: &'b Block, label: &str) -> Result<&'b str, Stop> {
    let found = block.lines.iter().find_map(|line| line.trim_start().strip_prefix(label));
    let missing = || Stop::Fail(format!("no line {label:?} among: {}", block.lines.join(" / ")));
    found.map(|rest| rest.trim_start_matches(':').trim()).ok_or_else(missing)
}

/// What the stats say of the open that asked for this many threads.
fn stats_of(kit: &Kit, max_threads: u32) -> Result<Block, Stop> {
    let is_it = |fields: &Fields| fields.number("max") == Ok(max_threads);
    block_with(&kit.account(StateFile::Stats)?, "  requested threads: {asked}+{started}/{max}", is_it)
}

fn dbg_05_counters(kit: &Kit) -> Verdict {
    const SERVER: u32 = 40_961;
    const CLIENT: u32 = 40_962;
    kit.not_in_rust()?;
    let Pair { server, client, handle, .. } = kit.pair()?;
    done("SET_MAX_THREADS", server.conn.set_max_threads(SERVER))?;
    done("SET_MAX_THREADS", client.conn.set_max_threads(CLIENT))?;
    let space = |block: &Block| {
        let text = counted(block, "free async space")?;
        text.parse::<usize>().map_err(|_| Stop::Fail(format!("free async space is no number: {text}")))
    };
    let before = stats_of(kit, SERVER)?;
    expect("free async space at first", space(&before)?, server.conn.map_size() / 2)?;
    let sent = counted(&stats_of(kit, CLIENT)?, "BC_TRANSACTION")?.to_owned();
    client.send_oneway(handle, 1, &[0; 100])?;
    client.start_call(handle, 1, b"")?;
    let call = server.read()?.call()?;
    let (of_server, of_client) = (stats_of(kit, SERVER)?, stats_of(kit, CLIENT)?);
    for (label, want) in [
        ("threads", "1"),
        // The read that took the call asked for a looper (contract LP-02).
        ("requested threads", "1+0/40961"),
        ("ready threads", "0"),
        ("nodes", "1"),
        ("refs", "0 s 0 w 0"),
        ("buffers", "2"),
        ("pending transactions", "1"),
        ("BR_TRANSACTION", "1"),
        ("BC_ENTER_LOOPER", "1"),
    ] {
        expect(label, counted(&of_server, label)?, want)?;
    }
    expect("refs of the client", counted(&of_client, "refs")?, "1 s 1 w 0")?;
    let add_two = |text: &str| text.parse().map(|count: u64| (count + 2).to_string());
    expect("calls sent", Ok(counted(&of_client, "BC_TRANSACTION")?.to_owned()), add_two(&sent))?;
    ensure(space(&of_server)? + 100 <= space(&before)?, || "a oneway call took no async space".into())?;
    let pages = counted(&of_server, "pages")?;
    ensure(pages.split(':').filter(|count| count.parse::<usize>().is_ok()).count() == 3, || {
        format!("pages are active:lru:free, got {pages}")
    })?;
    counted(&of_server, "pages high watermark")?;
    server.free(&call)?;
    server.echo()?;
    expect("free async space in the end", space(&stats_of(kit, SERVER)?)?, space(&before)?)?;

    let text = kit.account(StateFile::Stats)?;
    expect("the first line", text.lines().next(), Some("binder stats:"))?;
    ensure(!text.contains("BR_NOOP"), || "fillers are counted".into())?;
    for kind in ["proc", "thread", "node", "ref", "transaction"] {
        let template = format!("{kind}: active {{active}} total {{total}}");
        let line = text.lines().find_map(|line| Fields::read(&template, line));
        let line = line.ok_or_else(|| Stop::Fail(format!("no line as {template:?}")))?;
        let (active, total): (u64, u64) = (line.number("active")?, line.number("total")?);
        ensure(active <= total && total > 0, || format!("{kind}: active {active} total {total}"))?;
    }
    Ok(())
}
