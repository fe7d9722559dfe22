//! Parser of `trace_marker` texts in atrace's or binderperf's own convention.
//! Not here: embedded-driver events, which readers turn into `Kind::Binder`.
//! Facts: Android's `atrace` conventions as Perfetto's `systrace_parser` reads them.

use std::fmt;

/// Parsed `trace_marker` text; borrows from it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum Mark<'t> {
    /// `B|tgid|name`: a slice of this thread begins.
    Begin {
        /// Process ID in the writer's PID namespace.
        tgid: i32,
        /// Slice name.
        name: &'t str,
    },
    /// `E` or `E|tgid`: the thread's innermost slice ends.
    End,
    /// Counter (`C|tgid|name|value`), slice that may end in another thread (`S|tgid|name|cookie`, `F|...`), or clock
    /// value (`trace_event_clock_sync: parent_ts=SECONDS`).
    Other,
    /// binderperf's own mark: `binderperf: VERB key=value ...` (see [`own_mark`]).
    Own {
        /// Subject of the mark.
        verb: &'t str,
        /// Remaining `key=value` words; [`Mark::value`] finds one.
        rest: &'t str,
    },
}

/// Prefix of binderperf's own marks.
const OWN: &str = "binderperf: ";

/// Formats one of binderperf's own marks for `trace_marker`; [`Mark::parse`] returns it as [`Mark::Own`]. `verb` is
/// one word, `rest` is `key=value` words.
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
    /// Parses a text; `None` if it follows no convention.
    #[must_use]
    pub fn parse(text: &'t str) -> Option<Self> {
        let text = text.trim_end_matches(['\n', '\0']);
        if let Some(own) = text.strip_prefix(OWN) {
            let (verb, rest) = own.split_once(' ').unwrap_or((own, ""));
            return Some(Self::Own { verb, rest });
        }
        if let Some(seconds) = text.strip_prefix("trace_event_clock_sync: parent_ts=") {
            return crate::number::seconds(seconds.as_bytes()).map(|_| Self::Other);
        }
        let (letter, rest) = text.split_once('|').unwrap_or((text, ""));
        if letter == "E" {
            return Some(Self::End);
        }
        let (tgid, rest) = rest.split_once('|')?;
        let tgid = tgid.parse().ok()?;
        // Names may contain bars, so the number is behind the last one.
        let has_number =
            || rest.rsplit_once('|').is_some_and(|(_, number)| number.trim().parse::<i64>().is_ok());
        match letter {
            "B" => Some(Self::Begin { tgid, name: rest }),
            "C" | "S" | "F" if has_number() => Some(Self::Other),
            _ => None,
        }
    }

    /// Value of a key in one of binderperf's own marks.
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
            ("C|7|a|b|-3", Some(Mark::Other)),
            ("S|7|x|9", Some(Mark::Other)),
            ("F|7|x|9\n", Some(Mark::Other)),
            ("trace_event_clock_sync: parent_ts=12.5", Some(Mark::Other)),
            ("trace_event_clock_sync: parent_ts=x", None),
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
