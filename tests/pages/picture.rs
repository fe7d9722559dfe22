//! The page of `trace analyze --html`: names, bars, arrows and legends where they belong.
//! Not here: the report of a run (`report`).

mod checks;

use std::path::Path;

use crate::browser::{self, Scheme, next};
use crate::support::{Folder, binderperf, contents};
use crate::{contrast, piece};
use checks::faults;
use serde_json::Value;

/// Where a browser puts everything.
fn probe(page: &str, width: u32, scheme: Scheme) -> Value {
    browser::probe(page, include_str!("picture/probe.js"), width, scheme)
}

/// The page of a recording of the trace crate's.
fn page(fixture: &str, words: &[&str]) -> String {
    let folder = Folder::new(&format!("page-{}", next()));
    let out = folder.path("out.html");
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("crates/trace/fixtures").join(fixture);
    let trace = path.to_str().expect("a path of ours");
    let called = binderperf(&[&["trace", "analyze", trace, "--html", &out], words].concat());
    assert!(matches!(called.code, Some(0 | 1)), "{}", called.stderr);
    assert!(called.stdout.contains("slow calls"), "the verdict is printed all the same: {}", called.stdout);
    contents(&out)
}

fn inversion() -> String {
    page("inversion.txt", &["--deadline-us", "2000", "--worst", "2"])
}

#[test]
fn pages_are_sound_on_a_phone_and_on_a_desk_in_light_and_dark() {
    for (fixture, words) in [
        ("inversion.txt", &["--deadline-us", "2000", "--worst", "2"][..]),
        ("queued.txt", &["--worst", "4"]),
        ("binder-c.bptrace", &["--worst", "3"]),
    ] {
        let page = page(fixture, words);
        for width in [360, 800, 1280] {
            let scheme = if width == 800 { Scheme::Dark } else { Scheme::Light };
            let probe = probe(&page, width, scheme);
            assert_eq!(probe["width"], width, "the window is as wide as was asked for");
            let faults = faults(&probe);
            assert!(faults.is_empty(), "{fixture} at {width}: {faults:#?}");
            let color = |key: &str| probe[key].as_str().expect("a colour").to_owned();
            let contrast = contrast(&color("page"), &color("text"));
            assert!(contrast > 7.0, "{fixture} {scheme:?}: {contrast}");
        }
    }
}

#[test]
fn dark_is_dark_and_its_fills_are_told_apart() {
    let page = inversion();
    let (light, dark) = (probe(&page, 1280, Scheme::Light), probe(&page, 1280, Scheme::Dark));
    assert_ne!(light["page"], dark["page"]);
    assert!(faults(&dark).is_empty(), "{:#?}", faults(&dark));
}

#[test]
fn names_that_are_markup_are_text() {
    let folder = Folder::new("hostile-names");
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("crates/trace/fixtures/inversion.txt");
    let trace = contents(path);
    // A name as long as the kernel allows, in every place where the server's was.
    let hostile = "<b>\"'&</title>";
    let mut trace = trace.replace("init-39 ", &format!("{hostile}-39 "));
    for key in ["", "prev_", "next_"] {
        trace = trace
            .replace(&format!("{key}comm=init {key}pid=39 "), &format!("{key}comm={hostile} {key}pid=39 "));
    }
    folder.write("t.txt", trace);
    let out = folder.path("out.html");
    binderperf(&["trace", "analyze", &folder.path("t.txt"), "--worst", "2", "--html", &out]).ended(0);
    let probe = probe(&contents(&out), 360, Scheme::Light);
    assert!(faults(&probe).is_empty(), "{:#?}", faults(&probe));
    let names = probe["pictures"][1]["lanes"].to_string();
    assert!(names.contains("</title>"), "a name is shown as it is: {}", &names[..200]);
}

/// Breaks a sound page, and the checks must say so in these words.
fn is_noticed(page: &str, width: u32, from: &str, to: &str, words: &str) {
    assert!(page.contains(from), "nothing to break: {from}");
    let broken = page.replacen(from, to, 1);
    let faults = faults(&probe(&broken, width, Scheme::Light));
    assert!(faults.iter().any(|fault| fault.contains(words)), "{words}: not noticed: {faults:#?}");
}

#[test]
fn a_page_without_its_style_is_noticed() {
    let page = inversion();
    let style = piece(&page, "<style>", "</style>").to_owned();
    is_noticed(&page, 1280, &style, "", "reaches into the lanes");
    is_noticed(&page, 360, "overflow-wrap: anywhere", "white-space: nowrap", "wide in a window of 360");
    is_noticed(
        &page,
        1280,
        ".f-inway { fill: var(--inway); }",
        ".f-inway { fill: var(--server); }",
        "are both",
    );
}

#[test]
fn arrows_and_bars_in_wrong_places_are_noticed() {
    let page = inversion();
    let call = &page[page.find("id=\"call-1\"").expect("a slow call")..];
    let arrow = piece(call, "<line class=\"arrow request\"", ">").to_owned();
    let x1 = piece(&arrow, " x1=", "%\" ").to_owned();
    let y2 = piece(&arrow, " y2=", "\" ").to_owned();
    is_noticed(&page, 1280, &arrow, &arrow.replace(&x1, " x1=\"90%\" "), "start of the arrow");
    is_noticed(&page, 360, &arrow, &arrow.replace(&y2, " y2=\"1\" "), "is not on its lane");
    let bar = piece(call, "<rect class=\"bar f-waits\"", ">").to_owned();
    let width = piece(&bar, " width=", "%\" ").to_owned();
    let y = piece(&bar, " y=", "\" ").to_owned();
    is_noticed(&page, 1280, &bar, &bar.replace(width.trim_end(), " width=\"1%\""), "is not at its time");
    is_noticed(&page, 1280, &bar, &bar.replace(&y, " y=\"70\" "), "is not in lane");
}

#[test]
fn texts_and_lanes_in_the_way_are_noticed() {
    let page = inversion();
    let call = &page[page.find("id=\"call-1\"").expect("a slow call")..];
    let inside = piece(call, "<text class=\"inside", "</text>").to_owned();
    let long = inside.replace("</text>", &format!("{}</text>", "x".repeat(200)));
    is_noticed(&page, 1280, &inside, &long, "overflows its bar");
    let ground = piece(&page, "<rect class=\"lane\"", ">").to_owned();
    let y = piece(&ground, " y=", "\" ").to_owned();
    is_noticed(&page, 1280, &ground, &ground.replace(&y, " y=\"80\" "), "lanes overlap");
    let legend = piece(call, "<li><svg aria-hidden=\"true\"><rect class=\"f-waits\"", "</li>").to_owned();
    is_noticed(&page, 1280, &legend, "", "is not in the legend");
}
