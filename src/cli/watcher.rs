//! The command `watch`: stays, and keeps what led to each thing that went wrong.
//! Not here: conditions, catches and actions (crate `live`), what is wrong (crate `explain`).

mod catch;

use std::collections::{HashSet, VecDeque};
use std::path::PathBuf;
use std::time::{Duration, Instant};

use backend::state::StateFile;
use clap::Args;
use driver::Root;
use explain::{Explainer, Finding};
use host::klog;
use live::action::{self, Action};
use live::catches::Catches;
use live::known::{Known, Trigger};
use live::look::{Ended, Look, named};
use live::reports::Reports;
use live::stream::{Settings, Stream};
use live::when::Condition;
use store::lock::FolderLock;
use trace::event::Names;
use trace::model::{Outcome, Transaction};

use super::duration::duration;
use super::explain::{FailOn, Here, LOST_REPORTS, lines, log_text, name_processes};
use super::progress::StatusLine;
use super::state::Whose;
use super::{A_YEAR_S, CommandResult, Failure, OrExit, exit, note, say, tell};
use catch::Contents;

/// Watch for days, and keep what led to each thing that goes wrong: the black box
///
/// Keeps the newest events in memory and looks at the driver's files every second. When something is wrong, it writes one folder: the
/// events, the driver's files before and after, the kernel's log, and what `explain` says of all that. A condition is caught when it
/// begins to hold, and again once it has not held.
#[derive(Clone, Debug, Args)]
pub(crate) struct WatchArgs {
    /// Catch when this holds, as in p99>5ms: a figure (p50, p99, longest, oldest, calls, failed, reports, dead, buffers, backlog, threads), one of > >= < <=, and a limit (5ms, 80%, 100; `pool` for threads); may be repeated
    #[arg(help_heading = "What to catch", long, value_name = "EXPR", value_parser = str::parse::<Condition>)]
    when: Vec<Condition>,

    /// Catch a call that takes longer than this many us
    #[arg(help_heading = "What to catch", long, value_name = "N", value_parser = clap::value_parser!(u64).range(1..))]
    deadline_us: Option<u64>,

    /// Catch a call without an answer for this many seconds
    #[arg(help_heading = "What to catch", long, value_name = "S", value_parser = clap::value_parser!(u64).range(1..=A_YEAR_S))]
    unanswered: Option<u64>,

    /// Catch a new finding of `explain` from this grade on
    #[arg(help_heading = "What to catch", long, value_enum, value_name = "GRADE", default_value_t = FailOn::Bad)]
    finding: FailOn,

    /// Action after a catch, in the given order: trace (turn tracing off in the buffer that all share), snapshot (the machine's files, as of doctor --save; always first, as a part of the catch), signal PID or PID:SIG, exec CMD (with BINDERPERF_CATCH and BINDERPERF_TRIGGER), stop or continue; may be repeated
    #[arg(help_heading = "Then", long, value_name = "ACTION", value_parser = str::parse::<Action>)]
    then: Vec<Action>,

    /// Most catches of an hour, and half of them of one kind; further ones are counted
    #[arg(help_heading = "Then", long, value_name = "N", default_value_t = 6, value_parser = clap::value_parser!(u32).range(1..=3600))]
    most: u32,

    /// Folder for the catches
    #[arg(help_heading = "Where", long, value_name = "DIR", default_value = "binderperf-watch", value_hint = clap::ValueHint::DirPath)]
    out: PathBuf,

    /// Delete the oldest catches when all have more than this many MB; the newest stays
    #[arg(help_heading = "Where", long, value_name = "N", default_value_t = 512, value_parser = clap::value_parser!(u64).range(1..=1 << 30))]
    keep_mb: u64,

    /// End after this time, such as 90s, 30m or 8h [default: at Ctrl-C]
    #[arg(long = "for", value_name = "TIME", value_parser = duration)]
    lasting: Option<Duration>,

    #[command(flatten, next_help_heading = "Which driver")]
    whose: Whose,
}

