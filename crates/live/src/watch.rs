//! A watch: stays, and keeps what led to each thing that went wrong.
//! Not here: conditions, catches and actions (`when`, `catches`, `action`), what is wrong (crate `explain`).

mod catch;

use std::collections::{HashSet, VecDeque};
use std::fmt;
use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};

use backend::state::{StateFile, StateSource};
use driver::Root;
use explain::{Explainer, Finding, Grade};
use ftrace::tracefs::TraceError;
use host::klog;
use store::evidence::{lines, name_processes};
use trace::event::Names;
use trace::model::{Outcome, Transaction};

use crate::action::{self, Action};
use crate::catches::Catches;
use crate::here::{Here, NoState, log_text};
use crate::known::{Known, Trigger};
use crate::look::{Ended, Look, named};
use crate::reports::{LOST, Reports};
use crate::stream::{Settings, Stream};
use crate::when::Condition;
use catch::Contents;

/// Conditions that a watch catches, and its actions on a catch.
#[derive(Clone, Debug)]
pub struct WatchOptions {
    /// Conditions on figures.
    pub when: Vec<Condition>,
    /// Time in us from which a call is late.
    pub deadline_us: Option<u64>,
    /// Time in seconds from which a call is without an answer.
    pub unanswered_s: Option<u64>,
    /// Lowest grade of a finding that is caught.
    pub finding: Option<Grade>,
    /// Actions after a catch.
    pub then: Vec<Action>,
    /// Most catches of an hour.
    pub most: u32,
    /// Folder of the catches.
    pub out: PathBuf,
    /// Bytes of all catches.
    pub keep_bytes: u64,
    /// Its length; else it ends with a signal.
    pub lasting: Option<Duration>,
    /// The driver that is looked at.
    pub source: StateSource,
}

/// Who gets to know what happens.
pub trait Observer {
    /// Takes a remark, without the end of its line.
    fn remark(&mut self, remark: &str);

    /// Takes why there is no driver to look at; the watch waits for one.
    fn waits(&mut self, why: &NoState);

    /// Takes the state of the watch, in place of the last one; an empty one only clears.
    fn status(&mut self, text: &str);

    /// Takes the place of a catch.
    ///
    /// # Errors
    /// It could not be passed on, which ends the watch.
    fn caught(&mut self, what: &str, folder: &Path) -> Result<(), String>;
}

/// Numbers of catches.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Sum {
    /// Catches that were kept.
    pub caught: u64,
    /// Catches that could not be kept.
    pub unsaved: u64,
}

/// Why a watch could not begin or go on.
#[derive(Debug)]
#[non_exhaustive]
pub enum WatchError {
    /// There is no such process to get a signal.
    NoTarget(String),
    /// This machine does not show what is to be caught.
    Unable(String),
    /// The events cannot be read any more.
    Trace(TraceError),
    /// A catch could not be passed on.
    Unsaid(String),
}

impl fmt::Display for WatchError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::NoTarget(why) | Self::Unable(why) | Self::Unsaid(why) => f.write_str(why),
            Self::Trace(error) => error.fmt(f),
        }
    }
}

impl std::error::Error for WatchError {
    fn source(&self) -> Option<&(dyn std::error::Error + 'static)> {
        match self {
            Self::Trace(error) => Some(error),
            _ => None,
        }
    }
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

/// Watches until a signal, the end of its time, or an action.
///
/// # Errors
/// [`WatchError`].
pub fn watch(options: WatchOptions, observer: &mut dyn Observer) -> Result<Sum, WatchError> {
    let mut watcher = Watcher::new(options, observer)?;
    let ended = watcher.last();
    watcher.observer.status("");
    watcher.say_sum(&ended?);
    Ok(watcher.sum)
}

/// Word and key of a late call.
const DEADLINE: &str = "deadline";

fn trigger(key: &str, word: &str, said: String, by_files: bool) -> Trigger {
    Trigger { key: key.to_owned(), word: word.to_owned(), said, by_files }
}

struct Watcher<'o> {
    options: WatchOptions,
    observer: &'o mut dyn Observer,
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
    sum: Sum,
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

impl<'o> Watcher<'o> {
    fn new(mut options: WatchOptions, observer: &'o mut dyn Observer) -> Result<Self, WatchError> {
        for action in &mut options.then {
            if let Action::Signal(to) = action {
                to.find().map_err(WatchError::NoTarget)?;
            }
        }
        let stream = match Stream::start(&Settings { keep_bytes: RING_BYTES, ..Settings::with_causes() }) {
            Ok(stream) => {
                stream.recorder().notes().iter().for_each(|text| observer.remark(&format!("note: {text}")));
                Some(stream)
            }
            Err(why) => {
                let wanted =
                    options.when.iter().find(|condition| condition.needs_trace()).map(ToString::to_string);
                if let Some(wanted) = wanted.or(options.deadline_us.map(|_| "--deadline-us".to_owned())) {
                    return Err(WatchError::Unable(format!("{wanted} needs the kernel's tracing: {why}")));
                }
                observer.remark(&format!(
                    "note: no events are kept, only the driver's files are looked at: {why}"
                ));
                None
            }
        };
        let reports = Reports::join();
        let wanted = options.when.iter().find(|condition| condition.needs_reports());
        if let (Some(wanted), Err(why)) = (wanted, &reports) {
            return Err(WatchError::Unable(format!("{wanted}: {why}")));
        }
        let log = klog::Watch::begin();
        log.as_ref().err().into_iter().for_each(|why| observer.remark(&format!("note: {why}")));
        let deadline_ns = options.deadline_us.map(|us| us.saturating_mul(1000));
        Ok(Self {
            catches: Catches::new(&options.out, options.most as usize, options.keep_bytes),
            options,
            observer,
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
            sum: Sum::default(),
        })
    }

