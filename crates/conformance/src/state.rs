//! Contract section 19: the driver's state files (DBG).
//! Facts of the Rust driver's format: `process.rs` `debug_print`, `debug_print_stats`; `thread.rs`, `transaction.rs`,
//! `node.rs`, `range_alloc/array.rs` `debug_print`, Linux 7.2.
//! Not here: parsing lines (`state_text`), where the files are (`driver::kernel_state`).

mod queued;

use crate::prelude::*;

items! {
    "DBG-01" C [seen] dbg_01_processes_and_threads "the state has a block per open and a line per thread";
    "DBG-02" C [seen] dbg_02_nodes_references_buffers "the state lists nodes, references and buffers";
    "DBG-03" C [] dbg_03_calls_under_way "the state lists pending calls where they wait";
    "DBG-04" C [seen differs] dbg_04_the_last_calls "one log holds the last 32 calls, another those that failed";
    "DBG-05" C [seen] dbg_05_counters "the stats count what each open holds and every word except NOOP";
    "DBG-06" Rust [] dbg_06_what_the_rust_driver_writes "the Rust driver's state and stats have fewer and other words";
    "DBG-07" C [] dbg_07_completions_go_with_their_process "the stats count no completion of a process that is gone";
    "DBG-08" C [] dbg_08_freeze_notifications_are_named in queued "the state names freeze notifications that wait";
    "DBG-09" Both [] dbg_09_words_of_freezing_are_counted "the stats count the words of freeze notifications";
    "DBG-10" Both [] dbg_10_what_waits_goes_with_its_process in queued "the state names what waits until its process goes";
    "DBG-11" C [] dbg_11_one_state_shows_no_address in queued "state_hashed is the state without addresses";
    "DBG-12" C [] dbg_12_a_failed_call_is_reported in queued "a failed call is reported to listeners, one that went well is not";
}

const THREAD: &str = "  thread {tid}: l {l} need_return {need_return} tr {tr}";
const NODE: &str = "  node {id}: u{ptr} c{cookie} hs {hs} hw {hw} ls {ls} lw {lw} is {is} iw {iw} tr {tr}";
const NODE_HELD: &str =
    "  node {id}: u{ptr} c{cookie} hs {hs} hw {hw} ls {ls} lw {lw} is {is} iw {iw} tr {tr} proc {holder}";
const REF: &str = "  ref {id}: desc {handle} node {node} s {s} w {w} d {death}";
const DEAD_REF: &str = "  ref {id}: desc {handle} dead node {node} s {s} w {w} d {death}";
const BUFFER: &str = "  buffer {id}: {at} size {data}:{offsets}:{extra} {what}";

const RUST_THREAD: &str = "  thread {tid}: l {l} need_return {bool}";
const RUST_NODE: &str = "  node {id}: u{ptr} c{cookie} hs {hs} hw {hw} cs {cs} cw {cw} proc {holder}";
const RUST_BUFFER: &str = "  buffer 0: {at} size {size} pid {pid} oneway {oneway} {what}";

/// A transaction's line after the first words: of current kernels, those since about 6.4, older ones, and the Rust
/// driver.
const CALL: [&str; 4] = [
    "{id}: {ptr} from {from} to {to} code {code} flags {flags} pri {pri} a{oneway} r{reply} elapsed {age}ms",
    "{id}: {ptr} from {from} to {to} code {code} flags {flags} pri {pri} r{answered} elapsed {age}ms",
    "{id}: {ptr} from {from} to {to} code {code} flags {flags} pri {pri} r{answered}",
    "{id}: from {from} to {to} code {code} flags {flags} elapsed {age}ms",
];

/// The rest of the line: none if the buffer belongs to another block, of current kernels, those before about 6.9, and
/// the Rust driver.
const PAYLOAD: [&str; 4] = [
    "",
    " node {node} size {size}:{offsets} offset {at}",
    " node {node} size {size}:{offsets} data {at}",
    " node {node} size {size}:{offsets}",
];

/// The line of a transaction with this code in a block.
fn find_call(block: &Block, head: &str, code: u64) -> Result<Fields, Stop> {
    let all = CALL.iter().flat_map(|call| PAYLOAD.iter().map(move |rest| (call, rest)));
    let templates: Vec<String> = all.map(|(call, rest)| format!("{head} transaction {call}{rest}")).collect();
    let templates: Vec<&str> = templates.iter().map(String::as_str).collect();
    block.find(&templates, |fields| fields.hex("code") == Ok(code))
}

