//! The words behind `--on`: which machines, and the rest of the command line with its files where they are written there.
//! Not here: running the command (`on`).

use std::path::{Path, PathBuf};
use std::time::Duration;

use clap::{Arg, ArgAction, Command, ValueHint};
use intake::{Name, Place};
use record::verdict::ON_COMMANDS;
use remote::Target;

use super::A_YEAR_S;

/// Options of these commands that name a file or folder to write.
const WRITES: [&str; 7] = ["--record", "--out", "--benchmark_out", "--output", "-o", "--html", "--save"];

/// Options about this machine, which mean nothing elsewhere.
const HERE: [&str; 4] = ["--vm", "--kernel", "--from", "--collect"];

/// How long a machine is waited for that was lost, by default.
const RECONNECT_S: u64 = 600;

/// A command for other machines.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct On {
    pub(super) targets: Vec<Target>,
    pub(super) binary: Option<PathBuf>,
    pub(super) reconnect: Duration,
    /// The command without these options.
    pub(super) words: Vec<String>,
}

/// Whether the command with this path, as `throughput binder`, takes `--on`.
fn takes_on(path: &str) -> bool {
    ON_COMMANDS
        .iter()
        .any(|name| path == *name || path.strip_prefix(*name).is_some_and(|rest| rest.starts_with(' ')))
}

/// Adds the options to the definition of a command that takes them.
pub(super) fn with_flags(command: Command, path: &str) -> Command {
    if !takes_on(path) || command.has_subcommands() {
        return command;
    }
    let arg = |name: &'static str, value: &'static str, help: &'static str| {
        Arg::new(name).long(name).value_name(value).help(help).help_heading("Another machine")
    };
    command
        .arg(
            arg("on", "TARGET", "Run it on adb[:SERIAL], ssh:[USER@]HOST[:PORT], vm[:KERNEL] or local, and bring back its files; may be repeated")
                .action(ArgAction::Append),
        )
        .arg(
            arg("binary", "FILE", "This program for that machine [default: binderperf-TARGET beside this one, or in $XDG_DATA_HOME/binderperf]")
                .value_hint(ValueHint::FilePath),
        )
        .arg(arg("reconnect", "S", "How long to wait for a machine whose connection was lost, in seconds [default: 600]"))
}

/// Takes the options out of a command line; none if it has none of them.
///
/// # Errors
/// A word that is no machine, an option without its value, or one that cannot go with them.
pub(super) fn taken(words: &[String]) -> Result<Option<On>, String> {
    if !takes_on(&words.iter().take(2).cloned().collect::<Vec<_>>().join(" ")) {
        return Ok(None);
    }
    let (mut targets, mut binary, mut reconnect) = (Vec::new(), None, None);
    let mut rest = Vec::new();
    let end = words.iter().position(|word| word == "--").unwrap_or(words.len());
    let mut own = words[..end].iter();
    while let Some(word) = own.next() {
        let (name, value) =
            word.split_once('=').map_or((word.as_str(), None), |(name, value)| (name, Some(value)));
        if !["--on", "--binary", "--reconnect"].contains(&name) {
            rest.push(word.clone());
            continue;
        }
        let value = value.or_else(|| own.next().map(String::as_str)).filter(|value| !value.is_empty());
        let value = value.ok_or_else(|| format!("{name} needs a value"))?;
        match name {
            "--on" => targets.push(value.parse().map_err(|why| format!("--on {value}: {why}"))?),
            "--binary" => binary = Some(PathBuf::from(value)),
            _ => {
                let seconds = value.parse().ok().filter(|seconds| *seconds <= A_YEAR_S);
                reconnect =
                    Some(seconds.ok_or_else(|| format!("--reconnect {value}: it is no number of seconds"))?);
            }
        }
    }
    if targets.is_empty() {
        let loose = binary.is_some() || reconnect.is_some();
        return if loose { Err("--binary and --reconnect go with --on".to_owned()) } else { Ok(None) };
    }
    let of_here = |word: &&String| HERE.contains(&word.split('=').next().unwrap_or_default());
    if let Some(word) = rest.iter().find(of_here) {
        return Err(format!("{word} cannot go with --on"));
    }
    rest.extend_from_slice(&words[end..]);
    let reconnect = Duration::from_secs(reconnect.unwrap_or(RECONNECT_S));
    Ok(Some(On { targets, binary, reconnect, words: rest }))
}

/// The words without those about other machines; none if there are none.
///
/// # Errors
/// See [`taken`].
pub(super) fn without(words: &[String]) -> Result<Option<Vec<String>>, String> {
    Ok(taken(words)?.map(|on| on.words))
}

