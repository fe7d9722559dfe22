//! Recordings of a command, and pages about them.
//! Not here: recording (`ftrace::record`), the pictures (`trace::picture`).

use std::path::{Path, PathBuf};
use std::time::Duration;

use console::progress::StatusLine;
use console::{CommandResult, Failure, OrExit, exit, note, of_process, status_of, tell};
use ftrace::categories::{self, Category, known, of_userspace};
use ftrace::perfetto::PerfettoConfig;
use ftrace::record::perfetto::{self, PerfettoPlan, PerfettoSummary};
use ftrace::record::work::{Ended, Work};
use ftrace::record::{Observer, Plan, record};
use ftrace::tracefs::{TraceError, check_size};
use store::input::is_same_file;
use store::traces::{answer, each, scenes};
use trace::picture::page;
use trace::verdict::{Analysis, AnalysisOptions};

/// A page with pictures of a trace.
#[derive(Clone, Debug)]
pub struct Drawing {
    /// Its file.
    pub html: PathBuf,
    /// Largest number of calls with a picture, slowest first.
    pub pictures: usize,
}

impl Drawing {
    /// Checks that this trace can be drawn into that file, before anything is read.
    ///
    /// # Errors
    /// It cannot.
    pub fn check(&self, trace: &Path) -> Result<(), Failure> {
        let html = &self.html;
        let why = if trace.metadata().is_ok_and(|file| !file.is_file()) {
            "is no file, and a trace that is drawn is read twice; copy it into one"
        } else if is_same_file(trace, html) {
            "is the trace itself; give another file to --html"
        } else {
            return Ok(());
        };
        Err(Failure::new(exit::USAGE, format_args!("{}: {why}", trace.display())))
    }

    /// Reads the trace again and writes the page.
    ///
    /// # Errors
    /// The trace cannot be read, or the page not be written.
    pub fn draw(&self, trace: &Path, analysis: &Analysis) -> Result<(), Failure> {
        let html = &self.html;
        let text = self.text(trace, analysis).map_err(|why| format!("{}: {why}", trace.display()));
        sys::draft::write(html, text.or_exit(exit::USAGE)?)
            .map_err(|error| {
                format!("{}: could not be written: {}", html.display(), sys::errno::describe(&error))
            })
            .or_exit(exit::INTERNAL)
    }

    fn text(&self, trace: &Path, analysis: &Analysis) -> Result<String, Box<dyn std::error::Error>> {
        let (busiest, slow) = scenes(trace, analysis, self.pictures)?;
        let name = trace.file_name().unwrap_or(trace.as_os_str()).to_string_lossy();
        Ok(page(&name, analysis, (busiest.as_ref(), &slow))?)
    }
}

/// Perfetto's buffer of a recording that is written to its file all the time, in KB.
const STREAM_KB: u64 = 32_768;

/// Who records.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Via {
    /// This program, in a private buffer of tracefs.
    #[default]
    Tracefs,
    /// Perfetto's recorder.
    Perfetto,
}

/// A recording that is asked for.
#[derive(Clone, Debug, Default)]
pub struct Job {
    /// Who records.
    pub via: Via,
    /// The file to write, if it has a name of its own.
    pub output: Option<PathBuf>,
    /// By Perfetto: keep it only if something is missed.
    pub until_miss: bool,
    /// By Perfetto: applications whose sections are recorded.
    pub applications: Vec<String>,
    /// Size of each CPU's buffer in KB.
    pub buffer_kb: u64,
    /// Whether only the newest events are kept.
    pub circular: bool,
    /// From tracefs: marks go into the shared buffer, too.
    pub shared_marks: bool,
    /// How long to record, without a command.
    pub seconds: Option<u64>,
    /// Categories of events; none for the usual ones.
    pub categories: Vec<String>,
    /// The command to record.
    pub command: Vec<String>,
    /// Whether its name denotes this program.
    pub is_own: bool,
    /// The page about it.
    pub drawing: Option<Drawing>,
    /// Which calls the page has.
    pub question: AnalysisOptions,
}

