//! Computes the position of everything in a picture.
//! Not here: contents of a lane (`rows`), the HTML (`page.html`).
//!
//! Horizontal positions are shares of the picture's width, 0 to 1, so that one picture fits phones and desktops;
//! vertical ones are pixels.

use std::collections::BTreeSet;

use serde::Serialize;

use super::axis::{Axis, Tick};
use super::data::{Hop, PictureData, WakeUp};
use super::lane::{Lane, signed};
use super::rows;
use crate::cause::paint::Paint;
use crate::verdict::SlowCall;
use crate::verdict::text::time;

/// What an arrow from thread to thread stands for.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "lowercase")]
pub(super) enum ArrowKind {
    Request,
    Reply,
    /// Wake-up by the thread that was waited for.
    Wake,
}

/// Call, reply or wake-up, from thread to thread.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub(super) struct Arrow {
    /// Also its CSS class.
    pub(super) kind: ArrowKind,
    pub(super) from: (i32, f64, u32),
    pub(super) to: (i32, f64, u32),
    pub(super) from_ns: i64,
    pub(super) to_ns: i64,
    pub(super) title: String,
}

/// Moment at which a server takes a call.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub(super) struct Dot {
    pub(super) x: f64,
    pub(super) y: u32,
    pub(super) title: String,
}

/// Vertical line through all lanes.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub(super) struct Rule {
    pub(super) x: f64,
    pub(super) class: &'static str,
    pub(super) label: Option<String>,
}

/// Positions of a whole picture.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub(super) struct Layout {
    pub(super) height: u32,
    /// Vertical position of the axis labels.
    pub(super) axis_y: u32,
    /// Top of the vertical lines.
    pub(super) top: u32,
    /// Bottom of the vertical lines.
    pub(super) bottom: u32,
    pub(super) unit: &'static str,
    pub(super) ticks: Vec<Tick>,
    pub(super) rules: Vec<Rule>,
    pub(super) lanes: Vec<Lane>,
    pub(super) arrows: Vec<Arrow>,
    pub(super) dots: Vec<Dot>,
    /// Number of the call's segments that share a bar with others.
    pub(super) together: usize,
}

/// Lane height: two lines of label.
const LANE: u32 = 24;
/// Gap between threads, for the arrows.
const BETWEEN_THREADS: u32 = 22;
const BETWEEN_CPUS: u32 = 8;
const BETWEEN_SORTS: u32 = 18;
const LINE: u32 = 16;

impl Layout {
    /// Lays out a picture; `slow` is the call that it shows, if it shows one.
    pub(super) fn new(data: &PictureData, slow: Option<&SlowCall>) -> Self {
        let axis = Axis { from: data.from, to: data.to, zero: data.zero };
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
            if let Some((path, hidden)) = rows::path(&axis, slow) {
                y -= BETWEEN_SORTS - BETWEEN_CPUS;
                lanes.push(Lane { y, height: LANE, ..path });
                together += hidden;
                y += LANE + BETWEEN_SORTS;
            }
        }
        for thread in &data.threads {
            lanes.push(Lane { y, height: LANE, ..rows::thread(&axis, thread) });
            y += LANE + BETWEEN_THREADS;
        }
        if !data.threads.is_empty() {
            y = y - BETWEEN_THREADS + BETWEEN_SORTS;
        }
        for cpu in &data.cpus {
            lanes.push(Lane { y, height: LANE, ..rows::cpu(&axis, cpu, data, slow) });
            y += LANE + BETWEEN_CPUS;
        }
        let mut layout = Self {
            height: y,
            axis_y,
            top,
            bottom: lanes.last().map_or(top, Lane::bottom) + 2,
            unit: axis.unit().0,
            ticks: axis.ticks(),
            rules,
            lanes,
            arrows: Vec::new(),
            dots: Vec::new(),
            together,
        };
        for hop in &data.hops {
            layout.hop(&axis, hop);
        }
        for wake in &data.wakes {
            layout.wake(&axis, wake);
        }
        layout
    }

    /// Fills used in the picture.
    pub(super) fn paints(&self) -> BTreeSet<Paint> {
        let bars = self.lanes.iter().flat_map(|lane| lane.bars.iter().chain(&lane.over));
        bars.map(|bar| bar.paint).collect()
    }

    fn thread(&self, tid: i32) -> Option<&Lane> {
        let key = format!("thread-{tid}");
        self.lanes.iter().find(|lane| lane.key == key)
    }

    fn wake(&mut self, axis: &Axis, wake: &WakeUp) {
        let (Some(waker), Some(woken)) = (self.thread(wake.waker), self.thread(wake.woken)) else { return };
        if wake.waker == wake.woken || wake.at < axis.from || wake.at > axis.to {
            return;
        }
        let ((y1, y2), x, ns) = (edges(waker, woken), axis.x(wake.at), axis.since_zero(wake.at));
        let title = format!("thread {} wakes thread {} at {}", wake.waker, wake.woken, signed(ns));
        let (from, to) = ((wake.waker, x, y1), (wake.woken, x, y2));
        self.arrows.push(Arrow { kind: ArrowKind::Wake, from, to, from_ns: ns, to_ns: ns, title });
    }

    fn hop(&mut self, axis: &Axis, hop: &Hop) {
        let (Some(caller), Some(server)) = (self.thread(hop.caller), self.thread(hop.server)) else { return };
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
        let arrow = |kind, (from, to): (i32, i32), (at, there): (u64, u64), (y1, y2): (u32, u32)| {
            let (from_ns, to_ns) = (axis.since_zero(at), axis.since_zero(there));
            let what = if kind == ArrowKind::Reply { "reply to call" } else { "call" };
            let title = format!(
                "{what} {id}: thread {from} at {} to thread {to} at {}",
                signed(from_ns),
                signed(to_ns)
            );
            Arrow { kind, from: (from, axis.x(at), y1), to: (to, axis.x(there), y2), from_ns, to_ns, title }
        };
        let within = |ts: u64| axis.from <= ts && ts <= axis.to;
        let mut arrows = Vec::new();
        if within(hop.sent) && within(hop.woken) {
            arrows.push(arrow(ArrowKind::Request, (hop.caller, hop.server), (hop.sent, hop.woken), down));
        }
        if let (Some(replied), Some(woken)) = (hop.replied, hop.caller_woken)
            && within(replied)
            && within(woken)
        {
            arrows.push(arrow(ArrowKind::Reply, (hop.server, hop.caller), (replied, woken), back));
        }
        self.arrows.extend(arrows);
        self.dots.extend(within(hop.received).then_some(taken));
    }
}

/// Vertical ends of an arrow between two lanes.
fn edges(from: &Lane, to: &Lane) -> (u32, u32) {
    if to.y > from.y { (from.bottom(), to.y) } else { (from.y, to.bottom()) }
}

fn rules(axis: &Axis, slow: Option<&SlowCall>) -> Vec<Rule> {
    let Some(slow) = slow else { return Vec::new() };
    let mut rules = vec![
        Rule { x: axis.x(slow.begin_ns), class: "edge", label: None },
        Rule { x: axis.x(slow.begin_ns.saturating_add(slow.ns)), class: "edge", label: None },
    ];
    if let Some(deadline) = slow.reported_miss.map(|miss| miss.deadline_ns).or(slow.deadline_ns) {
        let at = slow.begin_ns.saturating_add(deadline);
        if at <= axis.to {
            let label = format!("deadline {}", time(deadline));
            rules.push(Rule { x: axis.x(at), class: "deadline", label: Some(label) });
        }
    }
    rules
}
