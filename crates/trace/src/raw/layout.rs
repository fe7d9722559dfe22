//! Room: which events are looked into, and where their fields are in this recording.
//! Not here: taking the fields out (`decode`).
//! Facts: `include/trace/events/` and `drivers/android/binder_trace.h`, Linux 7.2.

use super::format::{At, Field, Format};
use crate::event::{Flavour, Name, Names};
use crate::report::{Report, Sort};

/// What an event is decoded as. The order of its fields is that of [`WANTED`].
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum What {
    Switch,
    Waking,
    Wakeup,
    WakeupNew,
    BlockedReason,
    PiSetprio,
    Migrate,
    IrqEntry,
    IrqExit,
    VectorEntry,
    VectorExit,
    IpiEntry,
    IpiExit,
    IpiRaise,
    IpiSendCpu,
    IpiSendMask,
    SoftirqRaise,
    SoftirqEntry,
    SoftirqExit,
    CpuIdle,
    CpuFrequency,
    WorkStart,
    WorkEnd,
    ReclaimBegin,
    ReclaimEnd,
    ContentionBegin,
    ContentionEnd,
    Print,
    Bprint,
    Bputs,
    Transaction,
    Received,
    AllocBuf,
    BufferRelease,
    FailedBufferRelease,
    UpdateBufferRelease,
    SetPriority,
    Lock,
    Locked,
    Unlock,
    WaitForWork,
    Ioctl,
    IoctlDone,
    WriteDone,
    ReadDone,
    Command,
    Return,
    LatencyFree,
    FdSend,
    FdReceived,
    Other,
}

const WAKE: &[&str] = &["comm", "pid", "prio", "target_cpu"];
const BUFFER: &[&str] = &["debug_id", "data_size", "offsets_size", "extra_buffers_size"];

/// Group (empty for any), event, what it is, its fields.
const WANTED: [(&str, &str, What, &[&str]); 28] = [
    (
        "sched",
        "sched_switch",
        What::Switch,
        &["prev_comm", "prev_pid", "prev_prio", "prev_state", "next_comm", "next_pid", "next_prio"],
    ),
    ("sched", "sched_waking", What::Waking, WAKE),
    ("sched", "sched_wakeup", What::Wakeup, WAKE),
    ("sched", "sched_wakeup_new", What::WakeupNew, WAKE),
    ("sched", "sched_blocked_reason", What::BlockedReason, &["pid", "io_wait", "caller"]),
    ("sched", "sched_pi_setprio", What::PiSetprio, &["comm", "pid", "oldprio", "newprio"]),
    ("sched", "sched_migrate_task", What::Migrate, &["comm", "pid", "prio", "orig_cpu", "dest_cpu"]),
    ("irq", "irq_handler_entry", What::IrqEntry, &["irq", "name"]),
    ("irq", "irq_handler_exit", What::IrqExit, &["irq"]),
    ("irq", "softirq_raise", What::SoftirqRaise, &["vec"]),
    ("irq", "softirq_entry", What::SoftirqEntry, &["vec"]),
    ("irq", "softirq_exit", What::SoftirqExit, &["vec"]),
    ("ipi", "ipi_entry", What::IpiEntry, &["reason"]),
    ("ipi", "ipi_exit", What::IpiExit, &["reason"]),
    ("ipi", "ipi_raise", What::IpiRaise, &["reason"]),
    ("ipi", "ipi_send_cpu", What::IpiSendCpu, &["cpu", "callback"]),
    ("ipi", "ipi_send_cpumask", What::IpiSendMask, &["callback"]),
    ("power", "cpu_idle", What::CpuIdle, &["state", "cpu_id"]),
    ("power", "cpu_frequency", What::CpuFrequency, &["state", "cpu_id"]),
    ("workqueue", "workqueue_execute_start", What::WorkStart, &["work", "function"]),
    ("workqueue", "workqueue_execute_end", What::WorkEnd, &["work"]),
    ("vmscan", "mm_vmscan_direct_reclaim_begin", What::ReclaimBegin, &["order"]),
    ("vmscan", "mm_vmscan_direct_reclaim_end", What::ReclaimEnd, &["nr_reclaimed"]),
    ("lock", "contention_begin", What::ContentionBegin, &["flags"]),
    ("lock", "contention_end", What::ContentionEnd, &["ret"]),
    ("ftrace", "print", What::Print, &["buf"]),
    ("ftrace", "bprint", What::Bprint, &["fmt", "buf"]),
    ("ftrace", "bputs", What::Bputs, &["str"]),
];

/// The events of the groups `binder` and `rust_binder`.
const BINDER: [(&str, What, &[&str]); 20] = [
    (
        "binder_transaction",
        What::Transaction,
        &["debug_id", "target_node", "to_proc", "to_thread", "reply", "code", "flags"],
    ),
    ("binder_transaction_received", What::Received, &["debug_id"]),
    ("binder_transaction_alloc_buf", What::AllocBuf, BUFFER),
    ("binder_transaction_buffer_release", What::BufferRelease, BUFFER),
    ("binder_transaction_failed_buffer_release", What::FailedBufferRelease, BUFFER),
    ("binder_transaction_update_buffer_release", What::UpdateBufferRelease, BUFFER),
    ("binder_set_priority", What::SetPriority, &["proc", "thread", "old_prio", "new_prio", "desired_prio"]),
    ("binder_lock", What::Lock, &[]),
    ("binder_locked", What::Locked, &[]),
    ("binder_unlock", What::Unlock, &[]),
    ("binder_wait_for_work", What::WaitForWork, &["proc_work", "transaction_stack", "thread_todo"]),
    ("binder_ioctl", What::Ioctl, &["cmd", "arg"]),
    ("binder_ioctl_done", What::IoctlDone, &["ret"]),
    ("binder_write_done", What::WriteDone, &["ret"]),
    ("binder_read_done", What::ReadDone, &["ret"]),
    ("binder_command", What::Command, &["cmd"]),
    ("binder_return", What::Return, &["cmd"]),
    (
        "binder_txn_latency_free",
        What::LatencyFree,
        &["debug_id", "from_proc", "from_thread", "to_proc", "to_thread", "code", "flags"],
    ),
    ("binder_transaction_fd_send", What::FdSend, &["debug_id", "fd", "offset"]),
    ("binder_transaction_fd_recv", What::FdReceived, &["debug_id", "fd", "offset"]),
];

