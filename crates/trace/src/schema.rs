//! Table of the decoded kernel events: their printed form, which names the raw fields, and the neutral event that they
//! make.
//! Not here: reading the values from bytes (`raw`) or from text (`fields`).
//! Facts: field names and `TP_printk` lines of `include/trace/events/` and `drivers/android/binder_trace.h`, Linux 7.2;
//! contract TP-02 to TP-10; Android kernels for `sched_blocked_reason` and `binder_set_priority`, old kernels for the
//! lock events of binder.

use std::collections::HashMap;
use std::mem::{Discriminant, discriminant};
use std::sync::LazyLock;

use crate::event::{
    Binder, Buffer, CodeLocation, Flavour, Irq, Kind, LatencyFree, LockKind, Name, Prio, Softirq, State,
    Task, Transaction, Wake,
};
use crate::hash::FastHash;

/// Maximum number of fields of one event.
pub(crate) const MOST_FIELDS: usize = 7;

/// Form of a field's value.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum FieldType {
    /// Number.
    Number,
    /// Number that old kernels do not print; 0 then.
    OptionalNumber,
    /// Address, printed in hexadecimal digits.
    Address,
    /// Name, printed up to the next field's key or to the end.
    Text,
    /// Address of a function, printed as its symbol.
    Place,
    /// Address of a text, printed as the text in round brackets at the end.
    Reason,
    /// Task state: bits, printed as letters. Its value is the letter, or `+` for a preempted task.
    State,
    /// Flags of a kernel lock, printed as words in round brackets.
    LockFlags,
}

/// Field of an event.
#[derive(Debug)]
pub(crate) struct FieldSpec {
    /// Name in the kernel's format; empty if only the printed form is readable.
    pub(crate) name: &'static str,
    /// Printed text before the value.
    pub(crate) key: &'static str,
    pub(crate) form: FieldType,
}

impl FieldSpec {
    /// Fields of a printed form, in which `{name}` or `{name:form}` stands for a value.
    fn parse(printed: &'static str) -> Vec<Self> {
        let fields = printed.split('}').filter_map(|part| part.split_once('{'));
        fields
            .map(|(key, field)| {
                let (name, form) = field.split_once(':').unwrap_or((field, ""));
                let form = match form {
                    "optional" => FieldType::OptionalNumber,
                    "address" => FieldType::Address,
                    "text" => FieldType::Text,
                    "place" => FieldType::Place,
                    "reason" => FieldType::Reason,
                    "state" => FieldType::State,
                    "lock" => FieldType::LockFlags,
                    _ => FieldType::Number,
                };
                Self { name, key, form }
            })
            .collect()
    }
}

/// Decoded event.
#[derive(Debug)]
pub(crate) struct EventSpec {
    group: &'static str,
    pub(crate) name: &'static str,
    /// Perfetto's message: its number in `FtraceEvent`, and the field number of each value; `None` for an event that it has as a
    /// generic one.
    pub(crate) message: Option<(u32, &'static [u8])>,
    /// Fields in the order in which they are printed.
    pub(crate) fields: Vec<FieldSpec>,
    decode: Decode,
}

#[derive(Debug)]
enum Decode {
    Kernel(fn(&Values) -> Kind),
    Binder(fn(&Values) -> Binder),
}

/// Value of a field: a number, a name, or both for a location in code.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct Value {
    pub(crate) number: u64,
    pub(crate) name: Name,
}

impl From<u64> for Value {
    fn from(number: u64) -> Self {
        Self { number, name: Name::NONE }
    }
}

impl From<Name> for Value {
    fn from(name: Name) -> Self {
        Self { number: 0, name }
    }
}

impl From<CodeLocation> for Value {
    fn from(place: CodeLocation) -> Self {
        Self { number: place.address, name: place.symbol }
    }
}

/// Values of an event's fields, in the order of its [`EventSpec`].
pub(crate) type Values = [Value; MOST_FIELDS];

/// Low 32 bits of a number: no decoded event uses higher bits of such a field, and kernels print some as longs.
#[expect(clippy::cast_possible_truncation, reason = "the low 32 bits are meant")]
fn word(value: Value) -> u32 {
    value.number as u32
}

/// Low 32 bits of a number, with its sign.
pub(crate) fn int(value: Value) -> i32 {
    word(value).cast_signed()
}

fn flag(value: Value) -> bool {
    word(value) != 0
}

