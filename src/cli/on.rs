//! `--on TARGET`: the same command on other machines, one after another, and a table across them.
//! Not here: reaching a machine (`remote`), the words (`words`), the table (`record::render::targets`).

mod words;

use std::collections::BTreeSet;
use std::io::{self, Write};
use std::path::{Path, PathBuf};
use std::process::Command;
use std::time::{Duration, Instant};

use record::Run;
use record::render::targets::{Column, targets};
use remote::{Job, Programs, Sinks, Target};

use super::folder::FolderLock;
use super::progress::{Relay, StatusLine};
use super::records::is_first;
use super::vm::passed_on;
use super::{CommandResult, Failure, OrExit, complain, exit, note, say, status_of, tree};
pub(super) use words::with_flags;
use words::{Naming, On, Placed, placed, taken};

/// Variable that tells a copy of this program that it runs for another machine.
pub(crate) const VARIABLE: &str = host::ON_VARIABLE;

/// The record of a test that was not asked for one, for the table; the numbers of several machines do not meet.
const FOR_THE_TABLE: &str = "binderperf-on.json";

/// The words without those about other machines; none if there are none.
///
/// # Errors
/// See [`taken`].
pub(super) fn without(words: &[String]) -> Result<Option<Vec<String>>, String> {
    Ok(taken(words)?.map(|on| on.words))
}

/// Runs a command whose words say `--on`; none if they do not.
pub(super) fn meant(words: &[String]) -> Option<CommandResult> {
    let on = match taken(words) {
        Ok(on) => on?,
        Err(why) => return Some(Err(Failure::new(exit::USAGE, why))),
    };
    let end = on.words.iter().position(|word| word == "--").unwrap_or(on.words.len());
    let asks = on.words[..end].iter().any(|word| word == "--help" || word == "-h");
    if asks || on.targets == [Target::Local] {
        return Some(Ok(tree::run(&on.words)));
    }
    Some(run(&on))
}

fn run(on: &On) -> CommandResult {
    tree::understood(&on.words).or_exit(exit::USAGE)?;
    let [target] = on.targets.as_slice() else { return run_on_each(on) };
    Ok(measured(on, target, &Prepared::new(on, target, None)?)?.status)
}

/// Runs it on one machine after another, and prints the table.
fn run_on_each(on: &On) -> CommandResult {
    let labels = labels(&on.targets);
    let prepared =
        on.targets.iter().zip(&labels).map(|(target, label)| Prepared::new(on, target, Some(label)));
    let prepared = prepared.collect::<Result<Vec<_>, Failure>>()?;
    let (mut columns, mut status) = (Vec::new(), exit::FINE);
    for (target, prepared) in on.targets.iter().zip(&prepared) {
        note(format_args!("== {target}\n"));
        let begun = Instant::now();
        let Measured { status: ended, runs } = measured(on, target, prepared)
            .unwrap_or_else(|failure| Measured { status: status_of(Err(failure)), runs: Vec::new() });
        status = if status == exit::FINE { ended } else { status };
        let ended = format!("status {ended}, {} s", begun.elapsed().as_secs());
        columns.push(Column { target: headed(target), ended, runs });
        if sys::stop_signal::received().is_some() {
            break;
        }
    }
    say(&format!("\n{}", targets(&columns)))?;
    Ok(status)
}

/// The target as the head of a column: of a kernel's path its last part.
fn headed(target: &Target) -> String {
    match target {
        Target::Vm(Some(kernel)) => format!("vm:{}", kernel.rsplit('/').next().unwrap_or(kernel)),
        other => other.to_string(),
    }
}

/// A name for each target, as part of a path; the same one twice gets a number.
fn labels(targets: &[Target]) -> Vec<String> {
    let mut labels: Vec<String> = Vec::new();
    for target in targets {
        let label = target.label();
        let numbered = (2..=targets.len()).map(|number| format!("{label}.{number}"));
        let free = [label.clone()].into_iter().chain(numbered).find(|label| !labels.contains(label));
        labels.push(free.unwrap_or(label));
    }
    labels
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
        prepare(&placed, label.is_some())?;
        Ok(Self { placed, is_run, extra })
    }
}

