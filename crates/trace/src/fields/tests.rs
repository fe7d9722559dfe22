//! Tests of event texts: each event as kernels, phones and trace-cmd print it.

use super::*;
use crate::event::{Binder, Buffer, LatencyFree, Softirq, Transaction};

fn names() -> Names {
    let mut names = Names::default();
    for name in ["a b", "x=y pid", "idle"] {
        names.intern(name);
    }
    names
}

fn read(name: &str, text: &str) -> (Option<Kind>, Names) {
    let mut names = names();
    (parse(name.as_bytes(), text.as_bytes(), &mut names), names)
}

fn switch_of(text: &str) -> (String, i32, i32, State, String, i32, i32) {
    let (kind, names) = read("sched_switch", text);
    let Some(Kind::Switch { prev, state, next }) = kind else { panic!("{text}: {kind:?}") };
    let name = |task: &Task| names.text(task.comm).to_owned();
    (name(&prev), prev.tid, prev.prio.0, state, name(&next), next.tid, next.prio.0)
}

#[test]
fn a_switch_reads_alike_from_the_kernel_and_from_trace_cmd() {
    let want = ("a b".to_owned(), 7, 120, State::Preempted, "kworker/0:1".to_owned(), 9, 0);
    assert_eq!(
        switch_of(
            "prev_comm=a b prev_pid=7 prev_prio=120 prev_state=R+ ==> next_comm=kworker/0:1 next_pid=9 next_prio=0"
        ),
        want
    );
    assert_eq!(switch_of("a b:7 [120] R+ ==> kworker/0:1:9 [0]"), want);
    for (letter, state) in [
        ("S", State::Sleeping),
        ("D", State::Uninterruptible),
        ("D|K", State::Uninterruptible),
        ("R", State::Runnable),
        ("I", State::Idle),
        ("x", State::Dead),
        ("S+", State::Preempted),
    ] {
        let text = format!(
            "prev_comm=a prev_pid=7 prev_prio=-1 prev_state={letter} ==> next_comm=b next_pid=9 next_prio=0"
        );
        assert_eq!(switch_of(&text).3, state, "{letter}");
    }
}

#[test]
fn a_thread_that_is_renamed_or_ends_has_a_name() {
    let (kind, names) = read("task_rename", "pid=7 oldcomm=main newcomm=a b oom_score_adj=-900");
    let Some(Kind::Rename(task)) = kind else { panic!("{kind:?}") };
    assert_eq!((task.tid, names.text(task.comm)), (7, "a b"));
    for text in ["comm=a b pid=7 prio=120", "comm=a b pid=7 prio=120 group_dead=true"] {
        let (kind, names) = read("sched_process_exit", text);
        let Some(Kind::Exit(task)) = kind else { panic!("{text}: {kind:?}") };
        assert_eq!((task.tid, names.text(task.comm), task.prio.0), (7, "a b", 120), "{text}");
    }
}

#[test]
fn wake_ups_come_in_three_forms() {
    for text in [
        "comm=a b pid=7 prio=98 target_cpu=003",
        "comm=a b pid=7 prio=98 success=1 target_cpu=003",
        "a b:7 [98] CPU:003",
        "a b:7 [98] success=1 CPU:003",
    ] {
        let (kind, names) = read("sched_wakeup", text);
        let Some(Kind::Wakeup(Wake { task, target_cpu })) = kind else { panic!("{text}: {kind:?}") };
        assert_eq!((names.text(task.comm), task.tid, task.prio.0, target_cpu), ("a b", 7, 98, 3), "{text}");
    }
}

