//! `binderperf services`, and what a manager does with callers of another dialect.
//! Not here: the managers' answers (`crates/ipc`).

use std::io::{BufRead, BufReader};
use std::sync::mpsc::{Receiver, channel};
use std::time::Duration;

use binder::{ProcessOptions, Release, Services, hwbinder};

use crate::servicemanager::{Echo, Thing, echo, open};
use crate::support::{BINARY, Called, Folder, binderperf, signal, start};

/// A manager in this directory, once it serves, and what it says then.
struct Manager(std::process::Child, Receiver<String>);

impl Manager {
    fn start(directory: &str, words: &[&str]) -> Self {
        let place = ["servicemanager", "--driver=embedded", "--context-dir", directory];
        let mut child = start(&[&place, words].concat());
        let lines = BufReader::new(child.stderr.take().expect("piped")).lines();
        let (sender, printed) = channel();
        std::thread::spawn(move || lines.map_while(Result::ok).all(|line| sender.send(line).is_ok()));
        let first = sys::patience::receive(&printed, Duration::from_secs(30)).expect("it serves");
        assert!(first.starts_with("The service manager of the context "), "{first}");
        Self(child, printed)
    }

    /// Its next line.
    fn says(&self) -> String {
        sys::patience::receive(&self.1, Duration::from_secs(30)).expect("a line")
    }
}

impl Drop for Manager {
    fn drop(&mut self) {
        signal(self.0.id(), "INT");
        // It has ended if the test fails.
        let _ = self.0.wait();
    }
}

fn services(directory: &str, words: &[&str]) -> Called {
    let place = ["--driver=embedded", "--context-dir", directory];
    binderperf(&[&["services"], &place[..], words].concat())
}

#[test]
fn names_are_listed_waited_for_and_asked_in_every_dialect() {
    let folder = Folder::new("services");
    services(&folder.path("none"), &[]).ended(3).complained("binderperf servicemanager");
    for release in [Release::Android8, Release::Android10, Release::Android12, Release::Android16] {
        let directory = folder.path(&format!("context-{release}"));
        let words = ["--release", release.name()];
        let _manager = Manager::start(&directory, &words);
        let ask = |more: &[&str]| services(&directory, &[&words, more].concat());
        let server = open(&directory, "binder", ProcessOptions { release, ..ProcessOptions::default() });
        let object = server.publish(echo::Served(Echo));
        Services::of(&server).expect("a manager").add("echo", &object).expect("registered");
        assert_eq!(ask(&[]).ended(0).stdout, "echo\nmanager\n", "{release}");
        assert_eq!(ask(&["check", "echo"]).ended(0).stdout, "echo: example.IEcho\n", "{release}");
        assert_eq!(ask(&["wait", "echo"]).ended(0).stdout, "echo: example.IEcho\n", "{release}");
        assert_eq!(ask(&["ping", "echo"]).ended(0).stdout, "echo answers\n", "{release}");
        assert_eq!(ask(&["dump", "echo", "--", "-a"]).ended(0).stdout, "example.IEcho\n", "{release}");
        let nobody = ask(&["check", "nobody"]).ended(1);
        nobody.complained("nobody serves nobody").complained("binderperf services list");
    }
    binderperf(&["services", "check"]).ended(2);
    binderperf(&["services", "find", "echo"]).ended(2).complained("list");
    binderperf(&["services", "list", "echo"]).ended(2).complained("check asks for one");
    binderperf(&["services", "ping", "echo", "--", "-a"]).ended(2).complained("only dump");
}

#[test]
fn hidl_names_are_asked_too() {
    let folder = Folder::new("services-hidl");
    let directory = folder.path("context");
    let _manager = Manager::start(&directory, &["--hw"]);
    let server = open(&directory, "hwbinder", ProcessOptions::hwbinder());
    let object = server.publish_hidl(Thing);
    let manager = hwbinder::manager::Services::of(&server).expect("a manager");
    manager.add("default", &object).expect("registered");
    let name = "example@1.0::IThing/default";
    let ask = |more: &[&str]| services(&directory, &[&["--hw"], more].concat());
    ask(&["list"]).ended(0).printed(name);
    assert_eq!(ask(&["check", name]).ended(0).stdout, format!("{name}: example@1.0::IThing\n"));
    ask(&["ping", name]).ended(0);
    ask(&["dump", name]).ended(0);
    ask(&["check", "example@1.0::IOther/default"]).ended(1).complained("services list --hw");
}