/// Runs the command on one machine.
fn measured(on: &On, target: &Target, prepared: &Prepared) -> Result<Measured, Failure> {
    let Prepared { placed, is_run, extra } = prepared;
    let (status, files) = match target {
        Target::Local => here(placed, &[])?,
        Target::Vm(kernel) if *is_run => {
            let option = kernel.as_ref().map_or("--vm".to_owned(), |kernel| format!("--vm={kernel}"));
            here(placed, &[option])?
        }
        Target::Vm(kernel) => in_a_guest(placed, kernel.as_deref())?,
        Target::Adb(_) | Target::Ssh { .. } => elsewhere(on, target, placed, *is_run)?,
    };
    let runs = records(&files);
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

/// Refuses what would be refused at the end, after minutes of measuring; makes the folders of labels.
fn prepare(placed: &Placed, is_labelled: bool) -> Result<(), Failure> {
    for path in placed.named() {
        let parent = path.parent().filter(|parent| !parent.as_os_str().is_empty()).unwrap_or(Path::new("."));
        if is_labelled {
            std::fs::create_dir_all(parent)
                .map_err(|error| Failure::of_file(exit::INTERNAL, "make", parent, &error))?;
        }
        if !parent.is_dir() {
            return Err(Failure::new(exit::USAGE, format_args!("there is no folder {}", parent.display())));
        }
        if path.is_dir() && path.read_dir().is_ok_and(|mut entries| entries.next().is_some()) {
            let why = "is not empty, and results would mix: give another folder";
            return Err(Failure::new(exit::USAGE, format_args!("{} {why}", path.display())));
        }
    }
    Ok(())
}

/// Runs a copy of this program, whose output is this one's.
fn copy(words: &[String]) -> Result<u8, Failure> {
    sys::stop_signal::catch().or_exit(exit::INTERNAL)?;
    let program = std::env::current_exe().or_exit(exit::INTERNAL)?;
    let mut child = Command::new(program).args(words).spawn().or_exit(exit::INTERNAL)?;
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
        std::thread::sleep(Duration::from_millis(20));
    };
    Ok(status.code().and_then(|code| u8::try_from(code).ok()).unwrap_or(exit::INTERNAL))
}

/// Runs the command on this machine.
fn here(placed: &Placed, options: &[String]) -> Result<(u8, Vec<PathBuf>), Failure> {
    let status = copy(&[&placed.words, options].concat())?;
    let mut files = Vec::new();
    placed.named().for_each(|path| collect(path, &mut files));
    Ok((status, files))
}

/// Runs the command in a guest, and puts its files where they belong.
fn in_a_guest(placed: &Placed, kernel: Option<&str>) -> Result<(u8, Vec<PathBuf>), Failure> {
    let stage = std::env::temp_dir().join(format!("binderperf-on-{}", std::process::id()));
    let mut words = vec!["vm".to_owned()];
    words.extend(kernel.iter().flat_map(|kernel| ["--kernel".to_owned(), (*kernel).to_owned()]));
    words.extend(["--out".to_owned(), stage.display().to_string(), "--".to_owned()]);
    words.extend(placed.words.iter().cloned());
    let status = copy(&words);
    let mut files = Vec::new();
    collect(&stage, &mut files);
    let moved = files.iter().map(|file| {
        let path = file.strip_prefix(&stage).unwrap_or(file).to_string_lossy();
        let place = placed.place(&path);
        let parent = place.parent().map_or(Ok(()), std::fs::create_dir_all);
        // Another file system than that of temporary files, perhaps.
        let copied = parent.and_then(|()| std::fs::copy(file, &place));
        copied.map_err(|error| Failure::of_file(exit::INTERNAL, "write", &place, &error))?;
        Ok(place)
    });
    let moved = moved.collect::<Result<Vec<PathBuf>, Failure>>();
    let _ = std::fs::remove_dir_all(&stage);
    Ok((status?, moved?))
}

/// Every file of a folder, or the file itself.
fn collect(path: &Path, files: &mut Vec<PathBuf>) {
    match std::fs::read_dir(path) {
        Ok(entries) => {
            let mut below: Vec<PathBuf> = entries.flatten().map(|entry| entry.path()).collect();
            below.sort();
            below.iter().for_each(|path| collect(path, files));
        }
        Err(_) if path.is_file() => files.push(path.to_owned()),
        Err(_) => {}
    }
}

/// Runs the command on another machine.
fn elsewhere(on: &On, target: &Target, placed: &Placed, is_run: bool) -> Result<(u8, Vec<PathBuf>), Failure> {
    let own = std::env::current_exe().or_exit(exit::INTERNAL)?;
    let programs = Programs { own, named: on.binary.clone(), data: data_folder() };
    let mut words = placed.words.clone();
    if is_run {
        words.push("--progress".to_owned());
    }
    let mut variables: Vec<(String, String)> = passed_on().into_iter().collect();
    variables.push((VARIABLE.to_owned(), target.to_string()));
    let job = Job { words, variables, folders: placed.folders.clone() };
    // Two commands would mix their files.
    let folder = placed.named().next().filter(|_| is_run);
    let lock = FolderLock::of(folder)?;
    let mut desk = Desk {
        line: StatusLine::new(),
        relay: Relay::default(),
        placed,
        label: target.label(),
        written: BTreeSet::new(),
        aside: None,
        unwritten: None,
    };
    let outcome = remote::run(target, &job, &programs, on.reconnect, &mut desk);
    desk.end();
    drop(lock);
    // If it stayed empty, it is of no use.
    let _ = folder.map(std::fs::remove_dir);
    if let Some(error) = desk.unwritten {
        let why = sys::errno::describe(&error);
        return Err(Failure::new(
            exit::INTERNAL,
            format_args!("could not write all of the result to standard output: {why}"),
        ));
    }
    let outcome = outcome.map_err(|error| Failure::new(error.exit_code(), error))?;
    let mut told = outcome.files.iter().filter(|path| !path.ends_with(FOR_THE_TABLE));
    if let Some(first) = told.next() {
        let first = first.display();
        let more = match told.count() {
            0 => String::new(),
            count => format!(" and {count} more"),
        };
        note(format_args!("from {target}: {first}{more}\n"));
    }
    let mut status = outcome.status;
    if let Some(full) = outcome.full {
        complain(format_args!("no space left on {target} in {full}: what came back may be a part"));
        status = status.max(exit::UNABLE);
    }
    Ok((status, outcome.files))
}

