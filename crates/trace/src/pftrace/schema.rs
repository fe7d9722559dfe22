//! Which field of a Perfetto message is which field of a decoded event.
//! Not here: decoding (`decode`), events without a message of their own (`generic`).
//! Facts: `protos/perfetto/trace/ftrace/*.proto` of Perfetto; `events.txt` has the number and the name of each event in
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

/// Number in `FtraceEvent`, group and name of the event, and the field number of each of its values.
const EVENTS: [(u32, &str, &str, &[u8]); 30] = [
    (4, "sched", "sched_switch", &[1, 2, 3, 4, 5, 6, 7]),
    (11, "power", "cpu_frequency", &[1, 2]),
    (13, "power", "cpu_idle", &[1, 2]),
    (17, "sched", "sched_wakeup", &[1, 2, 3, 5]),
    (18, "sched", "sched_blocked_reason", &[1, 3, 2]),
    (20, "sched", "sched_waking", &[1, 2, 3, 5]),
    (21, "ipi", "ipi_entry", &[1]),
    (22, "ipi", "ipi_exit", &[1]),
    (23, "ipi", "ipi_raise", &[2]),
    (24, "irq", "softirq_entry", &[1]),
    (25, "irq", "softirq_exit", &[1]),
    (26, "irq", "softirq_raise", &[1]),
    (36, "irq", "irq_handler_entry", &[1, 2]),
    (37, "irq", "irq_handler_exit", &[1]),
    (46, "vmscan", "mm_vmscan_direct_reclaim_begin", &[1]),
    (47, "vmscan", "mm_vmscan_direct_reclaim_end", &[1]),
    (50, "binder", "binder_transaction", &[1, 2, 3, 4, 5, 7, 6]),
    (51, "binder", "binder_transaction_received", &[1]),
    (52, "binder", "binder_set_priority", &[1, 2, 3, 4, 5]),
    (53, "binder", "binder_lock", &[1]),
    (54, "binder", "binder_locked", &[1]),
    (55, "binder", "binder_unlock", &[1]),
    (57, "workqueue", "workqueue_execute_end", &[1]),
    (58, "workqueue", "workqueue_execute_start", &[1, 2]),
    (114, "sched", "sched_wakeup_new", &[1, 2, 3, 5]),
    (323, "binder", "binder_transaction_alloc_buf", &[2, 1, 3, 4]),
    (353, "sched", "sched_pi_setprio", &[1, 4, 3, 2]),
    (485, "binder", "binder_command", &[1]),
    (486, "binder", "binder_return", &[1]),
    (491, "sched", "sched_migrate_task", &[1, 2, 3, 4, 5]),
];

/// Layouts by number.
static LAYOUTS: LazyLock<Vec<Option<Layout>>> = LazyLock::new(|| {
    let mut layouts = Vec::new();
    layouts.resize_with(512, || None);
    for (number, group, name, fields) in EVENTS {
        let mut values = [u8::MAX; MOST_FIELDS];
        for (index, field) in (0_u8..).zip(fields) {
            values[usize::from(*field)] = index;
        }
        let spec = EventSpec::in_group(group, name).map(|(spec, _)| spec);
        layouts[number as usize] = spec.map(|spec| Layout { spec, values });
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
    EVENTS.iter().any(|(_, _, known, _)| *known == name)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_message_is_an_event_of_the_schema_with_a_value_for_each_field() {
        for (number, _, event, fields) in EVENTS {
            let layout = layout(number).unwrap_or_else(|| panic!("{event}"));
            assert_eq!(layout.spec.fields.len(), fields.len(), "{event}");
            assert_eq!(name(number), Some(event));
            let values: Vec<_> = fields.iter().map(|field| layout.value(u32::from(*field))).collect();
            assert_eq!(values, (0..fields.len()).map(Some).collect::<Vec<_>>(), "{event}");
        }
        assert!(layout(5).is_none() && layout(600).is_none() && name(5000).is_none());
        assert!(has_message("binder_transaction") && !has_message("binder_ioctl"));
    }
}