impl Job {
    /// Records; returns the exit status.
    ///
    /// # Errors
    /// Options do not go together, or the kernel's tracing cannot be used.
    pub fn run(&self) -> CommandResult {
        let wrong = match &self.drawing {
            Some(drawing) if drawing.html == self.output() => {
                "the recording and the page cannot be one file; give another to --html"
            }
            _ if self.via == Via::Tracefs && (self.until_miss || !self.applications.is_empty()) => {
                "--until-miss and --app are of --via perfetto"
            }
            _ if self.via == Via::Perfetto && self.shared_marks => "--shared-marks is of --via tracefs",
            _ => "",
        };
        if !wrong.is_empty() {
            return Err(Failure::new(exit::USAGE, wrong));
        }
        let mut progress = ProgressReporter { line: StatusLine::default() };
        let (ended, drawn) = match self.via {
            Via::Tracefs => {
                let outcome = self.plan().and_then(|plan| record(&plan, &mut progress));
                progress.line.show("");
                let summary = outcome?;
                note(summary.in_words(&self.output(), self.circular));
                (summary.ended, status_of(self.drawn()))
            }
            Via::Perfetto => {
                let outcome = self.by_perfetto(&mut progress);
                progress.line.show("");
                let summary = outcome?;
                (summary.ended, status_of(self.told_by_perfetto(summary)))
            }
        };
        // The command's status takes precedence over that of its picture.
        Ok(match status(ended) {
            exit::FINE => drawn,
            failed => failed,
        })
    }

    /// Draws the recording, if requested.
    fn drawn(&self) -> CommandResult {
        let Some(drawing) = &self.drawing else { return Ok(exit::FINE) };
        // Only now the file exists, which another spelling of its name could denote.
        let output = self.output();
        drawing.check(&output)?;
        let analysis = answer(self.question.clone(), &output, None, tell).or_exit(exit::INTERNAL)?;
        for slow in &analysis.slow {
            note(format_args!("- {}{}\n", if slow.missed { "MISS " } else { "" }, slow.verdict));
        }
        drawing.draw(&output, &analysis)?;
        Ok(exit::FINE)
    }

    fn output(&self) -> PathBuf {
        let usual = match self.via {
            Via::Tracefs => "binderperf.trace",
            Via::Perfetto => "binderperf.pftrace",
        };
        self.output.clone().unwrap_or_else(|| PathBuf::from(usual))
    }

    /// The categories of the kernel, and those of Android's frameworks.
    fn known(&self) -> Result<(Vec<&'static Category>, Vec<&str>), TraceError> {
        match self.categories.is_empty() {
            true => known(&categories::USUAL),
            false => known(&self.categories),
        }
    }

    fn work(&self) -> Result<Work, TraceError> {
        Ok(match (self.seconds, self.command.as_slice()) {
            (Some(seconds), _) => Work::Time(Duration::from_secs(seconds)),
            (None, [name, words @ ..]) => Work::Command {
                program: if self.is_own { own_program()? } else { PathBuf::from(name) },
                name: name.clone(),
                words: words.to_vec(),
                silent: false,
            },
            (None, []) => return Err(TraceError::Usage("record what? give -t SEC or a command".to_owned())),
        })
    }

    fn plan(&self) -> Result<Plan, TraceError> {
        let (categories, userspace) = self.known()?;
        of_userspace(&userspace).iter().for_each(|remark| tell(remark));
        Ok(Plan {
            categories,
            buffer_kb: self.buffer_kb,
            circular: self.circular,
            output: self.output(),
            work: self.work()?,
            shared_marks: self.shared_marks,
        })
    }