/// The user's folder for builds of this program for other machines.
fn data_folder() -> Option<PathBuf> {
    let named = |name: &str| std::env::var_os(name).filter(|value| !value.is_empty()).map(PathBuf::from);
    let data = named("XDG_DATA_HOME").or_else(|| Some(named("HOME")?.join(".local/share")));
    data.map(|folder| folder.join(tree::NAME))
}

/// The records among these files.
fn records(files: &[PathBuf]) -> Vec<(String, Run)> {
    let is_json = |path: &&PathBuf| path.extension().is_some_and(|end| end == "json") && !is_first(path);
    let read = |path: &PathBuf| {
        let run = std::fs::File::open(path).ok().and_then(|file| Run::read(file).ok())?;
        Some((path.file_stem()?.to_string_lossy().into_owned(), run))
    };
    files.iter().filter(is_json).filter_map(read).collect()
}

/// This machine's side of a command elsewhere.
struct Desk<'p> {
    line: StatusLine,
    relay: Relay,
    placed: &'p Placed,
    /// The machine's name in paths.
    label: String,
    /// The files that came from there.
    written: BTreeSet<PathBuf>,
    /// The folder for files whose place another file has.
    aside: Option<PathBuf>,
    /// Why the standard output takes no more, if it is not that nobody reads it.
    unwritten: Option<io::Error>,
}

impl Desk<'_> {
    /// Clears the line of progress and passes on what is left of the standard error.
    fn end(&mut self) {
        self.line.show("");
        note(self.relay.rest());
    }
}

impl Sinks for Desk<'_> {
    fn stdout(&mut self, bytes: &[u8]) -> io::Result<()> {
        self.line.show("");
        let mut stdout = io::stdout().lock();
        stdout.write_all(bytes).and_then(|()| stdout.flush()).map_err(|error| {
            let kind = error.kind();
            if kind != io::ErrorKind::BrokenPipe {
                self.unwritten.get_or_insert(error);
            }
            kind.into()
        })
    }

    fn stderr(&mut self, bytes: &[u8]) {
        self.relay.pass(bytes, &mut self.line);
    }

    fn progress(&mut self, text: &str) {
        self.line.show(text);
    }

    fn note(&mut self, text: &str) {
        self.line.show("");
        complain(text);
    }

    fn place(&mut self, path: &str) -> PathBuf {
        let place = self.placed.place(path);
        // What the command line does not name replaces nothing of this machine's.
        if self.placed.has_named(path) || self.written.contains(&place) || !place.is_file() {
            self.written.insert(place.clone());
            return place;
        }
        let folder = |number: u32| PathBuf::from(format!("{}.{number}", self.label));
        let aside = self
            .aside
            .get_or_insert_with(|| (2..).map(folder).find(|path| !path.exists()).unwrap_or_default());
        aside.join(path)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_target_has_a_folder_of_its_own() {
        let targets = ["ssh:pi", "adb", "ssh:pi", "ssh:pi"].map(|word| word.parse().expect(word));
        assert_eq!(labels(&targets), ["ssh-pi", "adb", "ssh-pi.2", "ssh-pi.3"]);
        let alike = ["ssh:pi.2", "ssh:pi", "ssh:pi"].map(|word| word.parse().expect(word));
        assert_eq!(labels(&alike), ["ssh-pi.2", "ssh-pi", "ssh-pi.3"]);
    }

    #[test]
    fn a_record_is_asked_for_where_there_would_be_none() {
        let asks = |line: &str| is_without_record(&line.split(' ').map(str::to_owned).collect::<Vec<_>>());
        assert!(asks("throughput binder") && asks("latency hwbinder -i 5"));
        assert!(
            !asks("throughput binder --record=x") && !asks("latency binder --record x") && !asks("chaos")
        );
    }
}
