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
    faults.extend(places(page));
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
        if number(table, "inner") > number(table, "outer") {
            faults.push(format!("a table of {} has room for {}", table["inner"], table["outer"]));
        }
    }
    faults
}

/// Every link leads to a place, the contents list names every section, and every finding has a command.
fn places(page: &Value) -> Vec<String> {
    let mut faults = Vec::new();
    let words = |key: &str| -> Vec<&str> { list(&page[key]).iter().filter_map(Value::as_str).collect() };
    let ids = words("ids");
    for (index, id) in ids.iter().enumerate() {
        if ids[..index].contains(id) {
            faults.push(format!("two places are called {id}"));
        }
    }
    for link in words("links") {
        if !link.strip_prefix('#').is_some_and(|place| ids.contains(&place)) {
            faults.push(format!("{link} leads nowhere"));
        }
    }
    for section in words("sections") {
        if !words("contents").contains(&format!("#{section}").as_str()) {
            faults.push(format!("section {section} is not in the contents list"));
        }
    }
    let without = list(&page["findings"]).iter().filter(|finding| word(finding, "command").is_empty());
    faults.extend(without.map(|finding| format!("no command in {}", word(finding, "name"))));
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
    let ends = list(&chart["ends"]);
    if ends.len() != lines.len() {
        faults.push(format!("{} curves, {} names at their ends", lines.len(), ends.len()));
    }
    for (index, end) in ends.iter().enumerate() {
        if number(end, "right") > number(chart, "right") {
            faults.push(format!("the name {} is beyond the chart", end["text"]));
        }
        if let Some(other) = ends[index + 1..].iter().find(|other| overlap(end, other)) {
            faults.push(format!("the names {} and {} overlap", end["text"], other["text"]));
        }
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
