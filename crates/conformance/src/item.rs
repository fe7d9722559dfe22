//! A contract item with its test: ID, title, applicable drivers, outcomes.
//! Not here: running it (`runner`), test support (`kit`).

use std::fmt::Debug;
use std::io;

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

/// The context manager during an item's test.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ManagerSlot {
    /// The suite's test manager.
    TestManager,
    /// None: the test needs the slot itself.
    Free,
}

/// Why a test ended early.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum Stop {
    /// The driver broke the promise; expected and actual behaviour.
    Fail(String),
    /// The promise cannot be tested here; the reason.
    Skip(String),
    /// The promise cannot hold on this driver; the documented alternative was found.
    Differs(String),
}

impl Stop {
    /// Adds the step to a failure.
    pub(crate) fn during(self, what: &str) -> Self {
        match self {
            Self::Fail(why) => Self::Fail(format!("{what}: {why}")),
            other => other,
        }
    }

    /// The reason, whatever the kind.
    pub(super) fn why(self) -> String {
        match self {
            Self::Fail(why) | Self::Skip(why) | Self::Differs(why) => why,
        }
    }
}

impl From<driver::OpenError> for Stop {
    fn from(error: driver::OpenError) -> Self {
        Self::Fail(error.to_string())
    }
}

/// Result of a test.
pub(super) type Verdict = Result<(), Stop>;

/// Outcome of an item.
#[derive(Clone, Debug, PartialEq, Eq)]
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
    /// The context manager during the test.
    pub slot: ManagerSlot,
    test: fn(&Kit) -> Verdict,
    /// The test on the embedded driver, where that is another one.
    embedded_test: Option<fn(&Kit) -> Verdict>,
}

/// Declares a section's items: ID, drivers, options (`seen`, `free`, `differs`), test function, its module if that is
/// a child of the section's, title, and the embedded driver's test if that is another one.
macro_rules! items {
    ($($id:literal $drivers:ident [$($option:ident)*] $test:ident $(in $module:ident)? $title:literal
        $(or $embedded:path)?;)*) => {
        /// The section's items in contract order.
        pub(super) const ITEMS: &[$crate::item::Item] = &[$(
            $crate::item::Item::new(
                $id,
                $title,
                stringify!($test),
                $crate::item::Drivers::$drivers,
                $($module::)?$test,
            )$(.$option())*$(.embedded($embedded))?
        ),*];
    };
}
pub(super) use items;

impl Item {
    pub(super) const fn new(
        id: &'static str,
        title: &'static str,
        test_name: &'static str,
        drivers: Drivers,
        test: fn(&Kit) -> Verdict,
    ) -> Self {
        Self {
            id,
            title,
            test_name,
            drivers,
            seen: false,
            differs: false,
            slot: ManagerSlot::TestManager,
            test,
            embedded_test: None,
        }
    }

    pub(super) const fn seen(mut self) -> Self {
        self.seen = true;
        self
    }

    pub(super) const fn differs(mut self) -> Self {
        self.differs = true;
        self
    }

    pub(super) const fn embedded(mut self, test: fn(&Kit) -> Verdict) -> Self {
        self.embedded_test = Some(test);
        self
    }

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

    pub(super) const fn free(mut self) -> Self {
        self.slot = ManagerSlot::Free;
        self
    }
}

/// Fails unless `got` is `want`.
pub(super) fn expect<T: PartialEq + Debug>(what: &str, got: T, want: T) -> Verdict {
    if got == want {
        return Ok(());
    }
    Err(Stop::Fail(format!("{what}: expected {want:?}, got {got:?}")))
}

/// Fails with this text unless `kept`.
pub(super) fn ensure(kept: bool, broken: impl FnOnce() -> String) -> Verdict {
    if kept { Ok(()) } else { Err(Stop::Fail(broken())) }
}

/// Skips the rest of a test unless `able`.
pub(super) fn skip_unless(able: bool, why: &str) -> Verdict {
    if able { Ok(()) } else { Err(Stop::Skip(why.to_owned())) }
}

/// The value of an option; fails with this text if there is none.
pub(super) fn required<T>(value: Option<T>, missing: impl FnOnce() -> String) -> Result<T, Stop> {
    value.ok_or_else(|| Stop::Fail(missing()))
}

/// The result of a system call as one word: `OK` or the errno's name.
pub(super) fn errno<T>(result: &io::Result<T>) -> String {
    match result {
        Ok(_) => "OK".to_owned(),
        Err(error) => match error.raw_os_error().and_then(sys::errno::name) {
            Some(name) => name.to_owned(),
            None => error.to_string(),
        },
    }
}

/// Fails unless a system call returned this errno (`OK`: success).
pub(super) fn expect_errno<T>(what: &str, result: &io::Result<T>, want: &str) -> Verdict {
    expect(what, errno(result).as_str(), want)
}

/// The value of a system call that must succeed.
pub(super) fn done<T>(what: &str, result: io::Result<T>) -> Result<T, Stop> {
    result.map_err(|error| Stop::Fail(format!("{what} failed: {}", sys::errno::describe(&error))))
}

#[cfg(test)]
mod tests {
    use super::*;

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
        let plain = Item::new("X-01", "x", "x_01", Drivers::Both, |_| Ok(()));
        let differs = || Outcome::from(Err(Stop::Differs("by nature".into())));
        assert_eq!(plain.differs().judged(differs()), Outcome::Differs("by nature".into()));
        assert!(matches!(plain.judged(differs()), Outcome::Failed(why) if why.contains("by nature")));
        assert_eq!(plain.judged(Outcome::Passed), Outcome::Passed);
    }
}
