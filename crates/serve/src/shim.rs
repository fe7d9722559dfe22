//! An unmodified program on the embedded driver.
//! Not here: what the program's calls become (crates `preload` and `supervise`), what kind of program it is (`supervise::program`).

use std::ffi::{OsStr, OsString};
use std::io;
use std::os::unix::ffi::OsStrExt;
use std::os::unix::process::CommandExt;
use std::path::{Path, PathBuf};
use std::process::Command;

use backend::shim::{Paths, RULES_VARIABLE};
use console::{CommandResult, Failure, OrExit, exit, note, of_process};
use embedded::{Inherit, Settings};
use supervise::SuperviseError;
use supervise::program::{self, Program};

/// How a program's calls reach the embedded driver.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Way {
    /// A library in the program takes the place of the C library's functions.
    Preload,
    /// Another process answers its system calls.
    Supervise,
}

/// File name of the library.
const LIBRARY: &str = "libbinderperf.so";

/// A program that is to run, and how.
#[derive(Clone, Debug)]
pub struct Job {
    /// The program and its arguments.
    pub program: Vec<OsString>,
    /// Priorities that a callee inherits.
    pub inherit: Inherit,
    /// The directory that the programs share.
    pub context_dir: Option<PathBuf>,
    /// Rules that make paths devices, as [`device_rule`] takes them.
    pub device_paths: Vec<String>,
    /// The library to preload.
    pub library: Option<PathBuf>,
    /// Whether another process answers its calls in any case.
    pub supervise: bool,
}

/// Runs the program: preloaded in this process's place, else as its child.
///
/// # Errors
/// It cannot be run so.
pub fn run(job: &Job) -> CommandResult {
    let [name, arguments @ ..] = job.program.as_slice() else {
        return Err(Failure::new(exit::USAGE, "name a program after --"));
    };
    let path = program::find(name).or_exit(exit::USAGE)?;
    let way = Program::of(&path).and_then(|program| way(&program, job.supervise));
    let way = way.map_err(|why| Failure::new(exit::UNABLE, format_args!("{}: {why}", path.display())))?;
    let settings = Settings { inherit: job.inherit, ..Settings::default() };
    let mut command = Command::new(&path);
    command.arg0(name).args(arguments);
    // For this program itself, too: a service manager under it manages that context.
    command.env(
        backend::shim::VARIABLE,
        backend::shim::address(job.context_dir.as_deref(), settings).or_exit(exit::UNABLE)?,
    );
    let rules = job.device_paths.join(":");
    let library = match way {
        Way::Preload => library(job.library.as_deref()).or_exit(exit::UNABLE)?,
        Way::Supervise => return supervise(command, job.context_dir.clone(), settings, rules),
    };
    command.env(RULES_VARIABLE, rules);
    if std::env::var_os(BROKER).is_none_or(|program| program.is_empty()) {
        let own = std::env::current_exe()
            .map_err(|error| Failure::of_file(exit::UNABLE, "find", Path::new("/proc/self/exe"), &error))?;
        command.env(BROKER, own);
    }
    command.env(PRELOAD, preloaded(&library, std::env::var_os(PRELOAD)).or_exit(exit::UNABLE)?);
    Err(Failure::of_file(exit::UNABLE, "run", &path, &command.exec()))
}

/// Checks a rule that makes a path a device, as `/dev/my-binder=binder`.
///
/// # Errors
/// It is no such rule.
pub fn device_rule(text: &str) -> Result<String, String> {
    match text.contains(':') {
        true => Err("a rule has no colon".to_owned()),
        false => Paths::new(Path::new("/"), text).map(|_| text.to_owned()),
    }
}

/// Variable with the program that is the broker.
const BROKER: &str = "BINDERPERF_BROKER";
/// Variable of the dynamic loader with libraries to preload.
const PRELOAD: &str = "LD_PRELOAD";

/// The way for a program.
fn way(program: &Program, supervise: bool) -> Result<Way, String> {
    match program {
        Program::Dynamic if !supervise => Ok(Way::Preload),
        Program::Dynamic | Program::Static => Ok(Way::Supervise),
        Program::Sanitized if supervise => Ok(Way::Supervise),
        Program::Sanitized => Err("it is built with AddressSanitizer, whose library must be loaded before all others, so \
             nothing can be preloaded into it; run it with shim --supervise"
            .to_owned()),
        Program::Privileged => {
            Err("it gets rights from its file (setuid, setgid or capabilities), so neither the dynamic loader nor a \
             supervisor may touch it; run it as a user who has them"
                .to_owned())
        }
        Program::Foreign => Err("it is for another machine".to_owned()),
    }
}

