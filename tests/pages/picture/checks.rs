//! What a rendered page must be like; each check says what is wrong with it.
//! Not here: rendering (`browser`).

use std::collections::BTreeMap;

use serde_json::Value;

use crate::probed::{list, number, overlap, word};

/// Pixels that rounding may cost.
const SLACK: f64 = 1.5;

/// Everything that is wrong with a page.
pub(crate) fn faults(page: &Value) -> Vec<String> {
    let mut faults = width(page);
    let pictures = list(&page["pictures"]);
    if pictures.is_empty() {
        faults.push("there is no picture".to_owned());
    }
    for picture in pictures {
        let about = |fault: String| format!("{}: {fault}", word(picture, "label"));
        faults.extend(texts(page, picture).into_iter().map(about));
        faults.extend(lanes(picture).into_iter().map(about));
        faults.extend(times(picture).into_iter().map(about));
        faults.extend(arrows(picture).into_iter().map(about));
        faults.extend(legend(picture).into_iter().map(about));
    }
    faults.extend(fills(pictures));
    faults
}

/// Nothing reaches beyond the window.
fn width(page: &Value) -> Vec<String> {
    let width = number(page, "width");
    let mut faults = Vec::new();
    if number(page, "scroll_width") > width {
        faults.push(format!("the page is {} wide in a window of {width}", page["scroll_width"]));
    }
    for block in list(&page["blocks"]).iter().chain(list(&page["pictures"])) {
        if number(block, "left") < 0.0 || number(block, "right") > width + 0.5 {
            faults.push(format!("beyond the window: {}", block["text"]));
        }
    }
    faults
}

fn contains(outer: &Value, inner: &Value) -> bool {
    number(inner, "left") >= number(outer, "left") - SLACK
        && number(inner, "right") <= number(outer, "right") + SLACK
        && number(inner, "top") >= number(outer, "top") - SLACK
        && number(inner, "bottom") <= number(outer, "bottom") + SLACK
}

/// Texts are where there is room for them.
fn texts(page: &Value, picture: &Value) -> Vec<String> {
    let mut faults = Vec::new();
    let width = number(page, "width");
    let ticks = list(&picture["ticks"]);
    if ticks.len() < 2 {
        faults.push(format!("{} ticks", ticks.len()));
    }
    for two in ticks.windows(2) {
        if overlap(&two[0], &two[1]) {
            faults.push(format!("ticks {} and {} overlap", two[0]["text"], two[1]["text"]));
        }
    }
    let lanes = list(&picture["lanes"]);
    let beside = lanes.iter().flat_map(|lane| list(&lane["beside"]));
    for text in ticks.iter().chain(list(&picture["labels"])).chain(beside.clone()) {
        if number(text, "left") < 0.0 || number(text, "right") > width {
            faults.push(format!("text {} reaches beyond the window", text["text"]));
        }
    }
    let ground = list(&picture["grounds"]).first();
    let left = ground.map_or(0.0, |ground| number(ground, "left"));
    let besides: Vec<&Value> = beside.collect();
    for (index, text) in besides.iter().enumerate() {
        if number(text, "right") > left {
            faults.push(format!("name {} reaches into the lanes", text["text"]));
        }
        if let Some(other) = besides[index + 1..].iter().find(|other| overlap(text, other)) {
            faults.push(format!("names {} and {} overlap", text["text"], other["text"]));
        }
    }
    for text in lanes.iter().flat_map(|lane| list(&lane["inside"])) {
        if !contains(&text["bar"], text) {
            faults.push(format!("text {} overflows its bar", text["text"]));
        }
    }
    faults
}

/// Lanes are apart, and their bars in them.
fn lanes(picture: &Value) -> Vec<String> {
    let mut faults = Vec::new();
    let (lanes, grounds) = (list(&picture["lanes"]), list(&picture["grounds"]));
    if lanes.len() != grounds.len() {
        faults.push(format!("{} lanes on {} grounds", lanes.len(), grounds.len()));
    }
    for two in grounds.windows(2) {
        if number(&two[0], "bottom") > number(&two[1], "top") {
            faults.push("lanes overlap".to_owned());
        }
    }
    for (lane, ground) in lanes.iter().zip(grounds) {
        if !contains(picture, ground) {
            faults.push(format!("lane {} is not in the picture", lane["key"]));
        }
        for bar in list(&lane["bars"]).iter().filter(|bar| !contains(ground, bar)) {
            faults.push(format!("{} is not in lane {}", bar["title"], lane["key"]));
        }
    }
    faults
}

/// The moment `ns` as the ticks have it.
fn scale(picture: &Value) -> Option<impl Fn(f64) -> f64 + use<>> {
    let ticks = list(&picture["ticks"]);
    let (first, last) = (ticks.first()?, ticks.last()?);
    let (at, x) = (number(first, "at"), number(first, "x"));
    let (span, width) = (number(last, "at") - at, number(last, "x") - x);
    (span > 0.0 && width > 0.0).then_some(move |ns: f64| x + (ns - at) * width / span)
}

