//! The client end of a connection against a simulated broker.

use super::*;
use crate::directory::tests::Folder;

fn hello() -> Hello {
    Hello { context: "binder".into(), call_slots: true, pid: 0 }
}

#[test]
fn a_name_no_context_can_have_is_refused() {
    let folder = Folder::new();
    for context in [String::new(), "x".repeat(256)] {
        let error =
            BrokerConnection::open(&folder.path, Hello { context, ..hello() }).expect_err("no such name");
        assert!(error.to_string().contains("1 to 255 bytes"), "{error}");
    }
}

#[test]
fn whoever_listens_there_and_is_no_broker_is_named_so() {
    let folder = Folder::new();
    let listener = seqpacket::listen(&directory::socket(&folder.path)).expect("listens");
    let stranger = std::thread::spawn(move || {
        seqpacket::poll(listener.as_fd(), 10_000).expect("poll");
        let client = seqpacket::accept(listener.as_fd()).expect("a client");
        let mut bytes = [0; framing::HELLO_MAX];
        seqpacket::recv(client.as_fd(), &mut bytes, &mut Vec::new(), Wait::Forever).expect("hello");
        seqpacket::send(client.as_fd(), b"220 mail", &[], Wait::Forever).expect("sent");
    });
    let error = BrokerConnection::open(&folder.path, hello()).expect_err("no broker");
    assert!(error.to_string().contains("no broker of this program"), "{error}");
    stranger.join().expect("ended");
}

#[test]
fn a_stopped_broker_is_named_so() {
    let folder = Folder::new();
    let _listener = seqpacket::listen(&directory::socket(&folder.path)).expect("listens");
    let open = directory::ensure(&folder.path).expect("there");
    let joined = BrokerConnection::join(&open, &folder.path, &hello(), Duration::from_millis(10));
    let Err(Failed::For(why)) = joined else { panic!("nobody answers") };
    assert!(why.contains("has not answered") && why.contains("is it stopped?"), "{why}");
}

#[test]
fn a_broker_of_another_version_is_understood() {
    let refused = Reception::Refused { errno: 71, why: "it speaks version 9, this program 1".into() };
    let text = admitted(&refused.encode(), Vec::new()).expect_err("refused");
    assert!(text.contains("speaks version 9") && text.contains("EPROTO"), "{text}");
    let welcome = Reception::Welcome { proc: ProcId(1), pid: 2, sizes: [4096; 3] };
    assert!(admitted(&welcome.encode(), Vec::new()).is_err(), "no descriptors");
}

impl BrokerConnection {
    /// Sends bytes that no correct client would send.
    pub(crate) fn send_raw(&self, bytes: &[u8]) {
        seqpacket::send(self.socket.as_fd(), bytes, &[], Wait::No).expect("sent");
    }
}