fn prio(value: Value) -> Prio {
    Prio(int(value))
}

fn place(value: Value) -> CodeLocation {
    CodeLocation { address: value.number, symbol: value.name }
}

fn state(value: Value) -> State {
    State::of_letter(value.number.to_le_bytes()[0])
}

fn task([comm, tid, effective]: [Value; 3]) -> Task {
    Task { tid: int(tid), comm: comm.name, prio: prio(effective) }
}

fn wake([comm, tid, prio, cpu, ..]: &Values) -> Wake {
    Wake { task: task([*comm, *tid, *prio]), target_cpu: word(*cpu) }
}

fn softirq(v: &Values) -> Softirq {
    Softirq(word(v[0]))
}

fn buffer(v: &Values) -> Buffer {
    Buffer { debug_id: int(v[0]), data_size: v[1].number, offsets_size: v[2].number, extra_size: v[3].number }
}

fn kernel(
    group: &'static str,
    name: &'static str,
    printed: &'static str,
    decode: fn(&Values) -> Kind,
) -> EventSpec {
    EventSpec {
        group,
        name,
        message: None,
        fields: FieldSpec::parse(printed),
        decode: Decode::Kernel(decode),
    }
}

fn binder(name: &'static str, printed: &'static str, decode: fn(&Values) -> Binder) -> EventSpec {
    EventSpec {
        group: BINDER,
        name,
        message: None,
        fields: FieldSpec::parse(printed),
        decode: Decode::Binder(decode),
    }
}

/// Group of the C driver's events. Those of the Rust driver have the same names and fields (contract TP-01).
const BINDER: &str = "binder";

const WAKE: &str = "comm={comm:text} pid={pid} prio={prio} target_cpu={target_cpu}";
const REASON: &str = "({reason:reason})";
/// Kernels before 5.0 do not print the last one.
const BUFFER: &str = "transaction={debug_id} data_size={data_size} offsets_size={offsets_size} \
                      extra_buffers_size={extra_buffers_size:optional}";
/// The raw tag is an address in the driver without a symbol.
const TAG: &str = "tag={:text}";