/// A server's block: the one with this node.
fn owner(text: &str, node: Node) -> Result<Block, Stop> {
    let is_it = |fields: &Fields| fields.hex("ptr") == Ok(node.ptr);
    block_with(text, NODE_HELD, is_it)
        .or_else(|_| block_with(text, NODE, is_it))
        .or_else(|missing| block_with(text, RUST_NODE, is_it).map_err(|_| missing))
}

/// A client's block: the one with a reference with this handle.
fn holder(text: &str, handle: Handle) -> Result<Block, Stop> {
    block_with(text, REF, |fields| fields.number("handle") == Ok(handle.0))
}

fn dbg_01_processes_and_threads(kit: &Kit) -> Verdict {
    let server = kit.open_with(OpenOptions { nonblocking: false, ..OpenOptions::default() })?;
    let client = kit.open()?;
    let pair = kit.pair_of(server, client, Node::number(1))?;
    type Step = fn(&mut Commands);
    // Registering without a request, and after entering, is invalid (contract LP-05).
    let joined: [(&str, &[Step], u64); 4] = [
        ("a thread that entered", &[Commands::enter_looper], 0x02),
        ("one that entered and left", &[Commands::enter_looper, Commands::exit_looper], 0x06),
        ("one that registered unasked", &[Commands::register_looper], 0x09),
        ("one that entered, then registered", &[Commands::enter_looper, Commands::register_looper], 0x0b),
    ];
    let mut threads = Vec::new();
    for (what, steps, want) in joined {
        let worker = Worker::new()?;
        pair.server.on(&worker, move |server| server.write(|c| steps.iter().for_each(|step| step(c))))?;
        threads.push((what, worker, want));
    }
    let worker = Worker::new()?;
    pair.server.on(&worker, |server| done("poll", server.conn.poll_readable(0)))?;
    threads.push(("one that polled", worker, kit.by_driver(0x20, 0x40)));
    let worker = Worker::new()?;
    let mut waiting = pair.server.start_on(&worker, RawProcess::read_as_looper)?;
    waiting.expect_asleep("a looper with nothing to do")?;
    threads.push(("one that waits for work", worker, kit.by_driver(0x12, 0x32)));

    let text = kit.state_text(StateFile::State)?;
    expect("the first line", text.lines().next(), Some("binder state:"))?;
    let block = owner(&text, pair.node)?;
    if let Some(name) = kit.subject.device().and_then(|path| path.file_name()) {
        expect("the context", block.context.as_str(), name.to_string_lossy().as_ref())?;
    }
    for (what, worker, want) in threads {
        let tid = worker.thread.number();
        let line = block.find(&[THREAD, RUST_THREAD], |fields| fields.number("tid") == Ok(tid))?;
        expect(what, line.hex("l")?, want)?;
    }
    Ok(())
}

fn dbg_02_nodes_references_buffers(kit: &Kit) -> Verdict {
    kit.not_in_rust()?;
    let Pair { server, client, handle, node } = kit.looper_pair()?;
    client.send_oneway(handle, 1, b"read")?;
    client.send_oneway(handle, 1, b"waiting")?;
    let first = server.read()?.call()?;
    let text = kit.state_text(StateFile::State)?;
    let (of_server, of_client) = (owner(&text, node)?, holder(&text, handle)?);

    let line = of_server.find(&[NODE_HELD], |fields| fields.hex("ptr") == Ok(node.ptr))?;
    expect("the node's cookie", line.hex("cookie")?, node.cookie)?;
    expect("what it is held by", line.text("holder"), std::process::id().to_string().as_str())?;
    let counts = line.texts(["hs", "hw", "lw", "is", "iw"]);
    expect("its counts hs, hw, lw, is, iw", counts, ["1", "1", "0", "1", "1"])?;
    // The two calls hold it, and the notification that the owner was asked to acknowledge.
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
        // Kernels before about 6.9 printed an obfuscated address.
        if let (4, Some(base), true) = (size, server.conn.map_base(), line.text("at").len() < 16) {
            expect("its offset", at, first.buffer.0 - base)?;
        }
    }

    client.write(|c| c.request_death(handle, Cookie(5)))?;
    let text = kit.state_text(StateFile::State)?;
    let asked = holder(&text, handle)?.find(&[REF], |fields| fields.number("handle") == Ok(handle.0))?;
    ensure(asked.hex("death")? != 0, || "a death was asked for, d is 0".into())?;
    drop(server);
    // The results of the calls may be read before.
    while !client.read()?.work().ends_with("DEAD_BINDER") {}
    let text = kit.state_text(StateFile::State)?;
    block_with(&text, DEAD_REF, |fields| fields.number("handle") == Ok(handle.0)).map(drop)
}

