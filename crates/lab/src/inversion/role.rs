//! Room: what this program does when another copy of it started it for the experiment: as a server, or as
//! the real-time caller.
//! Not here: starting it (`cast`), the service (`service`).
//! Facts: between the two clock readings of a call lies the call and nothing else. The caller sleeps between
//! its calls for a time drawn at random: hogs get their share, and no tick comes always at the same point.

use std::io::{self, Write};
use std::thread;

use driver::{AnyContext, Context, on_context};
use record::Setting;
use serde::{Deserialize, Serialize};
use sys::clock::{monotonic_ns, thread_cpu_ns};
use sys::clock_sleep;

use super::ask::Flavour;
use super::order;
use super::service::{Callee, Place, pack};
use crate::board::{Board, Desk, FAILED, Size};
use crate::dice::Dice;
use crate::realtime::{self, HIGHEST};
use crate::trace::stamp::Stamp;

/// The hidden command that makes this program one of the experiment.
pub const COMMAND: &str = "__inversion";

/// The steps: a server serves, the caller is there; then the caller has found whom it calls and is
/// real-time; then one for each setting of each round.
pub(super) const SERVING: u32 = 1;
pub(super) const READY: u32 = 2;

/// Words of a sample: how long it took, how the server ran, CPU time that both sides used for it.
pub(super) const WORDS: usize = 3;
/// The caller's note of how it is scheduled.
pub(super) const CALLERS_SCHED: usize = 0;

/// CPU time in us without any sleep after which the kernel ends a process: thousands of calls.
const RUNAWAY: (u64, u64) = (500_000, 1_000_000);
/// The shortest pause between calls, and what is drawn on top of it at most, in us.
const PAUSE_US: (u64, usize) = (1000, 4000);
/// Calls before the first that counts: whatever the first ones set up shall not be measured.
const REHEARSALS: u32 = 5;

/// What one process is told.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub(super) struct Assignment {
    pub(super) flavour: Flavour,
    /// Of the context.
    pub(super) address: String,
    /// Whose service manager it is.
    pub(super) release: String,
    /// Where the shared memory is.
    pub(super) board: String,
    /// Processes that share it; the last one calls.
    pub(super) members: u32,
    /// Calls of each setting in each round.
    pub(super) iterations: u32,
    /// Which of them this is.
    pub(super) number: u32,
    /// The CPU of all.
    pub(super) cpu: u32,
    pub(super) part: Part,
}

/// Which part it plays.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub(super) enum Part {
    Server {
        name: String,
        inherit_rt: bool,
        /// CPU time of each call.
        work_ns: u64,
        /// Whether it makes itself as urgent as the caller.
        raised: bool,
    },
    Caller {
        /// What the servers of the settings without inheritance, with it, and the raised one are called.
        names: [String; 3],
        /// Decides how long it pauses.
        seed: u64,
    },
}

impl Assignment {
    /// The words that start a process with it.
    pub(super) fn words(&self) -> Result<Vec<String>, serde_json::Error> {
        Ok(vec![COMMAND.to_owned(), serde_json::to_string(self)?])
    }

    fn parse(words: &[String]) -> Option<Self> {
        let [word] = words else { return None };
        serde_json::from_str(word).ok()
    }

    pub(super) fn size(&self) -> Size {
        Size { members: self.members, callers: 1, samples: self.iterations as usize, words: WORDS }
    }
}

/// Plays the part that the words behind [`COMMAND`] describe, until it is ended. Returns the exit code: 2
/// for words that make no sense, 4 when there is nobody to tell what broke.
#[must_use]
pub fn play(words: &[String]) -> u8 {
    let Some(assignment) = Assignment::parse(words) else {
        eprintln!("binderperf: {COMMAND} is started by binderperf itself");
        return 2;
    };
    let board = match Board::open(&assignment.board, assignment.size()) {
        Ok(board) => board,
        Err(error) => {
            say(&format!("opening the shared memory: {}", sys::errno::describe(&error)));
            return 4;
        }
    };
    let mut desk = Desk::at(board, assignment.number);
    if let Err(why) = act(&assignment, &mut desk) {
        say(&why);
        desk.finish(FAILED);
    }
    // Others may still call, so this goes on until whoever started it ends it.
    loop {
        thread::park();
    }
}

/// Whoever started this reads it once it has ended.
fn say(why: &str) {
    let mut stdout = io::stdout();
    let _ = writeln!(stdout, "{why}").and_then(|()| stdout.flush());
}

fn act(assignment: &Assignment, desk: &mut Desk) -> Result<(), String> {
    let os = |what: &'static str| move |error: io::Error| format!("{what}: {}", sys::errno::describe(&error));
    sys::sched::set_affinity(&[assignment.cpu]).map_err(os("choosing its CPU"))?;
    sys::rt_limit::limit_realtime_us(RUNAWAY.0, RUNAWAY.1)
        .map_err(os("limiting its real-time CPU time (RLIMIT_RTTIME)"))?;
    let any = AnyContext::parse(&assignment.address);
    on_context!(&any, |context| perform(context, assignment, desk))
}

