//! Sessions of RPC binder as libbinder begins them, and what both ends refuse.

use super::*;
use crate::measure::RoundTrip;

/// The bytes that a client sends before and with its first call, as `RpcWireFormat.h` lays them out.
#[test]
fn a_session_begins_as_libbinder_begins_it() {
    let (client, mut server) = sockets(1).expect("a pair");
    let opening = std::thread::spawn(move || open(client, 4).map(drop));
    let server = &mut server[0];
    let mut header = [0; CONNECTION_HEADER];
    server.read_exact(&mut header).expect("a header");
    assert_eq!(header, [1, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0]);
    server.write_all(&[1, 0, 0, 0, 0, 0, 0, 0]).expect("sent");
    let mut call = [0; 8 + HEADER + TRANSACTION];
    server.read_exact(&mut call).expect("the first call");
    assert_eq!(call[..8], *b"cci\0\0\0\0\0");
    assert_eq!(call[8..16], [0, 0, 0, 0, 40, 0, 0, 0], "TRANSACT, with a body of 40 B");
    assert!(call[16..].iter().all(|byte| *byte == 0), "no address, GET_ROOT, an empty parcel");
    server.write_all(&[1, 0, 0, 0, 20, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0]).expect("sent");
    server.write_all(&[0; ANSWER]).expect("sent");
    assert!(opening.join().expect("it ends").is_err(), "an empty parcel is no root object");
}

#[test]
fn vectors_come_back_and_what_is_no_call_is_refused() {
    let (clients, server) = sockets(1).expect("a pair");
    let serving = std::thread::spawn(move || serve(server, None));
    let mut client = open(clients, 65_537).expect("open").remove(0);
    for sequence in 1..4 {
        client.stamp(sequence);
        client.call().expect("answered");
        client.check().expect("the same");
    }
    for (to, code, parcel) in [(ROOT, 9, &[][..]), ([3, 2], REPEAT_BYTES, &[]), (ROOT, REPEAT_BYTES, &[1; 8])]
    {
        let error = client.connection().transact(to, code, parcel).expect_err("refused");
        assert!(error.to_string().contains("in place of a reply"), "{error}");
    }
    drop(client);
    serving.join().expect("it ends").expect("the client ended");
}

#[test]
fn a_message_that_is_no_call_or_has_no_end_is_refused() {
    let mut reply = [0; HEADER];
    reply[0] = REPLY as u8;
    for (message, why) in [([0xff; HEADER], "4294967295 B"), (reply, "RPC command 1")] {
        let (mut client, server) = sockets(1).expect("a pair");
        let serving = std::thread::spawn(move || serve(server, None));
        client[0]
            .write_all(&[&connection_header(&[])[..], &CONNECTION_INIT, &message].concat())
            .expect("sent");
        let error = serving.join().expect("it ends").expect_err("refused");
        assert!(error.to_string().contains(why), "{error}");
    }
}

#[test]
fn a_session_has_a_connection_for_each_thread() {
    let (clients, server) = sockets(3).expect("pairs");
    let serving = std::thread::spawn(move || serve(server, None));
    let mut clients = open(clients, 64).expect("open");
    assert_eq!(clients.len(), 3);
    // Each is answered while the others have nothing to say.
    for (client, sequence) in clients.iter_mut().rev().zip(1..) {
        client.stamp(sequence);
        client.call().expect("answered");
        client.check().expect("the same");
    }
    let mut pings = clients.remove(1).into_pings();
    pings.call().expect("answered");
    drop((clients, pings));
    serving.join().expect("it ends").expect("the clients ended");
}

/// The bytes of a second connection: the session's id behind a header with its size, and no answer before the first call.
#[test]
fn a_further_connection_begins_with_the_id_of_its_session() {
    let (client, mut server) = sockets(2).expect("pairs");
    let opening = std::thread::spawn(move || open(client, 4).map(drop));
    let read = |socket: &mut File, length: usize| {
        let mut bytes = vec![0; length];
        socket.read_exact(&mut bytes).expect("bytes");
        bytes
    };
    read(&mut server[0], CONNECTION_HEADER);
    server[0].write_all(&[1, 0, 0, 0, 0, 0, 0, 0]).expect("sent");
    read(&mut server[0], CONNECTION_INIT.len());
    let mut id = Vec::new();
    put_vector(&mut id, &[7; SESSION_ID]);
    for (code, parcel) in
        [(GET_ROOT, &[1, 0, 0, 0, 3, 0, 0, 0, 1, 0, 0, 0, 12, 0, 0, 0][..]), (1, &[2, 0, 0, 0]), (2, &id)]
    {
        let call = read(&mut server[0], HEADER + TRANSACTION);
        assert_eq!(word(&call, HEADER + 8), Some(code));
        let mut reply = Vec::new();
        put(&mut reply, &[REPLY, (ANSWER + parcel.len()) as u32, 0, 0, 0, parcel.len() as u32, 0, 0, 0]);
        reply.extend_from_slice(parcel);
        server[0].write_all(&reply).expect("sent");
    }
    let begin = read(&mut server[1], CONNECTION_HEADER + SESSION_ID + CONNECTION_INIT.len());
    assert_eq!(begin[..16], [1, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 32, 0]);
    assert_eq!(begin[16..], [&[7; SESSION_ID][..], b"cci\0\0\0\0\0"].concat());
    opening.join().expect("it ends").expect("a session of two connections");
}

#[test]
fn a_connection_of_another_session_is_refused() {
    let (mut clients, server) = sockets(2).expect("pairs");
    let serving = std::thread::spawn(move || serve(server, None));
    clients[1]
        .write_all(&[&connection_header(&[1; SESSION_ID])[..], &CONNECTION_INIT].concat())
        .expect("sent");
    assert!(!matches!(clients[1].read(&mut [0]), Ok(1..)), "closed");
    drop(clients);
    let error = serving.join().expect("it ends").expect_err("refused");
    assert!(error.to_string().contains("another session"), "{error}");
}

#[test]
fn a_server_that_takes_too_few_connections_is_refused() {
    let (mut clients, server) = sockets(1).expect("a pair");
    let (further, _kept) = sockets(1).expect("a pair");
    clients.extend(further);
    let serving = std::thread::spawn(move || serve(server, None));
    let error = open(clients, 4).map(drop).expect_err("one connection");
    assert!(error.to_string().contains("takes 1 connections, and 2 are wanted"), "{error}");
    drop(serving.join());
}

/// A ping and its answer in bytes: the reference that the call was is given back first.
#[test]
fn a_call_s_reference_is_given_back_before_the_reply() {
    let (mut clients, server) = sockets(1).expect("a pair");
    let serving = std::thread::spawn(move || serve(server, None));
    let client = &mut clients[0];
    client.write_all(&[&connection_header(&[])[..], &CONNECTION_INIT].concat()).expect("sent");
    client.read_exact(&mut [0; NEW_SESSION]).expect("a session");
    let mut call = Vec::new();
    put(&mut call, &[TRANSACT, TRANSACTION as u32, 0, 0, ROOT[0], ROOT[1], PING, 0, 0, 0, 0, 0, 0, 0]);
    client.write_all(&call).expect("sent");
    let mut answer = [0; HEADER + 16 + HEADER + ANSWER];
    client.read_exact(&mut answer).expect("an answer");
    let mut want = Vec::new();
    put(&mut want, &[DEC_STRONG, 16, 0, 0, 3, 1, 1, 0, REPLY, ANSWER as u32, 0, 0, 0, 0, 0, 0, 0]);
    assert_eq!(answer[..], want[..]);
    drop(clients);
    serving.join().expect("it ends").expect("the client ended");
}
