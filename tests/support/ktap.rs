//! Reads the output of the conformance suite.

use std::collections::BTreeMap;
use std::io::Write;

/// How an item ended according to its line.
#[derive(Clone, Debug, PartialEq)]
pub(crate) enum Line {
    Ok,
    NotOk,
    /// With the reason.
    Skip(String),
}

/// Reads KTAP back: the plan, and each item's end by its number. Checks the running numbers.
pub(crate) fn results(text: &str) -> (usize, BTreeMap<String, Line>) {
    let mut lines = text.lines();
    assert_eq!(lines.next(), Some("KTAP version 1"), "{text}");
    let plan =
        lines.next().and_then(|line| line.strip_prefix("1..")).expect("a plan").parse().expect("a count");
    let mut found = BTreeMap::new();
    for line in lines.filter(|line| !line.starts_with('#')) {
        let (failed, rest) = match line.strip_prefix("not ok ") {
            Some(rest) => (true, rest),
            None => (false, line.strip_prefix("ok ").unwrap_or_else(|| panic!("no result: {line}"))),
        };
        let mut words = rest.split(' ');
        assert_eq!(words.next(), Some((found.len() + 1).to_string().as_str()), "{line}");
        let id = words.next().expect("an item").to_owned();
        let skip = rest.split_once("# SKIP ").map(|(_, why)| Line::Skip(why.to_owned()));
        let end = if failed { Line::NotOk } else { skip.unwrap_or(Line::Ok) };
        assert!(found.insert(id, end).is_none(), "twice: {line}");
    }
    (plan, found)
}

/// Prints how many items were covered, whether or not the test passes.
pub(crate) fn print_counts(text: &str) {
    let line = text.lines().rfind(|line| line.contains(" items on the ")).expect("the counts");
    // Not through `println`, which is swallowed when a test passes.
    let _ = writeln!(std::io::stderr(), "{line}");
}