/// Calls under way: a oneway call that was read, one behind it, and an unread call.
struct UnderWay {
    pair: Pair,
    /// The state, and the server's block in it.
    text: String,
    block: Block,
    oneway: Fields,
    pending: Fields,
}

/// Starts calls, checks what every driver's state and list of calls tell of them, then `own_lines`; answers the call,
/// and checks that it is gone.
fn calls_under_way(kit: &Kit, own_lines: fn(&Kit, &UnderWay) -> Verdict) -> Verdict {
    let pair = kit.pair()?;
    for (code, data) in [(0x71, b"one"), (0x72, b"two")] {
        pair.client.send_oneway(pair.handle, code, data)?;
    }
    pair.client.start_call(pair.handle, 0x73, b"three")?;
    let one = pair.server.read()?.call()?;
    let text = kit.state_text(StateFile::State)?;
    let block = owner(&text, pair.node)?;
    let me = format!("{}:{}", std::process::id(), Worker::current());
    let oneway = find_call(&block, "    pending async", 0x72)?;
    expect("a oneway call behind another", (oneway.hex("flags")?, oneway.text("size")), (0x11, "3"))?;
    let pending = find_call(&block, "  pending", 0x73)?;
    expect("an unread call", (pending.text("from"), pending.text("size")), (me.as_str(), "5"))?;
    let calls = kit.state_text(StateFile::Transactions)?;
    expect("the first line", calls.lines().next(), Some("binder transactions:"))?;
    ensure(!calls.contains("  ref "), || "the list of calls has references".into())?;
    let scene = UnderWay { pair, text, block, oneway, pending };
    own_lines(kit, &scene)?;

    let Pair { server, handle, node, .. } = &scene.pair;
    let incoming = server.read()?.call()?;
    let line = find_call(&owner(&kit.state_text(StateFile::State)?, *node)?, "    incoming", 0x73)?;
    expect("the call at its server", line.text("id"), scene.pending.text("id"))?;
    if !kit.is_rust() {
        expect("the thread that it went to", line.text("to"), me.as_str())?;
    }
    expect_work("answering", &server.answer(b"answer")?, "COMPLETE")?;
    server.write(|c| {
        c.free_buffer(incoming.buffer);
        c.free_buffer(one.buffer);
    })?;
    let text = kit.state_text(StateFile::State)?;
    let incoming = find_call(&owner(&text, *node)?, "    incoming", 0x73);
    ensure(incoming.is_err(), || "an answered call is still incoming".into())?;
    if kit.is_rust() {
        return Ok(());
    }
    let outgoing = find_call(&holder(&text, *handle)?, "    outgoing", 0x73);
    ensure(outgoing.is_err(), || "an answered call is still outgoing".into())
}

fn dbg_03_calls_under_way(kit: &Kit) -> Verdict {
    kit.not_in_rust()?;
    calls_under_way(kit, |kit, UnderWay { pair, text, oneway, pending, .. }| {
        let nobody = format!("{}:0", std::process::id());
        expect("where a oneway call goes", oneway.text("to"), nobody.as_str())?;
        let outgoing = find_call(&holder(text, pair.handle)?, "    outgoing", 0x73)?;
        expect("an unread call at its sender", outgoing.text("id"), pending.text("id"))?;
        // Only the newer format has these values, and then they are the same everywhere.
        if !pending.text("reply").is_empty() {
            let flags = |fields: &Fields| format!("a{} r{}", fields.text("oneway"), fields.text("reply"));
            expect("a oneway call", flags(oneway), "a1 r0".into())?;
            expect("a call", flags(pending), "a0 r0".into())?;
        }
        let calls = kit.state_text(StateFile::Transactions)?;
        let listed = block_with(&calls, NODE_HELD, |fields| fields.hex("ptr") == Ok(pair.node.ptr))?;
        let listed = find_call(&listed, "  pending", 0x73)?;
        expect("its id in the list of calls", listed.text("id"), pending.text("id"))
    })
}