/// The most fields of one event that are looked at.
const MOST: usize = 7;

/// Where a field is.
#[derive(Clone, Copy, Debug)]
pub(super) struct Spot {
    pub(super) offset: usize,
    pub(super) size: usize,
    pub(super) signed: bool,
    pub(super) at: At,
}

impl Spot {
    const NOWHERE: Self = Self { offset: 0, size: 0, signed: false, at: At::Here };

    pub(super) fn of(field: &Field) -> Self {
        let Field { offset, size, signed, at, .. } = field;
        Self { offset: *offset as usize, size: *size as usize, signed: *signed, at: *at }
    }
}

/// How one event of this recording is decoded.
#[derive(Clone, Debug)]
pub(super) struct Layout {
    pub(super) what: What,
    pub(super) flavour: Flavour,
    /// The event's name; for a vector the interrupt's.
    pub(super) name: Name,
    pub(super) spots: [Spot; MOST],
    /// For `sched_switch`: which bits of the state are which letter.
    pub(super) states: Vec<(u64, u8)>,
}

impl Layout {
    /// For an event's format. One that lacks a field which is looked at is a problem, and is given as
    /// another event.
    pub(super) fn of(format: &Format, names: &mut Names, report: &mut Report) -> Self {
        let (mut what, wanted, flavour) = known(format);
        let mut spots = [Spot::NOWHERE; MOST];
        for (spot, name) in spots.iter_mut().zip(wanted) {
            match format.field(name).filter(|field| fits(field)) {
                Some(field) => *spot = Spot::of(field),
                None => {
                    what = What::Other;
                    let detail = format!("{}/{} has no readable field {name}", format.group, format.name);
                    report.note_apart(Sort::MissingField, detail);
                }
            }
        }
        let vector = |suffix| format.name.strip_suffix(suffix).unwrap_or(&format.name);
        let name = match what {
            What::VectorEntry => vector("_entry"),
            What::VectorExit => vector("_exit"),
            _ => &format.name,
        };
        let states = if what == What::Switch { states(&format.print) } else { Vec::new() };
        Self { what, flavour, name: names.intern(name), spots, states }
    }
}

/// What an event is, and the fields it must have.
fn known(format: &Format) -> (What, &'static [&'static str], Flavour) {
    let flavour = if format.group == "rust_binder" { Flavour::Rust } else { Flavour::C };
    if matches!(format.group.as_str(), "binder" | "rust_binder") {
        let found = BINDER.iter().find(|(name, ..)| *name == format.name);
        return found.map_or((What::Other, &[], flavour), |(_, what, fields)| (*what, fields, flavour));
    }
    if format.group == "irq_vectors" && format.field("vector").is_some() {
        if format.name.ends_with("_entry") {
            return (What::VectorEntry, &["vector"], flavour);
        }
        if format.name.ends_with("_exit") {
            return (What::VectorExit, &["vector"], flavour);
        }
    }
    let mine = |group: &str, name: &str| name == format.name && (group.is_empty() || group == format.group);
    let found = WANTED.iter().find(|(group, name, ..)| mine(group, name));
    found.map_or((What::Other, &[], flavour), |(_, _, what, fields)| (*what, fields, flavour))
}

/// A field that can be in an event at all.
fn fits(field: &Field) -> bool {
    let dynamic = field.at != At::Here;
    field.offset < 1 << 16 && field.size < 1 << 16 && (!dynamic || field.size == 4)
}

/// The letters in `sched_switch`'s print format: `{ 0x00000001, "S" }`, in older kernels `{ 1, "S" }`. The
/// bit above the highest stands for a preempted task.
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
    found
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn state_letters_come_from_the_print_format() {
        let new = "x & y ? __print_flags(REC->prev_state & 255, \"|\", { 0x00000001, \"S\" }, { 0x00000080, \"I\" }) : \"R\"";
        assert_eq!(states(new), [(1, b'S'), (0x80, b'I')]);
        assert_eq!(states("{ 1, \"S\"} , { 2, \"D\" }"), [(1, b'S'), (2, b'D')]);
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
        assert_eq!(Layout::of(&format, &mut names, &mut report).what, What::Other);
        assert!(report.to_string().contains("sched/sched_waking has no readable field comm"), "{report}");
    }

    #[test]
    fn both_binder_groups_are_known_and_told_apart() {
        let text = b"name: binder_transaction_received\nID: 4\n\tfield:int debug_id;\toffset:8;\tsize:4;\tsigned:1;\n";
        for (group, what, flavour) in [
            ("binder", What::Received, Flavour::C),
            ("rust_binder", What::Received, Flavour::Rust),
            ("other", What::Other, Flavour::C),
        ] {
            let format = Format::parse(group, text).expect("a format");
            let layout = Layout::of(&format, &mut Names::default(), &mut Report::default());
            assert_eq!((layout.what, layout.flavour), (what, flavour), "{group}");
        }
    }
}
