//! A session: rounds of programs on all drivers, differences by kind, each new kind shrunk and confirmed.
//! Not here: one comparison (`compare`), what is printed (`finding`), the drivers (`runner`).

use std::collections::BTreeMap;
use std::ops::Range;

use crate::compare::{Difference, first};
use crate::generate;
use crate::known::Known;
use crate::program::Program;
use crate::runner::Runner;
use crate::shrink::shrink;
use crate::transcript::Transcript;

/// A difference that no list knows, or a fault of a kernel.
#[derive(Clone, Debug)]
pub struct Finding {
    /// The program's seed; `None`: it was given.
    pub seed: Option<u64>,
    /// The shortest program that still differs.
    pub program: Program,
    /// Names of all drivers.
    pub names: Vec<String>,
    /// Outcomes of the program on each of them.
    pub transcripts: Vec<Transcript>,
    /// The difference between two of them.
    pub difference: Difference,
}

/// Counts of a session.
#[derive(Clone, Debug, Default)]
pub struct Totals {
    /// Programs that ran on every driver.
    pub programs: u64,
    /// Programs without any difference.
    pub alike: u64,
    /// Differences that did not come again with the same program.
    pub fickle: u64,
    /// Known differences, by item, with their number.
    pub known: BTreeMap<&'static str, u64>,
    /// Further programs with a difference of a kind that was found before.
    pub again: u64,
}

/// Drivers, and what was found on them.
pub struct Session {
    runners: Vec<Box<dyn Runner>>,
    names: Vec<String>,
    /// Counts so far.
    pub totals: Totals,
    kinds: Vec<String>,
}

impl Session {
    /// A session on these drivers.
    #[must_use]
    pub fn new(runners: Vec<Box<dyn Runner>>) -> Self {
        let names = runners.iter().map(|runner| runner.name().to_owned()).collect();
        Self { runners, names, totals: Totals::default(), kinds: Vec::new() }
    }

    /// Runs the programs of these seeds; `report` gets each finding when it is shrunk.
    ///
    /// # Errors
    /// A driver that can run no program, or what `report` met.
    pub fn round(
        &mut self,
        seeds: Range<u64>,
        report: &mut dyn FnMut(&Finding) -> Result<(), String>,
    ) -> Result<(), String> {
        let programs: Vec<Program> = seeds.clone().map(generate::program).collect();
        self.compare(&programs, Some(seeds.start), report)
    }

    /// Runs programs that were given.
    ///
    /// # Errors
    /// See [`Self::round`].
    pub fn compare(
        &mut self,
        programs: &[Program],
        first_seed: Option<u64>,
        report: &mut dyn FnMut(&Finding) -> Result<(), String>,
    ) -> Result<(), String> {
        let all = run_on(&mut self.runners, programs)?;
        for (number, program) in programs.iter().enumerate() {
            self.totals.programs += 1;
            let transcripts: Vec<&Transcript> = all.iter().map(|driver| &driver[number]).collect();
            let (difference, passed) = first(&self.names, program, &transcripts);
            self.count(&passed);
            match difference {
                None => self.totals.alike += u64::from(passed.is_empty()),
                Some(Difference { known: Some(known), .. }) => self.count(&[known]),
                Some(difference) => {
                    let seed = first_seed.map(|seed| seed + number as u64);
                    self.found(seed, program, difference, report)?;
                }
            }
        }
        Ok(())
    }

    fn count(&mut self, known: &[&'static Known]) {
        for known in known {
            *self.totals.known.entry(known.item).or_default() += 1;
        }
    }

    fn found(
        &mut self,
        seed: Option<u64>,
        program: &Program,
        difference: Difference,
        report: &mut dyn FnMut(&Finding) -> Result<(), String>,
    ) -> Result<(), String> {
        let kind = difference.kind();
        if self.kinds.contains(&kind) {
            self.totals.again += 1;
            return Ok(());
        }
        let pair = pair_of(&self.runners, &difference);
        let names: Vec<String> = pair.iter().map(|at| self.names[*at].clone()).collect();
        let mut runners: Vec<&mut Box<dyn Runner>> = self
            .runners
            .iter_mut()
            .enumerate()
            .filter(|(at, _)| pair.contains(at))
            .map(|(_, one)| one)
            .collect();
        let mut wanted = difference;
        wanted.outcomes = pair.iter().map(|at| wanted.outcomes[*at].clone()).collect();
        let mut differ = |programs: &[Program]| -> Result<Vec<bool>, String> {
            let all = run_on(&mut runners, programs)?;
            let found = programs.iter().enumerate().map(|(number, program)| {
                let transcripts: Vec<&Transcript> = all.iter().map(|driver| &driver[number]).collect();
                first(&names, program, &transcripts).0.is_some_and(|found| found.is_like(&wanted))
            });
            Ok(found.collect())
        };
        // Twice more: what comes and goes is no finding of this kind of program.
        if differ(&[program.clone(), program.clone()])?.contains(&false) {
            self.totals.fickle += 1;
            return Ok(());
        }
        let program = shrink(cut(program, wanted.step), &mut differ)?;
        let mut transcripts = Vec::new();
        for mut driver in run_on(&mut self.runners, std::slice::from_ref(&program))? {
            transcripts.append(&mut driver);
        }
        let of_pair: Vec<&Transcript> = pair.iter().map(|at| &transcripts[*at]).collect();
        let (Some(difference), _) = first(&names, &program, &of_pair) else {
            self.totals.fickle += 1;
            return Ok(());
        };
        self.kinds.push(kind);
        let short = difference.kind();
        if difference.known.is_none() && !self.kinds.contains(&short) {
            self.kinds.push(short);
        }
        report(&Finding { seed, program, names: self.names.clone(), transcripts, difference })
    }
}

/// The program up to this step.
fn cut(program: &Program, step: Option<usize>) -> Program {
    let end = step.map_or(program.steps.len(), |step| step + 1);
    Program { steps: program.steps[..end].to_vec() }
}

/// Two drivers that differ, as cheap as possible: one whose outcome is rare, and one of the others.
fn pair_of(runners: &[Box<dyn Runner>], difference: &Difference) -> Vec<usize> {
    let outcomes = &difference.outcomes;
    let of = |at: usize| outcomes.iter().filter(|other| **other == outcomes[at]).count();
    let cost = |at: &usize| (runners[*at].boots(), *at);
    let Some(rare) = (0..outcomes.len()).min_by_key(|at| (of(*at), cost(at))) else { return Vec::new() };
    let other = (0..outcomes.len()).filter(|at| outcomes[*at] != outcomes[rare]).min_by_key(cost);
    let mut pair: Vec<usize> = std::iter::once(rare).chain(other).collect();
    pair.sort_unstable();
    pair
}

/// Transcripts by driver and program.
fn run_on<R: AsMut<dyn Runner + 'static>>(
    runners: &mut [R],
    programs: &[Program],
) -> Result<Vec<Vec<Transcript>>, String> {
    runners
        .iter_mut()
        .map(|runner| {
            let runner = runner.as_mut();
            let all = runner.run(programs).map_err(|why| format!("{}: {why}", runner.name()))?;
            if all.len() == programs.len() { Ok(all) } else { Err(format!("{}: not all ran", runner.name())) }
        })
        .collect()
}
