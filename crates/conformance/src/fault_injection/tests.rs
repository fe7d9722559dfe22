//! Tests, on a scripted driver in memory, that each fault has its effect and that the suite notices it.

use std::collections::VecDeque;
use std::sync::Mutex;

use driver::fixture::IdleConnection;

use super::*;
use crate::prelude::*;

/// A driver that consumes the first command of each write and answers reads from a script.
struct Scripted {
    script: Mutex<VecDeque<Vec<u8>>>,
    rest: IdleConnection,
}

impl Scripted {
    fn process(fault: Option<Fault>, script: &[&[(u32, &[u8])]]) -> RawProcess {
        let read = |parts: &&[(u32, &[u8])]| {
            parts.iter().flat_map(|(word, payload)| [&word.to_ne_bytes()[..], payload].concat()).collect()
        };
        let script = Mutex::new(script.iter().map(read).collect());
        let inner: Arc<dyn Probe> = Arc::new(Self { script, rest: IdleConnection::default() });
        RawProcess::new(match fault {
            Some(fault) => Arc::new(FaultyConnection { inner, faults: vec![fault] }),
            None => inner,
        })
    }
}

impl Connection for Scripted {
    fn write_read(&self, exchange: &mut Exchange<'_>) -> io::Result<()> {
        exchange.write_consumed = split(exchange.write).first().map_or(0, |(_, payload)| 4 + payload.len());
        if exchange.write.first() == Some(&0xff) {
            return Err(io::ErrorKind::InvalidInput.into());
        }
        if exchange.read.is_empty() {
            return Ok(());
        }
        let next = self.script.lock().expect("no test panics while reading").pop_front();
        let bytes = next.ok_or(io::ErrorKind::WouldBlock)?;
        exchange.read[..bytes.len()].copy_from_slice(&bytes);
        exchange.read_consumed = bytes.len();
        Ok(())
    }

    fn poll_readable(&self, _timeout_ms: i32) -> io::Result<bool> {
        Ok(true)
    }

    fn thread_exit(&self) -> io::Result<()> {
        Ok(())
    }

    driver::forward_connection!(rest);
}

impl Probe for Scripted {
    fn device(&self) -> Option<&BinderFd> {
        None
    }

    fn map_base(&self) -> Option<u64> {
        None
    }

    fn unmap(&mut self) -> bool {
        false
    }
}

fn reply() -> Vec<u8> {
    TransactionData::default().as_bytes().to_vec()
}

#[test]
fn faults_are_named_both_ways() {
    for &(name, fault) in FAULTS {
        assert_eq!(name.parse(), Ok(fault));
        assert_eq!(fault.to_string(), name);
    }
    assert!("other".parse::<Fault>().expect_err("unknown").contains("drop-noop"));
}

#[test]
fn each_spoilt_stream_has_another_shape() {
    let reply = reply();
    let answer: &[(u32, &[u8])] = &[(br::NOOP, &[]), (br::TRANSACTION_COMPLETE, &[]), (br::REPLY, &reply)];
    let death: &[(u32, &[u8])] = &[(br::NOOP, &[]), (br::DEAD_REPLY, &[])];
    let loss: &[(u32, &[u8])] = &[(br::NOOP, &[]), (br::DEAD_BINDER, &[0; 8])];
    let pending: &[(u32, &[u8])] =
        &[(br::NOOP, &[]), (br::TRANSACTION_PENDING_FROZEN, &[]), (br::ONEWAY_SPAM_SUSPECT, &[])];
    let pair = [0; 16];
    let export: &[(u32, &[u8])] = &[
        (br::SPAWN_LOOPER, &[]),
        (br::INCREFS, &pair),
        (br::ACQUIRE, &pair),
        (br::TRANSACTION_COMPLETE, &[]),
    ];
    for (fault, script, want) in [
        (None, answer, "NOOP COMPLETE REPLY"),
        (None, export, "SPAWN_LOOPER INCREFS ACQUIRE COMPLETE"),
        (Some(Fault::NeverSpawn), export, "NOOP INCREFS ACQUIRE COMPLETE"),
        (Some(Fault::MuteReferences), export, "SPAWN_LOOPER COMPLETE"),
        (Some(Fault::DropNoop), answer, "COMPLETE REPLY"),
        (Some(Fault::ReplyFirst), answer, "NOOP REPLY COMPLETE"),
        (Some(Fault::FailForDead), death, "NOOP FAILED_REPLY"),
        (None, pending, "NOOP TRANSACTION_PENDING_FROZEN ONEWAY_SPAM_SUSPECT"),
        (Some(Fault::PlainCompletions), pending, "NOOP COMPLETE COMPLETE"),
        (Some(Fault::ForgeSender), answer, "NOOP COMPLETE REPLY"),
        (None, loss, "NOOP DEAD_BINDER"),
        (Some(Fault::LoseDeaths), loss, "NOOP"),
        (Some(Fault::FailForFrozen), &[(br::FROZEN_REPLY, &[])], "FAILED_REPLY"),
        (Some(Fault::LoseFreezes), &[(br::NOOP, &[]), (br::FROZEN_BINDER, &[0; 16])], "NOOP"),
        (Some(Fault::ClaimAllWritten), answer, "NOOP COMPLETE REPLY"),
    ] {
        let got = Scripted::process(fault, &[script]).read_room(ROOM).expect("the script has a read");
        let got = got.expect("it is not empty");
        assert_eq!(got.shape(), want, "{fault:?}");
    }
}

