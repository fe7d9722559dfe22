//! A driver that programs can be run on, in this process's machine; guests implement the same.
//! Not here: one program's steps (`stage`).

use std::io::{self, Write};
use std::time::Duration;

use backend::AnyContext;
use host::klog::Watch;

use crate::program::Program;
use crate::stage::Stage;
use crate::transcript::{self, Transcript};

/// Time for the kernel to report what a program has done.
const REPORT: Duration = Duration::from_millis(2);

/// A driver with its name.
pub trait Runner {
    /// Its name in reports.
    fn name(&self) -> &str;

    /// Whether each run boots a guest first.
    fn boots(&self) -> bool {
        false
    }

    /// Runs programs in order. A program after which the driver cannot go on is in the result, and its reason.
    ///
    /// # Errors
    /// Why no program can be run at all.
    fn run(&mut self, programs: &[Program]) -> Result<Vec<Transcript>, String>;
}

/// A driver of this machine.
pub struct Local {
    name: String,
    stage: Stage,
    log: Option<Watch>,
}

impl Local {
    /// A driver by a context that nobody else uses.
    ///
    /// # Errors
    /// The context cannot be opened.
    pub fn new(name: &str, context: AnyContext) -> Result<Self, String> {
        // Without the log, what the kernel reports does not count; the command line says so.
        let log = context.device().and_then(|_| Watch::begin().ok());
        Ok(Self { name: name.to_owned(), stage: Stage::new(context)?, log })
    }

    /// Whether what the kernel reports of itself counts.
    #[must_use]
    pub fn reads_log(&self) -> bool {
        self.log.is_some()
    }

    fn one(&mut self, program: &Program) -> Result<Transcript, String> {
        let mut transcript = self.stage.run(program)?;
        if let Some(log) = &mut self.log {
            std::thread::sleep(REPORT);
            let alarms = log.alarms().unwrap_or_default();
            transcript.kernel = alarms.into_iter().map(|message| message.text).collect();
        }
        Ok(transcript)
    }
}

impl Runner for Local {
    fn name(&self) -> &str {
        &self.name
    }

    fn run(&mut self, programs: &[Program]) -> Result<Vec<Transcript>, String> {
        let one = |program| self.one(program).map_err(|why| format!("{why}, after\n{program}"));
        programs.iter().map(one).collect()
    }
}

/// Runs programs in a guest, and writes each transcript as soon as it is there.
///
/// # Errors
/// The output is closed; the driver can run no more programs.
pub fn serve(local: &mut Local, programs: &[Program], out: &mut dyn Write) -> io::Result<()> {
    for program in programs {
        transcript::begin(out)?;
        let transcript = local.one(program).map_err(io::Error::other)?;
        transcript::end(out, &transcript)?;
    }
    Ok(())
}

/// Line between the programs of a file.
const BETWEEN: &str = "---";

/// Text of several programs.
#[must_use]
pub fn programs_text(programs: &[Program]) -> String {
    programs.iter().map(|program| format!("{program}{BETWEEN}\n")).collect()
}

/// Reads programs from a text.
///
/// # Errors
/// The program and the line that is none.
pub fn parse_programs(text: &str) -> Result<Vec<Program>, String> {
    let lines: Vec<&str> = text.lines().collect();
    let mut parts: Vec<String> = lines.split(|line| *line == BETWEEN).map(|part| part.join("\n")).collect();
    parts.pop_if(|part| part.trim().is_empty());
    let parsed = parts.iter().enumerate();
    parsed.map(|(at, part)| part.parse().map_err(|why| format!("program {at}, {why}"))).collect()
}
