//! Shorter programs with the same difference.
//! Not here: running them (`runner`).

use crate::program::{Action, Command, Program};

/// Most programs that are tried at once.
const AT_ONCE: usize = 160;

/// Whether programs still have the difference, each by itself.
pub type Tries<'t> = &'t mut dyn FnMut(&[Program]) -> Result<Vec<bool>, String>;

/// Leaves out steps, commands and objects as long as the difference remains. All candidates of a round run together, because
/// a guest's boot costs more than a program.
///
/// # Errors
/// Those of `tries`.
pub fn shrink(program: Program, tries: Tries<'_>) -> Result<Program, String> {
    let mut best = program;
    // Coarse cuts first: a quarter, an eighth, single steps.
    let mut size = best.steps.len().div_ceil(4).max(1);
    loop {
        let candidates: Vec<Program> = if size == 0 { simpler(&best) } else { without_runs(&best, size) };
        let candidates = &candidates[..candidates.len().min(AT_ONCE)];
        let kept = if candidates.is_empty() { Vec::new() } else { tries(candidates)? };
        let good: Vec<&Program> =
            candidates.iter().zip(kept).filter(|(_, kept)| *kept).map(|(program, _)| program).collect();
        if good.is_empty() {
            if size == 0 {
                return Ok(best);
            }
            size /= 2;
            continue;
        }
        // Those that can go one by one can often go together; the tries tell.
        let together = all_of(&best, &good);
        best = match together {
            Some(all) if tries(std::slice::from_ref(&all))?.first() == Some(&true) => all,
            _ => good[0].clone(),
        };
        size = size.min(best.steps.len().div_ceil(4));
    }
}

/// The program without each run of `size` steps.
fn without_runs(program: &Program, size: usize) -> Vec<Program> {
    let starts = (0..program.steps.len()).step_by(size);
    let without = |start: usize| {
        let mut steps = program.steps.clone();
        steps.drain(start..(start + size).min(steps.len()));
        Program { steps }
    };
    starts.map(without).filter(|program| !program.steps.is_empty()).collect()
}

/// The program without all steps that one of the others lacks.
fn all_of(program: &Program, others: &[&Program]) -> Option<Program> {
    if others.len() < 2 || others.iter().any(|other| other.steps.len() >= program.steps.len()) {
        return None;
    }
    let mut keep = vec![true; program.steps.len()];
    for other in others {
        // A run is missing: its place is where both begin to differ.
        let missing = program.steps.len() - other.steps.len();
        let start = program.steps.iter().zip(&other.steps).take_while(|(one, other)| one == other).count();
        let end = (start + missing).min(keep.len());
        keep[start..end].fill(false);
    }
    let steps: Vec<_> =
        program.steps.iter().zip(keep).filter(|(_, keep)| *keep).map(|(step, _)| step.clone()).collect();
    (!steps.is_empty()).then_some(Program { steps })
}

/// Programs with one command, one object or one oddity less.
fn simpler(program: &Program) -> Vec<Program> {
    let mut made = Vec::new();
    for (at, step) in program.steps.iter().enumerate() {
        let Action::Exchange(commands, read) = &step.action else { continue };
        let mut with = |commands: Vec<Command>, read| {
            let mut steps = program.steps.clone();
            steps[at].action = Action::Exchange(commands, read);
            made.push(Program { steps });
        };
        if !commands.is_empty() && read.is_some() {
            with(commands.clone(), None);
        }
        for (index, command) in commands.iter().enumerate() {
            if commands.len() > 1 || read.is_some() {
                let mut fewer = commands.clone();
                fewer.remove(index);
                with(fewer, *read);
            }
            let Command::Transaction(target, what) = command else { continue };
            let mut other = |what| {
                let mut changed = commands.clone();
                changed[index] = Command::Transaction(*target, what);
                with(changed, *read);
            };
            for object in 0..what.objects.len() {
                let mut what = what.clone();
                what.objects.remove(object);
                other(what);
            }
            if what.plain > 0 {
                other(crate::program::Transaction { plain: 0, ..what.clone() });
            }
            if what.flags & !1 != 0 {
                other(crate::program::Transaction { flags: what.flags & 1, ..what.clone() });
            }
        }
    }
    made
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_difference_that_needs_two_steps_is_shrunk_to_them() {
        let program = crate::generate::program(5);
        let has = |program: &Program, word: &str| program.to_string().contains(word);
        let mut tried = 0;
        let mut tries = |programs: &[Program]| {
            tried += programs.len();
            Ok(programs.iter().map(|one| has(one, "manager") && has(one, "[handle 2]")).collect())
        };
        let short = shrink(program, &mut tries).expect("it is always tried");
        assert_eq!(short.to_string(), "p0.t0 manager\np0.t0 call 1 code=3 flags=0x1 [handle 2]\n");
        assert!(tried < 2000, "{tried}");
    }
}