#[test]
fn binder_events_have_the_drivers_numbers() {
    for (name, text, want) in [
        (
            "binder_transaction",
            "transaction=243 dest_node=11 dest_proc=48 dest_thread=0 reply=0 flags=0x10 code=0x5f4e5446",
            Binder::Transaction(Transaction {
                debug_id: 243,
                target_node: 11,
                to_proc: 48,
                to_thread: 0,
                reply: false,
                code: 0x5f4e_5446,
                flags: 0x10,
            }),
        ),
        ("binder_transaction_received", "transaction=-3", Binder::Received { debug_id: -3 }),
        (
            "binder_transaction_alloc_buf",
            "transaction=1 data_size=16 offsets_size=8 extra_buffers_size=4",
            Binder::AllocBuf(Buffer { debug_id: 1, data_size: 16, offsets_size: 8, extra_size: 4 }),
        ),
        (
            "binder_transaction_buffer_release",
            "transaction=1 data_size=16 offsets_size=8",
            Binder::BufferRelease(Buffer { debug_id: 1, data_size: 16, offsets_size: 8, extra_size: 0 }),
        ),
        (
            "binder_set_priority",
            "proc=1 thread=2 old=120 => new=100 desired=98",
            Binder::SetPriority { proc: 1, thread: 2, old: Prio(120), new: Prio(100), desired: Prio(98) },
        ),
        ("binder_command", "cmd=0x40406300 BC_TRANSACTION", Binder::Command { cmd: 0x4040_6300 }),
        ("binder_return", "cmd=0x80407202 BR_TRANSACTION", Binder::Return { cmd: 0x8040_7202 }),
        (
            "binder_ioctl",
            "cmd=0xc0306201 arg=0x7ffd373a8130",
            Binder::Ioctl { cmd: 0xc030_6201, arg: 0x7ffd_373a_8130 },
        ),
        ("binder_ioctl_done", "ret=-4", Binder::IoctlDone { ret: -4 }),
        (
            "binder_wait_for_work",
            "proc_work=0 transaction_stack=1 thread_todo=0",
            Binder::WaitForWork { proc_work: false, transaction_stack: true, thread_todo: false },
        ),
        (
            "binder_transaction_fd_send",
            "transaction=5 src_fd=3 offset=8",
            Binder::FdSend { debug_id: 5, fd: 3, offset: 8 },
        ),
        (
            "binder_transaction_fd_recv",
            "transaction=5 dest_fd=3 offset=8",
            Binder::FdReceived { debug_id: 5, fd: 3, offset: 8 },
        ),
    ] {
        assert_eq!(read(name, text).0, Some(Kind::Binder(Flavour::C, want)), "{name}");
    }
    let (kind, names) = read("binder_lock", "tag=binder_ioctl");
    let Some(Kind::Binder(_, Binder::Lock { tag })) = kind else { panic!("{kind:?}") };
    assert_eq!(names.text(tag), "binder_ioctl");
    assert!(matches!(read("binder_update_page_range", "proc=1").0, Some(Kind::Other { .. })));
}

/// TP-09: the kernel swaps the labels, the embedded driver does not.
#[test]
fn the_swapped_labels_are_swapped_back_but_for_our_own() {
    let end = LatencyFree {
        debug_id: 7,
        from_proc: 1,
        from_thread: 2,
        to_proc: 3,
        to_thread: 4,
        code: 0x10,
        flags: 1,
    };
    let kernel = "transaction=7 from 1:2 to 3:4 flags=0x10 code=0x1";
    let want = Kind::Binder(Flavour::C, Binder::LatencyFree(end));
    assert_eq!(read("binder_txn_latency_free", kernel).0, Some(want));
    let ours = "binder_txn_latency_free: transaction=7 from 1:2 to 3:4 flags=0x1 code=0x10";
    let want = Kind::Binder(Flavour::Embedded, Binder::LatencyFree(end));
    assert_eq!(read("tracing_mark_write", ours).0, Some(want));
}

#[test]
fn marks_that_are_events_of_ours_are_events() {
    for (text, event) in [
        ("binder_transaction_received: transaction=12\n", true),
        ("binder_transaction_received: nothing", false),
        ("binder_surprise: transaction=12", false),
        ("B|1|binder_transaction_received: transaction=1", false),
    ] {
        let kind = mark(text.as_bytes(), &mut names());
        assert_eq!(matches!(kind, Kind::Binder(Flavour::Embedded, _)), event, "{text}: {kind:?}");
        assert_eq!(matches!(kind, Kind::Print(_)), !event, "{text}: {kind:?}");
    }
    assert_eq!(read("print", "tracing_mark_write: E|3").0, Some(Kind::Print("E|3".into())));
}