fn perform<X: Context>(context: &X, assignment: &Assignment, desk: &mut Desk) -> Result<(), String> {
    let release = assignment.release.parse()?;
    let place = Place::enter(context, assignment.flavour, release).map_err(|error| error.to_string())?;
    match &assignment.part {
        Part::Server { name, inherit_rt, work_ns, raised } => {
            let _service = place.offer(name, *inherit_rt, *work_ns).map_err(|error| error.to_string())?;
            if *raised {
                realtime::become_fifo(HIGHEST).map_err(|problem| problem.to_string())?;
            }
            desk.finish(SERVING);
            place.serve().map_err(|error| error.to_string())
        }
        Part::Caller { names, seed } => {
            desk.finish(SERVING);
            desk.wait_for(READY);
            let callees = names.each_ref().map(|name| place.find(name));
            let [off, on, raised] = callees;
            let broken = |error: crate::measure::CallError| error.to_string();
            let caller = Caller {
                off: off.map_err(broken)?,
                on: on.map_err(broken)?,
                raised: raised.map_err(broken)?,
            };
            caller.work(assignment, *seed, desk)
        }
    }
}

struct Caller {
    off: Callee,
    on: Callee,
    raised: Callee,
}

impl Caller {
    /// Whom it calls in a setting, and that server's number on the board.
    fn callee(&self, setting: Setting) -> (&Callee, u32) {
        match setting {
            Setting::Quiet | Setting::Off => (&self.off, 0),
            Setting::On => (&self.on, 1),
            Setting::Raised => (&self.raised, 2),
        }
    }

    /// All rounds, until a call breaks or whoever leads has enough.
    fn work(&self, assignment: &Assignment, seed: u64, desk: &mut Desk) -> Result<(), String> {
        desk.touch(assignment.iterations as usize);
        let sched = realtime::become_fifo(HIGHEST).map_err(|problem| problem.to_string())?;
        for setting in Setting::ALL {
            for _ in 0..REHEARSALS {
                self.callee(setting).0.call().map_err(|error| error.to_string())?;
            }
        }
        desk.note(CALLERS_SCHED, pack(sched));
        desk.finish(READY);
        let mut dice = Dice::new(seed);
        let stamp = Stamp::into(None);
        for round in 0.. {
            for (setting, step) in order(round).into_iter().zip(first_step(round)..) {
                desk.wait_for(step);
                desk.clear();
                let (callee, number) = self.callee(setting);
                let cpu_start = thread_cpu_ns();
                let result = calls(callee, (setting, number), assignment.iterations, &mut dice, desk, &stamp);
                desk.keep_cpu(thread_cpu_ns() - cpu_start);
                result?;
                desk.finish(step);
            }
        }
        Ok(())
    }
}

/// The step of a round's first setting.
pub(super) fn first_step(round: u32) -> u32 {
    READY + 1 + round * Setting::ALL.len() as u32
}

/// The calls of one setting in one round. The first one, which tells where the server's CPU time begins,
/// is not kept.
fn calls(
    callee: &Callee,
    (setting, number): (Setting, u32),
    most: u32,
    dice: &mut Dice,
    desk: &mut Desk,
    stamp: &Stamp,
) -> Result<(), String> {
    let mut servers = callee.call().map_err(|error| error.to_string())?.cpu_ns;
    let mut made = 0;
    while made < most && !desk.is_stopped() {
        let pause = PAUSE_US.0 + dice.below(PAUSE_US.1) as u64;
        clock_sleep::until(monotonic_ns() + pause * 1000);
        desk.call(number);
        stamp.mark("call", format_args!("setting={} class=fifo number={made}", setting.name()));
        let own_start = thread_cpu_ns();
        let start = monotonic_ns();
        let result = callee.call();
        let end = monotonic_ns();
        let own = thread_cpu_ns() - own_start;
        stamp.mark("done", format_args!("setting={} class=fifo number={made}", setting.name()));
        let served = result.map_err(|error| error.to_string())?;
        // What the server did since the call before, which was nothing but this and that one's end.
        let ran = own + served.cpu_ns.saturating_sub(servers);
        servers = served.cpu_ns;
        made = desk.keep_words(start, end, &[end - start, served.sched, ran]);
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_started_is_understood() {
        let assignment = |part| Assignment {
            flavour: Flavour::Binder,
            address: "/dev/binder".to_owned(),
            release: "16".to_owned(),
            board: "/proc/1/fd/3".to_owned(),
            members: 4,
            iterations: 10,
            number: 3,
            cpu: 1,
            part,
        };
        let server = Part::Server { name: "x".to_owned(), inherit_rt: true, work_ns: 1, raised: false };
        let caller = Part::Caller { names: ["a", "b", "c"].map(str::to_owned), seed: 7 };
        for part in [server, caller] {
            let assignment = assignment(part);
            let words = assignment.words().expect("JSON");
            assert_eq!(words[0], COMMAND);
            assert_eq!(Assignment::parse(&words[1..]), Some(assignment));
        }
        for bad in [&[][..], &["{}"], &["x"], &["{}", "{}"]] {
            let words: Vec<String> = bad.iter().map(|word| (*word).to_owned()).collect();
            assert_eq!(play(&words), 2, "{bad:?}");
        }
    }

    #[test]
    fn steps_of_rounds_follow_each_other() {
        assert_eq!((first_step(0), first_step(1)), (READY + 1, READY + 5));
    }
}