/// Group, name, printed form, and the event that the values make.
static EVENTS: LazyLock<Vec<EventSpec>> = LazyLock::new(|| {
    vec![
        kernel(
            "sched",
            "sched_switch",
            "prev_comm={prev_comm:text} prev_pid={prev_pid} prev_prio={prev_prio} prev_state={prev_state:state} \
             ==> next_comm={next_comm:text} next_pid={next_pid} next_prio={next_prio}",
            |v| Kind::Switch {
                prev: task([v[0], v[1], v[2]]),
                state: state(v[3]),
                next: task([v[4], v[5], v[6]]),
            },
        ).message(4, &[1, 2, 3, 4, 5, 6, 7]),
        kernel("sched", "sched_waking", WAKE, |v| Kind::Waking(wake(v))).message(20, &[1, 2, 3, 5]),
        kernel("sched", "sched_wakeup", WAKE, |v| Kind::Wakeup(wake(v))).message(17, &[1, 2, 3, 5]),
        kernel("sched", "sched_wakeup_new", WAKE, |v| Kind::WakeupNew(wake(v))).message(114, &[1, 2, 3, 5]),
        kernel("sched", "sched_blocked_reason", "pid={pid} iowait={io_wait} caller={caller:place}", |v| {
            Kind::BlockedReason { tid: int(v[0]), io_wait: flag(v[1]), caller: place(v[2]) }
        }).message(18, &[1, 3, 2]),
        kernel(
            "sched",
            "sched_pi_setprio",
            "comm={comm:text} pid={pid} oldprio={oldprio} newprio={newprio}",
            |v| Kind::PiSetprio { task: task([v[0], v[1], v[2]]), new_prio: prio(v[3]) },
        ).message(353, &[1, 4, 3, 2]),
        kernel(
            "sched",
            "sched_migrate_task",
            "comm={comm:text} pid={pid} prio={prio} orig_cpu={orig_cpu} dest_cpu={dest_cpu}",
            |v| Kind::Migrate { task: task([v[0], v[1], v[2]]), from_cpu: word(v[3]), to_cpu: word(v[4]) },
        ).message(491, &[1, 2, 3, 4, 5]),
        kernel(
            "task",
            "task_rename",
            "pid={pid:optional} oldcomm={oldcomm:text} newcomm={newcomm:text} oom_score_adj={oom_score_adj:optional}",
            |v| Kind::Rename(task([v[2], v[0], Value::default()])),
        ).message(236, &[1, 2, 3, 4]),
        kernel("sched", "sched_process_exit", "comm={comm:text} pid={pid} prio={prio}", |v| {
            Kind::Exit(task([v[0], v[1], v[2]]))
        }).message(238, &[1, 2, 4]),
        kernel("irq", "irq_handler_entry", "irq={irq} name={name:text}", |v| Kind::IrqEntry {
            irq: Irq::Line(int(v[0])),
            name: v[1].name,
        }).message(36, &[1, 2]),
        kernel("irq", "irq_handler_exit", "irq={irq}", |v| Kind::IrqExit {
            irq: Irq::Line(int(v[0])),
            name: Name::NONE,
        }).message(37, &[1]),
        kernel("irq", "softirq_raise", "vec={vec}", |v| Kind::SoftirqRaise(softirq(v))).message(26, &[1]),
        kernel("irq", "softirq_entry", "vec={vec}", |v| Kind::SoftirqEntry(softirq(v))).message(24, &[1]),
        kernel("irq", "softirq_exit", "vec={vec}", |v| Kind::SoftirqExit(softirq(v))).message(25, &[1]),
        kernel("ipi", "ipi_entry", REASON, |v| Kind::IrqEntry { irq: Irq::Ipi, name: v[0].name }).message(21, &[1]),
        kernel("ipi", "ipi_exit", REASON, |v| Kind::IrqExit { irq: Irq::Ipi, name: v[0].name }).message(22, &[1]),
        kernel("ipi", "ipi_raise", REASON, |v| Kind::IpiSend { to_cpu: None, reason: v[0].name }).message(23, &[2]),
        kernel("ipi", "ipi_send_cpu", "cpu={cpu} callback={callback:place}", |v| Kind::IpiSend {
            to_cpu: Some(word(v[0])),
            reason: v[1].name,
        }),
        kernel("ipi", "ipi_send_cpumask", "callback={callback:place}", |v| Kind::IpiSend {
            to_cpu: None,
            reason: v[0].name,
        }),
        kernel("power", "cpu_idle", "state={state} cpu_id={cpu_id}", |v| {
            // The kernel's -1 for leaving a state.
            Kind::CpuIdle { cpu: word(v[1]), state: Some(word(v[0])).filter(|state| *state != u32::MAX) }
        }).message(13, &[1, 2]),
        kernel("power", "cpu_frequency", "state={state} cpu_id={cpu_id}", |v| Kind::CpuFrequency {
            cpu: word(v[1]),
            khz: word(v[0]),
        }).message(11, &[1, 2]),
        kernel(
            "workqueue",
            "workqueue_execute_start",
            "work struct {work:address} function {function:place}",
            |v| Kind::WorkStart { work: v[0].number, function: place(v[1]) },
        ).message(58, &[1, 2]),
        kernel("workqueue", "workqueue_execute_end", "work struct {work:address}", |v| Kind::WorkEnd {
            work: v[0].number,
        }).message(57, &[1]),
        kernel("vmscan", "mm_vmscan_direct_reclaim_begin", "order={order}", |v| Kind::ReclaimBegin {
            order: int(v[0]),
        }).message(46, &[1]),
        kernel("vmscan", "mm_vmscan_direct_reclaim_end", "nr_reclaimed={nr_reclaimed}", |v| {
            Kind::ReclaimEnd { reclaimed: v[0].number }
        }).message(47, &[1]),
        kernel("lock", "contention_begin", "(flags={flags:lock})", |v| {
            Kind::ContentionBegin(LockKind::of_flags(word(v[0])))
        }),
        kernel("lock", "contention_end", "", |_| Kind::ContentionEnd),
        binder(
            "binder_transaction",
            "transaction={debug_id} dest_node={target_node} dest_proc={to_proc} dest_thread={to_thread} \
             reply={reply} flags={flags} code={code}",
            |v| {
                Binder::Transaction(Transaction {
                    debug_id: int(v[0]),
                    target_node: int(v[1]),
                    to_proc: int(v[2]),
                    to_thread: int(v[3]),
                    reply: flag(v[4]),
                    flags: word(v[5]),
                    code: word(v[6]),
                })
            },
        ).message(50, &[1, 2, 3, 4, 5, 7, 6]),
        binder("binder_transaction_received", "transaction={debug_id}", |v| Binder::Received {
            debug_id: int(v[0]),
        }).message(51, &[1]),
        binder("binder_transaction_alloc_buf", BUFFER, |v| Binder::AllocBuf(buffer(v))).message(323, &[2, 1, 3, 4]),
        binder("binder_transaction_buffer_release", BUFFER, |v| Binder::BufferRelease(buffer(v))),
        binder("binder_transaction_failed_buffer_release", BUFFER, |v| {
            Binder::FailedBufferRelease(buffer(v))
        }),
        binder("binder_transaction_update_buffer_release", BUFFER, |v| {
            Binder::UpdateBufferRelease(buffer(v))
        }),
        binder(
            "binder_set_priority",
            "proc={proc} thread={thread} old={old_prio} => new={new_prio} desired={desired_prio}",
            |v| Binder::SetPriority {
                proc: int(v[0]),
                thread: int(v[1]),
                old: prio(v[2]),
                new: prio(v[3]),
                desired: prio(v[4]),
            },
        ).message(52, &[1, 2, 3, 4, 5]),
        binder("binder_lock", TAG, |v| Binder::Lock { tag: v[0].name }).message(53, &[1]),
        binder("binder_locked", TAG, |v| Binder::Locked { tag: v[0].name }).message(54, &[1]),
        binder("binder_unlock", TAG, |v| Binder::Unlock { tag: v[0].name }).message(55, &[1]),
        binder(
            "binder_wait_for_work",
            "proc_work={proc_work} transaction_stack={transaction_stack} thread_todo={thread_todo}",
            |v| Binder::WaitForWork {
                proc_work: flag(v[0]),
                transaction_stack: flag(v[1]),
                thread_todo: flag(v[2]),
            },
        ),
        binder("binder_ioctl", "cmd={cmd} arg={arg}", |v| Binder::Ioctl {
            cmd: word(v[0]),
            arg: v[1].number,
        }),
        binder("binder_ioctl_done", "ret={ret}", |v| Binder::IoctlDone { ret: int(v[0]) }),
        binder("binder_write_done", "ret={ret}", |v| Binder::WriteDone { ret: int(v[0]) }),
        binder("binder_read_done", "ret={ret}", |v| Binder::ReadDone { ret: int(v[0]) }),
        binder("binder_command", "cmd={cmd}", |v| Binder::Command { cmd: word(v[0]) }).message(485, &[1]),
        binder("binder_return", "cmd={cmd}", |v| Binder::Return { cmd: word(v[0]) }).message(486, &[1]),
        // The kernel prints the code behind `flags=` and the flags behind `code=` (contract TP-09).
        binder(
            "binder_txn_latency_free",
            "transaction={debug_id} from {from_proc}:{from_thread} to {to_proc}:{to_thread} \
             flags={code} code={flags}",
            |v| {
                Binder::LatencyFree(LatencyFree {
                    debug_id: int(v[0]),
                    from_proc: int(v[1]),
                    from_thread: int(v[2]),
                    to_proc: int(v[3]),
                    to_thread: int(v[4]),
                    code: word(v[5]),
                    flags: word(v[6]),
                })
            },
        ),
        binder("binder_transaction_fd_send", "transaction={debug_id} src_fd={fd} offset={offset}", |v| {
            Binder::FdSend { debug_id: int(v[0]), fd: int(v[1]), offset: v[2].number }
        }),
        binder("binder_transaction_fd_recv", "transaction={debug_id} dest_fd={fd} offset={offset}", |v| {
            Binder::FdReceived { debug_id: int(v[0]), fd: int(v[1]), offset: v[2].number }
        }),
    ]
});

