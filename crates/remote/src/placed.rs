//! Files that a command line names: what they are called where the command runs, and their places here.
//! Not here: whether a name may come back (crate `intake`), the machines (`target`).

use std::path::{Path, PathBuf};

use intake::{Name, Place};

/// Options of this program that name a file or folder to write.
const WRITES: [&str; 7] = ["--record", "--out", "--benchmark_out", "--output", "-o", "--html", "--save"];

/// Names of files where the command runs.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Naming {
    /// Same path as here.
    Here,
    /// Below its working folder, by the path as typed where that is below this one.
    Below,
    /// Directly in its working folder.
    Flat,
}

/// A command line for a machine, and where what it writes belongs.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Placed {
    /// Its words, with the names that files have there.
    pub words: Vec<String>,
    /// Folders that it expects in its working folder.
    pub folders: Vec<String>,
    /// Name of each file or folder there and here.
    places: Vec<(String, PathBuf)>,
}

impl Placed {
    /// The place where the command line wants a file that has this name there; none if it names neither the file nor a folder that the
    /// file is in.
    pub fn place(&self, name: &Name) -> Option<Place> {
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
    pub fn named(&self) -> impl Iterator<Item = &Path> {
        self.places.iter().map(|(_, here)| here.as_path())
    }
}

/// The command line for a machine. With a label, what it writes gets into a folder of that name, next to what was typed.
///
/// # Errors
/// A name that denotes no file.
pub fn placed(words: &[String], naming: Naming, label: Option<&str>) -> Result<Placed, String> {
    let mut placed = Placed::default();
    // Behind the dashes is a command that may be any; of this program's the same options are known.
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
}
