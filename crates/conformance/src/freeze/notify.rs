//! Contract section 11: freeze notifications (FRZ-06 to FRZ-10, FRZ-12 to FRZ-14).

use sys::interrupt::Interrupter;

use crate::freeze::Frozen;
use crate::prelude::*;

const COOKIE: Cookie = Cookie(0xf_0001);
const OTHER: Cookie = Cookie(0xf_0002);

/// A remote process to freeze; skips the test if the driver has no freeze notifications.
fn notifying(kit: &Kit) -> Result<Frozen, Stop> {
    kit.since(6, 12, "freeze notifications")?;
    Frozen::new(kit)
}

/// Fails unless the next read reports this state.
fn expect_state(process: &RawProcess, what: &str, cookie: Cookie, frozen: bool) -> Verdict {
    let got = process.expect_read(what, "FROZEN_BINDER")?;
    let told = got.returns.iter().find(|item| matches!(item, Return::FrozenBinder(..)));
    expect(what, told, Some(&Return::FrozenBinder(cookie, frozen)))
}

fn acknowledge(process: &RawProcess, cookie: Cookie) -> Verdict {
    process.write(|c| c.freeze_done(cookie))
}

/// Requests notifications and reads the initial state.
fn subscribe(frozen: &Frozen, what: &str) -> Verdict {
    frozen.client.write(|c| c.request_freeze(frozen.handle, COOKIE))?;
    expect_state(&frozen.client, what, COOKIE, false)
}

pub(super) fn frz_06_a_request_tells_the_state(kit: &Kit) -> Verdict {
    let frozen = notifying(kit)?;
    let second = frozen.remote.give(kit, &frozen.client, 2)?;
    frozen.client.expect_invalid("REQUEST_FREEZE of an unknown handle", |c| {
        c.request_freeze(Handle(4000), COOKIE);
    })?;
    subscribe(&frozen, "the state of a thawed process")?;
    for cookie in [COOKIE, OTHER] {
        frozen.client.expect_invalid("a second REQUEST_FREEZE of a handle", |c| {
            c.request_freeze(frozen.handle, cookie);
        })?;
    }
    frozen.freeze()?;
    frozen.client.write(|c| c.request_freeze(second, OTHER))?;
    expect_state(&frozen.client, "the state of a frozen process", OTHER, true)?;
    frozen.thaw()
}

pub(super) fn frz_07_where_the_drivers_differ(kit: &Kit) -> Verdict {
    let frozen = notifying(kit)?;
    let client = frozen.client.clone();
    let second = frozen.remote.give(kit, &client, 2)?;
    subscribe(&frozen, "the first state")?;
    acknowledge(&client, COOKIE)?;
    let same_cookie = |c: &mut Commands| c.request_freeze(second, COOKIE);
    if kit.is_rust() {
        client.expect_invalid("the cookie of another node", same_cookie)?;
    } else {
        client.write(same_cookie)?;
        expect_state(&client, "the first state of another node, by the same cookie", COOKIE, false)?;
        acknowledge(&client, COOKIE)?;
        client.write(|c| c.clear_freeze(second, COOKIE))?;
        client.expect_read("clearing it", "CLEAR_FREEZE_NOTIFICATION_DONE")?;
    }
    let repeated = |what: &str, state: bool| {
        if kit.is_rust() {
            return client.expect_silence(what);
        }
        expect_state(&client, what, COOKIE, state)?;
        acknowledge(&client, COOKIE)
    };
    frozen.freeze()?;
    expect_state(&client, "once frozen", COOKIE, true)?;
    acknowledge(&client, COOKIE)?;
    frozen.freeze()?;
    repeated("frozen once more", true)?;
    frozen.thaw()?;
    expect_state(&client, "once thawed", COOKIE, false)?;
    frozen.freeze()?;
    frozen.thaw()?;
    acknowledge(&client, COOKIE)?;
    repeated("frozen and thawed before the acknowledgement", false)?;
    client.write(|c| c.request_death(second, OTHER))?;
    drop(frozen.remote);
    client.expect_read("once the process is gone", "DEAD_BINDER")?;
    client.write(|c| c.request_freeze(second, OTHER))?;
    match kit.by_driver(true, false) {
        true => client.expect_silence("REQUEST_FREEZE of a dead node"),
        false => expect_state(&client, "REQUEST_FREEZE of a dead node", OTHER, false),
    }
}

