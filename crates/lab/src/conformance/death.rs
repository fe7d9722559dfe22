//! Room: contract section 10: hearing of a node's death (DTH).
//! Not here: calls whose other side dies (`sync::death`).

use abi::codes::object;
use abi::{Cookie, Handle, Payload, Return, TransactionFlags};

use super::item::{Stop, Verdict, done, ensure, expect, items};
use super::kit::Kit;
use super::party::{Got, Node, Party, expect_work};
use super::worker::Worker;

items! {
    "DTH-01" Both [seen free] dth_01_any_count_will_do "any count on a handle will do, a handle that does not exist is ignored";
    "DTH-02" Both [] dth_02_one_registration_a_handle "a handle has one registration, which fires at once if the node is dead";
    "DTH-03" Both [seen] dth_03_it_is_the_process_that_dies "it fires when the owner's process is released, with the cookie only";
    "DTH-04" Both [] dth_04_any_idle_looper_one_a_read "it comes to any idle looper, one a read";
    "DTH-05" Both [seen] dth_05_done_then_clear "it is acknowledged before a CLEAR is answered";
    "DTH-06" Both [] dth_06_taking_it_back "CLEAR on a live target is answered to the thread if it is a looper, else to any";
    "DTH-07" Both [] dth_07_the_last_count_takes_it_back "giving the last count back cancels the registration";
    "DTH-08" Both [] dth_08_it_stays_until_cleared "the registration and the dead handle stay until they are given back";
}

/// A cookie that no node has.
const COOKIE: Cookie = Cookie(0x0d1e_0000_0000_0001);
const OTHER: Cookie = Cookie(0x0d1e_0000_0000_0002);

/// A server with one node, and a client that serves too, with a handle to the node.
struct Mortal {
    server: Party,
    client: Party,
    handle: Handle,
}

impl Mortal {
    fn new(kit: &Kit) -> Result<Self, Stop> {
        let (server, client) = (kit.server()?, kit.server()?);
        let handle = kit.hand_over(&server, &client, NODE)?;
        Ok(Self { server, client, handle })
    }

    /// Ends the server; returns once every notification of it was sent.
    fn die(self, kit: &Kit) -> Result<(Party, Handle), Stop> {
        // Nodes die in the order of their ptrs (contract EXT-05), so this one is the last.
        let watch = kit.watch(&self.server, Node::number(99))?;
        drop(self.server);
        watch.wait_for_death()?;
        Ok((self.client, self.handle))
    }
}

const NODE: Node = Node::number(1);

/// Fails unless these returns are one notification with this cookie.
fn expect_death(what: &str, got: &Got, cookie: Cookie) -> Verdict {
    expect_work(what, got, "DEAD_BINDER")?;
    ensure(got.returns.contains(&Return::DeadBinder(cookie)), || {
        format!("{what}: expected the cookie {cookie:?}, got {:?}", got.returns)
    })
}

/// Fails unless these returns are one answer to a CLEAR with this cookie.
fn expect_cleared(what: &str, got: &Got, cookie: Cookie) -> Verdict {
    expect_work(what, got, "CLEAR_DEATH_NOTIFICATION_DONE")?;
    ensure(got.returns.contains(&Return::ClearDeathNotificationDone(cookie)), || {
        format!("{what}: expected the cookie {cookie:?}, got {:?}", got.returns)
    })
}

