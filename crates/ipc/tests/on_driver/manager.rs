//! The service manager, in the dialect of every Android release.

use std::sync::mpsc::channel;

use needs::need;

use ipc::Release;
use ipc::binder::manager::{DESCRIPTOR, Method, Services};
use ipc::binder::{CallError, Status};

use crate::peer::{PATIENCE, bench, eventually, served};
use crate::toolbox::{self, Toolbox};

/// add, get, check, list and the absence of a name.
#[test]
fn every_release_registers_and_finds() {
    let bench = need!(bench());
    for release in Release::ALL {
        let mut peer = bench.peer("manager", release, 2);
        let process = bench.process(release, 2);
        let services = Services::wait(&process, PATIENCE).expect("a manager");
        let object = process.publish(Toolbox::new(process.clone()));
        services.add("b.second", &object).unwrap_or_else(|error| panic!("{release}: add: {error}"));
        services.add("a.first", &object).unwrap_or_else(|error| panic!("{release}: add: {error}"));
        let list = services.list().unwrap_or_else(|error| panic!("{release}: list: {error}"));
        assert_eq!(list, ["a.first", "b.second", toolbox::NAME], "{release}");
        assert_eq!(services.check("a.first").expect("check"), Some(object.clone()), "{release}");
        assert_eq!(services.check("absent").expect("check"), None, "{release}");
        services.get(toolbox::NAME).expect("get").ping().unwrap_or_else(|error| panic!("{release}: {error}"));
        for lookup in [Method::GetService, Method::GetService2, Method::CheckService, Method::CheckService2] {
            if lookup.code(release).is_some() {
                let found = services.look_up(lookup, "b.second");
                assert_eq!(found.expect("found"), Some(object.clone()), "{release}: {lookup:?}");
                assert_eq!(services.look_up(lookup, "absent").expect("none"), None, "{release}: {lookup:?}");
            }
        }
        services.add("not a name", &object).expect_err("refused");
        peer.kill();
    }
}

/// Notifications: the present service at once, each later one, none after taking it back.
#[test]
fn every_release_since_11_notifies() {
    let bench = need!(bench());
    for release in Release::ALL.into_iter().filter(|release| *release >= Release::Android11) {
        let mut peer = bench.peer("manager", release, 2);
        let process = bench.process(release, 2);
        let services = Services::wait(&process, PATIENCE).expect("a manager");
        let (tell, told) = channel();
        let callback = services
            .on_registration("watched", move |name, binder| {
                tell.send((name.to_owned(), binder)).expect("the test listens");
            })
            .unwrap_or_else(|error| panic!("{release}: {error}"));
        for _ in 0..2 {
            let object = process.publish(Toolbox::new(process.clone()));
            services.add("watched", &object).expect("add");
            let (name, heard) = told.recv_timeout(PATIENCE).expect("told");
            assert_eq!((name.as_str(), heard), ("watched", object), "{release}");
        }
        services.unregister_for_notifications("watched", &callback).expect("unregister");
        services.unregister_for_notifications("watched", &callback).expect_err("not registered any more");
        services.add("watched", &process.publish(Toolbox::new(process.clone()))).expect("add");
        assert!(told.try_recv().is_err(), "{release}: told after all");
        peer.kill();
    }
}

/// What the newer releases added.
#[test]
fn the_smaller_calls() {
    let (_bench, _peer, process, _toolbox) = need!(served(2));
    let services = Services::of(&process).expect("a manager");
    assert!(services.is_declared("example.IDeclared/default").expect("declared"));
    assert!(!services.is_declared("example.IDeclared/other").expect("declared"));
    assert_eq!(services.declared_instances("example.IDeclared").expect("instances"), ["default"]);
    let nothing =
        [(Method::UpdatableViaApex, -1), (Method::GetUpdatableNames, 0), (Method::GetConnectionInfo, 0)];
    for (method, want) in nothing {
        let mut request = services.manager().request(DESCRIPTOR);
        request.write_str(toolbox::NAME);
        let code = method.code(Release::default()).expect("the newest has all");
        let reply = services.manager().call(code, request).expect("answer");
        assert_eq!((reply.reader().read_i32(), reply.reader().remaining()), (Ok(want), 4), "{method:?}");
    }
    assert_eq!(services.manager().descriptor().expect("descriptor"), DESCRIPTOR);
    let unknown = services.manager().call(99, services.manager().request(DESCRIPTOR));
    let Err(CallError::Status(status)) = unknown else { panic!("code 99 is known") };
    assert_eq!(status, Status::UNKNOWN_TRANSACTION);

    let object = process.publish(Toolbox::new(process.clone()));
    services.add("mine", &object).expect("add");
    let pid = i32::try_from(std::process::id()).expect("a pid");
    let info = services.debug_info().expect("debug info");
    assert!(info.iter().any(|info| info.name == "mine" && info.pid == pid), "{info:?}");
    services.register_client_callback("mine", &object, &object).expect("accepted");
    let theirs = services.get(toolbox::NAME).expect("get");
    services.try_unregister(toolbox::NAME, &theirs).expect_err("not ours");
    services.try_unregister("mine", &object).expect("ours");
    assert_eq!(services.check("mine").expect("check"), None);
}

/// A service whose process dies is forgotten; what replaced it before is not.
#[test]
fn death_removes_a_service() {
    let (bench, _peer, process, toolbox) = need!(served(2));
    let services = Services::of(&process).expect("a manager");
    for replaced in [false, true] {
        let mut service = bench.peer("service", Release::default(), 2);
        services.get("second").expect("registered");
        if replaced {
            services.add("second", &toolbox).expect("replace");
        }
        service.kill();
        if replaced {
            std::thread::sleep(std::time::Duration::from_millis(100));
            assert_eq!(services.check("second").expect("check"), Some(toolbox.clone()));
        } else {
            eventually("the dead service forgotten", || services.check("second").expect("check").is_none());
        }
    }
}