pub(super) fn frz_08_one_state_at_a_time(kit: &Kit) -> Verdict {
    let frozen = notifying(kit)?;
    let client = &frozen.client;
    let nothing_pending = |what: &str| client.expect_invalid(what, |c| c.freeze_done(COOKIE));
    nothing_pending("FREEZE_NOTIFICATION_DONE of an unknown cookie")?;
    subscribe(&frozen, "the first state")?;
    frozen.freeze()?;
    client.expect_silence("frozen before the first state was acknowledged")?;
    acknowledge(client, COOKIE)?;
    expect_state(client, "after the acknowledgement", COOKIE, true)?;
    frozen.thaw()?;
    client.expect_silence("thawed before the second state was acknowledged")?;
    acknowledge(client, COOKIE)?;
    expect_state(client, "after that acknowledgement", COOKIE, false)?;
    acknowledge(client, COOKIE)?;
    client.expect_silence("all states acknowledged")?;
    nothing_pending("FREEZE_NOTIFICATION_DONE with nothing to acknowledge")?;
    frozen.freeze()?;
    expect_state(client, "frozen with nothing to acknowledge", COOKIE, true)?;
    frozen.thaw()
}

pub(super) fn frz_09_clearing(kit: &Kit) -> Verdict {
    let frozen = notifying(kit)?;
    let (client, handle) = (&frozen.client, frozen.handle);
    client.expect_invalid("CLEAR_FREEZE of an unknown handle", |c| c.clear_freeze(Handle(4000), COOKIE))?;
    client.expect_invalid("CLEAR_FREEZE of a handle without request", |c| c.clear_freeze(handle, COOKIE))?;
    subscribe(&frozen, "the first state")?;
    client.expect_invalid("CLEAR_FREEZE with another cookie", |c| c.clear_freeze(handle, OTHER))?;
    client.write(|c| c.clear_freeze(handle, COOKIE))?;
    client.expect_silence("cleared before the state was acknowledged")?;
    acknowledge(client, COOKIE)?;
    // On the process queue, so any thread may read it.
    let got = client.on(&Worker::new()?, |client| {
        client.version()?;
        client.enter_looper()?;
        client.expect_read("another thread, after the acknowledgement", "CLEAR_FREEZE_NOTIFICATION_DONE")
    })?;
    let cleared = Return::ClearFreezeNotificationDone(COOKIE);
    expect("its cookie", got.returns.contains(&cleared), true)?;
    frozen.freeze()?;
    client.expect_silence("frozen after clearing")?;
    frozen.thaw()?;
    subscribe(&frozen, "the first state of a new request")?;
    acknowledge(client, COOKIE)?;
    client.write(|c| c.clear_freeze(handle, COOKIE))?;
    expect_work("cleared with nothing to acknowledge", &client.read()?, "CLEAR_FREEZE_NOTIFICATION_DONE")
}

pub(super) fn frz_10_no_handle_no_notification(kit: &Kit) -> Verdict {
    let frozen = notifying(kit)?;
    let client = &frozen.client;
    // Before it was read, and while the next state waits for an acknowledgement.
    client.write(|c| {
        c.request_freeze(frozen.handle, COOKIE);
        c.release(frozen.handle);
    })?;
    client.expect_silence("a handle dropped before its first state was read")?;
    let again = frozen.remote.give(kit, client, 3)?;
    client.write(|c| c.request_freeze(again, OTHER))?;
    expect_state(client, "the first state of another handle", OTHER, false)?;
    frozen.freeze()?;
    client.write(|c| c.release(again))?;
    client.expect_silence("a handle dropped before its state was acknowledged")?;
    frozen.thaw()?;
    client.expect_silence("thawed after that")
}

