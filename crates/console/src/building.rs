//! Builds of kernels and drivers, with their progress on standard error.
//! Not here: building (`vm::build`).

use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};

use vm::build::{BuildError, Built, BuiltModule, News, Wanted, WantedModule, build, build_module};

use crate::failure::{Failure, exit};
use crate::progress::StatusLine;
use crate::terminal::{self, note};

/// Longest text of progress in characters: terminals have 80 columns or more.
const LONGEST: usize = 79;

/// Builds a kernel; says on standard error what it does.
///
/// # Errors
/// Those of [`build`].
pub fn built(wanted: &Wanted) -> Result<Built, BuildError> {
    telling(|tell| build(wanted, tell))
}

/// Finds or fetches Debian's source; says on standard error what it does.
///
/// # Errors
/// Those of [`vm::build::source`].
pub fn source(given: &str) -> Result<PathBuf, BuildError> {
    telling(|tell| vm::build::source(given, tell))
}

/// Shortest time between two lines of progress where there is no terminal.
const PACE: Duration = Duration::from_secs(60);

/// Does something that takes long, and says on standard error what it does.
fn telling<T>(work: impl FnOnce(&mut dyn FnMut(News<'_>)) -> T) -> T {
    let on_terminal = terminal::error_is_terminal();
    let mut line = StatusLine::default();
    let mut said = Instant::now();
    let mut tell = |news: News<'_>| match news {
        News::Begins(name) if !on_terminal => note(format_args!("building {name}\n")),
        News::Begins(name) => line.show(&format!("building {name}")),
        News::Now(text) if !on_terminal => {
            if said.elapsed() >= PACE {
                note(format_args!("{text}\n"));
                said = Instant::now();
            }
        }
        // A line that wraps could not be cleared.
        News::Now(text) => line.show(&text.chars().take(LONGEST).collect::<String>()),
        News::Note(text) => {
            line.show("");
            note(format_args!("{text}\n"));
        }
    };
    let made = work(&mut tell);
    line.show("");
    made
}

/// Builds the driver as a module; says on standard error what it does.
///
/// # Errors
/// Those of [`build_module`].
pub fn built_module(wanted: &WantedModule) -> Result<BuiltModule, BuildError> {
    telling(|tell| build_module(wanted, tell))
}

/// Copies what was built, whole or not at all.
///
/// # Errors
/// It cannot be written.
pub fn copied(image: &Path, out: &Path) -> Result<(), Failure> {
    let copied = sys::draft::copy(image, out).map(drop);
    copied.map_err(|error| Failure::of_file(exit::INTERNAL, "write", out, &error))
}
