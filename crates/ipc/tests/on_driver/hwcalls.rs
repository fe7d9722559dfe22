//! Calls of the flavour hwbinder between two processes: content, nesting, handles, what every
//! object answers, and what happens to payloads that make no sense.

use std::fs::File;
use std::io::Read;

use needs::need;

use ipc::hwbinder::{CallError, HwBinder, HwParcel, NativeHandle, Status};
use ipc::{Binder, Refusal, StatusCode};

use crate::hwtoolbox::{
    APPEND, BOUNCE, DESCRIPTORS, ECHO, FLAVOUR, HwToolbox, IN_PLACE, JOIN, LOG, OPEN, PANIC, READ_ALL,
    REFUSE, THREADS, V1_0, V1_1, bounce, hw_served,
};
use crate::peer::{bench_of, eventually};
use crate::toolbox::{nameless_file, open_descriptors};

fn plain(at: &HwBinder, code: u32) -> Result<ipc::hwbinder::Reply<'_>, CallError> {
    at.call(code, at.request(V1_0))
}

fn echo(at: &HwBinder, bytes: &[u8]) {
    let mut request = at.request(V1_0);
    request.write_vec(bytes);
    let reply = at.call(ECHO, request).expect("echo");
    assert!(reply.reader().read_bytes() == Ok(bytes), "{} bytes", bytes.len());
}

/// OBJ-15, OBJ-16: what is sent is what arrives, at every size, in place, and buffers go back.
#[test]
fn obj_15_scattered_echo() {
    let (_bench, _peer, _process, toolbox) = need!(hw_served(1));
    for size in [0, 1, 4, 5, 4096, 65536, 300_000] {
        let bytes: Vec<u8> = (0..size).map(|i| (i % 251) as u8).collect();
        for _ in 0..20 {
            echo(&toolbox, &bytes);
        }
        if size > 0 {
            // The service sees the vector in its receiving area: nobody but the driver has copied it.
            let mut request = toolbox.request(V1_0);
            request.write_vec(&bytes);
            let reply = toolbox.call(IN_PLACE, request).expect("called");
            assert_eq!(reply.reader().read_bool(), Ok(true), "{size} bytes");
        }
    }
}

/// Each method under the name of the interface that declares it; vectors of strings, three deep.
#[test]
fn strings_and_interfaces() {
    let (_bench, _peer, _process, toolbox) = need!(hw_served(1));
    for (texts, want) in
        [(&["a", "", "long enough for two words"][..], "a++long enough for two words"), (&[], "")]
    {
        let mut request = toolbox.request(V1_1);
        request.write_str_vec(texts);
        let reply = toolbox.call(JOIN, request).expect("join");
        assert_eq!(reply.reader().read_str(), Ok(want));
    }
    let other = toolbox.call(LOG, toolbox.request("example@1.0::IOther")).expect_err("another interface");
    assert_eq!(status(other), Status::Code(StatusCode::BAD_TYPE));
    let unknown = plain(&toolbox, 999).expect_err("no such method");
    assert_eq!(status(unknown), Status::UNKNOWN_TRANSACTION);
    let mut request = toolbox.request(V1_0);
    request.write_str("for this reason");
    let refused = toolbox.call(REFUSE, request).expect_err("an exception");
    assert_eq!(status(refused), Status::illegal_argument("for this reason"));
    assert_eq!(status(plain(&toolbox, PANIC).expect_err("a panic")), Status::Code(StatusCode::UNKNOWN_ERROR));
    toolbox.ping().expect("still there after all that");
}

fn status(error: CallError) -> Status {
    match error {
        CallError::Status(status) => status,
        error => panic!("{error}"),
    }
}

/// TX-06: calls that come back, both ways, on the threads that wait.
#[test]
fn tx_06_nested_hidl_calls() {
    let (_bench, _peer, process, toolbox) = need!(hw_served(1));
    let own = HwToolbox::publish(&process);
    for times in [1, 2, 7, 20] {
        assert_eq!(bounce(&toolbox, &own, times).expect("bounce"), 0, "{times} times");
    }
}

