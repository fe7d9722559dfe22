//! Calls that threads mark as the embedded driver does, and the transactions that a stream hands out.
//! Not here: the embedded driver itself (`tests/cli/top.rs`).

use std::fs::File;
use std::io::Write;
use std::path::Path;
use std::sync::Mutex;
use std::sync::mpsc::channel;

use live::stream::{Lost, Observer, Settings, Stream};
use needs::{Lack, Need, need};
use trace::event::{Event, Names};
use trace::model::{Outcome, Transaction};

const CALLS: u32 = 5000;

/// One at a time: a process has one instance.
static ONE: Mutex<()> = Mutex::new(());

fn stream(keep_bytes: usize) -> Result<Stream, Lack> {
    let settings = Settings { keep_bytes, ..Settings::of_calls() };
    Stream::start(&settings).map_err(|error| Need::Tracefs.lacks(error))
}

#[derive(Default)]
struct Seen {
    events: usize,
    newest: u64,
    calls: Vec<Transaction>,
}

impl Observer for Seen {
    fn event(&mut self, event: &Event, _: &Names) {
        assert!(event.ts >= self.newest, "events come in the order of time");
        self.newest = event.ts;
        self.events += 1;
    }

    fn ended(&mut self, call: &Transaction, _: &Names) {
        self.calls.push(call.clone());
    }
}

/// Marks calls of one thread to another, of which the last is not answered.
fn make_calls(folder: &Path, count: u32) {
    let open = || File::options().write(true).open(folder.join("trace_marker")).expect("a marker");
    let sent = |file: &mut File, number: u32, reply: u32| {
        let text = format!(
            "binder_transaction: transaction={number} dest_node=7 dest_proc=9 dest_thread=0 reply={reply} flags=0x10 \
             code=0x3"
        );
        file.write_all(text.as_bytes()).expect("marked");
    };
    let received = |file: &mut File, number: u32| {
        let text = format!("binder_transaction_received: transaction={number}");
        file.write_all(text.as_bytes()).expect("marked");
    };
    let (to_server, requests) = channel();
    let (to_client, replies) = channel();
    std::thread::scope(|scope| {
        scope.spawn(move || {
            let mut file = open();
            for number in requests {
                received(&mut file, number);
                if number + 2 < 2 * count {
                    sent(&mut file, number + 1, 1);
                }
                to_client.send(()).expect("it waits");
            }
        });
        let mut file = open();
        for number in (0..count).map(|call| 2 * call) {
            sent(&mut file, number, 0);
            to_server.send(number).expect("it serves");
            replies.recv().expect("it answers");
            if number + 2 < 2 * count {
                received(&mut file, number + 1);
            }
        }
        drop(to_server);
    });
}

#[test]
fn each_call_comes_out_once_and_the_saved_events_say_the_same() {
    let _one = ONE.lock();
    let mut stream = need!(stream(64 << 20));
    let folder = stream.recorder().folder().expect("it runs").to_owned();
    let mut seen = Seen::default();
    std::thread::scope(|scope| {
        let calls = scope.spawn(|| make_calls(&folder, CALLS));
        while !calls.is_finished() {
            stream.poll(&mut seen).expect("read");
        }
    });
    stream.flush(&mut seen).expect("read");
    assert_eq!(stream.lost().expect("it runs"), Lost::default());
    assert_eq!((seen.calls.len(), seen.events), (CALLS as usize - 1, 4 * CALLS as usize - 2));
    assert!(
        seen.calls.iter().all(|call| call.is_sound() && call.outcome == Outcome::Replied && call.code == 3)
    );
    let open: Vec<_> = stream.open_calls().collect();
    assert_eq!(open.len(), 1, "{open:?}");
    assert_eq!((open[0].debug_id, open[0].received.is_some()), (2 * CALLS as i32 - 2, true));
    let own = sys::private_folder::PrivateFolder::new("live").expect("a folder");
    let place = own.path().join("saved.bptrace");
    let bytes = stream.save(&place).expect("written");
    assert_eq!(std::fs::metadata(&place).expect("there").len(), bytes);
    let mut reader = trace::open(File::open(&place).expect("there")).expect("a trace");
    let (mut model, mut saved) = (trace::model::Model::new(), 0);
    while let Some(event) = reader.next() {
        model.take(&event, reader.names(), &mut |_| saved += 1);
    }
    assert_eq!(saved, seen.calls.len());
    assert!(reader.report().is_whole(), "{}", reader.report());
    assert_eq!(stream.end(), [""; 0]);
    assert!(!folder.exists());
}

#[test]
fn overwritten_events_are_counted_and_their_calls_doubtful() {
    let _one = ONE.lock();
    let settings = Settings { buffer_kb: Some(8), ..Settings::of_calls() };
    let mut stream = need!(Stream::start(&settings).map_err(|error| Need::Tracefs.lacks(error)));
    let folder = stream.recorder().folder().expect("it runs").to_owned();
    make_calls(&folder, CALLS);
    let mut seen = Seen::default();
    stream.flush(&mut seen).expect("read");
    let lost = stream.lost().expect("it runs");
    assert!(lost.overwritten > 0 && lost.all() as usize + seen.events >= 4 * CALLS as usize - 2, "{lost:?}");
    make_calls(&folder, 3);
    let mut after = Seen::default();
    stream.flush(&mut after).expect("read");
    assert_eq!(after.calls.iter().filter(|call| call.is_sound()).count(), 2, "{:?}", after.calls);
}

#[test]
fn processes_of_the_embedded_driver_are_asked_as_long_as_it_runs() {
    let _one = ONE.lock();
    let stream = need!(stream(0));
    let folder = stream.recorder().folder().expect("it runs").to_owned();
    assert_eq!(embedded::trace_events::requested(), Some(folder));
    assert_eq!(stream.end(), [""; 0]);
    assert_eq!(embedded::trace_events::requested(), None);
}
