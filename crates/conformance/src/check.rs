//! Checks that a test makes step by step, and the reason why it ended early.
//! Not here: what comes of it for the item (`item`).

use std::fmt::Debug;
use std::io;
use std::time::{Duration, Instant};

/// Time limit for something that must happen. Generous, because emulated guests are slow; the wait ends as soon as it
/// happens.
pub(super) const PATIENCE: Duration = Duration::from_secs(8);

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

/// Waits for what happens soon, such as a release, which comes after the close (contract EXT-04): until `look` finds nothing
/// wrong. Fails with what it finds after [`PATIENCE`].
pub(super) fn soon(mut look: impl FnMut() -> Result<Option<String>, Stop>) -> Verdict {
    let start = Instant::now();
    while let Some(wrong) = look()? {
        ensure(!sys::patience::is_over(start, PATIENCE), || wrong)?;
        std::thread::sleep(Duration::from_millis(5));
    }
    Ok(())
}

/// Repeats a system call while the former context manager is being released (contract EXT-04).
pub(super) fn patiently<T>(mut call: impl FnMut() -> io::Result<T>) -> io::Result<T> {
    let start = Instant::now();
    loop {
        match call() {
            Err(error)
                if error.kind() == io::ErrorKind::ResourceBusy
                    && !sys::patience::is_over(start, PATIENCE) =>
            {
                std::thread::sleep(Duration::from_millis(2));
            }
            result => return result,
        }
    }
}
