//! Where drivers differ: a step of a program, those before it, and what rules ask about them.
//! Not here: the rules (`known`).

use std::collections::BTreeSet;

use abi::codes::{bc, tf};

use crate::player::WAITS;
use crate::program::{Action, Command, Object, Program, Step, Transaction};
use crate::text;
use crate::transcript::Line;

/// Whether a command is a call with a reply.
pub(super) fn is_two_way(command: &Command) -> bool {
    matches!(command, Command::Transaction(Some(_), what) if what.flags & tf::ONE_WAY == 0)
}

/// An outcome without the notices to the owner of a node that somebody holds it.
pub(super) fn without_notices(outcome: &str) -> String {
    let is_notice = |word: &&str| word.starts_with("ACQUIRE(") || word.starts_with("INCREFS(");
    outcome.split(' ').filter(|word| !is_notice(word)).collect::<Vec<_>>().join(" ")
}

/// A step and those before it.
pub(crate) struct Place<'p> {
    pub(crate) program: &'p Program,
    pub(crate) number: usize,
    pub(crate) step: &'p Step,
    /// What the first driver gave, of all steps.
    pub(crate) lines: &'p [Line],
}

impl Place<'_> {
    pub(super) fn any(&self, is_so: impl Fn(&Command) -> bool) -> bool {
        self.step.commands().iter().any(is_so)
    }

    /// Whether this thread has sent a call or reply with a wrong size or offset.
    pub(super) fn thread_sent_malformed(&self) -> bool {
        let wrong = |what: &Transaction| what.cut != 0 || what.clip != 0 || what.short != 0 || what.skew != 0;
        let own = |step: &&Step| (step.proc, step.thread) == (self.step.proc, self.step.thread);
        let own = self.until_now().filter(own);
        own.flat_map(Step::transactions).any(wrong)
    }

    pub(super) fn step_at(&self, at: usize) -> &Step {
        &self.program.steps[at]
    }

    /// Whether the process of the step at `at` has sent a call with a reply before; if `same_thread`, that thread.
    pub(super) fn has_called(&self, at: usize, same_thread: bool) -> bool {
        let of = self.step_at(at);
        let own = |step: &&Step| step.proc == of.proc && (!same_thread || step.thread == of.thread);
        self.program.steps[..at].iter().filter(own).flat_map(Step::commands).any(is_two_way)
    }

    /// Whether another process than that of the step at `at` has sent a call with a reply before.
    pub(super) fn is_called(&self, at: usize) -> bool {
        let others = self.program.steps[..at].iter().filter(|step| step.proc != self.step_at(at).proc);
        others.flat_map(Step::commands).any(is_two_way)
    }

    /// Threads of the step's process that have sent a node of theirs strongly.
    pub(super) fn threads_that_sent_nodes(&self) -> usize {
        let own = self.until_now().filter(|step| step.proc == self.step.proc);
        let sends = |step: &&Step| {
            let mut objects = step.transactions().flat_map(|what| &what.objects);
            objects.any(|object| matches!(object, Object::Node { weak: false, .. }))
        };
        own.filter(sends).map(|step| step.thread).collect::<BTreeSet<_>>().len()
    }

    /// Whether the thread of the step at `at` sends a call with a reply there, and has sent one before whose end it had not
    /// read, as the first driver's outcomes say.
    pub(super) fn calls_again(&self, at: usize) -> bool {
        let step = self.step_at(at);
        step.commands().iter().any(is_two_way) && self.open_calls(at, step.proc, step.thread) > 0
    }

    /// How many calls with a reply a thread has sent before the step at `at` whose end it had not read then.
    fn open_calls(&self, at: usize, proc: usize, thread: usize) -> usize {
        // A thread that is new, or of a new process, has none.
        let renews = |step: &Step| match step.action {
            Action::Open(_) | Action::Close | Action::Kill | Action::Exec => step.proc == proc,
            Action::ThreadExit => (step.proc, step.thread) == (proc, thread),
            _ => false,
        };
        let since = self.program.steps[..at].iter().rposition(renews).unwrap_or(0);
        let is_own = |step: &Step| (step.proc, step.thread) == (proc, thread);
        let sent = |(number, step): (usize, &Step)| {
            step.commands().iter().take(self.taken(number)).filter(|command| is_two_way(command)).count()
        };
        let sent: usize = (since..at)
            .map(|number| (number, self.step_at(number)))
            .filter(|(_, step)| is_own(step))
            .map(sent)
            .sum();
        let is_end = |word: &&str| word.split('(').next().is_some_and(|name| name.ends_with("REPLY"));
        let read =
            self.lines.iter().filter(|line| (since..at).contains(&line.step)).filter(|line| {
                match &line.thread {
                    None => is_own(self.step_at(line.step)),
                    Some(name) => text::thread(name) == Ok((proc, thread)),
                }
            });
        // A oneway call that fails gives such an end, too.
        let oneways = |line: &Line| {
            let commands = self.step_at(line.step).commands().iter().filter(|command| !is_two_way(command));
            commands.filter(|command| matches!(command, Command::Transaction(Some(_), _))).count()
        };
        let ends = |line: &Line| line.text.split(' ').filter(is_end).count().saturating_sub(oneways(line));
        sent.saturating_sub(read.map(ends).sum())
    }

    pub(super) fn until_now(&self) -> impl Iterator<Item = &Step> {
        self.program.steps[..=self.number].iter()
    }

    pub(super) fn before(&self) -> impl Iterator<Item = &Step> {
        self.program.steps[..self.number].iter()
    }

    /// How many commands of a step were taken at the most, as the first driver's outcome says.
    fn taken(&self, number: usize) -> usize {
        let own = self.lines.iter().find(|line| line.step == number && line.thread.is_none());
        let taken = own.and_then(|line| match line.text.as_str() {
            WAITS => Some(0),
            text => text.split(' ').find_map(|word| word.strip_prefix("taken="))?.parse().ok(),
        });
        taken.unwrap_or(usize::MAX)
    }

    /// Whether a thread has joined the pool and not left it, as far as its commands say.
    pub(super) fn is_in_pool(&self, proc: usize, thread: usize) -> bool {
        let mut joined = false;
        for (number, step) in self.program.steps[..=self.number].iter().enumerate() {
            if step.proc != proc {
                continue;
            }
            match &step.action {
                Action::Open(_) | Action::Close | Action::Kill | Action::Exec => joined = false,
                _ if step.thread != thread => {}
                Action::ThreadExit => joined = false,
                Action::Exchange(commands, _) => {
                    for command in commands.iter().take(self.taken(number)) {
                        match command {
                            Command::Plain(bc::ENTER_LOOPER | bc::REGISTER_LOOPER, _) => joined = true,
                            Command::Plain(bc::EXIT_LOOPER, _) => joined = false,
                            _ => {}
                        }
                    }
                }
                _ => {}
            }
        }
        joined
    }
}