/// Runs the program under supervision; returns its status.
fn supervise(
    command: Command,
    directory: Option<PathBuf>,
    settings: Settings,
    rules: String,
) -> CommandResult {
    // The terminal sends SIGINT to the program as well; SIGTERM is passed on.
    let _ = sys::stop_signal::catch();
    note(
        "binderperf: each call to a device is answered by another process, which takes tens of us: no time measured \
         here says anything about binder.\n",
    );
    let report = |line: &str| note(format_args!("binderperf: {line}\n"));
    let options = supervise::Options { settings, rules, ..supervise::Options::new(directory, report) };
    match supervise::run(command, options) {
        Ok(status) => Ok(of_process(status)),
        Err(error @ SuperviseError::Unable(_)) => Err(Failure::new(exit::UNABLE, error)),
        Err(error @ SuperviseError::Program { .. }) => Err(Failure::new(exit::USAGE, error)),
        Err(error) => Err(Failure::new(exit::INTERNAL, error)),
    }
}

/// The library's path, absolute because the program may change its directory.
fn library(asked_for: Option<&Path>) -> Result<PathBuf, String> {
    if let Some(path) = asked_for {
        return absolute(path).map_err(|error| {
            format!("cannot open the library {}: {}", path.display(), sys::errno::describe(&error))
        });
    }
    let own = std::env::current_exe().unwrap_or_default();
    let beside = own.parent().unwrap_or(Path::new("/"));
    let places = [beside.join(LIBRARY), beside.join("../lib/binderperf").join(LIBRARY)];
    places.iter().find_map(|place| absolute(place).ok()).ok_or_else(|| {
        format!("no {LIBRARY} beside {} or in ../lib/binderperf; name it with --library", own.display())
    })
}

fn absolute(path: &Path) -> io::Result<PathBuf> {
    let path = path.canonicalize()?;
    match path.is_file() {
        true => Ok(path),
        false => Err(io::ErrorKind::InvalidInput.into()),
    }
}

/// The list of libraries with this one in front.
fn preloaded(library: &Path, others: Option<OsString>) -> Result<OsString, String> {
    let own = library.as_os_str();
    // The loader splits its list there.
    if own.as_bytes().iter().any(|byte| matches!(byte, b' ' | b':')) {
        return Err(format!(
            "{LIBRARY} cannot be preloaded from a path with a space or a colon: {}",
            library.display()
        ));
    }
    let mut list = own.to_owned();
    if let Some(others) = others.filter(|others| !others.is_empty()) {
        let known =
            others.as_bytes().split(|byte| matches!(byte, b' ' | b':')).any(|part| part == own.as_bytes());
        if known {
            return Ok(others);
        }
        list.push(OsStr::new(":"));
        list.push(others);
    }
    Ok(list)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn other_libraries_are_kept() {
        let list = |others: Option<&str>| preloaded(Path::new("/l.so"), others.map(OsString::from));
        assert_eq!(list(None).expect("alone"), "/l.so");
        assert_eq!(list(Some("")).expect("alone"), "/l.so");
        assert_eq!(list(Some("/a.so /b.so")).expect("in front"), "/l.so:/a.so /b.so");
        assert_eq!(list(Some("/a.so:/l.so")).expect("there already"), "/a.so:/l.so");
        preloaded(Path::new("/a b/l.so"), None).expect_err("would be two paths");
    }

    #[test]
    fn the_way_is_that_which_serves_the_program() {
        assert_eq!(way(&Program::Dynamic, false), Ok(Way::Preload));
        assert_eq!(way(&Program::Dynamic, true), Ok(Way::Supervise));
        assert_eq!(way(&Program::Static, false), Ok(Way::Supervise));
        assert_eq!(way(&Program::Sanitized, true), Ok(Way::Supervise));
        assert!(way(&Program::Sanitized, false).expect_err("refused").contains("shim --supervise"));
        for (program, word) in
            [(Program::Privileged, "rights from its file"), (Program::Foreign, "another machine")]
        {
            for supervise in [false, true] {
                let why = way(&program, supervise).expect_err("refused");
                assert!(why.contains(word), "{why}");
            }
        }
    }
}
