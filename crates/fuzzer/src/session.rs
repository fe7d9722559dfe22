//! A session: rounds of programs on all drivers, differences by kind, each new kind shrunk and confirmed.
//! Not here: one comparison (`compare`), what is printed (`finding`), the drivers (`runner`).

use std::collections::{BTreeMap, BTreeSet};
use std::ops::Range;

use crate::compare::{Difference, first};
use crate::corpus::Corpus;
use crate::generate;
use crate::known::Known;
use crate::program::Program;
use crate::runner::Runner;
use crate::shrink::shrink;
use crate::transcript::{Spot, Transcript};

/// Runs in a row in which a finding must come again.
const AGAIN: usize = 2;
/// Runs in one of which a finding of threads side by side must come again to be shrunk.
const ORDERED_AGAIN: usize = 6;

/// A difference that no list knows, or a fault of a kernel.
#[derive(Clone, Debug)]
pub struct Finding {
    /// The program's seed; `None`: it was given.
    pub seed: Option<u64>,
    /// The seed of its threads' order, where they ran side by side.
    pub order: Option<u64>,
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
    /// Programs that ran on every driver, step by step.
    pub programs: u64,
    /// Programs that ran on every driver with steps side by side.
    pub scheduled: u64,
    /// Programs without any difference.
    pub alike: u64,
    /// Differences that did not come again with the same program.
    pub fickle: u64,
    /// Known differences, by item, with their number.
    pub known: BTreeMap<&'static str, u64>,
    /// Further programs with a difference of a kind that was found before.
    pub again: u64,
}

/// News of a session.
#[derive(Clone, Copy, Debug)]
pub enum News<'n> {
    /// A finding, when it is shrunk.
    Found(&'n Finding),
    /// A program that is kept because it reached new places of a driver.
    Kept(&'n Program),
}

/// Gets the news of a session; an error ends it.
pub type Report<'r> = dyn FnMut(News<'_>) -> Result<(), String> + 'r;

/// Drivers, and what was found on them.
pub struct Session {
    runners: Vec<Box<dyn Runner>>,
    names: Vec<String>,
    /// Counts so far.
    pub totals: Totals,
    kinds: Vec<String>,
    /// Places that each driver has reached.
    reached: Vec<BTreeSet<Spot>>,
    /// Programs that reached new ones; `None`: they do not count.
    corpus: Option<Corpus>,
}

impl Session {
    /// A session on these drivers. `corpus`: programs from which others are made, to which those come that reach new places
    /// of a driver whose kernel has KCOV; `None`: every program is made from its seed alone.
    #[must_use]
    pub fn new(runners: Vec<Box<dyn Runner>>, corpus: Option<Corpus>) -> Self {
        let names: Vec<String> = runners.iter().map(|runner| runner.name().to_owned()).collect();
        let reached = vec![BTreeSet::new(); names.len()];
        Self { runners, names, totals: Totals::default(), kinds: Vec::new(), reached, corpus }
    }

    /// Places that each driver has reached where its kernel reports them, with the driver's name.
    pub fn reached(&self) -> impl Iterator<Item = (&str, usize)> {
        let all = self.names.iter().zip(&self.reached);
        all.map(|(name, reached)| (name.as_str(), reached.len())).filter(|(_, count)| *count > 0)
    }

    /// Programs that are kept.
    #[must_use]
    pub fn kept(&self) -> usize {
        self.corpus.as_ref().map_or(0, |corpus| corpus.programs().len())
    }

    /// Runs the programs of these seeds, each once step by step and in as many `orders` side by side; `report` gets each
    /// finding when it is shrunk.
    ///
    /// # Errors
    /// A driver that can run no program, or what `report` met.
    pub fn round(&mut self, seeds: Range<u64>, orders: u64, report: &mut Report<'_>) -> Result<(), String> {
        let (mut of, mut programs) = (Vec::new(), Vec::new());
        for seed in seeds {
            of.extend((0..=orders).map(|_| Some(seed)));
            let program =
                self.corpus.as_ref().map_or_else(|| generate::program(seed), |corpus| corpus.program(seed));
            programs.push(program.clone());
            programs.extend((0..orders).map(|order| generate::scheduled(program.clone(), seed, order)));
        }
        self.compare(&programs, &of, report)
    }

    /// Runs programs that were given, those of `seeds` where there are any.
    ///
    /// # Errors
    /// See [`Self::round`].
    pub fn compare(
        &mut self,
        programs: &[Program],
        seeds: &[Option<u64>],
        report: &mut Report<'_>,
    ) -> Result<(), String> {
        let all = run_on(&mut self.runners, programs)?;
        for (number, (program, transcripts)) in programs.iter().zip(all).enumerate() {
            let is_scheduled = program.schedule().is_some();
            *(if is_scheduled { &mut self.totals.scheduled } else { &mut self.totals.programs }) += 1;
            if self.add_reached(&transcripts)
                && let Some(corpus) = &mut self.corpus
                && corpus.keep(program.clone())
            {
                report(News::Kept(program))?;
            }
            let (difference, passed) = first(&self.names, program, &transcripts);
            self.count(&passed);
            match difference {
                None => self.totals.alike += u64::from(passed.is_empty() && !is_scheduled),
                Some(Difference { known: Some(known), .. }) => self.count(&[known]),
                Some(difference) => {
                    let seed = seeds.get(number).copied().flatten();
                    let (program, names) = (program.clone(), self.names.clone());
                    let order = program.schedule().map(|(_, order)| order);
                    self.found(Finding { seed, order, program, names, transcripts, difference }, report)?;
                }
            }
        }
        Ok(())
    }

