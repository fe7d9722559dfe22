//! Contract section 19: what waits, in the driver's state and stats, and as its process goes (DBG-08, DBG-10, DBG-11),
//! and what listeners of the driver hear of a failed call (DBG-12).

use std::collections::BTreeMap;

use sys::netlink::{self, Listener};

use crate::prelude::*;
use crate::waiting::KINDS;

/// Reads the driver's file of this name.
fn named(kit: &Kit, name: &str) -> Result<String, Stop> {
    let read = driver::kernel_state::read_named_here(Some(kit.device()?), name);
    match read {
        Ok(Some(text)) => Ok(text),
        Ok(None) => Err(Stop::Skip(format!("the {} keeps no {name}", kit.kind()))),
        Err(error) => Err(Stop::Skip(error.to_string())),
    }
}

/// How many of these the driver has, and how many it ever had, by its stats. The C driver's leave out what there never was; `None`:
/// the Rust driver's count nothing.
pub(super) fn count(kit: &Kit, kind: &str) -> Result<Option<(u64, u64)>, Stop> {
    let template = format!("{kind}: active {{active}} total {{total}}");
    let text = kit.state_text(StateFile::Stats)?;
    let line = text.lines().find_map(|line| Fields::read(&template, line));
    match line {
        Some(line) => Ok(Some((line.number("active")?, line.number("total")?))),
        None => Ok((!kit.is_rust()).then_some((0, 0))),
    }
}

/// How often the state says this of this process. Not by lines: the Rust driver ends none behind a reference (DBG-06).
fn said(kit: &Kit, what: &str) -> Result<usize, Stop> {
    let text = kit.state_text(StateFile::State)?;
    let begins = |at: &usize| text[..*at].ends_with(|before: char| before == '\n' || before.is_ascii_digit());
    let mut begins: Vec<usize> = text.match_indices("proc ").map(|(at, _)| at).filter(begins).collect();
    begins.push(text.len());
    let own = format!("proc {}\n", std::process::id());
    let blocks = begins.windows(2).map(|ends| &text[ends[0]..ends[1]]);
    Ok(blocks.filter(|block| block.starts_with(&own)).map(|block| block.matches(what).count()).sum())
}

pub(super) fn dbg_08_freeze_notifications_are_named(kit: &Kit) -> Verdict {
    kit.not_in_rust()?;
    kit.device()?;
    kit.since(6, 12, "freeze notifications")?;
    for kind in KINDS.iter().filter(|kind| kind.counted == Some("freeze")) {
        let _waiting = (kind.prepare)(kit)?;
        expect(&format!("{:?} in the state", kind.line), said(kit, kind.line)?, 1)?;
    }
    Ok(())
}

pub(super) fn dbg_10_what_waits_goes_with_its_process(kit: &Kit) -> Verdict {
    kit.device()?;
    for kind in KINDS.iter().filter(|kind| kit.knows(kind.name)) {
        // The Rust driver has one line for all that is about freezing.
        let cleared_freeze = "has cleared freeze notification";
        let line = if kit.is_rust() && kind.line == cleared_freeze { "has frozen binder" } else { kind.line };
        let counted = || kind.counted.map_or(Ok(None), |name| count(kit, name));
        let before = counted()?;
        let waiting = (kind.prepare)(kit)?;
        expect(&format!("{line:?} in the state while {} waits", kind.name), said(kit, line)?, 1)?;
        if let (Some((_, before)), Some((_, now))) = (before, counted()?) {
            ensure(now > before, || {
                format!("{} waits, and the stats have counted {now} of it, as before", kind.name)
            })?;
        }
        drop(waiting);
        // Processes of earlier tests may be counted, too.
        soon(|| {
            let now = (said(kit, line)?, counted()?.map(|(active, _)| active));
            let is_gone = now.0 == 0 && now.1 <= before.map(|(active, _)| active);
            Ok((!is_gone).then(|| {
                format!(
                    "{} and its process are gone: expected no {line:?} and {before:?} counted, got {now:?}",
                    kind.name
                )
            }))
        })?;
    }
    Ok(())
}

pub(super) fn dbg_11_one_state_shows_no_address(kit: &Kit) -> Verdict {
    const PTR: u64 = 0x7fed_cba9_8765_0010;
    kit.not_in_rust()?;
    kit.device()?;
    let (plain, hashed) = ("state", named(kit, "state_hashed").map(|_| "state_hashed")?);
    let pair =
        kit.pair_of(kit.server()?, kit.open()?, Node { ptr: PTR, cookie: PTR + 8, ..Node::number(1) })?;
    pair.client.start_call(pair.handle, 1, b"")?;
    let other = Node { ptr: PTR + 16, cookie: PTR + 24, ..Node::number(2) };
    let owner = kit.server()?;
    Kit::write_leave(&owner, object::BINDER, other, 2)?;
    let addresses = [PTR, PTR + 8, PTR + 16, PTR + 24].map(|address| format!("{address:016x}"));
    let shown = |text: &str| addresses.iter().filter(|address| text.contains(*address)).count();
    expect("addresses in the state", shown(&named(kit, plain)?), addresses.len())?;
    let text = named(kit, hashed)?;
    expect("addresses in the state without addresses", shown(&text), 0)?;
    for word in ["  node ", "node work ", "pending transaction ", "  buffer ", "  ref "] {
        ensure(text.contains(word), || format!("the state without addresses has no {word:?}"))?;
    }
    let calls = named(kit, "transactions_hashed")?;
    expect("addresses in the calls without addresses", shown(&calls), 0)?;
    ensure(calls.contains("pending transaction "), || format!("the call is not in:\n{calls}"))
}

/// Attributes of a report, from `linux/android/binder_netlink.h`: the return word, the caller, its thread, flags, code, and the
/// size of the data in bytes.
const REPORTED: [u16; 6] = [1, 3, 4, 8, 9, 10];

pub(super) fn dbg_12_a_failed_call_is_reported(kit: &Kit) -> Verdict {
    kit.not_in_rust()?;
    kit.device()?;
    kit.since(6, 18, "reports of failed calls")?;
    kit.names_itself()?;
    let listener = Listener::join("binder", "report").map_err(|error| {
        Stop::Skip(format!("nobody can listen to the driver: {}", sys::errno::describe(&error)))
    })?;
    let pair = kit.pair()?;
    pair.client.send(Handle(4000), 77, TransactionFlags::CALL, plain(&[1; 24]))?;
    pair.client.expect_ending("a call of no handle", "FAILED_REPLY")?;
    pair.client.round_trip("a call that goes well", pair.handle, &pair.server)?;
    let own = std::process::id();
    let mut reports = Vec::new();
    // A message is in the listener's queue before the write that it is about returns.
    loop {
        match done("listening", listener.next())? {
            Some((1, bytes)) => {
                let numbers: BTreeMap<u16, u32> = netlink::attributes(&bytes)
                    .filter_map(|(kind, value)| Some((kind, u32::from_ne_bytes(*value.first_chunk()?))))
                    .collect();
                if numbers.get(&3) == Some(&own) {
                    reports.push(REPORTED.map(|kind| numbers.get(&kind).copied()));
                }
            }
            Some(_) => {}
            None => break,
        }
    }
    let thread = Worker::current() as u32;
    let want = [br::FAILED_REPLY, own, thread, TransactionFlags::CALL.0, 77, 24].map(Some);
    expect("the reports of this process: word, process, thread, flags, code, bytes", reports, vec![want])
}