    fn by_perfetto(&self, progress: &mut ProgressReporter) -> Result<PerfettoSummary, TraceError> {
        let (categories, userspace) = self.known()?;
        let applications: Vec<&str> = self.applications.iter().map(String::as_str).collect();
        let cpus = std::thread::available_parallelism().map_or(1, std::num::NonZero::get);
        check_size(self.buffer_kb, cpus)?;
        let newest = self.circular || self.until_miss;
        let ring_kb = self.buffer_kb.saturating_mul(cpus as u64);
        let config = PerfettoConfig {
            categories: &categories,
            userspace: &userspace,
            applications: &applications,
            buffer_kb: if newest { ring_kb } else { STREAM_KB.max(ring_kb) },
            seconds: None,
            until_miss: self.until_miss,
            stream: !newest,
            kernel_buffer_kb: (!newest).then_some(self.buffer_kb),
        };
        let (output, work) = (self.output(), self.work()?);
        perfetto::record(&PerfettoPlan { config, output: &output, work: &work }, progress)
    }

    /// Tells what was recorded, and draws it.
    fn told_by_perfetto(&self, summary: PerfettoSummary) -> CommandResult {
        let output = self.output();
        if summary.missed {
            note("recording was stopped before the end, as by a miss\n");
        }
        let Some(bytes) = summary.bytes else {
            note("nothing was missed: no recording is kept\n");
            return Ok(exit::FINE);
        };
        let read = each(&output, |_, _| {});
        let reader = read.map_err(|why| format!("{}: {why}", output.display())).or_exit(exit::INTERNAL)?;
        let report = reader.report();
        note(format_args!("{}: {bytes} bytes by perfetto, {report}\n", output.display()));
        if report.events == 0 {
            let why = "the recording has no event of the kernel: does traced_probes run, as a user who may use tracefs?";
            return Err(Failure::new(exit::UNABLE, why));
        }
        self.drawn()
    }
}

/// This program's file.
fn own_program() -> Result<PathBuf, TraceError> {
    std::env::current_exe()
        .map_err(|error| TraceError::Refused { tried: "finding this program's file".to_owned(), error })
}

/// The exit status of what was recorded.
fn status(ended: Ended) -> u8 {
    match ended {
        Ended::Time => exit::FINE,
        Ended::Command(status) => of_process(status),
    }
}

/// Shows progress on the terminal.
struct ProgressReporter {
    line: StatusLine,
}

impl Observer for ProgressReporter {
    fn begins(&mut self, notes: &[String]) {
        notes.iter().for_each(|line| note(format_args!("{line}\n")));
    }

    fn advanced(&mut self, elapsed: Duration, bytes: u64) {
        self.line.show(&format!("recording: {} s, {} KB", elapsed.as_secs(), bytes / 1024));
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn job(categories: &[&str], command: &[&str]) -> Job {
        let owned = |words: &[&str]| words.iter().map(|word| (*word).to_owned()).collect::<Vec<_>>();
        Job {
            buffer_kb: 64,
            seconds: command.is_empty().then_some(2),
            categories: owned(categories),
            command: owned(command),
            is_own: command.first() == Some(&"binderperf"),
            ..Job::default()
        }
    }

    #[test]
    fn what_is_recorded_is_a_time_or_a_command() {
        let program = |command: &[&str]| match job(&[], command).plan().expect("a plan").work {
            Work::Command { program, words, .. } => (program, words.len()),
            Work::Time(_) => panic!("a command"),
        };
        assert_eq!(program(&["binderperf", "-i", "5"]), (std::env::current_exe().expect("a test"), 2));
        assert_eq!(program(&["true"]), (PathBuf::from("true"), 0));
        let plan = job(&[], &[]).plan().expect("a plan");
        assert_eq!((plan.categories.len(), plan.work), (8, Work::Time(Duration::from_secs(2))));
        assert!(matches!(job(&["nosuch"], &[]).plan(), Err(TraceError::Usage(_))));
    }

    #[test]
    fn options_of_another_recorder_are_refused() {
        let perfetto = Job { via: Via::Perfetto, shared_marks: true, ..job(&[], &[]) };
        let tracefs = Job { until_miss: true, ..job(&[], &[]) };
        let drawing = Some(Drawing { html: PathBuf::from("binderperf.trace"), pictures: 1 });
        for job in [perfetto, tracefs, Job { drawing, ..job(&[], &[]) }] {
            assert_eq!(job.run().expect_err("refused").status, exit::USAGE);
        }
    }
}