#[test]
fn interrupts_have_their_names() {
    let entry = |name: &str, text: &str| match read(name, text) {
        (Some(Kind::IrqEntry { irq, name } | Kind::IrqExit { irq, name }), names) => {
            (irq, names.text(name).to_owned())
        }
        other => panic!("{name}: {other:?}"),
    };
    assert_eq!(
        entry("irq_handler_entry", "irq=24 name=virtio2-req.0"),
        (Irq::Line(24), "virtio2-req.0".into())
    );
    assert_eq!(entry("irq_handler_exit", "irq=24 ret=handled"), (Irq::Line(24), String::new()));
    assert_eq!(entry("local_timer_entry", "vector=236"), (Irq::Vector(236), "local_timer".into()));
    assert_eq!(entry("reschedule_exit", "vector=253"), (Irq::Vector(253), "reschedule".into()));
    assert_eq!(entry("ipi_entry", "(Rescheduling interrupts)"), (Irq::Ipi, "Rescheduling interrupts".into()));
    assert_eq!(read("softirq_entry", "vec=7 [action=SCHED]").0, Some(Kind::SoftirqEntry(Softirq(7))));
    let (kind, names) = read("ipi_raise", "target_mask=00000000,00000002 (Function call interrupts)");
    let Some(Kind::IpiSend { to_cpu: None, reason }) = kind else { panic!("{kind:?}") };
    assert_eq!(names.text(reason), "Function call interrupts");
}

#[test]
fn places_are_symbols_or_addresses() {
    for (text, address, symbol) in [
        ("f+0x4/0x10", 0, "f"),
        ("f", 0, "f"),
        ("0xffffffc0", 0xffff_ffc0, ""),
        ("[<ffffffc0>] f+0x4/0x10", 0, "f"),
    ] {
        let (kind, names) = read("sched_blocked_reason", &format!("pid=7 iowait=1 caller={text}"));
        let Some(Kind::BlockedReason { tid: 7, io_wait: true, caller }) = kind else {
            panic!("{text}: {kind:?}")
        };
        assert_eq!((caller.address, names.text(caller.symbol)), (address, symbol), "{text}");
    }
    let (kind, names) =
        read("workqueue_execute_start", "work struct 00000000abcdef01: function vmstat_update");
    let Some(Kind::WorkStart { work: 0xabcd_ef01, function }) = kind else { panic!("{kind:?}") };
    assert_eq!(names.text(function.symbol), "vmstat_update");
    assert_eq!(
        read("workqueue_execute_end", "work struct 0xff: function f").0,
        Some(Kind::WorkEnd { work: 255 })
    );
}

#[test]
fn power_and_memory_events_are_read() {
    for (name, text, want) in [
        ("cpu_idle", "state=4294967295 cpu_id=1", Kind::CpuIdle { cpu: 1, state: None }),
        ("cpu_idle", "state=2 cpu_id=0", Kind::CpuIdle { cpu: 0, state: Some(2) }),
        ("cpu_frequency", "state=1800000 cpu_id=4", Kind::CpuFrequency { cpu: 4, khz: 1_800_000 }),
        ("mm_vmscan_direct_reclaim_begin", "order=0 gfp_flags=GFP_KERNEL", Kind::ReclaimBegin { order: 0 }),
        ("mm_vmscan_direct_reclaim_end", "nr_reclaimed=37", Kind::ReclaimEnd { reclaimed: 37 }),
        (
            "contention_begin",
            "000000007c1bb2b7 (flags=SPIN|MUTEX)",
            Kind::ContentionBegin(crate::event::LockKind::Mutex),
        ),
        (
            "contention_begin",
            "000000007c1bb2b7 (flags=)",
            Kind::ContentionBegin(crate::event::LockKind::Semaphore),
        ),
        ("contention_end", "000000007c1bb2b7 (ret=0)", Kind::ContentionEnd),
    ] {
        assert_eq!(read(name, text).0, Some(want), "{name}");
    }
}

#[test]
fn texts_of_an_unknown_form_are_refused_not_guessed() {
    for name in ["sched_switch", "sched_waking", "cpu_idle", "binder_transaction", "binder_txn_latency_free"]
    {
        for text in ["", "x", "prev_comm=", "transaction=x", "comm=a pid=b prio=c", "a:b [c] d ==> e"] {
            assert_eq!(read(name, text).0, None, "{name}: {text}");
        }
    }
    assert!(matches!(read("ext4_sync", "dev 1").0, Some(Kind::Other { .. })));
}
