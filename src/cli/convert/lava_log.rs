//! `convert --from lava-log`: the records of a LAVA job as files, and its verdict as an exit status.
//! Not here: reading the log (`record::lava`), its records as files (`store::job_log`).

use std::path::{Path, PathBuf};

use store::job_log::{beside, read, write};

use crate::cli::{CommandResult, Failure, exit, say, tell};

/// Writes the records and says what failed. LAVA's own programs end with 0 when test cases fail, this one with 1.
pub(super) fn run(files: &[PathBuf], folder: Option<&Path>) -> CommandResult {
    let [file] = files else { return Err(Failure::new(exit::USAGE, "--from lava-log takes one log")) };
    let shown = file.display();
    let log = read(file, tell)?;
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
