//! Room: a picture's geometry as SVG inside a page.
//! Not here: where things are (`layout`), colours (`style.css`).
//!
//! Shares of the width become percentages, which follow the page's width without scaling the text.

use std::fmt::{self, Write};

use super::axis::Tick;
use super::escape::Escaped;
use super::layout::{Arrow, Bar, Dot, Inside, Lane, Layout, Page, Rule};
use super::paint::Paint;

/// Patterns and arrow heads, once for all pictures of a page.
pub(super) const STORE: &str = r#"<svg class="store" aria-hidden="true" focusable="false"><defs>
<pattern id="p-waits" width="7" height="7" patternUnits="userSpaceOnUse" patternTransform="rotate(45)"><rect class="b-waits" width="7" height="7" opacity=".3"/><line class="k-waits" x1="1.5" y1="0" x2="1.5" y2="7" stroke-width="3"/></pattern>
<pattern id="p-queued" width="7" height="7" patternUnits="userSpaceOnUse" patternTransform="rotate(-45)"><rect class="b-queued" width="7" height="7" opacity=".3"/><line class="k-queued" x1="1.5" y1="0" x2="1.5" y2="7" stroke-width="3"/></pattern>
<pattern id="p-blocked" width="8" height="8" patternUnits="userSpaceOnUse" patternTransform="rotate(45)"><rect class="b-blocked" width="8" height="8" opacity=".25"/><path class="k-blocked" d="M0 4H8M4 0V8" stroke-width="1.6"/></pattern>
<pattern id="p-unknown" width="6" height="6" patternUnits="userSpaceOnUse"><circle class="k-unknown" cx="1.5" cy="1.5" r="1"/></pattern>
<pattern id="p-sleeps" width="1" height="1" patternContentUnits="objectBoundingBox"><rect class="k-sleeps" x="0" y=".47" width="1" height=".06"/></pattern>
<marker id="head" viewBox="0 0 8 8" refX="7" refY="4" markerWidth="7" markerHeight="7" markerUnits="userSpaceOnUse" orient="auto"><path class="arrow-head" d="M0 0L8 4L0 8z"/></marker>
</defs></svg>
"#;

/// A share of the width.
struct Share(f64);

impl fmt::Display for Share {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{:.4}%", self.0 * 100.0)
    }
}

