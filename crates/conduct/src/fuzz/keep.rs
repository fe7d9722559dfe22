//! The folder of `fuzz --out`: findings, programs that reached new places of a driver, and the next seed: the same command goes on
//! from there.
//! Not here: what a finding is (`fuzzer::session`).

use std::fs;
use std::io::Write;
use std::path::{Path, PathBuf};

use fuzzer::c_form::{c_program, has_c_form};
use fuzzer::corpus::Corpus;
use fuzzer::program::Program;
use fuzzer::runner;
use fuzzer::session::Finding;

use console::{Failure, exit};

/// The file with the next seed.
const NEXT: &str = "next-seed";
/// The file with the programs that reached new places.
const CORPUS: &str = "corpus.txt";

/// The folder.
pub(super) struct Keep(PathBuf);

impl Keep {
    pub(super) fn open(folder: &Path) -> Result<Self, Failure> {
        fs::create_dir_all(folder).map_err(|error| Failure::of_file(exit::USAGE, "make", folder, &error))?;
        Ok(Self(folder.to_owned()))
    }

    /// The seed after the last round; `None` if there was none.
    pub(super) fn next_seed(&self) -> Option<u64> {
        fs::read_to_string(self.0.join(NEXT)).ok()?.trim().parse().ok()
    }

    pub(super) fn set_next_seed(&self, seed: u64) -> Result<(), Failure> {
        let path = self.0.join(NEXT);
        sys::draft::write(&path, format!("{seed}\n")).map_err(|error| {
            Failure::new(exit::INTERNAL, format_args!("writing {}: {error}", path.display()))
        })
    }

    /// The programs that were kept.
    pub(super) fn corpus(&self) -> Result<Corpus, Failure> {
        let path = self.0.join(CORPUS);
        let mut corpus = Corpus::default();
        if path.exists() {
            for program in super::read(&path)? {
                corpus.keep(program);
            }
        }
        Ok(corpus)
    }

    /// Adds a program that reached new places.
    pub(super) fn program(&self, program: &Program) -> Result<(), String> {
        let path = self.0.join(CORPUS);
        let file = fs::OpenOptions::new().create(true).append(true).open(&path);
        let text = runner::programs_text(std::slice::from_ref(program));
        file.and_then(|mut file| file.write_all(text.as_bytes()))
            .map_err(|error| format!("writing {}: {error}", path.display()))
    }

    /// Writes a finding: its steps, and its C program. `number`: which one it is in this run.
    pub(super) fn finding(&self, number: u64, finding: &Finding) -> Result<(), String> {
        let order = finding.order.map_or_else(String::new, |order| format!("-order-{order:x}"));
        let name =
            finding.seed.map_or_else(|| format!("given-{number}"), |seed| format!("seed-{seed}{order}"));
        let about = format!("{} differ: {}", finding.names.join(" and "), finding.difference.kind());
        let c = has_c_form(&finding.program).then(|| ("c", c_program(&finding.program, &about)));
        for (ending, text) in [("txt", format!("# {about}\n{finding}"))].into_iter().chain(c) {
            let path = self.0.join(format!("{name}.{ending}"));
            sys::draft::write(&path, text).map_err(|error| format!("writing {}: {error}", path.display()))?;
        }
        Ok(())
    }
}
