//! Room: the kernel's text of one event, without its line's beginning, as a neutral event.
//! Not here: lines (`text`).
//! Facts: the `TP_printk` lines of `include/trace/events/` and `drivers/android/binder_trace.h`, Linux 7.2;
//! trace-cmd's own texts for `sched_switch` and wake-ups (`plugin_sched_switch.c` of libtraceevent).

mod binder;
mod cut;

use crate::event::{Flavour, Irq, Kind, LockSort, Name, Names, Place, Prio, Softirq, State, Task, Wake};
use cut::Cut;

/// Printed text as an event: the embedded driver's where it is one (`binder_transaction: transaction=...`),
/// otherwise text.
pub(crate) fn mark(text: &str, names: &mut Names) -> Kind {
    if text.starts_with("binder_")
        && let Some((name, rest)) = text.split_once(": ")
        && let Some(event) = binder::parse(name.as_bytes(), rest.as_bytes(), Flavour::Embedded, names)
    {
        return Kind::Binder(Flavour::Embedded, event);
    }
    Kind::Print(text.into())
}

/// What an event's text says. `None` if it is an event that is looked into, and its text is not as it
/// should be.
pub(crate) fn parse(name: &[u8], text: &[u8], names: &mut Names) -> Option<Kind> {
    if name.starts_with(b"binder_") {
        // The group is not in the text. The Rust driver's events are the same but for those it lacks.
        return match binder::parse(name, text, Flavour::C, names) {
            Some(event) => Some(Kind::Binder(Flavour::C, event)),
            None if binder::is_known(name) => None,
            None => Some(Kind::Other { name: names.intern_bytes(name) }),
        };
    }
    let cut = &mut Cut::new(text);
    Some(match name {
        b"sched_switch" => return switch(cut, names),
        b"sched_waking" => Kind::Waking(wake(cut, names)?),
        b"sched_wakeup" => Kind::Wakeup(wake(cut, names)?),
        b"sched_wakeup_new" => Kind::WakeupNew(wake(cut, names)?),
        b"sched_blocked_reason" => Kind::BlockedReason {
            tid: cut.int(b"pid=")?,
            io_wait: cut.int(b"iowait=")? != 0,
            caller: cut.place(b"caller=", names)?,
        },
        b"sched_pi_setprio" => Kind::PiSetprio {
            task: task(cut, [b"comm=", b" pid=", b"oldprio="], names)?,
            new_prio: Prio(cut.int(b"newprio=")?),
        },
        b"sched_migrate_task" => Kind::Migrate {
            task: task(cut, [b"comm=", b" pid=", b"prio="], names)?,
            from_cpu: cut.word(b"orig_cpu=")?,
            to_cpu: cut.word(b"dest_cpu=")?,
        },
        b"cpu_idle" => {
            let state = Some(cut.word(b"state=")?).filter(|state| *state != u32::MAX);
            Kind::CpuIdle { cpu: cut.word(b"cpu_id=")?, state }
        }
        b"cpu_frequency" => {
            let khz = cut.word(b"state=")?;
            Kind::CpuFrequency { cpu: cut.word(b"cpu_id=")?, khz }
        }
        b"workqueue_execute_start" => {
            let work = cut.address(b"work struct ")?;
            Kind::WorkStart { work, function: cut.place(b"function ", names)? }
        }
        b"workqueue_execute_end" => Kind::WorkEnd { work: cut.address(b"work struct ")? },
        b"mm_vmscan_direct_reclaim_begin" => Kind::ReclaimBegin { order: cut.int(b"order=")? },
        b"mm_vmscan_direct_reclaim_end" => {
            Kind::ReclaimEnd { reclaimed: cut.long(b"nr_reclaimed=")?.cast_unsigned() }
        }
        b"contention_begin" => {
            Kind::ContentionBegin(LockSort::of_words(cut.word_of(b"(flags=")?.strip_suffix(b")")?))
        }
        b"contention_end" => Kind::ContentionEnd,
        b"tracing_mark_write" => mark(&String::from_utf8_lossy(text), names),
        b"print" => {
            // trace-cmd's name for it, with the function that printed before the text.
            let text = String::from_utf8_lossy(text);
            mark(text.strip_prefix("tracing_mark_write: ").unwrap_or(&text), names)
        }
        _ => return interrupt(name, cut, names),
    })
}