const LOGGED: &str = "{id}: {kind} from {from} to {to} context {context} node {node} handle {handle} size {size}:{offsets} ret {word}/{errno} l={line}";

/// The log's lines about calls of this process, oldest first.
fn logged(text: &str) -> Vec<Fields> {
    let own = format!("{}:", std::process::id());
    let lines = text.lines().filter_map(|line| Fields::read(LOGGED, line));
    lines.filter(|fields| fields.text("from").starts_with(&own)).collect()
}

fn dbg_04_the_last_calls(kit: &Kit) -> Verdict {
    let log = |which| kit.state_text(which);
    log(StateFile::TransactionLog)?;
    let Pair { server, client, handle, .. } = kit.pair()?;
    client.send_oneway(handle, 1, &[1; 5])?;
    server.free(&server.read()?.call()?)?;
    client.start_call(handle, 1, &[1; 6])?;
    server.echo()?;
    client.ending()?;
    let refused = client.call_with(Handle(9999), 1, plain(&[1; 7]))?;
    expect_work("a call of no handle", &refused, "FAILED_REPLY")?;
    let lines = logged(&log(StateFile::TransactionLog)?);
    let of = |kind: &str, size: usize| {
        let is_it = |fields: &&Fields| fields.text("kind") == kind && fields.number("size") == Ok(size);
        required(lines.iter().rfind(is_it), || format!("no {kind} of {size} bytes in the log"))
    };
    for (kind, size, target) in
        [("async", 5, handle.0), ("call", 6, handle.0), ("reply", 6, 0), ("call", 7, 9999)]
    {
        let line = of(kind, size)?;
        expect(&format!("the handle of the {kind} of {size} bytes"), line.number("handle"), Ok(target))?;
        // `BR_FAILED_REPLY` and `EINVAL`.
        let want = if target == 9999 { ("29201", "-22") } else { ("0", "0") };
        expect("what came of it", (line.text("word"), line.text("errno")), want)?;
        let in_kernel = target == 9999 && !kit.is_embedded();
        expect("whether a source line is named", line.text("line") != "0", in_kernel)?;
    }
    let failed = logged(&log(StateFile::FailedTransactionLog)?);
    let found: Vec<&str> = failed.iter().map(|line| line.text("handle")).collect();
    expect("the handles in the log of failures", found, vec!["9999"])?;

    // Each place of the log has had a call that failed before the calls that go well.
    for _ in 0..32 {
        client.call(Handle(9999))?;
    }
    for size in 1..=40 {
        client.send_oneway(handle, 2, &vec![2; size])?;
        client.read()?;
    }
    let text = log(StateFile::TransactionLog)?;
    expect("lines in the log after 40 more calls", text.lines().count(), 32)?;
    let failed =
        logged(&text).iter().filter(|line| (line.text("word"), line.text("errno")) != ("0", "0")).count();
    expect("calls in the log that failed, of 40 that went well", failed, 0)?;
    let sizes: Vec<usize> = logged(&text).iter().filter_map(|line| line.number("size").ok()).collect();
    // Other processes may call meanwhile; the remaining entries are in order and end with the last call.
    ensure(sizes.is_sorted() && sizes.last() == Some(&40), || format!("sizes in the log: {sizes:?}"))?;
    if kit.is_embedded() { kit.differs("no line of a source is named: l=0") } else { Ok(()) }
}

/// A counter line of a block, `label: value` or `label value`.
pub(super) fn counted<'b>(block: &'b Block, label: &str) -> Result<&'b str, Stop> {
    let found = block.lines.iter().find_map(|line| line.trim_start().strip_prefix(label));
    let value = found.map(|rest| rest.trim_start_matches(':').trim());
    required(value, || format!("no line {label:?} among: {}", block.lines.join(" / ")))
}

/// The value of a counter line as a number.
fn number(block: &Block, label: &str) -> Result<usize, Stop> {
    let text = counted(block, label)?;
    required(text.parse().ok(), || format!("{label} is not a number: {text}"))
}

/// The stats of the open that requested this many threads.
pub(super) fn stats_of(kit: &Kit, max_threads: u32) -> Result<Block, Stop> {
    let is_it = |fields: &Fields| fields.number("max") == Ok(max_threads);
    block_with(&kit.state_text(StateFile::Stats)?, "  requested threads: {asked}+{started}/{max}", is_it)
}

