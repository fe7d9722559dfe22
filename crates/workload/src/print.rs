//! Writing a load as text.
//! Not here: reading it (`text`).

use std::fmt::Write as _;

use crate::description::{Call, Expected, Scheduling, Step, Thread, Turns, Workload};
use crate::text::HEADER;

/// Writes a description as [`parse`](crate::text::parse) reads it.
#[must_use]
pub fn print(workload: &Workload) -> String {
    let mut out = format!("{HEADER}\n");
    for note in workload.notes.iter().flat_map(|note| note.split('\n')) {
        line(&mut out, 0, format_args!("# {note}").to_string().trim_end());
    }
    for process in &workload.processes {
        let mut text = format!("process {}", process.name);
        put(&mut text, "copies", process.copies, 1);
        put(&mut text, "pool", process.pool, 0);
        line(&mut out, 0, text);
    }
    for of in &workload.threads {
        thread(&mut out, workload, of);
    }
    if let Some(measured) = &workload.measured {
        for (word, part) in [
            ("once", &measured.once),
            ("before", &measured.before),
            ("measure", &measured.measure),
            ("after", &measured.after),
        ] {
            if !part.is_empty() {
                line(&mut out, 0, word);
                steps(&mut out, workload, part, 1);
            }
        }
    }
    out
}

fn line(out: &mut String, depth: usize, text: impl std::fmt::Display) {
    // Writing to a string does not fail.
    let _ = writeln!(out, "{:indent$}{text}", "", indent = 2 * depth);
}

/// Appends a word with its number, unless that is the usual one.
fn put<N: PartialEq + std::fmt::Display>(text: &mut String, word: &str, number: N, usual: N) {
    if number != usual {
        let _ = write!(text, " {word} {number}");
    }
}

fn thread(out: &mut String, workload: &Workload, of: &Thread) {
    let mut text = format!("thread {}", workload.name(of.process));
    let _ = match of.scheduling {
        Scheduling::Inherited => Ok(()),
        Scheduling::Nice(nice) => write!(text, " nice {nice}"),
        Scheduling::Fifo(priority) => write!(text, " fifo {priority}"),
        Scheduling::RoundRobin(priority) => write!(text, " rr {priority}"),
    };
    match of.turns {
        Turns::Times(times) => put(&mut text, "times", times, 1),
        Turns::Forever => text.push_str(" forever"),
        Turns::OnRelease => text.push_str(" on-release"),
    }
    line(out, 0, text);
    steps(out, workload, &of.steps, 1);
}

fn steps(out: &mut String, workload: &Workload, steps: &[Step], depth: usize) {
    for step in steps {
        let name = |process: usize| workload.name(process);
        match step {
            Step::Call(of) => call(out, workload, of, depth),
            Step::Work(ns) => line(out, depth, format_args!("work {}", duration(*ns))),
            Step::Sleep(ns) => line(out, depth, format_args!("sleep {}", duration(*ns))),
            Step::At(ns) => line(out, depth, format_args!("at {}", duration(*ns))),
            Step::Hold => line(out, depth, "hold"),
            Step::Fetch { from, count } => line(out, depth, format_args!("fetch {} {count}", name(*from))),
            Step::Link => line(out, depth, "link"),
            Step::Unlink => line(out, depth, "unlink"),
            Step::Forget => line(out, depth, "forget"),
            Step::Register(count) => line(out, depth, format_args!("register {count}")),
            Step::Subscribe => line(out, depth, "subscribe"),
            Step::LookUp(of) => line(out, depth, format_args!("look-up {}", name(*of))),
            Step::List => line(out, depth, "list"),
            Step::Open => line(out, depth, "open"),
            Step::Close => line(out, depth, "close"),
            Step::Release(of) => line(out, depth, format_args!("release {}", name(*of))),
            Step::Finished(of) => line(out, depth, format_args!("finished {}", name(*of))),
            Step::Served { process, calls } => {
                line(out, depth, format_args!("served {} {calls}", name(*process)));
            }
            Step::Kill(of) => line(out, depth, format_args!("kill {}", name(*of))),
            Step::Start(of) => line(out, depth, format_args!("start {}", name(*of))),
            Step::Notified { process, notices } => {
                line(out, depth, format_args!("notified {} {notices}", name(*process)));
            }
            Step::Freeze(of) => line(out, depth, format_args!("freeze {}", name(*of))),
            Step::Thaw(of) => line(out, depth, format_args!("thaw {}", name(*of))),
            Step::Stop(of) => line(out, depth, format_args!("stop {}", name(*of))),
            Step::Continue(of) => line(out, depth, format_args!("continue {}", name(*of))),
            Step::Reclaim => line(out, depth, "reclaim"),
        }
    }
}

fn call(out: &mut String, workload: &Workload, call: &Call, depth: usize) {
    let to = workload.name(call.to);
    let mut text = match call.oneway {
        true => format!("oneway {to} {}", call.request),
        false => format!("call {to} {}>{}", call.request, call.reply),
    };
    put(&mut text, "fds", call.carries.descriptors, 0);
    put(&mut text, "new", call.carries.new_objects, 0);
    put(&mut text, "known", call.carries.known_objects, 0);
    put(&mut text, "handles", call.carries.handles, 0);
    text.push_str(if call.carries.weak { " weak" } else { "" });
    put(&mut text, "times", call.times, 1);
    text.push_str(match call.expected {
        Expected::Taken => "",
        Expected::Refused => " refused",
        Expected::Either => " maybe-refused",
    });
    line(out, depth, text);
    steps(out, workload, &call.served, depth + 1);
}

/// A duration in its largest unit that needs no more than three decimals, exact.
fn duration(ns: u64) -> String {
    let (unit, one) = match ns {
        0..1_000 => return format!("{ns}ns"),
        1_000..1_000_000 => ("us", 1_000),
        1_000_000..1_000_000_000 if ns.is_multiple_of(1_000) => ("ms", 1_000_000),
        1_000_000..1_000_000_000 => ("us", 1_000),
        _ if ns.is_multiple_of(1_000_000) => ("s", 1_000_000_000),
        _ => ("ms", 1_000_000),
    };
    let (whole, mut part) = (ns / one, ns % one);
    if part == 0 {
        return format!("{whole}{unit}");
    }
    let mut places = one.ilog10() as usize;
    while part.is_multiple_of(10) {
        (part, places) = (part / 10, places - 1);
    }
    format!("{whole}.{part:0places$}{unit}")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn durations_are_exact_and_short() {
        for (ns, text) in [
            (0, "0ns"),
            (999, "999ns"),
            (1_000, "1us"),
            (12_345, "12.345us"),
            (1_500_000, "1.5ms"),
            (1_000_001, "1000.001us"),
            (2_050_000_000, "2.05s"),
            (2_000_000_001, "2000.000001ms"),
        ] {
            assert_eq!(duration(ns), text);
        }
    }
}
