//! The command `report`: renders records as one page, as Markdown, or as the summary of `run`.
//! Not here: what a report says (`record::render::report`).

use std::collections::BTreeSet;
use std::fs;
use std::io;
use std::path::{Path, PathBuf};

use clap::{Args, ValueEnum};
use intake::Name;
use record::checkup::Checkup;
use record::compare::Metric;
use record::render::across as beside;
use record::render::picture_title;
use record::render::report::{
    Bundle, Entry, Fragment, RunProblem, RunProblems, html, json, markdown, summary,
};

use record::{ReadError, Run, SavedCall};
use store::across;
use store::input;
use store::records::{self as named, files_of, is_first};
use store::traces::{answer, scenes, scratch};
use trace::picture::{Embedded, fragment};
use trace::verdict::{AnalysisOptions, Filter};

use super::grouping::Grouping;
use super::output::Sink;
use super::records;
use super::{CommandResult, Failure, OrExit, exit, say, tell};

/// Make one page of records: verdicts, curves, findings and their evidence
///
/// PATH is a record, or a folder of `run --out`: every record in it, and the doctor's findings. The page is
/// self-contained: no scripts, no network.
///
/// With --across the page puts the records of many devices beside one another, those of folders in folders, too: who
/// stands out first, then each case with a dot for each device, kernel or build.
#[derive(Debug, Args)]
pub(crate) struct ReportArgs {
    /// Records, or folders of records
    #[arg(required = true, value_name = "PATH")]
    paths: Vec<PathBuf>,

    /// Put all records beside one another, by device, kernel or build: a page, a summary or JSON
    #[arg(long, value_enum, value_name = "GROUPS", num_args = 0..=1, require_equals = true, default_missing_value = "device")]
    across: Option<Grouping>,

    /// Output format
    #[arg(long, value_enum, default_value_t = Form::Html)]
    format: Form,