fn dth_01_any_count_will_do(kit: &Kit) -> Verdict {
    let zero = Handle::CONTEXT_MANAGER;
    let manager = kit.serving_helper(kit.helper("manager", &["1"]))?;
    let (bare, client) = (kit.server()?, kit.server()?);
    let (strong_owner, weak_owner) = (kit.server()?, kit.server()?);
    let strong = kit.hand_over(&strong_owner, &client, Node::number(1))?;
    kit.write_leave(&weak_owner, object::WEAK_BINDER, Node::number(2), 2)?;
    let weak = kit.fetch(&client, 2)?;
    client.write(|c| {
        c.request_death(Handle(4000), Cookie(4000));
        c.request_death(strong, Cookie(1));
        c.request_death(weak, Cookie(2));
    })?;
    drop(strong_owner);
    expect_death("with a strong count", &client.read()?, Cookie(1))?;
    drop(weak_owner);
    expect_death("with a weak count", &client.read()?, Cookie(2))?;
    bare.write(|c| c.request_death(zero, Cookie(3)))?;
    client.write(|c| {
        c.increfs(zero);
        c.request_death(zero, Cookie(4));
    })?;
    drop(manager);
    expect_death("with a count on handle 0", &client.read()?, Cookie(4))?;
    client.expect_silence("of a handle that does not exist")?;
    bare.expect_silence("without a count on handle 0")
}

fn dth_02_one_registration_a_handle(kit: &Kit) -> Verdict {
    let mortal = Mortal::new(kit)?;
    mortal.client.write(|c| {
        c.request_death(mortal.handle, COOKIE);
        c.request_death(mortal.handle, OTHER);
    })?;
    let (client, _) = mortal.die(kit)?;
    expect_death("of two registrations", &client.read()?, COOKIE)?;
    client.write(|c| c.dead_binder_done(COOKIE))?;
    client.expect_silence("after the first registration's notification")?;
    let (client, handle) = Mortal::new(kit)?.die(kit)?;
    client.write(|c| c.request_death(handle, OTHER))?;
    expect_death("asking when the node is dead", &client.read()?, OTHER)
}

fn dth_03_it_is_the_process_that_dies(kit: &Kit) -> Verdict {
    let Mortal { server, client, handle } = Mortal::new(kit)?;
    client.write(|c| c.request_death(handle, COOKIE))?;
    done("THREAD_EXIT", server.conn.thread_exit())?;
    client.expect_silence("after the owner's only thread left")?;
    drop(server);
    expect_death("after the owner closed", &client.read()?, COOKIE)
}

fn dth_04_any_idle_looper_one_a_read(kit: &Kit) -> Verdict {
    let (server, client) = (kit.server()?, kit.server()?);
    for n in 1..=3 {
        let handle = kit.hand_over(&server, &client, Node::number(n))?;
        client.write(|c| c.request_death(handle, Cookie(n)))?;
    }
    let watch = kit.watch(&server, Node::number(99))?;
    drop(server);
    watch.wait_for_death()?;
    let (worker, party) = (Worker::new()?, client.clone());
    let elsewhere = worker.run(move || {
        party.enter_looper()?;
        party.read()
    })??;
    let reads = [client.read()?, elsewhere, client.read()?];
    let mut cookies = Vec::new();
    for got in &reads {
        expect_work("one read", got, "DEAD_BINDER")?;
        cookies.extend(got.returns.iter().filter_map(|item| match item {
            Return::DeadBinder(cookie) => Some(cookie.0),
            _ => None,
        }));
    }
    cookies.sort_unstable();
    expect("the cookies of all reads", cookies, vec![1, 2, 3])?;
    client.expect_silence("after all three")
}

fn dth_05_done_then_clear(kit: &Kit) -> Verdict {
    let dead = || {
        let mortal = Mortal::new(kit)?;
        mortal.client.write(|c| c.request_death(mortal.handle, COOKIE))?;
        mortal.die(kit)
    };
    let (client, handle) = dead()?;
    expect_death("the notification", &client.read()?, COOKIE)?;
    client.write(|c| c.dead_binder_done(OTHER))?;
    client.expect_silence("after acknowledging what never came")?;
    client.write(|c| {
        c.dead_binder_done(COOKIE);
        c.clear_death(handle, COOKIE);
    })?;
    expect_cleared("CLEAR after the acknowledgement", &client.read()?, COOKIE)?;
    let (client, handle) = dead()?;
    expect_death("the notification", &client.read()?, COOKIE)?;
    client.write(|c| c.clear_death(handle, COOKIE))?;
    client.expect_silence("CLEAR while the acknowledgement is owed")?;
    client.write(|c| c.dead_binder_done(COOKIE))?;
    expect_cleared("once it is acknowledged", &client.read()?, COOKIE)?;
    let (client, handle) = dead()?;
    client.write(|c| c.clear_death(handle, COOKIE))?;
    expect_death("CLEAR after the death, before it is read", &client.read()?, COOKIE)?;
    client.expect_silence("while the acknowledgement is owed")?;
    client.write(|c| c.dead_binder_done(COOKIE))?;
    expect_cleared("once it is acknowledged", &client.read()?, COOKIE)?;
    client.expect_silence("after the end of the registration")
}