pub(super) fn frz_12_two_requests_of_one_cookie(kit: &Kit) -> Verdict {
    let frozen = notifying(kit)?;
    let (client, handle) = (&frozen.client, frozen.handle);
    subscribe(&frozen, "the first state")?;
    client.write(|c| {
        c.clear_freeze(handle, COOKIE);
        c.request_freeze(handle, COOKIE);
        c.clear_freeze(handle, COOKIE);
    })?;
    client.expect_read("the second request, cleared before its state", "CLEAR_FREEZE_NOTIFICATION_DONE")?;
    client.expect_silence("the first request, its state not acknowledged")?;
    acknowledge(client, COOKIE)?;
    client.expect_read("the first request, its state acknowledged", "CLEAR_FREEZE_NOTIFICATION_DONE")?;
    client.expect_invalid("FREEZE_NOTIFICATION_DONE with both confirmed", |c| c.freeze_done(COOKIE))
}

pub(super) fn frz_13_a_failed_freeze_notifies_nobody(kit: &Kit) -> Verdict {
    let frozen = notifying(kit)?;
    // It does nothing else, so that a call under way holds none of its reads back.
    let holder = kit.server()?;
    let handle = frozen.remote.give(kit, &holder, 1)?;
    let worker = Worker::new()?;
    let signal = done("installing a signal handler", Interrupter::install_without_restart())?;
    frozen.occupy(kit)?;
    let wait = frozen.waiting(kit, &worker)?;
    holder.write(|c| c.request_freeze(handle, COOKIE))?;
    expect_state(&holder, "asked for while FREEZE waits", COOKIE, kit.by_driver(true, false))?;
    acknowledge(&holder, COOKIE)?;
    done("sending a signal", signal.interrupt(worker.thread))?;
    expect_errno("FREEZE after a signal", &wait.wait("FREEZE")?, "EINTR")?;
    holder.expect_silence("a FREEZE that failed")?;
    frozen.release(kit)?;
    frozen.freeze()?;
    expect_state(&holder, "a FREEZE that succeeded", COOKIE, true)?;
    acknowledge(&holder, COOKIE)?;
    frozen.queue_oneway(kit, true)?;
    expect("FREEZE of a frozen process with a call queued", frozen.try_freeze().as_str(), "EAGAIN")?;
    holder.expect_silence("a FREEZE that failed and thawed")?;
    frozen.read_oneway()?;
    frozen.thaw()?;
    expect_state(&holder, "a thaw", COOKIE, false)
}

pub(super) fn frz_14_asked_again_before_the_answer(kit: &Kit) -> Verdict {
    let frozen = notifying(kit)?;
    let (client, handle) = (&frozen.client, frozen.handle);
    // Cleared and asked again while the state was not read, and while it was not acknowledged.
    for is_read in [false, true] {
        let what = if is_read { "after the first state was read" } else { "before the first state was read" };
        client.write(|c| c.request_freeze(handle, COOKIE))?;
        if is_read {
            expect_state(client, what, COOKIE, false)?;
        }
        client.write(|c| {
            c.clear_freeze(handle, COOKIE);
            c.request_freeze(handle, COOKIE);
        })?;
        if is_read {
            acknowledge(client, COOKIE)?;
        }
        // Each comes once, in an order that is the driver's, in one read or two.
        let both = client
            .read_on(client.read()?, |got| got.work().contains(' '))
            .map_err(|stop| stop.during(what))?;
        let work = both.work();
        let mut came: Vec<&str> = work.split(' ').collect();
        came.sort_unstable();
        let want = vec!["CLEAR_FREEZE_NOTIFICATION_DONE", "FROZEN_BINDER"];
        expect(&format!("cleared and asked again {what}"), came, want)?;
        client.expect_silence("both read")?;
        acknowledge(client, COOKIE)?;
        client.expect_invalid("FREEZE_NOTIFICATION_DONE with nothing to acknowledge", |c| {
            c.freeze_done(COOKIE)
        })?;
        client.write(|c| c.clear_freeze(handle, COOKIE))?;
        client.expect_read("clearing the second request", "CLEAR_FREEZE_NOTIFICATION_DONE")?;
    }
    Ok(())
}
