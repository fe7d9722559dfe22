//! The wall clock in the user's time zone, or in UTC.
//! Not here: measuring (`clock`).
//! Facts: `localtime_r(3)`, `gmtime_r(3)`; RFC 3339.

use std::fmt;
use std::time::{SystemTime, UNIX_EPOCH};

/// A moment of the wall clock, with the offset that was in force then.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct LocalTime {
    date: [i32; 3],
    time: [i32; 3],
    milliseconds: u32,
    offset_seconds: i64,
}

impl LocalTime {
    /// Now.
    #[must_use]
    pub fn now() -> Self {
        Self::of(SystemTime::now())
    }

    /// This moment; 1970 for one before.
    #[must_use]
    pub fn of(moment: SystemTime) -> Self {
        // SAFETY: both pointers are to live values of the right types, see `broken_down`.
        Self::broken_down(moment, |seconds, tm| unsafe {
            libc::localtime_r(seconds, tm);
        })
    }

    /// This moment in UTC; 1970 for one before.
    #[must_use]
    pub fn utc(moment: SystemTime) -> Self {
        // SAFETY: both pointers are to live values of the right types, see `broken_down`.
        Self::broken_down(moment, |seconds, tm| unsafe {
            libc::gmtime_r(seconds, tm);
        })
    }

    /// Digits that sort by time, for names of files: `20260131T120000`, with a `Z` for UTC.
    #[must_use]
    pub fn compact(&self) -> String {
        let ([year, month, day], [hour, minute, second]) = (self.date, self.time);
        let zone = if self.offset_seconds == 0 { "Z" } else { "" };
        format!("{year:04}{month:02}{day:02}T{hour:02}{minute:02}{second:02}{zone}")
    }

    fn broken_down(moment: SystemTime, convert: impl Fn(*const libc::time_t, *mut libc::tm)) -> Self {
        let since_epoch = moment.duration_since(UNIX_EPOCH).unwrap_or_default();
        let seconds = libc::time_t::try_from(since_epoch.as_secs()).unwrap_or(libc::time_t::MAX);
        // SAFETY: a tm is integers and a pointer, for which all-zero bytes are a value.
        let mut tm: libc::tm = unsafe { std::mem::zeroed() };
        convert(&raw const seconds, &raw mut tm);
        Self {
            date: [tm.tm_year + 1900, tm.tm_mon + 1, tm.tm_mday],
            time: [tm.tm_hour, tm.tm_min, tm.tm_sec],
            milliseconds: since_epoch.subsec_millis(),
            offset_seconds: tm.tm_gmtoff as i64,
        }
    }
}

/// RFC 3339 with offset: `2026-01-31T12:00:00.250+01:00`.
impl fmt::Display for LocalTime {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let ([year, month, day], [hour, minute, second]) = (self.date, self.time);
        write!(
            f,
            "{year:04}-{month:02}-{day:02}T{hour:02}:{minute:02}:{second:02}.{:03}",
            self.milliseconds
        )?;
        let sign = if self.offset_seconds < 0 { '-' } else { '+' };
        let minutes = self.offset_seconds.abs() / 60;
        write!(f, "{sign}{:02}:{:02}", minutes / 60, minutes % 60)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn offsets_west_of_greenwich_and_of_half_an_hour() {
        let mut moment =
            LocalTime { date: [2026, 1, 2], time: [3, 4, 5], milliseconds: 70, offset_seconds: -12_600 };
        assert_eq!(moment.to_string(), "2026-01-02T03:04:05.070-03:30");
        moment.offset_seconds = 3600;
        assert_eq!(moment.to_string(), "2026-01-02T03:04:05.070+01:00");
    }

    #[test]
    fn utc_is_the_same_everywhere() {
        let moment = LocalTime::utc(UNIX_EPOCH + std::time::Duration::from_millis(951_786_123_004));
        assert_eq!(moment.to_string(), "2000-02-29T01:02:03.004+00:00");
        assert_eq!(moment.compact(), "20000229T010203Z");
    }

    #[test]
    fn now_is_in_this_century() {
        assert!(LocalTime::now().to_string().starts_with("20"));
    }
}
