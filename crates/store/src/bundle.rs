//! The records of files and folders as one report: with the doctor's findings, and the pictures of recorded calls.
//! Not here: what a report says (`record::render::report`).

use std::collections::BTreeSet;
use std::fs;
use std::path::{Path, PathBuf};

use intake::Name;
use record::checkup::Checkup;
use record::render::picture_title;
use record::render::report::{Bundle, Entry, Fragment, RunProblem, RunProblems};
use record::{ReadError, Run, SavedCall};
use trace::picture::{Embedded, fragment};
use trace::verdict::{AnalysisOptions, Filter};

use crate::input;
use crate::records::{files_of, is_first, runs};
use crate::traces::{answer, scenes, scratch};
use crate::{StoreError, Tell};

/// The number of slowest calls of a recording that get a picture.
const TOLD: usize = 5;
/// Reads all paths.
///
/// # Errors
/// A path cannot be read, or none has a record or a checkup.
pub fn read(paths: &[PathBuf], tell: Tell) -> Result<Bundle, StoreError> {
    let mut bundle = Bundle::default();
    for path in paths {
        let about = fs::metadata(path).map_err(|error| StoreError::unread("read", path, error))?;
        if !about.is_dir() {
            let found = runs(path, tell)
                .map_err(|error| StoreError::Unusable(format!("{}: {error}", path.display())))?;
            bundle.runs.extend(found.into_iter().map(|run| Entry { name: name_of(path), run }));
            continue;
        }
        let before = bundle.runs.len();
        for file in files_of(path, "json")?.iter().filter(|file| !is_first(file)) {
            take(&mut bundle, file, tell)?;
        }
        let firsts = firsts(path);
        let runs = bundle.runs[before..].iter().map(|entry| &entry.run);
        let named = runs.chain(firsts.iter().map(|(_, run)| run)).flat_map(recordings);
        let named: Vec<String> = named.map(ToOwned::to_owned).collect();
        draw_saved(&mut bundle, before, path, tell);
        // Sorted by start time: files are in the order of their names.
        bundle.runs.sort_by(|one, other| one.run.started.cmp(&other.run.started));
        let recordings = files_of(path, "bptrace")?;
        let unnamed = |file: &PathBuf| !named.contains(&name_of(file));
        draw_found(&mut bundle, &recordings.into_iter().filter(unnamed).collect::<Vec<_>>(), tell);
    }
    if bundle.runs.is_empty() && bundle.checkup.is_none() {
        let paths: Vec<String> = paths.iter().map(|path| path.display().to_string()).collect();
        let why = format!("no record in {}; `binderperf run --out DIR` leaves some", paths.join(", "));
        return Err(StoreError::Unusable(why));
    }
    Ok(bundle)
}

/// The results of a folder that were disturbed and measured again, with their file names.
pub fn firsts(folder: &Path) -> Vec<(String, Run)> {
    let files = files_of(folder, "json").unwrap_or_default().into_iter().filter(|file| is_first(file));
    files.filter_map(|file| Some((name_of(&file), Run::from_json(&fs::read(&file).ok()?).ok()?))).collect()
}

/// The recordings that a record names, each once; names only, never paths.
pub fn recordings(run: &Run) -> impl Iterator<Item = &str> {
    let recorders = run.latency().into_iter().flat_map(|test| &test.recorder);
    let files: BTreeSet<&str> = recorders.flat_map(record::Recorder::files).collect();
    // A record may come from another machine.
    let is_name =
        |file: &&str| Name::parse(file).is_ok() && Path::new(file).file_name() == Some(file.as_ref());
    files.into_iter().filter(is_name)
}

/// Draws the calls that the runs from number `first` on name, whose recordings are in this folder, and explains those that
/// were not answered.
pub fn draw_saved(bundle: &mut Bundle, first: usize, folder: &Path, tell: Tell) {
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
            draw_found(&mut drawn, &[folder.join(&stopped.file)], tell);
        }
    }
    bundle.causes.extend(drawn.causes);
    bundle.troubles.extend(drawn.troubles);
}

/// Draws the slowest calls of recordings that no record judges, and explains the calls that failed or were not answered.
fn draw_found(bundle: &mut Bundle, recordings: &[PathBuf], tell: Tell) {
    let mut unexplained = Vec::new();
    for recording in recordings {
        match causes(recording, tell) {
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
fn causes(recording: &Path, tell: Tell) -> Result<Option<Shown>, String> {
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
fn take(bundle: &mut Bundle, file: &Path, tell: Tell) -> Result<(), StoreError> {
    let bytes = fs::read(file).map_err(|error| StoreError::unread("read", file, error))?;
    match runs(file, tell) {
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
