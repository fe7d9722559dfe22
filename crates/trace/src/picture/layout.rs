//! Room: where everything of a picture is: pure geometry.
//! Not here: what is in a lane (`rows`), how it is written (`svg`).
//!
//! Across, everything is a share of the picture's width, 0 to 1, so that one picture fits a phone and a desk;
//! down, it is pixels. A text stands inside a bar only on pages on which it fits.

use std::collections::BTreeSet;

use super::axis::{Axis, Tick};
use super::paint::Paint;
use super::rows;
use super::scene::{Hop, Scene};
use crate::verdict::Slow;
use crate::verdict::text::Time;

/// How wide a page is: each has texts of its own in the bars.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Page {
    /// A phone.
    Narrow,
    /// Room for whole names beside the lanes.
    Middle,
    /// A desk.
    Wide,
}

impl Page {
    pub(super) const ALL: [Self; 3] = [Self::Narrow, Self::Middle, Self::Wide];

    /// The least width of the lanes on such a page, in pixels; `style.css` sees to it.
    fn lanes_px(self) -> f64 {
        match self {
            Self::Narrow => 220.0,
            Self::Middle => 500.0,
            Self::Wide => 840.0,
        }
    }

    /// Whether a bar of this share of the lanes' width holds a text.
    fn fits(self, width: f64, text: &str) -> bool {
        // No character of the picture's font is wider than this for one of ASCII, and none than twice.
        let pixels: f64 = text.chars().map(|one| if one.is_ascii() { 6.8 } else { 13.6 }).sum();
        !text.is_empty() && width * self.lanes_px() >= pixels + 6.0
    }
}

/// A text in a bar.
#[derive(Clone, Debug, PartialEq)]
pub(super) struct Inside {
    pub(super) text: String,
    /// The pages on which it is shown.
    pub(super) pages: Vec<Page>,
}

/// For each page the first of these texts that fits.
fn inside(width: f64, texts: &[String]) -> Vec<Inside> {
    let mut all: Vec<Inside> = Vec::new();
    for page in Page::ALL {
        let Some(text) = texts.iter().find(|text| page.fits(width, text)) else { continue };
        match all.iter_mut().find(|inside| inside.text == *text) {
            Some(inside) => inside.pages.push(page),
            None => all.push(Inside { text: text.clone(), pages: vec![page] }),
        }
    }
    all
}

/// Something that lasts, in a lane.
#[derive(Clone, Debug, PartialEq)]
pub(super) struct Bar {
    pub(super) x: f64,
    pub(super) width: f64,
    /// From the axis' zero, in nanoseconds.
    pub(super) at_ns: i64,
    pub(super) ns: u64,
    pub(super) paint: Paint,
    /// Which pair's hue; 0 is the usual one.
    pub(super) pair: usize,
    pub(super) title: String,
    pub(super) inside: Vec<Inside>,
}

impl Bar {
    /// A bar; of the texts the first that fits stands in it, on each page.
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

/// One row.
#[derive(Clone, Debug, PartialEq)]
pub(super) struct Lane {
    /// `cause`, `thread-TID`, `cpu-N`.
    pub(super) key: String,
    /// Its upper edge.
    pub(super) y: u32,
    pub(super) height: u32,
    /// What stands beside it, in two lines; the second has a longer form for wide pages.
    pub(super) name: String,
    pub(super) detail: String,
    pub(super) wide_detail: String,
    pub(super) bars: Vec<Bar>,
    /// Drawn over the upper third.
    pub(super) over: Vec<Bar>,
}

impl Lane {
    pub(super) fn bottom(&self) -> u32 {
        self.y + self.height
    }
}

/// The way of a call from thread to thread.
#[derive(Clone, Debug, PartialEq)]
pub(super) struct Arrow {
    pub(super) reply: bool,
    pub(super) from: (i32, f64, u32),
    pub(super) to: (i32, f64, u32),
    pub(super) from_ns: i64,
    pub(super) to_ns: i64,
    pub(super) title: String,
}

/// The moment in which a server takes a call.
#[derive(Clone, Debug, PartialEq)]
pub(super) struct Dot {
    pub(super) x: f64,
    pub(super) y: u32,
    pub(super) title: String,
}

/// A line through all lanes.
#[derive(Clone, Debug, PartialEq)]
pub(super) struct Rule {
    pub(super) x: f64,
    pub(super) class: &'static str,
    pub(super) label: Option<String>,
}

/// A picture.
#[derive(Clone, Debug, PartialEq)]
pub(super) struct Layout {
    pub(super) height: u32,
    /// Where the axis' numbers stand.
    pub(super) axis_y: u32,
    /// Where the lines begin.
    pub(super) top: u32,
    pub(super) unit: &'static str,
    pub(super) ticks: Vec<Tick>,
    pub(super) rules: Vec<Rule>,
    pub(super) lanes: Vec<Lane>,
    pub(super) arrows: Vec<Arrow>,
    pub(super) dots: Vec<Dot>,
    /// How many parts of the call share their bar with others.
    pub(super) together: usize,
}

/// Room for two lines of text beside a lane.
const LANE: u32 = 24;
/// Between threads, for the arrows.
const BETWEEN_THREADS: u32 = 22;
const BETWEEN_CPUS: u32 = 8;
const BETWEEN_SORTS: u32 = 18;
const LINE: u32 = 16;

impl Layout {
    /// Of a scene; `slow` is the call that it is about, if it is about one.
    pub(super) fn new(scene: &Scene, slow: Option<&Slow>) -> Self {
        let axis = Axis { from: scene.from, to: scene.to, zero: scene.zero };
        let rules = rules(&axis, slow);
        let labelled = rules.iter().any(|rule| rule.label.is_some());
        let axis_y = if labelled { 2 * LINE } else { LINE } - 4;
        let top = axis_y + 6;
        let mut lanes = Vec::new();
        let (mut y, mut together) = (top + 4, 0);
        if let Some(slow) = slow {
            let (causes, parts) = rows::causes(&axis, slow);
            lanes.push(Lane { y, height: LANE, ..causes });
            together = parts;
            y += LANE + BETWEEN_SORTS;
        }
        for thread in &scene.threads {
            lanes.push(Lane { y, height: LANE, ..rows::thread(&axis, thread) });
            y += LANE + BETWEEN_THREADS;
        }
        if !scene.threads.is_empty() {
            y = y - BETWEEN_THREADS + BETWEEN_SORTS;
        }
        for cpu in &scene.cpus {
            lanes.push(Lane { y, height: LANE, ..rows::cpu(&axis, cpu, scene, slow) });
            y += LANE + BETWEEN_CPUS;
        }
        let mut layout = Self {
            height: y,
            axis_y,
            top,
            unit: axis.unit().0,
            ticks: axis.ticks(),
            rules,
            lanes,
            arrows: Vec::new(),
            dots: Vec::new(),
            together,
        };
        for hop in &scene.hops {
            layout.hop(&axis, hop);
        }
        layout
    }

