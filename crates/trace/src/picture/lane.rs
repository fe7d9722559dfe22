//! Lanes and their bars, with the texts that fit into a bar on each page.
//! Not here: contents of a lane (`rows`), positions of lanes (`layout`).

use serde::Serialize;

use super::axis::Axis;
use crate::cause::paint::Paint;
use crate::verdict::text::time;

/// Page width class: each has its own texts in the bars.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "lowercase")]
pub(super) enum Page {
    /// A phone.
    Narrow,
    /// Tablet: whole names fit beside the lanes.
    Middle,
    /// Desktop.
    Wide,
}

impl Page {
    pub(super) const ALL: [Self; 3] = [Self::Narrow, Self::Middle, Self::Wide];

    /// Minimum width of the lanes in pixels; `style.css` ensures it.
    fn lanes_px(self) -> f64 {
        match self {
            Self::Narrow => 220.0,
            Self::Middle => 480.0,
            Self::Wide => 820.0,
        }
    }

    /// Whether a text fits into a bar of this share of the lanes' width.
    fn fits(self, width: f64, text: &str) -> bool {
        // Upper bounds of the font's character width: 6.8 px for ASCII, twice that for any other.
        let pixels: f64 = text.chars().map(|one| if one.is_ascii() { 6.8 } else { 13.6 }).sum();
        !text.is_empty() && width * self.lanes_px() >= pixels + 6.0
    }
}

/// Text inside a bar.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub(super) struct BarText {
    pub(super) text: String,
    /// Pages on which it is shown.
    pub(super) pages: Vec<Page>,
}

/// The first text that fits, for each page.
fn inside(width: f64, texts: &[String]) -> Vec<BarText> {
    let mut all: Vec<BarText> = Vec::new();
    for page in Page::ALL {
        let Some(text) = texts.iter().find(|text| page.fits(width, text)) else { continue };
        match all.iter_mut().find(|inside| inside.text == *text) {
            Some(inside) => inside.pages.push(page),
            None => all.push(BarText { text: text.clone(), pages: vec![page] }),
        }
    }
    all
}

/// Bar in a lane.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub(super) struct Bar {
    pub(super) x: f64,
    pub(super) width: f64,
    /// Nanoseconds from the axis' zero.
    pub(super) at_ns: i64,
    pub(super) ns: u64,
    pub(super) paint: Paint,
    /// Pair whose hue it has; 0 is the default hue.
    pub(super) pair: usize,
    pub(super) title: String,
    pub(super) inside: Vec<BarText>,
}

impl Bar {
    /// Creates a bar with the first text that fits, on each page.
    pub(super) fn new(
        axis: &Axis,
        (begin, end): (u64, u64),
        paint: Paint,
        title: String,
        texts: &[String],
    ) -> Self {
        let (x, width) = axis.place(begin, end);
        let inside = inside(width, texts);
        let begin = begin.max(axis.from);
        let ns = end.min(axis.to).saturating_sub(begin);
        Self { x, width, at_ns: axis.since_zero(begin), ns, paint, pair: 0, title, inside }
    }
}

/// One row of the picture.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub(super) struct Lane {
    /// `cause`, `thread-TID`, `cpu-N`.
    pub(super) key: String,
    /// Upper edge.
    pub(super) y: u32,
    pub(super) height: u32,
    /// Label in two lines, each with a longer form for wide pages.
    pub(super) name: String,
    pub(super) wide_name: String,
    pub(super) detail: String,
    pub(super) wide_detail: String,
    pub(super) bars: Vec<Bar>,
    /// Bars drawn over the upper third.
    pub(super) over: Vec<Bar>,
}

impl Lane {
    pub(super) fn bottom(&self) -> u32 {
        self.y + self.height
    }
}

/// Time relative to the axis' zero, for people.
pub(super) fn signed(ns: i64) -> String {
    let sign = if ns < 0 { "-" } else { "" };
    format!("{sign}{}", time(ns.unsigned_abs()))
}