    /// Output file; `-` for stdout [default: binderperf-report.html for a page, stdout for the others]
    #[arg(short, long, value_name = "FILE")]
    output: Option<PathBuf>,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
enum Form {
    /// One self-contained page
    Html,
    /// For a pull request
    Markdown,
    /// The summary that `run` prints at its end
    Summary,
    /// The verdicts: expected, measured, why, next
    Json,
}

/// The number of slowest calls of a recording that get a picture.
const TOLD: usize = 5;
/// The default file of a page.
const PAGE: &str = "binderperf-report.html";

/// Renders the report.
pub(crate) fn run(args: &ReportArgs) -> CommandResult {
    let text = match args.across {
        Some(grouping) => beside(args, grouping)?,
        None => alone(args)?,
    };
    let usual = if args.format == Form::Html { PAGE } else { "-" };
    let path = args.output.clone().unwrap_or_else(|| PathBuf::from(usual));
    if path == Path::new("-") {
        return say(&text);
    }
    Sink::file(&path).deliver(&text)?;
    say(&format!("{}\n", path.display()))
}

/// The report of the records themselves.
fn alone(args: &ReportArgs) -> Result<String, Failure> {
    let bundle = read(&args.paths).or_exit(exit::USAGE)?;
    Ok(match args.format {
        Form::Html => html(&bundle).or_exit(exit::INTERNAL)?,
        Form::Markdown => markdown(&bundle),
        Form::Summary => summary(&bundle, ""),
        Form::Json => json(&bundle),
    })
}

/// The report of many records beside one another.
fn beside(args: &ReportArgs, grouping: Grouping) -> Result<String, Failure> {
    let found = across::read(&args.paths, grouping.into(), Metric::Median, tell)?;
    Ok(match args.format {
        Form::Html => beside::html(&found).or_exit(exit::INTERNAL)?,
        Form::Markdown => records::Form::Markdown.of_across(&found),
        Form::Summary => beside::text(&found),
        Form::Json => beside::json(&found),
    })
}

/// Reads all paths.
pub(super) fn read(paths: &[PathBuf]) -> Result<Bundle, String> {
    let mut bundle = Bundle::default();
    for path in paths {
        let failed =
            |error: &io::Error| format!("cannot read {}: {}", path.display(), sys::errno::describe(error));
        let about = fs::metadata(path).map_err(|error| failed(&error))?;
        if !about.is_dir() {
            let runs = named::runs(path, tell).map_err(|error| format!("{}: {error}", path.display()))?;
            bundle.runs.extend(runs.into_iter().map(|run| Entry { name: name_of(path), run }));
            continue;
        }
        let before = bundle.runs.len();
        for file in
            files_of(path, "json").map_err(|error| error.to_string())?.iter().filter(|file| !is_first(file))
        {
            take(&mut bundle, file)?;
        }
        let firsts = firsts(path);
        let runs = bundle.runs[before..].iter().map(|entry| &entry.run);
        let named = runs.chain(firsts.iter().map(|(_, run)| run)).flat_map(recordings);
        let named: Vec<String> = named.map(ToOwned::to_owned).collect();
        draw_saved(&mut bundle, before, path);
        // Sorted by start time: files are in the order of their names.
        bundle.runs.sort_by(|one, other| one.run.started.cmp(&other.run.started));
        let recordings = files_of(path, "bptrace").map_err(|error| error.to_string())?;
        let unnamed = |file: &PathBuf| !named.contains(&name_of(file));
        draw_found(&mut bundle, &recordings.into_iter().filter(unnamed).collect::<Vec<_>>());
    }
    if bundle.runs.is_empty() && bundle.checkup.is_none() {
        let paths: Vec<String> = paths.iter().map(|path| path.display().to_string()).collect();
        return Err(format!("no record in {}; `binderperf run --out DIR` leaves some", paths.join(", ")));
    }
    Ok(bundle)
}

/// The results of a folder that were disturbed and measured again, with their file names.
pub(super) fn firsts(folder: &Path) -> Vec<(String, Run)> {
    let files = files_of(folder, "json").unwrap_or_default().into_iter().filter(|file| is_first(file));
    files.filter_map(|file| Some((name_of(&file), Run::from_json(&fs::read(&file).ok()?).ok()?))).collect()
}

/// The recordings that a record names, each once; names only, never paths.
pub(super) fn recordings(run: &Run) -> impl Iterator<Item = &str> {
    let recorders = run.latency().into_iter().flat_map(|test| &test.recorder);
    let files: BTreeSet<&str> = recorders.flat_map(record::Recorder::files).collect();
    // A record may come from another machine.
    let is_name =
        |file: &&str| Name::parse(file).is_ok() && Path::new(file).file_name() == Some(file.as_ref());
    files.into_iter().filter(is_name)
}

/// Draws the calls that the runs from number `first` on name, whose recordings are in this folder, and explains those that
/// were not answered.
pub(super) fn draw_saved(bundle: &mut Bundle, first: usize, folder: &Path) {
    let mut drawn = Bundle::default();
    for entry in &bundle.runs[first..] {
        let Some(test) = entry.run.latency() else { continue };
        let Some(recorder) = &test.recorder else { continue };
        let is_named = |file: &str| recordings(&entry.run).any(|name| name == file);
        for saved in recorder.saved.iter().filter(|saved| is_named(&saved.file)) {
            let recording = folder.join(&saved.file);
            match picture_of(&recording, saved) {
                Ok(Embedded { style, definitions, html }) => {
                    let title = picture_title(&entry.run, test, saved);
                    drawn.causes.push(Fragment { anchor: saved.anchor(), title, style, definitions, html });
                }
                Err(why) => drawn.troubles.push(unreadable(&recording, &why)),
            }
        }
        if let Some(stopped) = recorder.stopped.as_ref().filter(|stopped| is_named(&stopped.file)) {
            draw_found(&mut drawn, &[folder.join(&stopped.file)]);
        }
    }
    bundle.causes.extend(drawn.causes);
    bundle.troubles.extend(drawn.troubles);
}

/// Draws the slowest calls of recordings that no record judges, and explains the calls that failed or were not answered.
fn draw_found(bundle: &mut Bundle, recordings: &[PathBuf]) {
    let mut unexplained = Vec::new();
    for recording in recordings {
        match causes(recording) {
            Ok(found) => {
                // Of a recording without marks this says nothing.
                if found.as_ref().is_none_or(|found| found.has_failures) {
                    unexplained.push(recording.clone());
                }
                bundle.causes.extend(found.map(|found| found.pictures));
            }
            Err(why) => bundle.troubles.push(unreadable(recording, &why)),
        }
    }
    match failed_calls(&unexplained) {
        Ok(found) => bundle.causes.extend(found),
        Err(why) => bundle.troubles.extend(unexplained.first().map(|recording| unreadable(recording, &why))),
    }
}

/// The picture of one call.
fn picture_of(recording: &Path, saved: &SavedCall) -> Result<Embedded, String> {
    let file = input::seekable(recording).map_err(|error| sys::errno::describe(&error))?;
    let analysis = trace::verdict::of_call(file, &saved.label()).map_err(|error| error.to_string())?;
    let (_, slow) = scenes(recording, &analysis, 1).map_err(|error| error.to_string())?;
    fragment(&saved.anchor(), &analysis, (None, &slow)).map_err(|error| error.to_string())
}

/// The parts of a report that come from one recording.
struct Shown {
    /// Pictures of the slowest calls.
    pictures: Fragment,
    /// Whether calls failed or nobody answered them.
    has_failures: bool,
}

/// Pictures of the slowest calls of a recording; none if it has no marked call.
fn causes(recording: &Path) -> Result<Option<Shown>, String> {
    let filter = Filter { own: true, ..Filter::default() };
    let question = AnalysisOptions { worst: TOLD, filter, ..AnalysisOptions::default() };
    let analysis = answer(question, recording, None, tell).map_err(|error| error.to_string())?;
    let counts = analysis.counts;
    if counts.calls + counts.unanswered + counts.failed == 0 {
        return Ok(None);
    }
    let failed = |error: &dyn std::fmt::Display| format!("{}: {error}", recording.display());
    let (busiest, slow) = scenes(recording, &analysis, TOLD).map_err(|error| failed(&error))?;
    let anchor = anchor_of(recording);
    let Embedded { style, definitions, html } =
        fragment(&anchor, &analysis, (busiest.as_ref(), &slow)).map_err(|error| failed(&error))?;
    let title = format!("The {TOLD} slowest calls of {}, and what they waited for", name_of(recording));
    let has_failures = counts.unanswered + counts.failed > 0;
    Ok(Some(Shown { pictures: Fragment { anchor, title, style, definitions, html }, has_failures }))
}

/// Findings of `explain` in recordings with calls that failed or that nobody answered.
fn failed_calls(recordings: &[PathBuf]) -> Result<Option<Fragment>, String> {
    let mut explainer = explain::Explainer::new();
    for recording in recordings {
        let Ok(file) = input::seekable(recording) else { continue };
        // One that cannot be read is named with the pictures.
        let _ = explainer.read(&name_of(recording), file, &mut scratch);
    }
    let mut report = explainer.explain(None);
    let kinds =
        [explain::Kind::Failure, explain::Kind::Frozen, explain::Kind::Wait, explain::Kind::DeadTarget];
    report.findings.retain(|finding| kinds.contains(&finding.kind));
    if report.findings.is_empty() {
        return Ok(None);
    }
    let explain::Part { style, html } = report.part().map_err(|error| error.to_string())?;
    Ok(Some(Fragment {
        anchor: format!("explained-{}", recordings.first().map(|first| anchor_of(first)).unwrap_or_default()),
        title: match recordings {
            [only] => format!("Calls that failed or were not answered ({})", name_of(only)),
            _ => "Calls that failed or were not answered".to_owned(),
        },
        style: style.to_owned(),
        definitions: String::new(),
        html,
    }))
}

/// One file of a folder: a record, a checkup, or something else, which is ignored.
fn take(bundle: &mut Bundle, file: &Path) -> Result<(), String> {
    let bytes = fs::read(file)
        .map_err(|error| format!("cannot read {}: {}", file.display(), sys::errno::describe(&error)))?;
    match named::runs(file, tell) {
        Ok(runs) => bundle.runs.extend(runs.into_iter().map(|run| Entry { name: name_of(file), run })),
        // Other JSON is not ours.
        Err(ReadError::Foreign { .. }) => {
            bundle.checkup = Checkup::from_json(&bytes).ok().or(bundle.checkup.take());
            bundle.troubles.extend(RunProblems::from_json(&bytes).into_iter().flatten());
        }
        // One bad file does not spoil the others.
        Err(error) => bundle.troubles.push(unreadable(file, &error.to_string())),
    }
    Ok(())
}

fn unreadable(file: &Path, why: &str) -> RunProblem {
    RunProblem {
        words: "UNREADABLE".to_owned(),
        expected: "a record".to_owned(),
        ..RunProblem::not_run(name_of(file), why)
    }
}

/// Anchor of a recording's part of a page.
fn anchor_of(recording: &Path) -> String {
    record::anchor_of_recording(&name_of(recording))
}

fn name_of(path: &Path) -> String {
    path.file_name().map_or_else(|| path.display().to_string(), |name| name.to_string_lossy().into_owned())
}
