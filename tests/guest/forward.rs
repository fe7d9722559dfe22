//! `vm --forward`: a port of this machine leads to a server in the guest, and to nothing else.
//! Not here: what adbd makes of it (docs/devices.md).

use std::io::{Read, Write};
use std::net::{Ipv4Addr, TcpListener, TcpStream};
use std::time::Duration;

use crate::support::{binderperf, end, start};

/// The server, in the guest.
const PORT: u16 = 7777;

#[test]
#[ignore = "runs in the guest of the test below"]
fn serves_one_connection() {
    let listener = TcpListener::bind((Ipv4Addr::UNSPECIFIED, PORT)).expect("a port");
    let (mut connection, _) = listener.accept().expect("a connection");
    let mut word = [0; 4];
    connection.read_exact(&mut word).expect("a word");
    word.reverse();
    connection.write_all(&word).expect("the answer");
    // Outside of the guest there is nothing.
    let outside =
        TcpStream::connect_timeout(&(Ipv4Addr::new(10, 0, 2, 2), 22).into(), Duration::from_secs(1));
    assert!(outside.is_err(), "the guest reaches this machine");
}

/// A word there and back; none as long as nobody serves.
fn answer(port: u16) -> Option<[u8; 4]> {
    let mut connection = TcpStream::connect((Ipv4Addr::LOCALHOST, port)).ok()?;
    connection.write_all(b"abcd").ok()?;
    let mut word = [0; 4];
    connection.read_exact(&mut word).ok().map(|()| word)
}

#[test]
fn a_port_leads_to_the_guest() {
    let _guest = crate::one_guest();
    let free = TcpListener::bind((Ipv4Addr::LOCALHOST, 0)).and_then(|listener| listener.local_addr());
    let port = free.expect("a free port").port();
    let this = std::env::current_exe().expect("a test is a program");
    let this = this.to_str().expect("UTF-8");
    let rule = format!("{port}:{PORT}");
    let test = ["forward::serves_one_connection", "--ignored"];
    let mut guest = start(&[&["vm", "--forward", &rule, "--exec", this], &test[..]].concat());
    let mut found = None;
    while found.is_none() && guest.try_wait().is_ok_and(|ended| ended.is_none()) {
        found = answer(port);
        std::thread::sleep(Duration::from_millis(100));
    }
    end(guest).ended(0).printed("1 passed");
    assert_eq!(found, Some(*b"dcba"));
}

#[test]
fn ports_that_cannot_be_are_refused() {
    binderperf(&["vm", "--forward", "5555", "--", "guest-probe"]).ended(2).complained("HOSTPORT:GUESTPORT");
    let _guest = crate::one_guest();
    let taken = TcpListener::bind((Ipv4Addr::LOCALHOST, 0)).expect("a free port");
    let rule = format!("{}:1", taken.local_addr().expect("bound").port());
    let called = binderperf(&["vm", "--forward", &rule, "--", "guest-probe"]);
    assert!(called.code.is_some_and(|code| code > 2), "{called}");
    called.complained("host forwarding rule");
}
