//! Programs from seeds: processes that know each other, then episodes of what programs do with Binder, then mistakes in them.
//! Not here: what the steps give (`stage`). Handles, nodes and cookies are small numbers, so that a short program can be read.

use abi::codes::{bc, tf};
use fastrand::Rng;

use crate::program::{
    Action, Command, HEARD, Object, PROCS, Program, ROOM, Read, Step, THREADS, Transaction, WATCH_DEATH,
    WATCH_FREEZING,
};

/// Bytes that each process maps.
const AREA: u32 = 64 << 10;
/// Processes that have a node, and handles of each other.
const FRIENDS: usize = 3;
/// Numbers of the node that each process gives away first, of its others, and of cookies: one digit each.
const NODES: std::ops::Range<u64> = 1..4;

/// The program of a seed, the same on every machine.
#[must_use]
pub fn program(seed: u64) -> Program {
    let mut made = Generator::new(seed, Vec::new());
    made.acquaint();
    let start = made.steps.len();
    for _ in 0..made.rng.usize(2..9) {
        made.episode();
    }
    made.err(start);
    Program { steps: made.steps }
}

/// Whether a program's first steps are those of the acquaintance. Which of its threads join the pool there depends on the seed.
pub(crate) fn is_acquainted(program: &Program) -> bool {
    let begin = acquaintance().steps;
    let opens = |steps: &[Step]| steps.iter().filter(|step| matches!(step.action, Action::Open(_))).count();
    let calls = |steps: &[Step]| steps.iter().flat_map(Step::transactions).count();
    let is_like = |steps: &[Step]| (opens(steps), calls(steps)) == (opens(&begin), calls(&begin));
    program.steps.get(..begin.len()).is_some_and(is_like)
}

/// Most steps of a program that is made from others.
const MOST: usize = 80;

/// A program that is like `base`: with an episode of this seed's, steps of `other`, or mistakes. Both begin with the acquaintance.
#[must_use]
pub fn varied(base: &Program, other: &Program, seed: u64) -> Program {
    let mut made = Generator::new(seed, base.steps.clone());
    let start = acquaintance().steps.len();
    for _ in 0..made.rng.usize(1..4) {
        let at = made.rng.usize(start..=made.steps.len());
        let behind = made.steps.split_off(at);
        if made.chance(3) {
            let from = made.rng.usize(start..=other.steps.len());
            made.steps.extend_from_slice(&other.steps[from..]);
        } else {
            made.episode();
        }
        made.steps.extend(behind);
    }
    made.err(start);
    made.steps.truncate(MOST);
    // Each call keeps a code of its own, by which its delivery is known.
    let transactions = made.steps.iter_mut().flat_map(Step::transactions_mut);
    (1..).zip(transactions).for_each(|(code, what)| what.code = code);
    Program { steps: made.steps }
}

/// A program whose threads take their steps side by side, once they know each other, in one of many orders of a seed.
#[must_use]
pub fn scheduled(program: Program, seed: u64, order: u64) -> Program {
    let mut made = program;
    let begin = acquaintance().steps.len();
    // Mixed with the program's seed, so that programs with neighbouring seeds have other orders.
    let order = Rng::with_seed(seed ^ order.rotate_left(32)).u64(..);
    made.steps.insert(begin, Step { proc: 0, thread: 0, action: Action::Schedule(order) });
    made
}

/// Steps after which p0 is the manager with handles 1 (of p1) and 2 (of p2), and p1 and p2 have handle 1, of the other.
#[must_use]
pub fn acquaintance() -> Program {
    let mut made = Generator::new(0, Vec::new());
    made.acquaint();
    Program { steps: made.steps }
}

struct Generator {
    rng: Rng,
    steps: Vec<Step>,
    /// Code of the last call.
    code: u32,
    /// Threads that joined the pool.
    joined: [[bool; THREADS]; PROCS],
}

const READ: Option<Read> = Some(Read { room: ROOM, waits: false });
const WAIT: Option<Read> = Some(Read { room: ROOM, waits: true });

/// The process behind a handle after the acquaintance; the manager behind any other.
fn behind(proc: usize, handle: u32) -> usize {
    match (proc, handle) {
        (0, 1) | (2, 1) => 1,
        (0, 2) | (1, 1) => 2,
        _ => 0,
    }
}

/// A command with at most one number.
fn plain(code: u32, number: u64) -> Command {
    Command::Plain(code, [number, 0])
}

impl Generator {
    fn new(seed: u64, steps: Vec<Step>) -> Self {
        Self { rng: Rng::with_seed(seed), steps, code: 0, joined: Default::default() }
    }

