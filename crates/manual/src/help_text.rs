//! What `--help` and the manual add to a command's definition: examples, exit statuses, variables, files, documents and
//! related commands, from `help.txt`; and the groups of commands.
//! Not here: options (each command's definition), pages of the manual (`page`).

use std::sync::LazyLock;

use clap::Command;

/// Text about one command, or text that several share.
#[derive(Clone, Debug, Default)]
pub struct HelpText {
    /// The words behind `binderperf`.
    pub command: &'static str,
    /// What each is for, and its command line.
    pub examples: Vec<(&'static str, &'static str)>,
    /// Exit statuses, ascending.
    pub statuses: Vec<(u8, &'static str)>,
    /// Files read or written without being named on the command line.
    pub files: Vec<(&'static str, &'static str)>,
    /// Environment variables, besides those about drivers.
    pub variables: Vec<(&'static str, &'static str)>,
    /// Documents in `docs`.
    pub docs: Vec<&'static str>,
    /// Related commands.
    pub see: Vec<&'static str>,
}

/// Commands for one purpose, in the order of `help.txt`.
#[derive(Debug)]
pub struct Group {
    /// Its title.
    pub title: &'static str,
    texts: Vec<HelpText>,
}

impl Group {
    /// The commands directly below `binderperf`.
    pub fn commands(&self) -> impl Iterator<Item = &'static str> {
        self.texts.iter().map(|text| text.command).filter(|command| !command.contains(' '))
    }
}

/// All of `help.txt`: texts to share, then the groups.
static ALL: LazyLock<(Vec<HelpText>, Vec<Group>)> = LazyLock::new(|| parse(include_str!("help.txt")));

fn parse(source: &'static str) -> (Vec<HelpText>, Vec<Group>) {
    let (mut shared, mut groups): (Vec<HelpText>, Vec<Group>) = Default::default();
    let mut lines = source.lines().filter(|line| !line.is_empty() && !line.starts_with('#'));
    while let Some(line) = lines.next() {
        if let Some(title) = line.strip_prefix("== ") {
            groups.push(Group { title, texts: Vec::new() });
            continue;
        }
        let texts = groups.last_mut().map_or(&mut shared, |group| &mut group.texts);
        if let Some(command) = line.strip_prefix('[').and_then(|line| line.strip_suffix(']')) {
            texts.push(HelpText { command, ..HelpText::default() });
            continue;
        }
        let mut text = texts.pop().unwrap_or_default();
        if line.starts_with('@') {
            let of = shared.iter().find(|shared| shared.command == line);
            let HelpText { statuses, files, variables, .. } = of.expect("a shared section").clone();
            text.statuses.extend(statuses);
            text.files.extend(files);
            text.variables.extend(variables);
        } else {
            let (key, value) = line.split_once(": ").expect("a key and a value");
            let (kind, name) = key.split_once(' ').unwrap_or((key, ""));
            match kind {
                "example" => text.examples.push((value, lines.next().expect("a command line").trim_start())),
                "status" => text.statuses.push((name.parse().expect("a number"), value)),
                "file" => text.files.push((name, value)),
                "variable" => text.variables.push((name, value)),
                "docs" => text.docs.extend(value.split(", ")),
                "see" => text.see.extend(value.split(", ")),
                _ => panic!("help.txt: {line}"),
            }
        }
        groups.last_mut().map_or(&mut shared, |group| &mut group.texts).push(text);
    }
    (shared, groups)
}

/// All commands in their groups.
pub fn groups() -> &'static [Group] {
    &ALL.1
}

/// A section that others include, by its name with the `@`.
///
/// # Panics
/// There is no such section.
pub fn shared(name: &str) -> &'static HelpText {
    ALL.0.iter().find(|text| text.command == name).expect("a shared section of help.txt")
}

/// The text about a command.
pub fn find(command: &str) -> Option<&'static HelpText> {
    all().find(|text| text.command == command)
}

/// The text about each command.
pub fn all() -> impl Iterator<Item = &'static HelpText> {
    groups().iter().flat_map(|group| &group.texts)
}

/// Every environment variable, once.
pub fn every_variable() -> Vec<(&'static str, &'static str)> {
    let mut variables = shared("@drivers").variables.clone();
    for variable in all().flat_map(|text| &text.variables) {
        if !variables.contains(variable) {
            variables.push(*variable);
        }
    }
    variables
}

/// Appends its text to the help of a command and to that of each command below it. `more` adds options that commands share, by path.
pub fn add_to(command: Command, path: &str, more: fn(Command, &str) -> Command) -> Command {
    let below = |name: &str| if path.is_empty() { name.to_owned() } else { format!("{path} {name}") };
    let names: Vec<String> = command.get_subcommands().map(|sub| sub.get_name().to_owned()).collect();
    let command = names
        .iter()
        .fold(command, |command, name| command.mut_subcommand(name, |sub| add_to(sub, &below(name), more)));
    let command = match command.get_long_about().map(ToString::to_string) {
        Some(text) => command.long_about(wrapped(&text)),
        None => command,
    };
    let command = more(command, path);
    let Some(text) = find(path) else { return command };
    command.after_help("Examples, exit status and more: --help").after_long_help(text.after_help())
}

/// A line for each status.
pub fn listed(statuses: &[(u8, &str)]) -> String {
    statuses.iter().map(|(status, when)| format!("  {status:<4} {when}\n")).collect()
}

/// Breaks lines at 100 columns; lines that begin with a space stay as they are.
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

impl HelpText {
    /// The end of the long help.
    fn after_help(&self) -> String {
        let mut text = String::from("Examples:\n");
        for (what, words) in &self.examples {
            text += &format!("  # {what}\n  {words}\n");
        }
        text += &format!("\nExit status:\n{}", listed(&self.statuses));
        if !self.docs.is_empty() {
            text += &format!("\nExplained in {}\n", self.documents());
        }
        text + &format!("Manual: binderperf man {}", self.command.replace(' ', "-"))
    }

    /// The paths of its documents.
    pub fn documents(&self) -> String {
        let paths: Vec<String> = self.docs.iter().map(|name| format!("docs/{name}.md")).collect();
        paths.join(", ")
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
