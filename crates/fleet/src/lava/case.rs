//! A command in a LAVA job: it runs, then its results are printed as LAVA's signals and its records as lines of the log.
//! Not here: the job (`super`), the signals (`record::formats::convert`), the lines (`record::lava`).

use std::process::Command;

use console::{CommandResult, Failure, OrExit, exit, of_process, say, tell};
use store::job_log::signals;
use store::records::{files_of, is_first, read};
use sys::private_folder::PrivateFolder;

/// Line before the results, for monitors.
pub const BEGINS: &str = "binderperf lava-case: results begin";
/// Line behind the results.
pub const ENDS: &str = "binderperf lava-case: results end";

/// Runs the command and prints its results.
///
/// # Errors
/// It cannot be started, or its results cannot be read.
pub fn run(words: &[String], name: &str, keeps: Keeps) -> CommandResult {
    let private = PrivateFolder::new("lava").or_exit(exit::UNABLE)?;
    let folder = private.path();
    let itself = std::env::current_exe().or_exit(exit::INTERNAL)?;
    let mut command = Command::new(itself);
    command.args(words);
    match keeps {
        Keeps::Folder => drop(command.arg("--out").arg(folder)),
        Keeps::Record => drop(command.arg("--record").arg(folder.join(format!("{name}.json")))),
        Keeps::Nothing => {}
    }
    // A result that nobody prints any more is of no use.
    sys::child::die_with_parent(&mut command);
    let ended = command.status().map_err(|error| {
        Failure::new(exit::INTERNAL, format_args!("starting the command: {}", sys::errno::describe(&error)))
    });
    let text = ended.and_then(|ended| Ok((of_process(ended), results(folder)?)));
    // Its contents have been read or cannot be.
    drop(private);
    let (code, text) = text?;
    let result = if code == exit::FINE { "pass" } else { "fail" };
    say(&format!(
        "{BEGINS}\n{text}<LAVA_SIGNAL_TESTCASE TEST_CASE_ID={name}/exit-status RESULT={result} UNITS=none MEASUREMENT={code}>\n{ENDS}\n"
    ))?;
    Ok(code)
}

/// All records of a folder. One that cannot be read is named and passed over: the command's status stays a result.
fn results(folder: &std::path::Path) -> Result<String, Failure> {
    let mut text = String::new();
    for file in files_of(folder, "json").or_exit(exit::INTERNAL)? {
        if is_first(&file) {
            continue;
        }
        match read(&file, tell).and_then(|run| signals(&[file], &[run], tell)) {
            Ok(lines) => text += &lines,
            Err(why) => tell(&why.to_string()),
        }
    }
    Ok(text)
}

/// The files that a command leaves.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Keeps {
    /// A folder of records.
    Folder,
    /// A record.
    Record,
    /// A status only.
    Nothing,
}
