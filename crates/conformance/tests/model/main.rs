//! Random streams of commands through a driver, compared step by step with a small model of what `contract/` promises.
//! `BINDERPERF_TEST_DRIVER` says which driver: embedded (the default) or kernel, which must be the C driver.
//!
//! - [`steps`]: the streams. - [`reference`]: the model. - [`real`]: the driver.
//! - [`payload`]: what it is given to carry.
//!
//! A failure shrinks to the shortest stream that still fails. `PROPTEST_CASES` asks for more streams.

mod payload;
mod real;
mod reference;
mod steps;

use std::sync::Arc;

use needs::need;
use proptest::test_runner::{Config, TestCaseError, TestError, TestRunner};

use real::Ground;
use reference::Reference;
use steps::{Op, Step};

/// Streams that each property is tried with.
const CASES: u32 = 96;
/// The same on a kernel's driver, in an emulated guest.
const KERNEL_CASES: u32 = 24;
const LONGEST: usize = 80;

fn runner() -> TestRunner {
    let cases = std::env::var("PROPTEST_CASES")
        .ok()
        .and_then(|text| text.parse().ok())
        .unwrap_or(if is_kernel() { KERNEL_CASES } else { CASES });
    let config = Config { cases, failure_persistence: None, max_shrink_iters: 4000, ..Config::default() };
    TestRunner::new(config)
}

/// Runs a stream on both, and stops where they differ.
fn compare(
    ground: &Arc<Ground>,
    call_slots: bool,
    lose_release_after: Option<u32>,
    stream: &[Step],
) -> Result<(), TestCaseError> {
    let mut model = Reference::new(call_slots);
    let mut real = ground.open(call_slots, lose_release_after);
    let acquaintance = steps::acquaintance();
    for (number, step) in acquaintance.iter().chain(stream).enumerate() {
        if !model.is_open(step.proc) {
            continue;
        }
        let number = number as u32;
        let command = model.resolve(number, step);
        let want = model.step(step, number, &command);
        let got = real.step(step, number, &command);
        if got != want {
            let place = (number as usize).checked_sub(acquaintance.len());
            let place = place.map_or("getting acquainted".to_owned(), |at| format!("step {at}"));
            let text =
                format!("{place}, {step:?}, meant {command:?}\n  the model: {want:?}\n  the driver: {got:?}");
            return Err(TestCaseError::fail(text));
        }
    }
    Ok(())
}

fn is_kernel() -> bool {
    std::env::var("BINDERPERF_TEST_DRIVER").is_ok_and(|driver| driver == "kernel")
}

fn hold(ground: &Arc<Ground>, call_slots: bool) {
    let result = runner().run(&steps::stream(LONGEST), |stream| compare(ground, call_slots, None, &stream));
    match result {
        Ok(()) => {}
        Err(TestError::Fail(why, stream)) => panic!("{}", told(&why.to_string(), &stream)),
        Err(other) => panic!("{other}"),
    }
}

fn told(why: &str, stream: &[Step]) -> String {
    let steps: String = stream.iter().enumerate().map(|(at, step)| format!("  {at}: {step:?}\n")).collect();
    format!("{why}\nafter getting acquainted:\n{steps}")
}

#[test]
fn random_streams_do_what_the_contract_says() {
    let ground = if is_kernel() { need!(Ground::kernel()) } else { Ground::embedded() };
    hold(&ground, false);
}

#[test]
fn random_streams_do_what_the_contract_says_through_call_slots() {
    hold(&Ground::embedded(), true);
}

/// The model would be worth nothing if it saw no fault. A lost release shows in more than one way: no
/// notification of the owner, or a handle that still works. So the shortest stream is tried without the
/// loss: it must fail because of that alone.
#[test]
fn a_lost_release_is_found_and_shrunk_to_a_few_steps() {
    let ground = Ground::embedded();
    let result = runner().run(&steps::stream(LONGEST), |stream| compare(&ground, false, Some(0), &stream));
    let Err(TestError::Fail(why, stream)) = result else { panic!("not found: {result:?}") };
    let text = told(&why.to_string(), &stream);
    let release = |step: &Step| matches!(step.op, Op::Count { strong: true, up: false, .. });
    assert!(stream.iter().any(release), "nothing was lost: {text}");
    assert!(stream.len() <= 12, "not shrunk: {text}");
    compare(&ground, false, None, &stream).expect("holds without the loss");
}
