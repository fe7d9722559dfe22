//! The service manager of the flavour hwbinder.

use std::sync::mpsc::channel;
use std::time::Duration;

use needs::need;

use ipc::hwbinder::manager::{INTERFACES, Method, Services, Transport};
use ipc::hwbinder::{CallError, HwParcel, Incoming, Object, Status, base};
use ipc::{Process, ProcessOptions};

use crate::hwtoolbox::{HwToolbox, V1_0, V1_1, hw_managed};
use crate::peer::{PATIENCE, eventually};

/// An object is found under every interface of its chain, whichever way it was added.
#[test]
fn an_object_is_registered_under_its_whole_chain() {
    let (_bench, _peer, process, services) = need!(hw_managed());
    let object = HwToolbox::publish(&process);
    services.add("plain", &object).expect("add");
    services.add_with_chain("chain", &object).expect("addWithChain");
    for interface in [V1_1, V1_0, base::DESCRIPTOR] {
        for instance in ["plain", "chain"] {
            assert_eq!(services.get(interface, instance).expect("get"), Some(object.clone()), "{interface}");
        }
        assert_eq!(services.instances(interface).expect("instances"), ["chain", "default", "plain"]);
    }
    let list = services.list().expect("list");
    let want = [base::DESCRIPTOR, V1_0, V1_1]
        .map(|interface| ["chain", "default", "plain"].map(|instance| format!("{interface}/{instance}")));
    assert_eq!(list, want.concat());
    assert_eq!(services.get(V1_1, "absent").expect("get"), None);
    assert_eq!(services.get("example@1.0::IOther", "default").expect("get"), None);
    let theirs = services.get(V1_0, "default").expect("get").expect("registered");
    assert_eq!(theirs.descriptor().expect("descriptor"), V1_1);
    // An instance may be called almost anything; cameras are called "legacy/0".
    for instance in ["legacy/0", "external/1/a", "a b", "ä"] {
        services.add(instance, &object).unwrap_or_else(|error| panic!("{instance}: {error}"));
        assert_eq!(services.get(V1_0, instance).expect("get"), Some(object.clone()), "{instance}");
        assert!(services.instances(V1_0).expect("instances").contains(&instance.to_owned()), "{instance}");
        assert!(services.list().expect("list").contains(&format!("{V1_0}/{instance}")), "{instance}");
    }
    let error = services.add("", &object).expect_err("no name");
    assert!(matches!(error, CallError::Status(Status::Exception(_))), "{error}");
}

/// TX-06: the manager's question while `add` waits is answered on the waiting thread: the process has
/// no other that serves.
#[test]
fn add_is_asked_back_on_the_thread_that_waits() {
    let (bench, _peer, _process, _services) = need!(hw_managed());
    let process = Process::open(bench.context(), ProcessOptions::hwbinder()).expect("open");
    let services = Services::of(&process).expect("a manager");
    let object = HwToolbox::publish(&process);
    services.add("alone", &object).expect("add");
    assert_eq!(process.pool_threads(), 0);
    assert_eq!(services.get(V1_0, "alone").expect("get"), Some(object));
}

/// What is there is told first, as preexisting; what comes later as it comes; then nothing.
#[test]
fn registrations_are_told() {
    let (_bench, _peer, process, services) = need!(hw_managed());
    let watch = |instance: &str| {
        let (tell, told) = channel();
        let callback = services.on_registration(V1_0, instance, move |interface, instance, preexisting| {
            let heard = (interface.to_owned(), instance.to_owned(), preexisting);
            // The last ones may come when the test is over.
            let _ = tell.send(heard);
        });
        (callback.expect("registered"), told)
    };
    let (any, told_any) = watch("");
    let (one, told_one) = watch("late");
    let heard = |instance: &str, preexisting| Ok((V1_0.to_owned(), instance.to_owned(), preexisting));
    assert_eq!(told_any.recv_timeout(PATIENCE), heard("default", true));
    let object = HwToolbox::publish(&process);
    services.add("late", &object).expect("add");
    assert_eq!(told_any.recv_timeout(PATIENCE), heard("late", false));
    assert_eq!(told_one.recv_timeout(PATIENCE), heard("late", false));
    assert!(services.unregister_for_notifications(V1_0, "", &any).expect("unregister"));
    assert!(!services.unregister_for_notifications(V1_0, "", &any).expect("unregister"), "no more");
    assert!(!services.unregister_for_notifications(V1_1, "late", &one).expect("unregister"), "another");
    services.add("late", &object).expect("add");
    assert_eq!(told_one.recv_timeout(PATIENCE), heard("late", false));
    assert!(told_any.try_recv().is_err(), "told after all");
}

