//! What a rendered report must be like; each check says what is wrong with it.
//! Not here: rendering (`browser`), pictures of single calls (`picture`).

use serde_json::Value;

use crate::contrast;
use crate::probed::{list, number, overlap, word};

/// Least contrast of a text, as WCAG 2 asks for text of this size.
const LEAST_CONTRAST: f64 = 4.5;

/// Everything that is wrong with a report.
pub(super) fn faults(page: &Value) -> Vec<String> {
    let mut faults = texts(page);
    let charts = list(&page["charts"]);
    if charts.len() < 3 {
        faults.push(format!("{} charts: each test has one", charts.len()));
    }
    for chart in charts {
        let about = |fault: String| format!("{}: {fault}", word(chart, "caption"));
        faults.extend(ticks(page, chart).into_iter().map(about));
        faults.extend(lines(chart).into_iter().map(about));
        faults.extend(looks(chart).into_iter().map(about));
    }
    faults
}

/// Nothing but what scrolls by itself reaches beyond the window, and everything can be read.
fn texts(page: &Value) -> Vec<String> {
    let width = number(page, "width");
    let mut faults = Vec::new();
    if number(page, "scroll_width") > width {
        faults.push(format!("the page is {} wide in a window of {width}", page["scroll_width"]));
    }
    for text in list(&page["texts"]) {
        let beyond = number(text, "left") < 0.0 || number(text, "right") > width + 0.5;
        if beyond && text["scrolls"] != true {
            faults.push(format!("beyond the window: {}", text["text"]));
        }
        let contrast = contrast(word(text, "color"), word(text, "ground"));
        if contrast < LEAST_CONTRAST {
            faults.push(format!("{contrast:.1} is too little contrast: {}", text["text"]));
        }
    }
    for table in list(&page["tables"]) {
        if number(table, "right") > width + 0.5 {
            faults.push(format!("a table is beyond the window, at {}", table["right"]));
        }
    }
    faults
}

/// Both axes have numbers that can be read.
fn ticks(page: &Value, chart: &Value) -> Vec<String> {
    let mut faults = Vec::new();
    let ticks = list(&chart["ticks"]);
    let below = ticks.iter().filter(|tick| number(tick, "top") >= number(&chart["ground"], "bottom"));
    let below = below.count();
    if below < 2 || ticks.len() - below < 2 {
        faults.push(format!("{below} ticks below, {} beside", ticks.len() - below));
    }
    for (index, tick) in ticks.iter().enumerate() {
        if number(tick, "left") < 0.0 || number(tick, "right") > number(page, "width") {
            faults.push(format!("tick {} reaches beyond the window", tick["text"]));
        }
        if let Some(other) = ticks[index + 1..].iter().find(|other| overlap(tick, other)) {
            faults.push(format!("ticks {} and {} overlap", tick["text"], other["text"]));
        }
        let page = list(&page["texts"]).first().map_or("rgb(255, 255, 255)", |text| word(text, "ground"));
        if contrast(word(tick, "fill"), page) < LEAST_CONTRAST {
            faults.push(format!("tick {} is too faint", tick["text"]));
        }
    }
    faults
}

/// Curves are where their numbers put them: on the ground.
fn lines(chart: &Value) -> Vec<String> {
    let ground = &chart["ground"];
    let mut faults = Vec::new();
    let lines = list(&chart["lines"]);
    for (index, line) in lines.iter().enumerate() {
        let inside = |low: &str, high: &str| {
            number(line, low) >= number(ground, low) - 2.0 && number(line, high) <= number(ground, high) + 2.0
        };
        if !inside("left", "right") || !inside("top", "bottom") {
            faults.push(format!("curve {index} leaves its ground"));
        }
        if number(line, "right") - number(line, "left")
            < 0.2 * (number(ground, "right") - number(ground, "left"))
        {
            faults.push(format!("curve {index} is squeezed"));
        }
    }
    faults
}

/// Each curve has a look of its own, which the legend shows.
fn looks(chart: &Value) -> Vec<String> {
    let (lines, legend) = (list(&chart["lines"]), list(&chart["legend"]));
    let mut faults = Vec::new();
    if word(chart, "role") != "img" || word(chart, "caption").len() < 20 {
        faults.push("it is not described".to_owned());
    }
    if lines.is_empty() || lines.len() != legend.len() {
        faults.push(format!("{} curves, {} in the legend", lines.len(), legend.len()));
    }
    for (index, line) in lines.iter().enumerate() {
        if let Some(other) = lines[index + 1..].iter().position(|other| other["look"] == line["look"]) {
            faults.push(format!("curves {index} and {} look alike", index + 1 + other));
        }
        if !legend.iter().any(|entry| entry["look"] == line["look"]) {
            faults.push(format!("curve {index} is not in the legend"));
        }
    }
    faults
}
