//! The text of Android's throughput tests with many workers: each block of it is a run.
//! Facts: AOSP `binderThroughputTest.cpp` and libhwbinder's `Benchmark_throughput.cpp`; numbers have six digits. Percentiles of
//! the hwbinder test, and of older binder tests, are the middle of one of 128 equal parts of 50 ms, or after a training of twice
//! its longest call. A round of training is no result.

use super::{MOST_RUNS, case, run};
use crate::read::ImportError;
use crate::render::latency::aosp::{BUCKET_NS, HISTOGRAM_NS};
use crate::schema::{Figure, Run, Stated};

const BINDER: &str = "binderThroughputTest";
const HWBINDER: &str = "hwbinderThroughputTest";
const RATE: &str = "iterations per sec:";
const DIGITS: i32 = 6;
const NOTE: &str = "only the figures that the test prints are known: the case /call is the average call, /rate the time for each call of \
                    all workers together (a million us divided by the calls per second)";

/// Whether a text may be an output of one of these tests.
pub(super) fn is_one(text: &str) -> bool {
    text.lines().any(|line| line.trim_start().starts_with(RATE))
}

/// What was read of a block so far.
#[derive(Default)]
struct Block {
    rate: Option<f64>,
    stated: Option<Stated>,
    percentiles: Option<[f64; 4]>,
    workers: u32,
    is_hwbinder: bool,
}

/// Where the reading is.
#[derive(Default)]
struct State {
    block: Block,
    /// Workers that were started since the last block.
    started: u32,
    services: bool,
    training: bool,
    trained_ms: Option<f64>,
    runs: Vec<Run>,
}

/// Reads every run of a text.
pub(super) fn read(text: &str, changed: &str) -> Result<Vec<Run>, ImportError> {
    let mut state = State::default();
    let mut last = 0;
    for (number, line) in (1..).zip(text.lines()) {
        last = number;
        state.line(line, number, changed)?;
    }
    match state.block.rate {
        Some(_) => Err(wrong(last, "it ends before the line \"average:...\" and the percentiles".to_owned())),
        None if state.runs.is_empty() => {
            Err(wrong(last, "it has a round of training and no result".to_owned()))
        }
        None => Ok(state.runs),
    }
}

fn wrong(line: usize, problem: String) -> ImportError {
    ImportError { program: BINDER, line, problem }
}

impl State {
    fn line(&mut self, line: &str, number: usize, changed: &str) -> Result<(), ImportError> {
        let line = line.trim_start();
        if line.starts_with("Start training round") {
            (self.training, self.trained_ms) = (true, None);
        } else if let Some(longest) = line.strip_prefix("Max latency during training:") {
            self.trained_ms = Some(millis(longest, number)?);
        } else if line.starts_with("Completed training round") {
            self.training = false;
            (self.block, self.started) = (Block::default(), 0);
        } else if line.starts_with("Created BinderWorker") {
            self.started += 1;
        } else if line.starts_with("creating service: hwbinderService") {
            self.services = true;
        } else if let Some(rate) = line.strip_prefix(RATE) {
            if self.block.rate.is_some() {
                return Err(wrong(number, "a second rate before the times of the first".to_owned()));
            }
            let rate = positive(rate, number)?;
            let is_hwbinder = std::mem::take(&mut self.services);
            self.block = Block {
                rate: Some(rate),
                workers: std::mem::take(&mut self.started),
                is_hwbinder,
                ..Block::default()
            };
        } else if line.starts_with("average:") {
            self.block.stated = Some(averages(line, number)?);
        } else if line.starts_with("50%:") {
            self.block.percentiles = Some(percentiles(line, number)?);
            self.block.is_hwbinder |= line.ends_with(' ');
            self.end(number, changed)?;
        } else if line.starts_with("error: no data") {
            return Err(wrong(number, "the test had no data".to_owned()));
        }
        Ok(())
    }

