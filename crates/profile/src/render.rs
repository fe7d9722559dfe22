//! A profile as text, JSON, folded stacks (for flamegraph.pl, inferno, speedscope) and one HTML page with a flame graph.
//! Not here: the counts (`super::tally`).

use page::TemplateError;
use serde::Serialize;

use crate::tally::{Profile, StackCost};

/// The value of `schema` in [`json()`].
const SCHEMA: &str = "binderperf.profile";
/// Functions in the text.
const SHOWN: usize = 25;
/// Functions in the page's table.
const LISTED: usize = 100;
/// Least width of a box in the flame graph, in percent.
const NARROWEST: f64 = 0.05;

const PAGE: &str = include_str!("render/page.html");
const STYLE: &str = include_str!("render/style.css");

/// Two tables: groups, then the functions with the most instructions of their own.
#[must_use]
pub fn text(profile: &Profile) -> String {
    let all = profile.instructions as f64;
    let share = |part: f64| format!("{:5.1} %", part * 100.0 / all);
    let mut text = format!("{}\n\n", head(profile));
    text += &format!("{:>9}  {:>7}  where\n", "insns", "share");
    for group in &profile.groups {
        text += &format!("{:>9.0}  {}  {}\n", group.instructions, share(group.instructions), group.name);
    }
    text += &format!("\n{:>9}  {:>7}  {:>7}  function\n", "own", "share", "+called");
    for function in profile.functions.iter().take(SHOWN) {
        text += &format!(
            "{:>9.0}  {}  {}  {}\n",
            function.own,
            share(function.own),
            share(function.total),
            function.name
        );
    }
    if let Some(more) = profile.functions.len().checked_sub(SHOWN).filter(|more| *more > 0) {
        let rest: f64 = profile.functions.iter().skip(SHOWN).map(|function| function.own).sum();
        text += &format!("{rest:>9.0}  {}           {more} more\n", share(rest));
    }
    text
}

/// The subject of the profile, in a line.
fn head(profile: &Profile) -> String {
    let Profile { case, instructions, alike, calls, least, most, .. } = profile;
    format!(
        "Profile of {case}: {instructions} instructions from one call to the next, as {alike} of {calls} calls took (all took {least} to {most})"
    )
}

/// A line for each stack: its functions from the outermost on, and its instructions.
#[must_use]
pub fn folded(profile: &Profile) -> String {
    let line = |stack: &StackCost| format!("{} {:.0}\n", stack.functions.join(";"), stack.instructions);
    profile.stacks.iter().filter(|stack| stack.instructions >= 0.5).map(line).collect()
}

/// Every figure as JSON.
#[must_use]
pub fn json(profiles: &[Profile]) -> String {
    let document = serde_json::json!({ "schema": SCHEMA, "version": 1, "profiles": profiles });
    format!("{document:#}\n")
}

/// The whole page.
///
/// # Errors
/// [`TemplateError`] if the template is faulty.
pub fn html(profiles: &[Profile]) -> Result<String, TemplateError> {
    let values = Values { profiles: profiles.iter().map(shown).collect() };
    Ok(page::document("binderperf profile", STYLE, &page::render(PAGE, &values)?))
}

#[derive(Serialize)]
struct Values {
    profiles: Vec<Shown>,
}

#[derive(Serialize)]
struct Shown {
    case: String,
    head: String,
    groups: Vec<[String; 3]>,
    functions: Vec<[String; 4]>,
    depth: usize,
    boxes: Vec<FlameBox>,
}

/// A function in the flame graph. Places and widths are percent, rows count from the outermost function.
#[derive(Debug, PartialEq, Serialize)]
struct FlameBox {
    name: String,
    title: String,
    left: f64,
    width: f64,
    row: usize,
    /// Hue of its colour, by name.
    hue: u32,
}

fn shown(profile: &Profile) -> Shown {
    let all = profile.instructions as f64;
    let share = |part: f64| format!("{:.1} %", part * 100.0 / all);
    let boxes = boxes(&profile.stacks, all);
    let groups = profile.groups.iter();
    let groups = groups
        .map(|group| [group.name.clone(), format!("{:.0}", group.instructions), share(group.instructions)]);
    let functions = profile.functions.iter().take(LISTED);
    let functions =
        functions.map(|one| [one.name.clone(), format!("{:.0}", one.own), share(one.own), share(one.total)]);
    Shown {
        case: profile.case.clone(),
        head: head(profile),
        groups: groups.collect(),
        functions: functions.collect(),
        depth: boxes.iter().map(|one| one.row + 1).max().unwrap_or(0),
        boxes,
    }
}

