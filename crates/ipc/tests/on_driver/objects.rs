//! Lifetimes of objects in both directions, and death notifications.

use std::sync::Arc;
use std::sync::atomic::{AtomicI32, Ordering};
use std::sync::mpsc::channel;

use needs::need;

use ipc::binder::manager::Services;
use ipc::{Refusal, Release};

use crate::peer::{PATIENCE, bench, eventually, served};
use crate::toolbox::{Counted, DESCRIPTOR, DROP_ALL, KEEP, LIVING, MAKE, PING_KEPT, plain};

/// REF-08, REF-12: our object lives exactly as long as the other process holds it.
#[test]
fn ref_08_our_node_lives_while_they_hold_it() {
    let (_bench, _peer, process, toolbox) = need!(served(4));
    let living = Arc::new(AtomicI32::new(0));
    for _ in 0..3 {
        let object = process.publish(Counted::new(&living));
        let node = object.node().expect("ours").clone();
        for _ in 0..2 {
            let mut request = toolbox.request(DESCRIPTOR);
            request.write_binder(&object);
            toolbox.call(KEEP, request).expect("keep");
        }
        assert_eq!(process.remote_references(&node), (1, 1), "one report, however many holds");
        drop((object, node));
        assert_eq!(living.load(Ordering::SeqCst), 1, "held by them");
        plain(&toolbox, PING_KEPT).expect("they can call it");
        plain(&toolbox, DROP_ALL).expect("drop");
        eventually("our object freed", || living.load(Ordering::SeqCst) == 0);
    }
}

/// OBJ-03, OBJ-06: a weak object, ours or theirs, comes to them as a weak one, which is none to call.
#[test]
fn obj_03_a_weak_object_is_none_to_call() {
    let (_bench, _peer, process, toolbox) = need!(served(4));
    let living = Arc::new(AtomicI32::new(0));
    let ours = process.publish(Counted::new(&living));
    let theirs = plain(&toolbox, MAKE).expect("make").reader().read_binder().expect("an object");
    for object in [&ours, &theirs] {
        let mut request = toolbox.request(DESCRIPTOR);
        request.write_weak_binder(object);
        let refused = toolbox.call(KEEP, request).expect_err("weak").to_string();
        assert!(refused.contains("BAD_TYPE"), "{refused}");
    }
    drop(ours);
    eventually("our object freed", || living.load(Ordering::SeqCst) == 0);
}

/// BUF-06: what they make lives exactly as long as we hold it, through many rounds of one handle.
#[test]
fn buf_06_their_node_lives_while_we_hold_it() {
    let (_bench, _peer, _process, toolbox) = need!(served(4));
    let living = || plain(&toolbox, LIVING).expect("living").reader().read_i32().expect("a number");
    for _ in 0..5 {
        let made = plain(&toolbox, MAKE).expect("make").reader().read_binder().expect("an object");
        assert_eq!(living(), 1);
        made.ping().expect("ping");
        let again = made.clone();
        drop(made);
        again.ping().expect("a clone holds as well");
        drop(again);
        eventually("their object freed", || living() == 0);
    }
    // Never read: the buffer alone held it.
    drop(plain(&toolbox, MAKE).expect("make"));
    eventually("an unread object freed", || living() == 0);
}

/// REF-02: threads that receive and drop one handle at the same time do not disturb each other.
#[test]
fn ref_02_last_drop_and_new_receipt_race() {
    let (_bench, _peer, process, toolbox) = need!(served(4));
    let living = Arc::new(AtomicI32::new(0));
    let object = process.publish(Counted::new(&living));
    std::thread::scope(|scope| {
        for _ in 0..4 {
            scope.spawn(|| {
                let services = Services::of(&process).expect("a manager");
                for _ in 0..50 {
                    // The same node of theirs, a proxy that comes and goes.
                    let found = services.get(crate::toolbox::NAME).expect("get");
                    found.ping().expect("the handle is good");
                    let mut request = found.request(DESCRIPTOR);
                    request.write_binder(&object);
                    found.call(KEEP, request).expect("keep");
                }
            });
        }
    });
    plain(&toolbox, DROP_ALL).expect("drop");
    drop(object);
    eventually("our object freed", || living.load(Ordering::SeqCst) == 0);
}