/// Pause between two readings of the trace, and between two looks.
const POLL: Duration = Duration::from_millis(100);
const LOOK: Duration = Duration::from_secs(1);
/// A look is followed by a pause of so many times its length, at least [`LOOK`] and at most this.
const REST: u32 = 50;
const LONGEST_REST: Duration = Duration::from_secs(10);
/// Bytes of the newest events that are kept.
const RING_BYTES: usize = 16 << 20;
/// Number of the kernel's newest messages that are kept.
const MOST_MESSAGES: usize = 2000;
/// Most triggers of a catch that its line names.
const MOST_SAID: usize = 8;
/// The driver's files of a look, and those of a catch.
const OF_LOOK: [StateFile; 2] = [StateFile::State, StateFile::Stats];
const OF_CATCH: [StateFile; 4] =
    [StateFile::State, StateFile::Stats, StateFile::TransactionLog, StateFile::FailedTransactionLog];

/// Watches.
pub(crate) fn run(args: &WatchArgs) -> CommandResult {
    let _lock = FolderLock::take(&args.out, tell)?;
    sys::stop_signal::catch().or_exit(exit::INTERNAL)?;
    sys::stop_signal::catch_hangup().or_exit(exit::INTERNAL)?;
    let mut watcher = Watcher::new(args)?;
    let ended = watcher.last();
    watcher.line.show("");
    watcher.say_sum(ended?);
    Ok(if watcher.caught > 0 || watcher.unsaved > 0 { exit::FAILED } else { exit::FINE })
}

/// Word and key of a late call.
const DEADLINE: &str = "deadline";

fn trigger(key: &str, word: &str, said: String, by_files: bool) -> Trigger {
    Trigger { key: key.to_owned(), word: word.to_owned(), said, by_files }
}

struct Watcher<'a> {
    args: &'a WatchArgs,
    then: Vec<Action>,
    catches: Catches,
    stream: Option<Stream>,
    log: Option<klog::Watch>,
    messages: VecDeque<klog::Message>,
    /// The driver's reports of failed calls, or why there are none.
    reports: Result<Reports, String>,
    /// Why not all of the kernel's messages and the driver's reports were read, the first time.
    gap: Option<String>,
    heard: Heard,
    /// Time of the last look.
    looked: Option<Instant>,
    /// The last look that could read the driver's files, and these.
    before: Option<(Look, Here)>,
    /// Conditions that held in the last look.
    known: Known,
    /// Processes of signals that have ended.
    ended: HashSet<u32>,
    /// Why there was no driver to look at, in the last look.
    absent: Option<String>,
    rest: Duration,
    caught: u64,
    unsaved: u64,
    line: StatusLine,
}

/// News since the last look.
#[derive(Default)]
struct Heard {
    deadline_ns: Option<u64>,
    ended: Ended,
    /// The call farthest over its deadline, with its time.
    late: Option<(u64, String)>,
    /// Number of the driver's reports.
    reports: u64,
}

impl Heard {
    fn take(&mut self, call: &Transaction, names: &Names) {
        self.ended.add(call);
        let (ns, is_answered) =
            (call.ns(), call.outcome == Outcome::Replied && !call.oneway && !call.doubtful);
        let limit = self.deadline_ns.filter(|limit| is_answered && ns > *limit);
        if let Some(limit) = limit.filter(|_| self.late.as_ref().is_none_or(|(most, _)| ns > *most)) {
            let method =
                call.method.as_ref().map_or_else(|| format!("code {}", call.code), ToString::to_string);
            let (took, limit) = (units::duration(ns as f64), units::round_duration(limit as f64));
            let from = names.text(call.client.comm);
            let text = format!(
                "a call took {took} and not {limit}: {method} from {from} ({}) to process {}",
                call.client.tid, call.to_proc
            );
            self.late = Some((ns, text));
        }
    }
}

