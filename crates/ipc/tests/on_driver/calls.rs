//! Calls between two processes: content, order, nesting, refusals, descriptors, buffers.

use std::io::Read;

use needs::{Need, need};

use abi::layout::FreezeInfo;
use driver::Connection;
use ipc::binder::ExceptionKind;
use ipc::binder::{CallError, Status};
use ipc::{Refusal, StatusCode, Taken};

use crate::peer::{eventually, served};
use crate::toolbox::{
    APPEND, DESCRIPTOR, DESCRIPTORS, ECHO, EXIT, LOG, OPEN, PANIC, READ_ALL, Toolbox, bounce, nameless_file,
    open_descriptors, plain,
};

/// TX-01, BUF-05: what is sent is what arrives, at every size, and buffers go back: calls of any number fit in an area
/// of 1 MiB.
#[test]
fn tx_01_echo() {
    let (_bench, _peer, _process, toolbox) = need!(served(4));
    for size in [0, 1, 4, 5, 4096, 65536] {
        let bytes: Vec<u8> = (0..size).map(|i| (i % 251) as u8).collect();
        for round in 0..100 {
            let mut request = toolbox.request(DESCRIPTOR);
            request.write_byte_slice(&bytes);
            let reply = toolbox.call(ECHO, request).unwrap_or_else(|error| panic!("call {round}: {error}"));
            assert_eq!(reply.reader().read_byte_slice(), Ok(&bytes[..]), "{size} bytes");
        }
    }
}

/// TX-06: calls that come back, both ways, to any depth, on the threads that wait.
#[test]
fn tx_06_nested_calls_both_ways() {
    let (_bench, _peer, process, toolbox) = need!(served(0));
    let own = process.publish(Toolbox::new(process.clone()));
    for times in [1, 2, 7, 20] {
        assert_eq!(bounce(&toolbox, &own, times).expect("bounce"), 0, "{times} times");
    }
}

/// OW-02: oneway calls to one object are served in the order sent.
#[test]
fn ow_02_oneway_calls_keep_their_order() {
    let (_bench, _peer, _process, toolbox) = need!(served(4));
    let sent: Vec<i32> = (0..200).collect();
    for number in &sent {
        let mut request = toolbox.request(DESCRIPTOR);
        request.write_i32(*number);
        let taken = toolbox.oneway(APPEND, request).expect("append");
        assert_ne!(taken, Taken::PendingFrozen);
    }
    let log = || plain(&toolbox, LOG).expect("log").reader().read_i32_vec().expect("a log");
    eventually("all oneway calls served", || log().len() >= sent.len());
    assert_eq!(log(), sent);
}

/// OBJ-09, OBJ-11, OBJ-13: descriptors travel both ways, and every one that arrives is closed.
#[test]
fn obj_11_descriptors_travel_and_are_closed() {
    let (_bench, _peer, _process, toolbox) = need!(served(0));
    let theirs = || plain(&toolbox, DESCRIPTORS).expect("count").reader().read_i32().expect("a number");
    let (before_here, before_there) = (open_descriptors(), theirs());
    // More than the brokers of earlier tests, in this process, may still have to close.
    for round in 0..20 {
        let text = format!("round {round}");
        let mut request = toolbox.request(DESCRIPTOR);
        request.write_fd(nameless_file(&text));
        let reply = toolbox.call(READ_ALL, request).expect("read_all");
        assert_eq!(reply.reader().read_str().as_deref(), Ok(&text[..]));

        let mut request = toolbox.request(DESCRIPTOR);
        request.write_str(&text);
        let reply = toolbox.call(OPEN, request).expect("open");
        let mut content = String::new();
        let fd = reply.reader().read_fd().expect("a descriptor");
        std::fs::File::from(fd).read_to_string(&mut content).expect("read");
        assert_eq!(content, text);

        // One that nobody reads is closed all the same: `ECHO` looks at no descriptor.
        let mut request = toolbox.request(DESCRIPTOR);
        request.write_byte_slice(b"x");
        request.write_fd(nameless_file("unread"));
        toolbox.call(ECHO, request).expect("echo");
    }
    eventually("every descriptor closed", || open_descriptors() <= before_here && theirs() <= before_there);
}

