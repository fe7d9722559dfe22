//! The finding of a run on what disturbed it: the CPU time that others and the hypervisor took meanwhile.
//! Not here: the shares and their limits (`host::Shares`), repeating a disturbed test (`bench::suite`).

use host::{MOST_OTHERS, MOST_STOLEN, Shares};
use record::{Evidence, Finding, Severity};

/// The `id` of the finding.
pub const DISTURBED: &str = "disturbance";

/// The finding: a warning if the test is spoiled, else for information.
#[must_use]
pub fn disturbance(shares: &Shares) -> Finding {
    let percent = |share: f64| format!("{:.1} %", share * 100.0);
    let (others, stolen) = (percent(shares.others), percent(shares.stolen));
    let text = format!(
        "during the test other programs took {others} of the machine's CPU time and its host {stolen}, the test itself {}",
        percent(shares.own)
    );
    let mut evidence = vec![Evidence {
        source: "/proc/stat, /proc/PID/stat, before and after".to_owned(),
        says: format!(
            "others {others} (limit {}), stolen {stolen} (limit {})",
            percent(MOST_OTHERS),
            percent(MOST_STOLEN)
        ),
    }];
    if let Some(waited) = shares.waited {
        let says = format!("a thread waited for a CPU for {} of the time", percent(waited));
        evidence.push(Evidence { source: "/proc/pressure/cpu, before and after".to_owned(), says });
    }
    let spoiled = shares.is_spoiled();
    let severity = if spoiled { Severity::Warning } else { Severity::Info };
    Finding {
        effect: spoiled
            .then(|| "calls waited for a CPU that others had; times are too long and differ".to_owned()),
        fix: spoiled.then(|| "end other programs, or measure at another time".to_owned()),
        evidence,
        proof: Some("top -b -n 1; head -1 /proc/stat".to_owned()),
        ..Finding::new(DISTURBED, severity, text)
    }
}

/// The finding in a run that was spoiled.
#[must_use]
pub fn spoiled(run: &record::Run) -> Option<&Finding> {
    run.findings.iter().find(|finding| finding.id == DISTURBED && finding.severity == Severity::Warning)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_spoiled_test_is_a_warning_with_figures() {
        let shares = Shares { own: 0.5, others: 0.43, stolen: 0.001, waited: Some(0.9) };
        let finding = disturbance(&shares);
        assert_eq!(finding.severity, Severity::Warning);
        assert!(finding.text.contains("43.0 %") && finding.fix.is_some(), "{finding:?}");
        assert!(finding.evidence.iter().any(|proof| proof.says.contains("90.0 %")), "{finding:?}");
        let quiet = disturbance(&Shares { others: 0.05, ..shares });
        assert!(quiet.severity == Severity::Info && quiet.effect.is_none(), "{quiet:?}");
    }
}