/// OW-02 with scattered buffers.
#[test]
fn ow_02_oneway_hidl_calls_keep_their_order() {
    let (_bench, _peer, _process, toolbox) = need!(hw_served(1));
    let sent: Vec<i32> = (0..200).collect();
    for number in &sent {
        let numbers = [*number];
        let mut request = toolbox.request(V1_0);
        request.write_vec(&numbers);
        toolbox.oneway(APPEND, request).expect("append");
    }
    let log = || plain(&toolbox, LOG).expect("log").reader().read_vec::<i32>().expect("a log").to_vec();
    eventually("all oneway calls served", || log().len() >= sent.len());
    assert_eq!(log(), sent);
}

/// OBJ-13, OBJ-19: handles travel both ways, and every descriptor that arrives is closed.
#[test]
fn obj_19_handles_travel_and_are_closed() {
    let (_bench, _peer, _process, toolbox) = need!(hw_served(1));
    let theirs = || plain(&toolbox, DESCRIPTORS).expect("count").reader().read_i32().expect("a number");
    let (before_here, before_there) = (open_descriptors(), theirs());
    // More than the brokers of earlier tests, in this process, may still have to close.
    for round in 0..20 {
        let text = format!("round {round}");
        let handle = NativeHandle { fds: vec![nameless_file(&text).into()], ints: vec![round, -1] };
        let mut request = toolbox.request(V1_0);
        request.write_handle(Some(handle));
        let reply = toolbox.call(READ_ALL, request).expect("read_all");
        assert_eq!(reply.reader().read_str(), Ok(&*format!("{text} {round} -1")));

        let mut request = toolbox.request(V1_0);
        request.write_str(&text);
        let reply = toolbox.call(OPEN, request).expect("open");
        let handle = reply.reader().read_handle().expect("a handle").expect("not null");
        let mut content = String::new();
        let [fd] = <[_; 1]>::try_from(handle.fds).expect("one descriptor");
        File::from(fd).read_to_string(&mut content).expect("read");
        assert_eq!((content, handle.ints), (text, vec![7]));

        // One that nobody reads is closed all the same.
        let mut request = toolbox.request(V1_0);
        request.write_vec(b"x");
        request.write_handle(Some(NativeHandle { fds: vec![nameless_file("x").into()], ints: vec![] }));
        toolbox.call(ECHO, request).expect("echo");
    }
    eventually("every descriptor closed", || open_descriptors() <= before_here && theirs() <= before_there);
}