    fn push(&mut self, proc: usize, thread: usize, action: Action) {
        self.steps.push(Step { proc, thread, action });
    }

    /// Mostly a thread first joins the pool, because the Rust driver gives the process's work to no other (LP-07).
    fn exchange(&mut self, proc: usize, thread: usize, mut commands: Vec<Command>, read: Option<Read>) {
        if !self.joined[proc][thread] && !self.chance(20) {
            self.joined[proc][thread] = true;
            commands.insert(0, plain(bc::ENTER_LOOPER, 0));
        }
        self.push(proc, thread, Action::Exchange(commands, read));
    }

    fn open(&mut self, proc: usize) {
        self.push(proc, 0, Action::Open(AREA));
        self.joined[proc] = [false; THREADS];
    }

    fn read(&mut self, proc: usize, thread: usize) {
        self.exchange(proc, thread, Vec::new(), READ);
    }

    fn acquaint(&mut self) {
        for proc in 0..FRIENDS {
            self.open(proc);
        }
        self.push(0, 0, Action::Manager);
        let own = || vec![Object::Node { ptr: 1, weak: false }];
        self.tell(1, 0, own(), 0, 1);
        self.tell(2, 0, own(), 0, 2);
        self.tell(0, 1, vec![Object::Handle { handle: 2, weak: false }], 1, 1);
        self.tell(0, 2, vec![Object::Handle { handle: 1, weak: false }], 2, 1);
    }

    /// A oneway call with an object, which the receiver then holds by this handle.
    fn tell(&mut self, from: usize, handle: u32, objects: Vec<Object>, to: usize, held: u32) {
        let call = Transaction { flags: tf::ONE_WAY, objects, code: self.code(), ..Transaction::default() };
        self.exchange(from, 0, vec![Command::Transaction(Some(handle), call)], READ);
        if from != 0 {
            self.exchange(from, 0, vec![plain(bc::INCREFS_DONE, 1), plain(bc::ACQUIRE_DONE, 1)], None);
        }
        self.read(to, 0);
        self.exchange(to, 0, vec![plain(bc::ACQUIRE, held.into()), Command::Free(0)], READ);
    }

    fn code(&mut self) -> u32 {
        self.code += 1;
        self.code
    }

    fn proc(&mut self) -> usize {
        self.rng.usize(..FRIENDS)
    }

    fn thread(&mut self) -> usize {
        if self.rng.u8(..3) > 0 { 0 } else { self.rng.usize(..THREADS) }
    }

    fn chance(&mut self, of: u8) -> bool {
        self.rng.u8(..of) == 0
    }

    /// A handle of a process, mostly one that it has.
    fn handle(&mut self, proc: usize) -> u32 {
        if self.chance(12) {
            return self.rng.u32(..6);
        }
        match proc {
            0 => self.rng.u32(1..3),
            _ => self.rng.u32(..2),
        }
    }

    /// Payload of a call or reply.
    fn transaction(&mut self, oneway: bool) -> Transaction {
        let mut flags = if oneway { tf::ONE_WAY } else { 0 };
        if self.chance(2) {
            flags |= tf::ACCEPT_FDS;
        }
        if self.chance(8) {
            flags |= [tf::CLEAR_BUF, tf::UPDATE_TXN, tf::STATUS_CODE, tf::ROOT_OBJECT][self.rng.usize(..4)];
        }
        let plain = if self.chance(6) { self.rng.u32(..20_000) } else { self.rng.u32(..5) * 4 };
        let objects = if self.chance(2) { Vec::new() } else { self.objects() };
        // A buffer at the very start cannot be a parent (OBJ-18), and drivers find that in their own ways.
        let plain = if objects.is_empty() { plain } else { plain.max(4) };
        let mut made = Transaction { code: self.code(), flags, plain, objects, ..Transaction::default() };
        if self.chance(12) {
            let by = self.rng.u32(1..32);
            match self.rng.u8(..4) {
                0 => made.cut = by,
                1 => made.skew = by,
                2 => made.clip = by,
                _ => made.short = by & !7,
            }
        }
        made
    }

    fn objects(&mut self) -> Vec<Object> {
        let mut objects = Vec::new();
        for index in 0..self.rng.u32(1..4) {
            let weak = self.chance(4);
            objects.push(match self.rng.u8(..10) {
                0..=2 => Object::Node { ptr: self.rng.u64(NODES), weak },
                3..=5 => Object::Handle { handle: self.rng.u32(..3), weak },
                6 => Object::Fd(self.rng.u8(..3)),
                7 => Object::Fds { count: self.rng.u32(..3), parent: (index.saturating_sub(1), 0) },
                _ => {
                    let parent = (index > 0 && self.chance(2))
                        .then(|| (index - u32::from(!self.chance(5)), self.rng.u32(..3) * 8));
                    Object::Buffer { len: self.rng.u32(..5) * 8 + self.rng.u32(..2) * 3, parent }
                }
            });
        }
        objects
    }

