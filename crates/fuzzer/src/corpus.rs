//! Programs that reached places of a driver before all others, and programs that are made from them.
//! Not here: the places (`sys::kcov`), programs from seeds alone (`generate`).

use fastrand::Rng;

use crate::generate;
use crate::program::Program;

/// One program of so many is made from its seed alone, so that a session does not go in circles.
const AFRESH: u8 = 3;

/// The programs that are worth another look, oldest first.
#[derive(Default)]
pub struct Corpus(Vec<Program>);

impl Corpus {
    /// Adds a program, unless it is one that others cannot be made from: its processes do not know each other first.
    pub fn keep(&mut self, program: Program) -> bool {
        let is_usable = generate::is_acquainted(&program);
        if is_usable {
            self.0.push(program);
        }
        is_usable
    }

    /// The programs.
    #[must_use]
    pub fn programs(&self) -> &[Program] {
        &self.0
    }

    /// The next program by its seed: one that is like a kept one, mostly a late one, or a new one.
    #[must_use]
    pub fn program(&self, seed: u64) -> Program {
        let mut rng = Rng::with_seed(seed);
        if self.0.is_empty() || rng.u8(..AFRESH) == 0 {
            return generate::program(seed);
        }
        // The larger of two numbers: what was reached late is rare.
        let count = self.0.len();
        let (base, other) = (rng.usize(..count).max(rng.usize(..count)), rng.usize(..count));
        generate::varied(&self.0[base], &self.0[other], seed)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn programs_are_made_from_kept_ones_and_afresh() {
        let mut corpus = Corpus::default();
        let short: Program = "p0.t0 open 4096\np0.t0 version".parse().expect("a program");
        assert!(!corpus.keep(short), "nobody knows anybody");
        assert_eq!(corpus.program(7), generate::program(7), "nothing was kept");
        let kept: Program =
            format!("{}p2.t1 spam-detection 1\np0.t2 node-debug 77\n", generate::acquaintance())
                .parse()
                .expect("a program");
        assert!(corpus.keep(kept));
        let begin = generate::acquaintance().steps;
        let (mut like, mut afresh) = (0, 0);
        for seed in 0..300 {
            let program = corpus.program(seed);
            assert_eq!(program, corpus.program(seed), "the same of a seed and what is kept");
            let is_afresh = program == generate::program(seed);
            assert!(is_afresh || program.steps[..begin.len()] == begin[..], "they know each other first");
            afresh += u32::from(is_afresh);
            like += u32::from(program.to_string().contains("node-debug 77"));
        }
        assert!(like > 120 && afresh > 60, "{like} like it, {afresh} afresh");
    }
}
