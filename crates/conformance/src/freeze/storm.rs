//! Contract section 11: freezing a process that is going away (FRZ-11).

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use crate::prelude::*;

/// Processes that come and go. On a kernel that poisons freed memory, a driver that used a freed node met it within 30.
const ROUNDS: u64 = 150;
/// Nodes of each.
const NODES: u64 = 100;

pub(super) fn frz_11_freezing_what_goes_away(kit: &Kit) -> Verdict {
    kit.device()?;
    kit.can_freeze()?;
    let stop = Arc::new(AtomicBool::new(false));
    let (freezer, worker, flag) = (kit.open()?, Worker::new()?, Arc::clone(&stop));
    let task = freezer.start_on(&worker, move |process| {
        let freeze =
            |enable| process.conn.freeze(FreezeInfo { pid: std::process::id(), enable, timeout_ms: 0 });
        while !flag.load(Ordering::Relaxed) {
            // EAGAIN while something is pending.
            let _ = freeze(1);
            let _ = freeze(0);
        }
        freeze(0)
    })?;
    let draft = (0..NODES).fold(Draft::default(), |draft, number| {
        draft.object(&flat_object(object::BINDER, 0x10_0000 + number * 8, number))
    });
    let came_and_went = (0..ROUNDS).try_for_each(|_| {
        // Served by another OS process, which is not frozen.
        let process = kit.open()?;
        process.send(Handle::CONTEXT_MANAGER, 0, TransactionFlags::ONEWAY, draft.payload())
    });
    stop.store(true, Ordering::Relaxed);
    done("thawing", task.wait("freezing and thawing")?)?;
    came_and_went
}
