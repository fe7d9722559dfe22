//! Limits of one process, on real sockets: the deadline of its hello, and its descriptors.
//! Not here: the rules alone (`budget`, `turns`, `notices`), several processes (`siege`).

use std::time::Instant;

use super::*;

#[test]
fn one_who_says_nothing_is_dropped_after_its_patience_and_clients_stay() {
    let patience = Duration::from_millis(300);
    let broker = Broker::start_with(Folder::new(), patience);
    let mut client = Tester::open(&broker.folder);
    let began = Instant::now();
    let raw: Vec<_> = (0..3)
        .map(|_| seqpacket::connect(&directory::socket(&broker.folder.path), PATIENCE).expect("connected"))
        .collect();
    assert!(broker.hears().contains("said nothing"));
    assert!(began.elapsed() >= patience);
    for raw in &raw {
        let got = seqpacket::recv(raw.as_fd(), &mut [0; 8], &mut Vec::new(), Wait::Forever).expect("ended");
        assert_eq!(got.bytes, 0);
    }
    assert_eq!(client.ask(Request::FreeBuffer { offset: 0 }).0, 0);
    // The others of the same moment are counted, not reported.
    let raw = seqpacket::connect(&directory::socket(&broker.folder.path), PATIENCE).expect("connected");
    std::thread::sleep(super::super::notices::PAUSE);
    drop(raw);
    let _again = seqpacket::connect(&directory::socket(&broker.folder.path), PATIENCE).expect("connected");
    assert!(broker.hears().contains("such events before it"));
}

/// Needs a low limit of open files, which the processes of these tests share: see `exhausted`.
#[test]
#[ignore = "`exhausted` runs it in a process of its own"]
fn a_hoarder_is_refused_while_others_are_served() {
    sys::limits::set_open_files(256).expect("a lower limit");
    let broker = Broker::start(Folder::new());
    let mut client = Tester::open(&broker.folder);
    let mut hoard = Vec::new();
    let error = loop {
        match BrokerConnection::open(&broker.folder.path, hello()) {
            Ok(opened) => hoard.push(opened),
            Err(error) => break error.to_string(),
        }
    };
    assert!(error.contains("its share of the broker's descriptors"), "{error}");
    assert!(broker.hears().contains("its share"));
    assert!(hoard.len() >= 16, "{}", hoard.len());
    let began = Instant::now();
    for _ in 0..1000 {
        BrokerConnection::open(&broker.folder.path, hello()).expect_err("still full");
    }
    let most = 5 + began.elapsed().as_secs() as usize;
    assert!(broker.told.try_iter().count() <= most, "one notice per second");
    assert_eq!(client.ask(Request::FreeBuffer { offset: 0 }).0, 0);
    hoard.pop();
    // Noticed by the broker soon.
    while BrokerConnection::open(&broker.folder.path, hello()).is_err() {
        std::thread::yield_now();
    }
}