    fn episode(&mut self) {
        let (from, thread) = (self.proc(), self.thread());
        let handle = self.handle(from);
        let to = behind(from, handle);
        let other = self.thread();
        match self.rng.u8(..21) {
            0..=3 => self.round_trip(from, thread, handle, to, other),
            4..=6 => self.oneway(from, thread, handle, to, other),
            7 => self.nested(from, thread, handle, to, other),
            8..=9 => self.counts(from, thread, handle, to),
            10..=11 => self.watching(from, thread, handle, to, other),
            12..=13 => self.freezing(from, thread, handle, to, other),
            14..=15 => self.waiting(from, thread, handle, to, other),
            16 => self.leaving(from, thread, handle, to, other),
            17 => self.inheriting(from, thread, handle, to, other),
            _ => {
                for _ in 0..self.rng.usize(1..4) {
                    self.noise();
                }
            }
        }
    }

    fn call(&mut self, from: usize, thread: usize, handle: u32, oneway: bool, read: Option<Read>) {
        let what = self.transaction(oneway);
        self.exchange(from, thread, vec![Command::Transaction(Some(handle), what)], read);
    }

    fn reply(&mut self, proc: usize, thread: usize) {
        let what = self.transaction(false);
        let mut commands = vec![Command::Transaction(None, what)];
        if self.chance(2) {
            commands.insert(self.rng.usize(..2), Command::Free(0));
        }
        self.exchange(proc, thread, commands, READ);
    }

    fn round_trip(&mut self, from: usize, thread: usize, handle: u32, to: usize, other: usize) {
        let read = if self.chance(2) { READ } else { None };
        self.call(from, thread, handle, false, read);
        self.read(to, other);
        if self.chance(3) {
            self.noise();
        }
        self.reply(to, other);
        self.read(from, thread);
        if !self.chance(4) {
            self.exchange(from, thread, vec![Command::Free(0)], None);
        }
    }

    fn nested(&mut self, from: usize, thread: usize, handle: u32, to: usize, other: usize) {
        self.call(from, thread, handle, false, READ);
        self.read(to, other);
        let back = self.handle(to);
        let third = behind(to, back);
        self.call(to, other, back, false, READ);
        let third_thread = if third == from { thread } else { self.thread() };
        self.read(third, third_thread);
        if self.chance(4) {
            self.leave(third, third_thread);
        }
        self.reply(third, third_thread);
        self.read(to, other);
        self.reply(to, other);
        self.read(from, thread);
        self.exchange(from, thread, vec![Command::Free(0)], READ);
    }

    fn oneway(&mut self, from: usize, thread: usize, handle: u32, to: usize, other: usize) {
        for _ in 0..self.rng.usize(1..4) {
            self.call(from, thread, handle, true, READ);
        }
        for _ in 0..self.rng.usize(1..4) {
            self.read(to, other);
            if self.chance(2) {
                self.exchange(to, other, vec![Command::Free(0)], None);
            }
        }
    }

    fn count(&mut self, proc: usize) -> Command {
        let (up, strong) = (self.chance(2), !self.chance(3));
        let codes = if up { [bc::INCREFS, bc::ACQUIRE] } else { [bc::DECREFS, bc::RELEASE] };
        plain(codes[usize::from(strong)], self.handle(proc).into())
    }

    fn counts(&mut self, proc: usize, thread: usize, handle: u32, owner: usize) {
        for _ in 0..self.rng.usize(1..4) {
            let mut commands = vec![self.count(proc)];
            if self.chance(3) {
                commands.push(plain(bc::RELEASE, handle.into()));
            }
            self.exchange(proc, thread, commands, READ);
        }
        self.read(owner, 0);
        self.exchange(owner, 0, vec![plain(bc::ACQUIRE_DONE, 1), plain(bc::INCREFS_DONE, 1)], READ);
    }

