//! Room: texts from `trace_marker` that follow a convention: atrace's, and binderperf's own.
//! Not here: the embedded driver's events, which readers turn into `Kind::Binder`.
//! Facts: Android's `atrace` conventions as Perfetto's `systrace_parser` reads them.

use std::fmt;

/// What a mark says; borrowed from its text.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum Mark<'t> {
    /// `B|tgid|name`: a slice of this thread begins.
    Begin {
        /// The process, as its own PID namespace has it.
        tgid: i32,
        /// The slice's name.
        name: &'t str,
    },
    /// `E` or `E|tgid`: the thread's last slice ends.
    End,
    /// `C|tgid|name|value`: a counter.
    Counter {
        /// The process.
        tgid: i32,
        /// The counter's name.
        name: &'t str,
        /// Its value.
        value: i64,
    },
    /// `S|tgid|name|cookie`: a slice begins that may end in another thread.
    AsyncBegin {
        /// The process.
        tgid: i32,
        /// Its name.
        name: &'t str,
        /// Joins beginning and end.
        cookie: i64,
    },
    /// `F|tgid|name|cookie`: it ends.
    AsyncEnd {
        /// The process.
        tgid: i32,
        /// Its name.
        name: &'t str,
        /// Joins beginning and end.
        cookie: i64,
    },
    /// `trace_event_clock_sync: parent_ts=SECONDS`: the monotonic clock at this moment.
    ClockSync {
        /// Nanoseconds of the monotonic clock.
        monotonic_ns: u64,
    },
    /// binderperf's own: `binderperf: VERB key=value ...` (see [`own_mark`]).
    Own {
        /// What it is about.
        verb: &'t str,
        /// The rest, `key=value` words; [`Mark::value`] finds one.
        rest: &'t str,
    },
}

/// What binderperf's own marks begin with.
const OWN: &str = "binderperf: ";

/// The text of a mark of our own, to be written to `trace_marker`; [`Mark::parse`] gives it back as
/// [`Mark::Own`]. `verb` is one word, `rest` is words of the form `key=value`.
pub fn own_mark<'a>(verb: &'a str, rest: fmt::Arguments<'a>) -> impl fmt::Display + 'a {
    struct Text<'a>(&'a str, fmt::Arguments<'a>);
    impl fmt::Display for Text<'_> {
        fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
            write!(f, "{OWN}{} {}", self.0, self.1)
        }
    }
    Text(verb, rest)
}

impl<'t> Mark<'t> {
    /// What a text says, if it follows a convention.
    #[must_use]
    pub fn parse(text: &'t str) -> Option<Self> {
        let text = text.trim_end_matches(['\n', '\0']);
        if let Some(own) = text.strip_prefix(OWN) {
            let (verb, rest) = own.split_once(' ').unwrap_or((own, ""));
            return Some(Self::Own { verb, rest });
        }
        if let Some(seconds) = text.strip_prefix("trace_event_clock_sync: parent_ts=") {
            return Some(Self::ClockSync { monotonic_ns: crate::number::seconds(seconds.as_bytes())? });
        }
        let (letter, rest) = text.split_once('|').unwrap_or((text, ""));
        if letter == "E" {
            return Some(Self::End);
        }
        let (tgid, rest) = rest.split_once('|')?;
        let tgid = tgid.parse().ok()?;
        // Names may contain bars, so the number is what stands behind the last one.
        let named = || {
            let (name, number) = rest.rsplit_once('|')?;
            Some((name, number.trim().parse().ok()?))
        };
        Some(match letter {
            "B" => Self::Begin { tgid, name: rest },
            "C" => named().map(|(name, value)| Self::Counter { tgid, name, value })?,
            "S" => named().map(|(name, cookie)| Self::AsyncBegin { tgid, name, cookie })?,
            "F" => named().map(|(name, cookie)| Self::AsyncEnd { tgid, name, cookie })?,
            _ => return None,
        })
    }

    /// The value of a key in a mark of our own.
    #[must_use]
    pub fn value(&self, key: &str) -> Option<&'t str> {
        let Self::Own { rest, .. } = self else { return None };
        rest.split(' ').find_map(|word| word.strip_prefix(key)?.strip_prefix('='))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn conventions_are_recognised() {
        for (text, want) in [
            ("B|12|do it\n", Some(Mark::Begin { tgid: 12, name: "do it" })),
            ("E|12", Some(Mark::End)),
            ("E", Some(Mark::End)),
            ("C|7|a|b|-3", Some(Mark::Counter { tgid: 7, name: "a|b", value: -3 })),
            ("S|7|x|9", Some(Mark::AsyncBegin { tgid: 7, name: "x", cookie: 9 })),
            ("F|7|x|9\n", Some(Mark::AsyncEnd { tgid: 7, name: "x", cookie: 9 })),
            (
                "trace_event_clock_sync: parent_ts=12.5",
                Some(Mark::ClockSync { monotonic_ns: 12_500_000_000 }),
            ),
            ("hello", None),
            ("B|x|y", None),
            ("C|1|a|b", None),
            ("", None),
        ] {
            assert_eq!(Mark::parse(text), want, "{text:?}");
        }
    }

    #[test]
    fn our_own_marks_come_back() {
        let text = own_mark("miss", format_args!("pair={} late_ns={}", 3, 17)).to_string();
        let mark = Mark::parse(&text).expect("our own");
        assert!(matches!(mark, Mark::Own { verb: "miss", .. }));
        assert_eq!(
            (mark.value("pair"), mark.value("late_ns"), mark.value("late")),
            (Some("3"), Some("17"), None)
        );
    }
}
