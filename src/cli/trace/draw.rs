//! Room: `--html`: the second reading of a trace, and its pictures into a file.
//! Not here: the pictures (`trace::picture`), the first reading (`analyze`).

use std::fs::File;
use std::path::{Path, PathBuf};

use clap::Args;
use trace::file::OpenError;
use trace::picture::{Scene, Watch, page};
use trace::verdict::Analysis;

use crate::cli::{complain, exit};

#[derive(Clone, Debug, Args)]
pub(super) struct DrawArgs {
    /// Also write a page that shows the slow calls on a time line: one file, readable without scripts or network
    #[arg(long, value_name = "OUT")]
    pub(super) html: Option<PathBuf>,

    /// The most calls that get a picture in it, the slowest first
    #[arg(long, value_name = "N", default_value_t = 20, value_parser = clap::value_parser!(u32).range(0..=1000), requires = "html")]
    pictures: u32,
}

impl DrawArgs {
    /// Whether this trace can be drawn into that file; to be asked before anything is read. The error is the exit
    /// status.
    pub(super) fn check(&self, trace: &Path) -> Result<(), u8> {
        let Some(html) = &self.html else { return Ok(()) };
        let why = if trace.metadata().is_ok_and(|file| !file.is_file()) {
            "is no file, and a trace that is drawn is read twice; copy it into one"
        } else if same_file(trace, html) {
            "is the trace itself; give another file to --html"
        } else {
            return Ok(());
        };
        complain(format_args!("{}: {why}", trace.display()));
        Err(exit::USAGE)
    }

    /// Reads the trace again and writes the page, if one was asked for; the result is the exit status.
    pub(super) fn draw(&self, trace: &Path, analysis: &Analysis) -> u8 {
        let Some(html) = &self.html else { return exit::FINE };
        let text = match self.text(trace, analysis) {
            Ok(text) => text,
            Err(why) => {
                complain(format_args!("{}: {why}", trace.display()));
                return exit::USAGE;
            }
        };
        if let Err(error) = std::fs::write(html, text) {
            complain(format_args!("{}: could not be written: {error}", html.display()));
            return exit::INTERNAL;
        }
        exit::FINE
    }

    fn text(&self, trace: &Path, analysis: &Analysis) -> Result<String, Box<dyn std::error::Error>> {
        let (busiest, slow) = scenes(trace, analysis, self.pictures as usize)?;
        let name = trace.file_name().unwrap_or(trace.as_os_str()).to_string_lossy();
        Ok(page(&name, analysis, (busiest.as_ref(), &slow))?)
    }
}

/// The second reading of a trace: what is seen of the most pairs at work, and of so many slow calls.
pub(in crate::cli) fn scenes(
    trace: &Path,
    analysis: &Analysis,
    most: usize,
) -> Result<(Option<Scene>, Vec<Scene>), OpenError> {
    let mut reader = trace::open(File::open(trace)?)?;
    let mut watch = Watch::new(analysis, most);
    while let Some(event) = reader.next() {
        watch.take(&event, reader.names());
    }
    Ok(watch.finish(reader.names()))
}

fn same_file(one: &Path, other: &Path) -> bool {
    match (one.canonicalize(), other.canonicalize()) {
        (Ok(one), Ok(other)) => one == other,
        _ => false,
    }
}