    fn watching(&mut self, proc: usize, thread: usize, handle: u32, owner: usize, other: usize) {
        let (freeze, cookie) = (self.chance(3), self.rng.u64(NODES));
        let codes = if freeze { WATCH_FREEZING } else { WATCH_DEATH };
        let watch = |on| Command::Plain(codes[usize::from(on)], [handle.into(), cookie]);
        let heard = plain(HEARD[usize::from(freeze)], cookie);
        self.exchange(proc, thread, vec![watch(true)], READ);
        if freeze && self.chance(2) {
            self.exchange(proc, thread, vec![heard.clone()], READ);
        }
        match self.rng.u8(..4) {
            0 => self.exchange(proc, thread, vec![watch(false)], READ),
            1 if freeze => self.push(proc, thread, Action::Freeze(owner, true)),
            2 => self.exchange(proc, thread, vec![plain(bc::RELEASE, handle.into())], READ),
            _ => self.leave(owner, other),
        }
        self.read(proc, thread);
        self.exchange(proc, thread, vec![heard], READ);
        if self.chance(2) {
            self.exchange(proc, thread, vec![watch(false)], READ);
        }
        if freeze && self.chance(2) {
            self.push(proc, thread, Action::Freeze(owner, false));
            self.read(proc, thread);
        }
    }

    fn freezing(&mut self, from: usize, thread: usize, handle: u32, to: usize, other: usize) {
        if self.chance(3) {
            let oneway = !self.chance(3);
            self.call(from, thread, handle, oneway, READ);
        }
        self.push(from, thread, Action::Freeze(to, true));
        for _ in 0..self.rng.usize(1..4) {
            let oneway = !self.chance(3);
            self.call(from, thread, handle, oneway, READ);
        }
        self.push(from, thread, Action::FrozenInfo(to));
        if self.chance(3) {
            self.read(to, other);
        }
        self.push(from, thread, Action::Freeze(to, false));
        self.push(from, thread, Action::FrozenInfo(to));
        self.read(to, other);
        self.exchange(to, other, vec![Command::Free(0)], READ);
        self.read(from, thread);
    }

    /// Threads that wait in the driver.
    fn waiting(&mut self, from: usize, thread: usize, handle: u32, to: usize, other: usize) {
        if self.chance(2) {
            let count = self.rng.u32(..3);
            self.push(to, other, Action::MaxThreads(count));
        }
        let how = if self.chance(4) { bc::REGISTER_LOOPER } else { bc::ENTER_LOOPER };
        self.exchange(to, other, vec![plain(how, 0)], READ);
        self.exchange(to, other, Vec::new(), WAIT);
        if self.chance(3) {
            self.exchange(to, (other + 1) % THREADS, vec![plain(bc::ENTER_LOOPER, 0)], READ);
            self.exchange(to, (other + 1) % THREADS, Vec::new(), WAIT);
        }
        if self.chance(4) {
            self.push(to, (other + 1) % THREADS, Action::Signal(other));
        }
        let oneway = self.chance(2);
        let read = if self.chance(2) { WAIT } else { READ };
        self.call(from, thread, handle, oneway, read);
        if !oneway {
            self.reply(to, other);
        }
        self.exchange(to, other, vec![Command::Free(0), plain(bc::EXIT_LOOPER, 0)], READ);
        self.read(from, thread);
    }

    fn leave(&mut self, proc: usize, thread: usize) {
        let action = match self.rng.u8(..8) {
            0 => Action::Kill,
            1..=4 => Action::ThreadExit,
            _ => Action::Close,
        };
        self.joined[proc][thread] &= action != Action::ThreadExit;
        self.push(proc, thread, action);
    }

    /// Somebody leaves in the middle of a call.
    fn leaving(&mut self, from: usize, thread: usize, handle: u32, to: usize, other: usize) {
        let oneway = self.chance(3);
        self.call(from, thread, handle, oneway, READ);
        if !self.chance(3) {
            self.read(to, other);
        }
        let (who, by) = if self.chance(2) { (from, thread) } else { (to, other) };
        self.leave(who, by);
        self.reply(to, other);
        self.read(to, other);
        self.read(from, thread);
        if self.chance(3) {
            self.open(who);
            if who == 0 {
                self.push(0, by, Action::Manager);
            }
        }
    }

    /// Another program has the descriptor: a child beside a call, or one that takes the process's place.
    fn inheriting(&mut self, from: usize, thread: usize, handle: u32, to: usize, other: usize) {
        let oneway = self.chance(2);
        self.call(from, thread, handle, oneway, READ);
        let heir = if self.chance(2) { from } else { to };
        if self.chance(3) {
            self.joined[heir] = [false; THREADS];
            self.push(heir, 0, Action::Exec);
        } else {
            let action = self.action(heir);
            if action.can_be_forked() {
                self.push(heir, 0, Action::Fork(Box::new(action)));
            }
        }
        self.read(to, other);
        if !oneway {
            self.reply(to, other);
        }
        self.read(from, thread);
    }