fn dth_06_taking_it_back(kit: &Kit) -> Verdict {
    let mortal = Mortal::new(kit)?;
    let (client, handle) = (&mortal.client, mortal.handle);
    let (worker, party) = (Worker::new()?, client.clone());
    client.write(|c| {
        c.clear_death(handle, COOKIE);
        c.clear_death(Handle(4000), COOKIE);
        c.request_death(handle, COOKIE);
        c.clear_death(handle, OTHER);
    })?;
    client.expect_silence("after CLEARs of no registration")?;
    worker.run(move || party.enter_looper())??;
    client.write(|c| c.clear_death(handle, COOKIE))?;
    let party = client.clone();
    worker.run(move || party.expect_silence("another looper, after a looper's CLEAR"))??;
    expect_cleared("the looper that asked", &client.read()?, COOKIE)?;
    // A thread that is no looper: its answer is for any that is.
    let (stranger, party) = (Worker::new()?, client.clone());
    stranger.run(move || {
        party.write(|c| {
            c.request_death(handle, OTHER);
            c.clear_death(handle, OTHER);
        })
    })??;
    let party = client.clone();
    expect_cleared("a looper that did not ask", &worker.run(move || party.read())??, OTHER)?;
    let (client, _) = mortal.die(kit)?;
    client.expect_silence("of a registration taken back")
}

fn dth_07_the_last_count_takes_it_back(kit: &Kit) -> Verdict {
    let mortal = Mortal::new(kit)?;
    let handle = mortal.handle;
    mortal.client.write(|c| {
        c.request_death(handle, COOKIE);
        c.release(handle);
    })?;
    let (client, _) = mortal.die(kit)?;
    client.expect_silence("of a handle that was given back")?;
    // Counts that remain, of either kind, keep it.
    let mortal = Mortal::new(kit)?;
    let handle = mortal.handle;
    mortal.client.write(|c| {
        c.request_death(handle, COOKIE);
        c.increfs(handle);
        c.release(handle);
    })?;
    let (client, _) = mortal.die(kit)?;
    expect_death("with a weak count left", &client.read()?, COOKIE)
}

fn dth_08_it_stays_until_cleared(kit: &Kit) -> Verdict {
    let mortal = Mortal::new(kit)?;
    mortal.client.write(|c| c.request_death(mortal.handle, COOKIE))?;
    let (client, handle) = mortal.die(kit)?;
    expect_death("the notification", &client.read()?, COOKIE)?;
    client.write(|c| {
        c.dead_binder_done(COOKIE);
        c.request_death(handle, OTHER);
    })?;
    client.expect_silence("a second registration while the first stands")?;
    let got = client.call(handle, 1, TransactionFlags::CALL, Payload::default())?;
    expect_work("calling the dead handle", &got, "DEAD_REPLY")?;
    client.write(|c| c.clear_death(handle, COOKIE))?;
    expect_cleared("CLEAR", &client.read()?, COOKIE)?;
    client.write(|c| c.request_death(handle, OTHER))?;
    expect_death("a registration after it", &client.read()?, OTHER)?;
    let live = kit.server()?;
    let next = kit.hand_over(&live, &client, Node::number(2))?;
    ensure(next != handle, || format!("the dead handle {handle} was given to another node"))
}
