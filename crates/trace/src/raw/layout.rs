//! Field offsets of the decoded events in this recording.
//! Not here: reading the fields (`decode`); which events are decoded (`schema`).

use super::format::{Field, FieldLocation, Format};
use crate::event::{Flavour, Name, Names};
use crate::report::{ProblemKind, Report};
use crate::schema::{EventSpec, FieldType, MOST_FIELDS};

/// How an event is decoded.
#[derive(Clone, Copy, Debug)]
pub(super) enum Decoding {
    /// By the table of events.
    Table(&'static EventSpec, Flavour),
    /// Entry or exit of a processor-local interrupt.
    Vector { entry: bool },
    /// Text of `trace_marker`.
    Print,
    /// `trace_printk` with arguments.
    Bprint,
    /// `trace_printk` without arguments.
    Bputs,
    /// Name only.
    Other,
}

/// Offset and size of a field.
#[derive(Clone, Copy, Debug)]
pub(super) struct FieldSpot {
    pub(super) offset: usize,
    pub(super) size: usize,
    pub(super) signed: bool,
    pub(super) at: FieldLocation,
}

impl FieldSpot {
    const NOWHERE: Self = Self { offset: 0, size: 0, signed: false, at: FieldLocation::Here };

    pub(super) fn of(field: &Field) -> Self {
        let Field { offset, size, signed, at, .. } = field;
        Self { offset: *offset as usize, size: *size as usize, signed: *signed, at: *at }
    }
}

/// Decoding of one event in this recording.
#[derive(Clone, Debug)]
pub(super) struct Layout {
    pub(super) decoding: Decoding,
    /// Event name; for a vector the interrupt's.
    pub(super) name: Name,
    pub(super) spots: [FieldSpot; MOST_FIELDS],
    /// For `sched_switch`: state bits and their letters, with `+` for the bit of a preempted task.
    pub(super) states: Vec<(u64, u8)>,
}

impl Layout {
    /// Builds the layout for an event's format. If a decoded field is missing, that is a problem, and the event is
    /// decoded as `Kind::Other`.
    pub(super) fn of(format: &Format, names: &mut Names, report: &mut Report) -> Self {
        let mut decoding = decoding(format);
        let optional = |at: usize| match decoding {
            Decoding::Table(spec, _) => {
                spec.fields.get(at).is_some_and(|field| field.form == FieldType::OptionalNumber)
            }
            _ => false,
        };
        let wanted: Vec<&str> = match decoding {
            Decoding::Table(spec, _) => spec.fields.iter().map(|field| field.name).collect(),
            Decoding::Vector { .. } => vec!["vector"],
            Decoding::Print => vec!["buf"],
            Decoding::Bprint => vec!["fmt", "buf"],
            Decoding::Bputs => vec!["str"],
            Decoding::Other => Vec::new(),
        };
        let mut spots = [FieldSpot::NOWHERE; MOST_FIELDS];
        let mut whole = true;
        for (at, name) in wanted.iter().enumerate().filter(|(_, name)| !name.is_empty()) {
            match format.field(name).filter(|field| fits(field)) {
                Some(field) => spots[at] = FieldSpot::of(field),
                // Old kernels lack it.
                None if optional(at) => {}
                None => {
                    whole = false;
                    let detail = format!("{}/{} has no readable field {name}", format.group, format.name);
                    report.note_apart(ProblemKind::MissingField, detail);
                }
            }
        }
        if !whole {
            decoding = Decoding::Other;
        }
        let name = match decoding {
            Decoding::Vector { .. } => format.name.rsplit_once('_').map_or("", |(name, _)| name),
            _ => &format.name,
        };
        let states = if format.name == "sched_switch" { states(&format.print) } else { Vec::new() };
        Self { decoding, name: names.intern(name), spots, states }
    }
}

fn decoding(format: &Format) -> Decoding {
    match (format.group.as_str(), format.name.as_str()) {
        ("irq_vectors", name) if format.field("vector").is_some() && name.ends_with("_entry") => {
            Decoding::Vector { entry: true }
        }
        ("irq_vectors", name) if format.field("vector").is_some() && name.ends_with("_exit") => {
            Decoding::Vector { entry: false }
        }
        ("ftrace", "print") => Decoding::Print,
        ("ftrace", "bprint") => Decoding::Bprint,
        ("ftrace", "bputs") => Decoding::Bputs,
        (group, name) => match EventSpec::in_group(group, name) {
            Some((spec, flavour)) => Decoding::Table(spec, flavour),
            None => Decoding::Other,
        },
    }
}

/// Whether a field's offset and size are plausible.
fn fits(field: &Field) -> bool {
    let dynamic = field.at != FieldLocation::Here;
    field.offset < 1 << 16 && field.size < 1 << 16 && (!dynamic || field.size == 4)
}

/// State letters in `sched_switch`'s print format: `{ 0x00000001, "S" }`, in older kernels `{ 1, "S" }`; and the bit of a
/// preempted task: `REC->prev_state & 512 ? "+"`, or the bit above the highest, which newer kernels compute there.
fn states(print: &str) -> Vec<(u64, u8)> {
    let mut found: Vec<(u64, u8)> = Vec::new();
    for entry in print.split('{').skip(1) {
        let Some((entry, _)) = entry.split_once('}') else { continue };
        let Some((bits, text)) = entry.split_once(',') else { continue };
        let bits = crate::number::any(bits.trim().as_bytes()).and_then(|bits| u64::try_from(bits).ok());
        let letter = text.trim().trim_matches('"').bytes().next();
        if let (Some(bits), Some(letter)) = (bits.filter(|bits| *bits != 0), letter)
            && !found.iter().any(|(known, _)| *known == bits)
        {
            found.push((bits, letter));
        }
    }
    found.sort_unstable();
    found.truncate(32);
    let Some((highest, _)) = found.last().copied() else { return found };
    let of_plus = print.split("? \"+\"").next().filter(|before| before.len() < print.len());
    let said = of_plus.and_then(|before| before.trim_end().rsplit(' ').next()?.parse().ok());
    let preempted = said.filter(|bit| *bit > highest).or_else(|| highest.checked_mul(2));
    found.extend(preempted.map(|bit| (bit, b'+')));
    found
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn state_letters_come_from_the_print_format() {
        let new = "x & y ? __print_flags(REC->prev_state & 255, \"|\", { 0x00000001, \"S\" }, { 0x00000080, \"I\" }) : \"R\"";
        assert_eq!(states(new), [(1, b'S'), (0x80, b'I'), (0x100, b'+')]);
        assert_eq!(states("{ 1, \"S\"} , { 2, \"D\" }"), [(1, b'S'), (2, b'D'), (4, b'+')]);
        let old =
            "{ 1, \"S\"} , { 128, \"W\" }) : \"R\", REC->prev_state & 512 ? \"+\" : \"\", REC->next_comm";
        assert_eq!(states(old), [(1, b'S'), (128, b'W'), (512, b'+')]);
        assert_eq!(states("{{{, \"\"}"), []);
    }

    #[test]
    fn a_missing_field_is_said_once_and_the_event_is_another() {
        let (mut names, mut report) = (Names::default(), Report::default());
        let format = Format::parse(
            "sched",
            b"name: sched_waking\nID: 4\n\tfield:pid_t pid;\toffset:24;\tsize:4;\tsigned:1;\n",
        )
        .expect("a format");
        let layout = Layout::of(&format, &mut names, &mut report);
        assert!(matches!(layout.decoding, Decoding::Other));
        assert!(report.to_string().contains("sched/sched_waking has no readable field comm"), "{report}");
    }

    #[test]
    fn both_binder_groups_are_known_and_told_apart() {
        let text = b"name: binder_transaction_received\nID: 4\n\tfield:int debug_id;\toffset:8;\tsize:4;\tsigned:1;\n";
        for (group, want) in
            [("binder", Some(Flavour::C)), ("rust_binder", Some(Flavour::Rust)), ("other", None)]
        {
            let format = Format::parse(group, text).expect("a format");
            let found = match Layout::of(&format, &mut Names::default(), &mut Report::default()).decoding {
                Decoding::Table(_, flavour) => Some(flavour),
                _ => None,
            };
            assert_eq!(found, want, "{group}");
        }
    }
}
