//! `--on TARGET`: the same command on other machines, one after another, and a table across them.
//! Not here: reaching a machine (`remote`), the definition of the options (`binderperf`), the table (`record::render::targets`).

mod desk;
pub mod words;

use std::path::PathBuf;
use std::process::Command;
use std::time::{Duration, Instant};

use record::Run;
use record::render::targets::{Column, targets};
use remote::{Job, Naming, Placed, Places, Programs, Target, Unprepared, labels, placed, prepare};
use store::input;
use store::lock::FolderLock;
use store::records::{collect, in_files};
use vm::{Options, kernel::Choice};

use console::progress::StatusLine;
use console::{CommandResult, Failure, OrExit, complain, exit, note, say, status_of, terminal};

use crate::environment::passed_on;
use crate::guest::refused;
use desk::Desk;
use words::{On, taken};

/// The record of a test that was not asked for one, for the table; the numbers of several machines do not meet.
const FOR_THE_TABLE: &str = "binderperf-on.json";

/// This program, for commands on other machines.
#[derive(Debug)]
pub struct Here {
    /// Checks that these words would be understood; else the parser's message.
    pub understood: fn(&[String]) -> Result<(), String>,
    /// Runs the command of these words; returns the exit status.
    pub run: fn(&[String]) -> u8,
    /// Further names of the program, which it has in guests, too.
    pub names: Vec<String>,
}

/// The name of this program's folder for builds for other machines.
const NAME: &str = "binderperf";

/// Runs a command whose words say `--on`; none if they do not.
pub fn run_elsewhere(words: &[String], here: &Here) -> Option<CommandResult> {
    let on = match taken(words) {
        Ok(on) => on?,
        Err(why) => return Some(Err(Failure::new(exit::USAGE, why))),
    };
    let end = on.words.iter().position(|word| word == "--").unwrap_or(on.words.len());
    let asks = on.words[..end].iter().any(|word| word == "--help" || word == "-h");
    if asks || on.targets == [Target::Local] {
        return Some(Ok((here.run)(&on.words)));
    }
    Some(run(&on, here))
}

fn run(on: &On, here: &Here) -> CommandResult {
    (here.understood)(&on.words).or_exit(exit::USAGE)?;
    let [target] = on.targets.as_slice() else { return run_on_each(on, here) };
    Ok(measured(on, here, target, &Prepared::new(on, target, None)?)?.status)
}

/// Runs it on one machine after another, and prints the table.
fn run_on_each(on: &On, here: &Here) -> CommandResult {
    let labels = labels(&on.targets);
    let prepared =
        on.targets.iter().zip(&labels).map(|(target, label)| Prepared::new(on, target, Some(label)));
    let prepared = prepared.collect::<Result<Vec<_>, Failure>>()?;
    let (mut columns, mut status) = (Vec::new(), exit::FINE);
    for (target, prepared) in on.targets.iter().zip(&prepared) {
        note(format_args!("== {target}\n"));
        let begun = Instant::now();
        let Measured { status: ended, runs } = measured(on, here, target, prepared)
            .unwrap_or_else(|failure| Measured { status: status_of(Err(failure)), runs: Vec::new() });
        status = if status == exit::FINE { ended } else { status };
        let ended = format!("status {ended}, {} s", begun.elapsed().as_secs());
        columns.push(Column { target: target.head(), ended, runs });
        if sys::stop_signal::received().is_some() {
            break;
        }
    }
    say(&format!("\n{}", targets(&columns)))?;
    Ok(status)
}

/// Results from a machine.
struct Measured {
    status: u8,
    /// Records, each with a name; for the table.
    runs: Vec<(String, Run)>,
}

/// The command for one machine, with the places of its files.
struct Prepared {
    placed: Placed,
    /// Whether it is `run`.
    is_run: bool,
    /// Whether its record is wanted for the table only.
    extra: bool,
}

