//! Room: what the Rust driver says of itself in words of its own (DBG-06).
//! Not here: the C driver's words (`state`).
//! Facts: `process.rs` `debug_print`, `debug_print_stats`; `thread.rs`, `transaction.rs`, `node.rs`,
//! `range_alloc/array.rs` `debug_print`, Linux 7.2.

use abi::Handle;
use driver::kernel_state::StateFile;

use super::super::account::{Block, Fields, block_with};
use super::super::evidence::Kind;
use super::super::item::{Stop, Verdict, done, ensure, expect};
use super::super::kit::{Kit, Pair};
use super::super::party::expect_work;
use super::super::worker::Worker;
use super::{counted, owner, stats_of};

pub(super) const THREAD: &str = "  thread {tid}: l {l} need_return {bool}";
pub(super) const NODE: &str = "  node {id}: u{ptr} c{cookie} hs {hs} hw {hw} cs {cs} cw {cw} proc {holder}";
const BUFFER: &str = "  buffer 0: {at} size {size} pid {pid} oneway {oneway} {what}";

/// The line of a transaction of this code.
fn find_call(block: &Block, head: &str, code: u64) -> Result<Fields, Stop> {
    let template = format!(
        "{head} transaction {{id}}: from {{from}} to {{to}} code {{code}} flags {{flags}} elapsed {{age}}ms \
         node {{node}} size {{size}}:{{offsets}}"
    );
    block.find(&[&template], |fields| fields.hex("code") == Ok(code))
}

pub(super) fn dbg_06_what_the_rust_driver_writes(kit: &Kit) -> Verdict {
    if kit.kind() != Kind::Rust {
        return Err(Stop::Skip(format!("a promise of the Rust driver only; this is the {}", kit.kind())));
    }
    calls_nodes_and_buffers(kit)?;
    counters(kit)
}

fn calls_nodes_and_buffers(kit: &Kit) -> Verdict {
    let Pair { server, client, handle, node } = kit.pair()?;
    client.send_oneway(handle, 0x71, b"one")?;
    client.send_oneway(handle, 0x72, b"two")?;
    client.start_call(handle, 0x73, b"three")?;
    let one = server.read()?.call()?;
    let text = kit.account(StateFile::State)?;
    let block = owner(&text, node)?;
    let (pid, tid) = (std::process::id().to_string(), Worker::current().to_string());
    let me = format!("{pid}:{tid}");
    let thread = block.find(&[THREAD], |fields| fields.text("tid") == tid)?;
    expect("l of a looper", thread.hex("l")?, 0x02)?;
    let bools = ["true", "false"];
    ensure(bools.contains(&thread.text("bool")), || format!("need_return {}", thread.text("bool")))?;
    let line = block.find(&[NODE], |fields| fields.hex("ptr") == Ok(node.ptr))?;
    let counts = ["hs", "hw", "holder"].map(|name| line.text(name));
    expect(
        "whether the owner holds the node, hs and hw, and who else",
        counts,
        ["true", "true", pid.as_str()],
    )?;

    let oneway = find_call(&block, "    pending async", 0x72)?;
    expect("a oneway call behind another", (oneway.hex("flags")?, oneway.text("size")), (0x11, "3"))?;
    let pending = find_call(&block, "  pending", 0x73)?;
    let sent = (pending.text("from"), pending.text("to"), pending.text("size"), pending.text("node"));
    expect("a call nobody has read", sent, (me.as_str(), pid.as_str(), "5", line.text("id")))?;
    let sizes = |oneway: &str| block.find(&[BUFFER], |fields| fields.text("oneway") == oneway);
    for (what, oneway, state) in [("read", "true", "allocated"), ("unread", "false", "reserved")] {
        let buffer = sizes(oneway)?;
        let got = ["size", "pid", "what"].map(|name| buffer.text(name));
        expect(&format!("a buffer that is {what}"), got, ["8", pid.as_str(), state])?;
    }

    client_block(&text, &pending, handle)?;
    let calls = kit.account(StateFile::Transactions)?;
    expect("the first line", calls.lines().next(), Some("binder transactions:"))?;
    ensure(!calls.contains("  ref "), || "the list of calls has references".into())?;

    let incoming = server.read()?.call()?;
    let text = kit.account(StateFile::State)?;
    let line = find_call(&owner(&text, node)?, "    incoming", 0x73)?;
    expect("the call at its server", line.text("id"), pending.text("id"))?;
    expect_work("answering", &server.answer(b"answer")?, "COMPLETE")?;
    server.write(|c| {
        c.free_buffer(incoming.buffer);
        c.free_buffer(one.buffer);
    })?;
    let text = kit.account(StateFile::State)?;
    ensure(find_call(&owner(&text, node)?, "    incoming", 0x73).is_err(), || {
        "an answered call is still incoming".into()
    })
}

/// The block of a caller: its call, and the reference by which it called.
fn client_block(text: &str, pending: &Fields, handle: Handle) -> Verdict {
    let outgoing = "    outgoing transaction {id}: from {from} to {to} code {code} flags {flags} elapsed {age}ms \
                    node {node} size {size}:{offsets}";
    let block = block_with(text, outgoing, |fields| fields.text("id") == pending.text("id"))?;
    // Seen: no line ends behind a reference.
    let reference = format!("desc {} node {} s 1 w 0", handle.0, pending.text("node"));
    let has = |line: &String| line.starts_with("  ref ") && line.contains(&reference);
    ensure(block.lines.iter().any(has), || {
        format!("no reference {reference:?} among: {}", block.lines.join(" / "))
    })
}

fn counters(kit: &Kit) -> Verdict {
    const SERVER: u32 = 40_963;
    let Pair { server, client, handle, .. } = kit.pair()?;
    done("SET_MAX_THREADS", server.conn.set_max_threads(SERVER))?;
    let space = |block: &Block| {
        let text = counted(block, "free oneway space")?;
        text.parse::<usize>().map_err(|_| Stop::Fail(format!("free oneway space is no number: {text}")))
    };
    let before = stats_of(kit, SERVER)?;
    client.send_oneway(handle, 1, &[0; 100])?;
    client.start_call(handle, 1, b"")?;
    let call = server.read()?.call()?;
    let stats = stats_of(kit, SERVER)?;
    for (label, want) in [
        ("threads", "1"),
        ("nodes", "1"),
        ("refs", "0 s 0 w 0"),
        ("buffers", "2"),
        ("outstanding transactions", "1"),
        ("BR_TRANSACTION", "1"),
        ("BC_ENTER_LOOPER", "1"),
    ] {
        expect(label, counted(&stats, label)?, want)?;
    }
    ensure(space(&stats)? + 100 <= space(&before)?, || "a oneway call took no oneway space".into())?;
    counted(&stats, "BR_NOOP")?;
    for word in ["pending transactions", "free async space", "ready threads", "pages"] {
        ensure(counted(&stats, word).is_err(), || format!("the stats have {word:?}, as the C driver's"))?;
    }
    server.free(&call)?;
    server.echo()?;
    expect("free oneway space in the end", space(&stats_of(kit, SERVER)?)?, space(&before)?)
}