/// What an event means, without its values.
type Meaning = (Discriminant<Kind>, Option<Discriminant<Binder>>);

fn meaning(kind: &Kind) -> Meaning {
    let binder = if let Kind::Binder(_, binder) = kind { Some(discriminant(binder)) } else { None };
    (discriminant(kind), binder)
}

impl Kind {
    /// The kernel's name of the event, the first one of those that mean the same; `None` if it is not in the table.
    #[must_use]
    pub fn name(&self) -> Option<&'static str> {
        static NAMES: LazyLock<Vec<(Meaning, &str)>> = LazyLock::new(|| {
            let meaning = |spec: &EventSpec| meaning(&spec.event(&Values::default(), Flavour::C));
            EVENTS.iter().map(|spec| (meaning(spec), spec.name)).collect()
        });
        let own = meaning(self);
        NAMES.iter().find(|(meaning, _)| *meaning == own).map(|(_, name)| *name)
    }
}

impl EventSpec {
    /// All events.
    pub(crate) fn all() -> impl Iterator<Item = &'static Self> {
        EVENTS.iter()
    }

    /// Adds Perfetto's message of the event.
    fn message(self, number: u32, fields: &'static [u8]) -> Self {
        Self { message: Some((number, fields)), ..self }
    }

    /// Event of this group and name, and the driver if it is a binder driver's.
    pub(crate) fn in_group(group: &str, name: &str) -> Option<(&'static Self, Flavour)> {
        let (group, flavour) =
            if group == "rust_binder" { (BINDER, Flavour::Rust) } else { (group, Flavour::C) };
        EVENTS.iter().find(|spec| spec.name == name && spec.group == group).map(|spec| (spec, flavour))
    }

    /// Event of this name; texts lack the group.
    pub(crate) fn named(name: &[u8]) -> Option<&'static Self> {
        static BY_NAME: LazyLock<HashMap<&[u8], &EventSpec, FastHash>> =
            LazyLock::new(|| EVENTS.iter().map(|spec| (spec.name.as_bytes(), spec)).collect());
        BY_NAME.get(name).copied()
    }

    /// Whether it is an event of the binder drivers.
    pub(crate) fn is_binder(&self) -> bool {
        matches!(self.decode, Decode::Binder(_))
    }

    /// Neutral event with these values.
    pub(crate) fn event(&self, values: &Values, flavour: Flavour) -> Kind {
        match self.decode {
            Decode::Kernel(decode) => decode(values),
            Decode::Binder(decode) => Kind::Binder(flavour, decode(values)),
        }
    }
}

