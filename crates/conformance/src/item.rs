//! A contract item with its test: ID, title, applicable drivers, outcomes.
//! Not here: running it (`runner`), test support (`kit`).

use serde::{Deserialize, Serialize};

use super::check::{Stop, Verdict};
use super::kit::Kit;

/// Drivers that an item applies to. Its test decides what to expect of other drivers, or skips them.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Drivers {
    /// All drivers.
    Both,
    /// The C driver; others may differ.
    C,
    /// The Rust driver only.
    Rust,
}

/// Outcome of an item.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub enum Outcome {
    /// The driver kept the promise.
    Passed,
    /// The driver broke the promise.
    Failed(String),
    /// Not tested; the reason.
    Skipped(String),
    /// The promise cannot hold on this driver, and the alternative documented in `docs/differences.md` holds.
    Differs(String),
}

impl From<Verdict> for Outcome {
    fn from(verdict: Verdict) -> Self {
        match verdict {
            Ok(()) => Self::Passed,
            Err(Stop::Fail(why)) => Self::Failed(why),
            Err(Stop::Skip(why)) => Self::Skipped(why),
            Err(Stop::Differs(why)) => Self::Differs(why),
        }
    }
}

/// One contract item with its test.
#[derive(Clone, Copy, Debug)]
pub struct Item {
    /// Number in the contract, such as `WR-03`.
    pub id: &'static str,
    /// The promise in a few words.
    pub title: &'static str,
    /// Name of the test function.
    pub test_name: &'static str,
    /// Applicable drivers.
    pub drivers: Drivers,
    /// Whether its core was observed on a real driver when the contract was written (mark V), so that a skip on a
    /// current C driver would be suspicious.
    pub seen: bool,
    /// Whether it cannot hold on the embedded driver. `docs/differences.md` must then document the alternative, which
    /// the test checks.
    pub differs: bool,
    /// Whether the test needs the context manager's slot itself; else the suite's test manager has it.
    pub free: bool,
    pub(super) test: fn(&Kit) -> Verdict,
    /// The test on the embedded driver, where that is another one.
    pub(super) embedded_test: Option<fn(&Kit) -> Verdict>,
}

/// Declares a section's items: ID, drivers, options (`seen`, `free`, `differs`), test function, its module if that is
/// a child of the section's, title, and the embedded driver's test if that is another one.
macro_rules! items {
    ($($id:literal $drivers:ident [$($option:ident)*] $test:ident $(in $module:ident)? $title:literal
        $(or $embedded:path)?;)*) => {
        /// The section's items in contract order.
        #[allow(clippy::needless_update, reason = "an item may have every option")]
        pub(super) const ITEMS: &[$crate::item::Item] = &[$(
            $crate::item::Item {
                id: $id,
                title: $title,
                test_name: stringify!($test),
                drivers: $crate::item::Drivers::$drivers,
                test: $($module::)?$test,
                $($option: true,)*
                $(embedded_test: Some($embedded),)?
                ..$crate::item::Item::PLAIN
            }
        ),*];
    };
}
pub(super) use items;

impl Item {
    /// An item without options, to be filled in.
    pub(super) const PLAIN: Self = Self {
        id: "",
        title: "",
        test_name: "",
        drivers: Drivers::Both,
        seen: false,
        differs: false,
        free: false,
        test: |_| Ok(()),
        embedded_test: None,
    };

    /// Runs its test.
    pub(super) fn run(&self, kit: &Kit) -> Outcome {
        let test = self.embedded_test.filter(|_| kit.is_embedded()).unwrap_or(self.test);
        self.judged(Outcome::from(test(kit)))
    }

    /// The final outcome. An undocumented difference is a failure.
    fn judged(&self, outcome: Outcome) -> Outcome {
        match outcome {
            Outcome::Differs(why) if !self.differs => {
                Outcome::Failed(format!("differs, though no difference is documented: {why}"))
            }
            other => other,
        }
    }
}

#[cfg(test)]
mod tests {
    use std::io;

    use super::*;
    use crate::check::{expect, expect_errno};

    #[test]
    fn a_broken_promise_says_what_was_expected_and_what_came() {
        let Err(Stop::Fail(text)) = expect("the answer", 41, 42) else { panic!("41 is not 42") };
        assert_eq!(text, "the answer: expected 42, got 41");
        let refused: io::Result<()> = Err(io::ErrorKind::ResourceBusy.into());
        assert!(expect_errno("x", &refused, "EBUSY").is_err(), "a kind without an errno is no EBUSY");
        let busy: io::Result<()> = Err(io::Error::from_raw_os_error(16));
        assert_eq!(expect_errno("x", &busy, "EBUSY"), Ok(()));
        assert_eq!(Outcome::from(Err(Stop::Skip("why".into()))), Outcome::Skipped("why".into()));
    }

    #[test]
    fn only_a_documented_difference_is_none_of_the_drivers_faults() {
        let documented = Item { differs: true, ..Item::PLAIN };
        let differs = || Outcome::from(Err(Stop::Differs("by nature".into())));
        assert_eq!(documented.judged(differs()), Outcome::Differs("by nature".into()));
        assert!(matches!(Item::PLAIN.judged(differs()), Outcome::Failed(why) if why.contains("by nature")));
        assert_eq!(Item::PLAIN.judged(Outcome::Passed), Outcome::Passed);
    }
}