#[test]
fn a_forged_sender_is_another_one() {
    let call = TransactionData { sender_pid: 7, sender_euid: 8, code: 9, ..TransactionData::default() };
    let script: &[(u32, &[u8])] = &[(br::TRANSACTION, call.as_bytes())];
    let sender = |fault| {
        let call = Scripted::process(fault, &[script]).read().and_then(|got| got.call()).expect("a call");
        (call.sender_pid, call.sender_euid, call.code)
    };
    assert_eq!(sender(None), (7, 8, 9));
    assert_eq!(sender(Some(Fault::ForgeSender)), (8, 9, 9));
}

#[test]
fn a_lie_about_what_was_written_is_told() {
    let mut commands = Commands::default();
    commands.acquire(Handle(1));
    commands.acquire(Handle(2));
    assert_eq!(Scripted::process(None, &[]).write_some(&commands), Ok(8));
    assert_eq!(Scripted::process(Some(Fault::ClaimAllWritten), &[]).write_some(&commands), Ok(16));
    assert_eq!(split(commands.as_bytes())[0].0, bc::ACQUIRE);
}

#[test]
fn objects_are_dropped_from_what_carries_them_only() {
    let (mut with, mut bare) = (Commands::default(), Commands::default());
    for (commands, offsets) in [(&mut with, &[0, 24][..]), (&mut bare, &[])] {
        let payload = Payload { data: &[], offsets, ..Payload::default() };
        commands.acquire(Handle(1));
        commands.transaction(Handle(0), 3, TransactionFlags::CALL, payload);
        commands.transaction(Handle(2), 3, TransactionFlags::CALL, payload);
        commands.reply(TransactionFlags::CALL, Payload { buffers_size: Some(8), ..payload });
    }
    let sizes = |bytes: &[u8]| {
        let sized = |(word, payload): (u32, &[u8])| {
            let data = TransactionData::read_from_prefix(payload);
            (word, data.map_or(0, |(data, _)| data.offsets_size))
        };
        split(bytes).into_iter().map(sized).collect::<Vec<_>>()
    };
    let want = |to_manager, others| {
        [(bc::ACQUIRE, 0), (bc::TRANSACTION, to_manager), (bc::TRANSACTION, others), (bc::REPLY_SG, others)]
    };
    assert_eq!(sizes(with.as_bytes()), want(16, 16));
    assert_eq!(sizes(&without_objects(with.as_bytes())), want(16, 0));
    assert_eq!(sizes(&without_objects(bare.as_bytes())), want(0, 0));
}

#[test]
fn a_refusal_is_hidden_and_silence_is_not() {
    let refused =
        |fault| Scripted::process(fault, &[]).write_refused(&[0xff; 4]).0.map_err(|error| error.kind());
    assert_eq!(refused(None), Err(io::ErrorKind::InvalidInput));
    assert_eq!(refused(Some(Fault::HideErrors)), Ok(()));
    assert!(
        Scripted::process(Some(Fault::HideErrors), &[]).read_now().expect("nothing is no error").is_none()
    );
}

#[test]
fn the_tools_notice_what_is_wrong() {
    let got =
        Scripted::process(None, &[&[(br::NOOP, &[]), (br::FAILED_REPLY, &[])]]).read().expect("one read");
    let Err(Stop::Fail(why)) = expect_work("a call", &got, "COMPLETE REPLY") else {
        panic!("it was refused")
    };
    assert_eq!(why, "a call: expected \"COMPLETE REPLY\", got \"FAILED_REPLY\"");
    assert!(got.call().is_err() && got.reply().is_err());
    let cut =
        Scripted::process(None, &[&[(br::REPLY, &[0; 8])]]).read().expect_err("a reply without its payload");
    assert!(matches!(cut, Stop::Fail(why) if why.contains("ends inside BR_REPLY")));
    let loud = Scripted::process(None, &[&[(br::TRANSACTION_COMPLETE, &[])]]);
    assert!(loud.expect_silence("nothing").is_err());
    assert_eq!(Scripted::process(None, &[&[(br::NOOP, &[])]]).expect_silence("fillers are no work"), Ok(()));
}

#[test]
fn fillers_are_waited_out_and_split_answers_joined() {
    let reply = reply();
    let process = Scripted::process(
        None,
        &[&[(br::NOOP, &[])], &[(br::NOOP, &[]), (br::TRANSACTION_COMPLETE, &[])], &[(br::REPLY, &reply)]],
    );
    assert_eq!(process.ending().expect("the call ends").shape(), "COMPLETE REPLY");
}