    /// The fills that occur.
    pub(super) fn paints(&self) -> BTreeSet<Paint> {
        let bars = self.lanes.iter().flat_map(|lane| lane.bars.iter().chain(&lane.over));
        bars.map(|bar| bar.paint).collect()
    }

    fn thread(&self, tid: i32) -> Option<&Lane> {
        let key = format!("thread-{tid}");
        self.lanes.iter().find(|lane| lane.key == key)
    }

    fn hop(&mut self, axis: &Axis, hop: &Hop) {
        let (Some(caller), Some(server)) = (self.thread(hop.caller), self.thread(hop.server)) else { return };
        let edges = |from: &Lane, to: &Lane| {
            if to.y > from.y { (from.bottom(), to.y) } else { (from.y, to.bottom()) }
        };
        let id = hop.debug_id;
        let (down, back) = (edges(caller, server), edges(server, caller));
        let taken = Dot {
            x: axis.x(hop.received),
            y: if server.y > caller.y { server.y } else { server.bottom() },
            title: format!(
                "call {id} taken by thread {} at {}",
                hop.server,
                signed(axis.since_zero(hop.received))
            ),
        };
        let arrow = |reply, (from, to): (i32, i32), (at, there): (u64, u64), (y1, y2): (u32, u32)| {
            let (from_ns, to_ns) = (axis.since_zero(at), axis.since_zero(there));
            let what = if reply { "reply to call" } else { "call" };
            let title = format!(
                "{what} {id}: thread {from} at {} to thread {to} at {}",
                signed(from_ns),
                signed(to_ns)
            );
            Arrow { reply, from: (from, axis.x(at), y1), to: (to, axis.x(there), y2), from_ns, to_ns, title }
        };
        let within = |ts: u64| axis.from <= ts && ts <= axis.to;
        let mut arrows = Vec::new();
        if within(hop.sent) && within(hop.woken) {
            arrows.push(arrow(false, (hop.caller, hop.server), (hop.sent, hop.woken), down));
        }
        if let (Some(replied), Some(woken)) = (hop.replied, hop.caller_woken)
            && within(replied)
            && within(woken)
        {
            arrows.push(arrow(true, (hop.server, hop.caller), (replied, woken), back));
        }
        self.arrows.extend(arrows);
        self.dots.extend(within(hop.received).then_some(taken));
    }
}

/// A moment relative to the axis' zero, as people read it.
pub(super) fn signed(ns: i64) -> String {
    let sign = if ns < 0 { "-" } else { "" };
    format!("{sign}{}", Time(ns.unsigned_abs()))
}

fn rules(axis: &Axis, slow: Option<&Slow>) -> Vec<Rule> {
    let Some(slow) = slow else { return Vec::new() };
    let mut rules = vec![
        Rule { x: axis.x(slow.begin_ns), class: "edge", label: None },
        Rule { x: axis.x(slow.begin_ns.saturating_add(slow.ns)), class: "edge", label: None },
    ];
    if let Some(deadline) = slow.told.map(|told| told.deadline_ns).or(slow.deadline_ns) {
        let at = slow.begin_ns.saturating_add(deadline);
        if at <= axis.to {
            let label = format!("deadline {}", Time(deadline));
            rules.push(Rule { x: axis.x(at), class: "deadline", label: Some(label) });
        }
    }
    rules
}
