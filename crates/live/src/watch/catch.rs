//! One catch of `watch`: the newest events, the driver's files before and after, the kernel's log, and what `explain` says.
//! Not here: when there is one (`super`), its place on the disk (`live::catches`).

use std::io;
use std::path::PathBuf;
use std::time::SystemTime;

use driver::Root;
use explain::Explainer;
use ftrace::tracefs::TraceError;
use store::evidence::{lines, name_processes};
use store::input;
use store::traces::{answer, scratch};
use sys::local_time::LocalTime;
use trace::verdict::AnalysisOptions;

use super::Observer;
use crate::action::Action;
use crate::catches::{Catch, Catches};
use crate::here::{Here, NoState};
use crate::stream::Stream;

/// Names of its files.
const TRACE: &str = "trace.bptrace";
const LOG: &str = "kernel.log";
const REPORTS: &str = "netlink.jsonl";

/// Number of the trace's slowest calls that it explains.
const WORST: usize = 5;

/// Contents of a catch.
pub(super) struct Contents<'c> {
    /// A word for its name.
    pub(super) word: &'c str,
    /// The triggers, one a line.
    pub(super) triggers: &'c [String],
    /// The last look before; none of the first.
    pub(super) before: Option<&'c Here>,
    /// The driver's files now, or why not.
    pub(super) after: Result<Here, NoState>,
    /// The kernel's log, one message a line.
    pub(super) log: &'c str,
    /// The driver's reports of failed calls, one a line.
    pub(super) reports: &'c str,
    /// Why the log or the reports are not whole.
    pub(super) gap: Option<&'c str>,
    /// Time in us from which a call is late.
    pub(super) deadline_us: Option<u64>,
    /// Whether the machine's files are saved with it.
    pub(super) has_snapshot: bool,
}

impl Contents<'_> {
    /// Writes it, whole and on the disk. Returns its folder.
    ///
    /// # Errors
    /// A file could not be written, as on a full disk; nothing of it stays.
    pub(super) fn write(
        &self,
        catches: &Catches,
        stream: Option<&Stream>,
        observer: &mut dyn Observer,
    ) -> io::Result<PathBuf> {
        let now = LocalTime::utc(SystemTime::now());
        let catch = catches.begin(now, self.word)?;
        let mut explainer = Explainer::new();
        // First: its oldest events leave with each new one.
        let mut calls =
            stream.map(|stream| self.traced(stream, &catch, &mut explainer)).transpose()?.unwrap_or_default();
        self.state(&catch, &mut explainer)?;
        for (name, text) in
            [(LOG, self.log), (REPORTS, self.reports)].into_iter().filter(|(_, text)| !text.is_empty())
        {
            catch.write(name, text.as_bytes())?;
            lines(&mut explainer, name, text);
        }
        self.gap.into_iter().for_each(|why| explainer.note(why));
        name_processes(&mut explainer, &Root::of_this_machine());
        let report = explainer.explain(None);
        if !calls.is_empty() {
            calls.insert_str(0, "\nThe slowest calls of the trace:\n");
        }
        let text = format!("caught at {now}: {}\n\n{report}{calls}", self.triggers.join("; "));
        catch.write("report.txt", units::visible::visible(&text).as_bytes())?;
        catch.write("report.html", report.to_html().map_err(io::Error::other)?.as_bytes())?;
        if self.has_snapshot {
            let snapshot = doctor::Snapshot::live(doctor::gather(true));
            if let Err(why) = doctor::save(&snapshot, &catch.folder().join("snapshot")) {
                observer.remark(&format!("`{}` failed: {why}", Action::Snapshot));
            }
        }
        catch.finish()
    }

    /// Saves the newest events, and lets the explainer read them. Returns what is to be said of the slowest calls.
    fn traced(&self, stream: &Stream, catch: &Catch, explainer: &mut Explainer) -> io::Result<String> {
        let path = catch.folder().join(TRACE);
        match stream.save(&path) {
            Err(TraceError::Output { error, .. }) => return Err(error),
            Err(why) => {
                explainer.note(format!("the trace could not be saved: {why}"));
                return Ok(String::new());
            }
            Ok(_) => {}
        }
        if let Err(why) = explainer.read(TRACE, input::seekable(&path)?, &mut scratch) {
            explainer.note(format!("{TRACE}: {why}"));
        }
        let deadline_ns = self.deadline_us.map(|us| us.saturating_mul(1000));
        let question = AnalysisOptions { deadline_ns, worst: WORST, ..AnalysisOptions::default() };
        Ok(answer(question, &path, None, |_| {})
            .map_or_else(|_| String::new(), |analysis| analysis.to_string()))
    }

    fn state(&self, catch: &Catch, explainer: &mut Explainer) -> io::Result<()> {
        let after = self.after.as_ref();
        for (folder, here) in [("before/", self.before), ("after/", after.ok())] {
            let Some(here) = here else { continue };
            here.files
                .iter()
                .try_for_each(|(name, text)| catch.write(&format!("{folder}{name}"), text.as_bytes()))?;
            here.add_to(explainer, folder);
        }
        if let Some(why) = after.err() {
            explainer.note(format!("the driver's files could not be read any more: {why}"));
        }
        Ok(())
    }
}
