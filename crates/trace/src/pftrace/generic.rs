//! Events without a Perfetto message: name and fields stand in the trace, or in a descriptor of it.
//! Not here: events with a message (`schema`).
//! Facts: `generic.proto`; `FtraceEventBundle.GenericEventDescriptor`, whose descriptor is a `DescriptorProto` of protobuf:
//! name 1, fields 2 with name 1 and number 3.

use std::collections::HashMap;

use super::wire::{Fields, Value, first};
use crate::event::{Flavour, Irq, Kind, LockKind, Name, Names};
use crate::schema::{self, EventSpec, FieldType, Values, state_letter};

/// `FtraceEvent.generic`, `FtraceEvent.kprobe_event`.
pub(super) const GENERIC: u32 = 327;
pub(super) const KPROBE: u32 = 542;

/// Maximum number of descriptors; a kernel has some thousand events.
const MOST: usize = 1 << 14;
/// Maximum number of fields of an event.
const MOST_FIELDS: usize = 64;

/// Event that the trace describes.
#[derive(Clone, Debug, Default)]
struct Descriptor {
    group: String,
    name: String,
    fields: Vec<(u32, String)>,
}

/// Descriptors by the event's number in `FtraceEvent`.
#[derive(Clone, Debug, Default)]
pub(super) struct Descriptors {
    known: HashMap<u32, Descriptor>,
}

/// A field of an event, by name.
struct Named<'e> {
    name: &'e [u8],
    value: Value<'e>,
}

impl Descriptors {
    /// Takes a `GenericEventDescriptor`.
    pub(super) fn take(&mut self, message: &[u8]) {
        let (mut number, mut found) = (0, Descriptor::default());
        for (field, value) in Fields::of(message) {
            match field {
                1 => number = value.word(),
                2 => found.describe(value.bytes()),
                3 => found.group = value.text(),
                _ => {}
            }
        }
        if number > 0 && (self.known.len() < MOST || self.known.contains_key(&number)) {
            self.known.insert(number, found);
        }
    }

    /// Decodes an event that a descriptor describes; `None` if none does.
    pub(super) fn event(&self, number: u32, message: &[u8], names: &mut Names) -> Option<Kind> {
        let descriptor = self.known.get(&number)?;
        let fields = Fields::of(message).take(MOST_FIELDS).filter_map(|(field, value)| {
            let (_, name) = descriptor.fields.iter().find(|(known, _)| *known == field)?;
            Some(Named { name: name.as_bytes(), value })
        });
        let fields: Vec<Named<'_>> = fields.collect();
        let name = descriptor.name.as_str();
        let flavour = if descriptor.group == "rust_binder" { Flavour::Rust } else { flavour(name) };
        Some(kind(name, flavour, &fields, names))
    }
}

impl Descriptor {
    fn describe(&mut self, descriptor: &[u8]) {
        for (field, value) in Fields::of(descriptor) {
            match field {
                // Perfetto puts the group before the name on some versions: `group_name` or `group/name`.
                1 => self.name = value.text(),
                2 if self.fields.len() < MOST_FIELDS => {
                    let part = |number| first(value.bytes(), number);
                    if let (Some(name), Some(number)) = (part(1), part(3)) {
                        self.fields.push((number.word(), name.text()));
                    }
                }
                _ => {}
            }
        }
    }
}

/// Decodes a `GenericFtraceEvent`.
pub(super) fn event(message: &[u8], names: &mut Names) -> Kind {
    let mut name = String::new();
    let mut fields = Vec::new();
    for (field, value) in Fields::of(message) {
        match field {
            1 => name = value.text(),
            2 if fields.len() < MOST_FIELDS => {
                let part = |number| first(value.bytes(), number);
                let content = part(3).or_else(|| part(4)).or_else(|| part(5));
                let key = part(1).map_or(&[][..], Value::bytes);
                fields.push(Named { name: key, value: content.unwrap_or(Value::Number(0)) });
            }
            _ => {}
        }
    }
    kind(&name, flavour(&name), &fields, names)
}

/// Driver of an event whose group is unknown.
fn flavour(name: &str) -> Flavour {
    if super::schema::has_message(name) { Flavour::Rust } else { Flavour::C }
}

fn kind(name: &str, flavour: Flavour, fields: &[Named<'_>], names: &mut Names) -> Kind {
    let find = |key: &str| fields.iter().find(|field| field.name == key.as_bytes()).map(|field| field.value);
    if let Some(text) = find("buf").filter(|_| name == "print") {
        return Kind::Print(text.text().into());
    }
    if let Some(vector) = find("vector") {
        let irq = Irq::Vector(vector.int());
        if let Some(name) = name.strip_suffix("_entry") {
            return Kind::IrqEntry { irq, name: names.intern(name) };
        }
        if let Some(name) = name.strip_suffix("_exit") {
            return Kind::IrqExit { irq, name: names.intern(name) };
        }
    }
    let spec = EventSpec::named(name.as_bytes());
    let known = spec.and_then(|spec| Some(spec.event(&values(spec, find, names)?, flavour)));
    known.unwrap_or_else(|| Kind::Other { name: names.intern(name) })
}

/// Values of an event's fields; `None` if one is missing.
fn values<'e>(
    spec: &EventSpec,
    find: impl Fn(&str) -> Option<Value<'e>>,
    names: &mut Names,
) -> Option<Values> {
    let mut values = Values::default();
    for (index, field) in spec.fields.iter().enumerate() {
        let key = if field.name.is_empty() { "tag" } else { field.name };
        let Some(value) = find(key) else {
            // A field that is 0 may be left out, and old kernels lack some.
            if matches!(field.form, FieldType::Text | FieldType::Reason) {
                return None;
            }
            continue;
        };
        values[index] = match (field.form, value) {
            (FieldType::Text | FieldType::Reason | FieldType::Place, Value::Bytes(text)) => {
                names.intern_bytes(text).into()
            }
            (FieldType::Text | FieldType::Reason, Value::Number(_)) => Name::NONE.into(),
            (FieldType::LockFlags, Value::Bytes(text)) => u64::from(LockKind::flags_of_words(text)).into(),
            (FieldType::State, value) => u64::from(state_letter(value.number())).into(),
            (_, value) => value.number().into(),
        };
    }
    Some(values)
}

/// Number of a value as the events' functions read it.
pub(super) fn signed(value: Value<'_>) -> i32 {
    schema::int(value.number().into())
}
