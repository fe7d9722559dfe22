//! The option `--html`: reads a trace a second time and writes a page with pictures.
//! Not here: the pictures (`trace::picture`), the first reading (`analyze`).

use std::path::{Path, PathBuf};

use clap::Args;
use store::input::is_same_file;
use store::traces::scenes;
use trace::picture::page;
use trace::verdict::Analysis;

use crate::cli::{Failure, OrExit, exit};

#[derive(Clone, Debug, Args)]
pub(super) struct DrawArgs {
    /// Also write a page that shows the slow calls on a time line: one file without scripts or network access
    #[arg(long, value_name = "OUT")]
    pub(super) html: Option<PathBuf>,

    /// Largest number of calls with a picture, slowest first
    #[arg(long, value_name = "N", default_value_t = 20, value_parser = clap::value_parser!(u32).range(0..=1000), requires = "html")]
    pictures: u32,
}

impl DrawArgs {
    /// Checks that this trace can be drawn into that file, before anything is read.
    pub(super) fn check(&self, trace: &Path) -> Result<(), Failure> {
        let Some(html) = &self.html else { return Ok(()) };
        let why = if trace.metadata().is_ok_and(|file| !file.is_file()) {
            "is no file, and a trace that is drawn is read twice; copy it into one"
        } else if is_same_file(trace, html) {
            "is the trace itself; give another file to --html"
        } else {
            return Ok(());
        };
        Err(Failure::new(exit::USAGE, format_args!("{}: {why}", trace.display())))
    }

    /// Reads the trace again and writes the page, if requested.
    pub(super) fn draw(&self, trace: &Path, analysis: &Analysis) -> Result<(), Failure> {
        let Some(html) = &self.html else { return Ok(()) };
        let text = self.text(trace, analysis).map_err(|why| format!("{}: {why}", trace.display()));
        sys::draft::write(html, text.or_exit(exit::USAGE)?)
            .map_err(|error| {
                format!("{}: could not be written: {}", html.display(), sys::errno::describe(&error))
            })
            .or_exit(exit::INTERNAL)
    }

    fn text(&self, trace: &Path, analysis: &Analysis) -> Result<String, Box<dyn std::error::Error>> {
        let (busiest, slow) = scenes(trace, analysis, self.pictures as usize)?;
        let name = trace.file_name().unwrap_or(trace.as_os_str()).to_string_lossy();
        Ok(page(&name, analysis, (busiest.as_ref(), &slow))?)
    }
}
