//! The brokers of a run on the embedded driver: whether they live, and what a run says that lost one.
//! Not here: noticing the end of one (`embedded::watch`), the rest of a run's findings (`doctor`).

mod stopped;

use std::time::{Duration, Instant};

use backend::AnyContext;
use driver::OpenError;
use embedded::BrokerWatch;
use procgroup::{Onlooker, SharedBlock};
use record::{Finding, Outcome, Run, Severity};

use stopped::{Guarded, StopGuard};

/// Time limit to see the end of a broker whose client failed: calls break a moment before the connection hangs up.
const LAST_BREATH: Duration = Duration::from_millis(200);

/// The brokers of a run; none on a kernel's driver.
pub(crate) struct Brokers {
    watches: Vec<BrokerWatch>,
    guard: StopGuard,
    start: Instant,
}

/// Tells the workers to make no further call, once a broker is gone.
impl Onlooker for &Brokers {
    fn works(&mut self, workers: &mut SharedBlock) {
        if !self.live() {
            workers.stop();
        }
    }
}

impl Brokers {
    /// Watches the brokers of these contexts. The time of a loss counts from `start`.
    ///
    /// # Errors
    /// See [`AnyContext::watch`].
    pub(crate) fn watch<'c>(
        contexts: impl IntoIterator<Item = &'c AnyContext>,
        start: Instant,
    ) -> Result<Self, OpenError> {
        let (mut watches, mut guarded) = (Vec::new(), Vec::new());
        for context in contexts {
            let Some(watch) = context.watch()? else { continue };
            let is_own = matches!(context, AnyContext::Embedded(context) if context.is_private());
            // A broker that cannot be seen, or is a thread of this process, is not looked at.
            if watch.pid() != 0 && watch.pid() != std::process::id() {
                guarded.push(Guarded { pid: watch.pid(), is_own });
            }
            watches.push(watch);
        }
        let guard = StopGuard::start(guarded);
        Ok(Self { watches, guard, start })
    }

    /// Their processes, without those in a pid namespace that this process cannot see, whose number is 0.
    pub(crate) fn pids(&self) -> Vec<u32> {
        self.watches.iter().map(BrokerWatch::pid).filter(|pid| *pid != 0).collect()
    }

    /// Whether all of them live.
    pub(crate) fn live(&self) -> bool {
        self.watches.iter().all(BrokerWatch::is_alive)
    }

    /// Ends a run that lost a broker during `doing`: notes the reason and a finding, once. Returns the reason.
    pub(crate) fn end_of_run(&self, run: &mut Run, doing: &str) -> Option<String> {
        let lost = self.watches.iter().find(|watch| !watch.is_alive())?;
        if let Some(known) = run.broker_lost() {
            return Some(known.text.clone());
        }
        let finding = finding(lost.pid(), self.guard.stopped(), self.start.elapsed(), doing);
        let why = finding.text.clone();
        run.findings.push(finding);
        run.complete = false;
        run.incomplete_reason = Some(why.clone());
        Some(why)
    }

    /// The outcome of a repetition on a driver: a failure if a broker ended during it, because what was measured is then
    /// partly of another driver. A repetition that failed gets a moment for its cause to show.
    pub(crate) fn judged(&self, outcome: Outcome) -> Outcome {
        let start = Instant::now();
        while matches!(outcome, Outcome::Failed { .. })
            && self.live()
            && !sys::patience::is_over(start, LAST_BREATH)
        {
            if self.watches.is_empty() {
                return outcome;
            }
            std::thread::sleep(Duration::from_millis(5));
        }
        match outcome {
            Outcome::Measured(partial) if !self.live() => Outcome::Failed {
                reason: "the embedded driver's broker ended during it".to_owned(),
                partial: Some(partial),
            },
            other => other,
        }
    }
}

fn finding(pid: u32, stopped: Option<u32>, after: Duration, doing: &str) -> Finding {
    let seconds = after.as_secs_f64();
    let (what, fix) = match stopped == Some(pid) {
        true => (
            "was stopped by a signal (SIGSTOP) and not continued",
            "find what stopped it (a shell's Ctrl-Z, a debugger, kill -STOP), then run again",
        ),
        false => (
            "ended",
            "find what ended it (the kernel log names processes that ran out of memory), then run again",
        ),
    };
    let text = format!(
        "the embedded driver's broker (pid {pid}) {what} while it was needed, noticed {seconds:.1} s after the start, in {doing}"
    );
    Finding {
        effect: Some("what was to be measured from then on is not in the record".to_owned()),
        fix: Some(fix.to_owned()),
        ..Finding::new(Finding::BROKER_LOST, Severity::Error, text)
    }
}
