//! Errors of clients when no descriptors are left. It runs in its own process, because all tests of one process
//! share the limit.

use sys::errno::EMFILE;

use super::*;

/// Opens files until no descriptor is left, then closes some. The broker, a thread of this process, may still be
/// closing descriptors of the previous step: waits until nothing changes.
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
    let mut answer = [0; framing::RECEPTION_MAX];
    let got = seqpacket::recv(raw.as_fd(), &mut answer, &mut Vec::new(), Wait::Forever).expect("answered");
    match framing::Reception::decode(&answer[..got.bytes]) {
        Some(framing::Reception::Refused { errno, why }) => {
            assert_eq!(sys::errno::name(errno), Some("EMFILE"));
            why
        }
        other => panic!("{other:?}"),
    }
}

#[test]
fn without_descriptors_everyone_hears_so() {
    alone("broker::tests::exhausted::in_a_process_of_its_own");
    alone("broker::tests::limits::a_hoarder_is_refused_while_others_are_served");
}

fn alone(name: &str) {
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
    sys::limits::set_open_files(64).expect("a lower limit");
    let broker = Broker::start(Folder::new());
    let (mut server, _, mut client) = acquainted(&broker.folder);
    client.transact(&Transaction::call(1), &[]);
    let channel = server.channel();
    let socket = directory::socket(&broker.folder.path);

    // One descriptor for the socket, none for the broker's end of it.
    let full = leave_free(1);
    let raw = seqpacket::connect(&socket, PATIENCE).expect("the last descriptor");
    assert!(reception(&raw).contains("no descriptor left"));
    assert!(broker.hears().starts_with("refused process"));
    drop((full, raw));

    // One for each end, and one of the four memories.
    let full = leave_free(3);
    let raw = seqpacket::connect(&socket, PATIENCE).expect("connected");
    seqpacket::send(raw.as_fd(), &hello().encode(), &[], Wait::No).expect("sent");
    let why = reception(&raw);
    assert!(why.contains("making its") && why.contains("EMFILE"), "{why}");
    broker.hears();
    drop((full, raw));

    // A transaction whose descriptors the broker cannot take fails for its sender.
    let exe = File::open("/proc/self/exe").expect("own executable");
    let full = leave_free(1);
    let two = Transaction::call(1).fd().fd();
    assert_eq!(client.transact(&two, &[&exe, &exe]), (0, br::FAILED_REPLY, EMFILE));
    drop(full);

    // Too many descriptors for the client: all or none.
    let full = leave_free(1);
    for _ in 0..2 {
        let (errno, fds) = client.line.fetch(THREAD, &Request::TakeChannel { channel }).expect("alive");
        assert_eq!((errno, fds.len()), (EMFILE, 0));
    }
    drop(full);

    // Opening says what is missing, and works again once there is room.
    let full = leave_free(0);
    let text = BrokerConnection::open(&broker.folder.path, hello()).expect_err("no descriptor").to_string();
    assert!(text.contains("EMFILE"), "{text}");
    drop(full);
    drop(Tester::open(&broker.folder));
    drop((client, server));
    broker.ends();
}