impl Prepared {
    /// With a label the command's files go into a folder of that name.
    fn new(on: &On, target: &Target, label: Option<&str>) -> Result<Self, Failure> {
        let mut words = on.words.clone();
        let extra = label.is_some() && is_without_record(&words);
        if extra {
            words.push(format!("--record={FOR_THE_TABLE}"));
        }
        let is_run = words.first().is_some_and(|word| word == "run");
        let naming = match target {
            Target::Local => Naming::Here,
            Target::Vm(_) if is_run => Naming::Here,
            Target::Vm(_) => Naming::Flat,
            Target::Adb(_) | Target::Ssh { .. } => Naming::Below,
        };
        let placed = placed(&words, naming, label).or_exit(exit::USAGE)?;
        prepare(&placed, label.is_some()).map_err(unprepared)?;
        Ok(Self { placed, is_run, extra })
    }
}

/// Runs the command on one machine.
fn measured(on: &On, here: &Here, target: &Target, prepared: &Prepared) -> Result<Measured, Failure> {
    let Prepared { placed, is_run, extra } = prepared;
    let (status, files) = match target {
        Target::Local => at_home(placed, &[])?,
        Target::Vm(kernel) if *is_run => {
            let option = kernel.as_ref().map_or("--vm".to_owned(), |kernel| format!("--vm={kernel}"));
            at_home(placed, &[option])?
        }
        Target::Vm(kernel) => in_a_guest(here, target, placed, kernel.as_deref())?,
        Target::Adb(_) | Target::Ssh { .. } => elsewhere(on, target, placed, *is_run)?,
    };
    let runs = in_files(&files);
    if *extra {
        placed.named().filter(|path| path.ends_with(FOR_THE_TABLE)).for_each(|path| {
            let _ = std::fs::remove_file(path);
            // Stays if it has other files.
            let _ = path.parent().map(std::fs::remove_dir);
        });
    }
    Ok(Measured { status, runs })
}

/// Whether these words are those of a test that writes a record, and does not here.
fn is_without_record(words: &[String]) -> bool {
    let measures = words.first().is_some_and(|word| word == "throughput" || word == "latency");
    measures && !words.iter().any(|word| word == "--record" || word.starts_with("--record="))
}

/// The failure for a place that takes nothing.
fn unprepared(why: Unprepared) -> Failure {
    let status = if matches!(why, Unprepared::NotMade(..)) { exit::INTERNAL } else { exit::USAGE };
    Failure::new(status, why)
}

/// Time for a copy of this program that was asked to stop.
const GRACE: Duration = Duration::from_secs(28);

/// Runs a copy of this program, whose output is this one's. It ends with this one, however that ends.
fn copy(words: &[String]) -> Result<u8, Failure> {
    sys::stop_signal::catch().or_exit(exit::INTERNAL)?;
    let program = std::env::current_exe().or_exit(exit::INTERNAL)?;
    let mut command = Command::new(program);
    sys::child::die_with_parent(command.args(words));
    let mut child = command.spawn().or_exit(exit::INTERNAL)?;
    let mut asked = false;
    let status = loop {
        if let Some(status) = child.try_wait().or_exit(exit::INTERNAL)? {
            break status;
        }
        // A terminal signals both, and two at once are one request.
        if !asked && sys::stop_signal::received().is_some() {
            asked = true;
            sys::child::ask_to_end(&mut child).or_exit(exit::INTERNAL)?;
        }
        if sys::stop_signal::since().is_some_and(|since| since >= GRACE) {
            complain(format_args!("it did not end within {} s, and was killed", GRACE.as_secs()));
            child.kill().or_exit(exit::INTERNAL)?;
            break child.wait().or_exit(exit::INTERNAL)?;
        }
        std::thread::sleep(Duration::from_millis(20));
    };
    Ok(status.code().and_then(|code| u8::try_from(code).ok()).unwrap_or(exit::INTERNAL))
}

/// Runs the command on this machine.
fn at_home(placed: &Placed, options: &[String]) -> Result<(u8, Vec<PathBuf>), Failure> {
    let status = copy(&[&placed.words, options].concat())?;
    let mut files = Vec::new();
    placed.named().for_each(|path| collect(path, &mut files));
    Ok((status, files))
}

