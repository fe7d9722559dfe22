//! The instructions of calls that are alike, added up by function, group and stack.
//! Not here: which stack an instruction has (`super::stacks`).

use std::collections::{BTreeMap, BTreeSet, HashMap};

use serde::Serialize;

use crate::capture::Capture;
use crate::group;
use crate::stacks::Stacks;
use crate::symbols::{FunctionId, Symbols};

/// First calls, in which the stacks of both threads are not known yet.
const UNTRIED: usize = 4;

/// Where the instructions of a call go: averages over the calls that are alike. All counts are instructions of one call.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct Profile {
    /// The case.
    pub case: String,
    /// All complete calls that were seen, but for the first few.
    pub calls: usize,
    /// Calls that took exactly [`Self::instructions`]; only they are in the profile.
    pub alike: usize,
    /// Instructions from one call to the next: the most frequent number.
    pub instructions: u64,
    /// The shortest call.
    pub least: u64,
    /// The longest call.
    pub most: u64,
    /// Groups, the largest first.
    pub groups: Vec<Share>,
    /// Functions, by their own instructions, the largest first.
    pub functions: Vec<Function>,
    /// Stacks, in alphabetical order.
    pub stacks: Vec<StackCost>,
}

/// A group.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct Share {
    /// Its name.
    pub name: String,
    /// Its instructions.
    pub instructions: f64,
}

/// A function.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct Function {
    /// Its name.
    pub name: String,
    /// Its own instructions.
    pub own: f64,
    /// Its own and those of all that it calls. Who calls whom is inferred.
    pub total: f64,
}

/// A stack.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct StackCost {
    /// From the outermost function to the innermost.
    pub functions: Vec<String>,
    /// Instructions of the innermost function.
    pub instructions: f64,
}

/// Adds a capture up.
///
/// # Errors
/// It has too few calls.
pub fn profile(capture: &Capture, symbols: &str) -> Result<Profile, String> {
    if !capture.has_each_instruction() {
        return Err(format!(
            "{}: this QEMU logs blocks of instructions, not each of them, so they cannot be counted",
            capture.case
        ));
    }
    let symbols = Symbols::parse(symbols);
    let lengths: Vec<u64> = capture.each().skip(UNTRIED).map(|call| call.len() as u64).collect();
    let Some(instructions) = most_frequent(&lengths) else {
        return Err(format!(
            "{} calls of {} were seen, which is too few: {UNTRIED} go before the first that counts; give it more iterations",
            capture.calls(),
            capture.case
        ));
    };
    let mut stacks = Stacks::new(&symbols);
    let mut costs: HashMap<Vec<FunctionId>, u64> = HashMap::new();
    for (at, call) in capture.each().enumerate() {
        let counts = at >= UNTRIED && call.len() as u64 == instructions;
        for address in call {
            let stack = stacks.next(*address);
            if !counts {
                continue;
            }
            match costs.get_mut(stack) {
                Some(cost) => *cost += 1,
                None => drop(costs.insert(stack.to_vec(), 1)),
            }
        }
    }
    let alike = lengths.iter().filter(|length| **length == instructions).count();
    let mut stacks: Vec<StackCost> = costs
        .into_iter()
        .map(|(stack, cost)| StackCost {
            functions: stack.iter().map(|function| symbols.name(*function).to_owned()).collect(),
            instructions: cost as f64 / alike as f64,
        })
        .collect();
    stacks.sort_by(|one, other| one.functions.cmp(&other.functions));
    Ok(Profile {
        case: capture.case.clone(),
        calls: lengths.len(),
        alike,
        instructions,
        least: lengths.iter().copied().min().unwrap_or(0),
        most: lengths.iter().copied().max().unwrap_or(0),
        groups: groups(&stacks),
        functions: functions(&stacks),
        stacks,
    })
}

/// The most frequent length; of several the shortest, which has the fewest interruptions.
fn most_frequent(lengths: &[u64]) -> Option<u64> {
    let mut counts: BTreeMap<u64, usize> = BTreeMap::new();
    lengths.iter().for_each(|length| *counts.entry(*length).or_default() += 1);
    let most = counts.values().copied().max()?;
    counts.into_iter().find(|(_, count)| *count == most).map(|(length, _)| length)
}

fn groups(stacks: &[StackCost]) -> Vec<Share> {
    let mut sums: BTreeMap<&'static str, f64> = BTreeMap::new();
    for stack in stacks {
        let group = group::of(stack.functions.iter().map(String::as_str));
        *sums.entry(group).or_default() += stack.instructions;
    }
    let mut groups: Vec<Share> =
        sums.into_iter().map(|(name, instructions)| Share { name: name.to_owned(), instructions }).collect();
    groups.sort_by(|one, other| other.instructions.total_cmp(&one.instructions));
    groups
}