fn off(is: f64, should: f64) -> bool {
    (is - should).abs() > SLACK
}

/// Bars and ticks are at their times, and the causes leave no gap.
fn times(picture: &Value) -> Vec<String> {
    let Some(x) = scale(picture) else { return vec!["the axis has no scale".to_owned()] };
    let mut faults = Vec::new();
    for tick in list(&picture["ticks"]) {
        if off(number(tick, "x"), x(number(tick, "at"))) {
            faults.push(format!("tick {} is off the scale", tick["text"]));
        }
    }
    for lane in list(&picture["lanes"]) {
        let bars = list(&lane["bars"]);
        for bar in bars {
            let (at, ns) = (number(bar, "at"), number(bar, "ns"));
            if off(number(bar, "left"), x(at)) || off(number(bar, "right"), x(at + ns)) {
                faults.push(format!("{} is not at its time", bar["title"]));
            }
        }
        if word(lane, "key") == "cause" {
            if bars.windows(2).any(|two| off(number(&two[0], "right"), number(&two[1], "left"))) {
                faults.push("there is a gap between causes".to_owned());
            }
            let whole: f64 = bars.iter().map(|bar| number(bar, "right") - number(bar, "left")).sum();
            let last = bars.last().map_or(0.0, |bar| number(bar, "at") + number(bar, "ns"));
            if off(whole, x(last) - x(0.0)) {
                faults.push(format!("the causes are {whole} wide, the call {}", x(last) - x(0.0)));
            }
        }
    }
    faults
}

/// Arrows go from lane to lane at their times.
fn arrows(picture: &Value) -> Vec<String> {
    let Some(x) = scale(picture) else { return Vec::new() };
    let grounds: BTreeMap<&str, &Value> =
        list(&picture["lanes"]).iter().map(|lane| word(lane, "key")).zip(list(&picture["grounds"])).collect();
    let mut faults = Vec::new();
    if list(&picture["arrows"]).is_empty() {
        faults.push("there are no arrows".to_owned());
    }
    for arrow in list(&picture["arrows"]) {
        for (end, lane, at) in [("start", "from", "from_at"), ("end", "to", "to_at")] {
            let (is_x, is_y) =
                (arrow[end][0].as_f64().unwrap_or(-1.0), arrow[end][1].as_f64().unwrap_or(-1.0));
            let about = format!("{end} of the arrow from {} to {}", arrow["from"], arrow["to"]);
            if off(is_x, x(number(arrow, at))) {
                faults.push(format!("{about} is not at its time"));
            }
            match grounds.get(word(arrow, lane)) {
                None => faults.push(format!("{about} has no lane")),
                Some(ground) if off(is_y, number(ground, "top")) && off(is_y, number(ground, "bottom")) => {
                    faults.push(format!("{about} is not on its lane"));
                }
                Some(_) => {}
            }
        }
        if word(arrow, "color") == "none" {
            faults.push("an arrow has no colour".to_owned());
        }
    }
    faults
}

/// Every fill that occurs is explained, in words, beside the picture; the picture is described.
fn legend(picture: &Value) -> Vec<String> {
    let mut faults = Vec::new();
    if word(picture, "role") != "img" || word(picture, "label").len() < 20 {
        faults.push("it is not described".to_owned());
    }
    let entries = list(&picture["legend"]);
    let bars = list(&picture["lanes"]).iter().flat_map(|lane| list(&lane["bars"]));
    let used: std::collections::BTreeSet<&str> = bars.map(|bar| word(bar, "fill")).collect();
    for fill in used {
        let explains = |entry: &&Value| list(&entry["fills"]).iter().any(|one| one == fill);
        let Some(entry) = entries.iter().find(explains) else {
            faults.push(format!("{fill} is not in the legend"));
            continue;
        };
        if word(entry, "text").is_empty() {
            faults.push(format!("{fill} has no words in the legend"));
        }
    }
    faults
}

/// No two meanings look alike. Pairs have hues of their own, so only pictures of one call are looked at.
fn fills(pictures: &[Value]) -> Vec<String> {
    let mut meanings: BTreeMap<&str, &str> = BTreeMap::new();
    let mut faults = Vec::new();
    let of_calls =
        pictures.iter().filter(|picture| list(&picture["lanes"]).iter().any(|lane| lane["key"] == "cause"));
    for bar in of_calls.flat_map(|picture| list(&picture["lanes"])).flat_map(|lane| list(&lane["bars"])) {
        let (color, fill) = (word(bar, "color"), word(bar, "fill"));
        let other = meanings.insert(color, fill).filter(|other| *other != fill);
        if let Some(other) = other {
            faults.push(format!("{fill} and {other} are both {color}"));
        }
    }
    faults.dedup();
    faults
}