    /// Runs the kept programs, so that no later one is kept for places that they reach.
    ///
    /// # Errors
    /// See [`Self::round`].
    pub fn run_kept(&mut self) -> Result<(), String> {
        let programs = self.corpus.as_ref().map_or_else(Vec::new, |corpus| corpus.programs().to_vec());
        if programs.is_empty() {
            return Ok(());
        }
        for transcripts in run_on(&mut self.runners, &programs)? {
            self.add_reached(&transcripts);
        }
        Ok(())
    }

    /// Adds places of a program; whether one is new.
    fn add_reached(&mut self, transcripts: &[Transcript]) -> bool {
        let before: usize = self.reached.iter().map(BTreeSet::len).sum();
        for (reached, transcript) in self.reached.iter_mut().zip(transcripts) {
            reached.extend(&transcript.reached);
        }
        self.reached.iter().map(BTreeSet::len).sum::<usize>() > before
    }

    fn count(&mut self, known: &[&'static Known]) {
        for known in known {
            *self.totals.known.entry(known.item).or_default() += 1;
        }
    }

    /// Shrinks a finding of a new kind and reports it.
    fn found(&mut self, finding: Finding, report: &mut Report<'_>) -> Result<(), String> {
        let kind = finding.difference.kind();
        if self.kinds.contains(&kind) {
            self.totals.again += 1;
            return Ok(());
        }
        let Some(short) = self.shortened(&finding)? else {
            if finding.order.is_none() {
                // What comes and goes is no finding of a program that is taken step by step.
                self.totals.fickle += 1;
                return Ok(());
            }
            self.kinds.push(kind);
            return report(News::Found(&finding));
        };
        self.kinds.push(kind);
        let of_short = short.difference.kind();
        if short.difference.known.is_none() && !self.kinds.contains(&of_short) {
            self.kinds.push(of_short);
        }
        report(News::Found(&short))
    }

    /// The finding with the shortest program that shows it; `None` if it did not come again: in each of two further runs or,
    /// where threads run side by side, in one of six.
    fn shortened(&mut self, finding: &Finding) -> Result<Option<Finding>, String> {
        let Finding { seed, order, program, difference, .. } = finding;
        let (runs, needed) = if order.is_some() { (ORDERED_AGAIN, 1) } else { (AGAIN, AGAIN) };
        let pair = pair_of(&self.runners, difference);
        let names: Vec<String> = pair.iter().map(|at| self.names[*at].clone()).collect();
        let mut runners: Vec<&mut Box<dyn Runner>> = self
            .runners
            .iter_mut()
            .enumerate()
            .filter(|(at, _)| pair.contains(at))
            .map(|(_, one)| one)
            .collect();
        let mut wanted = difference.clone();
        wanted.outcomes = pair.iter().map(|at| wanted.outcomes[*at].clone()).collect();
        let mut differ = |programs: &[Program]| -> Result<Vec<bool>, String> {
            let all = run_on(&mut runners, programs)?;
            let found = programs.iter().zip(all).map(|(program, transcripts)| {
                first(&names, program, &transcripts).0.is_some_and(|found| found.is_like(&wanted))
            });
            Ok(found.collect())
        };
        let again = differ(&vec![program.clone(); runs])?;
        if again.iter().filter(|came| **came).count() < needed {
            return Ok(None);
        }
        // Steps side by side have no outcomes of their own, so all of them may be needed.
        let step = wanted.step.filter(|_| order.is_none());
        let program = shrink(cut(program, step), &mut differ)?;
        for transcripts in run_on(&mut self.runners, &vec![program.clone(); runs])? {
            let of_pair: Vec<Transcript> = pair.iter().map(|at| transcripts[*at].clone()).collect();
            if let (Some(difference), _) = first(&names, &program, &of_pair)
                && difference.is_like(&wanted)
            {
                let (seed, order, names) = (*seed, *order, self.names.clone());
                return Ok(Some(Finding { seed, order, program, names, transcripts, difference }));
            }
        }
        Ok(None)
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

/// Transcripts by program and driver.
fn run_on<R: AsMut<dyn Runner + 'static>>(
    runners: &mut [R],
    programs: &[Program],
) -> Result<Vec<Vec<Transcript>>, String> {
    let mut all = vec![Vec::new(); programs.len()];
    for runner in runners {
        let runner = runner.as_mut();
        let given = runner.run(programs).map_err(|why| format!("{}: {why}", runner.name()))?;
        if given.len() != programs.len() {
            return Err(format!("{}: not all ran", runner.name()));
        }
        all.iter_mut().zip(given).for_each(|(of_program, transcript)| of_program.push(transcript));
    }
    Ok(all)
}