#[test]
fn a_caller_of_another_dialect_is_named_and_refused() {
    let folder = Folder::new("services-dialect");
    let directory = folder.path("context");
    let manager = Manager::start(&directory, &[]);
    for (release, remedy) in [("9", "--release 9,"), ("10", "--release 10,")] {
        services(&directory, &["list", "--release", release]).ended(1).complained("--release");
        let printed = manager.says();
        assert!(printed.contains(remedy) && printed.contains("ApiLevel = 36 "), "{printed}");
    }
    // The same header, other numbers: seen by the arguments.
    let options = ProcessOptions { release: Release::Android11, ..ProcessOptions::default() };
    let server = open(&directory, "binder", options);
    let object = server.publish(echo::Served(Echo));
    for _ in 0..2 {
        Services::of(&server).expect("a manager").add("alpha", &object).expect_err("another method's number");
    }
    let printed = manager.says();
    assert!(printed.contains("Android 11 or 12 or 13 or 14 or 15,"), "{printed}");
    services(&directory, &["list", "--release", "9"]).ended(1);
    assert!(manager.says().contains("--release 9,"), "once for a process: the next line is of the next one");
}

#[test]
fn a_caller_of_the_other_flavour_is_named() {
    let folder = Folder::new("services-flavour");
    let directory = folder.path("context");
    let manager = Manager::start(&directory, &["--hw", "--device", "binder"]);
    let client = open(&directory, "binder", ProcessOptions::default());
    let mut request = binder::Parcel::new();
    request.write_header("android.os.IServiceManager");
    let proxy: binder::Binder = client.context_manager().expect("a manager").into();
    proxy.transact(1, &request).expect_err("another dialect");
    let printed = manager.says();
    assert!(printed.contains("without --hw"), "{printed}");
}

#[test]
fn one_manager_answers_several_dialects() {
    let folder = Folder::new("services-auto");
    let directory = folder.path("context");
    let _manager = Manager::start(&directory, &["--release", "auto"]);
    let releases = [Release::Android8, Release::Android9, Release::Android10, Release::Android16];
    let processes = releases
        .map(|release| open(&directory, "binder", ProcessOptions { release, ..ProcessOptions::default() }));
    let objects = processes.each_ref().map(|process| process.publish(echo::Served(Echo)));
    for (index, process) in processes.iter().enumerate() {
        let services = Services::of(process).expect("a manager");
        services
            .add(releases[index].name(), &objects[index])
            .unwrap_or_else(|error| panic!("{index}: {error}"));
    }
    for (release, process) in releases.iter().zip(&processes) {
        let services = Services::of(process).expect("a manager");
        assert_eq!(services.list().expect("names"), ["10", "16", "8", "9", "manager"], "{release}");
        let found = services.check("8").expect("an answer").expect("it is there");
        found.ping().unwrap_or_else(|error| panic!("{release}: {error}"));
    }
}

#[test]
fn a_manager_under_shim_manages_its_context() {
    let folder = Folder::new("services-shim");
    let directory = folder.path("context");
    let shim = ["shim", "--supervise", "--context-dir", &directory, "--", BINARY];
    let mut manager = start(&[&shim[..], &["servicemanager"]].concat());
    let listed = || services(&directory, &["list"]).code == Some(0);
    crate::support::wait_until("a manager in its context", || {
        listed() || manager.try_wait().is_ok_and(|ended| ended.is_some())
    });
    let here = listed();
    let under = binderperf(&[&shim[..], &["services", "list"]].concat());
    signal(manager.id(), "TERM");
    let ended = manager.wait_with_output().expect("it ends");
    let printed = String::from_utf8_lossy(&ended.stderr).into_owned();
    needs::need!(needs::Need::Supervision.met_if(!printed.contains("cannot supervise"), &printed));
    assert!(here && printed.contains(&directory), "{printed}");
    assert_eq!(under.ended(0).stdout, "manager\n");
}