    /// Watches until a signal, the end of its time, or an action; returns which.
    fn last(&mut self) -> Result<String, WatchError> {
        let begun = Instant::now();
        let mut next = begun;
        loop {
            if let Some(signal) = sys::stop_signal::received() {
                return Ok(format!("{signal} ended the watch"));
            }
            if self.options.lasting.is_some_and(|lasting| begun.elapsed() >= lasting) {
                return Ok("the time is over".to_owned());
            }
            if let Some(stream) = &mut self.stream {
                stream
                    .poll(&mut |call: &Transaction, names: &Names| self.heard.take(call, names))
                    .map_err(WatchError::Trace)?;
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
    fn look(&mut self, now: Instant) -> Result<bool, WatchError> {
        let late = self.heard.late.take().map(|(_, said)| trigger(DEADLINE, DEADLINE, said, false));
        let mut holding: Vec<Trigger> = late.into_iter().collect();
        let messages = self.read_log(&mut holding);
        self.look_at_targets();
        let ended = std::mem::take(&mut self.heard.ended);
        let ended = self.stream.is_some().then_some(ended);
        let count = std::mem::take(&mut self.heard.reports);
        let reports = self.reports.is_ok().then_some(count);
        let seen = match Here::read(&self.options.source, &OF_LOOK) {
            Ok(here) => {
                if self.absent.take().is_some() {
                    let again = if self.before.is_some() { " again" } else { "" };
                    self.observer.remark(&format!("the driver is there{again}"));
                }
                Some(here)
            }
            Err(why) => {
                self.miss(&why);
                None
            }
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
        for load in &look.dead {
            self.observer.remark(&format!("{} has ended; others used its services", named(load)));
        }
        self.judge(&look, explainer.explain(None).findings, &mut holding);
        if self.looked.is_none() {
            self.observer.remark(&format!("watching; catches get into {}", self.options.out.display()));
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
    fn miss(&mut self, why: &NoState) {
        let said = why.to_string();
        if self.absent.as_ref() != Some(&said) {
            self.observer.waits(why);
        }
        self.absent = Some(said);
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
            self.say_gap(LOST.to_owned());
        }
    }

    /// This many of the driver's newest reports.
    fn report_text(&self, count: usize) -> String {
        self.reports.as_ref().map(|reports| reports.newest(count)).unwrap_or_default()
    }

    /// Notes the first gap in the kernel's log and the driver's reports; each report has it.
    fn say_gap(&mut self, why: String) {
        if self.gap.is_none() {
            self.observer.remark(&format!("note: {why}"));
        }
        self.gap.get_or_insert(why);
    }

    /// Notes once that a process which was to get a signal has ended.
    fn look_at_targets(&mut self) {
        for action in &self.options.then {
            if let Action::Signal(to) = action
                && !to.is_alive()
                && self.ended.insert(to.pid())
            {
                self.observer
                    .remark(&format!("process {} has ended, so `{action}` will reach nobody", to.pid()));
            }
        }
    }

    /// Adds what is wrong by a look.
    fn judge(&self, look: &Look, findings: Vec<Finding>, holding: &mut Vec<Trigger>) {
        for (at, condition) in self.options.when.iter().enumerate() {
            let by_files = !condition.needs_trace() && !condition.needs_reports();
            holding.extend(condition.met(look).into_iter().map(|met| {
                let (key, said) =
                    (format!("when {at} {}", met.subject), format!("{condition}: {}", met.said));
                trigger(&key, condition.name(), said, by_files)
            }));
        }
        let limit_ms = self.options.unanswered_s.map_or(u64::MAX, |seconds| seconds.saturating_mul(1000));
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
        let is_met = |grade: Grade| self.options.finding.is_some_and(|lowest| grade >= lowest);
        for finding in findings.into_iter().filter(|finding| is_met(finding.grade)) {
            let (key, kind) = (format!("finding {}", finding.key), format!("{:?}", finding.kind));
            holding.push(trigger(&key, &kind.to_lowercase(), finding.what, true));
        }
    }

    /// The triggers to catch now. Notes once that there is no room for more.
    fn due(&mut self, holding: Vec<Trigger>, has_files: bool) -> Vec<Trigger> {
        let before = self.catches.left_out();
        let due = self.known.due(holding, has_files, &mut self.catches, Instant::now());
        if before == 0 && self.catches.left_out() > 0 {
            self.observer.status("");
            self.observer.remark(&format!(
                "the catches of an hour are used up (--most {}, half of them for one kind): further ones are only counted",
                self.options.most
            ));
        }
        due
    }

    fn show(&mut self, look: &Look) {
        let calls = look.ended.as_ref().filter(|_| !look.span.is_zero());
        let rate = calls.map(|ended| units::rate(ended.answered as f64 / look.span.as_secs_f64()));
        let rate = rate.map_or(String::new(), |rate| format!(", {rate}"));
        let processes = look.loads.len();
        self.observer.status(&format!(
            "watching {processes} open devices{rate}, {} caught",
            units::counted(self.sum.caught, "time")
        ));
    }

    /// Keeps what led to it, and carries out the actions; returns whether to stop.
    fn catch(&mut self, triggers: &[Trigger]) -> Result<bool, WatchError> {
        let said: Vec<String> = triggers.iter().take(MOST_SAID).map(|trigger| trigger.said.clone()).collect();
        let what = said.join("; ");
        let (log, reports) = (log_text(&self.messages), self.report_text(usize::MAX));
        let contents = Contents {
            word: &triggers[0].word,
            triggers: &said,
            before: self.before.as_ref().map(|(_, here)| here),
            after: Here::read(&self.options.source, &OF_CATCH),
            log: &log,
            reports: &reports,
            gap: self.gap.as_deref(),
            deadline_us: self.options.deadline_us,
            has_snapshot: self.has_snapshot(),
        };
        self.observer.status("");
        let folder = match contents.write(&self.catches, self.stream.as_ref(), &mut *self.observer) {
            Ok(folder) => {
                self.sum.caught += 1;
                self.observer.caught(&what, &folder).map_err(WatchError::Unsaid)?;
                if let Err(why) = self.catches.make_room(&folder) {
                    let why = sys::errno::describe(&why);
                    self.observer.remark(&format!("older catches could not be deleted: {why}"));
                }
                Some(folder)
            }
            Err(why) => {
                self.sum.unsaved += 1;
                let (place, why) = (self.options.out.display(), sys::errno::describe(&why));
                let remark = match self.sum.unsaved {
                    1 => format!("{what}: it could not be kept in {place}: {why}; the watch goes on"),
                    _ => format!("{what}: not kept either"),
                };
                self.observer.remark(&remark);
                None
            }
        };
        Ok(self.act(folder, &what))
    }

    /// Whether a catch has a snapshot: an action before the one that ends them is one.
    fn has_snapshot(&self) -> bool {
        let mut done =
            self.options.then.iter().take_while(|action| !matches!(action, Action::Stop | Action::Continue));
        done.any(|action| matches!(action, Action::Snapshot))
    }

    /// Carries out the actions; returns whether to stop.
    fn act(&mut self, folder: Option<PathBuf>, what: &str) -> bool {
        for action in &self.options.then {
            let stopped = || sys::stop_signal::received().is_some();
            let done = match action {
                Action::Stop => return true,
                Action::Continue => return false,
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
                self.observer.remark(&format!("`{action}` failed: {why}"));
            }
        }
        false
    }

    fn say_sum(&mut self, ended: &str) {
        let left_out = match self.catches.left_out() {
            0 => String::new(),
            more => format!("; {more} more within an hour of others were only counted"),
        };
        let unsaved = if self.sum.unsaved > 0 {
            format!("; {} could not be kept", self.sum.unsaved)
        } else {
            String::new()
        };
        let lost = self.stream.as_ref().and_then(|stream| stream.lost().ok()).map_or(0, |lost| lost.all());
        let lost = if lost > 0 {
            format!("; {} of the trace were lost", units::counted(lost, "event"))
        } else {
            String::new()
        };
        let caught = units::counted(self.sum.caught, "time");
        self.observer.remark(&format!("{ended}: {caught} caught{left_out}{unsaved}{lost}"));
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
