//! `convert --from lava-log`: the records of a LAVA job as files, and its verdict as an exit status.
//! Not here: reading the log (`record::lava`).

use std::fs::{self, File};
use std::path::{Path, PathBuf};

use record::Run;
use record::lava::JobLog;

use crate::cli::{CommandResult, Failure, OrExit, exit, say};

/// Writes the records and says what failed. LAVA's own programs end with 0 when test cases fail, this one with 1.
pub(super) fn run(files: &[PathBuf], folder: Option<&Path>) -> CommandResult {
    let [file] = files else { return Err(Failure::new(exit::USAGE, "--from lava-log takes one log")) };
    let shown = file.display();
    let log = File::open(file)
        .map_err(|error| Failure::of_file(exit::USAGE, "open", file, &error))
        .and_then(|open| {
            JobLog::read(open).map_err(|error| Failure::new(exit::USAGE, format_args!("{shown}: {error}")))
        })?;
    let folder = folder.map_or_else(|| beside(file), Path::to_owned);
    let mut text = String::new();
    let cases: usize = log.results.values().sum();
    if cases > 0 {
        let counts: Vec<String> =
            log.results.iter().map(|(result, count)| format!("{count} {result}")).collect();
        text += &format!("{cases} test cases: {}\n", counts.join(", "));
    }
    for name in &log.failed {
        text += &format!("FAIL {name}\n");
    }
    for path in write(&log, &folder)? {
        text += &format!("{}\n", path.display());
    }
    say(&text)?;
    if let Some(why) = &log.job_failure {
        return Err(Failure::new(exit::UNABLE, format_args!("{shown}: the job itself failed: {why}")));
    }
    if cases == 0 {
        let why = "it has no line of a test case, so it is not the log of a job of 'fleet lava', or the job ended before";
        return Err(Failure::new(exit::USAGE, format_args!("{shown}: {why}")));
    }
    if let Some(taken) = log.taken_down.filter(|taken| *taken < cases) {
        let why = format_args!("{shown}: LAVA took down {taken} of {cases} test cases");
        return Err(Failure::new(exit::UNABLE, why));
    }
    Ok(if log.failed.is_empty() { exit::FINE } else { exit::FAILED })
}

/// The folder of a log's records: the log's name without its end.
fn beside(log: &Path) -> PathBuf {
    let name = log.file_name().unwrap_or_default().to_string_lossy();
    log.with_file_name(match name.rsplit_once('.') {
        Some((stem, _)) if !stem.is_empty() => stem.to_owned(),
        _ => format!("{name}-records"),
    })
}

/// Writes the attached records into a folder, each under a name of its own; nothing else that is there is replaced.
fn write(log: &JobLog, folder: &Path) -> Result<Vec<PathBuf>, Failure> {
    let mut written = Vec::new();
    for attached in &log.attached {
        let name = &attached.name;
        // A record that its own readers would refuse is told here, not written.
        Run::from_json(&attached.content)
            .map_err(|why| format!("the attached {name}: {why}"))
            .or_exit(exit::USAGE)?;
        fs::create_dir_all(folder)
            .map_err(|error| Failure::of_file(exit::INTERNAL, "make", folder, &error))?;
        let (stem, end) = name.rsplit_once('.').unwrap_or((name, "json"));
        let names = std::iter::once(name.clone()).chain((2..).map(|number| format!("{stem}.{number}.{end}")));
        let path = names
            .map(|name| folder.join(name))
            .find(|path| fs::read(path).map_or(true, |there| there == attached.content))
            .unwrap_or_else(|| folder.join(name));
        fs::write(&path, &attached.content)
            .map_err(|error| Failure::of_file(exit::INTERNAL, "write", &path, &error))?;
        written.push(path);
    }
    Ok(written)
}