/// Writes the picture; `label` is what is said of it to those who do not see it.
pub(super) fn write(out: &mut String, layout: &Layout, label: &str) -> fmt::Result {
    let height = layout.height;
    writeln!(
        out,
        r#"<svg class="picture" role="img" aria-label="{}" width="100%" height="{height}">"#,
        Escaped(label)
    )?;
    for lane in &layout.lanes {
        let (y, height) = (lane.y, lane.height);
        writeln!(out, r#"<rect class="lane" x="0" y="{y}" width="100%" height="{height}"/>"#)?;
    }
    let bottom = layout.lanes.last().map_or(layout.top, Lane::bottom) + 2;
    axis(out, layout, bottom)?;
    for lane in &layout.lanes {
        write_lane(out, lane)?;
    }
    for rule in &layout.rules {
        write_rule(out, rule, layout.top, bottom)?;
    }
    for arrow in &layout.arrows {
        write_arrow(out, arrow)?;
    }
    for Dot { x, y, title } in &layout.dots {
        let (x, title) = (Share(*x), Escaped(title));
        writeln!(out, r#"<circle class="taken" cx="{x}" cy="{y}" r="3"><title>{title}</title></circle>"#)?;
    }
    out.write_str("</svg>\n")
}

fn axis(out: &mut String, layout: &Layout, bottom: u32) -> fmt::Result {
    let (y, top, unit) = (layout.axis_y, layout.top, layout.unit);
    writeln!(out, r#"<text class="axis beside" x="-10" y="{y}">{unit}</text>"#)?;
    for Tick { ns, x, label, even } in &layout.ticks {
        let (share, wide) = (Share(*x), if *even { "" } else { " wide" });
        writeln!(out, r#"<line class="grid{wide}" x1="{share}" y1="{top}" x2="{share}" y2="{bottom}"/>"#)?;
        // A number at the edge stays on the picture.
        let anchor = if *x > 0.96 { "end" } else { "middle" };
        writeln!(
            out,
            r#"<text class="axis tick{wide}" data-at="{ns}" x="{share}" y="{y}" text-anchor="{anchor}">{label}</text>"#
        )?;
    }
    Ok(())
}

fn write_lane(out: &mut String, lane: &Lane) -> fmt::Result {
    let (key, middle) = (Escaped(&lane.key), lane.y + lane.height / 2);
    writeln!(out, r#"<g data-lane="{key}">"#)?;
    let name = Escaped(&lane.name);
    if lane.detail.is_empty() {
        let y = middle + 4;
        writeln!(out, r#"<text class="beside name" x="-10" y="{y}">{name}</text>"#)?;
    } else {
        let (first, second) = (middle - 2, middle + 11);
        writeln!(out, r#"<text class="beside name" x="-10" y="{first}">{name}</text>"#)?;
        for (class, text) in [("narrow", &lane.detail), ("wide", &lane.wide_detail)] {
            let text = Escaped(text);
            writeln!(out, r#"<text class="beside detail {class}" x="-10" y="{second}">{text}</text>"#)?;
        }
    }
    for bar in &lane.bars {
        write_bar(out, bar, lane.y, lane.height)?;
    }
    for bar in &lane.over {
        write_bar(out, bar, lane.y, lane.height / 3)?;
    }
    out.write_str("</g>\n")
}

fn write_bar(out: &mut String, bar: &Bar, y: u32, height: u32) -> fmt::Result {
    let (x, width, class) = (Share(bar.x), Share(bar.width), bar.paint.class());
    let pair = if bar.pair > 0 { format!(" pair{}", bar.pair % 6) } else { String::new() };
    let (at, ns, title) = (bar.at_ns, bar.ns, Escaped(&bar.title));
    writeln!(
        out,
        r#"<rect class="bar {class}{pair}" data-at="{at}" data-ns="{ns}" x="{x}" y="{y}" width="{width}" height="{height}"><title>{title}</title></rect>"#
    )?;
    let (x, y, class) = (Share(bar.x + bar.width / 2.0), y + height / 2 + 4, on(bar));
    for Inside { text, pages } in &bar.inside {
        let shown: String = pages.iter().map(|page| shown(*page)).collect();
        let text = Escaped(text);
        writeln!(
            out,
            r#"<text class="inside {class}{shown}" x="{x}" y="{y}" text-anchor="middle">{text}</text>"#
        )?;
    }
    Ok(())
}

fn shown(page: Page) -> &'static str {
    match page {
        Page::Narrow => " on-narrow",
        Page::Middle => " on-middle",
        Page::Wide => " on-wide",
    }
}

/// The class of a text, by what it stands on.
fn on(bar: &Bar) -> &'static str {
    match bar.paint {
        Paint::Server if bar.pair > 0 => "on-pale",
        Paint::Caller
        | Paint::Server
        | Paint::Further
        | Paint::Driver
        | Paint::Interrupt
        | Paint::InTheWay => "on",
        Paint::Idle | Paint::Other | Paint::Wakes => "on-light",
        _ => "on-light halo",
    }
}

fn write_rule(out: &mut String, rule: &Rule, top: u32, bottom: u32) -> fmt::Result {
    let (x, class) = (Share(rule.x), rule.class);
    writeln!(out, r#"<line class="rule {class}" x1="{x}" y1="{top}" x2="{x}" y2="{bottom}"/>"#)?;
    let Some(label) = &rule.label else { return Ok(()) };
    let (anchor, label) = (if rule.x > 0.5 { "end" } else { "start" }, Escaped(label));
    writeln!(out, r#"<text class="{class}" x="{x}" y="10" text-anchor="{anchor}">{label}</text>"#)
}

fn write_arrow(out: &mut String, arrow: &Arrow) -> fmt::Result {
    let class = if arrow.reply { "arrow reply" } else { "arrow request" };
    let ((from, x1, y1), (to, x2, y2)) = (arrow.from, arrow.to);
    let (from_ns, to_ns, title) = (arrow.from_ns, arrow.to_ns, Escaped(&arrow.title));
    let (x1, x2) = (Share(x1), Share(x2));
    writeln!(
        out,
        r#"<line class="{class}" data-from="thread-{from}" data-to="thread-{to}" data-from-at="{from_ns}" data-to-at="{to_ns}" x1="{x1}" y1="{y1}" x2="{x2}" y2="{y2}" marker-end="url(#head)"><title>{title}</title></line>"#
    )
}