/// How files are called where the command runs.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Naming {
    /// Same path as here.
    Here,
    /// Below its working folder, by the path as typed where that is below this one.
    Below,
    /// Directly in its working folder.
    Flat,
}

/// A command line for a machine, and where what it writes belongs.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(super) struct Placed {
    pub(super) words: Vec<String>,
    /// Folders that it expects in its working folder.
    pub(super) folders: Vec<String>,
    /// Name of each file or folder there and here.
    places: Vec<(String, PathBuf)>,
}

impl Placed {
    /// Where the command line wants a file that has this name there; none if it names neither the file nor a folder that the
    /// file is in.
    pub(super) fn place(&self, name: &Name) -> Option<Place> {
        self.places.iter().find_map(|(there, here)| {
            let rest = name.as_path().strip_prefix(there).ok()?;
            if !rest.as_os_str().is_empty() {
                return Some(Place { root: here.clone(), below: rest.to_owned() });
            }
            let root = here.parent().unwrap_or(Path::new("")).to_owned();
            Some(Place { root, below: here.file_name()?.into() })
        })
    }

    /// Files and folders that the command line names, as they are called here.
    pub(super) fn named(&self) -> impl Iterator<Item = &Path> {
        self.places.iter().map(|(_, here)| here.as_path())
    }
}

/// The command line for a machine. With a label, what it writes gets into a folder of that name, beside what was typed.
///
/// # Errors
/// A name that denotes no file.
pub(super) fn placed(words: &[String], naming: Naming, label: Option<&str>) -> Result<Placed, String> {
    let mut placed = Placed::default();
    // Behind the dashes stands a command that may be any; of this program's the same options are known.
    let end = words.iter().position(|word| word == "--").unwrap_or(words.len());
    let own = words.get(end + 1).is_none_or(|name| name == "binderperf");
    let mut at = 0;
    while let Some(word) = words.get(at) {
        at += 1;
        let known = at <= end || own;
        let (name, joined) =
            word.split_once('=').map_or((word.as_str(), None), |(name, path)| (name, Some(path)));
        // -oFILE
        let (name, joined) = match word.strip_prefix("-o").filter(|rest| !rest.is_empty()) {
            Some(rest) if known => ("-o", Some(rest)),
            _ => (name, joined),
        };
        if !known || !WRITES.contains(&name) {
            placed.words.push(word.clone());
            continue;
        }
        let (path, is_joined) = match (joined, words.get(at)) {
            (Some(path), _) => (path, true),
            (None, Some(path)) => {
                at += 1;
                (path.as_str(), false)
            }
            (None, None) => ("", false),
        };
        let there = placed.add(path, naming, label)?;
        match (is_joined, name) {
            (true, "-o") => placed.words.push(format!("-o{there}")),
            (true, _) => placed.words.push(format!("{name}={there}")),
            (false, _) => placed.words.extend([name.to_owned(), there]),
        }
    }
    Ok(placed)
}

impl Placed {
    /// Adds what is written to this path; returns its name there.
    fn add(&mut self, typed: &str, naming: Naming, label: Option<&str>) -> Result<String, String> {
        let path = Path::new(typed);
        let Some(name) = path.file_name() else { return Err(format!("{typed:?} names no file")) };
        let here = label.map_or(path.to_owned(), |label| path.with_file_name(label).join(name));
        let number = self.places.len();
        let name = plain(&name.to_string_lossy());
        let there = match naming {
            Naming::Here => here.display().to_string(),
            Naming::Below if Name::parse(typed).is_ok() => typed.to_owned(),
            Naming::Below => format!("away/{number}/{name}"),
            Naming::Flat => format!("{number}-{name}"),
        };
        if naming == Naming::Below
            && let Some((folder, _)) = there.rsplit_once('/')
        {
            self.folders.push(folder.to_owned());
        }
        self.places.push((there.clone(), here));
        Ok(there)
    }
}

