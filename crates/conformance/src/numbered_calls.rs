//! Calls with a number each, whose content and length follow from it, so that their receiver can check them.
//! Not here: killing their sender (`exit::killed`).

use abi::codes::object;
use abi::{Handle, Return, TransactionFlags};

use super::check::{Stop, Verdict};
use super::payload::{Draft, fd};
use super::raw_process::{Got, Node, RawProcess, expect_work};

/// Code of the oneway calls.
pub(super) const ONEWAY: u32 = 1;
/// Code of the calls that wait.
pub(super) const CALL: u32 = 2;

/// The bytes after the object in the call or reply of this number; content and length differ for each.
pub(super) fn text(number: u64) -> Vec<u8> {
    let length = 8 + number as usize * 7919 % 12_000;
    let mut bytes: Vec<u8> = (0..length as u64).map(|at| (at * 31 + number * 101) as u8).collect();
    bytes[..8].copy_from_slice(&number.to_ne_bytes());
    bytes
}

fn send(process: &RawProcess, target: Handle, code: u32, number: u64) -> Result<Got, Stop> {
    if code == CALL {
        return process.call_with(target, code, Draft::of(&fd(1)).bytes(&text(number)).payload());
    }
    let draft = Draft::of(&Node::number(77).object(object::BINDER)).bytes(&text(number));
    process.send(target, code, TransactionFlags::ONEWAY, draft.payload())?;
    let ends = |item: &Return| matches!(item, Return::TransactionComplete | Return::FailedReply);
    process.read_on(Got::default(), |got| got.returns.iter().any(ends))
}

/// Sends numbered calls of both kinds forever. A oneway call without buffer space is repeated.
pub(super) fn flood(process: &RawProcess, target: Handle) -> Verdict {
    let mut oneways = 0;
    for calls in 0.. {
        while oneways < calls * 3 {
            let got = send(process, target, ONEWAY, oneways)?;
            process.acknowledge(&got)?;
            if got.returns.contains(&Return::TransactionComplete) {
                oneways += 1;
            }
        }
        let got = send(process, target, CALL, calls)?;
        process.acknowledge(&got)?;
        process.free(&got.reply()?)?;
    }
    Ok(())
}

/// Answers every call with the number of bytes that its number demands, forever.
pub(super) fn answer_all(process: &RawProcess) -> Verdict {
    for number in 0.. {
        process.free(&process.read()?.call()?)?;
        expect_work("answering a call", &process.answer(&text(number))?, "COMPLETE")?;
    }
    Ok(())
}
