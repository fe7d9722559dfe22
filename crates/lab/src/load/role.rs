//! Room: what this program does when another copy of it started it as load.
//! Not here: starting it (`super`), one portion of the work (`work`).
//! Facts: `RLIMIT_RTTIME` in `getrlimit(2)`; `prctl(2)` on timer slack, which would gather interrupts.

use std::io::{self, Write};

use serde::{Deserialize, Serialize};
use sys::clock::monotonic_ns;
use sys::clock_sleep;
use sys::sched::{self, Policy};

use super::spec::{Class, LoadSpec};
use super::work::Work;

/// The hidden command that makes this program a load.
pub const COMMAND: &str = "__load";
/// The first word of the line by which it says how it runs.
const READY: &str = "at-work";

const MS: u64 = 1_000_000;
/// In so much time ...
const PERIOD: u64 = 10 * MS;
/// ... the real-time loads of one CPU together work for so much.
const SLICES: u64 = 8 * MS;
/// CPU time in us without any sleep after which the kernel ends a real-time load: many slices.
const RUNAWAY: (u64, u64) = (200_000, 400_000);

/// What one process is told.
#[derive(Clone, Debug, PartialEq)]
pub(super) struct Assignment {
    /// Its count is not this process's business.
    pub(super) spec: LoadSpec,
    /// Where it may run; `None`: where its parent may.
    pub(super) cpus: Option<Vec<u32>>,
    /// How many real-time loads share a CPU.
    pub(super) crowd: u32,
    /// How many loads share the memory that there is for streams.
    pub(super) streams: u32,
}

/// The same as it is passed on.
#[derive(Serialize, Deserialize)]
struct Words {
    load: String,
    cpus: Option<Vec<u32>>,
    crowd: u32,
    streams: u32,
}

impl Assignment {
    /// The words that start a process with it.
    pub(super) fn words(&self) -> Vec<String> {
        let Self { spec, cpus, crowd, streams } = self.clone();
        let words = Words { load: spec.to_string(), cpus, crowd, streams };
        // Strings and numbers always are JSON; without it the process says that it was told nonsense.
        vec![COMMAND.to_owned(), serde_json::to_string(&words).unwrap_or_default()]
    }

    fn parse(words: &[String]) -> Option<Self> {
        let [word] = words else { return None };
        let words: Words = serde_json::from_str(word).ok()?;
        let Words { load, cpus, crowd, streams } = words;
        Some(Self { spec: load.parse().ok()?, cpus, crowd: crowd.max(1), streams: streams.max(1) })
    }
}

/// Is the load that the words behind [`COMMAND`] describe, until it is ended. Returns the exit code: 2 for
/// words that make no sense, 3 when it cannot be had; the reason goes to standard output.
#[must_use]
pub fn play(words: &[String]) -> u8 {
    let Some(assignment) = Assignment::parse(words) else {
        eprintln!("binderperf: {COMMAND} is started by binderperf itself");
        return 2;
    };
    match prepare(&assignment) {
        Ok((mut work, line)) => {
            say(&line);
            go_on(&mut work, &assignment)
        }
        Err(why) => {
            say(&why);
            3
        }
    }
}

/// Whoever started this waits for the line.
fn say(line: &str) {
    let mut stdout = io::stdout();
    let _ = writeln!(stdout, "{line}").and_then(|()| stdout.flush());
}

/// Everything but the work: memory and files are there before this becomes urgent.
fn prepare(assignment: &Assignment) -> Result<(Work, String), String> {
    let Assignment { spec, cpus, crowd, streams } = assignment;
    let os = |what: &'static str| move |error: io::Error| format!("{what}: {}", sys::errno::describe(&error));
    if let Some(cpus) = cpus {
        sched::set_affinity(cpus).map_err(os("choosing its CPUs"))?;
    }
    // A parent may be real-time, and its children should not be by accident.
    sched::set_policy(0, Policy::Other).map_err(os("becoming SCHED_OTHER"))?;
    let stretch = if spec.class.is_realtime() { *crowd } else { 1 };
    let work = Work::prepare(spec.kind, stretch, *streams)?;
    sys::timer_slack::set_ns(1).map_err(os("having its timers on time"))?;
    sys::rt_limit::limit_realtime_us(RUNAWAY.0, RUNAWAY.1)
        .map_err(os("limiting its real-time CPU time (RLIMIT_RTTIME)"))?;
    take_class(spec.class)?;
    let own = sched::own_now();
    let as_asked = own.policy == spec.class.policy() && spec.class.nice().is_none_or(|nice| nice == own.nice);
    if !as_asked {
        return Err(format!("it asked for {} and runs as {:?}, nice {}", spec.class, own.policy, own.nice));
    }
    Ok((work, ready_line(own.policy, own.nice)))
}

