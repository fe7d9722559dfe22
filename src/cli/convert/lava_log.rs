//! `convert --from lava-log`: the records of a LAVA job as files, and its verdict as an exit status.
//! Not here: reading the log (`record::lava`).

use std::ffi::OsStr;
use std::fmt::Display;
use std::fs;
use std::io::{self, Read};
use std::path::{Path, PathBuf};

use intake::{Arrivals, Limits, Name, Place};
use record::Run;
use record::lava::JobLog;
use store::input;
use sys::folder::Folder;

use crate::cli::{CommandResult, Failure, OrExit, exit, say, tell};

/// Writes the records and says what failed. LAVA's own programs end with 0 when test cases fail, this one with 1.
pub(super) fn run(files: &[PathBuf], folder: Option<&Path>) -> CommandResult {
    let [file] = files else { return Err(Failure::new(exit::USAGE, "--from lava-log takes one log")) };
    let shown = file.display();
    let log = input::stream(file, tell)
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
    let mut arrivals = Arrivals::new(Limits::USUAL);
    for attached in &log.attached {
        let name = &attached.name;
        // A record that its own readers would refuse is told here, not written; and so is a name that denotes no file.
        let refused =
            |why: &dyn Display| Failure::new(exit::USAGE, format_args!("the attached {name}: {why}"));
        Name::parse(name).map_err(|why| refused(&format_args!("the name cannot be taken: {why}")))?;
        Run::from_json(&attached.content).map_err(|why| refused(&why))?;
        fs::create_dir_all(folder)
            .map_err(|error| Failure::of_file(exit::INTERNAL, "make", folder, &error))?;
        let name = free(folder, name, &attached.content)
            .map_err(|error| Failure::of_file(exit::INTERNAL, "look into", folder, &error))?;
        let mut place = |name: &Name| Ok(Place::below(folder, name));
        let size = attached.content.len() as u64;
        arrivals.begin(&name, 0o666, Some(size), &mut place).or_exit(exit::INTERNAL)?;
        arrivals.append(&attached.content).or_exit(exit::INTERNAL)?;
    }
    Ok(arrivals.into_parts().0)
}

/// A name that is free in a folder, or whose file has this content already.
fn free(folder: &Path, name: &str, content: &[u8]) -> io::Result<String> {
    let folder = Folder::open(folder)?;
    let (stem, end) = name.rsplit_once('.').unwrap_or((name, "json"));
    let mut number = 1;
    let mut candidate = name.to_owned();
    loop {
        let there = folder.read_file(OsStr::new(&candidate));
        match there {
            Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(candidate),
            Ok(file) => {
                let mut there = Vec::new();
                file.take(content.len() as u64 + 1).read_to_end(&mut there)?;
                if there == content {
                    return Ok(candidate);
                }
            }
            // A link or a folder has it.
            Err(_) => {}
        }
        number += 1;
        candidate = format!("{stem}.{number}.{end}");
    }
}
