//! Room: what a command's definition does not hold and its help and its page of the manual tell all the same: examples,
//! exit statuses, variables, files, where its numbers are explained, what to look at next; and the groups of commands.
//! Not here: options (each command's room), pages (`man`). Every command has its lesson; `tree` tests that, and that the
//! words of every example are understood.

mod compare;
mod explain;
mod measure;
mod platform;

use clap::Command;

/// What there is to know about one command.
#[derive(Clone, Copy, Debug)]
pub(super) struct Lesson {
    /// The words behind `binderperf`.
    pub(super) command: &'static str,
    /// What it can be used for, and the words that do it.
    pub(super) examples: &'static [(&'static str, &'static str)],
    /// Its exit statuses.
    pub(super) statuses: &'static [(u8, &'static str)],
    /// Files that it reads or leaves without being told of them.
    pub(super) files: &'static [(&'static str, &'static str)],
    /// Variables that it obeys, besides those about drivers.
    pub(super) variables: &'static [Variable],
    /// The documents that explain it, in `docs`.
    pub(super) docs: &'static [&'static str],
    /// Commands to know next.
    pub(super) see: &'static [&'static str],
}

/// A name, and what its value is for.
pub(super) type Variable = (&'static str, &'static str);

/// A lesson with nothing in it.
const NOTHING: Lesson =
    Lesson { command: "", examples: &[], statuses: OK, files: &[], variables: &[], docs: &[], see: &[] };

/// The statuses of a command with an answer and no verdict.
const OK: &[(u8, &str)] = &[
    (0, "it is done"),
    (2, "bad words or bad input"),
    (3, "it cannot run here"),
    (4, "something could not be written, or went wrong inside"),
];

/// The statuses of a command that reads files and makes something of them.
const OF_FILES: &[(u8, &str)] = &[
    (0, "it is done"),
    (2, "bad words, or a file that cannot be read"),
    (4, "the result could not be written"),
];

/// What all statuses have in common.
pub(super) const STATUSES: &[(u8, &str)] = &[
    (0, "all is well"),
    (1, "it ran, and its verdict is a failure"),
    (2, "it was called wrongly, or with input that makes no sense"),
    (3, "the environment cannot run it: no driver, no permission"),
    (4, "something of its own went wrong, such as writing the result"),
];

/// Variables about the driver: of every command that takes --driver.
pub(super) const OF_DRIVERS: &[Variable] = &[
    ("BINDERPERF_DRIVER", "The driver where --driver is not given: auto, kernel or embedded"),
    (
        "XDG_RUNTIME_DIR",
        "The embedded driver's named contexts are in its folder binderperf; without it, in one of this user's in /tmp",
    ),
];

/// The folder of kernels that were fetched for guests.
const CACHE: Variable = (
    "XDG_CACHE_HOME",
    "Kernels that were fetched for guests are in its folder binderperf; without it, below ~/.cache",
);
const CACHED: (&str, &str) = ("$XDG_CACHE_HOME/binderperf/kernels", "kernels that were fetched once");

/// Commands for one purpose, the usual ones first.
pub(super) struct Group {
    /// The purpose.
    pub(super) title: &'static str,
    lessons: &'static [Lesson],
}

/// All lessons.
pub(super) const GROUPS: [Group; 5] = [
    Group { title: "Measure", lessons: measure::LESSONS },
    Group { title: "Find out why", lessons: explain::LESSONS },
    Group { title: "Show and compare", lessons: compare::LESSONS },
    Group { title: "Drivers and machines", lessons: platform::LESSONS },
    Group { title: "This program", lessons: platform::OF_THIS_PROGRAM },
];

impl Group {
    /// The commands right behind `binderperf`.
    pub(super) fn commands(&self) -> impl Iterator<Item = &'static str> {
        self.lessons.iter().map(|lesson| lesson.command).filter(|command| !command.contains(' '))
    }
}

/// The lesson of a command.
pub(super) fn of(command: &str) -> Option<&'static Lesson> {
    all().find(|lesson| lesson.command == command)
}

/// Each lesson.
pub(super) fn all() -> impl Iterator<Item = &'static Lesson> {
    GROUPS.iter().flat_map(|group| group.lessons)
}

/// Every variable, once.
pub(super) fn every_variable() -> Vec<Variable> {
    let mut variables = OF_DRIVERS.to_vec();
    for variable in all().flat_map(|lesson| lesson.variables) {
        if !variables.contains(variable) {
            variables.push(*variable);
        }
    }
    variables
}

/// A command with its lesson, and with those of the commands below it, behind their help.
pub(super) fn teach(command: Command, path: &str) -> Command {
    let below = |name: &str| if path.is_empty() { name.to_owned() } else { format!("{path} {name}") };
    let names: Vec<String> = command.get_subcommands().map(|sub| sub.get_name().to_owned()).collect();
    let taught = names
        .iter()
        .fold(command, |command, name| command.mut_subcommand(name, |sub| teach(sub, &below(name))));
    let taught = match taught.get_long_about().map(ToString::to_string) {
        Some(text) => taught.long_about(wrapped(&text)),
        None => taught,
    };
    let Some(lesson) = of(path) else { return taught };
    taught.after_help("Examples, exit status and more: --help").after_long_help(lesson.text())
}

/// A line for each status.
pub(super) fn listed(statuses: &[(u8, &str)]) -> String {
    statuses.iter().map(|(status, when)| format!("  {status:<4} {when}\n")).collect()
}

/// Lines as long as a terminal takes; those that begin with a space stay as they are.
fn wrapped(text: &str) -> String {
    const WIDTH: usize = 100;
    let mut lines: Vec<String> = Vec::new();
    for line in text.lines() {
        let mut rest = line;
        while let Some(at) =
            rest.get(..WIDTH).filter(|_| !line.starts_with(' ')).and_then(|head| head.rfind(' '))
        {
            lines.push(rest[..at].to_owned());
            rest = &rest[at + 1..];
        }
        lines.push(rest.to_owned());
    }
    lines.join("\n")
}

impl Lesson {
    /// The end of a long help.
    fn text(&self) -> String {
        let mut text = String::new();
        if !self.examples.is_empty() {
            text += "Examples:\n";
        }
        for (what, words) in self.examples {
            text += &format!("  # {what}\n  {words}\n");
        }
        text += &format!("\nExit status:\n{}", listed(self.statuses));
        if !self.docs.is_empty() {
            let docs: Vec<String> = self.docs.iter().map(|name| format!("docs/{name}.md")).collect();
            text += &format!("\nExplained in {}\n", docs.join(", "));
        }
        let page = self.command.replace(' ', "-");
        text + &format!("Manual: binderperf man {page}")
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn long_lines_are_broken_between_words_and_tables_are_not() {
        let word = "binder";
        let long = vec![word; 60].join(" ");
        let table = format!("  {long}");
        let text = wrapped(&format!("{long}\n\n{table}\nshort"));
        let lines: Vec<&str> = text.lines().collect();
        assert!(lines.iter().all(|line| line.len() <= 100 || **line == table), "{text}");
        assert!(lines.contains(&"") && lines.contains(&table.as_str()) && lines.ends_with(&["short"]));
        assert_eq!(text.split_whitespace().count(), 121);
        let unbroken = "x".repeat(300);
        assert_eq!(wrapped(&unbroken), unbroken);
    }
}