    /// One step of any kind.
    fn noise(&mut self) {
        let (proc, thread) = (self.proc(), self.thread());
        let action = self.action(proc);
        self.push(proc, thread, action);
    }

    fn action(&mut self, proc: usize) -> Action {
        let handle = self.handle(proc);
        let small = self.rng.u64(..4);
        match self.rng.u8(..26) {
            0 => Action::ExtendedError,
            1 => Action::NodeInfo(handle),
            2 => Action::NodeDebug(small),
            3 => Action::Spam(self.chance(2)),
            4..=5 => Action::Poll,
            6 => Action::FrozenInfo(self.proc()),
            7 => Action::MaxThreads(small as u32),
            8 => Action::ThreadExit,
            9 => Action::Version,
            10 => Action::Signal(self.rng.usize(..THREADS)),
            11 => Action::Manager,
            12 => Action::Open([0, AREA, 4096][self.rng.usize(..3)]),
            13 => Action::Freeze(self.proc(), self.chance(2)),
            14 => {
                let room = [0, 4, 40, 76, 80, 84, 512][self.rng.usize(..7)];
                Action::Exchange(Vec::new(), Some(Read { room, waits: false }))
            }
            _ => {
                let commands = (0..self.rng.usize(1..4)).map(|_| self.command(proc)).collect();
                Action::Exchange(commands, if self.chance(3) { None } else { READ })
            }
        }
    }

    fn command(&mut self, proc: usize) -> Command {
        let (handle, cookie, strong) = (self.handle(proc), self.rng.u64(NODES), self.chance(2));
        let one_of = |codes: [u32; 2]| codes[usize::from(strong)];
        match self.rng.u8(..22) {
            0..=2 => Command::Transaction(Some(handle), self.transaction(!strong)),
            3 => Command::Transaction(None, self.transaction(false)),
            4..=6 => Command::Free(self.rng.usize(..3)),
            7..=10 => self.count(proc),
            11..=12 => plain(one_of([bc::INCREFS_DONE, bc::ACQUIRE_DONE]), self.rng.u64(NODES)),
            13 => plain(bc::ENTER_LOOPER, 0),
            14 => plain(one_of([bc::REGISTER_LOOPER, bc::EXIT_LOOPER]), 0),
            15..=16 => Command::Plain(one_of(WATCH_DEATH), [handle.into(), cookie]),
            17..=18 => Command::Plain(one_of(WATCH_FREEZING), [handle.into(), cookie]),
            19..=20 => plain(one_of(HEARD), cookie),
            _ => Command::Word([0, 0x4004_6302, 0x4008_630a, 0x7fff_ffff][self.rng.usize(..4)]),
        }
    }

    /// Leaves steps out, repeats and exchanges some, all behind the acquaintance.
    fn err(&mut self, start: usize) {
        for _ in 0..self.rng.usize(..3) {
            let rest = self.steps.len() - start;
            if rest < 2 {
                return;
            }
            let at = start + self.rng.usize(..rest);
            match self.rng.u8(..3) {
                0 => drop(self.steps.remove(at)),
                1 => self.steps.insert(at, self.steps[at].clone()),
                _ => {
                    let with = start + self.rng.usize(..rest);
                    self.steps.swap(at, with);
                }
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::collections::BTreeSet;

    #[test]
    fn a_seed_has_one_program_and_seeds_have_all_kinds_of_steps() {
        let words = |program: &Program| {
            let text = program.to_string();
            let parts = text.lines().flat_map(|line| line.split_once(' ').expect("a step").1.split("; "));
            parts.filter_map(|part| part.split(' ').next().map(str::to_owned)).collect::<Vec<_>>()
        };
        assert_eq!(program(7), program(7));
        let seen: BTreeSet<String> = (0..400).flat_map(|seed| words(&program(seed))).collect();
        for word in [
            "open",
            "close",
            "kill",
            "fork",
            "exec",
            "manager",
            "max-threads",
            "thread-exit",
            "version",
            "freeze",
            "thaw",
            "frozen-info",
            "node-info",
            "node-debug",
            "extended-error",
            "spam-detection",
            "poll",
            "signal",
            "call",
            "reply",
            "free",
            "acquire",
            "release",
            "increfs",
            "decrefs",
            "acquire-done",
            "increfs-done",
            "enter",
            "register",
            "exit",
            "watch",
            "unwatch",
            "watch-freeze",
            "unwatch-freeze",
            "dead-done",
            "freeze-done",
            "word",
            "read",
            "wait",
        ] {
            assert!(seen.contains(word), "no program has {word}");
        }
    }
}
