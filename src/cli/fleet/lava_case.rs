//! A command in a LAVA job: it runs, then its results are printed as LAVA's signals and its records as lines of the log.
//! Not here: the job (`fleet::lava`), the signals (`record::formats::convert`), the lines (`record::lava`).

use std::os::unix::process::ExitStatusExt;
use std::process::{Command, ExitStatus};

use clap::Args;
use fleet::lava::{BEGINS, ENDS};
use store::job_log::signals;
use store::records::{files_of, is_first, read};
use sys::private_folder::PrivateFolder;

use crate::cli::program::Program;
use crate::cli::{CommandResult, Failure, OrExit, exit, say, tell};

/// Run a command in a LAVA job, and print its results as LAVA's signals and its records as lines of the log
///
/// The jobs of fleet lava call it. The exit status is that of the command, which is a test case, too.
#[derive(Debug, Args)]
pub(super) struct CaseArgs {
    /// The command
    #[arg(value_name = "COMMAND", last = true, required = true)]
    command: Vec<String>,
}

/// Runs the command and prints its results.
pub(super) fn run(args: &CaseArgs, program: &Program) -> CommandResult {
    let words = &args.command;
    (program.understood)(words).or_exit(exit::USAGE)?;
    let keeps = check(words, program)?;
    let private = PrivateFolder::new("lava").or_exit(exit::UNABLE)?;
    let folder = private.path();
    let itself = std::env::current_exe().or_exit(exit::INTERNAL)?;
    let name = path(words, program).join("-");
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
    let text = ended.and_then(|ended| Ok((code(ended), results(folder)?)));
    // What is in it has been read or cannot be.
    drop(private);
    let (code, text) = text?;
    let result = if code == exit::FINE { "pass" } else { "fail" };
    say(&format!(
        "{BEGINS}\n{text}<LAVA_SIGNAL_TESTCASE TEST_CASE_ID={name}/exit-status RESULT={result} UNITS=none MEASUREMENT={code}>\n{ENDS}\n"
    ))?;
    Ok(code)
}

/// All records of a folder. One that cannot be read is told and passed over: the command's status stays a result.
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

/// The status that a shell would show.
fn code(ended: ExitStatus) -> u8 {
    let signal = || ended.signal().and_then(|signal| u8::try_from(128 + signal).ok());
    ended.code().and_then(|code| u8::try_from(code).ok()).or_else(signal).unwrap_or(exit::INTERNAL)
}

/// The files that a command leaves.
pub(super) enum Keeps {
    /// A folder of records.
    Folder,
    /// A record.
    Record,
    /// A status only.
    Nothing,
}

/// The files that the command leaves.
///
/// # Errors
/// It names a file for its record, which has its place in the log.
pub(super) fn check(words: &[String], program: &Program) -> Result<Keeps, Failure> {
    let names = path(words, program);
    let definition = program.find(&names.iter().map(String::as_str).collect::<Vec<_>>());
    let has = |option: &str| {
        let mut arguments = definition.iter().flat_map(clap::Command::get_arguments);
        arguments.any(|argument| argument.get_long() == Some(option))
    };
    let (keeps, option) = match names.first().map(String::as_str) {
        Some("run") => (Keeps::Folder, "--out"),
        _ if has("record") => (Keeps::Record, "--record"),
        _ => return Ok(Keeps::Nothing),
    };
    let named = |word: &&String| word.split('=').next() == Some(option);
    match words.iter().take_while(|word| *word != "--").find(named) {
        Some(word) => Err(Failure::new(
            exit::USAGE,
            format_args!("{word}: leave it out, records go into the job's log"),
        )),
        None => Ok(keeps),
    }
}

/// The command's name: the first words that are commands.
fn path(words: &[String], program: &Program) -> Vec<String> {
    let mut names: Vec<String> = Vec::new();
    for word in words.iter().take_while(|word| !word.starts_with('-')) {
        let longer: Vec<&str> = names.iter().chain([word]).map(String::as_str).collect();
        if program.find(&longer).is_none() {
            break;
        }
        names.push(word.clone());
    }
    names
}
