//! The doctor's report as text.
//! Not here: the document (`crate::checkup`).

use super::printable;
use crate::checkup::{Check, Checkup, Verdict};

/// Line width without `all`; longer lines continue below, indented.
const WIDTH: usize = 118;

/// The findings, most severe first: errors and warnings with effect and remedy, remarks on one line each, the rest as
/// a count. With `all`: every check, with evidence and the command that reproduces it.
pub fn text(checkup: &Checkup, all: bool) -> String {
    let kind = checkup.class.name();
    let mut text = format!(
        "Looked at {}: Linux {} ({kind})\n",
        printable(&checkup.looked_at),
        match checkup.release.as_str() {
            "" => "of unknown release".into(),
            release => printable(release),
        }
    );
    for (verdict, title) in [
        (Verdict::Error, "Serious: numbers taken now are not to be trusted"),
        (Verdict::Warning, "Warnings: numbers may be off, or not what the system could do"),
        (Verdict::Info, "Worth knowing"),
        (Verdict::Unknown, "Could not be told"),
        (Verdict::Ok, "Nothing wrong with"),
    ] {
        let checks: Vec<&Check> = checkup.of(verdict).collect();
        let quiet = matches!(verdict, Verdict::Unknown | Verdict::Ok);
        if checks.is_empty() || (quiet && !all) {
            continue;
        }
        text += &format!("\n{title}\n");
        let full = all || verdict >= Verdict::Warning;
        let width = checks.iter().map(|check| check.id.len()).max().unwrap_or(0);
        for check in checks {
            text += &one(check, width, full, all);
        }
    }
    text + "\n" + &ending(checkup, all)
}

fn one(check: &Check, width: usize, full: bool, all: bool) -> String {
    let indent = width + 4;
    let mut text = wrapped(&format!("  {:<width$}  ", check.id), &check.text, indent);
    let mut line =
        |word: &str, said: &str| text += &wrapped(&format!("{:indent$}{word}: ", ""), said, indent);
    if full {
        if let Some(effect) = &check.effect {
            line("effect", effect);
        }
        if let Some(fix) = &check.fix {
            line("fix", fix);
        }
    }
    if all {
        for evidence in &check.evidence {
            line("says", &format!("{}: {}", evidence.source, evidence.says));
        }
        line("show", &check.proof);
        if !check.grounds.is_empty() {
            line("why", &check.grounds);
        }
    }
    text
}

/// Wraps a line between words; continuation lines are indented.
fn wrapped(start: &str, words: &str, indent: usize) -> String {
    let mut text = start.to_owned();
    let mut column = start.chars().count();
    let mut first = true;
    for word in printable(words).split(' ') {
        let length = word.chars().count();
        if !first && column + 1 + length > WIDTH {
            text += &format!("\n{:indent$}", "");
            column = indent;
        } else if !first {
            text.push(' ');
            column += 1;
        }
        text += word;
        column += length;
        first = false;
    }
    text + "\n"
}

fn ending(checkup: &Checkup, all: bool) -> String {
    let count = |verdict| checkup.of(verdict).count();
    let counts = [
        (count(Verdict::Error), "serious"),
        (count(Verdict::Warning), if count(Verdict::Warning) == 1 { "warning" } else { "warnings" }),
        (count(Verdict::Info), "worth knowing"),
        (count(Verdict::Ok), "fine"),
        (count(Verdict::Unknown), "could not be told"),
    ];
    let told: Vec<String> = counts
        .iter()
        .filter(|(count, _)| *count > 0)
        .map(|(count, word)| format!("{count} {word}"))
        .collect();
    let more = if all { "" } else { " (--all shows everything, with evidence)" };
    let checks = units::counted(checkup.checks.len() as u64, "check");
    format!("{checks}: {}{more}\n", told.join(", "))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::checkup::{SCHEMA, VERSION};
    use crate::schema::{Evidence, HostClass, Tool};

    fn check(id: &str, verdict: Verdict) -> Check {
        let found = verdict > Verdict::Unknown;
        Check {
            id: id.to_owned(),
            looks_at: "something".to_owned(),
            verdict,
            text: format!("{id} was found"),
            effect: found.then(|| "all is slow".to_owned()),
            fix: found.then(|| "mend it".to_owned()),
            evidence: vec![Evidence { source: "/proc/x".to_owned(), says: "1\u{1b}[2J".to_owned() }],
            proof: "cat /proc/x".to_owned(),
            grounds: "a manual page: it says so".to_owned(),
        }
    }

    fn checkup(checks: Vec<Check>) -> Checkup {
        Checkup {
            schema: SCHEMA.to_owned(),
            version: VERSION,
            tool: Tool::default(),
            looked_at: "this machine".to_owned(),
            release: "6.1.0".to_owned(),
            class: HostClass::Bare,
            checks,
        }
    }

    #[test]
    fn the_worst_comes_first_and_what_is_fine_is_counted() {
        let all = [Verdict::Ok, Verdict::Info, Verdict::Error, Verdict::Unknown, Verdict::Warning];
        let checkup = checkup(all.iter().map(|&verdict| check(&format!("{verdict:?}"), verdict)).collect());
        assert_eq!(checkup.worst(), Verdict::Error);
        let short = text(&checkup, false);
        let at = |words: &str| short.find(words).unwrap_or_else(|| panic!("{words} in {short}"));
        assert!(at("Error was found") < at("Warning was found") && at("Warning was") < at("Info was found"));
        assert!(!short.contains("Ok was found") && !short.contains("/proc/x"), "{short}");
        assert_eq!(short.matches("effect: all is slow").count(), 2, "remarks have one line: {short}");
        assert!(
            short.ends_with(
                "5 checks: 1 serious, 1 warning, 1 worth knowing, 1 fine, 1 could not be told (--all shows \
                 everything, with evidence)\n"
            ),
            "{short}"
        );
        let long = text(&checkup, true);
        for said in [
            "Ok was found",
            "Unknown was found",
            "says: /proc/x: 1\\u001b[2J",
            "show: cat /proc/x",
            "why: a manual page: it says so",
        ] {
            assert!(long.contains(said), "{said}: {long}");
        }
    }

    #[test]
    fn long_texts_are_broken_between_words() {
        let mut long = check("x", Verdict::Warning);
        long.text = "word ".repeat(60).trim_end().to_owned();
        let text = text(&checkup(vec![long]), false);
        assert!(text.lines().all(|line| line.chars().count() <= WIDTH), "{text}");
        assert_eq!(text.matches("word").count(), 60);
    }

    #[test]
    fn a_finding_of_a_run_has_all_of_it() {
        let found = check("x", Verdict::Warning).finding().expect("it was found");
        assert_eq!((found.id.as_str(), found.fix.as_deref()), ("x", Some("mend it")));
        assert_eq!((found.evidence.len(), found.proof.as_deref()), (1, Some("cat /proc/x")));
        assert!(
            check("x", Verdict::Ok).finding().is_none() && check("x", Verdict::Unknown).finding().is_none()
        );
        let checkup = checkup(vec![check("x", Verdict::Error)]);
        let again: Checkup = serde_json::from_str(&checkup.to_json()).expect("our own JSON");
        assert_eq!(again, checkup);
    }
}
