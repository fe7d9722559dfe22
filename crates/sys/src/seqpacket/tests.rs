//! Tests on real sockets.

use super::*;
use std::fs::File;
use std::io::{Read, Write};
use std::os::fd::AsFd;

use crate::private_folder::PrivateFolder;

/// Generous: no test waits so long.
const PATIENCE: Duration = Duration::from_secs(600);

fn pair() -> (OwnedFd, OwnedFd) {
    super::pair().expect("pair")
}

fn receive(socket: &OwnedFd, room: usize) -> (Vec<u8>, Vec<OwnedFd>, Got) {
    let (mut bytes, mut descriptors) = (vec![0; room], Vec::new());
    let got = recv(socket.as_fd(), &mut bytes, &mut descriptors, Wait::No).expect("a message");
    bytes.truncate(got.bytes);
    (bytes, descriptors, got)
}

#[test]
fn messages_keep_their_boundaries_and_bring_descriptors() {
    let (here, there) = pair();
    let exe = File::open("/proc/self/exe").expect("own executable");
    send(here.as_fd(), b"with two", &[exe.as_fd(), exe.as_fd()], Wait::Forever).expect("sent");
    send(here.as_fd(), b"with none", &[], Wait::No).expect("sent");
    let (bytes, descriptors, got) = receive(&there, 64);
    assert_eq!((bytes.as_slice(), descriptors.len()), (&b"with two"[..], 2));
    assert!(!got.cut && !got.descriptors_lost);
    for descriptor in descriptors {
        let mut magic = [0; 4];
        use std::os::unix::fs::FileExt;
        File::from(descriptor).read_exact_at(&mut magic, 0).expect("readable");
        assert_eq!(&magic, b"\x7fELF");
    }
    let (bytes, descriptors, got) = receive(&there, 4);
    assert_eq!((bytes.as_slice(), descriptors.len(), got.cut), (&b"with"[..], 0, true));
    let nothing = recv(there.as_fd(), &mut [0; 4], &mut Vec::new(), Wait::No).expect_err("nothing left");
    assert_eq!(nothing.kind(), io::ErrorKind::WouldBlock);
}

#[test]
fn as_many_descriptors_go_as_one_message_takes() {
    let (here, there) = pair();
    let exe = File::open("/proc/self/exe").expect("own executable");
    let many = vec![exe.as_fd(); MAX_DESCRIPTORS + 1];
    let error = send(here.as_fd(), b"x", &many, Wait::No).expect_err("one too many");
    assert_eq!(error.raw_os_error(), Some(libc::EINVAL));
    send(here.as_fd(), b"x", &many[1..], Wait::No).expect("as many as fit");
    let (_, descriptors, got) = receive(&there, 8);
    assert_eq!((descriptors.len(), got.descriptors_lost), (MAX_DESCRIPTORS, false));
}

#[test]
fn the_end_is_seen_by_reading_by_looking_and_by_sending() {
    let (here, there) = pair();
    assert_eq!(poll(there.as_fd(), 0).expect("poll"), Seen { readable: false, hung_up: false });
    drop(here);
    assert!(poll(there.as_fd(), 0).expect("poll").hung_up);
    assert_eq!(receive(&there, 8).2.bytes, 0);
    let error = send(there.as_fd(), b"x", &[], Wait::No).expect_err("nobody reads");
    assert_eq!(error.raw_os_error(), Some(libc::EPIPE));
}

#[test]
fn who_connects_is_known_from_the_kernel() {
    let folder = PrivateFolder::new("test").expect("a folder");
    let path = folder.path().join("socket");
    assert_eq!(connect(&path, PATIENCE).expect_err("no socket").raw_os_error(), Some(libc::ENOENT));
    let listener = listen(&path).expect("listens");
    assert_eq!(accept(listener.as_fd()).expect_err("nobody").kind(), io::ErrorKind::WouldBlock);
    assert_eq!(listen(&path).expect_err("taken").raw_os_error(), Some(libc::EADDRINUSE));
    let client = connect(&path, PATIENCE).expect("connects");
    let server = accept(listener.as_fd()).expect("one wants to");
    let euid = std::os::unix::fs::MetadataExt::uid(&std::fs::metadata(&path).expect("the socket's file"));
    assert_eq!(peer(server.as_fd()).expect("who"), Peer { pid: std::process::id(), euid });
    if let Some(context) = peer_security(client.as_fd()) {
        assert!(!context.is_empty() && !context.contains(&0));
    }
    send(client.as_fd(), b"hello", &[], Wait::No).expect("sent");
    let mut text = [0; 8];
    assert_eq!(File::from(server).read(&mut text).expect("read"), 5);
    drop(listener);
    assert_eq!(
        connect(&path, PATIENCE).expect_err("nobody listens").raw_os_error(),
        Some(libc::ECONNREFUSED)
    );
    let long = folder.path().join("x".repeat(120));
    assert_eq!(connect(&long, PATIENCE).expect_err("too long").raw_os_error(), Some(libc::ENAMETOOLONG));
}

#[test]
fn a_full_backlog_is_waited_for_until_the_limit() {
    let folder = PrivateFolder::new("test").expect("a folder");
    let path = folder.path().join("socket");
    let listener = listen(&path).expect("listens");
    // SAFETY: listen takes integers only.
    check(unsafe { libc::listen(listener.as_raw_fd(), 0) }).expect("a shorter backlog");
    let _first = connect(&path, PATIENCE).expect("there is room for one");
    let limit = Duration::from_millis(200);
    let start = Instant::now();
    let error = connect(&path, limit).expect_err("nobody accepts");
    assert_eq!(error.raw_os_error(), Some(libc::ETIMEDOUT));
    assert!(start.elapsed() >= limit);
}

#[test]
fn a_message_arrives_whole_and_the_end_is_seen() {
    let (here, there) = pair();
    let (mut here, mut there) = (File::from(here), File::from(there));
    here.write_all(b"one").expect("write");
    here.write_all(b"two").expect("write");
    let mut bytes = [0; 8];
    assert_eq!(there.read(&mut bytes).expect("read"), 3);
    assert_eq!(&bytes[..3], b"one");
    drop(here);
    assert_eq!(there.read(&mut bytes).expect("read"), 3);
    assert_eq!(there.read(&mut bytes).expect("end"), 0);
}
