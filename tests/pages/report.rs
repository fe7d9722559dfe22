//! The report of a run: readable everywhere, also on paper.
//! Not here: what a run leaves behind (the test `run`), the page of a recording (`picture`).

mod checks;

use std::sync::OnceLock;

use crate::browser::{self, Scheme};
use crate::piece;
use crate::support::{Folder, binderperf, contents};
use checks::faults;

/// The report of a quick run, made once.
fn page() -> &'static str {
    static PAGE: OnceLock<String> = OnceLock::new();
    PAGE.get_or_init(|| {
        let folder = Folder::new("report");
        let out = folder.path("out");
        binderperf(&["run", "--quick", "--driver=embedded", "--out", &out]).ended(0);
        contents(format!("{out}/report.html"))
    })
}

fn found(page: &str, width: u32, scheme: Scheme) -> Vec<String> {
    let probe = browser::probe(page, include_str!("report/probe.js"), width, scheme);
    assert_eq!(probe["width"], width, "the window is as wide as was asked for");
    faults(&probe)
}

#[test]
fn a_report_is_sound_on_a_phone_and_on_a_desk_in_light_and_dark() {
    for (width, scheme) in
        [(360, Scheme::Light), (390, Scheme::Dark), (800, Scheme::Dark), (1280, Scheme::Light)]
    {
        let faults = found(page(), width, scheme);
        assert!(faults.is_empty(), "at {width}: {faults:#?}");
    }
}

#[test]
fn a_report_on_paper_has_everything_that_is_folded_on_a_screen() {
    let folded = ["Where and how this was measured", "driver chosen", "command"];
    let paper = browser::paper(page());
    for words in folded {
        assert!(paper.contains(words), "{words}: {paper}");
    }
    let rule = piece(page(), "details::details-content", "}").to_owned();
    let without = browser::paper(&page().replacen(&rule, "", 1));
    assert!(!without.contains(folded[1]), "what stays folded is seen to be missing");
}

/// Breaks a sound report, and the checks must say so in these words.
fn is_noticed(width: u32, from: &str, to: &str, words: &str) {
    assert!(page().contains(from), "nothing to break: {from}");
    let faults = found(&page().replacen(from, to, 1), width, Scheme::Light);
    assert!(faults.iter().any(|fault| fault.contains(words)), "{words}: not noticed: {faults:#?}");
}

#[test]
fn tables_and_texts_that_cannot_be_read_are_noticed() {
    is_noticed(
        390,
        ".numbers, .numbers tbody { display: block; }",
        ".numbers { min-width: 50rem; }",
        "has room for",
    );
    is_noticed(1280, "--faint: #5b6670", "--faint: #b0b8c0", "too little contrast");
    is_noticed(360, "{ .wide { display: none; }", "{", "overlap");
}

#[test]
fn places_that_are_missing_or_double_are_noticed() {
    is_noticed(1280, "<section id=\"run-1\">", "<section id=\"run-0\">", "#run-1 leads nowhere");
    is_noticed(1280, "<section id=\"run-2\">", "<section id=\"run-1\">", "two places are called run-1");
    is_noticed(1280, "<li><a href=\"#doctor\">", "<li><a href=\"#run-1\">", "doctor is not in the contents");
    let again = piece(page(), "<p><strong>Look again:", "</p>").to_owned();
    is_noticed(1280, &again, "", "no command in finding-");
}

#[test]
fn curves_that_leave_their_place_or_look_alike_are_noticed() {
    let line = piece(page(), "<polyline class=\"line look-1\"", ">").to_owned();
    is_noticed(1280, &line, &line.replace("points=\"", "points=\"-30,20 "), "leaves its ground");
    is_noticed(1280, &line, "", "in the legend");
    let end = piece(page(), "<text class=\"end look-2\"", ">").to_owned();
    is_noticed(1280, &end, &end.replace("dx=\"8\"", "dx=\"800\""), "is beyond the chart");
    let own = "stroke: var(--two); stroke-dasharray: 9 3;";
    is_noticed(1280, own, "stroke: var(--one);", "look alike");
}