    /// Ends a block.
    fn end(&mut self, number: usize, changed: &str) -> Result<(), ImportError> {
        let Block { rate, stated, percentiles, workers, is_hwbinder } = std::mem::take(&mut self.block);
        if self.training {
            return Ok(());
        }
        let (Some(rate), Some(stated), Some(percentiles)) = (rate, stated, percentiles) else {
            return Err(wrong(number, "percentiles without a rate and an average before them".to_owned()));
        };
        if self.runs.len() == MOST_RUNS {
            return Err(wrong(number, format!("more than {MOST_RUNS} runs")));
        }
        let program = if is_hwbinder { HWBINDER } else { BINDER };
        let half = half_bucket(&percentiles, self.trained_ms, is_hwbinder);
        let [p50, p90, p95, p99] = percentiles.map(|ms| {
            let printed = Figure::printed(ms, DIGITS).times(1e6);
            Some(Figure { within: printed.within.max(half), ..printed })
        });
        let stated = Stated { p50, p90, p95, p99, ..stated };
        let per_call = Figure::printed(rate, DIGITS);
        let per_call = Figure { value: 1e9 / rate, within: per_call.share() * 1e9 / rate };
        let mut found = run(program, changed, &[NOTE]);
        found.cases = vec![
            case(&format!("{program}/call"), 1, stated),
            case(&format!("{program}/rate"), 1, Stated { mean: Some(per_call), ..Stated::default() }),
        ];
        if workers > 0 {
            found.context.push(("workers".to_owned(), workers.to_string()));
        }
        for (index, case) in (0..).zip(&mut found.cases) {
            case.per_family_instance_index = index;
        }
        self.runs.push(found);
        Ok(())
    }
}

/// Half of the part of its histogram into which the test counted, in ns; 0 where percentiles are exact.
fn half_bucket(percentiles: &[f64; 4], trained_ms: Option<f64>, is_hwbinder: bool) -> f64 {
    let width = match trained_ms.filter(|_| !is_hwbinder) {
        Some(longest) => 2.0 * longest * 1e6 / (HISTOGRAM_NS / BUCKET_NS) as f64,
        None => BUCKET_NS as f64,
    };
    let in_middle = |ms: &f64| {
        let halves = ms * 1e6 / (width / 2.0);
        let off = (halves - halves.round()).abs() * (width / 2.0);
        halves.round() as u64 % 2 == 1 && off <= Figure::printed(*ms, DIGITS).within * 1e6 + 1.0
    };
    if is_hwbinder || percentiles.iter().all(in_middle) { width / 2.0 } else { 0.0 }
}

/// `average:2.8ms worst:5ms best:0.05ms`.
fn averages(line: &str, number: usize) -> Result<Stated, ImportError> {
    let figure = |word: &str| {
        let rest = line.split(word).nth(1).ok_or_else(|| wrong(number, format!("it has no {word:?}")))?;
        let ms = rest.split_whitespace().next().unwrap_or_default();
        Ok(Some(Figure::printed(millis(ms, number)?, DIGITS).times(1e6)))
    };
    Ok(Stated {
        mean: figure("average:")?,
        max: figure("worst:")?,
        min: figure("best:")?,
        ..Stated::default()
    })
}

/// `50%: 2.1 90%: 5.2 95%: 6.8 99%: 12.3`.
fn percentiles(line: &str, number: usize) -> Result<[f64; 4], ImportError> {
    let mut found = [0.0; 4];
    for (slot, word) in found.iter_mut().zip(["50%:", "90%:", "95%:", "99%:"]) {
        let rest = line.split(word).nth(1).ok_or_else(|| wrong(number, format!("it has no {word:?}")))?;
        *slot = positive(rest.split_whitespace().next().unwrap_or_default(), number)?;
    }
    match found.is_sorted() {
        true => Ok(found),
        false => Err(wrong(number, "the percentiles do not ascend".to_owned())),
    }
}

fn millis(text: &str, number: usize) -> Result<f64, ImportError> {
    let text = text.trim();
    let ms = text.strip_suffix("ms").ok_or_else(|| wrong(number, format!("{text:?} is no time in ms")))?;
    positive(ms, number)
}

fn positive(text: &str, number: usize) -> Result<f64, ImportError> {
    let value = text.trim().parse::<f64>().ok().filter(|value| *value > 0.0 && *value < 1e12);
    value.ok_or_else(|| wrong(number, format!("{:?} is no number above 0", text.trim())))
}