fn take_class(class: Class) -> Result<(), String> {
    if let Some(nice) = class.nice() {
        sched::set_nice(0, nice).map_err(|error| {
            let what = sys::errno::describe(&error);
            format!(
                "taking nice {nice}: {what}; below its own it needs CAP_SYS_NICE or RLIMIT_NICE (ulimit -e)"
            )
        })?;
    }
    sched::set_policy(0, class.policy()).map_err(|error| {
        let (what, most) = (sys::errno::describe(&error), sys::rt_limit::most_priority());
        let advice = match class.is_realtime() {
            true => format!(
                "; a real-time class needs CAP_SYS_NICE or RLIMIT_RTPRIO (ulimit -r, now {most}), and with real-time \
                 group scheduling a share for its cgroup (cpu.rt_runtime_us)"
            ),
            false => String::new(),
        };
        format!("becoming {class}: {what}{advice}")
    })
}

/// Works until the process is ended.
fn go_on(work: &mut Work, assignment: &Assignment) -> ! {
    let slice = SLICES / u64::from(assignment.crowd.max(1));
    let rest = PERIOD - slice;
    loop {
        let start = monotonic_ns();
        while monotonic_ns() - start < slice {
            work.portion();
        }
        if assignment.spec.class.is_realtime() {
            // From now, not from the start: who was kept from working does not make up for it.
            clock_sleep::until(monotonic_ns() + rest);
        }
    }
}

fn ready_line(policy: Policy, nice: i32) -> String {
    let (name, priority) = match policy {
        Policy::Batch => ("batch", 0),
        Policy::Idle => ("idle", 0),
        Policy::Fifo(priority) => ("fifo", priority),
        Policy::Rr(priority) => ("rr", priority),
        _ => ("other", 0),
    };
    format!("{READY} {name} {priority} {nice}")
}

/// Reads what a load said once it was at work: its policy and nice.
pub(super) fn parse_ready(line: &str) -> Option<(Policy, i32)> {
    let [READY, name, priority, nice] = line.split(' ').collect::<Vec<_>>()[..] else { return None };
    let priority = priority.parse().ok()?;
    let policy = match name {
        "other" => Policy::Other,
        "batch" => Policy::Batch,
        "idle" => Policy::Idle,
        "fifo" => Policy::Fifo(priority),
        "rr" => Policy::Rr(priority),
        _ => return None,
    };
    Some((policy, nice.parse().ok()?))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_started_is_understood() {
        let spec = "memory:3:fifo10".parse().expect("a load");
        for cpus in [None, Some(vec![1, 5])] {
            let assignment = Assignment { spec, cpus, crowd: 2, streams: 3 };
            let words = assignment.words();
            assert_eq!(words[0], COMMAND);
            assert_eq!(Assignment::parse(&words[1..]), Some(assignment));
        }
        for bad in [&[][..], &["{}"], &["x"], &[r#"{"load":"disk:1","cpus":null,"crowd":1,"streams":1}"#]] {
            let words: Vec<String> = bad.iter().map(|word| (*word).to_owned()).collect();
            assert_eq!(play(&words), 2, "{bad:?}");
        }
    }

    #[test]
    fn how_it_runs_is_understood() {
        for policy in [Policy::Other, Policy::Batch, Policy::Idle, Policy::Fifo(98), Policy::Rr(1)] {
            assert_eq!(parse_ready(&ready_line(policy, -20)), Some((policy, -20)));
        }
        for bad in ["", "ready", "at-work", "at-work other 0", "at-work best 0 0", "at-work fifo x 0"] {
            assert_eq!(parse_ready(bad), None, "{bad}");
        }
    }

    #[test]
    fn real_time_slices_leave_some_of_every_period() {
        for crowd in 1..=u64::from(super::super::MOST_PROCESSES) {
            let slice = SLICES / crowd;
            assert!(slice > 0 && slice * crowd <= SLICES && SLICES < PERIOD, "{crowd}");
        }
    }
}