impl<'a> Watcher<'a> {
    fn new(args: &'a WatchArgs) -> Result<Self, Failure> {
        let mut then = args.then.clone();
        for action in &mut then {
            if let Action::Signal(to) = action {
                to.find().or_exit(exit::USAGE)?;
            }
        }
        let stream = match Stream::start(&Settings { keep_bytes: RING_BYTES, ..Settings::with_causes() }) {
            Ok(stream) => {
                stream.recorder().notes().iter().for_each(|text| note(format_args!("note: {text}\n")));
                Some(stream)
            }
            Err(why) => {
                let wanted =
                    args.when.iter().find(|condition| condition.needs_trace()).map(ToString::to_string);
                if let Some(wanted) = wanted.or(args.deadline_us.map(|_| "--deadline-us".to_owned())) {
                    return Err(Failure::new(
                        exit::UNABLE,
                        format_args!("{wanted} needs the kernel's tracing: {why}"),
                    ));
                }
                note(format_args!(
                    "note: no events are kept, only the driver's files are looked at: {why}\n"
                ));
                None
            }
        };
        let reports = Reports::join();
        let wanted = args.when.iter().find(|condition| condition.needs_reports());
        if let (Some(wanted), Err(why)) = (wanted, &reports) {
            return Err(Failure::new(exit::UNABLE, format_args!("{wanted}: {why}")));
        }
        let log = klog::Watch::begin();
        log.as_ref().err().into_iter().for_each(|why| note(format_args!("note: {why}\n")));
        let deadline_ns = args.deadline_us.map(|us| us.saturating_mul(1000));
        Ok(Self {
            args,
            then,
            catches: Catches::new(&args.out, args.most as usize, args.keep_mb << 20),
            stream,
            log: log.ok(),
            messages: VecDeque::new(),
            reports,
            gap: None,
            heard: Heard { deadline_ns, ..Heard::default() },
            looked: None,
            before: None,
            known: Known::default(),
            ended: HashSet::new(),
            absent: None,
            rest: LOOK,
            caught: 0,
            unsaved: 0,
            line: StatusLine::new(),
        })
    }

    /// Watches until a signal, the end of its time, or an action; returns which.
    fn last(&mut self) -> Result<String, Failure> {
        let begun = Instant::now();
        let mut next = begun;
        loop {
            if let Some(signal) = sys::stop_signal::received() {
                return Ok(format!("{signal} ended the watch"));
            }
            if self.args.lasting.is_some_and(|lasting| begun.elapsed() >= lasting) {
                return Ok("the time is over".to_owned());
            }
            if let Some(stream) = &mut self.stream {
                stream
                    .poll(&mut |call: &Transaction, names: &Names| self.heard.take(call, names))
                    .or_exit(exit::INTERNAL)?;
            }
            self.read_reports();
            let now = Instant::now();
            // The first late call is caught while its events are there.
            let begins_late = self.heard.late.is_some() && !self.known.holds(DEADLINE);
            if now >= next || begins_late && self.catches.has_room(now, DEADLINE) {
                if self.look(now)? {
                    return Ok("the action `stop` ended the watch".to_owned());
                }
                next = now + self.rest;
            }
            std::thread::sleep(POLL);
        }
    }

    /// Looks at everything once, and catches what is wrong; returns whether to stop.
    fn look(&mut self, now: Instant) -> Result<bool, Failure> {
        let late = self.heard.late.take().map(|(_, said)| trigger(DEADLINE, DEADLINE, said, false));
        let mut holding: Vec<Trigger> = late.into_iter().collect();
        let messages = self.read_log(&mut holding);
        self.look_at_targets();
        let ended = std::mem::take(&mut self.heard.ended);
        let ended = self.stream.is_some().then_some(ended);
        let count = std::mem::take(&mut self.heard.reports);
        let reports = self.reports.is_ok().then_some(count);
        let seen = match Here::read(&self.args.whose, &OF_LOOK) {
            Ok(here) => {
                if self.absent.take().is_some() {
                    let again = if self.before.is_some() { " again" } else { "" };
                    note(format_args!("the driver is there{again}\n"));
                }
                Some(here)
            }
            Err(Failure { status: exit::UNABLE, message }) => {
                self.miss(message.unwrap_or_default());
                None
            }
            Err(failure) => return Err(failure),
        };
        let mut explainer = Explainer::new();
        seen.iter().for_each(|here| here.add_to(&mut explainer, ""));
        // What happened is new once: only what came since the last look is judged.
        let older = self.messages.len().saturating_sub(messages);
        lines(&mut explainer, "/dev/kmsg", &log_text(self.messages.iter().skip(older)));
        lines(&mut explainer, "netlink", &self.report_text(count as usize));
        name_processes(&mut explainer, &Root::of_this_machine());
        let span = self.looked.map_or(Duration::ZERO, |then| now - then);
        let loads = seen.as_ref().map(|_| explainer.loads());
        let before = self.before.as_ref().map(|(look, _)| look);
        let look = Look { reports, ..Look::after(before, loads, ended, span) };
        look.dead
            .iter()
            .for_each(|load| note(format_args!("{} has ended; others used its services\n", named(load))));
        self.judge(&look, explainer.explain(None).findings, &mut holding);
        if self.looked.is_none() {
            note(format_args!("watching; catches get into {}\n", self.args.out.display()));
        }
        self.show(&look);
        // Without the time for a catch.
        self.rest = LOOK.max((now.elapsed() * REST).min(LONGEST_REST));
        let due = self.due(holding, seen.is_some());
        let stop = !due.is_empty() && self.catch(&due)?;
        self.looked = Some(now);
        self.before = seen.map(|here| (look, here)).or(self.before.take());
        Ok(stop)
    }

