//! A kernel's driver in guests: one boot for many programs, and a new one after a program that takes it down.
//! Not here: booting (crate `vm`), what a program gives (`fuzzer`).

use std::time::Duration;

use fuzzer::program::Program;
use fuzzer::runner::{Runner, programs_text};
use fuzzer::transcript::{self, Transcript};
use sys::private_folder::PrivateFolder;
use vm::{Added, Options, Sinks, TimeLimit, VmError};

use console::{exit, terminal};

/// Time limit of a guest, and what each program adds to it, in seconds.
const LIMIT_S: (u64, u64) = (120, 5);
/// Boots of one run that end early although no program ran.
const MOST_SLIPS: u32 = 3;
/// Folder of the programs in a guest.
const THERE: &str = "/programs";

/// A kernel's driver in guests.
#[derive(Debug)]
pub struct Guest {
    name: String,
    options: Options,
    folder: PrivateFolder,
}

impl Guest {
    /// Guests of `c`, `rust`, or a kernel that `vm --kernel` takes. `icount`: they count instructions, with this shift.
    ///
    /// # Errors
    /// No kernel with the Rust driver was built, or no folder can be made.
    pub fn new(name: &str, kernel: &str, icount: Option<u8>) -> Result<Self, String> {
        let binary = std::env::current_exe().map_err(|error| format!("finding this binary: {error}"))?;
        let command = ["fuzz", "--serve", THERE].map(str::to_owned).to_vec();
        let mut options = Options::new(binary, command);
        options.kernel.given = match kernel {
            "c" => Vec::new(),
            "rust" => vec![newest_rust()?],
            other => vec![other.to_owned()],
        };
        // Places of the driver that KCOV reports have the same address in each boot.
        options.append.push("nokaslr".to_owned());
        (options.icount, options.icount_shift) = (icount.is_some(), icount.unwrap_or_default());
        let folder = PrivateFolder::new("fuzz").map_err(|error| sys::errno::describe(&error))?;
        Ok(Self { name: name.to_owned(), options, folder })
    }

    /// Runs programs in one guest; its output goes to `out`. Returns the command's exit status.
    fn boot(&self, programs: &[Program], out: &mut Vec<u8>) -> Result<u8, String> {
        let file = self.folder.path().join("programs");
        sys::draft::write(&file, programs_text(programs)).map_err(|error| error.to_string())?;
        let seconds = LIMIT_S.0 + LIMIT_S.1 * programs.len() as u64;
        // Players that take turns need one CPU, and an emulated CPU wakes another one slowly.
        let is_scheduled = programs.iter().any(|program| program.schedule().is_some());
        let options = Options {
            smp: Some(if is_scheduled { 2 } else { 1 }),
            added: vec![Added::parse(&format!("{}:{THERE}", file.display()))?],
            limit: TimeLimit::Exact(sys::patience::stretched(Duration::from_secs(seconds))),
            ..self.options.clone()
        };
        let mut stderr = terminal::passed_on_error();
        let mut sinks = Sinks { stdout: out, stderr: &mut stderr, place: None, progress: &mut |_| {} };
        match vm::run(&options, &mut sinks) {
            Ok(outcome) => Ok(outcome.status.exit_code()),
            Err(error @ VmError::Panic { .. }) if error.is_emulators() => Ok(exit::FINE),
            Err(error) => Err(error.to_string()),
        }
    }
}

/// The newest kernel with the Rust driver that was built here.
fn newest_rust() -> Result<String, String> {
    let kept = vm::build::kept().map_err(|error| error.to_string())?;
    let is_rust =
        |kernel: &vm::build::Kept| kernel.build.as_ref().is_some_and(|build| build.driver == "rust");
    let words = kept.into_iter().filter(is_rust).map(|kernel| kernel.word);
    let none = "no kernel with the Rust driver was built: binderperf vm build-kernel --driver rust";
    words.max().ok_or_else(|| none.to_owned())
}

impl Runner for Guest {
    fn name(&self) -> &str {
        &self.name
    }

    fn boots(&self) -> bool {
        true
    }

    fn run(&mut self, programs: &[Program]) -> Result<Vec<Transcript>, String> {
        let mut all: Vec<Transcript> = Vec::new();
        let mut slips = 0;
        while all.len() < programs.len() {
            let mut out = Vec::new();
            let ended = self.boot(&programs[all.len()..], &mut out);
            let (transcripts, cut) = transcript::parse(&String::from_utf8_lossy(&out));
            slips = if transcripts.is_empty() { slips + 1 } else { 0 };
            all.extend(transcripts);
            match ended {
                // The emulator's fault: the program runs again.
                Ok(exit::FINE) if slips < MOST_SLIPS => {}
                Ok(_) if cut => all.push(Transcript::down("the driver can run no more programs")),
                Err(why) if cut => all.push(Transcript::down(&why)),
                Err(why) if slips > 0 => return Err(why),
                Ok(_) if slips > 0 => return Err("the guest ran no program".to_owned()),
                _ => {}
            }
        }
        Ok(all)
    }
}