/// Runs the command in a guest.
fn in_a_guest(
    here: &Here,
    target: &Target,
    placed: &Placed,
    kernel: Option<&str>,
) -> Result<(u8, Vec<PathBuf>), Failure> {
    let program = std::env::current_exe().or_exit(exit::INTERNAL)?;
    let given = kernel.iter().map(|kernel| (*kernel).to_owned()).collect();
    let options = Options {
        kernel: Choice { given, ..Choice::default() },
        env: passed_on(),
        names: here.names.clone(),
        ..Options::new(program, placed.words.clone())
    };
    let mut places = Places::new(placed, target.label());
    let mut line = StatusLine::default();
    let outcome = vm::run(
        &options,
        &mut vm::Sinks {
            stdout: &mut terminal::passed_on(),
            stderr: &mut terminal::passed_on_error(),
            place: Some(&mut |name| places.place(name)),
            progress: &mut |text| line.show(text),
        },
    );
    line.show("");
    places.end();
    match outcome {
        Ok(outcome) => {
            tell(target, &outcome.files);
            let status = outcome.status.exit_code().max(refused(&outcome.refused));
            Ok((status, outcome.files))
        }
        // A reader that closed the pipe, as `head` does, is no error.
        Err(error) if error.is_reader_gone() => Ok((exit::FINE, Vec::new())),
        Err(error) => Err(error.into()),
    }
}

/// Runs the command on another machine.
fn elsewhere(on: &On, target: &Target, placed: &Placed, is_run: bool) -> Result<(u8, Vec<PathBuf>), Failure> {
    on.binary.as_deref().map_or(Ok(()), input::whole)?;
    let own = std::env::current_exe().or_exit(exit::INTERNAL)?;
    let programs = Programs { own, named: on.binary.clone(), data: data_folder() };
    let mut words = placed.words.clone();
    if is_run {
        words.push("--progress".to_owned());
    }
    let mut variables: Vec<(String, String)> = passed_on().into_iter().collect();
    variables.push((host::ON_VARIABLE.to_owned(), target.to_string()));
    let announces = words.first().is_some_and(|word| word == "watch");
    let job = Job { words, variables, folders: placed.folders.clone(), announces };
    // Two commands would mix their files.
    let folder = placed.named().next().filter(|_| is_run);
    let lock = FolderLock::of(folder, console::tell)?;
    let mut desk = Desk::new(Places::new(placed, target.label()));
    let outcome = remote::run(target, &job, &programs, on.reconnect, &mut desk);
    let unwritten = desk.end();
    drop(lock);
    // If it stayed empty, it is of no use.
    let _ = folder.map(std::fs::remove_dir);
    if let Some(error) = unwritten {
        let why = sys::errno::describe(&error);
        return Err(Failure::new(
            exit::INTERNAL,
            format_args!("could not write all of the result to standard output: {why}"),
        ));
    }
    let outcome = outcome.map_err(|error| Failure::new(error.exit_code(), error))?;
    tell(target, &outcome.files);
    let mut status = outcome.status;
    if !outcome.refused.is_empty() {
        status = status.max(exit::UNABLE);
    }
    if let Some(full) = outcome.full {
        complain(format_args!("no space left on {target} in {full}: what came back may be a part"));
        status = status.max(exit::UNABLE);
    }
    Ok((status, outcome.files))
}

/// Tells where the files are that came from a machine.
fn tell(target: &Target, files: &[PathBuf]) {
    let mut told = files.iter().filter(|path| !path.ends_with(FOR_THE_TABLE));
    if let Some(first) = told.next() {
        let first = first.display();
        let more = match told.count() {
            0 => String::new(),
            count => format!(" and {count} more"),
        };
        note(format_args!("from {target}: {first}{more}\n"));
    }
}

/// The user's folder for builds of this program for other machines.
fn data_folder() -> Option<PathBuf> {
    let named = |name: &str| std::env::var_os(name).filter(|value| !value.is_empty()).map(PathBuf::from);
    let data = named("XDG_DATA_HOME").or_else(|| Some(named("HOME")?.join(".local/share")));
    data.map(|folder| folder.join(NAME))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_record_is_asked_for_where_there_would_be_none() {
        let asks = |line: &str| is_without_record(&line.split(' ').map(str::to_owned).collect::<Vec<_>>());
        assert!(asks("throughput binder") && asks("latency hwbinder -i 5"));
        assert!(
            !asks("throughput binder --record=x") && !asks("latency binder --record x") && !asks("chaos")
        );
    }
}
