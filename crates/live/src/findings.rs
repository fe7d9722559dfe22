//! New findings about this machine's driver, as they come.
//! Not here: what is found (crate `explain`), keeping what led to it (`watch`).

use std::collections::HashSet;
use std::time::{Duration, Instant};

use backend::state::StateSource;
use explain::{DriverSource, Finding, Grade};

use crate::here::{NoState, explainer};
use crate::reports::{LOST, Reports};

/// Maximum number of findings that are remembered.
const MOST_KNOWN: usize = 100_000;

/// Receives what is found.
pub trait Observer {
    /// Why ended it, if it is this side.
    type Error: From<NoState>;

    /// Takes a remark on what could not be looked at.
    fn remark(&mut self, remark: &str);

    /// Takes a new finding.
    ///
    /// # Errors
    /// It could not be passed on.
    fn found(&mut self, finding: &Finding) -> Result<(), Self::Error>;
}

/// Looks again and again until a signal comes, and gives each finding when it is new; returns the worst grade.
///
/// # Errors
/// There is no driver to look at, or a finding could not be passed on.
pub fn watch<O: Observer>(
    whose: &StateSource,
    pause: Duration,
    source: Option<&DriverSource>,
    observer: &mut O,
) -> Result<Option<Grade>, O::Error> {
    let (mut known, mut worst) = (HashSet::new(), None);
    let mut first = true;
    let mut reports = Reports::join();
    loop {
        let text = match &mut reports {
            Ok(reports) => {
                if reports.news().lost {
                    observer.remark(LOST);
                }
                reports.newest(usize::MAX)
            }
            Err(_) => String::new(),
        };
        let report = explainer(whose, &text)?.explain(source);
        if first {
            reports.as_ref().err().into_iter().for_each(|why| observer.remark(why));
            report.notes.iter().for_each(|why| observer.remark(why));
        }
        for finding in report.findings {
            if known.len() < MOST_KNOWN && known.insert(finding.key.clone()) {
                worst = worst.max(Some(finding.grade));
                observer.found(&finding)?;
            }
        }
        first = false;
        let stopped = || sys::stop_signal::received().is_some();
        let begun = Instant::now();
        while !stopped() && begun.elapsed() < pause {
            std::thread::sleep(Duration::from_millis(50).min(pause));
        }
        if stopped() {
            return Ok(worst);
        }
    }
}