    /// Notes once that there is no driver to look at; a watch may begin before the system does.
    fn miss(&mut self, why: String) {
        if self.absent.as_ref() != Some(&why) {
            note(format_args!("waiting for a driver to look at: {why}\n"));
        }
        self.absent = Some(why);
    }

    /// Takes the kernel's new messages; returns their number.
    fn read_log(&mut self, holding: &mut Vec<Trigger>) -> usize {
        let news = match self.log.as_mut().map(klog::Watch::news) {
            Some(Ok(news)) => news,
            Some(Err(why)) => {
                self.say_gap(why.to_string());
                return 0;
            }
            None => return 0,
        };
        if news.lost {
            self.say_gap(
                "some of the kernel's messages were overwritten before they could be read".to_owned(),
            );
        }
        let alarm = news.complaints.iter().find(|message| message.is_alarm());
        holding.extend(alarm.map(|message| {
            trigger("kernel", "kernel", format!("the kernel complained: {}", message.text), false)
        }));
        let count = news.complaints.len();
        self.messages.extend(news.complaints);
        let much = self.messages.len().saturating_sub(MOST_MESSAGES);
        self.messages.drain(..much);
        count
    }

    /// Takes the driver's new reports: the kernel keeps few.
    fn read_reports(&mut self) {
        let news = self.reports.as_mut().map(Reports::news).unwrap_or_default();
        self.heard.reports += news.reports;
        if news.lost {
            self.say_gap(LOST_REPORTS.to_owned());
        }
    }

    /// This many of the driver's newest reports.
    fn report_text(&self, count: usize) -> String {
        self.reports.as_ref().map(|reports| reports.newest(count)).unwrap_or_default()
    }

    /// Notes the first gap in the kernel's log and the driver's reports; each report has it.
    fn say_gap(&mut self, why: String) {
        if self.gap.is_none() {
            note(format_args!("note: {why}\n"));
        }
        self.gap.get_or_insert(why);
    }

    /// Notes once that a process which was to get a signal has ended.
    fn look_at_targets(&mut self) {
        for action in &self.then {
            if let Action::Signal(to) = action
                && !to.is_alive()
                && self.ended.insert(to.pid())
            {
                note(format_args!("process {} has ended, so `{action}` will reach nobody\n", to.pid()));
            }
        }
    }

    /// Adds what is wrong by a look.
    fn judge(&self, look: &Look, findings: Vec<Finding>, holding: &mut Vec<Trigger>) {
        for (at, condition) in self.args.when.iter().enumerate() {
            let by_files = !condition.needs_trace() && !condition.needs_reports();
            holding.extend(condition.met(look).into_iter().map(|met| {
                let (key, said) =
                    (format!("when {at} {}", met.subject), format!("{condition}: {}", met.said));
                trigger(&key, condition.name(), said, by_files)
            }));
        }
        let limit_ms = self.args.unanswered.map_or(u64::MAX, |seconds| seconds.saturating_mul(1000));
        for load in &look.loads {
            for call in load.waiting.iter().take_while(|call| call.age_ms >= limit_ms) {
                let (who, age) = (named(load), units::round_duration(call.age_ms as f64 * 1e6));
                let said = format!(
                    "{who} waits {age} for process {} in call {} (code {})",
                    call.to, call.id, call.code
                );
                let key = format!("unanswered {} {} {}", load.pid, load.context, call.id);
                holding.push(trigger(&key, "unanswered", said, true));
            }
        }
        for finding in findings.into_iter().filter(|finding| self.args.finding.is_met(finding.grade)) {
            let (key, kind) = (format!("finding {}", finding.key), format!("{:?}", finding.kind));
            holding.push(trigger(&key, &kind.to_lowercase(), finding.what, true));
        }
    }

    /// The triggers to catch now. Notes once that there is no room for more.
    fn due(&mut self, holding: Vec<Trigger>, has_files: bool) -> Vec<Trigger> {
        let before = self.catches.left_out();
        let due = self.known.due(holding, has_files, &mut self.catches, Instant::now());
        if before == 0 && self.catches.left_out() > 0 {
            self.line.show("");
            note(format_args!(
                "the catches of an hour are used up (--most {}, half of them for one kind): further ones are only counted\n",
                self.args.most
            ));
        }
        due
    }