/// What makes no sense is answered, or refused by the driver, and the server goes on.
#[test]
fn malformed_objects_are_answered() {
    let (_bench, _peer, _process, toolbox) = need!(hw_served(1));
    let bytes = [1u8; 8];
    let vec = |count: u8| [0, 0, 0, 0, 0, 0, 0, 0, count, 0, 0, 0, 1, 0, 0, 0];
    type Write<'a> = &'a dyn for<'p> Fn(&mut HwParcel<'p>, &'p [u8]);
    let forms: [(&str, Write<'_>); 6] = [
        ("nothing", &|_, _| ()),
        ("no child", &|request, _| {
            request.write_struct(&vec(8));
        }),
        ("a child without a parent", &|request, bytes| {
            request.write_struct(&vec(8));
            request.write_vec(bytes);
        }),
        ("another count", &|request, bytes| {
            let part = request.write_struct(&vec(0));
            request.embed_vec(part, 0, bytes);
            request.set(part, 8, &[9]);
        }),
        ("another pointer", &|request, bytes| {
            let part = request.write_struct(&[0; 24]);
            request.embed_vec(part, 8, bytes);
        }),
        ("a scalar", &|request, _| request.write_u64(u64::MAX)),
    ];
    for (what, write) in forms {
        let mut request = toolbox.request(V1_0);
        write(&mut request, &bytes);
        let Status::Code(code) = status(toolbox.call(ECHO, request).expect_err(what)) else {
            panic!("{what}: an exception")
        };
        assert!(
            [StatusCode::NOT_ENOUGH_DATA, StatusCode::BAD_VALUE, StatusCode::BAD_TYPE].contains(&code),
            "{what}: {code}"
        );
        echo(&toolbox, &bytes);
    }
    let mut request = toolbox.request(V1_0);
    let part = request.write_struct(&vec(8));
    request.embed_vec(part, 12, &bytes);
    let error = toolbox.call(ECHO, request).expect_err("a pointer outside its parent");
    let CallError::Transact(error) = error else { panic!("{error}") };
    assert!(matches!(error.refusal(), Some(Refusal::Failed(_))), "{error}");
    let no_object = status(toolbox.call(BOUNCE, toolbox.request(V1_0)).expect_err("no interface"));
    assert_eq!(no_object, Status::Code(StatusCode::NOT_ENOUGH_DATA));
    echo(&toolbox, &bytes);
}

/// What every object answers by itself: IBase.
#[test]
fn every_hidl_object_is_an_ibase() {
    let (_bench, peer, process, toolbox) = need!(hw_served(1));
    let ours = HwToolbox::publish(&process);
    let own_pid = i32::try_from(std::process::id()).expect("a pid");
    for (object, pid) in [(&toolbox, peer.pid()), (&ours, own_pid)] {
        object.ping().expect("ping");
        assert_eq!(object.descriptor().expect("descriptor"), V1_1);
        let chain = object.interface_chain().expect("chain");
        assert_eq!(chain, [V1_1, V1_0, "android.hidl.base@1.0::IBase"]);
        assert!(object.is_a(V1_0).expect("chain") && !object.is_a("other").expect("chain"));
        let info = object.debug_info().expect("debug info");
        assert_eq!((info.pid, info.arch), (pid, 1));
        assert_eq!(object.hash_chain().expect("hashes"), [[0; 32]; 3]);
        let mut file = nameless_file("");
        let copy = file.try_clone().expect("a duplicate");
        object.debug(NativeHandle { fds: vec![copy.into()], ints: vec![] }, &["all"]).expect("debug");
        let mut text = String::new();
        std::io::Seek::rewind(&mut file).expect("rewind");
        file.read_to_string(&mut text).expect("read");
        assert_eq!(text, format!("{V1_1}\n"));
        let unknown = object.call(0x0f00_0000, object.request("android.hidl.base@1.0::IBase"));
        assert_eq!(status(unknown.expect_err("no such code")), Status::UNKNOWN_TRANSACTION);
        let wrong = object.call(ipc::hwbinder::base::PING, object.request(V1_0));
        assert_eq!(status(wrong.expect_err("not IBase's")), Status::Code(StatusCode::BAD_TYPE));
    }
}

/// Objects of this process are called without the driver, with the same results.
#[test]
fn own_objects_are_called_in_place() {
    let bench = need!(bench_of(FLAVOUR));
    let process = bench.hw_process();
    let own = HwToolbox::publish(&process);
    echo(&own, &[7; 100]);
    echo(&own, &[]);
    let mut request = own.request(V1_1);
    request.write_str_vec(&["a", "b"]);
    assert_eq!(own.call(JOIN, request).expect("join").reader().read_str(), Ok("a+b"));
    let partner = HwToolbox::publish(&process);
    assert_eq!(bounce(&own, &partner, 3).expect("bounce"), 0);
}

/// The pool's threads carry the flavour's name, their number in hexadecimal.
#[test]
fn threads_are_named_after_the_flavour() {
    let (_bench, peer, _process, toolbox) = need!(hw_served(1));
    let reply = plain(&toolbox, THREADS).expect("threads");
    let names = reply.reader().read_str_vec().expect("names").join(" ");
    // The kernel keeps 15 characters.
    let want: String = format!("HwBinder:{}_1", peer.pid()).chars().take(15).collect();
    assert!(names.contains(&want), "{names}");
}

/// An object of the other flavour answers in its own way, and nobody is the worse for it.
#[test]
fn the_other_flavour_s_calls_are_refused() {
    let (_bench, _peer, process, toolbox) = need!(hw_served(1));
    let as_aidl = Binder::from(process.context_manager().expect("not ours"));
    as_aidl.ping().expect_err("a HIDL object");
    echo(&toolbox, b"still there");
}
