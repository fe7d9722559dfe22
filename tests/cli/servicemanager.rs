//! `binderperf servicemanager` as its users meet it, and a service that outlives it.
//! Not here: the managers' answers (`crates/ipc`).

use std::io::{BufRead, BufReader, Read};
use std::path::Path;
use std::process::Child;

use binder::{AnyContext, Process, ProcessOptions, Registration, Release, Services, Status, hwbinder};
use embedded::{EmbeddedContext, Settings};

use crate::support::{BINARY, Folder, binderperf, broker, call, signal, start, wait_until};

binder::interface! {
    pub(crate) mod echo = "example.IEcho" {
        fn echo(text: String) -> String;
    }
}

pub(crate) struct Echo;

impl echo::Service for Echo {
    fn echo(&self, text: String) -> Result<String, Status> {
        Ok(text)
    }
}

/// A manager in this directory, once it serves.
struct Manager(Child);

impl Manager {
    fn start(directory: &str, words: &[&str]) -> Self {
        let place = ["servicemanager", "--driver=embedded", "--context-dir", directory];
        let mut child = start(&[&place, words].concat());
        let mut told = BufReader::new(child.stderr.take().expect("piped"));
        let mut line = String::new();
        told.read_line(&mut line).expect("text");
        assert!(line.starts_with("The service manager of the context "), "{line}");
        Self(child)
    }

    /// Ends it by a signal; returns its exit status.
    fn end(mut self, by: &str) -> Option<i32> {
        signal(self.0.id(), by);
        self.0.wait().expect("it ends").code()
    }
}

impl Drop for Manager {
    fn drop(&mut self) {
        // It has ended, unless the test fails.
        let _ = self.0.kill();
    }
}

fn context(directory: &str, name: &str) -> AnyContext {
    AnyContext::Embedded(EmbeddedContext::at(Path::new(directory), name, Settings::default()))
}

pub(crate) fn open(directory: &str, name: &str, options: ProcessOptions) -> Process {
    let process = Process::open(&context(directory, name), options).expect("the manager's broker runs");
    process.start_thread_pool().expect("a thread");
    process
}

#[test]
fn a_manager_ends_with_its_broker_and_says_so() {
    let folder = Folder::new("servicemanager-broker");
    let directory = folder.path("context");
    for words in [&[][..], &["--hw"]] {
        let place = ["servicemanager", "--driver=embedded", "--context-dir", &directory];
        let mut child = start(&[&place, words].concat());
        let mut told = BufReader::new(child.stderr.take().expect("piped"));
        let mut line = String::new();
        told.read_line(&mut line).expect("text");
        assert!(line.starts_with("The service manager of the context "), "{line}");
        signal(broker(|of| of == directory).expect("a broker"), "KILL");
        let mut why = String::new();
        told.read_to_string(&mut why).expect("text");
        assert_eq!(child.wait().expect("it ends").code(), Some(3), "{why}");
        assert!(why.contains("the broker of ") && why.contains("start the service manager again"), "{why}");
        // The next one finds nobody beside it.
        assert_eq!(Manager::start(&directory, words).end("INT"), Some(0));
    }
}

#[test]
fn services_outlive_the_manager_and_it_outlives_them() {
    let folder = Folder::new("servicemanager");
    let directory = folder.path("context");
    let first = Manager::start(&directory, &[]);
    let server = open(&directory, "binder", ProcessOptions::default());
    let kept =
        Registration::of_binder(&server, "echo", &server.publish(echo::Served(Echo))).expect("registered");
    let once = server.publish(echo::Served(Echo));
    Services::of(&server).expect("a manager").add("once", &once).expect("registered");
    let client = open(&directory, "binder", ProcessOptions::default());
    let names = || Services::of(&client).and_then(|services| services.list()).unwrap_or_default();
    assert_eq!(names(), ["echo", "manager", "once"]);

    let place = ["servicemanager", "--driver=embedded", "--context-dir", &directory];
    binderperf(&place).ended(3).complained("could not become the context manager of ");

    assert_eq!(first.end("KILL"), None);
    wait_until("its death seen", || Services::of(&client).is_err());
    let error = Services::of(&client).expect_err("there is none").to_string();
    let remedy = format!(
        "start one with `binderperf servicemanager --driver embedded --device binder --context-dir {directory}`"
    );
    assert!(error.contains(&remedy), "{error}");

    let second = Manager::start(&directory, &[]);
    // The service that was registered once is forgotten.
    wait_until("echo registered again", || names() == ["echo", "manager"]);
    let object = Services::of(&client).expect("a manager").get("echo").expect("it is there");
    assert_eq!(echo::Client::from(object).echo("again").expect("it answers"), "again");

    drop(kept);
    server.shutdown().expect("in order");
    drop((server, once));
    wait_until("the service forgotten", || names() == ["manager"]);
    assert_eq!(second.end("INT"), Some(0));
}