fn functions(stacks: &[StackCost]) -> Vec<Function> {
    let mut sums: BTreeMap<&str, (f64, f64)> = BTreeMap::new();
    for stack in stacks {
        // A function that is twice on a stack has its instructions once.
        for name in stack.functions.iter().map(String::as_str).collect::<BTreeSet<&str>>() {
            sums.entry(name).or_default().1 += stack.instructions;
        }
        if let Some(last) = stack.functions.last() {
            sums.entry(last).or_default().0 += stack.instructions;
        }
    }
    let mut functions: Vec<Function> =
        sums.into_iter().map(|(name, (own, total))| Function { name: name.to_owned(), own, total }).collect();
    functions.sort_by(|one, other| other.own.total_cmp(&one.own).then_with(|| one.name.cmp(&other.name)));
    functions
}

#[cfg(test)]
pub(crate) mod tests {
    use super::*;

    const MARK: u64 = 0x5555_0000;
    const ENTRY: u64 = 0xffff_ffff_8100_0000;
    const DRIVER: u64 = 0xffff_ffff_8100_0100;
    const LOCK: u64 = 0xffff_ffff_8100_0200;
    pub(crate) const SYMBOLS: &str = "ffffffff81000000 T entry_SYSCALL_64\nffffffff81000100 t binder_ioctl\nffffffff81000200 T _raw_spin_lock\n";

    /// Calls of ten instructions, each with so many more in the lock.
    pub(crate) fn capture(more: &[u64]) -> Capture {
        let mut capture = Capture::new("BM_sendVec_binder/4".to_owned(), MARK);
        for &more in more {
            let call =
                [MARK, MARK + 4, ENTRY, ENTRY + 4, DRIVER, DRIVER + 4, LOCK, LOCK + 4, DRIVER + 8, ENTRY + 8];
            call.into_iter().chain((0..more).map(|_| LOCK + 8)).for_each(|address| capture.add(address));
        }
        capture.add(MARK);
        capture
    }

    #[test]
    fn only_calls_that_are_alike_count() {
        let found = profile(&capture(&[0, 0, 0, 0, 0, 90, 0, 0, 5]), SYMBOLS).expect("calls");
        assert_eq!((found.calls, found.alike, found.instructions), (5, 3, 10));
        assert_eq!((found.least, found.most), (10, 100));
        let own: Vec<(&str, f64, f64)> =
            found.functions.iter().map(|one| (one.name.as_str(), one.own, one.total)).collect();
        let want = [
            ("binder_ioctl", 3.0, 5.0),
            ("entry_SYSCALL_64", 3.0, 8.0),
            ("_raw_spin_lock", 2.0, 2.0),
            ("user space", 2.0, 2.0),
        ];
        assert_eq!(own, want);
        let all: f64 = found.functions.iter().map(|one| one.own).sum();
        assert_eq!(all, found.instructions as f64, "nothing is lost");
        let groups: Vec<(&str, f64)> =
            found.groups.iter().map(|one| (one.name.as_str(), one.instructions)).collect();
        let want =
            [("driver", 3.0), ("system call entry and rest", 3.0), ("locks", 2.0), ("user space", 2.0)];
        assert_eq!(groups, want);
        assert_eq!(found.groups.iter().map(|one| one.instructions).sum::<f64>(), 10.0);
    }

    #[test]
    fn too_few_calls_are_an_error() {
        let error = profile(&capture(&[0, 0, 0, 0]), SYMBOLS).expect_err("all are first ones");
        assert!(error.starts_with("4 calls of BM_sendVec_binder/4 were seen, which is too few"), "{error}");
    }

    #[test]
    fn of_equally_frequent_lengths_the_shortest_stands() {
        assert_eq!(most_frequent(&[9, 8, 9, 8, 7]), Some(8));
        assert_eq!(most_frequent(&[]), None);
    }

    proptest::proptest! {
        /// Whatever jumps about in a log, every instruction of the counted calls is in the profile once.
        #[test]
        fn no_order_of_addresses_loses_an_instruction(
            path in proptest::collection::vec(proptest::sample::select(vec![ENTRY, ENTRY + 4, DRIVER, DRIVER + 4, LOCK, LOCK + 4, 5]), 0..60)
        ) {
            let mut capture = Capture::new("any".to_owned(), MARK);
            for _ in 0..=2 * UNTRIED {
                capture.add(MARK);
                capture.add(MARK + 4);
                path.iter().for_each(|address| capture.add(*address));
            }
            let found = profile(&capture, SYMBOLS).expect("calls");
            let all: f64 = found.functions.iter().map(|one| one.own).sum();
            proptest::prop_assert!((all - found.instructions as f64).abs() < 1e-6, "{} of {}", all, found.instructions);
        }
    }
}
