//! Room: one contract item and its test: what it is called, where it holds, how it can end.
//! Not here: running it (`runner`), the tools a test uses (`kit`).

use std::fmt::Debug;
use std::io;

use super::kit::Kit;

/// Drivers that an item speaks of. A test of an item for one driver says itself what it expects of
/// the other, or that it does not apply there.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Drivers {
    /// Every driver.
    Both,
    /// The C driver; another one may differ.
    C,
    /// The Rust driver only.
    Rust,
}

/// Who is the context manager while an item's test runs.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Slot {
    /// The suite's own lobby.
    Lobby,
    /// Nobody: the test needs the place for itself.
    Free,
}

/// Why a test stopped before its end.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum Stop {
    /// The driver broke the promise: what was expected and what came.
    Fail(String),
    /// The promise cannot be tested here, and why.
    Skip(String),
    /// The promise cannot hold on this driver, what holds instead was found as documented, and what
    /// that is.
    Differs(String),
}

impl Stop {
    /// What there is to say, whatever the stop means.
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

/// What a test returns.
pub(super) type Verdict = Result<(), Stop>;

/// How an item ended.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Outcome {
    /// The driver kept the promise.
    Passed,
    /// It did not.
    Failed(String),
    /// Not tested, and why.
    Skipped(String),
    /// The promise cannot hold on this driver (`docs/differences.md`); the driver does what is
    /// documented there, and what that is.
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
    /// The contract's number, as `WR-03`.
    pub id: &'static str,
    /// The promise in a few words.
    pub title: &'static str,
    /// The name of the test's function.
    pub test_name: &'static str,
    /// Drivers it speaks of.
    pub drivers: Drivers,
    /// Whether the core of it was seen on a real driver when the contract was written (its mark V),
    /// so that a skip on a current C driver would be strange.
    pub seen: bool,
    /// Whether it cannot hold on the embedded driver, so that `docs/differences.md` must say what
    /// holds instead, and its test expects that.
    pub differs: bool,
    /// Who manages the context meanwhile.
    pub slot: Slot,
    pub(super) test: fn(&Kit) -> Verdict,
}

/// Writes a table of items: id, drivers, options (`seen`, `free`, `differs`), the test's function, the title.
macro_rules! items {
    ($($id:literal $drivers:ident [$($option:ident)*] $test:ident $title:literal;)*) => {
        /// The section's items, in the contract's order.
        pub(super) const ITEMS: &[$crate::conformance::item::Item] = &[$(
            $crate::conformance::item::Item::new(
                $id,
                $title,
                stringify!($test),
                $crate::conformance::item::Drivers::$drivers,
                $test,
            )$(.$option())*
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
        Self { id, title, test_name, drivers, seen: false, differs: false, slot: Slot::Lobby, test }
    }

    pub(super) const fn seen(mut self) -> Self {
        self.seen = true;
        self
    }

    pub(super) const fn differs(mut self) -> Self {
        self.differs = true;
        self
    }

    /// How it ended. Differing where nothing is documented is a broken promise.
    pub(super) fn judged(&self, outcome: Outcome) -> Outcome {
        match outcome {
            Outcome::Differs(why) if !self.differs => {
                Outcome::Failed(format!("differs, though no difference is documented: {why}"))
            }
            other => other,
        }
    }

    pub(super) const fn free(mut self) -> Self {
        self.slot = Slot::Free;
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

/// The result of a system call in one word: `OK` or the errno's name.
pub(super) fn errno<T>(result: &io::Result<T>) -> String {
    match result {
        Ok(_) => "OK".to_owned(),
        Err(error) => match error.raw_os_error().and_then(sys::errno::name) {
            Some(name) => name.to_owned(),
            None => error.to_string(),
        },
    }
}

/// Fails unless a system call came back with this errno (`OK` for success).
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