/// Letter of a task state; `+` for a preempted task.
/// Facts: `include/linux/sched.h` of 4.4, 4.9 and 7.2. Their bits differ, and mean the same as far as they are told apart
/// here: 0x100 is a preempted task since 4.14, 0x800 and 0x1000 before; 0x402 is an idle kernel thread before 4.14.
pub(crate) fn state_letter(bits: u64) -> u8 {
    match bits {
        0 => b'R',
        _ if bits & 0x1900 != 0 => b'+',
        0x402 => b'I',
        _ if bits & 0x01 != 0 => b'S',
        _ if bits & 0x02 != 0 => b'D',
        _ if bits & 0x0c != 0 => b'T',
        _ if bits & 0x30 != 0 => b'X',
        _ if bits & 0x240 != 0 => b'P',
        _ if bits & 0x80 != 0 => b'I',
        _ => b'?',
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_event_is_once_in_the_table_and_its_fields_have_room() {
        for (index, spec) in EVENTS.iter().enumerate() {
            assert!(spec.fields.len() <= MOST_FIELDS, "{}", spec.name);
            assert!(EVENTS[..index].iter().all(|other| other.name != spec.name), "{}", spec.name);
        }
    }

    #[test]
    fn an_event_has_the_name_by_which_it_comes() {
        let alike = ["ipi_entry", "ipi_exit", "ipi_send_cpu", "ipi_send_cpumask"];
        for spec in EventSpec::all() {
            let name = spec.event(&Values::default(), Flavour::Rust).name().expect("it is in the table");
            assert!(name == spec.name || alike.contains(&spec.name), "{} is {name}", spec.name);
        }
        assert_eq!(Kind::Lost { count: None }.name(), None);
    }

    #[test]
    fn states_of_old_and_new_kernels_are_read() {
        for (bits, state) in [
            (0, State::Runnable),
            (0x100, State::Preempted),
            (0x800, State::Preempted),
            (0x1000, State::Preempted),
            (0x1, State::Sleeping),
            (0x2, State::Uninterruptible),
            (0x82, State::Uninterruptible),
            (0x402, State::Idle),
            (0x80, State::Idle),
            (0x4, State::Stopped),
            (0x10, State::Dead),
            (0x20, State::Dead),
            (0x40, State::Parked),
            (0x200, State::Parked),
            (0x4000, State::Other),
        ] {
            assert_eq!(State::of_letter(state_letter(bits)), state, "{bits:#x}");
        }
    }
}