/// TX-10: a service that dies while it serves is a refusal, and the next call is refused at once.
#[test]
fn tx_10_a_service_dies_in_the_middle_of_a_call() {
    let (_bench, _peer, _process, toolbox) = need!(served(4));
    for _ in 0..2 {
        let error = plain(&toolbox, EXIT).expect_err("nobody answers");
        let CallError::Transact(error) = &error else { panic!("{error}") };
        assert_eq!(error.refusal(), Some(Refusal::Dead), "{error}");
    }
}

/// FRZ-01: calls to a frozen process are refused, oneway ones are kept; both end with the freeze.
#[test]
fn frz_01_a_frozen_service_refuses_and_keeps() {
    let (_bench, peer, process, toolbox) = need!(served(4));
    let freeze = |enable| {
        // Ends once what is pending has ended.
        let info = FreezeInfo { pid: peer.pid().unsigned_abs(), enable, timeout_ms: 60_000 };
        process.connection().freeze(info)
    };
    match freeze(1) {
        Err(error) if error.kind() == std::io::ErrorKind::InvalidInput => {
            return Need::Driver.lacks(format_args!("it cannot freeze (Linux 5.12): {error}")).skip();
        }
        result => result.expect("freeze"),
    }
    let CallError::Transact(error) = toolbox.ping().expect_err("frozen") else { panic!("an answer") };
    assert_eq!(error.refusal(), Some(Refusal::Frozen));
    let mut request = toolbox.request(DESCRIPTOR);
    request.write_i32(42);
    // PENDING_FROZEN since Linux 6.2.
    toolbox.oneway(APPEND, request).expect("kept");
    freeze(0).expect("thaw");
    toolbox.ping().expect("thawed");
    let log = || plain(&toolbox, LOG).expect("log").reader().read_i32_vec().expect("a log");
    eventually("the kept oneway call served", || log() == [42]);
}

/// What an object does not know it says, in AIDL's words.
#[test]
fn unknown_methods_and_interfaces_are_said_to_be_so() {
    let (_bench, _peer, _process, toolbox) = need!(served(4));
    let status = |error: CallError| match error {
        CallError::Status(status) => status,
        error => panic!("{error}"),
    };
    let unknown = plain(&toolbox, 999).expect_err("no such method");
    assert_eq!(status(unknown), Status::Code(StatusCode(-74)));
    let other = toolbox.call(ECHO, toolbox.request("example.IOther")).expect_err("another interface");
    assert_eq!(status(other), Status::Code(StatusCode::BAD_TYPE));
    let empty = plain(&toolbox, ECHO).expect_err("no argument");
    assert_eq!(status(empty), Status::Code(StatusCode::NOT_ENOUGH_DATA));
    let panics = plain(&toolbox, PANIC).expect_err("a panic");
    assert_eq!(status(panics), Status::Code(StatusCode::UNKNOWN_ERROR));
    assert_eq!(toolbox.descriptor().expect("descriptor"), DESCRIPTOR);
    toolbox.ping().expect("still there after all that");
}

/// AIDL's exceptions come back with kind and message; special codes are answered by every object.
#[test]
fn exceptions_and_special_codes_are_answered() {
    let (_bench, peer, process, toolbox) = need!(served(4));
    let services = ipc::binder::manager::Services::of(&process).expect("a manager");
    let error = services.add("no name!", &toolbox).expect_err("refused");
    let CallError::Status(Status::Exception(exception)) = error else { panic!("{error}") };
    assert_eq!(exception.kind, ExceptionKind::ILLEGAL_ARGUMENT);
    assert!(exception.message.is_some_and(|message| message.contains("no name!")));
    assert_eq!(toolbox.debug_pid().expect("pid"), peer.pid());
    assert_eq!(toolbox.extension().expect("extension"), None);
}