    fn show(&mut self, look: &Look) {
        let calls = look.ended.as_ref().filter(|_| !look.span.is_zero());
        let rate = calls.map(|ended| units::rate(ended.answered as f64 / look.span.as_secs_f64()));
        let rate = rate.map_or(String::new(), |rate| format!(", {rate}"));
        let processes = look.loads.len();
        self.line.show(&format!(
            "watching {processes} open devices{rate}, {} caught",
            units::counted(self.caught, "time")
        ));
    }

    /// Keeps what led to it, and carries out the actions; returns whether to stop.
    fn catch(&mut self, triggers: &[Trigger]) -> Result<bool, Failure> {
        let said: Vec<String> = triggers.iter().take(MOST_SAID).map(|trigger| trigger.said.clone()).collect();
        let what = said.join("; ");
        let (log, reports) = (log_text(&self.messages), self.report_text(usize::MAX));
        let contents = Contents {
            word: &triggers[0].word,
            triggers: &said,
            before: self.before.as_ref().map(|(_, here)| here),
            after: Here::read(&self.args.whose, &OF_CATCH),
            log: &log,
            reports: &reports,
            gap: self.gap.as_deref(),
            deadline_us: self.args.deadline_us,
            has_snapshot: self.has_snapshot(),
        };
        self.line.show("");
        let folder = match contents.write(&self.catches, self.stream.as_ref()) {
            Ok(folder) => {
                self.caught += 1;
                say(&format!("caught {what}: {}\n", folder.display()))?;
                if let Err(why) = self.catches.make_room(&folder) {
                    let why = sys::errno::describe(&why);
                    note(format_args!("older catches could not be deleted: {why}\n"));
                }
                Some(folder)
            }
            Err(why) => {
                self.unsaved += 1;
                let (place, why) = (self.args.out.display(), sys::errno::describe(&why));
                match self.unsaved {
                    1 => note(format_args!(
                        "{what}: it could not be kept in {place}: {why}; the watch goes on\n"
                    )),
                    _ => note(format_args!("{what}: not kept either\n")),
                }
                None
            }
        };
        self.act(folder, &what)
    }

    /// Whether a catch has a snapshot: an action before the one that ends them is one.
    fn has_snapshot(&self) -> bool {
        let mut done =
            self.then.iter().take_while(|action| !matches!(action, Action::Stop | Action::Continue));
        done.any(|action| matches!(action, Action::Snapshot))
    }

    fn act(&mut self, folder: Option<PathBuf>, what: &str) -> Result<bool, Failure> {
        for action in &self.then {
            let stopped = || sys::stop_signal::received().is_some();
            let done = match action {
                Action::Stop => return Ok(true),
                Action::Continue => return Ok(false),
                Action::Trace => switch_off(),
                // The catch has it.
                Action::Snapshot => Ok(()),
                Action::Signal(to) => to.send().map_err(|why| sys::errno::describe(&why)),
                Action::Exec(command) => {
                    let place = folder.as_deref().and_then(|folder| std::path::absolute(folder).ok());
                    action::execute(command, &place.unwrap_or_default(), what, stopped)
                }
            };
            if let Err(why) = done {
                note(format_args!("`{action}` failed: {why}\n"));
            }
        }
        Ok(false)
    }

    fn say_sum(&self, ended: String) {
        let left_out = match self.catches.left_out() {
            0 => String::new(),
            more => format!("; {more} more within an hour of others were only counted"),
        };
        let unsaved =
            if self.unsaved > 0 { format!("; {} could not be kept", self.unsaved) } else { String::new() };
        let lost = self.stream.as_ref().and_then(|stream| stream.lost().ok()).map_or(0, |lost| lost.all());
        let lost = if lost > 0 {
            format!("; {} of the trace were lost", units::counted(lost, "event"))
        } else {
            String::new()
        };
        note(format_args!(
            "{ended}: {} caught{left_out}{unsaved}{lost}\n",
            units::counted(self.caught, "time")
        ));
    }
}

/// Turns tracing off in the buffer that all share.
fn switch_off() -> Result<(), String> {
    let switch = ftrace::switch::folder().and_then(|folder| ftrace::switch::Switch::open(&folder));
    match switch.map_err(|why| why.to_string())?.off() {
        true => Ok(()),
        false => Err("tracing could not be turned off".to_owned()),
    }
}
