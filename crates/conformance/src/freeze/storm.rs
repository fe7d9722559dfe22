//! Contract section 11: freezing a process that is going away (FRZ-11).

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};

use crate::prelude::*;

/// Processes that come and go. On a kernel that poisons freed memory, a driver that used a freed node met it within 30.
const ROUNDS: usize = 150;
/// Nodes of each.
const NODES: u64 = 100;

pub(super) fn frz_11_freezing_what_goes_away(kit: &Kit) -> Verdict {
    kit.device()?;
    kit.can_freeze()?;
    let stop = Arc::new(AtomicBool::new(false));
    let freezes = Arc::new(AtomicUsize::new(0));
    let (freezer, worker, flag, count) =
        (kit.open()?, Worker::new()?, Arc::clone(&stop), Arc::clone(&freezes));
    let task = freezer.start_on(&worker, move |process| {
        let freeze =
            |enable| process.conn.freeze(FreezeInfo { pid: std::process::id(), enable, timeout_ms: 0 });
        while !flag.load(Ordering::Relaxed) {
            // EAGAIN while something is pending.
            let _ = freeze(1);
            let _ = freeze(0);
            count.fetch_add(1, Ordering::Relaxed);
        }
        freeze(0)
    })?;
    let draft = (0..NODES).fold(Draft::default(), |draft, number| {
        draft.object(&flat_object(object::BINDER, 0x10_0000 + number * 8, number))
    });
    let mut seen = 0;
    let came_and_went = (0..ROUNDS).try_for_each(|round| {
        // On a busy machine that thread may get no CPU for many rounds.
        let freezes = || freezes.load(Ordering::Relaxed);
        let keeps_up = sys::patience::until(PATIENCE, || freezes() > seen);
        ensure(keeps_up, || format!("no FREEZE and thaw within {PATIENCE:?} in round {round}"))?;
        seen = freezes();
        // Served by another OS process, which is not frozen.
        let process = kit.open()?;
        process.send(Handle::CONTEXT_MANAGER, 0, TransactionFlags::ONEWAY, draft.payload())
    });
    stop.store(true, Ordering::Relaxed);
    done("thawing", task.wait("freezing and thawing")?)?;
    came_and_went
}
