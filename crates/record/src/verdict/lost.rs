//! The verdict on a test whose broker ended: one reason instead of the failures that follow from it.
//! Not here: noticing it (`bench`).

use super::judged::{Grade, Verdict};
use crate::schema::Run;

/// The verdict on a run that lost the embedded driver's broker; `None` for any other.
pub(crate) fn of_lost_broker(run: &Run) -> Option<Verdict> {
    let finding = run.broker_lost()?;
    let verdict = Verdict::good("completeness", "BROKER LOST").held_against("the whole test", "a part of it");
    let verdict = verdict.because(Grade::Bad, &finding.text);
    Some(Verdict { next: finding.fix.clone(), ..verdict })
}
