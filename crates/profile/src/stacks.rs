//! Who called the function that an instruction belongs to, inferred from the order of addresses.
//! Not here: counting (`super::tally`).
//!
//! A function's first instruction means a call, or a jump in place of one; an instruction inside another function means a
//! return to it. User space has no kernel stack, so every entry from there begins anew. When the scheduler switches, the
//! stack that was left longest ago goes on: with a caller and a service that take turns on one CPU there is no other.
//! The cost of each function alone does not depend on this.

use crate::symbols::{FunctionId, Symbols, USER, is_kernel};

/// Functions that change from one thread's stack to another's: x86-64, arm64.
const SWITCHES: [&str; 2] = ["__switch_to_asm", "cpu_switch_to"];
/// Functions that belong to such a change.
const DURING_SWITCH: [&str; 2] = ["__switch_to", "__switch_to_xtra"];
/// Jumps through a register, which mitigations make a function of; no caller of what comes next.
const THUNKS: [&str; 3] = ["__x86_indirect_thunk", "__x86_return_thunk", "srso_"];
/// Most threads whose stacks are remembered.
const THREADS: usize = 64;
/// Deepest stack.
const DEEPEST: usize = 256;

/// The stack of the running thread, and those of others.
pub(crate) struct Stacks<'s> {
    symbols: &'s Symbols,
    /// From the outermost function to the running one.
    running: Vec<FunctionId>,
    /// Those that wait, the longest first.
    waiting: Vec<Vec<FunctionId>>,
    switching: bool,
}

impl<'s> Stacks<'s> {
    pub(crate) fn new(symbols: &'s Symbols) -> Self {
        Self { symbols, running: Vec::new(), waiting: Vec::new(), switching: false }
    }

    /// The stack at the next executed instruction.
    pub(crate) fn next(&mut self, address: u64) -> &[FunctionId] {
        let (function, begins) = self.symbols.at(address);
        let from_user = self.running.first() == Some(&USER);
        if !is_kernel(address) || from_user {
            if self.running != [function] {
                self.running = vec![function];
            }
        } else if self.running.last() != Some(&function) {
            self.change(function, begins);
        }
        &self.running
    }

    fn change(&mut self, function: FunctionId, begins: bool) {
        let is = |names: &[&str]| names.contains(&self.symbols.name(function));
        if self.switching && !is(&DURING_SWITCH) && !begins {
            self.switching = false;
            self.switch_to(function);
            return;
        }
        if begins {
            self.switching |= is(&SWITCHES);
            if self.running.last().is_some_and(|last| self.is_thunk(*last)) {
                self.running.pop();
            }
            if self.running.len() < DEEPEST {
                self.running.push(function);
            }
            return;
        }
        match self.running.iter().rposition(|caller| *caller == function) {
            Some(at) => self.running.truncate(at + 1),
            // It returns from what was seen of its stack into what was not.
            None => self.running = vec![function],
        }
    }

    fn is_thunk(&self, function: FunctionId) -> bool {
        let name = self.symbols.name(function);
        THUNKS.iter().any(|thunk| name.starts_with(thunk))
    }

    /// Goes on in this function of another thread: the one that waits longest, or one that was never seen.
    fn switch_to(&mut self, function: FunctionId) {
        let next = self.waiting_in(function).unwrap_or_else(|| vec![function]);
        let left = std::mem::replace(&mut self.running, next);
        self.waiting.push(left);
        if self.waiting.len() > THREADS {
            self.waiting.remove(0);
        }
    }

    /// Takes the stack that waits longest with this function on it.
    fn waiting_in(&mut self, function: FunctionId) -> Option<Vec<FunctionId>> {
        let place = self.waiting.iter().position(|stack| stack.contains(&function))?;
        let mut stack = self.waiting.remove(place);
        let depth = stack.iter().rposition(|caller| *caller == function)? + 1;
        stack.truncate(depth);
        Some(stack)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const KERNEL: u64 = 0xffff_ffff_8100_0000;

    /// Functions of 0x100 bytes, in this order.
    fn symbols(names: &[&str]) -> Symbols {
        let line = |(at, name): (usize, &&str)| format!("{:x} T {name}\n", KERNEL + 0x100 * at as u64);
        Symbols::parse(&names.iter().enumerate().map(line).collect::<String>())
    }

    /// The stacks at these places: function and offset in it, or user space.
    fn seen(names: &[&str], path: &[(&str, u64)]) -> Vec<String> {
        let symbols = symbols(names);
        let mut stacks = Stacks::new(&symbols);
        let address = |(name, offset): &(&str, u64)| match names.iter().position(|known| known == name) {
            Some(at) => KERNEL + 0x100 * at as u64 + offset,
            None => 0x5555_0000,
        };
        let of = |place| {
            let stack = stacks.next(address(place));
            stack.iter().map(|function| symbols.name(*function)).collect::<Vec<_>>().join(";")
        };
        path.iter().map(of).collect()
    }

    #[test]
    fn calls_and_returns_are_told_apart() {
        let path = [
            ("user", 0),
            ("entry", 0),
            ("a", 0),
            ("b", 0),
            ("b", 4),
            ("a", 8),
            ("c", 0),
            ("entry", 9),
            ("user", 0),
        ];
        let want = [
            "user space",
            "entry",
            "entry;a",
            "entry;a;b",
            "entry;a;b",
            "entry;a",
            "entry;a;c",
            "entry",
            "user space",
        ];
        assert_eq!(seen(&["entry", "a", "b", "c"], &path), want);
    }

    #[test]
    fn a_thunk_calls_nobody() {
        let path = [("user", 0), ("entry", 0), ("__x86_indirect_thunk_rax", 0), ("a", 0), ("entry", 4)];
        let want = ["user space", "entry", "entry;__x86_indirect_thunk_rax", "entry;a", "entry"];
        assert_eq!(seen(&["entry", "a", "__x86_indirect_thunk_rax"], &path), want);
    }

    #[test]
    fn two_threads_that_take_turns_keep_their_stacks() {
        let names = ["entry", "client", "server", "schedule", "__switch_to_asm", "__switch_to"];
        let wait = [("schedule", 0), ("__switch_to_asm", 0), ("__switch_to", 0)];
        let mut path = vec![("user", 0), ("entry", 0), ("client", 0)];
        path.extend(wait);
        // The server was never seen to go to sleep.
        path.extend([
            ("schedule", 40),
            ("server", 40),
            ("entry", 40),
            ("user", 0),
            ("entry", 0),
            ("server", 0),
        ]);
        path.extend(wait);
        path.extend([("schedule", 40), ("client", 40)]);
        path.extend(wait);
        path.push(("schedule", 40));
        path.push(("server", 40));
        let seen = seen(&names, &path);
        let last = &seen[path.len() - 7..];
        assert_eq!(last[0], "entry;client;schedule", "{seen:?}");
        assert_eq!(last[1], "entry;client", "{seen:?}");
        assert_eq!(last[5], "entry;server;schedule", "{seen:?}");
        assert_eq!(last[6], "entry;server", "{seen:?}");
    }

    #[test]
    fn nonsense_stays_bounded() {
        let names = ["a", "b"];
        let path: Vec<(&str, u64)> = (0..2000).map(|at| (names[at % 2], 0)).collect();
        assert!(seen(&names, &path).iter().all(|stack| stack.split(';').count() <= DEEPEST));
    }
}