/// BUF-06: the hold of a new proxy is the driver's before anyone can let it go: dropped at once by
/// another thread, it does not take the buffer's own hold with it.
#[test]
fn buf_06_a_new_proxy_dropped_elsewhere_leaves_the_buffer_its_hold() {
    let (_bench, _peer, _process, toolbox) = need!(served(4));
    let living = || plain(&toolbox, LIVING).expect("living").reader().read_i32().expect("a number");
    let reply = plain(&toolbox, MAKE).expect("make");
    for _ in 0..3 {
        let made = reply.reader().read_binder().expect("an object");
        std::thread::scope(|scope| {
            scope.spawn(move || drop(made));
        });
        reply.reader().read_binder().expect("still an object").ping().expect("still alive");
    }
    drop(reply);
    eventually("their object freed", || living() == 0);
}

/// An object that comes home is the object itself, not a proxy.
#[test]
fn obj_06_an_object_comes_home_as_itself() {
    let (_bench, _peer, process, toolbox) = need!(served(4));
    let services = Services::of(&process).expect("a manager");
    let living = Arc::new(AtomicI32::new(0));
    let object = process.publish(Counted::new(&living));
    services.add("home", &object).expect("add");
    let found = services.get("home").expect("get");
    assert_eq!(found, object);
    assert_eq!(services.get(crate::toolbox::NAME).expect("get"), toolbox, "one proxy for one handle");
}

/// DTH-01..DTH-05: each link hears once; a link taken back does not.
#[test]
fn dth_03_death_is_told_once_to_each_link() {
    let bench = need!(bench());
    let mut manager = bench.peer("manager", Release::default(), 4);
    let mut service = bench.peer("service", Release::default(), 4);
    let process = bench.process(Release::default(), 4);
    let services = Services::wait(&process, PATIENCE).expect("a manager");
    let second = services.get("second").expect("get");
    let proxy = second.proxy().expect("theirs");

    let (tell, told) = channel();
    let link = |name: &'static str| {
        let tell = tell.clone();
        proxy.link_to_death(move || tell.send(name).expect("the test listens")).expect("link")
    };
    let (_first, taken_back, _third) = (link("first"), link("taken back"), link("third"));
    drop(taken_back);
    // A registration that was cleared and made again still works.
    drop(link("alone"));
    service.kill();
    let mut heard =
        [told.recv_timeout(PATIENCE), told.recv_timeout(PATIENCE)].map(|name| name.expect("told"));
    heard.sort_unstable();
    assert_eq!(heard, ["first", "third"]);
    assert!(proxy.is_known_dead());
    let error = proxy.link_to_death(|| ()).expect_err("dead already");
    assert_eq!(error.refusal(), Some(Refusal::Dead));
    assert!(second.ping().expect_err("dead").is_dead());

    // The manager's own handle can be watched as well.
    let (tell, told) = channel();
    let watched = services.manager().proxy().expect("handle 0").clone();
    let _link = watched.link_to_death(move || tell.send(()).expect("the test listens")).expect("link");
    manager.kill();
    told.recv_timeout(PATIENCE).expect("told of the manager's death");
    assert!(told.try_recv().is_err(), "told once");
}

/// A registration that is taken back before the death is not told of it.
#[test]
fn dth_06_links_taken_back_hear_nothing() {
    let (_bench, mut peer, _process, toolbox) = need!(served(4));
    let proxy = toolbox.proxy().expect("theirs");
    let (tell, told) = channel();
    for _ in 0..3 {
        let tell = tell.clone();
        drop(proxy.link_to_death(move || tell.send("dropped").expect("the test listens")).expect("link"));
    }
    let end = tell.clone();
    let _link = proxy.link_to_death(move || end.send("kept").expect("the test listens")).expect("link");
    peer.kill();
    assert_eq!(told.recv_timeout(PATIENCE), Ok("kept"));
    assert!(told.try_recv().is_err());
}
