//! Room: what clients hear when there are no descriptors left. In a process of its own, because all
//! tests of this one share the limit.

use super::*;

/// Opens files until no descriptor is left, then gives some back. The broker, a thread of this process,
/// may still be closing what the last step gave it: waits until nothing changes.
fn leave_free(count: usize) -> Vec<File> {
    let open = || std::fs::read_dir("/proc/self/fd").expect("procfs").count();
    let (mut seen, mut same) = (open(), 0);
    while same < 5 {
        std::thread::sleep(std::time::Duration::from_millis(10));
        same = if open() == seen { same + 1 } else { 0 };
        seen = open();
    }
    let mut files = Vec::new();
    while let Ok(file) = File::open("/dev/null") {
        files.push(file);
    }
    files.truncate(files.len() - count);
    files
}

fn reception(raw: &OwnedFd) -> String {
    let mut answer = [0; wire::RECEPTION_MAX];
    let got = seqpacket::recv(raw.as_fd(), &mut answer, &mut Vec::new(), Wait::Forever).expect("answered");
    match wire::Reception::decode(&answer[..got.bytes]) {
        Some(wire::Reception::Refused { errno, why }) => {
            assert_eq!(sys::errno::name(errno), Some("EMFILE"));
            why
        }
        other => panic!("{other:?}"),
    }
}

#[test]
fn without_descriptors_everyone_hears_so() {
    let name = "embedded::broker::tests::exhausted::in_a_process_of_its_own";
    let exe = std::env::current_exe().expect("own executable");
    let output = std::process::Command::new(exe)
        .args([name, "--exact", "--ignored", "--nocapture"])
        .output()
        .expect("started");
    let text = String::from_utf8_lossy(&output.stdout);
    let errors = String::from_utf8_lossy(&output.stderr);
    assert!(output.status.success() && text.contains("1 passed"), "{text}\n{errors}");
}

#[test]
#[ignore = "the test above runs it in a process of its own"]
fn in_a_process_of_its_own() {
    sys::open_files::allow_only(64).expect("a lower limit");
    let broker = Broker::start(Folder::new());
    let mut client = Tester::open(&broker.folder);
    let socket = directory::socket(&broker.folder.0);

    // One descriptor for the socket, none for the broker's end of it.
    let full = leave_free(1);
    let raw = seqpacket::connect(&socket).expect("the last descriptor");
    assert!(reception(&raw).contains("no descriptor left"));
    assert!(broker.hears().starts_with("refused process"));
    drop((full, raw));

    // One for each end, and one of the four memories.
    let full = leave_free(3);
    let raw = seqpacket::connect(&socket).expect("connected");
    seqpacket::send(raw.as_fd(), &hello().encode(), &[], Wait::No).expect("sent");
    let why = reception(&raw);
    assert!(why.contains("making its") && why.contains("EMFILE"), "{why}");
    broker.hears();
    drop((full, raw));

    // A transaction whose descriptors the broker cannot take fails for its sender.
    let exe = File::open("/proc/self/exe").expect("own executable");
    let full = leave_free(1);
    client.line.send(THREAD, 7, &stand_in::transact(8, 0), &[exe.as_fd(), exe.as_fd()]).expect("sent");
    assert_eq!(client.answer().1, [0, 0, 24, 0], "no bytes, no descriptors, EMFILE");
    drop(full);

    // Descriptors that the client cannot take: all or none.
    let other = Tester::open(&broker.folder);
    client.send(stand_in::CONNECT_ALL);
    client.answer();
    let full = leave_free(1);
    for _ in 0..2 {
        let (errno, fds) = client.line.fetch(THREAD, &Request::TakeChannel { channel: 1 }).expect("alive");
        assert_eq!((errno, fds.len()), (24, 0));
    }
    drop((full, other));

    // Opening says what is missing, and works again once there is room.
    let full = leave_free(0);
    let text = Line::open(&broker.folder.0, hello()).expect_err("no descriptor").to_string();
    assert!(text.contains("EMFILE"), "{text}");
    drop(full);
    drop(Tester::open(&broker.folder));
    drop(client);
    broker.ends();
}