/// Numbers of threads by which the stats of a pair's processes are found.
const SERVER: u32 = 40_961;
const CLIENT: u32 = 40_962;

/// Sends a oneway call and a call, and checks the server's stats while the first is being read: these counters, and
/// the space for oneway calls, which has this label. Returns those stats.
fn expect_counters(kit: &Kit, pair: &Pair, space: &str, counts: &[(&str, &str)]) -> Result<Block, Stop> {
    let Pair { server, client, handle, .. } = pair;
    server.set_max_threads(SERVER)?;
    let before = number(&stats_of(kit, SERVER)?, space)?;
    if !kit.is_rust() {
        expect(&format!("{space} at first"), before, server.conn.map_size() / 2)?;
    }
    client.send_oneway(*handle, 1, &[0; 100])?;
    client.start_call(*handle, 1, b"")?;
    let call = server.read()?.call()?;
    let stats = stats_of(kit, SERVER)?;
    for (label, want) in counts {
        expect(label, counted(&stats, label)?, want)?;
    }
    ensure(number(&stats, space)? + 100 <= before, || format!("a oneway call took no {space}"))?;
    server.free(&call)?;
    server.echo()?;
    expect(&format!("{space} in the end"), number(&stats_of(kit, SERVER)?, space)?, before)?;
    Ok(stats)
}

fn dbg_05_counters(kit: &Kit) -> Verdict {
    kit.not_in_rust()?;
    let pair = kit.pair()?;
    pair.client.set_max_threads(CLIENT)?;
    let calls_sent = || number(&stats_of(kit, CLIENT)?, "BC_TRANSACTION");
    // Of all processes, above the first block; others may call meanwhile.
    let of_all = |word: &str| {
        let text = kit.state_text(StateFile::Stats)?;
        let head = text.lines().take_while(|line| !line.starts_with("proc "));
        let count =
            head.filter_map(|line| line.strip_prefix(word)?.strip_prefix(": ")?.parse::<u64>().ok()).next();
        required(count, || format!("no count of {word} of all processes"))
    };
    let (sent, sent_by_all) = (calls_sent()?, of_all("BC_TRANSACTION")?);
    let counts = [
        ("threads", "1"),
        // The read that took the call requested a looper (contract LP-02).
        ("requested threads", "1+0/40961"),
        ("ready threads", "0"),
        ("nodes", "1"),
        ("refs", "0 s 0 w 0"),
        ("buffers", "2"),
        ("pending transactions", "1"),
        ("BR_TRANSACTION", "1"),
        ("BC_ENTER_LOOPER", "1"),
    ];
    let stats = expect_counters(kit, &pair, "free async space", &counts)?;
    expect("refs of the client", counted(&stats_of(kit, CLIENT)?, "refs")?, "1 s 1 w 0")?;
    expect("calls sent", calls_sent()?, sent + 2)?;
    let by_all = of_all("BC_TRANSACTION")?;
    ensure(by_all >= sent_by_all + 2, || {
        format!("all processes sent {sent_by_all} calls, and {by_all} after 2 more")
    })?;
    let pages = counted(&stats, "pages")?;
    ensure(pages.split(':').filter(|count| count.parse::<usize>().is_ok()).count() == 3, || {
        format!("pages are active:lru:free, got {pages}")
    })?;
    counted(&stats, "pages high watermark")?;

    let text = kit.state_text(StateFile::Stats)?;
    expect("the first line", text.lines().next(), Some("binder stats:"))?;
    ensure(!text.contains("BR_NOOP"), || "fillers are counted".into())?;
    for kind in ["proc", "thread", "node", "ref", "transaction"] {
        let (active, total) = queued::count(kit, kind)?.unwrap_or_default();
        ensure(active <= total && total > 0, || format!("{kind}: active {active} total {total}"))?;
    }
    Ok(())
}