/// A HIDL object without methods.
pub(crate) struct Thing;

impl hwbinder::Object for Thing {
    fn interfaces(&self) -> &[&str] {
        &["example@1.0::IThing"]
    }

    fn on_transact<'t>(
        &self,
        _call: &mut hwbinder::Incoming<'t>,
        _reply: &mut hwbinder::HwParcel<'t>,
    ) -> Result<(), Status> {
        Err(Status::UNKNOWN_TRANSACTION)
    }
}

#[test]
fn hidl_names_outlive_their_manager() {
    let folder = Folder::new("hwservicemanager");
    let directory = folder.path("context");
    let first = Manager::start(&directory, &["--hw"]);
    let server = open(&directory, "hwbinder", ProcessOptions::hwbinder());
    let _kept = Registration::of_hidl(&server, "default", &server.publish_hidl(Thing)).expect("registered");
    let client = open(&directory, "hwbinder", ProcessOptions::hwbinder());
    let names = || {
        let services = hwbinder::manager::Services::of(&client);
        services.and_then(|services| services.list()).unwrap_or_default()
    };
    let has = |name: &str| names().iter().any(|known| known == name);
    for name in ["android.hidl.manager@1.2::IServiceManager/default", "example@1.0::IThing/default"] {
        assert!(has(name), "{name}: {:?}", names());
    }
    first.end("KILL");
    let second = Manager::start(&directory, &["--hw"]);
    wait_until("registered again", || has("example@1.0::IThing/default"));
    assert_eq!(second.end("TERM"), Some(0));
}

#[test]
fn every_release_is_answered_in_its_dialect() {
    let folder = Folder::new("servicemanager-releases");
    for release in Release::ALL {
        let directory = folder.path(&format!("context-{release}"));
        let manager = Manager::start(&directory, &["--release", release.name()]);
        let options = ProcessOptions { release, ..ProcessOptions::default() };
        let (server, client) =
            (open(&directory, "binder", options.clone()), open(&directory, "binder", options));
        let services = Services::of(&server).expect("a manager");
        services
            .add("echo", &server.publish(echo::Served(Echo)))
            .unwrap_or_else(|error| panic!("{release}: {error}"));
        let services = Services::of(&client).expect("a manager");
        assert_eq!(services.list().expect("names"), ["echo", "manager"], "{release}");
        let echo =
            echo::Client::from(services.get("echo").unwrap_or_else(|error| panic!("{release}: {error}")));
        assert_eq!(echo.echo("ö").expect("it answers"), "ö", "{release}");
        assert_eq!(manager.end("INT"), Some(0));
    }
}

/// Somebody else's program in a process of its own, which opens a context in the directory of this variable.
#[test]
fn outsider() {
    if let Some(directory) = std::env::var_os("BINDERPERF_TEST_OUTSIDER") {
        open(&directory.to_string_lossy(), "binder", ProcessOptions::default());
    }
}

#[test]
fn a_broker_that_ends_with_its_program_is_told() {
    let own = std::env::current_exe().expect("its path");
    let outsider = |name: &str, broker: &str| {
        let folder = Folder::new(name);
        let variables = [
            ("BINDERPERF_TEST_OUTSIDER", folder.path("context")),
            ("PATH", String::new()),
            ("BINDERPERF_BROKER", broker.to_owned()),
        ];
        let variables = variables.each_ref().map(|(name, value)| (*name, value.as_str()));
        let words = ["--exact", "servicemanager::outsider", "--nocapture"];
        call(&own.to_string_lossy(), &words, &variables).ended(0).stderr
    };
    let told = outsider("outsider-alone", "");
    assert_eq!(told.matches("WARNING: no program binderperf is along $PATH").count(), 1, "{told}");
    let told = outsider("outsider", BINARY);
    assert!(!told.contains("WARNING"), "{told}");
}

#[test]
fn wrong_words_are_refused() {
    binderperf(&["servicemanager", "--hw", "--release=12"]).ended(2);
    binderperf(&["servicemanager", "--release=17"]).ended(2).complained("15-qpr");
    binderperf(&["servicemanager", "--driver=kernel", "--context-dir=/x"]).ended(2);
    binderperf(&["servicemanager", "--device=/dev/no-such-binder"])
        .ended(3)
        .complained("/dev/no-such-binder");
}