/// The boxes of stacks in alphabetical order: neighbours with the same callers share these.
fn boxes(stacks: &[StackCost], all: f64) -> Vec<FlameBox> {
    let mut boxes = Vec::new();
    // Function, and where it begins.
    let mut open: Vec<(&str, f64)> = Vec::new();
    let mut at = 0.0;
    let mut close = |open: &mut Vec<(&str, f64)>, keep: usize, at: f64| {
        while open.len() > keep {
            let Some((name, from)) = open.pop() else { return };
            let (left, width) = (from * 100.0 / all, (at - from) * 100.0 / all);
            if width >= NARROWEST {
                let title = format!("{name}: {:.0} instructions, {width:.1} %", at - from);
                boxes.push(FlameBox {
                    name: name.to_owned(),
                    title,
                    left,
                    width,
                    row: open.len(),
                    hue: hue(name),
                });
            }
        }
    };
    for stack in stacks {
        let functions = stack.functions.iter().map(String::as_str);
        let same = functions.clone().zip(&open).take_while(|(one, (other, _))| one == other).count();
        close(&mut open, same, at);
        open.extend(functions.skip(same).map(|name| (name, at)));
        at += stack.instructions;
    }
    close(&mut open, 0, at);
    boxes
}

/// Warm colours; the driver's functions are blue.
fn hue(name: &str) -> u32 {
    if name.starts_with("binder_") || name.contains("rust_binder") {
        return 210;
    }
    name.bytes().fold(0u32, |sum, byte| sum.wrapping_mul(31).wrapping_add(byte.into())) % 50
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::tally::tests::{SYMBOLS, capture};
    use crate::{Capture, profile};

    fn found(capture: &Capture) -> Profile {
        profile(capture, SYMBOLS).expect("calls")
    }

    #[test]
    fn the_text_has_groups_and_functions() {
        let text = text(&found(&capture(&[0; 9])));
        let want =
            "Profile of BM_sendVec_binder/4: 10 instructions from one call to the next, as 5 of 5 calls took";
        assert!(text.starts_with(want), "{text}");
        assert!(text.contains("        3   30.0 %  driver\n"), "{text}");
        assert!(text.contains("        3   30.0 %   50.0 %  binder_ioctl\n"), "{text}");
    }

    #[test]
    fn folded_stacks_are_what_flame_graph_tools_read() {
        let want = "entry_SYSCALL_64 3\nentry_SYSCALL_64;binder_ioctl 3\nentry_SYSCALL_64;binder_ioctl;_raw_spin_lock 2\nuser space 2\n";
        assert_eq!(folded(&found(&capture(&[0; 9]))), want);
    }

    #[test]
    fn a_box_is_as_wide_as_its_share_and_lies_over_its_caller() {
        let boxes = boxes(&found(&capture(&[0; 9])).stacks, 10.0);
        let of = |name: &str| boxes.iter().find(|one| one.name == name).expect("a box");
        assert_eq!(
            (of("entry_SYSCALL_64").left, of("entry_SYSCALL_64").width, of("entry_SYSCALL_64").row),
            (0.0, 80.0, 0)
        );
        assert_eq!(
            (of("binder_ioctl").left, of("binder_ioctl").width, of("binder_ioctl").row),
            (30.0, 50.0, 1)
        );
        assert_eq!(
            (of("_raw_spin_lock").left, of("_raw_spin_lock").width, of("_raw_spin_lock").row),
            (60.0, 20.0, 2)
        );
        assert_eq!((of("user space").left, of("user space").row), (80.0, 0));
    }

    #[test]
    fn the_page_has_every_box_and_escapes_names() {
        let mut odd = found(&capture(&[0; 9]));
        odd.case = "<script>".to_owned();
        let page = html(&[odd]).expect("a sound template");
        assert!(!page.contains("<script>") && page.contains("&lt;script&gt;"), "{page}");
        assert_eq!(page.matches("class=\"box\"").count(), 4, "{page}");
    }
}