fn dbg_06_what_the_rust_driver_writes(kit: &Kit) -> Verdict {
    kit.only_in_rust()?;
    calls_under_way(kit, |_, UnderWay { pair, text, block, pending, .. }| {
        let (pid, tid) = (std::process::id().to_string(), Worker::current().to_string());
        let thread = block.find(&[RUST_THREAD], |fields| fields.text("tid") == tid)?;
        expect("l of a looper", thread.hex("l")?, 0x02)?;
        let needs_return = thread.text("bool");
        ensure(["true", "false"].contains(&needs_return), || format!("need_return {needs_return}"))?;
        let line = block.find(&[RUST_NODE], |fields| fields.hex("ptr") == Ok(pair.node.ptr))?;
        let held = line.texts(["hs", "hw", "holder"]);
        expect("whether the owner holds the node, hs and hw, and who else", held, ["true", "true", &pid])?;
        let sent = (pending.text("to"), pending.text("node"));
        expect("where an unread call goes", sent, (pid.as_str(), line.text("id")))?;
        for (what, oneway, state) in [("read", "true", "allocated"), ("unread", "false", "reserved")] {
            let buffer = block.find(&[RUST_BUFFER], |fields| fields.text("oneway") == oneway)?;
            let got = buffer.texts(["size", "pid", "what"]);
            expect(&format!("a buffer that is {what}"), got, ["8", &pid, state])?;
        }
        // The caller's block: its call, and the reference that it called. Linux 7.2 does not end that line.
        let outgoing = format!("    outgoing transaction {}{}", CALL[3], PAYLOAD[3]);
        let block = block_with(text, &outgoing, |fields| fields.text("id") == pending.text("id"))?;
        let reference = format!("desc {} node {} s 1 w 0", pair.handle.0, pending.text("node"));
        let has = |line: &String| line.starts_with("  ref ") && line.contains(&reference);
        ensure(block.lines.iter().any(has), || {
            format!("no reference {reference:?} among: {}", block.lines.join(" / "))
        })
    })?;
    let counts = [
        ("threads", "1"),
        ("nodes", "1"),
        ("refs", "0 s 0 w 0"),
        ("buffers", "2"),
        ("outstanding transactions", "1"),
        ("BR_TRANSACTION", "1"),
        ("BC_ENTER_LOOPER", "1"),
    ];
    let stats = expect_counters(kit, &kit.pair()?, "free oneway space", &counts)?;
    counted(&stats, "BR_NOOP")?;
    for word in ["pending transactions", "free async space", "ready threads", "pages"] {
        ensure(counted(&stats, word).is_err(), || format!("the stats have {word:?}, as the C driver's"))?;
    }
    Ok(())
}

fn dbg_07_completions_go_with_their_process(kit: &Kit) -> Verdict {
    kit.not_in_rust()?;
    kit.device()?;
    kit.since(6, 10, "accounts of pending completions")?;
    kit.can_freeze()?;
    let count = || queued::count(kit, "transaction_complete").map(|counts| counts.unwrap_or_default().0);
    let sender = kit.open()?;
    let (remote, handle) = RemoteProcess::owning(kit, &sender, 1)?;
    let before = count()?;
    let freeze = |enable| {
        let info = FreezeInfo { pid: remote.pid(), enable, timeout_ms: 0 };
        done("FREEZE", sender.conn.freeze(info))
    };
    freeze(1)?;
    for code in 1..=4 {
        sender.send_oneway(handle, code, b"")?;
    }
    expect("completions that were not read", count()?, before + 4)?;
    freeze(0)?;
    drop(sender);
    soon(|| {
        let more = count()?.saturating_sub(before);
        Ok((more > 0).then(|| format!("{more} completions of a process that is gone are still counted")))
    })
}

fn dbg_09_words_of_freezing_are_counted(kit: &Kit) -> Verdict {
    const COOKIE: Cookie = Cookie(0xf9);
    kit.since(6, 12, "freeze notifications")?;
    let pair = kit.looper_pair()?;
    let Pair { client, handle, .. } = &pair;
    client.write(|c| c.request_freeze(*handle, COOKIE))?;
    client.expect_read("the first state", "FROZEN_BINDER")?;
    client.write(|c| {
        c.freeze_done(COOKIE);
        c.clear_freeze(*handle, COOKIE);
    })?;
    client.expect_read("clearing it", "CLEAR_FREEZE_NOTIFICATION_DONE")?;
    client.set_max_threads(CLIENT)?;
    let stats = stats_of(kit, CLIENT)?;
    for word in [
        "BC_REQUEST_FREEZE_NOTIFICATION",
        "BC_CLEAR_FREEZE_NOTIFICATION",
        "BC_FREEZE_NOTIFICATION_DONE",
        "BR_FROZEN_BINDER",
        "BR_CLEAR_FREEZE_NOTIFICATION_DONE",
    ] {
        expect(word, counted(&stats, word)?, "1")?;
    }
    Ok(())
}
