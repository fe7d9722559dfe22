//! Which field of a Perfetto message is which field of a decoded event, by number.
//! Not here: the numbers (`crate::schema`), decoding (`decode`), events without a message of their own (`generic`).
//! Facts: `events.txt` has the number and the name of each event in
//! its `ftrace_event.proto`, as in the descriptor of the Python package perfetto 0.59.1.

use std::collections::HashMap;
use std::sync::LazyLock;

use crate::schema::EventSpec;

/// Highest field number of any message here.
const MOST_FIELDS: usize = 16;

/// Decoding of one message.
#[derive(Debug)]
pub(super) struct Layout {
    pub(super) spec: &'static EventSpec,
    /// Index of each field's value, by field number; `u8::MAX` for fields that are not read.
    values: [u8; MOST_FIELDS],
}

impl Layout {
    /// Index of a field's value.
    pub(super) fn value(&self, field: u32) -> Option<usize> {
        let index = *self.values.get(field as usize)?;
        (index != u8::MAX).then_some(index.into())
    }
}

/// Layouts by number.
static LAYOUTS: LazyLock<Vec<Option<Layout>>> = LazyLock::new(|| {
    let mut layouts = Vec::new();
    layouts.resize_with(512, || None);
    for spec in EventSpec::all() {
        let Some((number, fields)) = spec.message else { continue };
        let mut values = [u8::MAX; MOST_FIELDS];
        for (index, field) in (0_u8..).zip(fields) {
            values[usize::from(*field)] = index;
        }
        layouts[number as usize] = Some(Layout { spec, values });
    }
    layouts
});

/// Names of Perfetto's events by number.
static NAMES: LazyLock<HashMap<u32, &'static str>> = LazyLock::new(|| {
    let lines = include_str!("events.txt").lines().filter_map(|line| line.split_once(' '));
    lines.filter_map(|(number, name)| Some((number.parse().ok()?, name))).collect()
});

/// Layout of an event's message.
pub(super) fn layout(number: u32) -> Option<&'static Layout> {
    LAYOUTS.get(number as usize)?.as_ref()
}

/// Name of an event that is not decoded.
pub(super) fn name(number: u32) -> Option<&'static str> {
    NAMES.get(&number).copied()
}

/// Whether Perfetto has a message for this event of the C driver. If such an event comes without it, it is the Rust
/// driver's, whose group Perfetto does not know.
pub(super) fn has_message(name: &str) -> bool {
    EventSpec::named(name.as_bytes()).is_some_and(|spec| spec.message.is_some())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_message_is_an_event_of_the_schema_with_a_value_for_each_field() {
        for spec in EventSpec::all() {
            let Some((number, fields)) = spec.message else { continue };
            let (event, layout) = (spec.name, layout(number).expect("its layout"));
            assert_eq!((layout.spec.name, layout.spec.fields.len()), (event, fields.len()));
            assert_eq!(name(number), Some(event));
            let values: Vec<_> = fields.iter().map(|field| layout.value(u32::from(*field))).collect();
            assert_eq!(values, (0..fields.len()).map(Some).collect::<Vec<_>>(), "{event}");
        }
        assert!(layout(5).is_none() && layout(600).is_none() && name(5000).is_none());
        assert!(has_message("binder_transaction") && !has_message("binder_ioctl"));
    }
}
