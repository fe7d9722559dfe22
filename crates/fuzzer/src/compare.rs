//! Compares what one program gave on several drivers.
//! Not here: differences that are known (`known`), shorter programs with the same difference (`shrink`).

use crate::known::{self, Known, Place};
use crate::program::Program;
use crate::transcript::{Line, Transcript};

/// The first step at which drivers differ.
#[derive(Clone, Debug)]
pub struct Difference {
    /// The step; `None`: the kernel reported a fault of itself.
    pub step: Option<usize>,
    /// Outcome on each driver, by its place in the list of drivers.
    pub outcomes: Vec<String>,
    /// Why this is known, if it is.
    pub known: Option<&'static Known>,
}

impl Difference {
    /// Whether another difference is of the same kind: a shorter program must keep it.
    #[must_use]
    pub fn is_like(&self, other: &Self) -> bool {
        match (self.known, other.known) {
            (None, None) => self.kinds() == other.kinds(),
            (Some(one), Some(other)) => std::ptr::eq(one, other),
            _ => false,
        }
    }

    /// The outcomes without what depends on the step's place in the program.
    fn kinds(&self) -> Vec<String> {
        self.outcomes.iter().map(|outcome| kind(outcome)).collect()
    }

    /// One line that names the kind of the difference.
    #[must_use]
    pub fn kind(&self) -> String {
        self.kinds().join(" / ")
    }
}

/// An outcome's words without what stands in parentheses; of a fault also without numbers, which an order may change.
fn kind(outcome: &str) -> String {
    if (Line { step: 0, thread: None, text: outcome.to_owned() }).is_fault() {
        return outcome.chars().filter(|letter| !letter.is_ascii_digit()).collect();
    }
    let mut depth = 0_u32;
    let kept = outcome.chars().filter(|letter| {
        match letter {
            '(' => depth += 1,
            ')' => depth = depth.saturating_sub(1),
            _ => {}
        }
        depth == 0 && *letter != ')'
    });
    kept.collect()
}

/// The first difference among drivers; after a known one from which drivers do not come together again, none. `names`: the
/// drivers. Also which known differences were passed.
#[must_use]
pub fn first(
    names: &[String],
    program: &Program,
    transcripts: &[Transcript],
) -> (Option<Difference>, Vec<&'static Known>) {
    let mut passed = Vec::new();
    if transcripts.iter().any(|transcript| !transcript.kernel.is_empty()) {
        let outcomes = transcripts.iter().map(|transcript| transcript.kernel.join("; ")).collect();
        return (Some(Difference { step: None, outcomes, known: None }), passed);
    }
    for (number, step) in program.steps.iter().enumerate() {
        let outcomes: Vec<String> = transcripts.iter().map(|all| all.text_at(number)).collect();
        if transcripts.iter().flat_map(|all| all.at(number)).any(Line::is_fault) {
            let known = known::fault(names, &outcomes);
            return (Some(Difference { step: Some(number), outcomes, known }), passed);
        }
        if outcomes.iter().all(|outcome| *outcome == outcomes[0]) {
            continue;
        }
        let place = Place { program, number, step, lines: &transcripts[0].lines };
        let known = match known::find(names, &place, &outcomes) {
            Some(all) if all.iter().all(|known| known.goes_on) => {
                passed.extend(all);
                continue;
            }
            Some(all) => all.into_iter().find(|known| !known.goes_on),
            None => None,
        };
        return (Some(Difference { step: Some(number), outcomes, known }), passed);
    }
    (None, passed)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::player::WAITS;

    #[test]
    fn a_step_that_no_thread_took_explains_nothing() {
        let program: Program =
            "p1.t0 open 4096\np1.t1 wait\np1.t1 enter\np0.t0 open 4096\np0.t0 call 1 code=5 flags=0x1"
                .parse()
                .expect("a program");
        let names = ["kernel:c", "kernel:rust"].map(str::to_owned);
        let item = |entered: &str| {
            let outcomes = ["ok | p1.t1: ok NOOP TRANSACTION(node=1,101 code=5)", "ok"];
            let transcripts = outcomes.map(|last| Transcript {
                lines: [(2, entered), (4, last)]
                    .map(|(step, text)| Line { step, thread: None, text: text.to_owned() })
                    .into(),
                ..Transcript::default()
            });
            first(&names, &program, &transcripts).0.expect("they differ").known.map(|known| known.item)
        };
        assert_eq!(item(WAITS), Some("LP-07"), "it waits outside the pool");
        assert_eq!(item("EINVAL taken=0"), Some("LP-07"), "the command was not taken");
        assert_eq!(item("ok"), None, "it had entered");
    }

    #[test]
    fn a_fault_counts_also_if_all_drivers_have_it() {
        let program: Program = "p0.t0 open 4096\np0.t0 schedule 7\np0.t0 read".parse().expect("a program");
        let names = ["kernel:c".to_owned(), "embedded".to_owned()];
        let found = |texts: [&str; 2]| {
            let transcripts = texts.map(|text| Transcript {
                lines: (!text.is_empty())
                    .then(|| Line { step: 1, thread: None, text: text.to_owned() })
                    .into_iter()
                    .collect(),
                ..Transcript::default()
            });
            first(&names, &program, &transcripts).0.map(|difference| difference.kind())
        };
        assert_eq!(found(["", ""]), None);
        assert_eq!(found(["EAGAIN", "EAGAIN"]), None);
        let left = "left behind: node 12";
        assert_eq!(found([left, left]).as_deref(), Some("left behind: node  / left behind: node "));
        assert_eq!(
            found(["", "the driver keeps a process"]).as_deref(),
            Some(" / the driver keeps a process")
        );
    }
}