/// The smaller calls of each version of the interface, and the casts to them.
#[test]
fn every_version_of_the_manager_answers() {
    let (_bench, peer, process, services) = need!(hw_managed());
    for interface in INTERFACES.into_iter().chain([base::DESCRIPTOR]) {
        assert!(services.manager().is_a(interface).expect("chain"), "{interface}");
    }
    for (instance, want) in
        [("default", Transport::Hwbinder), ("declared", Transport::Hwbinder), ("other", Transport::Empty)]
    {
        assert_eq!(services.transport(V1_0, instance).expect("transport"), want, "{instance}");
    }
    assert_eq!(services.declared_instances(V1_0).expect("declared"), ["declared"]);
    assert!(services.declared_instances(V1_1).expect("declared").is_empty());

    let object = HwToolbox::publish(&process);
    services.add("mine", &object).expect("add");
    let own_pid = i32::try_from(std::process::id()).expect("a pid");
    let dump = services.debug_dump().expect("dump");
    let pid_of = |instance: &str| {
        let found = dump.iter().find(|info| info.interface == V1_1 && info.instance == instance);
        found.map(|info| info.pid)
    };
    assert_eq!((pid_of("mine"), pid_of("default")), (Some(own_pid), Some(peer.pid())));

    let theirs = services.get(V1_0, "default").expect("get").expect("registered");
    assert!(!services.try_unregister(V1_0, "default", &theirs).expect("answer"), "not ours");
    assert!(!services.register_client_callback(V1_0, "default", &theirs, &object).expect("answer"));
    assert!(services.register_client_callback(V1_0, "mine", &object, &object).expect("answer"));
    assert!(services.unregister_client_callback(Some(&object), &object).expect("answer"));
    assert!(!services.unregister_client_callback(Some(&object), &object).expect("answer"), "once");
    assert!(services.try_unregister(V1_0, "mine", &object).expect("answer"));
    assert_eq!(services.get(V1_1, "mine").expect("get"), None, "from each of its interfaces");
    let unknown = services.manager().call(15, services.manager().request(INTERFACES[0]));
    let Err(CallError::Status(status)) = unknown else { panic!("code 15 is known") };
    assert_eq!(status, Status::UNKNOWN_TRANSACTION);
}

/// A client callback is there once however often it was registered, and can be taken off a service,
/// or all; null is no callback.
#[test]
fn client_callbacks_are_taken_back() {
    let (_bench, _peer, process, services) = need!(hw_managed());
    let object = || HwToolbox::publish(&process);
    let (first, second, callback) = (object(), object(), object());
    for (instance, service) in [("first", &first), ("second", &second), ("first", &first)] {
        services.add(instance, service).expect("add");
        let noted = services.register_client_callback(V1_0, instance, service, &callback);
        assert!(noted.expect("answer"), "{instance}");
    }
    let unregister = |service| services.unregister_client_callback(service, &callback).expect("answer");
    assert!(unregister(Some(&first)));
    assert!(!unregister(Some(&first)), "it was there once");
    assert!(unregister(None), "the other one's");
    assert!(!unregister(Some(&second)) && !unregister(None));
    let mut request = services.manager().request(Method::UnregisterClientCallback.interface());
    request.write_nullable_binder(None);
    request.write_nullable_binder(None);
    let reply = services.manager().call(Method::UnregisterClientCallback.code(), request).expect("answer");
    assert_eq!(reply.reader().read_bool(), Ok(false));
}

/// An object of the parent's interface replaces what was there under the child's interface, too.
#[test]
fn a_new_object_replaces_all_of_the_old_one() {
    let (_bench, _peer, process, services) = need!(hw_managed());
    let newer = HwToolbox::publish(&process);
    let older = process.publish_hidl(Older);
    services.add("slot", &newer).expect("add");
    services.add("other", &newer).expect("add");
    services.add("slot", &older).expect("replace");
    assert_eq!(services.get(V1_0, "slot").expect("get"), Some(older));
    assert_eq!(services.get(V1_1, "slot").expect("get"), None, "the old object's other interface");
    assert_eq!(services.get(V1_1, "other").expect("get"), Some(newer), "another instance");
}

/// An object of [`V1_0`] alone.
struct Older;

impl Object for Older {
    fn interfaces(&self) -> &[&str] {
        &[V1_0]
    }

    fn on_transact<'t>(&self, _: &mut Incoming<'t>, _: &mut HwParcel<'t>) -> Result<(), Status> {
        Err(Status::UNKNOWN_TRANSACTION)
    }
}

/// A service whose process dies is forgotten under every name; what took its place is not.
#[test]
fn death_removes_instances() {
    let (bench, _peer, process, services) = need!(hw_managed());
    let object = HwToolbox::publish(&process);
    let mut service = bench.peer("hwservice", ipc::Release::default(), 1);
    services.wait_for(V1_1, "second", PATIENCE).expect("registered").ping().expect("ping");
    service.kill();
    for interface in [V1_1, V1_0, base::DESCRIPTOR] {
        let gone = || services.get(interface, "second").expect("get").is_none();
        eventually("the dead service forgotten", gone);
    }
    let mut service = bench.peer("hwservice", ipc::Release::default(), 1);
    services.wait_for(V1_1, "second", PATIENCE).expect("registered");
    services.add("second", &object).expect("replace");
    service.kill();
    std::thread::sleep(Duration::from_millis(100));
    assert_eq!(services.get(V1_1, "second").expect("get"), Some(object));
}

/// Waiting ends, and says what for.
#[test]
fn a_service_that_nobody_serves_is_named() {
    let (_bench, mut peer, _process, services) = need!(hw_managed());
    let patience = Duration::from_millis(30);
    let error = services.wait_for(V1_0, "absent", patience).expect_err("nobody serves it");
    assert!(matches!(error, CallError::NoService { waited, .. } if waited == patience));
    assert!(error.to_string().contains("example@1.0::IToolbox/absent"), "{error}");
    peer.kill();
    eventually("the manager's death seen", || services.manager().ping().is_err());
    let error = services.wait_for(V1_0, "absent", patience).expect_err("nobody to ask");
    assert!(error.is_dead(), "{error}");
}