fn interrupt(name: &[u8], cut: &mut Cut<'_>, names: &mut Names) -> Option<Kind> {
    Some(match name {
        b"irq_handler_entry" => {
            Kind::IrqEntry { irq: Irq::Line(cut.int(b"irq=")?), name: cut.rest(b"name=", names)? }
        }
        b"irq_handler_exit" => Kind::IrqExit { irq: Irq::Line(cut.int(b"irq=")?), name: Name::NONE },
        b"softirq_raise" => Kind::SoftirqRaise(Softirq(cut.word(b"vec=")?)),
        b"softirq_entry" => Kind::SoftirqEntry(Softirq(cut.word(b"vec=")?)),
        b"softirq_exit" => Kind::SoftirqExit(Softirq(cut.word(b"vec=")?)),
        b"ipi_entry" => Kind::IrqEntry { irq: Irq::Ipi, name: cut.bracketed(names)? },
        b"ipi_exit" => Kind::IrqExit { irq: Irq::Ipi, name: cut.bracketed(names)? },
        b"ipi_raise" => Kind::IpiSend { to_cpu: None, reason: cut.bracketed(names)? },
        b"ipi_send_cpu" => {
            let to_cpu = Some(cut.word(b"cpu=")?);
            Kind::IpiSend { to_cpu, reason: cut.place(b"callback=", names)?.symbol }
        }
        b"ipi_send_cpumask" => Kind::IpiSend { to_cpu: None, reason: cut.place(b"callback=", names)?.symbol },
        _ => {
            // The interrupts of a processor's own are all alike: `NAME_entry: vector=N`.
            let entry = name.strip_suffix(b"_entry").map(|name| (name, true));
            let either = entry.or_else(|| Some((name.strip_suffix(b"_exit")?, false)));
            match (either, cut.int(b"vector=")) {
                (Some((name, true)), Some(vector)) => {
                    Kind::IrqEntry { irq: Irq::Vector(vector), name: names.intern_bytes(name) }
                }
                (Some((name, false)), Some(vector)) => {
                    Kind::IrqExit { irq: Irq::Vector(vector), name: names.intern_bytes(name) }
                }
                _ => Kind::Other { name: names.intern_bytes(name) },
            }
        }
    })
}

fn switch(cut: &mut Cut<'_>, names: &mut Names) -> Option<Kind> {
    let Some(prev) = task(cut, [b"prev_comm=", b" prev_pid=", b"prev_prio="], names) else {
        return short_switch(cut, names);
    };
    let state = state(cut.text(b"prev_state=", b" ==> ")?)?;
    Some(Kind::Switch { prev, state, next: task(cut, [b"next_comm=", b" next_pid=", b"next_prio="], names)? })
}

/// As trace-cmd writes it: `COMM:TID [PRIO] STATE ==> COMM:TID [PRIO]`.
fn short_switch(cut: &mut Cut<'_>, names: &mut Names) -> Option<Kind> {
    let (prev, rest) = cut.short_task(names)?;
    let arrow = rest.windows(5).position(|window| window == b" ==> ")?;
    let state = state(rest[..arrow].trim_ascii())?;
    let (next, _) = Cut::new(&rest[arrow + 5..]).short_task(names)?;
    Some(Kind::Switch { prev, state, next })
}

/// `S`, `R+`, `D|K`.
fn state(text: &[u8]) -> Option<State> {
    let first = *text.first()?;
    Some(if text.ends_with(b"+") { State::Preempted } else { State::of_letter(first) })
}

fn wake(cut: &mut Cut<'_>, names: &mut Names) -> Option<Wake> {
    if let Some(task) = task(cut, [b"comm=", b" pid=", b"prio="], names) {
        return Some(Wake { task, target_cpu: cut.word(b"target_cpu=")? });
    }
    let (task, rest) = cut.short_task(names)?;
    Some(Wake { task, target_cpu: Cut::new(rest).word(b"CPU:")? })
}

fn task(cut: &mut Cut<'_>, [comm, tid, prio]: [&[u8]; 3], names: &mut Names) -> Option<Task> {
    let comm = names.intern_bytes(cut.text(comm, tid)?);
    Some(Task { comm, tid: cut.int(tid)?, prio: Prio(cut.int(prio)?) })
}

/// A symbol without the offset in it (`f+0x4/0x10`), or an address.
fn place(text: &[u8], names: &mut Names) -> Place {
    let word = text.split(|byte| byte.is_ascii_whitespace()).next().unwrap_or_default();
    let symbol = word.split(|byte| *byte == b'+').next().unwrap_or_default();
    if let Some(address) = symbol.strip_prefix(b"0x").and_then(crate::number::hex) {
        return Place { address, symbol: Name::NONE };
    }
    // `%pS` of nothing is `0x0`, and older texts have the address in brackets: `[<ffff...>] f+0x4/0x10`.
    let bracketed = word.starts_with(b"[<").then(|| text.get(word.len()..)).flatten();
    match bracketed.map(<[u8]>::trim_ascii_start).filter(|rest| !rest.is_empty() && !rest.starts_with(b"[<"))
    {
        Some(rest) => place(rest, names),
        None => Place { address: 0, symbol: names.intern_bytes(symbol) },
    }
}

#[cfg(test)]
mod tests;