/// A file's name as it may come back: see [`Name`].
fn plain(name: &str) -> String {
    let name: String = name.chars().map(|c| if units::visible::steers(c) { '_' } else { c }).collect();
    let name = name.trim_start_matches('.');
    if name.is_empty() { "file".to_owned() } else { name.to_owned() }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn words(line: &str) -> Vec<String> {
        line.split(' ').map(str::to_owned).collect()
    }

    fn on(line: &str) -> On {
        taken(&words(line)).unwrap_or_else(|why| panic!("{line}: {why}")).expect("some")
    }

    #[test]
    fn the_machines_are_taken_out_wherever_they_stand() {
        let found = on("throughput --on adb binder --record r.json --on=ssh:pi --binary b --reconnect 5");
        assert_eq!(found.targets, [Target::Adb(None), Target::Ssh { host: "pi".to_owned(), port: None }]);
        assert_eq!(found.words, words("throughput binder --record r.json"));
        assert_eq!((found.binary, found.reconnect), (Some(PathBuf::from("b")), Duration::from_secs(5)));
        let found = on("trace record --on local -- prog --on x");
        assert_eq!(found.words, words("trace record -- prog --on x"));
        for line in
            ["throughput binder", "compare --on adb", "trace info --on adb", "trace record -- x --on adb"]
        {
            assert_eq!(taken(&words(line)), Ok(None), "{line}");
        }
    }

    #[test]
    fn what_cannot_be_is_refused() {
        for (line, why) in [
            ("run --on", "needs a value"),
            ("run --on=", "needs a value"),
            ("run --on phone", "none of adb"),
            ("run --binary x", "go with --on"),
            ("run --on adb --vm=6.12", "--vm=6.12 cannot go"),
            ("doctor --on adb --from x", "--from cannot go"),
            ("run --on adb --reconnect soon", "number of seconds"),
        ] {
            let said = taken(&words(line)).expect_err(line);
            assert!(said.contains(why), "{line}: {said}");
        }
    }

    #[test]
    fn files_have_a_name_there_and_a_place_here() {
        let line = words("throughput binder --record=a/r.json --benchmark_out /x/b.json --max x=1");
        let there = placed(&line, Naming::Below, None).expect("names");
        assert_eq!(
            there.words,
            words("throughput binder --record=a/r.json --benchmark_out away/1/b.json --max x=1")
        );
        assert_eq!(there.folders, ["a", "away/1"]);
        let place = |placed: &Placed, name: &str| {
            let place = placed.place(&Name::parse(name).expect(name))?;
            Some(place.root.join(place.below))
        };
        let at = |path: &str| Some(PathBuf::from(path));
        assert_eq!(place(&there, "a/r.json"), at("a/r.json"));
        assert_eq!(place(&there, "away/1/b.json"), at("/x/b.json"));
        for unnamed in ["binderperf-run-1/x", "notes.txt", "a/r.jsonl", "b.json", "a"] {
            assert_eq!(place(&there, unnamed), None, "{unnamed}");
        }
        let there = placed(&line, Naming::Flat, Some("pi")).expect("names");
        assert_eq!(there.words[2..5], ["--record=0-r.json", "--benchmark_out", "1-b.json"]);
        assert_eq!(place(&there, "0-r.json"), at("a/pi/r.json"));
        assert_eq!(place(&there, "1-b.json"), at("/x/pi/b.json"));
        let here = placed(&words("run --out d"), Naming::Here, Some("local")).expect("names");
        assert_eq!(here.words, words("run --out local/d"));
        let there = placed(&words("run --out d"), Naming::Below, None).expect("names");
        let found = there.place(&Name::parse("d/x/y").expect("plain")).expect("named");
        assert_eq!(found, Place { root: "d".into(), below: "x/y".into() }, "no link is followed below it");
        // What the user hides has another name there: nothing hidden is taken.
        let hidden =
            placed(&words("throughput binder --record .h/.r.json"), Naming::Below, None).expect("names");
        assert_eq!(hidden.words[3], "away/0/r.json");
        assert_eq!(place(&hidden, "away/0/r.json"), at(".h/.r.json"));
        for bad in ["run --out ..", "run --out /", "run --out"] {
            assert!(placed(&words(bad), Naming::Below, None).is_err(), "{bad}");
        }
    }

    #[test]
    fn a_recorded_commands_files_are_known_if_it_is_this_program() {
        let line = words("trace record -oa.trace -- binderperf latency binder --record /r.json");
        let there = placed(&line, Naming::Below, None).expect("names");
        assert_eq!(
            there.words,
            words("trace record -oa.trace -- binderperf latency binder --record away/1/r.json")
        );
        let line = words("trace record -- gcc -o /x");
        assert_eq!(placed(&line, Naming::Below, None).expect("names").words, line);
    }

    #[test]
    fn every_command_that_takes_it_says_so() {
        for path in ["run", "throughput binder", "trace record", "state", "explain", "latency sweep"] {
            assert!(
                with_flags(Command::new("x"), path).get_arguments().any(|arg| arg.get_id() == "on"),
                "{path}"
            );
        }
        for path in ["compare", "trace", "trace info", "runs", "vm"] {
            assert!(with_flags(Command::new("x"), path).get_arguments().next().is_none(), "{path}");
        }
    }
}
