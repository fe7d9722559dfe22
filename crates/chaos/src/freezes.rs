//! Freezing members through the driver, as a system freezes cached applications: calls to them are refused meanwhile and
//! made again, oneway calls wait.
//! Not here: whom and when (`controller`), the ioctl (`driver_state`), what callers do (`member::calls`).

use std::io;

use sys::errno::{EAGAIN, EINTR, EINVAL};

use super::instance::Instance;

/// The freezes of a test.
#[derive(Debug, Default)]
pub(super) struct Freezes {
    /// The frozen process, and its pid.
    frozen: Option<(Instance, u32)>,
    /// Processes that were frozen.
    pub(super) made: usize,
    /// Attempts, those that met calls under way among them.
    attempts: usize,
    /// Why the driver freezes nothing.
    refused: Option<String>,
}

impl Freezes {
    /// Whether one may be frozen now.
    pub(super) fn is_free(&self) -> bool {
        self.frozen.is_none() && self.refused.is_none()
    }

    /// Takes in the end of an attempt; whether the process is frozen.
    ///
    /// # Errors
    /// The driver should not have refused it so.
    pub(super) fn tried(&mut self, who: Instance, pid: u32, made: &io::Result<()>) -> Result<bool, String> {
        self.attempts += 1;
        let Err(error) = made else {
            self.made += 1;
            self.frozen = Some((who, pid));
            return Ok(true);
        };
        match error.raw_os_error() {
            // It has calls under way, or a signal, perhaps to stop, ended the wait for them.
            Some(EAGAIN | EINTR) => {}
            // Older than freezing.
            Some(EINVAL) => self.refused = Some(sys::errno::describe(error)),
            _ => return Err(format!("freezing {who} failed: {}", sys::errno::describe(error))),
        }
        Ok(false)
    }

    /// The frozen process, which is to be thawed.
    pub(super) fn take(&mut self) -> Option<(Instance, u32)> {
        self.frozen.take()
    }

    /// A complaint of so many calls that were refused for a freeze, if nobody asked for one.
    pub(super) fn complaint(&self, refused: u64) -> Option<String> {
        (self.attempts == 0 && refused > 0)
            .then(|| format!("{refused} calls were refused as to frozen processes, and none was frozen"))
    }

    /// A note for the summary if the driver freezes nothing.
    pub(super) fn note(&self) -> Option<String> {
        self.refused.as_ref().map(|why| format!("nothing was frozen: {why}"))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_what_a_driver_may_answer_is_no_failure() {
        let end = |errno: i32| {
            let mut freezes = Freezes::default();
            let made = Err(io::Error::from_raw_os_error(errno));
            let frozen = freezes.tried(Instance { index: 1, generation: 0 }, 7, &made);
            (frozen, freezes.is_free())
        };
        assert_eq!(end(EAGAIN), (Ok(false), true));
        assert_eq!(end(EINTR), (Ok(false), true), "a signal to stop came while it waited");
        assert_eq!(end(EINVAL), (Ok(false), false), "this driver freezes nothing");
        assert!(end(sys::errno::EIO).0.expect_err("a fault").contains("freezing 1.0 failed: EIO"));
    }
}
